//! Statements that change definitions or rows, and transactions.

mod convert;
mod define;
mod percolate_rules;
mod rows;
mod transaction;
mod unique;

pub(crate) use define::COMPUTING;
pub use define::percolate_table;
pub(crate) use percolate_rules::{
    Documents, FILTERS, ID, QUERY, TAGS, check_filters, refused, text_of,
};
pub(crate) use rows::{check, explain, protect};

use crate::{
    Outcome, Result,
    parse::{Kind, Statement},
    state::SessionState,
};

/// Runs a statement that changes rows or definitions, or begins or ends a transaction.
pub(crate) async fn run(session: &mut SessionState, statement: &Statement<'_>) -> Result<Outcome> {
    match statement.kind() {
        Kind::Rows => transaction::run_rows(session, statement).await,
        Kind::Transaction => transaction::run_transaction(session, statement).await,
        _ => define::run(session, statement).await,
    }
}
