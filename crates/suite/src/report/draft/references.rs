//! The RFCs that a draft cites, as the RFC index has them.

use super::xml::Page;

/// An RFC.
#[derive(Copy, Clone)]
pub(super) struct Reference {
    pub(super) number: u32,
    title: &'static str,
    /// Initials and surname; `, Ed.` follows that of an editor.
    authors: &'static [(&'static str, &'static str)],
    /// Month and year.
    date: (&'static str, &'static str),
    /// Its number as a Best Current Practice or a standard, with the name of that series.
    series: Option<(&'static str, &'static str)>,
}

const fn rfc(
    number: u32,
    title: &'static str,
    authors: &'static [(&'static str, &'static str)],
    date: (&'static str, &'static str),
) -> Reference {
    Reference { number, title, authors, date, series: None }
}

const fn of(series: (&'static str, &'static str), reference: Reference) -> Reference {
    Reference { series: Some(series), ..reference }
}

const REFERENCES: &[Reference] = &[
    of(
        ("BCP", "28"),
        rfc(
            2488,
            "Enhancing TCP Over Satellite Channels using Standard Mechanisms",
            &[("M.", "Allman"), ("D.", "Glover"), ("L.", "Sanchez")],
            ("January", "1999"),
        ),
    ),
    of(("BCP", "41"), rfc(2914, "Congestion Control Principles", &[("S.", "Floyd")], ("September", "2000"))),
    rfc(
        3135,
        "Performance Enhancing Proxies Intended to Mitigate Link-Related Degradations",
        &[("J.", "Border"), ("M.", "Kojo"), ("J.", "Griner"), ("G.", "Montenegro"), ("Z.", "Shelby")],
        ("June", "2001"),
    ),
    rfc(
        3465,
        "TCP Congestion Control with Appropriate Byte Counting (ABC)",
        &[("M.", "Allman")],
        ("February", "2003"),
    ),
    rfc(
        3714,
        "IAB Concerns Regarding Congestion Control for Voice Traffic in the Internet",
        &[("S.", "Floyd, Ed."), ("J.", "Kempf, Ed.")],
        ("March", "2004"),
    ),
    rfc(
        4653,
        "Improving the Robustness of TCP to Non-Congestion Events",
        &[("S.", "Bhandarkar"), ("A. L. N.", "Reddy"), ("M.", "Allman"), ("E.", "Blanton")],
        ("August", "2006"),
    ),
    rfc(
        5681,
        "TCP Congestion Control",
        &[("M.", "Allman"), ("V.", "Paxson"), ("E.", "Blanton")],
        ("September", "2009"),
    ),
    of(
        ("BCP", "41"),
        rfc(
            7141,
            "Byte and Packet Congestion Notification",
            &[("B.", "Briscoe"), ("J.", "Manner")],
            ("February", "2014"),
        ),
    ),
    rfc(
        7661,
        "Updating TCP to Support Rate-Limited Traffic",
        &[("G.", "Fairhurst"), ("A.", "Sathiaseelan"), ("R.", "Secchi")],
        ("October", "2015"),
    ),
    rfc(
        7928,
        "Characterization Guidelines for Active Queue Management (AQM)",
        &[("N.", "Kuhn, Ed."), ("P.", "Natarajan, Ed."), ("N.", "Khademi, Ed."), ("D.", "Ros")],
        ("July", "2016"),
    ),
    rfc(
        8033,
        "Proportional Integral Controller Enhanced (PIE): A Lightweight Control Scheme to Address the Bufferbloat Problem",
        &[("R.", "Pan"), ("P.", "Natarajan"), ("F.", "Baker"), ("G.", "White")],
        ("February", "2017"),
    ),
    of(
        ("BCP", "208"),
        rfc(8084, "Network Transport Circuit Breakers", &[("G.", "Fairhurst")], ("March", "2017")),
    ),
    rfc(
        8289,
        "Controlled Delay Active Queue Management",
        &[("K.", "Nichols"), ("V.", "Jacobson"), ("A.", "McGregor, Ed."), ("J.", "Iyengar, Ed.")],
        ("January", "2018"),
    ),
    rfc(
        8290,
        "The Flow Queue CoDel Packet Scheduler and Active Queue Management Algorithm",
        &[
            ("T.", "Hoeiland-Joergensen"),
            ("P.", "McKenney"),
            ("D.", "Taht"),
            ("J.", "Gettys"),
            ("E.", "Dumazet"),
        ],
        ("January", "2018"),
    ),
    rfc(
        8298,
        "Self-Clocked Rate Adaptation for Multimedia",
        &[("I.", "Johansson"), ("Z.", "Sarker")],
        ("December", "2017"),
    ),
    rfc(
        8698,
        "Network-Assisted Dynamic Adaptation (NADA): A Unified Congestion Control Scheme for Real-Time Media",
        &[("X.", "Zhu"), ("R.", "Pan"), ("M.", "Ramalho"), ("S.", "Mena")],
        ("February", "2020"),
    ),
    rfc(
        8836,
        "Congestion Control Requirements for Interactive Real-Time Media",
        &[("R.", "Jesup"), ("Z.", "Sarker, Ed.")],
        ("January", "2021"),
    ),
    of(
        ("STD", "7"),
        rfc(9293, "Transmission Control Protocol (TCP)", &[("W.", "Eddy, Ed.")], ("August", "2022")),
    ),
    rfc(
        9332,
        "Dual-Queue Coupled Active Queue Management (AQM) for Low Latency, Low Loss, and Scalable Throughput (L4S)",
        &[("K.", "De Schepper"), ("B.", "Briscoe, Ed."), ("G.", "White")],
        ("January", "2023"),
    ),
    rfc(
        9438,
        "CUBIC for Fast and Long-Distance Networks",
        &[("L.", "Xu"), ("S.", "Ha"), ("I.", "Rhee"), ("V.", "Goel"), ("L.", "Eggert, Ed.")],
        ("August", "2023"),
    ),
    rfc(
        9406,
        "HyStart++: Modified Slow Start for TCP",
        &[("P.", "Balasubramanian"), ("Y.", "Huang"), ("M.", "Olson")],
        ("May", "2023"),
    ),
    of(
        ("BCP", "133"),
        rfc(
            9743,
            "Specifying New Congestion Control Algorithms",
            &[("M.", "Duke, Ed."), ("G.", "Fairhurst, Ed.")],
            ("March", "2025"),
        ),
    ),
];

/// The RFC of this number, if a draft can cite it.
pub(super) fn reference(number: u32) -> Option<&'static Reference> {
    REFERENCES.iter().find(|r| r.number == number)
}

/// Writes the list of what the page cites.
pub(super) fn write(page: &mut Page) {
    let cited = std::mem::take(&mut page.cited);
    page.open("references", &[("anchor", "references")]);
    page.element("name", &[], "Informative References");
    for r in REFERENCES.iter().filter(|r| cited.contains(&r.number)) {
        let number = r.number.to_string();
        let target = format!("https://www.rfc-editor.org/info/rfc{number}");
        page.open("reference", &[("anchor", &format!("RFC{number}")), ("target", &target)]);
        page.open("front", &[]);
        page.element("title", &[], r.title);
        for (initials, surname) in r.authors {
            let (surname, editor) = surname.strip_suffix(", Ed.").map_or((*surname, false), |s| (s, true));
            let name = format!("{initials} {surname}");
            let who =
                [("initials", *initials), ("surname", surname), ("fullname", &name), ("role", "editor")];
            page.empty("author", if editor { &who } else { &who[..3] });
        }
        page.empty("date", &[("month", r.date.0), ("year", r.date.1)]);
        page.close("front");
        if let Some((series, n)) = r.series {
            page.empty("seriesInfo", &[("name", series), ("value", n)]);
        }
        page.empty("seriesInfo", &[("name", "RFC"), ("value", &number)]);
        page.empty("seriesInfo", &[("name", "DOI"), ("value", &format!("10.17487/RFC{number}"))]);
        page.close("reference");
    }
    page.close("references");
}
