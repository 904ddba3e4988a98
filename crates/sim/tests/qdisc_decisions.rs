//! Queue disciplines, token buckets and netem's elements against the kernel's: the same packets at the same
//! times must be sent, marked, dropped, and leave in the same order.
//!
//! The recordings are what the functions of `net/sched` of a kernel decided, compiled with a clock that the
//! schedule sets (`ci/qdisc`); the kernel's random numbers were those that our elements draw. A line for each
//! schedule has a letter for each packet, a hash of the order in which packets left, and for `tbf` and whole
//! lines of netem (`tc_netem`) how long each waited. Ten schedules of 10,000 packets of each are in the repository; `ci/qdisc/record.sh` records
//! more anew.

#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]

use flate2::read::GzDecoder;
use slowstart::units::Instant;
use slowstart_sim::path::queue::{Departure, Discipline, Packet};
use slowstart_sim::path::{ArrivalQueue, Cause, Ecn, Kind, PacketInfo, PathSpec};
use slowstart_sim::random::{self, Stream};
use std::io::Read;

/// What is compared, by the name of its recordings.
const NAMES: [&str; 11] = [
    "pfifo_head_drop",
    "codel",
    "fq_codel",
    "pie",
    "red",
    "dualpi2",
    "fq",
    "tbf",
    "police",
    "netem",
    "tc_netem",
];
/// The line of netem of each schedule, as a user gives it to tc.
const NETEM_LINES: &str = include_str!("data/netem-lines");
/// The rates of the buckets in Mbit/s, by schedule.
const RATES: [u64; 5] = [20, 3, 8, 50, 7];
/// By how much the wait of a packet in `tbf` may differ: a packet of 1500 bytes needs less on the link that
/// is not there in the kernel's recording.
const WAIT_NS: u64 = 1;

/// Draws as the recorder does.
struct Draws {
    seed: u64,
    n: u64,
}

/// A packet of a schedule.
struct Drawn {
    frame: u32,
    flow: u32,
    ecn: Ecn,
}

impl Draws {
    fn below(&mut self, n: u64) -> u64 {
        self.n += 1;
        random::scale(random::at(self.seed, self.n - 1), n)
    }

    fn packet(&mut self) -> Drawn {
        let frame = [54, 590, 1514, 1514][self.below(4) as usize];
        let ecn = Ecn::from_bits(self.below(4) as u8);
        // Half of the packets are of one flow.
        let flow = if self.below(2) == 1 { 0 } else { [1, 3, 20, 300][self.below(4) as usize] };
        let flow = if flow == 0 { 0 } else { self.below(flow) as u32 };
        Drawn { frame, flow, ecn }
    }
}

fn mean_gap(schedule: u64) -> u64 {
    [20_000, 50_000, 100_000, 200_000, 500_000][schedule as usize % 5]
}

/// What became of the packets of a schedule.
struct Recording {
    /// A letter for each packet.
    letters: Vec<u8>,
    /// A hash of the order in which they left.
    order: u64,
    /// Nanoseconds that the packets sent waited, where that is recorded; of netem in the order in which they
    /// left.
    waits: Vec<u64>,
}

impl Recording {
    fn new(packets: usize) -> Self {
        Self { letters: vec![b'q'; packets], order: 0xcbf2_9ce4_8422_2325, waits: Vec::new() }
    }

    fn read(line: &str) -> Self {
        let mut words = line.split(' ');
        let letters = words.next().expect("letters").as_bytes().to_vec();
        let order = u64::from_str_radix(words.next().expect("a hash"), 16).expect("hexadecimal");
        Self { letters, order, waits: words.map(|w| w.parse().expect("nanoseconds")).collect() }
    }

    fn leaves(&mut self, id: u32) {
        for byte in id.to_le_bytes() {
            self.order = (self.order ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn sent(&mut self, id: u32, ecn: Ecn) {
        self.leaves(id);
        self.letters[id as usize] = if ecn == Ecn::Ce { b'm' } else { b's' };
    }
}

/// The discipline of a schedule in words of `tc`, as the recorder sets it.
fn discipline(name: &str, schedule: u64) -> String {
    let is = |every: u64, at: u64| schedule % every == at;
    let either = |it: bool, this: &str, other: &str| format!(" {}", if it { this } else { other });
    let ecn = either(is(2, 1), "ecn", "noecn");
    let codel = match schedule % 4 {
        2 => " target 1ms interval 20ms",
        3 => " ce_threshold 2ms",
        _ => "",
    };
    let words = match name {
        "pfifo_head_drop" => either(is(3, 0), "limit 20p", "limit 100"),
        "codel" => either(is(3, 0), "limit 200p", "limit 1000p") + codel + &ecn,
        "fq_codel" => {
            either(is(3, 0), "limit 100p", "limit 10240p")
                + &either(is(2, 0), "flows 16", "flows 1024")
                + &either(is(6, 0), "drop_batch 5", "drop_batch 64")
                + &either(is(4, 1), "quantum 300", "quantum 1514")
                + &either(is(5, 4), "memory_limit 200000b", "memory_limit 32Mb")
                + codel
                + &ecn
        }
        "pie" => {
            either(is(3, 0), "limit 200p", "limit 1000p")
                + &either(is(4, 1), "bytemode", "")
                + &either(is(3, 1), "target 5ms tupdate 4ms", "")
                + &either(is(5, 3), "alpha 10 beta 25", "")
                + &ecn
        }
        "red" => {
            either(is(3, 0), "min 6000 max 18000 burst 20", "min 30000 max 90000 burst 55")
                + &either(is(5, 4), "limit 100000", "limit 400000")
                + &either(is(2, 1), "probability 0.1 ecn", "probability 0.02")
                + &either(is(4, 3), "harddrop", "")
                + &either(is(3, 2), "adaptive", "")
                + " avpkt 1000 bandwidth 10Mbit"
        }
        "dualpi2" => {
            either(is(5, 4), "limit 200p", "limit 10000p")
                + &either(is(7, 6), "memlimit 300000b", "")
                + &either(is(3, 1), "target 5ms tupdate 4ms", "")
                + &either(is(4, 2), "step_thresh 5p", "step_thresh 1ms")
                + &either(is(4, 3), "min_qlen_step 3", "")
                + &either(is(4, 1), "classic_protection 30%", "")
                + &either(is(5, 3), "coupling_factor 3", "")
                + &either(is(3, 2), "overflow", "")
                + &either(is(2, 1), "drop_enqueue", "")
                + &either(is(5, 1), "any_ect", "")
        }
        _ => {
            either(is(3, 0), "limit 150p", "limit 10000p")
                + &either(is(2, 0), "flow_limit 20p", "flow_limit 100p")
                + &either(is(4, 1), "quantum 1000b", "")
        }
    };
    format!("{name}{words}")
}

/// A discipline that is asked for a packet at drawn times.
fn poll(name: &str, schedule: u64, packets: usize) -> Recording {
    let text = discipline(name, schedule);
    let built: Discipline = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    let mut queue = built.build(Stream::named(1 + schedule, "queue"));
    let mut draws = Draws { seed: schedule, n: 0 };
    let (mut recording, mut out) = (Recording::new(packets), Vec::new());
    let (mut now, mut load, mut id) = (0, 500, 0);
    for event in 0_u64.. {
        if id as usize == packets {
            break;
        }
        if event.is_multiple_of(2000) {
            load = 400 + draws.below(201);
        }
        now += draws.below(2 * mean_gap(schedule) + 1);
        let at = Instant(now);
        if draws.below(1000) < load {
            let Drawn { frame, flow, ecn } = draws.packet();
            queue.enqueue(Packet { id, flow, bytes: frame - 14, ecn, at }, &mut out);
            id += 1;
        } else if let Some(p) = queue.dequeue(at, &mut out) {
            recording.sent(p.id, p.ecn);
        }
        for d in out.drain(..) {
            let full = d.outcome.is_err_and(|dropped| dropped.cause == Cause::QueueFull);
            recording.letters[d.id as usize] = if full { b'f' } else { b'd' };
        }
    }
    recording
}

/// The path of a schedule of an element that is not a discipline.
fn path(name: &str, schedule: u64) -> String {
    let rate = RATES[schedule as usize % 5];
    let burst = if schedule.is_multiple_of(3) { 3000 } else { 20_000 };
    let peak = if schedule % 2 == 1 { format!(" peak={}Mbit", 4 * rate) } else { String::new() };
    let element = match (name, schedule % 3) {
        ("tbf", _) => format!("shaper=\"rate={rate}Mbit burst={burst}B{peak}\" queue=60000B"),
        ("police", _) => format!("policer=\"rate={rate}Mbit burst={burst}B{peak}\" queue=infinite"),
        (_, 0) if schedule.is_multiple_of(2) => "gemodel=1%,10%,70%,0.1%".to_string(),
        (_, 0) => "gemodel=5%,25%".to_string(),
        (_, 1) => {
            let correlation = if schedule % 4 == 3 { "" } else { "50%," };
            let gap = if schedule.is_multiple_of(2) { 1 } else { 5 };
            format!("reorder=25%,{correlation}gap={gap},delay=10ms")
        }
        _ => format!("duplicate={}%", if schedule.is_multiple_of(2) { 30 } else { 5 }),
    };
    format!("rate=100000Gbit rtt=2ms ack_jitter=0 {element}")
}

/// An element of a path, which packets enter at drawn times.
fn pass(name: &str, schedule: u64, packets: usize) -> Recording {
    let line = path(name, schedule);
    let spec = PathSpec::load(&line, None).unwrap_or_else(|e| panic!("{line}: {e}"));
    let mut way = spec.build(1 + schedule).forward;
    let mut draws = Draws { seed: schedule, n: 0 };
    let (mut recording, mut line) = (Recording::new(packets), ArrivalQueue::new());
    let (mut now, mut load) = (0, 500);
    let rate = RATES[schedule as usize % 5] * 125_000;
    for id in 0..packets as u32 {
        if name == "netem" {
            now += draws.below(2 * mean_gap(schedule) + 1);
        } else {
            if id.is_multiple_of(500) {
                load = 800 + draws.below(if name == "tbf" { 401 } else { 801 });
            }
            now += draws.below(2 * 914 * 1_000_000_000 / rate * 1000 / load + 1);
        }
        let Drawn { frame, flow, ecn } = draws.packet();
        let bytes = frame - 14;
        let letter = match way.pass(Instant(now), &PacketInfo { bytes, flow, kind: Kind::Data, ecn }) {
            Ok(arrives) => {
                let waited = arrives.0 - now - way.least_delay().0;
                let copied = way.draws_copy();
                line.insert(arrives, id, |_| ());
                if copied {
                    line.insert(arrives, id, |_| ());
                }
                if name == "tbf" {
                    recording.waits.push(waited);
                }
                match (name, ecn) {
                    ("netem", _) if copied => b'2',
                    ("netem", _) if schedule % 3 == 1 && waited < 10_000_000 => b'i',
                    ("netem", _) => b's',
                    (_, Ecn::Ce) => b'm',
                    _ => b's',
                }
            }
            Err(dropped) => {
                if dropped.cause == Cause::QueueFull {
                    b'f'
                } else {
                    b'd'
                }
            }
        };
        recording.letters[id as usize] = letter;
        // The recorder of tbf ends with the last packet that comes, that of netem when all have left.
        while name == "tbf"
            && let Some(id) = line.pop(Instant(now) + way.least_delay())
        {
            recording.leaves(id);
        }
    }
    while name != "tbf"
        && let Some(id) = line.pop(Instant::NEVER)
    {
        recording.leaves(id);
    }
    recording
}

/// A whole line of netem: of a way back without a link, so that packets arrive when they leave it.
fn netem(schedule: u64, packets: usize) -> Recording {
    let netem = NETEM_LINES.lines().nth(schedule as usize).expect("ten lines");
    let line = format!("rate=1Gbit rtt=2ms ack_jitter=0 ack_netem={netem}");
    let spec = PathSpec::load(&line, None).unwrap_or_else(|e| panic!("{line}: {e}"));
    let mut way = spec.build(1 + schedule).back;
    let mut draws = Draws { seed: schedule, n: 0 };
    let mut recording = Recording::new(packets);
    let (mut came, mut out) = (Vec::new(), Vec::new());
    let mut note = |came: &[u64], out: &mut Vec<Departure>| {
        for d in out.drain(..) {
            match d.outcome {
                Ok(arrives) => {
                    recording.sent(d.id, d.ecn);
                    recording.waits.push(arrives.0 - came[d.id as usize] - 1_000_000);
                }
                Err(dropped) => {
                    let full = dropped.cause == Cause::QueueFull;
                    recording.letters[d.id as usize] = if full { b'f' } else { b'd' };
                }
            }
        }
    };
    let mut now = 1_000_000_000;
    for id in 0..packets as u32 {
        now += draws.below(2 * mean_gap(schedule) + 1);
        while let Some(at) = way.next().filter(|at| at.0 <= now) {
            way.serve(at, &mut out);
        }
        let Drawn { frame, flow, ecn } = draws.packet();
        came.push(now);
        let info = PacketInfo { bytes: frame - 14, flow, kind: Kind::Data, ecn };
        way.enqueue(Instant(now), &info, id, &mut out);
        note(&came, &mut out);
    }
    while let Some(at) = way.next() {
        way.serve(at, &mut out);
        note(&came, &mut out);
    }
    recording
}

/// What a comparison found.
#[derive(Copy, Clone, Debug, Default)]
struct Found {
    packets: usize,
    /// Packets with each letter in the kernel's recording.
    dropped: usize,
    full: usize,
    marked: usize,
    /// Packets with another letter.
    differ: usize,
    /// Schedules in which the packets left in another order.
    other_order: usize,
    /// The greatest difference of a wait in nanoseconds.
    wait_ns: u64,
}

fn compare(name: &str, schedule: u64, line: &str) -> Found {
    let kernel = Recording::read(line);
    let packets = kernel.letters.len();
    let is_element = matches!(name, "tbf" | "police" | "netem");
    let ours = match name {
        "tc_netem" => netem(schedule, packets),
        _ if is_element => pass(name, schedule, packets),
        _ => poll(name, schedule, packets),
    };
    let apart =
        || ours.letters.iter().zip(&kernel.letters).enumerate().filter(|(_, (a, b))| a != b && **b != b'q');
    if let Some((i, (a, b))) = apart().next() {
        println!(
            "{name}, schedule {schedule}: packet {i} is {} here, {} in the kernel",
            *a as char, *b as char
        );
    }
    if ours.order != kernel.order {
        println!("{name}, schedule {schedule}: packets leave in another order");
    }
    let count = |letter: char| line.chars().take(packets).filter(|c| *c == letter).count();
    let waits = ours.waits.iter().zip(&kernel.waits);
    Found {
        packets,
        dropped: count('d'),
        full: count('f'),
        marked: count('m'),
        differ: apart().count(),
        other_order: usize::from(ours.order != kernel.order),
        wait_ns: waits.map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0),
    }
}

fn compare_all(name: &str, lines: &[String]) -> Found {
    let found = (0..).zip(lines).map(|(schedule, line)| compare(name, schedule, line));
    let total = found.fold(Found::default(), |a, b| Found {
        packets: a.packets + b.packets,
        dropped: a.dropped + b.dropped,
        full: a.full + b.full,
        marked: a.marked + b.marked,
        differ: a.differ + b.differ,
        other_order: a.other_order + b.other_order,
        wait_ns: a.wait_ns.max(b.wait_ns),
    });
    println!("{name}: {total:?}");
    total
}

/// Returns the names that differ.
fn check(recordings: impl Iterator<Item = (&'static str, Vec<String>)>) -> Vec<&'static str> {
    let differs = |found: Found| {
        found.differ > 0
            || found.other_order > 0
            || found.wait_ns > WAIT_NS
            || found.dropped + found.full < found.packets / 200
    };
    recordings
        .filter(|(name, lines)| lines.len() != 10 || differs(compare_all(name, lines)))
        .map(|r| r.0)
        .collect()
}

#[test]
fn the_recorded_decisions_are_ours() {
    let read = |name| {
        let file = format!("{}/tests/data/{name}-decisions.gz", env!("CARGO_MANIFEST_DIR"));
        let mut text = String::new();
        let bytes = std::fs::read(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
        GzDecoder::new(&bytes[..]).read_to_string(&mut text).expect("text");
        (name, text.lines().map(String::from).collect())
    };
    assert_eq!(check(NAMES.into_iter().map(read)), [""; 0]);
}

#[test]
fn new_recordings_are_ours() {
    let Ok(folder) = std::env::var("SLOWSTART_QDISC") else {
        println!("skipped: ci/qdisc/record.sh records");
        return;
    };
    let read = |name: &'static str| {
        let one = |schedule| std::fs::read_to_string(format!("{folder}/{name}-{schedule}"));
        let all: Result<Vec<String>, _> = (0..10).map(one).collect();
        if all.is_err() {
            println!("{name}: this kernel does not have it");
        }
        Some((name, all.ok()?.iter().map(|l| l.trim_end().to_string()).collect()))
    };
    assert_eq!(check(NAMES.into_iter().filter_map(read)), [""; 0]);
}
