//! Where does each startup close a connection of quinn and noq? The map of docs/guide/quic.md and
//! docs/evidence/quic.md: downloads over paths of several rates, round trips and queues, and which of them an
//! end closed with "too many gaps in stream buffer".
//!
//!     cargo run --release -p slowstart-quic --features sim --example gaps

use slowstart_quic::sim::{Quic, Which};
use slowstart_study::engines::{Engine as _, EngineError, Watched};
use slowstart_study::run::{Job, in_order};
use slowstart_study::scenario::StudyText;

/// Rates, Mbit/s.
const RATES: [u64; 7] = [10, 20, 50, 100, 200, 500, 1000];
/// Round-trip times, ms.
const RTTS: [u64; 5] = [20, 50, 100, 200, 600];
/// Queues, in halves of a BDP.
const QUEUES: [u64; 3] = [1, 2, 4];
/// A path that holds more is left out: the transfer takes long, and smaller ones show what happens.
const MOST_BDP: u64 = 8_000_000;
/// What a full packet takes on the wire.
const PACKET: u64 = 1480;
/// Startups, each with its letter in the map.
const STARTUPS: [(&str, char); 6] = [
    ("standard", 's'),
    ("hystart", 'h'),
    ("hystart++", 'p'),
    ("search", 'c'),
    ("rapid-start", 'a'),
    ("rate-bound", 'b'),
];
/// Runs of each cell; it counts as closed if one is.
const RUNS: u32 = 2;

/// A cell of the map.
#[derive(Copy, Clone)]
struct Cell {
    stack: &'static str,
    /// In halves of a BDP.
    queue: u64,
    rtt: u64,
    rate: u64,
}

impl Cell {
    /// Bytes on the wire that the path holds without a queue.
    fn bdp(self) -> u64 {
        self.rate * self.rtt * 125
    }

    /// The same with a full queue.
    fn held(self) -> u64 {
        self.bdp() + self.bdp() * self.queue / 2
    }

    /// The letters of the startups whose connection was closed for its gaps.
    fn closed(self) -> Result<String, EngineError> {
        let which = if self.stack == "quinn" { Which::Quinn } else { Which::Noq };
        let engine = Quic::new(which, "mtu=discover")?;
        let Cell { queue, rtt, rate, .. } = self;
        let text = StudyText {
            path: format!("rate={rate}Mbit rtt={rtt}ms queue={}bdp ack_jitter=1ms", halves(queue)),
            startups: STARTUPS.map(|(name, _)| name.to_string()).into(),
            // A window that doubles has met the end of the queue by then.
            size: Some(format!("{}B", (self.held() * 5 / 2).max(5_000_000))),
            runs: Some(RUNS),
            ..StudyText::default()
        };
        let study = engine.study(&text, None)?;
        let mut letters = String::new();
        for (contender, (_, letter)) in STARTUPS.into_iter().enumerate() {
            for run in 0..RUNS {
                let outcome = engine.run(&study, Job { contender, run }, &Watched::ROW)?;
                let gaps = |why: &String| why.contains("too many gaps");
                if outcome.measured.closed.as_ref().is_some_and(gaps) {
                    letters.push(letter);
                    break;
                }
            }
        }
        Ok(letters)
    }
}

/// Halves as a number.
fn halves(n: u64) -> f64 {
    n as f64 / 2.0
}

fn main() -> Result<(), EngineError> {
    let mut cells = Vec::new();
    for stack in ["quinn", "noq"] {
        for queue in QUEUES {
            for rtt in RTTS {
                cells.extend(RATES.map(|rate| Cell { stack, queue, rtt, rate }));
            }
        }
    }
    cells.retain(|c| c.bdp() <= MOST_BDP);
    let mut maps: Vec<(Cell, String)> = Vec::new();
    let mut done = cells.iter();
    in_order(
        &cells,
        |cell: Cell| cell.closed(),
        |letters: Result<String, EngineError>| {
            maps.extend(done.next().map(|c| (*c, String::new())));
            if let Some(last) = maps.last_mut() {
                last.1 = letters?;
            }
            Ok::<(), EngineError>(())
        },
    )?;
    let legend: Vec<String> = STARTUPS.iter().map(|(name, letter)| format!("{letter} {name}")).collect();
    println!(
        "{}; the number of packets that fill the path without a queue in parentheses\n",
        legend.join(", ")
    );
    for stack in ["quinn", "noq"] {
        for queue in QUEUES {
            println!("{stack}, a queue of {} BDP\n", halves(queue));
            println!("| RTT |{}", RATES.map(|r| format!(" {r} Mbit/s |")).concat());
            println!("|--:|{}", RATES.map(|_| "---|").concat());
            for rtt in RTTS {
                let cell = |rate: u64| {
                    let found = maps
                        .iter()
                        .find(|(c, _)| (c.stack, c.queue, c.rtt, c.rate) == (stack, queue, rtt, rate));
                    found.map_or(" |".to_string(), |(c, letters)| {
                        let shown = if letters.is_empty() { "-" } else { letters };
                        format!(" {shown} ({}) |", c.bdp() / PACKET)
                    })
                };
                println!("| {rtt} ms |{}", RATES.map(cell).concat());
            }
            println!();
        }
    }
    Ok(())
}
