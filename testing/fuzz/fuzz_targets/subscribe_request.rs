//! Fuzzes the target `subscribe_request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::stream::subscribe_request(bytes));
