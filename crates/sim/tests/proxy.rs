//! Downloads through a proxy that splits the connection.

mod common;

use common::sized;
use slowstart::units::{Instant, Span};
use slowstart_sim::engine::{End, Engine, Proxied, Sampling};
use slowstart_sim::path::PathSpec;
use slowstart_sim::tcp::profile::Profile;

const SIZE: u64 = 10_000_000;
const PATH: &str = "rate=50Mbit rtt=600ms queue=1bdp proxy=fiber";

fn download(keys: &str, size: u64, seed: u64) -> Engine {
    let line = format!("{PATH} {keys}");
    let spec = PathSpec::load(&line, None).unwrap_or_else(|e| panic!("{line}: {e}"));
    let flow = sized("standard", Profile::LINUX_6_18, size);
    let proxy = spec.proxy().expect("it has one");
    Proxied::new(proxy, spec.build(seed), flow, seed, (Sampling::Off, false), false)
        .complete(Instant::ZERO + Span::secs(600))
}

fn completed(e: &Engine) -> f64 {
    e.flows[0].truth.completed.expect("completed").since(Instant::ZERO).as_secs_f64()
}

#[test]
fn all_of_it_arrives_and_a_seed_is_a_run() {
    let run = |seed| {
        let e = download("proxy_buffer=4MB loss=0.1%", SIZE, seed);
        (e.flows[0].truth.completed, e.flows[0].truth.milestones, e.cost)
    };
    assert!(run(1).0.is_some());
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn the_server_is_held_to_the_buffer() {
    // 64 kB in each round trip of the client's path: 10 MB take 156 of them. Each is longer by the server's
    // round trip and by ACKs that wait up to 40 ms.
    let e = download("proxy_buffer=64kB", SIZE, 1);
    let tx = &e.flows[0].ends[End::Server].tx;
    assert!(tx.counters.peak_inflight <= 64_000, "{}", tx.counters.peak_inflight);
    assert!(e.dropped == 0 && tx.counters.timeouts == 0, "{:?}", tx.counters);
    let rounds = completed(&e) / 0.6;
    assert!((156.0..174.0).contains(&rounds), "{rounds} round trips");
}

#[test]
fn the_proxys_startup_decides_and_the_servers_does_not() {
    let of = |keys: &str| completed(&download(keys, SIZE, 1));
    let (slow, fast) =
        (of("proxy_buffer=8MB proxy_startup=standard"), of("proxy_buffer=8MB proxy_startup=jump-start"));
    // A jump sends at once what has come from the server by then, and saves round trips of 600 ms.
    assert!(fast < slow - 0.6, "jump-start {fast} s, standard {slow} s");
    // Without the proxy the server's startup has the same round trips before it, and its own.
    let plain = PATH.split(" proxy").next().unwrap_or_default();
    let mut alone = common::engine(plain, vec![sized("standard", Profile::LINUX_6_18, SIZE)]);
    alone.complete(Instant::ZERO + Span::secs(600));
    assert!((completed(&alone) - slow).abs() < 0.6, "alone {} s, behind a proxy {slow} s", completed(&alone));
}

#[test]
fn a_server_that_no_syn_reaches_does_not_begin() {
    let e = download("proxy_buffer=64kB drop_syn=1000", SIZE, 1);
    assert_eq!((e.flows[0].delivered(), e.flows[0].truth.completed), (0, None));
}

#[test]
fn mistakes_are_named() {
    for (line, message) in [
        ("rate=5Mbit rtt=40ms proxy_buffer=1MB", "path: proxy_buffer: found \"1MB\", expected proxy with it"),
        (
            "rate=5Mbit rtt=40ms proxy=fiber",
            "path: proxy_buffer: found nothing, expected an amount of at least 64kB, such as 16MB",
        ),
        (
            "rate=5Mbit rtt=40ms proxy=fiber proxy_buffer=1kB",
            "path: proxy_buffer: found \"1kB\", expected an amount of at least 64kB, such as 16MB",
        ),
        (
            "rate=5Mbit rtt=40ms proxy=geo-pep proxy_buffer=1MB",
            "path: proxy: found \"geo-pep\", expected the path from the server to the proxy: a built-in path, a file, or keys of \
             a path, without a proxy of its own",
        ),
        (
            "rate=5Mbit rtt=40ms proxy=fiber proxy_buffer=1MB proxy_startup=hyblaa",
            "path: proxy_startup: found \"hyblaa\", expected the name of a startup, such as hybla (did you mean \"hybla\"?)",
        ),
    ] {
        assert_eq!(PathSpec::load(line, None).expect_err(line).to_string(), message);
    }
}
