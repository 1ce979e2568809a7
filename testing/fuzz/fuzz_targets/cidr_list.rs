//! Fuzzes the target `cidr_list`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::ranges::cidr_list(bytes));
