//! The kernel side of a trial: assigns the new connections of a cgroup to arms and reads what becomes of
//! them.
//!
//! Everything ends with the process that holds it, however it ends: the kernel closes the link to the cgroup
//! and those of the arms' congestion controls with the last file descriptor. Connections that were assigned
//! keep their control until they close; new ones use what they used before the trial.

use crate::bpf_log::keep_log;
use crate::check::{Check, Verb, sees_choices};
use crate::error::KernelError;
use crate::exits::Exits;
use crate::facts::{ExitReason, Facts, Kind, Numbers};
use crate::list::{available, lookup};
use crate::load::{Held, Spec, load_as};
use crate::others::{self, OtherProgram};
use crate::places::{Places, claim};
use crate::study::KERNEL_CONTROLS;
use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, RingBuffer, RingBufferBuilder};
use slowstart_trial::outcome::unit_of_prefix;
use slowstart_trial::plan::MAX_ARMS;
use slowstart_trial::{Exit, Outcome, Plan, TrialCounts};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/trial.bpf.o"));

/// Offsets in `plan` of `trial.bpf.c`: the phase, the first arm; in an arm: whether it was ended; size of an
/// arm.
const PHASE: usize = 20;
const ARMS: usize = 24;
const ENDED: usize = 8;
const ARM_SIZE: usize = 32;

/// What a trial starts with: its arms and whose connections they are for.
#[derive(Copy, Clone, Debug)]
pub struct TrialSpec<'a> {
    /// Directory of the cgroup, or a pattern with `*`, `?` or `[..]` for several, those that are made later
    /// too.
    pub cgroup: &'a Path,
    /// The arms: congestion controls that the kernel has, or startups with parameters, which are loaded for
    /// the trial.
    pub plan: &'a Plan,
    /// Assign by the client's prefix (/24 of IPv4, /56 of IPv6) instead of by connection.
    pub sticky: bool,
    /// Begin with an A/A phase, in which every arm uses the control of the first.
    pub a_a: bool,
    /// Count what would be assigned, and change nothing.
    pub dry: bool,
    /// The salt of clients' prefixes; `None` for one of its own.
    pub salt: Option<[u8; 32]>,
}

/// What is known of one connection, at a milestone or when it closed.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialRecord {
    /// Identifies the connection: the cookie of its socket.
    pub connection: u64,
    /// True if this is its last record.
    pub closed: bool,
    /// True if the program has chosen another congestion control since the connection was assigned: it is in
    /// no arm, and what earlier records of it say does not count. Only in a last record.
    pub own_choice: bool,
    /// True if it was established during the A/A phase.
    pub a_a: bool,
    /// The outcome so far.
    pub outcome: Outcome,
}

/// A trial that runs until this is dropped.
pub struct RunningTrial {
    plan: Vec<u8>,
    arms: usize,
    salt: [u8; 32],
    sticky: bool,
    // Dropped in this order: first no connection is assigned any more, then the controls are removed.
    places: Places,
    object: Object,
    others: Vec<OtherProgram>,
    sees_choices: bool,
    /// Those that were loaded, with the arm of each.
    controls: Vec<(usize, Held)>,
}

impl std::fmt::Debug for RunningTrial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningTrial").field("cgroup", &self.places.wanted).finish_non_exhaustive()
    }
}

/// Loads the control of an arm, under a name of this process, unless the kernel has it. Returns its name in
/// the kernel.
fn load_arm(arm: &str, number: usize) -> Result<(String, Option<Held>), KernelError> {
    let available = available()?;
    if available.iter().any(|a| a == arm) {
        return Ok((arm.to_string(), None));
    }
    if KERNEL_CONTROLS.contains(&arm) {
        let why = format!("this kernel has {}; try modprobe tcp_{arm}", available.join(", "));
        return Err(KernelError::refused(format!("arm {arm}"), why));
    }
    let held = load_as(&Spec::read(arm, "cubic")?, arm_name(number))?;
    Ok((held.name.clone(), Some(held)))
}

/// The name in the kernel of an arm's control, of which no other process loads one.
fn arm_name(number: usize) -> String {
    format!("ss_{:x}_t{number}", std::process::id())
}

/// True if a trial, of any process, gave a control this name.
pub(crate) fn is_arm_name(name: &str) -> bool {
    let parts = name.strip_prefix("ss_").and_then(|rest| rest.split_once("_t"));
    parts.is_some_and(|(pid, number)| u32::from_str_radix(pid, 16).is_ok() && number.parse::<usize>().is_ok())
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
    /// If the cgroup is none of version 2 or has a trial already, if an arm is not known or this kernel
    /// cannot run it.
    pub fn start(spec: &TrialSpec<'_>) -> Result<Self, KernelError> {
        let what = format!("trial on {}", spec.cgroup.display());
        let claims = claim(&what, spec.cgroup)?;
        Check::new().must(Verb::Trial, &what)?;
        let mut others = Vec::new();
        for claim in &claims {
            others.extend(others::find(&what, &claim.cgroup)?);
        }
        others.sort_by(|a, b| (&a.cgroup, a.id).cmp(&(&b.cgroup, b.id)));
        others.dedup();
        let (mut names, mut controls) = (Vec::new(), Vec::new());
        for (number, arm) in spec.plan.arms().iter().enumerate() {
            let (name, held) = load_arm(&arm.name, number)?;
            names.push(name);
            if let Some(held) = held {
                held.watch(1)?;
                controls.push((number, held));
            }
        }
        let plan = plan_bytes(spec, &names);
        keep_log();
        let mut object = ObjectBuilder::default().open_memory(OBJECT).map_err(KernelError::bpf(&*what))?;
        for mut map in object.maps_mut() {
            if map.name() == ".data.plan" {
                map.initial_value_mut().unwrap_or_default()[..plan.len()].copy_from_slice(&plan);
            }
        }
        let sees_choices = sees_choices();
        if !sees_choices {
            for mut program in object.progs_mut().filter(|p| p.name() == "on_choice") {
                program.set_autoload(false);
            }
        }
        let object = object.load().map_err(KernelError::bpf(&*what))?;
        let places = Places::new(spec.cgroup, claims, &object, sees_choices)?;
        let (salt, arms) = (spec.salt.map_or_else(salt, Ok)?, names.len());
        Ok(Self { plan, arms, salt, sticky: spec.sticky, places, object, others, sees_choices, controls })
    }

    /// Returns the salt of clients' prefixes. Who has it can find out the prefixes by trying all.
    pub const fn salt(&self) -> [u8; 32] {
        self.salt
    }

    /// Returns the programs of others that saw the same connections when it began, and may set their control.
    pub fn others(&self) -> &[OtherProgram] {
        &self.others
    }

    /// True if it sees each control that a program sets after `accept()` or `connect()`. Otherwise it does not see
    /// one that the connection has already, so what its connections are withdrawn for differs between arms.
    pub const fn sees_choices(&self) -> bool {
        self.sees_choices
    }

    /// Attaches the trial to its cgroups that were made, or removed and made again, since the last call, and
    /// returns them. Needs `CAP_BPF` and `CAP_NET_ADMIN`.
    pub fn follow(&mut self) -> Result<Vec<PathBuf>, KernelError> {
        self.places.follow(&self.object)
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
        let value = lookup(&self.map(".data.counts")?);
        value.and_then(|v| counts(&v, self.arms)).ok_or_else(|| {
            KernelError::refused("trial", "the kernel does not tell how many connections were assigned")
        })
    }

    /// Returns a reader of the records, which calls `each` with each of them.
    pub fn reader<'a>(
        &self,
        each: impl FnMut(TrialRecord) + Send + 'a,
    ) -> Result<TrialReader<'a>, KernelError> {
        let reasons = Arc::new(Mutex::new(Reasons::default()));
        let pending = Arc::new(Mutex::new(Vec::new()));
        let mut controls = Vec::new();
        let mut ours = [false; MAX_ARMS];
        for (arm, held) in &self.controls {
            ours[*arm] = true;
            let reasons = Arc::clone(&reasons);
            controls.push(held.events(move |f| locked(&reasons).see(&f))?);
        }
        let (salt, sticky) = (self.salt, self.sticky);
        let of_ring = Arc::clone(&pending);
        let mut ring = RingBufferBuilder::new();
        let map = self.map("records")?;
        ring.add(&map, move |bytes| {
            locked(&of_ring).extend(read(bytes, &salt, sticky));
            0
        })
        .map_err(KernelError::bpf("trial"))?;
        let records = ring.build().map_err(KernelError::bpf("trial"))?;
        Ok(TrialReader { controls, records, pending, reasons, ours, each: Box::new(each) })
    }
}

/// The numbers of connections as the object writes them; `None` if one is missing.
fn counts(value: &[u8], arms: usize) -> Option<TrialCounts> {
    let n = &mut Numbers(value);
    let mut assigned: Vec<u64> = (0..MAX_ARMS).map(|_| n.u64()).collect::<Option<_>>()?;
    assigned.truncate(arms);
    Some(TrialCounts {
        assigned,
        outside: n.u64()?,
        own_choice: n.u64()?,
        refused: n.u64()?,
        without_storage: n.u64()?,
        lost_records: n.u64()?,
    })
}

/// How a startup of this project ended.
struct Left {
    why: ExitReason,
    cwnd: u32,
    now_us: u64,
}

/// Why startups of this project ended, by the address of the socket: they tell more than the kernel's state
/// shows. Connections that follow each other may have the same address.
#[derive(Default)]
struct Reasons {
    by_socket: BTreeMap<u64, Exits<Left>>,
    /// Address and time of connections that were closed, whose last record may still be to come.
    closed: Vec<(u64, u64)>,
}

impl Reasons {
    fn see(&mut self, f: &Facts) {
        let now_us = f.now_ns / 1000;
        if f.kind == Kind::End {
            self.closed.push((f.sk, now_us));
        } else if f.why != ExitReason::None || self.by_socket.contains_key(&f.sk) {
            let left = || Left { why: f.why, cwnd: f.cwnd, now_us };
            self.by_socket.entry(f.sk).or_default().see(f, left);
        }
    }

    /// Returns how the startup of a connection ended, which uses a startup of this project.
    fn exit(&self, r: &RawRecord) -> Option<Exit> {
        let during = |l: &&Left| (r.begun_us..=r.now_us).contains(&l.now_us);
        let left = self.by_socket.get(&r.sk)?.iter().rev().find(during)?;
        let active_us = (left.now_us - r.begun_us).saturating_sub(r.exit_idle_us);
        Some(Exit { reason: left.why.name(), cwnd: left.cwnd, time_s: active_us as f64 / 1e6 })
    }

    /// Forgets the first `n` connections that were closed.
    fn forget(&mut self, n: usize) {
        for (sk, end_us) in self.closed.drain(..n) {
            if let Some(all) = self.by_socket.get_mut(&sk) {
                all.retain(|l| l.now_us > end_us);
                if all.is_empty() {
                    self.by_socket.remove(&sk);
                }
            }
        }
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the records of a trial, in a thread of its own where what is done with them may take seconds.
pub struct TrialReader<'a> {
    controls: Vec<RingBuffer<'a>>,
    records: RingBuffer<'a>,
    pending: Arc<Mutex<Vec<RawRecord>>>,
    reasons: Arc<Mutex<Reasons>>,
    /// The arms whose startups are of this project.
    ours: [bool; MAX_ARMS],
    each: Box<dyn FnMut(TrialRecord) + Send + 'a>,
}

impl std::fmt::Debug for TrialReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrialReader").field("controls", &self.controls.len()).finish_non_exhaustive()
    }
}

impl TrialReader<'_> {
    /// Passes on the records since the last call. The ring holds about 7,000 records; call it several times
    /// per second.
    pub fn poll(&mut self) -> Result<(), KernelError> {
        let failed = || KernelError::bpf("read records of the trial");
        // Connections whose end was read in an earlier call have no record that is read later than in this
        // one.
        let closed = locked(&self.reasons).closed.len();
        self.records.consume().map_err(failed())?;
        // Events that explain a record were written before it, so they are read after it.
        for ring in &self.controls {
            ring.consume().map_err(failed())?;
        }
        for mut raw in std::mem::take(&mut *locked(&self.pending)) {
            if self.ours[raw.record.outcome.arm] {
                raw.record.outcome.exit = locked(&self.reasons).exit(&raw);
            }
            (self.each)(raw.record);
        }
        locked(&self.reasons).forget(closed);
        Ok(())
    }
}

/// A record of the ring, and what else is needed of it to find how a startup ended.
struct RawRecord {
    /// Address of the socket.
    sk: u64,
    /// When it was written, and when the connection sent its first data, in microseconds of
    /// `CLOCK_MONOTONIC`.
    now_us: u64,
    begun_us: u64,
    /// Idle time until the startup ended, as far as the kernel's state shows that.
    exit_idle_us: u64,
    record: TrialRecord,
}

/// Parses a record of the ring; `None` if it is malformed.
fn read(bytes: &[u8], salt: &[u8; 32], sticky: bool) -> Option<RawRecord> {
    let n = &mut Numbers(bytes);
    let (sk, now_us, sent_bytes, retransmitted_bytes) = (n.u64()?, n.u64()?, n.u64()?, n.u64()?);
    let (closed, _) = (n.u32()? != 0, n.u32()?);
    let (cookie, prefix) = (n.u64()?, n.u64()?);
    let (arm, phase, v6, handshake) = (n.u32()? as usize, n.u32()?, n.u32()?, n.u32()?);
    let (rtt_sum_us, least, peak, samples, limited) = (n.u64()?, n.u32()?, n.u32()?, n.u32()?, n.u32()?);
    let (begun_us, idle_us, _since, last_us, acked_bytes) =
        (n.u64()?, n.u64()?, n.u64()?, n.u64()?, n.u64()?);
    let milestones = [n.u64()?, n.u64()?, n.u64()?];
    let (exit_us, exit_idle_us) = (n.u64()?, n.u64()?);
    let (_una, _reached, _cwnd, exit_cwnd, why, _) =
        (n.u32()?, n.u32()?, n.u32()?, n.u32()?, n.u32()?, n.u32()?);
    let (own_choice, _) = (n.u32()? != 0, n.u32()?);
    let why = *ExitReason::ALL.get(why as usize)?;
    if arm >= MAX_ARMS || !n.0.is_empty() {
        return None;
    }
    let seconds = |us: u64| us as f64 / 1e6;
    let mut address = [0; 16];
    address[0] = v6 as u8;
    address[8..].copy_from_slice(&prefix.to_be_bytes());
    let prefix = unit_of_prefix(salt, &address);
    let over_least = |us: f64| (samples > 0 && least > 0).then(|| us / f64::from(least));
    let outcome = Outcome {
        arm,
        unit: if sticky { prefix } else { cookie },
        prefix,
        handshake_rtt_s: (handshake > 0).then(|| seconds(handshake.into())),
        milestones_s: milestones.map(|us| (us > 0).then(|| seconds(us))),
        last_s: (closed && acked_bytes > 0).then(|| seconds(last_us)),
        delivered_bytes: acked_bytes,
        sent_bytes,
        retransmitted_bytes,
        rtt_mean: over_least(rtt_sum_us as f64 / f64::from(samples.max(1))),
        rtt_peak: over_least(peak.into()),
        app_limited: (samples > 0).then(|| f64::from(limited) / f64::from(samples)),
        exit: (why != ExitReason::None).then(|| Exit {
            reason: why.name(),
            cwnd: exit_cwnd,
            time_s: seconds(exit_us),
        }),
    };
    let exit_idle_us = if why == ExitReason::None { idle_us } else { exit_idle_us };
    let record = TrialRecord { connection: cookie, closed, own_choice, a_a: phase == 0, outcome };
    Some(RawRecord { sk, now_us, begun_us, exit_idle_us, record })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_are_known_by_their_names() {
        assert!(is_arm_name(&arm_name(2)));
        for other in ["ss_search", "ss_search_reno", "ss_1f_check", "ss_1f_2", "cubic"] {
            assert!(!is_arm_name(other), "{other}");
        }
    }

    /// A record as `struct record` of `trial.bpf.c`.
    fn record() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut put64 = |all: &[u64]| bytes.extend(all.iter().flat_map(|n| n.to_ne_bytes()));
        // The 32-bit numbers in pairs; here the first of a pair is the lower half.
        let pair = |a: u64, b: u64| if cfg!(target_endian = "little") { a | b << 32 } else { a << 32 | b };
        put64(&[71, 8_000_000, 1_600_000, 16_000, pair(1, 0)]);
        put64(&[72, 0xc000_0200, pair(1, 1), pair(0, 12_000)]);
        put64(&[60_000, pair(10_000, 40_000), pair(4, 1)]);
        put64(&[5_000_000, 400_000, 3, 900_000, 1_500_000, 200_000, 700_000, 0, 300_000, 100_000]);
        put64(&[pair(9, 2), pair(20, 33), pair(2, 0), pair(1, 0)]);
        bytes
    }

    #[test]
    fn a_record_is_parsed_in_order_and_a_short_one_is_none() {
        let bytes = record();
        let raw = read(&bytes, &[3; 32], false).expect("complete");
        assert_eq!((raw.sk, raw.now_us, raw.begun_us, raw.exit_idle_us), (71, 8_000_000, 5_000_000, 100_000));
        let r = &raw.record;
        assert_eq!((r.connection, r.closed, r.own_choice, r.a_a), (72, true, true, false));
        let o = &r.outcome;
        assert_eq!((o.arm, o.unit, o.handshake_rtt_s), (1, 72, Some(0.012)));
        assert_eq!(o.milestones_s, [Some(0.2), Some(0.7), None]);
        assert_eq!((o.last_s, o.delivered_bytes, o.sent_bytes), (Some(0.9), 1_500_000, 1_600_000));
        assert_eq!((o.retransmitted_bytes, o.rtt_mean, o.rtt_peak), (16_000, Some(1.5), Some(4.0)));
        assert_eq!(o.app_limited, Some(0.25));
        assert_eq!(o.exit, Some(Exit { reason: "loss", cwnd: 33, time_s: 0.3 }));
        let sticky = read(&bytes, &[3; 32], true).expect("complete").record;
        assert_eq!(sticky.outcome.unit, o.prefix);
        assert!(o.prefix != 0xc000_0200 && read(&bytes[1..], &[3; 32], false).is_none());
        assert!(read(&[bytes, vec![0; 4]].concat(), &[3; 32], false).is_none());
    }

    #[test]
    fn a_missing_count_is_no_count() {
        let numbers: Vec<u64> = (1..=MAX_ARMS as u64 + 5).collect();
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_ne_bytes()).collect();
        let c = counts(&bytes, 2).expect("complete");
        let after = MAX_ARMS as u64;
        assert_eq!((&c.assigned[..], c.outside, c.own_choice), (&[1, 2][..], after + 1, after + 2));
        assert_eq!((c.refused, c.without_storage, c.lost_records), (after + 3, after + 4, after + 5));
        for short in [0, 8, bytes.len() - 8, bytes.len() - 1] {
            assert!(counts(&bytes[..short], 2).is_none(), "{short} bytes");
        }
    }

    /// An event of socket 7, at 3 s and a cwnd of 50.
    fn event(kind: Kind, why: ExitReason) -> Facts {
        let mut f = Facts::read(&[0; 280]).expect("complete");
        (f.sk, f.kind, f.why, f.now_ns, f.cwnd) = (7, kind, why, 3_000_000_000, 50);
        f
    }

    #[test]
    fn a_startup_ends_by_its_own_reason_unless_that_reduction_is_undone() {
        let mut raw = read(&record(), &[3; 32], false).expect("complete");
        (raw.sk, raw.begun_us, raw.exit_idle_us) = (7, 1_000_000, 500_000);
        let after = |events: &[(Kind, ExitReason)]| {
            let mut reasons = Reasons::default();
            for (kind, why) in events {
                reasons.see(&event(*kind, *why));
            }
            reasons.exit(&raw).map(|e| (e.reason, e.cwnd, e.time_s))
        };
        let (none, flat, loss) = (ExitReason::None, ExitReason::RateFlat, ExitReason::Loss);
        let begin = (Kind::Begin, none);
        assert_eq!(after(&[begin, (Kind::Ack, none)]), None);
        assert_eq!(after(&[begin, (Kind::Ack, loss), (Kind::Undo, none)]), None);
        assert_eq!(after(&[begin, (Kind::Ack, flat)]), Some(("rate-flat", 50, 1.5)));
        assert_eq!(after(&[begin, (Kind::Loss, loss), (Kind::Undo, none)]), None);
        // What is undone is a later reduction.
        let later = [begin, (Kind::Ack, flat), (Kind::Loss, none), (Kind::Undo, none)];
        assert_eq!(after(&later), Some(("rate-flat", 50, 1.5)));
        let twice = [begin, (Kind::Loss, loss), (Kind::Loss, none), (Kind::Undo, none)];
        assert_eq!(after(&twice), Some(("loss", 50, 1.5)));
        // Another connection with its address.
        assert_eq!(after(&[begin, (Kind::Loss, loss), begin, (Kind::Undo, none)]), Some(("loss", 50, 1.5)));
        let mut reasons = Reasons::default();
        reasons.see(&event(Kind::Ack, flat));
        (raw.begun_us, raw.now_us) = (3_000_001, 4_000_000);
        assert_eq!(reasons.exit(&raw), None);
        reasons.see(&event(Kind::End, none));
        reasons.forget(1);
        assert!(reasons.by_socket.is_empty() && reasons.closed.is_empty());
    }
}
