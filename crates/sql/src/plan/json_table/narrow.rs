//! Leaves out documents without a value that a condition on a column of JSON_TABLE asks for, if a path's index may know
//! them.
//!
//! ```text
//! Filter: j.tag = 'x'                        Filter: j.tag = 'x'
//!   Project: columns of t, j.tag      ──→      Project: columns of t, j.tag
//!     JsonRows: rows of t.doc                    JsonRows: rows of t.doc
//!       Scan: t                                    Filter: #rows_may_have(t.doc, '$.tags', …)
//!                                                    Scan: t
//! ```
//! The condition stays. A row of NULLs of a LEFT JOIN never satisfies it, so such a row need not be made.

use datafusion::{
    common::{
        Column, DFSchema, JoinType, ScalarValue, config::ConfigOptions, tree_node::Transformed,
    },
    error::Result,
    logical_expr::{
        BinaryExpr, Expr, Extension, Filter, LogicalPlan, Operator, Projection, TableScan,
        expr::ScalarFunction, lit, utils::split_conjunction,
    },
    optimizer::AnalyzerRule,
};
use std::sync::Arc;

use super::JsonRows;
use crate::{
    meaning::{json_table::ValueKind, rows_may_have},
    nodes::{TreeNode, WholePlan},
    scan::indexes_path,
    search,
};

/// The most values of a list.
const MOST_LISTED: usize = 100;
/// The rule.
#[derive(Debug)]
pub(in crate::plan) struct NarrowedDocuments;

impl AnalyzerRule for NarrowedDocuments {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let done = plan.transform_whole(|node| {
            let LogicalPlan::Filter(filter) = node else { return Ok(Transformed::no(node)) };
            let conditions = split_conjunction(&filter.predicate);
            match narrowed(&filter.input, &conditions)? {
                Some(input) => {
                    let filter = Filter::try_new(filter.predicate.clone(), Arc::new(input))?;
                    Ok(Transformed::yes(LogicalPlan::Filter(filter)))
                }
                None => Ok(Transformed::no(LogicalPlan::Filter(filter))),
            }
        })?;
        Ok(done.data)
    }

    fn name(&self) -> &str {
        "narrowed_documents"
    }
}

/// The plan below a filter with these conditions, with fewer documents; `None` if it is not changed.
fn narrowed(plan: &LogicalPlan, conditions: &[&Expr]) -> Result<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::Filter(filter) => {
            let Some(input) = narrowed(&filter.input, conditions)? else { return Ok(None) };
            let filter = Filter::try_new(filter.predicate.clone(), Arc::new(input))?;
            Ok(Some(LogicalPlan::Filter(filter)))
        }
        LogicalPlan::Join(join) => {
            let (mut left, mut right) = (None, None);
            if matches!(join.join_type, JoinType::Inner | JoinType::Left) {
                left = narrowed(&join.left, conditions)?;
            }
            if matches!(join.join_type, JoinType::Inner | JoinType::Right) {
                right = narrowed(&join.right, conditions)?;
            }
            if left.is_none() && right.is_none() {
                return Ok(None);
            }
            let mut join = join.clone();
            if let Some(left) = left {
                join.left = Arc::new(left);
            }
            if let Some(right) = right {
                join.right = Arc::new(right);
            }
            Ok(Some(LogicalPlan::Join(join)))
        }
        LogicalPlan::Projection(projection) => of_projection(projection, conditions),
        _ => Ok(None),
    }
}

/// The same for the projection of a JSON_TABLE, which passes the columns of its input on.
fn of_projection(projection: &Projection, conditions: &[&Expr]) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::Extension(extension) = projection.input.as_ref() else { return Ok(None) };
    let Some(rows) = extension.node.as_any().downcast_ref::<JsonRows>() else { return Ok(None) };
    let hints: Vec<Expr> =
        conditions.iter().filter_map(|condition| hint(condition, projection, rows)).collect();
    let below = narrowed(&rows.input, conditions)?;
    if hints.is_empty() && below.is_none() {
        return Ok(None);
    }
    let mut input = below.unwrap_or_else(|| rows.input.clone());
    for hint in hints {
        input = LogicalPlan::Filter(Filter::try_new(hint, Arc::new(input))?);
    }
    let rows = Arc::new(rows.over_fewer(input)?);
    let input = Arc::new(LogicalPlan::Extension(Extension { node: rows }));
    let made = Projection::try_new_with_schema(
        projection.expr.clone(),
        input,
        Arc::clone(&projection.schema),
    )?;
    Ok(Some(LogicalPlan::Projection(made)))
}

/// What a condition asks of a column.
struct Asked<'e> {
    column: &'e Column,
    /// How the column's values are compared.
    as_texts: bool,
    /// Whether the column's value itself is compared, not a conversion of it.
    is_plain: bool,
    /// The test, for the engine's scan.
    test: Vec<Expr>,
}

/// The necessary condition on the documents; `None` if no index helps.
fn hint(condition: &Expr, projection: &Projection, rows: &JsonRows) -> Option<Expr> {
    let asked = asked(condition)?;
    let place = projection.schema.maybe_index_of_column(asked.column)?;
    let made = of_rows(projection.expr.get(place)?, rows)?;
    let (names, kind) = rows.table().values_of(made)?;
    let fits = match kind {
        ValueKind::Number => !asked.as_texts,
        ValueKind::Text => asked.as_texts || !asked.is_plain,
    };
    let (document, before) = document(&rows.document)?;
    let names: Vec<String> = before.into_iter().chain(names).collect();
    if !fits || !is_indexed(&rows.input, document, &names) {
        return None;
    }
    let names = names.into_iter().map(lit);
    let mut args = vec![Expr::Column(document.clone()), lit(names.len() as i64)];
    args.extend(names);
    args.extend(asked.test);
    rows_may_have(args)
}

/// The place among the columns of JSON_TABLE of the only column that an expression reads.
fn of_rows(expression: &Expr, rows: &JsonRows) -> Option<usize> {
    let columns = expression.column_refs();
    let mut columns = columns.into_iter();
    let (Some(column), None) = (columns.next(), columns.next()) else { return None };
    let place = rows.schema.maybe_index_of_column(column)?;
    place.checked_sub(rows.input.schema().fields().len())
}

fn asked(condition: &Expr) -> Option<Asked<'_>> {
    match condition {
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "truth" => {
            asked(args.first()?)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (&**left, &**right) {
            (side, literal @ Expr::Literal(..)) => compared(side, *op, &[literal]),
            (literal @ Expr::Literal(..), side) => compared(side, op.swap()?, &[literal]),
            _ => None,
        },
        Expr::InList(list) if !list.negated && list.list.len() <= MOST_LISTED => {
            let literals: Vec<&Expr> = list.list.iter().collect();
            compared(&list.expr, Operator::Eq, &literals)
        }
        _ => None,
    }
}

fn compared<'e>(side: &'e Expr, op: Operator, literals: &[&Expr]) -> Option<Asked<'e>> {
    let present =
        || literals.iter().filter(|it| !matches!(it, Expr::Literal(value, _) if value.is_null()));
    if let Expr::ScalarFunction(call) = side
        && let ("collation_key", [Expr::Column(column), number]) = (call.name(), &call.args[..])
    {
        let is_key = |it: &&&Expr| matches!(it, Expr::Literal(ScalarValue::BinaryView(Some(_)), _));
        if op != Operator::Eq || !present().all(|it| is_key(&it)) {
            return None;
        }
        let test = [lit("text"), number.clone()].into_iter();
        let test = test.chain(present().map(|literal| (*literal).clone())).collect();
        return Some(Asked { column, as_texts: true, is_plain: true, test });
    }
    let (column, is_plain) = match side {
        Expr::Column(column) => (column, true),
        Expr::ScalarFunction(call) => match (call.name(), &call.args[..]) {
            ("to_double", [Expr::Column(column)]) => (column, false),
            _ => return None,
        },
        _ => return None,
    };
    let op = match op {
        Operator::Eq => "=",
        Operator::Lt | Operator::LtEq => "<",
        Operator::Gt | Operator::GtEq => ">",
        _ => return None,
    };
    let numbers: Vec<Expr> = present().map(|it| number(it).map(lit)).collect::<Option<_>>()?;
    let test = [lit(op)].into_iter().chain(numbers).collect();
    Some(Asked { column, as_texts: false, is_plain, test })
}

fn number(literal: &Expr) -> Option<f64> {
    let Expr::Literal(value, _) = literal else { return None };
    match value {
        ScalarValue::Int64(Some(number)) => Some(*number as f64),
        ScalarValue::UInt64(Some(number)) => Some(*number as f64),
        ScalarValue::Float64(Some(number)) => Some(*number),
        ScalarValue::Decimal128(Some(unscaled), _, scale) => {
            Some(*unscaled as f64 / 10_f64.powi(i32::from(*scale)))
        }
        _ => None,
    }
}

/// The column of documents, and the names of the path that leads to the part of them that JSON_TABLE reads.
fn document(expression: &Expr) -> Option<(&Column, Vec<String>)> {
    match expression {
        Expr::Column(column) => Some((column, Vec::new())),
        Expr::ScalarFunction(call) if call.name() == "json_extract" => match &call.args[..] {
            [Expr::Column(column), path] => {
                let names =
                    crate::meaning::json::Path::parse(&search::text(path)?).ok()?.names()?;
                Some((column, names))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether the column belongs to a table that has an index of the path.
fn is_indexed(input: &LogicalPlan, column: &Column, names: &[String]) -> bool {
    let mut is_indexed = false;
    let has = |scan: &TableScan| {
        let schema: &DFSchema = &scan.projected_schema;
        schema.has_column(column) && indexes_path(&scan.source, &column.name, names)
    };
    let visited = input.apply(|node| {
        is_indexed |= matches!(node, LogicalPlan::TableScan(scan) if has(scan));
        Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
    });
    visited.is_ok() && is_indexed
}
