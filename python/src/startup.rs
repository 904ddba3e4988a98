//! Startups in Python: a class whose instances answer the events of one connection each.
//!
//! The engine calls from the thread that runs it, which is attached to the interpreter all the time.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use slowstart::startup::foreign::{Event, Host};
use slowstart::step::{self, Exit, Pace, Wake, Window};
use slowstart::units::{Bytes, Instant, Rate};
use slowstart::view::{self, Facts, Restart, Signal};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// State of the connection at the time of an event. Times are in nanoseconds, amounts in bytes.
#[pyclass(module = "slowstart", frozen)]
pub(crate) struct View {
    facts: Facts,
    #[pyo3(get)]
    cwnd: u64,
    #[pyo3(get)]
    ssthresh: Option<u64>,
}

#[pymethods]
impl View {
    /// Time of the event since the run began.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.facts.now.0
    }
    /// Payload of a full-sized segment.
    #[getter]
    fn mss(&self) -> u64 {
        self.facts.mss.0
    }
    /// Initial window.
    #[getter]
    fn iw(&self) -> u64 {
        self.facts.iw.0
    }
    /// Bytes in flight.
    #[getter]
    fn inflight(&self) -> u64 {
        self.facts.inflight.0
    }
    /// Bytes delivered since the connection began.
    #[getter]
    fn delivered(&self) -> u64 {
        self.facts.delivered.0
    }
    /// Bytes marked lost since the connection began.
    #[getter]
    fn lost(&self) -> u64 {
        self.facts.lost.0
    }
    /// How far new data has been sent: the mark of the end of it.
    #[getter]
    fn next(&self) -> u64 {
        self.facts.next.0
    }
    /// Smoothed round-trip time.
    #[getter]
    fn srtt_ns(&self) -> Option<u64> {
        self.facts.srtt.map(|t| t.0)
    }
    /// Minimum round-trip time.
    #[getter]
    fn min_rtt_ns(&self) -> Option<u64> {
        self.facts.min_rtt.map(|t| t.0)
    }
    /// True while the host's loss recovery limits what is sent.
    #[getter]
    fn in_recovery(&self) -> bool {
        self.facts.in_recovery
    }
    /// The growth of standard slow start for this ACK, bytes.
    fn slow_start_growth(&self, ack: &Ack) -> u64 {
        ack.0.slow_start_growth(self.facts.growth, self.facts.mss).0
    }
}

/// An ACK.
#[pyclass(module = "slowstart", frozen)]
pub(crate) struct Ack(view::Ack);

#[pymethods]
impl Ack {
    /// How far acknowledgements have advanced in the order of sending.
    #[getter]
    fn upto(&self) -> u64 {
        self.0.upto.0
    }
    /// Bytes for which the window may grow.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes.0
    }
    /// Bytes newly delivered.
    #[getter]
    fn delivered(&self) -> u64 {
        self.0.delivered.0
    }
    /// Bytes newly marked lost.
    #[getter]
    fn newly_lost(&self) -> u64 {
        self.0.newly_lost.0
    }
    /// Bytes in flight before this ACK.
    #[getter]
    fn prior_inflight(&self) -> u64 {
        self.0.prior_inflight.0
    }
    /// The RTT sample, if there is one.
    #[getter]
    fn rtt_ns(&self) -> Option<u64> {
        self.0.rtt.map(|t| t.0)
    }
    /// True if the window or the pacer limited the sender, so that the window may grow.
    #[getter]
    fn allows_growth(&self) -> bool {
        self.0.limit.allows_growth()
    }
}

/// A congestion signal.
#[pyclass(module = "slowstart", frozen)]
pub(crate) struct Congestion(view::Congestion);

#[pymethods]
impl Congestion {
    /// `loss`, `ecn`, `timeout` or `local-stall`.
    #[getter]
    fn signal(&self) -> &'static str {
        Exit::from(self.0.signal).name()
    }
    /// True for the first signal of its episode.
    #[getter]
    fn first(&self) -> bool {
        self.0.first
    }
    /// Bytes newly marked lost.
    #[getter]
    fn lost(&self) -> u64 {
        self.0.lost.0
    }
}

/// The exits by their names.
const EXITS: [Exit; 10] = [
    Exit::Ssthresh,
    Exit::Loss,
    Exit::Ecn,
    Exit::Timeout,
    Exit::LocalStall,
    Exit::AckTrain,
    Exit::Delay,
    Exit::CssRounds,
    Exit::RateFlat,
    Exit::Estimate,
];

/// What a startup asks for after an event. Without arguments: no change.
#[pyclass(module = "slowstart", frozen)]
pub(crate) struct Step(step::Step);

#[pymethods]
impl Step {
    #[new]
    #[pyo3(signature = (*, grow=None, cwnd=None, ssthresh=None, exit=None, wake_ns=None, pace_bps=None))]
    fn new(
        grow: Option<u64>,
        cwnd: Option<u64>,
        ssthresh: Option<u64>,
        exit: Option<&str>,
        wake_ns: Option<u64>,
        pace_bps: Option<u64>,
    ) -> PyResult<Self> {
        let window = match (grow, cwnd) {
            (Some(_), Some(_)) => {
                return Err(PyValueError::new_err("Step: found grow and cwnd, expected one"));
            }
            (Some(n), None) => Window::Grow(Bytes(n)),
            (None, Some(n)) => Window::Set(Bytes(n)),
            (None, None) => Window::Keep,
        };
        let exit = exit
            .map(|name| {
                EXITS.into_iter().find(|e| e.name() == name).ok_or_else(|| {
                    let known: Vec<&str> = EXITS.iter().map(|e| e.name()).collect();
                    PyValueError::new_err(format!(
                        "exit: found {name:?}, expected one of {}",
                        known.join(", ")
                    ))
                })
            })
            .transpose()?;
        Ok(Self(step::Step {
            window,
            ssthresh: ssthresh.map(Bytes),
            pace: pace_bps.map(|r| Pace::Rate(Rate(r))),
            wake: wake_ns.map_or(Wake::Keep, |t| Wake::At(Instant(t))),
            exit,
            ..step::Step::HOLD
        }))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

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
    /// The first exception, with the event at which it was raised.
    raised: Option<(PyErr, String)>,
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
        s.classes.push(class.clone().unbind());
        Ok(s.classes.len() as u64 - 1)
    })
}

/// Forgets the connections of a run that is over; returns its first exception and the event at which it was raised.
pub(crate) fn end_of_run() -> Option<(PyErr, String)> {
    STATE.with_borrow_mut(|s| {
        s.connections.clear();
        s.raised.take()
    })
}

/// Forgets all classes.
pub(crate) fn forget() {
    STATE.with_borrow_mut(|s| *s = State::default());
}

/// Python, as a host of startups.
pub(crate) struct Python_;

/// How many events pass between two looks at Ctrl-C.
const SIGNALS: u64 = 4096;

impl Host for Python_ {
    fn begin(&self, class: u64) -> u64 {
        let made = Python::attach(|py| -> PyResult<Connection> {
            let class = STATE.with_borrow(|s| s.classes[class as usize].clone_ref(py));
            let instance = class.call0(py)?;
            let instance = instance.bind(py);
            let mut methods = [const { None }; EVENTS.len()];
            for (name, method) in EVENTS.iter().zip(&mut methods) {
                if instance.hasattr(*name)? {
                    *method = Some(instance.getattr(*name)?.unbind());
                }
            }
            if methods[1].is_none() {
                return Err(PyTypeError::new_err("startup: found no method on_ack, expected one"));
            }
            Ok(Connection { methods })
        });
        STATE.with_borrow_mut(|s| {
            s.begun += 1;
            match made {
                Ok(connection) => drop(s.connections.insert(s.begun, connection)),
                Err(e) => drop(s.raised.get_or_insert((e, "the constructor".into()))),
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
            let method = STATE.with_borrow_mut(|s| {
                s.events += 1;
                if s.raised.is_some() {
                    return Err(());
                }
                if s.events.is_multiple_of(SIGNALS)
                    && let Err(e) = py.check_signals()
                {
                    s.raised = Some((e, EVENTS[at].into()));
                    return Err(());
                }
                Ok(s.connections
                    .get(&connection)
                    .and_then(|c| c.methods[at].as_ref())
                    .map(|m| m.clone_ref(py)))
            });
            let method = match method {
                // After an exception the run ends as soon as it can: the window stays and the startup is over.
                Err(()) => return step::Step::exit(Exit::Estimate),
                Ok(None) => return default,
                Ok(Some(method)) => method,
            };
            answer(py, &method, v, event).unwrap_or_else(|e| {
                let what = format!("{} at {} s", EVENTS[at], v.now.0 as f64 / 1e9);
                STATE.with_borrow_mut(|s| drop(s.raised.get_or_insert((e, what))));
                step::Step::exit(Exit::Estimate)
            })
        })
    }
}

/// Calls a method with the event and reads its answer: a `Step`, an integer (growth in bytes) or None.
fn answer(py: Python<'_>, method: &Py<PyAny>, v: &view::View, event: Event) -> PyResult<step::Step> {
    let view = Bound::new(py, View { facts: *v.facts, cwnd: v.cwnd.0, ssthresh: v.ssthresh.map(|b| b.0) })?;
    let answer = match event {
        Event::Established(hs) => method.call1(py, (view, hs.rtt.map(|t| t.0)))?,
        Event::Ack(a) => method.call1(py, (view, Bound::new(py, Ack(*a))?))?,
        Event::Congestion(c) => method.call1(py, (view, Bound::new(py, Congestion(*c))?))?,
        Event::Recovered(r) => method.call1(py, (view, r.undone))?,
        Event::Timer => method.call1(py, (view,))?,
        Event::Restart(why) => {
            let why = match why {
                Restart::Timeout => Exit::from(Signal::Timeout).name(),
                Restart::Idle => "idle",
            };
            method.call1(py, (view, why))?
        }
    };
    let answer = answer.bind(py);
    if answer.is_none() {
        return Ok(step::Step::HOLD);
    }
    if let Ok(step) = answer.cast_exact::<Step>() {
        return Ok(step.get().0);
    }
    answer.extract::<u64>().map(|n| step::Step::grow(Bytes(n))).map_err(|_| {
        let kind = answer.get_type().name().map_or("?".into(), |n| n.to_string());
        PyTypeError::new_err(format!(
            "found an answer of type {kind}, expected a Step, bytes of growth or None"
        ))
    })
}
