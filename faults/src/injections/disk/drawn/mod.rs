//! Disks as they can be drawn by `faults random`.

mod decoys;
mod faults;
mod outside;
mod setups;
#[cfg(test)]
mod tests;

use super::*;
use crate::dice::Dice;
use crate::kinds::disk::Work;
use crate::random::{Decoy, Drawable, DrawnKind, Installed, kept};
use crate::world::is_installed;

impl DrawnKind for Disk {
    const BESIDE_SEED: u64 = 3 << 32;
    const OP: &'static str = "op";
    const CATALOGUE: &'static [&'static [Drawable<Disk>]] = &[faults::ALL];
    const OUTSIDE: &'static [Drawable<Disk>] = outside::ALL;
    const DECOYS: &'static [Decoy<Disk>] = decoys::ALL;

    /// File systems that can be made, where there is what it takes to work on them, and bindfs.
    fn installed() -> Installed {
        let works = ["fio", "losetup"].into_iter().all(is_installed);
        let can_be_made = |name: &&str| works && is_installed(&format!("mkfs.{name}"));
        let file_systems = ["ext4", "xfs", "btrfs"].into_iter().filter(can_be_made);
        let others = ["bindfs"].into_iter().filter(|program| is_installed(program));
        Installed::of(file_systems.chain(others).map(str::to_owned).collect())
    }

    fn set_up(dice: &mut Dice, installed: &Installed) -> Option<Setup<Disk>> {
        setups::draw(dice, installed)
    }

    fn op_takes(arena: &DiskArena, _load: &Work) -> anyhow::Result<(f64, f64)> {
        let mut shortest = [f64::INFINITY; 2];
        for _ in 0..3 {
            for (sample, shortest) in arena.samples()?.into_iter().zip(&mut shortest) {
                *shortest = shortest.min(1e6 / sample.ops_per_s);
            }
        }
        Ok((shortest[0], shortest[1]))
    }
}

/// What set-ups have, as faults ask for it.
impl Setup<Disk> {
    fn is_on(&self, file_systems: &[&str]) -> bool {
        file_systems.contains(&self.twin.volume.file_system)
    }

    fn does(&self, ops: &[&str]) -> bool {
        ops.contains(&self.load.op)
    }

    fn reads(&self) -> bool {
        self.does(&["read", "randread"])
    }

    fn is_told(&self, word: &str) -> bool {
        self.load.words.contains(&word)
    }

    fn is_in_memory(&self) -> bool {
        self.twin.volume.backing == Backing::Memory
    }

    /// What is written has to be safe before an op ends, or before some do.
    fn flushes(&self) -> bool {
        self.does(&["fsync"]) || self.is_told("--flush")
    }
}
