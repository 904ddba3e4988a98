//! The handshake, and signals of congestion.

use crate::argument::Argument;
use crate::packet::slowstart_sent;
use crate::{SLOWSTART_UNKNOWN, known, unknown};
use slowstart::units::{Bytes, Rate, Span};
use slowstart::view::{Congestion, Handshake, PathMemory, Signal};

/// How the connection was established.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct slowstart_handshake {
    /// The bytes of this structure, sizeof, by which its version is known.
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

impl Argument for slowstart_handshake {
    const ABSENT: Self = Self {
        size: 0,
        rtt_ns: SLOWSTART_UNKNOWN,
        syn_losses: 0,
        spurious: 0,
        granted_bps: SLOWSTART_UNKNOWN,
        remembered_cwnd: SLOWSTART_UNKNOWN,
        remembered_rtt_ns: SLOWSTART_UNKNOWN,
        remembered_rate_bps: SLOWSTART_UNKNOWN,
    };
}

impl slowstart_handshake {
    /// Returns the handshake as the controllers take it.
    pub fn to_handshake(&self) -> Handshake {
        let mut hs = Handshake::new(known(self.rtt_ns).map(Span));
        hs.syn_losses = self.syn_losses.min(255) as u8;
        hs.spurious = self.spurious != 0;
        hs.granted = known(self.granted_bps).map(Rate);
        hs.remembered = known(self.remembered_cwnd).map(|cwnd| PathMemory {
            cwnd: Bytes(cwnd),
            rtt: Span(self.remembered_rtt_ns),
            rate: Rate(self.remembered_rate_bps),
        });
        hs
    }

    /// Returns the structure for C.
    pub fn of(hs: &Handshake) -> Self {
        Self {
            size: size_of::<Self>() as u64,
            rtt_ns: unknown(hs.rtt.map(|t| t.0)),
            syn_losses: u64::from(hs.syn_losses),
            spurious: u64::from(hs.spurious),
            granted_bps: unknown(hs.granted.map(|r| r.0)),
            remembered_cwnd: unknown(hs.remembered.map(|m| m.cwnd.0)),
            remembered_rtt_ns: unknown(hs.remembered.map(|m| m.rtt.0)),
            remembered_rate_bps: unknown(hs.remembered.map(|m| m.rate.0)),
        }
    }
}

/// Packets were marked lost.
pub const SLOWSTART_LOSS: u32 = 0;
/// The network marked packets.
pub const SLOWSTART_ECN: u32 = 1;
/// A retransmission timeout; in QUIC persistent congestion.
pub const SLOWSTART_TIMEOUT: u32 = 2;
/// The host's interface queue refused a packet.
pub const SLOWSTART_LOCAL_STALL: u32 = 3;

/// Returns the signal of this number.
pub const fn signal(number: u32) -> Option<Signal> {
    Some(match number {
        SLOWSTART_LOSS => Signal::Loss,
        SLOWSTART_ECN => Signal::Ecn,
        SLOWSTART_TIMEOUT => Signal::Timeout,
        SLOWSTART_LOCAL_STALL => Signal::LocalStall,
        _ => return None,
    })
}

/// Congestion, as a plugin is told of it.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct slowstart_congestion {
    /// The bytes of this structure, sizeof, by which its version is known.
    pub size: u64,
    /// Which signal, such as SLOWSTART_LOSS.
    pub signal: u32,
    /// 1 for the first signal of an episode.
    pub first: u32,
    /// Bytes newly marked lost.
    pub lost: u64,
    /// In how many separate ranges.
    pub lost_ranges: u32,
    /// Not used; set it to 0.
    pub reserved: u32,
    /// The most recently sent packet known to be delivered.
    pub newest: slowstart_sent,
}

impl slowstart_congestion {
    /// Returns the structure for C.
    pub fn of(c: &Congestion) -> Self {
        Self {
            size: size_of::<Self>() as u64,
            signal: match c.signal {
                Signal::Ecn => SLOWSTART_ECN,
                Signal::Timeout => SLOWSTART_TIMEOUT,
                Signal::LocalStall => SLOWSTART_LOCAL_STALL,
                _ => SLOWSTART_LOSS,
            },
            first: u32::from(c.first),
            lost: c.lost.0,
            lost_ranges: c.lost_ranges,
            reserved: 0,
            newest: slowstart_sent::of(&c.newest),
        }
    }
}
