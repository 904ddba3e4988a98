//! The table of all claims in Markdown: claimed figure, bound, measured value, verdict, reason.

use crate::claim::Judged;
use crate::experiment::{Experiment, Verdict};
use std::fmt::Write;

/// Escapes text for a table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// The table of all claims, preceded by the number of each verdict.
pub fn markdown(results: &[(&Experiment, Vec<Judged>)]) -> String {
    let mut out = String::from(
        "# Claims of five papers and measured values\n\nWritten by `slowstart reproduce --all --out docs/results` \
         (`make results`). Every measured figure comes from the simulator as `docs/method.md` describes it. The page of \
         each experiment states what it runs, which values the paper does not give, and which we chose. A claim *holds* \
         if the whole 95 % interval of the measured value lies within its bound, *differs* if the whole interval lies \
         outside, and is *undecided* otherwise. With another seed (`make seeds`) a verdict may become undecided or cease \
         to be, but none that holds becomes *differs*, and none that differs becomes *holds*. Claims in italics are ours: \
         the paper leaves the question to future work, or assumes the answer.\n\n",
    );
    let all = || results.iter().flat_map(|(_, j)| j);
    let verdicts = [Verdict::Holds, Verdict::Differs, Verdict::Undecided, Verdict::NotCheckable];
    let counts: Vec<String> = verdicts
        .iter()
        .map(|v| format!("{} {}", all().filter(|j| j.verdict == *v).count(), v.name()))
        .collect();
    let _ =
        writeln!(out, "{} experiments, {} claims: {}.\n", results.len(), all().count(), counts.join(", "));
    out.push_str("| Experiment | Claim | Claimed | Bound | Measured | Verdict | Reason |\n|---|---|---|---|---|---|---|\n");
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
                cell(&j.reason),
            );
        }
    }
    out
}
