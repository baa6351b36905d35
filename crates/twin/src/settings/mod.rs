//! One thing set otherwise, in the words of the server's own program: other arguments, and other files in the place of those
//! that its configuration is made of. The server's own files are only read.

mod apache;
mod nginx;
mod nginx_syntax;
mod reading;

use crate::{NoTwin, ServerProcess};
use std::ffi::OsString;
use std::path::PathBuf;

/// What is to be set otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    /// More workers.
    MoreWorkers,
    /// Responses sent in large pieces: by `sendfile`, through large buffers, in large TLS records.
    LargePieces,
    /// No limit on bytes, requests and connections.
    NoLimits,
}

/// What a twin is given so that it is set up otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    /// All of its arguments, without the program's name.
    pub(crate) arguments: Vec<OsString>,
    /// Files that stand in the place of others.
    pub(crate) files: Vec<EditedFile>,
    /// What differs, in words.
    pub(crate) told: String,
}

/// A file that stands in the place of another one, whose owner and mode it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditedFile {
    /// Where the server finds it.
    pub(crate) path: PathBuf,
    pub(crate) content: Vec<u8>,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Permission bits.
    pub(crate) mode: u32,
}

/// What makes this setting of a server's twin.
///
/// # Errors
///
/// Why it cannot be made: another program, a configuration that is not understood or cannot be read, one that asks for it
/// already.
pub(crate) fn edit(server: &ServerProcess, setting: Setting) -> Result<Edit, NoTwin> {
    let program = server.executable.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match program.as_str() {
        "nginx" | "openresty" | "nginx-debug" => nginx::edit(server, setting),
        "apache2" | "httpd" => apache::edit(server, setting),
        _ => Err(NoTwin::new(format!(
            "not available: how to set {} otherwise is not known, only nginx and Apache",
            duel_model::sanitize_line(&program)
        ))),
    }
}

/// How many workers are more: one for each CPU that the server may use, and where there are as many, four times as many,
/// for those that mostly wait.
fn more_workers(now: usize, cpus: usize) -> usize {
    /// Beyond this many, workers cost memory and gain nothing.
    const MOST: usize = 256;
    if now < cpus { cpus } else { (4 * now).clamp(1, MOST.max(now)) }
}

#[cfg(test)]
mod tests {
    use super::more_workers;

    #[test]
    fn more_workers_are_never_fewer() {
        assert_eq!(more_workers(1, 8), 8);
        assert_eq!(more_workers(8, 8), 32);
        assert_eq!(more_workers(100, 8), 256);
        assert_eq!(more_workers(1000, 8), 1000);
    }
}
