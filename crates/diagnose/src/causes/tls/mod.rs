//! Causes of TLS and of the libraries that servers do it with.

causes! {
    aes_unused::AesUnused,
    no_asm::NoAsm,
    slow_cipher::SlowCipher,
    large_key::LargeKey,
    slow_group::SlowGroup,
    no_resumption::NoResumption,
    extra_round_trip::ExtraRoundTrip,
}
