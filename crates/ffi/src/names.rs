//! Startups and avoidances by name.

use slowstart::avoidance::{self, AnyAvoidance};
use slowstart::registry::{self, Algorithm};

/// A name with parameters, as in `search:threshold=0.3,drain=off`.
fn parsed(text: &str) -> (&str, Vec<(&str, &str)>) {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let pairs = rest.split(',').filter(|p| !p.is_empty()).map(|p| p.split_once('=').unwrap_or((p, "")));
    (name, pairs.collect())
}

pub(crate) fn algorithm(text: &str) -> Result<Algorithm, String> {
    let (name, params) = parsed(text);
    let mut a = registry::named(name)
        .ok_or_else(|| format!("startup: found {name:?}, expected a name of slowstart_startup"))?;
    for (key, value) in params {
        a.algorithm.set(key, value).map_err(|why| format!("startup: {name}:{key}={value}: {why:?}"))?;
    }
    Ok(a.algorithm)
}

pub(crate) fn avoidance(text: &str) -> Result<AnyAvoidance, String> {
    let (name, params) = parsed(text);
    let known = avoidance::REGISTRY.iter().find(|e| e.name == name);
    let mut a = (known
        .ok_or_else(|| format!("avoidance: found {name:?}, expected one such as cubic or reno"))?
        .make)();
    for (key, value) in params {
        a.set(key, value).map_err(|why| format!("avoidance: {name}:{key}={value}: {why:?}"))?;
    }
    Ok(a)
}
