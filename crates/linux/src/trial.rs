//! The kernel side of a trial: assigns the new connections of a cgroup to arms and reads what becomes of them.
//!
//! Everything ends with the process that holds it, however it ends: the kernel closes the link to the cgroup and those of
//! the arms' congestion controls with the last file descriptor. Connections that were assigned keep their control until they
//! close; new ones use what they used before the trial.

use crate::attach::{Attached, existing};
use crate::bpf_log::keep_log;
use crate::check::Check;
use crate::error::KernelError;
use crate::facts::{ExitReason, Facts, Kind, Numbers};
use crate::list::{available, lookup};
use crate::load::{Held, Spec, load_as};
use crate::study::KERNEL_CONTROLS;
use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, RingBuffer, RingBufferBuilder};
use nix::fcntl::{Flock, FlockArg};
use slowstart_trial::outcome::unit_of_prefix;
use slowstart_trial::plan::MAX_ARMS;
use slowstart_trial::{Exit, Outcome, Plan};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/trial.bpf.o"));

/// Offsets in `plan` of `trial.bpf.c`: the phase, the first arm; in an arm: whether it was ended; size of an arm.
const PHASE: usize = 20;
const ARMS: usize = 24;
const ENDED: usize = 8;
const ARM_SIZE: usize = 32;

/// What to start.
#[derive(Copy, Clone, Debug)]
pub struct TrialSpec<'a> {
    /// Directory of the cgroup.
    pub cgroup: &'a Path,
    /// The arms: congestion controls that the kernel has, or startups with parameters, which are loaded for the trial.
    pub plan: &'a Plan,
    /// Assign by the client's prefix (/24 of IPv4, /56 of IPv6) instead of by connection.
    pub sticky: bool,
    /// Begin with an A/A phase, in which every arm uses the control of the first.
    pub a_a: bool,
    /// Count what would be assigned, and change nothing.
    pub dry: bool,
}

/// Numbers of connections since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrialCounts {
    /// Assigned to each arm.
    pub assigned: Vec<u64>,
    /// In no arm, because the shares are less than 100 %, or in one that was ended.
    pub outside: u64,
    /// Whose program, or another selection, chose the congestion control.
    pub own_choice: u64,
    /// For which the kernel did not set the congestion control.
    pub refused: u64,
    /// For which there was no memory.
    pub without_storage: u64,
    /// Records that were lost because the ring was full.
    pub lost_records: u64,
}

/// What is known of one connection, at a milestone or when it closed.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialRecord {
    /// Identifies the connection: the cookie of its socket.
    pub connection: u64,
    /// True if this is its last record.
    pub closed: bool,
    /// True if it was established during the A/A phase.
    pub a_a: bool,
    /// The outcome so far.
    pub outcome: Outcome,
}

/// A trial that runs until this is dropped.
pub struct RunningTrial {
    plan: Vec<u8>,
    arms: usize,
    cgroup: PathBuf,
    salt: [u8; 32],
    sticky: bool,
    // Dropped in this order: first no connection is assigned any more, then the controls are removed.
    attached: Attached,
    object: Object,
    controls: Vec<Held>,
    lock: Flock<File>,
}

impl std::fmt::Debug for RunningTrial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningTrial").field("cgroup", &self.cgroup).finish_non_exhaustive()
    }
}

/// Locks the directory of a cgroup for one trial. The lock ends with the process.
fn lock(what: &str, cgroup: &Path) -> Result<Flock<File>, KernelError> {
    let dir = File::open(cgroup).map_err(KernelError::path("open", cgroup))?;
    Flock::lock(dir, FlockArg::LockExclusiveNonblock).map_err(|(_, e)| {
        if e == nix::errno::Errno::EWOULDBLOCK {
            return KernelError::refused(what, "another trial runs on this cgroup: end it first");
        }
        KernelError::path("lock", cgroup)(e.into())
    })
}

/// Loads the control of an arm, under a name of this process, unless the kernel has it. Returns its name in the kernel.
fn load_arm(arm: &str, number: usize) -> Result<(String, Option<Held>), KernelError> {
    let available = available()?;
    if available.iter().any(|a| a == arm) {
        return Ok((arm.to_string(), None));
    }
    if KERNEL_CONTROLS.contains(&arm) {
        let why = format!("this kernel has {}; try modprobe tcp_{arm}", available.join(", "));
        return Err(KernelError::refused(format!("arm {arm}"), why));
    }
    let held = load_as(&Spec::read(arm, "cubic")?, format!("ss_{:x}_t{number}", std::process::id()))?;
    Ok((held.name.clone(), Some(held)))
}

fn plan_bytes(spec: &TrialSpec<'_>, names: &[String]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(spec.plan.seed().to_ne_bytes());
    for n in [names.len() as u32, spec.sticky.into(), spec.dry.into(), u32::from(!spec.a_a)] {
        bytes.extend(n.to_ne_bytes());
    }
    for (name, end) in names.iter().zip(spec.plan.ends()) {
        bytes.extend(end.to_ne_bytes());
        bytes.extend([0; 8]);
        let mut control = [0; 16];
        control[..name.len()].copy_from_slice(name.as_bytes());
        bytes.extend(control);
    }
    bytes.resize(ARMS + MAX_ARMS * ARM_SIZE, 0);
    bytes
}

fn salt() -> Result<[u8; 32], KernelError> {
    let mut salt = [0; 32];
    let read = File::open("/dev/urandom").and_then(|mut f| f.read_exact(&mut salt));
    read.map_err(KernelError::io("read /dev/urandom"))?;
    Ok(salt)
}

impl RunningTrial {
    /// Loads the arms and begins to assign the new connections of the cgroup.
    ///
    /// # Errors
    /// If the cgroup is none of version 2 or has a trial already, if an arm is not known or this kernel cannot run it.
    pub fn start(spec: &TrialSpec<'_>) -> Result<Self, KernelError> {
        let what = format!("trial on {}", spec.cgroup.display());
        let cgroup = existing(&what, spec.cgroup)?;
        Check::new().must_load(&what)?;
        let lock = lock(&what, &cgroup)?;
        let (mut names, mut controls) = (Vec::new(), Vec::new());
        for (number, arm) in spec.plan.arms().iter().enumerate() {
            let (name, held) = load_arm(&arm.name, number)?;
            names.push(name);
            controls.extend(held);
        }
        let plan = plan_bytes(spec, &names);
        keep_log();
        let mut object = ObjectBuilder::default().open_memory(OBJECT).map_err(KernelError::bpf(&*what))?;
        for mut map in object.maps_mut() {
            if map.name() == ".data.plan" {
                map.initial_value_mut().unwrap_or_default()[..plan.len()].copy_from_slice(&plan);
            }
        }
        let object = object.load().map_err(KernelError::bpf(&*what))?;
        let attached = Attached::new(&object, &cgroup)?;
        let (salt, arms) = (salt()?, names.len());
        Ok(Self { plan, arms, cgroup, salt, sticky: spec.sticky, attached, object, controls, lock })
    }

    /// Attaches the trial again if its cgroup was removed and made again since; returns true if so. Needs `CAP_BPF` and
    /// `CAP_NET_ADMIN`.
    pub fn follow(&mut self) -> Result<bool, KernelError> {
        let followed = self.attached.follow(&self.object)?;
        if followed {
            self.lock = lock(&format!("trial on {}", self.cgroup.display()), &self.cgroup)?;
        }
        Ok(followed)
    }

    fn map(&self, name: &str) -> Result<impl MapCore, KernelError> {
        let map = self.object.maps().find(|m| m.name() == name);
        map.ok_or_else(|| KernelError::refused("trial", format!("the object has no map {name}")))
    }

    fn write_plan(&self) -> Result<(), KernelError> {
        let plan = self.map(".data.plan")?;
        plan.update(&0_u32.to_ne_bytes(), &self.plan, MapFlags::ANY).map_err(KernelError::bpf("trial"))
    }

    /// Ends the A/A phase: connections established from now on use the control of their arm.
    pub fn end_a_a(&mut self) -> Result<(), KernelError> {
        self.plan[PHASE..PHASE + 4].copy_from_slice(&1_u32.to_ne_bytes());
        self.write_plan()
    }

    /// Ends an arm: connections that would have been assigned to it from now on are left alone.
    pub fn end_arm(&mut self, arm: usize) -> Result<(), KernelError> {
        let at = ARMS + arm * ARM_SIZE + ENDED;
        self.plan[at..at + 4].copy_from_slice(&1_u32.to_ne_bytes());
        self.write_plan()
    }

    /// Returns the numbers of connections so far.
    pub fn counts(&self) -> Result<TrialCounts, KernelError> {
        let value = lookup(&self.map(".data.counts")?).unwrap_or_default();
        let n = &mut Numbers(&value);
        let mut next = || n.u64().unwrap_or(0);
        let mut assigned: Vec<u64> = (0..MAX_ARMS).map(|_| next()).collect();
        assigned.truncate(self.arms);
        Ok(TrialCounts {
            assigned,
            outside: next(),
            own_choice: next(),
            refused: next(),
            without_storage: next(),
            lost_records: next(),
        })
    }

    /// Returns a reader of the records, which calls `each` with each of them.
    pub fn reader<'a>(&self, mut each: impl FnMut(TrialRecord) + 'a) -> Result<TrialReader<'a>, KernelError> {
        let reasons = Rc::new(RefCell::new(Reasons::default()));
        let mut controls = Vec::new();
        for held in &self.controls {
            held.watch(1)?;
            let reasons = Rc::clone(&reasons);
            controls.push(held.events(move |f| reasons.borrow_mut().see(&f))?);
        }
        let (salt, sticky) = (self.salt, self.sticky);
        let of_each = Rc::clone(&reasons);
        let mut ring = RingBufferBuilder::new();
        let map = self.map("records")?;
        ring.add(&map, move |bytes| {
            if let Some((sk, mut record)) = read(bytes, &salt, sticky) {
                of_each.borrow_mut().apply(sk, &mut record);
                each(record);
            }
            0
        })
        .map_err(KernelError::bpf("trial"))?;
        Ok(TrialReader { controls, records: ring.build().map_err(KernelError::bpf("trial"))?, reasons })
    }
}

/// Why startups of this project ended, by socket: they tell more than the kernel's state shows.
#[derive(Default)]
struct Reasons {
    by_socket: BTreeMap<u64, (ExitReason, u32)>,
    /// Sockets that were closed, whose last record may still be to come.
    closed: BTreeSet<u64>,
}

impl Reasons {
    fn see(&mut self, f: &Facts) {
        match f.kind {
            Kind::Begin => {
                self.by_socket.remove(&f.sk);
                self.closed.remove(&f.sk);
            }
            Kind::Undo => {
                self.by_socket.remove(&f.sk);
            }
            Kind::End => {
                self.closed.insert(f.sk);
            }
            _ if f.why != ExitReason::None => {
                self.by_socket.insert(f.sk, (f.why, f.cwnd));
            }
            _ => {}
        }
    }

    fn apply(&self, sk: u64, record: &mut TrialRecord) {
        if let (Some((why, cwnd)), Some(exit)) = (self.by_socket.get(&sk), &mut record.outcome.exit) {
            *exit = Exit { reason: why.name(), cwnd: *cwnd, time_s: exit.time_s };
        }
    }

    /// Forgets the sockets that were closed before all records were read.
    fn forget(&mut self) {
        for sk in std::mem::take(&mut self.closed) {
            self.by_socket.remove(&sk);
        }
    }
}

/// Reads the records of a trial.
pub struct TrialReader<'a> {
    controls: Vec<RingBuffer<'a>>,
    records: RingBuffer<'a>,
    reasons: Rc<RefCell<Reasons>>,
}

impl std::fmt::Debug for TrialReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrialReader").field("controls", &self.controls.len()).finish_non_exhaustive()
    }
}

impl TrialReader<'_> {
    /// Passes on the records since the last call. The ring holds about 7,000 records; call it several times per second.
    pub fn poll(&self) -> Result<(), KernelError> {
        for ring in self.controls.iter().chain([&self.records]) {
            ring.consume().map_err(KernelError::bpf("read records of the trial"))?;
        }
        self.reasons.borrow_mut().forget();
        Ok(())
    }
}

/// Parses a record of the ring, with the address of its socket; `None` if it is malformed.
fn read(bytes: &[u8], salt: &[u8; 32], sticky: bool) -> Option<(u64, TrialRecord)> {
    let n = &mut Numbers(bytes);
    let (sk, cookie, acked_bytes, sent_bytes, retransmitted_bytes) =
        (n.u64()?, n.u64()?, n.u64()?, n.u64()?, n.u64()?);
    let (closed, _) = (n.u32()? != 0, n.u32()?);
    let (_begun, _idle, _since, last_us) = (n.u64()?, n.u64()?, n.u64()?, n.u64()?);
    let milestones = [n.u64()?, n.u64()?, n.u64()?];
    let (exit_us, rtt_sum_us, prefix) = (n.u64()?, n.u64()?, n.u64()?);
    let (acks, limited, least, peak) = (n.u32()?, n.u32()?, n.u32()?, n.u32()?);
    let (handshake, exit_cwnd, why, _cwnd) = (n.u32()?, n.u32()?, n.u32()?, n.u32()?);
    let (arm, phase, _reached, v6) = (n.u32()? as usize, n.u32()?, n.u32()?, n.u32()?);
    let why = *ExitReason::ALL.get(why as usize)?;
    if arm >= MAX_ARMS || !n.0.is_empty() {
        return None;
    }
    let seconds = |us: u64| us as f64 / 1e6;
    let mut address = [0; 16];
    address[0] = v6 as u8;
    address[8..].copy_from_slice(&prefix.to_be_bytes());
    let prefix = unit_of_prefix(salt, &address);
    let over_least = |us: f64| (acks > 0 && least > 0).then(|| us / f64::from(least));
    let outcome = Outcome {
        arm,
        unit: if sticky { prefix } else { cookie },
        prefix,
        handshake_rtt_s: seconds(handshake.into()),
        milestones_s: milestones.map(|us| (us > 0).then(|| seconds(us))),
        last_s: (closed && acks > 0 && sent_bytes > 0).then(|| seconds(last_us)),
        delivered_bytes: acked_bytes,
        sent_bytes,
        retransmitted_bytes,
        rtt_mean: over_least(rtt_sum_us as f64 / f64::from(acks.max(1))),
        rtt_peak: over_least(peak.into()),
        app_limited: (acks > 0).then(|| f64::from(limited) / f64::from(acks)),
        exit: (why != ExitReason::None).then(|| Exit {
            reason: why.name(),
            cwnd: exit_cwnd,
            time_s: seconds(exit_us),
        }),
    };
    Some((sk, TrialRecord { connection: cookie, closed, a_a: phase == 0, outcome }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record as `struct record` of `trial.bpf.c`: twelve connections' numbers that differ from each other.
    fn record() -> Vec<u8> {
        let mut bytes = Vec::new();
        for n in [71_u64, 72, 1_500_000, 1_600_000, 16_000] {
            bytes.extend(n.to_ne_bytes());
        }
        for n in [1_u32, 0] {
            bytes.extend(n.to_ne_bytes());
        }
        for n in [1_u64, 2, 3, 900_000, 200_000, 700_000, 0, 300_000, 60_000, 0xc000_0200] {
            bytes.extend(n.to_ne_bytes());
        }
        for n in [4_u32, 1, 10_000, 40_000, 12_000, 33, 2, 20, 1, 1, 2, 0] {
            bytes.extend(n.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn a_record_is_parsed_in_order_and_a_short_one_is_none() {
        let bytes = record();
        let (sk, r) = read(&bytes, &[3; 32], false).expect("complete");
        assert_eq!((sk, r.connection, r.closed, r.a_a), (71, 72, true, false));
        let o = &r.outcome;
        assert_eq!((o.arm, o.unit, o.handshake_rtt_s), (1, 72, 0.012));
        assert_eq!(o.milestones_s, [Some(0.2), Some(0.7), None]);
        assert_eq!((o.last_s, o.delivered_bytes, o.sent_bytes), (Some(0.9), 1_500_000, 1_600_000));
        assert_eq!((o.retransmitted_bytes, o.rtt_mean, o.rtt_peak), (16_000, Some(1.5), Some(4.0)));
        assert_eq!(o.app_limited, Some(0.25));
        assert_eq!(o.exit, Some(Exit { reason: "loss", cwnd: 33, time_s: 0.3 }));
        let (_, sticky) = read(&bytes, &[3; 32], true).expect("complete");
        assert_eq!(sticky.outcome.unit, o.prefix);
        assert!(o.prefix != 0xc000_0200 && read(&bytes[1..], &[3; 32], false).is_none());
        assert!(read(&[bytes, vec![0; 4]].concat(), &[3; 32], false).is_none());
    }
}
