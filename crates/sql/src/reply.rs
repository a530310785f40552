//! The receiver of answers: a protocol implements it, and the code that runs a statement calls it.

use std::future::Future;

use futures::future::BoxFuture;
use remora_mysql::{Charset, CharsetInfo, Collation};

use crate::{Cell, Column, Result};

/// The character set that a client gets texts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultCharset {
    /// The character set.
    pub charset: Charset,
    /// MySQL's number of the collation that its columns are told with.
    pub collation: u16,
    /// Most bytes of a character.
    pub max_bytes: u8,
}

impl ResultCharset {
    /// The character set of a collation; `None` where texts are sent as they are.
    pub(crate) fn of(collation: Collation) -> Option<Self> {
        let name = collation.charset();
        let max_bytes = CharsetInfo::named(name)?.max_bytes;
        Some(Self { charset: Charset::named(name)?, collation: collation.0, max_bytes })
    }
}

/// Takes what statements answer, in order. A statement with rows calls `columns` once, `row` for
/// each, then `done`; one without calls `done` alone. A statement that fails leaves what it began:
/// the wire ends it with the error.
pub trait Reply: Send {
    /// What follows is for a session whose `character_set_results` is this; `None` where texts are
    /// sent as they are, in UTF-8. Told before each statement.
    fn charset(&mut self, charset: Option<ResultCharset>) {
        let _ = charset;
    }

    /// Begins a result set.
    ///
    /// # Errors
    /// Whatever keeps the wire from taking it; the statement ends with it.
    fn columns(&mut self, columns: &[Column]) -> Result<()>;

    /// One row: as many cells as columns.
    ///
    /// # Errors
    /// Whatever keeps the wire from taking it, such as a row that has other cells than columns; the
    /// statement ends with it.
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<()>;

    /// Ends a result set or a statement without one. `more` says that another statement of the
    /// same text follows.
    ///
    /// # Errors
    /// Whatever keeps the wire from taking it.
    fn done(&mut self, outcome: &Outcome, more: bool) -> Result<()>;

    /// Waits until there is room for more. To be awaited between batches of rows; returns at once
    /// while little waits to be sent.
    ///
    /// # Errors
    /// Whatever keeps the wire from sending, or that the statement was interrupted; the statement
    /// ends with it.
    fn drain(&mut self) -> impl Future<Output = Result<()>> + Send;
}

/// A [`Reply`] of any type, behind a pointer.
pub(crate) trait AnyReply: Send {
    fn charset(&mut self, charset: Option<ResultCharset>);
    fn columns(&mut self, columns: &[Column]) -> Result<()>;
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<()>;
    fn done(&mut self, outcome: &Outcome, more: bool) -> Result<()>;
    fn drain(&mut self) -> BoxFuture<'_, Result<()>>;
}

impl<R: Reply> AnyReply for R {
    fn charset(&mut self, charset: Option<ResultCharset>) {
        Reply::charset(self, charset);
    }

    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        Reply::columns(self, columns)
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        Reply::row(self, cells)
    }

    fn done(&mut self, outcome: &Outcome, more: bool) -> Result<()> {
        Reply::done(self, outcome, more)
    }

    fn drain(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(Reply::drain(self))
    }
}

/// A reply whose type what runs a statement does not know: so that is compiled once, with this crate, and not once more
/// for each reply of each crate above.
pub(crate) struct ErasedReply<'a>(pub &'a mut dyn AnyReply);

impl Reply for ErasedReply<'_> {
    fn charset(&mut self, charset: Option<ResultCharset>) {
        self.0.charset(charset);
    }

    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        self.0.columns(columns)
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        self.0.row(cells)
    }

    fn done(&mut self, outcome: &Outcome, more: bool) -> Result<()> {
        self.0.done(outcome, more)
    }

    async fn drain(&mut self) -> Result<()> {
        self.0.drain().await
    }
}

/// How a statement ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Rows changed (or found, as the client asked), for statements that change rows.
    pub affected_rows: u64,
    /// The AUTO_INCREMENT value that was given, or 0.
    pub last_insert_id: u64,
    /// How many warnings `SHOW WARNINGS` has.
    pub warnings: u16,
    /// What MySQL says for people, such as `Records: 2  Duplicates: 0  Warnings: 0`.
    pub info: String,
}
