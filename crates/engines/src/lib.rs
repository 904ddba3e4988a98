//! The list of engines, by name. A program that runs studies takes its engines from here, each by one entry
//! of [`ENGINES`].

#![warn(clippy::print_stdout, clippy::print_stderr)]

use slowstart_sim::suggest::did_you_mean;
use slowstart_study::engines::{Engine, EngineError};
use slowstart_study::scenario::StudyText;
use slowstart_study::simulator::Simulator;
use std::fmt;

/// Makes an engine from the settings after its name, which may be empty.
type Make = fn(settings: &str) -> Result<Box<dyn Engine>, EngineError>;

/// An engine that a user can name.
pub struct Entry {
    /// Its name, such as `quic:quinn`.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// How to make it, or why this program cannot.
    make: Result<Make, &'static str>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Entry {
    /// Why this program has no such engine; `None` if it has.
    pub fn absence(&self) -> Option<&'static str> {
        self.make.err()
    }
}

/// The function, where the feature is built, or how to get a build with it.
macro_rules! built {
    ($feature:literal, $make:expr, $without:literal) => {{
        #[cfg(feature = $feature)]
        let make: Result<Make, &'static str> = Ok($make);
        #[cfg(not(feature = $feature))]
        let make: Result<Make, &'static str> = Err($without);
        make
    }};
}

/// What QUIC needs.
macro_rules! quic {
    ($which:ident) => {
        built!(
            "quic",
            |settings| Ok(Box::new(slowstart_quic_sim::Quic::new(
                slowstart_quic_sim::Which::$which,
                settings
            )?)),
            "built without QUIC; build with `cargo build --release -p slowstart-cli --features quic`"
        )
    };
}

/// An engine that takes no settings.
fn without_settings<E: Engine + 'static>(engine: E, settings: &str) -> Result<Box<dyn Engine>, EngineError> {
    if settings.is_empty() {
        return Ok(Box::new(engine));
    }
    let why = format!("found {settings:?} after {}, expected nothing: it has no settings", engine.name());
    Err(EngineError::Name(why))
}

/// Every engine. The first is the default; the first QUIC stack is that of the name `quic`.
pub const ENGINES: &[Entry] = &[
    Entry {
        name: slowstart_study::measured::SIMULATOR,
        about: "the simulator, at virtual time",
        make: Ok(|settings| without_settings(Simulator, settings)),
    },
    Entry {
        name: "quic:quinn",
        about: "the QUIC stack quinn-proto over the simulator's paths, at virtual time (docs/reference/quic.md)",
        make: quic!(Quinn),
    },
    Entry {
        name: "quic:noq",
        about: "the QUIC stack noq-proto over the simulator's paths, at virtual time (docs/reference/quic.md)",
        make: quic!(Noq),
    },
    Entry {
        name: "linux:KERNEL",
        about: "a Linux kernel that `make uml` built, over the simulator's paths at virtual time (docs/reference/linux.md)",
        make: Ok(linux),
    },
    Entry {
        name: "kernel",
        about: "the running Linux kernel over an emulated path in real time; needs root (docs/reference/kernel.md)",
        make: built!(
            "kernel",
            |settings| without_settings(slowstart_linux::Kernel::default(), settings),
            "built without kernel support: `make kernel` installs clang, libelf-dev, pkg-config and zlib1g-dev and builds with \
             it; where they are installed, `cargo build --release -p slowstart-cli --features kernel`"
        ),
    },
];

/// A Linux kernel at virtual time, by the name of its file.
fn linux(text: &str) -> Result<Box<dyn Engine>, EngineError> {
    #[cfg(target_os = "linux")]
    return Ok(Box::new(slowstart_uml::Linux::named(text)?));
    #[cfg(not(target_os = "linux"))]
    Err(EngineError::Name(format!("{text}: a Linux kernel runs as a program on Linux only")))
}

/// Runs this program as the first process of the kernel that the engine `linux:` started, and returns its status; `None` if it
/// is not that. A program whose engines come from here asks this before anything else.
pub fn guest() -> Option<std::process::ExitCode> {
    #[cfg(target_os = "linux")]
    if std::process::id() == 1 && std::env::args_os().nth(1).is_some_and(|first| first == "guest") {
        return Some(slowstart_uml::guest::main());
    }
    None
}

/// What the name of a kernel at virtual time begins with.
const LINUX: &str = "linux:";

/// The entry of this name, which settings may follow.
fn entry(text: &str) -> Option<&'static Entry> {
    let name = text.split_once(',').map_or(text, |(name, _)| name);
    ENGINES.iter().find(|e| {
        e.name == name
            || e.name.starts_with(LINUX) && name.starts_with(LINUX)
            || name == "quic" && e.name.starts_with("quic:")
    })
}

/// Why this program lacks the engine of this name, which settings may follow; `None` if it has it, or no
/// engine has the name.
pub fn absence(text: &str) -> Option<&'static str> {
    entry(text)?.absence()
}

/// The engine of this name, which settings may follow: `quic:noq,ecn=on,mtu=1472`.
///
/// # Errors
/// If there is no such engine, this program is built without it, or a setting is wrong.
pub fn named(text: &str) -> Result<Box<dyn Engine>, EngineError> {
    let (name, settings) = text.split_once(',').unwrap_or((text, ""));
    if name == "quic:s2n" {
        let why = "s2n-quic cannot run here: its endpoints run in an executor of their own, which this program cannot drive \
                   (docs/reference/quic.md); expected quic:quinn or quic:noq";
        return Err(EngineError::Name(why.to_string()));
    }
    if text.starts_with(LINUX) {
        return linux(text);
    }
    let Some(entry) = entry(text) else {
        let mut known: Vec<&str> = ENGINES.iter().map(|e| e.name).collect();
        let expected = known.join(", ");
        known.push("quic");
        let hint = did_you_mean(name, &known);
        return Err(EngineError::Name(format!("found {name:?}{hint}, expected one of {expected}")));
    };
    let make = entry.make.map_err(|why| EngineError::Name(format!("{name}: {why}")))?;
    make(settings)
}

/// The engine that runs a study: `given`, as an argument names it, before the key `engine` of the study; the
/// simulator if neither names one.
///
/// # Errors
/// Those of [`named`].
pub fn of(given: Option<&str>, text: &StudyText) -> Result<Box<dyn Engine>, EngineError> {
    named(given.or(text.engine.as_deref()).unwrap_or(slowstart_study::measured::SIMULATOR))
}
