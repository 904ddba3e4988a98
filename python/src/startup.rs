//! What a startup in Python is told, and what it may ask for.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use slowstart::step::{self, Exit, Pace, Wake, Window};
use slowstart::units::{self, Bytes, Instant, Rate};
use slowstart::view::{self, Facts};

/// State of the connection at the time of an event. Times are in nanoseconds, amounts in bytes.
#[pyclass(module = "slowstart", frozen)]
pub(crate) struct View {
    facts: Facts,
    cwnd: Bytes,
    ssthresh: Option<Bytes>,
}

impl View {
    /// A copy of what the host knows at an event.
    pub(crate) fn of(v: &view::View) -> Self {
        Self { facts: *v.facts, cwnd: v.cwnd, ssthresh: v.ssthresh }
    }
}

#[pymethods]
impl View {
    /// Congestion window.
    #[getter]
    fn cwnd(&self) -> u64 {
        self.cwnd.0
    }
    /// Slow-start threshold; None while it is arbitrarily high.
    #[getter]
    fn ssthresh(&self) -> Option<u64> {
        self.ssthresh.map(|b| b.0)
    }
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
    /// How far new data has been sent.
    #[getter]
    fn next(&self) -> SendOrder {
        SendOrder(self.facts.next)
    }
    /// Bytes that the application has queued and that have not been sent; None if the host does not know.
    #[getter]
    fn unsent(&self) -> Option<u64> {
        self.facts.unsent.map(|b| b.0)
    }
    /// True if the host paces at present.
    #[getter]
    fn pacing_on(&self) -> bool {
        self.facts.pacing_on
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
pub(crate) struct Ack(pub(crate) view::Ack);

#[pymethods]
impl Ack {
    /// How far acknowledgements have advanced in the order of sending.
    #[getter]
    fn upto(&self) -> SendOrder {
        SendOrder(self.0.upto)
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
pub(crate) struct Congestion(pub(crate) view::Congestion);

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

/// A position in the order of sending. Those of one connection are compared, and nothing else.
#[pyclass(module = "slowstart", frozen, eq, ord, hash)]
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SendOrder(units::SendOrder);

/// The pacing that a startup asks for.
#[derive(FromPyObject)]
enum Pacing {
    Rate(u64),
    Word(String),
}

impl Pacing {
    fn read(self) -> PyResult<Pace> {
        match self {
            Self::Rate(r) if r > 0 => Ok(Pace::Rate(Rate(r))),
            Self::Word(w) if w == "host" => Ok(Pace::Host),
            Self::Word(w) if w == "off" => Ok(Pace::Off),
            Self::Rate(r) => Err(bad(r)),
            Self::Word(w) => Err(bad(format!("{w:?}"))),
        }
    }
}

fn bad(pace: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("pace: found {pace}, expected bits a second above 0, \"host\" or \"off\""))
}

/// What a startup asks for after an event. Without arguments: no change.
#[pyclass(module = "slowstart", frozen)]
pub(crate) struct Step(pub(crate) step::Step);

#[pymethods]
impl Step {
    #[new]
    #[pyo3(signature = (*, grow=None, cwnd=None, ssthresh=None, exit=None, wake_ns=None, pace=None))]
    fn new(
        grow: Option<u64>,
        cwnd: Option<u64>,
        ssthresh: Option<u64>,
        exit: Option<&str>,
        wake_ns: Option<u64>,
        pace: Option<Pacing>,
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
                Exit::named(name).ok_or_else(|| {
                    let known: Vec<&str> = Exit::ALL.iter().map(|e| e.name()).collect();
                    PyValueError::new_err(format!(
                        "exit: found {name:?}, expected one of {}",
                        known.join(", ")
                    ))
                })
            })
            .transpose()?;
        let mut step = step::Step::HOLD;
        (step.window, step.ssthresh, step.exit) = (window, ssthresh.map(Bytes), exit);
        step.pace = pace.map(Pacing::read).transpose()?;
        step.wake = wake_ns.map_or(Wake::Keep, |t| Wake::At(Instant(t)));
        Ok(Self(step))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}
