//! `mem.cold-cache`: what is served is read from disk when it is asked for the first time.

use super::*;
use crate::servers::forget_files;
use crate::twin::{Content, one_of_files};
use crate::world::Throttle;
use std::os::unix::fs::MetadataExt;
use std::path::{Path as FilePath, PathBuf};

pub(super) const INJECTION: Injection = Injection::on_host("mem.cold-cache", verify);

/// Files that are looked at, and forgotten again.
const VERIFIED: u32 = 100;

pub(super) fn cases() -> Vec<Case> {
    // Enough that nobody has read all of them when duel has asked all that it asks for.
    let files = |server, reads_per_s: u64| {
        let count = 60 * u32::try_from(reads_per_s).unwrap_or(u32::MAX);
        let setup = Setup::of(server).files(count, 16_000).connections(4);
        // Both have the same right to their disk, so that a file takes some time, however fast the machine's own disk is.
        setup.with(&format!("{reads_per_s}-reads"), |twin| {
            let throttle = Throttle { read_calls: Some(reads_per_s), ..Throttle::default() };
            twin.process.limits.devices = disk().into_iter().map(|disk| (disk, throttle)).collect();
        })
    };
    let cases = [
        (files(Server::Nginx, 200), "random"),
        (files(Server::Nginx, 200).in_turn(), "listed"),
        (files(Server::Apache, 200), "random"),
    ];
    let known = disk().is_some();
    let of_case = |(setup, strength): (Setup, &str)| match known {
        true => INJECTION.case(&setup, strength, |twin| {
            if let Content::Files { in_memory, .. } = &mut twin.content {
                *in_memory = false;
            }
        }),
        false => INJECTION.unavailable(&setup, strength, "temporary files lie on no disk whose reads can be limited"),
    };
    cases.into_iter().map(of_case).collect()
}

/// The number of the disk that servers' folders lie on, `MAJOR:MINOR`: of a partition's disk, since whole disks are limited. `None` where
/// they lie on none.
fn disk() -> Option<String> {
    let device = std::fs::metadata(std::env::temp_dir()).ok()?.dev();
    let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let known: PathBuf = FilePath::new("/sys/dev/block").join(&number).canonicalize().ok()?;
    if !known.join("partition").exists() {
        return Some(number);
    }
    Some(std::fs::read_to_string(known.parent()?.join("dev")).ok()?.trim().to_owned())
}

/// Files take longer the first time, in which they are read.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let asked = |up: &Up| -> anyhow::Result<(f64, f64)> {
        let before = disk_bytes(up)?;
        let url = up.url_of(&one_of_files(&format!("[0-{}]", VERIFIED - 1)));
        let printed = arena.client.run("curl", &["-s", "-o", "/dev/null", "-w", "%{time_total}\\n", &url])?;
        let times: Vec<f64> = printed.lines().filter_map(|line| line.parse().ok()).collect();
        anyhow::ensure!(times.len() == VERIFIED as usize, "curl printed {printed:?}");
        let each = f64::from(VERIFIED);
        Ok(((disk_bytes(up)? - before) / 1e3 / each, times.iter().sum::<f64>() * 1e3 / each))
    };
    let (healthy, faulty) = (asked(&arena.healthy)?, asked(&arena.faulty)?);
    let (again, _) = asked(&arena.faulty)?;
    let up = &arena.faulty;
    if let Content::Files { in_memory: false, .. } = up.twin().content {
        forget_files(up.root(), 0..VERIFIED)?;
    }
    let bite = Bite::more("kB from the disk for each file", (healthy.0, faulty.0), 8.0);
    let first = Bite::more("the same again, and the first time", (again, faulty.0), 8.0);
    Ok(bite.and(first).and(Bite::ratio("ms for each file", (healthy.1, faulty.1), 1.3)))
}
