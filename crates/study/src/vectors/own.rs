//! Which drawn calls each startup has: those that found a mutant of its rules that no case finds
//! (`research/mutants`).

/// Returns the seeds of a startup, named with or without parameters.
pub(super) fn seeds(startup: &str) -> &'static [u64] {
    let name = startup.split(':').next().unwrap_or(startup);
    SEEDS.iter().find(|(of, _)| *of == name).map_or(&[], |(_, seeds)| seeds)
}

const SEEDS: &[(&str, &[u64])] = &[
    ("adaptive", &[7, 290]),
    ("bbr", &[1, 3, 4, 6, 7, 8, 9, 11, 14, 15, 18, 23, 26, 34, 36, 53, 101, 120, 143, 376, 388, 409]),
    ("bbr2-quiche", &[6, 8, 9, 11, 14, 15, 18, 65, 91, 383, 477, 481]),
    (
        "bbr3",
        &[
            1, 6, 7, 8, 13, 14, 17, 26, 36, 41, 45, 53, 54, 83, 87, 91, 101, 107, 111, 131, 152, 188, 194,
            227, 240, 382, 432,
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
    ("careful-resume", &[6, 21, 209, 269, 281, 381, 455, 621, 751, 1200]),
    ("ess", &[4, 7, 8, 124]),
    ("halfback", &[16, 25, 28, 64, 78, 229, 402]),
    ("hybla", &[11, 14, 25, 282]),
    ("hystart", &[11, 227, 400]),
    ("hystart-ns3", &[299]),
    ("hystart-picoquic", &[4, 12, 25, 35, 242, 397]),
    ("jump-start", &[22, 45, 135, 148, 153, 217]),
    ("packet-pair", &[43]),
    ("quick-start", &[9, 16, 52, 100, 275]),
    ("rapid-start", &[3, 4, 7, 11, 15, 34, 36, 86]),
    ("rapid-start-00", &[3]),
    ("rate-bound", &[1, 3, 6, 12, 15, 16, 20, 28, 30, 36]),
    ("restricted", &[2, 7, 12, 59, 64, 222, 249]),
    ("search", &[45]),
    ("search-1.0", &[13, 20, 299]),
    ("search-3.0", &[392]),
    ("search-3.1", &[13]),
    ("search-3.1-shipped", &[346, 471]),
    ("search-3.2", &[200]),
    ("stateful", &[6, 8, 9, 18, 36]),
    ("stopeg", &[13, 15, 96]),
    ("suss", &[1, 7, 26, 36, 61, 92, 97]),
    ("vegas", &[115]),
];
