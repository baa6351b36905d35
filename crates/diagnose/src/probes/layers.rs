//! Probes that put work of another kind on what lies below the targets.

use super::{Budget, Entry, FLIP, Kind, Load};
use duel_model::{HostAccess, Layer, LoopKind, Nanos, SECOND_NS, sanitize_line};

/// The largest file that each target's server has open while it works, read at random past the page cache: in pieces as large, and as
/// many at a time, as its device reads for the server. Nothing is written, no cache is emptied, and nothing that is read is kept or shown:
/// who lets a machine be read and loaded has agreed to that.
pub(crate) const FILES: Kind = Kind::new(&Entry {
    id: "files",
    phrase: "reading the servers' own files past the page cache",
    question: "Do reads of the servers' own files take longer?",
    load: Load::None,
    possible: |_, case| {
        let mut targets = case.plan.targets.iter().zip(0..);
        let is_read = |index: usize| case.hosts.get(index).is_some_and(Option::is_some);
        match targets.find(|(target, index)| {
            !is_read(*index) || target.host.as_ref().is_none_or(|host| host.access != HostAccess::Local)
        }) {
            None => Ok(()),
            Some((target, _)) => {
                Err(format!("{} is not read as a server of this machine", sanitize_line(&target.name)))
            }
        }
    },
    budget: Budget::Fixed(FILES_BUDGET_NS),
    below: Some(Layer::Files),
    ..FLIP
});

/// As any probe has it, and before that up to two seconds of the plan's load on each of two targets, in which is seen what they read.
const FILES_BUDGET_NS: Nanos = 10 * SECOND_NS;

/// Exchanges with a `duel net serve` on each target's machine, of as many bytes as the targets answer with, and as many at a time as
/// ops are in flight where the gap is held: the path is the same, and the servers have no part in it.
pub(crate) const PATH: Kind = Kind::new(&Entry {
    id: "path",
    phrase: "exchanging as many bytes with another program on the same paths",
    question: "Do exchanges with another program on the same paths take longer?",
    load: Load::None,
    possible: |_, case| match () {
        () if !case.has_net_servers => Err(NO_NET_SERVER.to_owned()),
        () if case.http().is_some_and(|http| http.proxy.is_some() || http.unix_socket.is_some()) => {
            Err("the targets are not reached by the path to their machines".to_owned())
        }
        () if case.plan.lanes() != case.plan.load.connections => {
            Err("requests share connections, and exchanges have one each".to_owned())
        }
        () if case.plan.load.kind != (LoopKind::Closed { think_ns: 0 }) => {
            Err("ops do not follow one another, as exchanges do".to_owned())
        }
        () => Ok(()),
    },
    budget: Budget::Fixed(PATH_BUDGET_NS),
    below: Some(Layer::Path),
    ..FLIP
});

/// Why the paths are not measured alone where nobody has asked for it.
const NO_NET_SERVER: &str = "no `duel net serve` answers on the targets' machines that `--net-server` tells of";

/// As a comparison has at least, and half as much again: who starts a program on each machine for it wants to know, and where packets get lost
/// few exchanges take most of the time.
const PATH_BUDGET_NS: Nanos = 15 * SECOND_NS;
