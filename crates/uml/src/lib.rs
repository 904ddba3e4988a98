//! The real Linux kernel at virtual time, as an engine of studies.
//!
//! A kernel that is built as a program (User-Mode Linux) and started with `time-travel=inf-cpu` has a clock that stands while
//! anything runs and jumps to the next timer when nothing does. [`Linux`] starts one for each run. Its first process is this
//! program again ([`guest`]): it makes two network namespaces with a TUN device each, joins them by the elements of the
//! simulator's path, sends one transfer through the kernel's TCP, and reads the state of the sender after each
//! acknowledgement.

#![cfg(target_os = "linux")]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod engine;
mod error;
mod exits;
pub mod guest;
mod host;
mod kernel;
mod order;
mod outcome;
mod segments;

pub use engine::Linux;
pub use error::GuestError;
