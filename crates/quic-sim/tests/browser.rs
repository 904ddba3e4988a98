//! Connections of a browser under neqo's rule for senders that are limited by their application.

use slowstart::units::Span;
use slowstart_league::browser;
use slowstart_quic_sim::{Knobs, Quic, Session, Which, Write};
use slowstart_study::engines::Engine as _;
use slowstart_study::run::Job;
use slowstart_study::scenario::{Study, StudyText};

/// A packet, and the initial window of ten.
const PACKET: u64 = 1252;

fn study(path: &str, startup: &str, seed: u64) -> Study {
    let text = StudyText {
        path: path.into(),
        startups: vec![startup.into()],
        runs: Some(1),
        seed: Some(seed),
        ..StudyText::default()
    };
    Quic::new(Which::Noq, "").unwrap().study(&text, None).unwrap()
}

fn session(settings: &str, path: &str, startup: &str, seed: u64, writes: &[Write]) -> Session {
    let knobs = Knobs::read(Which::Noq, settings).unwrap();
    let job = Job { contender: 0, run: 0 };
    Which::Noq.session(&knobs, &study(path, startup, seed), job, writes, Span::secs(3600)).unwrap()
}

fn neqo(path: &str, startup: &str, writes: &[Write]) -> Session {
    session("mtu=1252,limited=neqo", path, startup, 1, writes)
}

fn burst(bytes: u64) -> Write {
    Write { wait: Span::millis(500), bytes }
}

const PATH: &str = "rate=50Mbit rtt=50ms queue=2bdp";

/// Half of the initial window is five packets: the sixth packet of a burst is the first to use the window.
#[test]
fn a_window_grows_once_half_of_it_is_in_flight() {
    for startup in ["standard", "hystart++:skip=paced", "search-neqo:skip=paced"] {
        let few = neqo(PATH, startup, &[burst(4 * 1200); 50]);
        assert!(few.is_limited() && few.took.len() == 50, "{startup}: {few:?}");
        assert_eq!(few.window.0, 10 * PACKET, "{startup}");
        let more = neqo(PATH, startup, &[burst(7 * 1200); 1]);
        assert!(!more.is_limited(), "{startup}: {more:?}");
        // What was acknowledged is what the window earned, at most.
        assert!(more.window.0 <= 10 * PACKET + 8 * PACKET, "{startup}: {more:?}");
    }
}

/// The stack's own rule differs: see the reference of the setting.
#[test]
fn the_rule_is_that_of_the_setting() {
    let stack = session("mtu=1252", PATH, "standard", 1, &[burst(7 * 1200); 1]);
    let neqo = neqo(PATH, "standard", &[burst(7 * 1200); 1]);
    assert_ne!(stack.window, neqo.window);
}

/// A transfer that uses its window is not held back by the rule: it doubles until the queue overflows, as a
/// download does.
#[test]
fn an_upload_is_not_limited() {
    let upload = neqo(PATH, "standard", &[burst(10_000_000)]);
    let exit = upload.exit.expect("it leaves");
    assert_eq!(exit.why.name(), "loss");
    // 50 Mbit/s, 50 ms and two more BDP hold 730 packets.
    assert!((700..1500).contains(&(exit.detected_cwnd.0 / PACKET)), "{exit:?}");
    assert!(upload.capacity.is_some_and(|at| at < exit.at));
}

/// Of a fixed sample: each connection ends; one that never had half of its initial window in flight is
/// limited, and leaves by no rule; the same connection again is the same to the last
/// counter.
#[test]
fn a_sample_of_the_population_obeys_the_laws() {
    let play = |n: u32, startup: &str| {
        let c = browser::connection(11, n);
        let writes: Vec<Write> = c.writes.iter().map(|w| Write { wait: w.wait, bytes: w.bytes }).collect();
        let s = session("mtu=1252,limited=neqo", &c.path, startup, c.seed, &writes);
        assert!(s.closed.is_none() && s.took.len() == writes.len(), "{n}, {startup}: {s:?}");
        s
    };
    let (mut limited, mut grown) = (0, 0);
    for n in 0..60 {
        for startup in ["standard", "hystart++:skip=paced", "search-neqo:skip=paced"] {
            let s = play(n, startup);
            let by_rule = s.exit.is_some_and(|e| !e.why.by_congestion());
            if s.counters.peak_inflight.0 < 5 * PACKET {
                assert!(s.is_limited() && !by_rule, "{n}, {startup}: {s:?}");
            }
            if n < 10 {
                assert_eq!(s, play(n, startup), "{n}, {startup}");
            }
            if s.is_limited() {
                limited += 1;
            } else {
                grown += 1;
            }
        }
    }
    assert!(limited > grown && grown > 0, "{limited} of 180");
}
