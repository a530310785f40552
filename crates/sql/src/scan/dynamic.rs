//! Dynamic filters: conditions that become known only when rows are read. A join knows the keys of its other side: all
//! values if that side is small, else the least and the greatest. A correlated subquery knows its outer row. The engine
//! skips rows that cannot match; the join still checks the others.

use std::sync::Arc;

use datafusion::{
    common::ScalarValue,
    logical_expr::Operator,
    physical_expr::{
        PhysicalExpr, ScalarFunctionExpr,
        expressions::{
            BinaryExpr, CaseExpr, Column, DynamicFilterPhysicalExpr, InListExpr, Literal,
        },
    },
};
use remora_engine::{Filter, Literal as Constant};
use rustc_hash::FxHashSet;

use super::filter::{ComparableColumn, Keyed};
use crate::scan::outer;

/// With more values than this, equal ones of a list are left out: joins list a key for each row of the other side.
const MOST_REPEATED: usize = 1_000;

/// The conditions known so far, as filters of the engine. Conditions that the engine cannot express are left out, and the
/// longest lists, where all have more values than `most_values`.
pub(super) fn conditions(
    filters: &[Arc<dyn PhysicalExpr>],
    subjects: &[Option<ComparableColumn>],
    most_values: usize,
) -> Vec<Filter> {
    let mut found = Vec::new();
    for filter in filters {
        collect(filter, subjects, &mut found);
    }
    found.sort_by_key(Filter::listed_values);
    while found.iter().map(Filter::listed_values).sum::<usize>() > most_values {
        found.pop();
    }
    found
}

/// The columns that must equal a value of an outer row, by position, and the name of the outer column.
pub(super) fn outer_comparisons(filters: &[Arc<dyn PhysicalExpr>]) -> Vec<(usize, String)> {
    let equal = |filter: &Arc<dyn PhysicalExpr>| {
        let binary = filter.downcast_ref::<BinaryExpr>()?;
        let column = binary.left().downcast_ref::<Column>()?;
        let of = outer::column_of(binary.right())?;
        (*binary.op() == Operator::Eq).then(|| (column.index(), of))
    };
    filters.iter().filter_map(equal).collect()
}

fn collect(
    expr: &Arc<dyn PhysicalExpr>,
    subjects: &[Option<ComparableColumn>],
    found: &mut Vec<Filter>,
) {
    if let Some(dynamic) = expr.downcast_ref::<DynamicFilterPhysicalExpr>() {
        if let Ok(current) = dynamic.current() {
            collect(&current, subjects, found);
        }
    } else if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        if *binary.op() == Operator::And {
            collect(binary.left(), subjects, found);
            collect(binary.right(), subjects, found);
        } else {
            found.extend(compared(binary, subjects));
        }
    } else if let Some(list) = expr.downcast_ref::<InListExpr>() {
        listed(list, subjects, found);
    } else if let Some(case) = expr.downcast_ref::<CaseExpr>() {
        partitioned(case, subjects, found);
    }
}

/// The keys of a join of several partitions. Each partition has a branch for its keys; rows of no partition match
/// nothing. A key is in one of the branches.
/// ```text
/// CASE hash(key) % 2 WHEN 0 THEN key IN (…) WHEN 1 THEN key IN (…) ELSE false END
/// ```
fn partitioned(case: &CaseExpr, subjects: &[Option<ComparableColumn>], found: &mut Vec<Filter>) {
    let is_false = |rest: &Arc<dyn PhysicalExpr>| {
        matches!(constant(rest), Some(ScalarValue::Boolean(Some(false))))
    };
    if !case.else_expr().is_some_and(is_false) {
        return;
    }
    let branches = case.when_then_expr().iter().filter(|(_, then)| !is_false(then));
    let branches = branches.map(|(_, then)| {
        let mut of_branch = Vec::new();
        collect(then, subjects, &mut of_branch);
        of_branch
    });
    let branches: Vec<Vec<Filter>> = branches.collect();
    let Some((first, others)) = branches.split_first() else { return };
    // A condition on a column is necessary if every branch has one on the same column.
    for condition in first {
        let mut all = condition.clone();
        if others.iter().all(|branch| branch.iter().any(|other| unite(&mut all, other))) {
            found.push(all);
        }
    }
}

/// Adds the values of another list for the same column to a list; false if these are not such lists.
fn unite(all: &mut Filter, other: &Filter) -> bool {
    match (all, other) {
        (Filter::In(column, values), Filter::In(of, more)) if column == of => {
            values.extend(more.iter().cloned());
            true
        }
        (Filter::KeyIn(column, order, keys), Filter::KeyIn(of, by, more))
            if column == of && order == by =>
        {
            keys.extend(more.iter().cloned());
            true
        }
        _ => false,
    }
}

/// What a dynamic filter compares.
enum Subject<'s> {
    Column(&'s ComparableColumn),
    /// The collation keys of a text column that an index begins with.
    Keys(Keyed),
}

impl Subject<'_> {
    fn compare(self, operator: Operator, value: &ScalarValue) -> Option<Filter> {
        match self {
            Self::Column(column) => column.compare(operator, value),
            // The least and the greatest key exclude few rows and cost a key of each.
            Self::Keys(keys) => {
                (operator == Operator::Eq).then(|| keys.compare(operator, value))?
            }
        }
    }

    fn one_of<'v>(self, values: impl Iterator<Item = Option<&'v ScalarValue>>) -> Option<Filter> {
        match self {
            Self::Column(column) => one_of(column, values),
            Self::Keys(keys) => keys.one_of_values(values),
        }
    }
}

fn subject<'s>(
    expr: &Arc<dyn PhysicalExpr>,
    subjects: &'s [Option<ComparableColumn>],
) -> Option<Subject<'s>> {
    let of_column = |expr: &Arc<dyn PhysicalExpr>| {
        subjects.get(expr.downcast_ref::<Column>()?.index())?.as_ref()
    };
    if let Some(column) = of_column(expr) {
        return Some(Subject::Column(column));
    }
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let ("collation_key", [of, number]) = (call.name(), call.args()) else { return None };
    let Some(ScalarValue::Int64(Some(number))) = constant(number) else { return None };
    of_column(of)?.keyed(u32::try_from(*number).ok()?).map(Subject::Keys)
}

fn constant(expr: &Arc<dyn PhysicalExpr>) -> Option<&ScalarValue> {
    expr.downcast_ref::<Literal>().map(Literal::value)
}

fn compared(binary: &BinaryExpr, subjects: &[Option<ComparableColumn>]) -> Option<Filter> {
    let subject = subject(binary.left(), subjects)?;
    match constant(binary.right()) {
        Some(value) => subject.compare(*binary.op(), value),
        None => subject.compare(*binary.op(), &outer::value_now(binary.right())?),
    }
}

/// A key in a list of values; a key of several columns gives one list for each column.
fn listed(list: &InListExpr, subjects: &[Option<ComparableColumn>], found: &mut Vec<Filter>) {
    if list.negated() {
        return;
    }
    if let Some(subject) = subject(list.expr(), subjects) {
        found.extend(subject.one_of(distinct(list.list().iter().map(constant))));
        return;
    }
    let Some(parts) = list.expr().downcast_ref::<ScalarFunctionExpr>() else { return };
    if parts.fun().name() != "struct" {
        return;
    }
    for (index, part) in parts.args().iter().enumerate() {
        let Some(subject) = subject(part, subjects) else { continue };
        let field = |literal: &Arc<dyn PhysicalExpr>| match constant(literal)? {
            ScalarValue::Struct(row) => {
                ScalarValue::try_from_array(row.columns().get(index)?, 0).ok()
            }
            _ => None,
        };
        let values: Vec<Option<ScalarValue>> = list.list().iter().map(field).collect();
        found.extend(subject.one_of(distinct(values.iter().map(Option::as_ref))));
    }
}

/// The different values of a list.
fn distinct<'v>(
    values: impl ExactSizeIterator<Item = Option<&'v ScalarValue>>,
) -> impl Iterator<Item = Option<&'v ScalarValue>> {
    let is_long = values.len() > MOST_REPEATED;
    let mut seen = FxHashSet::default();
    values.filter(move |value| !is_long || seen.insert(*value))
}

fn one_of<'v>(
    subject: &ComparableColumn,
    values: impl Iterator<Item = Option<&'v ScalarValue>>,
) -> Option<Filter> {
    let mut literals: Vec<Constant> = Vec::new();
    for value in values {
        let value = value?;
        // NULL matches nothing in a join.
        if !value.is_null() {
            literals.push(subject.literal(value)?);
        }
    }
    Some(Filter::In(subject.name.clone(), literals))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_of_long_lists_are_left_out() {
        let numbers: Vec<ScalarValue> = (0..3_000).map(|at| ScalarValue::from(at % 7)).collect();
        assert_eq!(distinct(numbers.iter().map(Some)).count(), 7);
        // What is no constant stays: such a list is no condition.
        let other = [Some(&numbers[0]), None].into_iter().cycle().take(3_000).collect::<Vec<_>>();
        assert_eq!(distinct(other.into_iter()).collect::<Vec<_>>(), [Some(&numbers[0]), None]);
    }
}
