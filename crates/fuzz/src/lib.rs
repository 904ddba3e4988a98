//! Fuzz targets. Each takes any bytes, must not panic or run without an end, and returns whether the bytes
//! were valid.
//!
//! `ci/fuzz.sh SECONDS` runs each under libFuzzer, guided by coverage, from the inputs in `corpus/TARGET`.
//! The tests run those inputs alone, which needs nothing but Rust. An input that made a target fail is kept
//! in the corpus.

pub mod random_study;

use std::io::{Cursor, Write as _};

use arbitrary::{Arbitrary, Unstructured};
use slowstart::avoidance;
use slowstart::registry::{self, AnyController};
use slowstart::startup::REGISTRY;
use slowstart::units::{Bytes, Instant};
use slowstart::view::Signal;
use slowstart_packetdrill::{parse, run};
use slowstart_quic::host::{Host, INITIAL_PACKETS};
use slowstart_replay::analysis::Keep;
use slowstart_replay::observer::Candidate;
use slowstart_replay::open;
use slowstart_replay::replay::{Options, read};
use slowstart_sim::engine::Sampling;
use slowstart_sim::path::PathSpec;
use slowstart_study::run::Job;
use slowstart_study::scenario::Study;

/// A target: reads any bytes, and returns true if they said something to it.
pub type Target = fn(&[u8]) -> bool;

/// All targets with the names of their programs and of their folders in the corpus.
pub const TARGETS: [(&str, Target); 7] = [
    ("files", files),
    ("paths", paths),
    ("studies", studies),
    ("runs", runs),
    ("traces", traces),
    ("scripts", scripts),
    ("stacks", stacks),
];

/// A file as `slowstart replay` gets it: a capture, log or row, perhaps compressed. Every startup observes
/// its transfers.
pub fn files(data: &[u8]) -> bool {
    let Ok((kind, input)) = open::detect(Box::new(Cursor::new(data.to_vec()))) else { return false };
    let candidates =
        REGISTRY.iter().map(|e| Candidate { label: e.name.to_string(), startup: (e.make)() }).collect();
    let keep = Keep { snapshots: true, packets: true, fork_states: false };
    let options = Options { candidates, keep, ..Options::default() };
    read(kind, input, &options, |_| {}).is_ok()
}

/// True if a text may name a file. Such texts are left out: the target would open any file of the machine.
fn may_name_a_file(text: &str) -> bool {
    ["trace", "toml", "delay", "plugin"].iter().any(|word| text.contains(word))
}

/// A line such as `rate=100Mbit rtt=40ms queue=1bdp`. A valid one is drawn and built.
pub fn paths(data: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(data) else { return false };
    if may_name_a_file(text) {
        return false;
    }
    let Ok(spec) = PathSpec::load(text, None) else { return false };
    let _ = spec.draw(7).build(7);
    true
}

/// The most events of a run of [`runs`]: at most 8 s and a flow, or 300 kB, at 50 Mbit/s and less, beside at
/// most six others.
pub const MOST_EVENTS: u64 = 20_000_000;

/// A study drawn from the bytes ([`random_study`]). A valid one is run.
///
/// # Panics
/// If the run takes more than [`MOST_EVENTS`].
pub fn runs(data: &[u8]) -> bool {
    let Ok(text) = random_study::study(&mut Unstructured::new(data)) else { return false };
    let study = match Study::check(&text, None) {
        Ok(study) => study,
        Err(e) => {
            if std::env::var_os("SLOWSTART_REFUSED").is_some() {
                eprintln!("refused: {e}");
            }
            return false;
        }
    };
    let row = study.run(Job { contender: 0, run: 0 }, Sampling::Off, false).row;
    assert!(row.cost.events <= MOST_EVENTS, "{} events: {text:?}", row.cost.events);
    true
}

/// A study in TOML. A valid one is checked and not run: it may ask for days of simulated time.
pub fn studies(data: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(data) else { return false };
    if may_name_a_file(text) {
        return false;
    }
    toml::from_str(text).is_ok_and(|text| Study::check(&text, None).is_ok())
}

/// A file of packet opportunities, perhaps compressed. Three packets pass over a link that follows a valid
/// one.
///
/// # Panics
/// If no temporary file can be written.
pub fn traces(data: &[u8]) -> bool {
    let mut file = tempfile::Builder::new().suffix(".trace").tempfile().expect("a temporary file");
    file.write_all(data).expect("a temporary file is written");
    let Ok(spec) = PathSpec::load(&format!("trace=\"{}\" rtt=40ms", file.path().display()), None) else {
        return false;
    };
    let _ = spec.draw(7).build(7);
    true
}

/// A packetdrill script. It runs against the simulated endpoint.
pub fn scripts(data: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(data) else { return false };
    parse::script(text).is_ok_and(|script| run::run(&script, true, None).is_ok())
}

/// One call of a QUIC stack that may be wrong: times that go back, ACKs of packets never sent, any sizes.
#[derive(Clone, Debug, Arbitrary)]
enum Call {
    Sent { now: u64, bytes: u64, number: u8 },
    Acked { now: u64, sent: u64, number: u8, app_limited: bool },
    AckEnd { now: u64, largest: Option<u64> },
    Lost { now: u64, number: u8 },
    Congestion { now: u64, sent: u64, persistent: bool, ecn: bool, lost: u64 },
    Spurious,
    CwndLimited,
    Mtu(u16),
    Timer(u64),
    Inflight(u64),
}

/// Calls of a QUIC stack. The first byte chooses the startup. True if it makes at least one call.
///
/// # Panics
/// If a window falls below two packets.
pub fn stacks(data: &[u8]) -> bool {
    const MSS: u64 = 1200;
    let Some((choice, data)) = data.split_first() else { return false };
    let entry = registry::all().nth(usize::from(*choice) % registry::all().count()).expect("within the list");
    let avoidance = (avoidance::REGISTRY[usize::from(*choice) % avoidance::REGISTRY.len()].make)();
    let control = entry.algorithm.controller(&avoidance, Bytes(MSS) * INITIAL_PACKETS, 1);
    let mut host: Host<AnyController> = Host::new(control, Instant::ZERO, Bytes(MSS));
    let (mut calls, mut mtu, mut bytes) = (0, MSS, Unstructured::new(data));
    while !bytes.is_empty() {
        let Ok(call) = Call::arbitrary(&mut bytes) else { break };
        match call {
            Call::Sent { now, bytes, number } => {
                host.on_packet_sent(Instant(now), Bytes(bytes), number.into());
            }
            Call::Acked { now, sent, number, app_limited } => {
                host.on_packet_acked(Instant(now), Instant(sent), number.into(), app_limited);
            }
            Call::AckEnd { now, largest } => host.on_ack_end(Instant(now), largest),
            Call::Lost { now, number } => host.on_packet_lost(Instant(now), number.into()),
            Call::Congestion { now, sent, persistent, ecn, lost } => {
                let signal = match (persistent, ecn) {
                    (true, _) => Signal::Timeout,
                    (_, true) => Signal::Ecn,
                    _ => Signal::Loss,
                };
                host.on_congestion(Instant(now), Instant(sent), signal, Bytes(lost));
            }
            Call::Spurious => host.on_spurious(),
            Call::CwndLimited => host.on_cwnd_limited(),
            Call::Mtu(size) => {
                mtu = u64::from(size).max(1);
                host.on_mtu(Bytes(size.into()));
            }
            Call::Timer(now) => host.on_timer(Instant(now)),
            Call::Inflight(bytes) => host.set_inflight(Bytes(bytes)),
        }
        assert!(host.window().0 >= 2 * mtu, "{}: {}", entry.name, host.window().0);
        let _ = host.pacing_rate();
        calls += 1;
    }
    calls > 0
}
