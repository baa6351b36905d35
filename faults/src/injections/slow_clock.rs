//! `cpu.slow-clock`: asking for the time is dear.

use super::*;

pub(super) const INJECTION: Injection = Injection::on_host("cpu.slow-clock", verify);

pub(super) fn cases() -> Vec<Case> {
    vec![INJECTION.unavailable(
        &Setup::of(Server::Nginx),
        "hpet",
        "the clock source belongs to the whole machine: both twins would have it, and duel too",
    )]
}

/// How long the machine's clock takes does not depend on the server.
fn verify(_: &Arena) -> anyhow::Result<Bite> {
    anyhow::bail!("a clock source cannot be given to one server alone")
}
