//! SQL in MySQL's meaning: statements, their rows, transactions.

mod arrow;
mod connection;
mod prepared;
mod reply;
mod rows;
mod statement;

pub use connection::Connection;
pub use prepared::Prepared;
pub use rows::{Outcome, Rows};

pub(crate) use arrow::batches;
pub(crate) use connection::transaction;
pub(crate) use statement::{execute_once, query_once};
