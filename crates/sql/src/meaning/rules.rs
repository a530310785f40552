//! Rules after planning: calls become equivalent plain expressions, and GROUP BY, ORDER BY, joins
//! and UNION of texts use their collation.

mod grouping;
mod uniting;

use datafusion::{
    arrow::datatypes::DataType,
    common::{DFSchema, ScalarValue, config::ConfigOptions, tree_node::Transformed},
    error::Result,
    logical_expr::{
        Expr, ExprSchemable, LogicalPlan, Projection, Subquery, WindowFrameBound, WindowFrameUnits,
        expr::{InSubquery, ScalarFunction, WindowFunction},
        expr_rewriter::NamePreserver,
        utils::merge_schema,
    },
    optimizer::AnalyzerRule,
};
use std::sync::Arc;

use super::{
    call::TypeContext,
    collation,
    formatted::types_taken,
    frames,
    function::{Dialect, Function, argument_types, external},
    library::{self, check_sought, compared_sides, text_key},
    types::ExprType,
};
use remora_mysql::ErrorCode;

use crate::{
    Error, SqlType,
    nodes::{TreeNode, WholePlan},
};

/// The rule.
#[derive(Debug)]
pub(crate) struct Meaning;

impl AnalyzerRule for Meaning {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_whole(mean).map(|done| done.data)
    }

    fn name(&self) -> &str {
        "meaning"
    }
}

fn mean(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let plan = match plan {
        LogicalPlan::Aggregate(aggregate) if grouping::is_rolled_up(&aggregate) => {
            return grouping::rolled_up(aggregate).map(Transformed::yes);
        }
        plan => plan,
    };
    let expanded = expand_plan(plan)?;
    expanded.transform_data(|plan| match plan {
        LogicalPlan::Sort(mut sort) => {
            let schema = Arc::clone(sort.input.schema());
            for each in &mut sort.expr {
                check_ordered(&each.expr, &schema)?;
                each.expr = sorting(each.expr.clone(), &schema)?;
            }
            Ok(Transformed::yes(LogicalPlan::Sort(sort)))
        }
        LogicalPlan::Join(mut join) => {
            for (left, right) in &mut join.on {
                let left_type = type_of(left, join.left.schema())?;
                let right_type = type_of(right, join.right.schema())?;
                let dialect = Dialect::default();
                (*left, *right) = compared_sides(left, &left_type, right, &right_type, dialect)
                    .map_err(external)?;
            }
            match uniting::is_counted(&join) {
                true => uniting::counted(join).map(Transformed::yes),
                false => Ok(Transformed::yes(LogicalPlan::Join(join))),
            }
        }
        LogicalPlan::Aggregate(aggregate) => {
            let schema = aggregate.input.schema();
            for group in &aggregate.group_expr {
                if !matches!(group, Expr::GroupingSet(_)) && type_of(group, schema)?.multi.is_some()
                {
                    let what = "GROUP BY of a multi-value attribute of a view or a query in FROM";
                    return Err(external(Error::unsupported(what)));
                }
            }
            grouping::aggregate(aggregate).map(Transformed::yes)
        }
        LogicalPlan::Distinct(distinct) => grouping::distinct(distinct).map(Transformed::yes),
        LogicalPlan::Window(window) => grouping::window(window).map(Transformed::yes),
        LogicalPlan::RecursiveQuery(query) => uniting::recursive(query).map(Transformed::yes),
        LogicalPlan::Union(union) => uniting::union(union).map(Transformed::yes),
        plan => Ok(Transformed::no(plan)),
    })
}

fn expand_plan(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if matches!(plan, LogicalPlan::Values(_)) {
        // The schema of VALUES was fixed with its rows.
        return Ok(Transformed::no(plan));
    }
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = &plan {
        let whole =
            DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?;
        schema.merge(&whole);
    }
    let names = NamePreserver::new(&plan);
    let expanded = plan.transform_expressions(|expr| {
        let name = names.save(&expr);
        let new = expr.transform_up(|expr| expand(expr, &schema))?;
        Ok(Transformed::new(name.restore(new.data), new.transformed, new.tnr))
    })?;
    expanded.map_data(LogicalPlan::recompute_schema)
}

fn expand(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::ScalarFunction(call) => Ok(match plain_of(&call, schema)? {
            // The result may be expandable again.
            Some(plain) => Transformed::yes(plain),
            None => Transformed::no(Expr::ScalarFunction(call)),
        }),
        Expr::Literal(ScalarValue::Utf8(text), metadata) => {
            Ok(Transformed::yes(Expr::Literal(ScalarValue::Utf8View(text), metadata)))
        }
        Expr::WindowFunction(window) => sorted_window(window, schema).map(Transformed::yes),
        Expr::InSubquery(within) => in_subquery(within, schema).map(Transformed::yes),
        Expr::SetComparison(compared) => {
            let left = type_of(&compared.expr, schema)?;
            let right = ExprType::of_field(compared.subquery.subquery.schema().field(0));
            check_sought(&left, &right).map_err(external)?;
            Ok(Transformed::no(Expr::SetComparison(compared)))
        }
        expr => Ok(Transformed::no(expr)),
    }
}

fn plain_of(call: &ScalarFunction, schema: &DFSchema) -> Result<Option<Expr>> {
    let inner: &dyn std::any::Any = call.func.inner().as_ref();
    let Some(function) = inner.downcast_ref::<Function>() else { return Ok(None) };
    let Some(expand) = function.definition().expand else { return Ok(None) };
    let fields = call.args.iter().map(|arg| arg.to_field(schema).map(|(_, field)| field));
    let fields = fields.collect::<Result<Vec<_>>>()?;
    let literal = |arg: &Expr| match arg {
        Expr::Literal(value, _) => Some(value.clone()),
        _ => None,
    };
    let literals: Vec<_> = call.args.iter().map(literal).collect();
    let scalars: Vec<_> = literals.iter().map(Option::as_ref).collect();
    let dialect = function.dialect();
    let types = argument_types(&fields, &scalars, dialect.collation);
    let types = types_taken(function.definition().name, types);
    let typing = TypeContext {
        types: &types,
        scalars: &scalars,
        collation: dialect.collation,
        division_digits: dialect.division_digits,
    };
    expand(&call.args, &typing).map_err(external)
}

/// The type of an expression over rows of a schema.
fn type_of(expr: &Expr, schema: &DFSchema) -> Result<ExprType> {
    let (_, field) = expr.to_field(schema)?;
    let literal = match expr {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    };
    let mut types = argument_types(&[field], &[literal], Dialect::default().collation);
    Ok(types.pop().unwrap_or_else(ExprType::null))
}

/// Whether values of a type are grouped and sorted by a key instead of by themselves.
fn has_key(kind: &ExprType) -> bool {
    matches!(kind.kind, SqlType::Enum | SqlType::Set | SqlType::Json)
        || kind.is_text() && !collation::is_bytes(kind.collation)
}

/// 1064 for a set, which has no order.
fn check_ordered(expr: &Expr, schema: &DFSchema) -> Result<()> {
    match type_of(expr, schema)?.multi {
        None => Ok(()),
        Some(_) => Err(external(Error::new(ErrorCode::ParseError, "order by MVA is undefined"))),
    }
}

/// The sort key of an expression.
fn sorting(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let kind = type_of(&expr, schema)?;
    if !has_key(&kind) {
        return Ok(expr);
    }
    let dialect = Dialect::default();
    let by_text = !matches!(kind.kind, SqlType::Enum | SqlType::Set | SqlType::Json);
    if by_text {
        return Ok(text_key(expr, kind.collation, dialect));
    }
    let udf = library::function("sort_key", dialect);
    Ok(match udf {
        Some(udf) => Expr::ScalarFunction(ScalarFunction::new_udf(udf, vec![expr])),
        None => expr,
    })
}

/// What tells the rows of a schema apart, as DISTINCT does.
pub(crate) fn distinct_keys(schema: &DFSchema) -> Result<Vec<Expr>> {
    let columns = schema.columns().into_iter().map(Expr::Column);
    columns.map(|column| sorting(column, schema)).collect()
}

fn sorted_window(mut window: Box<WindowFunction>, schema: &DFSchema) -> Result<Expr> {
    for each in &mut window.params.partition_by {
        if type_of(each, schema)?.multi.is_some() {
            let what = "groups and PARTITION BY of a multi-value attribute here";
            return Err(external(Error::unsupported(what)));
        }
        *each = sorting(each.clone(), schema)?;
    }
    if let [only] = window.params.order_by.as_slice() {
        let scale = match type_of(&only.expr, schema)? {
            kind if kind.is_integer() => Some(0),
            kind if kind.is_decimal() => Some(usize::from(kind.scale())),
            _ => None,
        };
        let frame = &mut window.params.window_frame;
        if let Some(scale) = scale.filter(|_| frame.units == WindowFrameUnits::Range) {
            cut_offset(&mut frame.start_bound, scale);
            cut_offset(&mut frame.end_bound, scale);
        }
    }
    let params = &mut window.params;
    let kind = |expr: &Expr| type_of(expr, schema);
    frames::measure(&mut params.window_frame, &mut params.order_by, kind)?;
    for each in &mut window.params.order_by {
        check_ordered(&each.expr, schema)?;
        // Frames support ranges of texts, but not of bytes. Hexadecimal texts sort like their
        // bytes.
        let key = sorting(each.expr.clone(), schema)?;
        let bytes = type_of(&key, schema)?.arrow() == DataType::BinaryView;
        each.expr = if bytes { hexadecimal(key) } else { key };
    }
    Ok(Expr::WindowFunction(window))
}

/// Removes fraction digits of an offset beyond the sort key's scale. They cannot matter, and would
/// be rounded.
fn cut_offset(bound: &mut WindowFrameBound, scale: usize) {
    let (WindowFrameBound::Preceding(ScalarValue::Utf8(Some(offset)))
    | WindowFrameBound::Following(ScalarValue::Utf8(Some(offset)))) = bound
    else {
        return;
    };
    let is_number = offset.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if let Some((whole, fraction)) = offset.split_once('.').filter(|_| is_number) {
        let whole = if whole.is_empty() { "0" } else { whole };
        *offset = match fraction.get(..scale.min(fraction.len())) {
            None | Some("") => whole.to_owned(),
            Some(kept) => format!("{whole}.{kept}"),
        };
    }
}

fn hexadecimal(key: Expr) -> Expr {
    match library::function("hex", Dialect::default()) {
        Some(udf) => Expr::ScalarFunction(ScalarFunction::new_udf(udf, vec![key])),
        None => key,
    }
}

/// `x IN (SELECT y …)`, with both sides converted to their common type.
fn in_subquery(within: InSubquery, schema: &DFSchema) -> Result<Expr> {
    let plan = &within.subquery.subquery;
    let left_type = type_of(&within.expr, schema)?;
    let (qualifier, field) = plan.schema().qualified_field(0);
    // DataFusion would take a column of this plan, which has no table, for a column of the join's input.
    let (column, input) = match plan.as_ref() {
        LogicalPlan::Projection(selected) if let [only] = selected.expr.as_slice() => {
            (only.clone().unalias(), &selected.input)
        }
        _ => (Expr::Column((qualifier, field).into()), plan),
    };
    let right_type = ExprType::of_field(field);
    let dialect = Dialect::default();
    let (left, right) = compared_sides(&within.expr, &left_type, &column, &right_type, dialect)
        .map_err(external)?;
    if left == *within.expr && right == column {
        return Ok(Expr::InSubquery(within));
    }
    let name = field.name().clone();
    let projected = Projection::try_new(vec![right.alias(name)], Arc::clone(input))?;
    let subquery = Subquery {
        subquery: Arc::new(LogicalPlan::Projection(projected)),
        outer_ref_columns: within.subquery.outer_ref_columns.clone(),
        spans: within.subquery.spans.clone(),
    };
    Ok(Expr::InSubquery(InSubquery::new(Box::new(left), subquery, within.negated)))
}
