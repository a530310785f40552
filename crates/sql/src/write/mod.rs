//! Statements that change definitions or rows, and transactions.

mod convert;
mod define;
mod rows;
mod stored;
mod transaction;
mod unique;

pub(crate) use define::COMPUTING;
pub use define::{is_declared_path, percolate_table};
pub(crate) use rows::{
    FILTERS, ID, PercolateDocuments, QUERY, TAGS, check, check_filters, explain, protect, refused,
    text_of,
};

use remora_engine::{Change, Value};
use rows::RowWork;

use crate::{
    Outcome, Result,
    parse::{Statement, StatementKind},
    state::SessionState,
};

/// Runs a statement that changes rows or definitions, or begins or ends a transaction.
pub(crate) async fn run(session: &mut SessionState, statement: &Statement<'_>) -> Result<Outcome> {
    match statement.kind() {
        StatementKind::Rows => transaction::run_rows(session, RowWork::Statement(statement)).await,
        StatementKind::Transaction => transaction::run_transaction(session, statement).await,
        _ => define::run(session, statement).await,
    }
}

/// Changes rows of a table by key, in the open transaction or in one of their own. `table` is the engine's name.
pub(crate) async fn change_rows(
    session: &mut SessionState,
    table: &str,
    changes: &[Change],
) -> Result<Outcome> {
    transaction::run_rows(session, RowWork::Changes(table, changes)).await
}

/// Inserts rows into a table, each in place of the one with its key. `None` means a column's default.
pub(crate) async fn put_rows(
    session: &mut SessionState,
    table: &str,
    rows: &[Vec<Option<Value>>],
) -> Result<Outcome> {
    transaction::run_rows(session, RowWork::Given(table, rows)).await
}

/// Begins a transaction with the session's characteristics.
pub(crate) async fn begin_transaction(session: &mut SessionState) -> Result<()> {
    transaction::begin_next(session).await
}
