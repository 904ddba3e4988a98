//! A path of the laboratory on the real clock: two network namespaces, each with a TUN device, and between them the very
//! elements that the simulator runs.
//!
//! What leaves one device enters the direction at that moment; the direction says when it arrives, or that it does not,
//! and then it is written to the other device. So the rate, the queue, the delays and the losses are those of the
//! simulator, for the same seed the same draws, and what differs is when a packet comes and how late it is let go: that
//! is measured and told.

mod lateness;
mod names;
mod packet;
mod pump;
mod tun;

pub use lateness::{Lateness, MAX_LATENESS};
pub use names::remove_stale_namespaces;
pub use pump::{DirectionStats, PacketRecord};

use crate::error::KernelError;
use names::{Namespaces, run};
use slowstart::units::{Instant, Rate};
use slowstart_lab::path::PathSpec;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// The server's address: it sends forward, over the path's link.
pub const SERVER: &str = "10.77.0.1";
/// The client's address.
pub const CLIENT: &str = "10.77.0.2";
/// The device in either namespace.
pub(crate) const DEVICE: &str = "path0";
/// What the device's own queue may hold: more than any burst, so that only the path drops.
const DEVICE_QUEUE: u32 = 20_000;

/// A path that is up.
#[derive(Debug)]
pub struct Emulation {
    names: Namespaces,
    stop: Arc<AtomicBool>,
    pump: Option<JoinHandle<Report>>,
    /// What a reader must know before believing a result.
    pub caveats: Vec<String>,
}

/// What became of the packets.
#[derive(Clone, Debug)]
pub struct Report {
    /// When the path began, on the kernel's monotonic clock.
    pub start: Instant,
    /// From server to client.
    pub forward: DirectionStats,
    /// From client to server.
    pub back: DirectionStats,
}

impl Report {
    /// Whether packets were let go in time, so that the run is one of this path.
    pub fn valid(&self) -> bool {
        self.forward.lateness.valid() && self.back.lateness.valid()
    }
}

impl Emulation {
    /// Sets up the path; `record` keeps each packet's fate.
    pub fn start(spec: &PathSpec, seed: u64, record: bool) -> Result<Self, KernelError> {
        remove_stale_namespaces();
        let names = Namespaces::new()?;
        let mut caveats = Vec::new();
        let path = spec.build(seed);
        let facts = path.facts;
        // What the kernel says on its own, to find IPv6 routers, is no part of the path's traffic.
        for ns in [&names.server, &names.client] {
            tun::in_namespace(ns, || {
                let file = "/proc/sys/net/ipv6/conf/default/disable_ipv6";
                if fs::exists(file).unwrap_or(false) {
                    fs::write(file, "1").map_err(KernelError::io(format!("write {file}")))?;
                }
                Ok(())
            })?;
        }
        // Both devices belong to one thread, which is the path.
        let server = tun::open(&names.server)?;
        let client = tun::open(&names.client)?;
        for (ns, address) in [(&names.server, SERVER), (&names.client, CLIENT)] {
            run("ip", &["-n", ns, "addr", "add", &format!("{address}/24"), "dev", DEVICE])?;
            run("ip", &["-n", ns, "link", "set", "lo", "up"])?;
            let queue = DEVICE_QUEUE.to_string();
            run("ip", &["-n", ns, "link", "set", DEVICE, "mtu", "1500", "txqueuelen", &queue, "up"])?;
        }
        // A sender behind an interface of its own, so that TCP small queues hold it back as behind a real one.
        let nic = Rate(facts.rate.0.saturating_mul(4).max(1_000_000_000)).0;
        let shaped = run(
            "tc",
            &[
                &["-n", &names.server, "qdisc", "replace", "dev", DEVICE, "root", "tbf"][..],
                &["rate", &format!("{nic}bit"), "burst", "64kb", "limit", "64mb"],
            ]
            .concat(),
        );
        if shaped.is_err() {
            caveats.push(
                "no token bucket in this kernel: TCP small queues do not act on the sender".to_string(),
            );
        }
        // Windows that the path, its queue and twice the growth of a round trip need.
        let most =
            facts.bdp.0.saturating_add(facts.buffer.map_or(facts.bdp.0 * 4, |b| b.0)).saturating_mul(8);
        let most = most.clamp(16 << 20, 1 << 30);
        for ns in [&names.server, &names.client] {
            tun::in_namespace(ns, || {
                for (key, value) in [
                    ("tcp_wmem", format!("4096 262144 {most}")),
                    ("tcp_rmem", format!("4096 1048576 {most}")),
                    ("tcp_no_metrics_save", "1".to_string()),
                ] {
                    let file = format!("/proc/sys/net/ipv4/{key}");
                    fs::write(&file, value).map_err(KernelError::io(format!("write {file}")))?;
                }
                Ok(())
            })?;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (until, ready) = (Arc::clone(&stop), Arc::new(AtomicBool::new(false)));
        let (up, realtime) = (Arc::clone(&ready), Arc::new(AtomicBool::new(false)));
        let granted = Arc::clone(&realtime);
        let pump = thread::spawn(move || {
            granted.store(tun::realtime(), Ordering::SeqCst);
            up.store(true, Ordering::SeqCst);
            pump::pump(path, &server, &client, &until, record)
        });
        while !ready.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        if !realtime.load(Ordering::SeqCst) {
            caveats.push("no real-time priority: packets may be late when the machine is busy".to_string());
        }
        Ok(Self { names, stop, pump: Some(pump), caveats })
    }

    /// Does something in a namespace of this path, on a thread that then ends.
    pub fn in_namespace<T: Send>(
        ns: &str,
        what: impl FnOnce() -> Result<T, KernelError> + Send,
    ) -> Result<T, KernelError> {
        tun::in_namespace(ns, what)
    }

    /// The namespace of the server.
    pub fn server(&self) -> &str {
        &self.names.server
    }

    /// The namespace of the client.
    pub fn client(&self) -> &str {
        &self.names.client
    }

    /// Takes the path down.
    pub fn stop(mut self) -> Result<Report, KernelError> {
        self.stop.store(true, Ordering::SeqCst);
        let done = self.pump.take().map(JoinHandle::join);
        match done {
            Some(Ok(report)) => Ok(report),
            _ => Err(KernelError::refused("the path", "its thread ended early")),
        }
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(pump) = self.pump.take() {
            let _ = pump.join();
        }
    }
}
