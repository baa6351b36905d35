//! What a server's certificate says of itself: its key, its names, its dates. Nothing here decides whether it is trusted.

use duel_model::sanitize_line;
use duel_model::web::CertificateKey;
use x509_cert::Certificate;
use x509_cert::der::asn1::{ObjectIdentifier, UintRef};
use x509_cert::der::{Decode, Reader, SliceReader};

/// RFC 3279: RSA, elliptic curves. RFC 8410: Ed25519.
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// The curves of TLS (RFC 8422, 5.1.1) with the bits of their fields.
const CURVES: [(ObjectIdentifier, u32); 3] = [
    (ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7"), 256),
    (ObjectIdentifier::new_unwrap("1.3.132.0.34"), 384),
    (ObjectIdentifier::new_unwrap("1.3.132.0.35"), 521),
];

/// Whether a certificate is valid at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dates {
    /// It is.
    Valid,
    /// It is not valid yet.
    Early,
    /// It is not valid any more.
    Late,
}

/// Type and size of the key in a certificate (DER); `None` where the certificate cannot be read. A size that is not known
/// is none.
pub(crate) fn key(certificate: &[u8]) -> Option<CertificateKey> {
    let certificate = Certificate::from_der(certificate).ok()?;
    let info = certificate.tbs_certificate().subject_public_key_info();
    let (algorithm, bits) = match info.algorithm.oid {
        RSA => ("RSA".to_owned(), modulus_bits(info.subject_public_key.raw_bytes())),
        EC => {
            let curve = info.algorithm.parameters.as_ref().and_then(|curve| curve.decode_as::<ObjectIdentifier>().ok());
            ("EC".to_owned(), CURVES.iter().find(|(known, _)| Some(*known) == curve).map(|&(_, bits)| bits))
        }
        ED25519 => ("Ed25519".to_owned(), None),
        other => (sanitize_line(&other.to_string()), None),
    };
    Some(CertificateKey { algorithm, bits })
}

/// Whether a certificate names itself as its issuer.
pub(crate) fn is_self_signed(certificate: &[u8]) -> bool {
    Certificate::from_der(certificate).is_ok_and(|certificate| {
        let certificate = certificate.tbs_certificate();
        certificate.subject() == certificate.issuer()
    })
}

/// Whether a certificate is valid at a time since 1970; `None` where it cannot be read.
pub(crate) fn dates(certificate: &[u8], now_s: u64) -> Option<Dates> {
    let certificate = Certificate::from_der(certificate).ok()?;
    let validity = certificate.tbs_certificate().validity();
    Some(if now_s < validity.not_before.to_unix_duration().as_secs() {
        Dates::Early
    } else if now_s > validity.not_after.to_unix_duration().as_secs() {
        Dates::Late
    } else {
        Dates::Valid
    })
}

/// Bits of the modulus of `RSAPublicKey ::= SEQUENCE { modulus INTEGER, publicExponent INTEGER }` (RFC 8017, A.1.1).
fn modulus_bits(key: &[u8]) -> Option<u32> {
    let modulus = SliceReader::new(key).ok()?.sequence(|parts| {
        let modulus = UintRef::decode(parts)?;
        UintRef::decode(parts)?;
        Ok::<_, x509_cert::der::Error>(modulus)
    });
    let bytes = modulus.ok()?.as_bytes();
    let leading = bytes.first()?.leading_zeros();
    u32::try_from(bytes.len()).ok()?.checked_mul(8)?.checked_sub(leading)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, date_time_ymd};

    fn certificate(key: &KeyPair) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2070, 1, 1));
        params.self_signed(key).unwrap().der().to_vec()
    }

    #[test]
    fn keys_are_told_by_type_and_size() {
        let of = |key: KeyPair| {
            let told = super::key(&certificate(&key)).unwrap();
            (told.algorithm, told.bits)
        };
        assert_eq!(of(KeyPair::generate().unwrap()), ("EC".to_owned(), Some(256)));
        assert_eq!(of(KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap()), ("EC".to_owned(), Some(384)));
        assert_eq!(of(KeyPair::generate_for(&PKCS_ED25519).unwrap()), ("Ed25519".to_owned(), None));
        // SEQUENCE { INTEGER 0x00 80 01 (16 bits), INTEGER 65537 }
        assert_eq!(modulus_bits(&[0x30, 10, 2, 3, 0, 0x80, 1, 2, 3, 1, 0, 1]), Some(16));
        assert_eq!(modulus_bits(&[0x30, 3, 2, 1]), None);
    }

    #[test]
    fn dates_are_those_of_the_certificate() {
        let certificate = certificate(&KeyPair::generate().unwrap());
        // 2020-01-01 and 2070-01-01.
        let (begins_s, ends_s) = (1_577_836_800, 3_155_760_000);
        assert_eq!(dates(&certificate, begins_s - 1), Some(Dates::Early));
        assert_eq!(dates(&certificate, begins_s), Some(Dates::Valid));
        assert_eq!(dates(&certificate, ends_s), Some(Dates::Valid));
        assert_eq!(dates(&certificate, ends_s + 1), Some(Dates::Late));
        assert_eq!(dates(&certificate[1..], begins_s), None);
        assert!(is_self_signed(&certificate) && !is_self_signed(b"garbage"));
    }
}
