//! Startups in Python: a class whose instances answer the events of one connection each.
//!
//! The engine calls from the thread that runs it, which is attached to the interpreter all the time.

use crate::startup::{Ack, Congestion, Step, View};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;
use slowstart::startup::foreign::{Event, Host};
use slowstart::step::{self, Exit};
use slowstart::units::Bytes;
use slowstart::view;
use slowstart_sim::suggest::did_you_mean;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// An exception of a startup, and the event at which it was raised.
pub(crate) type Raised = (PyErr, String);

/// The methods of a startup, by event.
const EVENTS: [&str; 6] =
    ["on_established", "on_ack", "on_congestion", "on_recovered", "on_timer", "on_restart"];

/// A connection: its instance's methods, those that it has.
struct Connection {
    methods: [Option<Py<PyAny>>; EVENTS.len()],
}

/// What the running thread knows. Runs with startups in Python are on one thread.
#[derive(Default)]
struct State {
    classes: Vec<Py<PyAny>>,
    connections: BTreeMap<u64, Connection>,
    begun: u64,
    events: u64,
    /// The first exception.
    raised: Option<Raised>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Registers the class of a startup for the runs of this thread; returns its number.
pub(crate) fn register(class: &Bound<'_, PyAny>) -> PyResult<u64> {
    if !class.is_callable() {
        return Err(PyTypeError::new_err("startup: expected a name or a class with a method on_ack"));
    }
    STATE.with_borrow_mut(|s| {
        // A run is under way: it would lose its connections at the end of the other.
        if !s.connections.is_empty() {
            return Err(PyRuntimeError::new_err(
                "startup: found a comparison inside an event of a startup, expected it outside",
            ));
        }
        s.classes.push(class.clone().unbind());
        Ok(s.classes.len() as u64 - 1)
    })
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

/// Forgets the connections of a run that is over; returns its first exception and the event at which it was
/// raised.
pub(crate) fn end_of_run() -> Option<Raised> {
    // Dropped after the borrow: dropping an instance may run code of Python.
    let (_connections, raised) =
        STATE.with_borrow_mut(|s| (std::mem::take(&mut s.connections), s.raised.take()));
    raised
}

/// Forgets all classes, unless a run is under way.
pub(crate) fn forget() {
    drop(
        STATE
            .with_borrow_mut(|s| if s.connections.is_empty() { std::mem::take(s) } else { State::default() }),
    );
}

/// The interpreter, as a host of startups.
pub(crate) struct Interpreter;

/// The only interpreter.
pub(crate) static INTERPRETER: Interpreter = Interpreter;

/// How many events pass between two looks at Ctrl-C.
const SIGNALS: u64 = 4096;

impl Host for Interpreter {
    fn begin(&self, class: u64) -> u64 {
        let made = Python::attach(|py| -> PyResult<Connection> {
            let class = STATE.with_borrow(|s| s.classes[class as usize].clone_ref(py));
            // Its constructor is code of Python, so the state is not borrowed.
            let instance = class.call0(py)?;
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
            Ok(Connection { methods })
        });
        STATE.with_borrow_mut(|s| {
            s.begun += 1;
            match made {
                Ok(connection) => {
                    s.connections.insert(s.begun, connection);
                }
                Err(e) => {
                    s.raised.get_or_insert((e, "the constructor".into()));
                }
            }
            s.begun
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
        Python::attach(|py| {
            let look = STATE.with_borrow_mut(|s| {
                s.events += 1;
                s.events.is_multiple_of(SIGNALS)
            });
            // Outside the borrow: a handler of a signal is code of Python.
            let signal = if look { py.check_signals().err() } else { None };
            let method = STATE.with_borrow_mut(|s| {
                if let Some(e) = signal {
                    s.raised.get_or_insert((e, EVENTS[at].into()));
                }
                if s.raised.is_some() {
                    return Err(());
                }
                let connection = s.connections.get(&connection);
                Ok(connection.and_then(|c| c.methods[at].as_ref()).map(|m| m.clone_ref(py)))
            });
            let method = match method {
                // After an exception the run ends as soon as it can: the window stays and the startup is
                // over.
                Err(()) => return step::Step::exit(Exit::Estimate),
                Ok(None) => return default,
                Ok(Some(method)) => method,
            };
            answer(py, &method, v, event).unwrap_or_else(|e| {
                let what = format!("{} at {} s", EVENTS[at], v.now.0 as f64 / 1e9);
                STATE.with_borrow_mut(|s| {
                    s.raised.get_or_insert((e, what));
                });
                step::Step::exit(Exit::Estimate)
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
