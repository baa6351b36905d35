#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| duel_host::fuzzing::host_output(data));
