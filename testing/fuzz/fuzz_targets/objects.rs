//! Fuzzes the target `objects`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::objects::objects(bytes));
