//! Reading: what there is, and one run whole.

use crate::numbers::Numbers;
use crate::write::{COMPLETE, INTERRUPTED, RUNNING};
use crate::{Archive, ArchiveError, packing};
use duel_model::{
    Doubt, DoubtId, HostRecord, Interruption, Plan, Run, RunKind, RunStatus, Slot, Target, sanitize_line,
};
use rusqlite::{OptionalExtension, params};
use std::fmt::Display;

/// A run as `duel list` shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSummary {
    /// Its id.
    pub id: String,
    /// Start on the wall clock, in ms since 1970.
    pub started_unix_ms: i64,
    /// The targets in the plan's order.
    pub targets: Vec<Target>,
    /// How it ended; that of an unfinished run is what [`Archive::load`] says, too.
    pub status: RunStatus,
    /// False while it goes on, and for ever when duel was killed in it.
    pub finished: bool,
    /// What was done with the targets.
    pub kind: RunKind,
    /// Kind of its workload, such as `http`.
    pub workload: String,
    /// How many slots are kept, those of warm-up and probes included.
    pub slots: u64,
    /// Whether diagnosis was made.
    pub has_explanation: bool,
    /// What it takes in the archive.
    pub bytes: u64,
}

impl Archive {
    /// The runs, the latest first: at most `limit` after the first `skip`. No slot is decoded for that.
    pub fn list(&self, limit: u32, skip: u32) -> Result<Vec<RunSummary>, ArchiveError> {
        let failed = |error| ArchiveError::database(&self.path, "list the runs", error);
        let sql = "SELECT id, started_unix_ms, targets, plan, workload, status, interruption,
                          explanation IS NOT NULL AS has_explanation,
                          (SELECT count(*) FROM slots WHERE run_id = id) AS slots,
                          (SELECT coalesce(sum(octet_length(data)), 0) FROM slots WHERE run_id = id)
                            + octet_length(plan) + octet_length(versions) + octet_length(first_contact)
                            + octet_length(doubts) + coalesce(octet_length(explanation), 0) AS bytes
                   FROM runs ORDER BY started_unix_ms DESC, id DESC LIMIT ?1 OFFSET ?2";
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        let mut rows = statement.query([limit, skip]).map_err(failed)?;
        let mut summaries = Vec::new();
        while let Some(row) = rows.next().map_err(failed)? {
            let row = SummaryRow::read(row).map_err(failed)?;
            summaries.push(row.summary().map_err(|(what, detail)| self.unreadable(&what, detail))?);
        }
        Ok(summaries)
    }

    /// The id of the run that is meant by an id, a beginning of one that no other run shares, `last`, or `last~N` for
    /// the N-th before the last.
    pub fn resolve(&self, wanted: &str) -> Result<String, ArchiveError> {
        let failed =
            |error| ArchiveError::database(&self.path, format!("look for run '{}'", sanitize_line(wanted)), error);
        let not_found = || match self.is_empty() {
            Ok(true) => ArchiveError::Empty { path: self.path.clone() },
            Ok(false) => ArchiveError::NotFound { wanted: wanted.to_owned(), path: self.path.clone() },
            Err(error) => failed(error),
        };
        if let Some(back) = from_last(wanted) {
            return self
                .connection
                .prepare_cached("SELECT id FROM runs ORDER BY started_unix_ms DESC, id DESC LIMIT 1 OFFSET ?1")
                .and_then(|mut statement| statement.query_row([back], |row| row.get(0)).optional())
                .map_err(failed)?
                .ok_or_else(not_found);
        }
        if wanted.is_empty() {
            return Err(not_found());
        }
        // Ids that begin alike stand together in the order of their bytes. LIKE and GLOB would read signs in them.
        let matches = || {
            let mut statement = self.connection.prepare_cached("SELECT id FROM runs WHERE id >= ?1 ORDER BY id")?;
            let mut rows = statement.query([wanted])?;
            let mut matches: Vec<String> = Vec::new();
            while let Some(row) = rows.next()? {
                let id: String = row.get(0)?;
                if id == wanted {
                    return Ok(vec![id]);
                }
                if !id.starts_with(wanted) {
                    break;
                }
                matches.push(id);
            }
            Ok(matches)
        };
        let mut matches = matches().map_err(failed)?;
        match matches.len() {
            0 => Err(not_found()),
            1 => Ok(matches.swap_remove(0)),
            _ => Err(ArchiveError::Ambiguous { wanted: wanted.to_owned(), matches, path: self.path.clone() }),
        }
    }

    fn is_empty(&self) -> rusqlite::Result<bool> {
        self.connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM runs)", [], |row| row.get(0))
    }

    /// A run whole, named as in [`Archive::resolve`].
    pub fn load(&self, wanted: &str) -> Result<Run, ArchiveError> {
        let failed = |error| ArchiveError::database(&self.path, format!("read run '{}'", sanitize_line(wanted)), error);
        // One view of the file: slots and end of a run belong together, even while it is being written.
        let _view = self.connection.unchecked_transaction().map_err(failed)?;
        let id = self.resolve(wanted)?;
        let row = self
            .connection
            .prepare_cached(
                "SELECT started_unix_ms, status, interruption, versions, plan, first_contact, doubts, explanation,
                 waiting FROM runs WHERE id = ?1",
            )
            .and_then(|mut statement| statement.query_row([&id], RunRow::read))
            .map_err(failed)?;
        let mut run = row.run(id).map_err(|(what, detail)| self.unreadable(&what, detail))?;
        run.slots = self.slots(&run)?;
        let (hosts, unread) = self.hosts(&run)?;
        run.hosts = hosts;
        for doubt in unread {
            tell(&mut run, doubt);
        }
        Ok(run)
    }

    /// In the plan's order, empty where no machine was read; and what cannot be read of them, which costs no slot.
    fn hosts(&self, run: &Run) -> Result<(Vec<Option<HostRecord>>, Vec<Doubt>), ArchiveError> {
        let shown = sanitize_line(&run.id);
        let failed = |error| ArchiveError::database(&self.path, format!("read the hosts of run {shown}"), error);
        let sql = "SELECT target, json_bytes, data FROM hosts WHERE run_id = ?1 ORDER BY target";
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        let mut rows = statement.query(params![run.id]).map_err(failed)?;
        let (mut hosts, mut doubts) = (Vec::new(), Vec::new());
        while let Some(row) = rows.next().map_err(failed)? {
            let target: i64 = row.get(0).map_err(failed)?;
            let json_bytes: i64 = row.get(1).map_err(failed)?;
            let data = row.get_ref(2).map_err(failed)?;
            let data = data.as_blob().map_err(|error| failed(error.into()))?;
            hosts.resize(run.plan.targets.len(), None);
            let target = usize::try_from(target).ok().filter(|target| *target < hosts.len());
            let name = target.map(|target| run.plan.targets[target].name.clone());
            let host = target.ok_or_else(|| "the plan has no such target".to_owned());
            match host.and_then(|target| Ok((target, packing::unpack::<HostRecord>(data, json_bytes)?))) {
                Ok((target, host)) => hosts[target] = Some(host),
                Err(detail) => {
                    let shown = name.as_deref().map_or_else(|| "a target".to_owned(), sanitize_line);
                    let text =
                        format!("the host of {shown}: what is kept of it cannot be read: {}", sanitize_line(&detail));
                    doubts.push(Doubt { id: DoubtId::HostNotRead, target: name, text });
                }
            }
        }
        if hosts.iter().all(Option::is_none) {
            hosts.clear();
        }
        Ok((hosts, doubts))
    }

    fn slots(&self, run: &Run) -> Result<Vec<Slot>, ArchiveError> {
        let shown = sanitize_line(&run.id);
        let failed = |error| ArchiveError::database(&self.path, format!("read the slots of run {shown}"), error);
        let sql = "SELECT idx, json_bytes, data FROM slots WHERE run_id = ?1 ORDER BY idx";
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        let mut rows = statement.query(params![run.id]).map_err(failed)?;
        let (mut slots, mut numbers) = (Vec::new(), Numbers::default());
        while let Some(row) = rows.next().map_err(failed)? {
            let index: i64 = row.get(0).map_err(failed)?;
            let json_bytes: i64 = row.get(1).map_err(failed)?;
            let data = row.get_ref(2).map_err(failed)?;
            let data = data.as_blob().map_err(|error| failed(error.into()))?;
            let slot = packing::unpack_slot(data, json_bytes, &mut numbers).and_then(|slot| of_plan(slot, &run.plan));
            slots.push(slot.map_err(|detail| self.unreadable(&format!("slot {index} of run {shown}"), detail))?);
        }
        Ok(slots)
    }

    fn unreadable(&self, what: &str, detail: String) -> ArchiveError {
        ArchiveError::Unreadable { what: sanitize_line(what), path: self.path.clone(), detail: sanitize_line(&detail) }
    }
}

/// Notes a doubt, once: a run that was added to has it among its own.
fn tell(run: &mut Run, doubt: Doubt) {
    if !run.doubts.contains(&doubt) {
        run.doubts.push(doubt);
    }
}

/// The slot, if it is one of the plan's.
fn of_plan(slot: Slot, plan: &Plan) -> Result<Slot, String> {
    if slot.target >= plan.targets.len() {
        return Err("the plan has no such target".to_owned());
    }
    if !slot.series.intervals.is_empty() && slot.series.interval_ns == 0 {
        return Err("its intervals have no length".to_owned());
    }
    Ok(slot)
}

/// `last` is 0, `last~3` is 3.
fn from_last(wanted: &str) -> Option<u32> {
    match wanted.strip_prefix("last")? {
        "" => Some(0),
        rest => rest.strip_prefix('~')?.parse().ok(),
    }
}

/// What could not be read, and why.
type Unreadable = (String, String);

/// What a run reads back as that was never finished: duel was killed, the power failed, or it still goes on.
fn unfinished() -> RunStatus {
    RunStatus::Interrupted(Interruption::Unfinished)
}

fn status(word: &str, interruption: Option<&str>) -> Result<RunStatus, String> {
    match (word, interruption) {
        (RUNNING, _) => Ok(unfinished()),
        (COMPLETE, _) => Ok(RunStatus::Complete),
        (INTERRUPTED, Some(why)) => {
            serde_json::from_str(why).map(RunStatus::Interrupted).map_err(|error| error.to_string())
        }
        _ => Err(format!("'{word}' is no status known here")),
    }
}

/// A row of `runs` for the list.
struct SummaryRow {
    id: String,
    started_unix_ms: i64,
    targets: String,
    plan: String,
    workload: String,
    status: String,
    interruption: Option<String>,
    has_explanation: bool,
    slots: i64,
    bytes: i64,
}

impl SummaryRow {
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            started_unix_ms: row.get("started_unix_ms")?,
            targets: row.get("targets")?,
            plan: row.get("plan")?,
            workload: row.get("workload")?,
            status: row.get("status")?,
            interruption: row.get("interruption")?,
            has_explanation: row.get("has_explanation")?,
            slots: row.get("slots")?,
            bytes: row.get("bytes")?,
        })
    }

    fn summary(self) -> Result<RunSummary, Unreadable> {
        let of = |part: &str, error: &dyn Display| (format!("the {part} of run {}", self.id), error.to_string());
        let plan: Plan = serde_json::from_str(&self.plan).map_err(|error| of("plan", &error))?;
        Ok(RunSummary {
            kind: plan.kind(),
            targets: serde_json::from_str(&self.targets).map_err(|error| of("targets", &error))?,
            status: status(&self.status, self.interruption.as_deref()).map_err(|error| of("status", &error))?,
            finished: self.status != RUNNING,
            started_unix_ms: self.started_unix_ms,
            workload: self.workload,
            slots: u64::try_from(self.slots).unwrap_or(0),
            has_explanation: self.has_explanation,
            bytes: u64::try_from(self.bytes).unwrap_or(0),
            id: self.id,
        })
    }
}

/// A row of `runs` as it is kept.
struct RunRow {
    started_unix_ms: i64,
    status: String,
    interruption: Option<String>,
    versions: String,
    plan: String,
    first_contact: String,
    doubts: String,
    explanation: Option<String>,
    waiting: Option<String>,
}

impl RunRow {
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            started_unix_ms: row.get("started_unix_ms")?,
            status: row.get("status")?,
            interruption: row.get("interruption")?,
            versions: row.get("versions")?,
            plan: row.get("plan")?,
            first_contact: row.get("first_contact")?,
            doubts: row.get("doubts")?,
            explanation: row.get("explanation")?,
            waiting: row.get("waiting")?,
        })
    }

    /// The run, its slots left out.
    fn run(self, id: String) -> Result<Run, Unreadable> {
        let of = |part: &str, error: &dyn Display| (format!("the {part} of run {id}"), error.to_string());
        let mut run = Run {
            started_unix_ms: self.started_unix_ms,
            plan: serde_json::from_str(&self.plan).map_err(|error| of("plan", &error))?,
            versions: serde_json::from_str(&self.versions).map_err(|error| of("versions", &error))?,
            slots: Vec::new(),
            hosts: Vec::new(),
            first_contact: serde_json::from_str(&self.first_contact).map_err(|error| of("first contact", &error))?,
            status: status(&self.status, self.interruption.as_deref()).map_err(|error| of("status", &error))?,
            doubts: serde_json::from_str(&self.doubts).map_err(|error| of("doubts", &error))?,
            explanation: None,
            // What was measured can be judged without it.
            waiting: self.waiting.and_then(|text| serde_json::from_str(&text).ok()),
            id,
        };
        // What was measured can be judged without it, and explained anew.
        match self.explanation.map(|text| serde_json::from_str(&text)).transpose() {
            Ok(explanation) => run.explanation = explanation,
            Err(error) => {
                let text =
                    format!("the explanation that is kept cannot be read: {}", sanitize_line(&error.to_string()));
                tell(&mut run, Doubt { id: DoubtId::NotRecorded, target: None, text });
            }
        }
        Ok(run)
    }
}
