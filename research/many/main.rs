//! Writes many synthetic recordings, to measure `slowstart replay FOLDER --out STORE`.
//!
//! `cargo run --release -p slowstart-research --bin many -- FOLDER NUMBER [SEED]`: each is a simulated
//! download of 100 kB to 2 MB over a path of its own, drawn from the seed: 2 to 200 Mbit/s, 10 to 300 ms, a
//! queue of a half to two BDP. Eight of ten are captures at the sender or the receiver, half of them
//! compressed; one is a qlog, and one the same as samples of `ss`.

use flate2::Compression;
use flate2::write::GzEncoder;
use slowstart_replay::{qlog, wire};
use slowstart_sim::random;
use slowstart_study::run::{Job, Outcome};
use slowstart_study::scenario::{Study, StudyText};
use std::error::Error;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

const STARTUPS: [&str; 5] = ["standard", "hystart", "hystart++", "search", "vegas"];
/// Segment size of `ss`.
const MSS: u64 = 1448;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, number, seed @ ..] = &arguments[..] else {
        return Err("usage: many FOLDER NUMBER [SEED]".into());
    };
    let (folder, number): (PathBuf, u64) = (folder.into(), number.parse()?);
    let seed = seed.first().map_or(Ok(1), |s| s.parse())?;
    fs::create_dir_all(&folder)?;
    (0..number).try_for_each(|n| one(&folder, seed, n))
}

/// A number from 0 to 1.
fn drawn(seed: u64, n: u64, what: u64) -> f64 {
    (random::at(seed.wrapping_mul(1009) + what, n) >> 11) as f64 / (1_u64 << 53) as f64
}

/// A value evenly drawn in the logarithm.
fn between(share: f64, low: f64, high: f64) -> f64 {
    low * libm::pow(high / low, share)
}

fn one(folder: &Path, seed: u64, n: u64) -> Result<(), Box<dyn Error>> {
    let value = |what, low, high| between(drawn(seed, n, what), low, high);
    let text = StudyText {
        path: format!(
            "rate={:.0}kbit rtt={:.1}ms queue={:.2}bdp",
            value(0, 2e3, 2e5),
            value(1, 10.0, 300.0),
            value(2, 0.5, 2.0)
        ),
        startups: vec![STARTUPS[(n % STARTUPS.len() as u64) as usize].to_string()],
        size: Some(format!("{:.0}B", value(3, 1e5, 2e6))),
        runs: Some(1),
        ..StudyText::default()
    };
    let run = Study::check(&text, None)?.capture(Job { contender: 0, run: 0 });
    let name = |ending: &str| folder.join(format!("{:03}", n / 100)).join(format!("{n:06}.{ending}"));
    fs::create_dir_all(folder.join(format!("{:03}", n / 100)))?;
    let end = u8::from(n % 4 >= 2);
    match n % 10 {
        8 => qlog::write(
            &mut BufWriter::new(File::create(name("qlog"))?),
            "many",
            &run.trace.samples,
            &run.trace.events,
        )?,
        9 => fs::write(name("ss.txt"), samples(&run)?)?,
        i if i % 2 == 0 => {
            let mut out =
                GzEncoder::new(BufWriter::new(File::create(name("pcapng.gz"))?), Compression::fast());
            wire::write(&mut out, &run.trace.packets, end)?;
            out.finish()?.flush()?;
        }
        _ => wire::write(&mut BufWriter::new(File::create(name("pcapng"))?), &run.trace.packets, end)?,
    }
    Ok(())
}

/// The samples of a run as `ss -tin` after `date +%s.%N` writes them, every 100 ms.
fn samples(run: &Outcome) -> Result<String, std::fmt::Error> {
    let (mut text, mut next) = (String::new(), 0.0);
    for s in run.trace.samples.iter().filter(|s| s.flow == 0) {
        if s.time_s < next {
            continue;
        }
        next = s.time_s + 0.1;
        let threshold = s.ssthresh_bytes.map_or(String::new(), |b| format!(" ssthresh:{}", b / MSS));
        write!(
            text,
            "{:.6}\nESTAB 0 0 192.0.2.1:443 198.51.100.1:50000\n\t cubic rtt:{:.3}/1 mss:{MSS} cwnd:{}{threshold} \
             bytes_acked:{} retrans:0/0\n",
            1.7e9 + s.time_s,
            s.rtt_s.unwrap_or(0.1) * 1e3,
            s.cwnd_bytes / MSS,
            s.delivered_bytes
        )?;
    }
    Ok(text)
}
