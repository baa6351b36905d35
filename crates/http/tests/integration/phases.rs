//! Where the time of an op went: its parts are its whole, and a server's delay stands where it belongs.

use crate::common::{assert_agrees, assert_all_ok, plain, run, sum_ns};
use duel_load::SlotRecord;
use duel_model::web::phase;
use duel_model::{HttpPlan, MILLISECOND_NS, Phase, Tally};
use duel_ruler::{Config, KeyKind, Ruler, Tls, TlsIdentity};

const OPS: u64 = 24;

fn https() -> Ruler {
    Ruler::start(Config::https(Tls::new(TlsIdentity::self_signed(KeyKind::P256).unwrap()))).unwrap()
}

fn plan(keepalive: bool) -> HttpPlan {
    let mut plan = HttpPlan { keepalive, ..HttpPlan::default() };
    plan.tls.verify = false;
    plan
}

/// Time in phases per op of the service time; that no more than all of it is there holds for every record.
fn share(tally: &Tally, phases: &[Phase]) -> f64 {
    phases.iter().map(|&phase| sum_ns(tally, phase)).sum::<u128>() as f64 / tally.service.sum_ns as f64
}

fn check(ruler: &Ruler, path: &str, keepalive: bool) -> SlotRecord {
    let record = run(&plan(keepalive), &ruler.url(path), 4, OPS);
    assert_all_ok(&record, OPS);
    assert_agrees(ruler, &record);
    let tally = &record.tally;
    let new = if keepalive { 4 } else { OPS };
    let count = |phase: Phase| tally.phases.get(&phase.id()).map_or(0, duel_model::Distribution::count);
    assert_eq!(count(phase::CONNECT), new, "only new connections are connected");
    assert_eq!(count(phase::TLS), if ruler.config().tls.is_some() { new } else { 0 });
    assert_eq!(count(phase::DNS), 0, "there was nothing to look up");
    assert_eq!(count(phase::SEND), OPS);
    // Between one phase's end and the next one's begin no time passes: nothing of the op is unaccounted for.
    assert!(share(tally, phase::ALL) >= 0.9, "{tally:?}");
    record
}

#[test]
fn a_delay_before_the_answer_is_waiting() {
    const DELAY_NS: u64 = 20 * MILLISECOND_NS;
    for ruler in [plain, https] {
        for keepalive in [true, false] {
            let record = check(&ruler(), "/delay/20000", keepalive);
            let tally = &record.tally;
            assert!(tally.service.min_ns().unwrap() >= DELAY_NS);
            // The server may begin before the client has noted that all is sent, never before it was.
            let since_send = sum_ns(tally, phase::SEND) + sum_ns(tally, phase::WAIT);
            assert!(since_send >= u128::from(OPS * DELAY_NS), "{since_send}");
            // The median, as single ops may be delayed by whoever else uses this machine.
            let median = tally.phases[&phase::WAIT.id()].quantile_ns(0.5).unwrap();
            assert!(median >= DELAY_NS * 9 / 10, "{median}");
            assert!(tally.phases[&phase::RECEIVE.id()].quantile_ns(0.5).unwrap() < DELAY_NS / 2);
        }
    }
}

#[test]
fn a_slow_body_is_receiving() {
    const BODY_NS: u64 = 20 * MILLISECOND_NS;
    for ruler in [plain, https] {
        for path in ["/drip/10/2000", "/slow-head/200"] {
            let record = check(&ruler(), path, true);
            let tally = &record.tally;
            let least = if path.starts_with("/drip") { BODY_NS } else { 10 * MILLISECOND_NS };
            assert!(tally.service.min_ns().unwrap() >= least);
            let median = tally.phases[&phase::RECEIVE.id()].quantile_ns(0.5).unwrap();
            assert!(median >= least / 2, "{path}: {median}");
            assert!(tally.phases[&phase::WAIT.id()].quantile_ns(0.5).unwrap() < least / 2);
        }
    }
}

#[test]
fn a_costly_handshake_is_in_its_phase() {
    let identity = TlsIdentity::self_signed(KeyKind::P256).unwrap();
    let mut config = Config::https(Tls { resumption: false, ..Tls::new(identity) });
    config.handicap.burn_per_handshake = std::time::Duration::from_millis(10);
    let ruler = Ruler::start(config).unwrap();
    let record = check(&ruler, "/", false);
    assert!(record.tally.phases[&phase::TLS.id()].min_ns().unwrap() >= 10 * MILLISECOND_NS);
    assert!(share(&record.tally, &[phase::TLS]) > 0.5, "{:?}", record.tally.phases);
}

#[test]
fn phases_of_all_kinds_of_ops_are_no_more_than_their_time() {
    // That the parts are no more than the whole is asserted of every record; here for ops that wander.
    let ruler = Ruler::start(Config { keepalive: false, ..Config::default() }).unwrap();
    for path in ["/", "/errors/50", "/interim/3", "/chunked/100000", "/until-close/1000"] {
        let record = run(&plan(true), &ruler.url(path), 3, 30);
        assert!(share(&record.tally, phase::ALL) > 0.5, "{path}");
    }
}
