//! SHOW and DESCRIBE: which system table a statement reads, and how its rows are filtered.
//!
//! ```text
//! show   := "SHOW" words [filter] | ("DESCRIBE" | "DESC" | "EXPLAIN") table [name | text]
//! filter := "LIKE" text | "WHERE" expression
//! ```
//!
//! A WHERE may be any expression. The rows then become a table of information_schema, named by the
//! statement's text before WHERE, and a SELECT reads it.

use remora_mysql::{ErrorCode, messages};

use super::{
    create, engine,
    filter::{Filter, Shown},
    grid::Grid,
    listing, privileges, processes, replicas,
    requested_tables::RequestedTables,
    server, sphinx, system,
};
use crate::{
    Error, Result,
    catalog::TableName,
    parse::{Source, Tokens},
    state::SessionState,
};

/// The most characters of a statement in SHOW PROCESSLIST without FULL.
const SHORT: usize = 100;
/// The columns of results that consist of names and values.
const PAIR: [&str; 2] = ["Variable_name varchar(64) NOT NULL", "Value varchar(1024)"];

/// Computes the rows for a statement.
pub(super) fn shown(session: &SessionState, source: &Source) -> Result<Shown> {
    let mut tokens = Tokens::new(&source.text, &source.tokens, source.mode);
    if tokens.accept("HELP") {
        let grid = Grid::new(&["name varchar(64) NOT NULL", "is_it_category char(1) NOT NULL"]);
        return Ok(Shown { grid, filter: Filter::All });
    }
    if !tokens.accept("SHOW") {
        tokens.next();
        // `DESC name TABLE` is Sphinx's form, accepted in both dialects.
        let mut ahead = tokens;
        let is_sphinxs = listing::table_name(session, &mut ahead).is_ok() && ahead.is_word("TABLE");
        return match session.variables.is_sphinx || is_sphinxs {
            true => sphinx::describe(session, &mut tokens),
            false => listing::describe(session, &mut tokens),
        };
    }
    let extended = tokens.accept("EXTENDED");
    let full = tokens.accept("FULL");
    if let Some(shown) = of_tables(session, &mut tokens, full)? {
        return Ok(shown);
    }
    if !full && !extended {
        if let Some(shown) = of_server(session, &mut tokens)? {
            return Ok(shown);
        }
        if let Some(grid) = of_replication(session, &mut tokens)? {
            let filter = Filter::read(&mut tokens)?;
            return Ok(Shown { grid, filter });
        }
    }
    Err(tokens.syntax_error())
}

/// The forms about databases and tables, and those with FULL.
fn of_tables(session: &SessionState, tokens: &mut Tokens<'_>, full: bool) -> Result<Option<Shown>> {
    if session.variables.is_sphinx && !full && tokens.accept("TABLES") {
        return sphinx::tables(session, tokens).map(Some);
    }
    if tokens.accept("TABLES") {
        return listing::tables(session, tokens, full).map(Some);
    }
    if tokens.accept_any(&["COLUMNS", "FIELDS"]) {
        return listing::columns(session, tokens, full).map(Some);
    }
    if tokens.accept("PROCESSLIST") {
        tokens.expect_end()?;
        return Ok(Some(processlist(session, full)));
    }
    if full {
        return Ok(None);
    }
    if tokens.accept_any(&["DATABASES", "SCHEMAS"]) {
        return listing::databases(session, tokens).map(Some);
    }
    if let Some(shown) = sphinx::table(session, tokens)? {
        return Ok(Some(shown));
    }
    if tokens.accept_all("TABLE STATUS") {
        return listing::table_status(session, tokens).map(Some);
    }
    if tokens.accept_any(&["INDEX", "INDEXES", "KEYS"]) {
        return listing::indexes(session, tokens).map(Some);
    }
    if tokens.accept_all("OPEN TABLES") {
        listing::database(session, tokens)?;
        return empty(tokens, &listing::OPEN_TABLES).map(Some);
    }
    if tokens.accept("CREATE") {
        let grid = create::shown(session, tokens)?;
        return Ok(Some(Shown { grid, filter: Filter::All }));
    }
    if tokens.accept("TRIGGERS") {
        listing::database(session, tokens)?;
        return empty(tokens, &listing::TRIGGERS).map(Some);
    }
    if tokens.accept("EVENTS") {
        listing::database(session, tokens)?;
        return empty(tokens, &listing::EVENTS).map(Some);
    }
    if tokens.accept_all("PROCEDURE STATUS") || tokens.accept_all("FUNCTION STATUS") {
        return empty(tokens, &listing::ROUTINES).map(Some);
    }
    Ok(None)
}

/// The forms about the server.
fn of_server(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<Option<Shown>> {
    let global = tokens.accept("GLOBAL");
    if !global {
        tokens.accept_any(&["SESSION", "LOCAL"]);
    }
    let (mut grid, rows) = if tokens.accept("VARIABLES") {
        (Grid::new(&PAIR), server::variables(session, global)?)
    } else if session.variables.is_sphinx && tokens.accept("STATUS") {
        (Grid::new(&sphinx::COUNTERS), sphinx::status(session))
    } else if tokens.accept("STATUS") {
        (Grid::new(&PAIR), server::status(session))
    } else if tokens.accept("ENGINES") || tokens.accept_all("STORAGE ENGINES") {
        (Grid::new(&listing::ENGINES), server::engines())
    } else if tokens.accept("ENGINE") {
        return engine::shown(session, tokens).map(Some);
    } else if tokens.accept_all("CHARACTER SET") || tokens.accept("CHARSET") {
        let rows = information(session, "CHARACTER_SETS")?;
        (Grid::new(&listing::CHARACTER_SETS), system::taken(rows, &[0, 2, 1, 3]))
    } else if tokens.accept("COLLATION") {
        (Grid::new(&listing::COLLATIONS), information(session, "COLLATIONS")?)
    } else if tokens.accept("PRIVILEGES") {
        (Grid::new(&listing::PRIVILEGES), listing::privileges())
    } else if tokens.accept("GRANTS") {
        return grants(session, tokens).map(Some);
    } else if tokens.accept("PLUGINS") {
        let rows = system::taken(server::plugins(), &[0, 2, 3, 5, 9]);
        (Grid::new(&listing::PLUGINS), rows)
    } else if tokens.accept("THREADS") {
        return sphinx::threads(session, tokens).map(Some);
    } else if tokens.accept("AGENT") {
        return sphinx::agents(session, tokens).map(Some);
    } else if tokens.accept("PLAN") {
        return Err(Error::unsupported("SHOW PLAN: EXPLAIN tells how a SELECT is run"));
    } else if tokens.accept("PROFILE") {
        return Err(Error::unsupported("SHOW PROFILE: EXPLAIN ANALYZE tells what a SELECT takes"));
    } else if tokens.accept("PROFILES") {
        (Grid::new(&listing::PROFILES), Vec::new())
    } else {
        return Ok(None);
    };
    grid.rows = rows;
    Ok(Some(Shown { grid, filter: Filter::read(tokens)? }))
}

/// The forms about replication.
fn of_replication(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<Option<Grid>> {
    if tokens.accept_all("ALL SLAVES STATUS") || tokens.accept_all("ALL REPLICAS STATUS") {
        check_administrator(session, "SUPER, REPLICATION CLIENT")?;
        return Ok(Some(replicas::status(session, None, false)));
    }
    for (words, old) in [("REPLICA STATUS", false), ("SLAVE STATUS", true)] {
        if tokens.accept_all(words) {
            check_administrator(session, "SUPER, REPLICATION CLIENT")?;
            let channel = match tokens.accept_all("FOR CHANNEL") {
                true => Some(tokens.utf8()?),
                false => None,
            };
            return Ok(Some(replicas::status(session, channel.as_deref(), old)));
        }
    }
    if tokens.accept("REPLICAS") || tokens.accept_all("SLAVE HOSTS") {
        return Ok(Some(Grid::new(&replicas::REPLICAS)));
    }
    if tokens.accept_all("BINARY LOG STATUS") || tokens.accept_all("MASTER STATUS") {
        return Ok(Some(Grid::new(&replicas::LOG_STATUS)));
    }
    if tokens.accept_all("BINLOG EVENTS") || tokens.accept_all("RELAYLOG EVENTS") {
        return Ok(Some(Grid::new(&replicas::LOG_EVENTS)));
    }
    if tokens.accept_all("BINARY LOGS") || tokens.accept_all("MASTER LOGS") {
        return Err(Error::new(ErrorCode::NoBinaryLog, "You are not using binary logging"));
    }
    Ok(None)
}

/// 1227 unless the user is an administrator.
fn check_administrator(session: &SessionState, privileges: &str) -> Result<()> {
    if session.identity.rights.is_none() {
        return Ok(());
    }
    let message = messages::privileges_required(privileges);
    Err(Error::new(ErrorCode::SpecificAccessDenied, message))
}

/// The rows of an information_schema table.
pub(super) fn information(
    session: &SessionState,
    table: &str,
) -> Result<Vec<Vec<remora_engine::Value>>> {
    system::rows(session, &TableName::new("information_schema", table), &RequestedTables::default())
}

/// A result that never has rows.
fn empty(tokens: &mut Tokens<'_>, columns: &[&str]) -> Result<Shown> {
    Ok(Shown { grid: Grid::new(columns), filter: Filter::read(tokens)? })
}

fn processlist(session: &SessionState, full: bool) -> Shown {
    let mut grid = Grid::new(&listing::PROCESSES);
    grid.rows = processes::rows(session, if full { usize::MAX } else { SHORT });
    Shown { grid, filter: Filter::All }
}

/// SHOW GRANTS for the session's own user. Rights of other users are only in the settings.
fn grants(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<Shown> {
    if tokens.accept("FOR") {
        let own = tokens.accept("CURRENT_USER");
        if !own {
            let name = if tokens.is_text() { tokens.utf8()? } else { tokens.name()? };
            if name != session.identity.user {
                let message = "Access denied; a user sees the grants of no other user";
                return Err(Error::new(ErrorCode::SpecificAccessDenied, message));
            }
        }
        while tokens.next().is_some() {}
    }
    tokens.expect_end()?;
    let identity = &session.identity;
    let header = format!("Grants for {}@{}", identity.user, identity.host);
    let mut grid = Grid::new(&["Grants varchar(1024) NOT NULL"]);
    grid.rename(0, header);
    for grant in privileges::grants(identity) {
        grid.push(vec![super::grid::text(grant)]);
    }
    Ok(Shown { grid, filter: Filter::All })
}
