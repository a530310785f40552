//! Assignments of an UPDATE that read columns assigned earlier in the same UPDATE. They see the new values, so they are
//! evaluated one after the other.

use std::{ops::Range, sync::Arc};

use remora_engine::{Row, Value};

use super::{
    evaluate::Query,
    literal::{CellExpr, Parameters},
    target::TargetTable,
    update::{Assignment, Changer, Named, key_of},
};
use crate::{Result, parse::Tokens, state::SessionState, write::rows::computed::values_over};

/// Rows in a batch.
const ROWS_AT_ONCE: usize = 1_000;

/// A mention of a column of the changed table in an expression.
pub(super) struct Mention {
    /// The tokens of the name, with its qualifiers.
    pub tokens: Range<usize>,
    /// The column.
    pub column: usize,
}

/// The mentions of a table's columns in an expression. A name inside a subquery may belong to another table.
pub(super) fn mentions(
    tokens: &Tokens<'_>,
    range: Range<usize>,
    named: &Named,
    target: &TargetTable,
) -> Vec<Mention> {
    let mut ahead = tokens.within(range.clone());
    let mut found = Vec::new();
    while ahead.place() < range.end {
        let place = ahead.place();
        let Some(first) = ahead.accept_name() else {
            ahead.next();
            continue;
        };
        let mut path = vec![first];
        while ahead.place() < range.end && ahead.take(".") {
            path.extend(ahead.accept_name());
        }
        let fits = match path.as_slice() {
            [_] => !ahead.is("("),
            [alias, _] => *alias == named.alias,
            [database, alias, _] => *alias == named.alias && *database == named.name.database,
            _ => false,
        };
        let column = path.last().filter(|_| fits).and_then(|name| target.table.column(name));
        found.extend(column.map(|column| Mention { tokens: place..ahead.place(), column }));
    }
    found
}

/// Which assignments must be evaluated one after the other, after all others.
pub(super) fn evaluated_in_turn(
    tokens: &Tokens<'_>,
    named: &Named,
    target: &TargetTable,
    assignments: &[Assignment],
) -> Vec<bool> {
    let mut before: Vec<usize> = Vec::new();
    let mut in_turn = Vec::with_capacity(assignments.len());
    for assignment in assignments {
        in_turn.push(match &assignment.given {
            CellExpr::Expression(range) if gives_last_insert_id(tokens, range.clone()) => true,
            CellExpr::Expression(range) => {
                let mentions = mentions(tokens, range.clone(), named, target);
                mentions.iter().any(|mention| before.contains(&mention.column))
            }
            _ => false,
        });
        before.push(assignment.column);
    }
    in_turn
}

/// Whether an expression calls LAST_INSERT_ID(value), which must be evaluated only for changed rows
/// and in their order.
fn gives_last_insert_id(tokens: &Tokens<'_>, range: Range<usize>) -> bool {
    let mut ahead = tokens.within(range.clone());
    while ahead.place() < range.end {
        let is_named = ahead.is_word("LAST_INSERT_ID");
        ahead.next();
        if is_named && ahead.take("(") && !ahead.is(")") {
            return true;
        }
    }
    false
}

/// A row, and the values that were found with it.
type Old<'f> = (Arc<Row>, &'f [Value]);

/// The changed rows of one table, and the assignments that are evaluated after the others.
pub(super) struct SequentialAssignments<'u, 't> {
    pub tokens: &'u Tokens<'t>,
    pub parameters: &'u Parameters<'u>,
    pub named: &'u Named,
    pub target: &'u TargetTable,
    pub assignments: &'u [Assignment],
    pub in_turn: &'u [bool],
}

impl SequentialAssignments<'_, '_> {
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
            let Some(key) = key_of(row, 0, length) else { continue };
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
            let evaluated: Vec<Option<Value>> = match &assignment.given {
                CellExpr::Expression(range) if *in_turn => {
                    let mut expression = Query::new("(");
                    expression.push_tokens(self.tokens, range.clone(), self.parameters);
                    expression.push(")");
                    let alias = &self.named.alias;
                    let values =
                        values_over(session, self.target, alias, &rows, &[], &expression).await?;
                    values.into_iter().map(Some).collect()
                }
                CellExpr::Expression(_) => {
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
