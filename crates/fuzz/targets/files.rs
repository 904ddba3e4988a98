//! See [`slowstart_fuzz::files`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = slowstart_fuzz::files(data);
});
