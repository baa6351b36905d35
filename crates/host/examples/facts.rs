//! Prints what is known of a host, and what it did for a few seconds:
//!
//! `cargo run -p duel-host --example facts -- [--port N | --pid N | --service NAME] [--ssh DEST] [--seconds N]`

use duel_host::{HostAccess, HostWatch, Server};
use duel_model::{HostSpan, Known};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut access, mut server, mut seconds) = (HostAccess::Local, Server::Unknown, 2);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--port" => server = Server::Port(value.parse()?),
            "--pid" => server = Server::Pid(value.parse()?),
            "--service" => server = Server::service(&value)?,
            "--ssh" => access = HostAccess::ssh(&value)?,
            "--seconds" => seconds = value.parse()?,
            _ => return Err(format!("{word} is not known").into()),
        }
    }
    let watch = HostWatch::open(access, server)?;
    for (key, known) in &watch.facts().0 {
        match known {
            Known::Value(value) => println!("{key}: {value}"),
            Known::Unavailable(why) => println!("{key} is not known: {why}"),
        }
    }
    let from = watch.sample()?;
    std::thread::sleep(Duration::from_secs(seconds));
    let to = watch.sample()?;
    let span = HostSpan::between(&from, &to);
    println!("\nper second, over {:?} ns:", span.elapsed_ns());
    for (key, growth) in span.growths().filter(|(_, growth)| *growth > 0) {
        if let Some(rate) = span.per_second(key) {
            println!("{key}: {rate:.1} (+{growth})");
        }
    }
    for (key, value) in &to.gauges {
        println!("{key} = {value}");
    }
    let trip_ns = to.arrived_ns - to.asked_ns;
    println!("\nround trip of a sample: {:.1} ms", trip_ns as f64 / 1e6);
    let record = watch.finish();
    println!("{} samples, {} lines of the kernel's log", record.samples.len(), record.last_words.len());
    for line in record.last_words.iter().rev().take(5).rev() {
        println!("  {:?} {}", line.uptime_ns.map(|ns| ns / 1_000_000_000), line.text);
    }
    for doubt in &record.doubts {
        println!("! {doubt}");
    }
    Ok(())
}
