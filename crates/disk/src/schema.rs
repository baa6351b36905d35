//! What disk work declares of itself.

use duel_model::{Declaration, Noun, Param, Reach, Schema, Sort, Threads};

/// What a plan with such a target makes this machine do.
const REACHES: &str = "work on the path, and make a work file there if it is a folder:";

/// What ops on file systems, files and devices declare of themselves.
pub const SCHEMA: Schema = Schema {
    kind: "disk",
    targets: "File systems, files and devices",
    op: Noun { one: "op", many: "ops" },
    lane: Noun { one: "thread", many: "threads" },
    shared_lane: Noun { one: "op in flight", many: "ops in flight" },
    phases: phase::ALL,
    failures: failure::ALL,
    bytes: "bytes moved",
    facts_title: "Disks",
    facts: FACTS,
    params: PARAMS,
    runs_targets: false,
    reaches: &[
        Reach::all("/", REACHES),
        Reach::all("./", REACHES),
        Reach::all("../", REACHES),
        Reach::all("file:", REACHES),
    ],
    threads: Threads::Working,
    depth: Some(&DEPTH),
    replaces: None,
    counters: counter::ALL,
    parts: None,
    held_back: None,
    streamed: None,
}
.sound();

/// The calls that an op consists of.
pub mod phase {
    use duel_model::When;

    duel_model::in_order! { Phase:
        /// Until the file was open, or was made.
        OPEN = "open", When::Each;
        /// Until the system had told what it knows of the file.
        STAT = "stat", When::Each;
        /// Until the data was read.
        READ = "read", When::Each;
        /// Until the write was accepted.
        WRITE = "write", When::Each;
        /// Until what was written was flushed to the device.
        FLUSH = "flush", When::Each;
        /// Until the file was closed.
        CLOSE = "close", When::Each;
        /// Until the file was removed.
        UNLINK = "unlink", When::Each;
    }
}

/// How ops fail.
pub mod failure {
    use duel_model::Meaning;

    duel_model::in_order! { FailureKind:
        /// It did not end in time.
        TIMEOUT = "timeout", Meaning::UnansweredInTime;
        /// The work file, or the folder that it is in, is not there any more.
        GONE = "gone", Meaning::Unconnected;
        /// The device or file system reported an error.
        IO_ERROR = "io-error", Meaning::Broken;
        /// What was read is not what had been written.
        WRONG_DATA = "wrong-data", Meaning::Broken;
        /// Fewer bytes were read or written than asked for.
        SHORT = "short", Meaning::Broken;
        /// No space, or no more of somebody's quota.
        NO_SPACE = "no-space", Meaning::Rejected;
        /// The system refused the op.
        REFUSED = "refused", Meaning::Rejected;
    }
}

/// What is counted beside ops.
pub mod counter {
    duel_model::in_order! { Counter:
        /// Reads that the device carried out, whoever asked for them.
        DEVICE_READS = "device-reads", "device reads";
        /// Bytes that it read.
        DEVICE_READ_BYTES = "device-read-bytes", "device bytes read";
        /// Writes that it carried out.
        DEVICE_WRITES = "device-writes", "device writes";
        /// Bytes that it wrote.
        DEVICE_WRITTEN_BYTES = "device-written-bytes", "device bytes written";
    }
}

/// Names of facts.
pub mod fact {
    /// Whether the target is a folder, a file or a device.
    pub const TARGET: &str = "disk.target";
    /// The type of its file system.
    pub const FILE_SYSTEM: &str = "disk.file_system";
    /// How the file system is mounted.
    pub const MOUNT_OPTIONS: &str = "disk.mount_options";
    /// What its smallest file takes.
    pub const ALLOCATION: &str = "disk.allocation_bytes";
    /// The device under it.
    pub const DEVICE: &str = "disk.device";
    /// That device's model.
    pub const MODEL: &str = "disk.model";
    /// Whether it has mechanics, as the system sees it.
    pub const ROTATIONAL: &str = "disk.is_rotational";
    /// The smallest unit that the device takes.
    pub const LOGICAL_BLOCK: &str = "disk.logical_block_bytes";
    /// The smallest unit that it writes without reading first.
    pub const PHYSICAL_BLOCK: &str = "disk.physical_block_bytes";
    /// How far the system reads ahead.
    pub const READ_AHEAD: &str = "disk.read_ahead_kib";
    /// Who orders the requests to the device.
    pub const SCHEDULER: &str = "disk.scheduler";
    /// How many reads per second control groups let duel make on the device.
    pub const READS_LIMIT: &str = "disk.limit_reads_per_s";
    /// How many bytes it may read there per second.
    pub const READ_BYTES_LIMIT: &str = "disk.limit_read_bytes_per_s";
    /// How many writes.
    pub const WRITES_LIMIT: &str = "disk.limit_writes_per_s";
    /// How many bytes it may write.
    pub const WRITTEN_BYTES_LIMIT: &str = "disk.limit_written_bytes_per_s";
    /// How ops are handed to the system.
    pub const ENGINE: &str = "disk.engine";
    /// Size of what is worked on.
    pub const SIZE: &str = "disk.size_bytes";
    /// Space that a file takes.
    pub const USED: &str = "disk.used_bytes";
    /// Whether what was written past the page cache went to the device.
    pub const WRITTEN_TO: &str = "disk.written_to";
    /// Whether reads came from the device or from memory.
    pub const SERVED_FROM: &str = "disk.served_from";
}

const FACTS: &[Declaration] = &[
    Declaration::listed(fact::TARGET, "target"),
    Declaration::listed(fact::FILE_SYSTEM, "file system"),
    Declaration::listed(fact::MOUNT_OPTIONS, "mounted"),
    Declaration::listed(fact::ALLOCATION, "allocation unit"),
    Declaration::listed(fact::DEVICE, "device"),
    Declaration::listed(fact::MODEL, "model"),
    Declaration::listed(fact::ROTATIONAL, "rotational"),
    Declaration::listed(fact::LOGICAL_BLOCK, "logical block"),
    Declaration::listed(fact::PHYSICAL_BLOCK, "physical block"),
    Declaration::listed(fact::READ_AHEAD, "read-ahead"),
    Declaration::listed(fact::SCHEDULER, "scheduler"),
    Declaration::listed(fact::READS_LIMIT, "group's limit of reads per second"),
    Declaration::listed(fact::READ_BYTES_LIMIT, "group's limit of bytes read per second"),
    Declaration::listed(fact::WRITES_LIMIT, "group's limit of writes per second"),
    Declaration::listed(fact::WRITTEN_BYTES_LIMIT, "group's limit of bytes written per second"),
    Declaration { is_doubted: true, ..Declaration::listed(fact::ENGINE, "engine") },
    Declaration { is_doubted: true, ..Declaration::listed(fact::SIZE, "size") },
    Declaration::listed(fact::USED, "space used"),
    Declaration { is_doubted: true, ..Declaration::listed(fact::SERVED_FROM, "reads came from") },
    Declaration { is_doubted: true, ..Declaration::listed(fact::WRITTEN_TO, "direct writes went to") },
];

/// Its settings, in the order in which they are shown.
pub const PARAMS: &[Param] = &[
    OP,
    BLOCK,
    DEPTH,
    DIRECT,
    SIZE,
    ALIGN,
    COMPRESSIBILITY,
    FLUSH,
    MIX,
    FILES,
    FILE_SIZE,
    FOLDERS,
    FILE_ORDER,
    ENGINE,
    COLD,
    READ_AHEAD,
    DESTROY,
];

/// What is done.
pub const OP: Param = Param {
    name: "op",
    value_name: "NAME",
    help: "What is done: read, write (in order), randread, randwrite, randrw (anywhere), rewrite (read a block, write it back), \
           fsync (write a block, then fsync), dsync (write with O_DSYNC); of whole files in a folder: create (make a file and write \
           it), stat, readfile (open a file and read all of it), unlink. A list makes a factor",
    sort: Sort::Choice(&[
        "read",
        "write",
        "randread",
        "randwrite",
        "randrw",
        "rewrite",
        "fsync",
        "dsync",
        "create",
        "stat",
        "readfile",
        "unlink",
    ]),
    default: "randread",
};

/// Bytes of an op.
pub const BLOCK: Param = Param {
    name: "block",
    value_name: "BYTES",
    help: "Bytes of each op; a list or a range such as 4k..128k makes a factor",
    sort: Sort::Bytes { least: 1, most: 1 << 26, zero: "" },
    default: "4096",
};

/// Ops of a thread in flight.
pub const DEPTH: Param = Param {
    name: "depth",
    value_name: "N",
    help: "Ops that each thread (-t) has in flight; a list makes a factor",
    sort: Sort::Count { least: 1, most: 1024, zero: "" },
    default: "1",
};

/// Without the page cache.
pub const DIRECT: Param = Param::switch("direct", "Bypass the page cache (O_DIRECT)");

/// How much is worked on.
pub const SIZE: Param = Param {
    name: "size",
    value_name: "BYTES",
    help: "Size of the work file in a folder; of a file or device, how much of its beginning is used. 0: 256 MiB in a folder, \
           else all of it",
    sort: Sort::Bytes { least: 0, most: 1 << 46, zero: "as it comes" },
    default: "0",
};

/// Where ops begin.
pub const ALIGN: Param = Param {
    name: "align",
    value_name: "BYTES",
    help: "Ops at random places begin at multiples of this. 0: of the block",
    sort: Sort::Bytes { least: 0, most: 1 << 26, zero: "the block" },
    default: "0",
};

/// How well the data compresses.
pub const COMPRESSIBILITY: Param = Param {
    name: "compressibility",
    value_name: "SHARE",
    help: "Share of the data written that compresses to nothing, from 0 to 1",
    sort: Sort::Decimal { least: 0.0, most: 1.0 },
    default: "0",
};

/// How often is flushed.
pub const FLUSH: Param = Param {
    name: "flush",
    value_name: "N",
    help: "Each thread's every N-th write is followed by an fsync, which its op waits for. 0: never",
    sort: Sort::Count { least: 0, most: 1_000_000, zero: "never" },
    default: "0",
};

/// Reads among reads and writes.
pub const MIX: Param = Param {
    name: "mix",
    value_name: "SHARE",
    help: "Share of reads of randrw, from 0 to 1",
    sort: Sort::Decimal { least: 0.0, most: 1.0 },
    default: "0.5",
};

/// How many files.
pub const FILES: Param = Param {
    name: "files",
    value_name: "N",
    help: "Files that create, stat, readfile and unlink work on; a list makes a factor",
    sort: Sort::Count { least: 1, most: 10_000_000, zero: "" },
    default: "10000",
};

/// How large a file is.
pub const FILE_SIZE: Param = Param {
    name: "file-size",
    value_name: "BYTES",
    help: "Bytes of each of these files, written and read in calls of --block; a list makes a factor. 0: empty files",
    sort: Sort::Bytes { least: 0, most: 1 << 30, zero: "empty" },
    default: "4096",
};

/// How many folders they are in.
pub const FOLDERS: Param = Param {
    name: "folders",
    value_name: "N",
    help: "Folders that these files are spread over; a list makes a factor",
    sort: Sort::Count { least: 1, most: 100_000, zero: "" },
    default: "10",
};

/// In which order they are worked on.
pub const FILE_ORDER: Param = Param {
    name: "file-order",
    value_name: "ORDER",
    help: "Whether these files are named and worked on in-order or at random",
    sort: Sort::Choice(&["in-order", "random"]),
    default: "in-order",
};

/// How ops are handed to the system.
pub const ENGINE: Param = Param {
    name: "engine",
    value_name: "ENGINE",
    help: "How ops reach the system: uring (io_uring), pread (pread and pwrite, a thread for each op in flight), or auto: uring \
           where the kernel allows it",
    sort: Sort::Choice(&["auto", "uring", "pread"]),
    default: "auto",
};

/// What is cached is dropped.
pub const COLD: Param = Param::switch(
    "cold",
    "Drop what the page cache holds of the file before each slot, and when reads in order begin anew (posix_fadvise)",
);

/// What is read ahead.
pub const READ_AHEAD: Param = Param {
    name: "read-ahead",
    value_name: "WHICH",
    help: "What is read into the page cache ahead of reads in order: as-set for the device, none, or own: duel asks for the next \
           megabyte itself (posix_fadvise)",
    sort: Sort::Choice(&["as-set", "none", "own"]),
    default: "as-set",
};

/// What may be overwritten.
pub const DESTROY: Param = Param {
    name: "destroy",
    value_name: "PATH",
    help: "A target that is a device or a file, whose content may be overwritten; several are joined by commas. Of a device, \
           what is on it is shown, and its name has to be typed once more",
    sort: Sort::Destroys,
    default: "",
};
