//! The rows of a statement, kept until the reply is written.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use remora_mysql::ErrorCode;
use remora_sql::{Cell, Column, Error, Outcome, Reply, Result};

/// The most bytes of values.
pub(super) const MAX_BYTES: usize = 64 << 20;
/// The memory of a row without its values.
const ROW_BYTES: usize = 64;

/// A reply that converts each row's cells with `convert`.
pub(super) struct Rows<T, F> {
    pub rows: Vec<T>,
    pub columns: Vec<Column>,
    pub affected: u64,
    convert: F,
    bytes: usize,
    most: usize,
    interrupter: Arc<AtomicBool>,
}

impl<T, F: FnMut(&[Column], &[Cell<'_>]) -> (T, usize)> Rows<T, F> {
    /// No rows yet. `convert` returns a row and the bytes of its values.
    pub(super) fn new(interrupter: Arc<AtomicBool>, convert: F) -> Self {
        let (rows, columns) = (Vec::new(), Vec::new());
        Self { rows, columns, affected: 0, convert, bytes: 0, most: MAX_BYTES, interrupter }
    }

    /// Sets another limit of bytes.
    pub(super) fn with_limit(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// The bytes of the rows.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<T: Send, F: FnMut(&[Column], &[Cell<'_>]) -> (T, usize) + Send> Reply for Rows<T, F> {
    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        self.columns = columns.to_vec();
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        let (row, bytes) = (self.convert)(&self.columns, cells);
        self.bytes += bytes + ROW_BYTES;
        if self.bytes > self.most {
            let message = format!(
                "the reply is larger than {MAX_BYTES} bytes: ask for fewer rows or attributes"
            );
            return Err(Error::new(ErrorCode::OutOfMemory, message));
        }
        self.rows.push(row);
        Ok(())
    }

    fn done(&mut self, outcome: &Outcome, _: bool) -> Result<()> {
        self.affected = outcome.affected_rows;
        Ok(())
    }

    async fn drain(&mut self) -> Result<()> {
        if self.interrupter.load(Relaxed) { Err(Error::interrupted()) } else { Ok(()) }
    }
}
