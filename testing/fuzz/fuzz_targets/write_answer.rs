//! Fuzzes the target `write_answer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::writes::write_answer(bytes));
