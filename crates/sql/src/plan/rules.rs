//! Wraps each planning rule so that it first checks whether the statement was interrupted. Dozens of rules may each
//! walk a large plan.

use std::sync::Arc;

use datafusion::{
    common::{config::ConfigOptions, tree_node::Transformed},
    error::{DataFusionError, Result as PlanResult},
    logical_expr::LogicalPlan,
    optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule},
    physical_optimizer::{PhysicalOptimizerContext, PhysicalOptimizerRule},
    physical_plan::ExecutionPlan,
};

use super::watch::check;

/// A wrapped rule of any kind.
#[derive(Debug)]
struct InterruptibleRule<R: ?Sized>(Arc<R>);

type AnyAnalyzerRule = dyn AnalyzerRule + Send + Sync;
type AnyOptimizerRule = dyn OptimizerRule + Send + Sync;
type AnyPhysicalRule = dyn PhysicalOptimizerRule + Send + Sync;

/// Analyzer rules.
pub(super) fn analyzing(rules: Vec<Arc<AnyAnalyzerRule>>) -> Vec<Arc<AnyAnalyzerRule>> {
    rules
        .into_iter()
        .map(|rule| Arc::new(InterruptibleRule(rule)) as Arc<AnyAnalyzerRule>)
        .collect()
}

/// Logical optimizer rules.
pub(super) fn optimizing(rules: Vec<Arc<AnyOptimizerRule>>) -> Vec<Arc<AnyOptimizerRule>> {
    rules
        .into_iter()
        .map(|rule| Arc::new(InterruptibleRule(rule)) as Arc<AnyOptimizerRule>)
        .collect()
}

/// Physical optimizer rules.
pub(super) fn running(rules: Vec<Arc<AnyPhysicalRule>>) -> Vec<Arc<AnyPhysicalRule>> {
    rules
        .into_iter()
        .map(|rule| Arc::new(InterruptibleRule(rule)) as Arc<AnyPhysicalRule>)
        .collect()
}

impl AnalyzerRule for InterruptibleRule<AnyAnalyzerRule> {
    fn analyze(&self, plan: LogicalPlan, options: &ConfigOptions) -> PlanResult<LogicalPlan> {
        check(options)?;
        self.0.analyze(plan, options)
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}

impl OptimizerRule for InterruptibleRule<AnyOptimizerRule> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>, DataFusionError> {
        check(&config.options())?;
        self.0.rewrite(plan, config)
    }
}

impl PhysicalOptimizerRule for InterruptibleRule<AnyPhysicalRule> {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        options: &ConfigOptions,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        check(options)?;
        self.0.optimize(plan, options)
    }

    fn optimize_with_context(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &dyn PhysicalOptimizerContext,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        check(context.config_options())?;
        self.0.optimize_with_context(plan, context)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}
