//! Subqueries that DataFusion cannot turn into joins: they become functions of the outer columns
//! they name, which run the query for each set of their values.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use datafusion::{
    arrow::datatypes::{DataType, Field, FieldRef},
    common::{
        Column, DFSchema, ScalarValue,
        config::ConfigOptions,
        exec_err,
        metadata::FieldMetadata,
        tree_node::{Transformed, TreeNode, TreeNodeRecursion},
    },
    error::{DataFusionError, Result as PlanResult},
    logical_expr::{
        BinaryExpr, ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, Operator,
        ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
        expr::{InSubquery, ScalarFunction},
        expr_rewriter::NamePreserver,
        utils::{merge_schema, split_conjunction},
    },
    optimizer::AnalyzerRule,
    physical_plan::collect,
};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::{
    planner::{self, physical},
    watch,
};
use crate::{
    Code, Error,
    meaning::{self, types::ExprType},
    session::Context,
};

/// Most results that are kept of one subquery.
const MAX_KEPT: usize = 65_536;

/// The rule.
#[derive(Debug)]
pub(super) struct Subqueries;

impl AnalyzerRule for Subqueries {
    fn analyze(&self, plan: LogicalPlan, options: &ConfigOptions) -> PlanResult<LogicalPlan> {
        let replaced = plan.transform_up_with_subqueries(|plan| replace_in(plan, options))?;
        Ok(replaced.data)
    }

    fn name(&self) -> &str {
        "subqueries"
    }
}

fn replace_in(plan: LogicalPlan, options: &ConfigOptions) -> PlanResult<Transformed<LogicalPlan>> {
    let node = match plan {
        LogicalPlan::Filter(_) => Node::Filter,
        LogicalPlan::Projection(_) => Node::Projection,
        _ => Node::Other,
    };
    let schema = merge_schema(&plan.inputs());
    let names = NamePreserver::new(&plan);
    let replaced = plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let new = expr.transform_up(|expr| replace(expr, &schema, node, options))?;
        Ok(Transformed::new(name.restore(new.data), new.transformed, new.tnr))
    })?;
    replaced.map_data(LogicalPlan::recompute_schema)
}

/// Where a subquery stands. In filters and projections some become joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Filter,
    Projection,
    Other,
}

/// What a subquery stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// Its only value.
    Scalar,
    /// Whether it has rows.
    Exists,
    /// Whether a value is among its own.
    In,
}

fn replace(
    expr: Expr,
    schema: &DFSchema,
    node: Node,
    options: &ConfigOptions,
) -> PlanResult<Transformed<Expr>> {
    let in_filter = node == Node::Filter;
    let (kind, plan, negated, value) = match &expr {
        Expr::ScalarSubquery(subquery) => (Kind::Scalar, &subquery.subquery, false, None),
        Expr::Exists(exists) => (Kind::Exists, &exists.subquery.subquery, exists.negated, None),
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            (Kind::In, &subquery.subquery, *negated, Some(expr.as_ref()))
        }
        _ => return Ok(Transformed::no(expr)),
    };
    let outer = outer_columns(plan)?;
    // A join knows the query around it, not one further out.
    let near = outer.iter().all(|(_, column)| schema.has_column(column));
    let joins = match kind {
        _ if !near => false,
        Kind::Scalar if node == Node::Other => false,
        // A join's column would be told to have a value where the query has no row.
        Kind::Scalar if !in_filter && !has_null(plan) => has_simple_aggregate(plan)?,
        Kind::Scalar => outer.is_empty() || has_simple_aggregate(plan)?,
        Kind::Exists | Kind::In => in_filter && is_simple(plan)?,
    };
    if joins {
        return Ok(Transformed::no(expr));
    }
    let of = |(field, column): &(FieldRef, Column)| match schema.has_column(column) {
        true => Expr::Column(column.clone()),
        false => Expr::OuterReferenceColumn(Arc::clone(field), column.clone()),
    };
    let mut args: Vec<Expr> = outer.iter().map(of).collect();
    args.extend(value.cloned());
    let context = Context::of_options(options).cloned();
    let function = Subquery::new(kind, Arc::clone(plan), outer, context);
    let call =
        Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(function)), args));
    Ok(Transformed::yes(if negated { Expr::Not(Box::new(call)) } else { call }))
}

/// Whether the only column of a plan can be NULL.
fn has_null(plan: &LogicalPlan) -> bool {
    plan.schema().fields().first().is_none_or(|field| field.is_nullable())
}

/// The columns of outer queries that a plan names.
fn outer_columns(plan: &LogicalPlan) -> PlanResult<Vec<(FieldRef, Column)>> {
    let mut found: Vec<(FieldRef, Column)> = Vec::new();
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|each| {
                if let Expr::OuterReferenceColumn(field, column) = each
                    && !found.iter().any(|(_, known)| known == column)
                {
                    found.push((Arc::clone(field), column.clone()));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}

/// Whether a scalar subquery is one aggregate over rows that are chosen by equalities alone.
fn has_simple_aggregate(plan: &LogicalPlan) -> PlanResult<bool> {
    match plan {
        LogicalPlan::Projection(inner) if !has_outer(&inner.expr) => {
            has_simple_aggregate(&inner.input)
        }
        LogicalPlan::SubqueryAlias(inner) => has_simple_aggregate(&inner.input),
        LogicalPlan::Aggregate(inner) if inner.group_expr.is_empty() => {
            Ok(!has_outer(&inner.aggr_expr) && is_simple(&inner.input)?)
        }
        _ => Ok(false),
    }
}

/// Whether outer columns are in equalities of filters alone, below nothing but what leaves rows as
/// they are.
fn is_simple(plan: &LogicalPlan) -> PlanResult<bool> {
    match plan {
        LogicalPlan::Projection(inner) if !has_outer(&inner.expr) => is_simple(&inner.input),
        LogicalPlan::Filter(inner) => {
            let parts = split_conjunction(&inner.predicate);
            let fine = parts.into_iter().all(|part| !part.contains_outer() || is_equality(part));
            Ok(fine && is_simple(&inner.input)?)
        }
        other => Ok(outer_columns(other)?.is_empty()),
    }
}

fn has_outer(exprs: &[Expr]) -> bool {
    exprs.iter().any(Expr::contains_outer)
}

/// An outer column is an inner one.
fn is_equality(expr: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = expr else {
        return false;
    };
    let pair = |outer: &Expr, inner: &Expr| {
        matches!(outer, Expr::OuterReferenceColumn(..)) && matches!(inner, Expr::Column(_))
    };
    pair(left, right) || pair(right, left)
}

/// A subquery as a function of outer columns, and of the value to look for.
struct Subquery {
    kind: Kind,
    plan: Arc<LogicalPlan>,
    outer: Vec<(FieldRef, Column)>,
    context: Option<Context>,
    signature: Signature,
    known: Mutex<FxHashMap<Vec<ScalarValue>, ScalarValue>>,
}

impl Subquery {
    fn new(
        kind: Kind,
        plan: Arc<LogicalPlan>,
        outer: Vec<(FieldRef, Column)>,
        context: Option<Context>,
    ) -> Self {
        let signature = Signature::variadic_any(Volatility::Volatile);
        let signature = match outer.is_empty() && kind != Kind::In {
            true => Signature::nullary(Volatility::Volatile),
            false => signature,
        };
        Self { kind, plan, outer, context, signature, known: Mutex::default() }
    }

    /// The field of what it gives.
    fn field(&self) -> Field {
        match self.kind {
            Kind::Scalar => match self.plan.schema().fields().first() {
                Some(field) => field.as_ref().clone().with_nullable(true),
                None => ExprType::null().field("subquery"),
            },
            Kind::Exists | Kind::In => ExprType::truth().field_of("subquery", DataType::Boolean),
        }
    }

    fn value(
        &self,
        args: &[ScalarValue],
        fields: &[FieldRef],
        options: &ConfigOptions,
    ) -> PlanResult<ScalarValue> {
        if let Some(known) = self.known.lock().get(args) {
            return Ok(known.clone());
        }
        let value = self.compute(args, fields, options)?;
        let mut known = self.known.lock();
        if known.len() < MAX_KEPT {
            known.insert(args.to_vec(), value.clone());
        }
        Ok(value)
    }

    fn compute(
        &self,
        args: &[ScalarValue],
        fields: &[FieldRef],
        options: &ConfigOptions,
    ) -> PlanResult<ScalarValue> {
        let literal = |index: usize| {
            let value = args.get(index).cloned().unwrap_or(ScalarValue::Null);
            let field = fields.get(index).map(|field| FieldMetadata::from(field.as_ref()));
            Expr::Literal(value, field)
        };
        let bound = self.plan.as_ref().clone().transform_up_with_subqueries(|plan| {
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let new = expr.transform_up(|expr| match &expr {
                    Expr::OuterReferenceColumn(_, column) => {
                        let at = self.outer.iter().position(|(_, known)| known == column);
                        Ok(at.map_or(Transformed::no(expr), |at| Transformed::yes(literal(at))))
                    }
                    _ => Ok(Transformed::no(expr)),
                })?;
                Ok(Transformed::new(name.restore(new.data), new.transformed, new.tnr))
            })
        })?;
        let plan = self.asked(bound.data, literal(self.outer.len()))?;
        let state = planner::state_of(options);
        let rows = async {
            let plan = physical(&state, &plan).await?;
            let plan = match Context::of_options(options) {
                Some(context) => watch::watched(plan, context)?,
                None => plan,
            };
            collect(plan, state.task_ctx()).await
        };
        let handle = tokio::runtime::Handle::try_current()
            .map_err(|error| DataFusionError::External(Box::new(error)))?;
        let batches = tokio::task::block_in_place(|| handle.block_on(rows))?;
        let mut values = Vec::new();
        for batch in &batches {
            for row in 0..batch.num_rows() {
                values.push(ScalarValue::try_from_array(batch.column(0), row)?);
            }
        }
        self.answer(values)
    }

    /// The plan whose rows answer.
    fn asked(&self, plan: LogicalPlan, value: Expr) -> PlanResult<LogicalPlan> {
        match self.kind {
            Kind::Scalar => LogicalPlanBuilder::from(plan).limit(0, Some(2))?.build(),
            Kind::Exists => LogicalPlanBuilder::from(plan).limit(0, Some(1))?.build(),
            Kind::In => {
                let Some((relation, field)) = plan.schema().iter().next() else {
                    return exec_err!("IN of nothing");
                };
                let column = Expr::Column(Column::new(relation.cloned(), field.name()));
                let equal = match &self.context {
                    Some(context) => meaning::scalar_function_in("=", context),
                    None => None,
                };
                let Some(equal) = equal else { return exec_err!("IN has no meaning here") };
                let call = ScalarFunction::new_udf(equal, vec![value, column]);
                let found = Expr::ScalarFunction(call).alias("found");
                LogicalPlanBuilder::from(plan).project(vec![found])?.build()
            }
        }
    }

    fn answer(&self, values: Vec<ScalarValue>) -> PlanResult<ScalarValue> {
        let truth = |truth: Option<bool>| Ok(ScalarValue::Boolean(truth));
        match self.kind {
            Kind::Scalar if values.len() > 1 => {
                let message = "Subquery returns more than 1 row";
                Err(DataFusionError::External(Box::new(Error::new(Code::SubqueryRows, message))))
            }
            Kind::Scalar => match values.into_iter().next() {
                Some(value) => Ok(value),
                None => ScalarValue::try_from(self.field().data_type()),
            },
            Kind::Exists => truth(Some(!values.is_empty())),
            Kind::In => {
                let is_true = |value: &ScalarValue| match value {
                    ScalarValue::Boolean(truth) => *truth == Some(true),
                    ScalarValue::Int64(number) => number.is_some_and(|number| number != 0),
                    _ => false,
                };
                if values.iter().any(is_true) {
                    return truth(Some(true));
                }
                truth(values.iter().all(|value| !value.is_null()).then_some(false))
            }
        }
    }
}

impl ScalarUDFImpl for Subquery {
    fn name(&self) -> &str {
        "subquery"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> PlanResult<DataType> {
        Ok(self.field().data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> PlanResult<FieldRef> {
        Ok(Arc::new(self.field()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
        let options = &args.config_options;
        if args.args.is_empty() {
            return Ok(ColumnarValue::Scalar(self.value(&[], &[], options)?));
        }
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let rows = arrays.first().map_or(0, |array| array.len());
        let mut values = Vec::with_capacity(rows);
        for row in 0..rows {
            let outer: PlanResult<Vec<ScalarValue>> =
                arrays.iter().map(|array| ScalarValue::try_from_array(array, row)).collect();
            values.push(self.value(&outer?, &args.arg_fields, options)?);
        }
        match values.is_empty() {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from(self.field().data_type())?)),
            false => Ok(ColumnarValue::Array(ScalarValue::iter_to_array(values)?)),
        }
    }
}

impl fmt::Debug for Subquery {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Subquery").field("kind", &self.kind).finish()
    }
}

impl PartialEq for Subquery {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.plan == other.plan
    }
}

impl Eq for Subquery {}

impl Hash for Subquery {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
        self.plan.hash(state);
    }
}
