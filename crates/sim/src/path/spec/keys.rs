//! The keys of a path and the values they accept. Unknown keys are errors.

use std::collections::BTreeMap;
use std::path as fs_path;
use std::sync::Arc;

use slowstart::units::{Bytes, Fixed, Instant, Span, mul_div};

use crate::suggest::did_you_mean;

use super::super::element::{BACK_KEYS, Elements, KEYS};
use super::super::error::PathError;
use super::super::fade::{Burst, Fades};
use super::super::files::Files;
use super::super::link::Limit;
use super::super::netem;
use super::super::outage::OutageSpec;
use super::super::trace::{DelayTrace, LossTrace, Trace};
use super::super::{Kind, quantity};
use super::DirectionSpec;
use super::supply::Supply;

/// A key of a path.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PathKey {
    /// The key, the same in TOML and inline.
    pub name: &'static str,
    /// What a value looks like.
    pub expects: &'static str,
    /// What the key does, in a sentence.
    pub about: &'static str,
}

impl PathKey {
    /// True if a value is one number, perhaps with a unit.
    pub fn is_quantity(&self) -> bool {
        [RATE, SPAN, SHARE, COUNT, QUEUE].contains(&self.expects)
    }
}

const fn key(name: &'static str, expects: &'static str, about: &'static str) -> PathKey {
    PathKey { name, expects, about }
}

/// Every key of a path. Where a number is expected, a distribution may stand in its place (see
/// `docs/explain/method.md`).
pub const PATH_KEYS: &[PathKey] = &{
    const ALL: [&[PathKey]; 5] = [LINK, KEYS, WAY, BACK_KEYS, BACK];
    let mut all = [LINK[0]; LINK.len() + KEYS.len() + WAY.len() + BACK_KEYS.len() + BACK.len()];
    let (mut n, mut list) = (0, 0);
    while list < ALL.len() {
        let mut i = 0;
        while i < ALL[list].len() {
            all[n] = ALL[list][i];
            (n, i) = (n + 1, i + 1);
        }
        list += 1;
    }
    all
};

/// The path as a whole, and its forward link.
const LINK: &[PathKey] = &[
    key("name", "text", "Name in results; by default the name of the file."),
    key("about", "text", "What the path is, in a sentence."),
    key("sources", "a list of strings", "Where the values come from."),
    key(
        "fixed",
        "the name of a built-in path",
        "Path to use in place of an ensemble where one fixed path is wanted.",
    ),
    key(
        "rate",
        RATE,
        "Capacity of the forward link, in bits of IP packets per second. One of rate, schedule and trace is required.",
    ),
    key("rate_vary", SHARE, "The rate is uniform in rate ± this share, and changes each rate_vary_period."),
    key(
        "rate_vary_period",
        "a length of time not below 100us, such as 100ms",
        "Time after which the rate changes.",
    ),
    key(
        "schedule",
        "rates with their times, such as 0s:12Mbit,7s:48Mbit",
        "Capacity over time; 0bit is an outage.",
    ),
    key(
        "trace",
        "a file, such as docs/samples/example.down, or several, such as a.down|b.down",
        "Mahimahi trace: each line is the millisecond of one opportunity to send 1500 bytes. The trace repeats. It may be compressed by gzip. Of several, each run gets one at random.",
    ),
    key("trace_start", "random or 0", "Place in the traces at which a run starts; random by default."),
    key(
        "rtt",
        SPAN,
        "Base round-trip time, half of it in each direction. Required, unless there is a delay_trace.",
    ),
    key(
        "queue",
        QUEUE,
        "Capacity of the queue at the forward link, 1bdp by default: further packets are dropped. Or a queue discipline with the words of tc: codel, fq_codel, pie, red, dualpi2, fq, such as \"codel target=5ms ecn\" (see docs/reference/disciplines.md).",
    ),
    key(
        "shaper",
        BUCKET,
        "Token bucket of the forward link, as tc's tbf: after a burst the link sends at this rate. With peak=RATE a second bucket of one packet; with place=after it lies behind the link, with a queue of 1 BDP.",
    ),
    key(
        "policer",
        BUCKET,
        "Token bucket before the forward link, as tc's police: drops what finds too few tokens. With peak=RATE a second bucket of one packet; with place=after behind the link.",
    ),
    key(
        "second_carrier",
        "words with their values, such as \"share=50% backlog=30kB activation=24ms idle=640ms\"",
        "Carrier aggregation: this share of the rate is there only from an activation time after the queue exceeded the backlog, until no packet was sent for the idle time.",
    ),
    key(
        "link",
        "host or network",
        "host: the forward link is the sender's own interface, and a full queue holds packets back instead of dropping them.",
    ),
    key(
        "host_rate",
        RATE,
        "Rate of the sender's own interface, before the path. The host sees its queue, and TCP small queues limit what waits there.",
    ),
    key(
        "host_queue",
        HOST_QUEUE,
        "Queue discipline of that interface, with the words of tc: pfifo_fast (the default), pfifo, fq_codel, fq or another; with host_rate.",
    ),
    key("quick_start", RATE, "Greatest rate that routers grant to a Quick-Start request (RFC 4782)."),
    key(
        "random_drop",
        "a share and a backlog, such as 25%@18MB",
        "Drops arriving packets with this probability while the queue is longer than the backlog.",
    ),
    key("mark", SPAN, "Marks ECN-capable packets (CE) that wait longer than this at the forward link."),
];

/// What else happens on the way there.
const WAY: &[PathKey] = &[
    key(
        "vary",
        SPAN,
        "Amplitude of a sine wave in the forward delay, from 0 to twice this; with vary_period.",
    ),
    key("vary_period", SPAN, "Period of that wave."),
    key(
        "handover",
        SPAN,
        "Period of handovers, each of which changes the extra forward delay; with handover_step.",
    ),
    key("handover_step", SPAN, "Greatest extra delay after a handover."),
    key(
        "handover_stall",
        SPAN,
        "At each handover neither direction carries anything for this long, and what waits goes on afterwards; with handover.",
    ),
    key(
        "delay_trace",
        "a file",
        "Forward delay over time: one value in milliseconds for each 10 ms, or a table with time and delay. The trace repeats.",
    ),
    key(
        "netem",
        netem::Spec::EXPECTED,
        "A netem on the sender's interface, with the options of tc or a line of it. Its delay adds to rtt, which may be left out; its rate may replace rate.",
    ),
    key("loss_trace", "a file", "That probability over time: a table with time and loss. The trace repeats."),
    key(
        "handover_loss",
        Burst::EXPECTED,
        "Packets from the sender are lost with this probability for this long after each handover; with handover.",
    ),
    key(
        "fade",
        Fades::EXPECTED,
        "As handover_loss, at random moments; the time between fades is exponential.",
    ),
    key(
        "outage",
        OutageSpec::EXPECTED,
        "Times in which neither direction carries anything. What waits goes on afterwards, or is lost.",
    ),
    key(
        super::then::KEY,
        super::then::LINK,
        "A link behind this one, with its own rate, queue and RTT, which adds to that of the path. Several are several keys, in a file a list; or a semicolon separates them.",
    ),
    key(
        "proxy",
        super::proxy::LEG,
        "A proxy splits the connection: this path leads from the server to it, and all other keys are of the path to the client.",
    ),
    key("proxy_buffer", super::proxy::BUFFER, "Size of the buffer in the proxy; with proxy."),
    key(
        "proxy_startup",
        super::proxy::STARTUP,
        "Startup of the proxy's connection to the client; hystart by default.",
    ),
    key("duplicate", SHARE, "Probability that a packet from the sender arrives twice."),
    key("drop", PLACES, "Data packets to drop before the link, by number."),
    key("drop_syn", COUNT, "Number of first SYN packets to drop."),
    key("drop_synack", COUNT, "Number of first SYN-ACK packets to drop."),
    key("ack_rate", RATE, "Capacity of the return link; without it the way back only delays."),
    key("ack_queue", QUEUE, "Capacity of the queue at the return link; with ack_rate."),
];

/// What else happens on the way back.
const BACK: &[PathKey] = &[
    key("ack_netem", netem::Spec::EXPECTED, "As netem, on the receiver's interface, for the way back."),
    key("ack_duplicate", SHARE, "As duplicate, for the way back."),
    key("drop_ack", PLACES, "As drop, for acknowledgements."),
    key(
        "ack_filter",
        "on or off",
        "on: of the pure ACKs of a connection that wait for one release, only the newest is kept (RFC 3449); with ack_aggregate.",
    ),
];

/// The names of all keys.
pub(super) fn names() -> Vec<&'static str> {
    PATH_KEYS.iter().map(|k| k.name).collect()
}

/// The packet by which a limit in packets is turned into bytes.
pub(in crate::path) const PACKET: Bytes = Bytes(1500);

const BUCKET: &str = "a rate and a burst, such as \"rate=20Mbit burst=100kB\"";
pub(super) const RATE: &str = "a rate such as 100Mbit";
pub(in crate::path) const SPAN: &str = "a length of time such as 40ms";
pub(in crate::path) const SHARE: &str = "a share such as 1% or 0.01";
pub(super) const COUNT: &str = "a whole number such as 1";
const PLACES: &str = "places from 1 on, such as 1,5,10-20";
pub(super) const HOST_QUEUE: &str = "a queue discipline such as pfifo_fast, fq or fq_codel";
pub(in crate::path) const QUEUE: &str =
    "a queue of at least one packet, such as 1bdp, 300packets, 36MB, 50ms or infinite";

/// Keys and their values as found; each is removed when it is read.
#[derive(Clone, Debug)]
pub(in crate::path) struct Keys {
    /// The source in messages: the file, or "path".
    pub(super) source: String,
    /// Where files are found.
    pub(super) files: Files,
    pub(super) values: BTreeMap<String, String>,
    /// The traces, if they were read before.
    pub(super) loaded: Option<Loaded>,
    /// The round-trip time of the other links, if these are the keys of one of several.
    pub(super) beside: Span,
}

/// The traces of a path: they are read once, however often it is drawn.
#[derive(Clone, Debug, Default)]
pub(super) struct Loaded {
    pub(super) traces: BTreeMap<String, Arc<Trace>>,
    pub(super) delays: Option<Arc<DelayTrace>>,
    pub(super) losses: Option<Arc<LossTrace>>,
}

impl Keys {
    /// No keys yet.
    pub(super) fn new(source: String, files: Files) -> Self {
        Self { source, files, values: BTreeMap::new(), loaded: None, beside: Span::ZERO }
    }

    pub(super) fn wrong(&self, key: &str, found: &str, expected: &str) -> PathError {
        PathError::Value {
            source_name: self.source.clone(),
            key: key.into(),
            found: found.into(),
            expected: expected.into(),
        }
    }

    pub(super) fn missing(&self, key: &'static str, expected: &'static str) -> PathError {
        PathError::Missing { source_name: self.source.clone(), key, expected }
    }

    pub(super) fn known(&self) -> Result<(), PathError> {
        let names = names();
        match self.values.keys().find(|k| !names.contains(&k.as_str())) {
            None => Ok(()),
            Some(key) => Err(PathError::UnknownKey {
                source_name: self.source.clone(),
                key: key.clone(),
                hint: did_you_mean(key, &names),
                allowed: names.join(", "),
            }),
        }
    }

    pub(in crate::path) fn take<T>(
        &mut self,
        key: &str,
        parse: impl Fn(&str) -> Option<T>,
        expected: &str,
    ) -> Result<Option<T>, PathError> {
        let Some(found) = self.values.remove(key) else { return Ok(None) };
        parse(&found).map(Some).ok_or_else(|| self.wrong(key, &found, expected))
    }

    /// An amount and its period; each needs the other.
    pub(super) fn pair<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&str) -> Option<T>,
        period: &'static str,
    ) -> Result<Option<(T, Span)>, PathError> {
        let amount = self.take(key, parse, SPAN)?;
        match (amount, self.take(period, quantity::some_span, SPAN)?) {
            (Some(amount), Some(period)) => Ok(Some((amount, period))),
            (None, None) => Ok(None),
            (Some(_), None) => Err(self.missing(period, SPAN)),
            (None, Some(_)) => Err(self.missing(key, SPAN)),
        }
    }

    fn file<T>(
        &mut self,
        key: &str,
        load: impl Fn(&fs_path::Path, &Files) -> Result<T, PathError>,
        loaded: impl Fn(&Loaded, &str) -> Option<Arc<T>>,
    ) -> Result<Option<Arc<T>>, PathError> {
        let Some(file) = self.values.remove(key) else { return Ok(None) };
        match self.loaded.as_ref().and_then(|l| loaded(l, &file)) {
            Some(trace) => Ok(Some(trace)),
            None => load(&self.files.place(&file), &self.files).map(Arc::new).map(Some),
        }
    }

    pub(super) fn delay_trace(&mut self) -> Result<Option<Arc<DelayTrace>>, PathError> {
        self.file("delay_trace", DelayTrace::load, |l, _| l.delays.clone())
    }

    pub(super) fn loss_trace(&mut self) -> Result<Option<Arc<LossTrace>>, PathError> {
        self.file("loss_trace", LossTrace::load, |l, _| l.losses.clone())
    }

    pub(super) fn supply(&mut self) -> Result<Supply, PathError> {
        let given: Vec<_> =
            ["rate", "schedule", "trace"].into_iter().filter(|k| self.values.contains_key(*k)).collect();
        if let [_, second, ..] = *given {
            return Err(self.wrong(second, &self.values[second], "only one of rate, schedule and trace"));
        }
        let vary = "rate_vary";
        if let Some(found) = self.values.get(vary).filter(|_| given != ["rate"]) {
            return Err(self.wrong(vary, found, "rate with it"));
        }
        // A period shorter than the time of a packet has no effect but its cost.
        let least = Span::micros(100);
        let period = self.take(
            "rate_vary_period",
            |s| quantity::span(s).filter(|p| *p >= least),
            "a length of time not below 100us, such as 100ms",
        )?;
        let share = self.take(vary, quantity::share, SHARE)?;
        if let Some(rate) = self.take("rate", quantity::rate, RATE)? {
            return match (share, period) {
                (None, None) => Ok(Supply::Steps([(Instant::ZERO, rate)].into())),
                (Some(share), Some(period)) => {
                    let spread = rate.scale(u64::from(share), Fixed::ONE as u64);
                    Ok(Supply::Drawn { mean: rate, spread, period })
                }
                (Some(_), None) => Err(self.missing("rate_vary_period", SPAN)),
                (None, Some(_)) => Err(self.missing(vary, SHARE)),
            };
        }
        if period.is_some() {
            return Err(self.missing(vary, SHARE));
        }
        let schedule = "rates from 0s on in order of time, the last above zero, such as 0s:12Mbit,7s:48Mbit";
        let text = self.values.get("schedule").cloned().unwrap_or_default();
        if let Some(steps) = self.take("schedule", quantity::schedule, schedule)? {
            return self.fast_enough("schedule", &text, Supply::Steps(steps.into()));
        }
        let name = self.values.get("trace").cloned().unwrap_or_default();
        let trace = self.file("trace", Trace::load, |l, name| l.traces.get(name).cloned())?;
        let trace =
            trace.ok_or_else(|| self.missing("rate", "a rate such as 100Mbit, or a schedule or a trace"))?;
        self.fast_enough("trace", &name, Supply::Trace(trace))
    }

    /// Refuses a mean rate below the least that `rate` may have: a transfer over it would not end.
    fn fast_enough(&self, key: &str, found: &str, supply: Supply) -> Result<Supply, PathError> {
        if supply.mean() < quantity::LEAST_RATE {
            return Err(self.wrong(key, found, "a mean rate of at least 1kbit"));
        }
        Ok(supply)
    }

    /// A limit of a queue, 1 BDP by default. Limits in BDP hold one packet at least.
    pub(super) fn limit(&mut self, key: &str, bdp: Bytes) -> Result<Limit, PathError> {
        let parse = |text: &str| {
            let text = text.trim();
            if text == "infinite" {
                return Some(Limit::Infinite);
            }
            if let Some(n) = text.strip_suffix("packets").or(text.strip_suffix("packet")) {
                return quantity::whole(n.trim_end()).filter(|n| *n > 0).map(Limit::Packets);
            }
            if let Some(x) = text.strip_suffix("bdp") {
                let share = quantity::decimal(x.trim_end()).filter(|x| *x > 0)?;
                return Some(Limit::Bytes(Bytes(mul_div(bdp.0, share, Fixed::ONE as u64)).max(PACKET)));
            }
            let bytes = quantity::bytes(text).filter(|b| *b >= PACKET).map(Limit::Bytes);
            bytes.or_else(|| quantity::some_span(text).map(Limit::Time))
        };
        Ok(self.take(key, parse, QUEUE)?.unwrap_or(Limit::Bytes(bdp.max(PACKET))))
    }

    pub(super) fn netem(&mut self, key: &str) -> Result<Option<netem::Spec>, PathError> {
        let Some(text) = self.values.remove(key) else { return Ok(None) };
        netem::Spec::read(&text).map(Some).map_err(|why| self.wrong(key, &why.found, &why.expected))
    }

    pub(super) fn way(
        &mut self,
        delay: Span,
        prefix: &str,
        drop: &str,
        dropped: Kind,
        syns: &[(Kind, Vec<(u64, u64)>)],
    ) -> Result<DirectionSpec, PathError> {
        let key = |name: &str| format!("{prefix}{name}");
        let mut scripts = syns.to_vec();
        scripts.extend(self.take(drop, quantity::places, PLACES)?.map(|p| (dropped, p)));
        Ok(DirectionSpec {
            delay,
            elements: Elements::take(self, prefix)?,
            duplicate: self.take(&key("duplicate"), quantity::share, SHARE)?.unwrap_or_default(),
            scripts,
            filters: false,
            interface: None,
            grants: None,
            netem: None,
        })
    }
}
