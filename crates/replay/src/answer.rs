//! The answer for one transfer in sentences: what the connection did, when it left slow start, what limited
//! it, and which startups would have finished sooner.

use crate::fork::ForkResult;
use crate::infer::NoExit;
use crate::naming::FEW;
use crate::transfer::{ExitClass, ExitRecord, Fork, Source, Transfer};
use slowstart_study::record::Class;
use slowstart_study::words::{bytes, list, number};
use std::collections::BTreeMap;

/// The error of a continuation: the simulated time of a transfer was within this share of the real one in the
/// median (`tests/fork.rs`). Smaller differences are not reported.
const ERROR: f64 = 0.1;
/// Startups that are named in a sentence.
const NAMED: usize = 5;
/// Startups that servers have: it is worth saying that it is none of these.
const COMMON: [&str; 4] = ["standard", "hystart", "hystart++", "bbr"];

/// Returns the sentences for one transfer, without what the table of startups shows.
pub fn sentences(t: &Transfer) -> Vec<String> {
    let mut all = vec![did(t), left(t)];
    if t.exit.is_some() || t.class == ExitClass::None {
        all.push(format!("This is {}.", if t.certain { "certain" } else { "not certain" }));
    }
    all.extend(limits(t));
    all.extend(t.fork.as_ref().map(|fork| sooner(t, fork)));
    all
}

/// The answer in one sentence: whether it left slow start too early, with the link full or by loss, and how certain
/// that is.
pub fn lead(t: &Transfer) -> String {
    let certain = if t.certain { "certain" } else { "not certain" };
    let how = match t.class.known() {
        Some(Class::None) => return format!("It was in slow start to the end; this is {certain}."),
        Some(class) => class.manner(),
        None if t.exit.is_some() => {
            return format!(
                "It left slow start ({certain}); whether that was too early, with the link full or by loss is unknown."
            );
        }
        None => {
            let why = t.unclear.as_deref().unwrap_or("the file shows too little");
            return format!("Whether and when it left slow start is unknown: {why}.");
        }
    };
    let cost = match t.cost_s.filter(|c| *c > 0.0) {
        Some(cost) if t.class == ExitClass::Early => format!(", which cost at least {} s", number(cost)),
        _ => String::new(),
    };
    format!("It left slow start {how}{cost}; this is {certain}.")
}

/// The answer as a small table: what the connection did, what limited it, its exit and what that cost. What
/// the file does not show is `unknown`.
pub fn facts(t: &Transfer) -> Vec<(&'static str, String)> {
    let unknown = || "unknown".to_string();
    let seconds = |s: Option<f64>| s.map_or_else(unknown, |s| format!("{} s", number(s)));
    let again = t.retransmitted_packets.map_or("retransmissions unknown".to_string(), |n| {
        format!("{} packets retransmitted", number(n as f64))
    });
    let class = match (t.class, &t.unclear) {
        (ExitClass::Unknown, Some(why)) => format!("unknown: {why}"),
        (class, _) => class.how().to_string(),
    };
    let cost = match (t.class, t.cost_s) {
        (ExitClass::Early, Some(c)) => format!("at least {} s", number(c)),
        (ExitClass::Early, None) => "unknown: the path was not seen full after it".to_string(),
        (ExitClass::LinkFull | ExitClass::None, _) if t.certain => "nothing".to_string(),
        (ExitClass::LinkFull | ExitClass::None, _) => "nothing, if this is right".to_string(),
        (ExitClass::Late, _) => again.clone(),
        _ => unknown(),
    };
    let mut all = vec![
        ("carried", format!("{}, {again}", carried(t))),
        ("congestion control", t.congestion_control.clone().unwrap_or_else(unknown)),
        ("minimum RTT", t.min_rtt_s.map_or_else(unknown, |r| format!("{} ms", number(r * 1e3)))),
        ("limited by", limited_by(t)),
        ("exit", class),
        (
            "left slow start",
            match (&t.exit, t.class) {
                (Some(e), _) => with(t, e),
                (None, ExitClass::None) => "not before the end".to_string(),
                (None, _) => unknown(),
            },
        ),
        (
            "path full",
            t.capacity_time_s.map_or("not seen".to_string(), |s| format!("at {}", seconds(Some(s)))),
        ),
        ("cost of the exit", cost),
        ("certain", if t.certain { "yes" } else { "no" }.to_string()),
    ];
    // After the congestion control, where startups could be compared.
    let startup = t.sender_startup_fits.as_deref().map(|fits| ("startup", startup(t, fits)));
    all.splice(2..2, startup);
    all
}

/// Which startup the sender used, by what it sent.
fn startup(t: &Transfer, fits: &[String]) -> String {
    match (&t.sender_startup, fits) {
        // As counted on docs/evidence/replay.md.
        (Some(name), _) => {
            format!("probably {name}, by what was sent (5 of 132 such names were wrong in simulations)")
        }
        _ if let Some(class) = &t.sender_startup_class => match class.len() {
            n if n <= FEW => {
                format!("probably {}, which this recording does not tell apart", class.join(" or "))
            }
            n if n <= NAMED => {
                format!("probably one of {}, which this recording does not tell apart", list(class))
            }
            n => format!("probably one of {n} that this recording does not tell apart{}", none_of(class)),
        },
        (None, []) => "unknown: none that was tried explains what was sent".to_string(),
        (None, [only]) => {
            format!("unknown: only {only} explains what was sent, but too little of it is seen for a name")
        }
        (None, fits) if fits.len() <= NAMED => format!("unknown: {} explain what was sent", list(fits)),
        (None, fits) => format!("unknown: {} startups explain what was sent{}", fits.len(), none_of(fits)),
    }
}

/// Says which common startups are not among these.
fn none_of(all: &[String]) -> String {
    let out = COMMON.into_iter().filter(|c| !all.iter().any(|f| f == c)).collect::<Vec<_>>();
    if out.is_empty() { String::new() } else { format!(", but not {}", out.join(", ")) }
}

/// What the transfer carried, how long it took, and its rate.
fn carried(t: &Transfer) -> String {
    let Some(carried) = t.bytes else { return format!("unknown in {} s", number(t.duration_s)) };
    let rate = carried as f64 * 8.0 / t.duration_s / 1e6;
    let rate = if rate.is_finite() { format!(", {} Mbit/s", number(rate)) } else { String::new() };
    format!("{} in {} s{rate}", bytes(carried), number(t.duration_s))
}

/// For how many seconds each thing other than cwnd limited the sender.
fn limit_sums(t: &Transfer) -> BTreeMap<&str, f64> {
    let mut sums = BTreeMap::new();
    for l in t.limits.iter().flatten() {
        *sums.entry(l.what.as_str()).or_default() += l.until_s - l.from_s;
    }
    sums
}

/// True if the application had nothing to send for more than half of the time. A simulated transfer, which
/// always has something to send, says nothing about such a connection.
pub fn mostly_waited_for_data(t: &Transfer) -> bool {
    let waited: f64 =
        limit_sums(t).iter().filter(|(w, _)| ["application", "idle"].contains(w)).map(|(_, s)| s).sum();
    2.0 * waited > t.duration_s
}

/// The shares of the time in which cwnd, and anything else, limited the sender.
fn limited_by(t: &Transfer) -> String {
    if t.limits.is_none() || t.duration_s <= 0.0 {
        return "unknown".to_string();
    }
    let sums = limit_sums(t);
    let rest = (t.duration_s - sums.values().sum::<f64>()).max(0.0);
    let share = |(what, s): (&str, f64)| {
        let what = if what == "idle" { "nothing to send (idle)" } else { what };
        format!("{what} {:.0} %", 100.0 * s / t.duration_s)
    };
    // A capture without the SYN's window scale shows no receive window.
    let hidden = t.source == Source::Capture && t.receive_window_bytes.is_none();
    // Where another limit hides the exit, what held the sender in the rest of the time is not known either.
    let other = t.unclear.as_deref().is_some_and(|why| NoExit::LIMITS.iter().any(|l| l.words() == why));
    let window = match (other, hidden) {
        (true, _) => "unknown",
        (false, true) => "cwnd or the receive window",
        (false, false) => "cwnd",
    };
    let of_time = std::iter::once((window, rest)).chain(sums).map(share).collect::<Vec<_>>().join(", ");
    format!("{of_time} of the time")
}

/// When, with which window and by what evidence it left.
fn with(t: &Transfer, e: &ExitRecord) -> String {
    format!(
        "at {} s with a window of {} segments ({})",
        number(e.time_s),
        number((e.cwnd_bytes as f64 / t.mss_bytes.max(1) as f64).round()),
        e.evidence
    )
}

/// What the connection did.
fn did(t: &Transfer) -> String {
    let rtt =
        t.min_rtt_s.map_or(String::new(), |r| format!(", with a minimum RTT of {} ms", number(r * 1e3)));
    let again = match t.retransmitted_packets {
        None => String::new(),
        Some(0) => "; nothing was retransmitted".to_string(),
        Some(1) => "; 1 packet was retransmitted".to_string(),
        Some(n) => format!("; {} packets were retransmitted", number(n as f64)),
    };
    let done = match t.bytes {
        Some(_) => format!("It carried {}", carried(t).replacen(", ", " (", 1)),
        None => format!("It took {} s; what it carried is unknown", number(t.duration_s)),
    };
    let close = if done.contains(" (") { ")" } else { "" };
    format!("{done}{close}{rtt}{again}.")
}

/// When and how it left slow start.
fn left(t: &Transfer) -> String {
    let full = t.capacity_time_s.map(|s| format!("the path was full at {} s", number(s)));
    let with = |e: &ExitRecord| format!("It left slow start {}", with(t, e));
    let not_full = |class: Class| {
        full.clone().unwrap_or_else(|| match class {
            Class::Early => "the path was not seen full".to_string(),
            _ => "when the path was full first is not seen".to_string(),
        })
    };
    let why = t.unclear.as_deref().unwrap_or("the file shows too little");
    match (t.class.known(), &t.exit) {
        (Some(Class::None), None) => "It was in slow start to the end.".to_string(),
        (_, None) => format!("When it left slow start is not known: {why}."),
        (None | Some(Class::None), Some(e)) => {
            format!("{}; whether the path was full by then is not known.", with(e))
        }
        (Some(class), Some(e)) => {
            let cost = t.cost_s.filter(|c| class == Class::Early && *c > 0.0);
            let cost = cost.map_or(String::new(), |c| format!(" This cost at least {} s.", number(c)));
            format!("{}: {}; {}.{cost}", with(e), class.manner(), not_full(class))
        }
    }
}

/// For how long something other than cwnd limited the sender.
fn limits(t: &Transfer) -> Option<String> {
    let sums = limit_sums(t);
    let of = |(what, s): (&&str, &f64)| match *what {
        "idle" => format!("idle for {} s", number(*s)),
        what => format!("limited by the {what} for {} s", number(*s)),
    };
    let parts: Vec<String> = sums.iter().map(of).collect();
    (!parts.is_empty()).then(|| format!("It was {}.", parts.join(", ")))
}

/// The startups that would have finished sooner by more than the error, the quickest first.
fn quicker<'a>(t: &Transfer, fork: &'a Fork) -> Vec<(&'a ForkResult, f64)> {
    let limit = t.duration_s * (1.0 - ERROR);
    let done = |s: &'a ForkResult| s.done_s.filter(|d| *d < limit).map(|d| (s, d));
    let mut all: Vec<_> = fork.startups.iter().filter_map(done).collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    all
}

/// The time of the continuation that is closest to what was observed; `None` if none finished.
fn closest(t: &Transfer, fork: &Fork) -> Option<f64> {
    let away = |done: &f64| (done - t.duration_s).abs();
    fork.startups.iter().filter_map(|s| s.done_s).min_by(|a, b| away(a).total_cmp(&away(b)))
}

/// True if the fitted path reproduces the transfer: some startup, which may be the sender's, takes as long on
/// it as was observed, to the error of this method. On another path startups are not comparable with what was
/// observed.
pub fn is_reproduced(t: &Transfer, fork: &Fork) -> bool {
    closest(t, fork).is_some_and(|done| (done - t.duration_s).abs() <= ERROR * t.duration_s)
}

/// Which startups would have finished sooner on the fitted path, if that reproduces the transfer.
pub fn sooner(t: &Transfer, fork: &Fork) -> String {
    if !is_reproduced(t, fork) {
        let found = match closest(t, fork) {
            Some(done) => format!(
                "the closest startup needs {} s on it, observed {} s",
                number(done),
                number(t.duration_s)
            ),
            None => format!("no startup completes on it, observed {} s", number(t.duration_s)),
        };
        return format!(
            "The path fitted to it ({}) does not reproduce this transfer: {found}. No startup is compared.",
            fork.path.inline()
        );
    }
    let all = quicker(t, fork);
    let bound = if fork.path.queue_was_full() {
        ""
    } else {
        "; the queue holds at least this, since nothing was lost"
    };
    let rate = if fork.path.rate_changes { "; the rate follows that of the recording" } else { "" };
    let path = format!("{}{bound}{rate}", fork.path.inline());
    let percent = ERROR * 100.0;
    let of = fork.startups.len();
    if all.is_empty() {
        return format!(
            "Continued in the simulator on a path fitted to it ({path}), none of {of} startups finishes more than \
             {percent:.0} % sooner, which is the error of this method."
        );
    }
    let named = |(s, done): &(&ForkResult, f64)| format!("{} ({} s)", s.startup, number(*done));
    let mut names: Vec<String> = all.iter().take(NAMED).map(named).collect();
    if all.len() > NAMED {
        names.push(format!("{} more", all.len() - NAMED));
    }
    format!(
        "Continued in the simulator on a path fitted to it ({path}), {} of {of} startups finish more than {percent:.0} % \
         sooner, which is the error of this method: {}.",
        all.len(),
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::{Estimate, FittedPath};
    use crate::transfer::LimitPeriod;
    use slowstart::units::Bytes;
    use slowstart_study::record::Class;

    fn transfer(class: ExitClass) -> Transfer {
        let exit = ExitRecord { time_s: 0.5, cwnd_bytes: 144_800, evidence: "a loss".to_string() };
        Transfer {
            bytes: Some(1_000_000),
            retransmitted_packets: Some(0),
            limits: Some(Vec::new()),
            duration_s: 2.0,
            min_rtt_s: Some(0.05),
            class,
            exit: matches!(class, ExitClass::Early | ExitClass::LinkFull | ExitClass::Late).then_some(exit),
            ..Transfer::new(Source::Capture, 1, Bytes(1448))
        }
    }

    #[test]
    fn each_class_has_its_sentence() {
        let of = |t: &Transfer| sentences(t).join(" ");
        let early = Transfer { cost_s: Some(0.75), ..transfer(ExitClass::Early) };
        assert_eq!(
            of(&early),
            "It carried 1 MB in 2 s (4 Mbit/s), with a minimum RTT of 50 ms; nothing was retransmitted. It left slow \
             start at 0.500 s with a window of 100 segments (a loss): too early; the path was not seen full. This cost at \
             least 0.750 s. This is not certain."
        );
        let full = Transfer { capacity_time_s: Some(0.25), ..transfer(ExitClass::LinkFull) };
        assert!(
            of(&full).ends_with("with the link full; the path was full at 0.250 s. This is not certain."),
            "{}",
            of(&full)
        );
        assert!(of(&transfer(ExitClass::Late)).contains(": by loss; "));
        let none = Transfer { certain: true, ..transfer(ExitClass::None) };
        assert!(of(&none).ends_with("It was in slow start to the end. This is certain."));
        let unknown = Transfer { unclear: Some("too few packets".into()), ..transfer(ExitClass::Unknown) };
        assert!(of(&unknown).ends_with("is not known: too few packets."));
    }

    /// One sentence and a small table: unknown is a value of its own.
    #[test]
    fn the_lead_and_the_table_state_what_is_known() {
        let fact = |t: &Transfer, name: &str| {
            facts(t).into_iter().find(|f| f.0 == name).unwrap_or_else(|| panic!("{name}")).1
        };
        let early = Transfer { cost_s: Some(0.75), certain: true, ..transfer(ExitClass::Early) };
        assert_eq!(
            lead(&early),
            "It left slow start too early, which cost at least 0.750 s; this is certain."
        );
        let shares = |periods: &[(&str, f64)]| {
            let limits = periods.iter().map(|(what, s)| LimitPeriod {
                what: (*what).into(),
                from_s: 0.0,
                until_s: *s,
            });
            Transfer { limits: Some(limits.collect()), receive_window_bytes: Some(1 << 20), ..early.clone() }
        };
        let held = shares(&[("application", 0.5), ("idle", 0.3)]);
        assert_eq!(
            fact(&held, "limited by"),
            "cwnd 60 %, application 25 %, nothing to send (idle) 15 % of the time"
        );
        assert_eq!(fact(&early, "exit"), "too early");
        let fits = |name: Option<&str>, fits: &[&str]| Transfer {
            sender_startup: name.map(String::from),
            sender_startup_fits: Some(fits.iter().map(ToString::to_string).collect()),
            ..early.clone()
        };
        assert_eq!(
            fact(&fits(Some("hystart"), &["hystart"]), "startup"),
            "probably hystart, by what was sent (5 of 132 such names were wrong in simulations)"
        );
        let class = Transfer {
            sender_startup_class: Some(["hystart", "suss"].map(String::from).into()),
            ..fits(None, &["hystart"])
        };
        assert_eq!(
            fact(&class, "startup"),
            "probably hystart or suss, which this recording does not tell apart"
        );
        let many = ["standard", "hystart++", "search", "c4", "ess", "suss"].map(String::from);
        assert_eq!(
            fact(&Transfer { sender_startup_class: Some(many.into()), ..class }, "startup"),
            "probably one of 6 that this recording does not tell apart, but not hystart, bbr"
        );
        assert_eq!(
            fact(&fits(None, &["hystart", "suss"]), "startup"),
            "unknown: hystart and suss explain what was sent"
        );
        assert!(fact(&fits(None, &[]), "startup").starts_with("unknown: none"));
        assert_eq!(fact(&early, "cost of the exit"), "at least 0.750 s");
        assert_eq!((fact(&early, "certain"), fact(&early, "path full")), ("yes".into(), "not seen".into()));
        let unknown = Transfer {
            unclear: Some("too few packets".into()),
            min_rtt_s: None,
            limits: None,
            ..transfer(ExitClass::Unknown)
        };
        assert_eq!(lead(&unknown), "Whether and when it left slow start is unknown: too few packets.");
        assert_eq!(fact(&unknown, "exit"), "unknown: too few packets");
        for name in ["minimum RTT", "limited by", "left slow start", "cost of the exit"] {
            assert_eq!(fact(&unknown, name), "unknown", "{name}");
        }
        assert_eq!(fact(&transfer(ExitClass::None), "left slow start"), "not before the end");
    }

    fn fork(done: &[Option<f64>]) -> Fork {
        let known = |value: f64| Estimate { value, low: value, high: Some(value), basis: String::new() };
        let path = FittedPath {
            rate_bps: known(10e6),
            rate_vary: None,
            rate_changes: false,
            base_rtt_s: known(0.05),
            wave: None,
            ack_aggregate_s: None,
            jitter_s: None,
            first_delay_s: None,
            queue_bytes: known(60e3),
            random_drop: None,
            policer: None,
            loss: None,
            notes: Vec::new(),
        };
        let result = |(i, done_s): (usize, &Option<f64>)| ForkResult {
            startup: format!("s{i}"),
            from_s: 0.0,
            exit: None,
            class: Class::None,
            done_s: *done_s,
            lost_packets: 0,
            retransmitted_packets: 0,
            peak_queue_delay_s: 0.0,
        };
        Fork { path, startups: done.iter().enumerate().map(result).collect() }
    }

    /// The transfer took 2 s. A path on which the closest startup takes more than 10 % more or less is
    /// another path, and what others would take on it is not said, however much sooner.
    #[test]
    fn startups_are_compared_only_where_the_path_reproduces_the_transfer() {
        let t = transfer(ExitClass::Early);
        for (closest, is_same) in [(1.79, false), (1.81, true), (2.0, true), (2.19, true), (2.21, false)] {
            let fork = fork(&[Some(closest), Some(4.0), Some(0.9), None]);
            assert_eq!(is_reproduced(&t, &fork), is_same, "{closest}");
            let text = sooner(&t, &fork);
            assert_eq!(text.contains("s2 (0.900 s)"), is_same, "{text}");
            assert_eq!(text.contains("does not reproduce this transfer"), !is_same, "{text}");
        }
        let far = sooner(&t, &fork(&[Some(24.7), Some(30.9)]));
        assert!(
            far.ends_with("the closest startup needs 24.7 s on it, observed 2 s. No startup is compared."),
            "{far}"
        );
        let none = sooner(&t, &fork(&[None]));
        assert!(none.contains("no startup completes on it, observed 2 s. No startup is compared."), "{none}");
    }

    #[test]
    fn limits_are_summed() {
        let limit = |what: &str, from_s, until_s| LimitPeriod { what: what.to_string(), from_s, until_s };
        let mut t = transfer(ExitClass::Unknown);
        assert_eq!(limits(&t), None);
        t.limits = Some(vec![
            limit("application", 0.0, 0.5),
            limit("idle", 0.5, 0.75),
            limit("application", 1.0, 1.5),
        ]);
        assert_eq!(
            limits(&t).as_deref(),
            Some("It was limited by the application for 1 s, idle for 0.250 s.")
        );
        // 1.25 s in all.
        assert!(!mostly_waited_for_data(&Transfer { duration_s: 2.5, ..t.clone() }));
        assert!(mostly_waited_for_data(&Transfer { duration_s: 2.4, ..t }));
    }
}
