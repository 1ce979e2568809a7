//! Fuzzes the target `managed_fields`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::writes::managed_fields(bytes));
