//! What crypto work declares of itself.

use crate::ops;
use duel_model::{Compared, Declaration, Noun, Param, Parts, Schema, Sort};

/// What ops of a crypto library declare of themselves.
pub const SCHEMA: Schema = Schema {
    kind: "crypto",
    targets: "Crypto libraries",
    op: Noun { one: "op", many: "ops" },
    lane: Noun { one: "thread", many: "threads" },
    shared_lane: Noun { one: "thread", many: "threads" },
    phases: &[],
    failures: failure::ALL,
    bytes: "bytes processed",
    facts_title: "Libraries",
    facts: FACTS,
    params: PARAMS,
    runs_targets: true,
    reaches: &[],
    threads: duel_model::Threads::Beside,
    depth: None,
    replaces: None,
    counters: counter::ALL,
    parts: Some(Parts { whole: &BLOCK, part: &CHUNK, whole_noun: "block", part_noun: "call" }),
    held_back: None,
    streamed: None,
}
.sound();

/// What a child tells of its library. What it found of the CPU and how it was compiled is for the diagnosis: long, and in no
/// table.
const FACTS: &[Declaration] = &[
    Declaration { is_held: true, ..Declaration::listed("crypto.version", "version") },
    Declaration::listed("crypto.library", "library"),
    Declaration::listed("crypto.driver", "driver"),
    Declaration::listed("crypto.module", "module"),
    Declaration::listed("crypto.priority", "priority"),
    Declaration::listed("crypto.mask", "CPU mask"),
    // Fast ops are many in a batch; there is no longest op in it.
    Declaration {
        compared: Compared::Never,
        ..Declaration::listed("crypto.batch", "ops that share a time, their mean")
    },
    Declaration::unlisted("crypto.cpu"),
    Declaration::unlisted("crypto.compiler"),
];

/// How ops fail.
pub mod failure {
    use duel_model::Meaning;

    duel_model::in_order! { FailureKind:
        /// The child process did not answer in time.
        TIMEOUT = "timeout", Meaning::UnansweredInTime;
        /// The child process ended, or its library crashed it.
        CRASHED = "crashed", Meaning::Lost;
        /// The child process said something that it should not.
        NONSENSE = "nonsense", Meaning::Broken;
        /// The library refused an op.
        REFUSED = "refused", Meaning::Rejected;
        /// The child process could not be started.
        NOT_STARTED = "not-started", Meaning::Ours;
    }
}

/// What is counted beside.
pub mod counter {
    duel_model::in_order! { Counter:
        /// CPU time of the threads of children, while they did ops.
        CPU = "cpu_ns", "CPU time";
    }
}

/// Its settings, in the order in which they are shown.
pub const PARAMS: &[Param] = &[OP, BLOCK, CHUNK, DIRECTION, RENEW, MASK];

/// What is done.
pub const OP: Param = Param {
    name: "op",
    value_name: "NAME",
    help: "What is done, such as aes-256-gcm, sha256, rsa-2048 (which signs), rsa-2048-verify, x25519 or random; a name that does not \
           exist lists all. A list makes a factor",
    sort: Sort::Choice(ops::NAMES),
    default: "aes-256-gcm",
};

/// Bytes of an op.
pub const BLOCK: Param = Param {
    name: "block",
    value_name: "BYTES",
    help: "Bytes of each op, for what works on bytes; a list or a range such as 16..16k makes a factor",
    sort: Sort::Bytes { least: 1, most: 1 << 20, zero: "" },
    default: "16384",
};

/// Bytes of a call.
pub const CHUNK: Param = Param {
    name: "chunk",
    value_name: "BYTES",
    help: "Hand each block over in calls of so many bytes; a list makes a factor. 0: the whole block in one call",
    sort: Sort::Bytes { least: 0, most: 1 << 20, zero: "whole block" },
    default: "0",
};

/// Encrypt or decrypt.
pub const DIRECTION: Param = Param {
    name: "direction",
    value_name: "WAY",
    help: "Of ciphers: encrypt or decrypt",
    sort: Sort::Choice(&["encrypt", "decrypt"]),
    default: "encrypt",
};

/// What each op sets up anew. It is not called `key`: values of what is called so are kept out of files as secrets.
pub const RENEW: Param = Param {
    name: "renew",
    value_name: "WHAT",
    help: "What each op of a cipher sets up anew: nothing (all ops are one stream), nonce (each op is a message with a nonce and, \
           of an AEAD, a tag, as a TLS record is), key (the same with a key of its own) or speed (as openssl speed -evp does \
           it: key for GCM, nothing for others)",
    sort: Sort::Choice(&["speed", "nothing", "nonce", "key"]),
    default: "speed",
};

/// Features of the CPU that are hidden from the library.
pub const MASK: Param = Param {
    name: "mask",
    value_name: "FEATURES",
    help: "Hide features of the CPU from an OpenSSL library, such as aes,clmul,vaes",
    sort: Sort::Words,
    default: "none",
};
