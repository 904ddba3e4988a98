//! An engine that also runs startups in Python: every door that takes an engine and names takes them too.

use crate::connection::{self, Call, Registered, register};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use slowstart::registry::Algorithm;
use slowstart::startup::foreign::Foreign;
use slowstart_study::engines::{Capture, Engine, EngineError, Lack, Part, Watched, checked};
use slowstart_study::run::{Job, Outcome};
use slowstart_study::scenario::{Contender, Study, StudyText};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Names as a study has them, if they were given.
type Names = Option<Vec<String>>;

/// What runs in place of a flow in Python until the study is checked.
const STAND_IN: &str = "standard";

/// An engine, and classes by the names that a study gives them.
#[derive(Debug)]
pub(crate) struct Hosted {
    engine: Box<dyn Engine>,
    classes: Arc<Classes>,
}

/// Startups in Python, and the call that they are of.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    call: Arc<Call>,
    named: Vec<(String, Registered)>,
    /// Hashes of the classes, where rows are kept by what decided them.
    hashes: BTreeMap<String, String>,
}

impl Classes {
    /// The startups and the entries of `against` as a caller gives them: names, or classes with a method `on_ack`; for
    /// `against` a class with when it begins, `(Mine, "@-5s")`. Returns them as a study has them.
    pub(crate) fn read(
        startups: Option<Vec<Bound<'_, PyAny>>>,
        against: Option<Vec<Bound<'_, PyAny>>>,
    ) -> PyResult<(Self, Names, Names)> {
        let mut classes = Self::default();
        let startups = startups
            .map(|all| all.into_iter().map(|s| classes.one(s, true)).collect::<PyResult<Vec<_>>>())
            .transpose()?;
        if let Some(twice) = startups.iter().flatten().enumerate().find_map(|(i, name)| {
            let before = startups.iter().flatten().take(i);
            before.into_iter().any(|n| n == name).then_some(name)
        }) {
            let expected = "expected different names";
            return Err(crate::bad(format!("startups: found two with the name {twice}, {expected}")));
        }
        let flow = |entry: Bound<'_, PyAny>| {
            if let Ok(text) = entry.extract::<String>() {
                return Ok(text);
            }
            let (class, when): (Bound<'_, PyAny>, String) = entry.extract().map_err(|_| {
                PyTypeError::new_err("against: expected texts such as \"cubic@-5s\", or (class, \"@-5s\")")
            })?;
            Ok(format!("{}{when}", classes.one(class, false)?))
        };
        let against =
            against.map(|all| all.into_iter().map(flow).collect::<PyResult<Vec<_>>>()).transpose()?;
        Ok((classes, startups, against))
    }

    /// Reads one startup; returns its name.
    fn one(&mut self, item: Bound<'_, PyAny>, is_startup: bool) -> PyResult<String> {
        if item.is_instance_of::<PyString>() {
            return item.extract();
        }
        if !item.is_callable() {
            return Err(PyTypeError::new_err("startups: expected names, or classes with a method on_ack"));
        }
        let name = item.getattr("__name__").and_then(|n| n.extract::<String>());
        let name = name.unwrap_or_else(|_| "python".into());
        // A class of `against` may be one of the startups.
        if is_startup || self.named.iter().all(|(n, _)| *n != name) {
            self.named.push((name.clone(), register(&item, &name, &self.call)?));
        }
        Ok(name)
    }

    /// Has the code of each class decide the keys of rows.
    pub(crate) fn hashed(mut self, hashes: BTreeMap<String, String>) -> Self {
        self.hashes = hashes;
        self
    }

    /// True if there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// The exception that ended the runs of the call, if there was one. Others may follow.
    pub(crate) fn raised(&self) -> Option<PyErr> {
        self.call.take()
    }

    fn get(&self, name: &str) -> Option<&Registered> {
        self.named.iter().find(|(n, _)| n == name).map(|(_, r)| r)
    }
}

impl Hosted {
    /// `engine` with these classes.
    pub(crate) fn new(engine: Box<dyn Engine>, classes: &Arc<Classes>) -> Self {
        Self { engine, classes: Arc::clone(classes) }
    }

    /// The contender of a class.
    fn foreign(&self, name: &str, class: &Registered, avoidance: &str) -> Result<Contender, EngineError> {
        if self.is_real_clock() {
            let why = format!("startups: the engine {} runs none that is in Python", self.name());
            return Err(EngineError::Name(why));
        }
        // No run is under way on this thread.
        connection::forget();
        let label =
            self.classes.hashes.get(name).map_or_else(|| name.to_string(), |hash| format!("{name}#{hash}"));
        // It takes everything but itself from one of the registry.
        Ok(Contender {
            label,
            startup_name: name.to_string(),
            params: BTreeMap::new(),
            startup: Algorithm::Foreign(Foreign::new(&connection::INTERPRETER, class.number())),
            ..self.engine.contender(STAND_IN, avoidance)?
        })
    }
}

/// True if a startup is in Python.
fn is_foreign(c: &Contender) -> bool {
    matches!(c.startup, Algorithm::Foreign(_))
}

/// True if a job needs the interpreter.
pub(crate) fn is_python(study: &Study, contender: usize) -> bool {
    is_foreign(&study.contenders[contender]) || study.against.iter().any(|f| is_foreign(&f.contender))
}

impl Engine for Hosted {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn is_real_clock(&self) -> bool {
        self.engine.is_real_clock()
    }

    fn lacks(&self, part: Part) -> Option<Lack> {
        self.engine.lacks(part)
    }

    fn startups(&self, avoidance: &str) -> Vec<String> {
        self.engine.startups(avoidance)
    }

    fn contender(&self, startup: &str, avoidance: &str) -> Result<Contender, EngineError> {
        match self.classes.get(startup) {
            Some(class) => self.foreign(startup, class, avoidance),
            None => self.engine.contender(startup, avoidance),
        }
    }

    fn stack(&self, study: &Study) -> String {
        self.engine.stack(study)
    }

    fn notes(&self, study: &Study) -> Vec<String> {
        self.engine.notes(study)
    }

    fn run(&self, study: &Study, job: Job, watched: &Watched<'_>) -> Result<Outcome, EngineError> {
        if !is_python(study, job.contender) {
            return self.engine.run(study, job, watched);
        }
        // Attached once, and not for each event.
        Python::attach(|_| {
            connection::begin_run(job.run);
            let outcome = self.engine.run(study, job, watched);
            connection::forget();
            if self.classes.call.has_ended() {
                return Err(EngineError::Name("a startup in Python raised an exception".into()));
            }
            outcome
        })
    }

    fn capture(&self, study: &Study, job: Job) -> Result<Capture, EngineError> {
        self.engine.capture(study, job)
    }

    fn study(&self, text: &StudyText, root: Option<&Path>) -> Result<Study, EngineError> {
        let mut text = text.clone();
        // The flows that are in Python, by their index among all of `against`.
        let (mut ours, mut flows) = (Vec::new(), 0);
        for entry in &mut text.against {
            let name = entry.split(['*', '@']).next().unwrap_or_default().to_string();
            let times = entry[name.len()..].strip_prefix('*').and_then(|n| n.split('@').next()?.parse().ok());
            let times: usize = times.unwrap_or(1);
            if let Some(class) = self.classes.get(&name) {
                *entry = format!("{STAND_IN}{}", &entry[name.len()..]);
                ours.push((flows..flows + times, self.foreign(&name, class, "cubic")?));
            }
            flows += times;
        }
        let mut study = checked(self, &text, root)?;
        for (flows, contender) in ours {
            for flow in study.against.get_mut(flows).into_iter().flatten() {
                flow.contender = contender.clone();
            }
        }
        Ok(study)
    }
}
