//! What is kept is what is read back, under every name that it may be asked for.

use crate::sample;
use duel_archive::{Archive, ArchiveError};
use duel_model::web::phase;
use duel_model::{Interruption, Run, RunStatus};
use tempfile::TempDir;

fn archive() -> (TempDir, Archive) {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::open(folder.path().join("some/where/runs.sqlite")).unwrap();
    (folder, archive)
}

fn written(archive: &mut Archive, run: &Run) {
    let mut writer = archive.begin(&Run { slots: vec![], ..run.clone() }).unwrap();
    for slot in &run.slots {
        writer.slot(slot).unwrap();
    }
    writer.finish(run).unwrap();
}

#[test]
fn a_run_is_read_back_as_it_was() {
    let (_folder, mut archive) = archive();
    let (saved, kept) = (sample::rich_run("20261120-233200-7f3a", 9), sample::rich_run("20261120-233200-7f3b", 9));
    archive.save(&saved).unwrap();
    written(&mut archive, &kept);
    assert_eq!(archive.load(&saved.id).unwrap(), saved);
    assert_eq!(archive.load(&kept.id).unwrap(), kept);
    let path = archive.path().to_owned();
    drop(archive);
    assert_eq!(Archive::open_read_only(&path).unwrap().load(&kept.id).unwrap(), kept);
}

#[test]
fn figures_are_read_back_to_the_last_bit() {
    let (_folder, mut archive) = archive();
    let mut run = sample::rich_run("r", 0);
    let pairs = &mut run.explanation.as_mut().unwrap().probes[0].pairs;
    let template = pairs[0].clone();
    let mut bits = 1u64;
    for _ in 0..2_000 {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let ratio = Some(f64::from_bits(bits)).filter(|ratio| ratio.is_finite());
        pairs.push(duel_model::PairVerdict { ratio, ..template.clone() });
    }
    archive.save(&run).unwrap();
    assert_eq!(archive.load("r").unwrap(), run);
}

#[test]
fn a_run_that_was_not_finished_reads_as_interrupted() {
    let (_folder, mut archive) = archive();
    let run = sample::rich_run("r", 3);
    let mut writer = archive.begin(&Run { status: RunStatus::Complete, ..sample::empty_run("r") }).unwrap();
    assert_eq!(writer.id(), "r");
    for slot in &run.slots {
        writer.slot(slot).unwrap();
        writer.slot(slot).unwrap();
    }
    drop(writer);
    let read = archive.load("r").unwrap();
    assert_eq!(read.status, RunStatus::Interrupted(Interruption::Unfinished));
    assert_eq!(read.slots, run.slots, "a slot that is written twice is kept once");
    assert!(!archive.list(1, 0).unwrap()[0].finished);
}

#[test]
fn slots_that_were_not_written_come_with_the_end() {
    let (_folder, mut archive) = archive();
    let run = sample::rich_run("r", 5);
    let mut writer = archive.begin(&Run { slots: run.slots[..1].to_vec(), ..sample::empty_run("r") }).unwrap();
    writer.slot(&run.slots[3]).unwrap();
    writer.finish(&run).unwrap();
    assert_eq!(archive.load("r").unwrap(), run);
}

#[test]
fn a_lock_of_another_program_holds_a_run_up_for_a_moment_only() {
    let (folder, mut archive) = archive();
    let run = sample::rich_run("r", 5);
    let mut writer = archive.begin(&Run { slots: vec![], ..run.clone() }).unwrap();
    let other = rusqlite::Connection::open(folder.path().join("some/where/runs.sqlite")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let began = std::time::Instant::now();
    assert!(matches!(writer.slot(&run.slots[0]), Err(ArchiveError::Locked { .. })));
    // A tenth of a second in truth; it was ten.
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
    other.execute_batch("COMMIT").unwrap();
    writer.slot(&run.slots[1]).unwrap();
    writer.finish(&run).unwrap();
    assert_eq!(archive.load("r").unwrap(), run);
}

#[test]
fn diagnosis_is_added_later_and_what_was_measured_stays() {
    let (_folder, mut archive) = archive();
    let run = Run { status: RunStatus::Complete, explanation: None, doubts: vec![], ..sample::rich_run("r", 4) };
    archive.save(&run).unwrap();
    let mut first = archive.load("r").unwrap();
    let mut second = first.clone();
    first.slots.push(sample::slot(4));
    first.explanation = Some(sample::explanation());
    archive.extend(&first).unwrap();
    archive.extend(&first).unwrap();
    assert_eq!(archive.load("r").unwrap(), first);
    assert!(archive.list(1, 0).unwrap()[0].has_explanation);

    // Somebody who did not see this must not write over it, whether with a slot of the same index or without.
    let changed = |archive: &mut Archive, run: &Run| match archive.extend(run).unwrap_err() {
        ArchiveError::Changed { id, index, .. } => (id, index),
        other => panic!("{other}"),
    };
    assert_eq!(changed(&mut archive, &second), ("r".to_owned(), 4));
    let mut slot = sample::slot(4);
    slot.offset_ns += 1;
    second.slots.push(slot);
    assert_eq!(changed(&mut archive, &second), ("r".to_owned(), 4));
    assert_eq!(archive.load("r").unwrap(), first);
    let error = archive.extend(&sample::rich_run("other", 0)).unwrap_err();
    assert!(matches!(error, ArchiveError::NotFound { .. }), "{error}");
}

#[test]
fn an_id_is_taken_once() {
    let (_folder, mut archive) = archive();
    archive.save(&sample::rich_run("r", 1)).unwrap();
    for error in
        [archive.save(&sample::rich_run("r", 2)).unwrap_err(), archive.begin(&sample::empty_run("r")).unwrap_err()]
    {
        assert!(matches!(error, ArchiveError::Exists { .. }), "{error}");
    }
    assert_eq!(archive.load("r").unwrap().slots.len(), 1);
}

#[test]
fn runs_are_named_by_id_by_beginning_and_from_the_last() {
    let (_folder, mut archive) = archive();
    for (id, started) in [("20261120-aa", 2_000), ("20261120-ab", 3_000), ("20261121-aa", 1_000), ("20261120-aab", 5)] {
        archive.save(&Run { started_unix_ms: started, ..sample::empty_run(id) }).unwrap();
    }
    for (wanted, id) in [
        ("last", "20261120-ab"),
        ("last~0", "20261120-ab"),
        ("last~1", "20261120-aa"),
        ("last~3", "20261120-aab"),
        ("20261121", "20261121-aa"),
        ("20261120-aa", "20261120-aa"),
        ("20261120-aab", "20261120-aab"),
    ] {
        assert_eq!(archive.resolve(wanted).unwrap(), id, "{wanted}");
        assert_eq!(archive.load(wanted).unwrap().id, id, "{wanted}");
    }
    let error = archive.load("20261120-a").unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("'20261120-a' may be any of 3 runs in the archive "), "{text}");
    assert!(text.ends_with(": 20261120-aa, 20261120-aab, 20261120-ab; type more of the id"), "{text}");
    for wanted in ["last~4", "last~-1", "last~", "last~99999999999", "2027", "", "aa", "20261120-abc"] {
        let error = archive.load(wanted).unwrap_err();
        assert!(matches!(error, ArchiveError::NotFound { .. }), "{wanted}: {error}");
        assert!(error.to_string().contains("`duel list`"), "{error}");
    }
}

#[test]
fn hostile_names_are_only_names() {
    let (_folder, mut archive) = archive();
    let hostile = ["'; DROP TABLE runs; --", "%", "_", "*", "\0", "a\u{10ffff}", "\x1b[2J", "?1"];
    archive.save(&sample::empty_run("r")).unwrap();
    for wanted in hostile {
        let error = archive.load(wanted).unwrap_err();
        assert!(matches!(error, ArchiveError::NotFound { .. }), "{wanted:?}: {error}");
        assert!(!error.to_string().contains(['\x1b', '\0']), "{error}");
    }
    for id in hostile {
        written(&mut archive, &sample::rich_run(id, 1));
        assert_eq!(archive.load(id).unwrap(), sample::rich_run(id, 1));
    }
    assert_eq!(archive.list(100, 0).unwrap().len(), hostile.len() + 1);
}

#[test]
fn the_list_tells_what_there_is() {
    let (_folder, mut archive) = archive();
    assert_eq!(archive.list(10, 0).unwrap(), []);
    for n in 0..3 {
        let run = Run { started_unix_ms: i64::from(n), ..sample::rich_run(&format!("r-{n}"), n) };
        archive.save(&run).unwrap();
    }
    let ids = |limit, skip| archive.list(limit, skip).unwrap().into_iter().map(|run| run.id).collect::<Vec<_>>();
    assert_eq!(ids(10, 0), ["r-2", "r-1", "r-0"]);
    assert_eq!(ids(1, 1), ["r-1"]);
    let run = sample::rich_run("r-2", 2);
    let listed = archive.list(1, 0).unwrap().remove(0);
    assert_eq!((listed.slots, listed.finished, listed.has_explanation), (2, true, true));
    assert_eq!((listed.workload.as_str(), listed.targets, listed.status), ("http", run.plan.targets, run.status));
    assert!(listed.bytes > 10_000, "{}", listed.bytes);
}

#[test]
fn the_list_tells_what_was_done() {
    use duel_model::RunKind;
    let (_folder, mut archive) = archive();
    let mut run = sample::rich_run("r-0", 0);
    assert!(run.plan.targets.len() > 1 && !run.plan.factors.is_empty());
    archive.save(&run).unwrap();
    (run.id, run.started_unix_ms) = ("r-1".to_owned(), run.started_unix_ms + 1);
    run.plan.factors.clear();
    archive.save(&run).unwrap();
    (run.id, run.started_unix_ms) = ("r-2".to_owned(), run.started_unix_ms + 1);
    run.plan.targets.truncate(1);
    archive.save(&run).unwrap();
    let kinds: Vec<_> = archive.list(9, 0).unwrap().into_iter().map(|listed| listed.kind).collect();
    assert_eq!(kinds, [RunKind::Run, RunKind::Compare, RunKind::Factors]);
}

#[test]
fn secrets_do_not_reach_the_disk() {
    let (folder, mut archive) = archive();
    let mut run = sample::empty_run("r");
    if let duel_model::WorkloadPlan::Http(http) = &mut run.plan.workload {
        http.headers.push(("Authorization".into(), "Bearer hunter2".into()));
    }
    written(&mut archive, &run);
    assert_eq!(archive.load("r").unwrap().plan.missing_secrets(), ["Authorization"]);
    drop(archive);
    let file = std::fs::read(folder.path().join("some/where/runs.sqlite")).unwrap();
    assert!(!file.windows(7).any(|bytes| bytes == b"hunter2"));
}

#[test]
fn what_was_changed_by_hand_is_named() {
    let (_folder, mut archive) = archive();
    archive.save(&sample::rich_run("r", 2)).unwrap();
    let by_hand = rusqlite::Connection::open(archive.path()).unwrap();
    let after = |sql: &str| {
        by_hand.execute_batch(sql).unwrap();
        archive.load("r").unwrap_err().to_string()
    };
    assert!(after("UPDATE slots SET data = x'00' WHERE idx = 1").contains("cannot read slot 1 of run r in"));
    assert!(after("UPDATE runs SET status = 'dreaming'").contains("cannot read the status of run r in"));
    assert!(after("UPDATE runs SET plan = '{}'").contains("cannot read the plan of run r in"));
}

/// They were measured; what the machines did is told beside them, and the explanation can be made anew.
#[test]
fn slots_are_read_where_hosts_and_explanation_cannot_be() {
    let (_folder, mut archive) = archive();
    let run = sample::rich_run("r", 2);
    archive.save(&run).unwrap();
    let by_hand = rusqlite::Connection::open(archive.path()).unwrap();
    for (sql, told) in [
        ("UPDATE hosts SET data = x'00'", "the host of Bé \u{1f980}: what is kept of it cannot be read: "),
        // As long as an older duel wrote them: 1.4 GB of samples.
        ("UPDATE hosts SET json_bytes = 1400000000", "its length of 1400000000 bytes"),
        ("UPDATE hosts SET target = 7", "the host of a target: "),
        ("UPDATE runs SET explanation = '{}'", "the explanation that is kept cannot be read: "),
    ] {
        by_hand.execute_batch(sql).unwrap();
        let loaded = archive.load("r").unwrap();
        assert_eq!(loaded.slots, run.slots);
        assert!(loaded.hosts.iter().all(Option::is_none));
        let doubts = loaded.doubts.iter().filter(|doubt| doubt.text.contains(told)).count();
        assert_eq!(doubts, 1, "{told}: {:?}", loaded.doubts);
        // Whoever adds to it keeps the doubt, and it is told once.
        archive.extend(&loaded).unwrap();
        assert_eq!(archive.load("r").unwrap().doubts, loaded.doubts);
    }
    assert_eq!(archive.load("r").unwrap().explanation, None);
}

/// JSON has no infinity: it is written as `null`, which is no number when it is read.
#[test]
fn what_could_not_be_read_again_is_not_written() {
    let (_folder, mut archive) = archive();
    let mut run = sample::rich_run("r", 1);
    run.explanation.as_mut().unwrap().probes[0].targets[0].phase_mean_ns.insert(phase::WAIT.id(), f64::NAN);
    archive.save(&run).unwrap();
    let loaded = archive.load("r").unwrap();
    assert_eq!((loaded.slots, loaded.explanation), (run.slots, None));
    assert!(loaded.doubts.last().unwrap().text.starts_with("the explanation is not kept: "), "{:?}", loaded.doubts);
    let mut run = sample::empty_run("s");
    run.plan.compare.margin = f64::INFINITY;
    assert!(matches!(archive.save(&run), Err(ArchiveError::Unwritable { .. })));
    assert_eq!(archive.list(9, 0).unwrap().len(), 1, "the list can be read as before");
}

/// A target's machine may say anything, and one that lies must not cost the run.
#[test]
fn a_run_whose_host_said_too_much_opens_and_says_so() {
    let (_folder, mut archive) = archive();
    let mut run = sample::rich_run("r", 1);
    let long = (0..40_000).map(|n| (format!("{n:0>150}"), u64::MAX)).collect();
    let sample = duel_model::HostSample { counters: long, ..duel_model::HostSample::default() };
    // 7 MB each, which is 280 MB together.
    run.hosts[1].as_mut().unwrap().samples = vec![sample; 40];
    archive.save(&run).unwrap();
    let loaded = archive.load("r").unwrap();
    assert_eq!(loaded.slots, run.slots);
    assert_eq!(loaded.hosts[1].as_ref().unwrap().samples.len(), 20);
    let doubt = loaded.doubts.last().unwrap();
    assert_eq!(doubt.id, duel_model::DoubtId::HostNotRead);
    assert!(doubt.text.starts_with("the host of Bé \u{1f980}: its samples are too large to be kept"), "{}", doubt.text);
}

#[test]
fn a_damaged_file_is_told() {
    let (_folder, mut archive) = archive();
    archive.save(&sample::rich_run("r", 9)).unwrap();
    let path = archive.path().to_owned();
    drop(archive);
    let mut file = std::fs::read(&path).unwrap();
    let pages = file.len() / 4096;
    for page in 1..pages {
        file[page * 4096..][..64].fill(0xa5);
    }
    std::fs::write(&path, file).unwrap();
    let error = Archive::open(&path).and_then(|archive| archive.load("r")).unwrap_err();
    assert!(matches!(error, ArchiveError::Damaged { .. }), "{error:?}");
}

/// As somebody else may have written it.
fn with_slot(run: &Run, change: impl Fn(&mut serde_json::Value)) -> Result<Run, ArchiveError> {
    let (_folder, mut archive) = archive();
    archive.save(run).unwrap();
    let mut slot = serde_json::to_value(&run.slots[1]).unwrap();
    change(&mut slot);
    let text = slot.to_string();
    rusqlite::Connection::open(archive.path())
        .unwrap()
        .execute(
            "UPDATE slots SET json_bytes = ?1, data = ?2 WHERE idx = 1",
            rusqlite::params![text.len() as i64, text.as_bytes()],
        )
        .unwrap();
    archive.load(&run.id)
}

#[test]
fn slots_that_no_run_can_have_are_refused_with_a_reason() {
    let mut run = sample::rich_run("r", 3);
    // More than JSON values of the test's library hold.
    run.slots.iter_mut().for_each(|slot| slot.tally.response.sum_ns = 7);
    assert_eq!(with_slot(&run, |_| ()).unwrap(), run);
    for (field, number, why) in [
        ("/tally/ok", u64::MAX, "'ok' is 18446744073709551615, which no run comes to"),
        ("/elapsed_ns", 1 << 57, "'elapsed_ns' is 144115188075855872, which no run comes to"),
        ("/target", 7, "the plan has no such target"),
        ("/series/interval_ns", 0, "its intervals have no length"),
    ] {
        let error = with_slot(&run, |slot| *slot.pointer_mut(field).unwrap() = number.into()).unwrap_err();
        assert!(matches!(&error, ArchiveError::Unreadable { what, .. } if what == "slot 1 of run r"), "{error:?}");
        assert!(error.to_string().contains(why), "{error}");
    }
}
