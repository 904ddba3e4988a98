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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::of_table;
    use slowstart::units::{Instant, Span};
    use slowstart::view::{Ack, Congestion, Handshake, Sent, Signal};
    use slowstart_abi::argument::Argument as _;
    use slowstart_abi::plugin::slowstart_plugin;
    use std::path::Path;

    /// A controller that counts its calls on the heap, and fails at the fourth.
    unsafe extern "C" fn create(iw: u64, _seed: u64) -> *mut c_void {
        if iw == 0 { ptr::null_mut() } else { Box::into_raw(Box::new(0_u64)).cast() }
    }

    unsafe extern "C" fn destroy(c: *mut c_void) {
        // SAFETY: of `create`.
        drop(unsafe { Box::from_raw(c.cast::<u64>()) });
    }

    unsafe fn call(c: *mut c_void, state: *mut slowstart_state, mss: u64) {
        // SAFETY: both live for the time of the call.
        let (calls, state) = unsafe { (&mut *c.cast::<u64>(), &mut *state) };
        *calls += 1;
        state.cwnd = if *calls < 4 { state.cwnd + mss } else { 0 };
    }

    unsafe extern "C" fn established(
        c: *mut c_void,
        f: *const slowstart_facts,
        hs: *const slowstart_handshake,
        state: *mut slowstart_state,
    ) {
        // SAFETY: as the header states.
        unsafe {
            assert_eq!((*hs).rtt_ns, 40_000_000);
            call(c, state, (*f).mss);
        }
    }

    unsafe extern "C" fn ack(
        c: *mut c_void,
        f: *const slowstart_facts,
        a: *const slowstart_ack,
        state: *mut slowstart_state,
    ) {
        // SAFETY: as the header states.
        unsafe {
            assert_eq!((*a).delivered, 1000);
            call(c, state, (*f).mss);
        }
    }

    unsafe extern "C" fn congestion(
        c: *mut c_void,
        f: *const slowstart_facts,
        e: *const slowstart_congestion,
        state: *mut slowstart_state,
    ) {
        // SAFETY: as the header states.
        unsafe {
            assert_eq!((*e).newest.bytes, 1000);
            (*state).exit_detected_ns = (*f).now_ns;
            (*state).exit_detected_cwnd = (*state).cwnd;
            (*state).exit_cwnd = (*state).cwnd;
            (*state).exit_why = c"loss".as_ptr();
            call(c, state, (*f).mss);
        }
    }

    /// The pointers of a connection, through all of its life, on two threads.
    #[test]
    fn a_connection_lives_until_its_last_user_ends_it() {
        let table = slowstart_plugin {
            size: size_of::<slowstart_plugin>() as u64,
            version: 1,
            create: Some(create),
            destroy: Some(destroy),
            established: Some(established),
            ack: Some(ack),
            congestion: Some(congestion),
            ..slowstart_plugin::ABSENT
        };
        // SAFETY: it has its size, and its functions are as the header states.
        let made = unsafe { of_table(Path::new("here"), &raw const table) }.expect("whole");
        let plugin = Box::into_raw(Box::new(made));
        let class = plugin.expose_provenance() as u64;
        let connection = PLUGINS.begin(class, Bytes(10_000), 1);
        let mut f = Facts::new(Bytes(1000), Bytes(10_000));
        f.now = Instant(1);
        let state = State { cwnd: Bytes(10_000), ssthresh: None, pace: None, wake: None };
        let sent = Sent { bytes: Bytes(1000), ..Sent::default() };
        let hs = Handshake::new(Some(Span(40_000_000)));
        let a = PLUGINS.event(connection, &f, &state, Event::Established(&hs));
        assert_eq!((a.state.cwnd, a.broken), (Bytes(11_000), false));
        assert!(
            !PLUGINS.event(connection, &f, &a.state, Event::Sent(&sent)).broken,
            "it has no such function"
        );
        PLUGINS.share(connection);
        let a = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let ack = Ack::new(sent, Bytes(1000), Bytes(1000));
                let a = PLUGINS.event(connection, &f, &a.state, Event::Ack(&ack));
                PLUGINS.end(connection);
                a
            });
            other.join().expect("it ends")
        });
        let loss = Congestion::new(Signal::Loss, true, sent);
        let a = PLUGINS.event(connection, &f, &a.state, Event::Congestion(&loss));
        assert_eq!(a.change.exited.map(|e| e.exit_cwnd), Some(Bytes(12_000)));
        let broken = PLUGINS.event(connection, &f, &a.state, Event::Congestion(&loss));
        assert_eq!((broken.state.cwnd, broken.broken), (Bytes(13_000), true));
        let mut said = String::new();
        PLUGINS.fault(connection, &mut |why| said += why);
        assert!(said.starts_with("plugin:here: congestion at ") && said.contains("cwnd: found 0"), "{said}");
        PLUGINS.end(connection);

        let none = PLUGINS.begin(class, Bytes(0), 1);
        assert!(PLUGINS.event(none, &f, &state, Event::Timer).broken, "there is no controller");
        PLUGINS.end(none);
        // SAFETY: of `Box::into_raw`, and its connections have ended.
        drop(unsafe { Box::from_raw(plugin) });
    }
}
