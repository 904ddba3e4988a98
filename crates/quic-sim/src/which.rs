//! The stacks that run studies, and what each runs: a job, a session, or a job once more for what it kept.

use super::script::{self, Script, Session, Write};
use super::{Knobs, QuicError, Stack, Transfer, noq, quinn, row, stack};
use slowstart::units::{Instant, Span};
use slowstart_sim::engine::Sampling;
use slowstart_sim::random;
use slowstart_sim::tcp::ranges::Ranges;
use slowstart_study::measured::{Identity, Measured};
use slowstart_study::record::{LinkRow, Row};
use slowstart_study::run::{Job, Outcome};
use slowstart_study::scenario::{Contender, Study};

/// A stack that runs studies.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Which {
    /// The stack of the crate `quinn-proto`.
    #[default]
    Quinn,
    /// `noq-proto`, the fork of quinn by n0.
    Noq,
}

impl Which {
    /// All stacks that can run.
    pub const ALL: [Self; 2] = [Self::Quinn, Self::Noq];

    /// Its name after `quic:`.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Noq => "noq",
            Self::Quinn => "quinn",
        }
    }

    /// The stack and its version, as rows name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Noq => noq::Noq::NAME,
            Self::Quinn => quinn::Quinn::NAME,
        }
    }

    /// Runs one job of a study that [`Quic`](super::Quic) accepts. `internals` records the startup's internal values with
    /// each sample.
    pub fn run(
        self,
        knobs: &Knobs,
        study: &Study,
        job: Job,
        sampling: Sampling,
        internals: bool,
    ) -> Result<Outcome, QuicError> {
        match self {
            Self::Noq => run::<noq::Noq>(knobs, study, job, sampling, internals),
            Self::Quinn => run::<quinn::Quinn>(knobs, study, job, sampling, internals),
        }
    }

    /// Runs a connection whose application writes by a script, for up to `limit` until the peer has all, with
    /// what else a job of a study says. It ends when nothing has come for 30 s.
    pub fn session(
        self,
        knobs: &Knobs,
        study: &Study,
        job: Job,
        writes: &[Write],
        limit: Span,
    ) -> Result<Session, QuicError> {
        match self {
            Self::Noq => session::<noq::Noq>(knobs, study, job, writes, limit),
            Self::Quinn => session::<quinn::Quinn>(knobs, study, job, writes, limit),
        }
    }

    /// Repeats a job and returns the most gaps between pieces of the stream that the client ever had to
    /// hold: a receiver that allows fewer would have closed the connection. The client here allows any number.
    pub fn gaps(self, knobs: &Knobs, study: &Study, job: Job) -> Result<u64, QuicError> {
        match self {
            Self::Noq => gaps::<noq::Noq>(knobs, study, job),
            Self::Quinn => gaps::<quinn::Quinn>(knobs, study, job),
        }
    }

    /// Repeats a job and returns the qlog of both ends, the client's first. The last slow start of the server
    /// ends at the exit of the row.
    pub fn logs(self, knobs: &Knobs, study: &Study, job: Job) -> Result<[Vec<u8>; 2], QuicError> {
        if self == Self::Quinn {
            let why = "quinn-proto logs neither frames nor acknowledgements; --engine quic:noq does";
            return Err(QuicError::Unsupported { key: "qlog", why: why.to_string() });
        }
        let mut transfer = prepared::<noq::Noq>(knobs, study, job, true)?;
        transfer.run(Instant::ZERO + study.duration)?;
        transfer.logs.map(|l| l.take()).ok_or_else(|| stack("no log"))
    }
}

/// The transfer of a job, with what an earlier connection left.
pub(super) fn prepared<S: Stack>(
    knobs: &Knobs,
    study: &Study,
    job: Job,
    logged: bool,
) -> Result<Transfer<S>, QuicError> {
    let contender = &study.contenders[job.contender];
    let seed = study.run_seed(job.run);
    let remembered = memory::<S>(knobs, study, contender, seed)?;
    Transfer::new(knobs, study, contender, seed, remembered, logged)
}

fn gaps<S: Stack>(knobs: &Knobs, study: &Study, job: Job) -> Result<u64, QuicError> {
    let mut transfer = prepared::<S>(knobs, study, job, false)?;
    transfer.pieces = Some(Ranges::default());
    transfer.run(Instant::ZERO + study.duration)?;
    match transfer.closed {
        None => Ok(transfer.observed.most_gaps),
        Some(why) => Err(QuicError::Closed(why)),
    }
}

fn session<S: Stack>(
    knobs: &Knobs,
    study: &Study,
    job: Job,
    writes: &[Write],
    limit: Span,
) -> Result<Session, QuicError> {
    let mut transfer = prepared::<S>(knobs, study, job, false)?;
    (transfer.script, transfer.unwritten) = (Script::new(writes), 0);
    transfer.size = Some(writes.iter().map(|w| w.bytes).sum());
    transfer.run(Instant::ZERO + limit)?;
    // What is on its way back counts: the connection is closed after some time without traffic.
    if let Some(at) = transfer.observed.completed.take() {
        transfer.size = None;
        transfer.run(at + script::IDLE)?;
    }
    let Transfer { script, observed, handle, closed, .. } = transfer;
    let handle = handle.ok_or_else(|| stack("the client's first packet never arrived"))?;
    let host = handle.lock();
    Ok(Session {
        initial_window: host.initial_window(),
        window: host.window(),
        exit: host.exit,
        counters: host.counters,
        took: script.took,
        capacity: observed.capacity,
        closed,
    })
}

fn run<S: Stack>(
    knobs: &Knobs,
    study: &Study,
    job: Job,
    sampling: Sampling,
    internals: bool,
) -> Result<Outcome, QuicError> {
    let (contender, seed) = (&study.contenders[job.contender], study.run_seed(job.run));
    let mut transfer = prepared::<S>(knobs, study, job, false)?;
    (transfer.sampling, transfer.internals) = (sampling, internals);
    transfer.run(Instant::ZERO + study.duration)?;
    let Transfer { path, now, observed, handle, closed, .. } = transfer;
    let handle = handle.ok_or_else(|| stack("the client's first packet never arrived"))?;
    let host = handle.lock();
    let measured = Measured {
        closed,
        links: LinkRow::all(&study.path, &path.forward.at_links(0)),
        caveats: S::CAVEAT.map(str::to_string).into_iter().chain(row::peer_limited(&observed)).collect(),
        ..row::measured(&path, now, &observed, &host, u64::from(knobs.mtu), knobs.ecn)
    };
    let profile = format!("{}{}", S::NAME, knobs.label());
    let identity = Identity { profile, ..Identity::new("quic", study, contender, job.run, seed) };
    let row = Row::new(identity, &measured);
    drop(host);
    Ok(Outcome { job, row, trace: observed.trace, measured })
}

/// What an earlier connection leaves, for startups that use it: the same transfer, with another seed.
fn memory<S: Stack>(
    knobs: &Knobs,
    study: &Study,
    contender: &Contender,
    seed: u64,
) -> Result<Option<slowstart::view::PathMemory>, QuicError> {
    let path = study.remember.path(&study.path).filter(|_| contender.startup.uses_path_memory());
    let Some(path) = path else { return Ok(None) };
    let earlier = Study { path: path.clone(), ..study.clone() };
    let before = random::at(seed, u64::MAX) >> 11;
    let mut transfer = Transfer::<S>::new(knobs, &earlier, contender, before, None, false)?;
    transfer.run(Instant::ZERO + study.duration)?;
    Ok(transfer.handle.and_then(|h| h.lock().memory()))
}
