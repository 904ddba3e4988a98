//! What the kernel can refuse.

use std::path::Path;
use thiserror::Error;

/// Why something could not be done.
#[derive(Debug, Error)]
pub enum KernelError {
    /// This kernel, or this process, cannot do it.
    #[error("{what}: {why}")]
    Refused {
        /// What was wanted.
        what: String,
        /// Why it is refused, and what would help.
        why: String,
    },
    /// The kernel refused an object.
    #[error("{what}: {source}{log}")]
    Bpf {
        /// What was wanted.
        what: String,
        /// What libbpf says.
        source: libbpf_rs::Error,
        /// The end of its log, with the verifier's words.
        log: String,
    },
    /// A file or device.
    #[error("{what}: {source}")]
    Io {
        /// Which, and what was wanted of it.
        what: String,
        /// What the system says.
        source: std::io::Error,
    },
}

impl KernelError {
    pub(crate) fn refused(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Refused { what: what.into(), why: why.into() }
    }

    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        |source| Self::Io { what, source }
    }

    pub(crate) fn path(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        Self::io(format!("{what} {}", path.display()))
    }

    pub(crate) fn bpf(what: impl Into<String>) -> impl FnOnce(libbpf_rs::Error) -> Self {
        let what = what.into();
        |source| Self::Bpf { what, source, log: crate::bpf_log::take_log() }
    }
}
