//! Apache takes directives as arguments (`-c`), which it reads behind its configuration; of those that are set twice the last
//! one holds, but not against one in a section.

use super::{Edit, Setting};
use crate::{NoTwin, ServerProcess};
use duel_process::children;
use std::ffi::OsString;

/// See [`super::edit`].
pub(super) fn edit(server: &ServerProcess, setting: Setting) -> Result<Edit, NoTwin> {
    let (directives, told) = match setting {
        Setting::MoreWorkers | Setting::WorkersForAllCpus => more_workers(children(server.pid).len()),
        Setting::LargePieces => {
            let directives = ["EnableSendfile On", "EnableMMAP On"].map(str::to_owned);
            (directives.to_vec(), "with EnableSendfile On and EnableMMAP On behind its configuration".to_owned())
        }
        Setting::NoLimits => {
            return Err(NoTwin::new(
                "not available: Apache's limits are filters of its modules, and no setting takes them away",
            ));
        }
    };
    let further = directives.into_iter().flat_map(|directive| [OsString::from("-c"), OsString::from(directive)]);
    Ok(Edit {
        arguments: server.arguments.iter().cloned().chain(further).collect(),
        files: Vec::new(),
        told,
        may_not_hold: true,
    })
}

/// As many processes as a server of so many, and idle ones are kept; how many threads each has stays. Apache lowers
/// `MaxRequestWorkers` to what that many processes have (its documentation of `ServerLimit`; AH00511 and AH00515).
fn more_workers(processes: usize) -> (Vec<String>, String) {
    /// What Apache has by itself where each request takes a process, and the most that it takes of anything.
    const USUAL: usize = 256;
    const MOST: usize = 20_000;
    let limit = (4 * processes).clamp(USUAL, MOST);
    let start = (4 * processes).clamp(4, 64);
    let directives = [
        "<IfModule mpm_prefork_module>".to_owned(),
        format!("ServerLimit {limit}"),
        format!("MaxRequestWorkers {limit}"),
        format!("StartServers {start}"),
        format!("MaxSpareServers {limit}"),
        "</IfModule>".to_owned(),
        "<IfModule !mpm_prefork_module>".to_owned(),
        format!("ServerLimit {limit}"),
        format!("MaxRequestWorkers {MOST}"),
        format!("StartServers {start}"),
        format!("MaxSpareThreads {MOST}"),
        "</IfModule>".to_owned(),
    ];
    (directives.to_vec(), format!("with ServerLimit {limit} and as many workers as {limit} processes have"))
}
