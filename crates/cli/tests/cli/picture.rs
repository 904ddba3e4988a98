//! The picture, the table and the sentences of the README say the same.

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

/// The first block of text of a document.
fn block(document: &str) -> &str {
    let (_, rest) = document.split_once("```text\n").expect("a block");
    rest.split("```").next().unwrap_or_default()
}

#[test]
fn the_picture_shows_what_the_table_shows() {
    let (svg, readme) = (read("docs/evidence/compare-geo.svg"), read("README.md"));
    let (alternative, _) = readme.split_once("](docs/evidence/compare-geo.svg)").expect("the picture");
    let table = block(&readme);
    let figures = figures(&svg);
    // The time, losses and queue of four startups; the table has the time of three of them.
    assert_eq!(figures.len(), 12, "{figures:?}");
    let mut both = 0;
    for (startup, time) in &figures[..4] {
        let Some(line) = table.lines().find(|l| l.starts_with(&format!("{startup} "))) else { continue };
        assert!(line.contains(&format!(" {time}  ")), "{startup}: {time} is not in {line:?}");
        both += 1;
    }
    assert!(both >= 3, "{figures:?}\n{table}");
    // What the README promises to show: today's default leaves early, plain slow start loses.
    let (_, loses) = svg.split_once(">standard: by loss, ").expect("the curve is named");
    let loses = loses.split('<').next().unwrap_or_default().rsplit(' ').next().unwrap_or_default();
    assert!(alternative.contains(&format!("loses {loses} packets")), "{loses}");
    assert!(svg.contains(">hystart: too early, at "), "the curve is named");
}

/// Every percentage, time and count of the paragraph below the README's table is in the table.
#[test]
fn the_readme_says_what_its_table_says() {
    let readme = read("README.md");
    let table = block(&readme);
    let (_, after) = readme.split_once(table).expect("the table");
    let said = after.split("\n\n").nth(1).expect("a paragraph below the table").replace('\n', " ");
    let words: Vec<&str> = said.split(' ').collect();
    let mut seen = 0;
    for pair in words.windows(2).filter(|p| ["%", "s"].contains(&p[1])) {
        let figure = pair.join(" ");
        seen += 1;
        assert!(
            ["-", "+", " "].iter().any(|sign| table.contains(&format!("{sign}{figure}"))),
            "{figure}: {table}"
        );
    }
    let (_, share) = said.split_once("loses packets in ").expect("a share of runs");
    let share: String = share.split(" runs").next().unwrap_or_default().replace(" of ", "/");
    assert!(table.contains(&format!("({share})")), "{share}: {table}");
    assert!(seen >= 3, "{said}");
}

/// The value of an attribute of the element that begins here.
fn attribute<'a>(element: &'a str, name: &str) -> &'a str {
    let (_, rest) = element.split_once(&format!(" {name}=\"")).expect("the attribute");
    rest.split('"').next().unwrap_or_default()
}

/// The names beside the curves cover neither a curve nor another name.
#[test]
fn names_in_the_picture_cover_nothing() {
    const LETTER: f64 = 7.4;
    let svg = read("docs/evidence/compare-geo.svg");
    let number = |text: &str| text.parse::<f64>().expect("a number");
    let curves: Vec<Vec<(f64, f64)>> = svg
        .split("<path class=\"curve ")
        .skip(1)
        .map(|element| {
            let points = attribute(element, "d").split(['M', 'L']).filter_map(|p| p.split_once(' '));
            points.map(|(x, y)| (number(x), number(y))).collect()
        })
        .collect();
    // Left and right end, and the line.
    let names: Vec<(f64, f64, f64)> = svg
        .split("<text class=\"label ")
        .skip(1)
        .filter(|element| element.split('>').next().is_some_and(|head| head.contains(" halo")))
        .map(|element| {
            let text = element.split(['>', '<']).nth(1).expect("a name");
            let (x, wide) = (number(attribute(element, "x")), text.len() as f64 * LETTER);
            let left = if attribute(element, "text-anchor") == "end" { x - wide } else { x };
            (left, left + wide, number(attribute(element, "y")))
        })
        .collect();
    assert_eq!((curves.len(), names.len()), (4, 4));
    for (i, (left, right, line)) in names.iter().enumerate() {
        let covers = |x: f64, y: f64| (*left..*right).contains(&x) && (line - 12.0..line + 4.0).contains(&y);
        for pair in curves.iter().flat_map(|c| c.windows(2)) {
            let ((x, y), (to_x, to_y)) = (pair[0], pair[1]);
            let between = (0..=20).map(|k| f64::from(k) / 20.0);
            let mut places = between.map(|share| (x + (to_x - x) * share, y + (to_y - y) * share));
            assert!(!places.any(|(x, y)| covers(x, y)), "name {i} covers a curve at {x} {y}");
        }
        let apart = |o: &(f64, f64, f64)| o.0 >= *right || o.1 <= *left || (o.2 - line).abs() >= 16.0;
        assert!(names.iter().enumerate().all(|(j, o)| i == j || apart(o)), "name {i} covers another");
    }
}
