//! What the kernel tells of a running process, in `/proc/PID` (Linux): its mappings, its environment, whose it is, who
//! started it, and whether it is confined to less than we are. Only reads. Everything but the kernel's own words is hostile:
//! a process chooses its name, its arguments, its environment and the names of its files.

mod confinement;
mod environment;
mod family;
mod files;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod mappings;
mod open_files;
mod status;
mod steady;

pub use confinement::confinement;
pub use environment::{MASK_VARIABLES, variables};
pub use family::{children, descendants, holds_socket, listens_with, parent};
pub use files::{ProcessError, ProcessFiles};
pub use mappings::{FileId, Mapping, libcryptos, mappings, start_of};
pub use open_files::{FoundFile, OpenFile, open_files};
pub use status::{Status, User};
pub use steady::steady;
