//! What servers serve.

use crate::twin::{Content, Server, Twin};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rustix::fs::{Advice, fadvise, fsync};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The file that is served.
pub(crate) const FILE: &str = "f.html";

/// Writes the twin's file, if it serves one. Its pages leave the cache, so that they are charged to who reads them: to the
/// server's control group.
pub(crate) fn place(folder: &Path, twin: &Twin) -> anyhow::Result<()> {
    let Content::Text { bytes } = twin.content else { return Ok(()) };
    if matches!(twin.server, Server::Ruler | Server::HaproxyRuler | Server::Own) {
        return Ok(());
    }
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))?;
    let mut file = std::fs::File::create(folder.join(FILE))?;
    file.write_all(&prose(bytes))?;
    fsync(&file)?;
    fadvise(&file, 0, None, Advice::DontNeed)?;
    Ok(())
}

/// Prose of so many bytes, always the same: words of a small vocabulary by chance, which gzip brings to about a third,
/// as it does with pages.
pub(crate) fn prose(bytes: u64) -> Vec<u8> {
    let mut random = Pcg64Mcg::seed_from_u64(20);
    let words: Vec<Vec<u8>> = (0..2000)
        .map(|_| (0..random.random_range(2..11)).map(|_| random.random_range(b'a'..=b'z')).collect())
        .collect();
    let wanted = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut text = Vec::with_capacity(wanted + 16);
    while text.len() < wanted {
        // Squaring makes some words frequent and many rare.
        let dice: f64 = random.random();
        text.extend_from_slice(&words[(dice * dice * words.len() as f64) as usize]);
        text.push(if random.random_ratio(1, 12) { b'\n' } else { b' ' });
    }
    text.truncate(wanted);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_long_as_told_and_always_the_same() {
        for bytes in [0, 1, 612, 100_000] {
            assert_eq!(prose(bytes).len() as u64, bytes);
        }
        assert_eq!(prose(5000), prose(5000));
    }
}
