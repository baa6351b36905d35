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

/// The variable and its value that hide these features (`aes+vaes`), or `all` of them.
///
/// # Errors
///
/// A feature that is not known, or that this CPU does not have: a sentence for the user.
pub(crate) fn variable(features: &str) -> Result<(String, String), String> {
    if !cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
        return Err("not available here: features are hidden by name on x86 only".into());
    }
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("flags"))
        .map(|flags| flags.split([' ', ':', '\t']).collect());
    of_x86(features, flags)
}

fn of_x86(features: &str, flags: Option<Vec<&str>>) -> Result<(String, String), String> {
    let name = "OPENSSL_ia32cap".to_owned();
    if features == "all" {
        return Ok((name, "0:0".into()));
    }
    let mut words = [0_u64; 2];
    for feature in features.split('+') {
        let Some((_, bits, flag)) = X86.iter().find(|(known, _, _)| *known == feature) else {
            let known: Vec<&str> = X86.iter().map(|(known, _, _)| *known).collect();
            return Err(format!(
                "'{feature}' is no feature that can be hidden; all or some of {} can",
                known.join(", ")
            ));
        };
        if flags.as_ref().is_some_and(|flags| !flags.contains(flag)) {
            return Err(format!("this CPU has no {feature} that could be hidden"));
        }
        words = [words[0] | bits[0], words[1] | bits[1]];
    }
    Ok((name, format!("~{:#x}:~{:#x}", words[0], words[1])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_bits() {
        let of = |features| of_x86(features, None).map(|(_, value)| value);
        // As OPENSSL_ia32cap(3) has them.
        assert_eq!(of("aes+clmul"), Ok("~0x200000200000000:~0x0".into()));
        assert_eq!(of("vaes+vpclmul"), Ok("~0x0:~0x60000000000".into()));
        assert_eq!(of("all"), Ok("0:0".into()));
        assert!(of("mmx3").unwrap_err().contains("avx2"));
        assert!(of_x86("aes", Some(vec!["fpu"])).unwrap_err().contains("has no aes"));
    }
}
