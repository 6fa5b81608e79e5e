//! Questions to the archives: the log, and the history of events. An answer is a table.
//!
//! ```text
//! tampu.log.query, tampu.event.history -> JSON of the query -> the collector, page by page -> columns
//! columns -> `__arrow_c_stream__`: pandas, polars, pyarrow, DuckDB, without a copy
//!         -> `rows`: dicts, for programs without such a package
//! ```
//!
//! | subject | module |
//! |-|-|
//! | columns and batches | `table` |
//! | Arrow's C interface | `arrow` |
//! | records, events as rows | `log`, `history` |

pub mod arrow;
pub mod history;
pub mod log;
pub mod table;

use pyo3::{
    prelude::*,
    types::{PyCapsule, PyDict, PyList},
};
use tampu_archive::query::Query;
use tampu_event::history::ask::HistoryQuery;

use crate::{
    event::{client::seconds, join},
    failure::raised,
    question::table::{Cell, Schema, Table},
};

/// Rows after which signals such as Ctrl-C are looked at.
const SIGNALS: u64 = 4096;

/// Answer to a question.
#[pyclass(frozen, name = "Table", module = "tampu._native")]
pub struct AnswerTable {
    table: Table,
    complete: bool,
}

/// Watches for signals while an answer arrives.
#[derive(Default)]
struct Signals {
    rows: u64,
    raised: Option<PyErr>,
}

impl Signals {
    /// Counts a row; false if the program is to end the answer.
    fn allow(&mut self) -> bool {
        self.rows += 1;
        if self.rows.is_multiple_of(SIGNALS) {
            self.raised = Python::attach(|py| py.check_signals().err());
        }
        self.raised.is_none()
    }
}

#[pymethods]
impl AnswerTable {
    /// Asks for records of the log; `query` is JSON.
    #[staticmethod]
    fn of_log(py: Python<'_>, query: &str, domain: Option<&str>, timeout: f64) -> PyResult<AnswerTable> {
        let query: Query = serde_json::from_str(query).map_err(raised)?;
        query.compile().map_err(raised)?;
        let participant = join(py, "python-query", domain)?;
        let (mut table, mut signals) = (Table::of(log::COLUMNS), Signals::default());
        let scanned = py.detach(|| {
            let participant = participant;
            tampu_log::collector::ask::query(&participant, &query, seconds(timeout), &mut |record| {
                log::push(&mut table, &record);
                signals.allow()
            })
        });
        let scanned = scanned.map_err(raised)?;
        AnswerTable::of(table, signals, scanned.complete || Some(scanned.found) == query.limit)
    }

    /// Asks for events of the history; `query` is JSON.
    #[staticmethod]
    fn of_history(py: Python<'_>, query: &str, domain: Option<&str>, timeout: f64) -> PyResult<AnswerTable> {
        let query: HistoryQuery = serde_json::from_str(query).map_err(raised)?;
        let participant = join(py, "python-history", domain)?;
        let (mut table, mut signals, mut numbers) = (Table::of(history::COLUMNS), Signals::default(), Vec::new());
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
        names(self.table.schema)
    }

    /// False if the search reached its time limit, or was ended by the hub.
    #[getter]
    fn complete(&self) -> bool {
        self.complete
    }

    fn __len__(&self) -> usize {
        self.table.batches.iter().map(|batch| batch.rows).sum()
    }

    /// Returns the rows as dicts. A missing value is None; times are nanoseconds since 1970, UTC.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let (names, rows) = (names(self.table.schema), PyList::empty(py));
        for batch in &self.table.batches {
            for row in 0..batch.rows {
                let dict = PyDict::new(py);
                for (name, column) in names.iter().zip(&batch.columns) {
                    match column.cell(row) {
                        Cell::Missing => dict.set_item(name, py.None())?,
                        Cell::Text(text) => dict.set_item(name, text)?,
                        Cell::Integer(number) => dict.set_item(name, number)?,
                        Cell::Number(number) => dict.set_item(name, number)?,
                        Cell::Numbers(numbers) => dict.set_item(name, PyList::new(py, numbers)?)?,
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
        PyCapsule::new_with_value(py, arrow::stream(self.table.schema, self.table.batches.clone()), c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        format!("<Table of {} rows>", self.__len__())
    }
}

fn names(schema: Schema) -> Vec<String> {
    schema.iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect()
}

impl AnswerTable {
    fn of(mut table: Table, signals: Signals, complete: bool) -> PyResult<AnswerTable> {
        if let Some(error) = signals.raised {
            return Err(error);
        }
        table.seal();
        Ok(AnswerTable { table, complete })
    }
}
