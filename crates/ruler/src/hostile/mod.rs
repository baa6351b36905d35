//! Servers that lie, as a catalogue: what a client may meet that means it harm, or whose author was careless.
//!
//! An entry is data: its name, what it does, and how a client has to take it. [`Liar::start`] carries one out on a port of
//! 127.0.0.1, for tests, for a look by hand (`cargo run -p duel-ruler --example serve -- --lie http1/length-negative`) and
//! as seeds for fuzzers. Liars for names ([`dns`]) and for machines behind ssh ([`ssh`]) are written otherwise, because what
//! they speak is not a stream of bytes on a connection.
//!
//! Two entries differ in what they lie about, or in the place where they stop; not in a number alone.

mod act;
mod bombs;
pub mod dns;
mod guise;
mod http1;
mod http2;
mod liar;
mod otlp;
mod proxy;
mod redfish;
pub mod ssh;
mod tls;
mod wire;

pub use act::{Act, On};
pub use guise::Guise;
pub use liar::Liar;

/// Whom an entry plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// A server of HTTP/1.
    Http1,
    /// A server of HTTP/2.
    Http2,
    /// A server that lies below HTTP.
    Tls,
    /// A proxy.
    Proxy,
    /// A resolver of names.
    Dns,
    /// A management controller.
    Redfish,
    /// A collector of figures.
    Otlp,
    /// A machine behind ssh.
    Ssh,
}

/// What the client believes to speak with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// `http://`
    Http,
    /// `https://`; the handshake is one of the acts.
    Https,
}

/// How a client has to take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It is a nuisance and no lie: what was asked for is there, and counts as answered.
    Ok,
    /// What was asked for is not there, or is not what it says it is: it counts as failed.
    Failed,
    /// As [`Expected::Failed`]; and the client must not even begin, because it can tell beforehand.
    Refused,
    /// The run goes on beside it, with a doubt that says what is missing.
    Doubt,
    /// The standard leaves it to the client: answered or failed, but accounted for.
    Either,
}

/// One server that lies.
#[derive(Clone, Copy, Debug)]
pub struct Lie {
    /// `family/what-it-does`, unique.
    pub name: &'static str,
    /// Whom it plays.
    pub family: Family,
    /// What it does, in words.
    pub does: &'static str,
    /// How it is asked for.
    pub speaks: Speaks,
    /// Options of `duel run` without which its lie would not be met.
    pub asks: &'static [&'static str],
    /// What it does on each connection. After the last act it holds the connection open and says nothing more.
    pub acts: &'static [Act],
    /// How a client has to take it.
    pub expected: Expected,
}

/// All that lie on a connection, family by family.
pub fn catalogue() -> impl Iterator<Item = &'static Lie> {
    [
        http1::FRAMING,
        http1::HEADS,
        http1::REDIRECTS,
        http1::TURNS,
        http1::CODINGS,
        http2::STREAMS,
        http2::FRAMES,
        http2::FLOODS,
        http2::BLOCKS,
        tls::LIES,
        proxy::LIES,
        redfish::LIES,
        otlp::LIES,
    ]
    .into_iter()
    .flatten()
}

/// The entry of this name.
pub fn by_name(name: &str) -> Option<&'static Lie> {
    catalogue().find(|lie| lie.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn there_are_two_hundred_that_differ_and_each_is_in_its_family() {
        let names: Vec<&str> = catalogue()
            .map(|lie| lie.name)
            .chain(dns::LIES.iter().map(|lie| lie.name))
            .chain(ssh::LIES.iter().map(|lie| lie.name))
            .collect();
        let unique: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(unique.len(), names.len(), "a name stands for one entry");
        assert!(names.len() >= 200, "{}", names.len());
        for lie in catalogue() {
            let family = format!("{:?}/", lie.family).to_lowercase();
            assert!(lie.name.starts_with(&family) && !lie.does.is_empty(), "{}", lie.name);
            assert_eq!(by_name(lie.name).map(|found| found.does), Some(lie.does));
        }
    }

    #[test]
    fn no_two_do_the_same() {
        let mut seen = BTreeSet::new();
        for lie in catalogue() {
            let does = format!("{:?} {:?} {:?} {:?}", lie.speaks, lie.asks, lie.family, lie.acts);
            assert!(seen.insert(does), "{} does what another one does", lie.name);
        }
    }
}
