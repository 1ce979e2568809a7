//! Fuzzes the target `endpoint_objects`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::endpoints::endpoint_objects(bytes));
