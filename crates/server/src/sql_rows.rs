//! Rows for a table that SQL defined: SQL converts them as INSERT does, and keeps its keys and conditions.

use std::time::{Duration, Instant};

use remora_engine::{Change, ChangeBatch, Row, Value};
use remora_mysql::ErrorCode;
use remora_source::files::is_not_given;
use remora_sql::{Error, Identity, Instance, Session};

/// How often a batch is tried again after conflicts with other writers, as a statement outside a transaction is, and
/// for how long.
const MOST_ATTEMPTS: u32 = 1_000;
const ATTEMPTS_TIME: Duration = Duration::from_secs(10);
/// How long the refused row of a batch is looked for.
const SEARCH_TIME: Duration = Duration::from_secs(30);

/// Writes batches of rows, each in a transaction.
pub(crate) struct SqlRows {
    session: Session,
    /// Whether rows are whole as they are, as those of collections: then documents keep their form.
    are_whole: bool,
    /// The row for which the last attempt failed, counted from 0, if it is known.
    failed_row: Option<usize>,
}

/// Why nothing of a batch was written.
pub(crate) enum RefusedRows {
    /// SQL refuses the row at this place, counted from 0.
    Row(usize, String),
    /// No row is at fault.
    Batch(Error),
}

impl SqlRows {
    /// A session for rows of a client with this identity, whose rights are not checked here.
    pub(crate) fn new(instance: &Instance, identity: Identity, are_whole: bool) -> Self {
        let mut session = instance.session(1, identity);
        // Tables have dates of zero from other sessions and servers, and exports write them.
        session.prepare_for_files();
        Self { session, are_whole, failed_row: None }
    }

    /// Writes a batch and its positions. A batch that conflicts with other writers is tried again.
    ///
    /// # Errors
    /// The first row that is refused, if one is, and is found within some seconds.
    pub(crate) async fn apply(&mut self, batch: &ChangeBatch) -> Result<(), RefusedRows> {
        let Err(error) = self.write_repeatedly(batch).await else { return Ok(()) };
        let row = match (is_of_database(&error), self.failed_row) {
            (true, _) => None,
            (false, Some(row)) => Some(self.first_refused(batch, row, error.clone()).await),
            (false, None) => self.refused_row(batch).await,
        };
        Err(match row {
            Some((place, error)) => RefusedRows::Row(place, of_one_row(&error)),
            None => RefusedRows::Batch(error),
        })
    }

    async fn write_repeatedly(&mut self, batch: &ChangeBatch) -> remora_sql::Result<()> {
        let begun = Instant::now();
        let mut attempts = 0;
        loop {
            attempts += 1;
            let may_repeat = attempts < MOST_ATTEMPTS && begun.elapsed() < ATTEMPTS_TIME;
            match self.write(batch, usize::MAX, true).await {
                Err(error) if error.code == ErrorCode::Deadlock && may_repeat => {}
                written => return written,
            }
        }
    }

    /// Writes the first `count` rows of a batch, and its positions, and commits them if `commits`.
    async fn write(
        &mut self,
        batch: &ChangeBatch,
        count: usize,
        commits: bool,
    ) -> remora_sql::Result<()> {
        self.session.begin_transaction().await?;
        match self.write_open(batch, count).await {
            Ok(()) if commits => self.session.commit_transaction().await,
            written => {
                self.session.roll_back();
                written
            }
        }
    }

    async fn write_open(&mut self, batch: &ChangeBatch, count: usize) -> remora_sql::Result<()> {
        let mut left = count;
        self.failed_row = None;
        for table in &batch.tables {
            let some = table.changes.get(..left.min(table.changes.len())).unwrap_or_default();
            let done = match self.are_whole {
                true => self.session.change_rows(&table.table, some).await,
                false => {
                    let rows = some.iter().filter_map(|change| match change {
                        Change::Put(row) | Change::Insert(row) => Some(cells(row)),
                        Change::Delete(_) => None,
                    });
                    self.session.put_rows(&table.table, &rows.collect::<Vec<_>>()).await
                }
            };
            if let Err(error) = done {
                self.failed_row = self.session.failed_row().map(|row| count - left + row);
                return Err(error);
            }
            left -= some.len();
        }
        for (name, position) in &batch.positions {
            self.session.store_position(name.clone(), position.clone())?;
        }
        Ok(())
    }

    /// The first row of a batch that is refused: this one, or one before it, which is refused in a later step of
    /// writing.
    async fn first_refused(
        &mut self,
        batch: &ChangeBatch,
        row: usize,
        error: Error,
    ) -> (usize, Error) {
        if row == 0 || self.write(batch, row, false).await.is_ok() {
            return (row, error);
        }
        self.refused_row(batch).await.unwrap_or((row, error))
    }

    /// The first row of a batch that is refused, with the error; `None` if none is, if no row is at fault, or if it
    /// takes too long to find it.
    async fn refused_row(&mut self, batch: &ChangeBatch) -> Option<(usize, Error)> {
        let begun = Instant::now();
        let (mut good, mut bad) =
            (0, batch.tables.iter().map(|table| table.changes.len()).sum::<usize>());
        self.write(batch, good, false).await.ok()?;
        let mut error = self.write(batch, bad, false).await.err()?;
        // Small parts first: where many rows are refused, the next one is near.
        let mut part = 1;
        while good + part < bad {
            if begun.elapsed() > SEARCH_TIME {
                return None;
            }
            match self.write(batch, good + part, false).await {
                Ok(()) => (good, part) = (good + part, part * 2),
                Err(earlier) => (bad, error) = (good + part, earlier),
            }
        }
        while bad - good > 1 {
            if begun.elapsed() > SEARCH_TIME {
                return None;
            }
            let middle = good + (bad - good) / 2;
            match self.write(batch, middle, false).await {
                Ok(()) => good = middle,
                Err(earlier) => (bad, error) = (middle, earlier),
            }
        }
        Some((good, error))
    }
}

/// A row's cells; `None` stands for the column's default.
fn cells(row: &Row) -> Vec<Option<Value>> {
    row.iter().map(|value| (!is_not_given(value)).then(|| value.clone())).collect()
}

/// The message of a row's error, without the number that the row has among those that were written together.
fn of_one_row(error: &Error) -> String {
    let message = &error.message;
    let plain = message.rsplit_once(" at row ").filter(|(_, number)| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    plain.map_or(message.as_str(), |(plain, _)| plain).to_owned()
}

/// Whether an error says nothing about the rows.
fn is_of_database(error: &Error) -> bool {
    matches!(
        error.code,
        ErrorCode::OutOfMemory
            | ErrorCode::DiskFull
            | ErrorCode::ServerShutdown
            | ErrorCode::Unknown
            | ErrorCode::Deadlock
            | ErrorCode::Interrupted
    )
}
