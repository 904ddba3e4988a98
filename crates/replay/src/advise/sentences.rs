//! An advice in sentences, for the terminal and for pages.

use super::{Advice, Effect, INITIAL_WINDOWS, Recorded, TELLING};
use slowstart_study::words::{bytes, list, number, signed, two_digits};

impl Advice {
    /// The advice in a sentence, then the verdict over the paths.
    pub fn headline(&self) -> String {
        let a = self;
        if a.none_because.is_some() {
            return a.verdict.clone();
        }
        let advice = match &a.use_instead {
            Some(startup) if a.in_use_is_assumed => {
                format!(
                    "Try {startup} in a trial, if {} is in use; nothing shows which startup is.",
                    a.in_use
                )
            }
            Some(startup) => format!("Try {startup} in a trial."),
            None if a.in_use_is_assumed => {
                format!("No change, if {} is in use; nothing shows which startup is.", a.in_use)
            }
            None => format!("Stay with {}.", a.in_use),
        };
        format!("{advice} Over the paths recorded: {}", a.verdict)
    }

    /// What was recorded, a line each.
    pub fn recordings(&self) -> Vec<String> {
        let (a, r) = (self, &self.recorded);
        let plural = |n: u64, one: &str| {
            if n == 1 { format!("1 {one}") } else { format!("{} {one}s", number(n as f64)) }
        };
        let mut out = vec![format!(
            "{}, {} of {}; in {} the sender mostly waited for its application",
            plural(r.files, "file"),
            plural(r.transfers, "transfer"),
            bytes(r.bytes),
            number(r.waited as f64),
        )];
        if !r.in_use.is_empty() {
            let each: Vec<String> =
                r.in_use.iter().map(|(name, n)| format!("{name} in {}", number(*n as f64))).collect();
            let other = r.in_use.len() > 1 || !r.in_use.contains_key(&a.in_use);
            let judged = if other { format!("; compared with {}", a.in_use) } else { String::new() };
            out.push(format!("startups in use, as far as the recordings show: {}{judged}", list(&each)));
        }
        let (alike, agreement) = r.most_alike();
        if alike.len() > TELLING {
            out.push("recorded exits do not tell which startup is in use".to_string());
        } else if !alike.is_empty() {
            let names: Vec<String> = alike.iter().map(ToString::to_string).collect();
            let mut line = format!(
                "recorded exits agree most often with {}: {} of {}",
                list(&names),
                number(agreement.agree as f64),
                number(agreement.of as f64)
            );
            if !alike.contains(&a.in_use.as_str()) {
                let own = r.agreement.get(&a.in_use).copied().unwrap_or_default();
                let own = number(own.agree as f64);
                line = format!("{line}; with {}: {own} (if it is not in use, say --in-use)", a.in_use);
            }
            out.push(line);
        }
        out
    }

    /// The two other questions: the initial window and idle restart.
    pub fn other_questions(&self) -> Vec<String> {
        let a = self;
        let percent =
            |e: &Effect| format!("{} % ({} to {})", signed(e.median), two_digits(e.low), two_digits(e.high));
        let mut out = Vec::new();
        if let Some(largest) = a.largest_initial_window {
            let of = |n: u32| a.initial_windows.iter().find(|w| w.segments == n);
            let gain = of(largest).and_then(|w| w.time_percent.as_ref()).map(&percent);
            out.push(match gain {
                Some(gain) => {
                    let more =
                        if INITIAL_WINDOWS.last() == Some(&largest) { ", the largest tried," } else { "" };
                    format!("Initial window: {largest} segments{more} lose no more than 10 do; time {gain}.")
                }
                None => format!("Initial window: stay with {largest} segments; more lose more."),
            });
        }
        if let Some(e) = &a.without_idle_restart_percent {
            out.push(match e.is {
                "better" => {
                    format!("tcp_slow_start_after_idle=0 would shorten a browser's objects: {}.", percent(e))
                }
                "worse" => {
                    format!("tcp_slow_start_after_idle=0 would lengthen a browser's objects: {}.", percent(e))
                }
                _ => "tcp_slow_start_after_idle makes no difference that is shown.".to_string(),
            });
        }
        out
    }
}

/// How sure the advice is, and what would make it surer.
pub(super) fn sure(r: &Recorded) -> Vec<String> {
    let mut out = vec![format!(
        "It rests on {} of {} transfers: those that filled their paths.",
        number(r.paths.len() as f64),
        number((r.transfers - r.waited) as f64)
    )];
    if r.never_full > 0 {
        out.push(format!(
            "{} did not fill their path, so its rate is not known: only a trial can say what a later exit gains there.",
            number(r.never_full as f64)
        ));
    }
    if r.without_path > 0 {
        out.push(format!(
            "{} show no path: captures at the server, or kernel logs of ACKs, do.",
            number(r.without_path as f64)
        ));
    }
    if r.queue_not_full > 0 {
        out.push(format!(
            "{} of these never overflowed their queue; it is taken as no larger than what was seen, so that losses are upper bounds.",
            number(r.queue_not_full as f64)
        ));
    }
    out
}
