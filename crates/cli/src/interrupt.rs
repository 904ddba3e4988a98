//! Ctrl-C and SIGTERM: a command stops early, shows what is finished and ends with status 130 or 143.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_default, register_usize};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The last SIGINT or SIGTERM that this process received.
pub(crate) struct Interrupt(Arc<AtomicUsize>);

impl Interrupt {
    /// Records SIGINT and SIGTERM from now on; they no longer end this process. Programs that it starts are
    /// not affected.
    pub(crate) fn record() -> io::Result<Self> {
        let signal = Arc::new(AtomicUsize::new(0));
        for n in [SIGINT, SIGTERM] {
            register_usize(n, Arc::clone(&signal), n as usize)?;
        }
        #[cfg(target_os = "linux")]
        slowstart_study::scenario::end_plugins_on(Arc::clone(&signal));
        Ok(Self(signal))
    }

    /// Does the same for the first signal; the second ends this process at once.
    pub(crate) fn record_first() -> io::Result<Self> {
        let received = Arc::new(AtomicBool::new(false));
        for n in [SIGINT, SIGTERM] {
            register_conditional_default(n, Arc::clone(&received))?;
            register(n, Arc::clone(&received))?;
        }
        Self::record()
    }

    /// Returns the number of the last signal received.
    pub(crate) fn signal(&self) -> Option<u8> {
        Some(self.0.load(Ordering::Relaxed) as u8).filter(|n| *n > 0)
    }

    /// Returns the number of the last signal received since the previous call.
    #[cfg(feature = "kernel")]
    pub(crate) fn take(&self) -> Option<u8> {
        Some(self.0.swap(0, Ordering::Relaxed) as u8).filter(|n| *n > 0)
    }
}

/// The error of a command that a signal ended early.
#[derive(Debug)]
pub(crate) struct Interrupted {
    /// Number of the signal.
    pub(crate) signal: u8,
    /// Runs or cells finished, and how many there were to do.
    pub(crate) finished: Option<(usize, usize)>,
}

impl Interrupted {
    /// The exit status that a shell gives a program which a signal ended.
    pub(crate) fn status(&self) -> u8 {
        128 + self.signal
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.finished {
            Some((done, total)) => write!(f, "interrupted, {done} of {total} finished"),
            None => write!(f, "interrupted"),
        }
    }
}

impl std::error::Error for Interrupted {}
