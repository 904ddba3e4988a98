//! What was sent and acknowledged, in seconds and in bytes on the wire.

use crate::analysis::Findings;

/// ACKs closer together than this count as one: a host that gets several at once handles them one after the
/// other.
const TOGETHER: f64 = 250e-6;

/// Data sent.
#[derive(Copy, Clone, Debug)]
pub(super) struct Send {
    /// Seconds.
    pub(super) at: f64,
    /// False if it was sent at some time before `at`.
    pub(super) dated: bool,
    /// Bytes on the wire.
    pub(super) bytes: f64,
    /// How many of them did not pass the path's queue, or were of no use.
    pub(super) lost: f64,
    /// True for a retransmission.
    pub(super) again: bool,
}

/// An ACK that acknowledged new data.
#[derive(Copy, Clone, Debug)]
pub(super) struct Acked {
    /// Seconds.
    pub(super) at: f64,
    /// Bytes on the wire that have been delivered so far.
    pub(super) delivered: f64,
    /// Its RTT sample, seconds.
    pub(super) rtt: Option<f64>,
}

/// A transfer as it is fitted.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// Data sent, retransmissions among it, in order of time.
    pub(super) sends: Vec<Send>,
    /// ACKs in order of time.
    pub(super) acks: Vec<Acked>,
    /// Bytes of a full packet on the wire.
    pub(super) packet: f64,
    /// The least RTT sample, seconds.
    pub(super) least: f64,
    /// When the first loss was detected; infinite if none was.
    pub(super) first_loss: f64,
}

impl Flow {
    /// `None` if there is no RTT sample, or fewer than two ACKs.
    pub(super) fn new(f: &Findings) -> Option<Self> {
        let mss = f.mss.0 as f64;
        let packet = mss + f64::from(f.packets.headers);
        let wire = packet / mss;
        let seconds = |at: slowstart::units::Instant| at.0 as f64 / 1e9;
        let send = |again| {
            move |s: &crate::packets::SentData| Send {
                at: seconds(s.at),
                dated: s.dated,
                bytes: f64::from(s.bytes) * wire,
                lost: f64::from(s.lost) * wire,
                again,
            }
        };
        let mut sends: Vec<Send> = f.packets.sends().iter().map(send(false)).collect();
        sends.extend(f.packets.retransmissions().iter().map(send(true)));
        sends.sort_by(|a, b| a.at.total_cmp(&b.at));
        let acks: Vec<Acked> = f
            .packets
            .acks()
            .iter()
            .map(|a| Acked {
                at: seconds(a.at),
                delivered: a.delivered.0 as f64 * wire,
                rtt: a.rtt.map(slowstart::units::Span::as_secs_f64),
            })
            .collect();
        let least = acks.iter().filter_map(|a| a.rtt).reduce(f64::min)?;
        let first_loss = f.first_loss.map_or(f64::INFINITY, seconds);
        (acks.len() >= 2).then_some(Self { sends, acks, packet, least, first_loss })
    }

    /// The flow with one ACK for each group that came together. Its last ACK is the one that waited least for
    /// their slot.
    pub(super) fn grouped(&self) -> Self {
        let mut acks: Vec<Acked> = Vec::new();
        let mut last = f64::NEG_INFINITY;
        for a in &self.acks {
            match acks.last_mut() {
                Some(group) if a.at - last < TOGETHER => {
                    (group.delivered, group.rtt) = (a.delivered, a.rtt.or(group.rtt));
                }
                _ => acks.push(*a),
            }
            last = a.at;
        }
        Self { sends: self.sends.clone(), acks, ..*self }
    }

    /// The flow without a delay of each ACK, by its index and the time at which it came.
    pub(super) fn without(&self, delay: impl Fn(usize, f64) -> f64) -> Self {
        let earlier = |(i, a): (usize, &Acked)| {
            let by = delay(i, a.at);
            Acked { at: a.at - by, rtt: a.rtt.map(|r| r - by), ..*a }
        };
        let mut acks: Vec<Acked> = self.acks.iter().enumerate().map(earlier).collect();
        acks.sort_by(|a, b| a.at.total_cmp(&b.at));
        let least = acks.iter().filter_map(|a| a.rtt).fold(f64::INFINITY, f64::min).max(1e-6);
        Self { sends: self.sends.clone(), acks, least, ..*self }
    }

    /// Bytes delivered by a time.
    pub(super) fn delivered(&self, at: f64) -> f64 {
        let next = self.acks.partition_point(|a| a.at <= at);
        next.checked_sub(1).map_or(0.0, |i| self.acks[i].delivered)
    }

    /// Groups of ACKs that came together: the time of the first one, bytes delivered by the last one, and the
    /// number of ACKs.
    pub(super) fn groups(&self) -> Vec<(f64, f64, usize)> {
        let mut all: Vec<(f64, f64, usize)> = Vec::new();
        let mut last = f64::NEG_INFINITY;
        for a in &self.acks {
            match all.last_mut() {
                Some(group) if a.at - last < TOGETHER => (group.1, group.2) = (a.delivered, group.2 + 1),
                _ => all.push((a.at, a.delivered, 1)),
            }
            last = a.at;
        }
        all
    }
}
