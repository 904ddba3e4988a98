//! Reads what a link and its neighbours do: the discipline of its queue, shapers, policers, a second carrier.

use slowstart::units::{Bytes, Rate, Span};

use super::super::error::PathError;
use super::super::link::Limit;
use super::super::queue::Discipline;
use super::super::{bucket, carrier, quantity};
use super::keys::{HOST_QUEUE, Keys, PACKET, RATE};
use super::tbf;

/// A queue as written.
#[derive(Clone, Debug)]
pub(super) struct QueueSpec {
    /// The limit of a queue that drops what comes when it is full.
    pub(super) limit: Limit,
    /// The discipline, if there is another.
    pub(super) discipline: Option<Discipline>,
}

impl QueueSpec {
    /// Its greatest length in bytes, at a mean rate; none if there is no limit.
    pub(super) fn bytes(&self, rate: Rate) -> Option<Bytes> {
        if let Some(discipline) = &self.discipline {
            return Some(Bytes(discipline.most_bytes()));
        }
        match self.limit {
            Limit::Infinite => None,
            Limit::Packets(n) => Some(PACKET * n),
            Limit::Bytes(b) => Some(b),
            Limit::Time(t) => Some(rate.over(t)),
        }
    }

    /// The queue as a discipline; none if its limit is in time.
    fn as_discipline(&self) -> Option<Discipline> {
        let no_bytes = u32::MAX / 2;
        match (&self.discipline, self.limit) {
            (Some(discipline), _) => Some(discipline.clone()),
            (None, Limit::Infinite) => Some(Discipline::drop_tail(usize::MAX, no_bytes)),
            (None, Limit::Packets(n)) => Some(Discipline::drop_tail(n as usize, no_bytes)),
            (None, Limit::Bytes(b)) => {
                Some(Discipline::drop_tail(usize::MAX, b.0.min(u64::from(no_bytes)) as u32))
            }
            (None, Limit::Time(_)) => None,
        }
    }
}

/// A token bucket as written.
#[derive(Copy, Clone, Debug)]
pub(super) struct BucketSpec {
    pub(super) params: bucket::Params,
    /// True if it lies behind the link.
    pub(super) is_after: bool,
    /// The length of its queue in full IP packets, if that is written with it.
    pub(super) limit: Option<Bytes>,
}

impl BucketSpec {
    /// The rate at which it lets full IP packets through.
    pub(super) fn rate(&self) -> Rate {
        Rate(self.params.payload(self.params.rate.0))
    }

    /// The shortest time in which this many bytes of full IP packets pass a bucket that is full at first. What its tokens
    /// cover passes at once, or at the peak rate if it has one.
    pub(super) fn least_time(&self, bytes: Bytes) -> Span {
        let burst = Bytes(self.params.payload(self.params.burst.0));
        let peak = self.params.peak.map(|peak| Rate(self.params.payload(peak.0)).time_for(bytes));
        self.rate().time_for(bytes - burst).max(peak.unwrap_or(Span::ZERO))
    }
}

/// The words of a value with their values.
fn words(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let mut all = text.split(|c: char| c.is_whitespace() || c == '=').filter(|w| !w.is_empty());
    std::iter::from_fn(move || all.next().map(|word| (word, all.next())))
}

impl Keys {
    /// A queue of a link of this rate, 1 BDP by default.
    pub(super) fn queue(&mut self, key: &str, bdp: Bytes, rate: Rate) -> Result<QueueSpec, PathError> {
        if let Some(text) = self.values.get(key).filter(|text| Discipline::is_meant(text)) {
            let read = Discipline::read(text, rate);
            let discipline = read.map_err(|why| self.wrong(key, &why.found, &why.expected))?;
            self.values.remove(key);
            return Ok(QueueSpec { limit: Limit::Infinite, discipline: Some(discipline) });
        }
        Ok(QueueSpec { limit: self.limit(key, bdp)?, discipline: None })
    }

    /// Refuses a discipline that is not here, whatever else is wrong.
    pub(super) fn check_discipline(&self) -> Result<(), PathError> {
        let Some(text) = self.values.get("queue").filter(|text| Discipline::is_meant(text)) else {
            return Ok(());
        };
        let any = Rate(10_000_000);
        Discipline::read(text, any).map(|_| ()).map_err(|why| self.wrong("queue", &why.found, &why.expected))
    }

    /// The sender's own interface: its rate and the discipline of its queue.
    pub(super) fn host(&mut self) -> Result<Option<(Rate, Discipline)>, PathError> {
        let text = self.values.remove("host_queue");
        let Some(rate) = self.take("host_rate", quantity::rate, RATE)? else {
            return match text {
                None => Ok(None),
                Some(found) => Err(self.wrong("host_queue", &found, "host_rate with it")),
            };
        };
        let text = text.unwrap_or_else(|| "pfifo_fast".into());
        if !Discipline::is_meant(&text) {
            return Err(self.wrong("host_queue", &text, HOST_QUEUE));
        }
        let read = Discipline::read(&text, rate);
        read.map(|queue| Some((rate, queue)))
            .map_err(|why| self.wrong("host_queue", &why.found, &why.expected))
    }

    /// The shaper of the link; a `tbf` may be written as its queue, too.
    pub(super) fn shaper(&mut self) -> Result<Option<BucketSpec>, PathError> {
        if let Some(text) = self.values.get("queue").filter(|text| tbf::is_meant(text)).cloned() {
            if let Some(found) = self.values.insert("shaper".into(), text) {
                return Err(self.wrong("shaper", &found, "only one of shaper and a queue that is a tbf"));
            }
            self.values.remove("queue");
        }
        self.bucket("shaper", "link")
    }

    /// A shaper or a policer; `place` is where it lies if that is not written.
    pub(super) fn bucket(&mut self, key: &str, first: &str) -> Result<Option<BucketSpec>, PathError> {
        let Some(text) = self.values.remove(key) else { return Ok(None) };
        if tbf::is_meant(&text) && key == "shaper" {
            return tbf::read(&text).map(Some).map_err(|why| self.wrong(key, &why.found, &why.expected));
        }
        let (mut rate, mut burst, mut peak, mut is_after) = (None, None, None, false);
        for (word, value) in words(&text) {
            let value = value.unwrap_or_default();
            let found = format!("{word} {value}");
            let given = |good: bool, expected: &str| {
                if good { Ok(()) } else { Err(self.wrong(key, found.trim_end(), expected)) }
            };
            match word {
                "rate" => rate = quantity::rate(value),
                "burst" => burst = quantity::bytes(value).filter(|b| b.0 <= 1 << 30),
                "peak" | "peakrate" => peak = quantity::rate(value),
                "place" => is_after = value == "after",
                _ => given(false, &format!("words of it: rate, burst, peak, place ({first} or after)"))?,
            }
            match word {
                "rate" => given(rate.is_some(), "a rate such as 20Mbit")?,
                "burst" => {
                    given(burst.is_some(), "a burst of at most 1 GiB, such as 100kB")?;
                    given(burst.is_some_and(|b| b >= PACKET), "a burst of at least one packet (1500B)")?;
                }
                "peak" | "peakrate" => given(peak.is_some(), "a rate such as 200Mbit")?,
                _ => given(is_after || value == first, &format!("{first} or after"))?,
            }
        }
        let (Some(rate), Some(burst)) = (rate, burst) else {
            return Err(self.wrong(key, &text, "a rate and a burst, such as \"rate=20Mbit burst=100kB\""));
        };
        if let Some(peak) = peak.filter(|peak| *peak <= rate) {
            let found = format!("peak {} bit/s", peak.0);
            return Err(self.wrong(key, &found, "a peak rate above the rate"));
        }
        let params = bucket::Params::of_packets(rate, burst, peak);
        Ok(Some(BucketSpec { params, is_after, limit: None }))
    }

    /// A second carrier, and the queue before it as a discipline.
    pub(super) fn second_carrier(
        &mut self,
        queue: &mut QueueSpec,
    ) -> Result<Option<carrier::Params>, PathError> {
        let key = "second_carrier";
        let Some(text) = self.values.remove(key) else { return Ok(None) };
        let mut p = carrier::Params {
            share: 500_000,
            backlog: Bytes(30_000),
            activation: Span::millis(24),
            idle: Span::millis(640),
        };
        for (word, value) in words(&text) {
            let value = value.unwrap_or_default();
            let (good, expected) = match word {
                "share" => {
                    let share = quantity::share(value).filter(|s| (1..=990_000).contains(s));
                    (share.map(|s| p.share = s), "a share of at most 99%, such as 50%")
                }
                "backlog" => (quantity::bytes(value).map(|b| p.backlog = b), "a backlog such as 30kB"),
                "activation" => (quantity::span(value).map(|s| p.activation = s), "a time such as 24ms"),
                "idle" => (quantity::some_span(value).map(|s| p.idle = s), "a time such as 640ms"),
                _ => (None, "words of it: share, backlog, activation, idle"),
            };
            good.ok_or_else(|| self.wrong(key, format!("{word} {value}").trim_end(), expected))?;
        }
        queue.discipline = queue.as_discipline();
        if queue.discipline.is_none() {
            return Err(self.wrong(key, &text, "a queue in packets, bytes or BDP with it"));
        }
        Ok(Some(p))
    }
}
