//! A page an experiment: the paper's figure as we measure it, and its claims beside that.

use crate::claim::Judged;
use crate::experiment::{Draw, Experiment};
use crate::run::Seen;
use crate::web::Measure;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use slowstart_lab::record::Sample;
use slowstart_lab::report::chart::{Axis, Chart, Key};
use slowstart_lab::report::{STYLE, words};
use slowstart_lab::stats;

fn value(draw: Draw, s: &Sample) -> Option<f64> {
    match draw {
        Draw::Inflight => Some(s.inflight_bytes as f64 / 1000.0),
        Draw::Delivered => Some(s.delivered_bytes as f64 / 1e6),
        Draw::Rtt => s.rtt_s.map(|r| r * 1000.0),
        Draw::Window => Some(s.cwnd_bytes as f64 / 1000.0),
        Draw::Queue => Some(s.queue_bytes as f64 / 1000.0),
        Draw::Stalls => None,
    }
}

/// Stalls up to each sample.
fn stalls(s: &Seen) -> Vec<(f64, f64)> {
    let at: Vec<f64> = s.events.iter().filter(|e| e.what == "stall").map(|e| e.time_s).collect();
    let upto = |t: f64| at.partition_point(|x| *x <= t) as f64;
    s.samples.iter().map(|x| (x.time_s - s.start_s, upto(x.time_s))).collect()
}

const fn axis(draw: Draw) -> &'static str {
    match draw {
        Draw::Inflight => "in flight (kB)",
        Draw::Delivered => "delivered (MB)",
        Draw::Rtt => "round-trip time (ms)",
        Draw::Window => "window (kB)",
        Draw::Queue => "waiting (kB)",
        Draw::Stalls => "stalls taken for congestion",
    }
}

/// The first run of each startup of a study.
fn chart(id: usize, study: &str, draw: Draw, runs: &[&Seen]) -> Markup {
    // A third of the samples is enough for a figure of this width.
    let points = |s: &Seen| -> Vec<(f64, f64)> {
        if draw == Draw::Stalls {
            return stalls(s);
        }
        let start = s.start_s;
        s.samples.iter().step_by(3).filter_map(|x| Some((x.time_s - start, value(draw, x)?))).collect()
    };
    let lines: Vec<(&Seen, Vec<(f64, f64)>)> = runs.iter().map(|s| (*s, points(s))).collect();
    let all = || lines.iter().flat_map(|(_, p)| p);
    let x = Axis::cut("time (s)", all().map(|p| p.0).fold(0.0, f64::max));
    let y = Axis::round(axis(draw), all().map(|p| p.1).fold(0.0, f64::max));
    let keys: Vec<Key> = lines.iter().enumerate().map(|(at, (s, _))| Key { at, label: &s.label }).collect();
    let c = Chart { id, name: format!("{}: {study}", axis(draw)), x: &x, y: &y, legend: &keys };
    let inside = html! {
        @for (key, (_, points)) in keys.iter().zip(&lines) { (c.keyed(key, points.iter().copied())) }
    };
    html! {
        figure { h3 { (study) } (c.draw(&inside, &html! {})) }
    }
}

fn medians(seen: &[Seen]) -> Markup {
    let mut groups: Vec<Vec<&Seen>> = Vec::new();
    for s in seen {
        match groups.iter_mut().find(|g| g[0].study == s.study && g[0].label == s.label) {
            Some(g) => g.push(s),
            None => groups.push(vec![s]),
        }
    }
    let median = |g: &[&Seen], f: &dyn Fn(&Seen) -> Option<f64>| {
        let values: Vec<f64> = g.iter().filter_map(|s| f(s)).collect();
        stats::median(&values).map_or("-".into(), |m| words::number(m.mid))
    };
    html! {
        div class="scroll" tabindex="0" {
            table {
                thead { tr {
                    @for h in ["study", "startup", "runs", "exit (s)", "window at exit (BDP)", "path full (s)",
                        "first loss (s)", "peak in flight (BDP)", "lost packets", "goodput (Mbit/s)"] {
                        th scope="col" { (h) }
                    }
                } }
                tbody {
                    @for g in &groups {
                        tr {
                            th scope="row" { (g[0].study) }
                            td { (g[0].label) }
                            td { (g.len()) }
                            td { (median(g, &|s| s.rows[0].exit.as_ref().map(|e| e.time_s))) }
                            td { (median(g, &|s| {
                                s.rows[0].exit.as_ref().map(|e| e.detected_cwnd_bytes as f64 / s.rows[0].bdp_bytes as f64)
                            })) }
                            td { (median(g, &|s| s.rows[0].capacity_time_s)) }
                            td { (median(g, &|s| s.rows[0].first_loss_time_s)) }
                            td { (median(g, &|s| Some(s.rows[0].peak_inflight_bytes as f64 / s.rows[0].bdp_bytes as f64))) }
                            td { (median(g, &|s| Some(s.rows[0].lost_packets as f64))) }
                            td { (median(g, &|s| Some(s.rows[0].goodput_bps as f64 / 1e6))) }
                        }
                    }
                }
            }
        }
        p class="note" { "Medians over the runs, of the flow studied; a dash where no run has the value." }
    }
}

/// A table of response times: what the paper draws as distributions.
fn clouds(seen: &[Seen]) -> Markup {
    const SHARES: [f64; 6] = [0.1, 0.5, 0.7, 0.9, 0.99, 0.999];
    html! {
        div class="scroll" tabindex="0" {
            table {
                thead { tr {
                    @for h in ["study", "startup", "run", "connections", "lost SYN-ACKs", "lost packets (%)", "most in a second (%)", "throughput (%)"] {
                        th scope="col" { (h) }
                    }
                    @for s in SHARES { th scope="col" { (words::number(100.0 * s)) " % (RTTs)" } }
                } }
                tbody {
                    @for (s, w) in seen.iter().filter_map(|s| s.web.as_ref().map(|w| (s, w))) {
                        tr {
                            th scope="row" { (s.study) }
                            td { (s.label) }
                            td { (s.run) }
                            td { (w.connections) }
                            td { (w.hits.len()) }
                            td { (words::number(100.0 * w.loss_rate())) }
                            td { (words::number(100.0 * w.peak_loss_rate())) }
                            td { (words::number(100.0 * w.throughput())) }
                            @for share in SHARES {
                                td { (Measure::Quantile(share).of(w).map_or("-".into(), words::number)) }
                            }
                        }
                    }
                }
            }
        }
        p class="note" { "Response times of the connections that lost a SYN-ACK, without the timeouts of the handshake; shares of them that were done by then." }
    }
}

/// The page. The same input gives the same bytes.
pub fn html(e: &Experiment, judged: &[Judged], seen: &[Seen]) -> String {
    let mut studies: Vec<&str> = seen.iter().map(|s| s.study.as_str()).collect();
    studies.dedup();
    let command = format!("slowstart reproduce {}", e.id);
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (e.id) ": " (e.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    h1 { (e.title) }
                    p class="about" { (e.figure) "; rows " (e.covers.join(", ")) " of the catalogue" }
                    p { (e.about) }
                    h2 { "Claims" }
                    @for j in judged {
                        p class="verdict" {
                            b { (j.verdict.name()) } ": " (j.claim.says)
                            @if j.claim.ours { " (ours, not the paper's)" }
                        }
                        p class="note" {
                            @if !j.claim.claimed.is_empty() { "Claimed: " (j.claim.claimed) ". " }
                            @if j.claim.measure.is_some() {
                                "Counts as holding: " (j.bound()) ". Measured: " (j.in_words()) ". "
                            }
                            (j.claim.why)
                        }
                    }
                    @if !e.ours.is_empty() {
                        h2 { "What the paper leaves open, and what we take" }
                        ul { @for o in &e.ours { li { (o) } } }
                    }
                    @if seen.iter().any(|s| s.chart.is_some()) {
                        h2 { "As we measure it" }
                        div class="charts" {
                            @for (i, study) in studies.iter().enumerate() {
                                @let runs: Vec<&Seen> = seen.iter()
                                    .filter(|s| s.study == *study && s.run == 0 && s.chart.is_some()).collect();
                                @if let Some(draw) = runs.first().and_then(|s| s.chart) {
                                    (chart(i, study, draw, &runs))
                                }
                            }
                        }
                    }
                    @if !seen.is_empty() {
                        h2 { "Runs" }
                        @if seen[0].web.is_some() { (clouds(seen)) } @else { (medians(seen)) }
                    }
                    h2 { "Again" }
                    pre { code { (command) } }
                }
            }
        }
    };
    markup.into_string()
}
