#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| duel_http::fuzzing::cookies(data));
