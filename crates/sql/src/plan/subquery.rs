//! Subqueries that do not become joins, because DataFusion cannot make them joins or the tables are so small that
//! planning a join costs more. Each becomes a function of its outer columns that runs the query for each distinct set
//! of their values; a query of one table is planned once ([`super::direct`]).

mod explained;

use std::{
    fmt,
    hash::{Hash, Hasher},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
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
    execution::TaskContext,
    logical_expr::{
        BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator,
        ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
        expr::{InSubquery, ScalarFunction, SetComparison, SetQuantifier},
        expr_rewriter::NamePreserver,
        utils::merge_schema,
    },
    optimizer::AnalyzerRule,
    physical_plan::{ExecutionPlan, collect, execution_plan::reset_plan_states},
};
pub(crate) use explained::subquery_plan;
use futures::FutureExt;
use parking_lot::Mutex;
use remora_mysql::ErrorCode;
use rustc_hash::FxHashMap;

use super::{
    compared::{Members, Quantified, compare_by_keys},
    direct,
    joinable::{exists_joins, has_null, has_simple_aggregate, in_joins, outer_columns},
    planner, watch,
};
use crate::{
    Error,
    meaning::{self, is_false_of_null, types::ExprType},
    scan::{
        outer::OuterRow,
        settled::{self, Slot},
    },
    state::Context,
};

/// Most results that are kept of one subquery, and most bytes of them.
const MAX_KEPT: usize = 65_536;
const MAX_KEPT_BYTES: usize = 16 << 20;

/// Most rows of a table for each of which a query of one table runs that names columns of it, and most of
/// both tables' rows multiplied. A run costs about 20 us, the planning of a join 2 ms.
const MAX_RUNS: usize = 100;
const MAX_PAIRS: usize = 100_000;
/// The same for one that names none: it runs once, and what it gave is asked for each row.
const MAX_ASKED: usize = 5_000;

/// The rule.
#[derive(Debug)]
pub(super) struct Subqueries;

impl AnalyzerRule for Subqueries {
    fn analyze(&self, plan: LogicalPlan, options: &ConfigOptions) -> PlanResult<LogicalPlan> {
        if !plan.exists(direct::has_queries)? {
            return Ok(plan);
        }
        let replaced = plan.transform_up_with_subqueries(|plan| replace_in(plan, options))?;
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
    let asking = Asking { schema: &schema, node, options, rows };
    let replaced = plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let new = asking.replaced(expr, place)?;
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

/// Where in a condition it stands: a join tells NULL from 0 nowhere, or for a whole condition alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubqueryPosition {
    /// It must hold, beside others.
    Condition,
    /// What it gives is compared in one that must hold, which does not if that is NULL.
    Compared,
    /// It or others must hold.
    Alternative,
    /// Something is made of what it gives.
    Inside,
}

/// What a subquery stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// Its only value.
    Scalar,
    /// Whether it has rows.
    Exists,
    /// What a value compared with its own says.
    Compared(Quantified),
}

/// The node whose expressions are gone through.
struct Asking<'p> {
    schema: &'p DFSchema,
    node: Node,
    options: &'p ConfigOptions,
    /// How many rows its table has, if it is of one.
    rows: Option<usize>,
}

impl Asking<'_> {
    /// The expression with functions for its subqueries that become no joins.
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
        // A join knows the query around it, not one further out.
        let near = outer.iter().all(|(_, column)| self.schema.has_column(column));
        // A plan that is kept settles those for each run.
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

    /// Whether running it takes less than planning a join. A value that no set of keys is asked for is
    /// compared with each of the query's.
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

    /// Whether the query's values have keys, by which another is found among them.
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
            // A join's column would be told to have a value where the query has no row.
            _ if place != SubqueryPosition::Compared && !has_null(plan) => {
                has_simple_aggregate(plan)
            }
            _ => Ok(is_constant || has_simple_aggregate(plan)?),
        }
    }

    /// The function in the place of a subquery.
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

/// Whether a query calculates anew for each row, so that it gives another value each time it runs. A
/// variable that it reads is one that the statement rarely sets, and MySQL takes a query of no table for
/// a constant.
fn is_volatile(plan: &LogicalPlan) -> PlanResult<bool> {
    let mut found = false;
    let has_rows = |node: &LogicalPlan| {
        // JSON_TABLE of one document is a table that nothing is read of.
        Ok(matches!(node, LogicalPlan::TableScan(_) | LogicalPlan::Extension(_)))
    };
    if !plan.exists(has_rows)? {
        return Ok(false);
    }
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|each| {
                if let Expr::ScalarFunction(call) = each {
                    let function: &dyn std::any::Any = call.func.inner().as_ref();
                    found |= match function.downcast_ref::<Subquery>() {
                        Some(within) => within.is_volatile,
                        None => {
                            call.func.signature().volatility == Volatility::Volatile
                                && call.func.name() != "get_user_variable"
                        }
                    };
                }
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })
    })?;
    Ok(found)
}

/// A subquery as a function of outer columns, and of the value to look for.
struct Subquery {
    kind: Kind,
    plan: Arc<LogicalPlan>,
    outer: Vec<(FieldRef, Column)>,
    context: Option<Context>,
    signature: Signature,
    /// Whether it runs for each row, whatever was known.
    is_volatile: bool,
    known: Mutex<SubqueryResults>,
    /// Plans that no thread runs now.
    idle: Mutex<Vec<Ready>>,
    /// Whether such plans can be made.
    is_direct: AtomicBool,
    /// What the query gave last that values are compared with, and for which outer columns.
    members: Mutex<Option<(Vec<ScalarValue>, Arc<Members>)>>,
}

/// A query of no outer row, of which a value or its having rows is asked.
pub(super) struct Alone {
    /// Not more rows than it takes to know.
    pub plan: LogicalPlan,
    pub is_exists: bool,
}

/// The query that an expression runs, if it is one of no outer row and gives the same each time.
pub(super) fn alone(expr: &Expr) -> PlanResult<Option<Alone>> {
    let Expr::ScalarFunction(call) = expr else { return Ok(None) };
    let function: &dyn std::any::Any = call.func.inner().as_ref();
    let Some(subquery) = function.downcast_ref::<Subquery>() else { return Ok(None) };
    if !call.args.is_empty() || subquery.is_volatile {
        return Ok(None);
    }
    let plan = subquery.few(subquery.plan.as_ref().clone())?;
    Ok(Some(Alone { plan, is_exists: subquery.kind == Kind::Exists }))
}

/// A query of the row around it, of which a value or its having rows is asked.
pub(super) struct ByRow {
    /// Not more rows than it takes to know; slots stand for the values of the row.
    pub plan: LogicalPlan,
    pub is_exists: bool,
    /// The field of what it gives.
    pub field: Field,
}

/// The query that a function runs, if it is one of the row around it and gives the same for the same row. The values of
/// the row stand in the slots from `slot` on, as the function's arguments.
pub(super) fn by_row(call: &ScalarFunction, slot: usize) -> PlanResult<Option<ByRow>> {
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
        Some(settled::value(Slot::Row(slot + at), &field))
    })?;
    Ok(Some(ByRow { plan: subquery.few(plan)?, is_exists, field: subquery.field() }))
}

/// What a subquery gave, by the values it was asked with.
#[derive(Default)]
struct SubqueryResults {
    results: FxHashMap<Vec<ScalarValue>, ScalarValue>,
    bytes: usize,
}

impl SubqueryResults {
    /// Keeps a result if there is room.
    fn keep(&mut self, args: &[ScalarValue], value: &ScalarValue) {
        let bytes = args.iter().map(ScalarValue::size).sum::<usize>() + value.size();
        if self.results.len() < MAX_KEPT && self.bytes + bytes <= MAX_KEPT_BYTES {
            self.bytes += bytes;
            self.results.insert(args.to_vec(), value.clone());
        }
    }
}

/// A plan that runs for one row after the other.
struct Ready {
    plan: Arc<dyn ExecutionPlan>,
    row: OuterRow,
    task: Arc<TaskContext>,
}

impl Subquery {
    fn new(
        kind: Kind,
        plan: Arc<LogicalPlan>,
        outer: Vec<(FieldRef, Column)>,
        context: Option<Context>,
    ) -> Self {
        // What cannot be told is taken for one that does.
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
            is_direct: AtomicBool::new(true),
            members: Mutex::default(),
        }
    }

    /// The field of what it gives.
    fn field(&self) -> Field {
        match self.kind {
            Kind::Scalar => match self.plan.schema().fields().first() {
                Some(field) => field.as_ref().clone().with_nullable(true),
                None => ExprType::null().field("subquery"),
            },
            Kind::Exists | Kind::Compared(_) => {
                ExprType::truth().field_of("subquery", DataType::Boolean)
            }
        }
    }

    fn value(
        &self,
        args: &[ScalarValue],
        fields: &[FieldRef],
        options: &Arc<ConfigOptions>,
    ) -> PlanResult<ScalarValue> {
        if let Some(known) = self.known.lock().results.get(args) {
            return Ok(known.clone());
        }
        let value = match self.kind {
            Kind::Compared(quantified) => self.compared(quantified, args, fields, options)?,
            Kind::Scalar | Kind::Exists => self.computed(args, fields, options)?,
        };
        if !self.is_volatile {
            self.known.lock().keep(args, &value);
        }
        Ok(value)
    }

    /// What the last of the arguments compared with the query's values says.
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
    ) -> PlanResult<Members> {
        self.run(outer, fields, options, |plan, task| Members::of(plan, task, quantified))
    }

    /// What `work` makes of the query for some values of the outer columns.
    fn run<T, F: Future<Output = PlanResult<T>>>(
        &self,
        outer: &[ScalarValue],
        fields: &[FieldRef],
        options: &ConfigOptions,
        work: impl FnOnce(Arc<dyn ExecutionPlan>, Arc<TaskContext>) -> F,
    ) -> PlanResult<T> {
        let idle = self.idle.lock().pop();
        let ready = match idle {
            Some(ready) => Some(ready.again()?),
            None if self.is_direct.load(Ordering::Relaxed) => self.ready(fields, options)?,
            None => None,
        };
        let Some(ready) = ready else {
            self.is_direct.store(false, Ordering::Relaxed);
            let plan = self.few(self.bound(outer, fields)?)?;
            let state = planner::state_of(options);
            return waited(async {
                let plan = planner::analysed(&state, plan)?;
                let plan = planner::optimised(&state, plan).await?;
                work(watched(plan, options)?, state.task_ctx()).await
            });
        };
        ready.row.set(outer);
        let done = waited(work(Arc::clone(&ready.plan), Arc::clone(&ready.task)))?;
        self.idle.lock().push(ready);
        Ok(done)
    }

    /// The query planned for any values of the outer columns; `None` if it is not of one table.
    fn ready(&self, fields: &[FieldRef], options: &ConfigOptions) -> PlanResult<Option<Ready>> {
        if direct::rows_below(&self.plan).is_none() {
            return Ok(None);
        }
        let state = planner::state_of(options);
        let row = OuterRow::default();
        let plan = self.replaced(|at| fields.get(at).map(|field| row.value(at, field)))?;
        let plan = planner::analysed(&state, self.few(plan)?)?;
        let Some(plan) = direct::planned(&plan, &state)? else { return Ok(None) };
        let plan = watched(plan, options)?;
        Ok(Some(Ready { plan, row, task: state.task_ctx() }))
    }

    /// The query, of which no more rows come than it takes to know its result.
    fn few(&self, plan: LogicalPlan) -> PlanResult<LogicalPlan> {
        let most = match self.kind {
            // A second row is an error.
            Kind::Scalar => 2,
            Kind::Exists => 1,
            Kind::Compared(_) => return Ok(plan),
        };
        LogicalPlanBuilder::from(plan).limit(0, Some(most))?.build()
    }

    /// The query for some values of the outer columns.
    fn bound(&self, args: &[ScalarValue], fields: &[FieldRef]) -> PlanResult<LogicalPlan> {
        self.replaced(|at| {
            let value = args.get(at).cloned().unwrap_or(ScalarValue::Null);
            let field = fields.get(at).map(|field| FieldMetadata::from(field.as_ref()));
            Some(Expr::Literal(value, field))
        })
    }

    /// The query with something else for each of its outer columns.
    fn replaced(&self, value: impl Fn(usize) -> Option<Expr>) -> PlanResult<LogicalPlan> {
        let replaced = self.plan.as_ref().clone().transform_up_with_subqueries(|plan| {
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
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

    /// What it gave for some rows.
    fn column(&self, values: Vec<ScalarValue>) -> PlanResult<ColumnarValue> {
        match values.is_empty() {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from(self.field().data_type())?)),
            false => Ok(ColumnarValue::Array(ScalarValue::iter_to_array(values)?)),
        }
    }

    /// The query's only value, or whether it has rows.
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
            Kind::Scalar if values.len() > 1 => {
                let message = "Subquery returns more than 1 row";
                Err(DataFusionError::External(Box::new(Error::new(
                    ErrorCode::SubqueryRows,
                    message,
                ))))
            }
            Kind::Scalar => match values.into_iter().next() {
                Some(value) => Ok(value),
                None => ScalarValue::try_from(self.field().data_type()),
            },
            Kind::Exists | Kind::Compared(_) => Ok(ScalarValue::Boolean(Some(!values.is_empty()))),
        }
    }
}

impl Ready {
    /// The same, to be run once more: what it learnt of the last row is forgotten.
    fn again(self) -> PlanResult<Self> {
        Ok(Self { plan: reset_plan_states(self.plan)?, ..self })
    }
}

/// Runs what a function waits for. What does not wait for anything does not take a thread of its own.
fn waited<T>(work: impl Future<Output = PlanResult<T>>) -> PlanResult<T> {
    let mut work = pin!(work);
    if let Some(done) = work.as_mut().now_or_never() {
        return done;
    }
    let handle = tokio::runtime::Handle::try_current()
        .map_err(|error| DataFusionError::External(Box::new(error)))?;
    tokio::task::block_in_place(|| handle.block_on(work))
}

/// The plan, which ends with the statement.
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
        let rows = arrays.first().map_or(0, |array| array.len());
        let mut values = Vec::with_capacity(rows);
        for row in 0..rows {
            let outer: PlanResult<Vec<ScalarValue>> =
                arrays.iter().map(|array| ScalarValue::try_from_array(array, row)).collect();
            values.push(self.value(&outer?, &args.arg_fields, options)?);
        }
        self.column(values)
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
