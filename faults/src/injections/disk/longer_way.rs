//! `nameless`: each call takes a longer way to the device, which does as many at a time and as much per second as before. None of the
//! causes of disks is that, and nothing may be named.

use super::*;
use crate::case::NAMELESS;

const INJECTION: Injection<Disk> = Injection::new(NAMELESS, |arena: &DiskArena| {
    let [healthy, faulty] = arena.samples()?.map(|sample| 1e6 / sample.ops_per_s);
    Ok(Bite::ratio("us per op", (healthy, faulty), 1.2))
});

pub(super) fn cases() -> Vec<Case> {
    let longer = |twin: &mut crate::kinds::disk::DiskTwin| twin.volume.backing = Backing::Loop;
    // Not what is flushed: that does take longer until it is safe.
    [Setup::on(EXT4, "randread"), Setup::on(XFS, "randwrite"), Setup::on(EXT4, "read")]
        .map(|setup| INJECTION.case(&in_memory(setup), "two-loops", longer))
        .to_vec()
}
