//! Features of the CPU by name, and the variable that hides them from an OpenSSL library.

/// Features of x86 by their bits in `OPENSSL_ia32cap` (OPENSSL_ia32cap(3)): the first word of 64 bits holds EDX and ECX of
/// CPUID 1, the second EBX and ECX of CPUID 7. The third text is the flag in /proc/cpuinfo.
const X86: &[(&str, [u64; 2], &str)] = &[
    ("ssse3", [1 << 41, 0], "ssse3"),
    ("aes", [1 << 57, 0], "aes"),
    ("clmul", [1 << 33, 0], "pclmulqdq"),
    ("avx", [1 << 60, 0], "avx"),
    ("movbe", [1 << 54, 0], "movbe"),
    ("rdrand", [1 << 62, 0], "rdrand"),
    ("bmi1", [0, 1 << 3], "bmi1"),
    ("avx2", [0, 1 << 5], "avx2"),
    ("bmi2", [0, 1 << 8], "bmi2"),
    ("avx512f", [0, 1 << 16], "avx512f"),
    ("avx512dq", [0, 1 << 17], "avx512dq"),
    ("rdseed", [0, 1 << 18], "rdseed"),
    ("adx", [0, 1 << 19], "adx"),
    ("avx512ifma", [0, 1 << 21], "avx512ifma"),
    ("sha", [0, 1 << 29], "sha_ni"),
    ("avx512bw", [0, 1 << 30], "avx512bw"),
    ("avx512vl", [0, 1 << 31], "avx512vl"),
    ("vaes", [0, 1 << 41], "vaes"),
    ("vpclmul", [0, 1 << 42], "vpclmulqdq"),
];

/// Features of Arm by their bits in `OPENSSL_armcap` (crypto/arm_arch.h of OpenSSL). The third is the flag in /proc/cpuinfo:
/// of 64 bits, then of 32.
const ARM: &[(&str, u32, [&str; 2])] = &[
    ("neon", 1 << 0, ["asimd", "neon"]),
    ("aes", 1 << 2, ["aes", "aes"]),
    ("sha1", 1 << 3, ["sha1", "sha1"]),
    ("sha256", 1 << 4, ["sha2", "sha2"]),
    ("pmull", 1 << 5, ["pmull", "pmull"]),
    ("sha512", 1 << 6, ["sha512", "sha512"]),
    ("cpuid", 1 << 7, ["cpuid", "cpuid"]),
    ("rng", 1 << 8, ["rng", "rng"]),
    ("sm3", 1 << 9, ["sm3", "sm3"]),
    ("sm4", 1 << 10, ["sm4", "sm4"]),
    ("sha3", 1 << 11, ["sha3", "sha3"]),
    ("sve", 1 << 13, ["sve", "sve"]),
    ("sve2", 1 << 14, ["sve2", "sve2"]),
];

/// The variable and its value that hide these features (`aes+vaes`), or `all` of them.
///
/// # Errors
///
/// A feature that is not known, or that this CPU does not have: a sentence for the user.
pub(crate) fn variable(features: &str) -> Result<(String, String), String> {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    of_architecture(std::env::consts::ARCH, features, flags(&cpuinfo).as_deref())
}

/// The flags of the first CPU, as x86 and Arm call their line.
fn flags(cpuinfo: &str) -> Option<Vec<&str>> {
    let line = cpuinfo.lines().find_map(|line| line.strip_prefix("flags").or_else(|| line.strip_prefix("Features")))?;
    Some(line.split([' ', ':', '\t']).filter(|flag| !flag.is_empty()).collect())
}

fn of_architecture(architecture: &str, features: &str, flags: Option<&[&str]>) -> Result<(String, String), String> {
    match architecture {
        "x86" | "x86_64" => of_x86(features, flags).map(|value| ("OPENSSL_ia32cap".to_owned(), value)),
        "arm" | "aarch64" => of_arm(features, flags).map(|value| ("OPENSSL_armcap".to_owned(), value)),
        _ => Err("not available here: features are hidden by name on x86 and Arm only".to_owned()),
    }
}

/// Two words, each with the bits that are taken away.
fn of_x86(features: &str, flags: Option<&[&str]>) -> Result<String, String> {
    if features == "all" {
        return Ok("0:0".into());
    }
    let mut words = [0_u64; 2];
    for feature in features.split('+') {
        let known = X86.iter().find(|(known, _, _)| *known == feature);
        let (_, bits, flag) = known.ok_or_else(|| unknown(feature, X86.iter().map(|(known, _, _)| *known)))?;
        if flags.is_some_and(|flags| !flags.contains(flag)) {
            return Err(lacks(feature));
        }
        words = [words[0] | bits[0], words[1] | bits[1]];
    }
    Ok(format!("~{:#x}:~{:#x}", words[0], words[1]))
}

/// The set that is left: on Arm a library takes the number as all that there is. What it finds out of models of CPUs beside (which
/// of two ways is faster) it does not find out then.
fn of_arm(features: &str, flags: Option<&[&str]>) -> Result<String, String> {
    if features == "all" {
        return Ok("0".into());
    }
    let flags = flags.ok_or("the features of this CPU are not known here, so none can be left; all can be hidden")?;
    let has = |names: &[&str; 2]| names.iter().any(|name| flags.contains(name));
    let mut left = ARM.iter().filter(|(_, _, names)| has(names)).fold(0, |set, (_, bit, _)| set | bit);
    for feature in features.split('+') {
        let known = ARM.iter().find(|(known, _, _)| *known == feature);
        let (_, bit, names) = known.ok_or_else(|| unknown(feature, ARM.iter().map(|(known, _, _)| *known)))?;
        if !has(names) {
            return Err(lacks(feature));
        }
        left &= !bit;
    }
    Ok(format!("{left:#x}"))
}

fn unknown(feature: &str, known: impl Iterator<Item = &'static str>) -> String {
    let known: Vec<&str> = known.collect();
    format!("'{feature}' is no feature that can be hidden; all or some of {} can", known.join(", "))
}

fn lacks(feature: &str) -> String {
    format!("this CPU has no {feature} that could be hidden")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_bits_of_x86() {
        let of = |features| of_architecture("x86_64", features, None).map(|(_, value)| value);
        // As OPENSSL_ia32cap(3) has them.
        assert_eq!(of("aes+clmul"), Ok("~0x200000200000000:~0x0".into()));
        assert_eq!(of("vaes+vpclmul"), Ok("~0x0:~0x60000000000".into()));
        assert_eq!(of("all"), Ok("0:0".into()));
        assert!(of("mmx3").unwrap_err().contains("avx2"));
        assert!(of_architecture("x86", "aes", Some(&["fpu"])).unwrap_err().contains("has no aes"));
    }

    #[test]
    fn names_leave_a_set_on_arm() {
        let cpuinfo = "processor\t: 0\nFeatures\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid sha512\n";
        let flags = flags(cpuinfo).unwrap();
        let of = |features| of_architecture("aarch64", features, Some(&flags));
        // NEON, AES, SHA-1, SHA-256, PMULL, SHA-512 and CPUID are 0xfd together.
        assert_eq!(of("aes"), Ok(("OPENSSL_armcap".into(), "0xf9".into())));
        assert_eq!(of("aes+pmull+sha512").unwrap().1, "0x99");
        assert_eq!(of("all").unwrap().1, "0");
        assert!(of("sve").unwrap_err().contains("has no sve"));
        assert!(of("clmul").unwrap_err().contains("pmull"));
        assert_eq!(of_architecture("arm", "neon", Some(&["neon", "aes"])).unwrap().1, "0x4");
        assert!(of_architecture("aarch64", "aes", None).unwrap_err().contains("not known"));
    }

    #[test]
    fn other_cpus_are_told_of() {
        assert!(of_architecture("riscv64", "aes", None).unwrap_err().contains("x86 and Arm"));
    }
}
