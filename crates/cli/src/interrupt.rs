//! Ctrl-C, SIGTERM and SIGHUP: a command stops early, shows what is finished and ends with status 130, 143 or
//! 129.

use crate::output::tell;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_default, register_usize};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Time that a simulation may take to stop: a plugin may loop, a file may be a pipe that nobody writes to.
const GRACE: Duration = Duration::from_millis(900);
/// Time between two looks whether a signal came.
pub(crate) const POLL: Duration = Duration::from_millis(50);

/// The signals that end a command: SIGHUP not if it is ignored, as under `nohup`.
#[cfg(unix)]
pub(crate) fn signals() -> Vec<i32> {
    let status = slowstart_files::read_kernel("/proc/self/status").unwrap_or_default();
    let ignored =
        status.lines().find_map(|l| u64::from_str_radix(l.strip_prefix("SigIgn:")?.trim(), 16).ok());
    let hangup = signal_hook::consts::SIGHUP;
    let ignored = ignored.is_some_and(|bits| bits >> (hangup - 1) & 1 == 1);
    [SIGINT, SIGTERM].into_iter().chain((!ignored).then_some(hangup)).collect()
}

#[cfg(not(unix))]
pub(crate) fn signals() -> Vec<i32> {
    vec![SIGINT, SIGTERM]
}

/// The last of these signals that this process received.
pub(crate) struct Interrupt {
    signal: Arc<AtomicUsize>,
    stopped: Arc<AtomicBool>,
}

impl Interrupt {
    /// Records them from now on; they no longer end this process. Programs that it starts are
    /// not affected.
    pub(crate) fn record() -> io::Result<Self> {
        let signal = Arc::new(AtomicUsize::new(0));
        for n in signals() {
            register_usize(n, Arc::clone(&signal), n as usize)?;
        }
        Ok(Self { signal, stopped: Arc::default() })
    }

    /// Records the first signal; the second ends this process at once, as does [`GRACE`].
    pub(crate) fn record_first() -> io::Result<Self> {
        let received = Arc::new(AtomicBool::new(false));
        for n in signals() {
            register_conditional_default(n, Arc::clone(&received))?;
            register(n, Arc::clone(&received))?;
        }
        let recorded = Self::record()?;
        let (signal, stopped) = (Arc::clone(&recorded.signal), Arc::clone(&recorded.stopped));
        std::thread::Builder::new().name("interrupt".into()).spawn(move || {
            while signal.load(Ordering::Relaxed) == 0 {
                std::thread::sleep(POLL);
            }
            std::thread::sleep(GRACE);
            if !stopped.load(Ordering::Relaxed) {
                tell("interrupted, before a run or a file was finished");
                std::process::exit(128 + signal.load(Ordering::Relaxed) as i32);
            }
        })?;
        Ok(recorded)
    }

    /// Says that runs have stopped: what follows shows what is finished, and ends by itself.
    pub(crate) fn stopped(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Returns the number of the last signal received.
    pub(crate) fn signal(&self) -> Option<u8> {
        self.received().get()
    }

    /// What other threads ask for the last signal.
    pub(crate) fn received(&self) -> Signal {
        Signal(Arc::clone(&self.signal))
    }

    /// Returns the number of the last signal received since the previous call.
    #[cfg(feature = "kernel")]
    pub(crate) fn take(&self) -> Option<u8> {
        Some(self.signal.swap(0, Ordering::Relaxed) as u8).filter(|n| *n > 0)
    }
}

/// The last signal that an [`Interrupt`] recorded.
pub(crate) struct Signal(Arc<AtomicUsize>);

impl Signal {
    /// Its number, or `None` if none came.
    pub(crate) fn get(&self) -> Option<u8> {
        Some(self.0.load(Ordering::Relaxed) as u8).filter(|n| *n > 0)
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
