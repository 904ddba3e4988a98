//! The built-in experiments. A new one is a file `scenarios/papers/PAPER/NAME.toml` and a line here.

macro_rules! texts {
    ($($id:literal),* $(,)?) => {
        &[$(($id, include_str!(concat!("../experiments/", $id, ".toml")))),*]
    };
}

/// The built-in experiments: id and text of the file.
pub const ALL: &[(&str, &str)] = texts!(
    "ess/fig2",
    "ess/table1",
    "ess/fig5",
    "ess/fig6",
    "ess/fig7",
    "ess/fig8",
    "ess/buffers",
    "ess/jitter",
    "hystart/fig1",
    "hystart/recovery",
    "hystart/fig2",
    "hystart/fig3",
    "hystart/fig4",
    "hystart/fig5",
    "hystart/limited",
    "rss/r1",
    "rss/ziegler-nichols",
    "rss/modern",
    "rss/queue",
    "rss/readings",
    "search/closed-form",
    "search/one",
    "search/bins",
    "search/sensitivity",
    "search/geo",
    "search/leo",
    "search/lte",
    "search/wifi-strong",
    "search/wifi-weak",
    "search/campus",
    "search/application",
    "search/few-bins",
    "search/fast-links",
    "tsl/load-40",
    "tsl/load-90",
    "tsl/load-98",
    "tsl/mix",
    "tsl/feedback",
    "field/c4",
    "field/satellite",
    "field/quicly",
    "field/quicly-loss",
    "field/suss",
    "field/careful-resume",
    "field/reports",
    "field/starlink",
    "field/sizes",
);
