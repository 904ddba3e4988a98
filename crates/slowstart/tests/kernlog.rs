//! Kernel logs of connections that somebody else made: a startup looks on, and must find what was found then.
//!
//! The observer sees the true ACKs, one a row, and keeps a window of its own: IW 10 and what it grew. What makes it
//! agree with Linux:
//! - a row is taken before the ACK grows the window (`pkts_acked` runs before `cong_avoid`) and before it lets anything
//!   be sent, so `snd_nxt` is what was sent up to then, and the window at an exit has no part of the ACK that ended it;
//! - rounds end with an ACK beyond `snd_nxt` as it was at their start, whatever the algorithm;
//! - every byte acknowledged earns one: the log's `app_limited` is not what gates growth (`tcp_is_cwnd_limited` is);
//! - the sender is paced (fq, or TCP's own), so `HyStart++` has no limit L.

#[path = "common/mod.rs"]
mod common;

use common::{facts, startup};
use flate2::read::GzDecoder;
use slowstart::startup::Startup;
use slowstart::step::Window;
use slowstart::units::{Bytes, Instant, Mark, Rate, Span};
use slowstart::view::{Ack, Limit, Sent, View};
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};

/// One ACK of a log.
struct Row {
    now: Instant,
    acked: Bytes,
    mss: Bytes,
    rtt: Span,
    una: Mark,
    next: Mark,
    pacing: Rate,
}

/// Reads a log, plain or compressed. Marks count from the first byte of data.
fn read(path: &Path) -> Vec<Row> {
    let mut text = String::new();
    let file = std::fs::File::open(path).unwrap();
    let done = if path.extension().is_some_and(|e| e == "gz") {
        GzDecoder::new(file).read_to_string(&mut text)
    } else {
        { file }.read_to_string(&mut text)
    };
    done.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    parse(&text)
}

fn parse(text: &str) -> Vec<Row> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let column = |name: &str| header.iter().position(|h| *h == name);
    let must = |name: &str| column(name).unwrap_or_else(|| panic!("no column {name}"));
    let [now, acked, mss, rtt, next, pacing] =
        ["now_us", "bytes_acked", "mss", "rtt_us", "snd_nxt", "sk_pacing_rate"].map(must);
    let una = column("snd_una");
    let mut first = None;
    lines
        .map(|line| {
            let fields: Vec<u64> =
                line.split(',').map(|f| f.parse::<f64>().expect("a number") as u64).collect();
            let f = |i: usize| fields[i];
            // Without snd_una nothing but the initial window had been sent at the first row.
            let isn = *first.get_or_insert_with(|| match una {
                Some(una) => f(una).wrapping_sub(f(acked)) as u32,
                None => f(next).wrapping_sub(10 * f(mss)) as u32,
            });
            // Sequence numbers wrap; no log is 4 GB long.
            let mark = |seq: u64| Mark(u64::from((seq as u32).wrapping_sub(isn)));
            Row {
                now: Instant::ZERO + Span::micros(f(now)),
                acked: Bytes(f(acked)),
                mss: Bytes(f(mss)),
                rtt: Span::micros(f(rtt)),
                una: una.map_or(Mark(f(acked)), |una| mark(f(una))),
                next: mark(f(next)),
                pacing: Rate(f(pacing) * 8),
            }
        })
        .collect()
}

/// What a startup found: each change of phase, and the exit, with the time in us and the window in whole packets.
fn observe(rows: &[Row], name: &str) -> Vec<(&'static str, u64, u64)> {
    let mut s = startup(name);
    let mut f = facts(rows[0].mss.0, 10);
    f.pacing_on = true;
    f.gso_max = Bytes(65_536);
    let (mut cwnd, mut acked, mut sent) = (f.iw, Bytes::ZERO, Bytes::ZERO);
    let mut found = Vec::new();
    let mut phase = s.phase();
    for row in rows {
        let bytes = row.acked - acked;
        acked = row.acked;
        f.now = row.now;
        f.next = row.next;
        f.delivered = row.acked;
        f.pacing_rate = Some(row.pacing);
        f.min_rtt = Some(f.min_rtt.map_or(row.rtt, |m| m.min(row.rtt)));
        let v = View { facts: &f, cwnd, ssthresh: None };
        let new = Bytes(row.next.0) - sent;
        sent += new;
        s.on_sent(&v, &Sent { mark: row.next, at: row.now, bytes: new, sent_total: sent, ..Sent::default() });
        let ack = Ack {
            upto: row.una,
            bytes,
            delivered: bytes,
            newly_lost: Bytes::ZERO,
            prior_inflight: Bytes(row.next.0 - (row.una.0 - bytes.0).min(row.next.0)),
            rtt: Some(row.rtt),
            newest: Sent::default(),
            limit: Limit::Window,
        };
        let step = s.on_ack(&v, &ack);
        let here = |what| (what, row.now.0 / 1000, cwnd.units(row.mss));
        if s.phase() != phase {
            phase = s.phase();
            found.push(here(phase));
        }
        if let Some(why) = step.exit {
            found.push(here(why.name()));
            break;
        }
        match step.window {
            Window::Keep => {}
            Window::Grow(by) => cwnd += by,
            Window::Set(to) => cwnd = to,
        }
    }
    found
}

/// A log of the collection, where there is one.
fn log(name: &str) -> Option<Vec<Row>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/kernlogs");
    let path: PathBuf = dir.join(name);
    if !path.exists() {
        // Past the test harness, which would keep a println to itself.
        std::io::stderr().write_all(format!("skipped: {name} absent\n").as_bytes()).unwrap();
        return None;
    }
    Some(read(&path))
}

/// A connection recorded under Linux 6.13 with `HyStart` on, over a geostationary satellite: the kernel's own record
/// has the exit at this ACK with this window.
#[test]
fn hystart_leaves_where_the_kernel_left() {
    let Some(rows) = log("geo-hystart613-in2.csv.gz") else { return };
    assert_eq!(observe(&rows, "hystart:rules=6.13"), [("delay", 1_799_552, 48)]);
}

/// Recorded with `HyStart` off; where Linux 6.13's would have left, by its own code run over them.
#[test]
fn hystart_leaves_where_the_kernel_would_have() {
    for (name, at, cwnd) in [
        ("geo-allOff-in3.csv.gz", 1_800_674, 48),
        ("4g-allOff-in1.csv", 145_705, 124),
        ("4g-allOff-in2.csv", 120_048, 75),
        ("4g-allOff-in3.csv", 70_275, 28),
    ] {
        let Some(rows) = log(name) else { continue };
        let found = observe(&rows, "hystart:rules=6.13");
        println!("{name}: {found:?}");
        assert_eq!(found, [("delay", at, cwnd)], "{name}");
    }
}

/// The Linux implementation of RFC 9406 over the same connection.
#[test]
fn hystart_pp_slows_resumes_and_leaves_where_linux_would_have() {
    let Some(rows) = log("geo-hystart613-in2.csv.gz") else { return };
    assert_eq!(
        observe(&rows, "hystart++"),
        [
            ("css", 1_759_966, 47),
            ("slow-start", 3_440_328, 66),
            ("css", 3_839_936, 79),
            ("css-rounds", 8_839_470, 172),
        ]
    );
}

/// The authors' code of SEARCH 3.0, whose rule for leaving is that of 2.0.
#[test]
fn search_leaves_where_its_authors_code_does() {
    for (name, at) in [("geo-search-in1.csv.gz", 10_906_998), ("geo-search-in2.csv.gz", 8_028_593)] {
        let Some(rows) = log(name) else { continue };
        let found = observe(&rows, "search-2.0");
        println!("{name}: {found:?}");
        assert_eq!(found.iter().map(|f| (f.0, f.1)).collect::<Vec<_>>(), [("rate-flat", at)], "{name}");
    }
}

/// A log by a formula, for machines without the collection: four round trips of 10, 20, 40 and 80 packets, 600 ms
/// apart, an ACK each 5 ms. The RTT is 600 ms, 6 ms more each round trip and 0.1 ms more each ACK.
fn formula() -> String {
    let (mss, isn) = (1400, 4_294_900_000_u64);
    let mut text = "now_us,bytes_acked,mss,rtt_us,tp_deliver_rate,tp_interval,tp_delivered,lost_pkt,\
                    total_retrans_pkt,app_limited,snd_nxt,sk_pacing_rate,snd_una\n"
        .to_string();
    let mut acked = 0;
    for round in 0..4 {
        for i in 0..10 << round {
            acked += 1;
            let now = 600_000 * round + 5000 * i;
            let rtt = 600_000 + 6000 * round + 100 * i;
            // Each ACK before this one let two packets go.
            let sent = 10 + 2 * (acked - 1);
            let seq = |packets: u64| (isn + mss * packets) % (1 << 32);
            writeln!(
                text,
                "{now},{},{mss},{rtt},0,0,{acked},0,0,0,{},100000,{}",
                mss * acked,
                seq(sent),
                seq(acked)
            )
            .unwrap();
        }
    }
    text
}

/// 18 ms more than the least RTT is more than the 16 ms that count, 12 ms was not: the ninth ACK of the last round
/// trip ends it, at 3 * 600 + 8 * 5 ms, with 10 + 70 + 8 packets. Against the last round it is 6 ms: too little.
#[test]
fn a_log_by_formula_ends_where_the_formula_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/kernlog-by-formula.csv");
    if std::env::var_os("SLOWSTART_BLESS").is_some() {
        std::fs::write(&path, formula()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), formula(), "SLOWSTART_BLESS=1 writes it anew");
    let rows = read(&path);
    assert!(
        rows.windows(2).all(|r| r[0].una < r[1].una && r[1].una <= r[1].next),
        "it wraps, the marks do not"
    );
    assert_eq!(observe(&rows, "hystart"), [("delay", 1_840_000, 88)]);
    assert_eq!(observe(&rows, "hystart++"), []);
    assert_eq!(observe(&rows, "hystart++:min_rtt_thresh=4ms,max_rtt_thresh=6ms"), [("css", 635_000, 27)]);
}
