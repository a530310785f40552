//! Dynamic filters: conditions that become known only when rows are read. A join knows the keys of its other side: all
//! values if that side is small, else the least and the greatest. A correlated subquery knows its outer row. The engine
//! skips rows that cannot match; the join still checks the others.

use std::sync::Arc;

use datafusion::{
    common::ScalarValue,
    logical_expr::Operator,
    physical_expr::{
        PhysicalExpr, ScalarFunctionExpr,
        expressions::{BinaryExpr, Column, DynamicFilterPhysicalExpr, InListExpr, Literal},
    },
};
use remora_engine::{Filter, Literal as Constant};

use super::filter::ComparableColumn;
use crate::scan::outer;

/// The conditions known so far, as filters of the engine. Conditions that the engine cannot express are left out.
pub(super) fn conditions(
    filters: &[Arc<dyn PhysicalExpr>],
    subjects: &[Option<ComparableColumn>],
) -> Vec<Filter> {
    let mut found = Vec::new();
    for filter in filters {
        collect(filter, subjects, &mut found);
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
    }
}

fn subject<'s>(
    expr: &Arc<dyn PhysicalExpr>,
    subjects: &'s [Option<ComparableColumn>],
) -> Option<&'s ComparableColumn> {
    let column = expr.downcast_ref::<Column>()?;
    subjects.get(column.index())?.as_ref()
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
        found.extend(one_of(subject, list.list().iter().map(constant)));
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
        found.extend(one_of(subject, values.iter().map(Option::as_ref)));
    }
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
