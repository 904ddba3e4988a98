//! Cases that are drawn: combinations that nobody thought of.

use super::case::Case;
use slowstart::units::{Rate, Span};

/// Seeds of the cases that are part of the vectors: of the first 60 those that found most mutants that no case
/// of the table found (`research/mutants`), and from 1001 on hosts that know more, for the startups that need it.
pub(super) const SEEDS: &[u64] = &[
    1, 3, 6, 8, 9, 10, 11, 12, 14, 16, 17, 18, 20, 22, 24, 26, 27, 28, 30, 32, 35, 38, 41, 44, 48, 49, 52,
    1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 1015, 1016, 1017,
    1018, 1019, 1020, 1021, 1022, 1023, 1024, 1025, 1026, 1027, 1028, 1029, 1030,
];
/// The first seed of hosts that know more.
const KNOWING: u64 = 1001;
/// The first seed of longer connections on which more happens.
const EVENTFUL: u64 = 2001;

/// A drawn case, and what its lists hold.
pub(super) struct Drawn {
    name: String,
    seed: u64,
    drops: Vec<u64>,
    delays: Vec<(Span, Span)>,
    rates: Vec<(Span, Rate)>,
    little: Vec<(u32, u32, u64)>,
}

/// `SplitMix64` (Steele, Lea and Flood 2014).
#[derive(Clone)]
pub(super) struct Draw(u64);

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x5851_F42D_4C95_7F2D))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from `from` to `to`.
    pub(super) fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from + 1)
    }

    pub(super) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.within(0, all.len() as u64 - 1) as usize]
    }

    /// True once in `n` times.
    pub(super) fn once_in(&mut self, n: u64) -> bool {
        self.within(1, n) == 1
    }
}

impl Drawn {
    pub(super) fn new(seed: u64) -> Self {
        let mut d = Draw::new(seed);
        let drops = if d.once_in(3) { d.within(1, 6) } else { 0 };
        let mut drops: Vec<u64> = (0..drops).map(|_| d.within(1, 150)).collect();
        let (mut delays, mut at) = (Vec::new(), 0);
        if d.once_in(2) {
            for _ in 0..d.within(1, 5) {
                at += d.within(5, 200);
                let by = d.of(&[0, 500, 2000, 4000, 5000, 8000, 16_000, 30_000, 60_000]);
                delays.push((Span::millis(at), Span::micros(by)));
            }
        }
        let mut little = Vec::new();
        if d.once_in(4) {
            let from = d.within(0, 60) as u32;
            little.push((from, from + d.within(5, 80) as u32, d.within(1, 40)));
        }
        let mut rates = Vec::new();
        if seed >= EVENTFUL {
            if d.once_in(2) {
                let (from, step) = (d.within(3, 250), d.within(1, 12));
                drops.extend((0..d.within(2, 30)).map(|n| from + n * step));
            }
            if d.once_in(3) {
                let mut at = 0;
                for _ in 0..d.within(1, 3) {
                    at += d.within(50, 1500);
                    rates.push((Span::millis(at), Rate(1_000_000 * d.of(&[1, 3, 10, 30, 100]))));
                }
            }
        }
        Self { name: format!("drawn-{seed}"), seed, drops, delays, rates, little }
    }

    pub(super) fn case(&self) -> Case<'_> {
        match self.seed {
            EVENTFUL.. => self.eventful(),
            KNOWING.. => self.knowing(),
            _ => self.any(),
        }
    }

    /// A longer connection: bursts of losses, a bottleneck whose rate changes, and queues and marks in the
    /// order of the path's capacity.
    fn eventful(&self) -> Case<'_> {
        let d = &mut Draw(self.seed ^ 0x5A5A);
        let (mss, rate, rtt) =
            (d.of(&[1000, 1200, 1448]), d.of(&[1, 2, 5, 10, 20, 50]), d.of(&[10, 20, 40, 80, 150, 300]));
        let full = (rate * rtt * 125 / mss).max(4);
        Case {
            rate: Some(Rate(rate * 1_000_000)),
            rates: &self.rates,
            rtt: Span::millis(rtt),
            mss,
            iw: d.of(&[2, 10, 10, 20, 40]),
            acks: d.within(100, 500) as u32,
            queue: d.of(&[full / 4, full / 2, full, full * 3]).max(3),
            marks: d.once_in(3).then(|| d.of(&[0, full / 16, full / 4, full])),
            remembered: d.once_in(2).then(|| {
                let window = d.of(&[full / 2, full, full, full * 3]);
                (window, Span::micros(rtt * d.of(&[500, 900, 1000, 1100])), Rate(rate * 1_000_000))
            }),
            ..self.any()
        }
    }

    /// A host that knows what is unsent, its interface, an earlier connection and a granted rate, as on the
    /// path or unlike it.
    fn knowing(&self) -> Case<'_> {
        let d = &mut Draw(self.seed ^ 0xA5A5);
        let mbit = |n: u64| Rate(n * 1_000_000);
        let tcp = !d.once_in(4);
        let (mss, iw) = (d.of(&[1000, 1448, 1460]), d.of(&[2, 4, 10, 10, 20]));
        let (rtt, rate) = (d.of(&[20, 50, 100]), d.of(&[3, 10, 40]));
        // At limits of rules, and on either side: 1/2 and 10 times the RTT, 4 initial windows.
        let near = rtt * d.of(&[500, 501, 1000, 1000, 1000, 1200, 10_000, 10_001]);
        Case {
            rate: Some(mbit(rate)),
            rtt: Span::millis(rtt),
            mss,
            iw,
            acks: 160,
            queue: d.of(&[8, 30, 100, 1000]),
            unsent: Some(d.of(&[iw, 12, 13, 30, 60, 97, 141, 200, 2000])),
            peer: d.once_in(5).then(|| d.within(8, 90)),
            tcp,
            spurious: d.once_in(3),
            can_pace: !d.once_in(10),
            nic: Some((mbit(d.of(&[2, 4, 11, 50])), d.of(&[5, 20, 60, 300]))),
            remembered: Some((d.of(&[iw * 4 - 1, iw * 4, iw * 10, iw * 40]), Span::micros(near), mbit(rate))),
            granted: Some(mbit(d.of(&[1, 3, 8, 30]))),
            short: d.once_in(3).then(|| d.within(1, mss - 1)),
            ..self.any()
        }
    }

    fn any(&self) -> Case<'_> {
        let d = &mut Draw(self.seed);
        let mbit = |n: u64| Rate(n * 1_000_000);
        let ms = Span::millis;
        let rate = d.of(&[0, 1, 2, 5, 10, 50, 100, 500]);
        let rtt = ms(d.of(&[1, 5, 12, 20, 50, 80, 120, 200, 400]));
        let mss = d.of(&[536, 1000, 1200, 1448, 8948]);
        let tcp = d.once_in(2);
        Case {
            name: &self.name,
            avoidance: if d.once_in(8) { "cubic" } else { "reno" },
            rate: (rate > 0).then(|| mbit(rate)),
            rates: &[],
            rtt,
            mss,
            iw: d.of(&[1, 2, 3, 4, 8, 10, 20, 32, 64]),
            acks: d.within(60, 220) as u32,
            queue: d.of(&[5, 15, 40, 100, 1000]),
            marks: d.once_in(5).then(|| d.within(0, 30)),
            unmarked: d.once_in(10),
            drops: &self.drops,
            delays: &self.delays,
            late: d.once_in(5).then(|| (d.within(2, 9), Span::micros(d.within(100, 3000)))),
            every: d.of(&[1, 1, 1, 2, 4, 10, 32]),
            slot: d.once_in(5).then(|| ms(d.of(&[1, 3, 10]))),
            merged: d.once_in(8),
            short: d.once_in(5).then(|| d.within(1, mss)),
            grown: d.once_in(10).then(|| (d.within(5, 60) as u32, mss + d.within(1, 300))),
            little: &self.little,
            turns: &[],
            rate_limited: false,
            peer: d.once_in(10).then(|| d.within(2, 60)),
            unsent: d.once_in(3).then(|| d.of(&[3, 12, 40, 90, 200, 3000])),
            pause: d.once_in(6).then(|| (d.within(3, 90) as u32, ms(d.within(50, 5000)), d.once_in(2))),
            timeout: d.once_in(8).then(|| d.within(3, 100) as u32),
            stall: d.once_in(15).then(|| d.within(3, 100) as u32),
            spurious: d.once_in(4),
            tcp,
            paces: d.once_in(4).then(|| d.of(&[0, 0, 3000, 64_000])),
            can_pace: !d.once_in(5),
            nic: d.once_in(4).then(|| (mbit(d.of(&[2, 10, 40, 1000])), d.of(&[10, 50, 300]))),
            remembered: d.once_in(3).then(|| {
                let near = rtt.scale(d.of(&[2, 4, 5, 6, 10, 60]), 5);
                (d.within(1, 400), near, mbit(d.of(&[1, 5, 20, 100])))
            }),
            granted: d.once_in(3).then(|| mbit(d.of(&[0, 1, 4, 10, 80]))),
            syns: if d.once_in(6) { (d.within(1, 3) as u8, d.once_in(2)) } else { (0, false) },
        }
    }
}
