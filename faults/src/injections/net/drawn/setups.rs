//! Set-ups by chance.

use super::*;

pub(super) fn draw(dice: &mut Dice) -> Setup<Net> {
    let mbit_per_s = dice.whole(5, 60);
    let op = *dice.pick(&[Op::Bulk, Op::BulkReverse, Op::Exchange, Op::Connect, Op::Datagrams { mbit_per_s }]);
    // One sender of datagrams of our own stands for all of duel's.
    let most = if matches!(op, Op::Datagrams { .. }) { 3 } else { 16 };
    let setup = Setup::over(op).streams(dice.whole(1, most));
    if dice.one_in(2) {
        return setup;
    }
    let rtt_us = dice.whole(200, 30_000);
    let setup = setup.over_relay(rtt_us);
    // A line that all streams of datagrams fit into.
    if !setup.sends_datagrams() && dice.one_in(3) {
        let rate = dice.between(5e6, 60e6) as u64;
        return setup.with(&format!("line{}kBps", rate / 1000), |twin| rate_cap::line(twin, rate));
    }
    setup
}
