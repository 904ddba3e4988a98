//! Whether the commands of `slowstart kernel` that a test needs work on this kernel.

use slowstart_linux::{Check, Verb, Verdict};
use std::collections::BTreeSet;
use std::sync::LazyLock;

static CHECK: LazyLock<Check> = LazyLock::new(Check::tried);

/// True if these commands work here; otherwise prints the kernel's reasons, one a line.
pub(crate) fn works(needs: &[Verb]) -> bool {
    let reasons = needs.iter().flat_map(|verb| match CHECK.verdict(*verb) {
        Verdict::Fails(why) => why,
        _ => Vec::new(),
    });
    let reasons: BTreeSet<String> = reasons.collect();
    for reason in &reasons {
        println!("skipped: kernel tests that need {reason}");
    }
    reasons.is_empty()
}
