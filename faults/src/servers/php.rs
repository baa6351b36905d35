//! PHP-FPM behind nginx: what an application in a language with a process for each request is like.

use crate::twin::Handler;
use std::path::{Path, PathBuf};

/// The script. It takes its settings from what nginx tells it.
pub(super) const PAGE: &str = include_str!("page.php");

/// Requests that are served at a time: as many as any case has connections.
const PROCESSES: u32 = 64;

/// Where it is installed. Its name ends with its version, which differs from one system to the next.
pub(crate) fn program() -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let is_ours = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let version = name.strip_prefix("php-fpm");
        version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.')) && file.is_file()
    };
    std::env::split_paths(&path)
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flat_map(|files| files.flatten().map(|file| file.path()))
        .filter(is_ours)
        .max()
}

/// Its configuration.
pub(super) fn config(folder: &Path, listen: &str, at_a_time: Option<u32>) -> String {
    format!(
        "[global]\nerror_log = {}/fpm.log\ndaemonize = no\n\
         [pages]\nuser = root\ngroup = root\nlisten = {listen}\nlisten.backlog = 4096\n\
         pm = static\npm.max_children = {}\n",
        folder.display(),
        at_a_time.unwrap_or(PROCESSES)
    )
}

/// What [`PAGE`] is told with each request.
pub(super) fn told(file: &Path, handler: Handler) -> [(&'static str, String); 2] {
    [("FILE", file.display().to_string()), ("HANDLER", handler.word())]
}
