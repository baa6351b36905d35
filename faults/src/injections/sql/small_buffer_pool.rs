//! `db.small-buffer-pool`: what is kept of blocks is smaller than the table.

use super::*;

pub(super) const INJECTION: Injection<Sql> = Injection::new("db.small-buffer-pool", slower);

pub(super) fn cases() -> Vec<Case> {
    let smaller = |twin: &mut SqlTwin| twin.settings.push(("innodb-buffer-pool-size", "8M"));
    let select = |system| Setup::rows(system, 100_000, "point-select");
    let update = Setup::rows(POSTGRES, 100_000, "update-non-index");
    vec![
        INJECTION.case(&written(without_waits(update)), "shared_buffers-128kB", set("shared_buffers", "128kB")),
        INJECTION.case(&on_disk(select(MARIADB)), "8M", smaller),
        INJECTION.case(&on_disk(select(MARIADB).sessions(4)), "8M", smaller),
    ]
}

/// MariaDB, which reads past the system's memory.
pub(super) fn on_disk(setup: Setup<Sql>) -> Setup<Sql> {
    setup.with("ext4", |twin| {
        twin.volume = Some(volume());
        twin.settings.extend([("innodb-buffer-pool-size", "128M"), ("innodb-flush-method", "O_DIRECT")]);
    })
}

/// What PostgreSQL reads again, the system has in its own memory, and hardly anybody notices. What it has to write to make room, it waits for.
pub(super) fn written(setup: Setup<Sql>) -> Setup<Sql> {
    setup.with("writes-wait", |twin| {
        twin.volume = Some(VolumePlan { mount: "sync", ..volume() });
    })
}
