//! Prepared statements.

use std::sync::Arc;

use remora_engine::Value;

use super::{
    rows::{Outcome, Rows},
    statement::{rows_of, run_prepared_once},
};
use crate::{Result, handle::Handle, sessions};

/// A statement that was parsed once and can be run many times, in any thread, each time in a
/// session of its own. Created by [`Database::prepare`](crate::Database::prepare). A SELECT by key
/// costs microseconds.
///
/// ```
/// use remora::{Database, params};
///
/// let db = Database::in_memory()?;
/// db.execute("CREATE TABLE birds (id INT PRIMARY KEY, name VARCHAR(40))", [])?;
/// let insert = db.prepare("INSERT INTO birds VALUES (?, ?)")?;
/// for (id, name) in [(1, "Heron"), (2, "Stork")] {
///     insert.execute(params![id, name])?;
/// }
/// let by_id = db.prepare("SELECT name FROM birds WHERE id = ?")?;
/// assert_eq!(by_id.parameters(), 1);
/// assert_eq!(by_id.query(params![2])?.one::<String>()?, "Stork");
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone)]
pub struct Prepared {
    handle: Arc<Handle>,
    statement: Arc<sessions::PreparedStatement>,
}

impl Prepared {
    pub(crate) fn new(handle: Arc<Handle>, text: &str) -> Result<Self> {
        let mut session = Some(handle.sessions.begin());
        let prepared = handle.sessions.prepare(&mut session, text);
        session.into_iter().for_each(|session| handle.sessions.end(session));
        Ok(Self { statement: prepared?, handle })
    }

    /// The number of its `?`.
    pub fn parameters(&self) -> usize {
        self.statement.statement.parameters
    }

    /// Runs it and returns its effect. Cost: that of [`Database::execute`](crate::Database::execute), without parsing.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # db.execute("CREATE TABLE birds (id INT PRIMARY KEY, name VARCHAR(40))", [])?;
    /// let insert = db.prepare("INSERT INTO birds VALUES (?, ?)")?;
    /// assert_eq!(insert.execute(remora::params![1, "Heron"])?.rows_changed, 1);
    /// assert!(matches!(insert.execute([]), Err(remora::Error::Request(_)))); // Two values are missing.
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Database::execute`](crate::Database::execute).
    pub fn execute(&self, values: impl AsRef<[Value]>) -> Result<Outcome> {
        Ok(run_prepared_once(&self.handle, &self.statement, values.as_ref())?.outcome)
    }

    /// Runs it and returns its rows. Cost: that of [`Database::query`](crate::Database::query), without parsing.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// let add = db.prepare("SELECT ? + ?")?;
    /// assert_eq!(add.query(remora::params![3, 4])?.one::<i64>()?, 7);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Database::query`](crate::Database::query).
    pub fn query(&self, values: impl AsRef<[Value]>) -> Result<Rows> {
        rows_of(run_prepared_once(&self.handle, &self.statement, values.as_ref())?)
    }
}
