//! A kind of work that this workspace does not know: what it declares of itself is all that the driver, the judgement and
//! the reports need.

use crate::sample;
use duel_load::{
    Counters, Event, Failure, Io, LaneId, OpEnd, PhaseTimes, Progress, Session, SlotOrder, Traffic, WorkerId, Workload,
    WorkloadError, WorkloadFactory, monotonic_ns,
};
use duel_model::*;
use duel_report::{Again, Style, json_text, summary};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

const LOTTERY: Schema = Schema {
    kind: "lottery",
    targets: "Hats",
    op: Noun { one: "draw", many: "draws" },
    lane: Noun { one: "drum", many: "drums" },
    shared_lane: Noun { one: "hand", many: "hands" },
    phases: phase::ALL,
    failures: failure::ALL,
    facts_title: "Hats",
    ..duel_model::null::SCHEMA
}
.sound();

mod phase {
    duel_model::in_order! { Phase:
        SHUFFLE = "shuffle", duel_model::When::Connecting;
        PICK = "pick", duel_model::When::Each;
    }
}

mod failure {
    use duel_model::Meaning;

    duel_model::in_order! { FailureKind:
        TOO_LATE = "too-late", Meaning::UnansweredInTime;
        BLANK = "blank", Meaning::Rejected;
        JAMMED = "jammed", Meaning::Ours;
    }
}

/// Every fourth draw is a blank, and the eighth jams.
#[derive(Clone, Copy)]
struct Lottery(u64);

impl WorkloadFactory for Lottery {
    type Workload = Self;

    fn schema(&self) -> &'static Schema {
        &LOTTERY
    }

    fn make(&self, _worker: WorkerId, _lanes: usize) -> Result<Self, WorkloadError> {
        Ok(*self)
    }
}

impl Workload for Lottery {
    fn start(&mut self, _lane: LaneId, _now_ns: Nanos, _io: &Io<'_>) -> Progress {
        self.0 += 1;
        let fails = |kind: FailureKind| Err(Box::new(Failure { kind, text: format!("it was {}", kind.name) }));
        let outcome = match self.0 {
            8 => fails(failure::JAMMED),
            n if n.is_multiple_of(4) => fails(failure::BLANK),
            _ => Ok(()),
        };
        let mut phases = PhaseTimes::NONE;
        phases.set(phase::PICK, 2 * MICROSECOND_NS);
        Progress::Done(OpEnd { phases, ..OpEnd::noticed(monotonic_ns(), outcome) })
    }

    fn ready(&mut self, _lane: LaneId, _event: Event, _io: &Io<'_>) -> Progress {
        Progress::Pending
    }

    fn cancel(&mut self, _lane: LaneId) {}

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }

    fn take_counters(&mut self) -> Counters {
        Counters::default()
    }
}

#[test]
fn a_kind_from_elsewhere_is_driven_judged_and_reported_by_what_it_declares() {
    let (mut run, _) = sample::slower();
    run.plan.workload = WorkloadPlan::Plain(KindPlan::of(&LOTTERY));
    run.plan.targets.truncate(1);
    run.first_contact = vec![None];
    let order = SlotOrder { ops: Some(80), ..SlotOrder::of(LoopKind::Closed { think_ns: 0 }, SECOND_NS) };
    let record =
        Session::open(Lottery(0), 1, 1, Arc::default()).unwrap().run_slot(&order, &mut |_| ControlFlow::Continue(()));
    let record = record.unwrap();
    assert_eq!(record.tally.failed, BTreeMap::from([(failure::BLANK.id(), 19), (failure::JAMMED.id(), 1)]));
    let slot = run.slots.iter().find(|slot| slot.role == SlotRole::Measured).unwrap().clone();
    let (tally, series, elapsed_ns) = (record.tally, record.series, record.elapsed_ns);
    run.slots = vec![Slot { tally, series, elapsed_ns, audit: record.audit, negotiated: None, ..slot }];

    let verdict = duel_stats::judge(&run);
    // What we ran out of ourselves is not held against the target.
    assert!(verdict.headlines[0].text.contains("fails 24 % of its draws (blank)"), "{:?}", verdict.headlines);
    let text = summary(&run, &verdict, Again::Shown, Style { width: 80, color: false, unicode: true });
    for told in ["mean time per draw by phase", "pick", "blank", "jammed", "lottery workload"] {
        assert!(text.contains(told), "{told}\n{text}");
    }
    assert!(!text.contains("shuffle") && !text.contains("request"), "{text}");
    let document: serde_json::Value = serde_json::from_str(&json_text(&run, &verdict, None)).unwrap();
    let target = &document["targets"][0];
    assert_eq!(document["workload"], "lottery");
    assert_eq!(target["failed"], serde_json::json!({"blank": 19, "jammed": 1}));
    assert_eq!((&target["phases_ms"]["pick"]["ops"], &target["phases_ms"]["pick"]["p50"]), (&60.into(), &0.002.into()));
}
