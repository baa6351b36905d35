//! What the lens shows of a library.

use duel_model::{Assembly, Gain, HardwareUse, LensIdentity, LensMeans, LensOp, LensReading, MaskEffect};

/// On an x86 CPU; masking its AES instructions makes AES-256-GCM 20 times slower.
pub fn reading_of(hardware: HardwareUse, assembly: Assembly) -> LensReading {
    LensReading {
        library: "/usr/lib/libcrypto.so.3".into(),
        means: LensMeans::Child,
        identity: LensIdentity { version: Some("OpenSSL 3.0.22".into()), ..LensIdentity::default() },
        hardware,
        assembly,
        capabilities: None,
        effects: vec![MaskEffect {
            op: LensOp::Aes256Gcm,
            block_bytes: Some(16384),
            environment: None,
            left: None,
            aes_mask: Some(Gain { ratio: 20.0, low: 18.0, high: 22.0 }),
            full_mask: None,
            noise: None,
        }],
        figures: Vec::new(),
        unavailable: Vec::new(),
        corroboration: Vec::new(),
        by_hand: vec!["ldd openssl".into(), "openssl speed".into(), "duel lens 7".into()],
    }
}
