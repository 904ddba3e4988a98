//! Rows for tests.

use crate::record::{Class, Cost, ExitRow, Row, SCHEMA};

/// A run of `startup` for each time to completion: 10 MB, exited with the link full and without a loss.
pub fn rows(startup: &str, completions: &[f64]) -> Vec<Row> {
    let row = |(run, &completion): (usize, &f64)| Row {
        schema: SCHEMA,
        version: "0.1.0".into(),
        commit: None,
        engine: "sim".into(),
        path: "geo".into(),
        profile: "linux-6.18".into(),
        startup: startup.into(),
        params: [].into(),
        settings: [].into(),
        avoidance: Some("cubic".into()),
        flow: 0,
        run: run as u32,
        seed: run as u64,
        iw_bytes: Some(14_480),
        size_bytes: Some(10_000_000),
        duration_s: 30.0,
        rate_bps: 100_000_000,
        base_rtt_s: 0.1,
        bdp_bytes: 1_000_000,
        buffer_bytes: Some(500_000),
        drawn: std::collections::BTreeMap::new(),
        exit: Some(ExitRow {
            reason: "rate-flat".into(),
            time_s: 1.5,
            left_s: 1.7,
            detected_cwnd_bytes: 1_200_000,
            cwnd_bytes: 1_100_000,
            inflight_bytes: 1_100_000,
        }),
        class: Class::LinkFull,
        class_by_heuristic: None,
        capacity_time_s: Some(1.2),
        capacity_time_by_heuristic_s: Some(1.3),
        first_drop_time_s: None,
        first_loss_time_s: None,
        marks: None,
        peak_inflight_bytes: Some(1_300_000),
        peak_queue_delay_s: Some(0.03),
        startup_lost_packets: Some(0),
        lost_packets: Some(0),
        lost_by: None,
        links: Vec::new(),
        retransmitted_packets: Some(0),
        timeouts: Some(0),
        limits: None,
        goodput_bps: (80e6 / completion) as u64,
        completion_s: Some(completion),
        time_to_bytes_s: [("1000000".into(), Some(0.9)), ("10000000".into(), Some(completion))].into(),
        objects: None,
        connections: Vec::new(),
        others: None,
        got_percent: None,
        cost: Cost::default(),
        caveats: vec![],
    };
    completions.iter().enumerate().map(row).collect()
}

/// Returns `rows`, each changed by `change`.
pub fn with(mut rows: Vec<Row>, change: impl Fn(&mut Row)) -> Vec<Row> {
    rows.iter_mut().for_each(change);
    rows
}

/// `rows` with what a CUBIC flow beside a startup got in a run.
pub fn beside(rows: Vec<Row>, got: impl Fn(&str, u32) -> Option<f64>) -> Vec<Row> {
    with(rows, |r| r.got_percent = got(&r.startup, r.run))
}
