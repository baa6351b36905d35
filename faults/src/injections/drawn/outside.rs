//! Faults that no cause of duel's stands for: not to know is right, and a name would be a wrong one. Where a later cause
//! tells of one of them, it moves to the catalogue.

use super::*;
use crate::arena::Arena;
use crate::case::{Bite, NAMELESS};
use crate::kinds::web::Requests;
use crate::twin::{Companion, Handler};

/// They bite by what they do to the time of a request under the draw's own load, which is looked at of every draw; here
/// only that both answer as they should.
pub(super) fn answers(arena: &Arena) -> anyhow::Result<Bite> {
    let bytes = |up| Ok::<f64, anyhow::Error>(arena.client.curl(up, &Requests::kept_alive(3))?.body_bytes);
    let (healthy, faulty) = (bytes(&arena.healthy)?, bytes(&arena.faulty)?);
    Ok(Bite { bites: healthy == faulty, figures: format!("bytes of a body: {faulty:.0} against {healthy:.0}") })
}

const INJECTION: Injection = Injection::new(NAMELESS, answers);

fn is_application(setup: &Setup) -> bool {
    setup.is_on(&[Server::Own, Server::Node]) && setup.is_near()
}

fn is_own(setup: &Setup) -> bool {
    setup.is_on(&[Server::Own]) && setup.is_near()
}

/// All of them.
pub(crate) const ALL: &[Drawable] = &[
    Drawable::new(INJECTION, is_application, |twin, _, dice| {
        let us = u64::from(dice.whole(1_000, 20_000));
        twin.http.handler = Handler::Sleeps { us };
        format!("handler-sleeps-{us}us")
    }),
    Drawable::new(INJECTION, is_application, |twin, _, dice| {
        let us = u64::from(dice.whole(30, 3_000));
        twin.http.handler = Handler::Burns { us };
        format!("handler-burns-{us}us")
    }),
    Drawable::new(INJECTION, is_application, |twin, _, dice| {
        let (every, us) = (dice.whole(5, 50), u64::from(dice.whole(10_000, 100_000)));
        twin.http.handler = Handler::SlowShare { every, us };
        format!("each-{every}th-takes-{us}us")
    }),
    Drawable::new(INJECTION, is_own, |twin, _, dice| {
        let (per_window, window_us) = (dice.whole(20, 300), u64::from(dice.whole(5, 50)) * 1000);
        twin.http.handler = Handler::Limits { per_window, window_us };
        format!("limits-{per_window}-each-{window_us}us")
    }),
    // Of all servers: what a garbage collector does, or a snapshot of a virtual machine.
    Drawable::new(
        INJECTION,
        |setup| setup.is_near() && setup.twin.process.companion.is_none(),
        |twin, _, dice| {
            let (stopped_ms, running_ms) = (dice.whole(20, 200), dice.whole(50, 400));
            twin.process.companion = Some(Companion::Pauser { stopped_ms, running_ms });
            format!("pauses-{stopped_ms}ms-each-{}ms", stopped_ms + running_ms)
        },
    ),
];
