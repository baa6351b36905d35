//! What probes of a diagnosis send.

use crate::common::{Server, Unwatched, plan, run};
use duel_lab::{DiagnosisPlan, Lab, judge};
use duel_model::{HttpPlan, MILLISECOND_NS, RequestsPlan, SECOND_NS};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What a cache has not seen in the comparison it has not seen in a probe either.
#[test]
fn no_probe_sends_a_unique_address_again() {
    let (fast, slow) = (
        Server::that_ends("127.0.0.1", Duration::from_millis(1)),
        Server::that_ends("127.0.0.1", Duration::from_millis(30)),
    );
    let requests = RequestsPlan { is_template: true, ..RequestsPlan::default() };
    let mut plan = plan(&[&fast, &slow], HttpPlan { requests, ..HttpPlan::default() });
    plan.load.threads = 2;
    (plan.compare.max_load_ns, plan.compare.slot_ns) = (8 * SECOND_NS, Some(100 * MILLISECOND_NS));
    plan.targets.iter_mut().for_each(|target| target.address.push_str("{n}?{uuid}"));
    let mut compared = run(&plan).unwrap();
    let diagnosis = DiagnosisPlan {
        budget_ns: 13 * SECOND_NS,
        names_suspects: false,
        may_start_twin: Vec::new(),
        most_copied_bytes: None,
    };
    Lab::new(Arc::default()).explain(&mut compared, &plan, diagnosis, &mut Unwatched).unwrap();
    let probes = compared.explanation.clone().unwrap().probes;
    assert!(!probes.is_empty(), "{:#?}", judge(&compared));
    for server in [&fast, &slow] {
        let mut sent: BTreeMap<String, usize> = BTreeMap::new();
        for (head, _) in server.heard.lock().unwrap().iter() {
            let target = head.split(' ').nth(1).unwrap();
            for part in target.trim_start_matches('/').split('?') {
                *sent.entry(part.to_owned()).or_default() += 1;
            }
        }
        // First contacts are not measured: of the comparison, on the way there again, and of each probe.
        let first = sent.get("0").copied().unwrap();
        assert!(first <= probes.len() + 2, "{first} of {probes:#?}");
        let again: Vec<_> = sent.iter().filter(|(_, times)| **times > 1).collect();
        let twice = again.len();
        assert!(twice <= 2, "{twice} were sent twice: {again:?}");
    }
}
