//! Reconstructs a sender's scoreboard from the packets it sent and the ACKs it received.
//!
//! RTT samples match sequence numbers to ACKs under Karn's rule: retransmitted data gives no sample. A loss
//! is detected by three duplicate ACKs, by three segments selectively acknowledged above it (RFC 5681, RFC
//! 6675), or by its retransmission. It was spurious if DSACK (RFC 2883) or timestamps (RFC 3522) show that
//! everything retransmitted had arrived.

use crate::analysis::Analysis;
use slowstart::units::{Bytes, Instant, SendOrder, Span};
use slowstart::view::{Ack, Congestion, Facts, Limit, Sent, Signal};
use std::collections::VecDeque;

/// Silence after which a retransmission is attributed to the RTO (the minimum RTO of Linux).
const TIMER: Span = Span::millis(200);
/// A hole filled within the minimum RTT divided by this was reordering, not a retransmission.
const REORDER: u64 = 4;
/// At the receiver within this many quarters of it: the sender learns of the hole from an ACK, and a retransmission
/// arrives a round trip after that.
const REORDER_AT_RECEIVER: u64 = 3;

/// Without an RTT, how soon after a packet nothing else is taken for its second capture: retransmission timers
/// are longer (RFC 8985 §7.2 has 10 ms for its shortest).
const SOON: Span = Span::millis(10);
/// How soon no timer of a sender expires, whatever the RTT.
const QUICK: Span = Span::millis(1);

/// Data sent at one moment. There is one for each packet in flight of each connection, so the type is kept
/// small.
#[derive(Clone, Debug)]
struct SentRange {
    from: u64,
    upto: u64,
    /// When it was sent last.
    at: Instant,
    sent_total: Bytes,
    delivered: Bytes,
    delivered_at: Instant,
    /// When the range was found to be missing: lost before the capture point, or not captured. `NEVER` if it
    /// was seen.
    hole: Instant,
    bytes: u32,
    inflight: u32,
    lost: u32,
    /// The timestamp value of its newest transmission, if `timestamps`; of a hole that of the packet beyond it.
    timestamp: u32,
    timestamps: bool,
    /// The identification of its newest transmission; 0 if it has none.
    id: u16,
    sacked: bool,
    retransmitted: bool,
    undated: bool,
}

impl SentRange {
    fn len(&self) -> u64 {
        self.upto - self.from
    }

    fn is_hole(&self) -> bool {
        self.hole < Instant::NEVER
    }

    /// The packet as it was sent.
    fn sent(&self) -> Sent {
        Sent {
            mark: SendOrder::new(self.upto),
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

/// Converts to 32 bits, saturating at 4 GB.
fn small(bytes: Bytes) -> u32 {
    u32::try_from(bytes.0).unwrap_or(u32::MAX)
}

/// A loss episode.
#[derive(Copy, Clone, Debug)]
struct Episode {
    end: u64,
    retransmitted: u64,
    spurious: u64,
    open: bool,
    first: bool,
}

/// Packet statistics of one direction.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data packets; super-segments count as the packets they contain.
    pub packets: u64,
    /// Packets that the sender sent again.
    pub retransmitted: u64,
    /// Retransmitted packets that had arrived before.
    pub spurious: u64,
    /// Packets that arrived out of order.
    pub reordered: u64,
    /// Second captures of packets.
    pub copies: u64,
    /// Bytes that were acknowledged but never captured.
    pub unseen: u64,
    /// Packets that filled a hole: sent again, or late.
    pub filled: u64,
    /// ACKs that acknowledged new data.
    pub acks: u64,
    /// ACKs that acknowledged more than one full segment.
    pub acks_of_several: u64,
    /// Packets with a CE mark at the capture point.
    pub marked: u64,
    /// ACKs that tell of a mark.
    pub echoes: u64,
    /// Packets sent with the receive window full.
    pub peer_limited: u64,
    /// Packets in the largest super-segment.
    pub super_segment: u64,
    /// Packets sent while the receive window was zero, to learn when it opens (RFC 9293 §3.8.6.1).
    pub window_probes: u64,
    /// Keep-alives (RFC 9293 §3.8.4).
    pub keep_alives: u64,
}

/// A data segment as it was captured.
#[derive(Copy, Clone, Debug)]
pub struct DataInfo {
    /// When the sender sent it.
    pub at: Instant,
    /// When it was captured.
    pub captured: Instant,
    /// True if it is not known when it was sent: such data gives no RTT sample.
    pub undated: bool,
    /// IPv4 identification; 0 if there is none.
    pub id: u16,
    /// Offset of its first byte in the stream.
    pub from: u64,
    /// Offset of the byte after its last.
    pub upto: u64,
    /// The value of its timestamp; `None` without the option.
    pub timestamp: Option<u32>,
    /// True if it has a CE mark.
    pub marked: bool,
}

/// An acknowledgement as it was captured.
#[derive(Copy, Clone, Debug)]
pub struct AckInfo {
    /// When it reached the sender.
    pub at: Instant,
    /// Stream offset up to which everything has arrived.
    pub upto: u64,
    /// The SACK blocks, of which the first `blocks` count.
    pub sack: [(u64, u64); 4],
    /// Number of SACK blocks.
    pub sacks: usize,
    /// The receive window, bytes; `None` if the file does not state it.
    pub window: Option<u64>,
    /// The timestamp that it echoes; `None` without the option.
    pub echo: Option<u32>,
    /// True if it tells of a mark: it has ECE (RFC 3168 §6.1.3), or its count of marks has risen (RFC 9768).
    pub marks: bool,
    /// True if it has no payload, neither SYN nor FIN, and no timestamp before that of an earlier one: only
    /// such an ACK can be a duplicate ACK.
    pub pure: bool,
}

/// A sender, reconstructed from a capture.
#[derive(Clone, Debug)]
pub struct Sender {
    ranges: VecDeque<SentRange>,
    /// `max`: the stream offset after the last byte sent; `una`: the first byte not acknowledged.
    max: u64,
    una: u64,
    facts: Facts,
    sent_total: Bytes,
    delivered_at: Instant,
    duplicates: u32,
    sacked: u64,
    last_ack: Instant,
    acked_since_sent: bool,
    without_ack: (u32, u32),
    unit: u64,
    last_len: u64,
    /// What had been sent at the last reduction for ECN, which happens once per window.
    answered: u64,
    episode: Option<Episode>,
    /// The stream offset after the byte of the newest window probe.
    probed: u64,
    /// The newest timestamp value of its data.
    newest: Option<u32>,
    /// The greatest receive window that was stated, in bytes; `None` if none was.
    pub widest: Option<u64>,
    /// True if the capture is at the receiver.
    receiver: bool,
    /// Counts of packets of the transfer so far.
    pub counters: Counters,
    /// The analysis that gets the sender's events.
    pub analysis: Analysis,
}

/// True if number `a` is before `b` (32 bits, wrapping).
pub(crate) fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

impl Sender {
    /// A sender that has sent nothing. `receiver` is true if the capture is at the receiver.
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
            without_ack: (0, 0),
            last_len: 0,
            answered: 0,
            episode: None,
            probed: 0,
            newest: None,
            widest: None,
            receiver,
            counters: Counters::default(),
            analysis,
        }
    }

    /// The stream offset after the last byte sent.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Payload of a full segment.
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

    /// True if this is not a full segment. A size that repeats, smaller than the agreed one but more than
    /// half of it, is the path's actual segment size.
    fn is_short(&mut self, len: u64) -> bool {
        if len == self.last_len && len < self.unit && len * 2 > self.unit {
            self.unit = len;
        }
        self.last_len = len;
        !len.is_multiple_of(self.unit.max(1))
    }

    /// Estimates whether the sender paces: a paced sender sends without an ACK just before.
    fn estimate_pacing(&mut self) {
        if self.counters.acks > 0 {
            let (without_ack, all) = &mut self.without_ack;
            *all += 1;
            *without_ack += u32::from(!self.acked_since_sent);
            // A window that grows sends two segments for one ACK: a quarter is the margin.
            if *all >= 20 {
                self.facts.pacing_on = *without_ack * 4 > *all;
            }
        }
        self.acked_since_sent = false;
    }

    /// Takes in a data segment, in order of time.
    pub fn on_data(&mut self, d: &DataInfo) {
        let now = self.tick(d.at);
        if d.upto <= d.from {
            return;
        }
        let copy = d.from < self.max && self.is_copy(d);
        if copy {
            self.counters.copies += 1;
            if d.upto <= self.max {
                return;
            }
        }
        if let Some(value) = d.timestamp.filter(|v| self.newest.is_none_or(|newest| before(newest, *v))) {
            self.newest = Some(value);
        }
        self.counters.marked += u64::from(d.marked);
        if self.facts.rwnd == Bytes::ZERO && d.upto > self.una {
            // A persist timer sends, again and again, what does not fit: neither new data nor a
            // retransmission.
            self.counters.window_probes += 1;
            self.probed = self.probed.max(d.upto.min(d.from + 1));
            return;
        }
        if self.receiver {
            self.analysis.arrived(d.captured, Bytes(d.upto - d.from), d.timestamp);
        }
        if d.from > self.max {
            let len = d.from - self.max;
            self.push(self.max, d.from, now, d.timestamp, Some(d.captured));
            self.counters.unseen += len;
            if let Some(log) = self.analysis.packets() {
                log.lost(d.from - len, d.from);
            }
        }
        if d.from < self.max && !copy {
            self.on_retransmission(d, now);
        }
        let from = d.from.max(self.max);
        if d.upto > from {
            let len = d.upto - from;
            let n = self.packets(len);
            self.counters.packets += n;
            self.counters.super_segment = self.counters.super_segment.max(n);
            self.estimate_pacing();
            let short = self.is_short(len);
            let sent = self.push(from, d.upto, now, d.timestamp, None);
            if let Some(piece) = self.ranges.back_mut() {
                (piece.undated, piece.id) = (d.undated, d.id);
            }
            if let Some(log) = self.analysis.packets().filter(|_| d.undated) {
                log.undated();
            }
            let full = self.facts.inflight + self.facts.mss > self.facts.rwnd;
            self.counters.peer_limited += u64::from(full) * n;
            self.analysis.sent(&self.facts, &sent, short);
        }
    }

    /// True if the part of this data that was seen before is a second capture, whole, in parts or as one
    /// super-segment, and not a retransmission. The same packet passes two points of capture within a round
    /// trip; a retransmission comes after one, after ACKs that ask for it, or after a timer, and with a newer
    /// timestamp if that has ticked.
    fn is_copy(&self, d: &DataInfo) -> bool {
        let made_before = d.timestamp.zip(self.newest).is_some_and(|(value, newest)| before(value, newest));
        if d.upto <= self.una {
            return made_before && d.upto - d.from > 1;
        }
        let (from, upto) = (d.from.max(self.una), d.upto.min(self.max));
        let first = self.ranges.partition_point(|p| p.upto <= from);
        let (mut same, mut same_id, mut identified, mut at) = (true, true, true, Instant::ZERO);
        for p in self.ranges.iter().skip(first).take_while(|p| p.from < upto) {
            if p.is_hole() {
                return false;
            }
            same &= !p.timestamps || d.timestamp == Some(p.timestamp);
            at = at.max(p.at);
            // The parts of a super-segment are numbered from its identification on.
            let parts = |n: u64, of: u64| (n.saturating_sub(of) / self.unit.max(1)) as u16;
            let id = p.id.wrapping_add(parts(d.from, p.from)).wrapping_sub(parts(p.from, d.from));
            let unknown = d.id == 0 || p.id == 0;
            same_id &= unknown || d.id == id || d.id == p.id;
            identified &= !unknown;
        }
        let since = d.at.since(at);
        let rtt = self.facts.min_rtt.or(self.facts.srtt);
        if identified {
            // A retransmission is another packet, whatever its timestamp. It comes to the receiver a round trip later.
            let soon = self.receiver && d.timestamp.is_some() && rtt.is_some_and(|rtt| since < rtt / 2);
            return same && (same_id || soon);
        }
        if made_before || !(same && same_id) {
            return made_before;
        }
        let asked = self.duplicates > 0 || self.sacked > 0;
        if asked {
            rtt.is_some_and(|rtt| since < rtt / 2)
        } else {
            since < rtt.map_or(SOON, |r| r.max(QUICK))
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
        self.facts.next = SendOrder::new(upto);
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
            id: 0,
            sacked: false,
            retransmitted: false,
            undated: false,
        };
        let sent = piece.sent();
        if let Some(log) = self.analysis.packets() {
            log.sent(&sent, upto);
        }
        self.ranges.push_back(piece);
        sent
    }

    /// Splits the hole around this offset, so that a packet fills its part of it and no more.
    fn split_hole(&mut self, at: u64) {
        let i = self.ranges.partition_point(|p| p.upto <= at);
        let Some(p) = self.ranges.get_mut(i).filter(|p| p.is_hole() && p.from < at) else { return };
        let mut rest = p.clone();
        (p.upto, rest.from) = (at, at);
        (p.bytes, rest.bytes) = (small(Bytes(p.len())), small(Bytes(rest.len())));
        self.ranges.insert(i + 1, rest);
    }

    /// Data was sent that overlaps what was sent before, or fills a hole.
    fn on_retransmission(&mut self, d: &DataInfo, now: Instant) {
        let upto = d.upto.min(self.max);
        let n = self.packets(upto - d.from);
        if upto <= self.una {
            // One byte below the window is a keep-alive (RFC 9293 §3.8.4) and no data.
            if upto - d.from <= 1 {
                self.counters.keep_alives += 1;
            } else {
                self.counters.packets += n;
                self.counters.retransmitted += n;
                self.counters.spurious += n;
            }
            return;
        }
        self.split_hole(d.from);
        self.split_hole(upto);
        let i = self.ranges.partition_point(|p| p.upto <= d.from);
        let (mut holes, mut overtaken) = (None, false);
        for p in self.ranges.iter_mut().skip(i).take_while(|p| p.from < upto) {
            // Sent no later than the packet beyond the hole.
            let older = |t| p.timestamps && !before(p.timestamp, t);
            overtaken = self.receiver && p.is_hole() && d.timestamp.is_some_and(older);
            (p.timestamp, p.timestamps) = (d.timestamp.unwrap_or(0), d.timestamp.is_some());
            (p.at, p.id) = (now, d.id);
            if p.is_hole() {
                holes = Some(std::mem::replace(&mut p.hole, Instant::NEVER));
            }
            p.retransmitted = true;
        }
        self.counters.packets += n;
        self.sent_total += Bytes(upto - d.from);
        if let Some(found) = holes {
            self.counters.unseen = self.counters.unseen.saturating_sub(upto - d.from);
            self.counters.filled += n;
            let quarters = if self.receiver { REORDER_AT_RECEIVER } else { 1 };
            let soon = self.facts.min_rtt.unwrap_or(Span::millis(10)) * quarters / REORDER;
            if overtaken || d.captured.since(found) < soon {
                self.counters.reordered += n;
                if let Some(log) = self.analysis.packets() {
                    log.arrived(d.from, upto);
                }
                return;
            }
        } else if self.receiver {
            // It had arrived before: the retransmission was spurious.
            self.counters.spurious += n;
        }
        if let Some(log) = self.analysis.packets().filter(|_| holes.is_some() || !self.receiver) {
            log.lost(d.from, upto);
        }
        self.counters.retransmitted += n;
        let quiet = now.since(self.last_ack) >= TIMER && self.duplicates == 0 && self.sacked == 0;
        self.detect_loss(if quiet { Signal::Timeout } else { Signal::Loss });
        if self.receiver && d.timestamp.is_none() && holes.is_some() {
            // The sender detected the loss half an RTT before: what it had sent by then has arrived, but for
            // the losses.
            self.analysis.window_at_loss(Bytes(self.max - d.from));
        }
        if let Some(e) = &mut self.episode {
            e.retransmitted += n;
        }
        let sent = Sent {
            mark: SendOrder::new(upto),
            at: now,
            bytes: Bytes(upto - d.from),
            sent_total: self.sent_total,
            retransmission: true,
            inflight: self.facts.inflight,
            ..Sent::default()
        };
        if let Some(log) = self.analysis.packets() {
            log.sent(&sent, upto);
        }
        self.analysis.sent(&self.facts, &sent, false);
    }

    /// A loss is detected.
    fn detect_loss(&mut self, signal: Signal) {
        if self.episode.is_some_and(|e| e.open) {
            return;
        }
        let first = self.analysis.first_loss().is_none();
        self.episode = Some(Episode { end: self.max, retransmitted: 0, spurious: 0, open: true, first });
        self.facts.in_recovery = true;
        let lost = self.facts.mss;
        self.facts.lost += lost;
        let c = Congestion::new(signal, true, Sent::default()).losing(lost, 1);
        self.analysis.loss(&self.facts, &c);
    }

    /// What seemed lost is acknowledged, and the sender has sent nothing again: it was late. What was not captured may
    /// have been sent again.
    fn filled(&mut self) {
        let Some(e) = self.episode.as_mut().filter(|e| e.open && e.retransmitted == 0) else { return };
        if self.counters.unseen > 0 {
            return;
        }
        e.open = false;
        self.facts.in_recovery = false;
        if std::mem::take(&mut e.first) {
            self.analysis.undone(&self.facts);
        }
    }

    /// `n` packets were retransmitted needlessly.
    fn spurious(&mut self, n: u64) {
        self.counters.spurious = (self.counters.spurious + n).min(self.counters.retransmitted);
        if let Some(e) = &mut self.episode {
            e.spurious += n;
            if e.retransmitted > 0 && e.spurious >= e.retransmitted && std::mem::take(&mut e.first) {
                self.analysis.undone(&self.facts);
            }
        }
    }

    /// Takes in an acknowledgement, in order of time.
    pub fn on_ack(&mut self, r: &AckInfo) {
        let now = self.tick(r.at);
        // A FIN takes a sequence number without data; offsets beyond `max` were never captured.
        if r.upto > self.max && r.upto <= self.probed && self.ranges.is_empty() {
            // The receiver has taken the byte of a window probe.
            (self.max, self.una) = (r.upto, r.upto);
        }
        let upto = r.upto.min(self.max);
        if upto < self.una {
            return;
        }
        let prior = self.facts.inflight;
        let window = r.window.map_or(Bytes(u64::MAX), Bytes);
        let duplicate = r.pure
            && upto == self.una
            && !self.ranges.is_empty()
            && window == self.facts.rwnd
            && window > Bytes::ZERO;
        self.facts.rwnd = window;
        self.widest = self.widest.max(r.window);
        let mut newest: Option<Sent> = None;
        let mut arrived = 0;
        let mut spurious = 0;
        // Data that a SACK block had already acknowledged is not new and gives no RTT sample.
        let mut deliver = |p: &SentRange, new: u64| {
            if new > 0 && !p.retransmitted && !p.undated && !p.is_hole() && newest.is_none_or(|n| n.at < p.at)
            {
                newest = Some(p.sent());
            }
            arrived += new;
        };
        while let Some(p) = self.ranges.front_mut().filter(|p| p.from < upto) {
            let end = upto.min(p.upto);
            let new = if p.sacked { 0 } else { end - p.from };
            if p.sacked {
                self.sacked -= end - p.from;
            }
            if p.retransmitted
                && !p.sacked
                && end == p.upto
                && p.timestamps
                && r.echo.is_some_and(|echo| before(echo, p.timestamp))
            {
                spurious += p.len().div_ceil(self.unit.max(1));
                if let Some(log) = self.analysis.packets() {
                    log.arrived(p.from, p.upto);
                }
            }
            deliver(p, new);
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
            // A first block below the cumulative ACK, or within the second block, is a DSACK (RFC 2883).
            let within = i == 0 && r.sacks > 1 && r.sack[1].0 <= from && to <= r.sack[1].1;
            if to <= upto || within {
                if i == 0 {
                    spurious += (to - from).div_ceil(self.unit.max(1));
                    if let Some(log) = self.analysis.packets() {
                        log.arrived(from, to);
                    }
                }
                continue;
            }
            let first = self.ranges.partition_point(|p| p.upto <= from);
            for p in self.ranges.iter_mut().skip(first).take_while(|p| p.from < to) {
                if !p.sacked && from <= p.from && p.upto <= to {
                    p.sacked = true;
                    self.sacked += p.len();
                    deliver(p, p.len());
                }
            }
        }
        self.facts.inflight = Bytes(self.max - self.una - self.sacked.min(self.max - self.una));
        if spurious > 0 {
            self.spurious(spurious);
        }
        if advanced > 0 {
            self.filled();
            self.duplicates = 0;
        } else if duplicate && spurious == 0 && (r.sacks == 0 || arrived > 0) {
            // With SACK, one that tells of something new (RFC 6675 §2).
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
            self.detect_loss(Signal::Loss);
        }
        if r.marks {
            self.counters.echoes += 1;
            if self.una > self.answered || self.counters.echoes == 1 {
                self.answered = self.max;
                let none = Congestion::new(Signal::Ecn, true, Sent::default());
                self.analysis.loss(&self.facts, &none);
            }
        }
        if advanced > 0 || arrived > 0 {
            self.acknowledged(now, prior, advanced, arrived, newest);
        }
        self.last_ack = now;
    }

    fn acknowledged(
        &mut self,
        now: Instant,
        prior: Bytes,
        advanced: u64,
        arrived: u64,
        newest: Option<Sent>,
    ) {
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
        let mut ack = Ack::new(newest.unwrap_or_default(), Bytes(arrived), prior);
        ack.upto = SendOrder::new(self.una);
        ack.bytes = if advanced > 0 { Bytes(arrived) } else { Bytes::ZERO };
        ack.rtt = rtt;
        ack.limit = if peer { Limit::Peer } else { Limit::Window };
        self.analysis.ack(&self.facts, &ack);
    }
}
