//! Where the archive is when nobody says.

use std::ffi::OsString;
use std::path::PathBuf;

/// The archive's file by the environment: `$DUEL_ARCHIVE`, else `duel/runs.sqlite` in `$XDG_DATA_HOME`, else in the
/// user's data folder (`~/.local/share`, on macOS `~/Library/Application Support`).
///
/// `None` when there is no home either: then the user has to name a file. An empty variable counts as unset, and so
/// does a relative `$XDG_DATA_HOME`, as its specification demands.
pub fn default_path(env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    place(env, cfg!(target_os = "macos"))
}

fn place(env: impl Fn(&str) -> Option<OsString>, macos: bool) -> Option<PathBuf> {
    let set = |name| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(file) = set("DUEL_ARCHIVE") {
        return Some(file);
    }
    let data = set("XDG_DATA_HOME").filter(|folder| folder.is_absolute()).or_else(|| {
        let home = set("HOME")?;
        Some(home.join(if macos { "Library/Application Support" } else { ".local/share" }))
    })?;
    Some(data.join("duel").join("runs.sqlite"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(variables: &[(&str, &str)], macos: bool) -> Option<String> {
        let env = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value));
        place(env, macos).map(|path| path.to_str().unwrap().to_owned())
    }

    #[test]
    fn the_nearest_wish_wins() {
        let all = [("DUEL_ARCHIVE", "here.db"), ("XDG_DATA_HOME", "/data"), ("HOME", "/home/u")];
        assert_eq!(placed(&all, false).as_deref(), Some("here.db"));
        assert_eq!(placed(&all[1..], false).as_deref(), Some("/data/duel/runs.sqlite"));
        assert_eq!(placed(&all[2..], false).as_deref(), Some("/home/u/.local/share/duel/runs.sqlite"));
        assert_eq!(placed(&all[2..], true).as_deref(), Some("/home/u/Library/Application Support/duel/runs.sqlite"));
        assert_eq!(placed(&[], false), None);
    }

    #[test]
    fn empty_and_relative_variables_count_as_unset() {
        let variables = [("DUEL_ARCHIVE", ""), ("XDG_DATA_HOME", "data"), ("HOME", "/h")];
        assert_eq!(placed(&variables, false).as_deref(), Some("/h/.local/share/duel/runs.sqlite"));
        assert_eq!(placed(&[("HOME", "")], false), None);
    }
}
