//! Writes qlog.

use serde_json::{Value, json};
use slowstart_study::record::{EventRow, Sample};
use std::io::{self, Write};

/// Writes the window of a simulated run as a sequence of qlog events (main schema draft 0.4): metrics for
/// each sample, and each change of the congestion state. Times are milliseconds since the begin of the run,
/// to the nanosecond.
pub fn write(out: &mut impl Write, title: &str, samples: &[Sample], events: &[EventRow]) -> io::Result<()> {
    let mut record = |v: &Value| writeln!(out, "\u{1e}{v}");
    record(&json!({
        "qlog_version": "0.4", "qlog_format": "JSON-SEQ", "title": title,
        "trace": {
            "vantage_point": { "name": title, "type": "server" },
            "common_fields": { "time_format": "relative", "reference_time": 0 },
        },
    }))?;
    record(
        &json!({ "time": 0, "name": "recovery:congestion_state_updated", "data": { "new": "slow_start" } }),
    )?;
    let ms = |s: f64| s * 1e3;
    let mut samples = samples.iter().peekable();
    let mut metrics = |until: f64, record: &mut dyn FnMut(&Value) -> io::Result<()>| -> io::Result<()> {
        while let Some(s) = samples.next_if(|s| s.time_s <= until) {
            let mut data = json!({ "congestion_window": s.cwnd_bytes, "bytes_in_flight": s.inflight_bytes });
            if let Some(t) = s.ssthresh_bytes {
                data["ssthresh"] = t.into();
            }
            if let Some(rtt) = s.rtt_s {
                data["latest_rtt"] = ms(rtt).into();
            }
            record(&json!({ "time": ms(s.time_s), "name": "recovery:metrics_updated", "data": data }))?;
        }
        Ok(())
    };
    for e in events {
        let (old, new, trigger) = match &*e.what {
            "exit" => ("slow_start", "congestion_avoidance", e.why.clone().unwrap_or_default()),
            "resumed" => ("recovery", "slow_start", "spurious_loss".to_string()),
            "restart" => ("congestion_avoidance", "slow_start", "restart".to_string()),
            "loss" => ("congestion_avoidance", "recovery", "loss".to_string()),
            "recovered" | "undone" => ("recovery", "congestion_avoidance", e.what.to_string()),
            _ => continue,
        };
        // The window before the event.
        metrics(e.time_s.next_down(), &mut record)?;
        let data = json!({ "old": old, "new": new, "trigger": trigger });
        record(&json!({ "time": ms(e.time_s), "name": "recovery:congestion_state_updated", "data": data }))?;
    }
    metrics(f64::INFINITY, &mut record)
}
