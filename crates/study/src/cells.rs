//! Named cells, each a path and a congestion control, over which two engines are compared: the simulator with
//! the live kernel, or with a QUIC stack.

mod compare;

pub use compare::{Figure, compare};

use crate::engines::{Engine, EngineError, Part, Watched};
use crate::record::{Row, Trace};
use crate::run::Job;
use crate::scenario::{Study, StudyText, application};
use slowstart::units::Span;
use slowstart_sim::app;
use slowstart_sim::engine::Sampling;
use slowstart_sim::tcp::profile::Profile;
use std::path::Path;

/// A congestion control of the simulator and its counterpart in the kernel.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// The label of the figure.
    pub name: &'static str,
    /// The startup or controller of the simulator.
    pub startup: &'static str,
    /// The simulator's congestion avoidance.
    pub avoidance: &'static str,
    /// The congestion control of the kernel: a built-in one, or the BPF object of a startup with its
    /// avoidance.
    pub kernel: &'static str,
}

/// Linux CUBIC with its defaults.
const CUBIC: Control = Control { name: "cubic", startup: "hystart", avoidance: "cubic", kernel: "cubic" };
/// Linux CUBIC without `HyStart`.
const PLAIN: Control =
    Control { name: "cubic without HyStart", startup: "standard", avoidance: "cubic", kernel: "standard" };
const RENO: Control = Control { name: "reno", startup: "standard", avoidance: "reno", kernel: "reno" };
const BBR: Control = Control { name: "bbr", startup: "bbr", avoidance: "cubic", kernel: "bbr" };
const SEARCH: Control = Control { name: "search", startup: "search", avoidance: "cubic", kernel: "search" };
const HSPP: Control =
    Control { name: "hystart++", startup: "hystart++", avoidance: "cubic", kernel: "hystart++" };

/// Runs of each cell.
pub const RUNS: u32 = 5;

/// A path and a congestion control.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The name of the cell: path, run and startup.
    pub name: String,
    /// The path, as an inline path.
    pub path: &'static str,
    /// The duration of a run, of a transfer without end.
    pub seconds: u32,
    /// The size of the transfer, if it ends: then the time it takes is a figure.
    pub size: Option<&'static str>,
    /// The application, if it is not one bulk transfer: then the times of its objects are figures.
    pub app: Option<&'static str>,
    /// True if the path names a trace file, which is in a folder that the user gives.
    pub traced: bool,
    /// The congestion control of the sender.
    pub control: Control,
    /// The feedback of ECN that both ends use (the profile's `ecn`), if they do.
    pub ecn: Option<&'static str>,
    /// The largest receive buffer (the profile's `rmem`), if that is to limit the sender.
    pub rmem: Option<&'static str>,
}

/// Paths by name, the duration of a run in seconds (20 MB or 20 round trips, at most 15 s), and the
/// congestion controls that run over each. Where rate and delay are constant, ACKs have a jitter of one
/// packet time: a packet sent for an ACK arrives at the full queue at the moment at which another packet
/// leaves it, and without jitter the same one of the two would always be first (Floyd and Jacobson, On
/// Traffic Phase Effects in Packet-Switched Gateways, 1992, section 5).
const MATRIX: &[(&str, u32, &str, &[Control])] = &[
    ("2M-50ms-1", 15, "rate=2Mbit ack_jitter=6000us rtt=50ms queue=1bdp", &[CUBIC, RENO]),
    ("2M-600ms-1", 15, "rate=2Mbit ack_jitter=6000us rtt=600ms queue=1bdp", &[PLAIN, SEARCH]),
    ("5M-20ms-4", 15, "rate=5Mbit ack_jitter=2400us rtt=20ms queue=4bdp", &[CUBIC, BBR]),
    ("10M-100ms-1/4", 15, "rate=10Mbit ack_jitter=1200us rtt=100ms queue=0.25bdp", &[CUBIC, RENO]),
    ("10M-100ms-1", 15, "rate=10Mbit ack_jitter=1200us rtt=100ms queue=1bdp", &[CUBIC, PLAIN, SEARCH, HSPP]),
    ("10M-100ms-4", 15, "rate=10Mbit ack_jitter=1200us rtt=100ms queue=4bdp", &[PLAIN, BBR]),
    ("20M-40ms-1", 10, "rate=20Mbit ack_jitter=600us rtt=40ms queue=1bdp", &[CUBIC, SEARCH, HSPP]),
    ("20M-300ms-1", 12, "rate=20Mbit ack_jitter=600us rtt=300ms queue=1bdp", &[CUBIC, SEARCH]),
    ("50M-5ms-4", 6, "rate=50Mbit ack_jitter=240us rtt=5ms queue=4bdp", &[CUBIC, RENO]),
    ("50M-50ms-1/2", 6, "rate=50Mbit ack_jitter=240us rtt=50ms queue=0.5bdp", &[PLAIN, HSPP]),
    ("50M-50ms-2", 6, "rate=50Mbit ack_jitter=240us rtt=50ms queue=2bdp", &[CUBIC, BBR]),
    ("50M-600ms-1", 15, "rate=50Mbit ack_jitter=240us rtt=600ms queue=1bdp", &[CUBIC, PLAIN, SEARCH, HSPP]),
    ("100M-10ms-1", 4, "rate=100Mbit ack_jitter=120us rtt=10ms queue=1bdp", &[CUBIC, RENO]),
    ("100M-50ms-1/4", 5, "rate=100Mbit ack_jitter=120us rtt=50ms queue=0.25bdp", &[CUBIC, SEARCH]),
    ("100M-50ms-1", 5, "rate=100Mbit ack_jitter=120us rtt=50ms queue=1bdp", &[CUBIC, PLAIN, RENO, BBR]),
    ("100M-50ms-4", 5, "rate=100Mbit ack_jitter=120us rtt=50ms queue=4bdp", &[SEARCH, HSPP]),
    ("200M-20ms-1", 3, "rate=200Mbit ack_jitter=60us rtt=20ms queue=1bdp", &[CUBIC]),
    ("200M-100ms-1/2", 5, "rate=200Mbit ack_jitter=60us rtt=100ms queue=0.5bdp", &[CUBIC, HSPP]),
    ("jitter-20M-50ms", 10, "rate=20Mbit rtt=50ms queue=1bdp jitter=5ms", &[CUBIC, SEARCH]),
    ("loss-20M-50ms", 10, "rate=20Mbit ack_jitter=600us rtt=50ms queue=1bdp loss=0.1%", &[CUBIC, RENO]),
    ("lte", 15, "trace=lte-verizon-short.down rtt=60ms queue=300packets", &[CUBIC, BBR]),
    (
        "starlink",
        10,
        "trace=starlink-leocc-A.bw.gz delay_trace=starlink-leocc-A.delay queue=500packets",
        &[CUBIC, SEARCH],
    ),
];

/// As [`MATRIX`], over queue disciplines, token buckets and the elements that lose, delay and duplicate by
/// more than a coin; one congestion control each, and the ECN that both ends use.
const ELEMENTS: &[(&str, u32, &str, Control, Option<&str>)] = &[
    ("fq_codel", 6, "rate=50Mbit ack_jitter=240us rtt=40ms queue=fq_codel", CUBIC, None),
    ("fq_codel-ecn", 6, "rate=50Mbit ack_jitter=240us rtt=40ms queue=fq_codel", RENO, Some("rfc3168")),
    ("codel", 8, "rate=20Mbit ack_jitter=600us rtt=50ms queue=codel", PLAIN, None),
    ("codel-ecn", 8, "rate=20Mbit ack_jitter=600us rtt=50ms queue=\"codel ecn\"", CUBIC, Some("rfc3168")),
    ("pie", 8, "rate=20Mbit ack_jitter=600us rtt=50ms queue=pie", RENO, None),
    ("pie-ecn", 8, "rate=20Mbit ack_jitter=600us rtt=50ms queue=\"pie ecn\"", CUBIC, Some("rfc3168")),
    (
        "red",
        8,
        "rate=20Mbit ack_jitter=600us rtt=50ms queue=\"red limit=400kB min=30kB max=90kB\"",
        CUBIC,
        None,
    ),
    (
        "red-ecn-adaptive",
        8,
        "rate=20Mbit ack_jitter=600us rtt=50ms queue=\"red limit=400kB min=30kB max=90kB ecn adaptive\"",
        RENO,
        Some("rfc3168"),
    ),
    ("dualpi2", 6, "rate=50Mbit ack_jitter=240us rtt=20ms queue=dualpi2", CUBIC, None),
    ("dualpi2-ecn", 6, "rate=50Mbit ack_jitter=240us rtt=20ms queue=dualpi2", RENO, Some("rfc3168")),
    ("fq", 8, "rate=20Mbit ack_jitter=600us rtt=50ms queue=\"fq flow_limit=100p\"", CUBIC, None),
    ("step-ecn", 10, "rate=20Mbit ack_jitter=600us rtt=50ms queue=1bdp mark=5ms", CUBIC, Some("rfc3168")),
    (
        "policer",
        8,
        "rate=75Mbit ack_jitter=160us rtt=45ms queue=375kB policer=\"rate=20Mbit burst=250kB\"",
        CUBIC,
        None,
    ),
    (
        "policer",
        8,
        "rate=75Mbit ack_jitter=160us rtt=45ms queue=375kB policer=\"rate=20Mbit burst=250kB\"",
        RENO,
        None,
    ),
    (
        "shaper",
        5,
        "rate=100Mbit ack_jitter=120us rtt=20ms queue=312500B shaper=\"rate=50Mbit burst=5MB\"",
        CUBIC,
        None,
    ),
    ("gemodel", 10, "rate=20Mbit ack_jitter=600us rtt=50ms queue=1bdp gemodel=0.05%,20%", CUBIC, None),
    (
        "outage-kept",
        8,
        "rate=20Mbit ack_jitter=600us rtt=50ms queue=1bdp outage=at=3s,for=150ms,queue=kept",
        CUBIC,
        None,
    ),
    (
        "outage-flushed",
        8,
        "rate=20Mbit ack_jitter=600us rtt=50ms queue=1bdp outage=at=3s,for=150ms,queue=flushed",
        RENO,
        None,
    ),
    ("reorder", 8, "rate=20Mbit ack_jitter=600us rtt=50ms queue=1bdp reorder=2%,delay=4ms", CUBIC, None),
    ("second-route", 8, "rate=20Mbit ack_jitter=600us rtt=50ms queue=1bdp second_route=20%,3ms", RENO, None),
    (
        "head-drop",
        8,
        "rate=20Mbit ack_jitter=600us rtt=50ms queue=\"pfifo_head_drop limit 83p\"",
        CUBIC,
        None,
    ),
    (
        "head-drop",
        8,
        "rate=20Mbit ack_jitter=600us rtt=50ms queue=\"pfifo_head_drop limit 83p\"",
        PLAIN,
        None,
    ),
    (
        "head-drop-shallow",
        6,
        "rate=50Mbit ack_jitter=240us rtt=40ms queue=\"pfifo_head_drop limit 42p\"",
        RENO,
        None,
    ),
    (
        "two-routes-10ms",
        6,
        "rate=50Mbit ack_jitter=240us rtt=40ms queue=4bdp second_route=20%,10ms",
        CUBIC,
        None,
    ),
    (
        "two-routes-30ms",
        6,
        "rate=50Mbit ack_jitter=240us rtt=40ms queue=4bdp second_route=20%,30ms",
        CUBIC,
        None,
    ),
    (
        "reorder-10ms",
        8,
        "rate=20Mbit ack_jitter=600us rtt=50ms queue=2bdp reorder=10%,delay=10ms",
        RENO,
        None,
    ),
    (
        "rtt-steps",
        8,
        "rate=20Mbit ack_jitter=600us rtt=50ms queue=2bdp handover=2s handover_step=40ms",
        CUBIC,
        None,
    ),
    (
        "rtt-steps",
        8,
        "rate=20Mbit ack_jitter=600us rtt=50ms queue=2bdp handover=2s handover_step=40ms",
        RENO,
        None,
    ),
    ("reorder-25%", 8, "rate=20Mbit ack_jitter=600us rtt=50ms queue=1bdp reorder=25%,delay=5ms", CUBIC, None),
    (
        "reorder-gap",
        8,
        "rate=20Mbit ack_jitter=600us rtt=50ms queue=1bdp reorder=50%,gap=10,delay=8ms",
        PLAIN,
        None,
    ),
    (
        "two-routes-5ms",
        5,
        "rate=100Mbit ack_jitter=120us rtt=50ms queue=1bdp second_route=10%,5ms",
        CUBIC,
        None,
    ),
    (
        "two-routes-20ms",
        8,
        "rate=50Mbit ack_jitter=240us rtt=80ms queue=2bdp second_route=5%,20ms",
        RENO,
        None,
    ),
    ("netem-jitter", 8, "rate=20Mbit rtt=30ms queue=1bdp netem=\"delay 20ms 2ms\"", CUBIC, None),
    (
        "rtt-steps-1s",
        8,
        "rate=20Mbit ack_jitter=600us rtt=50ms queue=1bdp handover=1s handover_step=20ms",
        CUBIC,
        None,
    ),
    (
        "rtt-steps-1s",
        8,
        "rate=20Mbit ack_jitter=600us rtt=50ms queue=1bdp handover=1s handover_step=20ms",
        RENO,
        None,
    ),
    (
        "rtt-steps-500ms",
        8,
        "rate=20Mbit ack_jitter=600us rtt=50ms queue=2bdp handover=500ms handover_step=60ms",
        PLAIN,
        None,
    ),
    (
        "rtt-steps-shallow",
        8,
        "rate=20Mbit ack_jitter=600us rtt=50ms queue=0.5bdp handover=2s handover_step=40ms",
        CUBIC,
        None,
    ),
    (
        "rtt-steps-100M",
        5,
        "rate=100Mbit ack_jitter=120us rtt=50ms queue=1bdp handover=1s handover_step=30ms",
        CUBIC,
        None,
    ),
    (
        "rtt-steps-100M",
        5,
        "rate=100Mbit ack_jitter=120us rtt=50ms queue=1bdp handover=1s handover_step=30ms",
        RENO,
        None,
    ),
    (
        "rtt-steps-300ms",
        12,
        "rate=20Mbit ack_jitter=600us rtt=300ms queue=1bdp handover=3s handover_step=100ms",
        CUBIC,
        None,
    ),
    (
        "rtt-steps-stall",
        8,
        "rate=20Mbit ack_jitter=600us rtt=50ms queue=2bdp handover=2s handover_step=40ms handover_stall=50ms",
        RENO,
        None,
    ),
    (
        "head-drop-deep",
        6,
        "rate=50Mbit ack_jitter=240us rtt=40ms queue=\"pfifo_head_drop limit 332p\"",
        CUBIC,
        None,
    ),
    (
        "head-drop-deep",
        6,
        "rate=50Mbit ack_jitter=240us rtt=40ms queue=\"pfifo_head_drop limit 332p\"",
        PLAIN,
        None,
    ),
    (
        "head-drop-shallow",
        6,
        "rate=50Mbit ack_jitter=240us rtt=40ms queue=\"pfifo_head_drop limit 42p\"",
        CUBIC,
        None,
    ),
    (
        "head-drop-100M",
        5,
        "rate=100Mbit ack_jitter=120us rtt=50ms queue=\"pfifo_head_drop limit 416p\"",
        CUBIC,
        None,
    ),
    (
        "head-drop-100M",
        5,
        "rate=100Mbit ack_jitter=120us rtt=50ms queue=\"pfifo_head_drop limit 416p\"",
        RENO,
        None,
    ),
    (
        "head-drop-5M",
        10,
        "rate=5Mbit ack_jitter=2400us rtt=20ms queue=\"pfifo_head_drop limit 34p\"",
        RENO,
        None,
    ),
    (
        "head-drop-300ms",
        12,
        "rate=20Mbit ack_jitter=600us rtt=300ms queue=\"pfifo_head_drop limit 500p\"",
        CUBIC,
        None,
    ),
    ("duplicate", 8, "rate=20Mbit ack_jitter=600us rtt=50ms queue=1bdp duplicate=2%", CUBIC, None),
];

/// Web objects: short transfers, of which some end with a flight of 10, 20 and 40 segments (43,440 bytes are 30
/// segments, 101,360 are 70).
const OBJECTS: &[(&str, &str, &str)] = &[
    ("10M-50ms", "rate=10Mbit ack_jitter=1200us rtt=50ms queue=1bdp", "20kB"),
    ("10M-50ms", "rate=10Mbit ack_jitter=1200us rtt=50ms queue=1bdp", "100kB"),
    ("10M-50ms", "rate=10Mbit ack_jitter=1200us rtt=50ms queue=1bdp", "500kB"),
    ("50M-50ms", "rate=50Mbit ack_jitter=240us rtt=50ms queue=1bdp", "20kB"),
    ("50M-50ms", "rate=50Mbit ack_jitter=240us rtt=50ms queue=1bdp", "43440B"),
    ("50M-50ms", "rate=50Mbit ack_jitter=240us rtt=50ms queue=1bdp", "100kB"),
    ("50M-50ms", "rate=50Mbit ack_jitter=240us rtt=50ms queue=1bdp", "101360B"),
    ("50M-50ms", "rate=50Mbit ack_jitter=240us rtt=50ms queue=1bdp", "1MB"),
    ("200M-20ms", "rate=200Mbit ack_jitter=60us rtt=20ms queue=1bdp", "100kB"),
    ("200M-20ms", "rate=200Mbit ack_jitter=60us rtt=20ms queue=1bdp", "1MB"),
];

/// Transfers that the receive buffer limits: path, size, and the largest buffer.
const FLOW_CONTROL: &[(&str, &str, &str, &str, Control)] = &[
    ("20M-50ms", "rate=20Mbit ack_jitter=600us rtt=50ms queue=1bdp", "5MB", "131072", CUBIC),
    ("20M-50ms", "rate=20Mbit ack_jitter=600us rtt=50ms queue=1bdp", "10MB", "262144", CUBIC),
    ("20M-50ms", "rate=20Mbit ack_jitter=600us rtt=50ms queue=1bdp", "10MB", "524288", RENO),
    ("50M-50ms", "rate=50Mbit ack_jitter=240us rtt=50ms queue=1bdp", "10MB", "524288", CUBIC),
    ("50M-50ms", "rate=50Mbit ack_jitter=240us rtt=50ms queue=1bdp", "10MB", "786432", RENO),
    ("50M-50ms", "rate=50Mbit ack_jitter=240us rtt=50ms queue=1bdp", "10MB", "1048576", CUBIC),
    ("100M-20ms", "rate=100Mbit ack_jitter=120us rtt=20ms queue=1bdp", "10MB", "262144", CUBIC),
    ("100M-20ms", "rate=100Mbit ack_jitter=120us rtt=20ms queue=1bdp", "10MB", "400000", PLAIN),
    ("20M-300ms", "rate=20Mbit ack_jitter=600us rtt=300ms queue=1bdp", "5MB", "524288", CUBIC),
    ("10M-100ms", "rate=10Mbit ack_jitter=1200us rtt=100ms queue=1bdp", "3MB", "200000", RENO),
];

/// Applications that pause, and one that writes slowly before it sends in bulk.
const APPS: &[(&str, &str, &str, Control)] = &[
    ("pause-2s", "rate=20Mbit ack_jitter=600us rtt=50ms queue=1bdp", "5MB,2s,5MB", CUBIC),
    ("pause-2s", "rate=20Mbit ack_jitter=600us rtt=50ms queue=1bdp", "5MB,2s,5MB", RENO),
    ("pause-0.3s", "rate=20Mbit ack_jitter=600us rtt=50ms queue=1bdp", "5MB,300ms,5MB", CUBIC),
    ("pause-300ms-rtt", "rate=20Mbit ack_jitter=600us rtt=300ms queue=1bdp", "2MB,3s,2MB", CUBIC),
    ("pauses-shallow", "rate=50Mbit ack_jitter=240us rtt=40ms queue=0.5bdp", "1MB,1s,1MB,1s,4MB", RENO),
    (
        "trickle-then-bulk",
        "rate=50Mbit ack_jitter=240us rtt=50ms queue=1bdp",
        "writes:500kB@1Mbit,10MB",
        CUBIC,
    ),
    ("pieces", "rate=50Mbit ack_jitter=240us rtt=50ms queue=1bdp", "writes:5MB@100kB/20ms,2s,1MB", CUBIC),
    ("video", "rate=20Mbit ack_jitter=600us rtt=50ms queue=1bdp", "video", CUBIC),
    ("web", "rate=10Mbit ack_jitter=1200us rtt=100ms queue=1bdp", "web", CUBIC),
    ("browser", "rate=10Mbit ack_jitter=1200us rtt=100ms queue=1bdp", "browser", CUBIC),
];

impl Cell {
    /// True if its application ends by itself.
    fn ends(&self) -> bool {
        matches!(self.app.and_then(application), Some(app::Kind::Bursts(_) | app::Kind::Writes(_)))
    }

    /// The study of the cell on an engine: its control has the kernel's name where the engine knows that
    /// name, and the TCP stack is set as far as the engine lets it. `traces` is the folder of the trace
    /// files.
    ///
    /// # Errors
    /// If the engine cannot run the cell.
    pub fn study(&self, engine: &dyn Engine, traces: Option<&Path>) -> Result<Study, EngineError> {
        let avoidance = self.control.avoidance;
        let by_kernel = engine.startups(avoidance).iter().any(|s| s == self.control.kernel);
        let startup = if by_kernel { self.control.kernel } else { self.control.startup };
        let carries = |part| engine.lacks(part).is_none();
        // The emulator's sender has no fq qdisc, and its receive buffers start at 1 MB.
        let (profile, first) = (Profile::LINUX_6_18.name.to_string(), "1048576");
        let text = StudyText {
            path: self.path.to_string(),
            startups: vec![startup.to_string()],
            avoidance: Some(avoidance.to_string()),
            app: self.app.map(String::from),
            duration: (self.size.is_none() && !self.ends()).then(|| format!("{}s", self.seconds)),
            size: self.size.map(String::from),
            profile: carries(Part::Profile).then_some(profile),
            set: [
                ("rmem_first", carries(Part::Buffers).then_some(first)),
                ("rmem", self.rmem),
                ("ecn", self.ecn),
            ]
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_string(), value?.to_string())))
            .collect(),
            runs: Some(RUNS),
            ..StudyText::default()
        };
        engine.study(&text, traces)
    }

    /// A run of a cell, with samples.
    ///
    /// # Errors
    /// If the run fails, or `stop` returned true.
    pub fn run(
        engine: &dyn Engine,
        study: &Study,
        job: Job,
        stop: &dyn Fn() -> bool,
    ) -> Result<Ran, EngineError> {
        let sampling = Sampling::Every(Span::millis(5));
        let outcome = engine.run(study, job, &Watched { sampling, internals: false, stop })?;
        Ok(Ran { row: outcome.row, trace: outcome.trace })
    }

    /// Returns all cells, in the order of the table.
    pub fn all() -> Vec<Self> {
        let cell = |&(path_name, seconds, path, controls): &(&str, u32, &'static str, &'static [Control])| {
            let name = path_name.to_string();
            controls.iter().map(move |c| Self {
                name: format!("{name} {}", c.name),
                path,
                seconds,
                size: None,
                app: None,
                traced: path.contains("trace="),
                control: *c,
                ecn: None,
                rmem: None,
            })
        };
        let element = |&(name, seconds, path, control, ecn): &(&str, u32, &'static str, Control, _)| Self {
            name: format!("{name} {}", control.name),
            path,
            seconds,
            size: None,
            app: None,
            traced: false,
            control,
            ecn,
            rmem: None,
        };
        let object = |&(path_name, path, size): &(&str, &'static str, &'static str)| Self {
            name: format!("{path_name} {size}"),
            path,
            seconds: 0,
            size: Some(size),
            app: None,
            traced: false,
            control: CUBIC,
            ecn: None,
            rmem: None,
        };
        let buffer = |&(path, keys, size, rmem, control): &(
            &str,
            &'static str,
            &'static str,
            &'static str,
            Control,
        )| Self {
            name: format!("{path} {size} rmem={rmem} {}", control.name),
            path: keys,
            seconds: 0,
            size: Some(size),
            app: None,
            traced: false,
            control,
            ecn: None,
            rmem: Some(rmem),
        };
        let application = |&(name, path, app, control): &(&str, &'static str, &'static str, Control)| Self {
            name: format!("{name} {}", control.name),
            path,
            seconds: 10,
            size: None,
            app: Some(app),
            traced: false,
            control,
            ecn: None,
            rmem: None,
        };
        let all = MATRIX.iter().flat_map(cell).chain(ELEMENTS.iter().map(element));
        all.chain(OBJECTS.iter().map(object))
            .chain(FLOW_CONTROL.iter().map(buffer))
            .chain(APPS.iter().map(application))
            .collect()
    }
}

/// A run of a cell.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The row of the run.
    pub row: Row,
    /// Its samples and events.
    pub trace: Trace,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::Simulator;

    #[test]
    fn there_are_129_cells_with_names_of_their_own_and_paths_that_are_read() {
        let mut names: Vec<String> = Cell::all().into_iter().map(|c| c.name).collect();
        assert_eq!(names.len(), 129);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 129);
        for cell in Cell::all().into_iter().filter(|c| !c.traced) {
            cell.study(&Simulator, None).unwrap_or_else(|e| panic!("{}: {e}", cell.name));
        }
    }
}
