//! ns-3's own figures, with ns-3's rules on.
//!
//! Measured with ns-3.48 and 3.44 (a dumbbell of 100 Mb/s and 100 ms, a queue of 1.25 MB, packets of 1500
//! bytes, every second acknowledged): `TcpCubic` leaves at 1.0012 s with 1987 packets, reaches 2054, and
//! loses 389 in its first overshoot; with Linux's thresholds at 0.8511 s with 995; `TcpLinuxReno` loses 1667
//! of a window of 3331, `TcpNewReno` (a segment for each acknowledgement) 833 of 2498.

use crate::cases::Case;

/// The first case of this congestion control, until the first overshoot is over.
fn case(congestion_control: &str) -> Case {
    let case = Case::all().into_iter().find(|c| c.congestion_control == congestion_control);
    Case { duration_s: 2.5, ..case.expect("a case") }
}

fn close(what: &str, ours: f64, theirs: f64, within: f64) {
    assert!((ours - theirs).abs() <= within, "{what}: {ours}, in ns-3 {theirs}");
}

#[test]
fn cubic_leaves_where_ns3_leaves() {
    // To the last digit that was printed.
    let s = case("TcpCubic").ours();
    let (at, cwnd) = s.exit().expect("it leaves");
    close("exit", at, 1.0012, 0.000_05);
    close("window", cwnd, 1987.0, 0.5);
    assert_eq!(s.drops, 389);
    let (at, cwnd) = Case { startup: "hystart", ..case("TcpCubic") }.ours().exit().expect("it leaves");
    close("exit with Linux's thresholds", at, 0.8511, 0.000_05);
    close("window with Linux's thresholds", cwnd, 995.0, 0.5);
}

#[test]
fn reno_loses_what_ns3_loses() {
    for (class, at, window, drops) in
        [("TcpLinuxReno", 1.1630, 3331.0, 1667), ("TcpNewReno", 1.7060, 2498.0, 833)]
    {
        let s = case(class).ours();
        let (seconds, cwnd) = s.exit().expect("it leaves");
        println!("{class}: {seconds} s, {cwnd} packets, {} drops", s.drops);
        close(class, seconds, at, 0.001);
        close(class, cwnd, window, 3.0);
        assert!(s.drops.abs_diff(drops) <= 3, "{class}: {} drops, in ns-3 {drops}", s.drops);
    }
}
