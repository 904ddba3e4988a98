//! See [`slowstart_fuzz::stacks`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = slowstart_fuzz::stacks(data);
});
