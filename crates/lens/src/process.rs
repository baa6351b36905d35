//! From a server's process to its libcrypto: which file it maps, with which environment and rights.

use crate::mappings::{Mapping, mappings};
use crate::order::{ChildCommand, LensError, LensOrder, RunAs, ServerProcess};
use duel_model::sanitize_line;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The variables that change what a libcrypto does or how the loader finds what it needs. `LD_PRELOAD` is not among them: it
/// would be loaded into our program, and what it puts in front of libcrypto is not libcrypto.
const CARRIED: [&str; 11] = [
    "OPENSSL_ia32cap",
    "OPENSSL_armcap",
    "OPENSSL_ppccap",
    "OPENSSL_s390xcap",
    "OPENSSL_riscvcap",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "OPENSSL_ENGINES",
    "OPENSSL_FIPS",
    "LD_LIBRARY_PATH",
    "GLIBC_TUNABLES",
];

/// Bytes of a file of `/proc/PID` that are read: those of `maps` of a process with 100,000 mappings.
const MOST_BYTES: u64 = 16 << 20;

/// What our own environment has that matters to a libcrypto.
pub fn own_environment() -> BTreeMap<OsString, OsString> {
    std::env::vars_os().filter(|(name, _)| is_carried(name)).collect()
}

/// The order for the libcrypto that a process maps (Linux), as that process runs it.
///
/// The child gets the rights of the process where they are not ours: who may choose a server's library and environment
/// must not have them run with ours.
///
/// # Errors
///
/// When the process is not there, may not be looked at, maps no libcrypto, or maps several.
pub fn of_process(pid: u32, child: ChildCommand) -> Result<LensOrder, LensError> {
    let place = PathBuf::from(format!("/proc/{pid}"));
    let refused = |what: &str, error: &io::Error| {
        LensError::Process(match error.kind() {
            io::ErrorKind::NotFound if !place.exists() => format!("there is no process {pid}"),
            io::ErrorKind::PermissionDenied => {
                format!("may not read {what} of process {pid}: run duel as that process's user or as root")
            }
            _ => format!("cannot read {what} of process {pid}: {error}"),
        })
    };
    let maps = read(&place.join("maps")).map_err(|error| refused("the mappings", &error))?;
    let environ = read(&place.join("environ")).map_err(|error| refused("the environment", &error))?;
    let mapped = the_libcrypto(&mapped_libcryptos(&maps), pid)?;
    let status = read(&place.join("status")).map_err(|error| refused("the owner", &error))?;
    let mut order = LensOrder::new(&mapped.path, child);
    order.environment = carried(&environ);
    order.run_as = run_as(owner(&status).ok_or_else(|| {
        LensError::Process(format!("cannot find out whose process {pid} is, so its library is not loaded"))
    })?);
    order.open_at = Some(file_of(pid, &mapped)?);
    order.server = Some(ServerProcess { pid, file: mapped.file });
    Ok(order)
}

fn the_libcrypto(found: &[Mapping], pid: u32) -> Result<Mapping, LensError> {
    match found {
        [one] => Ok(one.clone()),
        [] => Err(LensError::Process(format!(
            "process {pid} maps no libcrypto: it uses no TLS, or a TLS library that is part of the program (Go, rustls, \
             BoringSSL) or has another name"
        ))),
        several => {
            let paths: Vec<String> = several.iter().map(|m| sanitize_line(&m.path.to_string_lossy())).collect();
            Err(LensError::Process(format!("process {pid} maps several: {}; give one of them", paths.join(", "))))
        }
    }
}

/// Every file named libcrypto that is mapped, once.
fn mapped_libcryptos(maps: &[u8]) -> Vec<Mapping> {
    let mut found: Vec<Mapping> = Vec::new();
    for mapping in mappings(maps) {
        let name = mapping.name();
        let is_libcrypto = name.starts_with(b"libcrypto") && name.windows(3).any(|part| part == b".so");
        if is_libcrypto && found.iter().all(|known| known.file != mapping.file) {
            found.push(mapping);
        }
    }
    found
}

/// Where the very file can be opened: by its name as the process sees it (it may live in a container), else by its mapping,
/// which works though the file is deleted, for root.
fn file_of(pid: u32, mapped: &Mapping) -> Result<PathBuf, LensError> {
    let relative = mapped.path.strip_prefix("/").unwrap_or(&mapped.path);
    let candidates = [
        PathBuf::from(format!("/proc/{pid}/root")).join(relative),
        PathBuf::from(format!("/proc/{pid}/map_files/{}", mapped.range)),
    ];
    let is_it = |path: &PathBuf| fs::metadata(path).is_ok_and(|file| file.is_file() && file.ino() == mapped.file.inode);
    candidates.into_iter().find(is_it).ok_or_else(|| {
        LensError::Process(format!(
            "the file {} that process {pid} maps cannot be opened: it was replaced or deleted since the process started; \
             run duel as root, or restart the server",
            sanitize_line(&mapped.path.to_string_lossy())
        ))
    })
}

/// Effective user and group. The owner of `/proc/PID` is root where a process has changed its user, as web servers do.
fn owner(status: &[u8]) -> Option<RunAs> {
    let status = String::from_utf8_lossy(status);
    let effective = |field: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    Some(RunAs { uid: effective("Uid:")?, gid: effective("Gid:")? })
}

/// Only root can take another's rights, and nobody needs to take their own.
fn run_as(owner: RunAs) -> Option<RunAs> {
    let ours = RunAs { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() };
    (ours.uid == 0 && owner != ours).then_some(owner)
}

fn carried(environ: &[u8]) -> BTreeMap<OsString, OsString> {
    let mut carried = BTreeMap::new();
    for entry in environ.split(|&byte| byte == 0) {
        let Some(equals) = entry.iter().position(|&byte| byte == b'=') else { continue };
        let name = OsString::from_vec(entry[..equals].to_vec());
        if is_carried(&name) {
            // The first of a name counts, as for getenv.
            carried.entry(name).or_insert_with(|| OsString::from_vec(entry[equals + 1..].to_vec()));
        }
    }
    carried
}

fn is_carried(name: &OsStr) -> bool {
    CARRIED.iter().any(|carried| name == *carried)
}

/// A file of `/proc`, as far as it makes sense.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAPS: &[u8] = b"\
55d0c0000000-55d0c0001000 r--p 00000000 08:01 11                         /usr/sbin/nginx\n\
7f0000000000-7f0000001000 r--p 00000000 08:01 22                         /opt/my libs/libcrypto.so.3\n\
7f0000001000-7f0000002000 r-xp 00001000 08:01 22                         /opt/my libs/libcrypto.so.3\n\
7f0000003000-7f0000004000 r-xp 00001000 08:01 33                         /usr/lib/libcrypto.so.1.1 (deleted)\n\
7f0000005000-7f0000006000 rw-p 00000000 00:00 0\n\
7f0000007000-7f0000008000 r--s 00000000 08:01 44                         /tmp/libcrypto.txt\n\
7f0000009000-7f000000a000 rw-p 00000000 00:00 0                          [heap]\n";

    #[test]
    fn libcryptos_are_found_in_mappings_once_each() {
        let found = mapped_libcryptos(MAPS);
        let paths: Vec<_> = found.iter().map(|mapped| (mapped.path.to_str().unwrap(), mapped.file.inode)).collect();
        assert_eq!(paths, [("/opt/my libs/libcrypto.so.3", 22), ("/usr/lib/libcrypto.so.1.1", 33)]);
        assert_eq!(found[0].range, "7f0000000000-7f0000001000");
        assert!(the_libcrypto(&found, 1).unwrap_err().to_string().contains("maps several"));
        assert!(the_libcrypto(&[], 1).unwrap_err().to_string().contains("maps no libcrypto"));
    }

    #[test]
    fn only_what_matters_to_a_libcrypto_is_carried_over() {
        let carried = carried(b"PATH=/bin\0OPENSSL_ia32cap=~0x1\0SECRET=x\0OPENSSL_ia32cap=2\0LD_PRELOAD=/x.so\0odd\0");
        assert_eq!(carried, [("OPENSSL_ia32cap".into(), "~0x1".into())].into());
    }

    proptest! {
        #[test]
        fn no_mappings_make_it_stumble(maps in "([0-9a-f-]{0,9} ?|/libcrypto.so|\n| ){0,40}", environ: Vec<u8>) {
            let _ = mapped_libcryptos(maps.as_bytes());
            let _ = carried(&environ);
        }
    }
}
