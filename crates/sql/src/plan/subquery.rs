//! Subqueries that do not become joins, either because DataFusion cannot convert them, or because the tables are so
//! small that planning a join costs more. Each becomes a function of its outer columns that runs the query for each
//! distinct set of their values, or for many of them at once ([`together`]). A correlated query is planned only once, by
//! way of [`super::direct`] if it reads one table.

mod decorrelate;
mod explained;
mod ready;
mod rows;
mod together;

use std::{
    fmt,
    hash::{Hash, Hasher},
    pin::pin,
    sync::Arc,
};

use datafusion::{
    arrow::datatypes::{DataType, Field, FieldRef},
    common::{
        Column, DFSchema, ScalarValue,
        config::ConfigOptions,
        exec_err,
        tree_node::{Transformed, TreeNodeRecursion},
    },
    error::{DataFusionError, Result as PlanResult},
    logical_expr::{
        BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator,
        ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
        expr::{InSubquery, ScalarFunction, SetComparison, SetQuantifier},
        expr_rewriter::NamePreserver,
        utils::merge_schema,
    },
    optimizer::AnalyzerRule,
    physical_plan::{ExecutionPlan, collect},
};
pub(crate) use explained::subquery_plan;
use futures::FutureExt;
use parking_lot::Mutex;
use ready::Ready;
use remora_mysql::{ErrorCode, messages};
pub(super) use rows::RowsQuery;
use rustc_hash::FxHashMap;
use together::Together;

use super::{
    compared::{ComparedMembers, Quantified, compare_by_keys},
    direct,
    joinable::{
        SubqueryPosition, exists_joins, has_null, has_simple_aggregate, in_joins, outer_columns,
    },
    stages, watch,
};
use crate::{
    Error,
    meaning::{self, is_false_of_null, types::ExprType},
    nodes::{TreeNode, WholePlan},
    scan::{
        outer,
        settled::{self, ValueSlot},
    },
    state::Context,
};

/// The most cached results of a subquery, and their most bytes.
const MAX_KEPT: usize = 65_536;
const MAX_KEPT_BYTES: usize = 16 << 20;

/// The most outer rows for which a correlated subquery of one table runs, and the largest product of outer and inner
/// rows. A run costs about 20 us, planning a join 2 ms.
const MAX_RUNS: usize = 100;
const MAX_PAIRS: usize = 100_000;
/// The most outer rows for an uncorrelated subquery. It runs once and its values are compared with each row.
const MAX_ASKED: usize = 5_000;

/// The rule.
#[derive(Debug)]
pub(super) struct Subqueries;

impl AnalyzerRule for Subqueries {
    fn analyze(&self, plan: LogicalPlan, options: &ConfigOptions) -> PlanResult<LogicalPlan> {
        if !plan.exists(direct::has_queries)? {
            return Ok(plan);
        }
        let replaced = plan.transform_whole(|plan| replace_in(plan, options))?;
        Ok(replaced.data)
    }

    fn name(&self) -> &str {
        "subqueries"
    }
}

fn replace_in(plan: LogicalPlan, options: &ConfigOptions) -> PlanResult<Transformed<LogicalPlan>> {
    if !direct::has_queries(&plan)? {
        return plan.recompute_schema().map(Transformed::no);
    }
    let node = match plan {
        LogicalPlan::Filter(_) => Node::Filter,
        LogicalPlan::Projection(_) => Node::Projection,
        _ => Node::Other,
    };
    let schema = merge_schema(&plan.inputs());
    let names = NamePreserver::new(&plan);
    let place =
        if node == Node::Filter { SubqueryPosition::Condition } else { SubqueryPosition::Inside };
    let rows = match plan.inputs().as_slice() {
        [input] => direct::rows_below(input),
        _ => None,
    };
    let asking = SubqueryRewriter { schema: &schema, node, options, rows };
    let replaced = plan.transform_expressions(|expr| {
        let name = names.save(&expr);
        let new = asking.replaced(expr, place)?;
        Ok(Transformed::new(name.restore(new.data), new.transformed, new.tnr))
    })?;
    replaced.map_data(LogicalPlan::recompute_schema)
}

/// The kind of node that has the subquery. Only subqueries in filters and projections become joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Filter,
    Projection,
    Other,
}

/// The kind of a subquery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// Its only value.
    Scalar,
    /// EXISTS.
    Exists,
    /// A quantified comparison with a value.
    Compared(Quantified),
    /// All its rows.
    Rows,
}

/// The node whose expressions are rewritten.
struct SubqueryRewriter<'p> {
    schema: &'p DFSchema,
    node: Node,
    options: &'p ConfigOptions,
    /// The number of rows of its table, if it reads a single one.
    rows: Option<usize>,
}

impl SubqueryRewriter<'_> {
    /// Replaces the subqueries that do not become joins by functions.
    fn replaced(&self, expr: Expr, place: SubqueryPosition) -> PlanResult<Transformed<Expr>> {
        let within = match &expr {
            Expr::BinaryExpr(BinaryExpr { op: Operator::And, .. }) => place,
            Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. })
                if matches!(place, SubqueryPosition::Condition | SubqueryPosition::Alternative) =>
            {
                SubqueryPosition::Alternative
            }
            Expr::BinaryExpr(BinaryExpr { op, .. })
                if place == SubqueryPosition::Condition && is_false_of_null(*op) =>
            {
                SubqueryPosition::Compared
            }
            _ => SubqueryPosition::Inside,
        };
        let expr = match expr {
            Expr::Not(inner) => match *inner {
                Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                    Expr::InSubquery(InSubquery { expr, subquery, negated: !negated })
                }
                inner => Expr::Not(Box::new(inner)),
            },
            expr => expr,
        };
        let replaced = expr.map_children(|child| self.replaced(child, within))?;
        replaced.transform_data(|expr| self.replaced_one(expr, place))
    }

    fn replaced_one(&self, expr: Expr, place: SubqueryPosition) -> PlanResult<Transformed<Expr>> {
        let equal = Quantified { op: Operator::Eq, all: false };
        let (kind, plan, negated, value) = match &expr {
            Expr::ScalarSubquery(subquery) => (Kind::Scalar, &subquery.subquery, false, None),
            Expr::Exists(exists) => (Kind::Exists, &exists.subquery.subquery, exists.negated, None),
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                (Kind::Compared(equal), &subquery.subquery, *negated, Some(expr.as_ref()))
            }
            Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
                let all = *quantifier == SetQuantifier::All;
                let kind = Kind::Compared(Quantified { op: *op, all });
                (kind, &subquery.subquery, false, Some(expr.as_ref()))
            }
            _ => return Ok(Transformed::no(expr)),
        };
        let outer = outer_columns(plan)?;
        // A join can reach the directly enclosing query only.
        let near = outer.iter().all(|(_, column)| self.schema.has_column(column));
        // A cached plan computes these once in each run.
        let is_settled = outer.is_empty()
            && matches!(kind, Kind::Scalar | Kind::Exists)
            && Context::of_options(self.options).is_some_and(|context| context.is_kept);
        let joins = near
            && !is_settled
            && !self.runs_at_once(plan, outer.is_empty(), value)?
            && match &expr {
                Expr::ScalarSubquery(_) => {
                    !is_volatile(plan)? && self.scalar_joins(plan, outer.is_empty(), place)?
                }
                Expr::Exists(_) => self.node == Node::Filter && exists_joins(plan)?,
                Expr::InSubquery(within) => in_joins(within, place, outer.is_empty())?,
                _ => false,
            };
        if joins {
            return Ok(Transformed::no(expr));
        }
        let call = self.call(kind, plan, outer, value);
        Ok(Transformed::yes(if negated { Expr::Not(Box::new(call)) } else { call }))
    }

    /// Whether running the subquery costs less than planning a join. Without a set of keys, each outer value is
    /// compared with each inner one.
    fn runs_at_once(
        &self,
        plan: &LogicalPlan,
        is_alone: bool,
        value: Option<&Expr>,
    ) -> PlanResult<bool> {
        let most = direct::most_rows(self.options);
        let (Some(rows), Some(inner)) = (self.rows, direct::rows_below(plan)) else {
            return Ok(false);
        };
        let is_light = rows.saturating_mul(inner) <= MAX_PAIRS;
        let few = match is_alone {
            true => rows <= MAX_ASKED && (is_light || self.by_keys(plan, value)?),
            false => rows <= MAX_RUNS && is_light,
        };
        Ok(few && rows.max(inner) <= most)
    }

    /// Whether an outer value is found among the subquery's values by its key.
    fn by_keys(&self, plan: &LogicalPlan, value: Option<&Expr>) -> PlanResult<bool> {
        let (Some(value), Some(of)) = (value, plan.schema().fields().first()) else {
            return Ok(true);
        };
        let value = ExprType::of_field(&value.to_field(self.schema)?.1);
        Ok(compare_by_keys(&value, &ExprType::of_field(of)))
    }

    fn scalar_joins(
        &self,
        plan: &LogicalPlan,
        is_constant: bool,
        place: SubqueryPosition,
    ) -> PlanResult<bool> {
        match self.node {
            Node::Other => Ok(false),
            // DataFusion would declare the join's column NOT NULL although it is NULL for an empty subquery.
            _ if place != SubqueryPosition::Compared && !has_null(plan) => {
                has_simple_aggregate(plan)
            }
            _ => Ok(is_constant || has_simple_aggregate(plan)?),
        }
    }

    /// The function that replaces a subquery.
    fn call(
        &self,
        kind: Kind,
        plan: &Arc<LogicalPlan>,
        outer: Vec<(FieldRef, Column)>,
        value: Option<&Expr>,
    ) -> Expr {
        let of = |(field, column): &(FieldRef, Column)| match self.schema.has_column(column) {
            true => Expr::Column(column.clone()),
            false => Expr::OuterReferenceColumn(Arc::clone(field), column.clone()),
        };
        let mut args: Vec<Expr> = outer.iter().map(of).collect();
        args.extend(value.cloned());
        let context = Context::of_options(self.options).cloned();
        let function = Subquery::new(kind, Arc::clone(plan), outer, context);
        Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(function)), args))
    }
}

/// Whether a query is volatile: it may give another value each time it runs. User variables do not count, because a
/// statement rarely sets them. A query without tables does not count, because MySQL treats it as a constant.
fn is_volatile(plan: &LogicalPlan) -> PlanResult<bool> {
    let mut found = false;
    let has_rows = |node: &LogicalPlan| {
        // JSON_TABLE of one document is a table too.
        Ok(matches!(node, LogicalPlan::TableScan(_) | LogicalPlan::Extension(_)))
    };
    if !plan.exists(has_rows)? {
        return Ok(false);
    }
    plan.apply_whole(|node| {
        node.apply_to_expressions(|expr| {
            expr.apply(|each| {
                if let Expr::ScalarFunction(call) = each {
                    let function: &dyn std::any::Any = call.func.inner().as_ref();
                    found |= match function.downcast_ref::<Subquery>() {
                        Some(within) => within.is_volatile,
                        None if outer::is_value(&call.func) => true,
                        None => {
                            call.func.signature().volatility == Volatility::Volatile
                                && call.func.name() != meaning::READ_VARIABLE
                        }
                    };
                }
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })
    })?;
    Ok(found)
}

/// A subquery as a function of its outer columns and, for a quantified comparison, of the compared value.
struct Subquery {
    kind: Kind,
    plan: Arc<LogicalPlan>,
    outer: Vec<(FieldRef, Column)>,
    context: Option<Context>,
    signature: Signature,
    /// Whether it runs for every row, without cached results.
    is_volatile: bool,
    known: Mutex<SubqueryResults>,
    /// Plans that no thread is running.
    idle: Mutex<Vec<Ready>>,
    /// What runs it for many outer rows at once.
    together: Together,
    /// The values of the last run, for a quantified comparison, and the outer columns they belong to.
    members: Mutex<Option<(Vec<ScalarValue>, Arc<ComparedMembers>)>>,
}

/// An uncorrelated scalar subquery or EXISTS.
pub(super) struct UncorrelatedSubquery {
    /// Limited to the rows that decide the result.
    pub plan: LogicalPlan,
    pub is_exists: bool,
}

/// The query that an expression runs, if it is uncorrelated and not volatile.
pub(super) fn uncorrelated(expr: &Expr) -> PlanResult<Option<UncorrelatedSubquery>> {
    let Expr::ScalarFunction(call) = expr else { return Ok(None) };
    let function: &dyn std::any::Any = call.func.inner().as_ref();
    let Some(subquery) = function.downcast_ref::<Subquery>() else { return Ok(None) };
    if !call.args.is_empty() || subquery.is_volatile {
        return Ok(None);
    }
    let plan = subquery.few(subquery.plan.as_ref().clone())?;
    Ok(Some(UncorrelatedSubquery { plan, is_exists: subquery.kind == Kind::Exists }))
}

/// The query, the operator and the compared value of a quantified comparison, if the query is uncorrelated and not
/// volatile.
pub(super) fn quantified(expr: &Expr) -> Option<(&LogicalPlan, Quantified, &Expr)> {
    let Expr::ScalarFunction(call) = expr else { return None };
    let function: &dyn std::any::Any = call.func.inner().as_ref();
    let subquery = function.downcast_ref::<Subquery>()?;
    let (Kind::Compared(quantified), [value]) = (subquery.kind, call.args.as_slice()) else {
        return None;
    };
    (!subquery.is_volatile).then_some((subquery.plan.as_ref(), quantified, value))
}

/// A correlated scalar subquery or EXISTS.
pub(super) struct CorrelatedSubquery {
    /// Limited to the rows that decide the result. Outer columns are read from slots.
    pub plan: LogicalPlan,
    pub is_exists: bool,
    /// The field of its result.
    pub field: Field,
}

/// The query that a function runs, if it is correlated and not volatile. Its outer columns are read from the slots from
/// `slot` on, in the order of the function's arguments.
pub(super) fn correlated(
    call: &ScalarFunction,
    slot: usize,
) -> PlanResult<Option<CorrelatedSubquery>> {
    let function: &dyn std::any::Any = call.func.inner().as_ref();
    let Some(subquery) = function.downcast_ref::<Subquery>() else { return Ok(None) };
    let is_exists = subquery.kind == Kind::Exists;
    let is_plain = is_exists || subquery.kind == Kind::Scalar;
    if call.args.is_empty() || !is_plain || subquery.is_volatile {
        return Ok(None);
    }
    let plan = subquery.replaced(|at| {
        let (field, _) = subquery.outer.get(at)?;
        let field = field.as_ref().clone().with_nullable(true);
        Some(settled::value(ValueSlot::Row(slot + at), &field))
    })?;
    Ok(Some(CorrelatedSubquery { plan: subquery.few(plan)?, is_exists, field: subquery.field() }))
}

/// A cache of results by the values of the outer columns.
#[derive(Default)]
struct SubqueryResults {
    results: FxHashMap<Vec<ScalarValue>, ScalarValue>,
    bytes: usize,
}

impl SubqueryResults {
    /// Caches a result if there is room.
    fn keep(&mut self, args: &[ScalarValue], value: &ScalarValue) {
        let bytes = args.iter().map(ScalarValue::size).sum::<usize>() + value.size();
        if self.results.len() < MAX_KEPT && self.bytes + bytes <= MAX_KEPT_BYTES {
            self.bytes += bytes;
            self.results.insert(args.to_vec(), value.clone());
        }
    }
}

impl Subquery {
    fn new(
        kind: Kind,
        plan: Arc<LogicalPlan>,
        outer: Vec<(FieldRef, Column)>,
        context: Option<Context>,
    ) -> Self {
        // If this cannot be determined, it counts as volatile.
        let is_volatile = is_volatile(&plan).unwrap_or(true);
        let signature = Signature::variadic_any(Volatility::Volatile);
        let takes_value = matches!(kind, Kind::Compared(_));
        let signature = match outer.is_empty() && !takes_value {
            true => Signature::nullary(Volatility::Volatile),
            false => signature,
        };
        Self {
            kind,
            plan,
            outer,
            context,
            signature,
            is_volatile,
            known: Mutex::default(),
            idle: Mutex::default(),
            together: Together::default(),
            members: Mutex::default(),
        }
    }

    /// The field of its result.
    fn field(&self) -> Field {
        match self.kind {
            Kind::Scalar => match self.plan.schema().fields().first() {
                Some(field) => field.as_ref().clone().with_nullable(true),
                None => ExprType::null().field("subquery"),
            },
            Kind::Exists | Kind::Compared(_) | Kind::Rows => {
                ExprType::truth().field_of("subquery", DataType::Boolean)
            }
        }
    }

    /// The cached result for these outer columns.
    fn known(&self, args: &[ScalarValue]) -> Option<ScalarValue> {
        self.known.lock().results.get(args).cloned()
    }

    fn value(
        &self,
        args: &[ScalarValue],
        fields: &[FieldRef],
        options: &Arc<ConfigOptions>,
    ) -> PlanResult<ScalarValue> {
        if let Some(known) = self.known(args) {
            return Ok(known);
        }
        let value = match self.kind {
            Kind::Compared(quantified) => self.compared(quantified, args, fields, options)?,
            Kind::Scalar | Kind::Exists | Kind::Rows => self.computed(args, fields, options)?,
        };
        if !self.is_volatile {
            self.known.lock().keep(args, &value);
        }
        Ok(value)
    }

    /// The result of comparing the last argument with the query's values.
    fn compared(
        &self,
        quantified: Quantified,
        args: &[ScalarValue],
        fields: &[FieldRef],
        options: &Arc<ConfigOptions>,
    ) -> PlanResult<ScalarValue> {
        let order = self
            .context
            .as_ref()
            .and_then(|context| meaning::scalar_function_in("row_order", context));
        let (Some((value, outer)), Some(field), Some(order)) =
            (args.split_last(), fields.last(), order)
        else {
            return exec_err!("a comparison with a subquery has no meaning here");
        };
        let kept = self
            .members
            .lock()
            .as_ref()
            .filter(|(of, _)| !self.is_volatile && of.as_slice() == outer)
            .map(|(_, members)| Arc::clone(members));
        let members = match kept {
            Some(members) => members,
            None => {
                let members = Arc::new(self.members_of(quantified, outer, fields, options)?);
                *self.members.lock() = Some((outer.to_vec(), Arc::clone(&members)));
                members
            }
        };
        let said = members.compare(quantified, (value, field), &order, options)?;
        Ok(ScalarValue::Boolean(said))
    }

    fn members_of(
        &self,
        quantified: Quantified,
        outer: &[ScalarValue],
        fields: &[FieldRef],
        options: &ConfigOptions,
    ) -> PlanResult<ComparedMembers> {
        self.run(outer, fields, options, |plan, task| ComparedMembers::of(plan, task, quantified))
    }

    /// The query, limited to the rows that decide its result.
    fn few(&self, plan: LogicalPlan) -> PlanResult<LogicalPlan> {
        let most = match self.kind {
            // A second row is an error.
            Kind::Scalar => 2,
            Kind::Exists => 1,
            Kind::Compared(_) | Kind::Rows => return Ok(plan),
        };
        LogicalPlanBuilder::from(plan).limit(0, Some(most))?.build()
    }

    /// The query with each of its outer columns replaced.
    fn replaced(&self, value: impl Fn(usize) -> Option<Expr>) -> PlanResult<LogicalPlan> {
        let replaced = self.plan.as_ref().clone().transform_whole(|plan| {
            let names = NamePreserver::new(&plan);
            plan.transform_expressions(|expr| {
                let name = names.save(&expr);
                let new = expr.transform_up(|expr| {
                    let Expr::OuterReferenceColumn(_, column) = &expr else {
                        return Ok(Transformed::no(expr));
                    };
                    let at = self.outer.iter().position(|(_, known)| known == column);
                    Ok(at.and_then(&value).map_or(Transformed::no(expr), Transformed::yes))
                })?;
                Ok(Transformed::new(name.restore(new.data), new.transformed, new.tnr))
            })
        })?;
        Ok(replaced.data)
    }

    /// Its results for some rows, as a column.
    fn column(&self, values: Vec<ScalarValue>) -> PlanResult<ColumnarValue> {
        match values.is_empty() {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from(self.field().data_type())?)),
            false => Ok(ColumnarValue::Array(ScalarValue::iter_to_array(values)?)),
        }
    }

    /// The value of a scalar subquery, or whether EXISTS has rows.
    fn computed(
        &self,
        args: &[ScalarValue],
        fields: &[FieldRef],
        options: &ConfigOptions,
    ) -> PlanResult<ScalarValue> {
        let batches = self.run(args, fields, options, collect)?;
        let mut values = Vec::new();
        for batch in &batches {
            for row in 0..batch.num_rows() {
                values.push(ScalarValue::try_from_array(batch.column(0), row)?);
            }
        }
        match self.kind {
            Kind::Scalar if values.len() > 1 => Err(too_many_values()),
            Kind::Scalar => match values.into_iter().next() {
                Some(value) => Ok(value),
                None => ScalarValue::try_from(self.field().data_type()),
            },
            Kind::Exists | Kind::Compared(_) | Kind::Rows => {
                Ok(ScalarValue::Boolean(Some(!values.is_empty())))
            }
        }
    }
}

/// Error 1242: a scalar subquery has several rows.
fn too_many_values() -> DataFusionError {
    let error = Error::new(ErrorCode::SubqueryRows, messages::SUBQUERY_ROWS);
    DataFusionError::External(Box::new(error))
}

/// Runs a future to its end. It occupies a thread of its own only if it has to wait.
fn waited<T>(work: impl Future<Output = PlanResult<T>>) -> PlanResult<T> {
    let mut work = pin!(work);
    if let Some(done) = work.as_mut().now_or_never() {
        return done;
    }
    let handle = tokio::runtime::Handle::try_current()
        .map_err(|error| DataFusionError::External(Box::new(error)))?;
    tokio::task::block_in_place(|| handle.block_on(work))
}

/// The plan, which stops when the statement is interrupted.
fn watched(
    plan: Arc<dyn ExecutionPlan>,
    options: &ConfigOptions,
) -> PlanResult<Arc<dyn ExecutionPlan>> {
    match Context::of_options(options) {
        Some(context) => watch::watched(plan, context),
        None => Ok(plan),
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
            if !self.is_volatile {
                return Ok(ColumnarValue::Scalar(self.value(&[], &[], options)?));
            }
            let values = (0..args.number_rows).map(|_| self.value(&[], &[], options));
            let values = values.collect::<PlanResult<Vec<_>>>()?;
            return self.column(values);
        }
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        self.column(self.of_rows(&arrays, &args.arg_fields, options)?)
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
