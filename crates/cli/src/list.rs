//! `slowstart list`: what there is.

use crate::output::print;
use anyhow::Result;
use clap::{Args, ValueEnum};
use slowstart::avoidance;
use slowstart::param::Shown;
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

fn params(each: impl FnOnce(&mut dyn FnMut(&'static str, Shown))) -> String {
    let mut all = Vec::new();
    each(&mut |k, v| {
        all.push(match v {
            Shown::Number(n) => format!("{k}={n}"),
            Shown::Word(w) => format!("{k}={w}"),
        });
    });
    all.join(",")
}

impl List {
    pub(crate) fn main(&self) -> Result<()> {
        let wants = |w| self.what.is_none_or(|only| only == w);
        if wants(What::Startups) {
            print("startups")?;
            for e in registry::all() {
                print(&format!("  {:<14}{} ({})", e.name, e.about, e.source))?;
                print(&format!("  {:<14}{}", "", params(|put| e.algorithm.each_param(put))))?;
            }
        }
        if wants(What::Startups) && self.all {
            print("not built: a fact is missing")?;
            for u in startup::unbuilt::UNBUILT {
                print(&format!("  {:<14}{} ({})", u.name, u.about, u.source))?;
                print(&format!("  {:<14}missing: {}", "", u.missing))?;
            }
        }
        if wants(What::Avoidances) {
            print("avoidances")?;
            for e in avoidance::REGISTRY {
                print(&format!("  {:<14}{} ({})", e.name, e.about, e.source))?;
                print(&format!("  {:<14}{}", "", params(|put| (e.make)().each_param(put))))?;
            }
        }
        if wants(What::Paths) {
            print("paths")?;
            for p in PathSpec::builtins() {
                print(&format!("  {:<14}{} ({})", p.name, p.about, p.sources.join("; ")))?;
            }
        }
        if wants(What::Profiles) {
            print("profiles")?;
            for p in Profile::ALL {
                print(&format!("  {:<14}mss {} B, initial window {}, {}", p.name, p.mss, p.iw, p.about))?;
            }
            print("  knobs, for --set")?;
            for (key, expected) in Profile::KEYS {
                print(&format!("    {key:<18}{expected}"))?;
            }
        }
        Ok(())
    }
}
