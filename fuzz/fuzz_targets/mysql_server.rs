#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| duel_sql::fuzzing::mysql_server(data));
