//! Exit points of `HyStart` and SEARCH without loss: the tables of `docs/evidence/algorithms.md` 6.1 and
//! 6.1b, in BDPs of 1500-byte packets, with profile `ideal` and an infinite queue.
//!
//! The tables are printed to a hundredth of a BDP, and their window includes the growth of the ACK at which
//! the startup exits; ours is the window before that ACK. So ours plus that growth, one packet or two, must
//! equal the printed figure to within its rounding and the growth of one more ACK, which is less than the
//! packets that one ACK releases.
//!
//! Table 6.1b needs one parameter: its receiver has no timer for the odd packet of a flight, which waits for
//! the next flight (`delack` longer than the RTT; RFC 1122 allows 500 ms). With the 40 ms timer of Linux an
//! odd packet gets an ACK of its own, growth is a little faster and trains differ; those figures are ours,
//! and are tested below beside the table's.

#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]

#[path = "../../sim/tests/common/mod.rs"]
mod common;

use common::{flow, run_to_exit, with};
use slowstart::control::Exited;
use slowstart::step::Exit;
use slowstart::units::Span;
use slowstart_sim::tcp::profile::Profile;

struct Network {
    mbit: u64,
    rtt_ms: u64,
}

impl Network {
    /// The BDP, in packets of 1500 bytes.
    fn bdp(&self) -> f64 {
        (self.mbit * self.rtt_ms) as f64 / 12.0
    }

    fn exit(&self, startup: &str, profile: Profile) -> Option<Exited> {
        let path = format!("rate={}Mbit rtt={}ms queue=infinite ack_jitter=0", self.mbit, self.rtt_ms);
        let e = run_to_exit(&path, vec![flow(startup, profile)], Span::millis(40 * self.rtt_ms));
        e.flows[0].truth.exit
    }

    /// The window in segments at which the exit was decided.
    fn window(&self, startup: &str, profile: Profile) -> Option<f64> {
        self.exit(startup, profile).map(|e| e.detected_cwnd.0 as f64 / 1448.0)
    }
}

const NETWORKS: [Network; 5] = [
    Network { mbit: 50, rtt_ms: 40 },
    Network { mbit: 100, rtt_ms: 106 },
    Network { mbit: 10, rtt_ms: 600 },
    Network { mbit: 144, rtt_ms: 600 },
    Network { mbit: 400, rtt_ms: 160 },
];

/// Half a hundredth of a BDP: the rounding of the tables' two decimals.
const ROUNDING: f64 = 0.005;

/// Prints our value beside the table's; returns the line if they differ by more than its rounding and the
/// growth of one ACK.
fn compare(net: &Network, what: &str, ours: Option<f64>, earns: f64, table: Option<f64>) -> Option<String> {
    let bdp = net.bdp();
    let show = |v: Option<f64>| v.map_or("never".to_string(), |v| format!("{v:.4}"));
    let ours = ours.map(|w| (w + earns) / bdp);
    let line = format!(
        "{} Mbit/s, {} ms, {what}: {} BDP, in the table {}",
        net.mbit,
        net.rtt_ms,
        show(ours),
        show(table)
    );
    println!("{line}");
    let same = match (ours, table) {
        (Some(o), Some(t)) => (o - t).abs() <= ROUNDING + earns / bdp,
        (o, t) => o == t,
    };
    (!same).then_some(line)
}

#[test]
fn table_6_1_each_packet_acknowledged() {
    let columns = [
        "search-2.0",
        "search:drain=off",
        "search-2.0:look_back=initial",
        "search:drain=off,look_back=initial",
        "hystart",
        "hystart-ns3",
        "hystart-paper",
    ];
    let table = [
        [Some(6.41), Some(5.70), Some(3.94), Some(2.89), Some(1.47), Some(2.93), Some(1.47)],
        [Some(6.71), Some(5.31), Some(3.20), Some(3.20), Some(1.23), Some(2.45), Some(1.23)],
        [Some(6.49), Some(5.79), None, None, Some(1.14), Some(2.29), Some(1.14)],
        [Some(6.47), Some(5.77), Some(3.67), Some(2.97), Some(1.21), Some(2.42), Some(1.21)],
        [Some(6.62), Some(5.22), None, None, Some(1.46), Some(2.92), Some(1.46)],
    ];
    let mut wrong = Vec::new();
    for (net, row) in NETWORKS.iter().zip(table) {
        for (column, cell) in columns.iter().zip(row).filter(|c| c.1.is_some()) {
            let ours = net.window(column, Profile::IDEAL);
            wrong.extend(compare(net, column, ours, 1.0, cell));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn byte_and_ack_counting_agree_if_each_packet_is_acknowledged() {
    for net in &NETWORKS[..3] {
        for startup in ["hystart", "search-2.0", "search"] {
            let by_bytes = with(Profile::IDEAL, &[("growth", "bytes")]);
            assert_eq!(net.exit(startup, Profile::IDEAL), net.exit(startup, by_bytes), "{startup}");
        }
    }
}

/// The drain changes the window with which SEARCH exits, not when it decides: down to what was delivered in
/// the last initial RTT, three bins of 0.35 RTT, at the link's rate.
#[test]
fn the_drain_decides_at_the_same_time_and_exits_with_the_bdp() {
    for net in &NETWORKS {
        let plain = net.exit("search:drain=off", Profile::IDEAL).expect("an exit");
        let drained = net.exit("search", Profile::IDEAL).expect("an exit");
        assert_eq!((plain.detected_at, plain.detected_cwnd), (drained.detected_at, drained.detected_cwnd));
        assert_eq!(plain.exit_cwnd, plain.detected_cwnd);
        assert_eq!((plain.why, drained.why), (Exit::RateFlat, Exit::RateFlat));
        let left = drained.exit_cwnd.0 as f64 / 1448.0 / net.bdp();
        // Bins are sized by the first RTT sample, which includes the transmission time of a packet; one ACK
        // at each edge.
        let edges = 2.0 / net.bdp();
        let first = 1.0 + 12.0 / (net.mbit * net.rtt_ms) as f64;
        assert!((left - 1.05 * first).abs() <= edges, "{left} BDP");
    }
}

const GROWTHS: [(&str, f64); 2] = [("ack", 1.0), ("bytes", 2.0)];

fn every_second(delack: &str, growth: &str) -> Profile {
    with(Profile::IDEAL, &[("ack", "delayed"), ("delack", delack), ("growth", growth)])
}

const COLUMNS_B: [&str; 4] = ["search-2.0", "search:drain=off,threshold=0.35", "search:drain=off", "hystart"];

/// ESS is not affected: its train spans the same bytes in the same time.
#[test]
fn ess_in_table_6_1b() {
    let mut wrong = Vec::new();
    let table = [[1.05, 1.13], [1.01, 1.03], [1.00, 1.00]];
    for (net, row) in [&NETWORKS[0], &NETWORKS[1], &NETWORKS[3]].into_iter().zip(table) {
        for ((growth, earns), cell) in GROWTHS.into_iter().zip(row) {
            let ours = net.window("ess", every_second("10s", growth));
            wrong.extend(compare(net, &format!("{growth}, ess"), ours, earns, Some(cell)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn table_6_1b_every_second_packet_acknowledged() {
    // By network, then by growth: one segment per ACK, and all bytes acknowledged.
    let table = [
        [[Some(0.44), None, Some(4.00), Some(0.91)], [Some(6.44), Some(6.44), Some(5.74), Some(1.49)]],
        [[Some(2.76), None, Some(3.81), Some(0.87)], [Some(6.72), Some(6.72), Some(5.31), Some(1.23)]],
        [[Some(2.95), None, Some(3.83), Some(0.83)], [Some(6.47), Some(6.47), Some(5.77), Some(1.21)]],
    ];
    let mut wrong = Vec::new();
    for (net, rows) in [&NETWORKS[0], &NETWORKS[1], &NETWORKS[3]].into_iter().zip(table) {
        for ((growth, earns), row) in GROWTHS.into_iter().zip(rows) {
            for (column, cell) in COLUMNS_B.iter().zip(row) {
                // Longer than any RTT here: no timer.
                let ours = net.window(column, every_second("10s", growth));
                wrong.extend(compare(net, &format!("{growth}, {column}"), ours, earns, cell));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// With the delayed-ACK timer of Linux, where it is shorter than the RTT: the last packet of a flight of odd
/// size is acknowledged 40 ms late and alone.
///
/// - SEARCH 2.0 assumes doubling, and its shortfall at a growth of 1.5 is 1 - 1.5/2 = 0.25 without any queue.
///   The late ACKs count in later bins and raise it above 0.35 as soon as there is enough history: the false
///   exit of the 50 Mbit/s row (where the RTT is 40 ms, so that no timer fires), at some 80 packets.
/// - SEARCH 4.0 at 0.35 never exits, with or without the timer: its shortfall stays at 1 - 1/1.5 = 0.33.
/// - SEARCH 4.0 at 0.26 and `HyStart` exit in the same round as without the timer, or in the one before.
#[test]
fn a_delayed_acknowledgement_timer_of_40_ms_moves_table_6_1b() {
    let mut wrong = Vec::new();
    let ours = [[Some(0.089), None, Some(3.558), Some(0.919)], [Some(0.011), None, Some(3.794), Some(0.891)]];
    for (net, row) in [&NETWORKS[1], &NETWORKS[3]].into_iter().zip(ours) {
        for (column, cell) in COLUMNS_B.iter().zip(row) {
            let got = net.window(column, every_second("40ms", "ack"));
            wrong.extend(compare(net, &format!("timer, {column}"), got, 1.0, cell));
        }
        let exit = net.exit("search-2.0", every_second("40ms", "ack")).expect("an exit");
        assert!(exit.detected_cwnd < slowstart::units::Bytes(81 * 1448), "{exit:?}");
    }
    // No timer fires within an RTT of 40 ms.
    for column in COLUMNS_B {
        let [with, without] = ["40ms", "10s"].map(|d| NETWORKS[0].exit(column, every_second(d, "ack")));
        assert_eq!(with.map(|e| e.detected_cwnd), without.map(|e| e.detected_cwnd), "{column}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Exits on built-in paths, as docs/evidence/algorithms.md lists them. `SLOWSTART_BLESS=1` writes them anew.
#[test]
fn the_document_has_the_exits_of_runs() {
    use slowstart_sim::engine::Sampling;
    use slowstart_study::run::Job;
    use slowstart_study::scenario::{Study, StudyText};
    use slowstart_study::words::two_digits;
    let exits = |path: &str, startup: &str, profile: &str| {
        let text = StudyText {
            path: path.into(),
            startups: vec![startup.into()],
            profile: Some(profile.into()),
            size: Some("20MB".into()),
            runs: Some(5),
            ..StudyText::default()
        };
        let study = Study::check(&text, None).unwrap_or_else(|e| panic!("{e}"));
        let bdps = |run: u32| {
            let row = study.run(Job { contender: 0, run }, Sampling::Off, false).row;
            row.exit.map(|e| e.detected_cwnd_bytes as f64 / row.bdp_bytes as f64)
        };
        let all: Vec<f64> = (0..5).filter_map(bdps).collect();
        let of = |f: fn(f64, f64) -> f64| two_digits(all.iter().copied().reduce(f).unwrap_or(f64::NAN));
        let (least, most) = (of(f64::min), of(f64::max));
        if least == most { format!("{least} on `{path}`") } else { format!("{least} to {most} on `{path}`") }
    };
    let mut wanted = String::from("\n");
    for (startup, profile, paths) in [
        ("hystart", "linux-6.18", &["geo", "leo", "lte", "transatlantic"][..]),
        ("ess", "linux-6.18-fq", &["fiber", "transatlantic", "lte", "leo"]),
        ("stopeg", "ideal", &["fiber", "transatlantic"]),
        ("stopeg", "linux-6.18-fq", &["fiber", "transatlantic"]),
        ("suss", "linux-6.18", &["fiber", "transatlantic", "geo"]),
        ("vegas", "ideal", &["transatlantic"]),
        ("vegas-linux", "ideal", &["fiber", "transatlantic"]),
        ("packet-pair", "linux-6.18", &["transatlantic", "leo"]),
    ] {
        let each: Vec<String> = paths.iter().map(|p| exits(p, startup, profile)).collect();
        wanted = format!("{wanted}- `{startup}` (`{profile}`): {}\n", each.join(", "));
    }
    wanted.push('\n');
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/evidence/algorithms.md");
    let text = std::fs::read_to_string(file).expect("the document");
    let (before, rest) = text.split_once("<!-- exits -->\n").expect("the begin of the list");
    let (shown, after) = rest.split_once("<!-- end of exits -->").expect("its end");
    if std::env::var_os("SLOWSTART_BLESS").is_some() {
        std::fs::write(file, format!("{before}<!-- exits -->\n{wanted}<!-- end of exits -->{after}"))
            .expect("written");
    } else {
        assert_eq!(shown, wanted, "docs/evidence/algorithms.md is not what runs give");
    }
}
