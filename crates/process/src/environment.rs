//! Variables of a process's environment.

/// Every variable through which a libcrypto takes a mask on the CPU's features, on whatever CPU.
pub const MASK_VARIABLES: [&str; 5] =
    ["OPENSSL_ia32cap", "OPENSSL_armcap", "OPENSSL_ppccap", "OPENSSL_s390xcap", "OPENSSL_riscvcap"];

/// Names and values in `/proc/PID/environ`, in their order. Of a name that comes twice the first counts, as for getenv.
pub fn variables(environ: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    environ.split(|&byte| byte == 0).filter_map(|entry| {
        let equals = entry.iter().position(|&byte| byte == b'=')?;
        Some((&entry[..equals], &entry[equals + 1..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_equals_sign_ends_a_name() {
        let found: Vec<_> = variables(b"A=b=c\0odd\0=x\0B=\0").collect();
        assert_eq!(found, [(&b"A"[..], &b"b=c"[..]), (b"", b"x"), (b"B", b"")]);
        assert_eq!(variables(b"").count(), 0);
    }
}
