//! Fuzzes the target `claims`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::annotations::claims(bytes));
