//! Errors of arguments, in the words of all other errors: where, what was found, what was expected.

use crate::output::tell;
use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use slowstart_sim::suggest::did_you_mean;
use std::process::exit;

/// Lists that a reader of an error may want: how its text begins, and what `slowstart list` calls the list.
const LISTS: [(&str, &str); 6] = [
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

/// Where the names are that an error asks for, as a sentence that begins with a space; empty if it asks for none.
pub(crate) fn list_of(error: &str) -> String {
    let list = LISTS.iter().find(|(begin, _)| error.contains(begin) && error.contains("one of"));
    list.map_or(String::new(), |(_, list)| format!("; `slowstart list {list}` says what each is"))
}
