//! CoDel and FQ-CoDel against the kernel's: the same packets at the same times must be sent, marked and dropped.
//!
//! The recordings are what `include/net/codel_impl.h` and `net/sched/sch_fq_codel.c` of a kernel decided, compiled with a
//! clock that the schedule sets (`ci/codel`): a letter for each packet, a line for each schedule. Ten schedules of 10,000
//! packets of each are in the repository; `ci/codel/record.sh` records more anew.

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

/// The disciplines with recordings.
#[derive(Copy, Clone, Debug)]
enum Which {
    Codel,
    FqCodel,
}

impl Which {
    /// The discipline of a schedule, as the recorder sets it.
    fn of_schedule(self, schedule: u64) -> Discipline {
        let word = |every: u64, this: &str, other: &str| {
            format!(" {}", if schedule.is_multiple_of(every) { this } else { other })
        };
        let mut text = match self {
            Self::Codel => "codel".to_string() + &word(3, "limit 200p", "limit 1000p"),
            Self::FqCodel => {
                let quantum = if schedule % 4 == 1 { " quantum 300" } else { " quantum 1514" };
                let memory = if schedule % 5 == 4 { " memory_limit 200000b" } else { " memory_limit 32Mb" };
                "fq_codel".to_string()
                    + &word(3, "limit 100p", "limit 10240p")
                    + &word(2, "flows 16", "flows 1024")
                    + &word(6, "drop_batch 5", "drop_batch 64")
                    + quantum
                    + memory
            }
        };
        text += &word(2, "noecn", "ecn");
        text += match schedule % 4 {
            2 => " target 1ms interval 20ms",
            3 => " ce_threshold 2ms",
            _ => "",
        };
        text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    /// What ours does with the packets of a schedule, in the letters of the recorder.
    fn decisions(self, schedule: u64, packets: usize) -> String {
        let mut queue = self.of_schedule(schedule).build(Stream::named(1, "codel"));
        let gap = [20_000, 50_000, 100_000, 200_000, 500_000][schedule as usize % 5];
        let seed = match self {
            Self::Codel => schedule,
            Self::FqCodel => 1000 + schedule,
        };
        let mut draws = Draws { seed, n: 0 };
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
                let flow = match self {
                    Self::Codel => 0,
                    // Half of the packets are of one flow.
                    Self::FqCodel if draws.below(2) == 1 => 0,
                    Self::FqCodel => {
                        let flows = [1, 3, 20, 300][draws.below(4) as usize];
                        draws.below(flows) as u32
                    }
                };
                queue.enqueue(Packet { id: id as u32, flow, bytes: frame - 14, ecn, at }, &mut out);
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

    /// Compares a schedule; returns the number of packets, and of those dropped by CoDel, dropped for lack of room, and marked.
    fn compare(self, schedule: u64, kernel: &str) -> [usize; 4] {
        let ours = self.decisions(schedule, kernel.len());
        let differ = ours.bytes().zip(kernel.bytes()).position(|(a, b)| a != b);
        let near = |text: &str, i: usize| text[i.saturating_sub(20)..(i + 20).min(text.len())].to_string();
        if let Some(i) = differ {
            panic!(
                "{self:?}, schedule {schedule}, packet {i}: ours {}, the kernel's {}",
                near(&ours, i),
                near(kernel, i)
            );
        }
        let count = |letter| kernel.bytes().filter(|b| *b == letter).count();
        [kernel.len(), count(b'd'), count(b'f'), count(b'm')]
    }
}

#[test]
fn the_recorded_decisions_are_ours() {
    for (which, name) in [(Which::Codel, "codel"), (Which::FqCodel, "fq-codel")] {
        let file = format!("{}/tests/data/{name}-decisions.gz", env!("CARGO_MANIFEST_DIR"));
        let mut text = String::new();
        let bytes = std::fs::read(file).expect("the recordings");
        GzDecoder::new(&bytes[..]).read_to_string(&mut text).expect("text");
        assert_eq!(text.lines().count(), 10);
        let mut total = [0; 4];
        for (schedule, kernel) in (0..).zip(text.lines()) {
            let counts = which.compare(schedule, kernel);
            total = std::array::from_fn(|i| total[i] + counts[i]);
        }
        assert!(total[0] == 100_000 && total[1..].iter().all(|n| *n > 1000), "{total:?}");
    }
}

#[test]
fn new_recordings_are_ours() {
    let Ok(folder) = std::env::var("SLOWSTART_CODEL") else {
        println!("skipped: ci/codel/record.sh records");
        return;
    };
    for (which, name) in [(Which::Codel, "codel"), (Which::FqCodel, "fq-codel")] {
        let mut total = [0; 4];
        for schedule in 0..10 {
            let kernel = std::fs::read_to_string(format!("{folder}/{name}-{schedule}")).expect("a recording");
            let counts = which.compare(schedule, kernel.trim_end());
            total = std::array::from_fn(|i| total[i] + counts[i]);
        }
        let [packets, dropped, full, marked] = total;
        println!(
            "{name}: {packets} packets, {dropped} dropped, {full} for lack of room, {marked} left with CE, 0 differ"
        );
    }
}
