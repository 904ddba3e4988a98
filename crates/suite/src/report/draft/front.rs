//! The first page of a draft: its name, day, author and abstract.

use super::xml::Page;
use crate::run::Report;

/// The day of a draft.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

impl std::str::FromStr for Date {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = |t: &&str| t.bytes().all(|b| b.is_ascii_digit());
        let parts: Vec<&str> = text.split('-').filter(digits).collect();
        let date = match parts[..] {
            [y, m, d] if [y.len(), m.len(), d.len()] == [4, 2, 2] && text.len() == 10 => {
                y.parse().ok().zip(m.parse().ok()).zip(d.parse().ok())
            }
            _ => None,
        };
        let date = date.map(|((year, month), day)| Self { year, month, day });
        date.filter(|d| d.year > 0 && (1..=d.days()).contains(&d.day))
            .ok_or_else(|| format!("found {text:?}, expected a day such as 2026-11-28"))
    }
}

impl std::fmt::Display for Date {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl Date {
    /// The days of its month; 0 if there is no such month.
    const fn days(self) -> u8 {
        let leap =
            self.year.is_multiple_of(4) && !self.year.is_multiple_of(100) || self.year.is_multiple_of(400);
        match self.month {
            2 => 28 + leap as u8,
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => 0,
        }
    }
}

/// What the first page of a draft says, and a report does not know.
#[derive(Clone, Debug)]
pub struct Front {
    /// Its name with its version, such as `draft-author-ccwg-startups-00`.
    pub name: String,
    /// Its day.
    pub date: Date,
    /// Its author.
    pub author: Option<String>,
    /// The organization of the author.
    pub organization: Option<String>,
    /// The address of the author.
    pub email: Option<String>,
}

/// True if `name` is the name of a draft: four parts of lower-case letters and digits, the last a version.
pub(super) fn is_name(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let plain = |p: &&str| !p.is_empty() && p.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let version = |p: &&str| p.len() == 2 && p.bytes().all(|b| b.is_ascii_digit());
    // With its extension at most 72 characters, else idnits warns.
    parts.len() >= 4
        && parts[0] == "draft"
        && parts.iter().all(plain)
        && parts.last().is_some_and(version)
        && name.len() <= 68
}

/// What was evaluated, by its names.
fn names(report: &Report) -> String {
    match &report.startups[..] {
        [one] => one.clone(),
        [two @ .., last] if two.len() < 4 => format!("{} and {last}", two.join(", ")),
        all => format!("{} Startups", all.len()),
    }
}

/// Writes the front matter.
pub(super) fn write(page: &mut Page, report: &Report, front: &Front) {
    page.open("front", &[]);
    let title = format!("Evaluation of {} by the Criteria of RFC 9743", names(report));
    page.element("title", &[("abbrev", "Startup Evaluation")], &title);
    page.empty("seriesInfo", &[("name", "Internet-Draft"), ("value", &front.name)]);
    page.open("author", &[("fullname", front.author.as_deref().unwrap_or("Your Name Here"))]);
    let place = front.author.is_none().then_some("Your Organization Here");
    if let Some(organization) = front.organization.as_deref().or(place) {
        page.element("organization", &[], organization);
    }
    if let Some(email) = &front.email {
        page.open("address", &[]);
        page.element("email", &[], email);
        page.close("address");
    }
    page.close("author");
    let Date { year, month, day } = front.date;
    let [year, month, day] = [year.into(), month.into(), day.into()].map(|n: u32| n.to_string());
    page.empty("date", &[("year", &year), ("month", &month), ("day", &day)]);
    page.open("abstract", &[]);
    let what = if report.avoidance.is_empty() {
        "a whole transport stack"
    } else {
        "startups of congestion control"
    };
    page.element("t", &[], &format!(
        "RFC 9743 lists criteria by which a new congestion control is evaluated. This document reports how {what} did by \
         those of them that concern the start of a connection. Each number has its limit, its interval and the command that \
         makes it; what was not tested is listed."
    ));
    page.close("abstract");
    page.close("front");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_names_are_checked() {
        for (text, good) in [
            ("2026-11-28", true),
            ("2024-02-29", true),
            ("2026-02-29", false),
            ("2026-13-01", false),
            ("2026-11-00", false),
            ("2026-1-28", false),
            ("26-11-28", false),
            ("2026-11-28 ", false),
            ("today", false),
        ] {
            let date = text.parse::<Date>();
            assert_eq!(date.as_ref().is_ok(), good, "{text}");
            assert!(date.is_err() || date.is_ok_and(|d| d.to_string() == text));
        }
        assert!(is_name("draft-author-ccwg-startups-00"));
        for bad in [
            "draft-author-00",
            "author-ccwg-startups-00",
            "draft-Author-ccwg-00",
            "draft-a-b",
            "draft-a-b-0",
            "draft-a--b-00",
        ] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
