//! `slowstart list`: what there is.

use crate::output::print;
use anyhow::Result;
use clap::{Args, ValueEnum};
use slowstart::avoidance;
use slowstart::param::ParamValue;
use slowstart::registry;
use slowstart::startup;
use slowstart_lab::path::PathSpec;
use slowstart_lab::tcp::profile::Profile;

/// Lists startups, avoidances, paths and profiles.
///
/// Example: slowstart list startups
#[derive(Args)]
pub(crate) struct List {
    /// One kind only
    what: Option<What>,
    /// With the startups that cannot be built, and what is missing
    #[arg(long)]
    all: bool,
}

#[derive(Copy, Clone, PartialEq, ValueEnum)]
enum What {
    Startups,
    Avoidances,
    Paths,
    Profiles,
}

fn params(each: impl FnOnce(&mut dyn FnMut(&'static str, ParamValue))) -> String {
    let mut all = Vec::new();
    each(&mut |k, v| {
        all.push(match v {
            ParamValue::Number(n) => format!("{k}={n}"),
            ParamValue::Word(w) => format!("{k}={w}"),
        });
    });
    all.join(",")
}

/// One line of a list: a name, and what there is to say in a column of its own.
struct Rows {
    width: usize,
}

impl Rows {
    /// As wide as the longest of these names and two spaces.
    fn of<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        Self { width: 2 + names.map(str::len).max().unwrap_or(0) }
    }

    fn put(&self, name: &str, text: &str) -> Result<()> {
        print(&format!("  {name:<0$}{text}", self.width))
    }
}

impl List {
    pub(crate) fn main(&self) -> Result<()> {
        let wants = |w| self.what.is_none_or(|only| only == w);
        if wants(What::Startups) {
            print("startups")?;
            let rows = Rows::of(registry::all().map(|e| e.name));
            for e in registry::all() {
                rows.put(e.name, &format!("{} ({})", e.about, e.source))?;
                rows.put("", &params(|put| e.algorithm.each_param(put)))?;
            }
        }
        if wants(What::Startups) && self.all {
            print("Not implemented: the specification is incomplete.")?;
            let rows = Rows::of(startup::not_implemented::NOT_IMPLEMENTED.iter().map(|u| u.name));
            for u in startup::not_implemented::NOT_IMPLEMENTED {
                rows.put(u.name, &format!("{} ({})", u.about, u.source))?;
                rows.put("", &format!("missing: {}", u.missing))?;
            }
        }
        if wants(What::Avoidances) {
            print("avoidances")?;
            let rows = Rows::of(avoidance::REGISTRY.iter().map(|e| e.name));
            for e in avoidance::REGISTRY {
                rows.put(e.name, &format!("{} ({})", e.about, e.source))?;
                rows.put("", &params(|put| (e.make)().each_param(put)))?;
            }
        }
        if wants(What::Paths) {
            print("paths")?;
            let paths = PathSpec::builtins();
            let rows = Rows::of(paths.iter().map(|p| p.name));
            for p in paths {
                rows.put(p.name, &format!("{} ({})", p.about, p.sources.join("; ")))?;
            }
        }
        if wants(What::Profiles) {
            print("profiles")?;
            let rows = Rows::of(Profile::ALL.iter().map(|p| p.name));
            for p in Profile::ALL {
                rows.put(p.name, &format!("mss {} B, initial window {}, {}", p.mss, p.iw, p.about))?;
            }
            print("  knobs, for --set")?;
            for (key, expected) in Profile::KEYS {
                print(&format!("    {key:<18}{expected}"))?;
            }
        }
        Ok(())
    }
}
