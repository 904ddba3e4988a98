//! A Linux kernel at virtual time as an engine of studies.

use crate::error::GuestError;
use crate::host::Host;
use crate::kernel;
use crate::order::{Answer, Description, Order, Transfer};
use crate::outcome::outcome;
use slowstart::units::Span;
use slowstart_sim::engine::Sampling;
use slowstart_sim::suggest::did_you_mean;
use slowstart_sim::tcp::ecn::EcnRule;
use slowstart_sim::tcp::profile::Profile;
use slowstart_study::engines::{Capture, Engine, EngineError, Lack, Part, Refusal, Watched};
use slowstart_study::record::Param;
use slowstart_study::run::{Job, Outcome};
use slowstart_study::scenario::{self, Contender, Study, StudyError};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Processor time that each process of a guest may use by default, in seconds.
const CPU_S: u64 = 600;
/// `tcp_rmem[1]` of Linux, in bytes.
const RMEM_FIRST: u64 = 128 << 10;
/// Memory of a guest beside what its connections need, in MiB.
const MEMORY: u64 = 256;

/// A Linux kernel over the path of a study at virtual time. Its startups are the congestion controls of that kernel.
#[derive(Debug)]
pub struct Linux {
    /// As `--engine` takes it.
    name: String,
    host: Host,
    modules: Vec<PathBuf>,
    /// How long after data can be read the receiver reads it.
    read: Span,
    rmem_first: u64,
    /// `tcp_rmem[2]`, in bytes; `None`: that of the simulator, which decides the scale of the window.
    rmem: Option<u64>,
    /// True if the kernel's random numbers are the same in every run.
    repeats: bool,
    /// The bytes of the kernel and of its modules.
    digests: Vec<u64>,
    kernel: Description,
}

impl Linux {
    /// What the name begins with; the kernel follows.
    pub const PREFIX: &str = "linux:";

    /// The engine of a name such as `linux:./linux,read=1ms`. Starts the kernel once to learn what it has.
    ///
    /// # Errors
    /// If the file is no such kernel, it does not start, or a setting is wrong.
    pub fn named(name: &str) -> Result<Self, EngineError> {
        let wrong = |why: String| EngineError::Name(format!("{name}: {why}"));
        let mut words = name.strip_prefix(Self::PREFIX).unwrap_or(name).split(',');
        let file = words.next().unwrap_or_default();
        if file.is_empty() {
            return Err(wrong("expected a kernel that `make uml` built, such as linux:./linux".to_string()));
        }
        let (mut modules, mut read, mut rmem_first, mut cpu_s) = (Vec::new(), Span::ZERO, RMEM_FIRST, CPU_S);
        let (mut program, mut rmem) = (None, None);
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let said = |e: StudyError| wrong(e.to_string());
            match key {
                "read" => read = scenario::time(key, value).map_err(said)?,
                "rmem" => rmem = Some(scenario::bytes(key, value).map_err(said)?),
                "rmem_first" => rmem_first = scenario::bytes(key, value).map_err(said)?,
                "cpu" => cpu_s = scenario::time(key, value).map_err(said)?.0.div_ceil(1_000_000_000).max(1),
                "module" => modules.push(absolute(value)?),
                "program" => program = Some(absolute(value)?),
                other => {
                    let known = ["read", "rmem_first", "rmem", "cpu", "module", "program"];
                    let hint = did_you_mean(other, &known);
                    return Err(wrong(format!(
                        "found the setting {other:?}{hint}, expected one of {}",
                        known.join(", ")
                    )));
                }
            }
        }
        let kernel = absolute(file)?;
        let checked = kernel::check(&kernel)?;
        let program = match program {
            Some(program) => program,
            None => std::env::current_exe().map_err(GuestError::io("find this program"))?,
        };
        let host = Host { kernel, program, cpu_s };
        let order = Order::Describe { modules: modules.clone() };
        let Answer::Described(description) = host.run(&order, MEMORY, &|| false)? else {
            return Err(wrong("it answered another question".to_string()));
        };
        let of_modules = modules.iter().map(|m| kernel::module_digest(m));
        let digests = std::iter::once(Ok(checked.digest)).chain(of_modules).collect::<Result<_, _>>()?;
        Ok(Self {
            name: name.to_string(),
            host,
            digests,
            modules,
            read,
            rmem_first,
            rmem,
            repeats: checked.repeats,
            kernel: description,
        })
    }

    /// The release of the kernel, as `uname -r` prints it.
    pub fn release(&self) -> &str {
        &self.kernel.release
    }

    /// Fails if the kernel has no such control, or the control no such parameter.
    fn control(&self, text: &str) -> Result<(String, BTreeMap<String, String>), EngineError> {
        let refused = |why: String| Refusal {
            key: "startup",
            engine: self.name.clone(),
            why,
            instead: "sim, or a kernel with it".to_string(),
        };
        let (control, rest) = text.split_once(':').unwrap_or((text, ""));
        let Some(known) = self.kernel.controls.get(control) else {
            let names: Vec<&str> = self.kernel.controls.keys().map(String::as_str).collect();
            let hint = did_you_mean(control, &names);
            let why =
                format!("found {control:?}{hint}; Linux {} has {}", self.kernel.release, names.join(", "));
            return Err(refused(why).into());
        };
        let mut given = BTreeMap::new();
        for param in rest.split(',').filter(|p| !p.is_empty()) {
            let (key, value) = param.split_once('=').unwrap_or((param, ""));
            if !known.iter().any(|k| k == key) {
                let names: Vec<&str> = known.iter().map(String::as_str).collect();
                let hint = did_you_mean(key, &names);
                let has = if known.is_empty() { "none".to_string() } else { known.join(", ") };
                return Err(refused(format!(
                    "{control}: found the parameter {key:?}{hint}; its module has {has}"
                ))
                .into());
            }
            given.insert(key.to_string(), value.to_string());
        }
        Ok((control.to_string(), given))
    }

    fn order(&self, study: &Study, job: Job, seed: u64, capture: bool) -> Result<Transfer, EngineError> {
        let contender = &study.contenders[job.contender];
        let avoidance = contender.avoidance_name.as_deref().unwrap_or_default();
        let (control, parameters) =
            self.control(alias(&contender.label, avoidance).unwrap_or(&contender.label))?;
        let written = study.path.written().ok_or_else(|| Refusal {
            key: "path",
            engine: self.name.clone(),
            why: "its files are not on a disk".to_string(),
            instead: "sim".to_string(),
        })?;
        // What the study sets has precedence over the settings of the engine.
        let (own, default) = (&study.profile, &Profile::LINUX_6_18);
        Ok(Transfer {
            path: written.0.to_string(),
            // A guest has another working directory.
            folder: std::env::current_dir().map_err(GuestError::io("find this folder"))?.join(written.1),
            seed,
            modules: self.modules.clone(),
            control,
            parameters,
            app: study.app_text.clone(),
            size: study.size,
            duration: study.duration.0,
            ecn: match study.profile.ecn {
                EcnRule::Off => None,
                EcnRule::Rfc3168 | EcnRule::Dctcp => Some(1),
                EcnRule::Passive => Some(2),
                EcnRule::AccEcn => Some(3),
            },
            read: self.read.0,
            rmem_first: if own.rmem_first == default.rmem_first { self.rmem_first } else { own.rmem_first.0 },
            rmem: if own.rmem == default.rmem { self.rmem } else { Some(own.rmem.0) },
            capture,
        })
    }

    /// Memory for a guest over this path, in MiB: the data of a connection is in the kernel at both ends, twice at most.
    fn memory(study: &Study) -> u64 {
        MEMORY + (study.path.most_held().0.saturating_mul(8) >> 20).min(8 << 10)
    }

    /// Runs a job. `capture`: with every packet, and a sample at each acknowledgement.
    fn outcome(
        &self,
        study: &Study,
        job: Job,
        sampling: Sampling,
        capture: bool,
        stop: &dyn Fn() -> bool,
    ) -> Result<Outcome, EngineError> {
        let seed = study.run_seed(job.run);
        let order = Order::Transfer(self.order(study, job, seed, capture)?);
        match self.host.run(&order, Self::memory(study), stop)? {
            Answer::Ran(recording) => Ok(outcome(study, job, seed, &recording, sampling)),
            _ => Err(GuestError::Refused("the guest answered another question".to_string()).into()),
        }
    }
}

/// The kernel's control that is this startup with this avoidance, under the names of this project.
fn alias(startup: &str, avoidance: &str) -> Option<&'static str> {
    Some(match (startup, avoidance) {
        ("hystart", "cubic") => "cubic",
        ("standard", "cubic") => "cubic:hystart=0",
        ("standard", "reno") => "reno",
        _ => return None,
    })
}

/// The file from the root: a guest has another working directory.
fn absolute(file: &str) -> Result<PathBuf, EngineError> {
    std::path::absolute(file).map_err(|e| EngineError::Name(format!("{file}: {e}")))
}

impl Engine for Linux {
    fn name(&self) -> &str {
        &self.name
    }

    fn identity(&self) -> String {
        format!("{} {:x?}", self.name, self.digests)
    }

    fn lacks(&self, part: Part) -> Option<Lack> {
        Some(Lack::but_sim(match part {
            Part::Ecn
            | Part::Buffers
            | Part::App
            | Part::Handshake
            | Part::Samples
            | Part::Pcap
            | Part::Qlog => return None,
            Part::Profile | Part::Knobs => {
                "the stack is that of its kernel (settings of the engine: read, rmem_first, rmem; of the stack: ecn, rmem_first, rmem)"
            }
            Part::Against | Part::Driven => "it runs one connection at a time, a download",
            Part::Remember => "each run has a kernel of its own, which remembers nothing",
            Part::Proxy => "its path has no proxy",
            Part::Interface => {
                "a full queue of its path drops packets, that of an interface (link=host, host_rate) holds them back"
            }
        }))
    }

    fn startups(&self, _: &str) -> Vec<String> {
        self.kernel.controls.keys().cloned().collect()
    }

    fn contender(&self, startup: &str, avoidance: &str) -> Result<Contender, EngineError> {
        if alias(startup, avoidance).is_some() {
            return Ok(Contender::read("startup", startup, avoidance)?);
        }
        let (control, given) = self.control(startup)?;
        // What the simulator runs in its place; here only the name counts.
        let model = Contender::read("startup", "standard", "reno")?;
        let params = given.into_iter().map(|(key, value)| {
            let param = value.parse().map_or(Param::Word(value), Param::Number);
            (key, param)
        });
        Ok(Contender {
            label: startup.to_string(),
            startup_name: control,
            params: params.collect(),
            avoidance_name: None,
            ..model
        })
    }

    fn stack(&self, study: &Study) -> String {
        let ecn = if study.profile.ecn == EcnRule::Off { "" } else { ", ECN" };
        let read = if self.read == Span::ZERO {
            "reads at once".to_string()
        } else {
            format!("reads after {} us", self.read.0 / 1000)
        };
        format!("Linux {} at virtual time, {read}{ecn}", self.kernel.release)
    }

    fn notes(&self, _: &Study) -> Vec<String> {
        let why = "this kernel takes random numbers from the host, so that runs do not repeat to the byte (make uml)";
        if self.repeats { Vec::new() } else { vec![why.to_string()] }
    }

    fn run(&self, study: &Study, job: Job, watched: &Watched<'_>) -> Result<Outcome, EngineError> {
        self.outcome(study, job, watched.sampling, false, watched.stop)
    }

    fn capture(&self, study: &Study, job: Job) -> Result<Capture, EngineError> {
        let outcome = self.outcome(study, job, Sampling::EachAck, true, &|| false)?;
        Ok(Capture::Trace(Box::new(outcome.trace)))
    }

    fn check(&self, study: &Study) -> Result<(), Refusal> {
        if study.connections > 1 {
            return Err(Refusal {
                key: "app",
                engine: self.name.clone(),
                why: "it runs one connection at a time".to_string(),
                instead: "sim".to_string(),
            });
        }
        let parts = [
            (Part::Against, !study.against.is_empty()),
            (Part::Proxy, study.path.proxy().is_some()),
            (Part::Interface, study.path.has_interface()),
        ];
        parts.into_iter().filter(|(_, asked)| *asked).try_for_each(|(part, _)| self.require(&[part]))?;
        let why = match study.profile.ecn {
            EcnRule::Dctcp => "DCTCP's feedback comes with the kernel's own control dctcp".to_string(),
            EcnRule::AccEcn if !self.kernel.accecn => {
                format!("Linux {} has no accurate feedback (tcp_ecn=3)", self.kernel.release)
            }
            _ => return Ok(()),
        };
        Err(Refusal {
            key: "set",
            engine: self.name.clone(),
            why,
            instead: "sim, or ecn=rfc3168".to_string(),
        })
    }
}
