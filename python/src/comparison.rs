//! The result of a comparison.

use crate::table::Table;
use pyo3::prelude::*;
use serde::Serialize;
use slowstart_report::data::SAMPLES;
use slowstart_report::link::PLAYGROUND;
use slowstart_report::study::{Drawn, curve, page};
use slowstart_study::columns::columns;
use slowstart_study::decision::{Decision, MARGIN, Terms};
use slowstart_study::figures::{difference_columns, differences, interval_columns, intervals};
use slowstart_study::record::{EVENT_SCHEMA, OfRun, ROW_SCHEMA, Row, SAMPLE_SCHEMA, Trace};
use slowstart_study::scenario::Study;
use slowstart_study::summary::label;
use slowstart_study::verdict::verdict;

/// What differences are judged by.
pub(crate) struct Judged {
    /// The label of the baseline; `None` for the default of the engine.
    baseline: Option<String>,
    /// Differences of less than this share are none.
    margin: f64,
}

impl Judged {
    /// With a margin in percent.
    pub(crate) fn new(baseline: Option<String>, margin_percent: Option<f64>) -> Self {
        Self { baseline, margin: margin_percent.map_or(MARGIN, |m| m / 100.0) }
    }

    /// Fails if the margin is none, or if no startup of the study has the name of the baseline.
    pub(crate) fn check(&self, study: &Study) -> Result<(), String> {
        if !(0.0..=1.0).contains(&self.margin) {
            return Err(format!("margin: found {}, expected 0 to 100 percent", self.margin * 100.0));
        }
        self.terms().check(study).map_err(|why| format!("baseline: {why}"))
    }

    pub(crate) fn terms(&self) -> Terms<'_> {
        Terms { baseline: self.baseline.as_deref(), margin: self.margin }
    }
}

/// The result of a comparison or a study: a row for each run, and one run of each startup over time, over the
/// same path.
#[pyclass(module = "slowstart", frozen)]
pub(crate) struct Comparison {
    pub(crate) study: Study,
    /// The call that made it, for the page.
    pub(crate) call: String,
    /// What the verdict and the page judge differences by.
    pub(crate) judged: Judged,
    /// In the order of [`Study::jobs`].
    pub(crate) rows: Vec<Row>,
    /// The index of the row of the run with the baseline's median, of each startup, and that run over time.
    pub(crate) median: Vec<(usize, Trace)>,
}

impl Comparison {
    /// A table of what `pick` takes from the median run of each startup.
    fn of_median<T: Serialize>(&self, schema: &str, pick: fn(&Trace) -> &[T]) -> PyResult<Table> {
        let labels: Vec<String> = self.median.iter().map(|(at, _)| label(&self.rows[*at])).collect();
        let all = self.median.iter().zip(&labels).flat_map(|((at, trace), startup)| {
            pick(trace).iter().map(|what| OfRun { startup, run: self.rows[*at].run, what })
        });
        Table::of(columns(schema), all)
    }
}

#[pymethods]
impl Comparison {
    /// A row for each run.
    #[getter]
    fn rows(&self) -> PyResult<Table> {
        Table::of(columns(ROW_SCHEMA), &self.rows)
    }

    /// The run with the baseline's median time, of each startup, over time: all over the same path.
    #[getter]
    fn samples(&self) -> PyResult<Table> {
        self.of_median(SAMPLE_SCHEMA, |t| &t.samples)
    }

    /// The events of those runs.
    #[getter]
    fn events(&self) -> PyResult<Table> {
        self.of_median(EVENT_SCHEMA, |t| &t.events)
    }

    /// The median of each figure of each startup, with its 95 % interval, and how many runs have no value.
    #[getter]
    fn intervals(&self) -> PyResult<Table> {
        let decision = Decision::new(&self.rows, &self.judged.terms());
        Table::of(interval_columns(), intervals(&decision))
    }

    /// The differences of each startup from the baseline, run by run, with their 95 % intervals, and what they say.
    #[getter]
    fn differences(&self) -> PyResult<Table> {
        let decision = Decision::new(&self.rows, &self.judged.terms());
        Table::of(difference_columns(), differences(&decision))
    }

    /// What the baseline needs, the best answer within the margins of its costs, and what the fastest costs.
    #[getter]
    fn verdict(&self) -> String {
        verdict(&Decision::new(&self.rows, &self.judged.terms()))
    }

    /// The page with the table and the charts, as HTML.
    fn html(&self) -> String {
        let labels: Vec<String> = self.median.iter().map(|(at, _)| label(&self.rows[*at])).collect();
        let drawn: Vec<Drawn<'_>> = self
            .median
            .iter()
            .zip(&labels)
            .map(|((at, trace), label)| Drawn { label, row: &self.rows[*at], trace })
            .collect();
        let curves = self.median.iter().map(|(at, t)| curve(&self.study, *at, &self.rows[*at], t, SAMPLES));
        page(&self.study, &self.rows, &drawn, curves.collect(), &self.call, PLAYGROUND, &self.judged.terms())
    }

    /// The page in a frame, for Jupyter.
    fn _repr_html_(&self) -> String {
        let page = self.html().replace('&', "&amp;").replace('"', "&quot;");
        format!("<iframe srcdoc=\"{page}\" width=\"100%\" height=\"600\" frameborder=\"0\"></iframe>")
    }

    fn __repr__(&self) -> String {
        format!(
            "<slowstart.Comparison over {}: {} rows. {}>",
            self.study.path.name,
            self.rows.len(),
            self.verdict()
        )
    }

    fn __len__(&self) -> usize {
        self.rows.len()
    }
}
