//! A bulk flow of the kernel's TCP over an emulated path: beside a program, or in its place.

use crate::bulk::{SLICE, connect_client, send, timed_out};
use crate::clock::clock;
use crate::emulate::{Emulation, SERVER, tcp_flow};
use crate::error::KernelError;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{TcpCongestion, TcpMaxSeg};
use slowstart::units::Span;
use std::ffi::OsString;
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Bytes of IPv4 and TCP headers without options, which TCP's segment size leaves out.
const IP_AND_TCP: u32 = 40;

/// A download. Dropping it ends it.
#[derive(Debug)]
pub struct Beside {
    /// The numbers of its packets in the records of the path: forward, and back.
    pub flows: [u32; 2],
    over: Arc<AtomicBool>,
    received: Arc<AtomicU64>,
    ends: Vec<JoinHandle<()>>,
}

impl Beside {
    /// Connects; the server sends `size` bytes, or without end, with this congestion control of the kernel,
    /// from `delay` later until `most` later. `packet` is the size of its full IP packets in bytes; `None` for that of
    /// the device.
    ///
    /// # Errors
    /// If the kernel does not have the control, or there is no connection in that time.
    pub fn start(
        e: &Emulation,
        control: &str,
        delay: Span,
        most: Span,
        size: Option<u64>,
        packet: Option<u32>,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, KernelError> {
        let until = clock() + most;
        let listener = Emulation::in_namespace(e.server(), || {
            TcpListener::bind((SERVER, 0)).map_err(KernelError::io(format!("listen at {SERVER}")))
        })?;
        setsockopt(&listener, TcpCongestion, &OsString::from(control))
            .map_err(|e| KernelError::io(format!("use {control}"))(e.into()))?;
        if let Some(packet) = packet {
            let mss = packet.saturating_sub(IP_AND_TCP);
            setsockopt(&listener, TcpMaxSeg, &mss)
                .map_err(|e| KernelError::io(format!("set the segment size {mss}"))(e.into()))?;
        }
        let io = |what: &'static str| KernelError::io(what);
        let SocketAddr::V4(server) = listener.local_addr().map_err(io("listen"))? else {
            return Err(KernelError::refused("listen", "the address is not an IPv4 address"));
        };
        let mut client = connect_client(e, server, until, interrupted)?;
        client.set_read_timeout(Some(SLICE)).map_err(io("set a timeout"))?;
        let SocketAddr::V4(own) = client.local_addr().map_err(io("connect"))? else {
            return Err(KernelError::refused("connect", "the address is not an IPv4 address"));
        };
        let over = Arc::new(AtomicBool::new(false));
        let received = Arc::new(AtomicU64::new(0));
        let (sender, receiver, count) = (Arc::clone(&over), Arc::clone(&over), Arc::clone(&received));
        let sending = thread::spawn(move || {
            thread::sleep(Duration::from_nanos(delay.0));
            send(&listener, size, until, &sender);
        });
        let receiving = thread::spawn(move || {
            let mut buffer = vec![0; 1 << 18];
            while clock() < until && !receiver.load(Ordering::Relaxed) {
                match client.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(n) => {
                        let all = count.fetch_add(n as u64, Ordering::Relaxed) + n as u64;
                        if size.is_some_and(|size| all >= size) {
                            break;
                        }
                    }
                    // A timeout is a look at `over`.
                    Err(e) if timed_out(&e) => {}
                    Err(_) => break,
                }
            }
        });
        Ok(Self {
            flows: [tcp_flow(server, own), tcp_flow(own, server)],
            over,
            received,
            ends: vec![sending, receiving],
        })
    }
}

impl Beside {
    /// True if the receiver has ended: it has everything, or its time is over.
    pub fn is_over(&self) -> bool {
        self.ends.last().is_none_or(JoinHandle::is_finished)
    }

    /// Bytes that the receiver has.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for end in self.ends.drain(..) {
            let _ = end.join();
        }
    }
}
