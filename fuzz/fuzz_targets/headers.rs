//! Headers of any kind: `cargo +nightly fuzz run headers`. The test `fuzz_headers` of the driver feeds
//! the same function with inputs of its own.
#![no_main]

#[path = "../../host/driver/tests/support/judge.rs"]
mod judge;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Err(why) = judge::headers(input) {
        panic!("{why}");
    }
});
