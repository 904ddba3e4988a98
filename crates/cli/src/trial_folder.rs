//! The folder of a trial: a row for each connection, the result as JSON, the page, and what it needs to go on
//! there after a restart.

use crate::folder::{claim, lock, write_whole};
use crate::replay::warn;
use crate::trial_output::unix_s;
use anyhow::{Context, Result, bail};
use slowstart_files::{Lock, MOST_TEXT, read_from};
use slowstart_linux::ExitReason;
use slowstart_report::trial;
use slowstart_trial::kept::{Fixed, Kept, read_rows};
use slowstart_trial::{ConnectionRow, Outcome, Plan, Statistics, TrialResult};
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The folder, locked against other processes.
pub(crate) struct TrialFolder {
    dir: PathBuf,
    /// Its first `len` bytes are whole rows.
    rows: File,
    len: u64,
    /// Rows that could not be written, and why the first of them could not.
    missing: u64,
    failed: Option<anyhow::Error>,
    _lock: Option<Lock>,
}

/// The file of the rows.
const ROWS: &str = "connections.jsonl";
/// The file of what the trial needs to go on.
const KEPT: &str = "trial.json";
/// The file of the salt of clients' prefixes.
const SALT: &str = "prefix-salt";

/// Returns the text of a file of the folder; `None` if it is missing.
fn text_of(file: &Path) -> Result<Option<Vec<u8>>> {
    match slowstart_files::open(file).and_then(|f| read_from(f, MOST_TEXT)) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e).with_context(|| format!("--out: {}", file.display())),
    }
}

/// Returns what the trial of this folder keeps; `None` if there is no trial.
pub(crate) fn kept(dir: &Path) -> Result<Option<Kept>> {
    let file = dir.join(KEPT);
    let Some(text) = text_of(&file)? else { return Ok(None) };
    let kept = Kept::parse(&String::from_utf8_lossy(&text));
    kept.map(Some).with_context(|| format!("--out: {}", file.display()))
}

impl TrialFolder {
    /// Makes the folder for a trial that begins, and returns its state. One that holds anything else, rows of
    /// another trial too, is an error.
    pub(crate) fn create(dir: &Path, kept: &Kept) -> Result<Self> {
        claim(dir)?;
        let lock = lock(dir)?;
        let file = dir.join(ROWS);
        let rows = slowstart_files::append(&file).with_context(|| format!("--out: {}", file.display()))?;
        if rows.metadata().context("--out")?.len() > 0 {
            bail!(
                "--out {}: the folder holds rows of a trial and no {KEPT}, so it cannot go on there; choose another \
                 folder",
                dir.display()
            );
        }
        let folder = Self { dir: dir.to_path_buf(), rows, len: 0, missing: 0, failed: None, _lock: lock };
        folder.keep(kept)?;
        Ok(folder)
    }

    /// Opens the folder of a trial that goes on, if it has this plan, and calls `each` with each connection of
    /// before and whether it is of the A/A phase. `kept` becomes the state with the gap. Rows whose write was cut
    /// are removed.
    pub(crate) fn resume(
        dir: &Path,
        kept: &mut Kept,
        (fixed, plan): (&Fixed, &Plan),
        (now_unix_s, kernel): (u64, Option<String>),
        mut each: impl FnMut(Outcome, bool),
    ) -> Result<Self> {
        let shown = || format!("--out {}", dir.display());
        kept.goes_on_as(fixed).with_context(shown)?;
        let lock = lock(dir)?;
        let file = dir.join(ROWS);
        let named = || format!("--out: {}", file.display());
        let rows = slowstart_files::append(&file).with_context(named)?;
        let reasons: Vec<&'static str> = ExitReason::ALL.iter().map(|r| r.name()).collect();
        let mut rows_of = vec![0; plan.arms().len()];
        let counted = |outcome: Outcome, of_a_a: bool| {
            rows_of[outcome.arm] += u64::from(!of_a_a);
            each(outcome, of_a_a);
        };
        let read = read_rows(BufReader::new(&rows), plan, &reasons, counted).with_context(named)?;
        let found = read.with_context(named)?;
        rows.set_len(found.whole_bytes).with_context(named)?;
        kept.resume(now_unix_s, kernel, found.cut_bytes, &rows_of);
        let (missing, len) = (kept.rows_missing, found.whole_bytes);
        let folder = Self { dir: dir.to_path_buf(), rows, len, missing, failed: None, _lock: lock };
        folder.keep(kept)?;
        Ok(folder)
    }

    /// Returns the salt of clients' prefixes that an earlier start used; `None` if it kept none.
    pub(crate) fn salt(&self) -> Result<Option<[u8; 32]>> {
        let file = self.dir.join(SALT);
        let Some(bytes) = text_of(&file)? else { return Ok(None) };
        let found = bytes.len();
        let salt = bytes.try_into().ok();
        salt.map(Some).with_context(|| format!("--out: {}: found {found} bytes, expected 32", file.display()))
    }

    /// Keeps the salt of clients' prefixes, for its owner only.
    pub(crate) fn keep_salt(&self, salt: &[u8; 32]) -> Result<()> {
        let file = self.dir.join(SALT);
        let write = || -> io::Result<()> {
            let mut out = slowstart_files::create_new(&file)?;
            out.set_permissions(std::fs::Permissions::from_mode(0o600))?;
            out.write_all(salt)?;
            out.sync_all()
        };
        write().with_context(|| format!("--out: {}", file.display()))
    }

    /// Replaces what the trial needs to go on. Rows that were written before are on the disk then.
    pub(crate) fn keep(&self, kept: &Kept) -> Result<()> {
        self.rows.sync_data().with_context(|| format!("--out: write {ROWS}"))?;
        if kept.over {
            // Nothing goes on, so nobody needs it.
            let _ = std::fs::remove_file(self.dir.join(SALT));
        }
        write_whole(&self.dir, KEPT, |out| {
            serde_json::to_writer_pretty(&mut *out, kept)?;
            Ok(out.write_all(b"\n")?)
        })
        .context("--out")
    }

    /// The number of rows that could not be written.
    pub(crate) const fn rows_missing(&self) -> u64 {
        self.missing
    }

    /// Writes a row. If it cannot be written whole, none of it stays, and the first time that is said at
    /// once.
    pub(crate) fn write(&mut self, plan: &Plan, outcome: &Outcome, a_a: bool, closed: bool) {
        if let Err(e) = self.put(plan, outcome, a_a, closed) {
            self.missing += 1;
            if self.failed.is_none() {
                warn(&format!(
                    "--out {}: {e:#}; the trial goes on, without rows until there is room",
                    self.dir.display()
                ));
                self.failed = Some(e);
            }
        }
    }

    fn put(&mut self, plan: &Plan, outcome: &Outcome, a_a: bool, closed: bool) -> Result<()> {
        let row = ConnectionRow::new(&plan.arms()[outcome.arm].name, outcome, unix_s(), a_a, closed);
        let line = serde_json::to_string(&row)? + "\n";
        if let Err(e) = self.rows.write_all(line.as_bytes()) {
            let _ = self.rows.set_len(self.len);
            return Err(e).with_context(|| format!("write {ROWS}"));
        }
        self.len += line.len() as u64;
        Ok(())
    }

    /// Replaces what the fleet is told.
    pub(crate) fn put_statistics(&self, statistics: &Statistics) -> Result<()> {
        write_whole(&self.dir, "statistics.json", |out| {
            serde_json::to_writer(&mut *out, statistics)?;
            Ok(out.write_all(b"\n")?)
        })
        .context("--out")
    }

    /// Writes result, page and state. Fails if that, or a row before, could not be written.
    pub(crate) fn finish(self, result: &TrialResult<'_>, kept: &Kept) -> Result<()> {
        let result = TrialResult { rows_missing: Some(self.missing), ..result.clone() };
        let put = |name: &str, text: String| {
            write_whole(&self.dir, name, |out| Ok(out.write_all(text.as_bytes())?)).context("--out")
        };
        let written = put("result.json", serde_json::to_string_pretty(&result)? + "\n");
        let page = trial::html(result.analysis, result.server, result.gaps, &crate::output::command());
        put("report.html", page).and(written).and(self.keep(kept))?;
        match self.failed {
            Some(e) => Err(e.context(format!(
                "--out: {} rows are missing; the result counts every connection",
                self.missing
            ))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]
mod tests {
    use super::*;
    use slowstart_trial::statistics::PlannedTrial;
    use slowstart_trial::{Arm, Measure, Stratify};
    use std::fs;

    fn plan() -> Plan {
        let arms = ["cubic:50%", "reno:50%"].map(|a| Arm::parse(a).expect("an arm")).to_vec();
        Plan::new(arms, 7).expect("a plan")
    }

    fn fixed(measure: Measure) -> Fixed {
        let plan = PlannedTrial::new(&plan(), measure, Vec::new(), false, true);
        Fixed::new("/sys/fs/cgroup/a", plan, Stratify::default(), None, 7)
    }

    fn outcome(arm: usize) -> Outcome {
        Outcome {
            arm,
            unit: 1,
            prefix: 2,
            handshake_rtt_s: None,
            milestones_s: [None; 3],
            last_s: Some(1.0),
            delivered_bytes: 1,
            sent_bytes: 1,
            retransmitted_bytes: 0,
            rtt_mean: None,
            rtt_peak: None,
            app_limited: None,
            exit: None,
        }
    }

    /// A program that is killed as it writes a row, and started again.
    #[test]
    fn a_trial_goes_on_in_its_folder_with_the_rows_that_are_whole() {
        let dir = std::env::temp_dir().join(format!("slowstart-trial-folder-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        assert_eq!(kept(&dir).expect("nothing there"), None);
        let begun = Kept::new(fixed(Measure::TimeLast), "run".into(), 100, None);
        let mut folder = TrialFolder::create(&dir, &begun).expect("writable");
        folder.keep_salt(&[9; 32]).expect("writable");
        for arm in [0, 1, 1] {
            folder.write(&plan(), &outcome(arm), false, true);
        }
        let busy = TrialFolder::resume(
            &dir,
            &mut begun.clone(),
            (&fixed(Measure::TimeLast), &plan()),
            (200, None),
            |_, _| (),
        );
        assert!(format!("{:#}", busy.err().expect("held")).contains("another slowstart is writing there"));
        drop(folder);
        let rows = dir.join(ROWS);
        let whole = fs::read(&rows).expect("written");
        fs::write(&rows, [&whole[..], b"{\"arm\":\"cu"].concat()).expect("writable");

        let mut state = kept(&dir).expect("whole").expect("there");
        let mut arms = Vec::new();
        let mut resume = |fixed: &Fixed, state: &mut Kept| {
            TrialFolder::resume(&dir, state, (fixed, &plan()), (200, None), |o, _| arms.push(o.arm))
        };
        let other =
            format!("{:#}", resume(&fixed(Measure::Retrans), &mut state).err().expect("another plan"));
        assert!(other.contains("measure: there time-last, now retrans"), "{other}");
        assert_eq!(fs::read(&rows).expect("there").len(), whole.len() + 10, "an error changes nothing");
        let mut folder = resume(&fixed(Measure::TimeLast), &mut state).expect("the same plan");
        assert_eq!((state.gaps.len(), state.gaps[0].cut_bytes, arms), (1, 10, vec![0, 1, 1]));
        assert_eq!(state.counts.assigned, [1, 2], "they were not kept before it was killed");
        assert_eq!(folder.salt().expect("readable"), Some([9; 32]));
        folder.write(&plan(), &outcome(0), false, true);
        let text = fs::read_to_string(&rows).expect("text");
        assert!(text.as_bytes().starts_with(&whole) && text.lines().count() == 4 && text.ends_with('\n'));
        let mode = fs::metadata(dir.join(SALT)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        state.over = true;
        folder.keep(&state).expect("writable");
        assert!(!dir.join(SALT).exists(), "a trial that is over needs no salt");
        drop(folder);
        // A folder of a version that kept no state.
        fs::remove_file(dir.join(KEPT)).expect("there");
        let old = TrialFolder::create(&dir, &begun).err().expect("refused");
        assert!(format!("{old:#}").contains("holds rows of a trial and no trial.json"), "{old:#}");
        fs::remove_dir_all(&dir).expect("there");
    }
}
