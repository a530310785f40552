//! DELETE from one table or from several: a SELECT finds the keys, then the rows are deleted one by one.
//!
//! The statement is parsed once ([`crate::parse::write`]). A DELETE from one table by its key is not parsed: its tokens
//! and the cached plan of its key are enough.

use datafusion::sql::sqlparser::ast::Query;
use remora_mysql::{ErrorCode, messages};

use super::{
    derived::check_deleted,
    evaluate::{StatementText, found_rows},
    named::{NamedTable, changed_tables, conditions, key_items, named_keys, one_table},
    read_again,
    target::TargetTable,
    update::check_clauses,
};
use crate::{
    Error, Outcome, Result,
    blocking::run_blocking_if_long,
    catalog::Verb,
    execute::{RowsExplained, Writing},
    parse::write::{self, ChangedQuery, ChangedRows, Listed, SoughtRows},
    state::SessionState,
    transaction::RowKey,
};

/// Runs DELETE.
pub(super) async fn delete(session: &mut SessionState, text: StatementText<'_>) -> Result<Outcome> {
    let known = ReadDelete::by_key(session, text);
    let is_sought = known.is_some();
    if let Some(read) = known
        && let Some(outcome) = read.delete_by_key(session, text)?
    {
        return Ok(outcome);
    }
    let read = ReadDelete::of(session, text)?;
    if !is_sought
        && read.rows.may_name_keys()
        && let Some(outcome) = read.delete_by_key(session, text)?
    {
        return Ok(outcome);
    }
    let found = found_rows(session, text.statement, read.found()).await?.rows;
    let mut deleted = 0;
    let mut at = 0;
    for target in read.targets.iter().flatten() {
        let length = target.table.schema.primary_key.len();
        for row in &found {
            let Some(key) = target.key_of(row, at) else { continue };
            session.check_progress()?;
            if let Some(old) = target.row(session, &key)? {
                target.delete(session, &old);
                deleted += 1;
            }
        }
        at += length;
    }
    Ok(Outcome { affected_rows: deleted, ..Outcome::default() })
}

/// The SELECT with which DELETE finds its rows.
pub(super) fn explained_delete<'s>(
    session: &mut SessionState,
    text: StatementText<'s>,
) -> Result<Writing<'s>> {
    let read = ReadDelete::of(session, text)?;
    let targets = read.changed().map(|(named, _)| named.alias.clone()).collect();
    let query = ChangedQuery { query: read.query(), rows: read.rows };
    let rows = Some(RowsExplained::Query(text.statement, Box::new(query)));
    Ok(Writing { verb: "DELETE", targets, rows })
}

/// A DELETE that was read.
struct ReadDelete {
    ignore: bool,
    named: Vec<NamedTable>,
    /// The tables of `named` whose rows are deleted.
    targets: Vec<Option<TargetTable>>,
    /// If it was not parsed, only where its tables and conditions stand.
    rows: ChangedRows,
}

impl ReadDelete {
    /// Parses the statement.
    fn of(session: &mut SessionState, text: StatementText<'_>) -> Result<Self> {
        let parse = || write::delete(text.statement);
        let parsed = run_blocking_if_long(text.source().is_long(), parse)?;
        let write::Delete { ignore, listed, rows } = parsed;
        check_clauses(&rows)?;
        session.refuses_warnings &= !ignore;
        let named = changed_tables(session, &rows)?;
        check_deleted(&rows, listed.as_deref())?;
        let targets = deleted_targets(session, &named, listed.as_deref())?;
        let read = Self { ignore, named, targets, rows };
        let changed = read.changed().map(|(named, _)| named);
        read_again::check_rows(session, changed, &read.rows, std::iter::empty())?;
        Ok(read)
    }

    /// Reads the tokens of a DELETE from one table with WHERE; `None` if it is any other statement, or has an error.
    fn by_key(session: &SessionState, text: StatementText<'_>) -> Option<Self> {
        let mut tokens = text.tokens();
        tokens.expect("DELETE").ok()?;
        while tokens.accept_any(&["LOW_PRIORITY", "QUICK"]) {}
        let ignore = tokens.accept("IGNORE");
        tokens.expect("FROM").ok()?;
        let start = tokens.place();
        let named = vec![one_table(session, &mut tokens)?];
        let rows = ChangedRows::at(start..tokens.place(), conditions(&mut tokens)?);
        let targets = deleted_targets(session, &named, None).ok()?;
        Some(Self { ignore, named, targets, rows })
    }

    /// The tables whose rows are deleted.
    fn changed(&self) -> impl Iterator<Item = (&NamedTable, &TargetTable)> {
        let pairs = self.named.iter().zip(&self.targets);
        pairs.filter_map(|(named, target)| Some((named, target.as_ref()?)))
    }

    /// The SELECT of the keys.
    fn query(&self) -> Query {
        let keys = self.changed().flat_map(|(named, target)| key_items(named, target));
        self.rows.select(keys.collect())
    }

    /// The query, and the tokens that decide it.
    fn found(&self) -> SoughtRows {
        let ChangedRows { tables_at, rest_at, .. } = &self.rows;
        let tokens = match self.rows.is_one_table() {
            true => vec![tables_at.clone(), rest_at.clone()],
            // Which tables' keys are selected is said elsewhere.
            false => Vec::new(),
        };
        SoughtRows { query: self.query(), tokens, number: 0 }
    }

    /// Deletes the rows, if the condition does nothing but name keys of the only table.
    fn delete_by_key(
        &self,
        session: &mut SessionState,
        text: StatementText<'_>,
    ) -> Result<Option<Outcome>> {
        let ([named], [Some(target)]) = (&self.named[..], &self.targets[..]) else {
            return Ok(None);
        };
        let keys = named_keys(session, text.statement, (named, target), &self.rows)?;
        let Some(keys) = keys else { return Ok(None) };
        session.refuses_warnings &= !self.ignore;
        delete_keys(session, target, &keys).map(Some)
    }
}

/// Deletes the rows with these keys.
fn delete_keys(
    session: &mut SessionState,
    target: &TargetTable,
    keys: &[RowKey],
) -> Result<Outcome> {
    let mut deleted = 0;
    for key in keys {
        session.check_progress()?;
        if let Some(old) = target.row(session, key)? {
            target.delete(session, &old);
            deleted += 1;
        }
    }
    Ok(Outcome { affected_rows: deleted, ..Outcome::default() })
}

/// Whether a listed table is this one. A table with an alias is listed by that alone, so that of the two tables of a
/// self-join only one is meant.
pub(super) fn is_deleted(named: &NamedTable, (database, table): &Listed) -> bool {
    let has_alias = named.alias != named.name.table;
    let is_of = |database: &String| !has_alias && *database == named.name.database;
    *table == named.alias && database.as_ref().is_none_or(is_of)
}

/// The targets among the tables that are read: those listed, or all.
fn deleted_targets(
    session: &SessionState,
    named: &[NamedTable],
    listed: Option<&[Listed]>,
) -> Result<Vec<Option<TargetTable>>> {
    let missing = listed.into_iter().flatten();
    let mut missing = missing.filter(|listed| !named.iter().any(|named| is_deleted(named, listed)));
    if let Some((_, missing)) = missing.next() {
        let message = messages::unknown_table_in(missing, "MULTI DELETE");
        return Err(Error::new(ErrorCode::UnknownTableInDelete, message));
    }
    let wanted = |named: &NamedTable| {
        listed.is_none_or(|listed| listed.iter().any(|listed| is_deleted(named, listed)))
    };
    let target = |named: &NamedTable| TargetTable::find(session, &named.name, Verb::Delete);
    named.iter().map(|named| wanted(named).then(|| target(named)).transpose()).collect()
}
