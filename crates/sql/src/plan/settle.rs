//! Replaces values in a cached plan that differ in each run: those of the clock and of the session (`NOW() - INTERVAL 7
//! DAY`, `LAST_INSERT_ID()`) and uncorrelated subqueries (`(SELECT MAX(id) FROM t)`, `EXISTS (…)`). Functions in their
//! place read the values of the current run ([`crate::scan::settled`]). Correlated subqueries that do not become joins
//! read their outer columns in the same way and run once for each outer row.

use std::{ops::Range, sync::Arc};

use datafusion::{
    common::{
        DFSchema,
        tree_node::{Transformed, TreeNodeRecursion},
    },
    error::Result as PlanResult,
    execution::SessionState as PlanState,
    logical_expr::{
        Expr, ExprSchemable, LogicalPlan, expr_rewriter::NamePreserver,
        physical_planning_context::PhysicalPlanningContext,
    },
    physical_expr::{PhysicalExpr, create_physical_expr},
    physical_plan::ExecutionPlan,
    sql::sqlparser::ast,
};

use super::{
    Planner,
    run_literals::{filled_in, is_place, taken},
    stages,
    subquery::{UncorrelatedSubquery, correlated, uncorrelated},
};
use crate::{
    Error, Result,
    error::from_plan,
    meaning::is_per_statement,
    nodes::{TreeNode, WholePlan},
    scan::settled::{self, ValueSlot},
};

/// A constant that each run computes first. It may read earlier ones.
pub(crate) enum RunConstant<P> {
    /// A literal of the statement, by its number among those that may be parameters.
    Literal(usize),
    Constant(Arc<dyn PhysicalExpr>),
    /// The value of a scalar subquery, or whether EXISTS (`true`) has rows.
    Query(P, bool),
}

/// A correlated subquery, which reads its outer row from slots.
pub(crate) struct CorrelatedQuery<P> {
    pub plan: P,
    /// Whether it is EXISTS; otherwise its only value is wanted.
    pub is_exists: bool,
    /// The slots of its outer columns, in order.
    pub slots: Range<usize>,
}

/// The values of a plan that each run, or each row, computes.
#[derive(Default)]
pub(super) struct RunValues {
    /// The constants in the order of their numbers.
    pub constants: Vec<RunConstant<LogicalPlan>>,
    pub queries: Vec<CorrelatedQuery<LogicalPlan>>,
    /// The number of slots of all queries.
    pub slots: usize,
}

/// A plan for many runs, with the constants that each run computes first, by number.
pub(crate) struct KeptPlan {
    pub plan: Arc<dyn ExecutionPlan>,
    pub settled: Vec<RunConstant<Arc<dyn ExecutionPlan>>>,
    /// The correlated subqueries, by number.
    pub queries: Vec<CorrelatedQuery<Arc<dyn ExecutionPlan>>>,
}

impl Planner {
    /// The plan of a query for the cache. A query of one table is planned without an optimizer, whatever the number of
    /// its rows.
    pub(crate) async fn kept_plan(&self, query: ast::Query) -> Result<KeptPlan> {
        let _planning = self.context.planning.begin();
        let collation = self.context.collation;
        let (plan, literals) = taken(self.plan(query)?, collation).map_err(from_plan)?;
        let plan = stages::analysed(&self.state, plan).map_err(from_plan)?;
        let (plan, decided) = settle(plan, literals, &self.state).map_err(from_plan)?;
        let mut settled = Vec::with_capacity(decided.constants.len());
        for each in decided.constants {
            settled.push(match each {
                RunConstant::Literal(number) => RunConstant::Literal(number),
                RunConstant::Constant(constant) => RunConstant::Constant(constant),
                RunConstant::Query(query, is_exists) => {
                    RunConstant::Query(self.made(query).await?, is_exists)
                }
            });
        }
        let mut queries = Vec::with_capacity(decided.queries.len());
        for CorrelatedQuery { plan, is_exists, slots } in decided.queries {
            queries.push(CorrelatedQuery { plan: self.made(plan).await?, is_exists, slots });
        }
        let plan = self.made(plan).await?;
        if self.context.planning.has_read_session() {
            // A time that is compared with a date is one of the current day.
            return Err(Error::unsupported("a plan with values of one statement that is kept"));
        }
        Ok(KeptPlan { plan, settled, queries })
    }
}

/// Replaces these values in a plan and returns them beside it, after the literals with these numbers.
fn settle(
    plan: LogicalPlan,
    literals: Vec<usize>,
    state: &PlanState,
) -> PlanResult<(LogicalPlan, RunValues)> {
    let constants = literals.into_iter().map(RunConstant::Literal).collect();
    let mut decided = RunValues { constants, ..RunValues::default() };
    let plan = decided.taken_of(plan, state)?;
    Ok((plan, decided))
}

impl RunValues {
    fn taken_of(&mut self, plan: LogicalPlan, state: &PlanState) -> PlanResult<LogicalPlan> {
        let plan = replaced(plan, &mut |expr| {
            let Some(UncorrelatedSubquery { plan, is_exists }) = uncorrelated(expr)? else {
                return Ok(None);
            };
            let query = self.taken_of(plan, state)?;
            self.constants.push(RunConstant::Query(query, is_exists));
            self.newest(expr).map(Some)
        })?;
        let plan = replaced(plan, &mut |expr| {
            let Expr::ScalarFunction(call) = expr else { return Ok(None) };
            let from = self.slots;
            let Some(query) = correlated(call, from)? else { return Ok(None) };
            self.slots += call.args.len();
            let (slots, plan) = (from..self.slots, stages::analysed(state, query.plan)?);
            let plan = self.taken_of(plan, state)?;
            self.queries.push(CorrelatedQuery { plan, is_exists: query.is_exists, slots });
            let number = self.queries.len() - 1;
            Ok(Some(settled::query(number, &query.field, call.args.clone())))
        })?;
        let planning = PhysicalPlanningContext::default();
        replaced(plan, &mut |expr| {
            if !is_of_statement(expr) {
                return Ok(None);
            }
            let properties = state.execution_props();
            let filled = filled_in(expr.clone())?.data;
            let constant =
                create_physical_expr(&filled, &DFSchema::empty(), properties, &planning)?;
            self.constants.push(RunConstant::Constant(constant));
            self.newest(expr).map(Some)
        })
    }

    /// A function that reads the last constant.
    fn newest(&self, expr: &Expr) -> PlanResult<Expr> {
        let field = expr.to_field(&DFSchema::empty())?.1;
        Ok(settled::value(ValueSlot::Run(self.constants.len() - 1), &field))
    }
}

/// The plan with each outermost expression replaced for which `new` returns another.
fn replaced(
    plan: LogicalPlan,
    new: &mut dyn FnMut(&Expr) -> PlanResult<Option<Expr>>,
) -> PlanResult<LogicalPlan> {
    let done = plan.transform_whole(|node| {
        let names = NamePreserver::new(&node);
        node.transform_expressions(|expr| {
            let name = names.save(&expr);
            let new = expr.transform_down(|expr| {
                let Some(new) = new(&expr)? else { return Ok(Transformed::no(expr)) };
                Ok(Transformed::new(new, true, TreeNodeRecursion::Jump))
            })?;
            let (new, is_new) = (name.restore(new.data), new.transformed);
            Ok(Transformed::new(new, is_new, TreeNodeRecursion::Continue))
        })
    })?;
    Ok(done.data)
}

/// Whether an expression has a value of the statement, such as the clock's, and is constant otherwise.
fn is_of_statement(expr: &Expr) -> bool {
    let (mut asks, mut is_constant) = (false, true);
    // The closure never fails.
    let _ = expr.apply(|each| {
        match each {
            Expr::ScalarFunction(call) => {
                asks |= is_per_statement(call.name());
                is_constant &= !each.is_volatile_node() || call.name() == settled::NAME;
            }
            Expr::Placeholder(_) => is_constant &= is_place(each),
            Expr::Literal(..)
            | Expr::BinaryExpr(_)
            | Expr::Cast(_)
            | Expr::Negative(_)
            | Expr::Case(_) => {}
            _ => is_constant = false,
        }
        Ok(if is_constant { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    asks && is_constant
}
