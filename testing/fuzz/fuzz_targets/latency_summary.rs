//! Fuzzes the target `latency_summary`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::objects::latency_summary(bytes));
