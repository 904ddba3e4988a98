//! How many gaps must a receiver hold, by path and startup, and which receivers close the connection? The map
//! of docs/evidence/quic.md and the picture of the guide: downloads by quinn and noq over paths of several
//! rates, round trips and queues, to a client that takes any number of gaps; then the same downloads to the
//! stacks' own clients, which close from 1,024 pieces on. Pieces are not gaps: these stacks keep large pieces
//! that join apart, so that fewer gaps are enough.
//!
//!     cargo run --release -p slowstart-quic --features sim --example gaps docs/evidence/gaps.svg

use maud::{Markup, html};
use slowstart_quic_sim::{Knobs, Quic, Which};
use slowstart_report::chart::{Axis, Chart, Dot, Key, Point};
use slowstart_study::engines::{Engine as _, Watched};
use slowstart_study::run::{Job, in_order};
use slowstart_study::scenario::StudyText;
use std::error::Error;

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
const STARTUPS: [&str; 6] = ["standard", "hystart", "hystart++", "search", "rapid-start", "rate-bound"];
/// Limits that no flow-control window moves, from the stacks' sources; each with who has it.
const LIMITS: [(u64, &str); 3] = [(1000, "quic-go"), (3999, "ngtcp2"), (4096, "neqo at least")];

/// A sender's stack over a path.
#[derive(Copy, Clone)]
struct Cell {
    which: Which,
    /// In halves of a BDP.
    queue: u64,
    rtt: u64,
    rate: u64,
}

/// What a startup did in a cell.
#[derive(Copy, Clone)]
struct Found {
    /// The most gaps that the receiver had to hold.
    gaps: u64,
    /// True if the stack's own client closed the connection for them.
    closed: bool,
}

impl Cell {
    /// Bytes on the wire that the path holds without a queue.
    const fn bdp(self) -> u64 {
        self.rate * self.rtt * 125
    }

    /// Packets that it holds with a full queue.
    const fn held(self) -> u64 {
        (self.bdp() + self.bdp() * self.queue / 2) / PACKET
    }

    fn name(self) -> String {
        let Self { queue, rtt, rate, .. } = self;
        format!("rate={rate}Mbit rtt={rtt}ms queue={}bdp", queue as f64 / 2.0)
    }

    /// What each startup does.
    fn run(self) -> Result<Vec<Found>, String> {
        let settings = "mtu=discover";
        let knobs = Knobs::read(self.which, settings).map_err(|e| e.to_string())?;
        let engine = Quic::new(self.which, settings).map_err(|e| e.to_string())?;
        let text = StudyText {
            path: self.name(),
            startups: STARTUPS.map(str::to_string).into(),
            // A window that doubles has met the end of the queue by then.
            size: Some(format!("{}B", (self.held() * PACKET * 5 / 2).max(5_000_000))),
            runs: Some(1),
            ..StudyText::default()
        };
        let study = engine.study(&text, None).map_err(|e| e.to_string())?;
        let found = |contender| {
            let job = Job { contender, run: 0 };
            let gaps = self.which.gaps(&knobs, &study, job).map_err(|e| e.to_string())?;
            let real = engine.run(&study, job, &Watched::ROW).map_err(|e| e.to_string())?;
            let closed = real.measured.closed.is_some_and(|why| why.contains("too many gaps"));
            Ok(Found { gaps, closed })
        };
        (0..STARTUPS.len()).map(found).collect()
    }
}

/// The cells of a sender with what was found in them, the smallest first.
type Map = Vec<(Cell, Vec<Found>)>;

/// The most gaps of a startup on paths that hold at most as many packets.
fn bound(map: &Map, startup: usize) -> Vec<Point> {
    let mut most = 0;
    let mut points = Vec::new();
    for (cell, found) in map {
        most = most.max(found[startup].gaps);
        points.push((cell.held() as f64, most.max(1) as f64));
    }
    points
}

/// The picture: gaps over packets that the path holds, with the limits.
fn picture(map: &Map) -> String {
    // A startup has the colour that it has elsewhere; the names of limits are on the left, where no curve is.
    const STYLE: &str = "text{font:12px sans-serif;fill:#333}.grid{stroke:#ddd}path{fill:none}.line{stroke-width:1.8}\
        .halo{paint-order:stroke;stroke:#fff;stroke-width:3px;text-anchor:start;transform:translateX(-474px)}\
        .level{stroke:#b30000;stroke-dasharray:6 3}\
        .dot{fill:#888;fill-opacity:.35}.s0{stroke:#d55e00}.s1{stroke:#0072b2}.s2{stroke:#3a94cf}.s3{stroke:#008a63}\
        .s4{stroke:#7a7a14}.s5{stroke:#a64d79}";
    let x = Axis::decades("packets that the path holds with a full queue", 50.0, 20_000.0);
    let y = Axis::decades("gaps in the receiver's buffer", 10.0, 10_000.0);
    let legend: Vec<Key> = STARTUPS.iter().enumerate().map(|(at, label)| Key { at, label }).collect();
    let name = "The most gaps that a receiver had to hold, by what the path holds and the startup";
    let chart = Chart { id: 0, name: name.to_string(), x: &x, y: &y, legend: &legend };
    let names: Vec<(String, Point)> = map
        .iter()
        .flat_map(|(cell, found)| found.iter().zip(STARTUPS).map(move |(f, s)| (cell, f, s)))
        .filter(|(_, f, _)| f.gaps > 0)
        .map(|(c, f, s)| (format!("{s}, {}: {} gaps", c.name(), f.gaps), (c.held() as f64, f.gaps as f64)))
        .collect();
    let dots: Vec<Dot> =
        names.iter().map(|(name, at)| Dot { class: "", at: *at, name, shown: false }).collect();
    let levels: Markup = html! {
        (chart.level("level", 1000.0, "quic-go 1,000 gaps; quinn, noq 1,024 pieces"))
        (chart.level("level", 4000.0, "ngtcp2 4,000; neqo 4,096 and more"))
        (chart.dots(&dots))
        @for (at, key) in legend.iter().enumerate() { (chart.keyed(key, bound(map, at).into_iter())) }
    };
    let height = 300 + 18 * STARTUPS.len().div_ceil(2);
    let svg = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 560 " (height) } {
            style { (maud::PreEscaped(STYLE)) }
            rect width="560" height=(height) fill="#fff" {}
            (chart.draw(&levels, &html! {}))
        }
    };
    svg.into_string() + "\n"
}

/// The smallest path on which something was seen, and on how many of those that hold at least as much.
fn first(map: &Map, seen: impl Fn(&[Found]) -> bool) -> String {
    let over: Vec<_> = map.iter().filter(|(_, f)| seen(f)).collect();
    over.first().map_or("never".to_string(), |(c, _)| {
        let of = map.iter().filter(|(other, _)| other.held() >= c.held()).count();
        format!("{} packets, {} of {of}", c.held(), over.len())
    })
}

/// Prints the most gaps of each startup, and the smallest path on which each limit was passed.
fn table(name: &str, map: &Map) {
    let gaps =
        |closed: bool| map.iter().flat_map(|(_, f)| f).filter(move |f| f.closed == closed).map(|f| f.gaps);
    let or_none = |gaps: Option<u64>| gaps.map_or("none".into(), |n| n.to_string());
    println!(
        "{name}: its own client closed {} of {} downloads; the fewest gaps of those: {}; the most of the others: {}\n",
        gaps(true).count(),
        map.len() * STARTUPS.len(),
        or_none(gaps(true).min()),
        or_none(gaps(false).max()),
    );
    let limits = LIMITS.map(|(n, who)| format!(" more than {n}: {who} |")).concat();
    println!("| Startup | Gaps, of the packets held | own client |{limits}");
    println!("|---|--:|---|{}", LIMITS.map(|_| "---|").concat());
    for (at, startup) in STARTUPS.iter().enumerate() {
        let share = map.iter().map(|(c, f)| f[at].gaps as f64 / c.held() as f64).fold(0.0, f64::max);
        let cells = LIMITS.map(|(limit, _)| format!(" {} |", first(map, |f| f[at].gaps > limit))).concat();
        println!("| `{startup}` | {:.0} % | {} |{cells}", share * 100.0, first(map, |f| f[at].closed));
    }
    println!();
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut cells = Vec::new();
    for which in Which::ALL {
        for queue in QUEUES {
            for rtt in RTTS {
                cells.extend(RATES.map(|rate| Cell { which, queue, rtt, rate }));
            }
        }
    }
    cells.retain(|c| c.bdp() <= MOST_BDP);
    cells.sort_by_key(|c| (c.held(), c.rtt, c.queue));
    let mut all: Map = Vec::new();
    let mut done = cells.iter();
    in_order(
        &cells,
        |cell: Cell| cell.run(),
        |found: Result<Vec<Found>, String>| {
            let found = found?;
            all.extend(done.next().map(|c| (*c, found)));
            Ok::<(), String>(())
        },
    )?;
    for which in Which::ALL {
        let map: Map = all.iter().filter(|(c, _)| c.which == which).cloned().collect();
        table(which.name(), &map);
        if which == Which::Noq
            && let Some(file) = std::env::args().nth(1)
        {
            std::fs::write(file, picture(&map))?;
        }
    }
    Ok(())
}
