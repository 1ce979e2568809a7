//! Fuzzes the target `list_page`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::watch::list_page(bytes));
