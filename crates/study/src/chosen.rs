//! The startups that `slowstart compare` and `slowstart advise` run if none is named, each by a rule.

/// Why a startup is in [`CHOSEN`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The default of this stack.
    DefaultOf(&'static str),
    /// An RFC of the standards track, or a draft of the IETF that is being worked on.
    Document(&'static str),
    /// One of the papers that this project implements, of which an ordinary sender can use it: `restricted`
    /// needs the queue of the host's interface, and `tsl` differs from `standard` only after a lost SYN.
    Paper,
    /// On the league's front of times and losses with each of two seeds, and besides: it reaches 1 MB and 10 MB
    /// sooner than `hystart`, loses no more than `standard` and makes others lose no more, needs nothing that
    /// senders lack, and is made from its specification.
    Front,
}

/// The startups, today's default of Linux first.
pub const CHOSEN: [(&str, Reason); 12] = [
    ("hystart", Reason::DefaultOf("Linux")),
    ("standard", Reason::DefaultOf("most QUIC stacks, by RFC 9002")),
    ("hystart++", Reason::Document("RFC 9406")),
    ("search", Reason::Document("draft-chung-ccwg-search")),
    ("ess", Reason::Paper),
    ("bbr3", Reason::Document("draft-ietf-ccwg-bbr")),
    ("rapid-start", Reason::Document("draft-kazuho-ccwg-rapid-start")),
    ("careful-resume", Reason::Document("RFC 9959")),
    ("c4", Reason::Document("draft-huitema-ccwg-c4-spec")),
    ("hystart-picoquic", Reason::Front),
    ("rate-bound", Reason::Front),
    ("suss", Reason::Front),
];

/// The names in [`CHOSEN`], in its order.
pub fn names() -> impl Iterator<Item = &'static str> {
    CHOSEN.iter().map(|c| c.0)
}

/// True if `name` is in [`CHOSEN`].
pub fn is_chosen(name: &str) -> bool {
    names().any(|n| n == name)
}
