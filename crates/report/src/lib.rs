//! Pages and charts: of studies, recordings and comparisons of engines.
//!
//! - [`html()`]: the page of a study, in one file that needs no network; without its script it shows tables
//!   and charts
//! - [`study`]: title, path, caveats and the drawn run of a study
//! - [`table`]: the table of a study
//! - [`overlay`]: one picture of the startups that matter over the same path
//! - [`recording()`]: the page of a recorded connection
//! - [`cells`]: the page of a comparison of two engines
//! - [`trial`], [`fleet`]: the pages of a trial and of several servers
//! - [`document()`]: the skeleton of every page
//! - [`chart`]: charts as SVG
//! - [`intervals`]: charts of printed values beside measured intervals
//! - [`figure`]: figures of lines over any axis, as data for the script
//! - [`look`]: the colour and dashes of each startup
//! - [`data`]: runs as data for the page's script
//! - [`link`]: the address at which the playground shows a study

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod cells;
pub mod chart;
pub mod data;
pub mod figure;
pub mod fleet;
pub mod intervals;
pub mod link;
pub mod look;
pub mod overlay;
mod recording;
mod skeleton;
mod startup;
pub mod study;
pub mod table;
pub mod trial;

pub use recording::{Opinions, Recording, recording};
pub use skeleton::{Script, document, live};
pub use startup::{Course, Exit, Line};

use data::Data;
use maud::{Markup, html};
use slowstart_study::decision::Decision;
use slowstart_study::record::{Row, Sample};
use slowstart_study::split;
use slowstart_study::words::{self, tied};

/// The contents of a page.
#[derive(Copy, Clone, Debug)]
pub struct Page<'a> {
    /// The title and heading of the page.
    pub title: &'a str,
    /// A paragraph about the path and its sources.
    pub about: &'a str,
    /// The sentence of [`slowstart_study::verdict`].
    pub verdict: &'a str,
    /// The command line that makes the page.
    pub command: &'a str,
    /// The address at which the playground shows the same study, if an address can hold it.
    pub playground: Option<&'a str>,
    /// All runs, of one path.
    pub rows: &'a [Row],
    /// What decides between them.
    pub decision: &'a Decision<'a>,
    /// What the path and its queue hold before a packet is dropped, in BDP, in the drawn run; `None` if there
    /// is no limit.
    pub full_bdps: Option<f64>,
    /// Runs to draw, one chart each.
    pub series: &'a [Series<'a>],
    /// The runs as data for the script, if it is to draw them.
    pub data: Option<&'a Data<'a>>,
    /// Limits of the results that a reader must know.
    pub caveats: &'a [String],
}

/// The run of a startup that is drawn.
#[derive(Copy, Clone, Debug)]
pub struct Series<'a> {
    /// The label of the startup, from [`slowstart_study::summary::label`].
    pub label: &'a str,
    /// The row of the run that is drawn.
    pub row: &'a Row,
    /// The samples of the run; those of other flows are ignored.
    pub samples: &'a [Sample],
    /// Start of the flow on the clock of the samples, in seconds. Times in a row count from it.
    pub start_s: f64,
    /// Payload of a full segment, in bytes.
    pub mss: u64,
}

impl<'a> From<&Series<'a>> for Line<'a> {
    fn from(s: &Series<'a>) -> Self {
        Line {
            label: s.label,
            course: s.row.into(),
            samples: s.samples,
            flow: s.row.flow,
            start_s: s.start_s,
            mss: s.mss,
        }
    }
}

/// Returns the page of a study. The same input gives the same bytes.
pub fn html(page: &Page) -> String {
    let decision = page.decision;
    let lines: Vec<Line> = page.series.iter().map(Line::from).collect();
    let decides = split::sentences(page.rows);
    let body = html! {
        p class="verdict" { (tied(page.verdict)) }
        (table::table(decision))
        @if let Some(first) = page.series.first() {
            figure class="overlays" {
                (overlay::overlay(decision, page.series, page.full_bdps, overlay::Shape::Wide))
                (overlay::overlay(decision, page.series, page.full_bdps, overlay::Shape::Narrow))
                figcaption {
                    "Bytes in flight in BDP, on a logarithmic axis: doubling is a straight line. All startups over the path of run "
                    (first.row.run) ", with " (words::rate(first.row.rate_bps as f64)) " and "
                    (words::delay(first.row.base_rtt_s * 1e3)) ", the run with the median time of "
                    (decision.baseline().map_or("", |b| &b.summary.label)) ". A ring is where slow start ends."
                }
            }
        }
        details class="about" { summary { "The path and its sources" } (about(page.about, page.playground)) }
        @if !decides.is_empty() {
            h2 { "What decides" }
            ul { @for sentence in &decides { li { (tied(sentence)) } } }
        }
        @if !lines.is_empty() {
            h2 { "Each startup" }
            @let charts = html! {
                (key(" bytes in flight, of the same run of each, as multiples of the "))
                (startup::charts(&lines, false))
            };
            @match page.data {
                Some(data) => (live(&charts, data)),
                None => (charts),
            }
        }
        (end(page.caveats, page.command))
    };
    document(page.title, &body, if page.data.is_some() { Script::Charts } else { Script::Tables })
}

/// What the charts of each startup show. `flight` says what the filled area is.
fn key(flight: &str) -> Markup {
    html! {
        p class="note" {
            span class="swatch w" {} " window, " span class="swatch f" {} (flight)
            "bandwidth-delay product (BDP). All charts have the same axes. "
            "The terms are explained in docs/reference/glossary.md."
        }
    }
}

/// The path, its sources and where to change it.
fn about(text: &str, playground: Option<&str>) -> Markup {
    html! {
        (tied(text))
        @if let Some(address) = playground {
            " " a href=(address) target="_blank" rel="noopener" { "Change the path in the playground" }
        }
    }
}

/// What every page ends with.
fn end(caveats: &[String], command: &str) -> Markup {
    html! {
        @if !caveats.is_empty() {
            h2 { "Caveats" }
            ul { @for caveat in caveats { li { (tied(caveat)) } } }
        }
        h2 { "Command" }
        pre { code { (command) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart_study::decision;
    use slowstart_study::sample::rows;

    fn samples(n: u32) -> Vec<Sample> {
        let sample = |i: u32| Sample {
            time_s: f64::from(i) * 0.01,
            flow: 0,
            cwnd_bytes: 14_480 * u64::from(i + 1),
            ssthresh_bytes: None,
            inflight_bytes: 14_000 * u64::from(i),
            rtt_s: (i > 0).then_some(if i == 7 { f64::NAN } else { 0.1 }),
            delivered_bytes: 10_000 * u64::from(i),
            queue_bytes: Some(0),
            pacing_bps: None,
            phase: Some("slow-start".into()),
            limited_by: None,
            gauges: [("rate".into(), f64::NAN)].into(),
        };
        (0..n).map(sample).collect()
    }

    fn page(title: &str, rows: &[Row], labels: &[&str], samples: &[Sample]) -> String {
        let series: Vec<Series> = labels
            .iter()
            .zip(rows)
            .map(|(label, row)| Series { label, row, samples, start_s: 0.0, mss: 1448 })
            .collect();
        html(&Page {
            title,
            about: "",
            verdict: "",
            command: "",
            playground: None,
            rows,
            decision: &Decision::new(rows, &decision::Terms::default()),
            full_bdps: Some(1.5),
            series: &series,
            data: None,
            caveats: &[],
        })
    }

    /// True if `word` is a whole word of `text`: `inf` is none of `inflight`.
    fn has_word(text: &str, word: &str) -> bool {
        text.split(|c: char| !c.is_alphanumeric()).any(|w| w == word)
    }

    #[test]
    fn html_in_names_is_escaped() {
        let evil = "<script>alert(1)</script>\"'&";
        let rows = slowstart_study::sample::with(rows(evil, &[7.0]), |r| {
            r.path = evil.into();
            r.exit.as_mut().expect("made with one").reason = evil.into();
        });
        let out = page(evil, &rows, &[evil], &samples(300));
        assert!(!out.contains("<script>alert") && out.contains("&lt;script&gt;"));
    }

    #[test]
    fn a_chart_for_each_series_two_of_all_and_the_picture_in_two_shapes() {
        let rows = rows("a", &[7.0, 8.0, 9.0]);
        let out = page("t", &rows, &["a", "b", "c"], &samples(3000));
        assert_eq!(out.matches("<svg").count(), 7);
        assert!(!has_word(&out, "NaN") && !has_word(&out, "inf"));
        assert_eq!(out, page("t", &rows, &["a", "b", "c"], &samples(3000)));
    }

    #[test]
    fn absent_values_are_named() {
        let rows = slowstart_study::sample::with(rows("a", &[7.0]), |r| {
            (r.exit, r.buffer_bytes, r.capacity_time_s) = (None, None, Some(f64::NAN));
            (r.bdp_bytes, r.base_rtt_s) = (0, 0.0);
        });
        let out = page("t", &rows, &["a"], &[]);
        for text in ["no samples were recorded", "no exit", "the queue has no limit", "A single run"] {
            assert!(out.contains(text), "{text}");
        }
        assert!(!has_word(&out, "NaN") && !has_word(&out, "inf"));
    }

    #[test]
    fn a_page_without_rows_says_so() {
        let out = page("t", &[], &[], &[]);
        assert!(out.contains("There are no runs to show.") && !out.contains("<svg"));
    }

    #[test]
    fn many_samples_stay_small() {
        let rows = vec![rows("a", &[7.0]).remove(0); 20];
        let long: Vec<Sample> =
            samples(200_000).into_iter().map(|s| Sample { time_s: s.time_s / 1e3, ..s }).collect();
        let out = page("t", &rows, &["a"; 20], &long);
        assert!(out.len() < 3_000_000, "{}", out.len());
    }
}
