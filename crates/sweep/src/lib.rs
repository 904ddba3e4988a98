//! Sweeps: startups over regions of paths, stacks, parameters and workloads, with results in a store that
//! survives; and captures by the thousand, replayed into such a store.
//!
//! - [`plan`]: the runs of a sweep, from TOML; each has a key, the hash of everything that decides its row
//! - [`store`]: what has been computed: Parquet parts, journals of what is being computed, a manifest
//! - [`run`]: computes what is missing
//! - [`captures`]: replays what is missing of many files
//! - [`query`]: filters, groups and summarises a store
//! - [`row`]: the row of a run, as JSON
//! - [`map`]: which startup is first where
//! - [`table`]: rows as Arrow columns and Parquet files

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod axes;
mod baseline;
pub mod captures;
pub mod map;
mod page;
mod pages;
pub mod part;
pub mod plan;
pub mod query;

mod region;
pub mod row;
pub mod run;
pub mod store;
pub mod table;
