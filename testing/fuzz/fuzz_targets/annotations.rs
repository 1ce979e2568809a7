//! Fuzzes the target `annotations`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::annotations::annotations(bytes));
