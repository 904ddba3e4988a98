//! Studies drawn from bytes: valid by construction, or nearly so, over all keys of a path, all knobs of a
//! stack and all parameters of startups.
//!
//! Sizes, rates and counts are small, so that a run takes milliseconds; what is drawn within them is anything
//! that the keys accept. [`PATH_KEYS`] and [`Profile::KNOBS`] decide what
//! there is: a test fails for a key that is neither drawn here nor in [`LEFT_OUT`].

use std::collections::BTreeMap;

use arbitrary::{Result, Unstructured};
use slowstart::avoidance;
use slowstart::param::{ParamError, ParamValue};
use slowstart::registry::{self, Algorithm};
use slowstart_sim::path::{PATH_KEYS, quantity};
use slowstart_sim::tcp::profile::Profile;
use slowstart_study::scenario::StudyText;

/// Keys of a path that are texts or lines of tc, name files, or stand for another path.
pub const LEFT_OUT: [&str; 10] = [
    "name",
    "about",
    "sources",
    "fixed",
    "trace",
    "trace_start",
    "delay_trace",
    "loss_trace",
    "netem",
    "ack_netem",
];

/// Keys of a path that only make sense together, each drawn with the others of its line.
const GROUPS: [&[&str]; 34] = [
    &["queue"],
    &["rate_vary", "rate_vary_period"],
    &["shaper"],
    &["policer"],
    &["second_carrier"],
    &["link"],
    &["host_rate", "host_queue"],
    &["quick_start"],
    &["random_drop"],
    &["mark"],
    &["jitter"],
    &["vary", "vary_period"],
    &["handover", "handover_step", "handover_loss", "handover_stall"],
    &["loss"],
    &["gemodel"],
    &["fade"],
    &["outage"],
    &["proxy", "proxy_buffer", "proxy_startup"],
    &["reorder"],
    &["second_route"],
    &["duplicate"],
    &["drop"],
    &["drop_syn"],
    &["drop_synack"],
    &["aggregate"],
    &["ack_rate", "ack_queue"],
    &["ack_jitter"],
    &["ack_loss"],
    &["ack_gemodel"],
    &["ack_reorder"],
    &["ack_second_route"],
    &["ack_duplicate"],
    &["drop_ack"],
    &["ack_aggregate", "ack_filter"],
];

/// Keys that are drawn last, so that what bytes meant before the keys came is what they mean now.
const LAST: [&str; 3] = ["wifi_jitter", "ack_wifi_jitter", "then"];

/// True for a key of a path that no line above names: it is drawn after all others.
fn is_newer(key: &str) -> bool {
    let known = [&["rate", "schedule", "rtt"], &LEFT_OUT[..], &LAST[..]];
    !GROUPS.iter().copied().chain(known).any(|keys| keys.contains(&key))
}

/// A value like the example of those that a key accepts.
fn like(u: &mut Unstructured<'_>, expects: &str) -> Result<String> {
    let example = expects.split("such as ").last().unwrap_or(expects);
    let example = example.split(" or ").next().unwrap_or(example);
    match example {
        e if quantity::some_span(e).is_some() => time(u, 200),
        e if e.ends_with('%') => share(u, 8),
        e if quantity::rate(e).is_some() => rate(u),
        e => Ok(format!("\"{e}\"")),
    }
}

/// A whole number from `low` to `high`, small ones as often as large ones.
fn number(u: &mut Unstructured<'_>, low: u64, high: u64) -> Result<u64> {
    let bits = u.int_in_range(0..=(high - low).max(1).ilog2())?;
    u.int_in_range(low..=(low + (2 << bits)).min(high))
}

/// A rate from 20 kbit/s to 50 Mbit/s.
fn rate(u: &mut Unstructured<'_>) -> Result<String> {
    Ok(format!("{}kbit", number(u, 20, 50_000)?))
}

/// A time from 0.1 ms to `most` ms.
fn time(u: &mut Unstructured<'_>, most: u64) -> Result<String> {
    Ok(format!("{}us", number(u, 100, most * 1000)?))
}

/// A share up to `most` percent.
fn share(u: &mut Unstructured<'_>, most: u64) -> Result<String> {
    Ok(format!("{}%", u.int_in_range(0..=most * 10)? as f64 / 10.0))
}

/// One of these.
fn one(u: &mut Unstructured<'_>, of: &[&str]) -> Result<String> {
    Ok((*u.choose(of)?).to_string())
}

fn queue(u: &mut Unstructured<'_>) -> Result<String> {
    Ok(match u.int_in_range(0..=6)? {
        0 => format!("{}bdp", number(u, 1, 20)?),
        1 => format!("{}packets", number(u, 1, 2000)?),
        2 => format!("{}kB", number(u, 10, 40_000)?),
        3 => format!("{}ms", number(u, 50, 2000)?),
        4 => "infinite".to_string(),
        _ => one(u, &["fq_codel", "codel", "pie", "fq", "pfifo_fast"])?,
    })
}

/// netem's probabilities of losses in bursts.
fn bursts(u: &mut Unstructured<'_>) -> Result<String> {
    Ok(format!("{}%,{}%,{},{}", number(u, 1, 5)?, number(u, 10, 90)?, share(u, 70)?, share(u, 1)?))
}

/// Places of packets to drop.
fn places(u: &mut Unstructured<'_>) -> Result<String> {
    let first = number(u, 1, 200)?;
    Ok(format!("{first},{}-{}", first + 1, first + number(u, 1, 30)?))
}

/// The value of a key of a path; `None` for one that is not drawn.
pub fn path_value(u: &mut Unstructured<'_>, key: &str) -> Result<Option<String>> {
    Ok(Some(match key {
        "rate" | "host_rate" | "quick_start" | "ack_rate" => rate(u)?,
        "schedule" => format!("0s:{},{}s:{},9s:{}", rate(u)?, number(u, 1, 8)?, rate(u)?, rate(u)?),
        "rtt" => time(u, 900)?,
        "then" => {
            format!("\"rate={} rtt={} queue={}packets\"", rate(u)?, time(u, 900)?, number(u, 1, 500)?)
        }
        "rate_vary" => share(u, 90)?,
        "rate_vary_period" | "vary_period" | "handover" => format!("{}ms", number(u, 10, 5000)?),
        "queue" | "ack_queue" => queue(u)?,
        "shaper" | "policer" => format!("\"rate={} burst={}kB\"", rate(u)?, number(u, 10, 1000)?),
        "second_carrier" => format!(
            "\"share={}% backlog={}kB activation={}ms idle={}ms\"",
            number(u, 1, 90)?,
            number(u, 1, 500)?,
            number(u, 1, 500)?,
            number(u, 1, 2000)?
        ),
        "link" => one(u, &["host", "network"])?,
        "host_queue" => one(u, &["pfifo_fast", "fq", "fq_codel"])?,
        "random_drop" => format!("{}@{}kB", share(u, 50)?, number(u, 10, 1000)?),
        "mark" | "jitter" | "vary" | "handover_step" | "ack_jitter" | "wifi_jitter" | "ack_wifi_jitter" => {
            time(u, 200)?
        }
        "aggregate" | "ack_aggregate" => time(u, 50)?,
        "loss" | "ack_loss" | "duplicate" | "ack_duplicate" => share(u, 8)?,
        "gemodel" | "ack_gemodel" => bursts(u)?,
        "handover_stall" => format!("{}ms", number(u, 1, 9)?),
        "handover_loss" => format!("{},for={}ms", share(u, 60)?, number(u, 1, 9)?),
        "fade" => {
            format!("{},for={}ms,every={}ms", share(u, 60)?, number(u, 1, 400)?, number(u, 1000, 9000)?)
        }
        "outage" => format!(
            "at={}ms,for={}ms,every={}ms,queue={}",
            number(u, 1, 4000)?,
            number(u, 1, 900)?,
            number(u, 2000, 9000)?,
            one(u, &["kept", "flushed"])?
        ),
        "proxy" => format!("\"rate={} rtt={}\"", rate(u)?, time(u, 100)?),
        "proxy_buffer" => format!("{}kB", number(u, 64, 4000)?),
        "proxy_startup" => startup(u)?,
        "reorder" | "ack_reorder" => {
            format!("{},{},gap={},delay={}", share(u, 50)?, share(u, 50)?, number(u, 1, 10)?, time(u, 20)?)
        }
        "second_route" | "ack_second_route" => format!("{},{}", share(u, 50)?, time(u, 50)?),
        "drop" | "drop_ack" => places(u)?,
        "drop_syn" | "drop_synack" => number(u, 0, 3)?.to_string(),
        "ack_filter" => one(u, &["on", "off"])?,
        _ => match PATH_KEYS.iter().find(|k| k.name == key && is_newer(key)) {
            Some(newer) => like(u, newer.expects)?,
            None => return Ok(None),
        },
    }))
}

/// The value of a knob of a stack.
fn knob(u: &mut Unstructured<'_>, key: &str, expects: &str) -> Result<String> {
    Ok(match key {
        "iw" => number(u, 1, 1000)?.to_string(),
        "mss" => number(u, 64, 8960)?.to_string(),
        "tso" => number(u, 0, 524_280)?.to_string(),
        "quick" => number(u, 0, 10_000)?.to_string(),
        "syn_linear" => number(u, 0, 10)?.to_string(),
        "gro" => number(u, 0, 65_536)?.to_string(),
        "rmem_first" => number(u, 5840, 1 << 30)?.to_string(),
        "send_buffer" | "limit_output" | "rmem" => number(u, 2920, 1 << 30)?.to_string(),
        "tsq" => number(u, 0, 16)?.to_string(),
        "rto_min" | "delack" => time(u, 1000)?,
        "gro_wait" | "sack_cost" => time(u, 1)?,
        "rto_lost_syn" => format!("{}s", number(u, 1, 4)?),
        "read_rate" => rate(u)?,
        _ if expects.starts_with("one of ") => {
            one(u, &expects["one of ".len()..].split(", ").collect::<Vec<_>>())?
        }
        _ => one(u, &["on", "off"])?,
    })
}

/// A startup or a controller of its own, every second one with parameters.
fn startup(u: &mut Unstructured<'_>) -> Result<String> {
    let all: Vec<_> = registry::all().collect();
    let entry = u.choose(&all)?;
    let mut written = Vec::new();
    if u.ratio(1, 2)? {
        let mut algorithm = entry.algorithm.clone();
        let mut keys = Vec::new();
        algorithm.each_param(&mut |key, value| keys.push((key, value)));
        for (key, value) in keys {
            let value = parameter(u, &mut algorithm, key, value)?;
            written.extend(value.map(|v| format!("{key}={v}")));
        }
    }
    let colon = if written.is_empty() { "" } else { ":" };
    Ok(format!("{}{colon}{}", entry.name, written.join(",")))
}

/// A value that an algorithm accepts for a parameter, near or far from its default; `None` if none was found,
/// or none drawn.
fn parameter(
    u: &mut Unstructured<'_>,
    of: &mut Algorithm,
    key: &'static str,
    default: ParamValue,
) -> Result<Option<String>> {
    if u.ratio(1, 2)? {
        return Ok(None);
    }
    let candidates = match default {
        ParamValue::Number(n) => {
            let n = match u.int_in_range(0..=3)? {
                0 => number(u, 0, 100_000)? as f64,
                1 => n + number(u, 0, 10)? as f64 - 5.0,
                _ => n * number(u, 1, 1000)? as f64 / 100.0,
            };
            // A time, a fraction or a whole number.
            vec![format!("{}us", (n * 1e6).round()), n.to_string(), n.round().to_string()]
        }
        ParamValue::Word(_) => {
            // What is wrong with a word names the right ones.
            let Err(ParamError::Value(expected)) = of.set(key, "?") else { return Ok(None) };
            let words: Vec<&str> = expected.split([' ', ',']).filter(|w| !w.is_empty()).collect();
            let first = u.choose_index(words.len())?;
            words[first..].iter().chain(&words[..first]).map(ToString::to_string).collect()
        }
    };
    Ok(candidates.into_iter().find(|value| of.set(key, value).is_ok()))
}

/// A path, written inline; whether it has a proxy, and whether its way back has a limit.
fn path(u: &mut Unstructured<'_>) -> Result<(String, bool, bool)> {
    let mut keys: Vec<&str> = vec![if u.ratio(1, 8)? { "schedule" } else { "rate" }, "rtt"];
    for group in GROUPS {
        if u.ratio(1, 6)? {
            keys.extend(group);
        }
    }
    let mut words = Vec::new();
    for key in &keys {
        if let Some(value) = path_value(u, key)? {
            words.push(format!("{key}={value}"));
        }
    }
    Ok((words.join(" "), keys.contains(&"proxy"), keys.contains(&"ack_rate")))
}

/// Flows beside the one studied.
fn against(u: &mut Unstructured<'_>, upload: bool) -> Result<Vec<String>> {
    (0..u.int_in_range(0..=2)?)
        .map(|_| {
            let name =
                one(u, &["cubic", "reno", "dctcp", "search", "bbr", "web", "browser", "video", "media"])?;
            let up =
                upload && !["web", "browser", "video", "media"].contains(&name.as_str()) && u.ratio(1, 3)?;
            let begin = if u.ratio(1, 2)? { "-" } else { "" };
            Ok(format!(
                "{name}*{}@{begin}{}ms{}",
                u.int_in_range(1..=3)?,
                number(u, 1, 3000)?,
                if up { "/up" } else { "" }
            ))
        })
        .collect()
}

/// A study of one startup and one run.
///
/// # Errors
/// None that is known: where bytes are missing, the least of each choice is taken.
pub fn study(u: &mut Unstructured<'_>) -> Result<StudyText> {
    let (path, proxy, upload) = path(u)?;
    let names: Vec<&str> = avoidance::REGISTRY.iter().map(|a| a.name).collect();
    let app =
        if proxy || u.ratio(2, 3)? { "bulk".to_string() } else { one(u, &["web", "browser", "video"])? };
    let sized = app == "bulk" && u.ratio(3, 4)?;
    let mut text = StudyText {
        path,
        startups: vec![startup(u)?],
        avoidance: Some(one(u, &names)?),
        size: if sized { Some(format!("{}kB", number(u, 1, 300)?)) } else { None },
        duration: if sized { None } else { Some(format!("{}ms", number(u, 10, 8000)?)) },
        profile: Some(one(u, &Profile::ALL.iter().map(|p| p.name).collect::<Vec<_>>())?),
        app: Some(app),
        against: if proxy { Vec::new() } else { against(u, upload)? },
        remember: Some(one(u, &["on", "off"])?),
        runs: Some(1),
        seed: Some(u.int_in_range(0..=u64::from(u32::MAX))?),
        // The other engines need the kernel, or sockets of a machine.
        engine: None,
        set: BTreeMap::new(),
    };
    for _ in 0..u.int_in_range(0..=3)? {
        let k = u.choose(Profile::KNOBS)?;
        text.set.insert(k.name.to_string(), knob(u, k.name, k.expects)?);
    }
    let of_one_link = [" proxy=", " host_rate=", " duplicate=", " link=host"];
    let newer = PATH_KEYS.iter().map(|k| k.name).filter(|k| is_newer(k));
    for key in LAST.into_iter().chain(newer) {
        if key == "then" && of_one_link.iter().any(|k| text.path.contains(k)) {
            continue;
        }
        if u.ratio(1, 6)?
            && let Some(value) = path_value(u, key)?
        {
            text.path = format!("{} {key}={value}", text.path);
        }
    }
    for flow in &mut text.against {
        if text.path.contains(" then=") && !flow.ends_with("/up") {
            *flow = format!("{flow}/{}", one(u, &["1", "2", "1-2"])?);
        }
        if u.ratio(1, 6)? {
            *flow = format!("{flow}/+{}ms", number(u, 1, 500)?);
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// A parameter that never gets a value would not be drawn at all.
    #[test]
    fn every_parameter_of_a_startup_gets_values() {
        let mut seed: u64 = 1;
        let mut bytes = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as u8
        };
        for entry in registry::all() {
            let mut keys = Vec::new();
            entry.algorithm.each_param(&mut |key, value| keys.push((key, value)));
            for (key, default) in keys {
                let values: BTreeSet<String> = (0..200)
                    .filter_map(|_| {
                        let data: Vec<u8> = (0..32).map(|_| bytes()).collect();
                        let mut of = entry.algorithm.clone();
                        parameter(&mut Unstructured::new(&data), &mut of, key, default).expect("bytes")
                    })
                    .collect();
                assert!(values.len() > 1, "{} {key}: {values:?}", entry.name);
            }
        }
    }

    /// So that a new key is drawn, or said not to be.
    #[test]
    fn every_key_of_a_path_is_drawn_or_left_out() {
        for key in PATH_KEYS {
            let drawn = path_value(&mut Unstructured::new(&[7; 64]), key.name).expect("bytes").is_some();
            assert_ne!(drawn, LEFT_OUT.contains(&key.name), "{}", key.name);
        }
    }
}
