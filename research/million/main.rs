//! Makes a store of synthetic rows, to measure `slowstart sweep query`.
//!
//! `cargo run --release -p slowstart-research --features sweep --bin million -- STORE [ROWS]`: 1,000,000 rows by default in
//! 256 parts, as a sweep over rate, round trip, queue and startup would have them. The values are made up.

use serde_json::json;
use slowstart_sim::random;
use slowstart_study::columns::{Column, Kind, columns};
use slowstart_study::record::ROW_SCHEMA;
use slowstart_sweep::store::Store;
use slowstart_sweep::table::ParquetFile;
use std::error::Error;
use std::path::PathBuf;

const STARTUPS: [&str; 4] = ["standard", "hystart", "hystart++", "search"];
const PARTS: u64 = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(arguments.next().ok_or("usage: million STORE [ROWS]")?);
    let rows: u64 = arguments.next().map_or(Ok(1_000_000), |n| n.parse())?;
    let store = Store::create(&dir)?;
    let axis = |name| Column::within("axis", name, Kind::Number, "An axis.");
    let mut all = vec![Column::new("key", Kind::Text, "A key."), axis("rate"), axis("rtt"), axis("queue")];
    all.extend(columns(ROW_SCHEMA));
    for part in 0..PARTS {
        let name = store.dir().join("parts").join(format!("0123456789abcdef-{part:05}.parquet"));
        let mut file = ParquetFile::create(&name, all.clone())?;
        for n in rows * part / PARTS..rows * (part + 1) / PARTS {
            let share = |what: u64| (random::at(what, n) >> 11) as f64 / (1_u64 << 53) as f64;
            let (rate, rtt) = (2e6 * libm::pow(50.0, share(1)), 0.5 + 0.2 * share(2));
            file.write(&json!({
                "key": format!("{:032x}", n), "axis": { "rate": rate, "rtt": rtt, "queue": share(3) * 4.0 },
                "schema": 1, "version": "0.1.0", "engine": "sim", "path": "geo", "profile": "linux",
                "startup": STARTUPS[(n % 4) as usize], "params": {}, "avoidance": "cubic", "flow": 0, "run": 0, "seed": n,
                "iw_bytes": 14_480, "duration_s": 60.0, "rate_bps": rate as u64, "base_rtt_s": rtt,
                "bdp_bytes": (rate / 8.0 * rtt) as u64, "class": "late", "peak_inflight_bytes": n,
                "peak_queue_delay_s": share(4), "startup_lost_packets": n % 1000, "lost_packets": n % 5000,
                "retransmitted_packets": n % 5000, "timeouts": 0, "goodput_bps": (rate * share(5)) as u64,
                "completion_s": 1.0 + 59.0 * share(6), "cost": { "packets": n, "events": n }
            }))?;
        }
        file.finish()?;
    }
    store.write_manifest()?;
    Ok(())
}
