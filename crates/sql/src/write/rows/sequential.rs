//! Assignments of an UPDATE that read columns assigned earlier in the same UPDATE. They see the new values, so they are
//! evaluated one after the other.

use std::{ops::ControlFlow, sync::Arc};

use datafusion::sql::sqlparser::ast::{Expr, FunctionArguments, With};
use remora_engine::{Row, Value};
use rustc_hash::FxHashSet;

use super::{
    changer::{Changer, ColumnAssignment},
    literal::CellExpr,
    named::{NamedTable, fits},
    over_rows::{RowExpression, values_over},
    target::TargetTable,
};
use crate::{
    Result,
    parse::{Source, visit_expressions},
    state::SessionState,
};

/// Rows in a batch.
const ROWS_AT_ONCE: usize = 1_000;

/// The column of a table that an expression is. Inside a subquery it may belong to another table.
pub(super) fn mentioned(expr: &Expr, named: &NamedTable, target: &TargetTable) -> Option<usize> {
    match expr {
        Expr::Identifier(name) => target.table.column(&name.value),
        Expr::CompoundIdentifier(path) => {
            let path: Vec<&str> = path.iter().map(|part| part.value.as_str()).collect();
            let (name, qualifiers) = path.split_last()?;
            fits(qualifiers, named).then(|| target.table.column(name))?
        }
        _ => None,
    }
}

/// Which assignments must be evaluated one after the other, after all others: those that mention a column assigned
/// before, and those with LAST_INSERT_ID(value), which is evaluated only for changed rows and in their order.
pub(super) fn evaluated_in_turn(
    named: &NamedTable,
    target: &TargetTable,
    assignments: &[ColumnAssignment],
) -> Vec<bool> {
    let mut before = FxHashSet::default();
    let mut in_turn = Vec::with_capacity(assignments.len());
    for assignment in assignments {
        let is_in_turn = |expr: &Expr| {
            let mention = mentioned(expr, named, target);
            mention.is_some_and(|column| before.contains(&column)) || gives_last_insert_id(expr)
        };
        in_turn.push(match (&assignment.given, &assignment.value) {
            (CellExpr::Expression(_), Some(value)) => {
                visit_expressions(value, |expr| match is_in_turn(expr) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                })
                .is_break()
            }
            _ => false,
        });
        before.insert(assignment.column);
    }
    in_turn
}

/// Whether this is a call of LAST_INSERT_ID with a value.
fn gives_last_insert_id(expr: &Expr) -> bool {
    let Expr::Function(function) = expr else { return false };
    let has_value =
        matches!(&function.args, FunctionArguments::List(list) if !list.args.is_empty());
    has_value && function.name.to_string().eq_ignore_ascii_case("LAST_INSERT_ID")
}

/// A row, and the values that were found with it.
type Old<'f> = (Arc<Row>, &'f [Value]);

/// The changed rows of one table, and the assignments that are evaluated after the others.
pub(super) struct SequentialAssignments<'u> {
    pub source: &'u Source,
    pub with: Option<&'u With>,
    pub named: &'u NamedTable,
    pub target: &'u TargetTable,
    pub assignments: &'u [ColumnAssignment],
    pub in_turn: &'u [bool],
}

impl SequentialAssignments<'_> {
    /// Changes the rows that were found. Each is given by its key and the values of the other assignments. Returns how
    /// many there are, and how many changed.
    pub(super) async fn change(
        &self,
        session: &mut SessionState,
        changer: &mut Changer,
        found: &[Vec<Value>],
    ) -> Result<(u64, u64)> {
        let (mut matched, mut changed) = (0, 0);
        for some in found.chunks(ROWS_AT_ONCE) {
            let old = self.old_rows(session, changer, some)?;
            let new = self.assigned(session, changer, matched, &old).await?;
            let columns: Vec<usize> = self.assignments.iter().map(|each| each.column).collect();
            matched += old.len() as u64;
            for ((old, _), new) in old.into_iter().zip(new) {
                session.check_progress()?;
                changed += u64::from(changer.put(session, &old, new, &columns).await?);
            }
        }
        Ok((matched, changed))
    }

    /// The current rows, and the values that were found with each.
    fn old_rows<'f>(
        &self,
        session: &SessionState,
        changer: &mut Changer,
        found: &'f [Vec<Value>],
    ) -> Result<Vec<Old<'f>>> {
        let length = self.target.table.schema.primary_key.len();
        let mut old = Vec::new();
        for row in found {
            let Some(key) = self.target.key_of(row, 0) else { continue };
            if !changer.is_new(&key) {
                continue;
            }
            let Some(known) = self.target.row(session, &key)? else { continue };
            old.push((known, row.get(length..).unwrap_or_default()));
        }
        Ok(old)
    }

    async fn assigned(
        &self,
        session: &mut SessionState,
        changer: &mut Changer,
        before: u64,
        old: &[Old<'_>],
    ) -> Result<Vec<Row>> {
        let mut rows: Vec<Row> = old.iter().map(|(row, _)| Row::clone(row)).collect();
        let mut place = 0;
        for (assignment, in_turn) in self.assignments.iter().zip(self.in_turn) {
            let evaluated: Vec<Option<Value>> = match (&assignment.given, &assignment.value) {
                (CellExpr::Expression(_), Some(value)) if *in_turn => {
                    let (alias, with) = (&self.named.alias, self.with);
                    let expression =
                        RowExpression { with, ..RowExpression::of(value, self.source) };
                    let values =
                        values_over(session, self.target, alias, &rows, &[], expression).await?;
                    values.into_iter().map(Some).collect()
                }
                (CellExpr::Expression(_), _) => {
                    place += 1;
                    old.iter().map(|(_, values)| values.get(place - 1).cloned()).collect()
                }
                _ => vec![None; rows.len()],
            };
            for ((row, value), number) in rows.iter_mut().zip(evaluated).zip(before + 1..) {
                changer.set(session, assignment, value, row, number).await?;
            }
        }
        Ok(rows)
    }
}
