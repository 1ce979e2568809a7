//! Fuzzes the target `error_answer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::watch::error_answer(bytes));
