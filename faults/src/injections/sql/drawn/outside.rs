//! Faults that no cause of duel's stands for: not to know is right.

use super::*;

pub(super) const ALL: &[Drawable<Sql>] = &[
    Drawable::new(nameless::INJECTION, changes_rows, |twin, _, dice| {
        let times = dice.whole(500, 20_000);
        twin.statements.push(kept(nameless::trigger(twin.system, &format!("md5(repeat(NEW.c, {times}))"))));
        format!("trigger-computes-{times}")
    }),
    Drawable::new(nameless::INJECTION, changes_rows, |twin, _, dice| {
        let us = dice.whole(300, 5_000);
        let seconds = f64::from(us) / 1e6;
        let call = match twin.system {
            System::Postgres => format!("pg_sleep({seconds})"),
            System::MariaDb => format!("SLEEP({seconds})"),
        };
        twin.statements.push(kept(nameless::trigger(twin.system, &call)));
        format!("trigger-sleeps-{us}us")
    }),
    Drawable::new(
        nameless::INJECTION,
        |setup| setup.is_kept() && !setup.writes(),
        |twin, _, dice| {
            let (every, us) = (dice.whole(2, 20), dice.whole(2_000, 30_000));
            twin.relay = Some(Relay { every, us });
            format!("each-{every}th-message-waits-{us}us")
        },
    )
    // Who stands between is on both, and makes nobody wait on the healthy one.
    .after(|setup, _| setup.with("relayed", |twin| twin.relay = Some(Relay::default()))),
];

/// Ops by which a trigger is called.
fn changes_rows(setup: &Setup<Sql>) -> bool {
    setup.does(&["update-index", "update-non-index"]) && setup.commits_late()
}
