//! What is known of a target.

use crate::device::Done;
use crate::limits;
use crate::place::Place;
use crate::schema::fact;
use crate::settings::Engine;
use crate::target::Target;
use crate::watch::Came;
use duel_model::Facts;
use std::os::unix::fs::MetadataExt;

/// What is known before any load.
pub(crate) fn of(target: &Target) -> Facts {
    let Target { place, file, mount, device, files, .. } = target;
    let mut facts = Facts::default();
    let sort = match place {
        Place::Folder(_) if files.is_some() => "files in a folder",
        Place::Folder(_) => "a work file in a folder",
        Place::File(..) => "a file",
        Place::Device(..) => "a device",
    };
    facts.note(fact::TARGET, Some(sort));
    facts.note(fact::FILE_SYSTEM, mount.as_ref().map(|mount| mount.file_system.clone()));
    facts.note(fact::MOUNT_OPTIONS, mount.as_ref().map(|mount| mount.options.clone()));
    let of_file = target.work_file.as_ref().and_then(|file| file.allocation_bytes);
    facts.note(fact::ALLOCATION, of_file.or(files.as_ref().and_then(|files| files.allocation_bytes)));
    if let Some(device) = device {
        facts.note(fact::DEVICE, Some(device.name()));
        facts.note(fact::MODEL, device.model());
        facts.note(fact::ROTATIONAL, device.told_number("queue/rotational").map(|is_so| is_so != 0));
        facts.note(fact::LOGICAL_BLOCK, device.told_number("queue/logical_block_size"));
        facts.note(fact::PHYSICAL_BLOCK, device.told_number("queue/physical_block_size"));
        facts.note(fact::READ_AHEAD, device.told_number("queue/read_ahead_kb"));
        facts.note(fact::SCHEDULER, device.scheduler());
        let limits = limits::of(device);
        facts.note(fact::READS_LIMIT, limits.reads);
        facts.note(fact::READ_BYTES_LIMIT, limits.read_bytes);
        facts.note(fact::WRITES_LIMIT, limits.writes);
        facts.note(fact::WRITTEN_BYTES_LIMIT, limits.written_bytes);
    }
    facts.note(fact::ENGINE, Some(engine(target)));
    facts.note(fact::SIZE, Some(target.bytes));
    let is_device = matches!(place, Place::Device(..));
    let used = match (&target.work_file, files) {
        (Some(file), _) => file.used_bytes(),
        (None, Some(files)) => files.used_bytes,
        (None, None) => file.metadata().ok().filter(|_| !is_device).map(|seen| seen.blocks() * 512),
    };
    facts.note(fact::USED, used);
    facts
}

fn engine(target: &Target) -> String {
    let cache = if target.work.direct { "direct" } else { "through the page cache" };
    if target.files.is_some() {
        return "calls on whole files, through the page cache".to_owned();
    }
    match (target.engine, &target.engine_why) {
        (Engine::Pread, Some(why)) => format!("pread, {cache} (no io_uring: {why})"),
        (Engine::Pread, None) => format!("pread, {cache}"),
        (Engine::Uring | Engine::Auto, _) => format!("io_uring, {cache}"),
    }
}

/// Where the bytes that were read came from, of what the device did meanwhile. Whoever else used the device is in its figures, so
/// little that came is nothing. The figures themselves are counters: this text is compared, and no two are alike in all bytes.
pub(crate) fn served_from(came: Came) -> Option<&'static str> {
    part_of_device(came.device?.read_bytes, came.read_bytes)
}

/// Where bytes went that were written past the page cache. Of what is written into it that says nothing: it reaches the device later.
pub(crate) fn written_to(device: Option<Done>, written_bytes: u64) -> Option<&'static str> {
    part_of_device(device?.written_bytes, written_bytes)
}

fn part_of_device(device_bytes: u64, bytes: u64) -> Option<&'static str> {
    if bytes == 0 {
        return None;
    }
    Some(match device_bytes as f64 / bytes as f64 {
        ..0.05 => "memory",
        0.95.. => "the device",
        _ => "memory and the device",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_reads_came_from_is_told_by_what_the_device_read() {
        let from = |device: Option<u64>, read_bytes| {
            let device = device.map(|read_bytes| Done { read_bytes, ..Done::default() });
            served_from(Came { device, read_bytes })
        };
        assert_eq!(from(Some(4), 1000), Some("memory"));
        assert_eq!(from(Some(4096), 1000), Some("the device"));
        assert_eq!(from(Some(500), 1000), Some("memory and the device"));
        assert_eq!(from(Some(500), 1000), from(Some(700), 1100), "two that are alike are told alike");
        assert_eq!((from(None, 1000), from(Some(0), 0)), (None, None));
        let to = |written_bytes| written_to(Some(Done { written_bytes, ..Done::default() }), 1000);
        assert_eq!((to(0), to(1000), written_to(None, 1000)), (Some("memory"), Some("the device"), None));
    }
}
