//! Fuzzes the target `watch_stream`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::watch::watch_stream(bytes));
