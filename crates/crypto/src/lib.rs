//! Crypto libraries as a kind of work: `duel openssl:PATH openssl:PATH2 --op aes-256-gcm --block 16k`.
//!
//! Each lane is a child process: a library that crashes, hangs or writes where it should not hurts that child alone. The
//! parent orders batches of ops, and the child takes its own time. [`child::main`] is what a child of ours does; a program of
//! the user (`exec:`) does the same by the protocol that `child_process` describes.

pub mod child;
mod child_process;
mod engine;
mod kernel;
mod kind;
pub mod known;
mod library;
mod mask;
pub mod ops;
mod schema;
mod work;

pub use kind::{Crypto, lacks};
pub use schema::{BLOCK, CHUNK, DIRECTION, MASK, OP, PARAMS, RENEW, SCHEMA, counter, failure};
