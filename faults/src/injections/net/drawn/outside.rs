//! Faults that no cause of a path stands for: whatever duel says of the path is wrong.

use super::*;

/// Who is held back by a quota that its load never uses up is not slow, and one exchange at a time uses none up.
fn is_busy(setup: &Setup<Net>) -> bool {
    let keeps_busy = setup.flows() || setup.sends(&[Op::Exchange]) && setup.load.0 >= 4;
    keeps_busy && setup.is_near()
}

pub(super) const ALL: &[Drawable<Net>] = &[
    Drawable::new(slow_server::OF_QUOTAS, is_busy, |twin, _, dice| {
        let period_us = u64::from(dice.whole(20, 100)) * 1000;
        let quota_us = (dice.between(0.05, 0.3) * period_us as f64).max(1_000.0) as u64;
        slow_server::quota(twin, quota_us, period_us);
        format!("quota-{quota_us}of{period_us}us")
    })
    // Our own exchanges are one at a time, whatever duel's are.
    .unseen_by_load(),
    Drawable::new(slow_server::INJECTION, is_busy, |twin, _, dice| {
        let spinners = dice.whole(1, 8);
        slow_server::neighbours(twin, spinners);
        format!("{spinners}-spinners")
    })
    .after(|setup, _| slow_server::hosts(setup)),
    Drawable::new(
        slow_server::INJECTION,
        |setup| setup.sends(&[Op::Connect, Op::Exchange]) && setup.is_near(),
        |twin, _, dice| {
            let rules = dice.whole(3_000, 30_000);
            filter_chain::chain(&mut twin.network, rules, &["input"]);
            format!("filter-chain-{rules}")
        },
    ),
    // A relay on both, which stands still again and again on the faulty path.
    Drawable::new(
        slow_server::INJECTION,
        |setup| setup.sends(&[Op::Connect, Op::Exchange]),
        |twin, _, dice| {
            let each_us = u64::from(dice.whole(20, 200)) * 1000;
            let stalls_us = (dice.between(0.1, 0.6) * each_us as f64) as u64;
            if let Path::Relay { to_client, .. } = &mut twin.network.path {
                (to_client.stalls_us, to_client.stalls_each_us) = (stalls_us, each_us);
            }
            format!("stalls-{stalls_us}of{each_us}us")
        },
    )
    .after(|setup, _| if setup.is_near() { setup.over_relay(0) } else { setup }),
];
