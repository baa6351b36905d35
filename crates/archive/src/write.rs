//! Writing: a run as it goes on, a whole run, or something added to a run.

use crate::open::{BUSY_TIMEOUT, SLOT_TIMEOUT, synchronous};
use crate::packing::{self, LONGEST_JSON_BYTES, PackError};
use crate::{Archive, ArchiveError};
use duel_model::{Doubt, DoubtId, Explanation, Interruption, Plan, Run, RunStatus, Slot, SlotRole};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use serde_json::Error as JsonError;
use std::collections::BTreeMap;
use std::path::Path;

/// What stands in `runs.status` until the run is finished.
pub(crate) const RUNNING: &str = "running";
pub(crate) const COMPLETE: &str = "complete";
pub(crate) const INTERRUPTED: &str = "interrupted";

impl Archive {
    /// Begins to keep a run, with the slots that it has already (none, usually).
    ///
    /// Until [`RunWriter::finish`] the run reads back as interrupted, whatever its status says here. Secrets in its
    /// plan are left out, in case they were still there.
    pub fn begin(&mut self, run: &Run) -> Result<RunWriter<'_>, ArchiveError> {
        self.keep(run, Keep { row: Row::New, end: false, durably: false })?;
        Ok(RunWriter { archive: self, id: run.id.clone() })
    }

    /// Keeps a whole run at once: all of it or nothing.
    pub fn save(&mut self, run: &Run) -> Result<(), ArchiveError> {
        self.keep(run, Keep { row: Row::New, end: true, durably: true })
    }

    /// Adds to a run that was kept before: slots that are not there yet (those of probes), its status, doubts, first
    /// contact and explanation. What was measured stays as it is: plan, versions and kept slots.
    ///
    /// `run` is the kept run, as loaded, with something added. [`ArchiveError::Changed`] if it was added to meanwhile.
    pub fn extend(&mut self, run: &Run) -> Result<(), ArchiveError> {
        self.keep(run, Keep { row: Row::AsLoaded, end: true, durably: true })
    }

    fn keep(&mut self, run: &Run, how: Keep) -> Result<(), ArchiveError> {
        let Self { connection, path, storage, .. } = self;
        let doing = || format!("keep run {}", duel_model::sanitize_line(&run.id));
        let failed = |error| ArchiveError::database(path, doing(), error);
        let unwritable =
            |source| ArchiveError::Unwritable { what: doing()["keep ".len()..].to_owned(), path: path.clone(), source };

        // Text is made before the lock is taken: other writers wait for the disk only.
        let head = Head::new(run).map_err(unwritable)?;
        let mut left_out = Vec::new();
        // Samples of machines are there when the run has ended.
        let mut hosts = Vec::new();
        for (target, host) in run.hosts.iter().enumerate().filter(|_| how.end) {
            let Some(host) = host else { continue };
            let (packed, told) = packing::pack_host(host).map_err(|error| unwritable(error.into_json()))?;
            left_out.extend(told.map(|told| (DoubtId::HostNotRead, target, format!("the host of {{}}: {told}"))));
            hosts.push((target, packed));
        }
        let kept = marks(connection, &run.id).map_err(failed)?;
        let mut new = Vec::new();
        for slot in run.slots.iter().filter(|slot| kept.get(&slot.index) != Some(&Mark::of(slot))) {
            match packing::pack(slot) {
                Ok(packed) => new.push((slot, packed)),
                // A row that its reader refuses would cost the whole run.
                Err(PackError::TooLong) => {
                    let told = format!("slot {} of {{}} is too large to be kept: it is missing here", slot.index);
                    left_out.push((DoubtId::NotRecorded, slot.target, told));
                }
                Err(PackError::Json(error)) => return Err(unwritable(error)),
            }
        }
        let left_out = left_out.into_iter().map(|(id, target, told)| missing(run, id, target, &told));
        let end = how.end.then(|| End::new(run, left_out.collect())).transpose().map_err(unwritable)?;

        if how.durably {
            synchronous(connection, *storage, true).map_err(failed)?;
        }
        let stored = (|| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
            match how.row {
                Row::New => {
                    if !head.insert(&transaction, run).map_err(failed)? {
                        return Err(ArchiveError::Exists { id: run.id.clone(), path: path.clone() });
                    }
                }
                Row::Begun => {}
                Row::AsLoaded => {
                    let mine: BTreeMap<u32, Mark> = run.slots.iter().map(|s| (s.index, Mark::of(s))).collect();
                    let theirs = marks(&transaction, &run.id).map_err(failed)?;
                    if let Some((&index, _)) = theirs.iter().find(|(index, mark)| mine.get(index) != Some(mark)) {
                        return Err(ArchiveError::Changed { id: run.id.clone(), index, path: path.clone() });
                    }
                }
            }
            for (slot, packed) in &new {
                store(&transaction, path, &run.id, slot, packed)?;
            }
            if let Some(end) = &end
                && !end.update(&transaction, &run.id).map_err(failed)?
            {
                return Err(ArchiveError::NotFound { wanted: run.id.clone(), path: path.clone() });
            }
            // Only of a run that is there.
            for (target, packed) in &hosts {
                store_host(&transaction, &run.id, *target, packed).map_err(failed)?;
            }
            transaction.commit().map_err(failed)
        })();
        if how.durably {
            synchronous(connection, *storage, false).map_err(failed)?;
        }
        stored
    }
}

/// A run that is being kept while it goes on. Dropped without [`RunWriter::finish`], the run stays interrupted.
#[derive(Debug)]
pub struct RunWriter<'a> {
    archive: &'a mut Archive,
    id: String,
}

impl RunWriter<'_> {
    /// Id of the run.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Keeps a slot. When this returns, nothing that happens to this process can lose it.
    ///
    /// It waits for other writers no longer than a measurement can stand still. A slot that could not be kept, because of
    /// them or because the disk was full for instance, may be tried again, and is tried again by [`RunWriter::finish`].
    pub fn slot(&mut self, slot: &Slot) -> Result<(), ArchiveError> {
        let path = &self.archive.path;
        let packed = packing::pack(slot).map_err(|error| ArchiveError::Unwritable {
            what: format!("slot {} of run {}", slot.index, duel_model::sanitize_line(&self.id)),
            path: path.clone(),
            source: error.into_json(),
        })?;
        let connection = &self.archive.connection;
        let failed = |error| ArchiveError::database(path, format!("keep run {}", self.id), error);
        connection.busy_timeout(SLOT_TIMEOUT).map_err(failed)?;
        let stored = store(connection, path, &self.id, slot, &packed);
        connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
        stored
    }

    /// Keeps how the run ended (status, doubts, first contact, explanation) and the slots that are missing yet.
    ///
    /// When this returns, the whole run is on the disk and outlives a power failure.
    pub fn finish(self, run: &Run) -> Result<(), ArchiveError> {
        debug_assert_eq!(self.id, run.id, "a writer finishes the run that it began");
        self.archive.keep(run, Keep { row: Row::Begun, end: true, durably: true })
    }
}

/// What to write of a run.
struct Keep {
    row: Row,
    /// Write how it ended, too.
    end: bool,
    /// Flush to the disk: once per run that is affordable.
    durably: bool,
}

/// What is there of the run before.
enum Row {
    /// Nothing may be.
    New,
    /// What this process has written.
    Begun,
    /// What was loaded, and nothing else.
    AsLoaded,
}

/// What is known of a run when it begins, in its kept form.
struct Head {
    workload: &'static str,
    targets: String,
    versions: String,
    plan: String,
    first_contact: String,
    doubts: String,
}

impl Head {
    fn new(run: &Run) -> Result<Self, JsonError> {
        let plan: Plan = run.plan.redacted();
        let text = serde_json::to_string(&plan)?;
        // JSON has no infinity: a plan with one would be written and never read again, nor the list that it stands in.
        serde_json::from_str::<Plan>(&text)?;
        Ok(Self {
            workload: plan.schema().kind,
            targets: serde_json::to_string(&plan.targets)?,
            versions: serde_json::to_string(&run.versions)?,
            plan: text,
            first_contact: serde_json::to_string(&run.first_contact)?,
            doubts: serde_json::to_string(&run.doubts)?,
        })
    }

    /// False when a run of this id is there.
    fn insert(&self, connection: &Connection, run: &Run) -> rusqlite::Result<bool> {
        let sql =
            "INSERT INTO runs (id, started_unix_ms, workload, targets, status, versions, plan, first_contact, doubts)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING";
        let inserted = connection.prepare_cached(sql)?.execute(params![
            run.id,
            run.started_unix_ms,
            self.workload,
            self.targets,
            RUNNING,
            self.versions,
            self.plan,
            self.first_contact,
            self.doubts,
        ])?;
        Ok(inserted == 1)
    }
}

/// What is known of a run when it has ended, in its kept form.
struct End {
    status: &'static str,
    interruption: Option<String>,
    first_contact: String,
    doubts: String,
    explanation: Option<String>,
    waiting: Option<String>,
}

impl End {
    /// `left_out`: what is not kept of the run.
    fn new(run: &Run, left_out: Vec<Doubt>) -> Result<Self, JsonError> {
        let mut doubts = run.doubts.clone();
        doubts.extend(left_out);
        let explanation = run.explanation.as_ref().and_then(|explanation| match readable(explanation) {
            Ok(text) => Some(text),
            Err(why) => {
                let text = format!("the explanation is not kept: {why}");
                doubts.push(Doubt { id: DoubtId::NotRecorded, target: None, text });
                None
            }
        });
        let interruption = match &run.status {
            RunStatus::Complete => None,
            RunStatus::Interrupted(interruption) => Some(serde_json::to_string::<Interruption>(interruption)?),
        };
        Ok(Self {
            status: if interruption.is_none() { COMPLETE } else { INTERRUPTED },
            interruption,
            first_contact: serde_json::to_string(&run.first_contact)?,
            doubts: serde_json::to_string(&doubts)?,
            explanation,
            waiting: run.waiting.as_ref().map(serde_json::to_string).transpose()?,
        })
    }

    /// False when there is no such run.
    fn update(&self, connection: &Connection, id: &str) -> rusqlite::Result<bool> {
        let sql = "UPDATE runs SET status = ?2, interruption = ?3, first_contact = ?4, doubts = ?5, explanation = ?6,
                   waiting = ?7
                   WHERE id = ?1";
        let updated = connection.prepare_cached(sql)?.execute(params![
            id,
            self.status,
            self.interruption,
            self.first_contact,
            self.doubts,
            self.explanation,
            self.waiting,
        ])?;
        Ok(updated == 1)
    }
}

/// The explanation's text, or why nobody could read it: it is longer than is read, or holds what JSON has no form for.
fn readable(explanation: &Explanation) -> Result<String, String> {
    let text = packing::json_within(explanation, LONGEST_JSON_BYTES).map_err(|error| error.into_json().to_string())?;
    serde_json::from_slice::<Explanation>(&text).map_err(|error| error.to_string())?;
    String::from_utf8(text).map_err(|error| error.to_string())
}

/// The doubt that something of a run is not in the archive. In `told` the target's name stands for `{}`.
fn missing(run: &Run, id: DoubtId, target: usize, told: &str) -> Doubt {
    let name = run.plan.targets.get(target).map(|target| target.name.clone());
    let text = told.replace("{}", &duel_model::sanitize_line(name.as_deref().unwrap_or("a target")));
    Doubt { id, target: name, text }
}

/// What tells slots of the same index apart, without their data: two slots do not begin in the same nanosecond.
#[derive(PartialEq, Eq)]
struct Mark {
    target: i64,
    role: String,
    started_unix_ms: i64,
    offset_ns: i64,
}

impl Mark {
    fn of(slot: &Slot) -> Self {
        let role = match &slot.role {
            SlotRole::Warmup => "warmup".to_owned(),
            SlotRole::Measured => "measured".to_owned(),
            SlotRole::Search => "search".to_owned(),
            SlotRole::HeadToHead => "head-to-head".to_owned(),
            SlotRole::Probe(id) => format!("probe:{id}"),
        };
        Self {
            target: cut(slot.target as u64),
            role,
            started_unix_ms: slot.started_unix_ms,
            offset_ns: cut(slot.offset_ns),
        }
    }

    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            target: row.get("target")?,
            role: row.get("role")?,
            started_unix_ms: row.get("started_unix_ms")?,
            offset_ns: row.get("offset_ns")?,
        })
    }
}

/// Marks of all slots that are kept of a run, by index.
fn marks(connection: &Connection, id: &str) -> rusqlite::Result<BTreeMap<u32, Mark>> {
    connection
        .prepare_cached("SELECT idx, target, role, started_unix_ms, offset_ns FROM slots WHERE run_id = ?1")?
        .query_map([id], |row| Ok((row.get("idx")?, Mark::read(row)?)))?
        .collect()
}

/// What a target's machine was and did; what was kept of it before is part of it and makes room.
fn store_host(connection: &Connection, id: &str, target: usize, packed: &packing::Packed) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO hosts (run_id, target, json_bytes, data) VALUES (?1, ?2, ?3, ?4)";
    connection.prepare_cached(sql)?.execute(params![id, cut(target as u64), packed.json_bytes, packed.data])?;
    Ok(())
}

/// Stores a slot unless it is there; another one under its index is left alone and told.
fn store(
    connection: &Connection,
    path: &Path,
    id: &str,
    slot: &Slot,
    packed: &packing::Packed,
) -> Result<(), ArchiveError> {
    let mark = Mark::of(slot);
    let insert = || {
        let sql = "INSERT INTO slots (run_id, idx, target, role, block, repeat, started_unix_ms, offset_ns, elapsed_ns,
                                      ok, failed, json_bytes, data)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) ON CONFLICT DO NOTHING";
        let inserted = connection.prepare_cached(sql)?.execute(params![
            id,
            slot.index,
            mark.target,
            mark.role,
            slot.block,
            slot.repeat,
            mark.started_unix_ms,
            mark.offset_ns,
            cut(slot.elapsed_ns),
            cut(slot.tally.ok),
            cut(slot.tally.failed_total()),
            packed.json_bytes,
            packed.data,
        ])?;
        if inserted == 1 {
            return Ok(true);
        }
        let kept = connection
            .prepare_cached(
                "SELECT target, role, started_unix_ms, offset_ns FROM slots WHERE run_id = ?1 AND idx = ?2",
            )?
            .query_row(params![id, slot.index], Mark::read)
            .optional()?;
        Ok(kept.as_ref() == Some(&mark))
    };
    match insert() {
        Ok(true) => Ok(()),
        Ok(false) => Err(ArchiveError::Changed { id: id.to_owned(), index: slot.index, path: path.to_owned() }),
        Err(error) => {
            let doing = format!("keep slot {} of run {}", slot.index, duel_model::sanitize_line(id));
            Err(ArchiveError::database(path, doing, error))
        }
    }
}

/// SQLite's integers have a sign.
fn cut(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use std::time::Instant;

    #[test]
    fn a_full_disk_costs_only_what_did_not_fit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.sqlite");
        let earlier = sample::rich_run("r-1", 2);
        let mut archive = Archive::open(&path).unwrap();
        archive.save(&earlier).unwrap();
        let pages: i64 = archive.connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
        // SQLite reports this limit exactly as it reports a full disk.
        let limit = |archive: &Archive, pages: i64| {
            archive.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
        };
        limit(&archive, pages + 40);

        let error = archive.save(&sample::rich_run("r-2", 9)).unwrap_err();
        assert!(matches!(error, ArchiveError::DiskFull { .. }), "{error:?}");
        assert!(error.to_string().contains("cannot keep slot "), "{error}");
        assert!(error.to_string().contains("the disk is full; free some space"), "{error}");
        assert_eq!(archive.list(9, 0).unwrap().len(), 1, "a run is saved whole or not at all");

        let run = sample::rich_run("r-3", 6);
        let mut writer = archive.begin(&sample::empty_run("r-3")).unwrap();
        let fitted = run.slots.iter().take_while(|slot| writer.slot(slot).is_ok()).count();
        assert!((1..6).contains(&fitted), "{fitted}");
        drop(writer);
        assert_eq!(archive.load("r-1").unwrap(), earlier);
        assert_eq!(archive.load("r-3").unwrap().slots, run.slots[..fitted]);

        limit(&archive, 1 << 30);
        archive.extend(&run).unwrap();
        assert_eq!(archive.load("r-3").unwrap(), run, "once there is room, what did not fit is added");
    }

    #[test]
    fn a_lock_that_is_held_too_long_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.sqlite");
        let mut archive = Archive::open(&path).unwrap();
        let mut other = Archive::open(&path).unwrap();
        let held = other.connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        archive.connection.busy_timeout(std::time::Duration::from_millis(20)).unwrap();
        let run = sample::rich_run("r", 1);
        let error = archive.save(&run).unwrap_err();
        assert!(matches!(error, ArchiveError::Locked { .. }), "{error:?}");
        assert!(error.to_string().contains("cannot keep run r in the archive "), "{error}");
        drop(held);
        archive.save(&run).unwrap();
    }

    /// `cargo test -p duel-archive --release --lib -- --ignored --nocapture` prints what writing costs.
    #[test]
    #[ignore = "prints measurements"]
    fn measure() {
        let folder = tempfile::tempdir_in(".").unwrap();
        let path = folder.path().join("runs.sqlite");
        let mut archive = Archive::open(&path).unwrap();
        let run = sample::rich_run("r-1", 200);
        let mut writer = archive.begin(&sample::empty_run("r-1")).unwrap();
        let mut times: Vec<_> = run
            .slots
            .iter()
            .map(|slot| {
                let start = Instant::now();
                writer.slot(slot).unwrap();
                start.elapsed()
            })
            .collect();
        let start = Instant::now();
        writer.finish(&run).unwrap();
        println!("finish: {:?}", start.elapsed());
        times.sort_unstable();
        println!("slot: median {:?}, p95 {:?}, max {:?}", times[100], times[190], times[199]);
        for n in 2..100 {
            archive.save(&sample::rich_run(&format!("r-{n}"), 30)).unwrap();
        }
        let start = Instant::now();
        let listed = archive.list(100, 0).unwrap();
        println!(
            "list of {}: {:?}; {} bytes for 200 slots",
            listed.len(),
            start.elapsed(),
            archive.load("r-1").map(|_| listed.iter().find(|s| s.id == "r-1").unwrap().bytes).unwrap()
        );
        let start = Instant::now();
        archive.load("r-1").unwrap();
        println!("load of 200 slots: {:?}", start.elapsed());
    }
}
