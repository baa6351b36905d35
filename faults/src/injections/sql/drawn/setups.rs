//! Set-ups by chance.

use super::*;

/// Deletes are left out: the verification would leave duel nothing to delete.
const OPS: [&str; 11] = [
    "point-select",
    "point-select",
    "read-only",
    "read-write",
    "write-only",
    "update-index",
    "update-non-index",
    "update-non-index",
    "insert",
    "select-random-points",
    "select-random-ranges",
];

const KEYS: [&str; 5] = ["special", "uniform", "gaussian", "pareto", "zipfian"];

pub(super) fn draw(dice: &mut Dice, installed: &Installed) -> Option<Setup<Sql>> {
    let there: Vec<System> =
        [POSTGRES, MARIADB].into_iter().filter(|system| installed.has_all(&[system.name()])).collect();
    if there.is_empty() {
        return None;
    }
    let (system, op) = (*dice.pick(&there), *dice.pick(&OPS));
    let rows = dice.whole(5, 120) * 1000;
    let mut setup = Setup::rows(system, rows, op).sessions(dice.whole(1, 16));
    if setup.does(&["read-only", "read-write"]) && dice.one_in(2) {
        setup.load.range = dice.whole(10, 2_000);
    }
    setup.load.reconnects = setup.does(&["point-select", "select-random-points"]) && dice.one_in(3);
    setup.load.keys = *dice.pick(&KEYS);
    // How long this machine's disk takes scatters: most set-ups do not wait for it.
    Some(if setup.writes() && !dice.one_in(3) { without_waits(setup) } else { setup })
}
