//! Faults that no cause of duel's stands for: not to know is right, and a name would be a wrong one. Where a later cause
//! tells of one of them, it moves to the catalogue.

use super::*;
use crate::arena::Arena;
use crate::case::{Bite, NAMELESS};
use crate::injections::cpu_per_request;
use crate::kinds::web::{Requests, ToolLoad};
use crate::twin::Handler;

/// That both answer alike, and that the faulty twin does to requests what it is told, as other tools see it. What that
/// comes to under the draw's own load is looked at of every draw.
pub(super) fn answers(arena: &Arena) -> anyhow::Result<Bite> {
    let bytes = |up| Ok::<f64, anyhow::Error>(arena.client.curl(up, &Requests::kept_alive(3))?.body_bytes);
    let (healthy, faulty) = (bytes(&arena.healthy)?, bytes(&arena.faulty)?);
    let alike =
        Bite { bites: healthy == faulty, figures: format!("bytes of a body: {faulty:.0} against {healthy:.0}") };
    let twin = arena.faulty.twin();
    Ok(match twin.http.handler {
        Handler::Sleeps { us } => alike.and(takes_longer(arena, us)?),
        Handler::Burns { us } => alike.and(computes_longer(arena, us)?),
        Handler::SlowShare { every, us } => alike.and(is_slow_at_times(arena, every, us)?),
        Handler::Limits { per_window, window_us } => alike.and(lets_through(arena, per_window, window_us)?),
        Handler::Plain | Handler::Locks { .. } => alike,
    })
}

/// A part of what is told: the tools add their own time to both, and scatter.
const MOST_OF_IT: f64 = 0.7;

/// Requests by themselves take so much longer.
fn takes_longer(arena: &Arena, us: u64) -> anyhow::Result<Bite> {
    let times = arena.by_turns(|up| Ok(1e6 * arena.client.curl(up, &Requests::kept_alive(20))?.total_s))?;
    Ok(Bite::more("us per request by itself", times, MOST_OF_IT * us as f64))
}

/// The server computes so much longer for a request.
fn computes_longer(arena: &Arena, us: u64) -> anyhow::Result<Bite> {
    let times = cpu_per_request(arena, &ToolLoad::over(1))?;
    Ok(Bite::more("server CPU per request, us", times, MOST_OF_IT * us as f64))
}

/// As many of a row of requests are slow as should be, give or take a half, and none of the healthy server's.
fn is_slow_at_times(arena: &Arena, every: u32, us: u64) -> anyhow::Result<Bite> {
    const TURNS: u32 = 6;
    let slow = |up| -> anyhow::Result<f64> {
        let times = arena.client.curl_totals(up, &Requests::kept_alive(TURNS * every))?;
        Ok(times.iter().filter(|&&seconds| 1e6 * seconds >= MOST_OF_IT * us as f64).count() as f64)
    };
    let (healthy, faulty) = (slow(&arena.healthy)?, slow(&arena.faulty)?);
    let expected = f64::from(TURNS);
    let bites = (0.5 * expected..=1.5 * expected).contains(&faulty) && healthy <= faulty / 3.0;
    Ok(Bite { bites, figures: format!("slow ones of {} requests: {faulty} against {healthy}", TURNS * every) })
}

/// No more requests are let through than may be, and the healthy server answers more than that.
fn lets_through(arena: &Arena, per_window: u32, window_us: u64) -> anyhow::Result<Bite> {
    let per_s = |up| Ok::<f64, anyhow::Error>(arena.client.load(up, &ToolLoad::over(16))?.per_s);
    let (healthy, faulty) = (per_s(&arena.healthy)?, per_s(&arena.faulty)?);
    // A load that ends within a window has seen a part of one more.
    let most = 1.1 * f64::from(per_window) * 1e6 / window_us as f64;
    Ok(Bite {
        bites: faulty <= most && healthy > most,
        figures: format!("requests per second: {faulty:.0} against {healthy:.0}, and {most:.0} at most"),
    })
}

const INJECTION: Injection = Injection::new(NAMELESS, answers);

fn is_application(setup: &Setup) -> bool {
    setup.is_on(&[Server::Own, Server::Node, Server::NginxPhp, Server::Java]) && setup.is_near()
}

/// One process for all requests, which can count them.
fn counts(setup: &Setup) -> bool {
    setup.is_on(&[Server::Own, Server::Node, Server::Java]) && setup.is_near()
}

/// Timers that are fine enough for windows of some milliseconds.
fn counts_finely(setup: &Setup) -> bool {
    setup.is_on(&[Server::Own, Server::Java]) && setup.is_near()
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
    Drawable::new(INJECTION, counts, |twin, _, dice| {
        let (every, us) = (dice.whole(5, 50), u64::from(dice.whole(10_000, 100_000)));
        twin.http.handler = Handler::SlowShare { every, us };
        format!("each-{every}th-takes-{us}us")
    }),
    Drawable::new(INJECTION, counts_finely, |twin, _, dice| {
        let (per_window, window_us) = (dice.whole(20, 300), u64::from(dice.whole(5, 50)) * 1000);
        twin.http.handler = Handler::Limits { per_window, window_us };
        format!("limits-{per_window}-each-{window_us}us")
    }),
];
