//! Statements that belong together.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use remora_engine::Value;
use remora_sql::Session;

use super::{
    canceller::Canceller,
    rows::{Answer, Outcome, Rows},
    statement::{rows_of, run_prepared, run_text},
};
use crate::{
    Error, Result,
    handle::Handle,
    sessions::{Statements, prepare},
};

/// A session of SQL: its transactions, variables, temporary tables and chosen database. For one
/// thread at a time; make one for each. What is not committed when it is dropped is rolled back.
///
/// ```
/// use remora::{Database, params};
///
/// let db = Database::in_memory()?;
/// let mut connection = db.connection();
/// connection.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)", params![])?;
/// connection.execute("SET @step = 10", params![])?;
/// connection.execute("BEGIN", params![])?;
/// connection.execute("INSERT INTO t VALUES (?, @step)", params![1])?;
/// connection.execute("COMMIT", params![])?;
/// assert_eq!(db.query("SELECT n FROM t", params![])?.one::<i32>()?, 10);
/// # Ok::<(), remora::Error>(())
/// ```
pub struct Connection {
    /// There until it is dropped, or a statement broke off.
    session: Option<Session>,
    statements: Statements,
    /// Ends what runs in the session, if somebody asked for it.
    canceller: Option<Canceller>,
    handle: Arc<Handle>,
}

impl Connection {
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        let session = Some(handle.sessions.begin());
        Self { session, statements: Statements::default(), canceller: None, handle }
    }

    /// Runs a statement for what it changes.
    ///
    /// # Errors
    /// Those of [`Database::execute`](crate::Database::execute). Within a transaction the statement is undone and the
    /// transaction goes on.
    pub fn execute(&mut self, text: &str, values: impl AsRef<[Value]>) -> Result<Outcome> {
        Ok(self.run(text, values)?.outcome)
    }

    /// Runs a statement for its rows.
    ///
    /// # Errors
    /// Those of [`Database::query`](crate::Database::query).
    pub fn query(&mut self, text: &str, values: impl AsRef<[Value]>) -> Result<Rows> {
        rows_of(self.run(text, values)?)
    }

    /// Runs a statement for its rows, as Arrow.
    ///
    /// # Errors
    /// Those of [`Database::query_arrow`](crate::Database::query_arrow).
    pub fn query_arrow(
        &mut self,
        text: &str,
        values: impl AsRef<[Value]>,
    ) -> Result<Vec<RecordBatch>> {
        self.query(text, values)?.to_arrow()
    }

    /// What ends the statement that runs in this connection, from any thread.
    ///
    /// # Errors
    /// [`Error::Closed`] if a statement broke off in it.
    pub fn canceller(&mut self) -> Result<Canceller> {
        let session = self.session.as_ref().ok_or(Error::Closed)?;
        Ok(self.canceller.get_or_insert_with(|| Canceller::of(session)).clone())
    }

    /// Whether a transaction is open.
    pub fn in_transaction(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.status().in_transaction)
    }

    /// Whether each statement is a transaction of its own, unless one is open: not after `SET autocommit = 0`.
    pub fn is_autocommit(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.status().autocommit)
    }

    /// Runs what `work` does in one transaction, which is committed if it ends well and rolled back
    /// if it answers an error or panics. A definition, such as CREATE TABLE, commits what was done before it.
    ///
    /// # Errors
    /// That of `work`; [`Error::Conflict`] if somebody else changed a row meanwhile that it changes: run it again.
    /// [`Error::Request`] if a transaction is open.
    pub fn transaction<T, E: From<Error>>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        if self.in_transaction() {
            return Err(Error::request("a transaction is open in this connection").into());
        }
        self.execute("BEGIN", [])?;
        let done = {
            let mut open = OpenTransaction { connection: self, ended: false };
            let done = work(open.connection);
            open.ended = true;
            done
        };
        match done {
            Ok(value) => {
                self.execute("COMMIT", [])?;
                Ok(value)
            }
            Err(error) => {
                // What went wrong is told, not what followed of it.
                let _ = self.execute("ROLLBACK", []);
                Err(error)
            }
        }
    }

    /// Runs a statement for whatever it answers.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// let mut connection = db.connection();
    /// assert_eq!(connection.run("DO 1", [])?.rows, None);
    /// let answer = connection.run("SELECT ? + 1", remora::params![1])?;
    /// assert_eq!(answer.rows.map(|rows| rows.len()), Some(1));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Connection::execute`].
    pub fn run(&mut self, text: &str, values: impl AsRef<[Value]>) -> Result<Answer> {
        if let Some(canceller) = &self.canceller {
            canceller.begin();
        }
        let database = |session: &Option<Session>| {
            session.as_ref().and_then(|session| session.database().map(str::to_owned))
        };
        let before = database(&self.session);
        let answer = self.answer(text, values.as_ref());
        let has_changes = self.session.iter_mut().any(|session| !session.take_changes().is_empty());
        // What the same text means may have changed: its mode, or its database.
        if has_changes || before != database(&self.session) {
            self.statements.clear();
        }
        answer
    }

    fn answer(&mut self, text: &str, values: &[Value]) -> Result<Answer> {
        if values.is_empty() {
            return run_text(&mut self.session, text);
        }
        let statement = match self.statements.get(text) {
            Some(statement) => statement,
            None => {
                let prepared = prepare(&mut self.session, text)?;
                self.statements.insert(text, &prepared);
                prepared
            }
        };
        run_prepared(&mut self.session, &statement, values)
    }
}

/// A transaction that is rolled back where what was to be done in it panics.
struct OpenTransaction<'c> {
    connection: &'c mut Connection,
    ended: bool,
}

impl Drop for OpenTransaction<'_> {
    fn drop(&mut self) {
        if !self.ended {
            // The panic is what is told.
            let _ = self.connection.execute("ROLLBACK", []);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // One that somebody can cancel is nobody else's later.
        if let (Some(session), None) = (self.session.take(), &self.canceller) {
            self.handle.sessions.end(session);
        }
    }
}

/// Runs work in a transaction of a connection of its own.
pub(crate) fn transaction<T, E: From<Error>>(
    handle: &Arc<Handle>,
    work: impl FnOnce(&mut Connection) -> Result<T, E>,
) -> Result<T, E> {
    Connection::new(Arc::clone(handle)).transaction(work)
}
