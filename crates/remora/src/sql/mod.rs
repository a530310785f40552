//! SQL in MySQL's meaning: statements, their rows, transactions.

mod arrow;
mod connection;
mod prepared;
mod reply;
mod rows;
mod statement;
mod stream;

pub use connection::Connection;
pub use prepared::Prepared;
pub use rows::{Outcome, Rows};
pub use stream::RowStream;

pub(crate) use arrow::batches;
pub(crate) use connection::transaction;
pub(crate) use statement::{execute_once, query_once};
