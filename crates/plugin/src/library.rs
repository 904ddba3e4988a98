//! A library and its functions.

use crate::connection::PLUGINS;
use libloading::Library;
use slowstart::control::foreign::{Class, Needs};
use slowstart_abi::SLOWSTART_VERSION;
use slowstart_abi::event::{slowstart_congestion, slowstart_handshake};
use slowstart_abi::facts::slowstart_facts;
use slowstart_abi::packet::slowstart_ack;
use slowstart_abi::plugin::{SLOWSTART_NEEDS_DELIVERY_STATE, SLOWSTART_OWNS_RECOVERY, slowstart_plugin};
use slowstart_abi::state::slowstart_state;
use std::ffi::c_void;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Mutex, PoisonError};
use thiserror::Error;

/// The function that a library must have.
const ENTRY: &[u8] = b"slowstart_get_plugin\0";

/// Why a library is no plugin.
#[derive(Debug, Error)]
pub enum PluginError {
    /// The file cannot be read.
    #[error("{}: {why}", file.display())]
    File {
        /// Which.
        file: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// It has no entry.
    #[error("{}: found no function slowstart_get_plugin, expected one that the library exports", file.display())]
    Entry {
        /// Which.
        file: PathBuf,
    },
    /// It cannot be loaded. The loader's own words name what it lacks.
    #[error("{}: {}", file.display(), std::error::Error::source(why).map_or_else(|| why.to_string(), ToString::to_string))]
    Load {
        /// Which.
        file: PathBuf,
        /// Why.
        why: libloading::Error,
    },
    /// Its structure is not as `slowstart.h` has it.
    #[error("{}: {field}: found {found}, expected {expected}", file.display())]
    Structure {
        /// The library.
        file: PathBuf,
        /// The field of `slowstart_plugin`.
        field: &'static str,
        /// What it has.
        found: String,
        /// What it should have.
        expected: String,
    },
}

/// The functions that every plugin has.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Required {
    pub(crate) create: unsafe extern "C" fn(u64, u64) -> *mut c_void,
    pub(crate) destroy: unsafe extern "C" fn(*mut c_void),
    pub(crate) established: unsafe extern "C" fn(
        *mut c_void,
        *const slowstart_facts,
        *const slowstart_handshake,
        *mut slowstart_state,
    ),
    pub(crate) ack:
        unsafe extern "C" fn(*mut c_void, *const slowstart_facts, *const slowstart_ack, *mut slowstart_state),
    pub(crate) congestion: unsafe extern "C" fn(
        *mut c_void,
        *const slowstart_facts,
        *const slowstart_congestion,
        *mut slowstart_state,
    ),
}

/// A library that is loaded. It stays until the process ends: connections have its functions and its strings.
#[derive(Debug)]
pub(crate) struct Plugin {
    /// Its file, as it was written.
    pub(crate) written: String,
    pub(crate) table: slowstart_plugin,
    pub(crate) required: Required,
}

/// What is loaded, by file. A library that is named twice is loaded once.
static LOADED: Mutex<Vec<(PathBuf, &'static Plugin)>> = Mutex::new(Vec::new());

/// Loads a plugin from a file; a relative path is relative to the working directory.
///
/// # Errors
/// If there is no such file, it is no library with the function `slowstart_get_plugin`, or the structure that
/// it returns is not as `slowstart.h` has it.
pub fn load(file: &Path) -> Result<Class, PluginError> {
    let full = file.canonicalize().map_err(|why| PluginError::File { file: file.to_path_buf(), why })?;
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = loaded.iter().find(|(f, _)| *f == full).map(|(_, plugin)| *plugin);
    let plugin = if let Some(plugin) = known {
        plugin
    } else {
        let plugin: &'static Plugin = Box::leak(Box::new(open(file, &full)?));
        loaded.push((full, plugin));
        plugin
    };
    Ok(Class { host: &PLUGINS, number: ptr::from_ref(plugin).expose_provenance() as u64 })
}

/// The plugin of a class.
pub(crate) fn plugin(number: u64) -> &'static Plugin {
    // SAFETY: `load` alone makes these numbers, from plugins that stay until the process ends.
    unsafe { &*ptr::with_exposed_provenance::<Plugin>(number as usize) }
}

impl Plugin {
    pub(crate) const fn needs(&self) -> Needs {
        Needs {
            sent: self.table.sent.is_some(),
            delivery_state: self.table.flags & SLOWSTART_NEEDS_DELIVERY_STATE != 0,
            owns_recovery: self.table.flags & SLOWSTART_OWNS_RECOVERY != 0,
        }
    }
}

/// Loads a library with all that it needs, so that a function that is missing is named now and not in the
/// middle of a run.
///
/// # Safety
/// As of [`Library::new`].
unsafe fn whole(full: &Path) -> Result<Library, libloading::Error> {
    #[cfg(unix)]
    // SAFETY: as the caller promises.
    return unsafe { libloading::os::unix::Library::open(Some(full), libloading::os::unix::RTLD_NOW) }
        .map(Into::into);
    #[cfg(not(unix))]
    // SAFETY: as the caller promises.
    unsafe {
        Library::new(full)
    }
}

fn open(file: &Path, full: &Path) -> Result<Plugin, PluginError> {
    let failed = |why| PluginError::Load { file: file.to_path_buf(), why };
    // SAFETY: the code that runs when the library is loaded is the user's, as is the rest of it.
    let library = unsafe { whole(full) }.map_err(failed)?;
    // SAFETY: the header states the type of this function.
    let entry = unsafe { library.get::<unsafe extern "C" fn() -> *const slowstart_plugin>(ENTRY) };
    let entry = entry.map_err(|_| PluginError::Entry { file: file.to_path_buf() })?;
    // SAFETY: as above.
    let table = unsafe { entry() };
    // SAFETY: the header states that the structure begins with its size and lives as long as the library.
    let plugin = unsafe { of_table(file, table) }?;
    std::mem::forget(library);
    Ok(plugin)
}

/// The plugin of a structure.
///
/// # Safety
/// As of [`slowstart_abi::argument::read`]; its functions are as the header states, and stay.
pub(crate) unsafe fn of_table(file: &Path, table: *const slowstart_plugin) -> Result<Plugin, PluginError> {
    // SAFETY: as the caller promises.
    let table = unsafe { slowstart_abi::argument::read(table) };
    let wrong = |field, found: String, expected: &str| PluginError::Structure {
        file: file.to_path_buf(),
        field,
        found,
        expected: expected.into(),
    };
    let table =
        table.ok_or_else(|| wrong("slowstart_get_plugin", "null or no size".into(), "a slowstart_plugin"))?;
    let least = offset_of!(slowstart_plugin, recovered);
    if table.size < least as u64 {
        return Err(wrong("size", table.size.to_string(), &format!("at least {least}")));
    }
    if table.version == 0 || table.version > u64::from(SLOWSTART_VERSION) {
        let expected = format!("a version up to {SLOWSTART_VERSION}, which this program has");
        return Err(wrong("version", table.version.to_string(), &expected));
    }
    let flags = SLOWSTART_NEEDS_DELIVERY_STATE | SLOWSTART_OWNS_RECOVERY;
    if table.flags & !flags != 0 {
        return Err(wrong("flags", table.flags.to_string(), &format!("some of the bits of {flags}")));
    }
    let null = |field| wrong(field, "null".into(), "a function");
    let required = Required {
        create: table.create.ok_or_else(|| null("create"))?,
        destroy: table.destroy.ok_or_else(|| null("destroy"))?,
        established: table.established.ok_or_else(|| null("established"))?,
        ack: table.ack.ok_or_else(|| null("ack"))?,
        congestion: table.congestion.ok_or_else(|| null("congestion"))?,
    };
    Ok(Plugin { written: file.display().to_string(), table, required })
}
