//! See [`slowstart_fuzz::studies`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = slowstart_fuzz::studies(data);
});
