//! Ends the process where a call of a plugin does not return within a bound of CPU time. Nothing can end the call
//! alone.

use crate::library::Plugin;
use std::cell::OnceCell;
use std::io::{self, Write as _};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread;
use std::time::Duration;

/// CPU time of a call after which it is taken to be endless; calls take microseconds.
const MOST: Duration = Duration::from_secs(10);
/// Between two looks at the calls.
const PERIOD: Duration = Duration::from_millis(250);

/// The calls of one thread.
struct Calls {
    /// One more at the begin and at the end of each: odd during a call.
    edges: AtomicU64,
    plugin: AtomicPtr<Plugin>,
    /// The clock of the thread's CPU time.
    clock: libc::clockid_t,
}

static THREADS: Mutex<Vec<Arc<Calls>>> = Mutex::new(Vec::new());

thread_local! {
    static CALLS: OnceCell<Arc<Calls>> = const { OnceCell::new() };
}

/// Makes a call of a plugin under watch.
pub(crate) fn watched<T>(plugin: &'static Plugin, call: impl FnOnce() -> T) -> T {
    CALLS.with(|cell| {
        let calls = cell.get_or_init(register);
        calls.plugin.store(ptr::from_ref(plugin).cast_mut(), Ordering::Relaxed);
        calls.edges.fetch_add(1, Ordering::Release);
        let answer = call();
        calls.edges.fetch_add(1, Ordering::Release);
        answer
    })
}

/// Adds this thread to those that are watched.
fn register() -> Arc<Calls> {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| drop(thread::spawn(watch)));
    let mut clock = 0;
    // SAFETY: this thread lives, and `clock` is writable.
    unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
    let calls = Arc::new(Calls { edges: AtomicU64::new(0), plugin: AtomicPtr::new(ptr::null_mut()), clock });
    THREADS.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&calls));
    calls
}

/// The CPU time that a thread has had; `None` once it has ended.
fn cpu(clock: libc::clockid_t) -> Option<Duration> {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is writable; a clock that is none is an error.
    let got = unsafe { libc::clock_gettime(clock, &raw mut t) };
    (got == 0).then(|| Duration::new(t.tv_sec as u64, t.tv_nsec as u32))
}

fn watch() {
    // Of each thread the call that ran at the last look, and its CPU time then.
    let mut seen: Vec<(u64, Duration)> = Vec::new();
    loop {
        thread::sleep(PERIOD);
        let mut threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
        // A thread that has ended leaves only this reference.
        let mut kept = seen.into_iter().chain(std::iter::repeat((0, Duration::ZERO)));
        let mut next = Vec::new();
        threads.retain(|calls| {
            let before = kept.next().unwrap_or_default();
            let alive = Arc::strong_count(calls) > 1;
            if alive {
                next.push(look(calls, before));
            }
            alive
        });
        seen = next;
    }
}

/// Looks at the calls of a thread; does not return if one has taken [`MOST`].
fn look(calls: &Calls, before: (u64, Duration)) -> (u64, Duration) {
    let edges = calls.edges.load(Ordering::Acquire);
    let Some(now) = cpu(calls.clock).filter(|_| edges % 2 == 1) else { return (0, Duration::ZERO) };
    if edges != before.0 {
        return (edges, now);
    }
    let took = now.saturating_sub(before.1);
    if took < MOST {
        return before;
    }
    // SAFETY: stored by `watched` before the call, and plugins stay until the process ends.
    let plugin = unsafe { &*calls.plugin.load(Ordering::Relaxed) };
    let s = took.as_secs_f64();
    // A full or closed error output changes nothing.
    let _ = writeln!(
        io::stderr(),
        "error: plugin:{}: a call did not return after {s:.1} s of CPU time",
        plugin.written
    );
    // SAFETY: nothing of this process runs on. The usual end would wait for the thread that does not return.
    unsafe { libc::_exit(2) }
}
