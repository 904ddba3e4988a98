//! The skeleton of every page: one file with its style sheet, its script and its data, and nothing from the network.

use super::data::Data;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The style sheet of every page.
const STYLE: &str = include_str!("style.css");
/// The library that draws the charts of the script, with its style sheet (MIT; its licence is beside it).
const PLOT: &str =
    concat!("/*!\n", include_str!("script/LICENSE-uplot"), "*/\n", include_str!("script/uplot.js"));
const PLOT_STYLE: &str = include_str!("script/uplot.css");
/// The modules of the script, each after those it imports. The playground uses the same files as modules.
const TABLES: &str = include_str!("script/tables.js");
const CHARTS: [&str; 4] = [
    include_str!("script/data.js"),
    include_str!("script/save.js"),
    include_str!("script/panes.js"),
    include_str!("script/view.js"),
];
/// What starts the script.
const START: &str = "for (const table of document.querySelectorAll('table')) enhanceTable(table);\n";
const START_VIEW: &str = "start(document.getElementById('charts'), document.getElementById('data'));\n";
/// Nothing is loaded from anywhere, whatever the page contains.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:";

/// A module as a part of one script: without imports, whose modules come before it, and without exports.
fn part(module: &str) -> String {
    let lines = module.lines().filter(|l| !l.starts_with("import "));
    lines.map(|l| l.strip_prefix("export ").unwrap_or(l)).fold(String::new(), |all, l| all + l + "\n")
}

/// Returns a page with this title, its heading, and `body` below it. With `data`, a script draws the charts anew in the
/// element `charts`; any page has a script that sorts and filters tables. The same input gives the same bytes.
pub fn document(title: &str, body: &Markup, data: Option<&Data>) -> String {
    let mut script = part(TABLES) + START;
    if data.is_some() {
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
                style { (PreEscaped(STYLE)) @if data.is_some() { (PreEscaped(PLOT_STYLE)) } }
            }
            body {
                main {
                    h1 { (title) }
                    (body)
                }
                @if let Some(data) = data {
                    script type="application/gzip" id="data" { (PreEscaped(data.packed())) }
                    script { (PreEscaped(PLOT)) }
                }
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
        let page = document("t", &html! { p { "x" } }, None);
        for word in ["src=", "href=", "url(", "@import"] {
            assert!(!page.contains(word), "{word}");
        }
    }
}
