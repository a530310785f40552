//! From a resolved query to a physical plan: the context of DataFusion's planner, and what runs its rules.

use std::sync::{Arc, atomic::AtomicBool};

use datafusion::{
    arrow::datatypes::{DataType, SchemaRef},
    common::{TableReference, config::ConfigOptions},
    datasource::provider_as_source,
    error::{DataFusionError, Result as PlanResult},
    execution::SessionState as PlanState,
    logical_expr::{
        AggregateUDF, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource, WindowUDF,
        planner::{ContextProvider, ExprPlanner},
    },
    physical_plan::ExecutionPlan,
    sql::{
        planner::{NullOrdering, ParserOptions, SqlToRel},
        sqlparser::ast,
    },
};
use rustc_hash::FxHashMap;

use super::{
    best, direct, first, first_rows, functions, late,
    measured::{self, MeasuredStep},
    passes,
    recursion::WorkingTable,
    run_literals::filled,
    stages::{analysed, logical, made_of, physical_of},
    watch,
};
use crate::{Result, error::from_plan, state::Context};

/// Plans one statement.
pub(crate) struct Planner {
    pub(super) state: PlanState,
    pub(super) context: Context,
    pub(super) tables: FxHashMap<String, Arc<dyn TableSource>>,
}

impl Planner {
    /// Keeps the ORDER BY of queries in FROM, which the planner otherwise drops if there is no
    /// LIMIT.
    pub(crate) fn keep_orders(&mut self) {
        let options = self.state.config_mut().options_mut();
        options.sql_parser.enable_subquery_sort_elimination = false;
    }

    /// Keeps joins in the order in which the statement names tables.
    pub(crate) fn keep_join_order(&mut self) {
        self.context.keeps_join_order = true;
        self.state.config_mut().options_mut().extensions.insert(self.context.clone());
    }

    /// The plan of a query, not optimised.
    pub(crate) fn plan(&self, query: ast::Query) -> Result<LogicalPlan> {
        let options = ParserOptions::new()
            .with_enable_ident_normalization(false)
            .with_parse_float_as_decimal(true)
            .with_default_null_ordering(NullOrdering::NullsMin);
        let planner = SqlToRel::new_with_options(self, options);
        let statement = ast::Statement::Query(Box::new(query));
        planner.sql_statement_to_plan(statement).map_err(from_plan)
    }

    /// The columns of a query, found without a physical plan.
    pub(crate) fn schema(&self, query: ast::Query) -> Result<SchemaRef> {
        let plan = analysed(&self.state, self.plan(query)?).map_err(from_plan)?;
        let plan = passes::optimised(&self.state, plan).map_err(from_plan)?;
        Ok(Arc::clone(plan.schema().inner()))
    }

    /// The physical plan. Subqueries whose values it needs have run.
    pub(crate) async fn physical_plan(&self, query: ast::Query) -> Result<Arc<dyn ExecutionPlan>> {
        self.plan_seeing(query, &mut Ok).await
    }

    /// Like [`Self::physical_plan`], and the plans of the subqueries that have run.
    pub(crate) async fn physical_plans(
        &self,
        query: ast::Query,
    ) -> Result<(Arc<dyn ExecutionPlan>, Vec<Arc<dyn ExecutionPlan>>)> {
        let mut subqueries = Vec::new();
        let mut see = |plan: Arc<dyn ExecutionPlan>| {
            subqueries.push(Arc::clone(&plan));
            Ok(plan)
        };
        let plan = self.plan_seeing(query, &mut see).await?;
        Ok((plan, subqueries))
    }

    async fn plan_seeing(
        &self,
        query: ast::Query,
        see: first::See<'_>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = {
            let _planning = self.context.planning.begin();
            analysed(&self.state, self.plan(query)?).map_err(from_plan)?
        };
        let plan = first::computed(plan, &self.state, &self.context, see).await;
        let plan = plan.map_err(from_plan)?;
        let _planning = self.context.planning.begin();
        let plan = made_of(plan, &self.state).await.map_err(from_plan)?;
        let plan = best::best(plan).and_then(late::late).map_err(from_plan)?;
        first_rows::first_rows(plan).map_err(from_plan)
    }

    /// The physical plan: made directly for one table, by the optimizer otherwise.
    pub(super) async fn made(&self, plan: LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        let whole = filled(plan.clone()).map_err(from_plan)?;
        if let Some(made) = direct::made(&whole, &self.state).map_err(from_plan)? {
            return Ok(made);
        }
        let plan = logical(&self.state, plan).and_then(filled).map_err(from_plan)?;
        physical_of(&self.state, &plan).await.map_err(from_plan)
    }

    /// A physical plan that stops when the statement is interrupted.
    pub(crate) async fn watched_plan(&self, query: ast::Query) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self.physical_plan(query).await?;
        watch::watched(plan, &self.context).map_err(from_plan)
    }

    /// Like [`Self::watched_plan`], with each step measured.
    pub(crate) async fn measured_plan(
        &self,
        query: ast::Query,
        describe: impl Fn(&Arc<dyn ExecutionPlan>) -> String + Send + Sync,
    ) -> Result<(Arc<dyn ExecutionPlan>, Vec<MeasuredStep>)> {
        let mut within = Vec::new();
        let mut see = |plan: Arc<dyn ExecutionPlan>| {
            let (plan, steps) = measured::measured(&plan, &describe)?;
            within.extend(steps);
            Ok(plan)
        };
        let plan = self.plan_seeing(query, &mut see).await?;
        let (plan, mut steps) = measured::measured(&plan, &describe).map_err(from_plan)?;
        steps.extend(within);
        Ok((watch::watched(plan, &self.context).map_err(from_plan)?, steps))
    }

    /// Whether the statement must stop.
    pub(crate) fn is_over(&self) -> bool {
        self.context.is_over()
    }

    /// A flag that tells the statement's functions that it has ended.
    pub(crate) fn ended(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.context.ended)
    }

    /// The planner state.
    pub(crate) fn state(&self) -> &PlanState {
        &self.state
    }
}

impl ContextProvider for Planner {
    fn get_table_source(&self, name: TableReference) -> PlanResult<Arc<dyn TableSource>> {
        let found = self.tables.get(name.table()).cloned();
        found.ok_or_else(|| DataFusionError::Plan(format!("table {name} was not resolved")))
    }

    fn create_cte_work_table(
        &self,
        name: &str,
        schema: SchemaRef,
    ) -> PlanResult<Arc<dyn TableSource>> {
        Ok(provider_as_source(Arc::new(WorkingTable::new(name, schema))))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        self.state.expr_planners()
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        // An interrupted statement gets no table, which ends its planning.
        if self.is_over() {
            return None;
        }
        functions::scalar(name, &self.context)
    }

    fn get_higher_order_meta(&self, _name: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        functions::aggregate(name)
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        functions::window(name)
    }

    fn get_variable_type(&self, _names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.state.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udaf_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udwf_names(&self) -> Vec<String> {
        Vec::new()
    }
}
