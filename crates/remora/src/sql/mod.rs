//! SQL with MySQL's semantics: statements, their rows, transactions.

mod canceller;
mod connection;
mod prepared;
mod reply;
mod rows;
mod statement;
mod stream;

pub use canceller::Canceller;
pub use connection::Connection;
pub use prepared::Prepared;
pub use rows::{Answer, Outcome, Rows};
pub use stream::RowStream;

pub(crate) use connection::transaction;
pub(crate) use statement::{execute_once, query_once, read_in, run_text};
