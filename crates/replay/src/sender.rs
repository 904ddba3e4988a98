//! The sender as it must have been: its scoreboard, from what it sent and what was acknowledged.
//!
//! RTTs come from matching sequence numbers, under Karn's rule: what was sent twice gives no sample. A loss is known
//! when three duplicate ACKs or three segments held above it say so (RFC 5681, RFC 6675), or when it is sent again;
//! it was none if DSACK (RFC 2883) or timestamps (RFC 3522) say that all that was sent again had arrived.

use crate::analysis::Analysis;
use slowstart::units::{Bytes, Instant, Mark, Span};
use slowstart::view::{Ack, Congestion, Facts, Limit, Sent, Signal};
use std::collections::VecDeque;

/// Silence after which a retransmission is the timer's (the least timeout of Linux).
const TIMER: Span = Span::millis(200);
/// What fills a hole sooner than this share of the least round trip was overtaken, not sent again.
const REORDER: u64 = 4;

/// Data that was sent at one moment. There is one for each packet in flight of each connection, so it is kept small: a
/// cache line more is felt.
#[derive(Clone, Debug)]
struct SentRange {
    from: u64,
    upto: u64,
    at: Instant,
    sent_total: Bytes,
    delivered: Bytes,
    delivered_at: Instant,
    /// When it was found that it was not seen: lost before the point of view, or missed by the capture. Else never.
    hole: Instant,
    bytes: u32,
    inflight: u32,
    lost: u32,
    /// The timestamp it carried when it was last sent, if there are any.
    timestamp: u32,
    timestamps: bool,
    sacked: bool,
    again: bool,
}

impl SentRange {
    fn len(&self) -> u64 {
        self.upto - self.from
    }

    fn is_hole(&self) -> bool {
        self.hole < Instant::NEVER
    }

    /// How things stood when it left.
    fn sent(&self) -> Sent {
        Sent {
            mark: Mark(self.upto),
            at: self.at,
            bytes: Bytes(self.bytes.into()),
            sent_total: self.sent_total,
            retransmission: false,
            inflight: Bytes(self.inflight.into()),
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.at,
            lost: Bytes(self.lost.into()),
            app_limited: false,
            cwnd: Bytes::ZERO,
        }
    }
}

/// What is not believed to exceed 4 GB.
fn small(bytes: Bytes) -> u32 {
    u32::try_from(bytes.0).unwrap_or(u32::MAX)
}

/// A loss episode.
#[derive(Copy, Clone, Debug)]
struct Episode {
    end: u64,
    again: u64,
    spurious: u64,
    open: bool,
    first: bool,
}

/// What was counted.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data packets, super-segments counted by what they hold.
    pub packets: u64,
    /// Packets sent again.
    pub retransmitted: u64,
    /// Of those, for nothing.
    pub spurious: u64,
    /// Packets that were overtaken.
    pub reordered: u64,
    /// Data that was never seen but acknowledged, bytes.
    pub unseen: u64,
    /// ACKs that brought news.
    pub acks: u64,
    /// Of those, for more than one full segment.
    pub acks_of_several: u64,
    /// Packets that the network had marked where they were seen.
    pub marked: u64,
    /// ACKs that told of marks.
    pub echoes: u64,
    /// Packets sent with the peer's window full.
    pub peer_limited: u64,
    /// Packets in the largest super-segment.
    pub super_segment: u64,
}

/// A segment of data.
#[derive(Copy, Clone, Debug)]
pub struct DataInfo {
    /// When it was sent, and when it was seen.
    pub at: Instant,
    /// When it was seen.
    pub seen: Instant,
    /// Its first byte.
    pub from: u64,
    /// The byte after its last.
    pub upto: u64,
    /// Its timestamp.
    pub timestamp: Option<u32>,
    /// The network has marked it.
    pub marked: bool,
}

/// An acknowledgement.
#[derive(Copy, Clone, Debug)]
pub struct AckInfo {
    /// When it arrived.
    pub at: Instant,
    /// Everything before this has arrived.
    pub upto: u64,
    /// Selective blocks.
    pub sack: [(u64, u64); 4],
    /// How many.
    pub sacks: usize,
    /// The window offered.
    pub window: u64,
    /// The timestamp echoed.
    pub echo: Option<u32>,
    /// It tells of marks (RFC 3168 §6.1.3), and both ends have agreed to.
    pub marks: bool,
    /// It carries no data and opens no window: three of its kind tell of a loss.
    pub pure: bool,
}

/// A sender, from outside.
#[derive(Clone, Debug)]
pub struct Sender {
    ranges: VecDeque<SentRange>,
    /// The byte after the last sent, and the first not acknowledged.
    max: u64,
    una: u64,
    facts: Facts,
    sent_total: Bytes,
    delivered_at: Instant,
    duplicates: u32,
    sacked: u64,
    last_ack: Instant,
    acked_since_sent: bool,
    alone: (u32, u32),
    unit: u64,
    last_len: u64,
    /// What had been sent when the sender last answered a mark: it does once a window.
    answered: u64,
    episode: Option<Episode>,
    /// Data is seen where it arrives, not where it is sent.
    receiver: bool,
    /// What was counted.
    pub counters: Counters,
    /// What is made of it.
    pub analysis: Analysis,
}

/// `a` is before `b`, on a clock of 32 bits that wraps.
fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

impl Sender {
    /// Nothing has been sent. `receiver` says that data is seen where it arrives.
    pub fn new(facts: Facts, receiver: bool, analysis: Analysis) -> Self {
        Self {
            ranges: VecDeque::new(),
            max: 0,
            una: 0,
            unit: facts.mss.0,
            facts,
            sent_total: Bytes::ZERO,
            delivered_at: facts.now,
            duplicates: 0,
            sacked: 0,
            last_ack: facts.now,
            acked_since_sent: false,
            alone: (0, 0),
            last_len: 0,
            answered: 0,
            episode: None,
            receiver,
            counters: Counters::default(),
            analysis,
        }
    }

    /// The byte after the last sent.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Payload of a full segment, as far as was seen.
    pub fn mss(&self) -> Bytes {
        self.facts.mss
    }

    fn packets(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.unit.max(1)).max(1)
    }

    fn tick(&mut self, at: Instant) -> Instant {
        self.facts.now = self.facts.now.max(at);
        self.facts.now
    }

    /// Whether what was sent was no full segment. Some paths take less than was agreed: what comes twice in a row, and
    /// is more than half of it, is the unit.
    fn is_short(&mut self, len: u64) -> bool {
        if len == self.last_len && len < self.unit && len * 2 > self.unit {
            self.unit = len;
        }
        self.last_len = len;
        !len.is_multiple_of(self.unit.max(1))
    }

    /// Paced senders send without being asked by an ACK.
    fn judge_pacing(&mut self) {
        if self.counters.acks > 0 {
            let (alone, all) = &mut self.alone;
            *all += 1;
            *alone += u32::from(!self.acked_since_sent);
            // Two segments for an ACK are one answer.
            if *all >= 20 {
                self.facts.pacing_on = *alone * 4 > *all;
            }
        }
        self.acked_since_sent = false;
    }

    /// Data was sent.
    pub fn on_data(&mut self, d: &DataInfo) {
        let now = self.tick(d.at);
        if d.upto <= d.from {
            return;
        }
        self.counters.marked += u64::from(d.marked);
        if self.receiver {
            self.analysis.arrived(d.seen, Bytes(d.upto - d.from), d.timestamp);
        }
        if d.from > self.max {
            let len = d.from - self.max;
            self.push(self.max, d.from, now, None, Some(d.seen));
            self.counters.unseen += len;
        }
        if d.from < self.max {
            self.again(d, now);
        }
        let from = d.from.max(self.max);
        if d.upto > from {
            let len = d.upto - from;
            let n = self.packets(len);
            self.counters.packets += n;
            self.counters.super_segment = self.counters.super_segment.max(n);
            self.judge_pacing();
            let short = self.is_short(len);
            let sent = self.push(from, d.upto, now, d.timestamp, None);
            let full = self.facts.inflight + self.facts.mss > self.facts.rwnd;
            self.counters.peer_limited += u64::from(full) * n;
            self.analysis.sent(&self.facts, &sent, short);
        }
    }

    fn push(
        &mut self,
        from: u64,
        upto: u64,
        at: Instant,
        timestamp: Option<u32>,
        hole: Option<Instant>,
    ) -> Sent {
        let bytes = Bytes(upto - from);
        self.sent_total += bytes;
        self.facts.inflight += bytes;
        self.facts.next = Mark(upto);
        self.max = upto;
        let piece = SentRange {
            from,
            upto,
            at,
            sent_total: self.sent_total,
            delivered: self.facts.delivered,
            delivered_at: self.delivered_at,
            hole: hole.unwrap_or(Instant::NEVER),
            bytes: small(bytes),
            inflight: small(self.facts.inflight),
            lost: small(self.facts.lost),
            timestamp: timestamp.unwrap_or(0),
            timestamps: timestamp.is_some(),
            sacked: false,
            again: false,
        };
        let sent = piece.sent();
        self.ranges.push_back(piece);
        sent
    }

    /// Data that was sent before, or whose place was passed.
    fn again(&mut self, d: &DataInfo, now: Instant) {
        let upto = d.upto.min(self.max);
        let n = self.packets(upto - d.from);
        if upto <= self.una {
            // A byte below the window asks whether the peer is there (keep-alive), and is no data.
            if upto - d.from > 1 {
                self.counters.packets += n;
                self.counters.retransmitted += n;
                self.counters.spurious += n;
            }
            return;
        }
        let i = self.ranges.partition_point(|p| p.upto <= d.from);
        let mut holes = None;
        for p in self.ranges.iter_mut().skip(i).take_while(|p| p.from < upto) {
            (p.timestamp, p.timestamps) = (d.timestamp.unwrap_or(0), d.timestamp.is_some());
            if p.is_hole() {
                holes = Some(p.hole);
                if d.from <= p.from && upto >= p.upto {
                    p.hole = Instant::NEVER;
                }
            }
            p.again = true;
        }
        self.counters.packets += n;
        self.sent_total += Bytes(upto - d.from);
        if let Some(found) = holes {
            self.counters.unseen = self.counters.unseen.saturating_sub(upto - d.from);
            let soon = self.facts.min_rtt.unwrap_or(Span::millis(10)) / REORDER;
            if d.seen.since(found) < soon {
                self.counters.reordered += n;
                return;
            }
        } else if self.receiver {
            // It had arrived: seen twice, it was sent again for nothing.
            self.counters.spurious += n;
        }
        self.counters.retransmitted += n;
        let quiet = now.since(self.last_ack) >= TIMER && self.duplicates == 0 && self.sacked == 0;
        self.open(if quiet { Signal::Timeout } else { Signal::Loss });
        if let Some(e) = &mut self.episode {
            e.again += n;
        }
        let sent = Sent {
            mark: Mark(upto),
            at: now,
            bytes: Bytes(upto - d.from),
            sent_total: self.sent_total,
            retransmission: true,
            inflight: self.facts.inflight,
            ..Sent::default()
        };
        self.analysis.sent(&self.facts, &sent, false);
    }

    /// A loss is known.
    fn open(&mut self, signal: Signal) {
        if self.episode.is_some_and(|e| e.open) {
            return;
        }
        let first = self.analysis.first_loss().is_none();
        self.episode = Some(Episode { end: self.max, again: 0, spurious: 0, open: true, first });
        self.facts.in_recovery = true;
        let lost = self.facts.mss;
        self.facts.lost += lost;
        let c = Congestion { signal, first: true, lost, lost_ranges: 1, newest: Sent::default() };
        self.analysis.loss(&self.facts, &c);
    }

    /// So many packets had been sent again for nothing.
    fn spurious(&mut self, n: u64) {
        self.counters.spurious = (self.counters.spurious + n).min(self.counters.retransmitted);
        if let Some(e) = &mut self.episode {
            e.spurious += n;
            if e.again > 0 && e.spurious >= e.again && std::mem::take(&mut e.first) {
                self.analysis.undone(&self.facts);
            }
        }
    }

    /// An acknowledgement arrived.
    pub fn on_ack(&mut self, r: &AckInfo) {
        let now = self.tick(r.at);
        // A FIN takes a number and is no data; what lies beyond was never seen.
        let upto = r.upto.min(self.max);
        if upto < self.una {
            return;
        }
        let prior = self.facts.inflight;
        let duplicate =
            r.pure && upto == self.una && !self.ranges.is_empty() && r.window == self.facts.rwnd.0;
        self.facts.rwnd = Bytes(r.window);
        let mut newest: Option<Sent> = None;
        let mut arrived = 0;
        let mut spurious = 0;
        // What a selective block had told of before is no news, and no round trip.
        let mut pass = |p: &SentRange, news: u64| {
            if news > 0 && !p.again && !p.is_hole() && newest.is_none_or(|n| n.at < p.at) {
                newest = Some(p.sent());
            }
            arrived += news;
        };
        while let Some(p) = self.ranges.front_mut().filter(|p| p.from < upto) {
            let end = upto.min(p.upto);
            let news = if p.sacked { 0 } else { end - p.from };
            if p.sacked {
                self.sacked -= end - p.from;
            }
            if p.again
                && !p.sacked
                && end == p.upto
                && p.timestamps
                && r.echo.is_some_and(|echo| before(echo, p.timestamp))
            {
                spurious += p.len().div_ceil(self.unit.max(1));
            }
            pass(p, news);
            p.from = end;
            if p.from < p.upto {
                break;
            }
            self.ranges.pop_front();
        }
        let advanced = upto - self.una;
        self.una = upto;
        for (i, &(from, to)) in r.sack[..r.sacks.min(4)].iter().enumerate() {
            if to <= from {
                continue;
            }
            // A first block of what is acknowledged, or within the second, reports a duplicate.
            let within = i == 0 && r.sacks > 1 && r.sack[1].0 <= from && to <= r.sack[1].1;
            if to <= upto || within {
                if i == 0 {
                    spurious += (to - from).div_ceil(self.unit.max(1));
                }
                continue;
            }
            let first = self.ranges.partition_point(|p| p.upto <= from);
            for p in self.ranges.iter_mut().skip(first).take_while(|p| p.from < to) {
                if !p.sacked && from <= p.from && p.upto <= to {
                    p.sacked = true;
                    self.sacked += p.len();
                    pass(p, p.len());
                }
            }
        }
        self.facts.inflight = Bytes(self.max - self.una - self.sacked.min(self.max - self.una));
        if spurious > 0 {
            self.spurious(spurious);
        }
        if advanced > 0 {
            self.duplicates = 0;
        } else if duplicate && spurious == 0 {
            self.duplicates += 1;
        }
        if self.episode.is_some_and(|e| e.open && upto >= e.end) {
            if let Some(e) = &mut self.episode {
                e.open = false;
            }
            self.facts.in_recovery = false;
        }
        let held = self.sacked >= 3 * self.facts.mss.0 && advanced == 0;
        if (self.duplicates >= 3 || held) && !self.ranges.is_empty() {
            self.open(Signal::Loss);
        }
        if r.marks {
            self.counters.echoes += 1;
            if self.una > self.answered || self.counters.echoes == 1 {
                self.answered = self.max;
                let none = Congestion {
                    signal: Signal::Ecn,
                    first: true,
                    lost: Bytes::ZERO,
                    lost_ranges: 0,
                    newest: Sent::default(),
                };
                self.analysis.loss(&self.facts, &none);
            }
        }
        if advanced > 0 || arrived > 0 {
            self.news(now, prior, advanced, arrived, newest);
        }
        self.last_ack = now;
    }

    fn news(&mut self, now: Instant, prior: Bytes, advanced: u64, arrived: u64, newest: Option<Sent>) {
        self.counters.acks += 1;
        self.counters.acks_of_several += u64::from(advanced > self.unit * 3 / 2);
        self.acked_since_sent = true;
        let rtt = newest.map(|n| now.since(n.at)).filter(|r| *r > Span::ZERO);
        if let Some(rtt) = rtt {
            let f = &mut self.facts;
            f.min_rtt = Some(f.min_rtt.map_or(rtt, |m| m.min(rtt)));
            f.srtt = Some(f.srtt.map_or(rtt, |s| s - s / 8 + rtt / 8));
        }
        self.facts.delivered += Bytes(arrived);
        self.delivered_at = now;
        let peer = prior + self.facts.mss > self.facts.rwnd;
        let ack = Ack {
            upto: Mark(self.una),
            bytes: if advanced > 0 { Bytes(arrived) } else { Bytes::ZERO },
            delivered: Bytes(arrived),
            newly_lost: Bytes::ZERO,
            prior_inflight: prior,
            rtt,
            newest: newest.unwrap_or_default(),
            limit: if peer { Limit::Peer } else { Limit::Window },
        };
        self.analysis.ack(&self.facts, &ack);
    }
}
