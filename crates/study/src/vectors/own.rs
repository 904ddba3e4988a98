//! What each startup has beside the cases of all: what found a mutant of its rules that no other case finds
//! (`research/mutants`).

/// A startup is named with or without parameters.
pub(super) fn name(startup: &str) -> &str {
    startup.split(':').next().unwrap_or(startup)
}

fn of(startup: &str, table: &'static [(&str, &[u64])]) -> &'static [u64] {
    table.iter().find(|(of, _)| *of == name(startup)).map_or(&[], |(_, seeds)| seeds)
}

/// Returns the seeds of its drawn connections.
pub(super) fn drawn(startup: &str) -> &'static [u64] {
    of(startup, DRAWN)
}

/// Returns the seeds of its drawn calls.
pub(super) fn seeds(startup: &str) -> &'static [u64] {
    of(startup, SEEDS)
}

const DRAWN: &[(&str, &[u64])] = &[
    ("bbr3", &[2010, 2045]),
    ("ess", &[2112]),
    ("quick-start", &[2059, 2078]),
    ("rate-bound", &[2003, 2009]),
    ("search-3.2", &[2026]),
    ("suss", &[2021, 2036]),
    ("vegas-linux", &[2004]),
];

const SEEDS: &[(&str, &[u64])] = &[
    ("adaptive", &[7, 290]),
    (
        "bbr",
        &[
            1, 3, 4, 6, 7, 8, 9, 11, 14, 15, 18, 23, 26, 34, 36, 53, 101, 120, 143, 376, 388, 409, 10005,
            10036, 10044, 10057, 10152, 10164, 10169, 10177, 10238, 10280,
        ],
    ),
    ("bbr2-quiche", &[6, 8, 9, 11, 14, 15, 18, 65, 91, 383, 477, 481]),
    (
        "bbr3",
        &[
            1, 6, 7, 8, 13, 14, 17, 26, 36, 41, 45, 53, 54, 83, 87, 91, 101, 107, 111, 131, 152, 188, 194,
            227, 240, 382, 432, 10005, 10010, 10036, 10151, 10308,
        ],
    ),
    (
        "c4",
        &[
            1, 4, 5, 6, 7, 13, 15, 23, 36, 45, 46, 70, 91, 351, 502, 512, 514, 515, 522, 564, 578, 625, 697,
            732, 925, 934, 956,
        ],
    ),
    ("capstart", &[15, 38, 260, 357]),
    ("careful-resume", &[6, 21, 209, 269, 281, 381, 455, 621, 751, 1200, 10242]),
    ("ess", &[4, 7, 8, 124, 10276]),
    ("halfback", &[16, 25, 28, 64, 78, 229, 402]),
    ("hybla", &[11, 14, 25, 282, 10020]),
    ("hystart", &[11, 227, 400, 10126, 10151, 10334]),
    ("hystart++", &[10033, 10053]),
    ("hystart-ns3", &[299, 10047, 10267, 10438, 10537]),
    ("hystart-paper", &[10001, 10050, 10088]),
    ("hystart-picoquic", &[4, 12, 25, 35, 242, 397, 10009, 10017, 10023, 10026, 10058, 10072]),
    ("jump-start", &[22, 45, 135, 148, 153, 217]),
    ("packet-pair", &[43]),
    ("quick-start", &[9, 16, 52, 100, 275]),
    ("rapid-start", &[3, 4, 7, 11, 15, 34, 36, 86]),
    ("rapid-start-00", &[3]),
    ("rate-bound", &[1, 3, 6, 12, 15, 16, 20, 28, 30, 36]),
    ("restricted", &[2, 7, 12, 59, 64, 86, 222, 249, 10053, 10059, 10082, 10128, 10209]),
    ("search", &[45]),
    ("search-1.0", &[13, 20, 299, 10003]),
    ("search-2.0", &[10010, 10019]),
    ("search-3.0", &[392]),
    ("search-3.1", &[13]),
    ("search-3.1-shipped", &[346, 471]),
    ("search-3.2", &[200]),
    ("smooth", &[10062]),
    ("stateful", &[6, 8, 9, 18, 36]),
    ("stopeg", &[13, 15, 96, 10002]),
    ("suss", &[1, 7, 26, 36, 61, 92, 97]),
    ("vegas", &[115, 10230]),
];
