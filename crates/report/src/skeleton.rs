//! The skeleton of every page: one file with its style sheet, its script and its data, and nothing from the
//! network.

use super::data::packed;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;

/// The style sheet of every page.
const STYLE: &str = include_str!("style.css");
/// The library that draws the charts of the script, with its style sheet (MIT; its licence is beside it).
const PLOT: &str =
    concat!("/*!\n", include_str!("script/LICENSE-uplot"), "*/\n", include_str!("script/uplot.js"));
const PLOT_STYLE: &str = include_str!("script/uplot.css");
/// The modules of the script, each after those it imports. The playground uses the same files as modules.
const TABLES: &str = include_str!("script/tables.js");
const CHARTS: [&str; 6] = [
    include_str!("script/data.js"),
    include_str!("script/save.js"),
    include_str!("script/panes.js"),
    include_str!("script/map.js"),
    include_str!("script/figures.js"),
    include_str!("script/view.js"),
];
/// What starts the script.
const START: &str = "for (const table of document.querySelectorAll('table')) enhanceTable(table);\n";
const START_VIEW: &str = "startAll(document.querySelectorAll('.group'));\n";
/// Nothing is loaded from anywhere, whatever the page contains.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:";

/// A module as a part of one script: without imports, whose modules come before it, and without exports.
fn part(module: &str) -> String {
    let lines = module.lines().filter(|l| !l.starts_with("import "));
    lines.map(|l| l.strip_prefix("export ").unwrap_or(l)).fold(String::new(), |all, l| all + l + "\n")
}

/// Returns charts with the data from which a script draws them anew. They are what is printed, and shown
/// without a script. The page must have [`Script::Charts`].
pub fn live(charts: &Markup, data: &impl Serialize) -> Markup {
    html! {
        div class="group" {
            div class="fixed" { (charts) }
            script type="application/gzip" { (PreEscaped(packed(data))) }
        }
    }
}

/// What the script of a page does.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Script {
    /// It sorts and filters tables.
    Tables,
    /// It also draws the charts of [`live`].
    Charts,
}

/// Returns a page with this title, its heading, and `body` below it. The same input gives the same bytes.
pub fn document(title: &str, body: &Markup, scripts: Script) -> String {
    let mut script = part(TABLES) + START;
    let draws = scripts == Script::Charts;
    if draws {
        script += &CHARTS.map(part).concat();
        script += START_VIEW;
    }
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { (title) }
                style { (PreEscaped(STYLE)) @if draws { (PreEscaped(PLOT_STYLE)) } }
            }
            body {
                main {
                    h1 { (title) }
                    (body)
                }
                @if draws { script { (PreEscaped(PLOT)) } }
                script type="module" { (PreEscaped(script)) }
            }
        }
    };
    markup.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modules_make_one_script() {
        for text in CHARTS.iter().chain([&TABLES]) {
            let script = part(text);
            let left = |l: &&str| l.starts_with("import ") || l.starts_with("export ");
            assert_eq!(script.lines().find(left), None);
            assert!(!script.contains("</script") && !text.contains("export default"));
        }
        assert!(!PLOT.contains("</script"));
    }

    #[test]
    fn a_page_names_no_other_place() {
        let page = document("t", &html! { p { "x" } }, Script::Charts);
        // A picture that is saved refers to its own parts.
        let own = page.replace(PLOT, "").replace("url(#", "");
        for word in ["src=", "href=", "url(", "@import"] {
            assert!(!own.contains(word), "{word}");
        }
    }
}
