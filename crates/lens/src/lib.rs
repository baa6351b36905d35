//! The lens: one libcrypto, measured alone.
//!
//! A server's TLS may be slow because its libcrypto does not use what the CPU offers. Over the network that can only be
//! guessed at; beside the server it can be found out. The very file that the server maps is loaded into a child process
//! of its own and measured with the CPU's features as they are and with some of them masked (OpenSSL reads a mask from
//! its environment). A mask that changes nothing takes nothing away: then the features were not used before. And from the
//! running server's memory is read which features its own libcrypto found when it was loaded.
//!
//! [`measure`] runs children and judges what they measured. [`child`] is what they do. [`speed`] does the same on a host
//! where nothing of ours may be installed, with the `openssl speed` that is there.

mod by_hand;
mod capabilities;
pub mod child;
mod departure;
mod elf;
mod features;
mod judge;
mod libcrypto;
mod line;
mod mapped;
mod mask;
mod memory;
mod order;
mod parent;
mod process;
mod rates;
mod segments;
mod spawn;
pub mod speed;
mod table;
mod vector;
mod work;

pub use duel_process::FileId;
pub use mask::Architecture;
pub use order::{ChildCommand, LensError, LensOrder, RunAs, ServerProcess};
pub use parent::measure;
pub use process::{of_process, own_environment};
pub use table::table;
