//! The rows that statements return.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use remora_engine::Value;
use serde::de::DeserializeOwned;

use crate::{
    Error, Result,
    row::{Column, Row, batches},
};

/// The effect of a statement.
///
/// ```
/// let db = remora::Database::in_memory()?;
/// db.execute("CREATE TABLE birds (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40))", [])?;
/// let outcome = db.execute("INSERT INTO birds (name) VALUES ('Heron'), ('Stork')", [])?;
/// assert_eq!((outcome.rows_changed, outcome.last_insert_id), (2, 1));
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The number of inserted, changed or deleted rows, as MySQL counts them.
    pub rows_changed: u64,
    /// The first AUTO_INCREMENT value that the statement generated; 0 if none.
    pub last_insert_id: u64,
    /// The number of warnings. `SHOW WARNINGS` in a [`Connection`](crate::Connection) lists them.
    pub warnings: u16,
}

/// The result of a statement of any kind.
///
/// ```
/// let db = remora::Database::in_memory()?;
/// let mut connection = db.connection();
/// let made = connection.run("CREATE TABLE birds (id INT PRIMARY KEY)", [])?;
/// assert!(made.rows.is_none());
/// let read = connection.run("SELECT COUNT(*) FROM birds", [])?;
/// assert_eq!(read.rows.ok_or(remora::Error::Closed)?.one::<i64>()?, 0);
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Its rows; `None` for a statement that returns none.
    pub rows: Option<Rows>,
    /// Its effect.
    pub outcome: Outcome,
}

/// The rows of a statement, all in memory.
///
/// ```
/// let db = remora::Database::in_memory()?;
/// let rows = db.query("SELECT 1 AS id, 'Heron' AS name UNION ALL SELECT 2, 'Stork' ORDER BY id", [])?;
/// assert_eq!((rows.len(), rows.columns()[1].name.as_str()), (2, "name"));
/// for row in &rows {
///     println!("{} {}", row.get::<i64>("id")?, row.get::<String>("name")?);
/// }
/// assert_eq!(rows.iter().filter(|row| row.values().contains(&remora::Value::Int(2))).count(), 1);
/// assert!(!rows.is_empty() && rows.first().is_some());
/// let birds: Vec<(i64, String)> = rows.deserialize()?;
/// assert_eq!(birds[1], (2, "Stork".to_owned()));
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    columns: Arc<[Column]>,
    rows: Vec<Row>,
}

impl Rows {
    pub(super) fn new(columns: Arc<[Column]>, rows: Vec<Vec<Value>>) -> Self {
        let row = |values| Row::new(Arc::clone(&columns), values);
        Self { rows: rows.into_iter().map(row).collect(), columns: Arc::clone(&columns) }
    }

    /// The columns, also if there are no rows.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Row> {
        self.rows.iter()
    }

    /// The first row; `None` if there are none.
    pub fn first(&self) -> Option<&Row> {
        self.rows.first()
    }

    /// Deserializes the rows: as structs by the names of the columns, as tuples, or, for one
    /// column, as values. Cost: a copy of the rows.
    ///
    /// ```
    /// #[derive(serde::Deserialize)]
    /// struct Bird {
    ///     id: u32,
    ///     name: Option<String>,
    /// }
    /// # let db = remora::Database::in_memory()?;
    /// let birds: Vec<Bird> = db.query("SELECT 1 AS id, NULL AS name", [])?.deserialize()?;
    /// assert_eq!((birds[0].id, &birds[0].name), (1, &None));
    /// let ids: Vec<u32> = db.query("SELECT 1 UNION ALL SELECT 2", [])?.deserialize()?;
    /// assert_eq!(ids.len(), 2);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Request`] with the row, counted from 1, and the column that does not fit.
    pub fn deserialize<T: DeserializeOwned>(&self) -> Result<Vec<T>> {
        let numbered = (1_usize..).zip(&self.rows);
        let read = |(number, row): (usize, &Row)| {
            row.deserialize().map_err(|error| error.at(format!("row {number}")))
        };
        numbered.map(read).collect()
    }

    /// Converts the rows to Arrow, as [`Database::query_arrow`](crate::Database::query_arrow) does. Cost: a copy of the
    /// rows.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// let rows = db.query("SELECT 1 AS id, 'Heron' AS name", [])?;
    /// assert_eq!(rows.to_arrow()?[0].schema().field(1).name(), "name");
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Request`] if Arrow cannot represent a value, such as a zero date.
    pub fn to_arrow(&self) -> Result<Vec<RecordBatch>> {
        batches(&self.columns, &self.rows.iter().collect::<Vec<_>>())
    }

    /// The only row, deserialized. Cost: a copy of the row.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// assert_eq!(db.query("SELECT 6 * 7", [])?.one::<i64>()?, 42);
    /// assert_eq!(db.query("SELECT 1, 'Heron'", [])?.one::<(i64, String)>()?.1, "Heron");
    /// let none = db.query("SELECT 1 FROM DUAL WHERE 1 = 0", [])?.one::<i64>();
    /// assert!(matches!(none, Err(remora::Error::NotFound(_))));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none, [`Error::Request`] if there are several or it cannot
    /// be deserialized as `T`.
    pub fn one<T: DeserializeOwned>(&self) -> Result<T> {
        match self.rows.as_slice() {
            [row] => row.deserialize(),
            [] => Err(Error::NotFound("the statement has no row".to_owned().into())),
            more => {
                Err(Error::request(format!("the statement has {} rows and not one", more.len())))
            }
        }
    }
}

impl IntoIterator for Rows {
    type Item = Row;
    type IntoIter = std::vec::IntoIter<Row>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.into_iter()
    }
}

impl<'r> IntoIterator for &'r Rows {
    type Item = &'r Row;
    type IntoIter = std::slice::Iter<'r, Row>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.iter()
    }
}
