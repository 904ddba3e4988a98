//! See [`slowstart_fuzz::traces`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = slowstart_fuzz::traces(data);
});
