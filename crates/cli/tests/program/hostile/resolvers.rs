//! Resolvers that lie, met by a `duel` whose `resolv.conf` leads to them, in a mount namespace of its own.

use super::meeting::{Manner, Meeting};
use crate::common::{Ruler, skipped};
use duel_ruler::hostile::dns::{LIES, Resolver};
use std::net::Ipv4Addr;
use std::process::Command;

/// Puts the file `$1` in place of the system's, and becomes the rest. The look-up of a name has to ask it: neither a cache nor
/// `/etc/hosts` alone.
const SCRIPT: &str = "mount --bind \"$1\" /etc/resolv.conf && shift && exec \"$@\"";

/// A meeting with each; none where that takes rights that the test does not have.
pub(crate) fn meetings(honest: &Ruler) -> Vec<Meeting> {
    let can = Command::new("unshare").args(["--mount", "--propagation", "private", "true"]).output();
    if !rustix::process::geteuid().is_root() || !can.is_ok_and(|output| output.status.success()) {
        skipped("resolvers that lie take root and a mount namespace");
        return Vec::new();
    }
    LIES.iter()
        .enumerate()
        .map(|(number, lie)| {
            // Addresses of loopback that nobody else has, told apart by the test's process.
            let [high, low] = (std::process::id() as u16).to_be_bytes();
            let address = Ipv4Addr::new(127, high.max(1), low, number as u8 + 1);
            let resolver = Resolver::start(lie, address).unwrap();
            let conf = resolver.resolv_conf();
            let words = vec![format!("http://{}:{}/", lie.asked, honest.port())];
            let meeting =
                Meeting::new(lie.name, lie.does, lie.expected, Manner::Known, words, vec![Box::new(resolver)]);
            let conf = meeting.file("resolv.conf", &conf);
            meeting.within(&["unshare", "--mount", "--propagation", "private", "sh", "-c", SCRIPT, "sh", &conf])
        })
        .collect()
}
