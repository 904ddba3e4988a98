//! CoDel against the kernel's: the same packets at the same times must be sent, marked and dropped.
//!
//! The recordings are what `codel_dequeue` of a kernel's `include/net/codel_impl.h` decided, compiled with a clock that the
//! schedule sets (`ci/codel`): a letter for each packet, a line for each schedule. Ten schedules of 10,000 packets are in the
//! repository; `ci/codel/record.sh` records more anew.

use flate2::read::GzDecoder;
use slowstart::units::Instant;
use slowstart_lab::path::queue::{Discipline, Packet};
use slowstart_lab::path::{Cause, Ecn};
use slowstart_lab::random::{self, Stream};
use std::io::Read;

/// Draws as the recorder does.
struct Draws {
    seed: u64,
    n: u64,
}

impl Draws {
    fn below(&mut self, n: u64) -> u64 {
        self.n += 1;
        random::scale(random::at(self.seed, self.n - 1), n)
    }
}

/// What our CoDel does with the packets of a schedule, in the letters of the recorder.
fn decisions(schedule: u64, packets: usize) -> String {
    let mut text = String::from("codel");
    text += if schedule.is_multiple_of(3) { " limit 200p" } else { " limit 1000p" };
    text += if schedule.is_multiple_of(2) { "" } else { " ecn" };
    text += match schedule % 4 {
        2 => " target 1ms interval 20ms",
        3 => " ce_threshold 2ms",
        _ => "",
    };
    let discipline: Discipline = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    let mut queue = discipline.build(Stream::named(1, "codel"));
    let gap = [20_000, 50_000, 100_000, 200_000, 500_000][schedule as usize % 5];
    let mut draws = Draws { seed: schedule, n: 0 };
    let (mut outcome, mut out) = (vec![b'q'; packets], Vec::new());
    let (mut now, mut load, mut id) = (0, 500, 0);
    for event in 0_u64.. {
        if id == packets {
            break;
        }
        if event.is_multiple_of(2000) {
            load = 400 + draws.below(201);
        }
        now += draws.below(2 * gap + 1);
        let at = Instant(now);
        if draws.below(1000) < load {
            let frame = [54, 590, 1514, 1514][draws.below(4) as usize];
            let ecn = Ecn::from_bits(draws.below(4) as u8);
            queue.enqueue(Packet { id: id as u32, flow: 0, bytes: frame - 14, ecn, at }, &mut out);
            id += 1;
        } else if let Some(p) = queue.dequeue(at, &mut out) {
            outcome[p.id as usize] = if p.ecn == Ecn::Ce { b'm' } else { b's' };
        }
        for d in out.drain(..) {
            let full = d.outcome.is_err_and(|dropped| dropped.cause == Cause::QueueFull);
            outcome[d.id as usize] = if full { b'f' } else { b'd' };
        }
    }
    String::from_utf8(outcome).expect("letters")
}

/// Compares a schedule; returns the number of packets, and of those dropped by CoDel and marked.
fn compare(schedule: u64, kernel: &str) -> [usize; 3] {
    let ours = decisions(schedule, kernel.len());
    let differ = ours.bytes().zip(kernel.bytes()).position(|(a, b)| a != b);
    let near = |text: &str, i: usize| text[i.saturating_sub(20)..(i + 20).min(text.len())].to_string();
    if let Some(i) = differ {
        panic!("schedule {schedule}, packet {i}: ours {}, the kernel's {}", near(&ours, i), near(kernel, i));
    }
    let count = |letter| kernel.bytes().filter(|b| *b == letter).count();
    [kernel.len(), count(b'd'), count(b'm')]
}

#[test]
fn the_recorded_decisions_are_ours() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/codel-decisions.gz");
    let mut text = String::new();
    let bytes = std::fs::read(file).expect("the recordings");
    GzDecoder::new(&bytes[..]).read_to_string(&mut text).expect("text");
    assert_eq!(text.lines().count(), 10);
    let mut total = [0; 3];
    for (schedule, kernel) in (0..).zip(text.lines()) {
        let counts = compare(schedule, kernel);
        total = std::array::from_fn(|i| total[i] + counts[i]);
    }
    assert!(total[0] == 100_000 && total[1] > 1000 && total[2] > 1000, "{total:?}");
}

#[test]
fn new_recordings_are_ours() {
    let Ok(folder) = std::env::var("SLOWSTART_CODEL") else {
        println!("skipped: ci/codel/record.sh records");
        return;
    };
    let mut total = [0; 3];
    for schedule in 0..10 {
        let kernel = std::fs::read_to_string(format!("{folder}/{schedule}")).expect("a recording");
        let counts = compare(schedule, kernel.trim_end());
        total = std::array::from_fn(|i| total[i] + counts[i]);
    }
    println!(
        "{} packets, {} dropped by CoDel, {} with a mark, 0 decisions differ",
        total[0], total[1], total[2]
    );
}
