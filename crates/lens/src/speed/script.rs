//! The script that measures over there.

use super::{BLOCK_BYTES, MARK, SpeedOrder, cipher, figures, tag};
use crate::by_hand::{quoted, search_path};
use crate::mask::Architecture;
use duel_model::LensTreatment;
use duel_process::MASK_VARIABLES;
use std::path::Path;

/// Lines for a POSIX shell. They change nothing on that host, and end with exit code 0 also when there is nothing to
/// measure, which they say on standard output.
pub fn script(order: &SpeedOrder) -> String {
    let own = order.own();
    let mut lines = vec![
        format!("lib={}; pid={}", quoted(&order.library), order.pid),
        format!("search={}", quoted(&search_path(Path::new(&order.library), &own))),
        "LC_ALL=C; export LC_ALL".into(),
        format!("say() {{ printf '{MARK} %s\\n' \"$*\"; }}"),
        "refuse() { say not-available \"$@\"; exit 0; }".into(),
        format!("unset {}", MASK_VARIABLES.join(" ")),
    ];
    for name in ["OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES"] {
        match order.environment.get(name) {
            Some(value) => lines.push(format!("{name}={}; export {name}", quoted(value))),
            None => lines.push(format!("unset {name}")),
        }
    }
    let paths = ["OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES", "LD_LIBRARY_PATH"];
    let mut paths = paths.into_iter().filter_map(|name| Some((name, order.environment.get(name)?))).peekable();
    lines.push(format!("paths={}", paths.peek().map_or("", |(name, _)| name)));
    lines.push(BEFORE.trim_end().to_owned());
    // They were read a while ago, and whose they were is not known from then.
    lines.extend(paths.map(|(name, value)| format!("carried {name} {}", quoted(value))));
    lines.push(AFTER.trim_end().to_owned());
    lines.extend(masks());
    lines.push("measure() {".into());
    lines.push("say figure \"$1\" \"$2\"; cipher=$2; shift 2".into());
    // Without -elapsed: CPU time, so that it matters less what else the host does.
    lines.push(format!(
        "openssl_with \"$@\" openssl speed -mr -seconds {} -bytes {BLOCK_BYTES} -evp \"$cipher\"; status=$?",
        order.seconds.max(1)
    ));
    lines.push("case $status in 0) ;; 124) refuse the openssl command there hung;; *) say failed;; esac".into());
    lines.push("}".into());
    for (treatment, op) in figures(order) {
        let measure = format!("measure {} {}", tag(treatment), cipher(op));
        lines.push(match treatment {
            LensTreatment::AsIs => {
                let set = |name: &str| Some(format!(" {name}={}", quoted(order.environment.get(name)?)));
                measure + &MASK_VARIABLES.iter().filter_map(|&name| set(name)).collect::<String>()
            }
            LensTreatment::Whole => measure,
            LensTreatment::AesMasked => format!("[ -z \"$variable\" ] || {measure} \"$variable=$aes\""),
            LensTreatment::AllMasked => format!("[ -z \"$variable\" ] || {measure} \"$variable=$all\""),
        });
    }
    lines.push("say done".into());
    // In a shell of its own, since it ends with `exit`.
    format!("(\n{}\n)\n", lines.join("\n"))
}

/// Which masks the CPU there understands.
fn masks() -> Vec<String> {
    let mut lines = vec!["case $(uname -m) in".to_owned()];
    for (pattern, architecture) in
        [("x86_64|amd64|i?86", Architecture::X86), ("aarch64|arm64|armv*", Architecture::Arm)]
    {
        let mask = |treatment| architecture.mask(treatment).map(quoted).unwrap_or_default();
        lines.push(format!(
            "{pattern}) variable={0}; say masks {0}; aes={1}; all={2};;",
            architecture.variable(),
            mask(LensTreatment::AesMasked),
            mask(LensTreatment::AllMasked)
        ));
    }
    lines.push("*) variable=;;".into());
    lines.push("esac".into());
    lines
}

/// Whose rights to take, and whether the process is still what it was.
///
/// Whoever chooses a server's library and environment must not have them run with the rights of root. A process that executes
/// a setuid program passes for root from then on. So its nature (its rights, its program and what the kernel told the program
/// when it was executed, whose addresses are drawn anew each time) is read before and after everything else, and it has one
/// user and one group. The process's folder is the current one, so that nothing is read of another process that is given the
/// number later.
const BEFORE: &str = r#"as=
is_root() { [ "$(id -u)" = 0 ]; }
cd "/proc/$pid" 2>/dev/null || cd /
if is_root || [ -r maps ]; then is_seen=yes; else is_seen=; fi
nature() {
sed -n '/^[UG]id:/p; /^Groups:/p; /^Cap/p; /^NoNewPrivs:/p; /^Seccomp/p' status
ls -L -d -i exe
od -A n -v -t x1 auxv
} 2>/dev/null
only() { sed -n "s/^$1:[^0-9]*\([0-9][0-9]*\)[^0-9][^0-9]*\1[^0-9][^0-9]*\1[^0-9][^0-9]*\1\$/\1/p" status 2>/dev/null; }
starter_had_these_rights() {
for width in 8 4; do
od -A n -v -t u$width auxv 2>/dev/null | awk '{ for (i = 1; i <= NF; i++) word[n++] = $i }
END {
for (i = 0; i + 1 < n; i += 2) value[word[i]] = word[i + 1]
for (kind = 11; kind <= 14; kind++) if (!(kind in value)) exit 2
exit !(value[11] == value[12] && value[13] == value[14])
}'
case $? in 0) return 0;; 1) return 1;; esac
done
return 1
}
confined() { refuse "the server $*; its library would be run with more rights than it has"; }
field() { sed -n "s/^$2:[^0-9a-f]*//p" "$1/status" 2>/dev/null; }
label() { { tr '\0' '\n' <"$1/attr/current"; } 2>/dev/null | head -n 1; }
same() { [ "$(readlink "$1" 2>/dev/null)" = "$(readlink "/proc/self/$1" 2>/dev/null)" ]; }
carried() {
[ -n "$is_seen" ] || return 0
{ tr '\0' '\n' <environ; } 2>/dev/null | grep -q -x -F -e "$1=$2" || refuse "the environment of process $pid has changed"
}
before=$(nature)
if [ -n "$is_seen" ]; then
owner=$(only Uid)
group=$(only Gid)
if [ -z "$owner" ] || [ -z "$group" ]; then refuse process "$pid" is not there or has several user or group ids; fi
if ! starter_had_these_rights; then refuse process "$pid" runs a setuid or setgid program; fi
if is_root && [ "$owner" != 0 ]; then
if ! command -v setpriv >/dev/null 2>&1; then refuse there is no setpriv command to take the rights of the server; fi
as="setpriv --reuid=$owner --regid=$group --clear-groups --inh-caps=-all --no-new-privs"
fi
if ! same ns/user || ! same ns/pid; then confined runs in a container; fi
if ! same root || ! [ root/. -ef /. ]; then confined has a root folder of its own; fi
if [ "$(field . Seccomp)" != "$(field /proc/self Seccomp)" ]; then confined runs under a filter of system calls; fi
if is_root && [ "$owner" = 0 ]; then
for right in CapEff CapBnd; do
if [ "$(field . $right)" != "$(field /proc/self $right)" ]; then confined runs as a root with other capabilities; fi
done
fi
if [ "$(label .)" != unconfined ] && [ "$(label .)" != "$(label /proc/self)" ]; then confined has a security label of its own; fi
if [ -n "$paths" ] && ! same ns/mnt; then refuse "$paths in the environment of process $pid names files among mounts of its own"; fi
there=$(sed -n 's/^[^/]* \(\/.*\/libcrypto[^/]*\.so[^/]*\)$/\1/p' maps | sort -u)
case $there in
"$lib") ;;
'') refuse process "$pid" maps no libcrypto;;
*) refuse process "$pid" maps "$(printf %s "$there" | tr '\n' ' ')";;
esac
if [ -e "root$lib" ]; then lib=root$lib; fi
fi
"#;

/// Whether the process is what it was, whether the `openssl` there maps the server's library, and what the CPU offers.
///
/// The search path and masks are set for `openssl` alone: another program may not get along with what lies beside the library.
const AFTER: &str = r#"if [ "$(nature)" != "$before" ]; then refuse process "$pid" has changed its program or its rights; fi
limit=
if command -v timeout >/dev/null 2>&1; then limit='timeout 10'; fi
openssl_with() { (cd / && $limit $as env LD_LIBRARY_PATH="$search" "$@" 2>/dev/null </dev/null); }
if ! program=$(command -v openssl); then refuse there is no openssl command; fi
if ! command -v ldd >/dev/null 2>&1; then refuse there is no ldd command to tell which libcrypto openssl maps; fi
mapped=$(openssl_with ldd "$program" | sed -n 's/^.*libcrypto[^ ]* => \([^ ]*\) .*$/\1/p' | head -n 1)
if [ -z "$mapped" ]; then refuse the openssl command maps no libcrypto; fi
if ! [ "$mapped" -ef "$lib" ]; then refuse the openssl command would measure another library: it maps "$mapped"; fi
say version "$(openssl_with openssl version | head -n 1)"
say compiler "$(openssl_with openssl version -f | head -n 1)"
say cpu "$(openssl_with openssl version -c | head -n 1)"
if [ -r /proc/cpuinfo ]; then
if grep -qw aes /proc/cpuinfo; then say has aes; else say lacks aes; fi
if grep -qwE 'ssse3|asimd|neon' /proc/cpuinfo; then say has vectors; else say lacks vectors; fi
fi
"#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speed::{OPS, reading};
    use std::process::Command;

    #[test]
    fn any_posix_shell_parses_the_script() {
        let mut masked = SpeedOrder::new("/opt/it's/libcrypto.so.3", 7);
        masked.environment.insert("OPENSSL_ia32cap".into(), "~0x1 '$(x)'".into());
        for order in [SpeedOrder::new("/lib/libcrypto.so.3", 7), masked] {
            let parsed = Command::new("sh").args(["-n", "-c", &script(&order)]).output().unwrap();
            assert!(parsed.status.success(), "{}", String::from_utf8_lossy(&parsed.stderr));
        }
    }

    #[test]
    fn each_operation_has_a_name() {
        assert!(OPS.iter().all(|(op, name)| cipher(*op) == *name && !name.is_empty()));
    }

    /// A server as nobody that executes a setuid program when it is told to: by `sort`, which the script uses between its
    /// first look and its last. What the script says.
    #[cfg(target_os = "linux")]
    fn said_of_a_server_that_changes(changes: bool) -> Option<String> {
        use std::fs::{self, Permissions};
        use std::os::unix::fs::PermissionsExt;
        use std::os::unix::process::CommandExt;
        let python = "/usr/bin/python3";
        if !rustix::process::geteuid().is_root() || !Path::new(python).exists() {
            eprintln!("skipped: it takes root and python3");
            assert!(std::env::var_os("DUEL_TESTS_SKIP_NOTHING").is_none_or(|value| value != "1"));
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let put = |name: &str, text: &str, mode| {
            fs::write(at(name), text).unwrap();
            fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
        };
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        fs::copy("/bin/sleep", at("sleep")).unwrap();
        fs::set_permissions(at("sleep"), Permissions::from_mode(0o4755)).unwrap();
        put("libcrypto.so.3", "a library", 0o644);
        let server = "import mmap, os, sys\nlibrary = open('libcrypto.so.3', 'rb')\n\
            kept = mmap.mmap(library.fileno(), 0, prot=mmap.PROT_READ)\nprint('ready', flush=True)\n\
            sys.stdin.readline()\nos.execv('./sleep', ['./sleep', '60'])\n";
        let pipe = || std::process::Stdio::piped();
        let mut command = Command::new(python);
        command.args(["-c", server]).current_dir(folder.path()).uid(65534).gid(65534).stdin(pipe()).stdout(pipe());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(process.stdout.take().unwrap()), &mut line).unwrap();
        let pid = process.id();
        let change =
            format!("echo go >/proc/{pid}/fd/0; until readlink /proc/{pid}/exe | grep -q sleep; do sleep 0.01; done");
        put("sort", &format!("#!/bin/sh\n/usr/bin/sort \"$@\"\n{}\n", if changes { &change } else { ":" }), 0o755);
        let order = SpeedOrder::new(at("libcrypto.so.3").to_str().unwrap(), pid);
        let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", folder.path().display());
        let ran = Command::new("sh").args(["-c", &script(&order)]).env("PATH", path).output().unwrap();
        let _ = process.kill();
        let _ = process.wait();
        Some(String::from_utf8(ran.stdout).unwrap())
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_a_server_has_chosen_that_becomes_root_s_meanwhile_is_not_run() {
        let Some(said) = said_of_a_server_that_changes(true) else { return };
        assert!(said.contains("has changed its program or its rights"), "{said}");
        // Of one that stays what it is, all that is wrong is found behind that: what it maps is no library.
        let said = said_of_a_server_that_changes(false).unwrap();
        assert!(said.contains("openssl command"), "{said}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_environment_that_is_not_the_process_s_any_more_is_not_used() {
        let mut order = SpeedOrder::new("/lib/libcrypto.so.3", std::process::id());
        order.environment.insert("OPENSSL_CONF".into(), "/nowhere/it's".into());
        // The check alone: this process maps no libcrypto.
        let script = script(&order).replace("refuse process \"$pid\" maps no libcrypto", ":");
        let ran = Command::new("sh").args(["-c", &script]).output().unwrap();
        let said = String::from_utf8(ran.stdout).unwrap();
        assert!(said.contains("the environment of process") && said.contains("has changed"), "{said}");
    }

    #[test]
    fn a_library_that_the_process_does_not_map_is_not_measured() {
        let folder = tempfile::tempdir().unwrap();
        let touched = folder.path().join("touched");
        let evil = format!("/nowhere/'$(touch {0})'`touch {0}`;touch {0}\n/libcrypto.so.3", touched.display());
        let mut order = SpeedOrder::new(evil, std::process::id());
        for name in ["OPENSSL_CONF", "OPENSSL_ia32cap", "LD_LIBRARY_PATH"] {
            order.environment.insert(name.into(), format!("';touch {};'", touched.display()));
        }
        let ran = Command::new("sh").args(["-c", &script(&order)]).output().unwrap();
        assert!(ran.status.success());
        let said = String::from_utf8(ran.stdout).unwrap();
        assert!(reading(&order, &said).unwrap_err().starts_with("not available: "), "{said}");
        assert!(!touched.exists());
    }
}
