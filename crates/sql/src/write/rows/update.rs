//! UPDATE of one table or of several: a SELECT finds the keys and the new values, then the rows are changed one by one.
//!
//! The statement is parsed once ([`crate::parse::write`]). An UPDATE of one table by its key that assigns literals and
//! sums is not parsed: its tokens and the cached plan of its key are enough ([`ReadUpdate::by_key`]).

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::Expr;
use remora_engine::Value;
use remora_mysql::ErrorCode;

use super::{
    changer::{Changer, ColumnAssignment},
    derived::check_assigned,
    evaluate::{StatementText, found_rows},
    literal::{CellExpr, given},
    named::{
        NamedTable, assigned_column, changed_tables, conditions, key_items, named_keys, one_table,
    },
    read_again,
    sequential::{SequentialAssignments, evaluated_in_turn, mentioned},
    sum::ColumnSum,
    target::TargetTable,
};
use crate::{
    Error, Outcome, Result,
    blocking::run_blocking_if_long,
    catalog::{TypeSpec, Verb},
    execute::{RowsExplained, Writing},
    parse::{
        Tokens, change_own_expressions, checked_parts, too_costly,
        write::{self, ChangedQuery, ChangedRows, SoughtRows},
    },
    resolve::check_of_one_row,
    state::SessionState,
};

/// Runs UPDATE.
pub(super) async fn update(session: &mut SessionState, text: StatementText<'_>) -> Result<Outcome> {
    let known = ReadUpdate::by_key(session, text);
    let is_sought = known.is_some();
    if let Some(read) = known
        && let Some(found) = read.find_by_key(session, text)?
    {
        session.refuses_warnings &= !read.ignore;
        return read.change(session, text, found).await;
    }
    let read = ReadUpdate::of(session, text).await?;
    let may_name_keys = !is_sought && read.rows.may_name_keys();
    let found = if may_name_keys { read.find_by_key(session, text)? } else { None };
    let found = match found {
        Some(found) => found,
        None => {
            let mut found = found_rows(session, text.statement, read.found()?).await?;
            found.fit(read.given_kinds().into_iter());
            found.rows
        }
    };
    read.change(session, text, found).await
}

/// The SELECT with which UPDATE finds its rows.
pub(super) async fn explained_update<'s>(
    session: &mut SessionState,
    text: StatementText<'s>,
) -> Result<Writing<'s>> {
    let read = ReadUpdate::of(session, text).await?;
    let targets = read.changed().map(|(named, _)| named.alias.clone()).collect();
    let query = ChangedQuery { query: read.found()?.query, rows: read.rows };
    let rows = Some(RowsExplained::Query(text.statement, Box::new(query)));
    Ok(Writing { verb: "UPDATE", targets, rows })
}

/// An UPDATE that was read.
struct ReadUpdate {
    ignore: bool,
    named: Vec<NamedTable>,
    /// The tables of `named` that are changed.
    targets: Vec<Option<TargetTable>>,
    assignments: Vec<ColumnAssignment>,
    /// Which assignments are evaluated after the others.
    in_turn: Vec<bool>,
    /// If it was not parsed, only where its tables and conditions stand.
    rows: ChangedRows,
}

/// The name of a column, what is assigned to it, and the syntax tree of that.
type Said = (Vec<String>, CellExpr, Option<Expr>);

impl ReadUpdate {
    /// Parses the statement.
    async fn of(session: &mut SessionState, text: StatementText<'_>) -> Result<Self> {
        let source = text.source();
        let parse = || write::update(text.statement);
        let parsed = run_blocking_if_long(source.is_long(), parse)?;
        let write::Update { ignore, rows, assignments } = parsed;
        check_clauses(&rows)?;
        assignments.iter().try_for_each(|assigned| check_of_one_row(&assigned.value))?;
        session.refuses_warnings &= !ignore;
        let named = changed_tables(session, &rows)?;
        check_assigned(session, source, &rows, &assignments, &named).await?;
        let tokens = text.tokens();
        let mut said = Vec::with_capacity(assignments.len());
        for write::Assigned { path, value, value_at } in assignments {
            let mut tokens = tokens.within(value_at);
            said.push((path, given(&mut tokens, text.parameters, |_| false)?, Some(value)));
        }
        let (targets, assignments) = resolved(session, &named, said)?;
        let changed = named.iter().zip(&targets).filter(|(_, target)| target.is_some());
        let assigned = assignments.iter().filter_map(|assignment| assignment.value.as_ref());
        read_again::check_rows(session, changed.map(|(named, _)| named), &rows, assigned)?;
        let in_turn = match (&named[..], &targets[..]) {
            ([named], [Some(target)]) if rows.is_one_table() => {
                evaluated_in_turn(named, target, &assignments)
            }
            _ => vec![false; assignments.len()],
        };
        Ok(Self { ignore, named, targets, assignments, in_turn, rows })
    }

    /// Reads the tokens of an UPDATE of one table with WHERE that assigns literals and sums of a column and a literal, all
    /// of which see the row as it was; `None` if it is any other statement, or has an error.
    fn by_key(session: &SessionState, text: StatementText<'_>) -> Option<Self> {
        let mut tokens = text.tokens();
        tokens.expect("UPDATE").ok()?;
        tokens.accept("LOW_PRIORITY");
        let ignore = tokens.accept("IGNORE");
        let start = tokens.place();
        let named = vec![one_table(session, &mut tokens)?];
        let tables = start..tokens.place();
        tokens.expect("SET").ok()?;
        let mut said = Vec::new();
        loop {
            let mut path = vec![tokens.name().ok()?];
            while tokens.take(".") {
                path.push(tokens.name().ok()?);
            }
            if !tokens.take("=") {
                tokens.need(":=").ok()?;
            }
            let ends = |tokens: &Tokens<'_>| tokens.is_reserved("WHERE");
            said.push((path, given(&mut tokens, text.parameters, ends).ok()?, None));
            if !tokens.take(",") {
                break;
            }
        }
        let rows = ChangedRows::at(tables, conditions(&mut tokens)?);
        let (targets, assignments) = resolved(session, &named, said).ok()?;
        let in_turn = vec![false; assignments.len()];
        let read = Self { ignore, named, targets, assignments, in_turn, rows };
        let ([named], [Some(target)]) = (&read.named[..], &read.targets[..]) else { return None };
        // More of them are compared where they can be interrupted.
        if read.assignments.len() > target.table.schema.columns.len() {
            return None;
        }
        let assigned: Vec<usize> = read.assignments.iter().map(|each| each.column).collect();
        for (place, assignment) in read.assignments.iter().enumerate() {
            let CellExpr::Expression(range) = &assignment.given else { continue };
            let tokens = text.tokens();
            let sum = ColumnSum::of(&tokens, range.clone(), text.parameters, &named.alias, target)?;
            if assigned.iter().take(place).any(|column| *column == sum.column()) {
                return None;
            }
        }
        Some(read)
    }

    /// The changed tables.
    fn changed(&self) -> impl Iterator<Item = (&NamedTable, &TargetTable)> {
        let pairs = self.named.iter().zip(&self.targets);
        pairs.filter_map(|(named, target)| Some((named, target.as_ref()?)))
    }

    /// The SELECT of the keys of the rows to change and of the values of the assigned expressions, row by row, with the
    /// tokens that decide it.
    fn found(&self) -> Result<SoughtRows> {
        let ChangedRows { tables_at, rest_at, .. } = &self.rows;
        let mut tokens = vec![tables_at.clone()];
        // Of several tables, which keys are selected is said elsewhere.
        let mut is_decided = self.rows.is_one_table();
        let mut items: Vec<Expr> =
            self.changed().flat_map(|(named, target)| key_items(named, target)).collect();
        // A later assignment sees the columns that earlier ones assigned.
        let mut earlier = Earlier { made: Vec::new(), room: MOST_PARTS };
        for (assignment, in_turn) in self.assignments.iter().zip(&self.in_turn) {
            let Some(value) = assignment.value.as_ref().filter(|_| !in_turn) else { continue };
            match &assignment.given {
                CellExpr::Value(_) => earlier.made.push((assignment.column, value.clone(), 1)),
                CellExpr::Expression(range) => {
                    let expression = match (&self.named[..], &self.targets[..]) {
                        ([named], [Some(target)]) => {
                            earlier.substituted(value, named, target, assignment.column)?
                        }
                        _ => value.clone(),
                    };
                    is_decided &= expression == *value;
                    tokens.push(range.clone());
                    items.push(expression);
                }
                _ => {}
            }
        }
        tokens.push(rest_at.clone());
        tokens.truncate(if is_decided { tokens.len() } else { 0 });
        Ok(SoughtRows { query: self.rows.select(items), tokens, number: 0 })
    }

    /// The types of the columns that the expressions in [`ReadUpdate::found`] are assigned to, by their places there.
    fn given_kinds(&self) -> Vec<(usize, &TypeSpec)> {
        let keys: usize = self.targets.iter().map(key_length).sum();
        let given = self.assignments.iter().zip(&self.in_turn).filter(|(assignment, in_turn)| {
            matches!(assignment.given, CellExpr::Expression(_)) && !**in_turn
        });
        let kind = |assignment: &ColumnAssignment| {
            let target = self.targets.get(assignment.table)?.as_ref()?;
            Some(&target.table.columns.get(assignment.column)?.kind)
        };
        given
            .enumerate()
            .filter_map(|(nth, (assignment, _))| Some((keys + nth, kind(assignment)?)))
            .collect()
    }

    /// The rows that [`ReadUpdate::found`] finds, if the condition names keys and no expression needs a plan.
    fn find_by_key(
        &self,
        session: &SessionState,
        text: StatementText<'_>,
    ) -> Result<Option<Vec<Vec<Value>>>> {
        let ([named], [Some(target)]) = (&self.named[..], &self.targets[..]) else {
            return Ok(None);
        };
        let (tokens, parameters) = (text.tokens(), text.parameters);
        let mut sums = Vec::new();
        for (assignment, in_turn) in self.assignments.iter().zip(&self.in_turn) {
            let CellExpr::Expression(range) = &assignment.given else { continue };
            if *in_turn {
                continue;
            }
            match ColumnSum::of(&tokens, range.clone(), parameters, &named.alias, target) {
                Some(sum) => sums.push(sum),
                None => return Ok(None),
            }
        }
        let keys = named_keys(session, text.statement, (named, target), &self.rows)?;
        let Some(keys) = keys else { return Ok(None) };
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            let Some(row) = target.row(session, &key)? else { continue };
            let mut values = key.0.to_vec();
            for sum in &sums {
                let Some(value) = sum.value(&row) else { return Ok(None) };
                values.push(value);
            }
            found.push(values);
        }
        Ok(Some(found))
    }

    /// Changes the rows that were found.
    async fn change(
        &self,
        session: &mut SessionState,
        text: StatementText<'_>,
        found: Vec<Vec<Value>>,
    ) -> Result<Outcome> {
        let (targets, assignments, in_turn) = (&self.targets, &self.assignments, &self.in_turn);
        if let ([named], [Some(target)], true) =
            (&self.named[..], &targets[..], in_turn.contains(&true))
        {
            let (source, with) = (text.source(), self.rows.with.as_ref());
            let change =
                SequentialAssignments { source, with, named, target, assignments, in_turn };
            let mut changer = Changer::new(session, target, self.ignore).await?;
            let (matched, changed) = change.change(session, &mut changer, &found).await?;
            return Ok(outcome(session, matched, changed));
        }
        let (mut matched, mut changed) = (0_u64, 0_u64);
        let keys: Vec<usize> = targets.iter().map(key_length).collect();
        let mut at = 0;
        for (index, target) in targets.iter().enumerate() {
            let Some(target) = target else { continue };
            let length = keys.get(index).copied().unwrap_or(0);
            let mut changer = Changer::new(session, target, self.ignore).await?;
            for row in &found {
                let Some(key) = target.key_of(row, at) else { continue };
                if !changer.is_new(&key) {
                    continue;
                }
                let values = row.get(keys.iter().sum::<usize>()..).unwrap_or_default();
                session.check_progress()?;
                let own = (index, &assignments[..], values);
                changed += u64::from(changer.change(session, &key, own).await?);
                matched = matched.saturating_add(1);
            }
            at += length;
        }
        Ok(outcome(session, matched, changed))
    }
}

/// 1221 for clauses that only an UPDATE of one table has: over several they would count rows of the join. 1111 and 3593 for
/// an order that no single row has.
pub(super) fn check_clauses(rows: &ChangedRows) -> Result<()> {
    rows.order.iter().try_for_each(|by| check_of_one_row(&by.expr))?;
    let clause = match rows {
        _ if rows.is_one_table() => return Ok(()),
        ChangedRows { order, .. } if !order.is_empty() => "ORDER BY",
        ChangedRows { limit: Some(_), .. } => "LIMIT",
        _ => return Ok(()),
    };
    Err(Error::new(ErrorCode::WrongUsage, format!("Incorrect usage of UPDATE and {clause}")))
}

fn outcome(session: &SessionState, matched: u64, changed: u64) -> Outcome {
    let affected_rows = if session.counts_found_rows { matched } else { changed };
    let warnings = session.warnings.count();
    let info = format!("Rows matched: {matched}  Changed: {changed}  Warnings: {warnings}");
    let last_insert_id = session.last_insert_id.given().unwrap_or(0);
    Outcome { affected_rows, info, last_insert_id, ..Outcome::default() }
}

/// The most parts that the expressions of a statement may have after columns were replaced in them.
const MOST_PARTS: usize = 100_000;

/// The columns that earlier assignments assigned, in an UPDATE of one table beside derived tables: these have no rows over
/// which a later assignment could be evaluated, so the columns that it names are replaced by what they were assigned.
struct Earlier {
    /// The columns with their new values, and how many parts these have.
    made: Vec<(usize, Expr, usize)>,
    /// How many parts expressions may still get.
    room: usize,
}

impl Earlier {
    /// An expression with the columns that were assigned earlier replaced by their new values; it is the new value of the
    /// column. 1038 if that makes it too large.
    fn substituted(
        &mut self,
        value: &Expr,
        named: &NamedTable,
        target: &TargetTable,
        column: usize,
    ) -> Result<Expr> {
        let mut value = value.clone();
        // In a subquery a name may belong to another table.
        let replaced = change_own_expressions(&mut value, |expr| {
            let Some(column) = mentioned(expr, named, target) else {
                return ControlFlow::Continue(());
            };
            let mut made = self.made.iter().rev();
            let Some((_, value, parts)) = made.find(|(known, ..)| *known == column) else {
                return ControlFlow::Continue(());
            };
            let Some(room) = self.room.checked_sub(*parts) else { return ControlFlow::Break(()) };
            self.room = room;
            *expr = Expr::Nested(Box::new(value.clone()));
            ControlFlow::Continue(())
        });
        if replaced.is_break() {
            return Err(too_costly());
        }
        let parts = checked_parts(&value)?;
        self.made.push((column, value.clone(), parts));
        Ok(value)
    }
}

fn key_length(target: &Option<TargetTable>) -> usize {
    target.as_ref().map_or(0, |target| target.table.schema.primary_key.len())
}

/// The assigned columns with their tables, which are found as the first column of each is.
fn resolved(
    session: &SessionState,
    named: &[NamedTable],
    said: Vec<Said>,
) -> Result<(Vec<Option<TargetTable>>, Vec<ColumnAssignment>)> {
    let mut targets: Vec<Option<TargetTable>> = vec![None; named.len()];
    let mut assignments = Vec::with_capacity(said.len());
    for (path, given, value) in said {
        let (table, column) = assigned_column(session, &path, named)?;
        if let (Some(slot), Some(named)) = (targets.get_mut(table), named.get(table))
            && slot.is_none()
        {
            *slot = Some(TargetTable::find(session, &named.name, Verb::Update)?);
        }
        let kind = targets
            .get(table)
            .and_then(Option::as_ref)
            .and_then(|target| target.table.columns.get(column).map(|spec| &spec.kind));
        if let (CellExpr::List(_), Some(kind)) = (&given, kind) {
            // Reported even if no row is found.
            given.value(kind)?;
        }
        assignments.push(ColumnAssignment { table, column, given, value });
    }
    Ok((targets, assignments))
}
