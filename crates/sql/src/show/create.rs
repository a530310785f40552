//! SHOW CREATE.

use remora_mysql::{Collation, ErrorCode};

use super::{
    grid::{Grid, text},
    listing, system, tables, views,
};
use crate::{
    Error, Result,
    catalog::{Verb, check_seen, database_collation, not_a_view, quoted_name},
    parse::Tokens,
    state::SessionState,
};

/// Parses the rest of SHOW CREATE and returns its result.
pub(super) fn shown(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<Grid> {
    if tokens.accept("TABLE") {
        return table(session, tokens);
    }
    if tokens.accept_any(&["DATABASE", "SCHEMA"]) {
        return database(session, tokens);
    }
    if tokens.accept("VIEW") {
        let name = listing::table_name(session, tokens)?;
        tokens.expect_end()?;
        if let Some(view) = views::find(session, &name)? {
            return Ok(views::created(session, &view));
        }
        tables::one(session, &name)?;
        return Err(not_a_view(&name));
    }
    for kind in ["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT"] {
        if tokens.accept(kind) {
            let name = listing::table_name(session, tokens)?;
            let message = format!("{kind} {} does not exist", name.table);
            return Err(Error::new(ErrorCode::DoesNotExist, message));
        }
    }
    if tokens.is_word("USER") {
        return Err(Error::unsupported("SHOW CREATE USER"));
    }
    Err(tokens.syntax_error())
}

fn table(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<Grid> {
    let name = listing::table_name(session, tokens)?;
    tokens.expect_end()?;
    if name.database.is_empty() {
        session.current_database()?;
    }
    let mut grid = Grid::new(&["Table varchar(64) NOT NULL", "`Create Table` longtext NOT NULL"]);
    if system::is_systems(&name) {
        let found = system::find(&name)?;
        let columns = found.columns.iter().map(|(column, spec)| {
            let declared = spec.written(Collation::UTF8MB3_GENERAL_CI);
            format!("  {} {declared}", quoted_name(column))
        });
        let columns: Vec<String> = columns.collect();
        let (table, charset) = (quoted_name(&found.name.table), "DEFAULT CHARSET=utf8mb3");
        let made = format!("CREATE TABLE {table} (\n{}\n) {charset}", columns.join(",\n"));
        grid.push(vec![text(&found.name.table), text(made)]);
        return Ok(grid);
    }
    if let Some(view) = views::find(session, &name)? {
        return Ok(views::created(session, &view));
    }
    if session.transaction.temporary(&name).is_none() {
        name.check(&session.identity, Verb::Show)?;
    }
    let known = tables::declared(session, &name)?;
    let next = known.next(session)?;
    let made = known.table.create_statement(&name.table, next, known.temporary.is_some());
    grid.push(vec![text(&name.table), text(made)]);
    Ok(grid)
}

fn database(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<Grid> {
    let lenient = tokens.accept_all("IF NOT EXISTS");
    let name = tokens.name()?;
    tokens.expect_end()?;
    check_seen(&session.shared, &session.identity, &name)?;
    let collation = database_collation(&session.shared, &name);
    let info = collation.info();
    let named = match info.is_default && info.charset != "utf8mb4" {
        true => String::new(),
        false => format!(" COLLATE {}", info.name),
    };
    let condition = if lenient { "/*!32312 IF NOT EXISTS*/ " } else { "" };
    let made = format!(
        "CREATE DATABASE {condition}{} /*!40100 DEFAULT CHARACTER SET {}{named} */ \
         /*!80016 DEFAULT ENCRYPTION='N' */",
        quoted_name(&name),
        info.charset
    );
    let mut grid =
        Grid::new(&["Database varchar(64) NOT NULL", "`Create Database` varchar(1024) NOT NULL"]);
    grid.push(vec![text(name), text(made)]);
    Ok(grid)
}
