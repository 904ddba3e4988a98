//! Startups that cannot be built faithfully from what is public: each with the fact that is missing. To guess it would
//! be to measure our guess under somebody's name.

/// A startup that is named in the literature and is not in the registry.
pub struct NotImplemented {
    /// Its name.
    pub name: &'static str,
    /// The paper.
    pub source: &'static str,
    /// What it is said to do.
    pub about: &'static str,
    /// What would have to be known.
    pub missing: &'static str,
}

/// All of them.
pub const NOT_IMPLEMENTED: &[NotImplemented] = &[
    NotImplemented {
        name: "afstart",
        source: "Zhang, Ansari, Wu & Yu, ICC 2012",
        about: "sets the threshold from available bandwidth, measured with spaced trains during slow start",
        missing: "how it spaces the trains and narrows its range: it builds on ImTCP's inline measurement, whose \
                  search-range and sub-interval rules it does not restate",
    },
    NotImplemented {
        name: "tcp-wise",
        source: "Nie et al., IPCCC 2017",
        about: "learns an initial window for each group of clients from the past",
        missing: "how clients are grouped and how the window is searched for; and a server's history to learn from",
    },
    NotImplemented {
        name: "best",
        source: "Ataei Kachooei, NetDev 2022",
        about: "leaves at a bandwidth estimated from packet pairs",
        missing: "every constant: how many pairs, how their estimates are filtered, and the threshold to leave at",
    },
    NotImplemented {
        name: "fbe",
        source: "Li et al. 2023",
        about: "estimates bandwidth from ACK intervals on 5G and Wi-Fi 6",
        missing: "how intervals become an estimate where ACKs come aggregated, and what ends slow start",
    },
    NotImplemented {
        name: "neural",
        source: "Lübben 2022",
        about: "a network forecasts the rate and slow start leaves for it",
        missing: "the trained weights, and the traces to train them with",
    },
];
