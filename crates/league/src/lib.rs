//! The league: every startup over the same populations of paths, measured against an oracle that knows each
//! path.
//!
//! - [`browser`]: connections of a browser, for hosts that are limited by their application
//! - [`population`]: the populations, and the cases that a seed draws from each
//! - [`path`]: the laws of the random paths
//! - [`oracle`]: the time that no sender can beat
//! - [`mod@reference`]: senders that know the path and obey rules, to which startups are compared by class
//! - [`game`]: one startup on one case, and its row
//! - [`score`]: the measures of a startup over many cases, and their intervals
//! - [`against`]: differences to the rows of an earlier league, case by case
//! - [`rank`]: startups against a baseline, case by case, and their ranks
//! - [`twins`]: the same cases on two engines
//! - [`verdict`]: the league in a few sentences
//! - [`sheet`], [`page`]: the scores as tables of text, and as a page
//!
//! Nothing here reads a clock, a file or the environment: the same seed gives the same rows.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod against;
pub mod browser;
pub mod game;
pub mod oracle;
pub mod page;
pub mod path;
pub mod population;
pub mod rank;
pub mod reference;
pub mod score;
pub mod sheet;
pub mod twins;
pub mod verdict;
