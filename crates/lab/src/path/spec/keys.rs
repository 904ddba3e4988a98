//! The keys of a path and what they expect. Each is taken once; what the path does not know is an error.

use std::collections::BTreeMap;
use std::path as fs_path;
use std::path::PathBuf;
use std::sync::Arc;

use slowstart::units::{Bytes, Fixed, Instant, Span, mul_div};

use super::super::error::PathError;
use super::super::link::Limit;
use super::super::trace::{DelayTrace, Trace};
use super::super::{Kind, quantity};
use super::{DirectionSpec, Supply};

/// Every key of a path, in the order of the handbook.
pub(super) const KEYS: &[&str] = &[
    "name",
    "about",
    "sources",
    "fixed",
    "rate",
    "rate_vary",
    "rate_vary_period",
    "schedule",
    "trace",
    "trace_start",
    "rtt",
    "queue",
    "link",
    "quick_start",
    "random_drop",
    "jitter",
    "vary",
    "vary_period",
    "handover",
    "handover_step",
    "delay_trace",
    "loss",
    "drop",
    "drop_syn",
    "drop_synack",
    "aggregate",
    "ack_rate",
    "ack_queue",
    "ack_jitter",
    "ack_loss",
    "drop_ack",
    "ack_aggregate",
    "ack_filter",
];

/// The packet by which a limit in packets is turned into bytes.
pub(super) const PACKET: Bytes = Bytes(1500);

pub(super) const RATE: &str = "a rate such as 100Mbit";
pub(super) const SPAN: &str = "a length of time such as 40ms";
const SHARE: &str = "a share such as 1% or 0.01";
pub(super) const COUNT: &str = "a whole number such as 1";
const PLACES: &str = "places from 1 on, such as 1,5,10-20";
const QUEUE: &str = "a queue of at least one packet, such as 1bdp, 300packets, 36MB, 50ms or infinite";

/// Keys and their values as found, to be taken one by one.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    /// What messages call their source: the file, or "path".
    pub(super) source: String,
    /// Where relative files are looked for.
    pub(super) root: PathBuf,
    pub(super) values: BTreeMap<String, String>,
    /// The traces, if they were read before.
    pub(super) loaded: Option<Loaded>,
}

/// The traces of a path: they are read once, however often it is drawn.
#[derive(Clone, Debug, Default)]
pub(super) struct Loaded {
    pub(super) trace: Option<Arc<Trace>>,
    pub(super) delays: Option<Arc<DelayTrace>>,
}

impl Keys {
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
        match self.values.keys().find(|k| !KEYS.contains(&k.as_str())) {
            None => Ok(()),
            Some(key) => Err(PathError::UnknownKey {
                source_name: self.source.clone(),
                key: key.clone(),
                allowed: KEYS.join(", "),
            }),
        }
    }

    pub(super) fn take<T>(
        &mut self,
        key: &str,
        parse: impl Fn(&str) -> Option<T>,
        expected: &str,
    ) -> Result<Option<T>, PathError> {
        let Some(found) = self.values.remove(key) else { return Ok(None) };
        parse(&found).map(Some).ok_or_else(|| self.wrong(key, &found, expected))
    }

    /// An amount and its period, which mean nothing without each other.
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
        load: impl Fn(&fs_path::Path) -> Result<T, PathError>,
        loaded: impl Fn(&Loaded) -> Option<Arc<T>>,
    ) -> Result<Option<Arc<T>>, PathError> {
        let Some(file) = self.values.remove(key) else { return Ok(None) };
        match self.loaded.as_ref().and_then(loaded) {
            Some(trace) => Ok(Some(trace)),
            None => load(&self.root.join(file)).map(Arc::new).map(Some),
        }
    }

    pub(super) fn delay_trace(&mut self) -> Result<Option<Arc<DelayTrace>>, PathError> {
        self.file("delay_trace", DelayTrace::load, |l| l.delays.clone())
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
        // Shorter periods than a packet's time would be averaged out, at the price of a step each.
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
        let trace = self.file("trace", Trace::load, |l| l.trace.clone())?;
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

    pub(super) fn way(
        &mut self,
        delay: Span,
        [jitter, loss, drop, aggregate]: [&str; 4],
        dropped: Kind,
        syns: &[(Kind, Vec<(u64, u64)>)],
    ) -> Result<DirectionSpec, PathError> {
        let mut scripts = syns.to_vec();
        scripts.extend(self.take(drop, quantity::places, PLACES)?.map(|p| (dropped, p)));
        Ok(DirectionSpec {
            delay,
            jitter: self.take(jitter, quantity::span, SPAN)?.unwrap_or_default(),
            loss: self.take(loss, quantity::share, SHARE)?.unwrap_or_default(),
            scripts,
            aggregate: self.take(aggregate, quantity::some_span, SPAN)?,
            filters: false,
            interface: None,
            grants: None,
        })
    }
}
