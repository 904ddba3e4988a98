//! Captures made by others, with known results. They are reference data, and the tests are skipped where they
//! are absent.

use slowstart_replay::observer::Candidate;
use slowstart_replay::replay::{Options, replay};
use slowstart_replay::transfer::{ExitClass, Transfer};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

fn candidates() -> Arc<[Candidate]> {
    slowstart::startup::REGISTRY
        .iter()
        .map(|e| Candidate { label: e.name.to_string(), startup: (e.make)() })
        .collect()
}

fn read(name: &str) -> Option<Vec<Transfer>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/captures").join(name);
    if !file.exists() {
        // Written directly, because the test harness captures println.
        std::io::stderr().write_all(format!("skipped: {name} absent\n").as_bytes()).expect("stderr");
        return None;
    }
    let options = Options { candidates: candidates(), ..Options::default() };
    let report = replay(&file, &options, |_| {}).expect("a capture");
    assert_eq!(report.summary.incomplete, None);
    Some(report.transfers.into_iter().map(|t| t.row).collect())
}

/// Capture at the server of a download over 43 ms: HyStart left without loss, long before the path was full.
#[test]
fn an_early_exit_without_loss_is_found() {
    let Some(rows) = read("mlab-ndt5-s2c-4c6fb.pcap.gz") else { return };
    let t = rows.iter().max_by_key(|t| t.bytes).expect("a download");
    assert_eq!((t.vantage.as_str(), t.mss_bytes, t.iw_bytes), ("sender", 1188, Some(11_880)));
    let exit = t.exit.as_ref().expect("an exit");
    assert_eq!(exit.evidence, "growth stopped without loss");
    assert!((0.16..0.24).contains(&exit.time_s) && exit.cwnd_bytes / 1188 == 36, "{exit:?}");
    // The first retransmission is at 2.085 s; the ACKs that caused it arrived some milliseconds before.
    assert!(t.first_loss_time_s.is_some_and(|l| (2.07..2.086).contains(&l)));
    assert_eq!(t.class, ExitClass::Early);
    // tshark counts the same: 4 retransmissions and 35 "out of order", which at the sender are
    // retransmissions.
    assert_eq!(t.retransmitted_packets, Some(39));
    // A startup that had not left would have sent more from there on: its prediction ends.
    let standard = t.startups.iter().find(|s| s.startup == "standard").expect("registered");
    assert!(standard.exit.is_none() && standard.valid_until_s.is_some_and(|v| v < 0.25));
}

/// A hundred kilobytes each way, as requests and responses: no exit is reported.
#[test]
fn an_application_limited_transfer_has_no_exit() {
    let Some(rows) = read("mlab-ndt-small-C2DFE.pcap.gz") else { return };
    assert_eq!(rows.len(), 2);
    for t in rows {
        assert_eq!((t.exit, t.unclear.as_deref()), (None, Some("application-limited")));
        let limits = t.limits.expect("known");
        let idle: f64 = limits.iter().filter(|h| h.what == "idle").map(|h| h.until_s - h.from_s).sum();
        assert!(idle > 0.5 && limits.iter().any(|h| h.what == "application"), "{limits:?}");
    }
}

/// Five connections, three of them with data; 51 packets of the second were retransmitted. The third was
/// captured on a segment that its packets crossed twice.
#[test]
fn retransmissions_are_counted_and_duplicate_captures_are_not() {
    let Some(rows) = read("tcptrace-discard-solaris.dmp.gz") else { return };
    let seen: Vec<_> = rows.iter().map(|t| (t.connection, t.retransmitted_packets)).collect();
    assert_eq!(seen[..2], [(3, Some(2)), (4, Some(51))]);
    assert_eq!(rows.last().map(|t| t.connection), Some(5));
    assert!(rows[2].caveats.iter().any(|c| c.contains("captured twice")));
}

#[test]
fn the_receivers_side_is_recognised() {
    if let Some(rows) = read("zeek-ftp-dl.pcap") {
        let t = rows.iter().max_by_key(|t| t.bytes).expect("a download");
        assert_eq!((t.vantage.as_str(), t.retransmitted_packets), ("receiver", Some(0)));
        // The handshake took 43.5 ms; the initial window was three segments.
        assert!(t.min_rtt_s.is_some_and(|r| (0.042..0.046).contains(&r)), "{:?}", t.min_rtt_s);
        assert_eq!(t.iw_bytes, Some(3 * 1448));
        assert!(rows.iter().filter(|t| t.bytes > Some(100_000)).all(|t| t.first_loss_time_s.is_none()));
    }
    if let Some(rows) = read("zeek-206b-bits-dl.pcap") {
        let t = rows.iter().max_by_key(|t| t.bytes).expect("a download");
        assert_eq!(t.vantage, "receiver");
        assert!(
            t.min_rtt_s.is_some_and(|r| (0.07..0.075).contains(&r)) && t.retransmitted_packets > Some(50)
        );
        assert!(t.caveats.iter().any(|c| c.contains("without timestamps")));
    }
}
