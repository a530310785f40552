//! Statements about the server: SHOW, information_schema, KILL and the like.

mod administration;
mod create;
mod engine;
mod filter;
mod grid;
mod keys;
mod like;
mod listing;
mod meta;
mod privileges;
mod processes;
mod replicas;
mod requested_tables;
mod server;
mod shown;
mod sphinx;
mod system;
mod tables;
mod views;

use std::sync::Arc;

use datafusion::{catalog::TableProvider, sql::sqlparser::ast::Query};

use crate::{
    Column, Outcome, Reply, Result,
    catalog::TableName,
    parse::{
        Statement, StatementKind, split,
        write::{expressions, query_of_all, table_named},
    },
    state::SessionState,
};
pub(crate) use administration::kill;
use filter::{Filter, Shown};
pub(crate) use listing::table_of_columns;
pub(crate) use meta::show as show_meta;
pub(crate) use requested_tables::RequestedTables;

/// The prefix of the names of tables that hold the result of a SHOW.
const SHOW: &str = "SHOW ";

/// How a statement about the server was answered.
pub(crate) enum ShowAnswer {
    /// The result was sent.
    Sent(Outcome),
    /// The caller must run this query: SHOW … WHERE.
    Select(Box<Query>),
}

/// Runs SHOW, DESCRIBE, FLUSH and similar statements.
pub(crate) async fn run<R: Reply>(
    session: &mut SessionState,
    statement: &Statement<'_>,
    reply: &mut R,
) -> Result<ShowAnswer> {
    if statement.kind() == StatementKind::Administration {
        return administration::run(session, statement, reply).await.map(ShowAnswer::Sent);
    }
    let source = &statement.source;
    let Shown { mut grid, filter } = shown::shown(session, source)?;
    match filter {
        Filter::All => {}
        Filter::Like(pattern) => grid.rows.retain(|row| like::first_is_like(row, &pattern)),
        Filter::LikeExactly(pattern) => {
            grid.rows.retain(|row| like::first_is_exactly_like(row, &pattern));
        }
        Filter::Where(place) => {
            return Ok(ShowAnswer::Select(Box::new(selected(statement, place)?)));
        }
    }
    session.found_rows = grid.rows.len() as u64;
    grid.send(reply)?;
    Ok(ShowAnswer::Sent(Outcome::default()))
}

/// The result columns of a prepared SHOW; none if they are only known when it runs.
pub(crate) fn columns(
    session: &mut SessionState,
    statement: &Statement<'_>,
) -> Result<Vec<Column>> {
    let source = &statement.source;
    let later = ["WARNINGS", "ERRORS", "COUNT", "META"];
    if later.iter().any(|word| source.is_word(1, word)) {
        return Ok(Vec::new());
    }
    Ok(shown::shown(session, source)?.grid.described())
}

/// Whether a system table has a column of this name.
pub(crate) fn system_has_column(name: &TableName, column: &str) -> bool {
    let has = |table: &system::SystemTable| {
        table.columns.iter().any(|(known, _)| known.eq_ignore_ascii_case(column))
    };
    system::find(name).is_ok_and(has)
}

/// A system table, with at least the rows about the requested tables; `None` if the name is not a
/// system table's.
pub(crate) fn system_table(
    session: &SessionState,
    name: &TableName,
    requested_tables: &RequestedTables,
) -> Result<Option<Arc<dyn TableProvider>>> {
    if !system::is_systems(name) {
        return Ok(None);
    }
    if name.table.get(..SHOW.len()).is_some_and(|start| start.eq_ignore_ascii_case(SHOW)) {
        let mut sources = split(name.table.as_bytes(), false, session.lex_mode())?;
        if let Some(source) = sources.pop() {
            return shown::shown(session, &source)?.grid.provider().map(Some);
        }
    }
    system::provider(session, name, requested_tables).map(Some)
}

/// The query of SHOW … WHERE, of which WHERE is this token. The text before it becomes the table's name.
fn selected(statement: &Statement<'_>, place: usize) -> Result<Query> {
    let source = &statement.source;
    let start = source.tokens.get(place).map_or(source.text.len(), |token| token.start);
    let shown = String::from_utf8_lossy(source.text.get(..start).unwrap_or_default());
    let condition = (place + 1..source.tokens.len(), statement.parameters);
    let condition = expressions(source, &[condition])?.pop();
    Ok(query_of_all(table_named(&["information_schema", shown.trim()], None), condition))
}
