//! `disk.slow-flush`: what a commit writes has to reach the device below, and on the healthy twin it has not.

use super::*;

const INJECTION: Injection<Sql> = Injection::new("disk.slow-flush", verify);

pub(super) fn cases() -> Vec<Case> {
    // A device with a cache: writing is as quick as memory, and what is flushed has to reach the disk below.
    let cached = VolumePlan { direct_io: false, mount: "barrier=0", ..volume() };
    let waits = move |twin: &mut SqlTwin| twin.volume = Some(VolumePlan { mount: "barrier=1", ..cached });
    let on = |system, connections| {
        Setup::rows(system, 20_000, "update-non-index")
            .sessions(connections)
            .with("ext4", |twin| twin.volume = Some(cached))
    };
    vec![INJECTION.case(&on(POSTGRES, 1), "barriers", waits), INJECTION.case(&on(MARIADB, 4), "barriers", waits)]
}

fn verify(arena: &SqlArena) -> anyhow::Result<Bite> {
    Ok(Bite::ratio("us per statement", arena.statement_us(1)?, 1.3))
}
