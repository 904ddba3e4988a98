//! See [`slowstart_fuzz::runs`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = slowstart_fuzz::runs(data);
});
