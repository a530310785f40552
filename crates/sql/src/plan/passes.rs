//! Runs the rules for logical plans. DataFusion's own loops check the plan before and after: those checks visit a
//! subquery twice for each query that contains it, so their time doubles with each level, and views with `EXISTS` over
//! views with `EXISTS` took minutes. Plans of deeply nested subqueries take the loops here, which do not check.

use datafusion::{
    common::{
        config::ConfigOptions,
        tree_node::{Transformed, TreeNodeRecursion, TreeNodeRewriter},
    },
    error::Result as PlanResult,
    execution::SessionState as PlanState,
    logical_expr::{Expr, LogicalPlan},
    optimizer::{ApplyOrder, Optimizer, OptimizerConfig, OptimizerRule},
};

use crate::nodes::{TreeNode, WholePlan};

/// The deepest nesting of subqueries for DataFusion's own loops.
const MAX_NESTED: usize = 2;

/// The plan after the analyzer rules.
pub(super) fn analysed(
    state: &PlanState,
    plan: LogicalPlan,
    options: &ConfigOptions,
) -> PlanResult<LogicalPlan> {
    if !is_deep(&plan)? {
        return state.analyzer().execute_and_check(plan, options, |_, _| {});
    }
    let mut plan = plan;
    for rule in &state.analyzer().rules {
        plan = rule.analyze(plan, options).map_err(|error| error.context(rule.name()))?;
    }
    Ok(plan)
}

/// The plan after the optimizer rules.
pub(super) fn optimised(state: &PlanState, plan: LogicalPlan) -> PlanResult<LogicalPlan> {
    let optimizer = state.optimizer();
    if !is_deep(&plan)? {
        return optimizer.optimize(plan, state, |_, _| {});
    }
    let mut plan = plan;
    let mut rules = optimizer.rules.iter();
    while nesting(&plan)? > 0 {
        let Some(rule) = rules.next() else { return Ok(plan) };
        plan = applied(rule.as_ref(), plan, state)?;
    }
    // Without subqueries the checks cost nothing. The rest of this pass, then the other passes.
    let mut once = state.clone();
    once.config_mut().options_mut().optimizer.max_passes = 1;
    let rest = Optimizer::with_rules(rules.cloned().collect());
    let plan = rest.optimize(plan, &once, |_, _| {})?;
    optimizer.optimize(plan, state, |_, _| {})
}

fn applied(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    state: &PlanState,
) -> PlanResult<LogicalPlan> {
    let done = match rule.apply_order() {
        Some(order) => plan.rewrite_with_subqueries(&mut EachNode { order, rule, config: state }),
        None => rule.rewrite(plan, state),
    };
    match done {
        Ok(done) => Ok(done.data),
        Err(error) => Err(error.context(format!("Optimizer rule '{}' failed", rule.name()))),
    }
}

/// Applies a rule to each node.
struct EachNode<'r> {
    order: ApplyOrder,
    rule: &'r dyn OptimizerRule,
    config: &'r dyn OptimizerConfig,
}

impl TreeNodeRewriter for EachNode<'_> {
    type Node = LogicalPlan;

    fn f_down(&mut self, node: LogicalPlan) -> PlanResult<Transformed<LogicalPlan>> {
        match self.order {
            ApplyOrder::TopDown => self.rule.rewrite(node, self.config),
            ApplyOrder::BottomUp => Ok(Transformed::no(node)),
        }
    }

    fn f_up(&mut self, node: LogicalPlan) -> PlanResult<Transformed<LogicalPlan>> {
        match self.order {
            ApplyOrder::BottomUp => self.rule.rewrite(node, self.config),
            ApplyOrder::TopDown => Ok(Transformed::no(node)),
        }
    }
}

fn is_deep(plan: &LogicalPlan) -> PlanResult<bool> {
    Ok(nesting(plan)? > MAX_NESTED)
}

/// How deeply subqueries are nested within expressions of a plan.
fn nesting(plan: &LogicalPlan) -> PlanResult<usize> {
    let mut deepest = 0;
    plan.apply(|node| {
        node.apply_to_expressions(|expr| {
            expr.apply(|each| {
                let subquery = match each {
                    Expr::ScalarSubquery(subquery) => subquery,
                    Expr::Exists(exists) => &exists.subquery,
                    Expr::InSubquery(within) => &within.subquery,
                    Expr::SetComparison(compared) => &compared.subquery,
                    _ => return Ok(TreeNodeRecursion::Continue),
                };
                deepest = deepest.max(1 + nesting(&subquery.subquery)?);
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(deepest)
}
