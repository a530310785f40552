//! Changes the rows of one table, as UPDATE assigns them.

use datafusion::sql::sqlparser::ast::Expr;
use remora_engine::{Row, Value};
use remora_mysql::{ErrorCode, messages};
use rustc_hash::FxHashSet;

use super::{
    computed::Computed,
    literal::CellExpr,
    target::TargetTable,
    values::{RowMaker, column_name, default_over, default_value},
};
use crate::{Result, state::SessionState, transaction::RowKey};

/// `column = value`.
pub(super) struct ColumnAssignment {
    pub(super) table: usize,
    pub(super) column: usize,
    /// The value, or the tokens of an expression.
    pub(super) given: CellExpr,
    /// What is assigned; `None` in a statement that was not parsed.
    pub(super) value: Option<Expr>,
}

/// Changes the rows of one table.
pub(super) struct Changer {
    target: TargetTable,
    maker: RowMaker,
    computed: Computed,
    ignore: bool,
    seen: FxHashSet<RowKey>,
    number: u64,
}

impl Changer {
    pub(super) async fn new(
        session: &mut SessionState,
        target: &TargetTable,
        ignore: bool,
    ) -> Result<Self> {
        let maker = RowMaker::new(session, target, ignore).await?;
        let computed = Computed::of(target);
        let seen = FxHashSet::default();
        Ok(Self { target: target.clone(), maker, computed, ignore, seen, number: 0 })
    }

    /// Whether this key was not changed before.
    pub(super) fn is_new(&mut self, key: &RowKey) -> bool {
        self.seen.insert(key.clone())
    }

    /// Changes a row; returns whether it changed.
    pub(super) async fn change(
        &mut self,
        session: &mut SessionState,
        key: &RowKey,
        (table, assignments, values): (usize, &[ColumnAssignment], &[Value]),
    ) -> Result<bool> {
        let target = self.target.clone();
        let Some(old) = target.row(session, key)? else { return Ok(false) };
        self.number += 1;
        let mut row = Row::clone(&old);
        let mut assigned = Vec::new();
        let mut values = values.iter();
        for assignment in assignments {
            let evaluated = match &assignment.given {
                CellExpr::Expression(_) => values.next().cloned(),
                _ => None,
            };
            if assignment.table != table {
                continue;
            }
            self.set(session, assignment, evaluated, &mut row, self.number).await?;
            assigned.push(assignment.column);
        }
        self.put(session, &old, row, &assigned).await
    }

    /// Assigns a column of a row.
    pub(super) async fn set(
        &mut self,
        session: &mut SessionState,
        assignment: &ColumnAssignment,
        evaluated: Option<Value>,
        row: &mut Row,
        number: u64,
    ) -> Result<()> {
        self.number = number;
        let value = self.assigned(session, assignment, evaluated, row).await?;
        if let Some(slot) = row.get_mut(assignment.column) {
            *slot = value;
        }
        Ok(())
    }

    /// Replaces an old row; returns whether it changed.
    pub(super) async fn put(
        &mut self,
        session: &mut SessionState,
        old: &Row,
        mut row: Row,
        assigned: &[usize],
    ) -> Result<bool> {
        if row == *old {
            return Ok(false);
        }
        let target = self.target.clone();
        self.computed.touch(&target, &self.maker, assigned, &mut row)?;
        let mut rows = vec![row];
        let kept = self.computed.complete(session, &target, &self.maker, &mut rows).await?;
        let Some(row) = rows.pop().filter(|_| kept == [true]) else { return Ok(false) };
        match target.update(session, old, row)? {
            None => Ok(true),
            Some(duplicate) if self.ignore => {
                self.maker.converter.warn(duplicate.error.code, duplicate.error.message);
                Ok(false)
            }
            Some(duplicate) => Err(duplicate.error),
        }
    }

    async fn assigned(
        &mut self,
        session: &mut SessionState,
        assignment: &ColumnAssignment,
        evaluated: Option<Value>,
        row: &[Value],
    ) -> Result<Value> {
        let (target, column) = (&self.target, assignment.column);
        let Some(spec) = target.table.columns.get(column) else { return Ok(Value::Null) };
        let name = column_name(target, column);
        if assignment.given == CellExpr::Default
            && let Some(value) = default_over(session, target, spec, row).await?
        {
            return match value.is_null() && spec.not_null {
                true => self.maker.null_for(target, column, self.maker.converter.is_strict()),
                false => self.maker.fit(target, column, value, 1),
            };
        }
        let value = match (&assignment.given, evaluated) {
            (CellExpr::Default, _) if spec.generated.is_some() => {
                return Ok(row.get(column).cloned().unwrap_or(Value::Null));
            }
            (CellExpr::Default, _) => {
                let default = default_value(session, &self.maker.converter, spec, name).await?;
                match default {
                    None if spec.kind.multi().is_some() => {
                        return Ok(self.maker.converter.implicit(&spec.kind));
                    }
                    None if spec.not_null => {
                        let message = messages::no_default(name);
                        let implicit = self.maker.converter.implicit(&spec.kind);
                        return self.maker.converter.complain(
                            ErrorCode::NoDefault,
                            message,
                            implicit,
                        );
                    }
                    default => return Ok(default.unwrap_or(Value::Null)),
                }
            }
            (_, Some(value)) => value,
            (given, None) => given.value(&spec.kind)?,
        };
        if spec.generated.is_some() {
            return Err(self.maker.generated_error(target, column));
        }
        match self.maker.fit(target, column, value, self.number)? {
            Value::Null if spec.not_null => {
                self.maker.null_for(target, column, self.maker.converter.is_strict())
            }
            value => Ok(value),
        }
    }
}
