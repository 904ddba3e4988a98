//! The page of a recorded connection, on which each startup was asked what it would have done.

use super::data::{Curve, Data, Kind};
use super::{Course, Line, Script, about, document, each_startup, end, live, startup};
use maud::{Markup, html};

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
    /// What each startup would have done.
    pub opinions: &'a Opinions,
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
    /// The names of the columns.
    pub headers: Vec<String>,
    /// A line for each startup.
    pub lines: Vec<Vec<String>>,
}

/// Returns the page. The same input gives the same bytes.
pub fn recording(r: &Recording) -> String {
    let courses: Vec<Course> = r.lines.iter().map(|l| l.course.clone()).collect();
    let data = Data {
        kind: Kind::Recording,
        rows: &courses,
        labels: r.lines.iter().map(|l| l.label.to_string()).collect(),
        curves: r.curves.to_vec(),
    };
    let body = html! {
        p class="verdict" { (r.answer) }
        p class="about" { (about(r.about, r.playground)) }
        h2 { "What each would have done" }
        (table(r.opinions))
        @if !r.lines.is_empty() {
            (each_startup(" bytes that were in flight, as multiples of the median throughput's "))
            (live(&startup::charts(r.lines, true), &data))
        }
        (end(r.caveats, r.command))
    };
    document(r.title, &body, Script::Charts)
}

/// Returns the table of what each startup would have done.
fn table(o: &Opinions) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="What each would have done" {
            table {
                thead { tr { @for (i, h) in o.headers.iter().enumerate() { th scope="col" class=[(i == 1).then_some("text")] { (h) } } } }
                tbody {
                    @for line in &o.lines {
                        tr {
                            @for (i, cell) in line.iter().enumerate() {
                                @match i {
                                    0 => th scope="row" { (cell) },
                                    1 => td class="text" { (cell) },
                                    _ => td { (cell) },
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
