//! A session of SQL, and the door to tables and collections.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pyo3::{prelude::*, types::PyIterator};
use remora::{Durability, Options, Outcome, Value};

use crate::{
    answer::Answer,
    batch::Batch,
    collection::Collection,
    errors::{programming, raised},
    opened::{Slot, open},
    parameters::Statement,
    session::SharedSession,
    table::Table,
};

/// What statements of this connection are undone to where several are one.
const SAVEPOINT: &str = "remora_executemany";

/// A connection: one session of SQL, for one statement at a time of whichever thread.
#[pyclass(frozen, module = "remora._remora")]
pub(crate) struct Connection {
    slot: Arc<Slot>,
    session: Arc<SharedSession>,
}

impl Connection {
    /// Runs `work` with the session ([`SharedSession::lend`]).
    fn lend<T: Send>(
        &self,
        py: Python<'_>,
        text: &str,
        work: impl FnOnce(&mut remora::Connection, &AtomicBool) -> remora::Result<T> + Send,
    ) -> PyResult<T> {
        self.slot.opened()?;
        self.session.lend(py, text, work)
    }
}

#[pymethods]
impl Connection {
    /// Opens a directory, or takes the one that is open in this process; memory without a path. `sync_s` is how often
    /// writes are synced in seconds: 0 each, None never.
    #[new]
    #[pyo3(signature = (path, autocommit, sync_s, max_query_memory_bytes, row_cache_bytes))]
    fn new(
        py: Python<'_>,
        path: Option<PathBuf>,
        autocommit: bool,
        sync_s: Option<f64>,
        max_query_memory_bytes: Option<u64>,
        row_cache_bytes: Option<u64>,
    ) -> PyResult<Self> {
        let mut options = Options::default();
        options.durability = match sync_s {
            None => Durability::None,
            Some(0.0) => Durability::Always,
            Some(seconds) => Durability::Interval(
                Duration::try_from_secs_f64(seconds)
                    .map_err(|error| programming(format!("durability: {error}")))?,
            ),
        };
        options.max_query_memory_bytes =
            max_query_memory_bytes.unwrap_or(options.max_query_memory_bytes);
        options.row_cache_bytes = row_cache_bytes.unwrap_or(options.row_cache_bytes);
        py.detach(|| {
            let opened = open(path.as_deref(), options)?;
            let mut connection = opened.database()?.connection();
            let canceller = connection.canceller().map_err(raised)?;
            if !autocommit {
                connection.execute("SET autocommit = 0", []).map_err(raised)?;
            }
            let session = Arc::new(SharedSession::new(connection, canceller));
            Ok(Self { slot: Arc::new(Slot::new(opened)), session })
        })
    }

    /// Where the database lives.
    fn path(&self) -> PyResult<PathBuf> {
        Ok(self.slot.opened()?.database()?.path())
    }

    /// Rolls back what is open, and closes the database with its last connection.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            if !self.slot.is_open() {
                return Ok(());
            }
            // If this fails, the connection is still open, and can be closed again.
            self.session.close()?;
            let Some(opened) = self.slot.take() else { return Ok(()) };
            match Arc::into_inner(opened) {
                Some(last) => last.close(),
                None => Ok(()),
            }
        })
    }

    /// Runs a statement.
    #[pyo3(signature = (text, parameters = None))]
    fn run(
        &self,
        py: Python<'_>,
        text: &str,
        parameters: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Answer> {
        let statement = Statement::new(text, parameters);
        let values = statement.values(parameters)?;
        let text = &*statement.text;
        self.lend(py, text, |connection, _| connection.run(text, &values)).map(Answer::new)
    }

    /// Runs a statement with each of these parameters, in one step: all or nothing. How many rows were changed in all,
    /// and the last id that was given.
    fn run_many(
        &self,
        py: Python<'_>,
        text: &str,
        parameters: &Bound<'_, PyAny>,
    ) -> PyResult<(u64, u64)> {
        // The names are those of the first.
        let parameters = PyIterator::from_object(parameters)?.collect::<PyResult<Vec<_>>>()?;
        let statement = Statement::new(text, parameters.first());
        let values = parameters.iter().map(|it| statement.values(Some(it)));
        let values = values.collect::<PyResult<Vec<_>>>()?;
        let text = &*statement.text;
        self.lend(py, "", |connection, ends| each(connection, text, &values, ends))
    }

    /// Whether a transaction is open.
    fn in_transaction(&self, py: Python<'_>) -> PyResult<bool> {
        self.lend_quick(py, |connection| connection.in_transaction())
    }

    /// Whether each statement is committed when it ends.
    fn autocommit(&self, py: Python<'_>) -> PyResult<bool> {
        self.lend_quick(py, |connection| connection.is_autocommit())
    }

    /// Ends the statement that runs, from another thread.
    fn interrupt(&self) -> PyResult<()> {
        self.slot.opened()?;
        self.session.interrupt();
        Ok(())
    }

    /// A table that is there.
    fn table(&self, name: &str) -> PyResult<Table> {
        Table::new(Arc::clone(&self.slot), name)
    }

    /// The collection of this name, which is made if there is none.
    fn collection(&self, py: Python<'_>, name: &str) -> PyResult<Collection> {
        Collection::new(py, (&self.slot, &self.session), name, false)
    }

    /// The collection of this name with texts as ids, which is made if there is none.
    fn keyed_collection(&self, py: Python<'_>, name: &str) -> PyResult<Collection> {
        Collection::new(py, (&self.slot, &self.session), name, true)
    }

    /// A batch of changes.
    fn batch(&self) -> PyResult<Batch> {
        Batch::new(Arc::clone(&self.slot))
    }

    /// The names of tables and collections.
    fn tables(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let opened = self.slot.opened()?;
        py.detach(|| Ok(opened.database()?.tables()))
    }

    /// The names of collections with texts as ids.
    fn keyed_collections(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let opened = self.slot.opened()?;
        py.detach(|| Ok(opened.database()?.keyed_collections()))
    }

    /// The names of collections with numbers as ids.
    fn collections(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let opened = self.slot.opened()?;
        py.detach(|| Ok(opened.database()?.collections()))
    }

    /// Drops a table or a collection that SQL did not make.
    fn drop(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let opened = self.slot.opened()?;
        py.detach(|| {
            self.session.commit_open()?;
            opened.database()?.drop_table(name).map_err(raised)
        })
    }

    /// Gives a collection another name.
    fn rename_collection(&self, py: Python<'_>, from: &str, to: &str) -> PyResult<()> {
        let opened = self.slot.opened()?;
        py.detach(|| {
            self.session.commit_open()?;
            opened.database()?.rename_collection(from, to).map_err(raised)
        })
    }
}

impl Connection {
    /// Asks the session what it knows.
    fn lend_quick<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&remora::Connection) -> T + Send,
    ) -> PyResult<T> {
        self.slot.opened()?;
        self.session.ask(py, ask)
    }
}

/// Runs a statement with each of these values: all or nothing.
fn each(
    connection: &mut remora::Connection,
    text: &str,
    all: &[Vec<Value>],
    ends: &AtomicBool,
) -> remora::Result<(u64, u64)> {
    let run = |connection: &mut remora::Connection| {
        let (mut changed, mut last) = (0, 0);
        for values in all {
            if ends.load(Ordering::Relaxed) {
                break;
            }
            let Outcome { rows_changed, last_insert_id, .. } =
                connection.run(text, values)?.outcome;
            changed += rows_changed;
            last = if last_insert_id > 0 { last_insert_id } else { last };
        }
        Ok((changed, last))
    };
    if connection.is_autocommit() && !connection.in_transaction() {
        return connection.transaction(|open| {
            let done = run(open)?;
            match ends.load(Ordering::Relaxed) {
                // Rolled back; who interrupted it is told why.
                true => Err(remora::Error::Closed),
                false => Ok(done),
            }
        });
    }
    connection.execute(&format!("SAVEPOINT {SAVEPOINT}"), [])?;
    let done = run(connection);
    let end = match done.is_ok() && !ends.load(Ordering::Relaxed) {
        true => "RELEASE SAVEPOINT",
        false => "ROLLBACK TO SAVEPOINT",
    };
    // A definition has committed it, and with it what was done.
    let _ = connection.execute(&format!("{end} {SAVEPOINT}"), []);
    done
}
