//! Both ends of a bulk transfer over the kernel's TCP, between the namespaces of a path.

use crate::clock::clock;
use crate::emulate::Emulation;
use crate::error::KernelError;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::socket::sockopt::{Linger, SocketError};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, connect, getsockopt, setsockopt, socket,
};
use slowstart::units::{Instant, Span};
use slowstart_study::limits::Chrono;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Timeout of the blocking calls of either end, after which they check whether the run is over.
pub(crate) const SLICE: Duration = Duration::from_millis(100);

pub(crate) fn timed_out(e: &std::io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// For how long this thread was ready to run and had no processor, since it began; `None` if the kernel does not
/// count it.
pub(crate) fn waited() -> Option<Span> {
    // Nanoseconds on a processor, nanoseconds of waiting for one, and how often it ran.
    let counted = slowstart_files::read_text(Path::new("/proc/thread-self/schedstat"), 1 << 10).ok()?;
    counted.split_whitespace().nth(1)?.parse().ok().map(Span)
}

/// The server: sends `size` bytes, or until the client closes, the time is over or `over` is set. It is the client that
/// closes: no hook sees the ACKs and losses of a socket that has sent its FIN. Returns what the kernel counted of the
/// connection, if there was one and the kernel counts it.
pub(crate) fn send(
    listener: &TcpListener,
    size: Option<u64>,
    until: Instant,
    over: &AtomicBool,
) -> Option<Chrono> {
    let (mut server, _) = listener.accept().ok()?;
    let goes_on = |e: &std::io::Error| timed_out(e) && clock() < until && !over.load(Ordering::Relaxed);
    let _ = server.set_write_timeout(Some(SLICE));
    let _ = server.set_read_timeout(Some(SLICE));
    let data = vec![7; 1 << 18];
    let mut left = size.unwrap_or(u64::MAX);
    while left > 0 {
        let n = left.min(data.len() as u64) as usize;
        match server.write(&data[..n]) {
            Ok(n) => left -= n as u64,
            Err(e) if goes_on(&e) => {}
            Err(_) => break,
        }
    }
    while matches!(server.read(&mut [0]), Err(e) if goes_on(&e)) {}
    let counted = chrono(&server);
    // Closes with a reset, so that no socket stays behind when the path is removed.
    let _ = setsockopt(&server, Linger, &libc::linger { l_onoff: 1, l_linger: 0 });
    counted
}

/// What the kernel has counted of a connection; `None` if it is older than 4.10, which counts none of it.
#[allow(unsafe_code, reason = "no crate in use has these fields of the option")]
fn chrono(socket: &TcpStream) -> Option<Chrono> {
    // `struct tcp_info` ends with the three, microseconds each.
    let mut info = [0_u64; 24];
    let mut length = size_of_val(&info) as libc::socklen_t;
    let to = info.as_mut_ptr().cast();
    let done =
        // SAFETY: the kernel writes at most `length` bytes, those of `info`.
        unsafe { libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, to, &raw mut length) };
    let [busy, rwnd_limited, sndbuf_limited] = [info[21], info[22], info[23]].map(Span::micros);
    (done == 0 && length as usize == size_of_val(&info)).then_some(Chrono {
        busy,
        rwnd_limited,
        sndbuf_limited,
    })
}

/// Connects to the server from the client's namespace.
///
/// # Errors
/// If there is no connection when the time is over, the path failed, or `interrupted` returns true.
pub(crate) fn connect_client(
    e: &Emulation,
    server: SocketAddrV4,
    until: Instant,
    interrupted: &dyn Fn() -> bool,
) -> Result<TcpStream, KernelError> {
    let failed = |e: std::io::Error| KernelError::io("connect to the server")(e);
    // A blocking connect could not be interrupted.
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let client = Emulation::in_namespace(e.client(), || {
        socket(AddressFamily::Inet, SockType::Stream, flags, None).map_err(|e| failed(e.into()))
    })?;
    match connect(client.as_raw_fd(), &SockaddrIn::from(server)) {
        Ok(()) | Err(Errno::EINPROGRESS) => {}
        Err(e) => return Err(failed(e.into())),
    }
    while !matches!(poll(&mut [PollFd::new(client.as_fd(), PollFlags::POLLOUT)], 100_u8), Ok(1..)) {
        if interrupted() {
            return Err(KernelError::Interrupted);
        }
        if clock() >= until || !e.is_running() {
            return Err(failed(ErrorKind::TimedOut.into()));
        }
    }
    let error = getsockopt(&client, SocketError).map_err(|e| failed(e.into()))?;
    if error != 0 {
        return Err(failed(std::io::Error::from_raw_os_error(error)));
    }
    let client = TcpStream::from(client);
    client.set_nonblocking(false).map_err(failed)?;
    Ok(client)
}
