//! libFuzzer's way into [`fuzz::body::check`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::body::check(data));
