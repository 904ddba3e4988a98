//! What a trial keeps in its folder, so that it goes on there after a restart of the program or of the machine:
//! `trial.json`, and the rows of its connections. A start with the same plan goes on; one with another is an
//! error that names what differs.

use crate::outcome::{Exit, Outcome, Stratify};
use crate::output::{Gap, TrialCounts};
use crate::plan::Plan;
use crate::statistics::PlannedTrial;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead};
use thiserror::Error;

/// The version of `trial.json`; one of another version is refused.
pub const VERSION: u32 = 1;

/// The longest row that is read, in bytes: a row has some 600.
const LONGEST: u64 = 1 << 16;

/// What does not change while a trial lasts, however often it is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixed {
    /// The cgroup, or the pattern of several, as it was given.
    pub cgroup: String,
    /// The plan, as a fleet compares it.
    pub plan: PlannedTrial,
    /// True if connections are compared within clients' prefixes.
    pub by_prefix: bool,
    /// The length of the A/A phase in nanoseconds; `None` without one.
    pub aa_ns: Option<u64>,
    /// The seed of the assignment.
    pub seed: u64,
}

/// The state of a trial, as of its last look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// The version of the format, [`VERSION`].
    pub version: u32,
    /// What does not change.
    pub fixed: Fixed,
    /// The identifier of the trial on this server, as [`crate::Statistics::run`] has it.
    pub run: String,
    /// When it began first, in seconds since 1970.
    pub began_unix_s: u64,
    /// When this was written, in seconds since 1970.
    pub last_unix_s: u64,
    /// How long it has run, in seconds, without its gaps and without the A/A phase.
    pub seconds: f64,
    /// True once the A/A phase is over, or without one.
    pub past_a_a: bool,
    /// True once its time was over, or every arm but the control was ended: it does not go on.
    pub over: bool,
    /// True if it was ended by a signal and had written its result.
    pub ended: bool,
    /// What became of the connections.
    pub counts: TrialCounts,
    /// By arm, the guardrail that ended it.
    pub ended_by: Vec<Option<String>>,
    /// Connections of each arm that had not been closed.
    pub open: Vec<u64>,
    /// Rows that could not be written.
    pub rows_missing: u64,
    /// The release of the kernel.
    pub kernel: Option<String>,
    /// The times in which it did not run.
    pub gaps: Vec<Gap>,
}

/// Why a trial cannot go on in a folder.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum KeptError {
    /// `trial.json` is not JSON of this form.
    #[error("{0}")]
    Form(String),
    /// It has another version.
    #[error("version: found {0}, expected {VERSION}; choose another folder")]
    Version(u64),
    /// The folder holds a trial with another plan.
    #[error("it holds a trial with another plan: {key}: there {there}, now {now}; choose another folder")]
    Differs {
        /// What differs.
        key: &'static str,
        /// What the folder has.
        there: String,
        /// What was asked for.
        now: String,
    },
    /// The trial is over.
    #[error("it holds a trial with this plan that is over after {0} s; choose another folder")]
    Over(u64),
    /// A row within the file is none.
    #[error("line {line}: {why}; rows follow it, so this is not the end of a write that was cut")]
    Row {
        /// Its number, from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
}

impl Fixed {
    /// Returns it from the parts of a trial.
    pub fn new(cgroup: &str, plan: PlannedTrial, stratify: Stratify, aa_ns: Option<u64>, seed: u64) -> Self {
        Self { cgroup: cgroup.to_string(), plan, by_prefix: stratify.prefix, aa_ns, seed }
    }

    /// Fails with the first thing that differs.
    fn must_be(&self, now: &Self) -> Result<(), KeptError> {
        let differs = |key, there: String, now: String| Err(KeptError::Differs { key, there, now });
        if let Some((key, there, now)) = self.plan.difference(&now.plan) {
            return differs(key, there, now);
        }
        let aa = |f: &Self| f.aa_ns.map_or_else(|| "none".to_string(), |ns| format!("{} s", ns as f64 / 1e9));
        let keys: [(&'static str, String, String); 4] = [
            ("cgroup", self.cgroup.clone(), now.cgroup.clone()),
            ("stratified by prefix", self.by_prefix.to_string(), now.by_prefix.to_string()),
            ("A/A phase", aa(self), aa(now)),
            ("seed", self.seed.to_string(), now.seed.to_string()),
        ];
        for (key, there, now) in keys {
            if there != now {
                return differs(key, there, now);
            }
        }
        Ok(())
    }
}

impl Kept {
    /// Returns the state of a trial that begins.
    pub fn new(fixed: Fixed, run: String, began_unix_s: u64, kernel: Option<String>) -> Self {
        let arms = fixed.plan.arms.len();
        Self {
            version: VERSION,
            past_a_a: fixed.aa_ns.is_none(),
            fixed,
            run,
            began_unix_s,
            last_unix_s: began_unix_s,
            seconds: 0.0,
            over: false,
            ended: false,
            counts: TrialCounts { assigned: vec![0; arms], ..TrialCounts::default() },
            ended_by: vec![None; arms],
            open: vec![0; arms],
            rows_missing: 0,
            kernel,
            gaps: Vec::new(),
        }
    }

    /// Reads the text of `trial.json`.
    pub fn parse(text: &str) -> Result<Self, KeptError> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u64,
        }
        let form = |e: serde_json::Error| KeptError::Form(e.to_string());
        let versioned: Versioned = serde_json::from_str(text).map_err(form)?;
        if versioned.version != u64::from(VERSION) {
            return Err(KeptError::Version(versioned.version));
        }
        let all: Self = serde_json::from_str(text).map_err(form)?;
        let arms = all.fixed.plan.arms.len();
        for (key, n) in [
            ("counts.assigned", all.counts.assigned.len()),
            ("ended_by", all.ended_by.len()),
            ("open", all.open.len()),
        ] {
            if n != arms {
                return Err(KeptError::Form(format!("{key}: found {n} values, expected {arms}, one an arm")));
            }
        }
        Ok(all)
    }

    /// Fails unless a trial with this plan goes on from here.
    pub fn goes_on_as(&self, fixed: &Fixed) -> Result<(), KeptError> {
        self.fixed.must_be(fixed)?;
        if self.over { Err(KeptError::Over(self.seconds as u64)) } else { Ok(()) }
    }

    /// Adds the gap since it was written, which ends now. `cut_bytes` is the length of the row that was half
    /// written, `rows_of` are the rows of each arm: rows may have been written since, and each was assigned and is not open.
    pub fn resume(&mut self, now_unix_s: u64, kernel: Option<String>, cut_bytes: u64, rows_of: &[u64]) {
        for (assigned, rows) in self.counts.assigned.iter_mut().zip(rows_of) {
            *assigned = (*assigned).max(*rows);
        }
        let closed = self.counts.assigned.iter().zip(rows_of);
        let open = self.open.iter().zip(closed).map(|(open, (all, rows))| *open.min(&(all - rows))).collect();
        let changed = kernel != self.kernel;
        self.gaps.push(Gap {
            from_unix_s: self.last_unix_s,
            to_unix_s: now_unix_s,
            ended: self.ended,
            open,
            cut_bytes,
            kernel_before: self.kernel.take().filter(|_| changed),
        });
        (self.kernel, self.ended, self.last_unix_s) = (kernel, false, now_unix_s);
        self.open.fill(0);
    }
}

impl TrialCounts {
    /// Returns the numbers of two starts of one trial together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            assigned: self.assigned.iter().zip(&other.assigned).map(|(a, b)| a + b).collect(),
            outside: self.outside + other.outside,
            own_choice: self.own_choice + other.own_choice,
            refused: self.refused + other.refused,
            without_storage: self.without_storage + other.without_storage,
            lost_records: self.lost_records + other.lost_records,
        }
    }
}

/// A row as it is read: [`crate::ConnectionRow`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    arm: String,
    #[serde(rename = "read_unix_s")]
    _read_unix_s: f64,
    unit: String,
    prefix: String,
    a_a: bool,
    #[serde(rename = "closed")]
    _closed: bool,
    handshake_rtt_s: Option<f64>,
    milestones_s: [Option<f64>; 3],
    last_s: Option<f64>,
    delivered_bytes: u64,
    sent_bytes: u64,
    retransmitted_bytes: u64,
    rtt_mean: Option<f64>,
    rtt_peak: Option<f64>,
    app_limited: Option<f64>,
    exit: Option<RowExit>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RowExit {
    reason: String,
    cwnd: u32,
    time_s: f64,
}

impl Row {
    fn outcome(self, plan: &Plan, reasons: &[&'static str]) -> Result<(Outcome, bool), String> {
        let arm = plan.arms().iter().position(|a| a.name == self.arm);
        let number = |key: &str, text: &str| {
            u64::from_str_radix(text, 16)
                .map_err(|_| format!("{key}: found {text:?}, expected 16 hexadecimal digits"))
        };
        let exit = self.exit.map(|e| {
            let reason = reasons.iter().copied().find(|r| *r == e.reason);
            let reason = reason
                .ok_or_else(|| format!("exit: found {:?}, expected a reason of this version", e.reason))?;
            Ok::<_, String>(Exit { reason, cwnd: e.cwnd, time_s: e.time_s })
        });
        let outcome = Outcome {
            arm: arm.ok_or_else(|| format!("arm: found {:?}, expected one of the plan", self.arm))?,
            unit: number("unit", &self.unit)?,
            prefix: number("prefix", &self.prefix)?,
            handshake_rtt_s: self.handshake_rtt_s,
            milestones_s: self.milestones_s,
            last_s: self.last_s,
            delivered_bytes: self.delivered_bytes,
            sent_bytes: self.sent_bytes,
            retransmitted_bytes: self.retransmitted_bytes,
            rtt_mean: self.rtt_mean,
            rtt_peak: self.rtt_peak,
            app_limited: self.app_limited,
            exit: exit.transpose()?,
        };
        Ok((outcome, self.a_a))
    }
}

/// What a file of rows holds.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Bytes of whole rows from its begin.
    pub whole_bytes: u64,
    /// Bytes after them, of a write that was cut.
    pub cut_bytes: u64,
    /// Number of whole rows.
    pub rows: u64,
}

/// Reads rows as a trial with this plan wrote them, and calls `each` with each and whether it is of the A/A
/// phase. `reasons` are those of exits. What is after the last whole row, of a write that was cut by a crash, is
/// counted and not used; a line that is no row before others is an error.
pub fn read_rows(
    mut input: impl BufRead,
    plan: &Plan,
    reasons: &[&'static str],
    mut each: impl FnMut(Outcome, bool),
) -> io::Result<Result<Rows, KeptError>> {
    let (mut found, mut line, mut number) = (Rows::default(), Vec::new(), 0);
    // The first line that is no row, and the bytes from it on.
    let mut bad: Option<KeptError> = None;
    loop {
        let read = slowstart_files::line(&mut input, LONGEST, &mut line)? as u64;
        if read == 0 {
            return Ok(Ok(found));
        }
        number += 1;
        let row = match line.strip_suffix(b"\n") {
            None => Err("it has no end".to_string()),
            Some(text) => serde_json::from_slice::<Row>(text)
                .map_err(|e| e.to_string())
                .and_then(|row| row.outcome(plan, reasons)),
        };
        match (row, bad.take()) {
            (Ok((outcome, a_a)), None) => {
                each(outcome, a_a);
                found.whole_bytes += read;
                found.rows += 1;
            }
            (Ok(_), Some(e)) => return Ok(Err(e)),
            (Err(why), earlier) => {
                found.cut_bytes += read;
                bad = earlier.or(Some(KeptError::Row { line: number, why }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Measure;
    use crate::output::ConnectionRow;
    use crate::plan::Arm;

    const REASONS: &[&str] = &["loss", "rate-flat"];

    fn plan(second: &str) -> Plan {
        let arms = ["cubic:50%", second].map(|a| Arm::parse(a).expect("an arm")).to_vec();
        Plan::new(arms, 7).expect("a plan")
    }

    fn fixed(second: &str, seed: u64) -> Fixed {
        let plan =
            PlannedTrial::new(&plan(second), Measure::TimeLast, vec!["retrans=+20%".into()], false, false);
        Fixed::new("/sys/fs/cgroup/a", plan, Stratify::default(), None, seed)
    }

    fn outcome(n: u64) -> Outcome {
        Outcome {
            arm: (n % 2) as usize,
            unit: n << 40 | 5,
            prefix: u64::MAX - n,
            handshake_rtt_s: Some(0.05),
            milestones_s: [Some(0.1), None, None],
            last_s: (!n.is_multiple_of(3)).then_some(1.5),
            delivered_bytes: 1000 + n,
            sent_bytes: 2000,
            retransmitted_bytes: 3,
            rtt_mean: Some(1.25),
            rtt_peak: None,
            app_limited: Some(0.5),
            exit: (!n.is_multiple_of(2)).then_some(Exit { reason: "loss", cwnd: 33, time_s: 0.25 }),
        }
    }

    fn rows(n: u64) -> Vec<u8> {
        let row = |i| {
            let o = outcome(i);
            let row = ConnectionRow::new(["cubic", "ours"][o.arm], &o, 1.0, i == 0, o.last_s.is_some());
            serde_json::to_string(&row).expect("plain data") + "\n"
        };
        (0..n).map(row).collect::<String>().into_bytes()
    }

    fn read(bytes: &[u8]) -> Result<(Rows, Vec<(Outcome, bool)>), KeptError> {
        let mut all = Vec::new();
        let found =
            read_rows(bytes, &plan("ours:50%"), REASONS, |o, a_a| all.push((o, a_a))).expect("no file");
        found.map(|rows| (rows, all))
    }

    #[test]
    fn rows_are_read_as_they_were_written() {
        let bytes = rows(6);
        let (found, all) = read(&bytes).expect("whole");
        assert_eq!(found, Rows { whole_bytes: bytes.len() as u64, cut_bytes: 0, rows: 6 });
        assert_eq!(all, (0..6).map(|n| (outcome(n), n == 0)).collect::<Vec<_>>());
        assert_eq!(read(b"").expect("empty").0, Rows::default());
    }

    /// A write that is cut leaves a part of a row; a machine that goes down may leave zeros.
    #[test]
    fn what_a_crash_left_after_the_last_row_is_counted_and_not_used() {
        let (two, three) = (rows(2), rows(3));
        for cut in two.len() + 1..three.len() {
            let (found, all) = read(&three[..cut]).expect("cut at the end");
            assert_eq!((found.whole_bytes, found.cut_bytes), (two.len() as u64, (cut - two.len()) as u64));
            assert_eq!(all.len(), 2);
        }
        for tail in [vec![0; 200_000], [vec![0; 10], b"\n\n{\n".to_vec()].concat()] {
            let (found, all) = read(&[two.clone(), tail.clone()].concat()).expect("cut at the end");
            assert_eq!((found.cut_bytes, found.rows, all.len()), (tail.len() as u64, 2, 2));
        }
    }

    #[test]
    fn a_line_that_is_no_row_before_others_is_an_error_with_its_number() {
        let refused = |bytes: Vec<u8>| read(&bytes).expect_err("refused").to_string();
        let within = refused([rows(1), b"{}\n".to_vec(), rows(1)].concat());
        assert!(within.starts_with("line 2: missing field") && within.contains("rows follow it"), "{within}");
        let text = String::from_utf8(rows(2)).expect("text");
        let arm = refused(text.replacen("\"cubic\"", "\"reno\"", 1).into_bytes());
        assert!(arm.contains("line 1: arm: found \"reno\""), "{arm}");
        let row = rows(1);
        let reason = refused([text.replacen("\"loss\"", "\"why\"", 1).into_bytes(), row].concat());
        assert!(reason.contains("line 2: exit: found \"why\""), "{reason}");
    }

    #[test]
    fn only_the_same_plan_goes_on() {
        let kept = Kept::new(fixed("ours:50%", 7), "a".into(), 100, Some("6.18".into()));
        let text = serde_json::to_string(&kept).expect("plain data");
        assert_eq!(Kept::parse(&text), Ok(kept.clone()));
        assert_eq!(kept.goes_on_as(&fixed("ours:50%", 7)), Ok(()));
        let refused = |f: &Fixed| kept.goes_on_as(f).expect_err("another plan").to_string();
        let arms = refused(&fixed("ours:25%", 7));
        assert!(arms.contains("arms: there cubic:50% ours:50%, now cubic:50% ours:25%"), "{arms}");
        assert!(refused(&fixed("ours:50%", 8)).contains("seed: there 7, now 8"));
        let aa = Fixed { aa_ns: Some(12_000_000_000), ..fixed("ours:50%", 7) };
        assert!(refused(&aa).contains("A/A phase: there none, now 12 s"));
        let over = Kept { over: true, seconds: 60.5, ..kept.clone() };
        assert_eq!(over.goes_on_as(&fixed("ours:50%", 7)), Err(KeptError::Over(60)));
        assert_eq!(
            Kept::parse(&text.replacen("\"version\":1", "\"version\":2", 1)),
            Err(KeptError::Version(2))
        );
        let short = Kept { open: vec![1], ..kept };
        let short = Kept::parse(&serde_json::to_string(&short).expect("plain data"));
        assert_eq!(short, Err(KeptError::Form("open: found 1 values, expected 2, one an arm".into())));
    }

    #[test]
    fn a_gap_says_since_when_what_was_open_and_what_changed() {
        let mut kept = Kept::new(fixed("ours:50%", 7), "a".into(), 100, Some("6.18".into()));
        (kept.last_unix_s, kept.open) = (160, vec![1, 2]);
        kept.counts.assigned = vec![5, 2];
        kept.resume(1000, Some("6.18".into()), 17, &[4, 3]);
        assert_eq!(kept.counts.assigned, [5, 3], "a row that came after them was assigned");
        // And its connection is not open.
        kept.ended = true;
        kept.resume(2000, Some("6.19".into()), 0, &[0; 2]);
        let gap = |from_unix_s, to_unix_s, ended, open: [u64; 2], cut_bytes, kernel: Option<&str>| Gap {
            from_unix_s,
            to_unix_s,
            ended,
            open: open.to_vec(),
            cut_bytes,
            kernel_before: kernel.map(str::to_string),
        };
        assert_eq!(
            kept.gaps,
            [gap(160, 1000, false, [1, 0], 17, None), gap(1000, 2000, true, [0, 0], 0, Some("6.18"))]
        );
    }
}
