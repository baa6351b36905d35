//! The catalogue: one file per cause, in a folder for each layer, with what it looks for, why, and what the user will read.
//!
//! A new cause is a new file with one [`Cause`], and a line in the list of its folder. It sees the world
//! through a [`Gap`](crate::gap::Gap) only. What several causes read of it stands in [`evidence`](crate::evidence): causes do
//! not know each other. Which of them look like which others stands in [`likes`].

/// Declares the files of a folder's causes, one to a line, and lists them in the order in which equal ones are told.
macro_rules! causes {
    ($($file:ident),+ $(,)?) => {
        $(mod $file;)+

        /// The causes of this folder.
        pub(super) static CAUSES: &[&crate::cause::Cause] = &[$(&$file::CAUSE),+];
    };
}

mod below;
mod crypto;
mod disk;
mod host;
mod http;
pub(crate) mod likes;
mod net;
mod path;
mod sql;
#[cfg(test)]
mod tables;
mod tls;

pub(crate) use net::names;

use crate::case::Case;
use crate::cause::{Cause, CauseEntry};
use crate::{none, unknown};

/// All causes that compete for gaps, in the order in which equal ones are told.
fn all() -> impl Iterator<Item = &'static Cause> {
    [
        tls::CAUSES,
        http::CAUSES,
        net::CAUSES,
        host::CAUSES,
        crypto::CAUSES,
        disk::CAUSES,
        path::CAUSES,
        sql::CAUSES,
        below::CAUSES,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// The causes that compete for the gaps of a case.
pub(crate) fn suiting(case: &Case<'_>) -> Vec<&'static Cause> {
    let kind = case.plan.schema().kind;
    all().filter(|cause| cause.kinds.contains(&kind)).collect()
}

/// The causes that can be named, for documentation and help. Causes of several kinds of work may have one id.
pub fn catalogue() -> Vec<&'static CauseEntry> {
    let competing = all().map(|cause| cause.entry);
    let others = names::BESIDE.into_iter().chain([&none::ENTRY, &unknown::ENTRY]);
    let mut entries: Vec<&CauseEntry> = Vec::new();
    for entry in competing.chain(others) {
        if entries.iter().all(|known| known.id != entry.id) {
            entries.push(entry);
        }
    }
    entries
}

/// Those of them that compete for the gaps of one kind of work, by its name in the model: what is to show real faults of all of
/// them goes by this list.
pub fn catalogue_of(kind: &str) -> Vec<&'static CauseEntry> {
    all().filter(|cause| cause.kinds.contains(&kind)).map(|cause| cause.entry).collect()
}

/// Causes that are told as suspicions rather than named, for only simulated worlds have shown them so far: a wrong
/// accusation is worse than none. Of all others real faults were found by the fault bench (`faults/SCORE.md`). It can
/// make no clock slow, no CPU but by a quota, which is found as that, no hypervisor withhold anything, no disk turn, and no
/// file system forget where blocks lie; the others it can make, and has not shown often enough so far.
static UNPROVEN: [&str; 13] = [
    "cpu.priority",
    "cpu.security-hooks",
    "cpu.slower",
    "cpu.slow-clock",
    "cpu.stolen",
    "disk.group-limit",
    "disk.metadata-misses",
    "disk.slow-spindle",
    "http.h2-window",
    "http.slow-upstream",
    "mem.cold-cache",
    "net.congestion-control of web",
    "net.idle-restart",
];

/// Whether a cause may be named as a finding.
pub(crate) fn is_proven(id: &str) -> bool {
    !UNPROVEN.contains(&id)
}

/// The causes that are told as suspicions: the fault bench tells of them, too.
pub fn unproven() -> &'static [&'static str] {
    &UNPROVEN
}
