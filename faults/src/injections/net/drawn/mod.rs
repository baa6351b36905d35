//! Network paths as they can be drawn by `faults random`.

mod decoys;
mod faults;
mod outside;
mod setups;
#[cfg(test)]
mod tests;

use super::*;
use crate::dice::Dice;
use crate::kinds::net::Streams;
use crate::random::{Decoy, Drawable, DrawnKind, Installed};

impl DrawnKind for Net {
    const BESIDE_SEED: u64 = 2 << 32;
    const OP: &'static str = "op";
    const CATALOGUE: &'static [&'static [Drawable<Net>]] = &[faults::ALL];
    const OUTSIDE: &'static [Drawable<Net>] = outside::ALL;
    const DECOYS: &'static [Decoy<Net>] = decoys::ALL;

    /// The ways of sending that the kernel lets namespaces choose from.
    fn installed() -> Installed {
        Installed::of(congestion_control::allowed())
    }

    fn set_up(dice: &mut Dice, _installed: &Installed) -> Option<Setup<Net>> {
        Some(setups::draw(dice))
    }

    /// Of datagrams, which are sent at a pace of their own, the time from one that arrives to the next.
    fn op_takes(arena: &Paths, _load: &Streams) -> anyhow::Result<(f64, f64)> {
        arena.by_turns(|up| {
            let takes = arena.client.op_takes(up)?;
            Ok(match up.twin().op {
                Op::Datagrams { .. } => 1e3 / (1e3 - takes).max(1.0),
                _ => takes,
            })
        })
    }
}

/// What set-ups have, as faults ask for it.
impl Setup<Net> {
    fn sends(&self, ops: &[Op]) -> bool {
        ops.contains(&self.twin.op)
    }

    fn sends_datagrams(&self) -> bool {
        matches!(self.twin.op, Op::Datagrams { .. })
    }

    /// Blocks one after the other.
    fn flows(&self) -> bool {
        self.sends(&[Op::Bulk, Op::BulkReverse])
    }

    fn is_near(&self) -> bool {
        self.twin.network.path == Path::Veth
    }

    /// Through the relay, which has a line of no rate.
    fn is_far(&self) -> bool {
        matches!(self.twin.network.path, Path::Relay { to_client, .. } if to_client.bytes_per_s.is_none())
    }

    fn over_relay(self, rtt_us: u32) -> Setup<Net> {
        let path = Path::round_trip_us(u64::from(rtt_us));
        self.with(&format!("rtt{rtt_us}us"), |twin| twin.network.path = path)
    }
}
