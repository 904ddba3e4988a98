//! Tests of reading and building paths.

use super::*;
use proptest::prelude::*;
use slowstart::units::Instant;
use std::fs;

fn facts(line: &str) -> PathFacts {
    PathSpec::load(line, None).unwrap_or_else(|e| panic!("{line}: {e}")).facts()
}

fn error(line: &str) -> String {
    PathSpec::load(line, None).expect_err(line).to_string()
}

#[test]
fn every_builtin_loads_and_names_its_sources() {
    for builtin in PathSpec::builtins() {
        let spec = PathSpec::load(builtin.name, None).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(spec.name, builtin.name);
        assert!(!builtin.about.is_empty() && !builtin.sources.is_empty(), "{}", builtin.name);
        spec.build(1);
    }
    for builtin in PathSpec::builtins() {
        let spec = PathSpec::load(builtin.name, None).expect("as above");
        let fixed = spec.fixed().map(|f| PathSpec::load(f, None).expect("a built-in path"));
        assert_eq!(spec.is_ensemble(), fixed.is_some(), "{}", builtin.name);
        assert!(fixed.is_none_or(|f| !f.is_ensemble()), "{}", builtin.name);
    }
    let geo = PathSpec::load("geo-144", None).expect("a built-in path").facts();
    assert_eq!(geo.bdp, Bytes(10_800_000));
    assert_eq!(geo.buffer, Some(Bytes(36_000_000)));
}

#[test]
fn queues_are_measured_in_bytes() {
    for (queue, want) in [
        ("", Some(500_000)),
        (" queue=1.5bdp", Some(750_000)),
        (" queue=0.001bdp", Some(1500)),
        (" queue=300packets", Some(450_000)),
        (" queue=36MB", Some(36_000_000)),
        (" queue=50ms", Some(625_000)),
        (" queue=infinite", None),
    ] {
        assert_eq!(facts(&format!("rate=100Mbit rtt=40ms{queue}")).buffer, want.map(Bytes), "{queue:?}");
    }
}

#[test]
fn rates_have_their_mean() {
    let steady = facts("rate=100Mbit rtt=40ms");
    assert_eq!((steady.rate, steady.variable), (Rate(100_000_000), false));
    let step = facts("schedule=0s:12Mbit,7s:48Mbit rtt=40ms");
    assert_eq!((step.rate, step.variable), (Rate(30_000_000), true));
    assert_eq!(facts("schedule=0s:12Mbit,1s:0bit,3s:24Mbit rtt=40ms").rate, Rate(12_000_000));
    let noisy = facts("rate=100Mbit rate_vary=20% rate_vary_period=10ms rtt=40ms");
    assert_eq!((noisy.rate, noisy.variable), (Rate(100_000_000), true));
}

#[test]
fn every_mistake_is_named() {
    for (line, message) in [
        ("rate=-5Mbit rtt=40ms", "path: rate: found \"-5Mbit\", expected a rate such as 100Mbit"),
        (
            "rate=5Mbit rtt=40ms queue=0packets",
            "path: queue: found \"0packets\", expected a queue of at least one packet, such as 1bdp, 300packets, \
             36MB, 50ms or infinite",
        ),
        ("rate=5Mbit", "path: rtt: found nothing, expected a length of time such as 40ms"),
        ("rate=5Mbit rtt=0ms", "path: rtt: found \"0ms\", expected a length of time such as 40ms"),
        ("rtt=40ms", "path: rate: found nothing, expected a rate such as 100Mbit, or a schedule or a trace"),
        ("rate=5Mbit rtt=40ms rtt=50ms", "path: rtt: found \"50ms\", expected each key once"),
        ("rate=5Mbit geo", "path: geo: found \"nothing\", expected key=value, such as rate=100Mbit"),
        (
            "rate=5Mbit rtt=40ms schedule=0s:5Mbit",
            "path: schedule: found \"0s:5Mbit\", expected only one of rate, schedule and trace",
        ),
        (
            "rate=5Mbit rtt=40ms rate_vary=20%",
            "path: rate_vary_period: found nothing, expected a length of time such as 40ms",
        ),
        ("schedule=0s:5Mbit rtt=40ms rate_vary=20%", "path: rate_vary: found \"20%\", expected rate with it"),
        (
            "rate=5Mbit rtt=40ms vary=5ms",
            "path: vary_period: found nothing, expected a length of time such as 40ms",
        ),
        (
            "rate=5Mbit rtt=40ms handover=15s",
            "path: handover_step: found nothing, expected a length of time such as 40ms",
        ),
        ("rate=5Mbit rtt=40ms loss=101%", "path: loss: found \"101%\", expected a share such as 1% or 0.01"),
        (
            "rate=5Mbit rtt=40ms drop=0",
            "path: drop: found \"0\", expected places from 1 on, such as 1,5,10-20",
        ),
        ("rate=5Mbit rtt=40ms ack_queue=9kB", "path: ack_queue: found \"9kB\", expected ack_rate with it"),
        (
            "rate=5Mbit rtt=40ms ack_filter=on",
            "path: ack_filter: found \"on\", expected ack_aggregate with it",
        ),
        (
            "rate=5Mbit rtt=40ms random_drop=25%",
            "path: random_drop: found \"25%\", expected a share and a backlog, as 25%@18MB",
        ),
        (
            "rate=5Mbit rtt=40ms gemodel=1%,0%",
            "path: gemodel: found \"1%,0%\", expected up to four shares p,r,1-h,1-k of netem's gemodel, p and r above 0, \
             such as 1%,10%,70%,0.1%",
        ),
        (
            "rate=5Mbit rtt=40ms handover_loss=30%,for=200ms",
            "path: handover: found nothing, expected a length of time such as 40ms",
        ),
        (
            "rate=5Mbit rtt=40ms handover_stall=40ms",
            "path: handover: found nothing, expected a length of time such as 40ms",
        ),
        (
            "rate=5Mbit rtt=40ms handover=15s handover_step=5ms handover_stall=15s",
            "path: handover_stall: found \"15s\", expected a path without outage and link=host, and a time shorter than \
             handover",
        ),
        (
            "rate=5Mbit rtt=40ms fade=30%,for=200ms",
            "path: fade: found \"30%,for=200ms\", expected a share, how long a fade lasts and the mean time between fades, \
             such as 30%,for=200ms,every=8s",
        ),
        (
            "rate=5Mbit rtt=40ms outage=at=1s,for=5s,every=2s,queue=kept",
            "path: outage: found \"at=1s,for=5s,every=2s,queue=kept\", expected when, how long and how often, longer apart \
             than they last, and queue=kept or queue=flushed, such as at=5s,for=300ms,every=15s,queue=kept",
        ),
        ("rate=5Mbit rtt=40ms host_queue=fq", "path: host_queue: found \"fq\", expected host_rate with it"),
        (
            "rate=5Mbit rtt=40ms host_rate=1Gbit host_queue=9packets",
            "path: host_queue: found \"9packets\", expected a queue discipline such as pfifo_fast, fq or fq_codel",
        ),
        (
            "rate=5Mbit rtt=40ms host_rate=1Gbit queue=fq_codel",
            "path: host_rate: found \"1Gbit\", expected a path without link=host and outage, whose queue drops what \
             comes when it is full",
        ),
        (
            "rate=5Mbit rtt=40ms queue=9packets link=host outage=at=1s,for=5s,queue=kept",
            "path: outage: found \"at=1s,for=5s,queue=kept\", expected a path without link=host",
        ),
        (
            "rate=5Mbit rtt=40ms reorder=25%",
            "path: reorder: found \"25%\", expected netem's share, correlation and gap, and the delay of the packets that \
             are overtaken, such as 25%,50%,gap=5,delay=10ms",
        ),
        (
            "rate=5Mbit rtt=40ms second_route=5ms",
            "path: second_route: found \"5ms\", expected the share of packets on the second route and its additional \
             delay, such as 20%,5ms",
        ),
        (
            "rate=5Mbit rtt=40ms duplicate=2",
            "path: duplicate: found \"2\", expected a share such as 1% or 0.01",
        ),
        ("rate=5Mbit rtt=40ms mark=yes", "path: mark: found \"yes\", expected a length of time such as 1ms"),
        (
            "rate=5Mbit rtt=40ms queue=codl",
            "path: queue: found \"codl\", expected a queue of at least one packet, such as 1bdp, 300packets, 36MB, 50ms or \
             infinite, or a discipline: pfifo_fast, pfifo, bfifo, pfifo_head_drop, codel, fq_codel, pie, red, dualpi2, fq (did you mean \"codel\"?)",
        ),
        (
            "rate=5Mbit rtt=40ms queue=\"codel target=200ms\"",
            "path: queue: found \"target 200ms\", expected a target of at most the interval, which is 100ms",
        ),
        (
            "rate=5Mbit rtt=40ms ack_rate=1Mbit ack_queue=\"fq_codel limit 5 tail\"",
            "path: ack_queue: found \"tail\", expected a word of fq_codel: limit, flows, quantum, target, interval, \
             ce_threshold, memory_limit, drop_batch, ecn",
        ),
        (
            "rate=5Mbit rtt=40ms policer=\"rate=20Mbit burst=1kB\"",
            "path: policer: found \"burst 1kB\", expected a burst of at least one packet (1500B)",
        ),
        (
            "rate=5Mbit rtt=40ms policer=\"rate=20Mbit\"",
            "path: policer: found \"rate=20Mbit\", expected a rate and a burst, such as \"rate=20Mbit burst=100kB\"",
        ),
        (
            "rate=5Mbit rtt=40ms shaper=\"rate=20Mbit burst=10kB peak=2Mbit\"",
            "path: shaper: found \"peak 2000000 bit/s\", expected a peak rate above the rate",
        ),
        (
            "rate=5Mbit rtt=40ms shaper=\"rate=20Mbit brust=10kB\"",
            "path: shaper: found \"brust 10kB\", expected words of it: rate, burst, peak, place (link or after)",
        ),
        (
            "rate=5Mbit rtt=40ms queue=50ms second_carrier=\"share=50%\"",
            "path: second_carrier: found \"share=50%\", expected a queue in packets, bytes or BDP with it",
        ),
        (
            "rate=5Mbit rtt=40ms queue=\"codel",
            "path: queue: found \"\\\"codel\", expected quotes around the value",
        ),
        ("rate=5Mbit rtt=40ms trace_start=1", "path: trace_start: found \"1\", expected random or 0"),
    ] {
        assert_eq!(error(line), message, "{line}");
    }
    let unknown = error("ratee=5Mbit rtt=40ms");
    assert!(unknown.starts_with(
        "path: found unknown key \"ratee\" (did you mean \"rate\"?), expected one of name, about, sources, fixed, rate, "
    ));
    let name = error("goe");
    assert!(
        name.starts_with(
            "path: found \"goe\" (did you mean \"geo\"?), expected one of geo, leo, lte, wifi-strong, "
        ),
        "{name}"
    );
    let missing = error("trace=no/such.down rtt=40ms");
    assert!(missing.starts_with("no/such.down: ") && missing.contains("expected a trace"), "{missing}");
    let file = error("no/such.toml");
    assert!(file.starts_with("no/such.toml: ") && file.ends_with("expected a path in TOML"), "{file}");
}

#[test]
fn an_error_in_the_path_of_a_proxy_names_the_file_and_its_key() {
    let folder = std::env::temp_dir().join(format!("slowstart-leg-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a temporary folder");
    let file = folder.join("proxied.toml");
    fs::write(&file, "rate = \"10Mbit\"\nrtt = \"20ms\"\nproxy = \"rate=1 rtt=5ms\"\n").expect("a file");
    let found = error(&file.display().to_string());
    assert!(found.starts_with(&format!("{}: proxy: path: rate: found \"1\"", file.display())), "{found}");
    fs::remove_dir_all(&folder).expect("to be removed");
}

#[test]
fn a_link_without_a_rate_is_refused() {
    let folder = std::env::temp_dir().join(format!("slowstart-slow-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a temporary folder");
    for (ms, good) in [(12_000, true), (12_001, false), (100_000_000, false)] {
        fs::write(folder.join("slow.down"), format!("{ms}\n")).expect("a file");
        let found = PathSpec::load("trace=slow.down rtt=40ms", Some(&folder)).map(|_| ());
        let message = "path: trace: found \"slow.down\", expected a mean rate of at least 1kbit";
        assert_eq!(found.map_err(|e| e.to_string()), if good { Ok(()) } else { Err(message.into()) }, "{ms}");
    }
    fs::remove_dir_all(&folder).expect("to be removed");
    let line = "schedule=0s:0bit,999998s:0bit,999999s:1kbit rtt=40ms";
    assert!(error(line).ends_with("expected a mean rate of at least 1kbit"), "{}", error(line));
}

#[test]
fn a_path_that_draws_nothing_has_ack_jitter_of_a_packet_time() {
    let packet = |line: &str| PathSpec::load(line, None).unwrap_or_else(|e| panic!("{e}")).default_jitter();
    assert_eq!(packet("rate=12Mbit rtt=110ms queue=2bdp"), Some(Span::millis(1)));
    assert_eq!(packet("schedule=0s:12Mbit,7s:36Mbit rtt=40ms drop=1"), Some(Span::micros(500)));
    for fixed in ["fiber", "datacenter", "dsl"] {
        assert!(packet(fixed).is_some(), "{fixed}");
    }
    for line in [
        "rate=12Mbit rtt=40ms ack_jitter=0",
        "rate=12Mbit rtt=40ms ack_jitter=5ms",
        "rate=12Mbit rtt=40ms jitter=1ms",
        "rate=12Mbit rtt=40ms loss=1%",
        "rate=12Mbit rtt=40ms ack_aggregate=1ms",
        "rate=12Mbit rtt=40ms random_drop=1%@3kB",
        "rate=12Mbit rtt=40ms vary=1ms vary_period=1s",
        "rate=12..20Mbit rtt=40ms",
        "geo-144",
        "geo",
    ] {
        assert_eq!(packet(line), None, "{line}");
        assert_eq!(PathSpec::load(line, None).expect("good").draw(1).default_jitter(), None, "{line}");
    }
}

#[test]
fn mistakes_in_distributions_are_named() {
    for (line, message) in [
        (
            "rate=70..20Mbit rtt=40ms",
            "path: rate: found \"70..20Mbit\", expected a range whose second number is greater than its first, such \
             as 20..70Mbit",
        ),
        ("rate=20..70 rtt=40ms", "path: rate: found \"20..70\", expected a rate such as 100Mbit"),
        ("rate=0..70Mbit rtt=40ms", "path: rate: found \"0..70Mbit\", expected a rate such as 100Mbit"),
        (
            "rate=20Mbit*0|50Mbit rtt=40ms",
            "path: rate: found \"20Mbit*0|50Mbit\", expected a weight above 0 after *, such as 20Mbit*3|50Mbit",
        ),
        (
            "rate=5Mbit rtt=40ms queue=1..2bdp~rate",
            "path: queue: found \"1..2bdp~rate\", expected a key after ~ that has a distribution of its own, such as \
             300..900kB~rate",
        ),
        (
            "rtt=40ms schedule=0s:5Mbit,1..2s:6Mbit",
            "path: schedule: found \"1..2s\", expected a fixed time: in a schedule only rates can be random",
        ),
        (
            "rate=5Mbit rtt=40ms loss=50..150%",
            "path: loss: found \"50..150%\", expected a share such as 1% or 0.01",
        ),
        ("rate=5Mbit rtt=0..40ms", "path: rtt: found \"0..40ms\", expected a length of time such as 40ms"),
    ] {
        assert_eq!(error(line), message, "{line}");
    }
}

#[test]
fn facts_of_an_ensemble_are_those_of_its_medians() {
    let spec = PathSpec::load("rate=20..70Mbit rtt=100ms queue=1..3bdp", None).expect("good");
    let near = |a: u64, b: u64| a.abs_diff(b) <= b / 1000;
    assert!(near(spec.facts().rate.0, 45_000_000) && near(spec.facts().buffer.unwrap().0, 2 * 562_500));
    assert_eq!(spec.least_rate(), Rate(20_000_000));
    // 875 kB on the path, and three times as much in the queue.
    assert_eq!(spec.most_held(), Bytes(4 * 875_000));
    assert_eq!(spec.distributions(), [("queue_bdp", "1..3bdp"), ("rate_bps", "20..70Mbit")]);
    let drawn: Vec<f64> = (0..50).map(|seed| spec.build(seed).drawn["rate_bps"]).collect();
    assert!(drawn.iter().any(|r| *r < 30e6) && drawn.iter().any(|r| *r > 60e6), "{drawn:?}");
    assert_eq!(spec.build(7).facts.rate.0, spec.build(7).drawn["rate_bps"] as u64);
}

#[test]
fn toml_says_where() {
    let read = |text: &str| {
        let (keys, name, sources) =
            PathSpec::toml(fs_path::Path::new("paths/my.toml"), text, &Files::default())?;
        PathSpec::from_keys(keys, name, sources)
    };
    let spec = read("about = 'x'\nrate = '5Mbit'\nrtt = '40ms'\nloss = 0.01\ndrop_syn = 2\n").expect("good");
    assert_eq!(
        (spec.name.as_str(), spec.about.as_str(), spec.forward.elements.loss),
        ("my", "x", Some(10_000))
    );
    let say = |text: &str| read(text).expect_err(text).to_string();
    assert!(
        say("rate = '5Mbit'\nrtt = \n")
            .starts_with("paths/my.toml: line 2: found \"rtt = \", expected TOML (")
    );
    assert_eq!(
        say("rate = '5'\nrtt = '40ms'"),
        "paths/my.toml: rate: found \"5\", expected a rate such as 100Mbit"
    );
    assert_eq!(
        say("rate = ['5Mbit']"),
        "paths/my.toml: rate: found \"[\\\"5Mbit\\\"]\", expected a string or a number"
    );
    assert!(say("trace = 'x.down'\nrtt = '40ms'").starts_with("paths/x.down: "));
}

/// Values of which any makes an ensemble of a path.
const DRAWN: &[&str] = &[
    "rate=1..70Mbit queue=0.01..2bdp",
    "rate=log(2kbit..1Gbit) queue=1..300packets~rate",
    "rate=20Mbit*0.5|50Mbit|1..2Mbit*3 queue=1500B..36MB rate_vary=0..100% rate_vary_period=1..200ms",
    "schedule=0s:0bit|12Mbit,7s:1..48Mbit queue=1ms..1s",
    "rate=5Mbit link=host queue=1..100packets",
];
const MORE_DRAWN: &[&str] = &[
    "vary=0..120ms vary_period=1.9..2.1s",
    "ack_jitter=0|5..200ms jitter=0..3ms",
    "ack_aggregate=log(1..40ms) ack_filter=on",
    "random_drop=0..25%@1kB..18MB mark=1..5ms loss=0..1% ack_loss=0.001..0.01",
    "handover=10..20s handover_step=0..20ms~-rtt",
    "ack_rate=100kbit..1Mbit ack_queue=1..2bdp",
    "drop=1..10,100..200 drop_syn=0..2 quick_start=1..2Mbit",
];

proptest! {
    /// Whatever the seed, an ensemble draws a valid path, with each value within its bounds, and the same one
    /// again.
    #[test]
    fn drawn_paths_are_valid(
        base in prop::sample::select(DRAWN),
        more in prop::sample::subsequence(MORE_DRAWN, 0..=MORE_DRAWN.len()),
        seed in any::<u64>(),
    ) {
        let line = format!("{base} rtt=20..600ms {}", more.join(" "));
        let spec = PathSpec::load(&line, None).unwrap_or_else(|e| panic!("{line}: {e}"));
        let one = spec.draw(seed);
        prop_assert!(spec.is_ensemble() && !one.is_ensemble());
        prop_assert_eq!(one.drawn.len(), spec.distributions().len());
        prop_assert!(one.facts.rate >= spec.least_rate());
        prop_assert!((Span::millis(20)..=Span::millis(600)).contains(&one.facts.base_rtt));
        let (a, b) = (spec.build(seed), spec.build(seed));
        prop_assert_eq!(&a.drawn, &one.drawn);
        prop_assert_eq!((&a.drawn, a.facts), (&b.drawn, b.facts));
    }

    #[test]
    fn no_text_is_too_strange(
        text in any::<String>(), key in prop::sample::select(keys::names()), value in "[0-9a-zA-Z%@:,.-]{0,12}"
    ) {
        let _ = PathSpec::inline(&text, Files::default());
        let _ = PathSpec::toml(fs_path::Path::new("x.toml"), &text, &Files::default());
        let base: String = [("rate", "=5Mbit "), ("rtt", "=40ms ")]
            .iter().filter(|(k, _)| *k != key).map(|(k, v)| [*k, *v].concat()).collect();
        if let Ok(spec) = PathSpec::load(&format!("{base}{key}={value}"), None) {
            spec.build(1);
        }
    }
}

/// The first word of a line may name a path, whose keys the others replace.
#[test]
fn a_line_may_begin_with_a_path() {
    let load = |line: &str| PathSpec::load(line, None).unwrap_or_else(|e| panic!("{line}: {e}"));
    let (geo, changed) = (load("geo-144"), load("geo-144 rate=10Mbit"));
    assert_eq!(changed.facts().rate, Rate(10_000_000));
    assert_eq!(changed.facts().base_rtt, geo.facts().base_rtt);
    assert_eq!(changed.name, "geo-144 rate=10Mbit");
    assert_eq!(load("lte-75 rate=10Mbit").facts().rate, Rate(10_000_000));
    for (line, says) in [
        ("goe rate=1Mbit", "geo"),
        ("geo rate=1Mbit rate=2Mbit", "once"),
        ("geo-144 colour=red", "colour"),
        ("rate=1Mbit geo", "key=value"),
    ] {
        let e = PathSpec::load(line, None).expect_err("it is wrong").to_string();
        assert!(e.contains(says), "{line}: {e}");
    }
}

/// The limit of a discipline is drawn as the length of a drop-tail queue is, at the rank of the rate.
#[test]
fn the_limit_of_a_discipline_is_drawn() {
    let line = "rate=40..120Mbit rtt=30ms queue=\"pfifo_head_drop limit=333..1000packets~rate\"";
    let spec = PathSpec::load(line, None).unwrap_or_else(|e| panic!("{e}"));
    for seed in 0..20 {
        let drawn = &spec.draw(seed).drawn;
        let (rate, limit) = (drawn["rate_bps"], drawn["queue_packets"]);
        let rank = (rate - 40e6) / 80e6;
        assert!((limit - 333.0 - rank * 667.0).abs() < 2.0, "{rate} {limit}");
    }
}

/// A line of tc is a path, or its words are the value of a key without quotes. Delays of netem add to the RTT,
/// its rate and its limit bound the rate.
#[test]
fn a_line_of_tc_is_a_path() {
    let facts = |line: &str| PathSpec::load(line, None).unwrap_or_else(|e| panic!("{line}: {e}")).facts();
    for line in [
        "netem delay 100ms rate 10mbit limit 100",
        "netem: delay 100ms rate 10mbit limit 100",
        "tc qdisc add dev eth0 root netem delay 100ms rate 10mbit limit 100",
        "netem=delay 100ms rate 10mbit limit 100",
        "netem=\"delay 100ms rate 10mbit limit 100\"",
        "netem=delay 60ms rate 10mbit limit 100 rtt=30ms ack_netem=delay 10ms",
    ] {
        let f = facts(line);
        assert_eq!(f.base_rtt, Span::millis(100), "{line}");
        // A packet of 1500 bytes is a frame of 1514 to netem.
        assert_eq!(f.rate.0, 12_000_000_000_000 / 1_211_200, "{line}");
    }
    // 100 packets of 1500 bytes, less what is on its delay line.
    let f = facts("netem delay 100ms rate 10mbit limit 100");
    assert_eq!(f.buffer, Some(Bytes(150_000 - 123_844)));
    // A delay line of 1000 packets carries at most those each 100 ms.
    let f = facts("netem delay 100ms rate=1Gbit");
    assert_eq!((f.rate.0, f.buffer), (120_000_000, Some(Bytes::ZERO)));
    let bound = |line: &str| PathSpec::load(line, None).expect(line).limit_of_netem();
    assert_eq!(bound("netem delay 100ms rate=1Gbit"), Some(1000));
    assert_eq!(bound("netem delay 100ms rate=100Mbit"), None);
    assert_eq!(bound("netem delay 100ms rate 10mbit limit 100"), None);
    let f = facts("rate=50Mbit rtt=40ms queue=fq_codel limit 100 target 5ms netem=delay 20ms 5ms");
    assert_eq!((f.rate.0, f.base_rtt), (50_000_000, Span::millis(60)));
    assert_eq!(
        facts("tc qdisc add dev eth0 root fq_codel limit 100 rate=50Mbit rtt=40ms").rate.0,
        50_000_000
    );
    assert_eq!(facts("geo-144 netem=loss 1%").base_rtt, facts("geo-144").base_rtt);
    for (line, says) in [
        ("netem delay 100ms", "rate: found nothing, expected the rate of netem's interface"),
        ("netem loss 1% rate=1Mbit", "rtt: found nothing"),
        ("netem delay 1ms rate 1mbit queue=1bdp", "queue: found \"1bdp\", expected rate with it"),
        (
            "netem delay 1ms los 1% colour 3 rate=1Mbit",
            "netem: found \"colour\", expected an option of netem",
        ),
        ("rate=1Mbit netem=delay 1ms host_rate=1Gbit", "netem: found \"delay 1ms\", expected a path without"),
        ("rate=1Mbit rtt=10ms netem=delay 1ms netem=loss 1%", "each key once"),
        ("rate=1Mbit rtt=10ms more", "key=value"),
        ("tc qdisc add dev eth0 root htb rate=1Mbit rtt=10ms", "found \"tc qdisc add dev eth0 root htb\""),
    ] {
        let e = PathSpec::load(line, None).expect_err(line).to_string();
        assert!(e.contains(says), "{line}: {e}");
    }
}

/// A line of tc is the bottleneck: a tbf has rate and queue, a discipline the queue.
#[test]
fn a_line_of_tc_is_the_bottleneck() {
    let load = |line: &str| PathSpec::load(line, None).unwrap_or_else(|e| panic!("{line}: {e}"));
    // 10 Mbit/s of frames of 1514 bytes, and 66,596 bytes of them.
    let (rate, room) = (10_000_000 * 1500 / 1514, 66_596 * 1500 / 1514);
    for line in [
        "tc qdisc add dev eth0 root tbf rate 10mbit burst 32kbit latency 50ms rtt=40ms",
        "qdisc tbf 8009: dev eth0 root refcnt 2 rate 10Mbit burst 4Kb lat 50ms rtt=40ms",
        "rtt=40ms queue=tbf rate 10mbit burst 32kbit latency 50ms",
        "rtt=40ms shaper=tbf rate 10mbit burst 32kbit latency 50ms",
        "rate=1Gbit rtt=40ms queue=\"tbf rate 10mbit burst 32kbit latency 50ms\"",
        "netem delay 40ms queue=tbf rate 10mbit burst 32kbit latency 50ms",
        "# tc qdisc add dev eth0 root handle 1: netem delay 40ms; tc qdisc add dev eth0 parent 1: tbf rate 10mbit burst \
         32kbit latency 50ms",
        "tc qdisc add dev eth0 root netem delay 40ms && sudo tc qdisc add dev eth0 parent 1: tbf rate 10mbit burst 32kbit \
         latency 50ms",
        "qdisc netem 1: root refcnt 2 limit 1000 delay 40ms\nqdisc tbf 10: parent 1:1 rate 10Mbit burst 4Kb lat 50ms",
    ] {
        let f = load(line).facts();
        assert_eq!((f.rate.0, f.buffer, f.base_rtt), (rate, Some(Bytes(room)), Span::millis(40)), "{line}");
    }
    let f = load("rtt=40ms shaper=tbf rate 10mbit burst 32kbit limit 10k queue=100packets").facts();
    assert_eq!((f.rate.0, f.buffer), (rate, Some(Bytes(150_000))));
    for (words, same) in [
        ("codel limit 100 target 5000 interval 100000", "codel limit 100p target 5ms interval 100ms"),
        ("fq_codel memory_limit 32mb ce_threshold 1000", "fq_codel memory_limit 32Mb ce_threshold 1ms"),
        ("tc qdisc replace dev eth0 root handle 1: pie limit 100 nobytemode noecn", "pie limit 100p"),
        ("pie ecn no_dq_rate_estimator", "pie ecn"),
        ("qdisc bfifo 8008: root refcnt 2 limit 30Kb", "bfifo limit 30720"),
        ("tc qdisc add dev eth0 parent 1:1 fq_codel", "fq_codel"),
    ] {
        let discipline = |text: &str| text.parse::<crate::path::queue::Discipline>().expect(text);
        assert_eq!(discipline(words), discipline(same), "{words}");
    }
    for (line, says) in [
        ("rate=1Mbit rtt=40ms queue=cake bandwidth 20mbit rtt 50ms", "CAKE is not modelled"),
        ("tc qdisc add root dev eth0 cake bandwidth 20mbit rtt=40ms", "CAKE is not modelled"),
        ("tc -s qdisc show dev eth0", "queue: found \"tc -s qdisc show dev eth0\", expected a queue"),
        (
            "netem delay 1ms; tc qdisc add dev eth1 root netem delay 2ms rate=1Mbit",
            "netem: found \"tc qdisc add",
        ),
        (
            "rtt=40ms queue=tbf rate 10mbit burst 32kbit",
            "shaper: found \"tbf rate 10mbit burst 32kbit\", expected one of",
        ),
        (
            "rtt=40ms queue=tbf rate 1mbit burst 10k limit 9k shaper=\"rate=1Mbit burst=9kB\"",
            "only one of shaper",
        ),
        (
            "rate=1Mbit rtt=40ms queue=fq_codel limit 5 ce_threshold_selector 0x1/0x3",
            "\"ce_threshold_selector\"",
        ),
        ("rate=1Mbit rtt=40ms queue=pie dq_rate_estimator", "\"dq_rate_estimator\", expected a word of pie"),
        ("rtt=40ms shaper=\"rate=1Mbit burst=9kB\"", "rate: found nothing"),
    ] {
        let e = PathSpec::load(line, None).expect_err(line).to_string();
        assert!(e.contains(says), "{line}: {e}");
    }
}

#[test]
fn links_behind_the_first_add_to_the_path() {
    let load = |line: &str| PathSpec::load(line, None).unwrap_or_else(|e| panic!("{line}: {e}"));
    let line = "rate=100Mbit rtt=20ms queue=2bdp then=\"rate=30Mbit rtt=30ms queue=1bdp\" then=\"rate=1Gbit rtt=10ms queue=fq_codel limit 100\"";
    let path = load(line);
    let link = |mbit: u64, ms, buffer| LinkFacts {
        rate: Rate(mbit * 1_000_000),
        held_by: None,
        base_rtt: Span::millis(ms),
        buffer: Some(Bytes(buffer)),
    };
    // Queues in BDP are those of the rate of their link and the RTT of the path.
    assert_eq!(path.links(), [link(100, 20, 1_500_000), link(30, 30, 225_000), link(1000, 10, 150_000)]);
    let facts = path.facts();
    assert_eq!((facts.rate, facts.base_rtt), (Rate(30_000_000), Span::millis(60)));
    assert_eq!((facts.bdp, facts.buffer), (Bytes(225_000), Some(Bytes(225_000))));
    // Packets that nothing delays at random have the jitter of a packet of the slowest link.
    assert_eq!(path.default_jitter(), Some(Span::micros(400)));
    let joined = line.replace("\" then=\"", "; ");
    assert_eq!(load(&joined).links(), path.links(), "{joined}");
    assert_eq!(load("rate=1Mbit rtt=1ms").links().len(), 1);
    let built = path.build(1);
    assert_eq!((built.rtt_at(Instant::ZERO), built.back.least_delay()), (Span::millis(60), Span::millis(30)));
    assert_eq!(built.forward.capacity(Instant::ZERO, Instant(1_000_000_000)), Bytes(3_750_000));
    // A built-in path may have one more, and a file has a list.
    assert_eq!(
        load("geo-144 then=\"rate=20Mbit rtt=5ms\"").facts().base_rtt,
        load("geo-144").facts().base_rtt + Span::millis(5)
    );
    assert_eq!(load("rate=1Gbit rtt=1ms then=fiber").links().len(), 2);
    for (held, by) in [
        ("rate=1Gbit rtt=60ms policer=\"rate=100Mbit burst=125kB\"", Some("its policer")),
        ("rate=1Gbit rtt=60ms policer=\"rate=2Gbit burst=125kB\"", None),
        ("rate=50Mbit rtt=20ms host_rate=20Mbit", Some("the host's interface")),
        ("rate=50Mbit rtt=20ms netem=delay 40ms rate 10mbit", Some("netem")),
        ("netem rate 10mbit delay 40ms", None),
    ] {
        assert_eq!(load(held).links()[0].held_by, by, "{held}");
    }
}

#[test]
fn a_file_has_a_list_of_links() {
    let folder = std::env::temp_dir().join(format!("slowstart-links-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let write = |then: &str| {
        let text = format!("rate = \"100Mbit\"\nrtt = \"20ms\"\nthen = {then}\n");
        std::fs::write(folder.join("lot.toml"), text).expect("a file");
        PathSpec::load("lot.toml", Some(&folder))
    };
    let two = r#"['rate=30Mbit rtt=30ms shaper="rate=20Mbit burst=30kB"', "rate=1Gbit rtt=10ms"]"#;
    let path = write(two).expect("a path");
    assert_eq!(path.links().iter().map(|l| l.rate.0 / 1_000_000).collect::<Vec<_>>(), [100, 20, 1000]);
    assert_eq!(write("\"rate=30Mbit rtt=30ms\"").expect("a path").links().len(), 2);
    assert!(write("[1, 2]").expect_err("numbers").to_string().contains("a list of strings"));
    std::fs::remove_dir_all(&folder).expect("it is there");
}

#[test]
fn links_refuse_what_is_not_of_a_link() {
    let why = |line: &str| PathSpec::load(line, None).expect_err(line).to_string();
    for (line, part) in [
        ("rate=1Mbit rtt=1ms then=\"rate=1Mbit\"", "rtt"),
        ("rate=1Mbit rtt=1ms then=\"rtt=1ms\"", "rate"),
        ("rate=1Mbit rtt=1ms then=\"rate=1Mbit rtt=1ms ack_rate=1Mbit\"", "then: ack_rate"),
        ("rate=1Mbit rtt=1ms then=\"rate=1Mbit rtt=1ms host_rate=1Mbit\"", "then: host_rate"),
        ("rate=1Mbit rtt=1ms then=\"rate=1Mbit rtt=1ms duplicate=1%\"", "then: duplicate"),
        ("rate=1Mbit rtt=1ms then=\"rate=1..2Mbit rtt=1ms\"", "no distribution"),
        ("rate=1Mbit rtt=1ms then=\"rate=1Mbit rtt=1ms netem=duplicate 1%\"", "no duplicates"),
        ("rate=1Mbit rtt=1ms netem=duplicate 1% then=\"rate=1Mbit rtt=1ms\"", "duplicates nothing"),
        ("rate=1..2Mbit rtt=1ms then=\"rate=1Mbit rtt=1ms\"", "without distributions"),
        ("rate=1Mbit rtt=1ms link=host queue=9packets then=\"rate=1Mbit rtt=1ms\"", "a path of one link"),
        ("rate=1Mbit rtt=1ms host_rate=1Mbit then=\"rate=1Mbit rtt=1ms\"", "a path of one link"),
        ("rate=1Mbit rtt=1ms duplicate=1% then=\"rate=1Mbit rtt=1ms\"", "a path of one link"),
        ("rate=1Mbit rtt=1ms proxy=dsl proxy_buffer=1MB then=\"rate=1Mbit rtt=1ms\"", "a path of one link"),
        ("rate=1Mbit rtt=1ms then=\"rate=1Mbit rtt=1ms colour=red\"", "unknown key"),
        ("rate=1Mbit rtt=1ms then=nowhere", "nowhere"),
        ("rate=1Mbit rtt=1ms then=dsl", "then: ack_"),
        ("rate=1Mbit rtt=1ms then=\"\"", "1 to 15 links"),
    ] {
        assert!(why(line).contains(part), "{line}: {}", why(line));
    }
    let many = format!("rate=1Mbit rtt=1ms {}", "then=\"rate=1Mbit rtt=1ms\" ".repeat(16));
    assert!(why(&many).contains("1 to 15 links"), "{}", why(&many));
}
