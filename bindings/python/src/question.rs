//! Questions to the archives: the log, and the history of events. An answer is a table.
//!
//! ```text
//! tampu.log.query     -> JSON of the query -> the collector, page by page -> messages of Arrow, columns -> table
//! tampu.event.history -> JSON of the query -> the collector, page by page -> events -> table
//! table -> `__arrow_c_stream__`: pandas, polars, pyarrow, DuckDB, without a copy
//!       -> `rows`: dicts, for programs without such a package
//! ```
//!
//! | subject | module |
//! |-|-|
//! | Arrow's C interface | `arrow` |
//! | events as rows | `history` |

pub mod arrow;
pub mod history;

use std::sync::Arc;

use pyo3::{
    prelude::*,
    types::{PyCapsule, PyDict, PyList},
};
use tampu_archive::{
    columns::{ColumnBatch, ColumnTable, ColumnType, ColumnValue, log_columns},
    query::Query,
};
use tampu_event::history::ask::HistoryQuery;

use crate::{
    event::{client::seconds, join},
    failure::raised,
};

/// Events after which signals such as Ctrl-C are looked at.
const SIGNALS: u64 = 4096;

/// Answer to a question.
#[pyclass(frozen, name = "Table", module = "tampu._native")]
pub struct AnswerTable {
    schema: Vec<(&'static str, ColumnType)>,
    batches: Vec<Arc<ColumnBatch>>,
    complete: bool,
}

/// Watches for signals while an answer arrives.
#[derive(Default)]
struct Signals {
    events: u64,
    raised: Option<PyErr>,
}

impl Signals {
    /// Counts an event; false if the program is to end the answer.
    fn allow(&mut self) -> bool {
        self.events += 1;
        !self.events.is_multiple_of(SIGNALS) || self.look()
    }

    /// Looks at the signals; false if the program is to end the answer.
    fn look(&mut self) -> bool {
        self.raised = Python::attach(|py| py.check_signals().err());
        self.raised.is_none()
    }
}

#[pymethods]
impl AnswerTable {
    /// Asks for these columns of records of the log, or all; `query` is JSON.
    #[staticmethod]
    fn of_log(py: Python<'_>, query: &str, columns: Vec<String>, domain: Option<&str>, timeout: f64) -> PyResult<AnswerTable> {
        let query: Query = serde_json::from_str(query).map_err(raised)?;
        query.compile().map_err(raised)?;
        let mut table = ColumnTable::new(log_columns(&columns).map_err(raised)?);
        let participant = join(py, "python-query", domain)?;
        let mut signals = Signals::default();
        let scanned = py.detach(|| {
            let participant = participant;
            tampu_log::collector::ask::columns(&participant, &query, seconds(timeout), &mut table, &mut || signals.look())
        });
        let scanned = scanned.map_err(raised)?;
        AnswerTable::of(table, signals, scanned.complete || Some(scanned.found) == query.limit)
    }

    /// Asks for events of the history; `query` is JSON.
    #[staticmethod]
    fn of_history(py: Python<'_>, query: &str, domain: Option<&str>, timeout: f64) -> PyResult<AnswerTable> {
        let query: HistoryQuery = serde_json::from_str(query).map_err(raised)?;
        let participant = join(py, "python-history", domain)?;
        let (mut table, mut signals, mut numbers) =
            (ColumnTable::new(history::COLUMNS.iter().copied()), Signals::default(), Vec::new());
        let swept = py.detach(|| {
            let participant = participant;
            tampu_event::history::ask::history(&participant, &query, seconds(timeout), &mut |kept| {
                history::push(&mut table, kept, &mut numbers);
                signals.allow()
            })
        });
        let swept = swept.map_err(raised)?;
        AnswerTable::of(table, signals, swept.complete || Some(swept.found) == query.limit)
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.iter().map(|(name, _)| (*name).to_owned()).collect()
    }

    /// False if the search reached its time limit, or was ended by the hub.
    #[getter]
    fn complete(&self) -> bool {
        self.complete
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(|batch| batch.rows).sum()
    }

    /// Returns the rows as dicts. A missing value is None; times are nanoseconds since 1970, UTC.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = PyList::empty(py);
        for batch in &self.batches {
            for row in 0..batch.rows {
                let dict = PyDict::new(py);
                for ((name, _), column) in self.schema.iter().zip(&batch.columns) {
                    match column.value(row) {
                        ColumnValue::Missing => dict.set_item(name, py.None())?,
                        ColumnValue::Text(text) => dict.set_item(name, text)?,
                        ColumnValue::Integer(number) => dict.set_item(name, number)?,
                        ColumnValue::Number(number) => dict.set_item(name, number)?,
                        ColumnValue::Numbers(numbers) => dict.set_item(name, PyList::new(py, numbers)?)?,
                    }
                }
                rows.append(dict)?;
            }
        }
        Ok(rows)
    }

    /// The table as a stream of Arrow's C interface. A reader that wants another schema converts by itself.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        PyCapsule::new_with_value(py, arrow::stream(&self.schema, self.batches.clone()), c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        format!("<Table of {} rows>", self.__len__())
    }
}

impl AnswerTable {
    fn of(table: ColumnTable, signals: Signals, complete: bool) -> PyResult<AnswerTable> {
        if let Some(error) = signals.raised {
            return Err(error);
        }
        let schema = table.schema.clone();
        Ok(AnswerTable { schema, batches: table.into_batches().into_iter().map(Arc::new).collect(), complete })
    }
}
