//! Disk work as the driver runs it, on files of the test's own.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and so do its helpers")]

use duel_disk::{Disk, SCHEMA, counter, fact, failure};
use duel_load::{PlainKind, Prepared, SlotOrder, SlotRecord, WorkloadError};
use duel_model::{
    Bound, ComparePlan, Id, KindPlan, LoadPlan, LoadShape, LoopKind, Plan, SECOND_NS, Target, WorkloadPlan,
};
use std::fs::{self, File};
use std::io::Write;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn plan(address: &str, settings: &[(&'static str, &str)], threads: u32) -> (Plan, KindPlan) {
    let settings = settings.iter().map(|(name, value)| (Id::new(name), (*value).to_owned())).collect();
    let kind = KindPlan { settings, ..KindPlan::of(&SCHEMA) };
    let plan = Plan {
        targets: vec![Target { name: "A".into(), address: address.into(), host: None }],
        workload: WorkloadPlan::Plain(kind.clone()),
        load: LoadPlan {
            connections: threads,
            threads,
            kind: LoopKind::Closed { think_ns: 0 },
            bound: Bound::Ops(1),
            connect_timeout_ns: SECOND_NS,
            op_timeout_ns: 30 * SECOND_NS,
            busy_poll: duel_model::BusyPoll::Never,
            shape: LoadShape::default(),
        },
        compare: ComparePlan::default(),
        factors: Vec::new(),
    };
    (plan, kind)
}

fn prepare(path: &Path, settings: &[(&'static str, &str)], threads: u32) -> Result<Prepared, WorkloadError> {
    let address = path.to_str().unwrap();
    let (plan, kind) = plan(address, settings, threads);
    Disk.prepare(&plan, &kind, address)
}

/// Runs so many ops.
fn run(prepared: &Prepared, threads: u32, ops: u64) -> SlotRecord {
    let mut session = prepared.opens.session(threads, threads, Arc::new(AtomicBool::new(false))).unwrap();
    session.run_slot(&order(ops), &mut |_| ControlFlow::Continue(())).unwrap()
}

fn order(ops: u64) -> SlotOrder {
    SlotOrder { ops: Some(ops), ..SlotOrder::of(LoopKind::Closed { think_ns: 0 }, 30 * SECOND_NS) }
}

fn said(result: Result<Prepared, WorkloadError>) -> String {
    result.unwrap_err().to_string()
}

fn engines() -> Vec<&'static str> {
    let folder = tempfile::tempdir().unwrap();
    match prepare(folder.path(), &[("size", "65536"), ("engine", "uring")], 1) {
        Ok(_) => vec!["uring", "pread"],
        Err(why) => {
            println!("skipped: {why}");
            vec!["pread"]
        }
    }
}

/// A path, settings, and what is said of them.
type Case<'a> = (&'a Path, &'a [(&'static str, &'a str)], &'a str);

fn file_of(folder: &Path, name: &str, bytes: usize) -> PathBuf {
    let path = folder.join(name);
    File::create(&path).unwrap().write_all(&vec![5; bytes]).unwrap();
    path
}

#[test]
fn every_op_does_what_it_says_by_either_engine_and_leaves_nothing_behind() {
    for engine in engines() {
        for op in ["read", "write", "randread", "randwrite", "randrw", "rewrite", "fsync", "dsync"] {
            let folder = tempfile::tempdir().unwrap();
            let settings = [("op", op), ("engine", engine), ("depth", "4"), ("size", "1048576"), ("block", "8192")];
            let prepared = prepare(folder.path(), &settings, 2).unwrap();
            let record = run(&prepared, 2, 200);
            let what = format!("{engine} {op}");
            assert_eq!((record.tally.ok, record.tally.failed.len()), (200, 0), "{what}");
            let (read, written) = (record.tally.bytes_in, record.tally.bytes_out);
            match op {
                "read" | "randread" => assert_eq!((read, written), (200 * 8192, 0), "{what}"),
                "rewrite" => assert_eq!((read, written), (200 * 8192, 200 * 8192), "{what}"),
                "randrw" => assert_eq!(read + written, 200 * 8192, "{what}"),
                _ => assert_eq!((read, written), (0, 200 * 8192), "{what}"),
            }
            // All that was written can be read as what it is.
            let check = prepare(folder.path(), &[("op", "read"), ("size", "1048576"), ("block", "8192")], 1).unwrap();
            assert_eq!(run(&check, 1, 128).tally.ok, 128, "{what}");
            drop((prepared, check));
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{what}");
        }
    }
}

#[test]
fn data_that_somebody_else_has_changed_is_wrong_data() {
    for engine in engines() {
        let folder = tempfile::tempdir().unwrap();
        let settings = [("op", "read"), ("engine", engine), ("size", "65536"), ("depth", "2")];
        let prepared = prepare(folder.path(), &settings, 1).unwrap();
        let file = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let file = File::options().read(true).write(true).open(file).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, 4096 + 100).unwrap();
        file.write_all_at(&[!byte[0]], 4096 + 100).unwrap();
        let tally = run(&prepared, 1, 16).tally;
        assert_eq!((tally.ok, tally.failed.get(&failure::WRONG_DATA.id())), (15, Some(&1)), "{engine}");
        assert!(tally.failure_examples[0].contains("flipped"), "{:?}", tally.failure_examples);
    }
}

#[test]
fn a_file_that_shrinks_gives_short_reads() {
    for engine in engines() {
        let folder = tempfile::tempdir().unwrap();
        let path = file_of(folder.path(), "mine", 64 << 10);
        let prepared = prepare(&path, &[("op", "read"), ("engine", engine)], 1).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(32 << 10).unwrap();
        let tally = run(&prepared, 1, 16).tally;
        assert_eq!((tally.ok, tally.failed.get(&failure::SHORT.id())), (8, Some(&8)), "{engine}");
    }
}

#[test]
fn a_work_file_that_is_removed_during_the_run_is_gone() {
    for engine in engines() {
        let folder = tempfile::tempdir().unwrap();
        let prepared = prepare(folder.path(), &[("engine", engine), ("size", "65536")], 1).unwrap();
        assert_eq!(run(&prepared, 1, 4).tally.ok, 4);
        fs::remove_dir_all(folder.path()).unwrap();
        let tally = run(&prepared, 1, 4).tally;
        assert_eq!(tally.failed.get(&failure::GONE.id()), Some(&4), "{engine}");
        assert!(tally.failure_examples[0].contains("gone"), "{:?}", tally.failure_examples);
    }
}

#[test]
fn a_file_of_the_user_is_only_read_unless_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = file_of(folder.path(), "mine", 1 << 20);
    let text = said(prepare(&path, &[("op", "randwrite")], 1));
    assert!(text.contains("only read") && text.contains("--destroy"), "{text}");
    let other = file_of(folder.path(), "other", 1 << 20);
    assert!(prepare(&path, &[("op", "write"), ("destroy", other.to_str().unwrap())], 1).is_err());
    assert_eq!(run(&prepare(&path, &[("op", "randread")], 1).unwrap(), 1, 50).tally.ok, 50);
    assert_eq!(fs::read(&path).unwrap(), vec![5; 1 << 20]);
    let both = format!("{},{}", other.display(), path.display());
    let prepared = prepare(&path, &[("op", "write"), ("destroy", &both)], 1).unwrap();
    assert_eq!(run(&prepared, 1, 256).tally.ok, 256);
    drop(prepared);
    let written = fs::read(&path).unwrap();
    assert_eq!((written.len(), written == vec![5; 1 << 20]), (1 << 20, false));
    assert_eq!(fs::read(&other).unwrap(), vec![5; 1 << 20]);
}

#[test]
fn what_cannot_be_measured_is_told_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let small = file_of(folder.path(), "small", 5000);
    let empty = file_of(folder.path(), "empty", 0);
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let missing = folder.path().join("missing");
    let below = small.join("below");
    let linked = folder.path().join("link");
    std::os::unix::fs::symlink(&linked, &linked).unwrap();
    let cases: [Case<'_>; 14] = [
        (&small, &[("block", "8192")], "does not fit"),
        (&small, &[("size", "1048576")], "--size asks for"),
        (&empty, &[], "does not fit"),
        (&pipe, &[], "a named pipe"),
        (&socket, &[], "a socket"),
        (Path::new("/dev/null"), &[], "a character device"),
        (&missing, &[], "does not exist"),
        (&below, &[], "no folder"),
        (&linked, &[], "symbolic links"),
        (folder.path(), &[("block", "1000")], "multiples of it"),
        (folder.path(), &[("op", "write"), ("block", "1000")], "multiples of it"),
        (folder.path(), &[("size", "1000"), ("block", "512")], "multiple of 512"),
        (folder.path(), &[("size", "70368744177664")], "no space in"),
        (folder.path(), &[("flush", "3")], "--flush is for ops that write"),
    ];
    for (path, settings, says) in cases {
        let text = said(prepare(path, settings, 1));
        assert!(text.contains(says) && !text.contains('\n'), "{}: {text}", path.display());
    }
    let text = said(prepare(&small, &[("op", "read"), ("block", "4096")], 3));
    assert!(text.contains("too few for 3 threads"), "{text}");
    let text = said(prepare(folder.path(), &[("engine", "pread"), ("depth", "1024")], 2));
    assert!(text.contains("too many"), "{text}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5, "nothing is left behind");
}

#[test]
fn direct_io_takes_whole_sectors_and_needs_something_below() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = file_of(folder.path(), "mine", 1 << 20);
    match prepare(&path, &[("direct", "on")], 1) {
        Ok(prepared) => assert_eq!(run(&prepared, 1, 64).tally.ok, 64),
        Err(why) => return println!("skipped: {why}"),
    }
    for settings in [[("block", "1000"), ("align", "512")], [("block", "4096"), ("align", "100")]] {
        let text = said(prepare(&path, &[&settings[..], &[("direct", "on")]].concat(), 1));
        assert!(text.contains("multiple of the sector"), "{text}");
    }
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else { return println!("skipped: no /dev/shm") };
    let text = said(prepare(memory.path(), &[("direct", "on"), ("size", "65536")], 1));
    assert!(text.contains("in memory") || text.contains("no direct I/O"), "{text}");
    assert_eq!(fs::read_dir(memory.path()).unwrap().count(), 0);
}

#[test]
fn facts_tell_what_is_measured_and_where_reads_came_from() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let settings = [("op", "read"), ("size", "4194304"), ("block", "65536")];
    let prepared = prepare(folder.path(), &settings, 1).unwrap();
    assert_eq!(prepared.facts.count(fact::SIZE), Some(4 << 20));
    assert!(prepared.facts.text(fact::FILE_SYSTEM).is_some());
    let facts = |record: SlotRecord| record.negotiated.unwrap_or_default();
    run(&prepared, 1, 64);
    let warm = run(&prepared, 1, 64);
    if !warm.tally.counted.contains_key(&counter::DEVICE_READS.id()) {
        return println!("skipped: the device under {} is not known", folder.path().display());
    }
    // Others read from this device, too, so that it can only be told that little came from it at times.
    assert!(facts(warm).text(fact::SERVED_FROM).is_some());
    let cold = prepare(folder.path(), &[&settings[..], &[("cold", "on")]].concat(), 1).unwrap();
    let cold = run(&cold, 1, 64);
    let read = cold.tally.counted.get(&counter::DEVICE_READ_BYTES.id()).copied();
    assert!(read >= Some(4 << 20), "{read:?}");
    assert_eq!(facts(cold).text(fact::SERVED_FROM), Some("the device"));
}

#[test]
fn an_op_that_blocked_for_longer_than_the_timeout_has_failed() {
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().to_str().unwrap();
    let (mut plan, kind) = plan(address, &[("engine", "pread"), ("size", "65536")], 1);
    plan.load.op_timeout_ns = 1;
    let prepared = Disk.prepare(&plan, &kind, address).unwrap();
    let tally = run(&prepared, 1, 8).tally;
    assert_eq!((tally.ok, tally.failed.get(&failure::TIMEOUT.id())), (0, Some(&8)));
}
