//! The table at the end: every claim, what was claimed, what was measured, and what that means.

use crate::claim::Judged;
use crate::experiment::{Experiment, Verdict};
use std::fmt::Write;

/// What is no table when it stands in one.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// The table in Markdown, with how many of each verdict there are.
pub fn markdown(results: &[(&Experiment, Vec<Judged>)]) -> String {
    let mut out = String::from(
        "# The claims of five papers, and what we measure\n\nWritten by `slowstart reproduce --all --out docs/results` \
         (`make results`); every figure comes from the simulator as `docs/method.md` describes it. Each experiment has a \
         page with what it does, what the paper leaves open and what we took for it. A claim *holds* where the whole \
         95 % interval of what we measure lies within its bound, *differs* where it lies outside, and is *undecided* \
         where it straddles it. With another seed (`make seeds`) an interval may come to straddle its bound, or cease to, but \
         no claim that holds then differs, or back. Claims in italics are ours, where a paper leaves something to future work.\n\n",
    );
    let all = || results.iter().flat_map(|(_, j)| j);
    let verdicts = [Verdict::Holds, Verdict::Differs, Verdict::Undecided, Verdict::NotCheckable];
    let counts: Vec<String> = verdicts
        .iter()
        .map(|v| format!("{} {}", all().filter(|j| j.verdict == *v).count(), v.name()))
        .collect();
    let _ =
        writeln!(out, "{} experiments, {} claims: {}.\n", results.len(), all().count(), counts.join(", "));
    out.push_str("| Experiment | Claim | Claimed | Counts as holding | Measured | Verdict | Why |\n|---|---|---|---|---|---|---|\n");
    for (e, judged) in results {
        for j in judged {
            let says = cell(&j.claim.says);
            let says = if j.claim.ours { format!("*{says}*") } else { says };
            let _ = writeln!(
                out,
                "| [{}]({}.html) ({}) | {says} | {} | {} | {} | **{}** | {} |",
                e.id,
                e.id.replace('/', "-"),
                cell(&e.covers.join(", ")),
                cell(&j.claim.claimed),
                j.bound_text(),
                cell(&j.measured_text()),
                j.verdict.name(),
                cell(&j.claim.why),
            );
        }
    }
    out
}
