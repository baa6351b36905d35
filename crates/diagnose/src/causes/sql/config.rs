//! `db.config`: another setting of the slow server is what makes it slow.
//!
//! Settings that differ prove nothing: with the fast side's value in duel's own sessions, on all targets, the gap has to go away. Those
//! that no session may change are tried on private copies of the slow server where that is allowed, and else told, with what to try. What looks like it: settings of logging have a cause of their own.

use super::KINDS;
use crate::cause::{Cause, CauseEntry, Standing};
use crate::evidence::db_settings;
use crate::gap::Gap;
use crate::probes::sessions::Group;

static ENTRY: CauseEntry = CauseEntry {
    id: "db.config",
    description: "a setting of the database differs, and the gap goes away with the other server's value",
    signature: "settings differ that sessions may change; with the fast side's in duel's own sessions on all \
                targets the gap goes away, of several with each alone; others on private copies of the server \
                (PostgreSQL and MariaDB, `--may-copy-database`)",
    at_most: "confirmed",
    needs_machine: false,
};

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    db_settings::weigh(gap, &ENTRY, Group::Other)
}
