//! `duel net serve`: the other end of network work. `duel net watch`: whether a link falls silent, and for how long.

use crate::load::values;
use crate::outcome::{Outcome, Usage};
use crate::output::OutputFlags;
use crate::{signals, terminal};
use anyhow::Context;
use clap::{Args, Subcommand};
use duel_model::{Nanos, format_duration_ns, sanitize_line};
use duel_net::Address;
use duel_net::server::{Limits, Server};
use duel_net::watch::{Gap, SHORTEST_PAUSE_NS, Watch, WatchPlan, Watched};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What is to be done with a network.
#[derive(Args, Clone)]
pub(crate) struct NetFlags {
    #[command(subcommand)]
    what: Net,
}

#[derive(Subcommand, Clone)]
enum Net {
    /// Be the other end of network work, until Ctrl-C: `duel run tcp://THIS-MACHINE` on another one
    #[command(after_help = SERVE)]
    Serve(ServeFlags),
    /// Send a small datagram each millisecond to `duel net serve` and back, and tell when none comes back for how long
    #[command(after_help = WATCH)]
    Watch(WatchFlags),
}

const WATCH: &str = "\
A gap is told when it has ended, and once a second while it goes on. Its length is that from the last datagram that came \
back to the next one, less the pause between two: of a link that failed and came again it is right to that pause. Times are UTC. \
Both ways are watched at once: which of them was silent is not known.

TIME is 500ms, 10s, 2m or the like; a bare number counts seconds.";

/// Options of a watch.
#[derive(Args, Clone)]
pub(crate) struct WatchFlags {
    /// Where `duel net serve` listens: tcp://HOST:PORT
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// From this network namespace of this machine, as `ip netns` names it. Needs root
    #[arg(long, value_name = "NS")]
    netns: Option<String>,
    /// How long [default: until Ctrl-C]
    #[arg(short = 'd', long, value_name = "TIME")]
    duration: Option<String>,
    /// Pause between two datagrams
    #[arg(long, value_name = "TIME", default_value = "1ms")]
    every: String,
    /// Shortest gap that is told
    #[arg(long, value_name = "TIME", default_value = "10ms")]
    gap: String,
    /// Longest time to connect
    #[arg(long, value_name = "TIME", default_value = "10s")]
    connect_timeout: String,
}

const SERVE: &str = "\
It takes what it is sent and throws it away, sends what is asked for, answers requests, and counts datagrams: for whoever \
reaches the address that it listens at. It opens no file, starts nothing, connects to nobody, and sends only on \
connections that were made to it, and, where a link is watched with `duel net watch`, the small datagrams that came from it \
back to whoever made the connection. How many there are, how long they may be silent and how long they may last is bounded, but that a watch may be \
silent for as long as its connection may last; what a connection may use of the line is not. Datagrams come to a port of their own for each connection.

TIME is 500ms, 10s, 2m or the like; a bare number counts seconds.";

/// Options of the server.
#[derive(Args, Clone)]
pub(crate) struct ServeFlags {
    /// Where to listen; [::] is all addresses of both families [default: [::]:3835, without IPv6 0.0.0.0:3835]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// Most connections at a time; those beyond are told so
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// Longest time that a connection may be silent
    #[arg(long, value_name = "TIME", default_value = "2m")]
    idle: String,
    /// Longest time that a connection may last
    #[arg(long, value_name = "TIME", default_value = "1h")]
    lifetime: String,
}

/// Does what was asked for.
pub(crate) fn net(flags: &NetFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    match &flags.what {
        Net::Serve(flags) => serve(flags),
        Net::Watch(flags) => watch(flags, output),
    }
}

fn serve(flags: &ServeFlags) -> anyhow::Result<Outcome> {
    let time = |name: &str, typed: &str| values::positive(name, typed).map(Duration::from_nanos);
    let limits = Limits {
        connections: flags.connections,
        idle: time("--idle", &flags.idle)?,
        lifetime: time("--lifetime", &flags.lifetime)?,
    };
    let parse = |typed: &String| {
        typed.parse::<SocketAddr>().map_err(|_| {
            Usage(format!(
                "--listen takes an address and a port, such as 0.0.0.0:{0}, 192.0.2.1:{0} or [::]:{0}; got '{1}'",
                duel_net::PORT,
                sanitize_line(typed)
            ))
        })
    };
    let at = flags.listen.as_ref().map(parse).transpose()?;
    let stop = signals::stop_flag().context("signals cannot be heard")?;
    let server = match at {
        Some(at) => Server::listen(at, limits),
        None => Server::listen_everywhere(duel_net::PORT, limits),
    };
    let server = server.map_err(anyhow::Error::new)?;
    let at = server.address().context("the server's own address is not known")?;
    // Whoever reads this may wait for it: it is printed at once.
    terminal::print(&format!(
        "Listening at {at}. Serves bulk, bulk-reverse, rr, connect, udp and watch to whoever connects, up to {} connections at a time; Ctrl-C ends it.\n",
        limits.connections
    ))?;
    server.serve(&stop).context("waiting for connections failed")?;
    let [served, strangers, refused] = [&server.counts().served, &server.counts().strangers, &server.counts().refused]
        .map(|n| n.load(Ordering::Relaxed));
    terminal::print(&format!(
        "Served {served} connections; {strangers} spoke something else or said nothing, for {refused} there was no room.\n"
    ))?;
    Ok(Outcome::Done)
}

fn watch(flags: &WatchFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    let plan = WatchPlan {
        every_ns: values::positive("--every", &flags.every)?,
        gap_ns: values::positive("--gap", &flags.gap)?,
        duration_ns: flags.duration.as_deref().map(|typed| values::positive("-d", typed)).transpose()?,
        timeout_ns: values::positive("--connect-timeout", &flags.connect_timeout)?,
    };
    if plan.every_ns < SHORTEST_PAUSE_NS {
        return Err(Usage(
            "--every: datagrams that follow each other faster than 0.1 ms are load; use --op udp".into(),
        )
        .into());
    }
    if plan.gap_ns < 2 * plan.every_ns {
        return Err(Usage("--gap: a gap is at least two pauses long (--every)".into()).into());
    }
    let mut address = Address::parse(&flags.address).map_err(|error| Usage(error.to_string()))?;
    if let Some(netns) = &flags.netns {
        duel_net::check_netns(netns).map_err(|error| Usage(format!("--netns: {error}")))?;
        address = address.within(netns);
    }
    let stop = signals::stop_flag().context("signals cannot be heard")?;
    let watch = Watch::begin(&address, plan).map_err(anyhow::Error::new)?;
    let is_live = !output.json && !output.quiet;
    if is_live {
        let every = format_duration_ns(plan.every_ns as f64);
        terminal::print(&format!(
            "Watching the way to {} and back, a datagram every {every}. Times are UTC.\n",
            watch.to()
        ))?;
    }
    let mut cannot_print = None;
    let mut tell = |gap: &Gap| {
        if is_live && let Err(error) = terminal::print(&format!("{}\n", told(gap))) {
            cannot_print.get_or_insert(error);
        }
    };
    let watched = watch.watch(&stop, &mut tell).context("waiting for datagrams failed")?;
    cannot_print.map_or(Ok(()), Err)?;
    if output.json {
        terminal::print(&duel_report::safe_json(&document(&watched)))?;
    } else {
        terminal::print(&summary(&watched))?;
    }
    // A way that nothing came over has not been watched, and one that is watched no more not as long as was asked for.
    Ok(if watched.came == 0 || watched.is_ended_by_server { Outcome::NotAsAsked } else { Outcome::Done })
}

/// A gap in one line.
fn told(gap: &Gap) -> String {
    let at = gap.at_unix_ms;
    let (second, ms) = (at.div_euclid(1000).rem_euclid(60), at.rem_euclid(1000));
    let how_long = milliseconds(gap.silence_ns);
    let what = match (gap.is_open, gap.lost) {
        (true, _) => format!("nothing has come back for {how_long}"),
        (false, 0) => format!("traffic stopped for {how_long}; nothing was lost"),
        (false, 1) => format!("traffic stopped for {how_long}; 1 datagram was lost"),
        (false, lost) => format!("traffic stopped for {how_long}; {lost} datagrams were lost"),
    };
    let own = match gap.own_ns {
        0 => String::new(),
        own_ns => format!(" (for {} of it duel itself did not run: this machine was busy)", milliseconds(own_ns)),
    };
    format!("{}:{second:02}.{ms:03}  {what}{own}", duel_report::utc(at))
}

/// Whole milliseconds: finer than that it is not known.
fn milliseconds(ns: Nanos) -> String {
    format!("{} ms", (ns + 500_000) / 1_000_000)
}

fn summary(watched: &Watched) -> String {
    let Watched { elapsed_ns, sent, came, unsent, round_trip_ns, gaps, gap_count, is_ended_by_server } = watched;
    let longest_ns = gaps.iter().map(|gap| gap.silence_ns).max();
    let trips = round_trip_ns.map_or_else(String::new, |(shortest_ns, longest_ns)| {
        let [shortest, longest] = [shortest_ns, longest_ns].map(|ns| format_duration_ns(ns as f64));
        format!("; round trips took {shortest} to {longest}")
    });
    let no_way = if *unsent > 0 { format!(", {unsent} could not be sent") } else { String::new() };
    let gaps = match (gap_count, longest_ns) {
        (_, _) if *came == 0 => {
            "Nothing came back: a firewall may keep datagrams out, which go to a port of their own.\n".to_owned()
        }
        (1, Some(ns)) => format!("One gap of {}.\n", milliseconds(ns)),
        (count, Some(ns)) if *count > 0 => format!("{count} gaps, the longest of {}.\n", milliseconds(ns)),
        _ => "No gap.\n".to_owned(),
    };
    let ended = match is_ended_by_server {
        true => {
            "The server ended the watch, or the connection to it was lost: no watch lasts longer than --lifetime of duel net serve.\n"
        }
        false => "",
    };
    format!(
        "Watched for {}: {sent} datagrams sent, {came} came back{no_way}{trips}. {gaps}{ended}",
        format_duration_ns(*elapsed_ns as f64)
    )
}

fn document(watched: &Watched) -> serde_json::Value {
    let Watched { elapsed_ns, sent, came, unsent, round_trip_ns, gaps, gap_count, is_ended_by_server } = watched;
    let ms = |ns: Nanos| ns as f64 / 1e6;
    let gap = |gap: &Gap| {
        json!({ "at_unix_ms": gap.at_unix_ms, "silence_ms": ms(gap.silence_ns), "lost": gap.lost, "own_ms": ms(gap.own_ns),
            "is_open": gap.is_open })
    };
    json!({
        "schema": "duel-watch/1",
        "elapsed_s": *elapsed_ns as f64 / 1e9,
        "sent": sent,
        "came_back": came,
        "unsent": unsent,
        "round_trip_min_ms": round_trip_ns.map(|(shortest_ns, _)| ms(shortest_ns)),
        "round_trip_max_ms": round_trip_ns.map(|(_, longest_ns)| ms(longest_ns)),
        "gap_count": gap_count,
        "ended_by_server": is_ended_by_server,
        "gaps": gaps.iter().map(gap).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_is_told_to_serve_includes_watches() {
        assert!(SERVE.contains("duel net watch"));
    }

    #[test]
    fn a_watch_that_the_server_ended_says_so() {
        let watched = Watched { came: 5, is_ended_by_server: true, ..Watched::default() };
        assert!(summary(&watched).contains("No gap.\nThe server ended the watch"), "{}", summary(&watched));
        assert!(!summary(&Watched { came: 5, ..Watched::default() }).contains("ended"));
        assert_eq!(document(&watched)["ended_by_server"], true);
    }

    #[test]
    fn a_gap_is_told_in_one_line_to_the_millisecond() {
        let gap = Gap { at_unix_ms: 43_203_123, silence_ns: 37_400_000, lost: 37, own_ns: 0, is_open: false };
        assert_eq!(told(&gap), "1970-01-01 12:00:03.123  traffic stopped for 37 ms; 37 datagrams were lost");
        let open = Gap { own_ns: 2_000_000, is_open: true, ..gap };
        assert!(told(&open).ends_with(
            "nothing has come back for 37 ms (for 2 ms of it duel itself did not run: this machine was busy)"
        ));
    }
}
