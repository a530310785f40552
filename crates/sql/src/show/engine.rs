//! SHOW ENGINE … STATUS: what the tables are made of.

use super::{
    grid::{Grid, text},
    shown::{Filter, Shown},
    tables::{self, ENGINE, Known},
};
use crate::{Code, Error, Result, session::SessionState, write::tokens::Tokens};

/// What stands behind SHOW ENGINE.
pub(super) fn shown(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<Shown> {
    let name = if tokens.is_text() { tokens.utf8()? } else { tokens.name()? };
    let asked = tokens.accept_any(&["STATUS", "MUTEX", "LOGS"]);
    if !asked {
        return Err(tokens.syntax_error());
    }
    tokens.expect_end()?;
    if !["remora", ENGINE].iter().any(|known| known.eq_ignore_ascii_case(&name)) {
        let message = format!("Unknown storage engine '{name}'");
        return Err(Error::new(Code::UnknownEngine, message));
    }
    let columns =
        ["Type varchar(10) NOT NULL", "Name varchar(512) NOT NULL", "Status longtext NOT NULL"];
    let mut grid = Grid::new(&columns);
    grid.push(vec![text("Remora"), text(""), text(of_server(session))]);
    for known in tables::all(session)? {
        let name = format!("{}.{}", known.name.database, known.name.table);
        grid.push(vec![text("Remora"), text(name), text(of_table(session, &known)?)]);
    }
    Ok(Shown { grid, filter: Filter::All })
}

fn of_server(session: &SessionState) -> String {
    let database = &session.shared.database;
    let figures = [
        ("position", database.position().0.to_string()),
        ("tables", database.tables().len().to_string()),
        (
            "row store bytes",
            database.store_bytes().map_or_else(|_| String::new(), |bytes| bytes.to_string()),
        ),
    ];
    lines(&figures)
}

fn of_table(session: &SessionState, known: &Known) -> Result<String> {
    let figures = known.statistics(session)?;
    Ok(lines(&[
        ("rows", figures.rows.to_string()),
        ("segments", figures.segments.to_string()),
        ("merging", if figures.merging { "yes" } else { "no" }.to_owned()),
        ("index bytes in memory", figures.index_bytes.to_string()),
        ("row store bytes", figures.store_bytes.to_string()),
        ("terms", figures.terms.to_string()),
        ("postings", figures.postings.to_string()),
        ("positions", figures.positions.to_string()),
        ("bitmap lists", figures.bitmap_lists.to_string()),
        ("text characters", figures.text_chars.to_string()),
    ]))
}

fn lines(figures: &[(&str, String)]) -> String {
    let lines = figures.iter().map(|(name, value)| format!("{name}: {value}"));
    lines.collect::<Vec<String>>().join("\n")
}
