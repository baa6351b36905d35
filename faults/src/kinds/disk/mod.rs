//! Disks: two file systems on loop devices, and duel in a control group that says how fast the devices are and how much memory
//! there is for what is read.

mod tools;

use super::{Kind, Pair};
use crate::arena::CLIENT_CPU;
use crate::case::Setup;
use crate::servers::Place;
use crate::world::{Cgroup, Launch, Limits, Stop, Throttle, Volume, VolumePlan, World};
use anyhow::ensure;
use std::path::Path;
use tools::Sample;

/// The kind.
#[derive(Clone, Copy)]
pub(crate) struct Disk;

/// A file system to be, and how fast its device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DiskTwin {
    pub(crate) volume: VolumePlan,
    pub(crate) throttle: Throttle,
}

/// The load that duel is told to make, which fio makes, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) op: &'static str,
    pub(crate) block_bytes: u32,
    /// Of the work file.
    pub(crate) mib: u32,
    /// Further words for duel: `--direct`, `--cold`, `--flush N`.
    pub(crate) words: &'static [&'static str],
    /// Memory of the group: of the program and of all that is kept of files.
    pub(crate) memory_mib: Option<u32>,
}

/// Both, mounted, and the group that all tools and duel work in.
pub(crate) struct DiskArena {
    // Dropped in this order: whoever is left in the group ends before what it works on goes away.
    group: Cgroup,
    healthy: Volume,
    faulty: Volume,
    faulty_place: Place,
    work: Work,
    stop: Stop,
}

impl DiskArena {
    /// A sample of the load on both, by fio and by the devices' counters; healthy first.
    pub(crate) fn samples(&self) -> anyhow::Result<[Sample; 2]> {
        Ok([self.sample(&self.healthy)?, self.sample(&self.faulty)?])
    }

    /// A program in the group.
    fn launch(&self, program: &Path) -> Launch {
        Launch::new(program).on(CLIENT_CPU).member_of(Some(&self.group))
    }
}

impl Kind for Disk {
    const NAME: &'static str = "disk";
    type Twin = DiskTwin;
    type Load = Work;
    type Arena = DiskArena;

    fn words_of_setup(twin: &DiskTwin, load: &Work) -> Vec<String> {
        let size = format!("{}k", load.block_bytes >> 10);
        let mut words = ["disk", twin.volume.file_system, load.op, &size].map(str::to_owned).to_vec();
        words.extend(load.words.iter().map(|word| word.trim_start_matches('-').to_owned()));
        words.extend(load.memory_mib.map(|mib| format!("memory{mib}M")));
        words
    }

    fn start(world: &World, pair: &Pair<Disk>, faulty_place: Place, _duel: &Path) -> anyhow::Result<DiskArena> {
        let healthy = Volume::new(world, &pair.healthy.volume)?;
        world.go_on()?;
        let faulty = Volume::new(world, &pair.faulty.volume)?;
        world.go_on()?;
        let devices =
            vec![(healthy.device_number()?, pair.healthy.throttle), (faulty.device_number()?, pair.faulty.throttle)];
        let memory_bytes = pair.load.memory_mib.map(|mib| u64::from(mib) << 20);
        let group = Cgroup::new(world, &Limits { memory_bytes, devices, ..Limits::default() })?;
        Ok(DiskArena { group, healthy, faulty, faulty_place, work: pair.load, stop: world.stop() })
    }

    fn ensure_both_work(arena: &DiskArena) -> anyhow::Result<()> {
        for sample in arena.samples()? {
            ensure!(sample.ops_per_s > 0.0, "fio does nothing there");
        }
        Ok(())
    }

    fn duel(arena: &DiskArena, load: &Work, duel: &Path, _local: bool) -> Launch {
        let mut places = [(arena.faulty_place, &arena.faulty), (arena.faulty_place.other(), &arena.healthy)];
        places.sort_by_key(|(place, _)| place.target_name());
        let addresses = places.map(|(place, volume)| format!("{}={}", place.target_name(), volume.path().display()));
        let size = format!("{}M", load.mib);
        let words = ["--op", load.op, "--block", &load.block_bytes.to_string(), "--size", &size].map(str::to_owned);
        let further = load.words.iter().map(|word| (*word).to_owned());
        arena.launch(duel).args(addresses).args(words).args(further)
    }
}

impl Setup<Disk> {
    /// Blocks of 4 KiB past the page cache, in a file of 64 MiB.
    pub(crate) fn on(volume: VolumePlan, op: &'static str) -> Setup<Disk> {
        let work = Work { op, block_bytes: 4096, mib: 64, words: &["--direct"], memory_mib: None };
        Setup::new(DiskTwin { volume, throttle: Throttle::default() }, work)
    }

    pub(crate) fn load(mut self, change: impl FnOnce(&mut Work)) -> Setup<Disk> {
        change(&mut self.load);
        self
    }
}
