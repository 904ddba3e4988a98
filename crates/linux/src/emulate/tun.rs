//! TUN devices, and what a thread of the path needs of the system.

use super::DEVICE;
use crate::error::KernelError;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sched::{CloneFlags, setns};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::thread;

/// Does something in a network namespace, on a thread that then ends.
pub(crate) fn in_namespace<T: Send>(
    ns: &str,
    what: impl FnOnce() -> Result<T, KernelError> + Send,
) -> Result<T, KernelError> {
    let enter = || {
        let file = format!("/run/netns/{ns}");
        let handle = File::open(&file).map_err(KernelError::io(format!("open {file}")))?;
        setns(handle, CloneFlags::CLONE_NEWNET)
            .map_err(|e| KernelError::io(format!("enter {ns}"))(std::io::Error::from(e)))?;
        what()
    };
    thread::scope(|s| s.spawn(enter).join())
        .unwrap_or_else(|_| Err(KernelError::refused(ns, "the thread in it ended early")))
}

/// Makes the device in a namespace and opens it: each read is one IP packet, and answers at once.
pub(crate) fn open(ns: &str) -> Result<File, KernelError> {
    in_namespace(ns, || {
        let tun = "/dev/net/tun";
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(tun)
            .map_err(KernelError::io(format!("open {tun}")))?;
        attach(&file).map_err(KernelError::io(format!("make {DEVICE} in {ns}")))?;
        fcntl(&file, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))
            .map_err(|e| KernelError::io(format!("open {tun}"))(std::io::Error::from(e)))?;
        Ok(file)
    })
}

#[allow(
    unsafe_code,
    reason = "no crate in use has this call; the structure outlives it and is all zero but for two fields"
)]
fn attach(file: &File) -> std::io::Result<()> {
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(DEVICE.bytes()) {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if done < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// Puts this thread before all that are not real-time, and asks for timers to the nanosecond. Whether it was granted.
#[allow(unsafe_code, reason = "no crate in use has this call; it takes a plain structure and keeps nothing")]
pub(crate) fn realtime() -> bool {
    let exact = nix::sys::prctl::set_timerslack(1).is_ok();
    let priority = libc::sched_param { sched_priority: 50 };
    let first = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) } == 0;
    exact && first
}
