//! Errors of arguments, in the words of all other errors: where, what was found, what was expected.

use crate::output::tell;
use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use slowstart_sim::suggest::did_you_mean;
use std::process::exit;

/// Lists that a reader of an error may want: what its text has, and what `slowstart list` calls the list.
const LISTS: [(&str, &str); 7] = [
    ("expected a knob", "knobs"),
    ("path: found unknown key", "path-keys"),
    ("path: found", "paths"),
    ("startup: found", "startups"),
    ("avoidance: found", "avoidances"),
    ("profile: found", "profiles"),
    ("engine: found", "engines"),
];

/// The arguments of this process. Ends it after help, and with status 2 if they are wrong.
pub(crate) fn arguments<A: Parser>() -> A {
    A::try_parse().unwrap_or_else(|e| {
        match e.kind() {
            ErrorKind::InvalidValue => match choice(&e) {
                Some(text) => tell(&text),
                None => e.exit(),
            },
            ErrorKind::ValueValidation => match refused(&e) {
                Some(text) => tell(&text),
                None => e.exit(),
            },
            _ => e.exit(),
        }
        exit(2)
    })
}

fn text(e: &clap::Error, kind: ContextKind) -> Option<&str> {
    match e.get(kind)? {
        ContextValue::String(text) => Some(text),
        _ => None,
    }
}

/// A value that is none of those that there are.
fn choice(e: &clap::Error) -> Option<String> {
    let (argument, found) = (text(e, ContextKind::InvalidArg)?, text(e, ContextKind::InvalidValue)?);
    let Some(ContextValue::Strings(all)) = e.get(ContextKind::ValidValue) else { return None };
    let names: Vec<&str> = all.iter().map(String::as_str).collect();
    let near = did_you_mean(found, &names);
    (!found.is_empty())
        .then(|| format!("{argument}: found {found:?}{near}, expected one of {}", names.join(", ")))
}

/// A value that its parser refuses, with the parser's reason.
fn refused(e: &clap::Error) -> Option<String> {
    let (argument, found) = (text(e, ContextKind::InvalidArg)?, text(e, ContextKind::InvalidValue)?);
    let why = std::error::Error::source(e)?;
    Some(format!("{argument}: found {found:?}: {why}"))
}

/// Most names that an error repeats; of more it says where the list is.
const MOST_NAMES: usize = 10;
/// What an error has before such names.
const ONE_OF: &str = "one of ";

/// An error as it is shown: where it asks for one of many names, it says which list has them. The parameters of a startup
/// are in none of one line each.
pub(crate) fn shown(error: &str) -> String {
    if error.contains("expected a parameter of ") {
        return error.to_string();
    }
    let asks = |begin: &str| error.contains(begin);
    let Some((_, list)) = LISTS.iter().find(|(begin, _)| asks(begin)) else { return error.to_string() };
    let Some((before, names)) = error.split_once(ONE_OF) else { return error.to_string() };
    let count = names.split(", ").take_while(|name| !name.contains(' ')).count();
    if count <= MOST_NAMES {
        return format!("{error}; `slowstart list {list}` says what each is");
    }
    let rest: String = names.split(", ").skip(count).flat_map(|what| [", ", what]).collect();
    format!("{before}{ONE_OF}those that `slowstart list {list}` shows{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_are_where_the_list_is() {
        let names = (0..11).map(|n| format!("n{n}")).collect::<Vec<_>>().join(", ");
        for (error, says) in [
            (
                format!("startup: found \"x\", expected a startup: one of {names}"),
                "startup: found \"x\", expected a startup: one of those that `slowstart list startups` shows",
            ),
            (
                format!("path: found \"x\", expected one of {names}, a file such as my.toml, or keys"),
                "path: found \"x\", expected one of those that `slowstart list paths` shows, a file such as my.toml, or keys",
            ),
            (
                format!("startup: found \"x\", expected a knob: one of {names}"),
                "startup: found \"x\", expected a knob: one of those that `slowstart list knobs` shows",
            ),
            (
                "engine: found \"x\", expected one of sim, kernel".into(),
                "engine: found \"x\", expected one of sim, kernel; `slowstart list engines` says what each is",
            ),
            (
                "startup: found \"x\", expected a parameter of search: one of a, b".into(),
                "startup: found \"x\", expected a parameter of search: one of a, b",
            ),
            ("startup: found nothing".into(), "startup: found nothing"),
        ] {
            assert_eq!(shown(&error), says);
        }
    }
}
