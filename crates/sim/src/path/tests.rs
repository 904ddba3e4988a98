//! Laws of every element of a path, and of whole directions.

use super::*;
use proptest::prelude::*;

/// Words of which any subset makes a path, given a rate and an RTT.
const EXTRAS: &[&str] = &[
    "jitter=3ms",
    "ack_jitter=1ms",
    "vary=10ms vary_period=70ms",
    "handover=50ms handover_step=20ms handover_loss=40%,for=10ms",
    "loss=2%",
    "ack_loss=1%",
    "drop=1,5,10-20",
    "drop_ack=3",
    "drop_syn=1",
    "drop_synack=2",
    "aggregate=2ms",
    "ack_aggregate=4ms ack_filter=on",
    "ack_rate=300kbit ack_queue=20packets",
    "random_drop=30%@10kB",
    "gemodel=1%,30%,80%,0.1%",
    "fade=50%,for=20ms,every=60ms",
    "mark=2ms",
    "policer=\"rate=3Mbit burst=20kB\"",
    "shaper=\"rate=900kbit burst=1500B place=after\"",
];
/// Both directions of a path may be interrupted.
const OUTAGES: &[&str] =
    &["", "outage=at=9ms,for=7ms,every=50ms,queue=kept", "outage=for=7ms,every=30ms,queue=flushed"];
/// Links of which each run draws one.
const DRAWN: &[&str] =
    &["rate=1..20Mbit", "rate=log(100kbit..50Mbit)", "rate=2..9Mbit rate_vary=50% rate_vary_period=5ms"];
/// As [`EXTRAS`], for paths that do not keep the order.
const DISORDERS: &[&str] = &[
    "reorder=25%,50%,gap=3,delay=4ms",
    "ack_reorder=10%,delay=1ms",
    "second_route=20%,5ms",
    "ack_second_route=50%,2ms",
    "duplicate=5%",
    "ack_duplicate=3%",
    "ack_gemodel=1%",
];
const LINKS: &[&str] = &[
    "rate=12Mbit",
    "rate=999983bit",
    "rate=20Mbit rate_vary=100% rate_vary_period=3ms",
    "schedule=0s:12Mbit,50ms:0bit,80ms:48Mbit",
    "trace=synthetic.down",
    "trace=synthetic.down trace_start=0",
];
const QUEUES: &[&str] = &["1bdp", "7packets", "30kB", "5ms", "infinite"];
/// Queues that decide when a packet leaves, and elements that may stand beside them.
const DISCIPLINES: &[&str] = &[
    "queue=\"codel target=1ms interval=10ms limit=20p\"",
    "queue=\"codel target=1ms interval=10ms ecn ce_threshold=2ms\"",
    "queue=fq_codel",
    "queue=\"fq_codel flows=2 limit=9p drop_batch=3 target=1ms interval=5ms\"",
    "queue=\"fq_codel memory_limit=20Kb noecn\"",
    "queue=\"pie target=1ms tupdate=1ms limit=30p bytemode\"",
    "queue=\"red limit=60kB min=6kB max=20kB avpkt=1000 burst=20 probability=0.1 ecn adaptive\"",
    "queue=\"dualpi2 target=1ms tupdate=1ms limit=30p\"",
    "queue=\"dualpi2 step_thresh=2p drop_enqueue any_ect overflow\"",
    "queue=\"fq limit=20p flow_limit=9p quantum=500\"",
    "queue=20packets second_carrier=\"share=75% backlog=9kB activation=3ms idle=5ms\"",
    "queue=7packets host_rate=8Mbit",
    "queue=30kB host_rate=30Mbit host_queue=\"fq_codel target=1ms interval=5ms\"",
];
const BUCKETS: &[&str] = &[
    "shaper=\"rate=5Mbit burst=9kB\"",
    "shaper=\"rate=5Mbit burst=9kB peak=9Mbit\"",
    "shaper=\"rate=900kbit burst=1500B place=after\"",
    "policer=\"rate=3Mbit burst=20kB\"",
    "policer=\"rate=3Mbit burst=20kB peak=8Mbit place=after\"",
    "ack_rate=300kbit ack_queue=\"codel target=1ms interval=10ms\"",
    "loss=2% jitter=1ms",
    "random_drop=30%@3kB mark=1ms",
    "outage=at=9ms,for=7ms,every=50ms,queue=kept",
    "outage=at=9ms,for=7ms,every=50ms,queue=flushed",
];

fn load(line: &str) -> PathSpec {
    let traces = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/traces");
    PathSpec::load(line, Some(&traces)).unwrap_or_else(|e| panic!("{line}: {e}"))
}

fn any_line() -> impl Strategy<Value = String> {
    let extras = prop::sample::subsequence(EXTRAS, 0..=EXTRAS.len());
    let link = prop_oneof![prop::sample::select(LINKS), prop::sample::select(DRAWN)];
    let queue = prop::sample::select(QUEUES);
    let delay = prop::sample::select(&["delay_trace=synthetic.delay.gz", "rtt=30ms", "rtt=5..60ms"][..]);
    let outage = prop::sample::select(OUTAGES);
    (link, queue, extras, delay, outage).prop_map(|(link, queue, extras, delay, outage)| {
        format!("{link} {delay} queue={queue} {outage} {}", extras.join(" "))
    })
}

fn any_traffic() -> impl Strategy<Value = Vec<(u64, PacketInfo)>> {
    let kind =
        prop::sample::select(&[Kind::Data, Kind::Data, Kind::Ack, Kind::Syn, Kind::SynAck, Kind::Fin][..]);
    let gap = prop_oneof![Just(0), 0_u64..2_000_000, Just(30_000_000)];
    let each = (gap, 40_u32..1500, kind);
    prop::collection::vec(each, 1..300).prop_map(|all| {
        let mut now = 0;
        let each = |(gap, bytes, kind)| {
            now += gap;
            (now, PacketInfo { bytes, flow: 0, kind, ecn: Ecn::NotEct })
        };
        all.into_iter().map(each).collect()
    })
}

/// Options of netem, each of which some line has.
const NETEMS: &[&str] = &[
    "delay 5ms 3ms",
    "delay 5ms 20ms 50% distribution pareto limit 10",
    "rate 3mbit 20 48 5 delay 1ms limit 5 duplicate 20%",
    "duplicate 30% 10% delay 2ms 2ms distribution normal corrupt 10% 5% loss 5% ecn",
    "slot 1ms 4ms packets 3 bytes 4k delay 3ms 1ms reorder 20% gap 3",
    "slot distribution paretonormal 2ms 3ms duplicate 5% loss gemodel 5% 20%",
    "loss state 2% 30% 5% 40% 1% limit 7 delay 20ms",
];

proptest! {
    #[test]
    fn arrivals_keep_the_order_and_their_delay(line in any_line(), traffic in any_traffic(), seed in any::<u64>()) {
        let mut path = load(&line).build(seed);
        for way in [&mut path.forward, &mut path.back] {
            let mut last = Instant::ZERO;
            for (now, parcel) in &traffic {
                let now = Instant(*now);
                match way.pass(now, parcel) {
                    Ok(at) => {
                        prop_assert!(at >= last && at >= now);
                        last = at;
                    }
                    Err(dropped) => prop_assert!(dropped.at >= now),
                }
            }
        }
    }

    /// Packets are conserved: each arrives once, twice, or not at all with a drop; none before its least
    /// delay.
    #[test]
    fn disorder_loses_nothing(
        line in any_line(), disorders in prop::sample::subsequence(DISORDERS, 0..=DISORDERS.len()),
        traffic in any_traffic(), seed in any::<u64>()
    ) {
        let mut path = load(&format!("{line} {}", disorders.join(" "))).build(seed);
        for way in [&mut path.forward, &mut path.back] {
            let least = way.least_delay();
            let (mut queue, mut pushed) = (ArrivalQueue::new(), 0);
            let mut last = Instant::ZERO;
            for (n, (now, parcel)) in traffic.iter().enumerate() {
                let now = Instant(*now);
                match way.pass(now, parcel) {
                    Ok(at) => {
                        prop_assert!(at >= now + least);
                        let copies = 1 + u64::from(way.draws_copy());
                        prop_assert!(way.disorders() || (copies == 1 && at >= last));
                        last = last.max(at);
                        for _ in 0..copies {
                            queue.insert(at, n, |_| ());
                        }
                        pushed += copies;
                    }
                    Err(dropped) => prop_assert!(dropped.at >= now),
                }
            }
            let mut last = Instant::ZERO;
            while let Some(at) = queue.next() {
                prop_assert!(at >= last && queue.pop(Instant(at.0 - 1)).is_none());
                prop_assert!(queue.pop(at).is_some(), "next() announced it");
                (last, pushed) = (at, pushed - 1);
            }
            prop_assert_eq!(pushed, 0);
        }
    }

    /// `next()` announces each departure, packets are conserved and leave in order, those of one flow in the
    /// order in which they came; a mark is only for a packet that takes one; nothing leaves faster than the
    /// link.
    #[test]
    fn disciplines_announce_and_conserve(
        link in prop::sample::select(LINKS),
        queue in prop::sample::select(DISCIPLINES),
        more in prop::sample::select(BUCKETS),
        disorders in prop::sample::subsequence(DISORDERS, 0..=DISORDERS.len()),
        is_ack_side in any::<bool>(),
        draws in any::<bool>(),
        traffic in any_traffic(),
        flows in prop::collection::vec((0_u32..4, 0_u8..4), 300),
        seed in any::<u64>(),
    ) {
        prop_assume!(!queue.contains("host_rate") || !more.contains("outage"));
        let link = if draws { "rate=1..20Mbit" } else { link };
        let mut path = load(&format!("{link} rtt=30ms {queue} {more} {}", disorders.join(" "))).build(seed);
        let back_has_one = path.back.has_discipline();
        let way = if is_ack_side && back_has_one { &mut path.back } else { &mut path.forward };
        prop_assert!(way.has_discipline());
        let (mut out, mut gone) = (Vec::new(), vec![None; traffic.len()]);
        let mut last = Instant::ZERO;
        let mut ids = 0..traffic.len() as u32;
        let mut waiting = traffic.iter().zip(&flows).peekable();
        loop {
            let announced = way.next();
            let comes = waiting.peek().map(|((at, _), _)| Instant(*at));
            let now = match (announced, comes) {
                (Some(at), Some(comes)) if at < comes => at,
                (Some(at), None) => at,
                (_, Some(comes)) => comes,
                (None, None) => break,
            };
            if Some(now) == comes {
                let (Some(((_, p), (flow, ecn))), Some(id)) = (waiting.next(), ids.next()) else { break };
                let p = PacketInfo { flow: *flow, ecn: Ecn::from_bits(*ecn), ..*p };
                way.enqueue(now, &p, id, &mut out);
            } else {
                way.serve(now, &mut out);
                prop_assert!(!out.is_empty(), "next() announced it");
            }
            prop_assert!(way.next().is_none_or(|at| at > now), "what is due is served");
            for d in out.drain(..) {
                let ((at, p), (flow, ecn)) = (&traffic[d.id as usize], flows[d.id as usize]);
                let before = gone[d.id as usize].replace((flow, d.outcome.is_ok()));
                prop_assert!(before.is_none() && d.bytes == p.bytes);
                let ecn = Ecn::from_bits(ecn);
                prop_assert!(d.ecn == ecn || (ecn.is_capable() && d.ecn == Ecn::Ce));
                match d.outcome {
                    Ok(arrives) => {
                        prop_assert!(way.disorders() || (arrives >= last && !way.draws_copy()));
                        prop_assert!(arrives >= Instant(*at) + way.least_delay());
                        last = arrives;
                        let is_l4s = queue.contains("dualpi2");
                        let overtaken = gone[..d.id as usize].iter().zip(&flows).any(|(g, f)| g.is_none() && f.0 == flow);
                        prop_assert!(is_l4s || !overtaken, "the order of a flow");
                    }
                    Err(dropped) => prop_assert!(dropped.at >= Instant(*at)),
                }
            }
        }
        prop_assert!(gone.iter().all(Option::is_some) && way.backlog(Instant::NEVER) == Bytes::ZERO);
    }

    /// Behind a netem, too, packets are conserved: what enters leaves, twice if there is a copy, or is dropped
    /// once; nothing leaves before its time, and all that is due is served.
    #[test]
    fn netem_conserves(
        netem in prop::sample::select(NETEMS),
        link in prop::sample::select(&["rate=5Mbit queue=20packets", "rate=5Mbit queue=fq_codel", "schedule=0s:5Mbit,1s:1Mbit", "rate=5Mbit policer=\"rate=2Mbit burst=9kB\"", "rate=5Mbit outage=at=20ms,for=50ms,queue=flushed", "rate=5Mbit queue=codel outage=at=20ms,for=50ms,queue=flushed"][..]),
        is_back in any::<bool>(),
        traffic in any_traffic(),
        seed in any::<u64>(),
    ) {
        let side = if is_back { "ack_rate=5Mbit ack_queue=20packets ack_netem" } else { "netem" };
        let mut path = load(&format!("{link} rtt=10ms {side}={netem}")).build(seed);
        let way = if is_back { &mut path.back } else { &mut path.forward };
        let (mut out, mut fates) = (Vec::new(), vec![(0, 0, false); traffic.len()]);
        let mut waiting = traffic.iter().enumerate().peekable();
        loop {
            let comes = waiting.peek().map(|(_, (at, _))| Instant(*at));
            let now = match (way.next(), comes) {
                (Some(at), Some(comes)) => at.min(comes),
                (Some(at), None) | (None, Some(at)) => at,
                (None, None) => break,
            };
            if Some(now) == comes && let Some((id, (_, p))) = waiting.next() {
                way.enqueue(now, p, id as u32, &mut out);
            } else {
                way.serve(now, &mut out);
            }
            prop_assert!(way.next().is_none_or(|at| at > now), "what is due is served");
            for d in out.drain(..) {
                let (arrived, dropped, is_over) = &mut fates[d.id as usize];
                prop_assert!(!*is_over, "nothing leaves after the last");
                *is_over = !d.stays;
                match d.outcome {
                    Ok(at) => {
                        *arrived += 1;
                        prop_assert!(at >= Instant(traffic[d.id as usize].0) + way.least_delay());
                    }
                    Err(_) => *dropped += 1,
                }
            }
        }
        for (arrived, dropped, is_over) in fates {
            prop_assert!(is_over && dropped <= 1 && (1..=2).contains(&(arrived + dropped)));
            prop_assert!(netem.contains("duplicate") || arrived + dropped == 1);
        }
        prop_assert!(way.backlog(Instant::NEVER) == Bytes::ZERO);
    }

    /// Over several links, too: each packet arrives or is dropped once, not before the delay of the links of its
    /// flow, and those that cross the same links in their order.
    #[test]
    fn links_conserve(
        first in prop::sample::select(&["rate=5Mbit queue=20packets", "rate=5Mbit queue=fq_codel", "rate=5Mbit netem=delay 2ms 1ms", "rate=5Mbit loss=2% jitter=1ms", "rate=5Mbit policer=\"rate=2Mbit burst=9kB\"", "rate=5Mbit outage=at=20ms,for=50ms,queue=flushed"][..]),
        second in prop::sample::select(&["rate=5Mbit queue=20packets", "rate=3Mbit queue=codel limit 20p", "rate=4Mbit queue=fq_codel", "rate=9Mbit loss=2% jitter=1ms", "rate=5Mbit reorder=25%,50%,gap=3,delay=4ms", "schedule=0s:5Mbit,1s:1Mbit", "trace=synthetic.down"][..]),
        third in prop::sample::select(&["rate=5Mbit", "rate=4Mbit queue=red limit 60000 min 6000 max 20000 avpkt 1000 burst 20 probability 0.1 ecn", "rate=1Gbit netem=delay 2ms 1ms"][..]),
        traffic in any_traffic(),
        flows in prop::collection::vec(0_u32..6, 300),
        seed in any::<u64>(),
    ) {
        let line = format!("{first} rtt=10ms then=\"{second} rtt=20ms\" then=\"{third} rtt=6ms\"");
        let mut path = load(&line).build(seed);
        let links = ["1", "2", "3", "1-2", "2-3", "1-3"].map(|l| Links::parse(l).expect("links"));
        let back = path.cross(&links);
        prop_assert_eq!(back, [2, 7, 0, 12, 10, 15].map(Span::millis));
        prop_assert_eq!(path.back.least_delay(), Span::millis(3));
        let least = [5, 10, 3, 15, 13, 18].map(Span::millis);
        let keeps_order = !["netem", "reorder", "fq_codel"].iter().any(|word| line.contains(word));
        let way = &mut path.forward;
        let (mut out, mut gone, mut last) = (Vec::new(), vec![false; traffic.len()], [0; 6]);
        let mut waiting = traffic.iter().enumerate().peekable();
        loop {
            let comes = waiting.peek().map(|(_, (at, _))| Instant(*at));
            let now = match (way.next(), comes) {
                (Some(at), Some(comes)) => at.min(comes),
                (Some(at), None) | (None, Some(at)) => at,
                (None, None) => break,
            };
            if Some(now) == comes && let Some((id, (_, p))) = waiting.next() {
                way.enqueue(now, &PacketInfo { flow: flows[id], ..*p }, id as u32, &mut out);
            } else {
                way.serve(now, &mut out);
            }
            prop_assert!(way.next().is_none_or(|at| at > now), "what is due is served");
            for d in out.drain(..) {
                let (id, flow) = (d.id as usize, flows[d.id as usize] as usize);
                prop_assert!(!gone[id] && !d.stays, "once");
                gone[id] = true;
                match d.outcome {
                    Ok(at) => {
                        prop_assert!(at >= Instant(traffic[id].0) + least[flow]);
                        prop_assert!(at >= now + way.least_delay());
                        prop_assert!(!keeps_order || last[flow] <= id, "the order of a flow");
                        last[flow] = id;
                    }
                    Err(dropped) => prop_assert!(links[flow].has(usize::from(dropped.link))),
                }
            }
        }
        prop_assert!(gone.iter().all(|gone| *gone) && way.backlog(Instant::NEVER) == Bytes::ZERO);
    }

    #[test]
    fn no_link_carries_more_than_its_capacity(
        link in prop::sample::select(LINKS), traffic in any_traffic(), seed in any::<u64>()
    ) {
        let mut way = load(&format!("{link} rtt=1ms queue=infinite")).build(seed).forward;
        (way.propagation, way.beyond) = (Span::ZERO, Vec::new());
        let sent: Vec<(Instant, Instant, u32)> = traffic
            .iter()
            .map(|(now, p)| (Instant(*now), way.pass(Instant(*now), p).expect("no limit"), p.bytes))
            .collect();
        for i in (0..sent.len()).step_by(17) {
            let (from, mut bytes) = (sent[i].0, 0);
            for (_, to, more) in sent.iter().skip(i).filter(|s| s.0 >= from) {
                bytes += u64::from(*more);
                prop_assert!(bytes <= way.capacity(from, *to).0 + u64::from(*more));
            }
        }
    }

    #[test]
    fn a_seed_is_a_path(line in any_line(), traffic in any_traffic(), seed in any::<u64>()) {
        let run = || {
            let mut path = load(&line).build(seed);
            traffic.iter().map(|(t, p)| path.forward.pass(Instant(*t), p)).collect::<Vec<_>>()
        };
        prop_assert_eq!(run(), run());
    }
}

#[test]
fn capacity_is_what_a_saturated_link_carries() {
    for link in LINKS {
        let mut way = load(&format!("{link} rtt=1ms queue=infinite")).build(3).forward;
        (way.propagation, way.beyond) = (Span::ZERO, Vec::new());
        let parcel = PacketInfo { bytes: 1500, flow: 0, kind: Kind::Data, ecn: Ecn::NotEct };
        let (mut carried, mut last) = (0, Instant::ZERO);
        while last < Instant::ZERO + Span::secs(2) {
            last = way.pass(Instant::ZERO, &parcel).expect("no limit");
            carried += 1500;
        }
        let capacity = way.capacity(Instant::ZERO, last).0;
        // A trace may have more opportunities at the same moment.
        assert!((carried - 1..=carried + 3 * 1500).contains(&capacity), "{link}: {capacity}, not {carried}");
    }
}

#[test]
fn another_seed_is_another_path() {
    let parcel = PacketInfo { bytes: 1500, flow: 0, kind: Kind::Data, ecn: Ecn::NotEct };
    for extra in
        ["jitter=3ms", "vary=10ms vary_period=70ms", "handover=1s handover_step=20ms", "aggregate=2ms"]
    {
        let spec = load(&format!("rate=12Mbit rtt=30ms {extra}"));
        let first = |seed| spec.build(seed).forward.pass(Instant::ZERO, &parcel);
        assert!(first(1) == first(1) && first(1) != first(2), "{extra}");
    }
    let spec = load("trace=synthetic.down rtt=30ms");
    let first = |seed| spec.build(seed).forward.pass(Instant::ZERO, &parcel);
    assert_ne!(first(1), first(2));
}

#[test]
fn one_element_does_not_shift_the_chance_of_another() {
    let drops = |extra: &str| {
        let mut way = load(&format!("rate=1Gbit rtt=30ms loss=10% {extra}")).build(1).forward;
        let parcel = PacketInfo { bytes: 1500, flow: 0, kind: Kind::Data, ecn: Ecn::NotEct };
        (0..1000).map(|i| way.pass(Instant(i * 1_000_000), &parcel).is_err()).collect::<Vec<_>>()
    };
    assert_eq!(drops(""), drops("jitter=5ms handover=1s handover_step=9ms ack_loss=3%"));
}

#[test]
fn a_packet_takes_its_transmission_and_half_the_rtt() {
    let mut path = load("rate=12Mbit rtt=40ms ack_jitter=0").build(1);
    let at = |ms| Instant::ZERO + Span::millis(ms);
    let data = PacketInfo { bytes: 1500, flow: 0, kind: Kind::Data, ecn: Ecn::NotEct };
    assert_eq!(path.forward.pass(at(0), &data), Ok(at(21)));
    assert_eq!(path.forward.pass(at(0), &data), Ok(at(22)));
    assert_eq!(
        (path.forward.backlog(at(0)), path.forward.queue_delay(at(0))),
        (Bytes(1500), Span::millis(2))
    );
    // The way back has no link.
    assert_eq!(
        path.back.pass(at(0), &PacketInfo { bytes: 40, flow: 0, kind: Kind::Ack, ecn: Ecn::NotEct }),
        Ok(at(20))
    );
    assert_eq!(path.back.capacity(at(0), at(1)), Bytes::MAX);
    assert_eq!((path.back.backlog(at(0)), path.back.queue_delay(at(0))), (Bytes::ZERO, Span::ZERO));
}

#[test]
fn scripts_name_their_packets() {
    let mut path = load("rate=1Gbit rtt=1ms drop=2,4-5 drop_ack=1 drop_syn=1 drop_synack=2").build(1);
    let mut fates = |forward: bool, kind| {
        let direction = if forward { &mut path.forward } else { &mut path.back };
        let parcel = PacketInfo { bytes: 100, flow: 0, kind, ecn: Ecn::NotEct };
        (1..=6).filter(|_| direction.pass(Instant::ZERO, &parcel).is_err()).count()
    };
    assert_eq!(fates(true, Kind::Data), 3);
    assert_eq!(fates(true, Kind::SynAck), 2);
    assert_eq!(fates(true, Kind::Ack), 0);
    assert_eq!(fates(false, Kind::Ack), 1);
    assert_eq!(fates(false, Kind::Syn), 1);
    assert_eq!(fates(false, Kind::Data), 0);
}

#[test]
fn causes_have_names() {
    let names = Cause::ALL.map(|c| c.to_string());
    assert_eq!(names, ["queue-full", "aqm", "random", "burst", "scripted", "outage", "policer"]);
    assert!(Cause::ALL.iter().enumerate().all(|(i, c)| *c as usize == i));
}
