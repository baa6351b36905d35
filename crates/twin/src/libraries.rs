//! Where a server has its libraries from, and where it could have them from instead.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Where the loader looks when it is told nothing (ld.so(8)), and where distributions have their libraries.
const SYSTEM_FOLDERS: [&str; 6] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib", "/lib/MULTIARCH", "/usr/lib/MULTIARCH"];

fn system_folders() -> impl Iterator<Item = PathBuf> {
    let multiarch = format!("{}-linux-gnu", std::env::consts::ARCH);
    // Names with a version of their own come first: where both exist, the other is for other programs.
    SYSTEM_FOLDERS.iter().rev().map(move |folder| PathBuf::from(folder.replace("MULTIARCH", &multiarch)))
}

/// Files that are mapped to be executed, once each, as `/proc/PID/maps` names them; ` (deleted)` stays at the end.
pub(crate) fn mapped(maps: &[u8]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for line in maps.split(|&byte| byte == b'\n') {
        // Range, rights, offset, device, inode; then the path, which may have spaces.
        let mut rest = line;
        let mut rights: &[u8] = b"";
        for field in 0..5 {
            let Some(end) = rest.iter().position(|&byte| byte == b' ') else { break };
            if field == 1 {
                rights = &rest[..end];
            }
            rest = rest[end..].trim_ascii_start();
        }
        let path = PathBuf::from(OsStr::from_bytes(rest));
        if rights.get(2) == Some(&b'x') && rest.starts_with(b"/") && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// The TLS libraries among mapped files.
pub(crate) fn of_tls(mapped: &[PathBuf]) -> Vec<PathBuf> {
    mapped.iter().filter(|path| is(path, "libcrypto") || is(path, "libssl")).cloned().collect()
}

/// The libcrypto among them.
pub(crate) fn libcrypto(mapped: &[PathBuf]) -> Option<&PathBuf> {
    mapped.iter().find(|path| is(path, "libcrypto"))
}

fn is(path: &Path, name: &str) -> bool {
    let file = path.file_name().unwrap_or_default().as_bytes();
    file.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b".so"))
}

/// The `LD_LIBRARY_PATH` with which a new process maps the same libraries, where some come from folders that the loader
/// does not look into by itself. Modules, whose names do not begin with `lib`, are found by the program.
pub(crate) fn path_of(mapped: &[PathBuf]) -> Option<OsString> {
    let system: Vec<PathBuf> = system_folders().collect();
    let mut folders: Vec<&Path> = Vec::new();
    for file in mapped.iter().filter(|file| is_library(file)) {
        let Some(folder) = file.parent() else { continue };
        if !system.iter().any(|known| known == folder) && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    (!folders.is_empty()).then(|| join(&folders))
}

fn is_library(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().as_bytes();
    name.starts_with(b"lib") && name.windows(3).any(|part| part == b".so")
}

/// The `LD_LIBRARY_PATH` with which a new process maps the system's own libcrypto, and that library; everything else
/// comes from where it came from. `root` is where the server sees its files.
///
/// # Errors
///
/// Why there is none, as the end of a sentence.
pub(crate) fn with_the_system_s(
    libcrypto: &Path,
    before: Option<&OsStr>,
    root: &Path,
) -> Result<(OsString, PathBuf), String> {
    let folder = libcrypto.parent().unwrap_or(Path::new("/"));
    if system_folders().any(|known| known == folder) {
        return Err("the libcrypto that it maps is the system's own".to_owned());
    }
    let name = libcrypto.file_name().unwrap_or_default();
    let names = || shortened(name);
    let inside = |path: &Path| root.join(path.strip_prefix("/").unwrap_or(path));
    let kind = elf_kind(&inside(libcrypto));
    let found = system_folders().flat_map(|folder| names().map(move |name| folder.join(name))).find(|candidate| {
        let place = inside(candidate);
        place.is_file() && kind.is_some() && elf_kind(&place) == kind
    });
    let Some(found) = found else {
        return Err(format!("the system has no other {}", duel_model::sanitize_line(&name.to_string_lossy())));
    };
    // Behind the others, so that no other library than those of the folder left out comes from elsewhere. It is in front
    // of what the program's own file names (DT_RUNPATH).
    let others = before.map(|before| before.as_bytes().split(|&byte| byte == b':')).into_iter().flatten();
    let mut folders: Vec<&Path> = others
        .map(|entry| Path::new(OsStr::from_bytes(entry)))
        .filter(|entry| *entry != folder && *entry != Path::new(""))
        .collect();
    folders.extend(found.parent());
    Ok((join(&folders), found))
}

/// A library's name, and the same with ever fewer of its version's numbers: what is mapped is called by the name of the
/// file that a link led to, and the loader looks for the link.
fn shortened(name: &OsStr) -> impl Iterator<Item = OsString> {
    let name = name.as_bytes().to_vec();
    let ends = (0..=name.len()).rev().filter(|&end| end == name.len() || name[end] == b'.');
    let names: Vec<OsString> = ends
        .map(|end| &name[..end])
        .take_while(|name| name.windows(4).any(|part| part == b".so."))
        .map(|name| OsString::from_vec(name.to_vec()))
        .collect();
    names.into_iter()
}

/// Class, byte order and machine of an ELF file: a library of another kind would not be loaded.
fn elf_kind(path: &Path) -> Option<Vec<u8>> {
    let mut head = [0; 20];
    File::open(path).ok()?.read_exact(&mut head).ok()?;
    head.starts_with(b"\x7fELF").then(|| [&head[4..6], &head[18..20]].concat())
}

fn join(folders: &[&Path]) -> OsString {
    let parts: Vec<&[u8]> = folders.iter().map(|folder| folder.as_os_str().as_bytes()).collect();
    OsString::from_vec(parts.join(&b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &[u8] = b"\
55d0c0000000-55d0c0001000 r-xp 00000000 08:01 11                         /usr/sbin/nginx\n\
7f0000000000-7f0000001000 r--p 00000000 08:01 22                         /opt/my libs/libcrypto.so.3\n\
7f0000001000-7f0000002000 r-xp 00001000 08:01 22                         /opt/my libs/libcrypto.so.3\n\
7f0000001000-7f0000002000 r-xp 00001000 08:01 23                         /opt/my libs/libssl.so.3\n\
7f0000003000-7f0000004000 r-xp 00001000 08:01 33                         /usr/lib/libz.so.1 (deleted)\n\
7f0000003000-7f0000004000 r-xp 00001000 08:01 33                         /opt/nginx/modules/ngx_x_module.so\n\
7f0000009000-7f000000a000 rw-p 00000000 00:00 0                          [heap]\n";

    #[test]
    fn what_is_mapped_tells_where_libraries_come_from() {
        let mapped = mapped(MAPS);
        assert_eq!(mapped.len(), 5);
        assert_eq!(libcrypto(&mapped), Some(&PathBuf::from("/opt/my libs/libcrypto.so.3")));
        assert_eq!(of_tls(&mapped).len(), 2);
        assert_eq!(path_of(&mapped), Some("/opt/my libs".into()));
        assert_eq!(path_of(&mapped[..1]), None);
    }

    #[test]
    fn one_folder_is_exchanged_for_the_system_s() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, kind: u8| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut head = b"\x7fELF\x02\x01\x01".to_vec();
            head.resize(20, kind);
            std::fs::write(path, head).unwrap();
        };
        let exchange = |before: Option<&str>| {
            with_the_system_s(Path::new("/opt/ssl/libcrypto.so.3"), before.map(OsStr::new), root.path())
        };
        put("opt/ssl/libcrypto.so.3", 62);
        assert!(exchange(None).unwrap_err().contains("no other libcrypto.so.3"));
        // For another machine.
        put("usr/lib64/libcrypto.so.3", 3);
        assert!(exchange(None).is_err());
        put("usr/lib/libcrypto.so.3", 62);
        let found = PathBuf::from("/usr/lib/libcrypto.so.3");
        assert_eq!(exchange(None).unwrap(), ("/usr/lib".into(), found.clone()));
        assert_eq!(exchange(Some("/opt/z:/opt/ssl:")).unwrap(), ("/opt/z:/usr/lib".into(), found));
        let longer = with_the_system_s(Path::new("/opt/ssl/libcrypto.so.3.0.1"), None, root.path());
        assert!(longer.is_err(), "the file that is mapped is not there, so its kind is not known");
        put("opt/ssl/libcrypto.so.3.0.1", 62);
        let longer = with_the_system_s(Path::new("/opt/ssl/libcrypto.so.3.0.1"), None, root.path());
        assert_eq!(longer.unwrap().1, PathBuf::from("/usr/lib/libcrypto.so.3"));
        let own = with_the_system_s(Path::new("/usr/lib/libcrypto.so.3"), None, root.path());
        assert!(own.unwrap_err().contains("system's own"));
    }

    proptest::proptest! {
        #[test]
        fn no_mappings_make_it_stumble(maps in "([0-9a-f-]{0,9} ?|r-xp |/libcrypto.so|\n| ){0,40}") {
            let mapped = mapped(maps.as_bytes());
            let _ = (path_of(&mapped), of_tls(&mapped));
        }
    }
}
