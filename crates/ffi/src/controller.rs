//! A controller begins and ends.

use crate::names::{algorithm, avoidance};
use crate::{BAD_ARGUMENT, OK};
use slowstart::control::{Change, Checked, Exited};
use slowstart::registry::{self, AnyController};
use slowstart::units::Bytes;
use slowstart_abi::SLOWSTART_MOST_WINDOW;
use std::ffi::{CStr, c_char, c_int};
use std::ptr;

/// The controller of one connection.
#[allow(non_camel_case_types, reason = "its name in C")]
pub struct slowstart_controller {
    pub(crate) control: Checked<AnyController>,
    pub(crate) exited: Option<Exited>,
    pub(crate) resend: Option<Bytes>,
}

impl slowstart_controller {
    pub(crate) fn note(&mut self, change: Change) {
        // An exit and a restart in one change: slow start runs.
        let kept = self.exited.filter(|_| !change.resumed);
        self.exited = if change.restarted { None } else { change.exited.or(kept) };
        self.resend = change.resend;
    }
}

/// Writes a message into the caller's buffer, cut to its length and ended by a zero.
///
/// # Safety
/// `into` is null or points to `len` writable bytes.
unsafe fn tell(into: *mut c_char, len: usize, message: &str) {
    if into.is_null() || len == 0 {
        return;
    }
    let n = message.len().min(len - 1);
    // SAFETY: `n + 1` is at most `len`.
    unsafe {
        ptr::copy_nonoverlapping(message.as_ptr().cast::<c_char>(), into, n);
        into.add(n).write(0);
    }
}

/// Returns the controller of a new connection, or null.
///
/// `startup` is a name with parameters, such as `"search"` or `"hystart:low=8"`; `avoidance` likewise, such
/// as `"cubic"`. `iw` is the initial window in bytes, from 1 to 2^40; `seed` determines random numbers (of BBR). On failure
/// the reason is written to `error`, a buffer of `error_len` bytes, or null. The only function that
/// allocates.
///
/// # Safety
/// `startup` and `avoidance` are strings that end with a zero, or null (then `"standard"` and `"cubic"`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowstart_create(
    startup: *const c_char,
    avoidance_name: *const c_char,
    iw: u64,
    seed: u64,
    error: *mut c_char,
    error_len: usize,
) -> *mut slowstart_controller {
    let text = |p: *const c_char, default| {
        if p.is_null() {
            return Ok(default);
        }
        // SAFETY: not null, so a string that ends with a zero and outlives this call.
        let text = unsafe { CStr::from_ptr(p) };
        text.to_str().map_err(|_| "found a name that is not UTF-8, expected text".to_string())
    };
    let made = text(startup, "standard").and_then(|s| {
        let (s, a) = (algorithm(s)?, avoidance(text(avoidance_name, "cubic")?)?);
        if iw == 0 || iw > SLOWSTART_MOST_WINDOW {
            return Err(format!("iw: found {iw}, expected bytes from 1 to {SLOWSTART_MOST_WINDOW}"));
        }
        Ok(s.controller(&a, Bytes(iw), seed))
    });
    match made {
        Ok(control) => {
            let all = slowstart_controller { control: Checked::new(control), exited: None, resend: None };
            Box::into_raw(Box::new(all))
        }
        Err(why) => {
            // SAFETY: as the caller promises of `error`.
            unsafe { tell(error, error_len, &why) };
            ptr::null_mut()
        }
    }
}

/// Writes the name of startup number `index` into `name`, a buffer of `len` bytes, cut to its length and ended
/// by a zero. Returns 0, or -1 past the last one: count up from 0 to list them all.
///
/// # Safety
/// `name` points to `len` writable bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowstart_startup(index: usize, name: *mut c_char, len: usize) -> c_int {
    let Some(entry) = registry::all().nth(index) else { return BAD_ARGUMENT };
    // SAFETY: as the caller promises.
    unsafe { tell(name, len, entry.name) };
    OK
}

/// Ends a controller. Null is permitted.
///
/// # Safety
/// `c` is of `slowstart_create` and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowstart_free(c: *mut slowstart_controller) {
    if !c.is_null() {
        // SAFETY: `slowstart_create` made it by `Box::into_raw`.
        drop(unsafe { Box::from_raw(c) });
    }
}
