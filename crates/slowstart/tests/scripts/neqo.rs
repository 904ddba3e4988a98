//! The definitions of neqo's `search.rs` and `hystart.rs`, as their public unit tests state them, in calls of
//! this project's startups. Names follow what is stated, not the tests.

use crate::common::{facts, startup};
use slowstart::startup::{AnyStartup, Startup};
use slowstart::step::{Exit, Step, Window};
use slowstart::units::{Bytes, SendOrder, Span};
use slowstart::view::{Ack, Facts, Limit, Sent, View};

const RTT: Span = Span::millis(100);
/// A bin: 3.5 first RTTs over ten.
const BIN: Span = Span::millis(35);
const PACKET: u64 = 1200;

struct Neqo {
    startup: AnyStartup,
    facts: Facts,
    limit: Limit,
    cwnd: u64,
    sent: u64,
}

impl Neqo {
    fn new(text: &str) -> Self {
        let facts = facts(PACKET, 10);
        Self { startup: startup(text), facts, limit: Limit::Window, cwnd: 12_000, sent: 0 }
    }

    /// With the first packet sent and acknowledged.
    fn begun(text: &str) -> Self {
        let mut n = Self::new(text);
        n.send(PACKET);
        n.wait(RTT);
        let _ = n.ack(PACKET, RTT);
        n
    }

    fn send(&mut self, bytes: u64) {
        self.sent += 1;
        self.facts.next = SendOrder::new(self.sent);
        let s = Sent { mark: self.facts.next, bytes: Bytes(bytes), ..Sent::default() };
        let v = View { facts: &self.facts, cwnd: Bytes(self.cwnd), ssthresh: None };
        self.startup.on_sent(&v, &s);
    }

    fn wait(&mut self, time: Span) {
        self.facts.now = self.facts.now + time;
    }

    /// Acknowledges up to the newest packet.
    fn ack(&mut self, bytes: u64, rtt: Span) -> Step {
        self.ack_upto(self.sent, bytes, rtt)
    }

    fn ack_upto(&mut self, mark: u64, bytes: u64, rtt: Span) -> Step {
        self.facts.delivered += Bytes(bytes);
        let newest = Sent { mark: SendOrder::new(mark), ..Sent::default() };
        let mut a = Ack::new(newest, Bytes(bytes), Bytes(self.cwnd));
        a.rtt = Some(rtt);
        a.limit = self.limit;
        let v = View { facts: &self.facts, cwnd: Bytes(self.cwnd), ssthresh: None };
        self.startup.on_ack(&v, &a)
    }

    /// A bin with these amounts.
    fn bin(&mut self, sent: u64, acked: u64) -> Step {
        if sent > 0 {
            self.send(sent);
        }
        self.wait(BIN + Span(1));
        self.ack(acked, RTT)
    }

    fn value(&self, name: &str) -> f64 {
        let mut found = f64::NAN;
        self.startup.internal_values(&mut |k, v| {
            if k == name {
                found = v;
            }
        });
        found
    }
}

/// The first sample sets the width of the bins; a bin ends after its width, not with it; more time passes
/// several.
#[test]
fn bins_have_the_width_of_the_first_rtt() {
    for name in ["search-neqo", "search-neqo:skip=paced"] {
        let mut n = Neqo::begun(name);
        assert_eq!(n.value("bin"), 0.0);
        n.send(PACKET);
        n.wait(BIN);
        let _ = n.ack(PACKET, RTT);
        assert_eq!(n.value("bin"), 0.0);
        n.wait(Span(1));
        let _ = n.ack(PACKET, RTT);
        assert_eq!(n.value("bin"), 1.0);
        // A longer RTT does not change the width: two of it and a nanosecond are two bins.
        n.wait(BIN * 2);
        let _ = n.ack(PACKET, RTT * 2);
        assert_eq!(n.value("bin"), 3.0);
    }
}

/// Ten bins may pass without an ACK; the eleventh begins anew, with bins of the new RTT.
#[test]
fn eleven_silent_bins_begin_anew() {
    let mut n = Neqo::begun("search-neqo:skip=paced");
    n.wait(BIN * 10);
    let _ = n.ack(PACKET, RTT);
    assert_eq!(n.value("bin"), 10.0);
    n.wait(BIN * 11);
    let _ = n.ack(PACKET, RTT * 2);
    assert_eq!(n.value("bin"), 0.0);
    n.wait(BIN * 2);
    let _ = n.ack(PACKET, RTT);
    assert_eq!(n.value("bin"), 0.0);
    n.wait(Span(1));
    let _ = n.ack(PACKET, RTT);
    assert_eq!(n.value("bin"), 1.0);
}

/// With an RTT of two bins and a fraction the first judgement is at bin 13: bin 11 is then the end of the
/// earlier window.
#[test]
fn it_warms_up_for_a_window_and_a_round_trip() {
    let mut n = Neqo::begun("search-neqo");
    for _ in 0..12 {
        let _ = n.bin(PACKET, PACKET);
        assert!(n.value("shortfall").is_nan(), "bin {}", n.value("bin"));
    }
    for _ in 0..11 {
        let step = n.bin(PACKET, PACKET);
        assert_eq!((n.value("shortfall"), step.exit), (0.0, None));
    }
    // A quarter of what was sent arrives in one bin: 7.5 % less than in a window of ten equal ones.
    let _ = n.bin(PACKET, PACKET / 4);
    assert!((n.value("shortfall") - 0.075).abs() < 1e-3, "{}", n.value("shortfall"));
}

/// A look-back of 14 bins is judged, one of 15 or more is not. Without anything sent there is nothing to
/// judge.
#[test]
fn a_long_rtt_is_not_judged() {
    for (rtt, judged) in [(490, true), (524, true), (525, false), (600, false)] {
        let mut n = Neqo::begun("search-neqo:threshold=1");
        for _ in 0..28 {
            let _ = n.bin(PACKET, PACKET);
        }
        let before = n.value("shortfall");
        n.send(PACKET);
        n.wait(BIN + Span(1));
        // Nothing of it arrives.
        let _ = n.ack(0, Span::millis(rtt));
        assert_eq!(n.value("shortfall") != before, judged, "{rtt} ms");
    }
    let mut n = Neqo::begun("search-neqo");
    for _ in 0..20 {
        assert_eq!(n.bin(0, 0).exit, None);
    }
    assert!(n.value("shortfall").is_nan());
}

/// While what is sent doubles each round trip and arrives, nothing is found. Then a quarter arrives: not the
/// first such round trip ends it, but the second.
#[test]
fn it_leaves_when_delivery_no_longer_follows() {
    let mut n = Neqo::begun("search-neqo");
    let mut round = 12_000;
    while n.value("bin") < 12.0 {
        n.send(round);
        n.wait(RTT);
        let _ = n.ack(round, RTT);
        round *= 2;
    }
    for _ in 0..10 {
        n.send(round);
        n.wait(RTT);
        assert_eq!(n.ack(round, RTT).exit, None);
        round *= 2;
    }
    n.send(round);
    n.wait(RTT);
    assert_eq!(n.ack(round / 4, RTT).exit, None);
    round += round / 4;
    n.send(round);
    n.wait(RTT);
    let step = n.ack(round / 4, RTT);
    assert_eq!((step.exit, step.window), (Some(Exit::RateFlat), Window::Keep));
}

/// What is acknowledged while less than the window is in flight counts, but no bin ends by it and the window
/// does not grow: since June 2026 also if the pacer held data back, from May to June not then.
#[test]
fn limited_senders_are_counted_and_not_judged() {
    for (text, limit, judged) in [
        ("search-neqo:skip=paced", Limit::Application, false),
        ("search-neqo:skip=paced", Limit::Peer, false),
        ("search-neqo:skip=paced", Limit::Pacer, false),
        ("search-neqo:skip=paced", Limit::Window, true),
        ("search-neqo:skip=limited", Limit::Application, false),
        ("search-neqo:skip=limited", Limit::Pacer, true),
        ("search-neqo", Limit::Application, true),
    ] {
        let mut n = Neqo::begun(text);
        n.limit = limit;
        let step = n.bin(PACKET, PACKET);
        assert_eq!(n.value("bin"), f64::from(u8::from(judged)), "{text} {limit:?}");
        assert_eq!(step == Step::HOLD, !judged, "{text} {limit:?}");
    }
}

/// `hystart++` does not see them either: eight samples of a longer round trip begin no conservative slow
/// start, and no round ends.
#[test]
fn limited_senders_bring_hystart_no_sample() {
    for (text, limit, judged) in [
        ("hystart++:skip=paced", Limit::Application, false),
        ("hystart++:skip=paced", Limit::Pacer, false),
        ("hystart++:skip=paced", Limit::Window, true),
        ("hystart++:skip=limited", Limit::Pacer, true),
        ("hystart++", Limit::Application, true),
    ] {
        let mut n = Neqo::begun(text);
        let _ = samples(&mut n, &[100; 8]);
        n.limit = limit;
        let css = samples(&mut n, &[150; 8]);
        assert_eq!(css.last(), Some(&judged), "{text} {limit:?}");
    }
}

/// One round trip of `hystart++` with these samples; returns whether conservative slow start was on after
/// each.
fn samples(n: &mut Neqo, rtts: &[u64]) -> Vec<bool> {
    n.send(PACKET);
    let end = n.sent;
    let each = rtts.iter().map(|ms| {
        let _ = n.ack_upto(end, PACKET, Span::millis(*ms));
        n.startup.phase() == "css"
    });
    each.collect()
}

/// Eight samples are needed, and a rise of an eighth of the last round's RTT, at least 4 and at most 16 ms.
#[test]
fn hystart_enters_conservative_slow_start_at_the_eighth_sample() {
    for (last, rise) in [(20, 4), (32, 4), (80, 10), (128, 16), (400, 16)] {
        for (more, enters) in [(rise - 1, false), (rise, true)] {
            let mut n = Neqo::new("hystart++");
            let _ = samples(&mut n, &[last; 8]);
            let got = samples(&mut n, &[last + more; 8]);
            assert_eq!(got, [false, false, false, false, false, false, false, enters], "{last} {more}");
        }
    }
}

/// The least sample of a round counts. Growth in conservative slow start is a quarter, and a fall of the RTT
/// ends it.
#[test]
fn hystart_resumes_when_the_rtt_falls() {
    let mut n = Neqo::new("hystart++");
    let _ = samples(&mut n, &[100; 8]);
    let one_low = samples(&mut n, &[100, 150, 150, 150, 150, 150, 150, 150]);
    assert!(!one_low.contains(&true));
    assert!(samples(&mut n, &[120; 8])[7]);
    n.send(PACKET);
    let step = n.ack(PACKET, Span::millis(120));
    assert_eq!(step, Step::grow(Bytes(PACKET / 4)));
    assert!(!samples(&mut n, &[100; 8])[7]);
}

/// #3505: a fall of the RTT ends conservative slow start only after eight more samples in it; in RFC 9406, whose
/// count is that of the round, with the next.
#[test]
fn conservative_slow_start_ends_after_eight_samples_in_it() {
    for (text, later) in [("hystart++", 0), ("hystart++:fresh=on", 7)] {
        let mut n = Neqo::new(text);
        let _ = samples(&mut n, &[100; 8]);
        let rtts: Vec<u64> = [130; 8].into_iter().chain([100; 10]).collect();
        let css = samples(&mut n, &rtts);
        let lasted = css.iter().filter(|on| **on).count();
        assert_eq!((css[7], lasted), (true, 1 + later), "{text}: {css:?}");
    }
}

/// Nor do samples of the round in which it began count twice: the least of them stays the least of the round.
#[test]
fn the_least_sample_of_the_round_stays() {
    let mut n = Neqo::new("hystart++:fresh=on");
    let _ = samples(&mut n, &[100; 8]);
    let _ = samples(&mut n, &[150, 150, 150, 150, 150, 150, 150, 120, 160]);
    assert_eq!((n.startup.phase(), n.value("round_least_s")), ("css", 0.12));
}
