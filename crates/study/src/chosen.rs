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
    /// On the front of times and losses in the league, with each of two seeds, and worth a try: it reaches
    /// 1 MB and 10 MB sooner than `hystart`, loses no more packets than `standard`, makes others lose no more,
    /// finishes as often as these two, needs nothing that senders lack, and is made from its specification.
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

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart::registry;
    use std::collections::BTreeSet;

    /// The league's results: `slowstart league --seed SEED`, the means of all 920 cases.
    const LEAGUE: &str = include_str!("../../../docs/evidence/league.csv");
    const COLUMNS: &str = "seed,startup,memory,reconstructed,time_1mb,time_10mb,unfinished,lost,others_lost";

    /// The seeds by which startups were chosen, and one that was drawn afterwards.
    const SEEDS: [&str; 2] = ["1292506791", "2661773642"];
    const LATER: &str = "3523780971";

    struct Line {
        seed: &'static str,
        name: &'static str,
        ordinary: bool,
        unfinished: f64,
        /// Time to 1 MB and to 10 MB over the oracle's, packets lost, packets that others lost.
        means: [f64; 4],
    }

    fn league() -> Vec<Line> {
        let (head, lines) = LEAGUE.split_once('\n').expect("a header");
        assert_eq!(head, COLUMNS);
        let of = |line: &'static str| {
            let cells: Vec<_> = line.split(',').collect();
            let number = |i: usize| cells[i].parse::<f64>().expect("a number");
            Line {
                seed: cells[0],
                name: cells[1],
                ordinary: number(2) + number(3) == 0.0,
                unfinished: number(6),
                means: [number(4), number(5), number(7), number(8)],
            }
        };
        lines.lines().map(of).collect()
    }

    /// What [`Reason::Front`] says, for one seed.
    fn front(seed: &str) -> BTreeSet<&'static str> {
        let mut lines = league();
        lines.retain(|l| l.seed == seed && l.ordinary);
        let of = |name: &str| lines.iter().find(|l| l.name == name).expect("to be in the league");
        let (hystart, standard) = (of("hystart"), of("standard"));
        let worth = |l: &&Line| {
            let [small, large, lost, others] = l.means;
            small < hystart.means[0]
                && large < hystart.means[1]
                && lost <= standard.means[2]
                && others <= standard.means[3]
                && l.unfinished <= hystart.unfinished.max(standard.unfinished)
        };
        let beats = |a: &Line, b: &Line| {
            a.means.iter().zip(&b.means).all(|(a, b)| a <= b)
                && a.means.iter().zip(&b.means).any(|(a, b)| a < b)
        };
        let beaten = |l: &Line| lines.iter().any(|o| beats(o, l));
        lines.iter().filter(worth).filter(|l| !beaten(l)).map(|l| l.name).collect()
    }

    #[test]
    fn the_front_is_chosen() {
        let seeds: BTreeSet<_> = league().iter().map(|l| l.seed).collect();
        assert_eq!(seeds, SEEDS.into_iter().chain([LATER]).collect::<BTreeSet<_>>());
        let both = SEEDS.map(front).into_iter().reduce(|a, b| &a & &b).expect("a seed");
        let missing: Vec<_> = both.iter().filter(|n| !is_chosen(n)).collect();
        assert!(missing.is_empty(), "on the front and not chosen: {missing:?}");
        for (name, _) in CHOSEN.iter().filter(|c| c.1 == Reason::Front) {
            assert!(both.contains(name), "{name} is not on the front");
        }
    }

    /// docs/evidence/league.md says which are on the front with the later seed too.
    #[test]
    fn a_later_seed_keeps_two_of_three() {
        let front = front(LATER);
        let kept = CHOSEN.iter().filter(|c| c.1 == Reason::Front && front.contains(c.0)).map(|c| c.0);
        assert_eq!(kept.collect::<Vec<_>>(), ["rate-bound", "suss"]);
    }

    #[test]
    fn what_is_chosen_exists_and_names_its_document() {
        for (name, reason) in CHOSEN {
            let entry = registry::named(name).unwrap_or_else(|| panic!("{name} does not exist"));
            if let Reason::Document(document) = reason {
                assert!(entry.source.contains(document), "{name}: {}", entry.source);
            }
        }
    }
}
