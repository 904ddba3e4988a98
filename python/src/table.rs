//! Tables: Arrow batches that other libraries read without a copy.

use crate::bad;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use pyo3::exceptions::PyModuleNotFoundError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use serde::Serialize;
use slowstart_study::columns::{Cell, Column, Kind};
use slowstart_sweep::query::Answer;
use slowstart_sweep::table::TableBuilder;
use std::fmt::Write;

/// A table of results: columns of equal length, each with a name.
#[pyclass(module = "slowstart", frozen)]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

/// Rows that a notebook shows.
const SHOWN: usize = 20;

fn value(py: Python<'_>, array: &ArrayRef, row: usize) -> PyResult<Py<PyAny>> {
    if array.is_null(row) {
        return Ok(py.None());
    }
    Ok(match array.data_type() {
        DataType::UInt64 => {
            array.as_primitive::<UInt64Type>().value(row).into_pyobject(py)?.into_any().unbind()
        }
        DataType::Float64 => {
            array.as_primitive::<Float64Type>().value(row).into_pyobject(py)?.into_any().unbind()
        }
        DataType::Boolean => array.as_boolean().value(row).into_pyobject(py)?.to_owned().into_any().unbind(),
        _ => array.as_string::<i32>().value(row).into_pyobject(py)?.into_any().unbind(),
    })
}

impl Table {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }

    /// A table of rows with these columns.
    pub(crate) fn of<T: Serialize>(
        columns: Vec<Column>,
        rows: impl IntoIterator<Item = T>,
    ) -> PyResult<Self> {
        let mut builder = TableBuilder::new(columns);
        for row in rows {
            builder.push(&serde_json::to_value(row).map_err(bad)?);
        }
        let batch = builder.batch().map_err(bad)?;
        Ok(Self::new(builder.schema(), vec![batch]))
    }

    /// A table of JSON objects of text and numbers, whose columns are those named.
    pub(crate) fn plain<T: Serialize>(
        columns: &[(&str, Kind)],
        rows: impl IntoIterator<Item = T>,
    ) -> PyResult<Self> {
        Self::of(columns.iter().map(|(name, kind)| Column::new(name, *kind, "")).collect(), rows)
    }

    pub(crate) fn answer(answer: Answer) -> PyResult<Self> {
        let (columns, rows) = (answer.columns, answer.rows);
        let names: Vec<String> = columns.iter().map(|c| c.name.clone()).collect();
        let mut builder = TableBuilder::new(columns);
        for cells in rows {
            let object: serde_json::Map<_, _> = names.iter().cloned().zip(cells.iter().map(json)).collect();
            builder.push(&object.into());
        }
        let batch = builder.batch().map_err(bad)?;
        Ok(Self::new(builder.schema(), vec![batch]))
    }
}

/// A cell as JSON.
pub(crate) fn json(cell: &Cell) -> serde_json::Value {
    match cell {
        Cell::Null => serde_json::Value::Null,
        Cell::Integer(n) => (*n).into(),
        Cell::Number(x) => (*x).into(),
        Cell::Boolean(b) => (*b).into(),
        Cell::Text(t) => t.clone().into(),
    }
}

/// A library that this package does without.
fn library<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyModule>> {
    py.import(name).map_err(|e| {
        if e.is_instance_of::<PyModuleNotFoundError>(py) {
            PyModuleNotFoundError::new_err(format!("{name} is not installed: pip install {name}"))
        } else {
            e
        }
    })
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|f| f.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The values of a column as a list; absent values are None.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let at = self.schema.index_of(name).map_err(|_| {
            bad(format!("column: found {name:?}, expected one of {}", self.column_names().join(", ")))
        })?;
        let list = PyList::empty(py);
        for batch in &self.batches {
            let array = batch.column(at);
            for row in 0..array.len() {
                list.append(value(py, array, row)?)?;
            }
        }
        Ok(list)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        self.column(py, name)
    }

    /// A dictionary with a list for each column.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for name in self.column_names() {
            all.set_item(&name, self.column(py, &name)?)?;
        }
        Ok(all)
    }

    /// The table as a pandas `DataFrame` (needs pandas).
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        library(py, "pandas")?.getattr("DataFrame")?.call1((self.to_dict(py)?,))
    }

    /// The table as a polars `DataFrame`, without a copy (needs polars).
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        library(slf.py(), "polars")?.getattr("DataFrame")?.call1((slf,))
    }

    /// The Arrow C stream of the `PyCapsule` interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may ignore what is requested.
        drop(requested_schema);
        let batches: Vec<Result<RecordBatch, ArrowError>> = self.batches.iter().cloned().map(Ok).collect();
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        format!("<slowstart.Table: {} rows, {} columns>", self.__len__(), self.schema.fields().len())
    }

    /// The first rows, for Jupyter.
    fn _repr_html_(&self) -> String {
        let escape = |t: &str| t.replace('&', "&amp;").replace('<', "&lt;");
        let text = |array: &ArrayRef, row: usize| match array.data_type() {
            _ if array.is_null(row) => String::new(),
            DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
            DataType::Float64 => array.as_primitive::<Float64Type>().value(row).to_string(),
            DataType::Boolean => array.as_boolean().value(row).to_string(),
            _ => escape(array.as_string::<i32>().value(row)),
        };
        let mut page = "<table><thead><tr>".to_string();
        for name in self.column_names() {
            let _ = write!(page, "<th>{}</th>", escape(&name));
        }
        page.push_str("</tr></thead><tbody>");
        let mut left = SHOWN;
        for batch in &self.batches {
            let here = batch.num_rows().min(left);
            left -= here;
            for row in 0..here {
                page.push_str("<tr>");
                for array in batch.columns() {
                    let _ = write!(page, "<td>{}</td>", text(array, row));
                }
                page.push_str("</tr>");
            }
        }
        let _ = write!(page, "</tbody></table><p>{} rows</p>", self.__len__());
        page
    }
}
