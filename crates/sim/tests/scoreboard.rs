//! The scoreboard against a naive one that scans everything: over thousands of random sequences of loss,
//! reordering and duplication, everything that the endpoint reads must be equal.

use slowstart::units::{Bytes, Instant};
use slowstart_sim::random::Stream;
use slowstart_sim::tcp::scoreboard::{Delivered, Scoreboard};
use std::collections::BTreeMap;

const MSS: u32 = 1000;

#[derive(Copy, Clone, Debug, Default)]
struct Plain {
    number: u64,
    len: u64,
    sacked: bool,
    lost: bool,
    resent: bool,
}

/// A segment in flight, by its first byte.
#[derive(Clone, Debug, Default)]
struct Naive {
    all: BTreeMap<u64, Plain>,
    una: u64,
    delivered: u64,
    lost_total: u64,
}

impl Naive {
    fn count(&self, of: impl Fn(&Plain) -> bool) -> (u32, u64) {
        let set = self.all.values().filter(|p| of(p));
        set.fold((0, 0), |(n, bytes), p| (n + 1, bytes + p.len))
    }

    /// Only whole segments are SACKed; blocks below the acknowledgement or beyond what was sent are ignored.
    fn sack(&mut self, from: u64, to: u64) -> u64 {
        let end = self.all.iter().next_back().map_or(self.una, |(s, p)| s + p.len);
        let from = from.max(self.una);
        if to > end || from >= to {
            return 0;
        }
        let mut newly = 0;
        for (start, p) in &mut self.all {
            if from <= *start && start + p.len <= to && !p.sacked {
                newly += p.len;
                *p = Plain { sacked: true, lost: false, resent: false, ..*p };
            }
        }
        self.delivered += newly;
        newly
    }

    fn acknowledge(&mut self, una: u64) -> u64 {
        if una <= self.una {
            return 0;
        }
        let mut newly = 0;
        for (start, mut p) in std::mem::take(&mut self.all) {
            let end = start + p.len;
            let cut = end.min(una).saturating_sub(start);
            newly += if p.sacked { 0 } else { cut };
            if cut < p.len {
                p.len -= cut;
                self.all.insert(start + cut, p);
            }
        }
        self.una = una;
        self.delivered += newly;
        newly
    }

    fn mark_lost(&mut self, number: u64) -> u64 {
        let Some(p) = self.all.values_mut().find(|p| p.number == number) else { return 0 };
        if p.sacked || (p.lost && !p.resent) {
            return 0;
        }
        (p.lost, p.resent) = (true, false);
        self.lost_total += p.len;
        p.len
    }

    fn next_to_resend(&self) -> Option<u64> {
        self.all.values().find(|p| p.lost && !p.resent && !p.sacked).map(|p| p.number)
    }

    /// RFC 6675 `IsLost`, by its definition.
    fn lost_by_duplicates(&self, k: usize) -> Vec<u64> {
        let above = |start: u64| self.all.range(start..).filter(|(_, p)| p.sacked).count();
        let open = self.all.iter().filter(|(_, p)| !p.sacked && !p.lost);
        open.filter(|(start, _)| above(**start) >= k).map(|(_, p)| p.number).collect()
    }
}

fn compare(ours: &mut Scoreboard, plain: &Naive) {
    let pair = |c: slowstart_sim::tcp::scoreboard::Count| (c.packets, c.bytes);
    assert_eq!(pair(ours.out), plain.count(|_| true), "out");
    assert_eq!(pair(ours.sacked), plain.count(|p| p.sacked), "sacked");
    assert_eq!(pair(ours.lost), plain.count(|p| p.lost), "lost");
    assert_eq!(pair(ours.resent), plain.count(|p| p.resent), "resent");
    assert_eq!((ours.una(), ours.delivered, ours.lost_total), (plain.una, plain.delivered, plain.lost_total));
    // RFC 6675 `SetPipe`: segments neither SACKed nor lost, and those retransmitted.
    let pipe = plain.count(|p| !p.sacked && !p.lost).1 + plain.count(|p| p.resent).1;
    assert_eq!(ours.inflight().0, pipe);
    assert_eq!(ours.next_to_resend(), plain.next_to_resend());
    assert_eq!(ours.first(), plain.all.values().next().map(|p| p.number));
    for k in [1, 3] {
        let mut found = Vec::new();
        ours.lost_by_duplicates(k, |n| found.push(n));
        assert_eq!(found, plain.lost_by_duplicates(k as usize), "IsLost with {k}");
    }
    #[cfg(debug_assertions)]
    ours.check();
}

fn sequence(seed: u64, steps: u64) {
    let mut chance = Stream::named(seed, "scoreboard");
    let mut ours = Scoreboard::new(1, MSS, true);
    let mut plain = Naive { una: 1, ..Naive::default() };
    let (mut next, mut number) = (1_u64, 0);
    for step in 0..steps {
        let now = Instant(step * 1_000_000);
        let sent = next - plain.una;
        // Mostly edges of segments, sometimes any offset.
        let mut place = |below: u64| {
            let any = plain.una + chance.below(below + 1);
            if chance.below(8) == 0 { any } else { 1 + (any - 1) / u64::from(MSS) * u64::from(MSS) }
        };
        let (a, b) = (place(sent), place(sent + 500));
        match chance.below(10) {
            // New data; sometimes a short segment at the end of a write.
            0..=2 => {
                for _ in 0..=chance.below(4) {
                    let len = if chance.below(10) == 0 { 1 + chance.below(999) } else { u64::from(MSS) };
                    let n = ours.send(now, next, len as u16, Bytes(10_000), false);
                    assert_eq!(n, number);
                    plain.all.insert(next, Plain { number, len, ..Plain::default() });
                    number += 1;
                    next += len;
                }
            }
            // SACK blocks, with repetitions and old blocks as duplicates cause them.
            3..=5 => {
                let mut d = Delivered::new(0);
                let mut seen = 0;
                ours.sack(now, a.min(b), a.max(b), &mut d, |r| seen += r.span());
                let newly = plain.sack(a.min(b), a.max(b));
                assert_eq!((d.bytes, seen), (newly, newly));
            }
            6 => {
                let mut d = Delivered::new(0);
                let upto = a.min(next);
                let before = plain.una;
                ours.acknowledge(now, upto, &mut d, |_| {});
                let newly = plain.acknowledge(upto);
                assert_eq!((d.bytes, d.acked), (newly, upto.saturating_sub(before)));
            }
            7 => {
                let n = chance.below(number + 1);
                assert_eq!(ours.mark_lost(n), plain.mark_lost(n), "lost {n}");
            }
            8 => {
                let mut found = Vec::new();
                ours.lost_by_duplicates(3, |n| found.push(n));
                for n in found {
                    assert_eq!(ours.mark_lost(n), plain.mark_lost(n));
                }
            }
            _ => {
                if let Some(n) = ours.next_to_resend() {
                    ours.resend(now, n, Bytes(10_000));
                    let p = plain.all.values_mut().find(|p| p.number == n).expect("it is in flight");
                    p.resent = true;
                }
                if chance.below(20) == 0 {
                    ours.unmark_all();
                    plain.all.values_mut().for_each(|p| p.lost = false);
                }
            }
        }
        compare(&mut ours, &plain);
    }
}

fn agree(seeds: std::ops::Range<u64>, steps: u64) {
    for seed in seeds {
        if let Err(why) = std::panic::catch_unwind(|| sequence(seed, steps)) {
            println!("sequence {seed} of {steps} steps");
            std::panic::resume_unwind(why);
        }
    }
}

#[test]
fn agrees_with_a_naive_scoreboard() {
    agree(0..4000, 120);
}

/// A million short sequences: all orders of a few steps.
#[test]
fn agrees_in_a_million_sequences() {
    std::thread::scope(|s| {
        for part in 0..4 {
            s.spawn(move || agree(part * 250_000..(part + 1) * 250_000, 10));
        }
    });
}
