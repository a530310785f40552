//! Connections: sessions for statements that depend on each other.

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

/// A SQL session: transactions, variables, temporary tables and current database. Only one thread
/// can use it at a time; create one for each. Dropping it rolls back uncommitted changes.
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
/// assert!(connection.in_transaction() && connection.is_autocommit());
/// connection.execute("COMMIT", params![])?;
/// assert_eq!(db.query("SELECT n FROM t", params![])?.one::<i32>()?, 10);
/// # Ok::<(), remora::Error>(())
/// ```
pub struct Connection {
    /// `None` after it was dropped, or if a statement panicked.
    session: Option<Session>,
    statements: Statements,
    /// Cancels the running statement, if one was requested.
    canceller: Option<Canceller>,
    handle: Arc<Handle>,
}

impl Connection {
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        let session = Some(handle.sessions.begin());
        Self { session, statements: Statements::default(), canceller: None, handle }
    }

    /// The session, for work without a statement.
    pub(crate) fn session(&mut self) -> &mut Option<Session> {
        if let Some(canceller) = &self.canceller {
            canceller.begin();
        }
        &mut self.session
    }

    /// What the database shares.
    pub(crate) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    /// Runs a statement and returns its effect. Cost: that of the statement, and one sync if it writes outside a
    /// transaction.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// let mut connection = db.connection();
    /// connection.execute("CREATE TEMPORARY TABLE seen (id INT PRIMARY KEY)", [])?;
    /// let done = connection.execute("INSERT INTO seen VALUES (?), (?)", remora::params![1, 2])?;
    /// assert_eq!(done.rows_changed, 2);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Database::execute`](crate::Database::execute). Within a transaction, the
    /// statement is undone and the transaction continues.
    pub fn execute(&mut self, text: &str, values: impl AsRef<[Value]>) -> Result<Outcome> {
        Ok(self.run(text, values)?.outcome)
    }

    /// Runs a statement and returns its rows. Cost: that of the statement, and memory for all its rows.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// let mut connection = db.connection();
    /// connection.execute("SET @name = ?", remora::params!["Heron"])?;
    /// assert_eq!(connection.query("SELECT UPPER(@name)", [])?.one::<String>()?, "HERON");
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Database::query`](crate::Database::query).
    pub fn query(&mut self, text: &str, values: impl AsRef<[Value]>) -> Result<Rows> {
        rows_of(self.run(text, values)?)
    }

    /// Runs a statement and returns its rows as Arrow. Cost: that of [`Connection::query`], and a copy of the rows.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// let batches = db.connection().query_arrow("SELECT 1 AS id, 'Heron' AS name", [])?;
    /// assert_eq!((batches[0].num_rows(), batches[0].num_columns()), (1, 2));
    /// # Ok::<(), remora::Error>(())
    /// ```
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

    /// A handle that cancels the running statement of this connection, from any thread. Cost: an allocation; the
    /// session of this connection is not reused for others.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// let mut connection = db.connection();
    /// let canceller = connection.canceller()?;
    /// canceller.cancel(); // Nothing runs: the next statement is not cancelled.
    /// assert_eq!(connection.query("SELECT 1", [])?.one::<i64>()?, 1);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Closed`] if a statement in it panicked.
    pub fn canceller(&mut self) -> Result<Canceller> {
        let session = self.session.as_ref().ok_or(Error::Closed)?;
        Ok(self.canceller.get_or_insert_with(|| Canceller::of(session)).clone())
    }

    /// Whether a transaction is open.
    pub fn in_transaction(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.status().in_transaction)
    }

    /// Whether each statement outside a transaction is committed on its own: not after
    /// `SET autocommit = 0`.
    pub fn is_autocommit(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.status().autocommit)
    }

    /// Runs `work` in a transaction, which is committed if it returns `Ok` and rolled back if it
    /// returns an error or panics. A definition, such as CREATE TABLE, commits what was done before
    /// it. Cost: memory for what it changes, and one sync at the commit.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// let mut connection = db.connection();
    /// connection.execute("CREATE TABLE birds (id INT PRIMARY KEY)", [])?;
    /// let refused = connection.transaction(|tx| {
    ///     tx.execute("INSERT INTO birds VALUES (1)", [])?;
    ///     Err::<(), _>(Box::<dyn std::error::Error>::from("not today"))
    /// });
    /// assert!(refused.is_err());
    /// assert_eq!(connection.query("SELECT COUNT(*) FROM birds", [])?.one::<i64>()?, 0);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error of `work`; [`Error::Conflict`] if another writer changed one of the changed rows
    /// in the meantime: run it again. [`Error::Request`] if a transaction is open.
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
                // The original error is returned, not one of the rollback.
                let _ = self.execute("ROLLBACK", []);
                Err(error)
            }
        }
    }

    /// Runs a statement and returns its rows or its effect. Cost: that of [`Connection::execute`] or
    /// [`Connection::query`].
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
        // The meaning of the same text may have changed, with the SQL mode or the database.
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

/// A transaction that is rolled back if the work in it panics.
struct OpenTransaction<'c> {
    connection: &'c mut Connection,
    ended: bool,
}

impl Drop for OpenTransaction<'_> {
    fn drop(&mut self) {
        if !self.ended {
            // The panic is propagated, so this error is not reported.
            let _ = self.connection.execute("ROLLBACK", []);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A session that may still be cancelled is not reused.
        if let (Some(session), None) = (self.session.take(), &self.canceller) {
            self.handle.sessions.end(session);
        }
    }
}

/// Runs work in a transaction of a separate connection.
pub(crate) fn transaction<T, E: From<Error>>(
    handle: &Arc<Handle>,
    work: impl FnOnce(&mut Connection) -> Result<T, E>,
) -> Result<T, E> {
    Connection::new(Arc::clone(handle)).transaction(work)
}
