//! The controllers of slowstart for programs in C: `include/slowstart.h` declares what this file defines.
//!
//! A stack creates a controller for each connection, tells it of every event, and reads the congestion window, the threshold,
//! the pacing and the timer from its state. The order of calls is that of [`Controller`]. There are no globals. Only
//! [`slowstart_create`] and [`slowstart_free`] touch the heap. Calls for one controller must not overlap; a controller may move
//! from thread to thread between calls, and different controllers may be used by different threads at the same time.
//!
//! Each structure of arguments begins with its size, so that a later version can add fields at its end: fields that a caller
//! does not have are unknown.

#![allow(unsafe_code, reason = "the functions take pointers of C; each states what it requires of them")]
#![allow(clippy::missing_safety_doc, reason = "`# Safety` of each function is its contract in the header")]

use slowstart::avoidance::{self, AnyAvoidance};
use slowstart::control::{Change, Checked, Controller, Exited};
use slowstart::registry::{self, Algorithm, AnyController};
use slowstart::step::Pace;
use slowstart::units::{Bytes, Instant, Mark, Rate, Span};
use slowstart::view::{
    Ack, Congestion, Facts, Handshake, HostQueue, Limit, PathMemory, Recovery, Sent, Signal,
};
use std::ffi::{CStr, c_char, c_int};
use std::ptr;

/// Stands for a number that is not known.
pub const SLOWSTART_UNKNOWN: u64 = u64::MAX;
/// The version of this interface. A larger one adds functions and fields at the end of structures.
pub const SLOWSTART_VERSION: u32 = 1;

/// A call was made.
const OK: c_int = 0;
/// A pointer was null, or a structure smaller than the least that has meaning.
const BAD_ARGUMENT: c_int = -1;

/// The controller of one connection.
#[allow(non_camel_case_types, reason = "its name in C")]
pub struct slowstart_controller {
    control: Checked<AnyController>,
    exited: Option<Exited>,
    resend: Option<Bytes>,
}

/// State of the host at the time of an event. Sizes are bytes, times nanoseconds since any fixed moment.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
#[allow(non_camel_case_types, reason = "its name in C")]
pub struct slowstart_facts {
    /// `sizeof` this structure.
    pub size: u64,
    /// The time. It never decreases.
    pub now_ns: u64,
    /// Payload of a full packet.
    pub mss: u64,
    /// The initial window.
    pub iw: u64,
    /// The least window: one segment in TCP, two packets in QUIC.
    pub min_window: u64,
    /// Sent, and neither acknowledged nor lost.
    pub inflight: u64,
    /// Delivered since the connection began.
    pub delivered: u64,
    /// Marked lost since the connection began.
    pub lost: u64,
    /// Delivered in packets with a CE mark; unknown if the host does not count them.
    pub marked: u64,
    /// The newest packet sent, in the order of sending: SND.NXT in TCP, the packet number in QUIC.
    pub next: u64,
    /// SND.NXT - SND.UNA; unknown without a cumulative acknowledgement.
    pub unacked: u64,
    /// Smoothed round-trip time, or unknown.
    pub srtt_ns: u64,
    /// Minimum round-trip time, or unknown.
    pub min_rtt_ns: u64,
    /// The peer's receive window; unknown means unlimited.
    pub rwnd: u64,
    /// The rate at which the host paces, bit/s, or unknown.
    pub pacing_rate_bps: u64,
    /// What the application has queued and that has not been sent, or unknown.
    pub unsent: u64,
    /// Bytes in the host's interface queue, and its capacity, or unknown.
    pub host_queue_used: u64,
    /// See `host_queue_used`.
    pub host_queue_limit: u64,
    /// The rate of the interface, bit/s, or unknown.
    pub nic_rate_bps: u64,
    /// 1 if the host can pace as `slowstart_state` asks, otherwise 0.
    pub supports_pacing: u32,
    /// 1 if the host paces at present.
    pub pacing_on: u32,
    /// 1 between start and end of a loss episode.
    pub in_recovery: u32,
    /// 0.
    pub reserved: u32,
}

/// A packet that was sent, with the state at that time. The fields after `bytes` are read only if
/// `slowstart_needs_delivery_state`, and may be 0 otherwise.
#[repr(C)]
#[derive(Copy, Clone, Debug, Default)]
#[allow(non_camel_case_types, reason = "its name in C")]
pub struct slowstart_sent {
    /// `sizeof` this structure.
    pub size: u64,
    /// Its place in the order of sending: in TCP the end of its data, in QUIC its number.
    pub mark: u64,
    /// When it was sent.
    pub at_ns: u64,
    /// Its payload.
    pub bytes: u64,
    /// Bytes sent so far, it included.
    pub sent_total: u64,
    /// Bytes in flight, it included.
    pub inflight: u64,
    /// `delivered` of the facts at that time.
    pub delivered: u64,
    /// When that had last increased.
    pub delivered_at_ns: u64,
    /// When the first packet of its delivery-rate sample was sent.
    pub first_sent_at_ns: u64,
    /// `lost` of the facts at that time.
    pub lost: u64,
    /// The window at that time.
    pub cwnd: u64,
    /// 1 if its data had been sent before.
    pub retransmission: u32,
    /// 1 if the application, not the window, limited the sender.
    pub app_limited: u32,
}

/// An ACK.
#[repr(C)]
#[derive(Copy, Clone, Debug, Default)]
#[allow(non_camel_case_types, reason = "its name in C")]
pub struct slowstart_ack {
    /// `sizeof` this structure.
    pub size: u64,
    /// How far acknowledgements have advanced in the order of sending. It never decreases.
    pub upto: u64,
    /// Bytes for which the window may grow.
    pub bytes: u64,
    /// Bytes newly delivered.
    pub delivered: u64,
    /// Bytes newly marked lost.
    pub newly_lost: u64,
    /// Bytes in flight before it.
    pub prior_inflight: u64,
    /// Its round-trip sample, or unknown.
    pub rtt_ns: u64,
    /// What limited the sender: 0 the window, 1 the pacer, 2 the application, 3 the peer's receive window.
    pub limit: u64,
    /// The most recently sent packet among those newly delivered.
    pub newest: slowstart_sent,
}

/// How the connection was established.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
#[allow(non_camel_case_types, reason = "its name in C")]
pub struct slowstart_handshake {
    /// `sizeof` this structure.
    pub size: u64,
    /// The round-trip time of the handshake, or unknown.
    pub rtt_ns: u64,
    /// How many times the host's SYN was retransmitted; 0 in QUIC.
    pub syn_losses: u64,
    /// 1 if those retransmissions proved unnecessary.
    pub spurious: u64,
    /// The rate that routers granted (Quick-Start), bit/s, or unknown.
    pub granted_bps: u64,
    /// An earlier connection's window at its end, or unknown.
    pub remembered_cwnd: u64,
    /// Its minimum round-trip time.
    pub remembered_rtt_ns: u64,
    /// Its rate at its end, bit/s.
    pub remembered_rate_bps: u64,
}

/// What the host takes from the controller after each call.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
#[allow(non_camel_case_types, reason = "its name in C")]
pub struct slowstart_state {
    /// `sizeof` this structure.
    pub size: u64,
    /// The congestion window.
    pub cwnd: u64,
    /// The slow-start threshold; unknown while it is arbitrarily high.
    pub ssthresh: u64,
    /// When to call `slowstart_timer`; unknown means never.
    pub wake_ns: u64,
    /// How to pace: 0 by the host's own rule, 1 not at all, 2 at `pace` 1024ths of cwnd / SRTT, 3 at `pace` bit/s.
    pub pace_kind: u64,
    /// See `pace_kind`.
    pub pace: u64,
    /// The packet to retransmit now ends this many bytes before the end of the data sent; unknown if none is asked for. It
    /// is that of the newest call alone.
    pub resend: u64,
    /// When the startup detected its reason to end; unknown while it lasts.
    pub exit_detected_ns: u64,
    /// The window at that time.
    pub exit_detected_cwnd: u64,
    /// The window when it left.
    pub exit_cwnd: u64,
    /// Why: a static string such as "loss", or null.
    pub exit_why: *const c_char,
}

fn known(v: u64) -> Option<u64> {
    (v != SLOWSTART_UNKNOWN).then_some(v)
}

fn unknown(v: Option<u64>) -> u64 {
    v.unwrap_or(SLOWSTART_UNKNOWN)
}

/// A structure whose first field is its size, and its value where a caller has no field.
trait Argument: Copy {
    /// All fields unknown.
    fn unknown() -> Self;
}

impl Argument for slowstart_facts {
    fn unknown() -> Self {
        let u = SLOWSTART_UNKNOWN;
        Self {
            size: 0,
            now_ns: 0,
            mss: 0,
            iw: 0,
            min_window: 0,
            inflight: 0,
            delivered: 0,
            lost: 0,
            marked: u,
            next: 0,
            unacked: u,
            srtt_ns: u,
            min_rtt_ns: u,
            rwnd: u,
            pacing_rate_bps: u,
            unsent: u,
            host_queue_used: u,
            host_queue_limit: u,
            nic_rate_bps: u,
            supports_pacing: 0,
            pacing_on: 0,
            in_recovery: 0,
            reserved: 0,
        }
    }
}

impl Argument for slowstart_sent {
    fn unknown() -> Self {
        Self::default()
    }
}

impl Argument for slowstart_ack {
    fn unknown() -> Self {
        Self { rtt_ns: SLOWSTART_UNKNOWN, ..Self::default() }
    }
}

impl Argument for slowstart_handshake {
    fn unknown() -> Self {
        let u = SLOWSTART_UNKNOWN;
        Self {
            size: 0,
            rtt_ns: u,
            syn_losses: 0,
            spurious: 0,
            granted_bps: u,
            remembered_cwnd: u,
            remembered_rtt_ns: u,
            remembered_rate_bps: u,
        }
    }
}

/// Reads a structure of the caller, which may be of an older version and so shorter.
///
/// # Safety
/// `from` is null, or points to as many readable bytes as its first field says.
unsafe fn read<T: Argument>(from: *const T) -> Option<T> {
    if from.is_null() {
        return None;
    }
    // SAFETY: every structure begins with its size, and `from` is not null.
    let size = unsafe { from.cast::<u64>().read_unaligned() };
    let size = usize::try_from(size).ok()?.min(size_of::<T>());
    if size < size_of::<u64>() {
        return None;
    }
    let mut into = T::unknown();
    // SAFETY: both have at least `size` bytes, they do not overlap, and every bit pattern of these structures of integers is one.
    unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), (&raw mut into).cast::<u8>(), size) };
    Some(into)
}

fn facts_of(f: &slowstart_facts) -> Option<Facts> {
    if f.mss == 0 || f.mss > 1 << 20 {
        return None;
    }
    let mut to = Facts::new(Bytes(f.mss), Bytes(f.iw));
    to.now = Instant(f.now_ns);
    to.min_window = Bytes(if f.min_window == 0 { f.mss } else { f.min_window });
    (to.inflight, to.delivered, to.lost) = (Bytes(f.inflight), Bytes(f.delivered), Bytes(f.lost));
    (to.marked, to.next) = (known(f.marked).map(Bytes), Mark::new(f.next));
    (to.unacked, to.unsent) = (known(f.unacked).map(Bytes), known(f.unsent).map(Bytes));
    (to.srtt, to.min_rtt) = (known(f.srtt_ns).map(Span), known(f.min_rtt_ns).map(Span));
    to.rwnd = Bytes(f.rwnd);
    (to.pacing_rate, to.nic_rate) = (known(f.pacing_rate_bps).map(Rate), known(f.nic_rate_bps).map(Rate));
    to.host_queue = known(f.host_queue_used)
        .zip(known(f.host_queue_limit))
        .map(|(used, limit)| HostQueue { used: Bytes(used), limit: Bytes(limit) });
    (to.supports_pacing, to.pacing_on) = (f.supports_pacing != 0, f.pacing_on != 0);
    to.in_recovery = f.in_recovery != 0;
    Some(to)
}

fn sent_of(s: &slowstart_sent) -> Sent {
    Sent {
        mark: Mark::new(s.mark),
        at: Instant(s.at_ns),
        bytes: Bytes(s.bytes),
        retransmission: s.retransmission != 0,
        sent_total: Bytes(s.sent_total),
        inflight: Bytes(s.inflight),
        delivered: Bytes(s.delivered),
        delivered_at: Instant(s.delivered_at_ns),
        first_sent_at: Instant(s.first_sent_at_ns),
        lost: Bytes(s.lost),
        app_limited: s.app_limited != 0,
        cwnd: Bytes(s.cwnd),
    }
}

impl slowstart_controller {
    fn note(&mut self, change: Change) {
        if change.resumed {
            self.exited = None;
        }
        self.exited = change.exited.or(self.exited);
        self.resend = change.resend;
    }
}

/// A name with parameters, as in `search:threshold=0.3,drain=off`.
fn parsed(text: &str) -> (&str, Vec<(&str, &str)>) {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let pairs = rest.split(',').filter(|p| !p.is_empty()).map(|p| p.split_once('=').unwrap_or((p, "")));
    (name, pairs.collect())
}

fn algorithm(text: &str) -> Result<Algorithm, String> {
    let (name, params) = parsed(text);
    let mut a = registry::named(name)
        .ok_or_else(|| format!("startup: found {name:?}, expected a name of slowstart_startup"))?;
    for (key, value) in params {
        a.algorithm.set(key, value).map_err(|why| format!("startup: {name}:{key}={value}: {why:?}"))?;
    }
    Ok(a.algorithm)
}

fn avoidance(text: &str) -> Result<AnyAvoidance, String> {
    let (name, params) = parsed(text);
    let known = avoidance::REGISTRY.iter().find(|e| e.name == name);
    let mut a = (known
        .ok_or_else(|| format!("avoidance: found {name:?}, expected one such as cubic or reno"))?
        .make)();
    for (key, value) in params {
        a.set(key, value).map_err(|why| format!("avoidance: {name}:{key}={value}: {why:?}"))?;
    }
    Ok(a)
}

/// Writes a message into the caller's buffer, cut to its length and ended by a zero.
///
/// # Safety
/// `into` is null or points to `len` writable bytes.
unsafe fn tell(into: *mut c_char, len: usize, message: &str) {
    if into.is_null() || len == 0 {
        return;
    }
    let n = message.len().min(len - 1);
    // SAFETY: `n + 1` is at most `len`.
    unsafe {
        ptr::copy_nonoverlapping(message.as_ptr().cast::<c_char>(), into, n);
        into.add(n).write(0);
    }
}

/// Returns the controller of a new connection, or null.
///
/// `startup` is a name with parameters, such as `"search"` or `"hystart:low=8"`; `avoidance` likewise, such as `"cubic"`. `iw` is
/// the initial window in bytes; `seed` determines random numbers (of BBR). On failure the reason is written to `error`, a buffer
/// of `error_len` bytes, or null. The only function that allocates.
///
/// # Safety
/// `startup` and `avoidance` are strings that end with a zero, or null (then `"standard"` and `"cubic"`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowstart_create(
    startup: *const c_char,
    avoidance_name: *const c_char,
    iw: u64,
    seed: u64,
    error: *mut c_char,
    error_len: usize,
) -> *mut slowstart_controller {
    let text = |p: *const c_char, default| {
        if p.is_null() {
            return Ok(default);
        }
        // SAFETY: not null, so a string that ends with a zero and outlives this call.
        let text = unsafe { CStr::from_ptr(p) };
        text.to_str().map_err(|_| "a name that is not UTF-8".to_string())
    };
    let made = text(startup, "standard").and_then(|s| {
        let (s, a) = (algorithm(s)?, avoidance(text(avoidance_name, "cubic")?)?);
        Ok(s.controller(&a, Bytes(iw), seed))
    });
    match made {
        Ok(control) => {
            let all = slowstart_controller { control: Checked::new(control), exited: None, resend: None };
            Box::into_raw(Box::new(all))
        }
        Err(why) => {
            // SAFETY: as the caller promises of `error`.
            unsafe { tell(error, error_len, &why) };
            ptr::null_mut()
        }
    }
}

/// Ends a controller. Null is permitted.
///
/// # Safety
/// `c` is of `slowstart_create` and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowstart_free(c: *mut slowstart_controller) {
    if !c.is_null() {
        // SAFETY: `slowstart_create` made it by `Box::into_raw`.
        drop(unsafe { Box::from_raw(c) });
    }
}

/// Makes one call of the controller with these facts.
///
/// # Safety
/// As the functions that use it state.
unsafe fn call(
    c: *mut slowstart_controller,
    f: *const slowstart_facts,
    each: impl FnOnce(&mut Checked<AnyController>, &Facts) -> Option<Change>,
) -> c_int {
    // SAFETY: null, or of `slowstart_create`, and calls for one controller do not overlap.
    let Some(c) = (unsafe { c.as_mut() }) else { return BAD_ARGUMENT };
    // SAFETY: as the caller promises of `f`.
    let Some(f) = (unsafe { read(f) }).and_then(|f| facts_of(&f)) else { return BAD_ARGUMENT };
    let Some(change) = each(&mut c.control, &f) else { return BAD_ARGUMENT };
    c.note(change);
    OK
}

/// The connection is established. To be called first, and once. Returns 0, or -1 for a bad argument, as all functions do.
///
/// # Safety
/// `c` is of `slowstart_create`; `f` and `hs` point to structures whose `size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowstart_on_established(
    c: *mut slowstart_controller,
    f: *const slowstart_facts,
    hs: *const slowstart_handshake,
) -> c_int {
    // SAFETY: as the caller promises.
    let Some(from) = (unsafe { read(hs) }) else { return BAD_ARGUMENT };
    let mut hs = Handshake::new(known(from.rtt_ns).map(Span));
    hs.syn_losses = from.syn_losses.min(255) as u8;
    hs.spurious = from.spurious != 0;
    hs.granted = known(from.granted_bps).map(Rate);
    hs.remembered = known(from.remembered_cwnd).map(|cwnd| PathMemory {
        cwnd: Bytes(cwnd),
        rtt: Span(from.remembered_rtt_ns),
        rate: Rate(from.remembered_rate_bps),
    });
    // SAFETY: as the caller promises.
    unsafe { call(c, f, |c, f| Some(c.on_established(f, &hs))) }
}

/// A packet is being sent. Needed only while `slowstart_needs_sent` says so.
///
/// # Safety
/// As of `slowstart_on_established`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowstart_on_sent(
    c: *mut slowstart_controller,
    f: *const slowstart_facts,
    s: *const slowstart_sent,
) -> c_int {
    // SAFETY: as the caller promises.
    let Some(s) = (unsafe { read(s) }) else { return BAD_ARGUMENT };
    let each = |c: &mut Checked<AnyController>, f: &Facts| {
        c.on_sent(f, &sent_of(&s));
        Some(Change::default())
    };
    // SAFETY: as the caller promises.
    unsafe { call(c, f, each) }
}

/// An ACK has arrived. The facts contain what it delivered.
///
/// # Safety
/// As of `slowstart_on_established`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowstart_on_ack(
    c: *mut slowstart_controller,
    f: *const slowstart_facts,
    a: *const slowstart_ack,
) -> c_int {
    // SAFETY: as the caller promises.
    let Some(a) = (unsafe { read(a) }) else { return BAD_ARGUMENT };
    let mut ack = Ack::new(sent_of(&a.newest), Bytes(a.delivered), Bytes(a.prior_inflight));
    (ack.upto, ack.bytes) = (Mark::new(a.upto), Bytes(a.bytes));
    (ack.newly_lost, ack.rtt) = (Bytes(a.newly_lost), known(a.rtt_ns).map(Span));
    ack.limit = match a.limit {
        0 => Limit::Window,
        1 => Limit::Pacer,
        2 => Limit::Application,
        3 => Limit::Peer,
        _ => return BAD_ARGUMENT,
    };
    // SAFETY: as the caller promises.
    unsafe { call(c, f, |c, f| Some(c.on_ack(f, &ack))) }
}

/// Congestion: `signal` is 0 for packets marked lost, 1 for ECN marks, 2 for a retransmission timeout (in QUIC persistent
/// congestion), 3 for a refusal of the host's own interface queue. `first` is 1 for the first signal of an episode. `lost` is
/// what was newly marked lost, in `lost_ranges` separate ranges. `newest` is the most recently sent packet known to be delivered.
///
/// # Safety
/// As of `slowstart_on_established`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowstart_on_congestion(
    c: *mut slowstart_controller,
    f: *const slowstart_facts,
    signal: u32,
    first: u32,
    lost: u64,
    lost_ranges: u32,
    newest: *const slowstart_sent,
) -> c_int {
    let signal = match signal {
        0 => Signal::Loss,
        1 => Signal::Ecn,
        2 => Signal::Timeout,
        3 => Signal::LocalStall,
        _ => return BAD_ARGUMENT,
    };
    // SAFETY: as the caller promises.
    let Some(newest) = (unsafe { read(newest) }) else { return BAD_ARGUMENT };
    let e = Congestion::new(signal, first != 0, sent_of(&newest)).losing(Bytes(lost), lost_ranges);
    // SAFETY: as the caller promises.
    unsafe { call(c, f, |c, f| Some(c.on_congestion(f, &e))) }
}

/// A loss episode ended, in which `retransmitted` bytes were sent again; `undone` is 1 if all of them proved unnecessary.
///
/// # Safety
/// As of `slowstart_on_established`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowstart_on_recovered(
    c: *mut slowstart_controller,
    f: *const slowstart_facts,
    retransmitted: u64,
    undone: u32,
) -> c_int {
    let r = Recovery::new(Bytes(retransmitted), undone != 0);
    // SAFETY: as the caller promises.
    unsafe { call(c, f, |c, f| Some(c.on_recovered(f, &r))) }
}

/// The time in `wake_ns` of the state has come.
///
/// # Safety
/// As of `slowstart_on_established`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowstart_on_timer(
    c: *mut slowstart_controller,
    f: *const slowstart_facts,
) -> c_int {
    let due = |c: &mut Checked<AnyController>, f: &Facts| {
        c.state().wake.filter(|at| *at <= f.now)?;
        Some(c.on_timer(f))
    };
    // SAFETY: as the caller promises.
    unsafe { call(c, f, due) }
}

/// Sending begins after nothing was in flight for `idle_ns`. `restart_ns` is the retransmission timeout if the host's rules
/// require a restart window (RFC 5681 §4.1), else unknown.
///
/// # Safety
/// As of `slowstart_on_established`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowstart_on_idle(
    c: *mut slowstart_controller,
    f: *const slowstart_facts,
    idle_ns: u64,
    restart_ns: u64,
) -> c_int {
    let restart = known(restart_ns).map(Span);
    // SAFETY: as the caller promises.
    unsafe { call(c, f, |c, f| Some(c.on_idle(f, Span(idle_ns), restart))) }
}

/// Writes the state to `into`, as much as `into->size` says.
///
/// # Safety
/// `c` is of `slowstart_create`; `into` points to as many writable bytes as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowstart_get_state(
    c: *const slowstart_controller,
    into: *mut slowstart_state,
) -> c_int {
    // SAFETY: null, or of `slowstart_create`.
    let Some(c) = (unsafe { c.as_ref() }) else { return BAD_ARGUMENT };
    if into.is_null() {
        return BAD_ARGUMENT;
    }
    // SAFETY: `into` is not null and begins with its size.
    let size = unsafe { into.cast::<u64>().read_unaligned() };
    let s = c.control.state();
    let (pace_kind, pace) = match s.pace {
        Some(Pace::Off) => (1, 0),
        Some(Pace::Gain(gain)) => (2, u64::from(gain.0)),
        Some(Pace::Rate(rate)) => (3, rate.0),
        _ => (0, 0),
    };
    let state = slowstart_state {
        size,
        cwnd: s.cwnd.0,
        ssthresh: unknown(s.ssthresh.map(|t| t.0)),
        wake_ns: unknown(s.wake.map(|t| t.0)),
        pace_kind,
        pace,
        resend: unknown(c.resend.map(|b| b.0)),
        exit_detected_ns: unknown(c.exited.map(|e| e.detected_at.0)),
        exit_detected_cwnd: c.exited.map_or(0, |e| e.detected_cwnd.0),
        exit_cwnd: c.exited.map_or(0, |e| e.exit_cwnd.0),
        exit_why: c.exited.map_or(ptr::null(), |e| why(e.why.name())),
    };
    let Ok(size) = usize::try_from(size) else { return BAD_ARGUMENT };
    if size < size_of::<u64>() {
        return BAD_ARGUMENT;
    }
    let n = size.min(size_of::<slowstart_state>());
    // SAFETY: both have at least `n` bytes and do not overlap.
    unsafe { ptr::copy_nonoverlapping((&raw const state).cast::<u8>(), into.cast::<u8>(), n) };
    OK
}

/// The name of an exit as C has it.
fn why(name: &'static str) -> *const c_char {
    const NAMES: [&CStr; 10] = [
        c"ssthresh",
        c"loss",
        c"ecn",
        c"timeout",
        c"local-stall",
        c"ack-train",
        c"delay",
        c"css-rounds",
        c"rate-flat",
        c"estimate",
    ];
    NAMES.iter().find(|n| n.to_bytes() == name.as_bytes()).map_or(c"other".as_ptr(), |n| n.as_ptr())
}

/// Returns 1 if `slowstart_on_sent` has an effect at present, else 0.
///
/// # Safety
/// `c` is of `slowstart_create`, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowstart_needs_sent(c: *const slowstart_controller) -> c_int {
    // SAFETY: null, or of `slowstart_create`.
    unsafe { c.as_ref() }.map_or(0, |c| c_int::from(c.control.needs_on_sent()))
}

/// Returns 1 if the fields of `slowstart_sent` after `bytes` are read, else 0.
///
/// # Safety
/// `c` is of `slowstart_create`, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowstart_needs_delivery_state(c: *const slowstart_controller) -> c_int {
    // SAFETY: null, or of `slowstart_create`.
    unsafe { c.as_ref() }.map_or(0, |c| c_int::from(c.control.needs_delivery_state()))
}

/// Returns 1 if the avoidance needs the number of marked bytes (`marked` of the facts), else 0. A host that does not count them
/// must not use it.
///
/// # Safety
/// `c` is of `slowstart_create`, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowstart_needs_marks(c: *const slowstart_controller) -> c_int {
    // SAFETY: null, or of `slowstart_create`.
    unsafe { c.as_ref() }.map_or(0, |c| c_int::from(c.control.needs_each_mark()))
}

/// Returns the version of the interface that the library has, to compare with `SLOWSTART_VERSION` of the header.
#[unsafe(no_mangle)]
pub extern "C" fn slowstart_version() -> u32 {
    SLOWSTART_VERSION
}
