//! Statements that change rows: INSERT, REPLACE, UPDATE, DELETE, LOAD DATA.
//!
//! Each finds its rows (by a SELECT, or from its own text), makes the new rows, and puts them over the session's
//! snapshot. The commit hands them to the engine.

mod changer;
pub(crate) mod computed;
mod delete;
mod derived;
mod duplicate;
mod evaluate;
mod explained;
mod fields;
mod found_rows;
mod given;
mod insert;
pub(crate) mod literal;
mod load;
mod lock;
mod lock_free;
mod locked_table;
mod named;
mod over_rows;
mod percolate_rules;
mod preparable;
mod read_again;
mod selected;
mod sequential;
mod sum;
mod target;
#[cfg(test)]
mod tests;
mod update;
mod values;

use remora_engine::{Change, Value};

use evaluate::StatementText;
pub(crate) use evaluate::query_rows;
pub(crate) use explained::explain;
pub(crate) use lock::protect;
pub(crate) use named::{NamedTable, named_tables_without};
pub(crate) use percolate_rules::{
    FILTERS, ID, PercolateDocuments, QUERY, TAGS, check_filters, refused, text_of,
};
pub(crate) use preparable::check;
use remora_mysql::TokenKind;
pub(crate) use target::{TargetTable, check_local, table_of};
pub(crate) use values::{RowMaker, column_name};

use crate::{
    Outcome, Result,
    parse::{Statement, define::DuplicateRows},
    state::SessionState,
};

fn parameters<'p>(statement: &'p Statement<'_>) -> literal::Parameters<'p> {
    let places = statement.source.tokens.iter().enumerate();
    let places = places.filter(|(_, token)| token.kind == TokenKind::Parameter);
    let places = places.map(|(place, _)| place).collect();
    literal::Parameters { values: statement.parameters, places }
}

/// What changes rows.
#[derive(Clone, Copy)]
pub(crate) enum RowWork<'w> {
    /// A statement.
    Statement(&'w Statement<'w>),
    /// Changes of a table by key. The name is the engine's.
    Changes(&'w str, &'w [Change]),
    /// Rows for a table, with defaults for `None`, each in place of the one with its key.
    Given(&'w str, &'w [Vec<Option<Value>>]),
}

/// Does the work in the open transaction.
pub(crate) async fn run(session: &mut SessionState, work: RowWork<'_>) -> Result<Outcome> {
    session.refuses_warnings = session.variables.sql_mode.is_strict();
    let done = match work {
        RowWork::Statement(statement) => run_statement(session, statement).await,
        RowWork::Changes(table, changes) => given::change(session, table, changes).await,
        RowWork::Given(table, rows) => given::insert(session, table, rows).await,
    };
    session.refuses_warnings = false;
    done
}

async fn run_statement(session: &mut SessionState, statement: &Statement<'_>) -> Result<Outcome> {
    let text = StatementText { statement, parameters: &parameters(statement) };
    let tokens = text.verb();
    match () {
        () if tokens.is_word("INSERT") || tokens.is_word("REPLACE") => {
            insert::run(session, text).await
        }
        () if tokens.is_word("UPDATE") => update::update(session, text).await,
        () if tokens.is_word("DELETE") => delete::delete(session, text).await,
        () if tokens.is_word("LOAD") => load::run(session, text).await,
        () => Err(crate::Error::unsupported(statement.source.shown())),
    }
}

/// Inserts the rows of a query into a table that was just created, by position.
pub(crate) async fn fill(
    session: &mut SessionState,
    target: &TargetTable,
    given: (Vec<usize>, Vec<Vec<Value>>),
    duplicates: DuplicateRows,
) -> Result<Outcome> {
    insert::fill(session, target, given, duplicates).await
}
