//! A name server that answers as slowly as it is told.

use anyhow::Context;
use clap::Args;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// What the name server's process is told.
#[derive(Args, Clone, Debug)]
pub(crate) struct NameFlags {
    #[arg(long)]
    pub(crate) listen: SocketAddr,
    /// NAME,IPV4,IPV6 or -,DELAY_MS; repeatable
    #[arg(long = "name", value_parser = parse_entry)]
    pub(crate) entries: Vec<Entry>,
}

/// A name and what is said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) ipv4: Ipv4Addr,
    pub(crate) ipv6: Option<Ipv6Addr>,
    pub(crate) delay_ms: u64,
}

impl Entry {
    /// As [`parse_entry`] reads it.
    pub(crate) fn word(&self) -> String {
        let ipv6 = self.ipv6.map_or("-".to_owned(), |address| address.to_string());
        format!("{},{},{ipv6},{}", self.name, self.ipv4, self.delay_ms)
    }
}

fn parse_entry(word: &str) -> Result<Entry, String> {
    let parts: Vec<&str> = word.split(',').collect();
    let &[name, ipv4, ipv6, delay_ms] = parts.as_slice() else { return Err("four parts are needed".to_owned()) };
    Ok(Entry {
        name: name.to_ascii_lowercase(),
        ipv4: ipv4.parse().map_err(|error| format!("{ipv4}: {error}"))?,
        ipv6: match ipv6 {
            "-" => None,
            address => Some(address.parse().map_err(|error| format!("{address}: {error}"))?),
        },
        delay_ms: delay_ms.parse().map_err(|error| format!("{delay_ms}: {error}"))?,
    })
}

/// Answers until it is killed.
pub(crate) fn main(flags: &NameFlags) -> anyhow::Result<()> {
    let socket = UdpSocket::bind(flags.listen).with_context(|| format!("could not listen on {}", flags.listen))?;
    let mut buffer = [0; 512];
    loop {
        let Ok((bytes, from)) = socket.recv_from(&mut buffer) else { continue };
        let Some((answer, delay_ms)) = answer(&buffer[..bytes], &flags.entries) else { continue };
        let socket = socket.try_clone()?;
        // Two questions (A and AAAA) come at once, and wait side by side.
        std::thread::Builder::new().spawn(move || {
            std::thread::sleep(Duration::from_millis(delay_ms));
            let _ = socket.send_to(&answer, from);
        })?;
    }
}

/// The answer to a query and how long it takes; `None` for what is no query.
fn answer(query: &[u8], entries: &[Entry]) -> Option<(Vec<u8>, u64)> {
    const TYPE_A: u16 = 1;
    const TYPE_AAAA: u16 = 28;
    const NO_SUCH_NAME: u8 = 3;
    let header = query.get(..12)?;
    let is_query = header[2] & 0x80 == 0;
    let questions = u16::from_be_bytes([header[4], header[5]]);
    if !is_query || questions != 1 {
        return None;
    }
    let (name, end) = name_at(query, 12)?;
    let kind = u16::from_be_bytes(query.get(end..end + 2)?.try_into().ok()?);
    let question = query.get(12..end + 4)?;

    let entry = entries.iter().find(|entry| entry.name == name);
    let data: Option<Vec<u8>> = match (entry, kind) {
        (Some(entry), TYPE_A) => Some(entry.ipv4.octets().to_vec()),
        (Some(entry), TYPE_AAAA) => entry.ipv6.map(|address| address.octets().to_vec()),
        _ => None,
    };
    let mut answer = header[..2].to_vec();
    // An authoritative answer; recursion desired as it was asked.
    answer.extend([0x84 | (header[2] & 1), if entry.is_some() { 0 } else { NO_SUCH_NAME }]);
    answer.extend([0, 1, 0, u8::from(data.is_some()), 0, 0, 0, 0]);
    answer.extend_from_slice(question);
    if let Some(data) = data {
        // The name by reference to the question, class IN, not to be kept by anybody.
        answer.extend([0xc0, 12]);
        answer.extend(kind.to_be_bytes());
        answer.extend([0, 1, 0, 0, 0, 0, 0, data.len() as u8]);
        answer.extend(data);
    }
    Some((answer, entry.map_or(0, |entry| entry.delay_ms)))
}

/// The name that begins there, in lower case, and where it ends. Questions hold no references.
fn name_at(query: &[u8], mut at: usize) -> Option<(String, usize)> {
    let mut labels: Vec<String> = Vec::new();
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        match length {
            0 => return Some((labels.join("."), at)),
            1..=63 => labels.push(String::from_utf8_lossy(query.get(at..at + length)?).to_ascii_lowercase()),
            _ => return None,
        }
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &str, kind: u16) -> Vec<u8> {
        let mut query = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            query.push(label.len() as u8);
            query.extend(label.as_bytes());
        }
        query.push(0);
        query.extend(kind.to_be_bytes());
        query.extend([0, 1]);
        query
    }

    fn entries() -> Vec<Entry> {
        vec![
            parse_entry("a.twin.test,10.77.1.2,-,0").unwrap(),
            parse_entry("b.twin.test,10.77.2.2,fd77:2::2,200").unwrap(),
        ]
    }

    #[test]
    fn entries_pass_through_a_command_line() {
        for entry in entries() {
            assert_eq!(parse_entry(&entry.word()), Ok(entry));
        }
        assert!(parse_entry("a,b").is_err());
    }

    #[test]
    fn names_are_answered_with_their_addresses() {
        let (said, delay_ms) = answer(&query("B.twin.TEST", 1), &entries()).unwrap();
        assert_eq!((&said[..2], delay_ms), (&[0xab, 0xcd][..], 200));
        assert!(said.ends_with(&[0, 4, 10, 77, 2, 2]));
        let (said, _) = answer(&query("a.twin.test", 28), &entries()).unwrap();
        assert_eq!((said[3] & 15, said[7]), (0, 0), "the name is there, but has no such address");
        let (said, delay_ms) = answer(&query("c.twin.test", 1), &entries()).unwrap();
        assert_eq!((said[3] & 15, delay_ms), (3, 0));
    }

    #[test]
    fn nonsense_is_not_answered() {
        let good = query("a.twin.test", 1);
        for cut in 0..good.len() {
            let _ = answer(&good[..cut], &entries());
        }
        assert!(answer(&good[..20], &entries()).is_none());
        assert!(answer(&[0xff; 100], &entries()).is_none());
    }
}
