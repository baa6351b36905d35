//! Masks: how a libcrypto is told not to use a feature of the CPU.

use duel_model::LensTreatment;
use duel_process::MASK_VARIABLES;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// A kind of CPU whose masks are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// 32 and 64 bits.
    X86,
    /// 32 and 64 bits.
    Arm,
}

impl Architecture {
    /// This machine's.
    pub fn here() -> Option<Self> {
        match std::env::consts::ARCH {
            "x86_64" | "x86" => Some(Self::X86),
            "aarch64" | "arm" => Some(Self::Arm),
            _ => None,
        }
    }

    /// The variable that carries the mask.
    pub fn variable(self) -> &'static str {
        match self {
            Self::X86 => "OPENSSL_ia32cap",
            Self::Arm => "OPENSSL_armcap",
        }
    }

    /// The mask of a treatment, where it has one.
    ///
    /// x86 (OPENSSL_ia32cap(3)): two words of 64 bits, `~` clears bits. AES-NI is bit 57 and PCLMULQDQ bit 33 of the first
    /// (CPUID 1: EDX, ECX); VAES and VPCLMULQDQ are bits 41 and 42 of the second (CPUID 7: EBX, ECX). A word without `~`
    /// is taken as it is, so `0:0` leaves the baseline of the architecture only.
    ///
    /// Arm (arm_arch.h): the number is the set of features; bit 0 is NEON, and 1 leaves that alone. So on Arm the
    /// instructions for SHA go with those for AES.
    pub fn mask(self, treatment: LensTreatment) -> Option<&'static str> {
        match (self, treatment) {
            (_, LensTreatment::AsIs | LensTreatment::Whole) => None,
            (Self::X86, LensTreatment::AesMasked) => Some("~0x200000200000000:~0x60000000000"),
            (Self::X86, LensTreatment::AllMasked) => Some("0:0"),
            (Self::Arm, LensTreatment::AesMasked) => Some("1"),
            (Self::Arm, LensTreatment::AllMasked) => Some("0"),
        }
    }
}

/// Whether an environment has a mask of any kind.
pub(crate) fn is_set(environment: &BTreeMap<OsString, OsString>) -> bool {
    MASK_VARIABLES.iter().any(|variable| environment.contains_key(std::ffi::OsStr::new(variable)))
}

/// The environment of a treatment, made from the server's own.
pub(crate) fn environment(
    own: &BTreeMap<OsString, OsString>,
    treatment: LensTreatment,
    architecture: Option<Architecture>,
) -> BTreeMap<OsString, OsString> {
    let mut environment = own.clone();
    if treatment == LensTreatment::AsIs {
        return environment;
    }
    for variable in MASK_VARIABLES {
        environment.remove(std::ffi::OsStr::new(variable));
    }
    if let Some(architecture) = architecture
        && let Some(mask) = architecture.mask(treatment)
    {
        environment.insert(architecture.variable().into(), mask.into());
    }
    environment
}

/// What this machine's CPU offers, as its kernel or hypervisor lets programs see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Instructions for AES.
    pub(crate) aes: bool,
    /// Vectors that ChaCha20 gains from when it is written in assembly, and that a mask can take away.
    pub(crate) vectors: bool,
}

/// `None` on a CPU of a kind whose features are not looked up here.
pub(crate) fn offer() -> Option<Offer> {
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    return Some(Offer {
        aes: std::arch::is_x86_feature_detected!("aes"),
        vectors: std::arch::is_x86_feature_detected!("ssse3"),
    });
    #[cfg(target_arch = "aarch64")]
    return Some(Offer {
        aes: std::arch::is_aarch64_feature_detected!("aes"),
        vectors: std::arch::is_aarch64_feature_detected!("neon"),
    });
    #[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64")))]
    return None;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_aes_mask_takes_the_four_features_and_no_other() {
        let (first, second) = ((1_u64 << 57) | (1 << 33), (1_u64 << 41) | (1 << 42));
        let mask = Architecture::X86.mask(LensTreatment::AesMasked);
        assert_eq!(mask, Some(format!("~{first:#x}:~{second:#x}").as_str()));
    }

    #[test]
    fn only_the_server_s_own_environment_keeps_the_server_s_mask() {
        let own: BTreeMap<OsString, OsString> = [("OPENSSL_ia32cap", "~0x1"), ("LD_LIBRARY_PATH", "/lib")]
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        let mask = |treatment| {
            let made = environment(&own, treatment, Some(Architecture::X86));
            assert_eq!(made[&OsString::from("LD_LIBRARY_PATH")], "/lib");
            made.get(&OsString::from("OPENSSL_ia32cap")).map(|value| value.to_string_lossy().into_owned())
        };
        assert_eq!(mask(LensTreatment::AsIs).as_deref(), Some("~0x1"));
        assert_eq!(mask(LensTreatment::Whole), None);
        assert_eq!(mask(LensTreatment::AllMasked).as_deref(), Some("0:0"));
    }
}
