//! File systems, files and block devices as a kind of work: `duel /mnt/xfs /mnt/ext4 --op randwrite --block 4k`.
//!
//! A target is a folder, in which a work file of our own is made and removed; a file, which is read; or a device. Ops go
//! through io_uring where the kernel allows it (`uring`), else each blocks a thread (`calls`).

#[cfg(target_os = "linux")]
mod buffer;
#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod content;
#[cfg(target_os = "linux")]
mod destroy;
#[cfg(target_os = "linux")]
mod device;
#[cfg(target_os = "linux")]
mod errors;
#[cfg(target_os = "linux")]
mod facts;
#[cfg(target_os = "linux")]
mod file_ops;
#[cfg(target_os = "linux")]
mod file_set;
#[cfg(target_os = "linux")]
mod file_tables;
#[cfg(target_os = "linux")]
mod image;
#[cfg(target_os = "linux")]
mod kind;
#[cfg(not(target_os = "linux"))]
#[path = "kind_elsewhere.rs"]
mod kind;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
mod place;
#[cfg(target_os = "linux")]
mod ring;
mod schema;
#[cfg(target_os = "linux")]
mod settings;
#[cfg(target_os = "linux")]
mod signature;
#[cfg(target_os = "linux")]
mod tables;
#[cfg(target_os = "linux")]
mod target;
mod tell;
#[cfg(target_os = "linux")]
mod uring;
#[cfg(target_os = "linux")]
mod walk;
#[cfg(target_os = "linux")]
mod watch;
#[cfg(target_os = "linux")]
mod work_file;

#[cfg(target_os = "linux")]
pub use file_tables::{FileRate, FileTables, FileTablesPlan, Throughput, file_tables};
#[cfg(target_os = "linux")]
pub use image::{Bad, Holes, Image, ImageEnd, ImagePlan, Stopped, Written};
pub use kind::Disk;
pub use schema::{
    ALIGN, BLOCK, COLD, COMPRESSIBILITY, DEPTH, DESTROY, DIRECT, ENGINE, FILE_ORDER, FILE_SIZE, FILES, FLUSH, FOLDERS,
    MIX, OP, PARAMS, READ_AHEAD, SCHEMA, SIZE, counter, fact, failure, phase,
};
#[cfg(target_os = "linux")]
pub use tables::{Seeks, Tables, Transfer, tables};
pub use tell::tell_by;
#[cfg(target_os = "linux")]
pub use work_file::remove_left_behind;
