//! Why a guest did not run.

use slowstart_study::engines::EngineError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a kernel could not run a transfer.
#[derive(Debug, Error)]
pub enum GuestError {
    /// The file is not a kernel that this engine can start.
    #[error("{}: {why}; expected a kernel that `make uml` built", .kernel.display())]
    NoKernel {
        /// The file.
        kernel: PathBuf,
        /// What it is, or lacks.
        why: String,
    },
    /// A file of the host or a device of the guest could not be used.
    #[error("{what}: {cause}")]
    Io {
        /// The operation and the file.
        what: String,
        /// The error of the system; not a `source`, as the message has it.
        cause: io::Error,
    },
    /// The guest refused what it was asked.
    #[error("{0}")]
    Refused(String),
    /// The guest ended without an answer.
    #[error("the guest ended without an answer: {why}{console}")]
    Ended {
        /// How its process ended.
        why: String,
        /// The last lines of its console, each after a newline and two spaces.
        console: String,
    },
    /// [`slowstart_study::engines::Watched::stop`] returned true.
    #[error("interrupted")]
    Stopped,
}

impl GuestError {
    /// Says what was being done when the system refused.
    pub(crate) fn io<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        |cause| Self::Io { what, cause: cause.into() }
    }
}

impl From<GuestError> for EngineError {
    fn from(e: GuestError) -> Self {
        match e {
            GuestError::Stopped => Self::Stopped,
            GuestError::NoKernel { .. } => Self::Name(e.to_string()),
            other => Self::Failed(other.into()),
        }
    }
}
