//! Which facts move. The tests of the whole program use this file too.

/// Facts that are not the same when they are read again, however that is done.
pub(crate) const MOVING: [&str; 7] = [
    // Clocks.
    "clock.unix_s",
    "os.uptime_s",
    // What a CPU runs at.
    "cpu.slowest_mhz",
    "cpu.fastest_mhz",
    // What everybody on the machine, the reader too, takes of it.
    "memory.available_bytes",
    "fs.file-nr",
    // The server's own memory, which the requests of others may let grow.
    "process.resident_bytes",
];
