//! Runs a path of the simulator on the real clock: two network namespaces with a TUN device each, joined by
//! the path elements that the simulator uses.
//!
//! A packet that one device sends enters a direction of the path at that moment. The direction computes when
//! the packet arrives, or drops it; at that time the packet is written to the other device. Rate, queue,
//! delays and losses are those of the simulator, with the same random draws for the same seed. When packets
//! enter, and how late they are released, depends on the machine; the lateness is measured and reported.

mod cgroup;
mod forwarder;
mod lateness;
mod link_view;
mod namespaces;
mod report;
mod tun;
mod unprivileged;

pub use cgroup::Cgroup;
pub use lateness::{Lateness, MAX_LATENESS};
pub use link_view::{Seen, seen};
pub use namespaces::remove_stale_namespaces;
pub use report::{DirectionStats, INVALID, PacketRecord, Report};
pub use slowstart_sim::path::wire::tcp_flow;
pub use unprivileged::{Way, enter_user_namespace, way};

use crate::error::KernelError;
use namespaces::{Namespaces, run};
use rustix::thread::{CapabilitySet, capabilities};
use slowstart::units::Rate;
use slowstart_sim::path::{PathFacts, PathSpec};
use slowstart_sim::tcp::ecn::EcnRule;
use std::env;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use tun::{DEVICE, Tun};

/// The server's IPv4 address. The server sends forward, over the link of the path.
pub const SERVER: &str = "10.77.0.1";
/// The client's IPv4 address.
pub const CLIENT: &str = "10.77.0.2";
/// Queue length of each device in packets: more than any burst, so that only the path drops packets.
const DEVICE_QUEUE: u32 = 20_000;

/// Fails if this process cannot set up a path.
///
/// # Errors
/// With the first that is missing: `CAP_NET_ADMIN`, `CAP_SYS_ADMIN`, `/dev/net/tun` or `ip`.
pub fn possible() -> Result<(), KernelError> {
    let held = capabilities(None).map_or(CapabilitySet::empty(), |c| c.effective);
    for (name, needed) in
        [("CAP_NET_ADMIN", CapabilitySet::NET_ADMIN), ("CAP_SYS_ADMIN", CapabilitySet::SYS_ADMIN)]
    {
        if !held.contains(needed) {
            let why = format!("not permitted: it needs {name}, so run it as root");
            return Err(KernelError::refused("emulator", why));
        }
    }
    has_tools()
}

/// Fails without `/dev/net/tun` or `ip`.
fn has_tools() -> Result<(), KernelError> {
    if !Path::new("/dev/net/tun").exists() {
        return Err(KernelError::refused("emulator", "there is no /dev/net/tun: load the module tun"));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    if env::split_paths(&path).any(|dir| dir.join("ip").exists()) {
        Ok(())
    } else {
        Err(KernelError::refused("emulator", "there is no program ip: install iproute2"))
    }
}

/// A running path. Dropping it stops the forwarding, ends the programs in both namespaces and removes the
/// namespaces.
#[derive(Debug)]
pub struct Emulation {
    namespaces: Namespaces,
    stop: Arc<AtomicBool>,
    forwarder: Option<JoinHandle<Result<Report, KernelError>>>,
    /// Packets leave at the times that the sender stamped on them.
    by_stamps: bool,
    /// Limits of this machine that a reader of the results must know.
    pub caveats: Vec<String>,
}

impl Emulation {
    /// Sets up the path; with `record` the report holds every packet.
    ///
    /// # Errors
    /// Where it is not [`possible`], or if a program of iproute2 fails.
    pub fn start(spec: &PathSpec, seed: u64, record: bool) -> Result<Self, KernelError> {
        possible()?;
        if spec.proxy().is_some() {
            return Err(KernelError::refused("emulator", "it has no proxy: name the path without it"));
        }
        remove_stale_namespaces();
        let namespaces = Namespaces::create()?;
        let mut caveats = Vec::new();
        let path = spec.build(seed);
        let facts = path.facts;
        for ns in [&namespaces.server, &namespaces.client] {
            disable_ipv6(ns)?;
        }
        let server = Tun::create(&namespaces.server)?;
        let client = Tun::create(&namespaces.client)?;
        for (ns, address) in [(&namespaces.server, SERVER), (&namespaces.client, CLIENT)] {
            run("ip", &["-n", ns, "addr", "add", &format!("{address}/24"), "dev", DEVICE])?;
            run("ip", &["-n", ns, "link", "set", "lo", "up"])?;
            let queue = DEVICE_QUEUE.to_string();
            run("ip", &["-n", ns, "link", "set", DEVICE, "mtu", "1500", "txqueuelen", &queue, "up"])?;
        }
        if shape_sender(&namespaces.server, facts.rate).is_err() {
            caveats.push(
                "the kernel has no token bucket (sch_tbf): TCP small queues do not limit the sender"
                    .to_string(),
            );
        }
        let by_stamps = release_by_stamps(&namespaces.server).is_ok();
        for ns in [&namespaces.server, &namespaces.client] {
            set_tcp_limits(ns, &facts)?;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, ready) = (Arc::clone(&stop), Arc::new(AtomicBool::new(false)));
        let (started, realtime) = (Arc::clone(&ready), Arc::new(AtomicBool::new(false)));
        let granted = Arc::clone(&realtime);
        let forwarder = thread::spawn(move || {
            granted.store(tun::realtime(), Ordering::SeqCst);
            started.store(true, Ordering::SeqCst);
            forwarder::forward(path, &server, &client, &stopped, record)
        });
        while !ready.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        if !realtime.load(Ordering::SeqCst) {
            caveats.push("no real-time priority: packets may be late when the machine is busy".to_string());
        }
        Ok(Self { namespaces, stop, forwarder: Some(forwarder), by_stamps, caveats })
    }

    /// Runs a closure in a network namespace, on a thread that then ends.
    pub fn in_namespace<T: Send>(
        ns: &str,
        what: impl FnOnce() -> Result<T, KernelError> + Send,
    ) -> Result<T, KernelError> {
        namespaces::in_namespace(ns, what)
    }

    /// Starts a program in a network namespace, where `/sys` shows the devices of that namespace.
    pub fn spawn(ns: &str, command: &mut Command) -> Result<Child, KernelError> {
        namespaces::spawn(ns, command)
    }

    /// Returns true if a TCP socket listens or a UDP socket is bound in the network namespace.
    pub fn has_listener(ns: &str) -> Result<bool, KernelError> {
        namespaces::has_listener(ns)
    }

    /// The namespace of the server.
    pub fn server(&self) -> &str {
        &self.namespaces.server
    }

    /// The namespace of the client.
    pub fn client(&self) -> &str {
        &self.namespaces.client
    }

    /// True if the server's device releases packets at the times that a sender stamps on them (`SO_TXTIME`). Otherwise
    /// they leave at once: the kernel has no `sch_fq`, or no token bucket to put it into.
    pub fn releases_by_stamps(&self) -> bool {
        self.by_stamps
    }

    /// Returns false once forwarding has failed, for example because a device was deleted; [`Self::stop`]
    /// returns the error.
    pub fn is_running(&self) -> bool {
        self.forwarder.as_ref().is_some_and(|f| !f.is_finished())
    }

    /// Sets `tcp_ecn` of both ends as the profile has it; without ECN the kernel's default stays, which asks
    /// for none.
    ///
    /// # Errors
    /// With the feedback of DCTCP, which is a matter of its congestion control, or on a kernel that does not
    /// know a value.
    pub fn set_ecn(&self, rule: EcnRule) -> Result<(), KernelError> {
        let value = match rule {
            EcnRule::Off => return Ok(()),
            EcnRule::Rfc3168 => "1",
            EcnRule::Passive => "2",
            EcnRule::AccEcn => "3",
            EcnRule::Dctcp => {
                return Err(KernelError::refused(
                    "ecn=dctcp",
                    "the live kernel has it with its own dctcp only",
                ));
            }
        };
        for ns in [self.server(), self.client()] {
            Self::in_namespace(ns, || {
                let file = "/proc/sys/net/ipv4/tcp_ecn";
                fs::write(file, value).map_err(KernelError::io(format!("write {value} to {file}")))
            })?;
        }
        Ok(())
    }

    /// Stops the path and removes its namespaces.
    ///
    /// # Errors
    /// If forwarding failed while the path was running.
    pub fn stop(mut self) -> Result<Report, KernelError> {
        self.stop.store(true, Ordering::SeqCst);
        match self.forwarder.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Err(KernelError::refused("emulator", "the forwarding thread panicked")),
        }
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(forwarder) = self.forwarder.take() {
            let _ = forwarder.join();
        }
    }
}

/// Turns IPv6 off for new devices: the kernel's own router solicitations would be traffic on the path.
fn disable_ipv6(ns: &str) -> Result<(), KernelError> {
    namespaces::in_namespace(ns, || {
        let file = "/proc/sys/net/ipv6/conf/default/disable_ipv6";
        if fs::exists(file).unwrap_or(false) {
            fs::write(file, "1").map_err(KernelError::io(format!("write {file}")))?;
        }
        Ok(())
    })
}

/// Limits the server's device to four times the rate of the path, so that packets wait in its queue and TCP
/// small queues act on the sender as on a real interface.
fn shape_sender(ns: &str, rate: Rate) -> Result<(), KernelError> {
    let rate = format!("{}bit", rate.0.saturating_mul(4).max(1_000_000_000));
    run(
        "tc",
        &[
            &["-n", ns, "qdisc", "replace", "dev", DEVICE, "root", "handle", "1:", "tbf"][..],
            &["rate", &rate, "burst", "64kb", "limit", "64mb"],
        ]
        .concat(),
    )
}

/// Puts a queue into the shaper that holds packets until the time that is stamped on them (`SO_TXTIME`), and paces
/// nothing by itself.
fn release_by_stamps(ns: &str) -> Result<(), KernelError> {
    let queue = DEVICE_QUEUE.to_string();
    run(
        "tc",
        &[
            &["-n", ns, "qdisc", "replace", "dev", DEVICE, "parent", "1:1", "fq"][..],
            &["nopacing", "limit", &queue, "flow_limit", &queue],
        ]
        .concat(),
    )
}

/// Allows windows of eight times the BDP plus the buffer (four BDP where the buffer has no limit), 16 MiB to
/// 1 GiB, and turns off the metrics that the kernel keeps from earlier connections.
fn set_tcp_limits(ns: &str, facts: &PathFacts) -> Result<(), KernelError> {
    let buffer = facts.buffer.map_or(facts.bdp.0 * 4, |b| b.0);
    let max = facts.bdp.0.saturating_add(buffer).saturating_mul(8).clamp(16 << 20, 1 << 30);
    namespaces::in_namespace(ns, || {
        for (key, value) in [
            ("tcp_wmem", format!("4096 262144 {max}")),
            ("tcp_rmem", format!("4096 1048576 {max}")),
            ("tcp_no_metrics_save", "1".to_string()),
        ] {
            let file = format!("/proc/sys/net/ipv4/{key}");
            fs::write(&file, value).map_err(KernelError::io(format!("write {file}")))?;
        }
        Ok(())
    })
}
