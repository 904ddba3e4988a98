//! The startups of `slowstart` as congestion controls of the running Linux kernel: eBPF objects around the kernel's own
//! CUBIC and Reno, and what loads, lists, selects and removes them.
//!
//! The objects are C, in `bpf/`, one for each algorithm, and GPL-2.0, as the kernel demands; `docs/kernel.md` is the
//! guide for who uses them. Everything here needs Linux 6.1 or newer with BTF, and says so where it is missing.

mod bpf_log;
mod check;
mod clock;
pub mod emulate;
mod error;
mod facts;
mod flows;
mod load;
mod open;
mod privileges;
mod select;
mod study;
mod table;

pub use check::{Check, Finding};
pub use error::KernelError;
pub use facts::{Counts, ExitReason, Facts, Kind};
pub use flows::{Flow, RecordKind, Watch};
pub use load::{
    ControlEvents, Held, Running, Spec, list, load, load_as, load_pinned, unload, watch_controls,
};
pub use privileges::drop_privileges;
pub use select::{Selection, select, unselect};
pub use study::{KERNEL_CONTROLS, LoadedControl, run_transfer};
/// Where the build left the objects for bpftool: one flavour, default parameters, CUBIC.
pub const STOCK_OBJECTS: &str = env!("SLOWSTART_STOCK");

pub use table::{Control, TABLE};
