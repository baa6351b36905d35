//! The lens on a host where nothing of ours may be installed: the `openssl speed` that is there, and its output.
//!
//! [`script`] is text for a POSIX shell; [`reading`] understands what that shell prints. How both travel is not known
//! here. The figures are of the same library only if that host's `openssl` maps the very file, which the script finds
//! out first.

use crate::by_hand;
mod heard;

use crate::judge::{Circumstances, Sample, judge};
use crate::mask::{Architecture, MASK_VARIABLES};
use duel_model::{LensMeans, LensOp, LensReading, LensTreatment, sanitize_line};
use heard::heard;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// What is to be measured over there.
#[derive(Debug, Clone)]
pub struct SpeedOrder {
    /// The library's file on that host.
    pub library: String,
    /// The server's environment there, of which masks, `OPENSSL_CONF` and the loader's search path matter.
    pub environment: BTreeMap<String, String>,
    /// Seconds for each figure; whole ones, since `openssl speed` knows no others.
    pub seconds: u32,
}

impl SpeedOrder {
    /// The shortest figures, in an empty environment.
    pub fn new(library: impl Into<String>) -> Self {
        Self { library: library.into(), environment: BTreeMap::new(), seconds: 1 }
    }

    fn is_masked(&self) -> bool {
        MASK_VARIABLES.iter().any(|&name| self.environment.contains_key(name))
    }

    fn own(&self) -> BTreeMap<OsString, OsString> {
        self.environment.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }
}

/// Measured over there: with both, AES and what needs no AES, the judgement can tell a missing mask from missing assembly.
pub(crate) const OPS: [(LensOp, &str); 2] =
    [(LensOp::Aes256Gcm, "aes-256-gcm"), (LensOp::Chacha20Poly1305, "chacha20-poly1305")];

/// Size of blocks, bytes: a full TLS record.
const BLOCK_BYTES: u32 = 16384;
/// Every line of ours begins with it; whatever else the shell prints is left alone.
const MARK: &str = "duel-lens";
/// How often a treatment is measured for each operation. Seven are the fewest rates for which the judgement has an interval.
const REPEATS: usize = 7;

/// The order of treatments: forth and back until each had its repeats. Where the server has no mask, its environment is
/// that without one, and is not measured twice.
fn treatments(order: &SpeedOrder) -> Vec<LensTreatment> {
    let turn: Vec<LensTreatment> =
        LensTreatment::ALL.into_iter().filter(|&t| t != LensTreatment::AsIs || order.is_masked()).collect();
    let mut order = Vec::new();
    for repeat in 0..REPEATS {
        let mut turn = turn.clone();
        if repeat % 2 == 1 {
            turn.reverse();
        }
        order.extend(turn);
    }
    order
}

/// Seconds that the script takes, without what starting `openssl` takes.
pub fn seconds(order: &SpeedOrder) -> u64 {
    (treatments(order).len() * OPS.len()) as u64 * u64::from(order.seconds)
}

/// Lines for a POSIX shell. They change nothing on that host, and end with exit code 0 also when there is nothing to
/// measure, which they say on standard output.
pub fn script(order: &SpeedOrder) -> String {
    let library = std::path::Path::new(&order.library);
    let own = order.own();
    let search = by_hand::quoted(&by_hand::search_path(library, &own));
    let mut lines = vec![
        format!("lib={}", by_hand::quoted(&order.library)),
        "LC_ALL=C; export LC_ALL".into(),
        format!("say() {{ printf '{MARK} %s\\n' \"$*\"; }}"),
        format!("unset {}", MASK_VARIABLES.join(" ")),
        format!("LD_LIBRARY_PATH={search}; export LD_LIBRARY_PATH"),
    ];
    for name in ["OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES"] {
        if let Some(value) = order.environment.get(name) {
            lines.push(format!("{name}={}; export {name}", by_hand::quoted(value)));
        }
    }
    lines.push(FIND_OPENSSL.trim_end().to_owned());
    lines.push("case $(uname -m) in".into());
    for (pattern, architecture) in
        [("x86_64|amd64|i?86", Architecture::X86), ("aarch64|arm64|armv*", Architecture::Arm)]
    {
        let mask = |treatment| architecture.mask(treatment).map(by_hand::quoted).unwrap_or_default();
        lines.push(format!(
            "{pattern}) variable={0}; say masks {0}; aes={1}; all={2};;",
            architecture.variable(),
            mask(LensTreatment::AesMasked),
            mask(LensTreatment::AllMasked)
        ));
    }
    lines.push("*) variable=;;".into());
    lines.push("esac".into());
    let own_masks: Vec<String> = MASK_VARIABLES
        .iter()
        .filter_map(|&name| Some(format!("{name}={}", by_hand::quoted(order.environment.get(name)?))))
        .collect();
    let seconds = order.seconds.max(1);
    lines.push("measure() {".into());
    lines.push("treatment=$1; shift".into());
    for (_, cipher) in OPS {
        lines.push(format!("say figure \"$treatment\" {cipher}"));
        lines.push(format!(
            "env \"$@\" openssl speed -mr -seconds {seconds} -bytes {BLOCK_BYTES} -evp {cipher} 2>/dev/null </dev/null || say failed"
        ));
    }
    lines.push("}".into());
    for treatment in treatments(order) {
        let name = tag(treatment);
        lines.push(match treatment {
            LensTreatment::AsIs => format!("measure {name} {}", own_masks.join(" ")).trim_end().to_owned(),
            LensTreatment::Whole => format!("measure {name}"),
            LensTreatment::AesMasked => format!("[ -z \"$variable\" ] || measure {name} \"$variable=$aes\""),
            LensTreatment::AllMasked => format!("[ -z \"$variable\" ] || measure {name} \"$variable=$all\""),
        });
    }
    lines.push("say done".into());
    // In a shell of its own, since it ends with `exit`.
    format!("(\n{}\n)\n", lines.join("\n"))
}

/// Finds out whether the `openssl` there maps the library, and what the CPU offers.
const FIND_OPENSSL: &str = r#"if ! program=$(command -v openssl); then say not-available there is no openssl command; exit 0; fi
if ! command -v ldd >/dev/null 2>&1; then say not-available there is no ldd command to tell which libcrypto openssl maps; exit 0; fi
mapped=$(ldd "$program" 2>/dev/null | sed -n 's/^.*libcrypto[^ ]* => \([^ ]*\) .*$/\1/p' | head -n 1)
if [ -z "$mapped" ]; then say not-available the openssl command maps no libcrypto; exit 0; fi
if ! [ "$mapped" -ef "$lib" ]; then say not-available the openssl command maps "$mapped" instead; exit 0; fi
say version "$(openssl version 2>/dev/null </dev/null | head -n 1)"
say compiler "$(openssl version -f 2>/dev/null </dev/null | head -n 1)"
say cpu "$(openssl version -c 2>/dev/null </dev/null | head -n 1)"
if [ -r /proc/cpuinfo ]; then
if grep -qw aes /proc/cpuinfo; then say has aes; else say lacks aes; fi
if grep -qwE 'ssse3|asimd|neon' /proc/cpuinfo; then say has vectors; else say lacks vectors; fi
fi
"#;

/// As the script names a treatment.
fn tag(treatment: LensTreatment) -> &'static str {
    match treatment {
        LensTreatment::AsIs => "as-is",
        LensTreatment::Whole => "whole",
        LensTreatment::AesMasked => "aes-masked",
        LensTreatment::AllMasked => "all-masked",
    }
}

/// What the script's output means: the same reading as of a child.
///
/// # Errors
///
/// One sentence beginning with `not available:` when that host cannot measure the library.
pub fn reading(order: &SpeedOrder, output: &str) -> Result<LensReading, String> {
    let mut heard = heard(output);
    if let Some(why) = heard.not_available {
        return Err(format!("not available: {why}"));
    }
    if !heard.done {
        return Err("not available: the measurement on the host ended before all was measured".into());
    }
    if heard.samples.is_empty() {
        return Err(
            "not available: the openssl command there measures nothing with -mr, -seconds and -bytes (1.1.1 and \
                    later do)"
                .into(),
        );
    }
    if !order.is_masked() {
        let whole: Vec<Sample> =
            heard.samples.iter().filter(|sample| sample.treatment == LensTreatment::Whole).cloned().collect();
        heard.samples.extend(whole.into_iter().map(|sample| Sample { treatment: LensTreatment::AsIs, ..sample }));
    }
    let mut unavailable = Vec::new();
    for (op, cipher) in OPS {
        if heard.samples.iter().all(|sample| sample.op != op) {
            unavailable.push(format!("{}: openssl speed -evp {cipher} failed there", op.name()));
        }
    }
    let judgement = judge(
        &heard.samples,
        &Circumstances {
            cpu_has_aes: heard.has_aes,
            cpu_has_vectors: heard.has_vectors,
            environment_masks: order.is_masked(),
            masks_known: heard.architecture.is_some(),
            identity: heard.identity.clone(),
        },
    );
    Ok(LensReading {
        library: sanitize_line(&order.library),
        means: LensMeans::OpensslSpeed,
        identity: heard.identity,
        hardware: judgement.hardware,
        assembly: judgement.assembly,
        effects: judgement.effects,
        figures: judgement.figures,
        unavailable,
        corroboration: judgement.corroboration,
        by_hand: by_hand::speed_lines(std::path::Path::new(&order.library), &order.own(), heard.architecture),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::{Assembly, HardwareUse};
    use std::process::Command;

    /// Output of a host whose `openssl speed` gives these rates for each treatment.
    fn output(order: &SpeedOrder, rate: impl Fn(LensTreatment, LensOp) -> f64) -> String {
        let mut said = "motd\nduel-lens version OpenSSL 3.0.22\nduel-lens has aes\nduel-lens has vectors\n\
                        duel-lens masks OPENSSL_ia32cap\n"
            .to_owned();
        for treatment in treatments(order) {
            for (op, cipher) in OPS {
                let tag = tag(treatment);
                said += &format!("duel-lens figure {tag} {cipher}\n+H:16384\n+F:25:X:{:.2}\n", rate(treatment, op));
            }
        }
        said + "duel-lens done\n"
    }

    fn masked_order() -> SpeedOrder {
        let mut order = SpeedOrder::new("/opt/it's/libcrypto.so.3");
        order.environment.insert("OPENSSL_ia32cap".into(), "~0x200000200000000".into());
        order
    }

    #[test]
    fn the_same_judgement_as_of_a_child() {
        let rate = |treatment, op| match (treatment, op) {
            (LensTreatment::Whole, LensOp::Aes256Gcm) => 4e9,
            (_, LensOp::Aes256Gcm) => 2e8,
            (LensTreatment::AllMasked, _) => 5e8,
            _ => 2e9,
        };
        let judged = |order: &SpeedOrder| reading(order, &output(order, rate)).unwrap();
        let order = SpeedOrder::new("/lib/libcrypto.so.3");
        assert_eq!(judged(&order).hardware, HardwareUse::Used);
        assert_eq!(judged(&order).assembly, Assembly::Present);
        assert_eq!(judged(&masked_order()).hardware, HardwareUse::Masked);
        let none = reading(&order, &output(&order, |_, op| if op == LensOp::Aes256Gcm { 1e8 } else { 4e8 })).unwrap();
        assert_eq!((none.hardware, none.assembly), (HardwareUse::NotUsed, Assembly::Absent));
    }

    #[test]
    fn a_host_that_cannot_says_why() {
        let order = SpeedOrder::new("/lib/libcrypto.so.3");
        let refused = |said: &str| reading(&order, said).unwrap_err();
        assert_eq!(
            refused("duel-lens not-available the openssl command maps /x\x1b instead\n"),
            "not available: the openssl command maps /x\u{fffd} instead"
        );
        assert!(refused("").contains("ended before"));
        assert!(refused("duel-lens figure whole aes-256-gcm\nduel-lens failed\nduel-lens done\n").contains("1.1.1"));
    }

    #[test]
    fn any_posix_shell_parses_the_script() {
        for order in [SpeedOrder::new("/lib/libcrypto.so.3"), masked_order()] {
            let parsed = Command::new("sh").args(["-n", "-c", &script(&order)]).output().unwrap();
            assert!(parsed.status.success(), "{}", String::from_utf8_lossy(&parsed.stderr));
        }
    }

    #[test]
    fn a_library_that_the_host_s_openssl_does_not_map_is_not_measured() {
        let order = SpeedOrder::new("/nowhere/'$(touch x)'/libcrypto.so.3");
        let ran = Command::new("sh").args(["-c", &script(&order)]).output().unwrap();
        assert!(ran.status.success());
        let said = String::from_utf8(ran.stdout).unwrap();
        assert!(reading(&order, &said).unwrap_err().starts_with("not available: "), "{said}");
    }
}
