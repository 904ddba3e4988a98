//! One connection of a plugin.

use crate::library::{Plugin, plugin};
use crate::rules;
#[cfg(target_os = "linux")]
use crate::watch::watched;
use slowstart::control::State;
use slowstart::control::foreign::{Answer, Event, Host, Needs};
use slowstart::control::{Change, Exited};
use slowstart::units::Bytes;
use slowstart::view::Facts;
use slowstart_abi::SLOWSTART_UNKNOWN;
use slowstart_abi::event::{slowstart_congestion, slowstart_handshake};
use slowstart_abi::facts::slowstart_facts;
use slowstart_abi::packet::{slowstart_ack, slowstart_sent};
use slowstart_abi::state::slowstart_state;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The host of every plugin.
pub(crate) struct Plugins;

/// The only one.
pub(crate) static PLUGINS: Plugins = Plugins;

struct Connection {
    plugin: &'static Plugin,
    controller: *mut c_void,
    /// How the startup ended, as told so far.
    exited: Option<Exited>,
    /// What the plugin did wrong.
    fault: Option<String>,
}

// SAFETY: the header states that a controller may move from thread to thread between calls.
unsafe impl Send for Connection {}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.controller.is_null() {
            // SAFETY: it is of `create` of this plugin, and not used afterwards.
            unsafe { (self.plugin.required.destroy)(self.controller) };
        }
    }
}

type Shared = Mutex<Connection>;

/// The connection of a number that is in use.
fn of(number: u64) -> *const Shared {
    ptr::with_exposed_provenance(number as usize)
}

fn locked(shared: &Shared) -> MutexGuard<'_, Connection> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Host for Plugins {
    fn begin(&self, class: u64, iw: Bytes, seed: u64) -> u64 {
        let plugin = plugin(class);
        // SAFETY: the function has this type in the header.
        let create = || unsafe { (plugin.required.create)(iw.0, seed) };
        #[cfg(target_os = "linux")]
        let controller = watched(plugin, create);
        #[cfg(not(target_os = "linux"))]
        let controller = create();
        let fault = controller.is_null().then(|| "create: found null, expected a controller".to_string());
        let connection = Connection { plugin, controller, exited: None, fault };
        Arc::into_raw(Arc::new(Mutex::new(connection))).expose_provenance() as u64
    }

    fn needs(&self, class: u64) -> Needs {
        plugin(class).needs()
    }

    fn event(&self, connection: u64, f: &Facts, state: &State, event: Event) -> Answer {
        // SAFETY: the number is in use until `end`.
        let shared = unsafe { &*of(connection) };
        locked(shared).answer(f, state, event)
    }

    fn share(&self, connection: u64) {
        // SAFETY: it is of `Arc::into_raw`, and in use.
        unsafe { Arc::increment_strong_count(of(connection)) };
    }

    fn end(&self, connection: u64) {
        // SAFETY: it is of `Arc::into_raw`, and this is the end of one of its uses.
        drop(unsafe { Arc::from_raw(of(connection)) });
    }

    fn fault(&self, connection: u64, put: &mut dyn FnMut(&str)) {
        // SAFETY: the number is in use: the `Arc` is only borrowed.
        let shared = ManuallyDrop::new(unsafe { Arc::from_raw(of(connection)) });
        let connection = locked(&shared);
        if let Some(why) = &connection.fault {
            put(&format!("plugin:{}: {why}", connection.plugin.written));
        }
    }
}

impl Connection {
    fn answer(&mut self, f: &Facts, state: &State, event: Event) -> Answer {
        let unchanged = |broken| Answer { state: *state, change: Change::default(), broken };
        if self.fault.is_some() {
            return unchanged(true);
        }
        let mut told = slowstart_state::of(state, self.exited.as_ref(), None);
        #[cfg(target_os = "linux")]
        let name = watched(self.plugin, || self.tell(f, event, &mut told));
        #[cfg(not(target_os = "linux"))]
        let name = self.tell(f, event, &mut told);
        let Some(name) = name else { return unchanged(false) };
        // SAFETY: the header states that `exit_why` is null or a static string.
        match unsafe { rules::check(&told, f) } {
            Ok((state, exited)) => {
                let resumed = self.exited.is_some() && exited.is_none();
                let newly = exited.filter(|_| self.exited.is_none());
                self.exited = self.exited.filter(|_| !resumed).or(newly);
                Answer { state, change: Change::of(newly, resumed, told.to_resend()), broken: false }
            }
            Err(why) => {
                self.fault = Some(format!("{name} at {} s: {why}", f.now.0 as f64 / 1e9));
                unchanged(true)
            }
        }
    }

    /// Makes the call of an event; returns its name, or `None` if the plugin has no function for it.
    fn tell(&self, f: &Facts, event: Event, state: &mut slowstart_state) -> Option<&'static str> {
        let (p, c, f) = (&self.plugin.table, self.controller, slowstart_facts::of(f));
        let required = &self.plugin.required;
        // SAFETY of each call: the functions have these types in the header, the controller is of `create`,
        // and the structures live for the time of the call.
        Some(match event {
            Event::Established(hs) => {
                // SAFETY: see above.
                unsafe { (required.established)(c, &raw const f, &slowstart_handshake::of(hs), state) };
                "established"
            }
            Event::Sent(sent) => {
                // SAFETY: see above.
                unsafe { p.sent?(c, &raw const f, &slowstart_sent::of(sent), state) };
                "sent"
            }
            Event::Ack(ack) => {
                // SAFETY: see above.
                unsafe { (required.ack)(c, &raw const f, &slowstart_ack::of(ack), state) };
                "ack"
            }
            Event::Congestion(e) => {
                // SAFETY: see above.
                unsafe { (required.congestion)(c, &raw const f, &slowstart_congestion::of(e), state) };
                "congestion"
            }
            Event::Recovered(r) => {
                let undone = u32::from(r.undone);
                // SAFETY: see above.
                unsafe { p.recovered?(c, &raw const f, r.retransmitted.0, undone, state) };
                "recovered"
            }
            Event::Timer => {
                // SAFETY: see above.
                unsafe { p.timer?(c, &raw const f, state) };
                "timer"
            }
            Event::Idle(idle, restart) => {
                let restart = restart.map_or(SLOWSTART_UNKNOWN, |t| t.0);
                // SAFETY: see above.
                unsafe { p.idle?(c, &raw const f, idle.0, restart, state) };
                "idle"
            }
        })
    }
}
