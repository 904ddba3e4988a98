//! The tests of the command that need no clock of their own: one program, since each links the command's crates anew. Those
//! of the running kernel and of the emulator are programs beside it.

#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]

mod common;
#[path = "../conform/mod.rs"]
mod conform;

mod advise;
#[cfg(unix)]
mod attacks;
mod board;
mod book;
#[cfg(feature = "sweep")]
mod cluster;
mod command;
mod documents;
mod draft;
mod fit;
mod gates;
#[cfg(target_os = "linux")]
mod linux;
mod picture;
mod plugin;
mod pool;
#[cfg(feature = "quic")]
mod quic;
mod replay;
#[cfg(feature = "sweep")]
mod replay_store;
#[cfg(unix)]
mod results;
mod rows;
#[cfg(feature = "sweep")]
mod sweep;
mod terminal;
