//! Startups that are not implemented because their public specification is incomplete. Each names the missing
//! part; filling it in would measure our own guess under the name of the authors.

/// A startup from the literature that is not in the registry.
pub struct NotImplemented {
    /// The name that its source gives it.
    pub name: &'static str,
    /// The paper or document that describes it.
    pub source: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// The part that its specification lacks.
    pub missing: &'static str,
}

/// All startups that are not implemented.
pub const NOT_IMPLEMENTED: &[NotImplemented] = &[
    NotImplemented {
        name: "afstart",
        source: "Zhang, Ansari, Wu & Yu, ICC 2012",
        about: "sets the threshold from the available bandwidth, measured with spaced packet trains during slow start",
        missing: "how it spaces the trains and narrows its search range: it builds on ImTCP's inline measurement, whose \
                  search-range and sub-interval rules it does not restate",
    },
    NotImplemented {
        name: "tcp-wise",
        source: "Nie et al., IPCCC 2017",
        about: "learns an initial window for each group of clients from earlier connections",
        missing: "how clients are grouped, how the window is searched for, and a server's history as input",
    },
    NotImplemented {
        name: "best",
        source: "Ataei Kachooei, NetDev 2022",
        about: "exits at a bandwidth estimated from packet pairs",
        missing: "all constants: the number of pairs, the filter of their estimates, and the exit threshold",
    },
    NotImplemented {
        name: "fbe",
        source: "Li et al. 2023",
        about: "estimates bandwidth from ACK intervals on 5G and Wi-Fi 6",
        missing: "how intervals become an estimate when ACKs are aggregated, and what ends slow start",
    },
    NotImplemented {
        name: "neural",
        source: "Lübben 2022",
        about: "a neural network forecasts the rate at which slow start exits",
        missing: "the trained weights, and the traces used for training",
    },
];
