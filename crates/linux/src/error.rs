//! Errors of the kernel, of libbpf and of devices.

use std::path::Path;
use thiserror::Error;

/// Why an operation on the kernel failed.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The kernel or this process cannot do it, or the request is not valid.
    #[error("{what}: {why}")]
    Refused {
        /// The operation.
        what: String,
        /// The reason, and what would help.
        why: String,
    },
    /// The kernel refused an eBPF object.
    #[error("{what}: {cause}{log}")]
    Bpf {
        /// The operation.
        what: String,
        /// The error of libbpf; not a `source`, as the message has it.
        cause: libbpf_rs::Error,
        /// The last lines of libbpf's log, with the message of the verifier.
        log: String,
    },
    /// A file or a device could not be used.
    #[error("{what}: {cause}")]
    Io {
        /// The operation and the file.
        what: String,
        /// The error of the system; not a `source`, as the message has it.
        cause: std::io::Error,
    },
    /// A signal ended the operation early.
    #[error("interrupted")]
    Interrupted,
}

impl KernelError {
    pub(crate) fn refused(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Refused { what: what.into(), why: why.into() }
    }

    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        |cause| Self::Io { what, cause }
    }

    pub(crate) fn path(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        Self::io(format!("{what} {}", path.display()))
    }

    pub(crate) fn bpf(what: impl Into<String>) -> impl FnOnce(libbpf_rs::Error) -> Self {
        let what = what.into();
        |cause| Self::Bpf { what, cause, log: crate::bpf_log::take_log() }
    }
}
