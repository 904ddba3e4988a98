//! See [`slowstart_fuzz::paths`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = slowstart_fuzz::paths(data);
});
