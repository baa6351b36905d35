//! Servers that lie, one after another of `duel_ruler::hostile`: whatever they do, `duel` ends in time and in order, keeps
//! within its memory, accounts for every request, sends nothing to the terminal that is not text, and says what is wrong in
//! one sentence.
//!
//! Each server is met twice: as a stranger, by text; and by `--json` after it has answered the first request as it ought to.
//! `DUEL_LIES=http1/chunk` runs those alone whose names hold this.

#[path = "hostile/meeting.rs"]
mod meeting;
#[path = "hostile/resolvers.rs"]
mod resolvers;
#[path = "hostile/shells.rs"]
mod shells;

use crate::common::Ruler;
use duel_ruler::hostile::{Expected, Family, Liar, Lie, catalogue};
use meeting::{Manner, Meeting};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What does not hold yet: the name of a lie, and what is wrong. Each is a fault of `duel`. This list may only shrink; an
/// entry that holds fails the test, until it is taken away.
const KNOWN: &[(&str, &str)] = &[];

/// Of a hundred meetings, those in which the honest answer may come too late. Then first contact meets the lie, and says so, which
/// is in order; but a `duel` that refused all servers that it ought to load would look the same.
const MOST_LATE_PERCENT: usize = 3;

/// Meetings at a time. Most of them wait; on two CPUs more than these would make each other late.
const AT_A_TIME: usize = 16;

#[test]
fn whatever_a_server_does_duel_ends_in_order() {
    // Servers of the tests' own priority would be starved by other tests that measure, and theirs by ours.
    let honest = Ruler::start(&[]);
    let mut meetings = shells::meetings(&honest);
    meetings.extend(resolvers::meetings(&honest));
    meetings.extend(catalogue().flat_map(|lie| meetings_with(lie, &honest)));
    if let Ok(part) = std::env::var("DUEL_LIES") {
        meetings.retain(|meeting| meeting.name.contains(&part));
    }
    // Those that take longest begin first.
    meetings.sort_by_key(|meeting| std::cmp::Reverse(meeting.limit));
    let (next, seen) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(meeting) = meetings.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let told = meeting.held();
                    seen.lock().unwrap().push((meeting, told));
                }
            });
        }
    });
    let seen = seen.into_inner().unwrap();
    let mut wrong: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (meeting, told) in &seen {
        if std::env::var_os("DUEL_LIES_TELL").is_some() {
            println!(
                "{:52} {:>6} ms {:>4} MB  {}",
                meeting.label(),
                told.took.as_millis(),
                told.peak_kib / 1024,
                told.said
            );
        }
        if !told.faults.is_empty() {
            let fault = format!("{} ({}): {}", meeting.label(), meeting.does, told.faults.join("; "));
            wrong.entry(meeting.name).or_default().push(fault);
        }
    }
    let largest = seen.iter().max_by_key(|(_, told)| told.peak_kib).unwrap();
    let longest = seen.iter().max_by_key(|(_, told)| told.took).unwrap();
    println!(
        "{} meetings; most memory {} MB ({}), longest {:?} ({})",
        seen.len(),
        largest.1.peak_kib / 1024,
        largest.0.label(),
        longest.1.took,
        longest.0.label()
    );
    let late: Vec<String> =
        seen.iter().filter(|(_, told)| told.was_refused).map(|(meeting, _)| meeting.label()).collect();
    let most = (seen.len() * MOST_LATE_PERCENT / 100).max(1);
    assert!(late.len() <= most, "refused, and not loaded: {late:?}");
    let met = |name: &str| seen.iter().any(|(meeting, _)| meeting.name == name);
    let stale: Vec<&str> =
        KNOWN.iter().map(|(name, _)| *name).filter(|name| met(name) && !wrong.contains_key(name)).collect();
    assert!(stale.is_empty(), "these hold now; take them out of KNOWN: {stale:?}");
    wrong.retain(|name, _| KNOWN.iter().all(|(known, _)| known != name));
    let wrong: Vec<String> = wrong.into_values().flatten().collect();
    assert!(wrong.is_empty(), "{} of {} went wrong:\n{}", wrong.len(), seen.len(), wrong.join("\n"));
}

/// How a server of the catalogue is met.
fn meetings_with(lie: &'static Lie, honest: &Ruler) -> Vec<Meeting> {
    let liar = |honest: u32| move || Box::new(Liar::start(lie, honest).unwrap());
    let meeting = |manner: Manner, honest: u32, words: &dyn Fn(&Liar) -> Vec<String>| {
        let liar = liar(honest)();
        let words = words(&liar);
        Meeting::new(lie.name, lie.does, lie.expected, manner, words, vec![liar])
    };
    let asks = || lie.asks.iter().map(|word| (*word).to_owned());
    let own = |more: &[String]| honest_run(honest, more);
    match lie.family {
        Family::Http1 | Family::Http2 | Family::Tls | Family::Proxy => {
            let words = |liar: &Liar| -> Vec<String> {
                let proxy = format!("{}", liar.addr());
                let whom: Vec<String> = match lie.family {
                    // A name of its own: the proxy, and not the target, is who lies.
                    Family::Proxy => {
                        let url = liar.url().replace(&proxy, "origin.invalid");
                        vec![url, "--proxy".to_owned(), proxy]
                    }
                    _ => vec![liar.url()],
                };
                whom.into_iter().chain(asks()).collect()
            };
            let stranger = meeting(Manner::Stranger, 0, &words);
            // Who is refused does not come to be trusted, and redirects before any load are met before it.
            if lie.expected == Expected::Refused || lie.asks.contains(&"--follow") {
                return vec![stranger];
            }
            vec![stranger, meeting(Manner::Known, 1, &words)]
        }
        Family::Redfish => vec![meeting(Manner::Beside, 0, &|liar| {
            let address = liar.url().trim_end_matches('/').to_owned();
            let words = ["--local", "A", "--redfish", &format!("A={address}"), "--redfish-insecure"];
            own(&words.map(str::to_owned))
        })],
        Family::Otlp => vec![meeting(Manner::Beside, 0, &|liar| own(&["--otlp".to_owned(), liar.url()]))],
        Family::Dns | Family::Ssh => Vec::new(),
    }
}

/// A run against a server that does not lie, with more words.
fn honest_run(honest: &Ruler, more: &[String]) -> Vec<String> {
    [&[format!("A={}", honest.url("/"))], more].concat()
}
