//! The lens on a host where nothing of ours may be installed: the `openssl speed` that is there, and its output.
//!
//! [`script`] is text for a POSIX shell; [`reading`] understands what that shell prints. How both travel is not known
//! here. The figures are of the same library only if that host's `openssl` maps the very file, which the script finds
//! out first.
//!
//! What the server's own library holds of the CPU's features stays unknown: to find where it keeps them, the library has to be
//! loaded by a program of ours.

mod heard;
mod script;

use crate::by_hand;
use crate::judge::{Circumstances, judge};
use crate::rates::Sample;
use duel_model::{Capabilities, LensMeans, LensOp, LensReading, LensTreatment, sanitize_line};
use duel_process::MASK_VARIABLES;
use heard::heard;
pub use script::script;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// What is to be measured over there.
#[derive(Debug, Clone)]
pub struct SpeedOrder {
    /// The library's file on that host.
    pub library: String,
    /// The server's process that maps it; its rights are taken where ours are root's.
    pub pid: u32,
    /// The server's environment there, of which masks, `OPENSSL_CONF` and the loader's search path matter.
    pub environment: BTreeMap<String, String>,
    /// Seconds for each figure; whole ones, since `openssl speed` knows no others.
    pub seconds: u32,
}

impl SpeedOrder {
    /// The shortest figures, in an empty environment.
    pub fn new(library: impl Into<String>, pid: u32) -> Self {
        Self { library: library.into(), pid, environment: BTreeMap::new(), seconds: 1 }
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
/// What is measured, forth and then back, so that each figure has a repeat. A dozen seconds of one CPU: as little as tells
/// whether the instructions are used and whether there is assembly. Where the server has no mask, its environment is that
/// without one, and is not measured twice.
fn figures(order: &SpeedOrder) -> Vec<(LensTreatment, LensOp)> {
    let (aes, chacha) = (LensOp::Aes256Gcm, LensOp::Chacha20Poly1305);
    let mut forth = vec![
        (LensTreatment::Whole, aes),
        (LensTreatment::AesMasked, aes),
        (LensTreatment::Whole, chacha),
        (LensTreatment::AllMasked, aes),
        (LensTreatment::AllMasked, chacha),
    ];
    if order.is_masked() {
        forth.insert(0, (LensTreatment::AsIs, aes));
    }
    let back = forth.clone().into_iter().rev();
    forth.into_iter().chain(back).collect()
}

/// Seconds that the script takes, without what starting `openssl` takes.
pub fn seconds(order: &SpeedOrder) -> u64 {
    figures(order).len() as u64 * u64::from(order.seconds.max(1))
}

/// As `openssl speed` names an operation.
fn cipher(op: LensOp) -> &'static str {
    OPS.iter().find(|(known, _)| *known == op).map_or("", |(_, cipher)| cipher)
}

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
            server_has_aes: None,
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
        capabilities: Some(Capabilities::NotRead(
            "over ssh nothing is loaded that could tell where the library keeps them".into(),
        )),
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

    /// Output of a host whose `openssl speed` gives these rates for each treatment.
    fn output(order: &SpeedOrder, rate: impl Fn(LensTreatment, LensOp) -> f64) -> String {
        let mut said = "motd\nduel-lens version OpenSSL 3.0.22\nduel-lens has aes\nduel-lens has vectors\n\
                        duel-lens masks OPENSSL_ia32cap\n"
            .to_owned();
        for (nth, (treatment, op)) in figures(order).into_iter().enumerate() {
            let (tag, cipher, luck) = (tag(treatment), cipher(op), [1.0, 1.03][nth % 2]);
            said += &format!("duel-lens figure {tag} {cipher}\n+H:16384\n+F:25:X:{:.2}\n", luck * rate(treatment, op));
        }
        said + "duel-lens done\n"
    }

    fn masked_order() -> SpeedOrder {
        let mut order = SpeedOrder::new("/opt/it's/libcrypto.so.3", 7);
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
        let order = SpeedOrder::new("/lib/libcrypto.so.3", 7);
        assert_eq!(judged(&order).hardware, HardwareUse::Used);
        assert_eq!(judged(&order).assembly, Assembly::Present);
        assert_eq!(judged(&masked_order()).hardware, HardwareUse::Masked);
        let none = reading(&order, &output(&order, |_, op| if op == LensOp::Aes256Gcm { 1e8 } else { 4e8 })).unwrap();
        assert_eq!((none.hardware, none.assembly), (HardwareUse::NotUsed, Assembly::Absent));
    }

    #[test]
    fn a_host_that_cannot_says_why() {
        let order = SpeedOrder::new("/lib/libcrypto.so.3", 7);
        let refused = |said: &str| reading(&order, said).unwrap_err();
        assert_eq!(
            refused("duel-lens not-available the openssl command maps /x\x1b instead\n"),
            "not available: the openssl command maps /x\u{fffd} instead"
        );
        assert!(refused("").contains("ended before"));
        assert!(refused("duel-lens figure whole aes-256-gcm\nduel-lens failed\nduel-lens done\n").contains("1.1.1"));
    }
}
