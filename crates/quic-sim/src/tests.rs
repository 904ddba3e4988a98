//! What the stacks tell their controllers on paths that provoke it.

use super::which::prepared;
use super::*;
use slowstart_quic::host::{Counters, Limited};
use slowstart_study::run::Job;
use slowstart_study::scenario::StudyText;

/// Runs a download of standard slow start; returns the host's counters, its exit, its packet size and the
/// row's profile.
fn told<S: Stack>(path: &str, size: &str, knobs: &str) -> (Counters, Option<&'static str>, u64, f64) {
    let text = StudyText {
        path: path.into(),
        startups: vec!["standard".into()],
        size: Some(size.into()),
        runs: Some(1),
        ..StudyText::default()
    };
    let study = Study::check(&text, None).unwrap();
    let (_, knobs) = Knobs::parse(knobs).unwrap();
    let mut t = prepared::<S>(&knobs, &study, Job { contender: 0, run: 0 }, false).unwrap();
    t.run(Instant::ZERO + Span::secs(60)).unwrap();
    let completed = t.observed.completed.expect("it completes").since(Instant::ZERO).as_secs_f64();
    let handle = t.handle.unwrap();
    let host = handle.lock();
    (host.counters, host.exit.map(|e| e.why.name()), host.mss().0, completed)
}

#[test]
fn losses_are_told_as_losses() {
    for told in [told::<noq::Noq>, told::<quinn::Quinn>] {
        let (counters, exit, ..) = told("rate=50Mbit rtt=50ms queue=0.5bdp", "5MB", "noq");
        assert_eq!(exit, Some("loss"));
        assert!(counters.lost_packets > 0 && counters.episodes > 0);
        assert_eq!((counters.ecn_episodes, counters.spurious, counters.persistent), (0, 0, 0));
    }
}

/// Packets wait up to 100 ms in the queue, and are marked once they wait 5 ms. Without ECN they are never
/// dropped.
#[test]
fn marks_are_told_as_marks() {
    let path = "rate=50Mbit rtt=50ms queue=2bdp mark=5ms";
    for told in [told::<noq::Noq>, told::<quinn::Quinn>] {
        let (counters, exit, ..) = told(path, "10MB", "noq,ecn=on");
        assert_eq!(exit, Some("ecn"));
        assert!(counters.ecn_episodes > 0);
        assert_eq!(counters.lost_packets, 0);
        // A round of marks is one reduction: over some 3 s and round trips above 50 ms.
        assert!(counters.ecn_episodes < 60, "{}", counters.ecn_episodes);
        let (counters, ..) = told(path, "10MB", "noq");
        assert_eq!(counters.ecn_episodes, 0);
    }
}

/// Packets are overtaken by 12 ms of later ones: more than three packets and less than a ninth of the round
/// trip, so they are declared lost and then acknowledged. noq tells that the loss was spurious; quinn cannot.
#[test]
fn spurious_losses_are_told_by_noq() {
    let path = "rate=50Mbit rtt=100ms queue=4bdp second_route=1%,12ms";
    let (counters, ..) = told::<noq::Noq>(path, "5MB", "noq");
    assert!(counters.lost_packets > 0 && counters.spurious > 0, "{counters:?}");
    let (counters, ..) = told::<quinn::Quinn>(path, "5MB", "noq");
    assert!(counters.lost_packets > 0 && counters.spurious == 0, "{counters:?}");
}

/// Nothing passes for two seconds, and what waits is lost: three probe timeouts of lost packets are
/// persistent congestion (RFC 9002 §7.6), and the download goes on with two packets.
#[test]
fn an_outage_is_told_as_persistent_congestion() {
    for told in [told::<noq::Noq>, told::<quinn::Quinn>] {
        let path = "rate=20Mbit rtt=40ms queue=4bdp outage=at=300ms,for=4s,queue=flushed";
        let (counters, _, _, completed) = told(path, "5MB", "noq");
        assert!(counters.persistent > 0, "{counters:?}");
        assert!(completed > 4.3, "{completed}");
    }
}

/// The size of packets is a knob; the controller counts with it.
#[test]
fn the_packet_size_is_that_of_the_knob() {
    for told in [told::<noq::Noq>, told::<quinn::Quinn>] {
        let path = "rate=20Mbit rtt=40ms queue=4bdp";
        let (small, _, mss, _) = told(path, "2MB", "noq");
        assert_eq!(mss, 1200);
        let (large, _, mss, _) = told(path, "2MB", "noq,mtu=1472");
        assert_eq!(mss, 1472);
        assert!(large.packets < small.packets, "{large:?} {small:?}");
    }
}

/// With discovery, the packets after the handshake grow to what probes find: 1452 bytes, the most that both
/// stacks try.
#[test]
fn a_larger_packet_size_is_told_when_it_is_found() {
    for told in [told::<noq::Noq>, told::<quinn::Quinn>] {
        let path = "rate=20Mbit rtt=40ms queue=4bdp";
        let (found, _, mss, _) = told(path, "2MB", "noq,mtu=discover");
        assert_eq!(mss, 1452);
        let (small, ..) = told(path, "2MB", "noq");
        assert!(found.packets < small.packets, "{found:?} {small:?}");
    }
}

/// Runs 0.4 s of a download, moves the client, and runs to the end. Returns the window at the move, and that
/// of the connection's newest controller 30 ms later, when the server has received packets from the new
/// address.
fn moved<S: Stack>(to: SocketAddr) -> (u64, u64) {
    let text = StudyText {
        path: "rate=50Mbit rtt=40ms queue=2bdp".into(),
        startups: vec!["search".into()],
        size: Some("5MB".into()),
        runs: Some(1),
        ..StudyText::default()
    };
    let study = Study::check(&text, None).unwrap();
    let mut t = prepared::<S>(&Knobs::default(), &study, Job { contender: 0, run: 0 }, false).unwrap();
    let ms = |n| Instant::ZERO + Span::millis(n);
    t.run(ms(400)).unwrap();
    let before = t.factory.newest().unwrap().lock().window().0;
    t.stack.move_client(to);
    t.run(ms(430)).unwrap();
    let after = t.factory.newest().unwrap().lock().window().0;
    t.run(ms(20_000)).unwrap();
    assert!(t.observed.completed.is_some_and(|at| at < ms(3000)), "{:?}", t.observed.completed);
    (before, after)
}

/// A new port is a NAT that forgot the old one: the congestion state stays (RFC 9000 §9.4).
#[test]
fn a_connection_whose_port_changes_keeps_its_window() {
    let to = SocketAddr::new(address(CLIENT).ip(), 1000);
    for moved in [moved::<noq::Noq>, moved::<quinn::Quinn>] {
        let (before, after) = moved(to);
        assert!(before > 100_000 && after >= before, "{before} {after}");
    }
}

/// quinn and noq copy a controller for a new port of the peer, and to show it to a program that asks for the
/// congestion state. A host that the program watches goes to the copy with the copy's first event; one that
/// the stack owns is copied.
#[test]
#[allow(clippy::disallowed_methods, reason = "only differences count")]
fn a_copy_to_look_at_changes_nothing() {
    use noq_proto::congestion::ControllerFactory as _;
    use quinn_proto::congestion::ControllerFactory as _;
    let quinn = |f: &Arc<Factory>, now| Arc::new(slowstart_quinn::Quinn::new(f.clone())).build(now, 1200);
    let noq = |f: &Arc<Factory>, now| Arc::new(slowstart_noq::Noq::new(f.clone())).build(now, 1200);
    let now = StdInstant::now();
    let watched = || Arc::new(Factory::named("search").unwrap().watched());
    let inflight = |factory: &Factory| factory.newest().unwrap().lock().inflight().0;

    let factory = watched();
    let mut first = quinn(&factory, now);
    first.on_sent(now, 1200, 0);
    let mut copy = first.clone_box();
    assert_eq!((inflight(&factory), copy.window()), (1200, first.window()));
    copy.on_sent(now, 1000, 1);
    copy.on_sent(now, 1000, 2);
    assert_eq!(inflight(&factory), 2000);

    let factory = watched();
    let mut first = noq(&factory, now);
    first.on_packet_sent(now, 1200, 0);
    let mut copy = first.clone_box();
    assert_eq!((inflight(&factory), copy.window()), (1200, first.window()));
    copy.on_packet_sent(now, 1000, 1);
    copy.on_packet_sent(now, 1000, 2);
    assert_eq!(inflight(&factory), 2000);

    let alone = Arc::new(Factory::named("search").unwrap());
    let (mut a, mut b) = (quinn(&alone, now), noq(&alone, now));
    assert!(alone.newest().is_none());
    let copies = (a.clone_box(), b.clone_box());
    a.on_mtu_update(1400);
    b.on_mtu_update(1400);
    assert_eq!((a.initial_window(), b.initial_window()), (14_000, 14_000));
    assert_eq!((copies.0.initial_window(), copies.1.initial_window()), (12_000, 12_000));
}

/// Another address is another path: its controller begins with the initial window (RFC 9000 §9.4).
#[test]
fn a_connection_that_migrates_begins_again() {
    let to = SocketAddr::from((Ipv4Addr::new(10, 0, 0, 9), 443));
    for moved in [moved::<noq::Noq>, moved::<quinn::Quinn>] {
        let (before, after) = moved(to);
        assert!(before > 100_000, "{before}");
        assert_eq!(after, 12_000);
    }
}

/// The pacing rate in slow start is that of the knob, and a rate of half a window a round trip makes it slow.
#[test]
fn slow_start_is_paced_at_the_gain_of_the_knob() {
    let run = |gain: u32| {
        let text = StudyText {
            path: "rate=1Gbit rtt=100ms queue=1bdp".into(),
            startups: vec!["standard".into()],
            size: Some("2MB".into()),
            runs: Some(1),
            ..StudyText::default()
        };
        let study = Study::check(&text, None).unwrap();
        let knobs = Knobs { gain, ..Knobs::default() };
        let mut t = prepared::<noq::Noq>(&knobs, &study, Job { contender: 0, run: 0 }, false).unwrap();
        t.sampling = Sampling::EachAck;
        t.run(Instant::ZERO + Span::secs(60)).unwrap();
        let completed = t.observed.completed.expect("it completes").since(Instant::ZERO).as_secs_f64();
        // The path has no queue to speak of: the smoothed round trip is 100 ms throughout.
        for s in t.observed.trace.samples.iter().filter(|s| s.rtt_s.is_some()) {
            let windows = s.pacing_bps.unwrap() as f64 / 8.0 * 0.1 / s.cwnd_bytes as f64;
            assert!((windows / (f64::from(gain) / 100.0) - 1.0).abs() < 0.05, "{windows} at {gain} %");
        }
        completed
    };
    let (half, usual) = (run(50), run(200));
    assert!(half > 1.5 * usual, "{half} {usual}");
}

/// In clear, each packet has the size and the time that it has encrypted.
#[test]
fn a_null_cipher_changes_no_row() {
    for path in ["rate=50Mbit rtt=50ms queue=1bdp", "rate=5Mbit rtt=200ms queue=1bdp loss=0.5%"] {
        assert_eq!(told::<noq::Noq>(path, "3MB", "noq"), told::<noq::Noq>(path, "3MB", "noq,crypto=null"));
    }
}

#[test]
fn flow_control_limits_if_asked_to() {
    let path = "rate=50Mbit rtt=100ms queue=1bdp";
    for told in [told::<noq::Noq>, told::<quinn::Quinn>] {
        // 100 kB a round trip: 5 MB take 50 of them.
        let (.., limited) = told(path, "5MB", "noq,window=100000");
        let (.., free) = told(path, "5MB", "noq");
        assert!(limited > 4.0 && free < 2.0, "{limited} {free}");
    }
}

#[test]
fn knobs_that_are_unknown_are_refused() {
    let error = |text: &str| Knobs::parse(text).unwrap_err().to_string();
    assert_eq!(error("quiche"), r#"engine: found the stack "quiche", expected quinn or noq"#);
    assert!(error("noq,mtu=100").contains(r#"found "mtu=100", expected crypto=tls or null"#));
    assert_eq!(error("quinn,crypto=null"), "engine: crypto=null is written for quic:noq only");
    let (which, knobs) = Knobs::parse("noq,crypto=null,ecn=on,acks=4,mtu=1472,window=5000").unwrap();
    assert_eq!(which, Which::Noq);
    assert_eq!(knobs.label(), ",crypto=null,ecn=on,mtu=1472,acks=4,window=5000");
    assert!(error("noq,limited=yes").contains("limited=stack, neqo or draft"));
    let (_, knobs) = Knobs::parse("noq,limited=neqo").unwrap();
    assert_eq!((knobs.limited, knobs.label().as_str()), (Limited::Neqo, ",limited=neqo"));
    let (_, knobs) = Knobs::parse("noq,mtu=1472,mtu=discover").unwrap();
    assert_eq!(knobs.label(), ",mtu=discover");
}

/// A paced window of twice the rate loses every second packet once the queue is full: each is a gap, until it
/// is sent again. noq's client, which reads in order, closes from 1,024 pieces on, with the same sender and
/// seed; pieces that join are not always joined, so that half as many gaps may be enough.
#[test]
fn a_client_that_takes_any_gaps_counts_what_closes_another() {
    for (path, closes) in
        [("rate=200Mbit rtt=200ms queue=1bdp", true), ("rate=50Mbit rtt=50ms queue=1bdp", false)]
    {
        let text = StudyText {
            path: path.into(),
            startups: vec!["standard".into()],
            size: Some("30MB".into()),
            runs: Some(1),
            ..StudyText::default()
        };
        let (study, job) = (Study::check(&text, None).unwrap(), Job { contender: 0, run: 0 });
        let (which, knobs) = Knobs::parse("noq").unwrap();
        let gaps = which.gaps(&knobs, &study, job).unwrap();
        assert_eq!(gaps > 512, closes, "{gaps} gaps on {path}");
        let real = which.run(&knobs, &study, job, Sampling::Off, false).unwrap();
        let why = real.measured.closed.unwrap_or_default();
        assert_eq!(why.contains("too many gaps"), closes, "{why}");
    }
}
