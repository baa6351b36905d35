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
    let paths = paths.into_iter().find(|&name| order.environment.contains_key(name));
    lines.push(format!("paths={}", paths.unwrap_or_default()));
    lines.push(PREPARE.trim_end().to_owned());
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

/// Whose rights to take, whether the `openssl` there maps the server's library, and what the CPU offers.
///
/// Whoever chooses a server's library and environment must not have them run with the rights of root. The search path and
/// masks are set for `openssl` alone: another program may not get along with what lies beside the library.
const PREPARE: &str = r#"as=
if [ "$(id -u)" = 0 ]; then
owner=$(sed -n 's/^Uid:[^0-9]*[0-9]*[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status" 2>/dev/null)
group=$(sed -n 's/^Gid:[^0-9]*[0-9]*[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status" 2>/dev/null)
if [ -z "$owner" ] || [ -z "$group" ]; then refuse whose process "$pid" is cannot be found out; fi
if [ "$owner" != 0 ]; then
if ! command -v setpriv >/dev/null 2>&1; then refuse there is no setpriv command to take the rights of the server; fi
as="setpriv --reuid=$owner --regid=$group --clear-groups --inh-caps=-all --no-new-privs"
fi
fi
confined() { refuse "the server $*; its library would be run with more rights than it has"; }
field() { sed -n "s/^$2:[^0-9a-f]*//p" "/proc/$1/status" 2>/dev/null; }
label() { { tr '\0' '\n' <"/proc/$1/attr/current"; } 2>/dev/null | head -n 1; }
same() { [ "$(readlink "/proc/$pid/$1" 2>/dev/null)" = "$(readlink "/proc/self/$1" 2>/dev/null)" ]; }
if [ "$(id -u)" = 0 ] || [ -r "/proc/$pid/maps" ]; then
if ! same ns/user || ! same ns/pid; then confined runs in a container; fi
if ! same root || ! [ "/proc/$pid/root/." -ef /. ]; then confined has a root folder of its own; fi
if [ "$(field "$pid" Seccomp)" != "$(field self Seccomp)" ]; then confined runs under a filter of system calls; fi
if [ "$(id -u)" = 0 ] && [ "$owner" = 0 ]; then
for right in CapEff CapBnd; do
if [ "$(field "$pid" $right)" != "$(field self $right)" ]; then confined runs as a root with other capabilities; fi
done
fi
if [ "$(label "$pid")" != unconfined ] && [ "$(label "$pid")" != "$(label self)" ]; then confined has a security label of its own; fi
if [ -n "$paths" ] && ! same ns/mnt; then refuse "$paths in the environment of process $pid names files among mounts of its own"; fi
fi
limit=
if command -v timeout >/dev/null 2>&1; then limit='timeout 10'; fi
openssl_with() { $limit $as env LD_LIBRARY_PATH="$search" "$@" 2>/dev/null </dev/null; }
if [ -r "/proc/$pid/maps" ]; then
there=$(sed -n 's/^[^/]* \(\/.*\/libcrypto[^/]*\.so[^/]*\)$/\1/p' "/proc/$pid/maps" | sort -u)
case $there in
"$lib") ;;
'') refuse process "$pid" maps no libcrypto;;
*) refuse process "$pid" maps "$(printf %s "$there" | tr '\n' ' ')";;
esac
if [ -e "/proc/$pid/root$lib" ]; then lib=/proc/$pid/root$lib; fi
fi
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
