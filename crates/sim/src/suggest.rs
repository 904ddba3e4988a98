//! "Did you mean": the known name nearest to one that is not known.

/// Least similarity (Jaro-Winkler) of a suggestion, the same that clap uses for arguments.
const SIMILAR: f64 = 0.7;
/// Similarity of names that are one edit or one swap of neighbours apart. Jaro-Winkler rates short ones too
/// low.
const ONE_EDIT: f64 = 0.95;

/// Returns ` (did you mean "search"?)` for the most similar of `names`, or nothing if none is similar.
pub fn did_you_mean(found: &str, names: &[&str]) -> String {
    let found = found.to_lowercase();
    let alike = |a: &str, b: &str| a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let score = |name: &str| {
        let name = name.to_lowercase();
        let similar = strsim::jaro_winkler(&found, &name);
        match strsim::osa_distance(&found, &name) {
            1 if name.len() > 2 => similar.max(ONE_EDIT),
            // More edits than half of what was written leave another word, unless they begin alike.
            edits if 2 * edits > found.len() && alike(&found, &name) < 3 => 0.0,
            _ => similar,
        }
    };
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
        assert_eq!(did_you_mean("goe", &["leo", "geo"]), " (did you mean \"geo\"?)");
        assert_eq!(did_you_mean("quux", &names), "");
        assert_eq!(did_you_mean("nope", &["stopeg"]), "");
        assert_eq!(did_you_mean("pace", &["ack", "pacing"]), " (did you mean \"pacing\"?)");
        assert_eq!(did_you_mean("", &names), "");
    }
}
