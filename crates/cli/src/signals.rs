//! Requests to stop, by signal, and the real clock.

use crate::interrupt;
use anyhow::Result;
use nix::sys::signal::{SigSet, Signal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

static CAUGHT: AtomicBool = AtomicBool::new(false);

/// From now on the signals that end a command are recorded for [`caught`]; the second of them ends this process
/// at once. Call it before anything that must be cleaned up.
pub(crate) fn catch() -> Result<()> {
    let set: SigSet = interrupt::signals().into_iter().filter_map(|n| Signal::try_from(n).ok()).collect();
    set.thread_block()?;
    std::thread::spawn(move || {
        if set.wait().is_ok() {
            CAUGHT.store(true, Ordering::SeqCst);
        }
        if let Ok(signal) = set.wait() {
            std::process::exit(128 + signal as i32);
        }
    });
    Ok(())
}

/// Returns true once one of the signals has arrived.
pub(crate) fn caught() -> bool {
    CAUGHT.load(Ordering::SeqCst)
}

/// Calls `each` five times per second until one of the signals has arrived or `each` fails.
pub(crate) fn wait(mut each: impl FnMut() -> Result<()>) -> Result<()> {
    while !caught() {
        each()?;
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

/// Returns the time of the real clock.
#[allow(clippy::disallowed_methods, reason = "what is watched happens on the real clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
