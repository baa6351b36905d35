//! Names of the bits in a libcrypto's set of CPU features.

use crate::mask::Architecture;

/// Names by word and bit. x86: EDX and ECX of CPUID 1, then EBX and ECX of CPUID 7 (Intel's manual, volume 2A; the order
/// is that of OPENSSL_ia32cap(3)).
const X86: [(usize, u32, &str); 49] = [
    (0, 4, "TSC"),
    (0, 15, "CMOV"),
    (0, 19, "CLFLUSH"),
    (0, 23, "MMX"),
    (0, 24, "FXSR"),
    (0, 25, "SSE"),
    (0, 26, "SSE2"),
    (0, 28, "HTT"),
    (1, 25, "AES-NI"),
    (1, 1, "PCLMULQDQ"),
    (1, 0, "SSE3"),
    (1, 9, "SSSE3"),
    (1, 11, "XOP"),
    (1, 12, "FMA"),
    (1, 19, "SSE4.1"),
    (1, 20, "SSE4.2"),
    (1, 22, "MOVBE"),
    (1, 23, "POPCNT"),
    (1, 26, "XSAVE"),
    (1, 27, "OSXSAVE"),
    (1, 28, "AVX"),
    (1, 29, "F16C"),
    (1, 30, "RDRAND"),
    (2, 0, "FSGSBASE"),
    (2, 3, "BMI1"),
    (2, 5, "AVX2"),
    (2, 8, "BMI2"),
    (2, 9, "ERMS"),
    (2, 16, "AVX512F"),
    (2, 17, "AVX512DQ"),
    (2, 18, "RDSEED"),
    (2, 19, "ADX"),
    (2, 21, "AVX512IFMA"),
    (2, 23, "CLFLUSHOPT"),
    (2, 24, "CLWB"),
    (2, 28, "AVX512CD"),
    (2, 29, "SHA"),
    (2, 30, "AVX512BW"),
    (2, 31, "AVX512VL"),
    (3, 1, "AVX512VBMI"),
    (3, 5, "WAITPKG"),
    (3, 6, "AVX512VBMI2"),
    (3, 8, "GFNI"),
    (3, 9, "VAES"),
    (3, 10, "VPCLMULQDQ"),
    (3, 11, "AVX512VNNI"),
    (3, 12, "AVX512BITALG"),
    (3, 14, "AVX512VPOPCNTDQ"),
    (3, 22, "RDPID"),
];

/// Names by bit (OpenSSL's crypto/arm_arch.h).
const ARM: [(usize, u32, &str); 8] = [
    (0, 0, "NEON"),
    (0, 2, "AES"),
    (0, 5, "PMULL"),
    (0, 3, "SHA1"),
    (0, 4, "SHA256"),
    (0, 6, "SHA512"),
    (0, 11, "SHA3"),
    (0, 13, "SVE"),
];

/// The features that `whole` has and `part` lacks, those that matter most to TLS first within their word; bits without a
/// name here are counted.
pub(crate) fn missing(architecture: Architecture, whole: &[u32], part: &[u32]) -> Vec<String> {
    let names: &[(usize, u32, &str)] = match architecture {
        Architecture::X86 => &X86,
        Architecture::Arm => &ARM,
    };
    let mut lacking: Vec<u32> = whole.iter().zip(part).map(|(whole, part)| whole & !part).collect();
    let mut missing = Vec::new();
    for &(word, bit, name) in names {
        if let Some(lacking) = lacking.get_mut(word)
            && *lacking & (1 << bit) != 0
        {
            *lacking &= !(1 << bit);
            missing.push(name.to_owned());
        }
    }
    match lacking.iter().map(|word| word.count_ones()).sum::<u32>() {
        0 => {}
        others => missing.push(format!("{others} without a name")),
    }
    // What AES-GCM needs before everything else, such as in a list that is cut when it is shown.
    missing.sort_by_key(|name| !matches!(name.as_str(), "AES-NI" | "PCLMULQDQ" | "AES" | "PMULL"));
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_usual_mask_takes_aes_and_all_of_the_second_word() {
        // A Xeon with AVX-512, without and with `~0x200000200000000`: OpenSSL clears the second word where it is not given.
        let whole = [0x4f8b_ffff, 0xfffa_3203, 0xf1bf_27eb, 0x1b41_5fde];
        let missing = missing(Architecture::X86, &whole, &[0x4f8b_ffff, 0xfdfa_3201, 0, 0]);
        assert_eq!(missing[..2], ["AES-NI", "PCLMULQDQ"]);
        for name in ["AVX2", "ADX", "SHA", "VAES", "VPCLMULQDQ", "BMI2"] {
            assert!(missing.iter().any(|missing| missing == name), "{name} in {missing:?}");
        }
        assert!(missing.last().unwrap().ends_with("without a name"));
        assert_eq!(super::missing(Architecture::Arm, &[0x7d], &[0x01]), ["AES", "PMULL", "SHA1", "SHA256", "SHA512"]);
    }

    #[test]
    fn no_bit_has_two_names() {
        for names in [&X86[..], &ARM[..]] {
            let mut bits: Vec<_> = names.iter().map(|(word, bit, _)| (word, bit)).collect();
            bits.sort_unstable();
            bits.dedup();
            assert_eq!(bits.len(), names.len());
        }
    }

    proptest! {
        #[test]
        fn what_is_there_is_not_missing(whole: [u32; 4], more: [u32; 4]) {
            let all = [0, 1, 2, 3].map(|word| whole[word] | more[word]);
            prop_assert!(missing(Architecture::X86, &whole, &all).is_empty());
            let any = whole.iter().zip(&more).any(|(whole, part)| whole & !part != 0);
            prop_assert_eq!(!missing(Architecture::X86, &whole, &more).is_empty(), any);
        }
    }
}
