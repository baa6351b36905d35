//! Kinds of work that have phases and facts of their own: what is said of a gap that no cause explains.

use crate::world::{Server, pair, world};
use duel_diagnose::{Case, Step, next};
use duel_model::*;
use std::collections::BTreeMap;

/// A part of its ops is called as a part of a request, and has another place.
const LOTTERY: Schema = Schema {
    kind: "lottery",
    targets: "Hats",
    op: Noun { one: "draw", many: "draws" },
    lane: Noun { one: "drum", many: "drums" },
    shared_lane: Noun { one: "hand", many: "hands" },
    phases: phase::ALL,
    failures: failure::ALL,
    facts_title: "Hats",
    facts: &[Declaration::listed("lottery.felt", "felt"), Declaration::listed("lottery.brim", "brim")],
    ..null::SCHEMA
}
.sound();

mod phase {
    duel_model::in_order! { Phase:
        SEND = "send", duel_model::When::Each;
        SHUFFLE = "shuffle", duel_model::When::Each;
    }
}

mod failure {
    duel_model::in_order! { FailureKind:
        TOO_LATE = "too-late", duel_model::Meaning::UnansweredInTime;
        BLANK = "blank", duel_model::Meaning::Rejected;
    }
}

#[test]
fn a_gap_that_stays_unknown_is_placed_in_the_phases_and_facts_of_its_kind() {
    let mut plan = world(&[Server::default(), Server::default()]).plan;
    plan.workload = WorkloadPlan::Plain(KindPlan::of(&LOTTERY));
    plan.load.connections = 1;
    let seen = |name: &str, shuffle_ns: f64, felt: &str| TargetObservation {
        name: name.to_owned(),
        ok: 1000,
        rate_per_s: Some(1e9 / (100e3 + shuffle_ns)),
        service_mean_ns: Some(100e3 + shuffle_ns),
        phase_mean_ns: BTreeMap::from([(phase::SEND.id(), 0.1 * shuffle_ns), (phase::SHUFFLE.id(), shuffle_ns)]),
        negotiated: Some(Facts::default().with("lottery.felt", felt).with("lottery.brim", 7u64)),
        ..TargetObservation::default()
    };
    let comparison = [seen("A", 100e3, "green"), seen("B", 900e3, "worn")];
    let slower = pair(Metric::Rate, Call::Slower, [0.2, 0.19, 0.21]);
    let verdict = Verdict { pairs: vec![slower], ..Verdict::default() };
    let case = Case::of(&plan, &verdict, &[None, None], &comparison);
    let Step::Conclude(explanation) = next(&case) else { panic!("there is no time for probes") };
    let finding = &explanation.findings[0];
    assert_eq!(finding.cause, "unknown");
    let says = |text: &str| finding.evidence.iter().any(|line| line.text == text);
    assert!(says("91 % of the extra 880 \u{b5}s per draw over one drum is in shuffle"), "{finding:#?}");
    let leads: Vec<&str> = finding.leads.differences.iter().map(|differs| &*differs.text).collect();
    assert_eq!(leads, ["felt: worn on B, green on A"]);
    assert_eq!(
        finding.remedy,
        "Begin with what stands first under 'where to look first'. Look at what B does in the phase 'shuffle'."
    );
}
