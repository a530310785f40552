//! Relations in an UPDATE that cannot be changed: derived tables and JSON_TABLE. A column name that they share with a
//! table is ambiguous, and a column that only they have cannot be assigned.

use std::ops::Range;

use remora_mysql::ErrorCode;

use super::{
    evaluate::Query,
    literal::{Parameters, given},
    update::{Named, assigned_column, behind_rows, is_rest},
};
use crate::{Error, Result, catalog::quoted_name, parse::Tokens, state::SessionState};

/// Checks the assignments of an UPDATE with such relations: errors 1052, 1054, 1288. `tokens` are after SET.
pub(super) async fn check_assigned(
    session: &mut SessionState,
    tokens: &Tokens<'_>,
    parameters: &Parameters<'_>,
    tables: Range<usize>,
    named: &[Named],
) -> Result<()> {
    let derived = aliases(tokens, tables.clone())?;
    if derived.is_empty() {
        return Ok(());
    }
    let read = Read { tokens, parameters, tables };
    let paths = assigned_paths(*tokens, parameters)?;
    // All names are checked with one plan first. Only if that fails is each checked alone.
    let are_found = read.has_all(session, &paths).await;
    for path in paths {
        if !are_found {
            read.find(session, &path).await?;
        }
        if assigned_column(session, &path, named).is_err()
            && let Some(alias) = read.alias_of(session, &path, &derived).await
        {
            let message = format!("The target table {alias} of the UPDATE is not updatable");
            return Err(Error::new(ErrorCode::NotUpdatable, message));
        }
    }
    Ok(())
}

/// The names of the assigned columns, as lists of parts.
fn assigned_paths(mut ahead: Tokens<'_>, parameters: &Parameters<'_>) -> Result<Vec<Vec<String>>> {
    let mut paths = Vec::new();
    loop {
        let mut path = vec![ahead.name()?];
        while ahead.take(".") {
            path.push(ahead.name()?);
        }
        paths.push(path);
        if !ahead.take("=") {
            ahead.need(":=")?;
        }
        given(&mut ahead, parameters, is_rest)?;
        if !ahead.take(",") {
            return Ok(paths);
        }
    }
}

/// The FROM clause of an UPDATE.
struct Read<'r, 't> {
    tokens: &'r Tokens<'t>,
    parameters: &'r Parameters<'r>,
    tables: Range<usize>,
}

/// A quoted column name.
fn quoted_path(path: &[String]) -> String {
    let quoted: Vec<String> = path.iter().map(|part| quoted_name(part)).collect();
    quoted.join(".")
}

impl Read<'_, '_> {
    /// Whether a SELECT can name all these columns.
    async fn has_all(&self, session: &mut SessionState, paths: &[Vec<String>]) -> bool {
        let columns: Vec<String> = paths.iter().map(|path| quoted_path(path)).collect();
        let mut query = Query::new(&format!("SELECT {} FROM ", columns.join(", ")));
        query.push_tokens(self.tokens, self.tables.clone(), self.parameters);
        query.check(session).await.is_ok()
    }

    /// The error of a column name, as a SELECT reports it.
    async fn find(&self, session: &mut SessionState, path: &[String]) -> Result<()> {
        let mut query = Query::new(&format!("SELECT {} FROM ", quoted_path(path)));
        query.push_tokens(self.tokens, self.tables.clone(), self.parameters);
        query.push(" LIMIT 0");
        query.rows(session).await.map(|_| ())
    }

    /// The alias of the relation that has a column of this name.
    async fn alias_of<'a>(
        &self,
        session: &mut SessionState,
        path: &[String],
        derived: &'a [String],
    ) -> Option<&'a String> {
        let [name] = path else {
            let said = path.first()?;
            return derived.iter().find(|alias| *alias == said);
        };
        for alias in derived {
            if self.find(session, &[alias.clone(), name.clone()]).await.is_ok() {
                return Some(alias);
            }
        }
        None
    }
}

/// The aliases of derived tables and JSON_TABLEs in a FROM clause.
fn aliases(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Vec<String>> {
    let end = range.end;
    let mut ahead = tokens.within(range);
    let mut aliases = Vec::new();
    let mut expects_table = true;
    while ahead.place() < end {
        if expects_table {
            ahead.accept("LATERAL");
            if let Some(mut behind) = behind_rows(&ahead)? {
                behind.accept("AS");
                aliases.extend(behind.accept_name());
                ahead = behind;
                expects_table = false;
                continue;
            }
        }
        if ahead.is("(") && !expects_table {
            ahead.parenthesised()?;
            continue;
        }
        // Parentheses around joins begin with a table.
        let opens = ahead.is("(");
        let joins = ahead.is(",") || ahead.is_word("JOIN") || ahead.is_word("STRAIGHT_JOIN");
        ahead.next();
        expects_table = opens || joins;
    }
    Ok(aliases)
}
