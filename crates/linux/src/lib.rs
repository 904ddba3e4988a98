//! The startups of `slowstart` as congestion controls of the running Linux kernel: eBPF objects that use the
//! kernel's own CUBIC and Reno after startup (`bbr3` and `bbr2-quiche` are complete in themselves), and
//! functions that load, list, select and remove them; and an emulator that runs the simulator's paths on the
//! real clock.
//!
//! The objects are C, in `bpf/`, one per algorithm, and GPL-2.0, which the kernel requires;
//! `docs/guide/kernel.md` is the user guide. Everything here needs Linux 6.1 or newer with BTF, and
//! returns an error that says so where it is missing.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod attach;
mod bpf_log;
mod bulk;
mod bulk_flow;
mod check;
mod clock;
mod control_events;
mod default;
pub mod emulate;
mod engine;
mod error;
mod exits;
mod facts;
mod flows;
mod list;
mod load;
mod lock;
mod memory;
mod open;
mod others;
mod pins;
mod places;
mod privileges;
mod select;
mod study;
mod table;
mod trial;

pub use bulk_flow::Beside;
pub use check::{Check, Finding, Verb, Verdict};
pub use control_events::{ControlEvents, watch_controls};
pub use default::{
    DefaultChange, DefaultRecord, Owner, RestoreOutcome, RestoredDefault, check_default_is_free,
    list_defaults, restore_default, restore_stale_defaults, set_default,
};
pub use engine::Kernel;
pub use error::KernelError;
pub use facts::{Counts, ExitReason, Facts, Kind};
pub use flows::{Flow, RecordKind, Watch};
pub use list::{Running, list};
pub use load::{Held, Spec, Unloaded, load, load_as, load_pinned, unload};
pub use memory::{Memory, MemoryConfig, MemoryEntry, MemoryScope, memories};
pub use others::OtherProgram;
pub use privileges::{Capability, drop_privileges};
pub use select::{PinnedSelection, Selection, SelectionState, list_selections, select, unselect};
pub use slowstart_trial::TrialCounts;
pub use study::KERNEL_CONTROLS;
pub use table::{Control, TABLE};
pub use trial::{RunningTrial, TrialReader, TrialRecord, TrialSpec};

/// The folder of the build with the objects for bpftool, each with default parameters and CUBIC.
pub const STOCK_OBJECTS: &str = env!("SLOWSTART_STOCK");
