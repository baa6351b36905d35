//! Databases as they can be drawn by `faults random`.

mod decoys;
mod faults;
mod outside;
mod setups;
#[cfg(test)]
mod tests;

use super::*;
use crate::dice::Dice;
use crate::kinds::sql::{Relay, Transactions};
use crate::random::{Decoy, Drawable, DrawnKind, Installed, kept};

impl DrawnKind for Sql {
    const BESIDE_SEED: u64 = 1 << 32;
    const OP: &'static str = "transaction";
    const CATALOGUE: &'static [&'static [Drawable<Sql>]] = &[faults::ALL];
    const OUTSIDE: &'static [Drawable<Sql>] = outside::ALL;
    const DECOYS: &'static [Decoy<Sql>] = decoys::ALL;

    fn installed() -> Installed {
        let there = [POSTGRES, MARIADB].into_iter().filter(|system| is_missing(*system).is_none());
        Installed::of(there.map(|system| system.name().to_owned()).collect())
    }

    fn set_up(dice: &mut Dice, installed: &Installed) -> Option<Setup<Sql>> {
        setups::draw(dice, installed)
    }

    fn op_takes(arena: &SqlArena, _load: &Transactions) -> anyhow::Result<(f64, f64)> {
        arena.op_us()
    }
}

/// What set-ups have, as faults ask for it.
impl Setup<Sql> {
    fn is_on(&self, system: System) -> bool {
        self.twin.system == system
    }

    fn does(&self, ops: &[&str]) -> bool {
        ops.contains(&self.load.op)
    }

    fn writes(&self) -> bool {
        self.does(&["read-write", "write-only", "update-index", "update-non-index", "insert"])
    }

    /// Ops of one short statement, beside which little things are not lost.
    fn is_short(&self) -> bool {
        self.does(&["point-select", "update-index", "update-non-index", "insert"])
    }

    /// A table that can be read as a whole for each statement within some milliseconds.
    fn is_small(&self) -> bool {
        (8_000..=25_000).contains(&self.twin.rows)
    }

    fn is_kept(&self) -> bool {
        !self.load.reconnects
    }

    /// Whether commits wait for nothing.
    fn commits_late(&self) -> bool {
        let late = [("synchronous_commit", "off"), ("innodb-flush-log-at-trx-commit", "0")];
        self.twin.settings.iter().any(|setting| late.contains(setting))
    }
}
