//! Where a server has its libraries from, and where it could have them from instead.

use duel_process::Mapping;
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

/// The `LD_LIBRARY_PATH` with which a new process maps the same libraries, where some come from folders that the loader
/// does not look into by itself. Modules, whose names do not begin with `lib`, are found by the program.
pub(crate) fn path_of(mapped: &[Mapping]) -> Option<OsString> {
    let system: Vec<PathBuf> = system_folders().collect();
    let mut folders: Vec<&Path> = Vec::new();
    for file in mapped.iter().map(|mapping| &mapping.path).filter(|file| stem(file).is_some()) {
        let Some(folder) = file.parent() else { continue };
        if !system.iter().any(|known| known == folder) && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    (!folders.is_empty()).then(|| join(&folders))
}

/// A library's name without its version; `None` of what is no library by its name.
pub(crate) fn stem(file: &Path) -> Option<&[u8]> {
    let name = file.file_name()?.as_bytes();
    let end = name.windows(3).position(|part| part == b".so")?;
    name.starts_with(b"lib").then_some(&name[..end])
}

/// The system's own library that can stand in the place of this libcrypto. `root` is where the server sees its files, and
/// `program` leads to what it executes. Its libcrypto is not opened: by its name it may be another file at any moment.
///
/// # Errors
///
/// Why there is none, as the end of a sentence.
pub(crate) fn the_system_s(libcrypto: &Path, root: &Path, program: &Path) -> Result<PathBuf, String> {
    let folder = libcrypto.parent().unwrap_or(Path::new("/"));
    if system_folders().any(|known| known == folder) {
        return Err("the libcrypto that it maps is the system's own".to_owned());
    }
    let name = libcrypto.file_name().unwrap_or_default();
    let names = || shortened(name);
    let inside = |path: &Path| root.join(path.strip_prefix("/").unwrap_or(path));
    let kind = elf_kind(program);
    let found = system_folders().flat_map(|folder| names().map(move |name| folder.join(name))).find(|candidate| {
        let place = inside(candidate);
        place.is_file() && kind.is_some() && elf_kind(&place) == kind
    });
    found.ok_or_else(|| format!("the system has no other {}", duel_model::sanitize_line(&name.to_string_lossy())))
}

/// A library that a twin has from elsewhere than its server, of those that both map. `mapped` is what the twin maps.
pub(crate) fn from_elsewhere<'a>(mapped: &'a [PathBuf], server: &'a [Mapping]) -> Option<(&'a Path, &'a Path)> {
    mapped.iter().find_map(|of_twin| {
        let stem_of_twin = stem(of_twin)?;
        let same_name = || server.iter().map(|mapping| &mapping.path).filter(|path| stem(path) == Some(stem_of_twin));
        // One may be mapped twice in two versions.
        let is_known = same_name().any(|path| path == of_twin);
        same_name().next().filter(|_| !is_known).map(|path| (of_twin.as_path(), path.as_path()))
    })
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
7f0000001000-7f0000002000 r-xp 00001000 08:01 22                         /opt/my libs/libcrypto.so.3\n\
7f0000001000-7f0000002000 r-xp 00001000 08:01 23                         /opt/my libs/libssl.so.3\n\
7f0000003000-7f0000004000 r-xp 00001000 08:01 33                         /usr/lib/libz.so.1 (deleted)\n\
7f0000003000-7f0000004000 r-xp 00001000 08:01 33                         /opt/nginx/modules/ngx_x_module.so\n";

    #[test]
    fn what_is_mapped_tells_where_libraries_come_from() {
        let mapped = duel_process::mappings(MAPS);
        assert_eq!(path_of(&mapped), Some("/opt/my libs".into()));
        assert_eq!(path_of(&mapped[..1]), None);
    }

    #[test]
    fn a_library_from_elsewhere_is_seen() {
        let server = duel_process::mappings(MAPS);
        let of = |paths: &[&str]| {
            let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
            from_elsewhere(&paths, &server).map(|(twin, server)| (twin.to_owned(), server.to_owned()))
        };
        assert_eq!(of(&["/opt/my libs/libcrypto.so.3", "/usr/lib/libz.so.1", "/usr/lib/libnss_x.so.2"]), None);
        let other = Some(("/opt/z/libz.so.1".into(), "/usr/lib/libz.so.1".into()));
        assert_eq!(of(&["/opt/my libs/libssl.so.3", "/opt/z/libz.so.1"]), other);
    }

    #[test]
    fn the_system_s_library_is_found_by_name_and_kind() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, kind: u8| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut head = b"\x7fELF\x02\x01\x01".to_vec();
            head.resize(20, kind);
            std::fs::write(path, head).unwrap();
        };
        let of = |path: &str| the_system_s(Path::new(path), root.path(), &root.path().join("program"));
        put("usr/lib64/libcrypto.so.3", 62);
        assert!(of("/opt/ssl/libcrypto.so.3").is_err(), "what kind of library is wanted is not known");
        std::fs::remove_file(root.path().join("usr/lib64/libcrypto.so.3")).unwrap();
        put("program", 62);
        assert!(of("/opt/ssl/libcrypto.so.3").unwrap_err().contains("no other libcrypto.so.3"));
        // For another machine.
        put("usr/lib64/libcrypto.so.3", 3);
        assert!(of("/opt/ssl/libcrypto.so.3").is_err());
        put("usr/lib/libcrypto.so.3", 62);
        let found = PathBuf::from("/usr/lib/libcrypto.so.3");
        assert_eq!(of("/opt/ssl/libcrypto.so.3"), Ok(found.clone()));
        assert_eq!(of("/opt/ssl/libcrypto.so.3.0.1"), Ok(found));
        assert!(of("/usr/lib/libcrypto.so.3").unwrap_err().contains("system's own"));
    }

    proptest::proptest! {
        #[test]
        fn no_mappings_make_it_stumble(maps in "([0-9a-f-]{0,9} ?|r-xp |/libcrypto.so|\n| ){0,40}") {
            let mapped = duel_process::mappings(maps.as_bytes());
            let paths: Vec<PathBuf> = mapped.iter().map(|mapping| mapping.path.clone()).collect();
            let _ = (path_of(&mapped), from_elsewhere(&paths, &mapped));
        }
    }
}
