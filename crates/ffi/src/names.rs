//! Startups and avoidances by name.

use slowstart::avoidance::{self, AnyAvoidance};
use slowstart::param::ParamError;
use slowstart::registry::{self, Algorithm};

/// A name with parameters, as in `search:threshold=0.3,drain=off`.
fn parsed(text: &str) -> (&str, Vec<(&str, &str)>) {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let pairs = rest.split(',').filter(|p| !p.is_empty()).map(|p| p.split_once('=').unwrap_or((p, "")));
    (name, pairs.collect())
}

/// What was found and what was expected; what cannot be printed becomes `?`.
fn refused(of: &str, found: &str, expected: &str) -> String {
    let found: String = found.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    format!("{of}: found \"{found}\", expected {expected}")
}

fn refused_parameter(of: &str, name: &str, (key, value): (&str, &str), why: ParamError) -> String {
    match why {
        ParamError::Unknown([]) => refused(of, key, &format!("no parameter: {name} has none")),
        ParamError::Unknown(known) => {
            refused(of, key, &format!("a parameter of {name}: {}", known.join(", ")))
        }
        ParamError::Value(expected) => refused(&format!("{of}: {name}: {key}"), value, expected),
    }
}

pub(crate) fn algorithm(text: &str) -> Result<Algorithm, String> {
    let (name, params) = parsed(text);
    let mut a = registry::named(name)
        .ok_or_else(|| refused("startup", name, "a name that slowstart_startup lists, such as search"))?;
    for param in params {
        a.algorithm.set(param.0, param.1).map_err(|why| refused_parameter("startup", name, param, why))?;
    }
    Ok(a.algorithm)
}

pub(crate) fn avoidance(text: &str) -> Result<AnyAvoidance, String> {
    let (name, params) = parsed(text);
    let known = avoidance::REGISTRY.iter().find(|e| e.name == name);
    let mut a = (known
        .ok_or_else(|| {
            let names: Vec<&str> = avoidance::REGISTRY.iter().map(|e| e.name).collect();
            refused("avoidance", name, &format!("one of {}", names.join(", ")))
        })?
        .make)();
    for param in params {
        a.set(param.0, param.1).map_err(|why| refused_parameter("avoidance", name, param, why))?;
    }
    Ok(a)
}
