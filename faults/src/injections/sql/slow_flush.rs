//! `disk.slow-flush`: what a commit writes has to reach the device below, and on the healthy twin it has not.

use super::*;

pub(super) const INJECTION: Injection<Sql> = Injection::new("disk.slow-flush", verify);

pub(super) fn cases() -> Vec<Case> {
    let on = |system, connections| on_ext4(Setup::rows(system, 20_000, "update-non-index").sessions(connections));
    vec![INJECTION.case(&on(POSTGRES, 1), "barriers", waits), INJECTION.case(&on(MARIADB, 4), "barriers", waits)]
}

/// A device with a cache: writing is as quick as memory, and what is flushed has to reach the disk below.
pub(super) fn on_ext4(setup: Setup<Sql>) -> Setup<Sql> {
    let cached = VolumePlan { direct_io: false, mount: "barrier=0", ..volume() };
    setup.with("ext4", |twin| twin.volume = Some(cached))
}

pub(super) fn waits(twin: &mut SqlTwin) {
    twin.volume = twin.volume.map(|cached| VolumePlan { mount: "barrier=1", ..cached });
}

fn verify(arena: &SqlArena) -> anyhow::Result<Bite> {
    Ok(Bite::ratio("us per statement", arena.statement_us(1)?, 1.3))
}
