//! Startups in Python: a class whose instances answer the events of one connection each.
//!
//! The engine calls from the thread that runs it. The connections of a run are that thread's.

use crate::startup::{Ack, Congestion, Step, View};
use pyo3::exceptions::{PyException, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;
use slowstart::startup::foreign::{Event, Host};
use slowstart::step::{self, Exit};
use slowstart::units::Bytes;
use slowstart::view;
use slowstart_sim::suggest::did_you_mean;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The methods of a startup, by event.
const EVENTS: [&str; 6] =
    ["on_established", "on_ack", "on_congestion", "on_recovered", "on_timer", "on_restart"];

/// A call of Python that runs startups, on one thread or several.
#[derive(Debug, Default)]
pub(crate) struct Call {
    ended: AtomicBool,
    /// The first exception.
    raised: Mutex<Option<PyErr>>,
}

impl Call {
    /// The first exception, if there was one; runs after it begin anew.
    pub(crate) fn take(&self) -> Option<PyErr> {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.ended.store(false, Ordering::Relaxed);
        raised
    }

    /// True after an exception: runs end as soon as they can.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    fn raise(&self, e: PyErr) {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// A startup of a call.
struct Class {
    name: String,
    startup: Py<PyAny>,
    call: Arc<Call>,
}

/// The startups of all calls, by number.
static CLASSES: Mutex<BTreeMap<u64, Arc<Class>>> = Mutex::new(BTreeMap::new());

fn classes() -> MutexGuard<'static, BTreeMap<u64, Arc<Class>>> {
    CLASSES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A startup that runs can begin until this is dropped.
#[derive(Debug)]
pub(crate) struct Registered(u64);

impl Registered {
    /// The number of the startup.
    pub(crate) fn number(&self) -> u64 {
        self.0
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // Dropped after the lock: dropping a class may run code of Python.
        let _class = classes().remove(&self.0);
    }
}

/// A connection: its instance's methods, those that it has.
struct Connection {
    methods: [Option<Py<PyAny>>; EVENTS.len()],
    class: Arc<Class>,
}

/// What the running thread knows of its run.
#[derive(Default)]
struct State {
    connections: BTreeMap<u64, Connection>,
    begun: u64,
    events: u64,
    /// The number of the run, where it is known.
    run: Option<u32>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Registers the class of a startup for the runs of a call.
pub(crate) fn register(class: &Bound<'_, PyAny>, name: &str, call: &Arc<Call>) -> PyResult<Registered> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // A run is under way: it would lose its connections at the end of the other.
    if STATE.with_borrow(|s| !s.connections.is_empty()) {
        return Err(PyRuntimeError::new_err(
            "startup: found a comparison inside an event of a startup, expected it outside",
        ));
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let class = Class { name: name.to_string(), startup: class.clone().unbind(), call: Arc::clone(call) };
    classes().insert(number, Arc::new(class));
    Ok(Registered(number))
}

/// Refuses a method that is named like one of an event, and that no event calls.
fn refuse_others(instance: &Bound<'_, PyAny>) -> PyResult<()> {
    for name in instance.dir()?.iter() {
        let name: String = name.extract()?;
        if name.starts_with("on_")
            && !EVENTS.contains(&name.as_str())
            && instance.getattr(&*name)?.is_callable()
        {
            let (hint, known) = (did_you_mean(&name, &EVENTS), EVENTS.join(", "));
            return Err(PyTypeError::new_err(format!(
                "startup: found a method {name:?}{hint}, which no event calls, expected some of {known}"
            )));
        }
    }
    Ok(())
}

/// Begins a run on this thread.
pub(crate) fn begin_run(run: u32) {
    STATE.with_borrow_mut(|s| s.run = Some(run));
}

/// Forgets the connections of the run of this thread.
pub(crate) fn forget() {
    // Dropped after the borrow: dropping an instance may run code of Python.
    let _state = STATE.with_borrow_mut(std::mem::take);
}

/// An exception of a startup with the run and the event. Ctrl-C and requests to exit stay what they are.
fn in_run(py: Python<'_>, class: &Class, event: &str, e: PyErr) -> PyErr {
    if !e.is_instance_of::<PyException>(py) {
        return e;
    }
    let run = STATE.with_borrow(|s| s.run).map_or(String::new(), |run| format!(", run {run}"));
    let kind = e.get_type(py).name().map_or_else(|_| "exception".into(), |n| n.to_string());
    let outer =
        PyRuntimeError::new_err(format!("startup {}{run}, {event}: {kind}: {}", class.name, e.value(py)));
    outer.set_cause(py, Some(e));
    outer
}

/// The interpreter, as a host of startups.
pub(crate) struct Interpreter;

/// The only interpreter.
pub(crate) static INTERPRETER: Interpreter = Interpreter;

/// How many events pass between two looks at Ctrl-C.
const SIGNALS: u64 = 4096;

/// The methods of a new instance.
fn instance(py: Python<'_>, class: &Class) -> PyResult<[Option<Py<PyAny>>; EVENTS.len()]> {
    let instance = class.startup.call0(py)?;
    let instance = instance.bind(py);
    let mut methods = [const { None }; EVENTS.len()];
    for (name, method) in EVENTS.iter().zip(&mut methods) {
        if instance.hasattr(*name)? {
            *method = Some(instance.getattr(*name)?.unbind());
        }
    }
    refuse_others(instance)?;
    if methods[1].is_none() {
        return Err(PyTypeError::new_err("startup: found no method on_ack, expected one"));
    }
    Ok(methods)
}

impl Host for Interpreter {
    fn begin(&self, class: u64) -> u64 {
        let Some(class) = classes().get(&class).cloned() else { return 0 };
        Python::attach(|py| match instance(py, &class) {
            Ok(methods) => STATE.with_borrow_mut(|s| {
                s.begun += 1;
                s.connections.insert(s.begun, Connection { methods, class });
                s.begun
            }),
            Err(e) => {
                class.call.raise(in_run(py, &class, "the constructor", e));
                0
            }
        })
    }

    fn event(&self, connection: u64, v: &view::View, event: Event) -> step::Step {
        let at = match event {
            Event::Established(_) => 0,
            Event::Ack(_) => 1,
            Event::Congestion(_) => 2,
            Event::Recovered(_) => 3,
            Event::Timer => 4,
            Event::Restart(_) => 5,
        };
        // What a startup does that has no method for an event.
        let default = match event {
            Event::Congestion(c) => step::Step::exit(c.signal.into()),
            _ => step::Step::HOLD,
        };
        // After an exception the run ends as soon as it can: the window stays and the startup is over.
        let over = step::Step::exit(Exit::Estimate);
        Python::attach(|py| {
            let found = STATE.with_borrow_mut(|s| {
                s.events += 1;
                let c = s.connections.get(&connection)?;
                let method = c.methods[at].as_ref().map(|m| m.clone_ref(py));
                Some((Arc::clone(&c.class), method, s.events.is_multiple_of(SIGNALS)))
            });
            let Some((class, method, look)) = found else { return over };
            // Outside the borrow: a handler of a signal is code of Python.
            if look && let Err(e) = py.check_signals() {
                class.call.raise(e);
            }
            if class.call.has_ended() {
                return over;
            }
            let Some(method) = method else { return default };
            answer(py, &method, v, event).unwrap_or_else(|e| {
                let what = format!("{} at {} s", EVENTS[at], v.now.0 as f64 / 1e9);
                class.call.raise(in_run(py, &class, &what, e));
                over
            })
        })
    }
}

/// Calls a method with the event and reads its answer: a `Step`, an integer (growth in bytes) or None.
fn answer(py: Python<'_>, method: &Py<PyAny>, v: &view::View, event: Event) -> PyResult<step::Step> {
    let view = Bound::new(py, View::of(v))?;
    let answer = match event {
        Event::Established(hs) => method.call1(py, (view, hs.rtt.map(|t| t.0)))?,
        Event::Ack(a) => method.call1(py, (view, Bound::new(py, Ack(*a))?))?,
        Event::Congestion(c) => method.call1(py, (view, Bound::new(py, Congestion(*c))?))?,
        Event::Recovered(r) => method.call1(py, (view, r.undone))?,
        Event::Timer => method.call1(py, (view,))?,
        Event::Restart(why) => method.call1(py, (view, why.name()))?,
    };
    let answer = answer.bind(py);
    if answer.is_none() {
        return Ok(step::Step::HOLD);
    }
    if let Ok(step) = answer.cast_exact::<Step>() {
        return Ok(step.get().0);
    }
    answer.extract::<u64>().map(|n| step::Step::grow(Bytes(n))).map_err(|_| {
        if answer.is_instance_of::<PyInt>() {
            return PyValueError::new_err(format!("found {answer}, expected bytes of growth from 0 on"));
        }
        let kind = answer.get_type().name().map_or("?".into(), |n| n.to_string());
        PyTypeError::new_err(format!(
            "found an answer of type {kind}, expected a Step, bytes of growth or None"
        ))
    })
}
