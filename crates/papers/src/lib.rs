//! The experiments of five papers, and numbers that other projects published: what each claims, what is
//! measured here, and the verdict.
//!
//! Modules, each of which depends only on those above it:
//!
//! - [`formula`]: claims that are arithmetic
//! - [`spectrum`]: the period of a round-trip time (SEARCH thesis, section 4.5.1)
//! - [`bins`]: SEARCH's difference with any number of bins (thesis, section 4.2)
//! - [`background`]: background flows
//! - [`web`]: web clients behind one bottleneck
//! - [`result`]: the recorded result of a run
//! - [`measure`]: quantities computed from a result
//! - [`statistic`]: statistics over runs, with intervals
//! - [`claim`]: a claim as the file defines it
//! - [`catalogue`]: the files of the built-in experiments
//! - [`experiment`]: an experiment as its file defines it
//! - [`run`]: runs an experiment
//! - [`judge`]: compares claims with measured values
//! - [`record`]: a judged claim as it is kept
//! - [`figure`] and [`web_figures`]: charts
//! - [`page`]: the HTML page of an experiment
//! - `joint`: claims judged together
//! - `drawn`: figures and tables of the papers, drawn again
//! - [`summary`]: the table of all claims, and their list
//! - [`screen`]: the page of each paper, and the index of all claims

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod background;
pub mod bins;
pub mod catalogue;
pub mod claim;
mod drawn;
pub mod experiment;
pub mod figure;
pub mod formula;
mod joint;
pub mod judge;
pub mod measure;
pub mod page;
pub mod record;
pub mod result;
pub mod run;
pub mod screen;
pub mod spectrum;
pub mod statistic;
pub mod summary;
pub mod web;
pub mod web_figures;
