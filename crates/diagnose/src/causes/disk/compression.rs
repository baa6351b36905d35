//! `disk.compression`: the slow side compresses, or looks otherwise into, what is written and read, and pays for each byte.
//!
//! With data that compresses to nothing the gap goes away: there is nothing left to work on. What looks like it: whatever is slow
//! whatever the data are, where the gap stays. A cap behind a file system that compresses is met by less data, too; then the device
//! of the slow side moves fewer bytes than it was given, which shows that it does compress.

use super::KINDS;
use crate::cause::{Cause, CauseEntry, Standing, Told, did_not_move, fit, shown_flip};
use crate::evidence::device::setting;
use crate::gap::Gap;
use crate::probes::COMPRESSIBLE;
use duel_model::Confidence;

static ENTRY: CauseEntry = CauseEntry {
    id: "disk.compression",
    description: "data is compressed or encrypted on its way to the device, which costs time for each byte that is not zero",
    signature: "with data that compresses to nothing the gap is gone",
    at_most: "confirmed",
    needs_machine: false,
};

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let slow = gap.slow_name();
    if matches!(setting(gap, "op"), Some("stat" | "unlink")) {
        return Err(Standing::RuledOut(gap.not_measured("the op moves no data".to_owned())));
    }
    if gap.text(gap.slow, "disk.target").is_some_and(|target| !target.contains("in a folder"))
        && matches!(setting(gap, "op"), Some("read" | "randread"))
    {
        let text = format!("what {slow} holds is not duel's, so that data of another kind cannot be read there");
        return Err(Standing::Undecided(gap.not_measured(text)));
    }
    let flip = shown_flip(gap, COMPRESSIBLE)?;
    if !flip.moved() {
        return Err(did_not_move(gap, &flip));
    }
    let options = gap.text(gap.slow, "disk.mount_options").unwrap_or_default();
    let named = options.split(',').find(|option| option.starts_with("compress"));
    let by = named.map_or_else(String::new, |option| format!(" It is mounted with {option}."));
    let summary = format!(
        "{slow} works on the content of what it writes or reads: with data that compresses to nothing {} of the gap is gone.{by}",
        flip.percent()
    );
    let remedy = format!(
        "Where {slow}'s data does not compress, switch it off (btrfs: mount without `compress-force`, `chattr +m` or `btrfs property set \
         PATH compression none`; ZFS: `zfs set compression=lz4`), or choose a quicker algorithm or level (`zstd:1`, `lzo`)."
    );
    // Without a name for it in the mount it may be a device that does so.
    let confidence = if flip.confirms() && named.is_some() { Confidence::Confirmed } else { Confidence::Likely };
    Ok(fit(gap, &ENTRY, &flip, confidence, Told { summary, remedy, facts: Vec::new(), further: Vec::new() }))
}
