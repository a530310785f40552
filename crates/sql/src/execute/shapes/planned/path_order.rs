//! ORDER BY the JSON value at a path of documents, along the path's index.
//!
//! `ORDER BY doc->'$.year' DESC` and `ORDER BY doc->>'$.name' DESC`, then maybe by the primary key. Rows without a value
//! come last there, so the first rows are those of the index. In ascending order they come first, and the index does
//! not know all of them: there a condition must leave them out, as `doc->'$.year' > 1990` does.

use std::sync::Arc;

use datafusion::{
    arrow::{array::RecordBatch, compute::SortOptions},
    common::{
        ScalarValue,
        tree_node::{Transformed, TreeNode},
    },
    error::Result as PlanResult,
    logical_expr::Operator,
    physical_expr::{
        PhysicalSortExpr, ScalarFunctionExpr,
        expressions::{BinaryExpr, Column, IsNotNullExpr, Literal},
    },
};
use jiff::tz::TimeZone;
use remora_engine::{ColumnType, Filter};

use super::{
    super::table::ShapeTable,
    expressions::BatchExpression,
    steps::BatchStep,
    tree::{PlanNode, RowSource, Tree},
};
use crate::{
    catalog::Reader,
    meaning::json::Path,
    scan::{CachedScan, ScalarSort},
};

/// The collation of the results of `->>`.
const TEXTS_OF_DOCUMENTS: i64 = 46;
/// Functions that are NULL if their first or second argument is.
const STRICT: [&str; 6] =
    ["json_order", "to_double", "cast_signed", "collation_key", "json_extract", "->>"];

/// The order of a plan's result by the values at a path.
pub(super) struct PathOrder {
    scan: usize,
    sort: ScalarSort,
    /// Whether the conditions leave only rows with a value.
    has_each: bool,
}

impl PathOrder {
    /// The order of a plan over one scan; `None` if it does more than filter, project and sort once, or sorts by
    /// something else. `table` gives the table of a scan.
    pub fn of<'t>(
        tree: &Tree,
        part: &PlanNode,
        table: impl Fn(usize) -> Option<&'t ShapeTable>,
    ) -> Option<Self> {
        let RowSource::Scan(scan) = part.of else { return None };
        let (mut columns, mut conditions, mut sorted) = (None, Vec::new(), None);
        for step in &part.steps {
            match step {
                BatchStep::Filter(condition) => {
                    conditions.push(of_scan(condition, columns.as_deref())?)
                }
                BatchStep::Project(expressions, _) => {
                    let made = expressions.iter().map(|it| of_scan(it, columns.as_deref()));
                    columns = Some(made.collect::<Option<Vec<_>>>()?);
                }
                BatchStep::Sort(keys) if sorted.is_none() => {
                    let key = |(expression, key): &(BatchExpression, PhysicalSortExpr)| {
                        Some((of_scan(expression, columns.as_deref())?, key.options))
                    };
                    sorted = Some(keys.iter().map(key).collect::<Option<Vec<_>>>()?);
                }
                _ => return None,
            }
        }
        let sorted = sorted?;
        let ((by, options), rest) = sorted.split_first()?;
        let (cached, table) = (tree.scans.get(scan)?, table(scan)?);
        let is_by_key = match rest {
            [] => true,
            [(key, SortOptions { descending: false, .. })] => is_key(key, cached, table),
            _ => false,
        };
        if !is_by_key || options.nulls_first == options.descending {
            return None;
        }
        let (operand, only_texts) = operand(by)?;
        let (column, names) = path_of(&operand, cached, table)?;
        let has_each = conditions.iter().any(|condition| leaves_out_nulls(condition, &operand));
        let sort = ScalarSort { column, names, only_texts, descending: options.descending };
        (has_each || options.descending).then_some(Self { scan, sort, has_each })
    }

    /// The scan whose rows are in this order.
    pub fn scan(&self) -> usize {
        self.scan
    }

    /// The first rows in this order that satisfy a filter, and the position of the path in the table's definition.
    /// `None` if the index does not have the order, or not so many rows.
    pub fn first(
        &self,
        scan: &CachedScan,
        reader: &Reader,
        filter: Option<Filter>,
        limit: usize,
        zone: &TimeZone,
    ) -> PlanResult<Option<(RecordBatch, usize)>> {
        let found = scan.first_by_scalar(reader, filter, (&self.sort, limit), zone)?;
        // Rows without a value would follow.
        Ok(found.filter(|(batch, _)| self.has_each || batch.num_rows() == limit))
    }
}

/// An expression over a projection's columns as one over the scan's.
fn of_scan(
    expression: &BatchExpression,
    columns: Option<&[BatchExpression]>,
) -> Option<BatchExpression> {
    let Some(columns) = columns else { return Some(Arc::clone(expression)) };
    let made = Arc::clone(expression).transform_up(|each| {
        let column = each.downcast_ref::<Column>().map(Column::index);
        Ok(match column.and_then(|place| columns.get(place)) {
            Some(below) => Transformed::yes(Arc::clone(below)),
            None => Transformed::no(each),
        })
    });
    made.ok().map(|made| made.data)
}

/// Whether an expression is the whole primary key, whose order is that of rows.
fn is_key(expression: &BatchExpression, scan: &CachedScan, table: &ShapeTable) -> bool {
    let position = expression.downcast_ref::<Column>().and_then(|it| scan.position(it.index()));
    let [key] = table.schema().primary_key[..] else { return false };
    let is_number = |kind| matches!(kind, ColumnType::Int(_) | ColumnType::Uint(_));
    position == Some(key)
        && table.schema().columns.get(key).is_some_and(|column| is_number(column.kind))
}

/// What is sorted by: the JSON value, or (true) the text of it.
fn operand(by: &BatchExpression) -> Option<(BatchExpression, bool)> {
    let call = by.downcast_ref::<ScalarFunctionExpr>()?;
    match (call.name(), call.args()) {
        ("sort_key", [of]) => Some((Arc::clone(of), false)),
        ("collation_key", [of, number]) => {
            let number = number.downcast_ref::<Literal>()?.value();
            let is_of_documents = *number == ScalarValue::Int64(Some(TEXTS_OF_DOCUMENTS));
            is_of_documents.then(|| (Arc::clone(of), true))
        }
        _ => None,
    }
}

/// The column and the names of the path that an operand reads.
fn path_of(
    operand: &BatchExpression,
    scan: &CachedScan,
    table: &ShapeTable,
) -> Option<(String, Vec<String>)> {
    let call = operand.downcast_ref::<ScalarFunctionExpr>()?;
    let (document, path) = match (call.name(), call.args()) {
        ("json_extract" | "->>", [document, path]) => (document, path),
        ("json_unquote", [inner]) => {
            let inner = inner.downcast_ref::<ScalarFunctionExpr>()?;
            let ("json_extract", [document, path]) = (inner.name(), inner.args()) else {
                return None;
            };
            (document, path)
        }
        _ => return None,
    };
    let position = scan.position(document.downcast_ref::<Column>()?.index())?;
    let column = table.schema().columns.get(position)?;
    let text = path.downcast_ref::<Literal>()?.value().try_as_str()??;
    let names = Path::parse(text).ok()?.names()?;
    (column.kind == ColumnType::Json && !names.is_empty()).then(|| (column.name.clone(), names))
}

/// Whether a condition is not true where the operand is NULL.
fn leaves_out_nulls(condition: &BatchExpression, operand: &BatchExpression) -> bool {
    if let Some(present) = condition.downcast_ref::<IsNotNullExpr>() {
        return is_null_of(present.arg(), operand);
    }
    let Some(binary) = condition.downcast_ref::<BinaryExpr>() else { return false };
    let (left, right) = (binary.left(), binary.right());
    match binary.op() {
        Operator::And => leaves_out_nulls(left, operand) || leaves_out_nulls(right, operand),
        Operator::Eq
        | Operator::NotEq
        | Operator::Lt
        | Operator::LtEq
        | Operator::Gt
        | Operator::GtEq => is_null_of(left, operand) || is_null_of(right, operand),
        _ => false,
    }
}

/// Whether an expression is NULL where the operand is.
fn is_null_of(expression: &BatchExpression, operand: &BatchExpression) -> bool {
    if expression == operand {
        return true;
    }
    let Some(call) = expression.downcast_ref::<ScalarFunctionExpr>() else { return false };
    let is_same_path = || {
        let mine = operand.downcast_ref::<ScalarFunctionExpr>();
        let is_extract = |name: &str| matches!(name, "json_extract" | "->>");
        is_extract(call.name())
            && mine.is_some_and(|mine| is_extract(mine.name()) && mine.args() == call.args())
    };
    is_same_path()
        || STRICT.contains(&call.name())
            && call.args().iter().take(2).any(|argument| is_null_of(argument, operand))
}
