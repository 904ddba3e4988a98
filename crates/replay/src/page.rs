//! A transfer as an HTML page: bytes in flight, and the window of each startup.

use crate::analysis::Findings;
use crate::answer;
use crate::continued;
use crate::observer::TimedEvent;
use crate::transfer::{StartupRow, Transfer};
use slowstart::units::Span;
use slowstart_report::data::{Curve, samples_of_each};
use slowstart_report::{Course, Exit, Line, Opinions, Recording, link};
use slowstart_sim::path::Files;
use slowstart_study::record::{Sample, Trace};
use slowstart_study::scenario::{Study, StudyText};
use slowstart_study::words;
use std::collections::BTreeMap;

/// Startups that the playground runs over the fitted path.
const PLAYED: usize = 4;

/// What the chart of a startup shows besides windows and bytes in flight: of the connection, what the file
/// shows; of the startup, its exit.
fn course(t: &Transfer, w: &StartupRow) -> Course {
    let bdp = t.median_bps.zip(t.min_rtt_s).map_or(0.0, |(rate, rtt)| rate / 8.0 * rtt);
    Course {
        bdp_bytes: bdp as u64,
        base_rtt_s: t.min_rtt_s,
        buffer_bytes: None,
        duration_s: shown(t),
        completion_s: None,
        exit: w.exit.as_ref().map(|e| Exit {
            reason: e.what.clone(),
            time_s: e.time_s,
            left_s: None,
            detected_cwnd_bytes: e.cwnd_bytes,
        }),
        capacity_time_s: None,
        capacity_time_by_heuristic_s: t.capacity_time_s,
        first_drop_time_s: None,
        first_loss_time_s: t.first_loss_time_s,
        lost_in_startup: false,
    }
}

/// Seconds of the transfer to draw: twice the time of the last event of any startup.
fn shown(t: &Transfer) -> f64 {
    let each = t.startups.iter().flat_map(|w| [w.valid_until_s, w.exit.as_ref().map(|e| e.time_s)]);
    let own = [t.exit.as_ref().map(|e| e.time_s), t.first_loss_time_s, t.capacity_time_s];
    let last = each.chain(own).flatten().reduce(f64::max);
    last.map_or(t.duration_s, |l| t.duration_s.min(2.0 * l))
}

/// The table of predictions.
fn predictions(t: &Transfer) -> Opinions {
    let segments = |b: u64| words::number((b as f64 / t.mss_bytes.max(1) as f64).round());
    let line = |w: &StartupRow| {
        let moment = |m: &TimedEvent| format!("{} at {} s", m.what, words::number(m.time_s));
        vec![
            w.startup.clone(),
            w.exit.as_ref().map_or("-".to_string(), moment),
            w.exit.as_ref().map_or("-".to_string(), |e| segments(e.cwnd_bytes)),
            w.class.how().to_string(),
            w.valid_until_s.map_or("the end".to_string(), |s| format!("{} s", words::number(s))),
            w.rule.as_ref().map_or("-".to_string(), moment),
        ]
    };
    let headers = ["startup", "exit", "window (segments)", "class", "valid until", "exit by its own rule"];
    Opinions {
        title: "What each would have done, as far as the recording tells".to_string(),
        headers: headers.map(String::from).to_vec(),
        lines: grouped(t.startups.iter().map(line)),
    }
}

/// Joins lines whose cells after the first are the same.
fn grouped(lines: impl Iterator<Item = Vec<String>>) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    for line in lines {
        match all.iter_mut().find(|l| l[1..] == line[1..]) {
            Some(same) => same[0] = format!("{}, {}", same[0], line[0]),
            None => all.push(line),
        }
    }
    all
}

/// The table of continuations, if the fitted path reproduces the transfer.
fn continuations(t: &Transfer) -> Option<Opinions> {
    let fork = t.fork.as_ref().filter(|fork| answer::is_reproduced(t, fork))?;
    Some(Opinions {
        title: "Continued in the simulator on the fitted path".to_string(),
        headers: continued::HEADERS.map(String::from).to_vec(),
        lines: grouped(continued::lines(t, fork).into_iter().map(|l| l.to_vec())),
    })
}

/// Returns the page. `base` is the address of the playground, to which it links with the fitted path if there
/// is one.
pub fn html(t: &Transfer, f: &Findings, command: &str, base: &str) -> String {
    let traces: Vec<Trace> = (0..t.startups.len())
        .map(|i| {
            let sample = |s: &crate::analysis::Snapshot| Sample {
                time_s: Span(s.at.0).as_secs_f64(),
                flow: 0,
                cwnd_bytes: s.windows.get(i).map_or(0, |w| w.0),
                ssthresh_bytes: None,
                inflight_bytes: s.inflight.0,
                rtt_s: s.rtt.map(Span::as_secs_f64),
                delivered_bytes: s.delivered.0,
                queue_bytes: None,
                pacing_bps: None,
                phase: None,
                limited_by: None,
                gauges: BTreeMap::new(),
            };
            // Windows after the end of a prediction's validity are not drawn.
            let until = t.startups[i].valid_until_s.unwrap_or(f64::INFINITY);
            let known =
                |s: Sample| Sample { cwnd_bytes: if s.time_s <= until { s.cwnd_bytes } else { 0 }, ..s };
            Trace { samples: f.snapshots.iter().map(sample).map(known).collect(), ..Trace::default() }
        })
        .collect();
    let lines: Vec<Line> = t
        .startups
        .iter()
        .zip(&traces)
        .map(|(w, trace)| Line {
            label: &w.startup,
            course: course(t, w),
            samples: &trace.samples,
            flow: 0,
            start_s: 0.0,
            mss: t.mss_bytes,
        })
        .collect();
    let most = samples_of_each(traces.len());
    let curves: Vec<Curve> =
        traces.iter().enumerate().map(|(i, trace)| Curve::new(i, 0, trace, 0.0, most)).collect();
    slowstart_report::recording(&Recording {
        title: &format!("slowstart replay: {} to {}", t.from, t.to),
        about: &about(t),
        answer: &answer::sentences(t).join(" "),
        command,
        playground: fitted(t, base).as_deref(),
        opinions: &continuations(t).into_iter().chain([predictions(t)]).collect::<Vec<_>>(),
        lines: &lines,
        curves: &curves,
        caveats: &t.caveats,
    })
}

/// The address at which the playground shows the startups of the table over the fitted path; `None` if its
/// rate changes.
fn fitted(t: &Transfer, base: &str) -> Option<String> {
    let study = StudyText {
        path: Some(&t.fork.as_ref()?.path).filter(|p| !p.rate_changes)?.inline(),
        startups: t.startups.iter().map(|w| w.startup.clone()).take(PLAYED).collect(),
        size: Some(format!("{}B", t.bytes?)),
        runs: Some(1),
        ..StudyText::default()
    };
    link::playground(base, &Study::check_with(&study, &Files::none()).ok()?)
}

fn about(t: &Transfer) -> String {
    format!(
        "Captured at: {}. Each chart shows the bytes in flight and the window that a startup would have had, while its \
         prediction is valid.",
        t.vantage
    )
}
