//! Reads the values of a path that draws nothing, or of one draw.

use std::collections::BTreeMap;

use slowstart::units::{Bytes, Rate, Span};

use super::super::error::PathError;
use super::super::fade::{Burst, Fades};
use super::super::link::Limit;
use super::super::netem;
use super::super::outage::OutageSpec;
use super::super::{Kind, PathFacts, quantity};
use super::chain::{BucketSpec, QueueSpec};
use super::keys::{COUNT, Keys, RATE, SPAN};
use super::supply::Supply;
use super::{LinkFacts, PathSpec, SUPPLIES, Written, then};

impl PathSpec {
    pub(super) fn without_distributions(
        mut keys: Keys,
        name: String,
        mut sources: Vec<String>,
    ) -> Result<Self, PathError> {
        let name = keys.values.remove("name").unwrap_or(name);
        let about = keys.values.remove("about").unwrap_or_default();
        sources.extend(keys.values.remove("sources"));
        let fixed = keys.values.remove("fixed");
        let ack_jitter_is_set = keys.values.contains_key("ack_jitter");

        let netem_text = keys.values.get("netem").cloned().unwrap_or_default();
        let netem = keys.netem("netem")?;
        let ack_netem = keys.netem("ack_netem")?;
        let netem_rate = netem.as_ref().and_then(netem::Spec::rate);
        let has_link = SUPPLIES.iter().any(|key| keys.values.contains_key(*key));
        let shaper = keys.shaper()?;
        keys.check_discipline()?;
        // That of tc has a queue of its own.
        let limit = shaper.and_then(|shaper| shaper.limit);
        let supply = match &netem {
            _ if has_link => keys.supply()?,
            _ if limit.is_some() => Supply::unlimited(),
            Some(netem) if netem.has_rate() => match keys.values.get("queue") {
                None => Supply::unlimited(),
                Some(found) => {
                    return Err(keys.wrong(
                        "queue",
                        found,
                        "rate with it: the queue of netem's rate is its limit",
                    ));
                }
            },
            Some(_) => {
                let expected = "the rate of netem's interface, such as rate=1Gbit, or a rate in netem";
                return Err(keys.missing("rate", expected));
            }
            None => keys.supply()?,
        };
        let rtt = keys.take("rtt", quantity::some_span, SPAN)?;
        let delay_trace = keys.delay_trace()?;
        let loss_trace = keys.loss_trace()?;
        let delayed = [&netem, &ack_netem].into_iter().flatten().fold(Span::ZERO, |sum, n| sum + n.delay());
        let (forward, back) = match (&delay_trace, rtt) {
            (Some(trace), rtt) => (Span::ZERO, rtt.map_or(trace.least(), |r| r / 2)),
            (None, Some(rtt)) => (rtt / 2, rtt - rtt / 2),
            (None, None) if delayed > Span::ZERO => (Span::ZERO, Span::ZERO),
            (None, None) => return Err(keys.missing("rtt", SPAN)),
        };
        let own_rtt = forward + delay_trace.as_ref().map_or(Span::ZERO, |t| t.least()) + back + delayed;
        let netem_copies = netem.as_ref().filter(|n| n.duplicates());
        if let (Some(_), Some(links)) = (netem_copies, keys.values.get(then::KEY)) {
            return Err(keys.wrong(then::KEY, links, "a path on which netem duplicates nothing"));
        }
        let then = keys.then(own_rtt)?;
        let base_rtt = then.iter().fold(own_rtt, |sum, link| sum + link.own.base_rtt);
        let whole_rtt = base_rtt + keys.beside;
        let link_rate = supply.mean();
        let policer = keys.bucket("policer", "before")?;
        let least = |bucket: &Option<BucketSpec>| bucket.map_or(Rate(u64::MAX), |b| b.rate());
        let host_text = keys.values.get("host_rate").cloned().unwrap_or_default();
        let own = keys.host()?;
        let own_rate = own.as_ref().map_or(Rate(u64::MAX), |(rate, _)| *rate);
        let of_netem = netem_rate.unwrap_or(Rate(u64::MAX));
        let holders = [
            ("its shaper", least(&shaper)),
            ("its policer", least(&policer)),
            ("the host's interface", own_rate),
            ("netem", of_netem),
        ];
        let (held_by, rate) = holders.into_iter().fold((None, link_rate), |least, (by, rate)| {
            if rate < least.1 { (Some(by), rate) } else { least }
        });
        // Without a link it is the rate itself.
        let held_by = held_by.filter(|_| has_link);
        let bdp = rate.over(whole_rtt);
        let is_written = keys.values.contains_key("queue");
        let mut queue = if is_written || (limit.is_none() && has_link) {
            keys.queue("queue", bdp, rate)?
        } else {
            QueueSpec { limit: limit.map_or(Limit::Infinite, Limit::Bytes), discipline: None }
        };
        let second_carrier = keys.second_carrier(&mut queue)?;
        let back_link = match keys.take("ack_rate", quantity::rate, RATE)? {
            Some(rate) => Some((rate, keys.queue("ack_queue", rate.over(whole_rtt), rate)?)),
            None => None,
        };
        if let Some(found) = keys.values.get("ack_queue") {
            return Err(keys.wrong("ack_queue", found, "ack_rate with it"));
        }
        let start = |text: &str| match text {
            "random" => Some(true),
            "0" => Some(false),
            _ => None,
        };
        let random_start = keys.take("trace_start", start, "random or 0")?.unwrap_or(true);

        // A connection may be opened from either end, so the scripts for its SYNs lie in both directions.
        let mut syns = Vec::new();
        for (key, kind) in [("drop_syn", Kind::Syn), ("drop_synack", Kind::SynAck)] {
            let first = keys.take(key, quantity::whole, COUNT)?.filter(|n| *n > 0);
            syns.extend(first.map(|n| (kind, vec![(1, n)])));
        }
        let grants = keys.take("quick_start", quantity::rate, RATE)?;
        let host = |text: &str| match text {
            "host" => Some(true),
            "network" => Some(false),
            _ => None,
        };
        let host = keys.take("link", host, "host or network")?.unwrap_or(false);
        let counts = matches!(queue.limit, Limit::Packets(_) | Limit::Bytes(_)) && queue.discipline.is_none();
        if host && !counts {
            return Err(keys.wrong("link", "host", "a queue in packets or bytes with it"));
        }
        let wave = keys.pair("vary", quantity::span, "vary_period")?;
        let handover = keys.pair("handover_step", quantity::span, "handover")?;
        let handover_loss = keys.take("handover_loss", Burst::parse, Burst::EXPECTED)?;
        if handover_loss.is_some() && handover.is_none() {
            return Err(keys.missing("handover", SPAN));
        }
        let fades = keys.take("fade", Fades::parse, Fades::EXPECTED)?;
        let outage_text = keys.values.get("outage").cloned().unwrap_or_default();
        let mut outage = keys.take("outage", OutageSpec::parse, OutageSpec::EXPECTED)?;
        let stall_text = keys.values.get("handover_stall").cloned().unwrap_or_default();
        if let Some(stall) = keys.take("handover_stall", quantity::some_span, SPAN)? {
            let (_, period) = handover.ok_or_else(|| keys.missing("handover", SPAN))?;
            let stalls = OutageSpec::stalls(stall, period).filter(|_| outage.is_none() && !host);
            let expected = "a path without outage and link=host, and a time shorter than handover";
            outage = Some(stalls.ok_or_else(|| keys.wrong("handover_stall", &stall_text, expected))?);
        }
        if host && outage.is_some() {
            return Err(keys.wrong("outage", &outage_text, "a path without link=host"));
        }
        if own.is_some() && (host || outage.is_some() || queue.discipline.is_some()) {
            let expected =
                "a path without link=host and outage, whose queue drops what comes when it is full";
            return Err(keys.wrong("host_rate", &host_text, expected));
        }
        let proxy = keys.proxy()?;
        let buffer = match &netem {
            Some(netem) if rate == of_netem => Some(netem.buffer()),
            _ => queue.bytes(rate),
        };
        let variable = supply.varies() || shaper.is_some() || policer.is_some() || second_carrier.is_some();
        let mut ways = (
            keys.way(forward, "", "drop", Kind::Data, &syns)?,
            keys.way(back, "ack_", "drop_ack", Kind::Ack, &syns)?,
        );
        let on = |text: &str| match text {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        };
        ways.1.filters = keys.take("ack_filter", on, "on or off")?.unwrap_or(false);
        if ways.1.filters && ways.1.elements.aggregate.is_none() {
            return Err(keys.wrong("ack_filter", "on", "ack_aggregate with it"));
        }
        if netem.is_some() && (own.is_some() || host) {
            return Err(keys.wrong("netem", &netem_text, "a path without host_rate and link=host"));
        }
        (ways.0.netem, ways.1.netem) = (netem, ack_netem);
        let mark = keys.take("mark", quantity::span, "a length of time such as 1ms")?;
        ways.0.interface = host.then_some(rate);
        (ways.0.grants, ways.1.grants) = (grants, grants);
        let random_drop =
            keys.take("random_drop", quantity::share_above, "a share and a backlog, as 25%@18MB")?;
        let above = random_drop.map_or(Bytes::MAX, |(_, above)| above);
        let first = LinkFacts { rate, held_by, base_rtt: own_rtt, buffer };
        let slowest =
            then.iter().map(|link| link.own).fold(first, |a, b| if b.rate < a.rate { b } else { a });
        let facts = PathFacts {
            rate: slowest.rate,
            base_rtt,
            bdp: slowest.rate.over(whole_rtt),
            buffer: slowest.buffer,
            variable: variable || then.iter().any(|link| link.facts.variable),
        };
        Ok(Self {
            name,
            about,
            sources,
            queue,
            host: own,
            shaper,
            policer,
            second_carrier,
            random_drop,
            mark,
            forward: ways.0,
            back: ways.1,
            back_link,
            wave,
            handover,
            handover_loss,
            fades,
            outage,
            proxy,
            delay_trace,
            loss_trace,
            random_start,
            facts,
            own: first,
            then,
            supply,
            ensemble: None,
            drawn: BTreeMap::new(),
            least_rate: facts.rate,
            most_held: facts.bdp + facts.buffer.map_or(Bytes::ZERO, |b| b.min(above)),
            fixed,
            ack_jitter_is_set,
            default_jitter: None,
            written: Written::default(),
        })
    }
}
