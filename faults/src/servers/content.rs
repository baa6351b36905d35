//! What servers serve.

use crate::twin::{Content, Server, Twin, one_of_files};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rustix::fs::{Advice, fadvise, fsync, syncfs};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The file that is served.
pub(crate) const FILE: &str = "f.html";

/// Writes the twin's file, if it serves one. Its pages leave the cache, so that they are charged to who reads them: to the
/// server's control group.
pub(crate) fn place(folder: &Path, twin: &Twin) -> anyhow::Result<()> {
    let bytes = match twin.content {
        Content::Text { bytes } => bytes,
        Content::Files { count, bytes, in_memory } => return place_files(folder, count, bytes, in_memory),
        Content::Path(_) => return Ok(()),
    };
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

/// The paths of several files, one on each line.
pub(crate) const PATHS: &str = "paths";

/// Writes so many files and a list of their paths. Pages that have been written stay in memory until they are thrown out.
fn place_files(folder: &Path, count: u32, bytes: u64, in_memory: bool) -> anyhow::Result<()> {
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))?;
    let text = prose(bytes);
    let mut paths = String::new();
    for number in 0..count {
        let path = one_of_files(&number.to_string());
        std::fs::write(folder.join(&path[1..]), &text)?;
        paths.push_str(&path);
        paths.push('\n');
    }
    std::fs::write(folder.join(PATHS), paths)?;
    syncfs(std::fs::File::open(folder)?)?;
    if in_memory { Ok(()) } else { forget_files(folder, 0..count) }
}

/// Throws the pages of these files out of memory.
pub(crate) fn forget_files(folder: &Path, numbers: std::ops::Range<u32>) -> anyhow::Result<()> {
    for number in numbers {
        let path = one_of_files(&number.to_string());
        fadvise(std::fs::File::open(folder.join(&path[1..]))?, 0, None, Advice::DontNeed)?;
    }
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
