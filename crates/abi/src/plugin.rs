//! The functions of a controller in a library.

use crate::argument::Argument;
use crate::event::{slowstart_congestion, slowstart_handshake};
use crate::facts::slowstart_facts;
use crate::packet::{slowstart_ack, slowstart_sent};
use crate::state::slowstart_state;
use std::ffi::c_void;

/// The plugin reads slowstart_sent beyond bytes.
pub const SLOWSTART_NEEDS_DELIVERY_STATE: u64 = 1;
/// The plugin limits sending during recovery itself. Without it the simulator's proportional rate reduction
/// does.
pub const SLOWSTART_OWNS_RECOVERY: u64 = 2;

/// A congestion control in a library, for `--startup plugin:FILE`.
///
/// The order of calls is that of the functions of this header. Each function gets the controller that create
/// returned, and state: the window and all else as the plugin left it, but resend, which is unknown, and, in
/// timer, wake_ns, which is unknown too. It writes there what has changed. It sets exit_detected_ns,
/// exit_detected_cwnd, exit_cwnd and exit_why when its slow start ends for the first time, and
/// exit_detected_ns to unknown if that end is void.
///
/// Runs of several connections happen at the same time in several threads, so there must be no global state.
/// Results repeat only if the plugin reads no clock and no random numbers but seed.
///
/// Functions that may be null: sent, recovered, timer, idle.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct slowstart_plugin {
    /// The bytes of this structure, sizeof, by which its version is known.
    pub size: u64,
    /// SLOWSTART_VERSION of the header.
    pub version: u64,
    /// SLOWSTART_NEEDS_DELIVERY_STATE and others, or 0.
    pub flags: u64,
    /// Returns the controller of a new connection, with the initial window iw, or null.
    pub create: Option<unsafe extern "C" fn(iw: u64, seed: u64) -> *mut c_void>,
    /// Ends a controller: frees what create allocated for it.
    pub destroy: Option<unsafe extern "C" fn(controller: *mut c_void)>,
    /// The connection is established: first, and once. state has the initial window.
    pub established: Option<
        unsafe extern "C" fn(
            controller: *mut c_void,
            f: *const slowstart_facts,
            hs: *const slowstart_handshake,
            state: *mut slowstart_state,
        ),
    >,
    /// A packet is being sent.
    pub sent: Option<
        unsafe extern "C" fn(
            controller: *mut c_void,
            f: *const slowstart_facts,
            sent: *const slowstart_sent,
            state: *mut slowstart_state,
        ),
    >,
    /// An ACK has arrived.
    pub ack: Option<
        unsafe extern "C" fn(
            controller: *mut c_void,
            f: *const slowstart_facts,
            ack: *const slowstart_ack,
            state: *mut slowstart_state,
        ),
    >,
    /// Called on a loss, a mark, a timeout or a stall of the host's own queue.
    pub congestion: Option<
        unsafe extern "C" fn(
            controller: *mut c_void,
            f: *const slowstart_facts,
            congestion: *const slowstart_congestion,
            state: *mut slowstart_state,
        ),
    >,
    /// A loss episode ended, in which retransmitted bytes were sent again; undone is 1 if all of them proved
    /// unnecessary.
    pub recovered: Option<
        unsafe extern "C" fn(
            controller: *mut c_void,
            f: *const slowstart_facts,
            retransmitted: u64,
            undone: u32,
            state: *mut slowstart_state,
        ),
    >,
    /// The time in wake_ns has come.
    pub timer: Option<
        unsafe extern "C" fn(controller: *mut c_void, f: *const slowstart_facts, state: *mut slowstart_state),
    >,
    /// Sending begins after nothing was in flight for idle_ns. restart_ns is the retransmission timeout if
    /// the host restarts its window (RFC 5681, section 4.1), else unknown.
    pub idle: Option<
        unsafe extern "C" fn(
            controller: *mut c_void,
            f: *const slowstart_facts,
            idle_ns: u64,
            restart_ns: u64,
            state: *mut slowstart_state,
        ),
    >,
}

unsafe extern "C" {
    /// What the library of a plugin defines: returns its structure, which lives as long as the library.
    pub fn slowstart_get_plugin() -> *const slowstart_plugin;
}

impl Argument for slowstart_plugin {
    // What a plugin lacks is said by name.
    const LEAST: usize = size_of::<u64>();
    const ABSENT: Self = Self {
        size: 0,
        version: 0,
        flags: 0,
        create: None,
        destroy: None,
        established: None,
        sent: None,
        ack: None,
        congestion: None,
        recovered: None,
        timer: None,
        idle: None,
    };
}
