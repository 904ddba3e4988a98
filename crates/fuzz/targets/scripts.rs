//! See [`slowstart_fuzz::scripts`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = slowstart_fuzz::scripts(data);
});
