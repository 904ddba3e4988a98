//! The page of a recorded connection, on which each startup was asked what it would have done.

use super::data::{Curve, Data, First, Kind};
use super::{Course, Line, Script, about, document, end, key, live, startup};
use maud::{Markup, html};
use slowstart_study::chosen;
use slowstart_study::words::tied;

/// The contents of the page.
#[derive(Copy, Clone, Debug)]
pub struct Recording<'a> {
    /// The title and heading of the page.
    pub title: &'a str,
    /// A paragraph about the connection.
    pub about: &'a str,
    /// The answer, in sentences.
    pub answer: &'a str,
    /// The command line that makes the page.
    pub command: &'a str,
    /// The address at which the playground shows a path fitted to the connection, if there is one.
    pub playground: Option<&'a str>,
    /// What each startup would have done: tables, the one that says most first.
    pub opinions: &'a [Opinions],
    /// A chart for each startup. All have the connection's bytes in flight, and the window of their own.
    pub lines: &'a [Line<'a>],
    /// The samples of each line as data for the script.
    pub curves: &'a [Curve],
    /// Limits of the results that a reader must know.
    pub caveats: &'a [String],
}

/// A table of text: what each startup would have done.
#[derive(Clone, Debug)]
pub struct Opinions {
    /// What the table shows.
    pub title: String,
    /// The names of the columns.
    pub headers: Vec<String>,
    /// A line for each startup.
    pub lines: Vec<Vec<String>>,
}

/// Returns the page. The same input gives the same bytes.
pub fn recording(r: &Recording) -> String {
    let courses: Vec<Course> = r.lines.iter().map(|l| l.course.clone()).collect();
    let labels: Vec<String> = r.lines.iter().map(|l| l.label.to_string()).collect();
    let first = First { run: None, labels: first(&labels) };
    let data =
        Data { curves: r.curves.to_vec(), first: Some(first), ..Data::of(Kind::Recording, &courses, labels) };
    let body = html! {
        p class="verdict" { (tied(r.answer)) }
        details class="about" { summary { "The recording" } (about(r.about, r.playground)) }
        @if !r.lines.is_empty() {
            h2 { "The recorded connection, and the window that each startup would have had" }
            @let charts = html! {
                (key(" bytes that were in flight, as multiples of the median throughput's "))
                (startup::charts(r.lines, true))
            };
            (live(&charts, &data))
        }
        @if let Some((first, others)) = r.opinions.split_first() {
            h2 { (first.title) }
            (table(first))
            @for opinions in others { details { summary { (opinions.title) } (table(opinions)) } }
        }
        (end(r.caveats, r.command))
    };
    document(r.title, &body, Script::Charts)
}

/// Most startups that are drawn first.
const FEW: usize = 6;

/// The startups that are drawn first: those that `slowstart compare` runs by default.
fn first(labels: &[String]) -> Vec<String> {
    chosen::names().filter_map(|name| labels.iter().find(|l| *l == name).cloned()).take(FEW).collect()
}

/// Returns the table of what each startup would have done.
fn table(o: &Opinions) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label=(o.title) {
            table {
                thead { tr { @for (i, h) in o.headers.iter().enumerate() { th scope="col" class=[class(i, o)] { (h) } } } }
                tbody {
                    @for line in &o.lines {
                        tr {
                            @for (i, cell) in line.iter().enumerate() {
                                @if i == 0 { th scope="row" { (cell) } }
                                @else { td class=[class(i, o)] { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The class of a column: text is on the left, and `more` is not shown on a phone.
fn class(column: usize, o: &Opinions) -> Option<&'static str> {
    match o.headers.get(column).map(String::as_str) {
        Some("class") => Some("text"),
        Some("exit" | "exit by its own rule") => Some("text more"),
        Some("from (s)" | "at (s)" | "valid until") => Some("more"),
        _ => None,
    }
}
