//! The measurement as commands for a shell.

use crate::mask::{self, Architecture};
use crate::order::LensOrder;
use duel_model::{Capabilities, LensTreatment};
use duel_process::MASK_VARIABLES;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// [`speed_lines`], then our own command, which is always of this library, and what the server's memory holds.
pub(crate) fn lines(
    order: &LensOrder,
    capabilities: Option<&Capabilities>,
    architecture: Option<Architecture>,
) -> Vec<String> {
    let (library, own) = (&order.library, &order.environment);
    let mut lines = speed_lines(library, own, architecture);
    if let Some(server) = &order.server {
        lines.push(format!("duel lens {}", server.pid));
    } else {
        let variables = assignments(own, LensTreatment::AsIs, architecture);
        lines.push(format!("{variables}duel lens {}", quoted(&library.to_string_lossy())));
    }
    if let Some(vector) = capabilities.and_then(Capabilities::vector)
        && let Some(process) = vector.processes.first()
    {
        let bytes = 4 * process.words.len();
        let whole: Vec<String> = vector.whole.iter().map(|word| format!("{word:08x}")).collect();
        lines.push(format!(
            "dd if=/proc/{}/mem bs={bytes} count=1 iflag=skip_bytes skip={} status=none | od -An -tx4  # all features: {}",
            process.pid,
            process.address,
            whole.join(" ")
        ));
    }
    lines
}

/// First what `openssl` maps, since its figures are of another library when it maps another; then its speed under each
/// treatment.
pub(crate) fn speed_lines(
    library: &Path,
    own: &BTreeMap<OsString, OsString>,
    architecture: Option<Architecture>,
) -> Vec<String> {
    let file = quoted(&library.to_string_lossy());
    let search = quoted(&search_path(library, own));
    let mut lines =
        vec![format!("LD_LIBRARY_PATH={search} ldd \"$(command -v openssl)\" | grep libcrypto  # must name {file}")];
    for treatment in treatments(own, architecture) {
        let variables = assignments(own, treatment, architecture);
        lines.push(format!("{variables}LD_LIBRARY_PATH={search} openssl speed -elapsed -evp aes-256-gcm"));
    }
    lines
}

/// Those that differ.
fn treatments(
    own: &BTreeMap<OsString, OsString>,
    architecture: Option<Architecture>,
) -> impl Iterator<Item = LensTreatment> {
    let masked = mask::is_set(own);
    LensTreatment::ALL.into_iter().filter(move |treatment| match treatment {
        LensTreatment::AsIs => masked,
        LensTreatment::Whole => true,
        LensTreatment::AesMasked | LensTreatment::AllMasked => architecture.is_some(),
    })
}

/// `NAME=VALUE ` for each mask of a treatment; the shell's own masks are taken away with `env -u`.
fn assignments(
    own: &BTreeMap<OsString, OsString>,
    treatment: LensTreatment,
    architecture: Option<Architecture>,
) -> String {
    let environment = mask::environment(own, treatment, architecture);
    let set: String = environment
        .iter()
        .filter(|(name, _)| MASK_VARIABLES.iter().any(|variable| *name == *variable))
        .map(|(name, value)| format!("{}={} ", name.to_string_lossy(), quoted(&value.to_string_lossy())))
        .collect();
    match architecture {
        Some(architecture) if set.is_empty() => format!("env -u {} ", architecture.variable()),
        _ => set,
    }
}

/// The library's folder before those in which the server looks.
pub(crate) fn search_path(library: &Path, own: &BTreeMap<OsString, OsString>) -> String {
    let folder = library.parent().map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = if folder.is_empty() { ".".to_owned() } else { folder };
    match own.get(std::ffi::OsStr::new("LD_LIBRARY_PATH")).map(|path| path.to_string_lossy()) {
        Some(path) if !path.is_empty() && path != folder => format!("{folder}:{path}"),
        _ => folder,
    }
}

/// A word for a POSIX shell, in quotes where it needs them.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::ChildCommand;
    use proptest::prelude::*;
    use std::process::Command;

    #[test]
    fn each_treatment_has_its_command() {
        let child = ChildCommand { program: "duel".into(), arguments: Vec::new() };
        let mut order = LensOrder::new("/opt/my ssl/libcrypto.so.3", child);
        order.environment = [("OPENSSL_ia32cap".into(), "~0x1".into())].into();
        let lines = lines(&order, None, Some(Architecture::X86));
        assert_eq!(
            lines[1..],
            [
                "OPENSSL_ia32cap='~0x1' LD_LIBRARY_PATH='/opt/my ssl' openssl speed -elapsed -evp aes-256-gcm",
                "env -u OPENSSL_ia32cap LD_LIBRARY_PATH='/opt/my ssl' openssl speed -elapsed -evp aes-256-gcm",
                "OPENSSL_ia32cap='~0x200000200000000:~0x60000000000' LD_LIBRARY_PATH='/opt/my ssl' openssl speed \
                 -elapsed -evp aes-256-gcm",
                "OPENSSL_ia32cap=0:0 LD_LIBRARY_PATH='/opt/my ssl' openssl speed -elapsed -evp aes-256-gcm",
                "OPENSSL_ia32cap='~0x1' duel lens '/opt/my ssl/libcrypto.so.3'",
            ]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_shell_reads_back_what_was_quoted(word in "[^\0]{0,20}") {
            let told = Command::new("sh").args(["-c", &format!("printf %s {}", quoted(&word))]).output().unwrap();
            prop_assert_eq!(String::from_utf8(told.stdout).unwrap(), word);
        }
    }
}
