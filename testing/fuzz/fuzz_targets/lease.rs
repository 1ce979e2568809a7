//! Fuzzes the target `lease`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::leases::lease(bytes));
