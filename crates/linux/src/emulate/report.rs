//! Packet counts and times of one emulation run.

use super::Lateness;
use slowstart::units::{Instant, Span};
use slowstart_sim::path::{Dropped, PacketInfo};

/// The message of a run whose results do not represent the path; see [`Report::valid`].
pub use slowstart_study::measured::INVALID;

/// One packet on the path. Times count from the start of the path.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PacketRecord {
    /// When it entered the path.
    pub at: Instant,
    /// Its size and kind.
    pub packet: PacketInfo,
    /// True if it carries a handshake of QUIC or TLS.
    pub handshake: bool,
    /// When the path delivers it, or where it was dropped; [`Instant::NEVER`] if it was in a queue when the
    /// path stopped.
    pub outcome: Result<Instant, Dropped>,
}

/// Packet statistics of one direction.
#[derive(Clone, Debug, Default)]
pub struct DirectionStats {
    /// Packets that entered the path.
    pub entered: u64,
    /// Packets that the path dropped.
    pub dropped: u64,
    /// ACKs that a newer one replaced, where the path filters them.
    pub filtered: u64,
    /// Packets that a queue marked with ECN's "congestion experienced".
    pub marked: u64,
    /// Packets that the path still held when it was stopped.
    pub in_transit: u64,
    /// Packets that the receiving device did not accept, because its queue was full or it was down.
    pub refused: u64,
    /// Bytes of the IP packets released.
    pub bytes: u64,
    /// When the first and the last packet were released, from the start of the path.
    pub span: Option<(Instant, Instant)>,
    /// How late packets were released.
    pub lateness: Lateness,
    /// Every packet that entered, if recording was requested.
    pub records: Vec<PacketRecord>,
}

/// The statistics of one emulation run.
#[derive(Clone, Debug)]
pub struct Report {
    /// When the time of the path began, with its first packet, on the kernel's monotonic clock.
    pub start: Instant,
    /// How long it ran from then on.
    pub ran: Span,
    /// How long packets may have waited for a thread that was stopped or did not get a processor.
    pub stood_still: Span,
    /// From server to client.
    pub forward: DirectionStats,
    /// From client to server.
    pub back: DirectionStats,
}

impl Report {
    /// Returns true if in either direction at most 1 % of the packets were released more than 1 ms late, and the path
    /// stood still for at most 1 % of the run.
    pub fn valid(&self) -> bool {
        let moved = self.stood_still.0.saturating_mul(100) <= self.ran.0;
        moved && self.forward.lateness.valid() && self.back.lateness.valid()
    }
}
