//! Measurements that several algorithms share.

use crate::units::{Bytes, Instant, Rate, SendOrder, Span};
use crate::view::{Ack, Congestion, Limit, View};

/// Counts round trips by marks. A round ends with the first ACK beyond the mark that was next to be sent when
/// it began, so that every RTT sample of a round is of a packet sent in it. (RFC 9406 §4.2 ends a round when
/// `windowEnd` itself is acknowledged; Linux uses `after(snd_una, end_seq)`, as here.)
///
/// Rounds are independent of time, so an idle period does not end one.
#[derive(Clone, Debug, Default)]
pub struct Round {
    end: Option<SendOrder>,
}

impl Round {
    /// Updates the count with an ACK for `mark`, when `next` is the next mark to be sent. Returns true if
    /// this ACK ends a round. The first call begins the first round and returns false.
    ///
    /// `mark` is either [`Ack::upto`], so that a loss holds the round up until it is repaired, or the newest
    /// delivered mark ([`Ack::newest`]), so that selective ACKs end rounds as well. A mark older than an
    /// earlier one ends no round.
    pub fn ends_round(&mut self, mark: SendOrder, next: SendOrder) -> bool {
        match self.end {
            Some(end) if mark <= end => false,
            ended => {
                self.end = Some(next);
                ended.is_some()
            }
        }
    }
}

/// The minimum RTT of a round, and the number of its samples.
#[derive(Clone, Debug, Default)]
pub struct RoundMin {
    /// The minimum so far.
    pub least: Option<Span>,
    /// Number of RTT samples in the round.
    pub samples: u32,
}

impl RoundMin {
    /// Adds an RTT sample to the round.
    pub fn add(&mut self, rtt: Span) {
        self.least = Some(self.least.map_or(rtt, |l| l.min(rtt)));
        self.samples += 1;
    }

    /// Begins a new round. Returns the minimum of the round that ended.
    pub fn restart(&mut self) -> Option<Span> {
        core::mem::take(self).least
    }
}

/// The minimum RTT of a connection, by its own samples.
#[derive(Copy, Clone, Debug, Default)]
pub struct Floor(pub Option<Span>);

impl Floor {
    /// Adds a sample. One of zero, from a clock that is too coarse, is left out.
    pub fn add(&mut self, rtt: Span) {
        if rtt.0 > 0 {
            self.0 = Some(self.0.map_or(rtt, |least| least.min(rtt)));
        }
    }
}

/// What was in flight in a round, and what of it was lost.
#[derive(Copy, Clone, Debug, Default)]
pub struct Flight {
    /// Bytes in flight when the round began.
    pub first: Bytes,
    /// The most bytes in flight.
    pub peak: Bytes,
    /// Bytes found lost in the round.
    pub lost: Bytes,
    /// The application limited the sender.
    pub limited: bool,
}

impl Flight {
    /// Begins a round with this many bytes in flight.
    pub fn new(first: Bytes) -> Self {
        Self { first, peak: first, lost: Bytes::ZERO, limited: false }
    }

    /// Adds an ACK of the round.
    pub fn add(&mut self, ack: &Ack) {
        self.peak = self.peak.max(ack.prior_inflight);
        self.limited |= ack.limit == Limit::Application;
    }
}

/// The smoothed share of packets lost, as picoquic computes it (`smoothed_drop_rate`): an average over the
/// order of sending in which each packet has a weight of a sixteenth, updated at each loss.
///
/// A host here tells how many bytes were lost, not which packets: the packets delivered since the last loss
/// come first, and those lost are consecutive.
#[derive(Copy, Clone, Debug, Default)]
pub struct LossShare {
    /// The share, in 2^24ths.
    share: u32,
    /// Packets delivered and lost by the last loss.
    seen: u64,
}

impl LossShare {
    /// Packets after which what was before them no longer counts (`PICOQUIC_SMOOTHED_LOSS_SCOPE`).
    const SCOPE: u64 = 32;

    /// Adds the losses of `c`, and returns the share, in thousandths.
    pub fn add(&mut self, v: &View, c: &Congestion) -> u32 {
        let lost = c.lost.0.div_ceil(v.mss.0.max(1));
        let all = (v.delivered + v.lost).units(v.mss).max(self.seen + lost);
        let between = (all - lost - self.seen).min(Self::SCOPE - 1);
        self.seen = all;
        for _ in 0..between {
            self.share -= self.share / 16;
        }
        for _ in 0..lost.min(8 * Self::SCOPE) {
            self.share -= self.share / 16;
            self.share += ((1 << 24) - self.share) / 16;
        }
        ((u64::from(self.share) * 1000) >> 24) as u32
    }
}

/// The highest delivery rate, over spans that are longer than a millisecond
/// (`picoquic_estimate_max_path_bandwidth`).
#[derive(Copy, Clone, Debug, Default)]
pub struct PeakRate {
    /// The highest so far; zero if there is none.
    pub rate: Rate,
    /// Bytes delivered, time, and time of sending of the newest packet delivered, at the begin of the current
    /// span.
    from: Option<(Bytes, Instant, Instant)>,
}

impl PeakRate {
    /// Adds an ACK, in order of time.
    pub fn add(&mut self, v: &View, ack: &Ack) {
        if ack.delivered.0 == 0 {
            return;
        }
        let here = (v.delivered, v.now, ack.newest.at);
        let Some((delivered, came, left)) = self.from else {
            self.from = Some(here);
            return;
        };
        let took = v.now.since(came);
        if ack.newest.at < left || took <= Span::millis(1) {
            return;
        }
        let rate = Rate::new(v.delivered - delivered, took.max(ack.newest.at.since(left)));
        self.rate = self.rate.max(rate.unwrap_or_default());
        self.from = Some(here);
    }
}

/// Estimates the capacity of a path from the spacing of ACKs, as the highest rate between two consecutive
/// ACKs.
///
/// A pair counts only if its ACKs arrive further apart than its packets were sent: then the path, and not the
/// sender, determined their spacing.
#[derive(Clone, Debug, Default)]
pub struct Dispersion {
    /// The highest rate so far.
    pub rate: Option<Rate>,
    /// Number of pairs counted.
    pub pairs: u32,
    /// When the last ACK arrived, and when the packet that it acknowledges had been sent.
    last: Option<(Instant, Instant)>,
}

impl Dispersion {
    /// Adds an ACK, in order of time.
    pub fn add(&mut self, now: Instant, ack: &Ack) {
        if ack.delivered.0 == 0 {
            return;
        }
        let left = ack.newest.at;
        if let Some((came, before)) = self.last.replace((now, left)) {
            let apart = now.since(came);
            if let Some(rate) = Rate::new(ack.delivered, apart).filter(|_| left.since(before) < apart) {
                self.rate = self.rate.max(Some(rate));
                self.pairs += 1;
            }
        }
    }
}

/// A moment in a train of ACKs.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Point {
    /// When it came.
    came: Instant,
    /// When the newest packet delivered by then had been sent.
    left: Instant,
    /// Bytes delivered before it.
    before: Bytes,
}

/// How the ACKs of a flight come: at which rate, over what time, and whether further apart than its packets
/// were sent.
///
/// ACKs that come at one time (in a slot) are one point, and rates are from the begin of one such group to
/// the begin of another.
#[derive(Clone, Debug, Default)]
pub struct Train {
    first: Option<Point>,
    /// Two points at about a quarter and a half of the time up to the newest.
    early: [Point; 2],
    newest: Point,
    /// Number of points after the first.
    pub points: u32,
}

/// The rate of a train, or of its later part.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TrainRate {
    /// Bytes delivered over the time that their ACKs took.
    pub rate: Rate,
    /// The time that these deliveries took.
    pub took: Span,
    /// The time that sending them took.
    pub sent: Span,
}

impl TrainRate {
    fn between(a: &Point, b: &Point) -> Option<Self> {
        let took = b.came.since(a.came);
        let rate = Rate::new(b.before - a.before, took)?;
        Some(Self { rate, took, sent: b.left.since(a.left) })
    }

    /// True if the ACKs took an eighth longer to come than the packets to leave, so that the path spread
    /// them.
    pub fn is_spread(&self) -> bool {
        self.took > self.sent + self.sent / 8
    }
}

impl Train {
    /// Adds an ACK at `now`, before which `before` bytes had been delivered.
    pub fn add(&mut self, now: Instant, before: Bytes, ack: &Ack) {
        let point = Point { came: now, left: ack.newest.at, before };
        let Some(first) = self.first else {
            (self.first, self.early, self.newest) = (Some(point), [point; 2], point);
            return;
        };
        if ack.delivered.0 == 0 || ack.newest.retransmission || now == self.newest.came {
            return;
        }
        self.newest = point;
        self.points += 1;
        let [quarter, half] = &mut self.early;
        if half.came == first.came {
            *half = point;
        } else if now.since(first.came) >= half.came.since(first.came) * 2 {
            (*quarter, *half) = (*half, point);
        }
    }

    /// Returns the time from its first ACK to the newest point.
    pub fn took(&self) -> Span {
        self.first.map_or(Span::ZERO, |f| self.newest.came.since(f.came))
    }

    /// Returns the rate of the whole train.
    pub fn whole(&self) -> Option<TrainRate> {
        TrainRate::between(&self.first?, &self.newest)
    }

    /// True if its begin (a quarter to a half of it) and the rest have the same rate, to a quarter.
    pub fn is_even(&self) -> bool {
        let begin = self.first.and_then(|f| TrainRate::between(&f, &self.early[0]));
        let both = begin.zip(self.tail());
        both.is_some_and(|(a, b)| a.rate.min(b.rate) >= a.rate.max(b.rate).scale(3, 4))
    }

    /// Returns the rate of its later half to three quarters. Where ACKs are delayed at random and stay in
    /// order, only the begin of a train is spread by that.
    pub fn tail(&self) -> Option<TrainRate> {
        TrainRate::between(&self.early[0], &self.newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Sent;

    /// An ACK of 1000 bytes for a packet that left at `left`.
    fn ack(left: u64) -> Ack {
        let newest = Sent { at: Instant(left), ..Sent::default() };
        Ack::new(newest, Bytes(1000), Bytes(1000))
    }

    fn train(times: &[(u64, u64)]) -> Train {
        let mut train = Train::default();
        for (i, (came, left)) in times.iter().enumerate() {
            train.add(Instant(*came), Bytes(1000 * i as u64), &ack(*left));
        }
        train
    }

    #[test]
    fn an_older_mark_ends_no_round() {
        let mut round = Round::default();
        assert!(!round.ends_round(SendOrder::new(1), SendOrder::new(10)));
        assert!(!round.ends_round(SendOrder::new(10), SendOrder::new(20)));
        assert!(round.ends_round(SendOrder::new(12), SendOrder::new(20)));
        assert!(!round.ends_round(SendOrder::new(11), SendOrder::new(30)));
        assert!(round.ends_round(SendOrder::new(21), SendOrder::new(30)));
    }

    #[test]
    fn a_flight_keeps_its_peak_and_the_floor_its_least() {
        let mut flight = Flight::new(Bytes(4000));
        for inflight in [3000, 6000, 5000] {
            flight.add(&Ack::new(Sent::default(), Bytes(1000), Bytes(inflight)));
        }
        assert_eq!((flight.first, flight.peak, flight.limited), (Bytes(4000), Bytes(6000), false));
        flight.add(&Ack { limit: Limit::Application, ..ack(0) });
        assert!(flight.limited);
        let mut floor = Floor::default();
        for rtt in [0, 9, 7, 8] {
            floor.add(Span(rtt));
        }
        assert_eq!(floor.0, Some(Span(7)));
    }

    #[test]
    fn acks_of_one_time_are_one_point() {
        let t = train(&[(5, 0), (5, 0), (5, 0), (9, 0), (9, 0), (13, 0)]);
        // Three packets came at 5, two at 9: five in 8 ns.
        assert_eq!((t.points, t.took()), (2, Span(8)));
        assert_eq!(t.whole().expect("points").rate, Rate::new(Bytes(5000), Span(8)).expect("time"));
    }

    #[test]
    fn the_tail_leaves_out_the_begin() {
        // Sparse at first, then one a nanosecond: the tail begins after a quarter of the time.
        let times: [(u64, u64); 103] =
            core::array::from_fn(|i| (if i < 3 { 100 + 20 * i as u64 } else { 138 + i as u64 }, 0));
        let t = train(&times);
        let (whole, tail) = (t.whole().expect("points").rate, t.tail().expect("points").rate);
        assert!(tail > whole, "{tail:?} {whole:?}");
        assert_eq!(tail, Rate::new(Bytes(1000), Span(1)).expect("time"));
        assert!(!t.is_even());
    }

    #[test]
    fn a_train_is_spread_if_it_took_longer_to_come_than_to_leave() {
        assert!(train(&[(0, 0), (9, 7)]).whole().expect("points").is_spread());
        assert!(!train(&[(0, 0), (9, 8)]).whole().expect("points").is_spread());
    }
}
