//! What is given up does not run on, on every system.

use super::server::server;
use super::*;

/// Gives up ops that do not end, by their time limit and by a request to stop; `count` answers how many still run.
pub(crate) fn what_is_given_up_does_not_run_on(
    address: &str,
    endless: &str,
    prepared: &str,
    count: &mut dyn FnMut() -> i64,
) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("endless.sql");
    std::fs::write(&file, endless).unwrap();
    let target = ready(address, 3, &[("script", file.to_str().unwrap()), ("prepared", prepared)]).unwrap();
    let is_server = !address.starts_with("sqlite:");
    let limited = SlotOrder { op_timeout_ns: 300 * MILLISECOND_NS, ..order(Some(3), None) };
    if is_server {
        let mut session = target.opens.session(3, 2, Arc::default()).unwrap();
        let record = session.run_slot(&limited, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!((record.tally.ok, record.tally.failed_total()), (0, 3), "{:?}", record.tally.failure_examples);
        assert!(record.tally.failure_examples[0].contains("no complete answer within 300 ms"));
        assert_eq!((counted(&record, "cancelled"), counted(&record, "not-cancelled")), (3, 0));
        none_is_left(count);
    }
    // The session is asked to stop.
    let stop = Arc::new(AtomicBool::new(false));
    let mut session = target.opens.session(3, 2, Arc::clone(&stop)).unwrap();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let record = session.run_slot(&order(None, Some(60 * SECOND_NS)), &mut |_| ControlFlow::Continue(())).unwrap();
    stopper.join().unwrap();
    assert!(record.interrupted && record.tally.ok == 0, "{:?}", record.tally);
    let cancelled = counted(&record, "cancelled");
    assert!(cancelled >= 1 && cancelled <= record.tally.started, "{:?}", record.tally.counted);
    none_is_left(count);
}

/// A server hears of it at once, and stops when it next looks.
fn none_is_left(count: &mut dyn FnMut() -> i64) {
    let began = std::time::Instant::now();
    while count() > 0 {
        assert!(began.elapsed() < std::time::Duration::from_secs(10), "{} run on", count());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn postgresql_is_asked_to_stop() {
    let Some(server) = server() else { return };
    let database = server.database();
    let mut client = server.client("postgres");
    let running = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}' AND state = 'active'");
    let mut count = || client.rows(&running).unwrap()[0][0].as_ref().unwrap().parse().unwrap();
    for address in [server.address("u", &database), server.tcp("u", &database, "?sslmode=require")] {
        what_is_given_up_does_not_run_on(&address, "SELECT pg_sleep(600 + {rand:0..9});", "on", &mut count);
    }
}

#[test]
fn sqlite_is_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.db");
    rusqlite::Connection::open(&file).unwrap().execute_batch("CREATE TABLE t (id)").unwrap();
    let address = format!("sqlite:{}", file.display());
    let endless = "WITH RECURSIVE n(n) AS (SELECT {n} UNION ALL SELECT n + 1 FROM n) SELECT count(*) FROM n;";
    what_is_given_up_does_not_run_on(&address, endless, "on", &mut || 0);
    // By its own time limit, which is the plan's.
    let script = folder.path().join("endless.sql");
    std::fs::write(&script, endless).unwrap();
    let kind = kind(&[("script", script.to_str().unwrap())]);
    let mut plan = plan(&address, 1, &kind);
    plan.load.op_timeout_ns = 100 * MILLISECOND_NS;
    let record = load(&Sql.prepare(&plan, &kind, &address).unwrap(), 1, 2);
    assert_eq!((record.tally.failed_total(), counted(&record, "cancelled")), (2, 2));
    assert!(record.tally.failure_examples[0].contains("no complete answer within 100 ms"));
}
