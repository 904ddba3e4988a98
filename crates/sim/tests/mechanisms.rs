//! For each mechanism of the endpoint, a check that holds with it and fails without it: a mutation test of
//! the transport model. `cargo test -p slowstart-sim --test mechanisms -- --nocapture` prints what each check
//! reports without its mechanism.
//!
//! A check looks only at the segments of one endpoint and their times.

#[path = "common/script.rs"]
mod script;

use script::{RTT, Script};
use slowstart::units::{Bytes, Rate, Span};
use slowstart_sim::tcp::endpoint::State;
use slowstart_sim::tcp::profile::{AckRule, Gating, Profile, RtoRule};
use slowstart_sim::tcp::segment::{FIN, PSH, SYN};

type Verdict = Result<(), String>;

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(what()) }
}

#[allow(clippy::needless_pass_by_value, reason = "what is compared is made for it")]
fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: T, want: T) -> Verdict {
    ensure(got == want, || format!("{what}: {got:?}, not {want:?}"))
}

/// A profile without the mechanisms that would disturb a check: no pacing and no deferred bursts.
fn plain(p: Profile) -> Profile {
    Profile { pacing: false, tso_defer: false, ..p }
}

fn established(p: Profile) -> Script {
    Script::established(&p, RTT)
}

/// Sends flights of `of` segments, each acknowledged as a whole after one RTT.
fn rounds(s: &mut Script, flights: u64, of: u64, from: u64) {
    for n in 1..=flights {
        s.write(of);
        s.wait(RTT);
        s.ack(from + n * of, &[]);
    }
    s.take();
}

/// RFC 6298 §2 with Linux's bounds: after many equal RTTs the timeout is the smoothed RTT and 200 ms, and
/// doubles each time.
fn retransmission_timeout(p: Profile) -> Verdict {
    let mut s = established(Profile { tlp: false, ..plain(p) });
    rounds(&mut s, 100, 2, 0);
    let zero = s.now;
    s.zero = zero;
    s.write(2);
    s.wait(Span::secs(3));
    let times: Vec<f64> = s.timed().iter().filter(|t| t.1 == 200).map(|t| t.0).collect();
    same("the head leaves at", times, vec![0.0, 300.0, 900.0, 2100.0])
}

/// RFC 6675 §4: SACK blocks show every hole, and all are repaired in one RTT.
fn selective_acknowledgement(p: Profile) -> Verdict {
    let mut s = established(plain(p));
    s.write(20);
    s.wait(RTT);
    s.take();
    // 0 and 4 are lost.
    for n in [1, 2, 3] {
        s.ack(0, &[(1, n + 1)]);
    }
    for n in [5, 6, 7, 8, 9] {
        s.ack(0, &[(5, n + 1), (1, 4)]);
    }
    let again: Vec<u64> = s.data().into_iter().filter(|n| *n < 10).collect();
    same("sent again before anything was acknowledged", again, vec![0, 4])?;
    // The receiving half reports SACK blocks too.
    let mut r = established(p);
    r.peer_data([0, 2, 3]);
    let newest = r.take().pop().ok_or("no acknowledgement")?.segment;
    same("blocks reported", r.blocks(&newest), vec![(2, 4)])
}

/// RFC 8985 §6: a lost retransmission is detected by later segments, without a timeout.
fn recent_acknowledgement(p: Profile) -> Verdict {
    let mut s = established(plain(p));
    s.write(30);
    s.wait(RTT);
    s.take();
    for n in 1..10 {
        s.ack(0, &[(1, n + 1)]);
    }
    let sent = s.data();
    same("first copy", sent.iter().filter(|n| **n == 0).count(), 1)?;
    // One RTT later everything sent after the second copy of 0 arrives; that copy is lost.
    let last = *sent.last().ok_or("nothing was sent in recovery")?;
    s.wait(RTT);
    s.ack(0, &[(1, last + 1)]);
    s.wait(Span::millis(30));
    same("copies of 0 sent then", s.data().iter().filter(|n| **n == 0).count(), 1)
}

/// RFC 8985 §7.2: the tail of a flight is probed after two RTTs and 2 ms.
fn tail_loss_probe(p: Profile) -> Verdict {
    let mut s = established(plain(p));
    s.write(5);
    s.take();
    s.wait(Span::millis(250));
    same("what leaves", s.timed(), vec![(202.0, 4)])
}

/// RFC 6937 §3 with a reduction to 0.7: while more is in flight than that, 7 segments are sent for every 10
/// delivered.
fn proportional_rate_reduction(p: Profile) -> Verdict {
    let mut s = established(plain(p));
    s.write(400);
    // cwnd doubles to 80 and grows by 20 more segments. The next segment is lost.
    for upto in [10, 30, 70, 90] {
        s.wait(RTT);
        s.ack(upto, &[]);
    }
    s.take();
    let flight = s.cwnd();
    same("the window before", flight, 100)?;
    let mut sent = Vec::new();
    for n in 1..=40 {
        s.ack(90, &[(91, 91 + n)]);
        sent.push(s.data().len() as u64);
    }
    let total = |n: usize| sent[..n].iter().sum::<u64>();
    // Two before the loss is detected, by limited transmit.
    same("sent on the first two", total(2), 2)?;
    for n in 3..=40 {
        let want = (70 * (n as u64 - 2)).div_ceil(100);
        same(&format!("sent for {} delivered", n - 2), total(n) - 2, want)?;
    }
    Ok(())
}

/// RFC 3042: the first two duplicates each release a new segment.
fn limited_transmit(p: Profile) -> Verdict {
    let mut s = established(plain(p));
    s.write(20);
    s.wait(RTT);
    s.take();
    s.ack(0, &[(1, 2)]);
    same("on the first", s.data(), vec![10])?;
    s.ack(0, &[(1, 3)]);
    same("on the second", s.data(), vec![11])
}

/// RFC 3522, RFC 4015: the timeout was spurious, as the timestamp of the ACK shows; window and threshold are
/// restored.
fn undo(p: Profile) -> Verdict {
    let mut s = established(Profile { tlp: false, frto: false, ..plain(p) });
    s.write(10);
    s.wait(Span::millis(320));
    same("the timeout's window", s.cwnd(), 1)?;
    s.ack_original(10, &[]);
    ensure((10..=20).contains(&s.cwnd()), || format!("afterwards {} segments", s.cwnd()))
}

/// RFC 5682: the timeout was spurious, as segments show that were not sent again; without a timestamp nothing
/// else does.
fn frto(p: Profile) -> Verdict {
    let mut s = established(Profile { tlp: false, timestamps: false, ..plain(p) });
    s.write(40);
    s.wait(Span::millis(320));
    same("the timeout's window", s.cwnd(), 1)?;
    s.take();
    s.ack(1, &[]);
    s.ack(2, &[]);
    ensure(s.cwnd() >= 10, || format!("afterwards {} segments", s.cwnd()))
}

/// RFC 2861, RFC 7661: a window that is not used does not grow.
fn gating(p: Profile) -> Verdict {
    let mut s = established(plain(p));
    rounds(&mut s, 20, 3, 0);
    same("the window after flights of 3", s.cwnd(), 10)?;
    // A window that is used grows.
    s.write(20);
    s.wait(RTT);
    s.ack(70, &[]);
    ensure(s.cwnd() > 15, || format!("and after a full one {}", s.cwnd()))
}

/// The example of draft-ietf-ccwg-ratelimited-increase: ten segments, a pause, four segments, an ACK for each. A
/// sender without a rule has a window of 24, others of 20.
#[test]
fn a_sender_that_does_not_use_its_window() {
    for (gating, wanted) in [(Gating::Off, 24), (Gating::Linux, 20), (Gating::Draft, 20)] {
        let mut s = established(plain(Profile { gating, idle_restart: false, ..Profile::LINUX_6_18 }));
        for (n, upto) in [(10, 10), (4, 14)] {
            s.write(n);
            s.wait(RTT);
            for each in upto + 1 - n..=upto {
                s.ack(each, &[]);
            }
        }
        assert_eq!(s.cwnd(), wanted, "{gating:?}");
    }
    // Linux compares with the flight of the last round, the draft with the most since the last reduction, at first
    // the initial window. An ACK for four segments lets a window of 19 grow to that bound.
    for (gating, wanted) in [(Gating::Off, 23), (Gating::Linux, 19), (Gating::Draft, 20)] {
        let mut s = established(plain(Profile { gating, idle_restart: false, ..Profile::LINUX_6_18 }));
        s.write(9);
        s.wait(RTT);
        s.ack(9, &[]);
        s.write(4);
        s.wait(RTT);
        s.ack(13, &[]);
        assert_eq!(s.cwnd(), wanted, "{gating:?}");
    }
}

/// An application writes a number of segments in each of ten round trips: the window after them, without a rule, by
/// Linux's rule and by the draft's. The same table for QUIC is in `tests/host.rs` of its crate.
#[test]
fn windows_of_applications_that_send_little() {
    let few = |first: [u64; 3], later: u64| -> Vec<u64> { first.into_iter().chain([later; 7]).collect() };
    let windows = |writes: Vec<u64>| {
        [Gating::Off, Gating::Linux, Gating::Draft].map(|gating| {
            let profile = Profile { gating, idle_restart: false, ..Profile::LINUX_6_18 };
            let mut s = established(plain(profile));
            let (mut sent, mut acked) = (0, 0);
            for n in &writes {
                s.write(*n);
                s.wait(RTT);
                let ends = |l: &script::Left| (l.from + u64::from(l.segment.len)) / script::MSS;
                sent = s.take().iter().map(ends).fold(sent, u64::max);
                (acked + 1..=sent).for_each(|each| s.ack(each, &[]));
                acked = sent;
            }
            s.cwnd()
        })
    };
    let applications =
        [few([4; 3], 4), few([8; 3], 8), few([10, 4, 4], 4), few([40, 0, 0], 2), few([16, 0, 16], 8)];
    let wanted = [[50, 10, 20], [90, 16, 20], [56, 20, 20], [64, 50, 50], [98, 32, 32]];
    assert_eq!(applications.map(windows), wanted);
}

/// At twice the window per RTT, twenty segments take half an RTT, less the last burst.
fn pacing(p: Profile) -> Verdict {
    let last = second_flight(p).last().ok_or("nothing left")?.0;
    ensure((42.0..=50.0).contains(&last), || format!("the last of twenty leaves after {last} ms"))
}

/// When each segment of the second flight is sent, in milliseconds after the ACK of the first: ten segments
/// are not paced (`tcp_update_skb_after_send`), twenty are, at twice a window of twenty per RTT.
fn second_flight(p: Profile) -> Vec<(f64, u64)> {
    let mut s = established(Profile { rack: false, tlp: false, ..p });
    s.write(30);
    s.wait(RTT);
    s.take();
    s.zero = s.now;
    s.ack(10, &[]);
    s.wait(RTT - Span::millis(1));
    s.timed()
}

/// `tcp_tso_autosize`: a burst has at least two segments.
fn bursts(p: Profile) -> Verdict {
    let mut bursts: Vec<(f64, u32)> = Vec::new();
    for (at, _) in second_flight(p) {
        match bursts.last_mut() {
            Some(b) if (b.0 - at).abs() < 1e-9 => b.1 += 1,
            _ => bursts.push((at, 1)),
        }
    }
    same("sizes", bursts.iter().map(|b| b.1).collect(), vec![2; 10])
}

/// `tcp_tso_should_defer`: with a window of 160 segments and 10 ms a burst is 31 segments, and the ACK
/// releases only six. These wait if something was sent within the last millisecond.
fn deferral(p: Profile) -> Verdict {
    let mut s = Script::established(&Profile { pacing: false, ..p }, Span::millis(10));
    s.write(1000);
    for upto in [10, 30, 70, 150] {
        s.wait(Span::millis(10));
        s.ack(upto, &[]);
    }
    s.take();
    s.wait(Span::millis(10));
    s.ack(153, &[]);
    same("sent after a pause", s.data().len(), 6)?;
    s.ack(156, &[]);
    same("sent at once after that", s.data().len(), 0)?;
    s.wait(Span::micros(1001));
    s.ack(157, &[]);
    same("sent more than a millisecond later", s.data().len(), 8)
}

/// `tcp_comp_sack_delay_ns`: after the quick ACKs, the first three duplicate ACKs for a hole are sent at
/// once, others together a little later.
fn compression(p: Profile) -> Verdict {
    let mut s = established(p);
    for n in 0..30 {
        s.peer_data([n]);
        s.wait(Span::millis(10));
    }
    s.take();
    s.zero = s.now;
    for n in 31..40 {
        s.peer_data([n]);
    }
    same("acknowledgements at once", s.take().len(), 3)?;
    s.wait(Span::millis(100));
    same("and of the others", s.take().len(), 1)
}

/// Dynamic right-sizing: the window begins at 64 kB and grows with the data that arrives in an RTT.
fn autotuning(p: Profile) -> Verdict {
    let mut s = established(Profile { rmem: Bytes(6_000_000), ..p });
    let mut offered = Vec::new();
    let (mut next, mut flight) = (0, 10);
    for _ in 0..10 {
        s.peer_data(next..next + flight);
        let last = s.take().pop().ok_or("no acknowledgement")?.segment;
        // 6 MB need a scale of 7.
        offered.push(u64::from(last.window) << 7);
        next += flight;
        flight = (flight * 2).min(1500);
        s.wait(RTT);
    }
    ensure(offered[0] <= 81_920, || format!("the first offer is {}", offered[0]))?;
    let last = offered[9];
    ensure((2_000_000..=6_000_000).contains(&last), || format!("the last is {last}: {offered:?}"))
}

/// RFC 1122 §4.2.3.2, after the quick ACKs: every second segment is acknowledged, or after 40 ms.
fn delayed_acknowledgement(p: Profile) -> Verdict {
    let mut s = established(Profile { autotune: false, ..p });
    s.peer_data(0..16);
    s.wait(Span::secs(1));
    s.take();
    s.zero = s.now;
    s.peer_data([16]);
    same("acknowledgements of the first", s.take().len(), 0)?;
    s.peer_data([17]);
    same("of the second", s.take().len(), 1)?;
    s.peer_data([18]);
    s.wait(Span::secs(1));
    let alone: Vec<u64> = s.take().iter().map(|l| l.at.0 / 1_000_000).collect();
    same("of one that stays alone, at ms", alone, vec![40])
}

/// `tcp_incr_quickack`, `tcp_grow_window`: each segment is acknowledged at once while the window grows from
/// 64,240 bytes by two segments each, to what five eighths of 128 KiB leave beside a segment, which takes six,
/// and for 16 more; then no longer. Seen on a live kernel, 6.18.44.
fn quick_start(p: Profile) -> Verdict {
    let mut s = established(p);
    s.peer_data(0..27);
    let acked: Vec<u64> = s.take().iter().map(|l| s.acked(&l.segment)).collect();
    same("acknowledged", acked, (1..=22).chain([24, 26]).collect())
}

/// `tcp_measure_rcv_mss`, `tcp_cleanup_rbuf`: after the quick ACKs a segment that pushes is acknowledged when it
/// is read, though it is alone. The sending half pushes at the end of a burst and of what is written.
fn pushed(p: Profile) -> Verdict {
    let mut s = established(plain(p));
    s.peer_data(0..22);
    s.take();
    s.peer_flags = PSH;
    s.peer_data([22]);
    same("acknowledgements", s.take().len(), 1)?;
    s.peer_flags = 0;
    s.peer_data([23]);
    same("of a segment that does not push", s.take().len(), 0)?;
    s.write(5);
    let pushes: Vec<bool> = s.take().iter().map(|l| l.segment.has(PSH)).collect();
    same("pushes", pushes, vec![false, true, false, true, true])
}

/// `tcp_synack_retries` and RFC 6298 §5.5: a SYN-ACK without answer is sent again after 1, 2, 4, ... s, five
/// times.
fn handshake_retransmission(p: Profile) -> Verdict {
    let mut s = Script::listening(&p);
    let syn = slowstart_sim::tcp::segment::Segment { flags: SYN, mss: 1460, ..Default::default() };
    s.receive(&syn);
    s.wait(Span::secs(300));
    let at: Vec<u64> = s.take().iter().map(|l| l.at.0 / 1_000_000_000).collect();
    same("SYN-ACKs at", at, vec![0, 1, 3, 7, 15, 31])?;
    same("given up", s.end.state(), State::Failed)
}

/// `tcp_syn_linear_timeouts`: a SYN is sent again four times at intervals of 1 s before its timer doubles, in
/// addition to `tcp_syn_retries`.
fn linear_syn_timeouts(p: Profile) -> Verdict {
    let mut s = Script::listening(&p);
    s.end = slowstart_sim::tcp::endpoint::Endpoint::connecting(&p, script::control(&p), script::ISN);
    let mut out = Vec::new();
    s.end.connect(s.now, &mut out);
    s.wait(Span::secs(300));
    let at: Vec<u64> = s.take().iter().map(|l| l.at.0 / 1_000_000_000).collect();
    same("SYNs again at", at, vec![1, 2, 3, 4, 5, 7, 11, 19, 35, 67])
}

/// RFC 9293 §3.6: the FIN has a sequence number and is acknowledged.
fn fin(p: Profile) -> Verdict {
    let mut s = established(plain(p));
    s.write(2);
    s.close();
    s.wait(RTT);
    let fins: Vec<u64> = s.take().iter().filter(|l| l.segment.has(FIN)).map(|l| l.from).collect();
    same("FINs at", fins, vec![2 * 1448])?;
    ensure(!s.end.tx.done(), || "done before it was acknowledged".into())?;
    let ack = s.bare(1 + 2 * 1448 + 1);
    s.receive(&ack);
    ensure(s.end.tx.done(), || "not done when it was".into())
}

/// RFC 2861 §3.1, `tcp_cwnd_restart`: the window halves for each timeout without sending, down to the initial
/// window.
fn idle_restart(p: Profile) -> Verdict {
    let mut s = established(plain(p));
    s.write(70);
    s.wait(RTT);
    s.ack(10, &[]);
    s.wait(RTT);
    s.ack(30, &[]);
    s.wait(RTT);
    s.ack(70, &[]);
    same("the window in use", s.cwnd(), 80)?;
    s.take();
    s.wait(Span::secs(60));
    s.write(100);
    same("sent after a minute", s.data().len(), 10)
}

/// RFC 7323 §3 and §4: each segment carries the time and an echo, so that a retransmission gives an RTT
/// sample.
fn timestamps(p: Profile) -> Verdict {
    let mut s = established(Profile { tlp: false, ..plain(p) });
    s.write(1);
    s.wait(Span::millis(310));
    let sent = s.take();
    let times: Vec<u64> = sent
        .iter()
        .map(|l| l.segment.timestamp.ok_or("no timestamp"))
        .map(|t| t.map(|t| u64::from(t.0)))
        .collect::<Result<_, _>>()?;
    // Established 100 ms after the script began, at 1 s.
    same("the clock", times, vec![1100, 1400])?;
    s.wait(Span::millis(70));
    s.ack(1, &[]);
    same("the round trip of the second copy", s.end.tx.last_rtt(), Some(Span::millis(80)))
}

struct Mechanism {
    name: &'static str,
    check: fn(Profile) -> Verdict,
    off: fn(&mut Profile),
}

const MECHANISMS: &[Mechanism] = &[
    Mechanism {
        name: "retransmission timeout with Linux's bounds",
        check: retransmission_timeout,
        off: |p| p.rto_rule = RtoRule::Rfc6298,
    },
    Mechanism { name: "SACK scoreboard", check: selective_acknowledgement, off: |p| p.sack = false },
    Mechanism { name: "RACK", check: recent_acknowledgement, off: |p| p.rack = false },
    Mechanism { name: "tail loss probe", check: tail_loss_probe, off: |p| p.tlp = false },
    Mechanism {
        name: "proportional rate reduction",
        check: proportional_rate_reduction,
        off: |p| p.prr = false,
    },
    Mechanism { name: "limited transmit", check: limited_transmit, off: |p| p.limited_transmit = false },
    Mechanism { name: "undo of a spurious loss", check: undo, off: |p| p.undo = false },
    Mechanism { name: "F-RTO", check: frto, off: |p| p.frto = false },
    Mechanism { name: "growth only of a used window", check: gating, off: |p| p.gating = Gating::Off },
    Mechanism { name: "pacing", check: pacing, off: |p| p.pacing = false },
    Mechanism { name: "TSO-sized bursts", check: bursts, off: |p| p.tso = 0 },
    Mechanism { name: "deferred bursts", check: deferral, off: |p| p.tso_defer = false },
    Mechanism { name: "ACK compression beyond a hole", check: compression, off: |p| p.compress_acks = false },
    Mechanism { name: "receive-window autotuning", check: autotuning, off: |p| p.autotune = false },
    Mechanism {
        name: "delayed acknowledgement",
        check: delayed_acknowledgement,
        off: |p| p.ack = AckRule::Each,
    },
    Mechanism { name: "quick acknowledgements at first", check: quick_start, off: |p| p.quick = 0 },
    Mechanism { name: "acknowledgement of what pushes", check: pushed, off: |p| p.ack_pushed = false },
    Mechanism {
        name: "SYN-ACK loss with back-off",
        check: handshake_retransmission,
        off: |p| p.synack_retries = 0,
    },
    Mechanism {
        name: "SYN loss, linear and then backed off",
        check: linear_syn_timeouts,
        off: |p| p.syn_linear = 0,
    },
    Mechanism { name: "FIN", check: fin, off: |p| p.fin = false },
    Mechanism { name: "restart after idle", check: idle_restart, off: |p| p.idle_restart = false },
    Mechanism { name: "timestamps", check: timestamps, off: |p| p.timestamps = false },
];

#[test]
fn each_check_holds_with_its_mechanism_and_fails_without() {
    let mut wrong = Vec::new();
    for m in MECHANISMS {
        let on = (m.check)(Profile::LINUX_6_18_FQ);
        let mut without = Profile::LINUX_6_18_FQ;
        (m.off)(&mut without);
        let off = (m.check)(without);
        let show = |v: &Verdict| v.as_ref().map_or_else(|e| format!("fails: {e}"), |()| "pass".into());
        println!("{:<44} | on: {:<5} | off: {}", m.name, show(&on), show(&off));
        if on.is_err() || off.is_ok() {
            wrong.push(m.name);
        }
    }
    assert!(wrong.is_empty(), "checks that fail with their mechanism, or hold without it: {wrong:?}");
}

/// The numbers of the peer's segments that each ACK acknowledges, after ten segments 5 us apart and a pause.
fn acknowledged(p: &Profile) -> Vec<u64> {
    let mut r = Script::established(p, RTT);
    for n in 0..10 {
        r.peer_data([n]);
        r.wait(Span::micros(5));
    }
    r.wait(Span::millis(1));
    let acks = r.take();
    acks.iter().map(|l| r.acked(&l.segment)).collect()
}

/// With receive offload what arrives within its time is acknowledged as one, and not before that time is
/// over.
#[test]
fn segments_that_arrive_together_are_acknowledged_as_one() {
    let gro = Profile { gro: 65536, gro_wait: Span::micros(50), ..Profile::LINUX_6_18 };
    assert_eq!(acknowledged(&gro), [10]);
    assert_eq!(acknowledged(&Profile::LINUX_6_18), (1..=10).collect::<Vec<_>>());
    // By time: those of 20 us go together.
    let brief = Profile { gro_wait: Span::micros(18), ..gro };
    assert_eq!(acknowledged(&brief), [4, 8, 10]);
    // By size: three full segments fit.
    let small = Profile { gro: 5000, ..gro };
    assert_eq!(acknowledged(&small), [3, 6, 9, 10]);
}

/// What does not continue the merged segments is not merged, and comes after them: a hole is reported at
/// once.
#[test]
fn a_hole_ends_a_merge() {
    let mut r = Script::established(&Profile::LINUX_6_18_GRO, RTT);
    r.peer_data([0, 1, 3]);
    let acks = r.take();
    assert_eq!(acks.iter().map(|l| r.acked(&l.segment)).collect::<Vec<_>>(), [2]);
    r.wait(Span::micros(50));
    let ack = r.take().pop().expect("the segment beyond the hole").segment;
    assert_eq!((r.acked(&ack), r.blocks(&ack)), (2, vec![(3, 4)]));
    // Another timestamp, and less than a full segment, end one too.
    r.peer_data([2]);
    r.wait(Span::millis(1));
    r.take();
    r.peer_data([4]);
    r.wait(Span::micros(999));
    r.peer_data([5]);
    assert_eq!(r.take().iter().map(|l| r.acked(&l.segment)).collect::<Vec<_>>(), [5]);
}

/// Data sent and not acknowledged never exceeds the send buffer, whatever the window; an ACK lets as much go.
#[test]
fn the_send_buffer_bounds_what_is_not_acknowledged() {
    let flight = |p: Profile| {
        let mut s = established(plain(p));
        s.write(100);
        let first = s.data().len();
        s.wait(RTT);
        s.ack(4, &[]);
        (first, s.data().len())
    };
    let p = Profile { tlp: false, ..Profile::LINUX_6_18 };
    assert_eq!(flight(p), (10, 8));
    // Seven segments and a half.
    assert_eq!(flight(Profile { send_buffer: Bytes(7 * 1448 + 724), ..p }), (7, 4));
}

/// An application that reads slowly: its unread data takes space of the buffer, the window shrinks to nothing
/// and is offered again when a sixteenth of the buffer is free, then twice as much each time
/// (`__tcp_select_window`, `tcp_cleanup_rbuf`). Its right edge never moves left.
#[test]
fn the_window_shrinks_while_the_application_reads_slowly() {
    // A segment a millisecond, and a buffer of sixteen.
    let space = 16 * 1448;
    let p = Profile {
        read_rate: Some(Rate(8 * 1_448_000)),
        autotune: false,
        rmem: Bytes(space),
        quick: 100,
        ..Profile::LINUX_6_18
    };
    let mut r = Script::established(&p, RTT);
    r.peer_data(0..16);
    let windows = |r: &mut Script| -> Vec<(f64, u64)> {
        let each = |l: &script::Left| (l.at.as_secs_f64() * 1e3, u64::from(l.segment.window) / 1448);
        r.take().iter().map(each).collect()
    };
    let all = windows(&mut r);
    assert_eq!(all.iter().map(|w| w.1).collect::<Vec<_>>(), (0..16).rev().collect::<Vec<_>>());
    // Nothing more arrives: 1, 2, 4 and 8 segments are free, and then no update is worth an ACK.
    r.wait(Span::millis(40));
    let updates = windows(&mut r);
    assert_eq!(
        updates.iter().map(|w| (w.0.round(), w.1)).collect::<Vec<_>>(),
        [(1.0, 1), (2.0, 2), (4.0, 4), (8.0, 8), (16.0, 16)]
    );
    // Without it the whole buffer is offered at each ACK.
    let mut fast = Script::established(&Profile { read_rate: None, ..p }, RTT);
    fast.peer_data(0..16);
    assert!(windows(&mut fast).iter().all(|w| w.1 == 16));
}
