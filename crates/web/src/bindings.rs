//! The functions of this crate for JavaScript. An error becomes an exception with a sentence.

#![allow(unreachable_pub, reason = "JavaScript reaches them")]

use crate::{capture, catalogue as names, packets as on_path, request, study};
use wasm_bindgen::prelude::{JsError, wasm_bindgen};

fn thrown<T>(result: Result<T, String>) -> Result<T, JsError> {
    result.map_err(|e| JsError::new(&e))
}

/// A study whose runs are made one by one.
#[wasm_bindgen]
pub struct Task(study::Task);

#[wasm_bindgen]
impl Task {
    /// Begins a study: reads the request, in JSON.
    #[wasm_bindgen(constructor)]
    pub fn new(request: &str) -> Result<Task, JsError> {
        thrown(study::Task::new(request)).map(Task)
    }

    /// How many runs there are in all.
    pub fn jobs(&self) -> usize {
        self.0.jobs()
    }

    /// Makes the next run and returns its row.
    #[wasm_bindgen(js_name = runNext)]
    pub fn run_next(&mut self) -> Option<String> {
        self.0.run_next()
    }

    /// Returns the title, verdict and tables of the rows so far, as JSON.
    pub fn summary(&self) -> String {
        self.0.summary()
    }

    /// The page that the command line writes, with links to the playground at `base`.
    pub fn report(&self, base: &str) -> String {
        self.0.report(base)
    }

    /// One run of each startup with samples.
    pub fn curves(&self, run: u32, samples: u32) -> Result<String, JsError> {
        thrown(self.0.curves(run, samples))
    }
}

/// The packets of one run.
#[wasm_bindgen]
pub fn packets(request: &str, contender: usize, run: u32) -> Result<String, JsError> {
    thrown(on_path::packets(request, contender, run))
}

/// Analyses a capture or log. `startups` is a JSON list of names; with `fork` the largest transfer is
/// continued in the simulator; `base` is the address of the playground.
#[wasm_bindgen]
pub fn analyse(
    name: &str,
    bytes: Vec<u8>,
    startups: &str,
    fork: bool,
    base: &str,
) -> Result<String, JsError> {
    let startups: Vec<String> = thrown(serde_json::from_str(startups).map_err(|e| e.to_string()))?;
    thrown(capture::analyse(capture::File { name, bytes }, &startups, fork, base))
}

/// The study file of a request.
#[wasm_bindgen]
pub fn toml(request: &str) -> Result<String, JsError> {
    thrown(request::Request::read(request).and_then(|r| r.toml()))
}

/// The command line of a request.
#[wasm_bindgen]
pub fn command(request: &str) -> Result<String, JsError> {
    thrown(request::Request::read(request).map(|r| r.text.command()))
}

/// The names that a request may use.
#[wasm_bindgen]
pub fn catalogue() -> String {
    names::catalogue()
}
