//! Fuzzes the target `plans`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::plans::plans(bytes));
