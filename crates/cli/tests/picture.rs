//! The picture of the README and the table below it say the same.

use std::path::Path;

fn read(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(file).expect(name)
}

/// The figures of the picture: a startup and what stands at the end of its bar.
fn figures(svg: &str) -> Vec<(String, String)> {
    let after = |text: &str, key: &str| Some(text.split_once(key)?.1.to_string());
    svg.split("<text class=\"figure\"")
        .skip(1)
        .map(|element| {
            let startup = after(element, "data-startup=\"").expect("a startup");
            let figure = after(element, ">").expect("a figure");
            let until = |text: &str, end: char| text.split(end).next().unwrap_or_default().to_string();
            (until(&startup, '"'), until(&figure, '<'))
        })
        .collect()
}

#[test]
fn the_picture_shows_what_the_table_shows() {
    let (svg, readme) = (read("docs/evidence/compare-geo.svg"), read("README.md"));
    assert!(readme.contains("(docs/evidence/compare-geo.svg)"));
    let (_, block) = readme.split_once("```text\n").expect("a block");
    let (table, _) = block.split_once("```").expect("its end");
    let figures = figures(&svg);
    // Time, losses and queue of four startups.
    assert_eq!(figures.len(), 12, "{figures:?}");
    for (startup, figure) in &figures {
        let is_of = |l: &&str| l.trim_start_matches(['*', ' ']).split(' ').next() == Some(startup);
        let line = table.lines().skip_while(|l| !l.starts_with('─')).find(is_of);
        let line = line.unwrap_or_else(|| panic!("{startup} is not in the table:\n{table}"));
        let cells: Vec<&str> = line.split_whitespace().collect();
        let words: Vec<&str> = figure.split_whitespace().collect();
        assert!(cells.windows(words.len()).any(|w| w == words), "{startup}: {figure} is not in {line:?}");
    }
    // What the README promises to show: today's default leaves early, plain slow start loses.
    assert!(
        svg.contains(">hystart: too early, at ") && svg.contains(">standard: by loss, "),
        "the curves are named"
    );
}
