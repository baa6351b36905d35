//! What databases declare of themselves.

use crate::{failure, mix};
use duel_model::{Compared, Declaration, Noun, Param, Reach, Replaces, Schema, Sort, Threads};

/// What ops on a database declare of themselves.
pub const SCHEMA: Schema = Schema {
    kind: "sql",
    targets: "Databases",
    op: Noun { one: "transaction", many: "transactions" },
    lane: Noun { one: "connection", many: "connections" },
    shared_lane: Noun { one: "connection", many: "connections" },
    phases: phase::ALL,
    failures: failure::ALL,
    bytes: "bytes received",
    facts_title: "Databases",
    facts: FACTS,
    params: PARAMS,
    runs_targets: false,
    reaches: &[
        Reach::all("sqlite:", "open the file of the database"),
        Reach::all("postgres", "log in, with a password that is found in the environment or in ~/.pgpass, to"),
        Reach::all("mysql:", "log in, with a password that is found in the environment or in ~/.my.cnf, to"),
        Reach::all("mariadb:", "log in, with a password that is found in the environment or in ~/.my.cnf, to"),
    ],
    threads: Threads::Connections,
    depth: None,
    replaces: Some(Replaces { by: &SCRIPT, params: OF_OPS }),
    counters: counter::ALL,
    parts: None,
    held_back: None,
    streamed: None,
}
.sound();

/// The parts of an op. What an op does several times is summed.
pub mod phase {
    use duel_model::When;

    duel_model::in_order! { Phase:
        /// Until the socket is connected.
        CONNECT = "connect", When::Connecting;
        /// The handshake of TLS.
        TLS = "tls", When::Connecting;
        /// Until the server lets us in.
        LOGIN = "login", When::Connecting;
        /// Statements are prepared, each once on a connection.
        PREPARE = "prepare", When::Connecting;
        /// Statements are sent.
        SEND = "send", When::Each;
        /// Until the first row of a statement comes, or its end where it has none.
        FIRST_ROW = "first-row", When::Each;
        /// The rows that follow.
        ROWS = "rows", When::Each;
        /// The end of the transaction.
        COMMIT = "commit", When::Each;
    }
}

/// What is counted beside ops.
pub mod counter {
    /// A count in a slot that a server says and that is larger is wrong, or is to do harm: as nanoseconds it would be three days.
    /// Sums over 256 of them are still within the 2^56 that runs are kept with.
    pub(crate) const MOST: u64 = 1 << 48;

    /// What duel itself counts.
    pub(crate) fn ours() -> impl Iterator<Item = &'static duel_model::Counter> {
        ALL.iter().filter(|counter| !counter.is_of_server())
    }

    duel_model::in_order! { Counter:
        /// Statements that ended, as sysbench counts them: with BEGIN and COMMIT.
        QUERIES = "queries", "queries";
        /// Rows that came.
        ROWS = "rows", "rows read";
        /// Rows that were changed.
        CHANGED = "changed", "rows changed";
        /// Transactions that were begun again within their op.
        RETRIES = "retries", "retries";
        /// Deadlocks, and locks that were waited for too long.
        DEADLOCKS = "deadlocks", "deadlocks";
        /// Transactions that could not be ordered.
        SERIALIZATIONS = "serializations", "serialization failures";
        /// Rows that were there already.
        DUPLICATES = "duplicates", "duplicate keys";
        /// Statements that were given up, and that the server was asked to stop.
        CANCELLED = "cancelled", "given up and stopped";
        /// Statements that were given up, and may run on: the server took no request to stop them.
        NOT_CANCELLED = "not-cancelled", "given up and not stopped";
        /// Blocks that the server did not find in its memory.
        SERVER_READS = "server-reads", "server: blocks read";
        /// Blocks that it found there.
        SERVER_HITS = "server-hits", "server: blocks found";
        /// Rows and entries of indexes that it looked at.
        SERVER_ROWS = "server-rows", "server: rows looked at";
        /// What did not fit into memory and was written aside.
        SERVER_TEMPORARY = "server-temporary-files", "server: temporary files";
        /// What it wrote to its log.
        SERVER_LOG_BYTES = "server-log_bytes", "server: log written";
        /// How often it waited until what it wrote was on the disk.
        SERVER_FLUSHES = "server-flushes", "server: flushes";
        /// Blocks that MySQL and MariaDB wrote back to their tables, whoever had changed them.
        SERVER_WRITES = "server-writes", "server: blocks written";
        /// Waits for rows that others held.
        SERVER_LOCK_WAITS = "server-lock-waits", "server: lock waits";
        /// How long sessions waited for what others held.
        SERVER_LOCK_NS = "server-lock_ns", "server: lock wait";
        /// How long sessions waited for the log.
        SERVER_FLUSH_NS = "server-flush_ns", "server: log wait";
        /// How long it worked on statements, waits within them included.
        SERVER_ACTIVE_NS = "server-active_ns", "server: time in statements";
        /// How long it waited for blocks that it read.
        SERVER_READ_NS = "server-read_ns", "server: read wait";
        /// Answers from the query cache.
        SERVER_CACHE_HITS = "server-query-cache-hits", "server: query cache hits";
        /// Reads of the device under its data folder, where that is on this machine, whoever asked for them.
        SERVER_DEVICE_READS = "server-device-reads", "server: device reads";
        /// Bytes of these.
        SERVER_DEVICE_READ_BYTES = "server-device-read_bytes", "server: device bytes read";
        /// CPU time of its process, where that is one and on this machine.
        SERVER_CPU_NS = "server-cpu_ns", "server: CPU time";
        /// Transactions of PostgreSQL that were not duel's.
        SERVER_OTHERS = "server-others", "server: work of other clients";
        /// Statements of MySQL that were not duel's, which are held against [`QUERIES`].
        SERVER_OTHERS_QUERIES = "server-others-queries", "server: queries of other clients";
    }
}

/// Which settings duel's own sessions may change: a list of `fact=setting`.
pub(crate) const MAY_SET: &str = "sql.may_set";
/// Settings that are not as the server was built with, but for those that say where it is: a list of `setting=value`.
pub(crate) const SET: &str = "sql.set";
/// Which settings a private copy of the server may be started with: a list of `fact=setting`. It is there where copies can be made.
pub(crate) const MAY_COPY_WITH: &str = "sql.may_copy_with";
/// About how many bytes a copy takes.
pub(crate) const COPY_BYTES: &str = "sql.copy_bytes";
/// How the server goes about the statements of load: a list of `statement: plan`.
pub(crate) const PLANS: &str = "sql.plans";

/// Which file of own SQL was read, as [`SCRIPT_SHA256`] has it.
pub(crate) const SCRIPT_READ: &str = "sql.script_sha256";

/// What is known of a database, as it says itself.
const FACTS: &[Declaration] = &[
    Declaration { is_held: true, is_of_twins: true, ..Declaration::listed("sql.server", "server") },
    Declaration::listed("sql.tls", "TLS"),
    Declaration::listed("sql.checked", "afterwards checked"),
    Declaration::listed("sql.rows", "rows in the tables"),
    Declaration::listed("sql.tables_bytes", "size of the tables, bytes"),
    Declaration::listed("sql.rows_bytes", "size of the rows without further indexes, bytes"),
    // It changes with each update, and with each look of the server.
    Declaration { compared: Compared::Never, ..Declaration::listed("sql.dead_rows", "dead rows in the tables") },
    Declaration { compared: Compared::Never, ..Declaration::listed("sql.device", "device under the data folder") },
    Declaration::listed("sql.cpus", "CPUs that the server may use"),
    doubted("sql.isolation", "isolation"),
    doubted("sql.synchronous_commit", "synchronous_commit"),
    doubted("sql.fsync", "fsync"),
    doubted("sql.full_page_writes", "full_page_writes"),
    doubted("sql.wal_level", "wal_level"),
    setting("sql.wal_sync_method", "wal_sync_method"),
    setting("sql.max_wal_size", "max_wal_size"),
    setting("sql.wal_buffers", "wal_buffers"),
    setting("sql.commit_delay", "commit_delay"),
    doubted("sql.shared_buffers", "shared_buffers"),
    setting("sql.work_mem", "work_mem"),
    setting("sql.max_connections", "max_connections"),
    setting("sql.huge_pages", "huge_pages"),
    doubted("sql.jit", "jit"),
    doubted("sql.track_io_timing", "track_io_timing"),
    doubted("sql.log_statement", "log_statement"),
    doubted("sql.log_duration", "log_min_duration_statement"),
    doubted("sql.checksums", "data checksums"),
    doubted("sql.random_page_cost", "random_page_cost"),
    doubted("sql.enable_seqscan", "enable_seqscan"),
    doubted("sql.enable_indexscan", "enable_indexscan"),
    doubted("sql.enable_indexonlyscan", "enable_indexonlyscan"),
    doubted("sql.enable_bitmapscan", "enable_bitmapscan"),
    doubted("sql.enable_sort", "enable_sort"),
    doubted("sql.enable_hashagg", "enable_hashagg"),
    doubted("sql.plan_cache_mode", "plan_cache_mode"),
    doubted("sql.seq_page_cost", "seq_page_cost"),
    setting("sql.effective_cache_size", "effective_cache_size"),
    doubted("sql.max_parallel_workers_per_gather", "max_parallel_workers_per_gather"),
    doubted("sql.wal_compression", "wal_compression"),
    setting("sql.commit_siblings", "commit_siblings"),
    setting("sql.checkpoint_timeout", "checkpoint_timeout"),
    doubted("sql.autovacuum", "autovacuum"),
    setting("sql.temp_buffers", "temp_buffers"),
    setting("sql.deadlock_timeout", "deadlock_timeout"),
    doubted("sql.log_all_durations", "log_duration"),
    doubted("sql.flush_at_commit", "innodb_flush_log_at_trx_commit"),
    doubted("sql.sync_binlog", "sync_binlog"),
    doubted("sql.log_bin", "log_bin"),
    doubted("sql.binlog_commit_wait_usec", "binlog_commit_wait_usec"),
    setting("sql.binlog_commit_wait_count", "binlog_commit_wait_count"),
    doubted("sql.buffer_pool_bytes", "innodb_buffer_pool_size"),
    setting("sql.flush_method", "innodb_flush_method"),
    doubted("sql.doublewrite", "innodb_doublewrite"),
    doubted("sql.log_file_bytes", "size of InnoDB's log"),
    setting("sql.log_files", "innodb_log_files_in_group"),
    Declaration { compared: Compared::Never, ..Declaration::unlisted("sql.logs") },
    doubted("sql.io_capacity", "innodb_io_capacity"),
    doubted("sql.adaptive_hash", "innodb_adaptive_hash_index"),
    doubted("sql.thread_concurrency", "innodb_thread_concurrency"),
    setting("sql.lock_timeout_s", "innodb_lock_wait_timeout"),
    doubted("sql.query_cache", "query_cache_type"),
    doubted("sql.query_cache_bytes", "query_cache_size"),
    doubted("sql.thread_handling", "thread_handling"),
    setting("sql.skip_name_resolve", "skip_name_resolve"),
    doubted("sql.general_log", "general_log"),
    doubted("sql.slow_query_log", "slow_query_log"),
    doubted("sql.performance_schema", "performance_schema"),
    doubted("sql.engine", "storage engine"),
    doubted("sql.optimizer_switch", "optimizer_switch"),
    doubted("sql.sort_buffer_bytes", "sort_buffer_size"),
    doubted("sql.join_buffer_bytes", "join_buffer_size"),
    doubted("sql.tmp_table_bytes", "tmp_table_size"),
    setting("sql.log_output", "log_output"),
    setting("sql.long_query_s", "long_query_time"),
    doubted("sql.deadlock_detect", "innodb_deadlock_detect"),
    doubted("sql.read_only", "read_only"),
    doubted("sql.journal_mode", "journal_mode"),
    doubted("sql.synchronous", "synchronous"),
    doubted("sql.page_bytes", "page size"),
    setting("sql.cache_size", "cache_size"),
    setting("sql.mmap_bytes", "mmap_size"),
    Declaration { compared: Compared::Never, ..Declaration::unlisted(MAY_SET) },
    Declaration { compared: Compared::Never, ..Declaration::unlisted(SET) },
    Declaration { compared: Compared::Never, ..Declaration::unlisted(MAY_COPY_WITH) },
    Declaration { compared: Compared::Never, ..Declaration::unlisted(COPY_BYTES) },
    Declaration { noun: "plans of the statements", ..Declaration::unlisted(PLANS) },
    Declaration { compared: Compared::Never, ..Declaration::unlisted(SCRIPT_READ) },
    // What it told when load was over, by statement, by what was waited for, and by what reads were for.
    told_after("sql.statement.*", "server's time"),
    told_after("sql.wait.*", "wait"),
    told_after("sql.io.*", "reads and writes"),
    told_after("sql.not_told", "would tell more"),
    // What a server had counted before load, since it was started.
    counted("mysql.uptime_s"),
    counted("mysql.threads_running"),
    counted("mysql.threads_connected"),
    counted("mysql.questions"),
    counted("mysql.pool_read_requests"),
    counted("mysql.pool_reads"),
    counted("mysql.pool_wait_free"),
    counted("mysql.data_reads"),
    counted("mysql.data_read_bytes"),
    counted("mysql.data_writes"),
    counted("mysql.data_written_bytes"),
    counted("mysql.data_fsyncs"),
    counted("mysql.log_fsyncs"),
    counted("mysql.log_written_bytes"),
    counted("mysql.log_waits"),
    counted("mysql.row_lock_waits"),
    counted("mysql.row_lock_ms"),
    counted("mysql.deadlocks"),
    counted("mysql.query_cache_hits"),
    counted("mysql.query_cache_inserts"),
    counted("mysql.query_cache_prunes"),
    counted("mysql.threads_created"),
    counted("mysql.disk_tables_created"),
    counted("mysql.slow_queries"),
    counted("mysql.history_length"),
];

/// A setting that costs or saves time, so that databases in which it differs make a doubt.
const fn doubted(name: &'static str, label: &'static str) -> Declaration {
    Declaration { is_doubted: true, ..setting(name, label) }
}

/// A setting, which a copy of the server has as well.
const fn setting(name: &'static str, label: &'static str) -> Declaration {
    Declaration { is_of_twins: true, ..Declaration::listed(name, label) }
}

/// What a server told of load: of each target something else.
const fn told_after(name: &'static str, label: &'static str) -> Declaration {
    Declaration { compared: Compared::Never, ..Declaration::listed(name, label) }
}

/// Something that a server counts: another number each time that it is read.
const fn counted(name: &'static str) -> Declaration {
    Declaration { compared: Compared::Never, ..Declaration::unlisted(name) }
}

/// Its settings, in the order in which they are shown.
pub const PARAMS: &[Param] = &[
    OP,
    TABLES,
    TABLE_SIZE,
    RANGE_SIZE,
    KEYS,
    TRANSACTIONS,
    PREPARED,
    RECONNECT,
    RETRY,
    SESSION,
    CACHE_SIZES,
    SCRIPT,
    SCRIPT_DATA,
    SCRIPT_SHA256,
];

/// Those that say what a transaction does, as own SQL does.
pub(crate) const OF_OPS: &[&Param] = &[&OP, &RANGE_SIZE, &KEYS, &TRANSACTIONS];

/// What an op does.
pub(crate) const OP: Param = Param {
    name: "op",
    value_name: "NAME",
    help: "What a transaction does, as sysbench names it: point-select, read-only, read-write, write-only, update-index, \
           update-non-index, insert, delete, bulk-insert, select-random-points or select-random-ranges. A list makes a factor",
    sort: Sort::Choice(mix::OPS),
    default: "point-select",
};

/// Tables.
pub const TABLES: Param = Param {
    name: "tables",
    value_name: "N",
    help: "Tables sbtest1 to sbtestN",
    sort: Sort::Count { least: 1, most: 4096, zero: "" },
    default: "1",
};

/// Rows of a table.
pub const TABLE_SIZE: Param = Param {
    name: "table-size",
    value_name: "ROWS",
    help: "Rows of each table",
    sort: Sort::Count { least: 1, most: 2_000_000_000, zero: "" },
    default: "10000",
};

/// Rows of a range.
pub(crate) const RANGE_SIZE: Param = Param {
    name: "range-size",
    value_name: "ROWS",
    help: "Rows of each range that read-only and read-write read",
    sort: Sort::Count { least: 1, most: 1_000_000, zero: "" },
    default: "100",
};

/// How rows are drawn. What is called `key` is kept out of files as a secret; several of them are not.
pub(crate) const KEYS: Param = Param {
    name: "keys",
    value_name: "KIND",
    help: "How rows are drawn: special (the default of sysbench 1.0: 75 % fall into 1 % of the rows), uniform (that of 1.1), \
           gaussian, pareto (h = 0.2) or zipfian (exponent 0.8)",
    sort: Sort::Choice(&["special", "uniform", "gaussian", "pareto", "zipfian"]),
    default: "special",
};

/// Whether several statements are one transaction.
pub(crate) const TRANSACTIONS: Param = Param {
    name: "transactions",
    value_name: "ON|OFF",
    help: "Whether read-only, read-write and write-only stand between BEGIN and COMMIT; off: each statement is its own \
           transaction",
    sort: Sort::Switch,
    default: "on",
};

/// Whether statements are prepared.
pub(crate) const PREPARED: Param = Param {
    name: "prepared",
    value_name: "ON|OFF",
    help: "Whether statements are prepared once on each connection; off: each is sent as a text with its values in it",
    sort: Sort::Switch,
    default: "on",
};

/// Whether each transaction has a connection of its own.
pub(crate) const RECONNECT: Param = Param::switch("reconnect", "A new connection for each transaction");

/// Own SQL.
pub(crate) const SCRIPT: Param = Param {
    name: "script",
    value_name: "FILE",
    help: "Own SQL instead of --op: statements that end with ';'. The whole file is one transaction of the report; '-- name: NAME' \
           begins another one, '-- weight: N' behind it says how often it is chosen, and '-- set: NAME = VALUE' draws a value \
           once for it. {NAME}, the variables of --template and the columns of --script-data stand for values, which are \
           parameters of prepared statements",
    sort: Sort::Sent("send to the targets, and carry out there, the SQL of the file"),
    default: "",
};

/// Values for own SQL.
pub(crate) const SCRIPT_DATA: Param = Param {
    name: "script-data",
    value_name: "FILE.csv",
    help: "Values for --script: the first line names the columns, and each transaction takes the next row",
    sort: Sort::Sent("send to the targets values of the file"),
    default: "",
};

/// Which own SQL it has to be.
pub(crate) const SCRIPT_SHA256: Param = Param {
    name: "script-sha256",
    value_name: "DIGEST",
    help: "Refuse a --script whose SHA-256 is another one (behind a '+' that of --script-data); `duel rerun` and `duel why` hold a \
           run to the files that it has read",
    sort: Sort::Words,
    default: "none",
};

/// Whether what may be tried again is.
pub(crate) const RETRY: Param = Param {
    name: "retry",
    value_name: "ON|OFF",
    help: "Begin a transaction again within its op after a deadlock, a serialization failure or a duplicate key, as sysbench \
           does, up to 100 times; off: it failed",
    sort: Sort::Switch,
    default: "on",
};

/// Sizes of the cache that rates are predicted for.
pub const CACHE_SIZES: Param = Param {
    name: "cache-size",
    value_name: "SIZE,...",
    help: "Also predict the rate with a cache for blocks of these sizes, such as 1G,4G, from what the run counts: of MySQL and MariaDB \
           on this machine (innodb_buffer_pool_size), for point-select",
    sort: Sort::Words,
    default: "none",
};

/// Settings of duel's own sessions.
pub(crate) const SESSION: Param = Param {
    name: "set",
    value_name: "NAME=VALUE,...",
    help: "Settings of duel's own sessions on all targets, as by SET, such as synchronous_commit=off,work_mem=64MB. Others of the \
           server's clients do not notice",
    sort: Sort::Assignments,
    default: "",
};
