//! `disk.slow-reads`: what is served is read from a slower device for each request.

use super::*;
use crate::world::{Backing, VolumePlan, succeed};
use std::time::Instant;

pub(super) const INJECTION: Injection = Injection::on_host("disk.slow-reads", verify);

/// A device in memory: as fast as reading past the page cache can be.
const QUICK: VolumePlan = VolumePlan { backing: Backing::Memory, direct_io: false, ..VolumePlan::of("ext4", 64) };

/// Both read their file from such a device.
pub(super) fn on_a_disk(setup: Setup) -> Setup {
    setup.with("on-a-disk", |twin| twin.http.disk = Some(QUICK))
}

pub(super) fn cases() -> Vec<Case> {
    let nginx = || Setup::of(Server::Nginx);
    vec![
        INJECTION.case(&on_a_disk(nginx().bytes(1_100_000).connections(4)), "user-space", slower),
        INJECTION.case(&on_a_disk(nginx().https().bytes(2_000_000).connections(2)), "user-space", slower),
        INJECTION.case(&on_a_disk(nginx().bytes(8_000_000).connections(2)), "user-space", slower),
    ]
}

/// Each read goes through a program.
pub(super) fn slower(twin: &mut Twin) {
    twin.http.disk = Some(VolumePlan { backing: Backing::UserSpace, direct_io: true, ..QUICK });
}

/// The file takes longer past the page cache, whoever reads it.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let read = |up: &Up| -> anyhow::Result<f64> {
        let input = format!("if={}", up.file().display());
        let began = Instant::now();
        for _ in 0..20 {
            succeed("dd", &[&input, "of=/dev/null", "bs=128k", "iflag=direct", "status=none"])?;
        }
        Ok(began.elapsed().as_secs_f64() * 1e3 / 20.0)
    };
    let bite = Bite::more("ms for reading the file", arena.by_turns(read)?, 0.1);
    Ok(bite.and(Bite::ratio("ms per request", ms_per_request(arena, &ToolLoad::over(4))?, 1.3)))
}
