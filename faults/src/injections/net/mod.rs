//! The faults of network paths. Those that web servers have as well have the same ids, and are other causes for duel, which
//! sees them through its own server at the other end.

mod drawn;

use super::*;
use crate::kinds::net::{Net, Op, PathTwin};
use crate::twin::{Loss, Packets, Way};

pub(crate) type Paths = Arena<PathTwin>;

macro_rules! paths {
    ($($module:ident),* $(,)?) => {
        $(mod $module;)*

        pub(super) fn cases() -> Vec<Case> {
            let mut cases = Vec::new();
            $(cases.extend($module::cases());)*
            cases
        }
    };
}

pub(super) use self::congestion_control::allowed;

paths!(none, path_delay, small_window, small_mtu, congestion_control, loss, rate_cap, slow_server);

/// That the op takes so many times as long on the faulty path, by the bench's own sender.
fn slower(arena: &Paths, at_least: f64) -> anyhow::Result<Bite> {
    let what = match arena.healthy.twin().op {
        Op::Bulk | Op::BulkReverse => "us per kB over all streams",
        Op::Exchange => "us per exchange",
        Op::Connect => "us per connection",
        Op::Datagrams { .. } => "datagrams lost of a thousand",
    };
    Ok(Bite::ratio(what, arena.by_turns(|up| arena.client.op_takes(up))?, at_least))
}
