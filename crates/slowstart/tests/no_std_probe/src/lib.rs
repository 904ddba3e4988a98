//! A program without std that drives every startup: what a kernel module or a firmware would link.
//!
//! Its panic handler would collide with std's, had std crept in.

#![no_std]

use core::panic::PanicInfo;

#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    loop {}
}

mod windows;

/// See [`windows::windows`].
#[unsafe(no_mangle)]
pub extern "C" fn slowstart_probe(now_ns: u64, mss: u64, rtt_ns: u64) -> u64 {
    windows::windows(now_ns, mss, rtt_ns)
}
