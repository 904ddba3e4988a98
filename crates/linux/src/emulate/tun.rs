//! TUN devices, and the scheduling of the thread that serves them.

use super::namespaces::in_namespace;
use crate::error::KernelError;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;

/// The name of the device in either namespace.
pub(super) const DEVICE: &str = "path0";

/// A TUN device: each read and each write is one IP packet, and neither blocks.
pub(super) struct Tun {
    pub(super) file: File,
    namespace: String,
}

impl Tun {
    /// Creates the device of a namespace.
    pub(super) fn create(namespace: &str) -> Result<Self, KernelError> {
        in_namespace(namespace, || {
            let tun = "/dev/net/tun";
            let open = || format!("open {tun}");
            let file =
                OpenOptions::new().read(true).write(true).open(tun).map_err(KernelError::io(open()))?;
            attach(&file).map_err(KernelError::io(format!("create {DEVICE} in {namespace}")))?;
            fcntl(&file, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))
                .map_err(|e| KernelError::io(open())(e.into()))?;
            Ok(Self { file, namespace: namespace.to_string() })
        })
    }

    /// The error of a device that can no longer be read.
    pub(super) fn lost(&self, error: io::Error) -> KernelError {
        KernelError::io(format!("TUN device {DEVICE} of namespace {} is gone", self.namespace))(error)
    }
}

#[allow(
    unsafe_code,
    reason = "no crate in use has this call; the structure outlives it and is zero except for two fields"
)]
fn attach(file: &File) -> io::Result<()> {
    // SAFETY: a structure of numbers, which may be zero.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(DEVICE.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the structure is that of this request, and outlives the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Gives this thread real-time priority and timers of 1 ns resolution. Returns true if both were granted.
#[allow(unsafe_code, reason = "no crate in use has this call; it takes a plain structure and keeps nothing")]
pub(super) fn realtime() -> bool {
    let exact = nix::sys::prctl::set_timerslack(1).is_ok();
    let priority = libc::sched_param { sched_priority: 50 };
    // SAFETY: the structure outlives the call.
    let first = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) } == 0;
    exact && first
}
