//! Apache takes directives as arguments (`-c`), which it reads behind its configuration; of those that are set twice the last
//! one holds.

use super::{Edit, Setting};
use crate::{NoTwin, ServerProcess};
use std::ffi::OsString;

/// What Apache itself has where nothing is set, for each way in which it is built (`mpm_common`; Apache's documentation of
/// `MaxRequestWorkers` and `ServerLimit`). Servers that start at once take the first load.
const DEFAULT_WORKERS: [&str; 12] = [
    "<IfModule mpm_prefork_module>",
    "ServerLimit 256",
    "MaxRequestWorkers 256",
    "StartServers 64",
    "</IfModule>",
    "<IfModule !mpm_prefork_module>",
    "ServerLimit 16",
    "ThreadsPerChild 25",
    "MaxRequestWorkers 400",
    "StartServers 4",
    "MaxSpareThreads 400",
    "</IfModule>",
];

const LARGE_PIECES: [&str; 2] = ["EnableSendfile On", "EnableMMAP On"];

/// See [`super::edit`].
pub(super) fn edit(server: &ServerProcess, setting: Setting) -> Result<Edit, NoTwin> {
    let (directives, told): (&[&str], &str) = match setting {
        Setting::MoreWorkers => (&DEFAULT_WORKERS, "with Apache's default number of workers, 256 or 400"),
        Setting::LargePieces => {
            (&LARGE_PIECES, "with EnableSendfile On and EnableMMAP On at the end of its configuration")
        }
        Setting::NoLimits => {
            return Err(NoTwin::new(
                "not available: Apache's limits are filters of its modules, and no setting takes them away",
            ));
        }
    };
    let further = directives.iter().flat_map(|directive| [OsString::from("-c"), OsString::from(directive)]);
    Ok(Edit {
        arguments: server.arguments.iter().cloned().chain(further).collect(),
        files: Vec::new(),
        told: told.to_owned(),
    })
}
