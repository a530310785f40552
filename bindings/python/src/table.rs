//! Tables: searches, and rows by key.

use std::sync::Arc;

use pyo3::{
    prelude::*,
    types::{PyCapsule, PyDict, PyIterator, PyList},
};
use remora::{Error, Value};
use serde_json::{Map, Value as Json};

use crate::{
    arrow,
    errors::raised,
    filter::{names, orders, read},
    from_python::{Lists, as_json, key, row},
    opened::Slot,
    to_python::value,
};

/// The names by which an order says that it is that of the score and of the key.
const SCORE: &str = "_score";
const KEY: &str = "_key";
/// Most of SQL's own tables are in it.
const DEFAULT_DATABASE: &str = "remora";

/// A table: searches, rows by key, and new rows.
#[pyclass(frozen, module = "remora")]
pub(crate) struct Table {
    slot: Arc<Slot>,
    name: String,
}

/// What a search found, all of one moment.
#[pyclass(frozen, sequence, module = "remora")]
pub(crate) struct Found {
    found: remora::Found,
}

impl Table {
    pub fn new(slot: Arc<Slot>, name: &str) -> PyResult<Self> {
        slot.opened()?.database()?.table(name).map_err(raised)?;
        Ok(Self { slot, name: name.to_owned() })
    }

    /// The table of the library.
    pub fn stored(&self, py: Python<'_>) -> PyResult<remora::Table> {
        self.lend(py, |_, table| Ok(table))
    }

    /// Runs `work` with the table, without the interpreter.
    fn lend<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&remora::Database, remora::Table) -> remora::Result<T> + Send,
    ) -> PyResult<T> {
        let opened = self.slot.opened()?;
        py.detach(|| {
            let database = opened.database()?;
            let table = database.table(&self.name).map_err(raised)?;
            work(database, table).map_err(raised)
        })
    }
}

#[pymethods]
impl Table {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Rows that have a text in one of their searched columns, or all rows without one.
    #[pyo3(signature = (
        text = None, filter = None, *, order_by = None, limit = 20, offset = 0, after = None, columns = None,
        highlight = None, facets = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "named ones of Python's")]
    fn search(
        &self,
        py: Python<'_>,
        text: Option<String>,
        filter: Option<&Bound<'_, PyAny>>,
        order_by: Option<&Bound<'_, PyAny>>,
        limit: usize,
        offset: usize,
        after: Option<String>,
        columns: Option<&Bound<'_, PyAny>>,
        highlight: Option<(String, String)>,
        facets: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Found> {
        let (filter, orders) = (read(filter)?, orders(order_by)?);
        let (columns, facets) = (names(columns)?, names(facets)?);
        let found = self.lend(py, |_, table| {
            let mut search = begin(&table, text, filter).limit(limit).offset(offset);
            for (column, descending) in orders {
                search = match (column.as_str(), descending) {
                    (SCORE, _) => search.by_score(),
                    (KEY, false) => search.order_by_key(),
                    // The order of a search that says none.
                    (KEY, true) => search,
                    (column, false) => search.order_by(column),
                    (column, true) => search.order_by_desc(column),
                };
            }
            if let Some(cursor) = after {
                search = search.after(&cursor);
            }
            if !columns.is_empty() {
                search = search.columns(columns.iter().map(String::as_str));
            }
            if let Some((open, close)) = highlight {
                search = search.highlight(&open, &close);
            }
            facets.iter().fold(search, |search, column| search.facet(column)).run()
        })?;
        Ok(Found { found })
    }

    /// How many rows there are, or satisfy this, exactly.
    #[pyo3(signature = (text = None, filter = None))]
    fn count(
        &self,
        py: Python<'_>,
        text: Option<String>,
        filter: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let filter = read(filter)?;
        self.lend(py, |_, table| match (&text, &filter) {
            (None, None) => table.count(),
            _ => begin(&table, text, filter).count(),
        })
    }

    /// The row with this key; `None` if there is none.
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let key = self::key(key)?;
        let found = self.lend(py, |_, table| table.get(key))?;
        found.map(|row| dict(py, &row)).transpose()
    }

    /// Deletes the row with this key; says whether there was one.
    fn delete(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = self::key(key)?;
        self.lend(py, |_, table| table.delete(key))
    }

    /// Inserts rows in one step, all or none; says how many.
    fn add(&self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.write(py, rows, false)
    }

    /// Writes rows in one step, whether their keys are there or not; says how many.
    fn upsert(&self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.write(py, rows, true)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let count = self.lend(py, |_, table| table.count())?;
        Ok(usize::try_from(count)?)
    }

    fn __repr__(&self) -> String {
        format!("<remora.Table {:?}>", self.name)
    }
}

impl Table {
    fn write(&self, py: Python<'_>, rows: &Bound<'_, PyAny>, replaces: bool) -> PyResult<u64> {
        let is_of_sql = self.lend(py, |_, table| table.is_of_sql())?;
        let lists = if is_of_sql { Lists::Vectors } else { Lists::Json };
        let rows = rows_of(rows, lists)?;
        if is_of_sql {
            let verb = if replaces { "REPLACE" } else { "INSERT" };
            let count = rows.len() as u64;
            self.lend(py, |database, _| by_statements(database, verb, &self.name, rows))?;
            return Ok(count);
        }
        let rows = objects(rows)?;
        self.lend(py, |_, table| match replaces {
            true => table.upsert_many(rows),
            false => table.insert_many(rows),
        })
    }
}

/// Rows: one, or several.
fn rows_of(from: &Bound<'_, PyAny>, lists: Lists) -> PyResult<Vec<Vec<(String, Value)>>> {
    // One row is not a list of its columns.
    match from.cast::<PyDict>() {
        Ok(only) => Ok(vec![row(only, lists)?]),
        Err(_) => PyIterator::from_object(from)?.map(|it| row(&it?, lists)).collect(),
    }
}

/// Rows as the library reads them.
fn objects(rows: Vec<Vec<(String, Value)>>) -> PyResult<Vec<Json>> {
    let object = |row: Vec<(String, Value)>| {
        let field = |(name, value): (String, Value)| Ok((name, as_json(&value)?));
        row.into_iter().map(field).collect::<PyResult<Map<String, Json>>>().map(Json::Object)
    };
    rows.into_iter().map(object).collect()
}

/// Rows of a table that SQL did not make.
///
/// # Errors
/// Those of [`row`].
pub(crate) fn documents_of(from: &Bound<'_, PyAny>) -> PyResult<Vec<Json>> {
    objects(rows_of(from, Lists::Json)?)
}

fn begin(
    table: &remora::Table,
    text: Option<String>,
    filter: Option<remora::Filter>,
) -> remora::Search {
    let search = match text {
        Some(text) => table.search(&text),
        None => table.all(),
    };
    match filter {
        Some(filter) => search.filter(filter),
        None => search,
    }
}

/// Writes rows of a table that SQL made, in one transaction.
fn by_statements(
    database: &remora::Database,
    verb: &str,
    table: &str,
    rows: Vec<Vec<(String, Value)>>,
) -> remora::Result<()> {
    let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
    let (schema, name) = table.split_once('.').unwrap_or((DEFAULT_DATABASE, table));
    let into = format!("{verb} INTO {}.{}", quoted(schema), quoted(name));
    database.transaction(|open| {
        for row in rows {
            let columns: Vec<String> = row.iter().map(|(name, _)| quoted(name)).collect();
            let places = vec!["?"; row.len()].join(",");
            let text = format!("{into} ({}) VALUES ({places})", columns.join(","));
            let values: Vec<Value> = row.into_iter().map(|(_, value)| value).collect();
            open.execute(&text, values)?;
        }
        Ok::<_, Error>(())
    })
}

fn dict<'py>(py: Python<'py>, row: &remora::Row) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    for (column, field) in row.columns().iter().zip(row.values()) {
        fields.set_item(&column.name, value(py, field, column.kind)?)?;
    }
    Ok(fields)
}

#[pymethods]
impl Found {
    /// How many rows there are in all, exactly, whatever the page.
    #[getter]
    fn total(&self) -> u64 {
        self.found.total
    }

    /// What `after` takes for the next page; `None` where the page is empty.
    #[getter]
    fn cursor(&self) -> Option<&str> {
        self.found.cursor.as_deref()
    }

    /// The rows of the page.
    #[getter]
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = self.found.rows.iter().map(|found| dict(py, &found.row));
        PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)
    }

    /// The scores of the rows; `None` each where the order is another.
    #[getter]
    fn scores(&self) -> Vec<Option<f64>> {
        self.found.rows.iter().map(|found| found.score).collect()
    }

    /// The texts around the matches; `None` each unless `highlight` asked for them.
    #[getter]
    fn snippets(&self) -> Vec<Option<&str>> {
        self.found.rows.iter().map(|found| found.snippet.as_deref()).collect()
    }

    /// The most frequent values of each facet's column with how many rows have them.
    #[getter]
    fn facets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let facets = PyDict::new(py);
        for facet in &self.found.facets {
            let counted = PyList::empty(py);
            for (found, count) in &facet.values {
                counted.append((value(py, found, remora::Type::Null)?, count))?;
            }
            facets.set_item(&facet.column, counted)?;
        }
        Ok(facets)
    }

    fn __len__(&self) -> usize {
        self.found.rows.len()
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        place: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.rows(py)?.as_any().get_item(place)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.rows(py)?.try_iter()
    }

    /// The rows of the page by the Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets who cannot cast give what there is.
        let _ = requested_schema;
        let batches = py.detach(|| self.found.to_arrow()).map_err(raised)?;
        arrow::stream(py, batches)
    }

    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        arrow::to_pyarrow(slf.as_any())
    }

    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        arrow::to_pandas(slf.as_any())
    }

    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        arrow::to_polars(slf.as_any())
    }
}
