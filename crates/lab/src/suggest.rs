//! "Did you mean": the known name nearest to one that is not known.

/// Least similarity (Jaro-Winkler) of a suggestion, the same that clap uses for arguments.
const SIMILAR: f64 = 0.7;

/// Returns ` (did you mean "search"?)` for the most similar of `names`, or nothing if none is similar.
pub(crate) fn did_you_mean(found: &str, names: &[&str]) -> String {
    let score = |name: &str| strsim::jaro_winkler(&found.to_lowercase(), &name.to_lowercase());
    let best = names.iter().map(|n| (score(n), n)).filter(|(s, _)| *s > SIMILAR);
    best.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(String::new(), |(_, n)| format!(" (did you mean {n:?}?)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested() {
        let names = ["standard", "search", "hystart", "hystart++"];
        assert_eq!(did_you_mean("serch", &names), " (did you mean \"search\"?)");
        assert_eq!(did_you_mean("Hystart", &names), " (did you mean \"hystart\"?)");
        assert_eq!(did_you_mean("quux", &names), "");
        assert_eq!(did_you_mean("", &names), "");
    }
}
