//! Causes of TLS and of the libraries that servers do it with.

causes! {
    aes_unused,
    no_asm,
    slow_cipher,
    large_key,
    slow_group,
    no_resumption,
    extra_round_trip,
}
