//! The events of a connection.

use crate::controller::slowstart_controller;
use crate::{BAD_ARGUMENT, OK};
use slowstart::control::{Change, Checked, Controller};
use slowstart::registry::AnyController;
use slowstart::units::{Bytes, Span};
use slowstart::view::{Congestion, Facts, Recovery};
use slowstart_abi::SLOWSTART_UNKNOWN;
use slowstart_abi::argument::read;
use slowstart_abi::event::{self, slowstart_handshake};
use slowstart_abi::facts::slowstart_facts;
use slowstart_abi::packet::{slowstart_ack, slowstart_sent};
use std::ffi::c_int;

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
    let Some(f) = (unsafe { read(f) }).and_then(|f| f.to_facts()) else { return BAD_ARGUMENT };
    let Some(change) = each(&mut c.control, &f) else { return BAD_ARGUMENT };
    c.note(change);
    OK
}

/// The connection is established. To be called first, and once. Returns 0, or -1 for a bad argument, as all
/// functions do.
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
    let hs = from.to_handshake();
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
        c.on_sent(f, &s.to_sent());
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
    let Some(ack) = (unsafe { read(a) }).and_then(|a| a.to_ack()) else { return BAD_ARGUMENT };
    // SAFETY: as the caller promises.
    unsafe { call(c, f, |c, f| Some(c.on_ack(f, &ack))) }
}

/// Congestion: `signal` is 0 for packets marked lost, 1 for ECN marks, 2 for a retransmission timeout (in
/// QUIC persistent congestion), 3 for a refusal of the host's own interface queue. `first` is 1 for the first
/// signal of an episode. `lost` is what was newly marked lost, in `lost_ranges` separate ranges. `newest` is
/// the most recently sent packet known to be delivered.
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
    let Some(signal) = event::signal(signal) else { return BAD_ARGUMENT };
    // SAFETY: as the caller promises.
    let Some(newest) = (unsafe { read(newest) }) else { return BAD_ARGUMENT };
    let e = Congestion::new(signal, first != 0, newest.to_sent()).losing(Bytes(lost), lost_ranges);
    // SAFETY: as the caller promises.
    unsafe { call(c, f, |c, f| Some(c.on_congestion(f, &e))) }
}

/// A loss episode ended, in which `retransmitted` bytes were sent again; `undone` is 1 if all of them proved
/// unnecessary.
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

/// Sending begins after nothing was in flight for `idle_ns`. `restart_ns` is the retransmission timeout if
/// the host's rules require a restart window (RFC 5681 §4.1), else unknown.
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
    let restart = (restart_ns != SLOWSTART_UNKNOWN).then_some(Span(restart_ns));
    // SAFETY: as the caller promises.
    unsafe { call(c, f, |c, f| Some(c.on_idle(f, Span(idle_ns), restart))) }
}
