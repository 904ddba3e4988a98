//! Every startup over every built-in path, and over random paths with every profile: transfers complete, the
//! receiver gets exactly what was written, and no run processes events endlessly. On a random path that loses
//! packets of the handshake, an end may also give it up after its last retransmission; then nothing was
//! transferred.

#[path = "../../sim/tests/common/mod.rs"]
mod common;

use common::{engine, sized};
use proptest::prelude::*;
use slowstart::control::Controller;
use slowstart::registry;
use slowstart::units::{Instant, Span};
use slowstart_sim::engine::{Direction, End, FlowSpec, Sampling};
use slowstart_sim::path::PathSpec;
use slowstart_sim::tcp::endpoint::{Endpoint, State};
use slowstart_sim::tcp::profile::Profile;
use slowstart_study::record::HANDSHAKE_FAILED;
use slowstart_study::run::Job;
use slowstart_study::scenario::{Study, StudyText};

const SIZE: u64 = 300_000;
/// Limit of events of a transfer: some two hundred packets cause a few events each, retransmitted many times.
const EVENTS: u64 = 50_000;

/// Within a day: where ACKs are lost, a retransmission that the receiver has already makes it echo an old timestamp, and the
/// sender takes tens of seconds for an RTT. So does Linux 6.12 at virtual time (`fade`, `outage` and `ack_loss` together).
const LIMIT: Span = Span::secs(86_400);

/// Runs a transfer to its end, including the ACKs of the FINs.
fn complete(path: &str, spec: FlowSpec) {
    assert!(completes(path, spec), "{path}: the handshake failed");
}

/// As [`complete`]; returns false if the handshake failed, as it may if its packets are lost.
fn completes(path: &str, spec: FlowSpec) -> bool {
    let what = format!("{path}, {}, {:?}", spec.profile.name, spec.startup);
    let mut e = engine(path, vec![spec]);
    let limit = Instant::ZERO + LIMIT;
    e.run_until(limit, |e| e.flows[0].truth.completed.is_some() || e.cost.events > EVENTS);
    let f = &e.flows[0];
    if f.handshake_failed() {
        let p = &f.spec.profile;
        let [server, client] = [&f.ends[End::Server], &f.ends[End::Client]];
        let most = |end: &Endpoint<_>, retries| {
            end.state() == State::Failed && u32::from(end.syn_losses()) >= retries
        };
        assert!(most(server, p.synack_retries) || most(client, p.syn_retries + p.syn_linear), "{what}");
        assert_eq!((f.delivered(), f.truth.completed), (0, None), "{what}");
        assert!(e.cost.events <= EVENTS, "{what}: events go on without a connection");
        return false;
    }
    assert!(
        f.truth.completed.is_some(),
        "{what}: incomplete after {} events, {} s",
        e.cost.events,
        e.now().0 / 1_000_000_000
    );
    assert_eq!(f.delivered(), SIZE, "{what}");
    let fin = f.spec.profile.fin;
    // Only the close is left; then nothing more happens.
    e.run_until(limit, |e| e.cost.events > EVENTS);
    let f = &e.flows[0];
    assert!(e.cost.events <= EVENTS, "{what}: events go on after the close");
    assert!(f.ends[f.sender()].tx.done(), "{what}: not all acknowledged");
    assert_eq!(f.ends[f.sender().other()].rx.finished(), fin, "{what}");
    assert_eq!(f.delivered(), SIZE, "{what}");
    assert!(e.done());
    true
}

/// No SYN-ACK arrives, neither those that the server repeats nor those that answer a repeated SYN: the row
/// says so.
#[test]
fn a_handshake_that_is_given_up_is_an_outcome_of_its_own() {
    let of = |lost: u32| {
        let text = StudyText {
            path: format!("rate=2Mbit rtt=90ms queue=30packets drop_synack={lost}"),
            startups: vec!["standard".to_string()],
            size: Some("5MB".to_string()),
            runs: Some(1),
            ..StudyText::default()
        };
        Study::check(&text, None)
            .expect("a study")
            .run(Job { contender: 0, run: 0 }, Sampling::Off, false)
            .row
    };
    let row = of(40);
    assert_eq!((row.completion_s, row.goodput_bps, row.exit), (None, 0, None));
    assert!(row.caveats.iter().any(|c| c == HANDSHAKE_FAILED), "{:?}", row.caveats);
    assert!(!row.caveats.iter().any(|c| c.contains("did not complete")), "{:?}", row.caveats);
    let row = of(1);
    assert!(row.completion_s.is_some() && !row.caveats.iter().any(|c| c == HANDSHAKE_FAILED));
}

#[test]
fn every_startup_over_every_built_in_path() {
    for path in PathSpec::builtins() {
        for entry in registry::all() {
            for profile in [Profile::LINUX_6_18, Profile::IDEAL] {
                complete(path.name, sized(entry.name, profile, SIZE));
            }
        }
    }
}

#[test]
fn every_stack_over_every_built_in_path() {
    for path in PathSpec::builtins() {
        for profile in Profile::ALL {
            for direction in [Direction::Download, Direction::Upload] {
                complete(path.name, FlowSpec { direction, ..sized("standard", *profile, SIZE) });
            }
        }
    }
}

const EXTRAS: &[&str] = &[
    "jitter=30ms",
    "ack_jitter=20ms",
    "vary=20ms vary_period=700ms",
    "handover=2s handover_step=80ms",
    "loss=5%",
    "ack_loss=20%",
    "drop=1,5,10-20,60-66",
    "drop_ack=3-9",
    "drop_syn=2",
    "drop_synack=3",
    "aggregate=12ms",
    "ack_aggregate=14ms",
    "ack_rate=200kbit ack_queue=20packets",
    "random_drop=30%@10kB",
    "gemodel=2%,40%,90%,0.5%",
    "ack_gemodel=5%,50%",
    "fade=80%,for=60ms,every=900ms",
    // Not a divisor of the longest timeout, 120 s: each retransmission would meet an outage.
    "outage=for=400ms,every=3301ms,queue=flushed",
    "reorder=20%,50%,gap=2,delay=9ms",
    "ack_reorder=10%,delay=5ms",
    "second_route=10%,25ms",
    "duplicate=10%",
    "ack_duplicate=10%",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_startup_over_any_path(
        startup in prop::sample::select(registry::all().map(|e| e.name).collect::<Vec<_>>()),
        profile in prop::sample::select(&Profile::ALL[..]),
        rate in prop::sample::select(&["300kbit", "2Mbit", "30Mbit", "1Gbit"][..]),
        rtt in prop::sample::select(&["1ms", "40ms", "300ms", "900ms"][..]),
        queue in prop::sample::select(&["3packets", "20packets", "1bdp", "100ms", "infinite"][..]),
        extras in prop::sample::subsequence(EXTRAS, 0..=6),
        up in any::<bool>(),
        filters in any::<bool>(),
    ) {
        // A BDP of less than a packet is not a queue.
        let queue = if queue == "1bdp" && (rate == "300kbit" || rtt == "1ms") { "5packets" } else { queue };
        let mut path = format!("rate={rate} rtt={rtt} queue={queue} {}", extras.join(" "));
        if filters && path.contains("ack_aggregate") {
            path += " ack_filter=on";
        }
        let direction = if up { Direction::Upload } else { Direction::Download };
        let connected = completes(&path, FlowSpec { direction, ..sized(startup, *profile, SIZE) });
        let loses = ["loss", "drop", "gemodel", "fade", "outage", "ack_rate"];
        prop_assert!(connected || extras.iter().any(|e| loses.iter().any(|l| e.contains(l))), "{}", path);
    }
    /// TSL acts on every handshake in which a SYN-ACK of its server, or a SYN of its client or the answer to
    /// it, was lost, and on no other, whether the timer of the SYN or that of the SYN-ACK expires first, or
    /// both at once.
    #[test]
    fn tsl_acts_on_each_lost_handshake_packet(
        profile in prop::sample::select(&Profile::ALL[..]),
        rtt in prop::sample::select(&["0.1ms", "7ms", "50ms", "450ms"][..]),
        varies in prop::sample::select(&["", "jitter=20ms", "ack_jitter=1us", "ack_aggregate=100001ns", "jitter=100ns"][..]),
        syns in 0_u32..3,
        synacks in 0_u32..4,
        up in any::<bool>(),
    ) {
        let path = format!("rate=10Mbit rtt={rtt} queue=100packets {varies} drop_syn={syns} drop_synack={synacks}");
        let direction = if up { Direction::Upload } else { Direction::Download };
        let mut e = engine(&path, vec![FlowSpec { direction, ..sized("tsl", *profile, 20_000) }]);
        let sender = e.flows[0].sender();
        let limit = Instant::ZERO + Span::secs(120);
        e.run_until(limit, |e| e.flows[0].ends[sender].tx.counters.packets > 0);
        let tx = &e.flows[0].ends[sender].tx;
        prop_assert!(tx.counters.packets > 0, "{}: no data", path);
        // A server is not told of a lost SYN.
        let lost = synacks + if up { syns } else { 0 };
        let expected = (lost > 0).then_some(16 * u64::from(tx.mss()));
        prop_assert_eq!(tx.control().state().ssthresh.map(|s| s.0), expected, "{}, {}", path, profile.name);
    }
}
