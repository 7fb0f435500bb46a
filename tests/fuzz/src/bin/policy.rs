//! libFuzzer's way into [`fuzz::policy::check`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::policy::check(data));
