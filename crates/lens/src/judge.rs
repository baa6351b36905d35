//! From rounds to a judgement. Pure: the same rounds give the same reading.

use crate::rates::{Sample, effect, figures};
use duel_model::{Assembly, Gain, HardwareUse, LensFigure, LensIdentity, LensOp, LensTreatment, MaskEffect};

/// A rate is higher than another when the whole interval of their ratio lies above this. The interval has been widened by
/// what the machine makes of itself; this is for what a mask may change beside its purpose, such as the alignment of code.
const GAINS_FROM: f64 = 1.25;
/// Two rates are equal when the whole interval lies within this: it excludes every difference that is looked for. Without
/// vectors ChaCha20 is slower by 7 times and SHA-256 by 4 (OpenSSL 3.0.22 on a CPU with AVX-512); older CPUs gain less, and
/// more than this.
const EQUAL_WITHIN: f64 = 1.5;
/// The same for AES. Its instructions make CBC 5 times as fast and GCM 20 times at 16 KiB, on every CPU that has them: what
/// lies within 2, half way to that, is no such difference. So a neighbour on the same machine, who may take half of a core's
/// speed for a while, leaves fewer questions open.
const AES_EQUAL_WITHIN: f64 = 2.0;

/// What has to be known beside the figures.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Circumstances {
    /// Whether the CPU has instructions for AES; `None` where that is not known.
    pub(crate) cpu_has_aes: Option<bool>,
    /// Whether it has vectors that a mask can take away.
    pub(crate) cpu_has_vectors: Option<bool>,
    /// Whether the server's environment has a mask.
    pub(crate) environment_masks: bool,
    /// Whether the library in the running server has the instructions for AES; `None` where that was not read.
    pub(crate) server_has_aes: Option<bool>,
    /// Whether masks for this kind of CPU are known at all.
    pub(crate) masks_known: bool,
    pub(crate) identity: LensIdentity,
}

/// What follows from the rounds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Judgement {
    pub(crate) hardware: HardwareUse,
    pub(crate) assembly: Assembly,
    pub(crate) effects: Vec<MaskEffect>,
    pub(crate) figures: Vec<LensFigure>,
    pub(crate) corroboration: Vec<String>,
}

impl Judgement {
    /// Whether both questions have an answer.
    pub(crate) fn is_decided(&self) -> bool {
        !matches!(self.hardware, HardwareUse::Unknown(_)) && !matches!(self.assembly, Assembly::Unknown(_))
    }
}

/// Judges all samples of one library.
pub(crate) fn judge(samples: &[Sample], circumstances: &Circumstances) -> Judgement {
    let figures = figures(samples);
    let effects: Vec<MaskEffect> = LensOp::ALL.iter().filter_map(|&op| effect(samples, op)).collect();
    Judgement {
        hardware: in_server(hardware(&effects, &figures, circumstances), circumstances.server_has_aes),
        assembly: assembly(&effects, circumstances),
        corroboration: corroboration(&figures, &circumstances.identity),
        effects,
        figures,
    }
}

/// How two rates stand to one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// The first is higher.
    Gains,
    Equal,
    /// Neither is sure, or the second is higher.
    Unclear,
}

fn standing(op: LensOp, gain: &Gain) -> Standing {
    let equal_within = match op {
        LensOp::Aes128Gcm | LensOp::Aes256Gcm | LensOp::Aes256Cbc => AES_EQUAL_WITHIN,
        _ => EQUAL_WITHIN,
    };
    if gain.low > GAINS_FROM {
        Standing::Gains
    } else if gain.low >= 1.0 / equal_within && gain.high <= equal_within {
        Standing::Equal
    } else {
        Standing::Unclear
    }
}

/// AES-256-GCM tells most: it needs AES and the multiplication of its authentication. The others stand in where a
/// library lacks it.
const TELLING: [LensOp; 3] = [LensOp::Aes256Gcm, LensOp::Aes128Gcm, LensOp::Aes256Cbc];

/// What was read from the server goes before what its environment made of a new process: a mask may have been overwritten
/// since, or not have been heard, as by a program that takes its user's rights.
fn in_server(measured: HardwareUse, has_aes: Option<bool>) -> HardwareUse {
    match (measured, has_aes) {
        // A set that obeys masks and lacks the instructions is enough: it is what the library chooses its code by.
        (HardwareUse::Used | HardwareUse::Unknown(_), Some(false)) => HardwareUse::Masked,
        (HardwareUse::Masked, Some(true)) => HardwareUse::Used,
        (measured, _) => measured,
    }
}

fn hardware(effects: &[MaskEffect], figures: &[LensFigure], circumstances: &Circumstances) -> HardwareUse {
    let unknown = |why: &str| HardwareUse::Unknown(why.into());
    if circumstances.cpu_has_aes == Some(false) {
        return HardwareUse::NotOffered;
    }
    if !circumstances.masks_known {
        return unknown("no mask is known for this kind of CPU");
    }
    let found =
        TELLING.iter().find_map(|&op| effects.iter().find(|effect| effect.op == op && effect.aes_mask.is_some()));
    let Some((effect, gain)) = found.and_then(|effect| Some((effect, effect.aes_mask?))) else {
        return unknown("AES was not measured both with and without the mask");
    };
    // The full mask takes the instructions for AES too: where even that changes nothing, they are not used.
    let full_mask_costs_nothing = effect.full_mask.is_some_and(|gain| standing(effect.op, &gain) == Standing::Equal);
    match standing(effect.op, &gain) {
        Standing::Gains => as_it_is(effect, circumstances),
        Standing::Equal => unused(effect.op, figures, circumstances),
        Standing::Unclear if full_mask_costs_nothing => unused(effect.op, figures, circumstances),
        Standing::Unclear => HardwareUse::Unknown(format!(
            "without the mask {} is {:.2}x as fast as with it, but that may be {:.2}x or {:.2}x as well",
            effect.op.name(),
            gain.ratio,
            gain.low,
            gain.high
        )),
    }
}

/// The mask takes something away. Is it there in the server's environment?
fn as_it_is(effect: &MaskEffect, circumstances: &Circumstances) -> HardwareUse {
    if !circumstances.environment_masks {
        return HardwareUse::Used;
    }
    let stands = |gain: Option<Gain>| gain.map(|gain| standing(effect.op, &gain));
    match (stands(effect.environment), stands(effect.left)) {
        // A part may be masked, such as the widest vectors: the instructions are used.
        (_, Some(Standing::Gains)) => HardwareUse::Used,
        (Some(Standing::Gains), Some(_)) => HardwareUse::Masked,
        _ => HardwareUse::Unknown(
            "the library can use the instructions, but the figures in the server's environment vary too much".into(),
        ),
    }
}

/// The mask changes nothing. That accuses the library only if it listens to masks, and if AES is slow.
fn unused(op: LensOp, figures: &[LensFigure], circumstances: &Circumstances) -> HardwareUse {
    match reads_masks(&circumstances.identity) {
        Some(true) => {}
        Some(false) => {
            return HardwareUse::Unknown("the mask changes nothing, but this library is not known to read one".into());
        }
        None => {
            return HardwareUse::Unknown("the mask changes nothing, but the library does not say what it is".into());
        }
    }
    if circumstances.cpu_has_aes.is_none() {
        return HardwareUse::Unknown(
            "the mask changes nothing, but whether the CPU has the instructions is unknown".into(),
        );
    }
    // With its instructions AES-256-GCM keeps up with ChaCha20 on every CPU that has them; in software it takes ten
    // cycles for a byte and more, several times as many as ChaCha20.
    let whole = |op| {
        let of_op = figures.iter().filter(|figure| figure.op == op && figure.treatment == LensTreatment::Whole);
        of_op.max_by_key(|figure| figure.block_bytes).map(|figure| figure.median_per_s)
    };
    match (whole(op), whole(LensOp::Chacha20Poly1305)) {
        (Some(aes), Some(chacha)) if aes >= chacha => HardwareUse::Unknown(format!(
            "the mask changes nothing, but {} is faster than ChaCha20-Poly1305, as if the mask was not heard",
            op.name()
        )),
        _ => HardwareUse::NotUsed,
    }
}

/// Whether a library of this version looks at the masks: OpenSSL has since 1.0.1, and so do BoringSSL and AWS-LC; LibreSSL
/// has dropped it.
fn reads_masks(identity: &LensIdentity) -> Option<bool> {
    let version = identity.version.as_deref()?;
    Some(["OpenSSL ", "BoringSSL", "AWS-LC"].iter().any(|name| version.starts_with(name)))
}

/// Operations of which at least two have to be equal under the full mask before a library is said to have no assembly.
/// OpenSSL has vectors for all of them in its assembly on x86 and Arm.
const VECTORISED: [LensOp; 4] = [LensOp::Aes256Gcm, LensOp::Aes256Cbc, LensOp::Chacha20Poly1305, LensOp::Sha256];

fn assembly(effects: &[MaskEffect], circumstances: &Circumstances) -> Assembly {
    let unknown = |why: &str| Assembly::Unknown(why.into());
    if !circumstances.masks_known {
        return unknown("no mask is known for this kind of CPU");
    }
    let full: Vec<(LensOp, Standing)> = effects
        .iter()
        .filter_map(|effect| Some((effect.op, standing(effect.op, effect.full_mask.as_ref()?))))
        .collect();
    if full.iter().any(|(_, standing)| *standing == Standing::Gains) {
        return Assembly::Present;
    }
    let vectorised: Vec<Standing> =
        full.iter().filter(|(op, _)| VECTORISED.contains(op)).map(|(_, standing)| *standing).collect();
    if vectorised.len() < 2 {
        unknown("too little was measured with everything masked")
    } else if vectorised.iter().any(|&standing| standing != Standing::Equal) {
        unknown("the figures vary too much")
    } else if reads_masks(&circumstances.identity) != Some(true) {
        unknown("no mask changes anything, but this library is not known to read one")
    } else if circumstances.cpu_has_vectors != Some(true) {
        unknown("no mask changes anything, but the CPU may have nothing that a mask takes away")
    } else {
        Assembly::Absent
    }
}

/// What the library says of its build, and how busy the machine was.
fn corroboration(figures: &[LensFigure], identity: &LensIdentity) -> Vec<String> {
    let mut told = Vec::new();
    let compiler = identity.compiler.as_deref().unwrap_or_default();
    // 1.1.1 and before name their assembly; 3.0 and later do not, so that its absence tells nothing.
    let named: Vec<&str> = compiler.split_whitespace().filter(|flag| flag.ends_with("_ASM")).take(4).collect();
    if compiler.contains("OPENSSL_NO_ASM") || compiler.contains("no-asm") {
        told.push("its compiler flags say that it was built without assembly".into());
    } else if !named.is_empty() {
        told.push(format!("its compiler flags name assembly ({} ...)", named.join(" ")));
    }
    match (&identity.version, &identity.cpu) {
        (_, Some(cpu)) => told.push(format!("it knows CPU features: {cpu}")),
        (Some(version), None) if version.starts_with("OpenSSL 3.") => {
            told.push("it says nothing of CPU features, as a build without assembly does".into());
        }
        _ => {}
    }
    let (cpu_ns, wall_ns) = figures
        .iter()
        .fold((0.0, 0.0), |(cpu, wall), figure| (cpu + figure.cpu_ns as f64, wall + figure.wall_ns as f64));
    // Half: below, others had the CPU for longer than we did, and its caches with it.
    if wall_ns > 0.0 && cpu_ns / wall_ns < 0.5 {
        told.push(format!(
            "the machine was busy: the measurement had the CPU for {:.0} % of its time",
            100.0 * cpu_ns / wall_ns
        ));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Two processes of five rounds at these rates, in bytes per second, for each treatment in order.
    fn world(rates: &[(LensOp, [f64; 4])]) -> Vec<Sample> {
        let mut samples = Vec::new();
        for (op, rates) in rates {
            for (treatment, rate) in LensTreatment::ALL.into_iter().zip(rates) {
                for luck in [1.0, 1.03] {
                    samples.push(Sample {
                        op: *op,
                        block_bytes: Some(16384),
                        treatment,
                        rounds_per_s: [0.98, 0.99, 1.0, 1.01, 1.02].map(|r| r * luck * rate).to_vec(),
                        cpu_ns: 10,
                        wall_ns: 11,
                    });
                }
            }
        }
        samples
    }

    fn openssl() -> Circumstances {
        Circumstances {
            cpu_has_aes: Some(true),
            cpu_has_vectors: Some(true),
            environment_masks: true,
            server_has_aes: None,
            masks_known: true,
            identity: LensIdentity { version: Some("OpenSSL 3.0.22".into()), ..LensIdentity::default() },
        }
    }

    /// ChaCha20 as assembly does it.
    const CHACHA: (LensOp, [f64; 4]) = (LensOp::Chacha20Poly1305, [2e9, 2e9, 2e9, 5e8]);

    #[test]
    fn used_masked_and_not_used_are_told_apart() {
        let judged = |aes, circumstances: &Circumstances| {
            let judgement = judge(&world(&[(LensOp::Aes256Gcm, aes), CHACHA]), circumstances);
            (judgement.hardware, judgement.assembly)
        };
        assert_eq!(judged([4e9, 4e9, 2e8, 2e8], &openssl()), (HardwareUse::Used, Assembly::Present));
        assert_eq!(judged([2e8, 4e9, 2e8, 2e8], &openssl()), (HardwareUse::Masked, Assembly::Present));
        assert_eq!(judged([2e8, 2e8, 2e8, 2e8], &openssl()), (HardwareUse::NotUsed, Assembly::Present));
        // The environment takes the widest vectors only.
        assert_eq!(judged([2e9, 4e9, 2e8, 2e8], &openssl()), (HardwareUse::Used, Assembly::Present));
        let old_cpu = Circumstances { cpu_has_aes: Some(false), ..openssl() };
        assert_eq!(judged([2e8, 2e8, 2e8, 2e8], &old_cpu).0, HardwareUse::NotOffered);
    }

    #[test]
    fn what_the_server_holds_goes_before_its_environment() {
        let judged = |aes, server_has_aes| {
            let circumstances = Circumstances { server_has_aes, ..openssl() };
            judge(&world(&[(LensOp::Aes256Gcm, aes), CHACHA]), &circumstances).hardware
        };
        let (whole, masked, never) = ([4e9, 4e9, 2e8, 2e8], [2e8, 4e9, 2e8, 2e8], [2e8; 4]);
        assert_eq!(judged(whole, Some(false)), HardwareUse::Masked);
        assert_eq!(judged(whole, Some(true)), HardwareUse::Used);
        assert_eq!(judged(masked, Some(true)), HardwareUse::Used);
        // A library that never uses them is not cleared by having them.
        assert_eq!(judged(never, Some(true)), HardwareUse::NotUsed);
        assert_eq!(judged(never, Some(false)), HardwareUse::NotUsed);
    }

    #[test]
    fn a_build_without_assembly_is_equal_under_every_mask() {
        let rates = [(LensOp::Aes256Gcm, [1e8; 4]), (LensOp::Chacha20Poly1305, [4e8; 4]), (LensOp::Sha256, [2e8; 4])];
        let judgement = judge(&world(&rates), &openssl());
        assert_eq!((judgement.hardware, judgement.assembly), (HardwareUse::NotUsed, Assembly::Absent));
        // Without vectors there is nothing that the mask could have taken.
        let plain_cpu = Circumstances { cpu_has_vectors: Some(false), ..openssl() };
        assert!(matches!(judge(&world(&rates), &plain_cpu).assembly, Assembly::Unknown(_)));
    }

    #[test]
    fn a_full_mask_that_changes_nothing_tells_of_its_part() {
        // One round of two in the way, of one treatment, as on a machine with other work.
        let judged = |all_masked| {
            let mut samples =
                world(&[(LensOp::Aes256Gcm, [1e8, 1e8, 1e8, all_masked]), (LensOp::Chacha20Poly1305, [4e8; 4])]);
            let aes_masked =
                samples.iter_mut().filter(|s| s.op == LensOp::Aes256Gcm && s.treatment == LensTreatment::AesMasked);
            for sample in aes_masked {
                sample.rounds_per_s = [0.4, 0.7, 1.0, 1.4, 2.3].map(|r| r * 1e8).to_vec();
            }
            judge(&samples, &openssl()).hardware
        };
        assert_eq!(judged(1e8), HardwareUse::NotUsed);
        assert!(matches!(judged(0.45e8), HardwareUse::Unknown(_)));
    }

    #[test]
    fn a_library_that_does_not_hear_the_mask_is_not_accused() {
        let rates = [(LensOp::Aes256Gcm, [1e8; 4]), (LensOp::Chacha20Poly1305, [4e8; 4])];
        let mut libressl = openssl();
        libressl.identity.version = Some("LibreSSL 4.0.0".into());
        let judgement = judge(&world(&rates), &libressl);
        assert!(matches!(judgement.hardware, HardwareUse::Unknown(_)));
        assert!(matches!(judgement.assembly, Assembly::Unknown(_)));
        let fast = [(LensOp::Aes256Gcm, [4e9; 4]), (LensOp::Chacha20Poly1305, [2e9; 4])];
        let HardwareUse::Unknown(why) = judge(&world(&fast), &openssl()).hardware else { panic!("it was accused") };
        assert!(why.contains("not heard"), "{why}");
    }

    #[test]
    fn noise_between_processes_makes_it_unknown() {
        let mut samples = world(&[(LensOp::Aes256Gcm, [2e8; 4]), CHACHA]);
        for (nth, sample) in samples.iter_mut().filter(|s| s.op == LensOp::Aes256Gcm).enumerate() {
            if nth % 2 == 0 {
                sample.rounds_per_s.iter_mut().for_each(|rate| *rate *= 1.7);
            }
        }
        assert!(matches!(judge(&samples, &openssl()).hardware, HardwareUse::Unknown(_)));
    }

    #[test]
    fn what_was_measured_in_one_process_only_is_not_judged() {
        let mut samples = world(&[(LensOp::Aes256Gcm, [4e9, 4e9, 2e8, 2e8])]);
        samples.retain(|sample| sample.treatment != LensTreatment::AesMasked);
        assert!(matches!(judge(&samples, &openssl()).hardware, HardwareUse::Unknown(_)));
        assert!(matches!(judge(&[], &openssl()).hardware, HardwareUse::Unknown(_)));
    }

    #[test]
    fn two_rates_of_each_tell_large_differences_only() {
        let world = |luck: f64, rates: &[(LensOp, [f64; 4])]| -> Vec<Sample> {
            let mut samples = world(rates);
            for (nth, sample) in samples.iter_mut().enumerate() {
                let rate = sample.rounds_per_s[2];
                sample.rounds_per_s = vec![if nth % 2 == 0 { rate } else { rate * luck }];
            }
            samples
        };
        let hardware = |luck, aes| judge(&world(luck, &[(LensOp::Aes256Gcm, aes), CHACHA]), &openssl()).hardware;
        assert_eq!(hardware(1.02, [4e9, 4e9, 2e8, 2e8]), HardwareUse::Used);
        assert_eq!(hardware(1.02, [2e8, 2e8, 2e8, 2e8]), HardwareUse::NotUsed);
        // Rates that differ by half from their own repeats tell no equality.
        assert!(matches!(hardware(1.5, [2e8, 2e8, 2e8, 2e8]), HardwareUse::Unknown(_)));
        assert_eq!(hardware(1.5, [4e9, 4e9, 2e8, 2e8]), HardwareUse::Used);
    }

    proptest! {
        #[test]
        fn no_rounds_make_it_stumble(rounds in proptest::collection::vec(
            (0_usize..10, 0_usize..4, proptest::collection::vec(any::<f64>(), 0..12)), 0..30))
        {
            let samples: Vec<Sample> = rounds.into_iter().map(|(op, treatment, rounds_per_s)| Sample {
                op: LensOp::ALL[op],
                block_bytes: LensOp::ALL[op].is_bulk().then_some(16),
                treatment: LensTreatment::ALL[treatment],
                rounds_per_s, cpu_ns: 1, wall_ns: 1,
            }).collect();
            let judgement = judge(&samples, &openssl());
            for effect in judgement.effects {
                for gain in [effect.environment, effect.left, effect.aes_mask, effect.full_mask].into_iter().flatten() {
                    prop_assert!(gain.low <= gain.ratio && gain.ratio <= gain.high, "{gain:?}");
                }
            }
        }
    }
}
