//! The QUIC stacks as engines of studies.

use super::{Knobs, NOT_CARRIED, QuicError, Which};
use slowstart::registry;
use slowstart_quic::factory::Factory;
use slowstart_study::engines::{Capture, Engine, EngineError, Lack, Part, Refusal, Watched};
use slowstart_study::run::{Job, Outcome};
use slowstart_study::scenario::{Contender, Study};

/// A QUIC stack with its settings, over the simulator's paths at virtual time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quic {
    name: String,
    which: Which,
    knobs: Knobs,
}

impl Quic {
    /// A stack with settings such as `ecn=on,mtu=1472`, or with none.
    ///
    /// # Errors
    /// If a setting is unknown, has a wrong value, or is not one of this stack.
    pub fn new(which: Which, settings: &str) -> Result<Self, EngineError> {
        let knobs = Knobs::read(which, settings).map_err(|e| match e {
            QuicError::Unsupported { why, .. } => EngineError::Name(why),
            other => EngineError::Failed(other.into()),
        })?;
        Ok(Self { name: format!("quic:{}{}", which.key(), knobs.label()), which, knobs })
    }
}

impl From<QuicError> for EngineError {
    fn from(e: QuicError) -> Self {
        Self::Failed(e.into())
    }
}

impl Engine for Quic {
    fn name(&self) -> &str {
        &self.name
    }

    fn lacks(&self, part: Part) -> Option<Lack> {
        let why = match part {
            Part::Profile | Part::Knobs | Part::Buffers | Part::Ecn => {
                "a TCP stack has it, and this is a QUIC stack, whose settings follow its name (docs/reference/quic.md)"
            }
            Part::App => "it has bulk downloads only",
            Part::Against | Part::Driven => "it runs one connection at a time, a download",
            Part::Proxy => "a proxy cannot split a QUIC connection; name the path without it",
            Part::Handshake => "drop_syn and drop_synack are of TCP, and QUIC has neither packet",
            Part::Pcap => "its packets are encrypted, and it writes qlog instead",
            Part::Qlog if self.which == Which::Quinn => {
                return Some(Lack {
                    why: "quinn-proto logs neither frames nor acknowledgements",
                    instead: "quic:noq or sim",
                });
            }
            // What finds the queue of the interface full is lost to a QUIC sender, as on the network.
            Part::Qlog | Part::Remember | Part::Samples | Part::Interface => return None,
        };
        Some(Lack::but_sim(why))
    }

    fn startups(&self, _: &str) -> Vec<String> {
        let names = registry::all().map(|e| e.name);
        names.filter(|name| NOT_CARRIED.iter().all(|(n, _)| n != name)).map(str::to_string).collect()
    }

    fn contender(&self, startup: &str, avoidance: &str) -> Result<Contender, EngineError> {
        let contender = Contender::read("startup", startup, avoidance)?;
        let refused = |key, why| Refusal { key, engine: self.name.clone(), why, instead: "sim".to_string() };
        if let Some((name, why)) = NOT_CARRIED.iter().find(|(n, _)| *n == contender.startup_name) {
            return Err(refused("startup", format!("{name} needs {why}")).into());
        }
        Factory::new(contender.startup.clone(), contender.avoidance.clone(), 1)
            .map_err(|why| refused("avoidance", why.to_string()))?;
        Ok(contender)
    }

    fn stack(&self, _: &Study) -> String {
        format!("{}{}", self.which.name(), self.knobs.label())
    }

    fn run(&self, study: &Study, job: Job, watched: &Watched<'_>) -> Result<Outcome, EngineError> {
        Ok(self.which.run(&self.knobs, study, job, watched.sampling, watched.internals)?)
    }

    fn capture(&self, study: &Study, job: Job) -> Result<Capture, EngineError> {
        self.require(&[Part::Qlog])?;
        let [client, server] = self.which.logs(&self.knobs, study, job)?;
        Ok(Capture::Logs(vec![("client", client), ("server", server)]))
    }
}
