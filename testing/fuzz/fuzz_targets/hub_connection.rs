//! Fuzzes the target `hub_connection`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::connection::hub_connection(bytes));
