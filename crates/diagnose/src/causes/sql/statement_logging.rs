//! `db.statement-logging`: the slow side writes its statements to a log, and the fast one does not.
//!
//! The settings tell. With the fast side's in duel's own sessions, on all targets, the gap goes away; only a superuser may set them,
//! and those of MariaDB's general log nobody for one session: then it is left open. What looks like it: other settings that differ
//! (`db.config`), and whatever else writes to a disk.

use super::KINDS;
use crate::cause::{Cause, CauseEntry, Standing};
use crate::evidence::db_settings;
use crate::gap::Gap;
use crate::probes::sessions::Group;

static ENTRY: CauseEntry = CauseEntry {
    id: "db.statement-logging",
    description: "the server writes statements to a log while it executes them",
    signature: "settings of logging differ; with the fast side's in duel's own sessions on all targets the gap \
                goes away, or, with `--may-copy-database`, on a private copy of the server",
    at_most: "confirmed",
    needs_machine: false,
};

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    db_settings::weigh(gap, &ENTRY, Group::Logging)
}
