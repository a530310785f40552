//! Definitions and rows of local tables, and transactions.

mod computed;
mod convert;
mod counters;
pub(crate) mod declared;
mod define;
pub(crate) mod overlay;
mod rows;
mod session;
mod temporary;
mod transaction;
mod unique;

pub(crate) use counters::Counters;
pub(crate) use define::{database_collation, empty_databases};
pub(crate) use overlay::{Key, Overlay};
pub(crate) use session::{commit, ensure_begun, set_next_transaction};
pub(crate) use temporary::TemporaryTable;
pub(crate) use transaction::TransactionState;

pub(crate) use rows::{check, protect};

use crate::{
    Outcome, Result,
    parse::{Kind, Statement},
    session::SessionState,
};

/// Runs a statement that changes rows or definitions, or begins or ends a transaction.
pub(crate) async fn run(session: &mut SessionState, statement: &Statement<'_>) -> Result<Outcome> {
    match statement.kind() {
        Kind::Rows => session::run_rows(session, statement).await,
        Kind::Transaction => session::run_transaction(session, statement).await,
        _ => define::run(session, statement).await,
    }
}
