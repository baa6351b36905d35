//! From a server's process to its libcrypto: which file it maps, with which environment and rights.

use crate::mapped;
use crate::order::{ChildCommand, LensError, LensOrder, RunAs, ServerProcess};
use duel_model::sanitize_line;
use duel_process::{Mapping, ProcessError, ProcessFiles, Status, confinement, libcryptos, steady, variables};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

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

/// Those of them that name files or folders.
const WITH_PATHS: [&str; 4] = ["OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES", "LD_LIBRARY_PATH"];

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
/// When the process is not there, may not be looked at, maps no libcrypto, or maps several; when it changes its program or its
/// user meanwhile; and when it is confined to less than its user may do, such as in a container: a child cannot be confined in
/// the same way.
pub fn of_process(pid: u32, child: ChildCommand) -> Result<LensOrder, LensError> {
    let files = ProcessFiles::of(pid);
    steady(&files, |status| of_steady(&files, status, child))
}

/// The order for a process that stays what it is meanwhile.
fn of_steady(files: &ProcessFiles, status: &Status, child: ChildCommand) -> Result<LensOrder, LensError> {
    let pid = files.pid();
    let maps = files.read("maps", "the mappings")?;
    let environ = files.read("environ", "the environment")?;
    let mapped = the_libcrypto(&libcryptos(&maps), pid)?;
    if let Some(why) = confinement(files)? {
        return Err(LensError::Process(format!(
            "not available here: the server (process {pid}) {why}; its library would be run with more rights than it has"
        )));
    }
    let mut order = LensOrder::new(&mapped.path, child);
    order.environment = carried(&environ);
    if let Some((name, _)) = order.environment.iter().find(|(name, _)| names_files(name))
        && files.link("ns/mnt", "the mounts")? != ProcessFiles::of(std::process::id()).link("ns/mnt", "the mounts")?
    {
        // The same path may lead to a file of somebody else here, as in a private /tmp.
        return Err(LensError::Process(format!(
            "not available here: {} in the environment of process {pid} names files among mounts of its own",
            name.to_string_lossy()
        )));
    }
    let user = status.user.as_ref().ok_or_else(|| {
        LensError::Process(format!("cannot find out whose process {pid} is, so its library is not loaded"))
    })?;
    order.run_as = run_as(RunAs { uid: user.uid, gid: user.gid });
    order.opened = Some(Arc::new(mapped::open(files, &mapped)?));
    order.server = Some(ServerProcess { pid, file: mapped.file });
    Ok(order)
}

impl From<ProcessError> for LensError {
    fn from(error: ProcessError) -> Self {
        Self::Process(error.to_string())
    }
}

fn names_files(name: &OsStr) -> bool {
    WITH_PATHS.iter().any(|with_path| name == *with_path)
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

/// Only root can take another's rights, and nobody needs to take their own.
fn run_as(owner: RunAs) -> Option<RunAs> {
    let ours = RunAs { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() };
    (ours.uid == 0 && owner != ours).then_some(owner)
}

fn carried(environ: &[u8]) -> BTreeMap<OsString, OsString> {
    let mut carried = BTreeMap::new();
    for (name, value) in variables(environ) {
        let name = OsStr::from_bytes(name);
        if is_carried(name) {
            carried.entry(name.to_owned()).or_insert_with(|| OsStr::from_bytes(value).to_owned());
        }
    }
    carried
}

fn is_carried(name: &OsStr) -> bool {
    CARRIED.iter().any(|carried| name == *carried)
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
        let found = libcryptos(MAPS);
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
        fn no_environment_makes_it_stumble(environ: Vec<u8>) {
            let _ = carried(&environ);
        }
    }
}
