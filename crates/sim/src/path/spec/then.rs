//! Links behind the first: the key `then`.

use slowstart::units::{Bytes, Rate, Span};

use super::super::Direction;
use super::super::ensemble;
use super::super::error::PathError;
use super::PathSpec;
use super::keys::Keys;
use crate::random::Stream;

/// The key. Several links are several such keys in a line, a list of texts in a file, or stand in one value.
pub(super) const KEY: &str = "then";
/// What a value of it looks like.
pub(super) const LINK: &str = "keys of a link, such as \"rate=30Mbit rtt=20ms queue=1bdp\"";
/// What separates several links of a value.
pub(super) const SEPARATOR: char = ';';
/// The most links behind the first.
const MOST: usize = 15;
/// Keys of ends, of the whole path or of its way back.
const NOT_OF_A_LINK: [&str; 10] = [
    "proxy",
    "proxy_buffer",
    "proxy_startup",
    "host_rate",
    "host_queue",
    "link",
    "quick_start",
    "outage",
    "duplicate",
    KEY,
];

/// One link of a path.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct LinkFacts {
    /// Its mean rate, or that of what holds it to less.
    pub rate: Rate,
    /// What holds it to less than its own rate.
    pub held_by: Option<&'static str>,
    /// What it adds to the least round-trip time of the path.
    pub base_rtt: Span,
    /// The limit of its queue in bytes of IP packets; `None` if there is none.
    pub buffer: Option<Bytes>,
}

impl PathSpec {
    /// The links of the path, in the order in which the data of a download crosses them.
    pub fn links(&self) -> Vec<LinkFacts> {
        std::iter::once(self).chain(&self.then).map(|spec| spec.own).collect()
    }

    /// The links behind the first, to run, and what each link adds to the way back; none if there is one link.
    pub(super) fn build_then(&self, seed: u64) -> (Vec<Direction>, Vec<Span>) {
        if self.then.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let own = |i: usize| Stream::named(seed, &format!("link{}", i + 2)).any();
        let ways = self.then.iter().enumerate().map(|(i, link)| link.build(own(i)).forward).collect();
        (ways, std::iter::once(self).chain(&self.then).map(|link| link.back.delay).collect())
    }
}

impl Keys {
    /// Reads the links behind the first. Queues in BDP are relative to the round-trip time of the whole path, to
    /// which this one adds `rtt`.
    pub(super) fn then(&mut self, rtt: Span) -> Result<Vec<PathSpec>, PathError> {
        let Some(text) = self.values.remove(KEY) else { return Ok(Vec::new()) };
        let texts: Vec<&str> = text.split(SEPARATOR).map(str::trim).filter(|t| !t.is_empty()).collect();
        if texts.is_empty() || texts.len() > MOST {
            return Err(self.wrong(
                KEY,
                &text,
                &format!("1 to {MOST} links behind the first, each with its keys"),
            ));
        }
        let whole = ["proxy", "host_rate", "duplicate"];
        let alone = whole.into_iter().find(|key| self.values.contains_key(*key));
        let alone = alone.or(self.values.get("link").filter(|v| *v == "host").map(|_| "link"));
        if let Some(key) = alone {
            return Err(self.wrong(key, &self.values[key], "a path of one link, without then"));
        }
        let all = texts.iter().map(|t| self.link(t)).collect::<Result<Vec<_>, _>>()?;
        let read = |keys: &Self, text: &str, beside: Span| {
            let keys = Self { beside, ..keys.clone() };
            PathSpec::without_distributions(keys, text.into(), Vec::new())
        };
        let alone = all.iter().zip(&texts).map(|(keys, text)| read(keys, text, Span::ZERO));
        let rtts = alone.map(|spec| Ok(spec?.own.base_rtt)).collect::<Result<Vec<Span>, PathError>>()?;
        let total = rtts.iter().fold(rtt, |sum, rtt| sum + *rtt);
        let links = all.iter().zip(&texts).zip(rtts);
        links.map(|((keys, text), rtt)| read(keys, text, total - rtt)).collect()
    }

    /// The keys of one link behind the first.
    fn link(&self, text: &str) -> Result<Self, PathError> {
        let (mut keys, ..) = PathSpec::keys(text, &self.files)?;
        keys.source = KEY.into();
        keys.known()?;
        for key in ["name", "about", "sources", "fixed"] {
            keys.values.remove(key);
        }
        for (key, value) in &keys.values {
            let of_the_way_back = key.starts_with("ack_") || key.starts_with("drop_");
            if of_the_way_back || NOT_OF_A_LINK.contains(&key.as_str()) {
                return Err(keys.wrong(key, value, "no such key in a link behind the first"));
            }
            if ensemble::is_distribution(key, value) {
                return Err(keys.wrong(key, value, "no distribution in a link behind the first"));
            }
            if key == "netem" && value.split_whitespace().any(|word| word == "duplicate") {
                return Err(keys.wrong(key, value, "no duplicates on a path of several links"));
            }
        }
        Ok(keys)
    }
}
