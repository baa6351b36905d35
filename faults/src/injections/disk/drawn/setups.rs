//! Set-ups by chance.

use super::*;

const OPS: [&str; 7] = ["randread", "randread", "read", "randwrite", "randwrite", "write", "fsync"];

pub(super) fn draw(dice: &mut Dice, installed: &Installed) -> Option<Setup<Disk>> {
    let all = [EXT4, XFS, VolumePlan::of("btrfs", 1024)];
    let there: Vec<VolumePlan> = all.into_iter().filter(|plan| installed.has_all(&[plan.file_system])).collect();
    if there.is_empty() {
        return None;
    }
    let (volume, op) = (*dice.pick(&there), *dice.pick(&OPS));
    let block_bytes = *dice.pick(&[4, 8, 16, 32, 64, 128, 256]) << 10;
    let mut setup = Setup::on(volume, op).load(|work| {
        work.block_bytes = block_bytes;
        work.words = &[];
    });
    // How long this machine's disk takes scatters: most images are not on it.
    if !dice.one_in(3) {
        setup = in_memory(setup);
    }
    if op == "fsync" {
        return Some(setup);
    }
    if dice.one_in(2) {
        return Some(through_the_cache(setup, dice));
    }
    let words = direct(dice);
    setup.load.words = words;
    if dice.one_in(4) {
        let per_s = u64::from(dice.whole(500, 4_000));
        setup = setup.with(&format!("both-{per_s}ios"), |twin| {
            (twin.throttle.read_calls, twin.throttle.written_calls) = (Some(per_s), Some(per_s));
        });
    }
    Some(setup)
}

/// Past the page cache, by some threads and with some ops in flight.
fn direct(dice: &mut Dice) -> &'static [&'static str] {
    let mut words = vec!["--direct"];
    if dice.one_in(2) {
        words.extend(["--depth", kept(dice.whole(2, 16).to_string())]);
    }
    if dice.one_in(3) {
        words.extend(["-t", kept(dice.whole(2, 4).to_string())]);
    }
    words.leak()
}

fn through_the_cache(mut setup: Setup<Disk>, dice: &mut Dice) -> Setup<Disk> {
    if setup.reads() {
        setup.load.words = &["--cold"];
        if !setup.is_in_memory() && dice.one_in(3) {
            // Less memory than the file has bytes.
            (setup.load.mib, setup.load.memory_mib) = (256, Some(dice.whole(64, 160)));
        }
        return setup;
    }
    setup.load.words = vec!["--flush", kept(dice.whole(1, 16).to_string())].leak();
    setup
}
