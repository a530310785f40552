//! Streams the rows of a statement, with a few batches in memory.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
};

use remora_engine::Value;
use remora_mysql::ErrorCode;
use remora_sql::{Cell, Column as SqlColumn, Outcome as SqlOutcome, Reply, Session};
use tokio::sync::Semaphore;

use super::{reply::Taken, statement::check};
use crate::{
    Error, Result,
    handle::Handle,
    row::{Column, Row},
    runtime,
};

/// The number of batches that are produced ahead of the reader.
const BATCHES_AHEAD: usize = 2;

/// The rows of a statement, one by one: an iterator over rows that are produced while they are
/// read. All of them are as of one moment, however long that takes. The files that it reads are
/// kept on disk meanwhile.
///
/// ```
/// use remora::{Database, params};
///
/// let db = Database::in_memory()?;
/// db.execute("CREATE TABLE t (id INT PRIMARY KEY)", params![])?;
/// db.execute("INSERT INTO t VALUES (1), (2), (3)", params![])?;
/// let rows = db.query_stream("SELECT id FROM t WHERE id > ?", params![1])?;
/// assert_eq!(rows.columns()[0].name, "id");
/// let mut sum = 0;
/// for row in rows {
///     sum += row?.get::<i32>("id")?;
/// }
/// assert_eq!(sum, 5);
/// # Ok::<(), remora::Error>(())
/// ```
pub struct RowStream {
    handle: Arc<Handle>,
    messages: Receiver<Message>,
    room: Arc<Semaphore>,
    columns: Arc<[Column]>,
    rows: VecDeque<Vec<Value>>,
    ended: bool,
}

/// A message from the statement to the reader.
enum Message {
    Columns(Arc<[Column]>),
    Rows(Vec<Vec<Value>>),
    End(Vec<Vec<Value>>, remora_sql::Result<()>, Box<Session>),
}

impl RowStream {
    pub(crate) fn start(handle: &Arc<Handle>, text: &str, parameters: &[Value]) -> Result<Self> {
        let mut session = Some(handle.sessions.begin());
        let prepared = match parameters {
            [] => None,
            _ => Some(handle.sessions.prepare(&mut session, text)?),
        };
        if let Some(prepared) = &prepared {
            check(prepared.statement.parameters, parameters)?;
        }
        let mut session = session.ok_or(Error::Closed)?;
        let (sender, messages) = channel();
        let room = Arc::new(Semaphore::new(BATCHES_AHEAD));
        let mut reply = Streamed { answer: Taken::default(), sender, room: Arc::clone(&room) };
        let (text, parameters) = (text.to_owned(), parameters.to_vec());
        runtime::spawn(async move {
            let ran = match &prepared {
                None => session.query(text.as_bytes(), false, &mut reply).await,
                Some(prepared) => {
                    session.execute(&prepared.statement, &parameters, &mut reply).await
                }
            };
            // A reader that was dropped does not need it.
            let end = Message::End(reply.answer.take_rows(), ran, Box::new(session));
            let _ = reply.sender.send(end);
        })?;
        let mut stream = Self {
            handle: Arc::clone(handle),
            messages,
            room,
            columns: Arc::default(),
            rows: VecDeque::new(),
            ended: false,
        };
        // An error of the statement is returned at once.
        match stream.messages.recv() {
            Ok(Message::Columns(columns)) => stream.columns = columns,
            Ok(Message::End(_, ran, session)) => {
                stream.handle.sessions.end(*session);
                ran?;
                return Err(Error::request(
                    "the statement was run and has no rows: use execute() for such statements",
                ));
            }
            Ok(Message::Rows(_)) | Err(_) => return Err(broken()),
        }
        Ok(stream)
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Waits for more rows.
    fn receive(&mut self) -> Result<()> {
        match self.messages.recv() {
            Ok(Message::Rows(rows)) => {
                self.room.add_permits(1);
                self.rows = rows.into();
                Ok(())
            }
            Ok(Message::End(rows, ran, session)) => {
                self.ended = true;
                self.handle.sessions.end(*session);
                self.rows = rows.into();
                Ok(ran?)
            }
            Ok(Message::Columns(_)) | Err(_) => Err(broken()),
        }
    }
}

impl Iterator for RowStream {
    type Item = Result<Row>;

    /// The next row. After an error there are no more.
    fn next(&mut self) -> Option<Result<Row>> {
        loop {
            if let Some(values) = self.rows.pop_front() {
                return Some(Ok(Row::new(Arc::clone(&self.columns), values)));
            }
            if self.ended {
                return None;
            }
            if let Err(error) = self.receive() {
                self.ended = true;
                self.rows.clear();
                return Some(Err(error));
            }
        }
    }
}

impl Drop for RowStream {
    fn drop(&mut self) {
        // Ends the statement when it next waits for room.
        self.room.close();
    }
}

fn broken() -> Error {
    Error::Io("the statement broke off: please report it".to_owned().into())
}

/// Sends the results of a statement to the reader.
struct Streamed {
    /// What was not sent yet.
    answer: Taken,
    sender: Sender<Message>,
    room: Arc<Semaphore>,
}

impl Reply for Streamed {
    fn columns(&mut self, columns: &[SqlColumn]) -> remora_sql::Result<()> {
        self.answer.columns(columns)?;
        if let Some(columns) = self.answer.known_columns() {
            // A reader that was dropped is noticed when rows are sent.
            let _ = self.sender.send(Message::Columns(columns));
        }
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> remora_sql::Result<()> {
        self.answer.row(cells)
    }

    fn done(&mut self, outcome: &SqlOutcome, more: bool) -> remora_sql::Result<()> {
        self.answer.done(outcome, more)
    }

    async fn drain(&mut self) -> remora_sql::Result<()> {
        let rows = self.answer.take_rows();
        let gone = || {
            let message = "the rows of the statement are not read any more";
            remora_sql::Error::new(ErrorCode::Interrupted, message)
        };
        if self.room.is_closed() {
            return Err(gone());
        }
        if !rows.is_empty() {
            self.room.acquire().await.map_err(|_| gone())?.forget();
            self.sender.send(Message::Rows(rows)).map_err(|_| gone())?;
        }
        Ok(())
    }
}
