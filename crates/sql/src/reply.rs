//! The receiver of results. Protocols implement it; the code that runs statements calls it.

use std::future::Future;

use futures::future::BoxFuture;
use remora_mysql::{Charset, CharsetInfo, Collation};

use crate::{Cell, Column, Result};

/// The character set of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultCharset {
    /// The character set.
    pub charset: Charset,
    /// The number of the collation that column descriptions get.
    pub collation: u16,
    /// The most bytes of a character.
    pub max_bytes: u8,
}

impl ResultCharset {
    /// The character set of a collation; `None` if texts are sent without conversion.
    pub(crate) fn of(collation: Collation) -> Option<Self> {
        let name = collation.charset();
        let max_bytes = CharsetInfo::named(name)?.max_bytes;
        Some(Self {
            charset: Charset::named(name)?,
            collation: collation.known_to_clients().0,
            max_bytes,
        })
    }
}

/// Receives the results of statements, in order. A statement with rows calls `columns` once, `row`
/// for each row, then `done`; one without rows only calls `done`. If a statement fails, its result
/// stays unfinished and the protocol ends it with the error.
pub trait Reply: Send {
    /// Sets the session's `character_set_results`; `None` if texts are sent unconverted, in UTF-8.
    /// Called before each statement.
    fn charset(&mut self, charset: Option<ResultCharset>) {
        let _ = charset;
    }

    /// Begins a result set.
    ///
    /// # Errors
    /// If the protocol cannot take it; the statement then ends with this error.
    fn columns(&mut self, columns: &[Column]) -> Result<()>;

    /// Sends a row, with as many cells as columns.
    ///
    /// # Errors
    /// If the protocol cannot take it, for example because the cells do not match the columns; the
    /// statement then ends with this error.
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<()>;

    /// Ends a result set, or a statement without one. `more` tells whether another statement of the
    /// same text follows.
    ///
    /// # Errors
    /// If the protocol cannot take it.
    fn done(&mut self, outcome: &Outcome, more: bool) -> Result<()>;

    /// Waits until there is room for more output. Await it between batches of rows. It returns at
    /// once while little output is pending.
    ///
    /// # Errors
    /// If the protocol cannot send, or the statement was interrupted; the statement then ends with
    /// this error.
    fn drain(&mut self) -> impl Future<Output = Result<()>> + Send;
}

/// A [`Reply`] of any type behind a pointer.
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

/// Erases the type of a reply, so that the code that runs statements is compiled once in this
/// crate, and not again for every reply of other crates.
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

/// The outcome of a statement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The number of rows changed, or found if the client asked for that.
    pub affected_rows: u64,
    /// The generated AUTO_INCREMENT value, or 0.
    pub last_insert_id: u64,
    /// The number of warnings.
    pub warnings: u16,
    /// MySQL's message for users, such as `Records: 2  Duplicates: 0  Warnings: 0`.
    pub info: String,
}
