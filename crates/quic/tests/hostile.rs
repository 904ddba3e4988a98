//! A law: whatever a stack tells its host, no controller panics, and each keeps its floor of two packets.
//!
//! The stack may let time go backwards, acknowledge packets that were never sent, and give sizes and times of
//! 0, 2^62 and 2^64 - 1. Its calls are plausible for most of a run, so that controllers leave their first
//! state. All kinds of host are tested: of stacks that name packets (noq), that do not (quinn), and that
//! carry the controller's records (s2n-quic).
//!
//! `SLOWSTART_CASES=N` runs N sequences of calls; `SLOWSTART_FUZZ_SECONDS=3600` runs new ones for an hour.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use slowstart::avoidance;
use slowstart::registry::{self, AnyController};
use slowstart::units::{Bytes, Instant, Rate, SendOrder, Span};
use slowstart::view::{PathMemory, Sent, Signal};
use slowstart_quic::host::{Host, INITIAL_PACKETS, Limited};
use std::cell::RefCell;
use std::collections::BTreeSet;

const MSS: u64 = 1200;

/// A time, relative to that of the call before.
#[derive(Copy, Clone, Debug)]
enum When {
    Later(u64),
    Earlier(u64),
    At(u64),
}

/// A packet: one that was sent, counted back from the newest, or one that was not.
#[derive(Copy, Clone, Debug)]
enum Which {
    Sent(usize),
    Never { number: u64, at: u64 },
}

#[derive(Clone, Debug)]
enum What {
    Sent { bytes: u64 },
    Acked { packet: Which, bytes: u64, limited: bool },
    AckEnd { largest: Option<Which> },
    Lost { packet: Which },
    Congestion { packet: Which, persistent: bool, ecn: bool, lost: u64 },
    Spurious,
    CwndLimited,
    Mtu(u64),
    Timer,
    Inflight(u64),
    NewPath,
}

fn extreme() -> impl Strategy<Value = u64> {
    prop_oneof![0..20_u64, Just(1 << 32), Just(1 << 62), Just(u64::MAX)]
}

fn when() -> impl Strategy<Value = When> {
    prop_oneof![
        400 => Just(When::Later(0)),
        400 => (0..60_000_000_u64).prop_map(When::Later),
        20 => (0..5_000_000_000_u64).prop_map(When::Later),
        20 => (0..500_000_000_u64).prop_map(When::Earlier),
        1 => extreme().prop_map(When::At),
    ]
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![40 => Just(MSS), 4 => 0..70_000_u64, 1 => extreme()]
}

fn packet() -> impl Strategy<Value = Which> {
    prop_oneof![
        20 => (0..40_usize).prop_map(Which::Sent),
        1 => (extreme(), extreme()).prop_map(|(number, at)| Which::Never { number, at }),
    ]
}

/// A call; `calm` is how many times rarer than usual losses and larger packets are.
fn what(calm: u32) -> impl Strategy<Value = What> {
    prop_oneof![
        24 * calm => size().prop_map(|bytes| What::Sent { bytes }),
        24 * calm => (packet(), size(), any::<bool>())
            .prop_map(|(packet, bytes, limited)| What::Acked { packet, bytes, limited }),
        20 * calm => proptest::option::of(packet()).prop_map(|largest| What::AckEnd { largest }),
        3 => packet().prop_map(|packet| What::Lost { packet }),
        2 => (packet(), any::<bool>(), any::<bool>(), size())
            .prop_map(|(packet, persistent, ecn, lost)| What::Congestion { packet, persistent, ecn, lost }),
        1 => Just(What::Spurious),
        2 * calm => Just(What::CwndLimited),
        1 => prop_oneof![1000..9000_u64, 0..70_000_u64, extreme()].prop_map(What::Mtu),
        3 * calm => Just(What::Timer),
        1 => size().prop_map(What::Inflight),
        1 => Just(What::NewPath),
    ]
}

fn calls(calm: u32) -> impl Strategy<Value = Vec<(When, What)>> {
    proptest::collection::vec((when(), what(calm)), 1..500)
}

/// How a stack says which packet it means.
#[derive(Copy, Clone, Debug)]
enum Names {
    Numbers,
    Times,
    Records,
}

/// What a stack tells the host of one connection.
#[derive(Clone, Debug)]
struct Stack {
    names: Names,
    /// Whether the host may know the unsent data, an earlier connection, and a pacer.
    unsent: Option<u64>,
    remembered: Option<(u64, u64, u64)>,
    paces: bool,
    limited: Limited,
    rwnd: u64,
    avoidance: usize,
    calls: Vec<(When, What)>,
}

fn stack() -> impl Strategy<Value = Stack> {
    let names = prop_oneof![Just(Names::Numbers), Just(Names::Times), Just(Names::Records)];
    let limited = prop_oneof![Just(Limited::Stack), Just(Limited::Neqo), Just(Limited::Draft)];
    let remembered = (prop_oneof![size(), 0..10_000_000_u64], extreme(), extreme());
    (
        (names, any::<bool>(), limited, 0..avoidance::REGISTRY.len()),
        proptest::option::of(prop_oneof![0..50_000_000_u64, extreme()]),
        proptest::option::of(remembered),
        prop_oneof![Just(u64::MAX), 0..1_000_000_u64, extreme()],
        prop_oneof![calls(1), calls(30)],
    )
        .prop_map(|((names, paces, limited, avoidance), unsent, remembered, rwnd, calls)| Stack {
            names,
            unsent,
            remembered,
            paces,
            limited,
            rwnd,
            avoidance,
            calls,
        })
}

/// A stack that is being played.
struct Play {
    host: Host<AnyController>,
    names: Names,
    now: u64,
    /// The host's record of each packet sent; its place is the packet's number.
    sent: Vec<Sent>,
}

impl Play {
    /// The number and the record of a packet; those of packet 0 if fewer were sent.
    fn find(&self, packet: Which) -> (u64, Sent) {
        match packet {
            Which::Sent(back) => {
                let i = self.sent.len().saturating_sub(back + 1);
                (i as u64, self.sent.get(i).copied().unwrap_or_default())
            }
            Which::Never { number, at } => {
                let bytes = Bytes(number);
                (number, Sent { mark: SendOrder::new(number), at: Instant(at), bytes, ..Sent::default() })
            }
        }
    }

    fn call(&mut self, when: When, what: &What) {
        self.now = match when {
            When::Later(d) => self.now.saturating_add(d),
            When::Earlier(d) => self.now.saturating_sub(d),
            When::At(t) => t,
        };
        let now = Instant(self.now);
        match *what {
            What::Sent { bytes } => {
                let bytes = Bytes(bytes);
                self.sent.push(match self.names {
                    Names::Records => self.host.on_record_sent(now, bytes, false),
                    Names::Numbers | Names::Times => {
                        self.host.on_packet_sent(now, bytes, self.sent.len() as u64);
                        Sent { at: now, ..Sent::default() }
                    }
                });
            }
            What::Acked { packet, bytes, limited } => {
                let (number, sent) = self.find(packet);
                match self.names {
                    Names::Numbers => self.host.on_packet_acked(now, sent.at, number, limited),
                    Names::Times => self.host.on_bytes_acked(now, sent.at, Bytes(bytes), limited),
                    Names::Records => self.host.on_record_acked(now, sent, Bytes(bytes), !limited),
                }
            }
            What::AckEnd { largest } => match self.names {
                Names::Numbers => {
                    let largest = largest.map(|p| self.find(p).0);
                    self.host.on_ack_end(now, largest);
                }
                Names::Times => self.host.on_bytes_ack_end(now),
                Names::Records => {}
            },
            What::Lost { packet } => {
                let (number, sent) = self.find(packet);
                match self.names {
                    Names::Numbers => self.host.on_packet_lost(now, number),
                    Names::Times => self.host.on_bytes_lost(now, sent.at, false, Bytes(MSS)),
                    Names::Records => self.host.on_record_lost(now, sent, false),
                }
            }
            What::Congestion { packet, persistent, ecn, lost } => {
                let sent = self.find(packet).1;
                let signal = match (persistent, ecn) {
                    (true, _) => Signal::Timeout,
                    (_, true) => Signal::Ecn,
                    _ => Signal::Loss,
                };
                match self.names {
                    Names::Numbers => self.host.on_congestion(now, sent.at, signal, Bytes(lost)),
                    Names::Times => self.host.on_bytes_lost(now, sent.at, persistent, Bytes(lost)),
                    Names::Records if ecn => self.host.on_congestion(now, sent.at, Signal::Ecn, Bytes::ZERO),
                    Names::Records => self.host.on_record_lost(now, sent, persistent),
                }
            }
            What::Spurious => self.host.on_spurious(),
            What::CwndLimited => self.host.on_cwnd_limited(),
            What::Mtu(mtu) => self.host.on_mtu(Bytes(mtu)),
            What::Timer => self.host.on_timer(now),
            What::Inflight(bytes) => match self.names {
                Names::Records => self.host.on_discarded(Bytes(bytes)),
                Names::Numbers | Names::Times => self.host.set_inflight(Bytes(bytes)),
            },
            What::NewPath => self.host.on_new_path(),
        }
    }
}

/// Plays `stack` to every startup. The floor of the controller is that of the smallest packets so far: it
/// learns of larger ones with the next event.
fn play(stack: &Stack, seen: &RefCell<BTreeSet<String>>) -> Result<(), TestCaseError> {
    for entry in registry::all() {
        let avoidance = (avoidance::REGISTRY[stack.avoidance].make)();
        let control = entry.algorithm.controller(&avoidance, Bytes(MSS) * INITIAL_PACKETS, 1);
        let mut host = Host::new(control, Instant::ZERO, Bytes(MSS));
        host.paces = stack.paces;
        host.limited = stack.limited;
        host.unsent = stack.unsent.map(Bytes);
        host.rwnd = Bytes(stack.rwnd);
        host.remembered = stack.remembered.map(|(cwnd, rtt, rate)| PathMemory {
            cwnd: Bytes(cwnd),
            rtt: Span(rtt),
            rate: Rate(rate),
        });
        let mut play = Play { host, names: stack.names, now: 0, sent: Vec::new() };
        let (mut mtu, mut least) = (MSS, MSS);
        for (when, what) in &stack.calls {
            play.call(*when, what);
            if let What::Mtu(m) = what {
                mtu = (*m).clamp(1, 1 << 16);
                least = least.min(mtu);
            }
            let (window, cwnd) = (play.host.window().0, play.host.state().cwnd.0);
            prop_assert!(window >= 2 * mtu, "{}: window {window}, packets of {mtu}", entry.name);
            prop_assert!(cwnd >= 2 * least, "{}: cwnd {cwnd}, packets of at least {least}", entry.name);
            prop_assert!(play.host.inflight() <= Bytes(1 << 62), "{}", entry.name);
            let _ = play.host.pacing_rate();
        }
        if let Some(exit) = play.host.exit {
            seen.borrow_mut().insert(format!("{} {}", entry.name, exit.why.name()));
        }
    }
    Ok(())
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|n| n.parse().ok())
}

/// One batch of sequences, which follow from the seed. Returns each startup and reason with which it ended.
fn batch(cases: u32, seed: RngSeed) -> BTreeSet<String> {
    let config = Config { cases, rng_seed: seed, failure_persistence: None, ..Config::default() };
    let seen = RefCell::default();
    if let Err(e) = TestRunner::new(config).run(&stack(), |s| play(&s, &seen)) {
        panic!("seed {seed}: {e}");
    }
    seen.into_inner()
}

#[test]
fn a_hostile_stack_neither_panics_nor_breaks_the_floor() {
    let seen = batch(variable("SLOWSTART_CASES").map_or(150, |n| n as u32), Config::default().rng_seed);
    // The runs reach the ends of startups, by the network and by their own rules; the rule of SEARCH in one
    // of its versions.
    for (startup, why) in [
        ("standard", "loss"),
        ("standard", "ecn"),
        ("search", "timeout"),
        ("search", "rate-flat"),
        ("vegas", "delay"),
        ("bbr", "rate-flat"),
    ] {
        let ends = |s: &&String| s.starts_with(startup) && s.ends_with(&format!(" {why}"));
        assert!(seen.iter().any(|s| ends(&s)), "{startup} {why} is not among {seen:?}");
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the switch states a time on the real clock")]
fn the_same_for_as_long_as_the_switch_says() {
    let Some(seconds) = variable("SLOWSTART_FUZZ_SECONDS") else {
        return println!("skipped: the long form of the hostile stack (SLOWSTART_FUZZ_SECONDS=3600)");
    };
    let begin = std::time::Instant::now();
    let mut seed = 1;
    while begin.elapsed().as_secs() < seconds {
        seed += 1;
        batch(1000, RngSeed::Fixed(seed));
        eprintln!("{} s: {} sequences of calls", begin.elapsed().as_secs(), (seed - 1) * 1000);
    }
}
