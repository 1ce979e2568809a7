//! Fuzzes the target `subscribe_response`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::stream::subscribe_response(bytes));
