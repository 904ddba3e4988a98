//! The queue of the sender's own interface, as the bottleneck or before it.
//!
//! Linux 2.4 took a full queue for congestion (a send-stall), and Restricted
//! Slow-Start was designed to avoid it (Allcock, Hegde & Kettimuthu 2005, section 4).

mod common;

use common::{run, sized};
use slowstart::units::Span;
use slowstart_sim::engine::{End, Engine};
use slowstart_sim::tcp::profile::Profile;

/// Number of stalls of a transfer over 100 Mbit/s and 60 ms with an interface queue of 100 packets.
fn stalls(startup: &str, profile: &str) -> u64 {
    let profile = Profile::named(profile).expect("a profile");
    let path = "rate=100Mbit rtt=60ms queue=100packets link=host";
    let e = run(path, vec![sized(startup, profile, 30_000_000)], Span::secs(60));
    e.flows[0].ends[End::Server].tx.counters.stalls
}

#[test]
fn restricted_slow_start_never_stalls_at_nine_tenths_of_the_queue() {
    assert_eq!(stalls("restricted", "linux-2.4"), 0);
    for startup in ["standard", "hystart", "limited"] {
        assert!(stalls(startup, "linux-2.4") > 0, "{startup}");
    }
}

/// A transfer of 20 MB from a host with an interface of 20 Mbit/s before a path of 100 Mbit/s and 40 ms.
fn behind_a_slow_interface(host_queue: &str, tsq: Option<u8>) -> Engine {
    let profile = Profile { tsq, ..Profile::LINUX_6_18 };
    let path = format!("rate=100Mbit rtt=40ms queue=1bdp host_rate=20Mbit host_queue={host_queue}");
    run(&path, vec![sized("standard", profile, 20_000_000)], Span::secs(30))
}

#[test]
fn small_queues_keep_the_hosts_queue_short() {
    let srtt = |e: &Engine| e.flows[0].ends[End::Server].tx.rtt().srtt().expect("samples");
    for queue in ["pfifo_fast", "fq", "fq_codel"] {
        let e = behind_a_slow_interface(queue, Some(10));
        // 20 MB at 20 Mbit/s less headers are 8.3 s.
        let took = e.flows[0].truth.completed.expect("complete").since(e.flows[0].spec.start);
        assert!(took < Span::millis(8600), "{queue}: {took:?}");
        // Two bursts wait longer than the 5 ms that CoDel aims at.
        let most = if queue == "fq_codel" { 3 } else { 0 };
        assert!(e.flows[0].truth.dropped <= most, "{queue}: {}", e.flows[0].truth.dropped);
        // Two bursts of at most 65 kB wait at most 52 ms.
        assert!(srtt(&e) < Span::millis(95), "{queue}: {:?}", srtt(&e));
        let waited = e.flows[0].truth.peak_queue_delay;
        assert!(waited < Span::millis(60), "{queue}: {waited:?}");
    }
    // Without them the window grows until the queue is full: 1000 packets are 600 ms.
    let e = behind_a_slow_interface("pfifo_fast", None);
    assert!(e.flows[0].truth.dropped > 0 && srtt(&e) > Span::millis(300), "{:?}", srtt(&e));
    // The interface is the bottleneck: it is there that they wait.
    assert!(e.flows[0].truth.peak_queue_delay > Span::millis(300));
}

#[test]
fn a_fast_interface_before_a_bottleneck_changes_little() {
    let took = |host: &str| {
        let path = format!("rate=50Mbit rtt=40ms queue=1bdp {host}");
        let e = run(&path, vec![sized("hystart", Profile::LINUX_6_18, 20_000_000)], Span::secs(30));
        e.flows[0].truth.completed.expect("complete").since(e.flows[0].spec.start)
    };
    let (without, with) = (took(""), took("host_rate=1Gbit host_queue=fq_codel"));
    let difference = without.0.abs_diff(with.0);
    assert!(difference < without.0 / 20, "{without:?} and {with:?}");
}

#[test]
fn flows_of_one_host_share_its_interface_by_its_discipline() {
    let web = |queue: &str| {
        let path = format!("rate=100Mbit rtt=40ms queue=1bdp host_rate=20Mbit host_queue={queue}");
        let profile = Profile { tsq: None, ..Profile::LINUX_6_18 };
        let mut small = sized("standard", profile, 100_000);
        small.start = slowstart::units::Instant::ZERO + Span::secs(5);
        let e = run(&path, vec![sized("standard", profile, 30_000_000), small], Span::secs(30));
        e.flows[1].truth.completed.expect("complete").since(e.flows[1].spec.start)
    };
    // Without small queues a bulk flow fills the interface's queue; fq lets the other flow pass it.
    let (fifo, fq) = (web("pfifo_fast"), web("fq"));
    assert!(fq * 2 < fifo, "{fq:?} with fq, {fifo:?} with pfifo_fast");
}
