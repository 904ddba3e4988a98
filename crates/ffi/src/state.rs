//! What the host takes from a controller, and what the controller needs of it.

use crate::controller::slowstart_controller;
use crate::{BAD_ARGUMENT, OK};
use slowstart::control::Controller;
use slowstart_abi::SLOWSTART_VERSION;
use slowstart_abi::state::slowstart_state;
use std::ffi::c_int;
use std::ptr;

/// Writes the state to `into`, as much as `into->size` says.
///
/// # Safety
/// `c` is of `slowstart_create`; `into` points to as many writable bytes as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowstart_get_state(
    c: *const slowstart_controller,
    into: *mut slowstart_state,
) -> c_int {
    // SAFETY: null, or of `slowstart_create`.
    let Some(c) = (unsafe { c.as_ref() }) else { return BAD_ARGUMENT };
    if into.is_null() {
        return BAD_ARGUMENT;
    }
    // SAFETY: `into` is not null and begins with its size.
    let size = unsafe { into.cast::<u64>().read_unaligned() };
    let mut state = slowstart_state::of(c.control.state(), c.exited.as_ref(), c.resend);
    state.size = size;
    let Ok(size) = usize::try_from(size) else { return BAD_ARGUMENT };
    if size < size_of::<u64>() {
        return BAD_ARGUMENT;
    }
    let n = size.min(size_of::<slowstart_state>());
    // SAFETY: both have at least `n` bytes and do not overlap.
    unsafe { ptr::copy_nonoverlapping((&raw const state).cast::<u8>(), into.cast::<u8>(), n) };
    OK
}

/// Returns 1 if `slowstart_on_sent` has an effect at present, else 0.
///
/// # Safety
/// `c` is of `slowstart_create`, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowstart_needs_sent(c: *const slowstart_controller) -> c_int {
    // SAFETY: null, or of `slowstart_create`.
    unsafe { c.as_ref() }.map_or(0, |c| c_int::from(c.control.needs_on_sent()))
}

/// Returns 1 if the fields of `slowstart_sent` after `bytes` are read, else 0.
///
/// # Safety
/// `c` is of `slowstart_create`, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowstart_needs_delivery_state(c: *const slowstart_controller) -> c_int {
    // SAFETY: null, or of `slowstart_create`.
    unsafe { c.as_ref() }.map_or(0, |c| c_int::from(c.control.needs_delivery_state()))
}

/// Returns 1 if the avoidance needs the number of marked bytes (`marked` of the facts), else 0. A host that
/// does not count them must not use it.
///
/// # Safety
/// `c` is of `slowstart_create`, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowstart_needs_marks(c: *const slowstart_controller) -> c_int {
    // SAFETY: null, or of `slowstart_create`.
    unsafe { c.as_ref() }.map_or(0, |c| c_int::from(c.control.needs_each_mark()))
}

/// Returns the version of the interface that the library has, to compare with `SLOWSTART_VERSION` of the
/// header.
#[unsafe(no_mangle)]
pub extern "C" fn slowstart_version() -> u32 {
    SLOWSTART_VERSION
}
