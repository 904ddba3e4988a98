//! The experiments of the five papers: what each says, what we measure, and whether that holds.
//!
//! The rooms, each leaning only on those above it:
//!
//! - [`experiment`]: an experiment as its file has it, checked
//! - [`formula`]: claims that are arithmetic
//! - [`spectrum`]: the period of a round-trip time (SEARCH thesis 4.5.1)
//! - [`bins`]: SEARCH's difference with any number of bins (thesis 4.2)
//! - [`background`]: flows that come and go behind those studied
//! - [`run`]: an experiment's runs, and startups that look on
//! - [`measure`]: what a claim looks at in a run
//! - [`claim`]: a claim against what was measured
//! - [`figure`]: what is drawn of runs
//! - [`page`]: a page an experiment
//! - [`closing`]: the table at the end

pub mod background;
pub mod bins;
pub mod claim;
pub mod closing;
pub mod experiment;
pub mod figure;
pub mod formula;
pub mod measure;
pub mod page;
pub mod run;
pub mod spectrum;
pub mod web;
