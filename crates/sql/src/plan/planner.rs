//! From a resolved query to a physical plan: the context of DataFusion's planner, and the rules that run.

use std::sync::{Arc, LazyLock, atomic::AtomicBool};

use datafusion::{
    arrow::datatypes::{DataType, SchemaRef},
    catalog::TableProvider,
    common::{TableReference, config::ConfigOptions},
    datasource::provider_as_source,
    error::{DataFusionError, Result as PlanResult},
    execution::{SessionState as PlanState, SessionStateBuilder, SessionStateDefaults},
    logical_expr::{
        AggregateUDF, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource, WindowUDF,
        planner::{ContextProvider, ExprPlanner},
    },
    optimizer::{Analyzer, AnalyzerRule},
    physical_plan::ExecutionPlan,
    prelude::SessionConfig,
    sql::{
        planner::{NullOrdering, ParserOptions, SqlToRel},
        sqlparser::ast,
    },
};
use rustc_hash::FxHashMap;

use super::{
    QueryClass, best, direct, first, functions,
    json_table::{JsonTables, NarrowedDocuments},
    keys::SidesWithoutKeys,
    late,
    lateral::Laterals,
    lazy,
    measured::{self, MeasuredStep},
    recursive::WorkingTable,
    row_by_row::RowByRowRule,
    rules, sequential_union,
    settle::{RowQuery, RunConstant, settle},
    subquery::Subqueries,
    unfold::{UnfoldPlanner, UnnestRule},
    watch,
};
use crate::{MAX_DIRECT_ROWS, Result, error::from_plan, meaning, state::Context};

/// Rows in a batch.
const BATCH_ROWS: usize = 8_192;
/// A join pushes at most this many keys of one side down to the other side. It pushes more if the tables have so many
/// rows per key that lookups cost less than reading them. Each key is held as a literal.
const MIN_JOIN_KEYS: usize = 20_000;
const MAX_JOIN_KEYS: usize = 1_000_000;
const ROWS_OF_JOIN_KEY: usize = 16;
const MAX_JOIN_KEY_BYTES: usize = 64 << 20;
/// The planner states for each extent.
static CONSTANTS: LazyLock<PlanState> = LazyLock::new(|| QueryClass::Constants.rules_of(base()));
static ONE_TABLE: LazyLock<PlanState> = LazyLock::new(|| QueryClass::OneTable.rules_of(base()));
static ANY: LazyLock<PlanState> = LazyLock::new(|| QueryClass::Any.rules_of(base()));
static KEPT: LazyLock<PlanState> = LazyLock::new(|| QueryClass::Cached.rules_of(base()));

/// A plan for many runs, with the constants that each run computes first, by number.
pub(crate) struct KeptPlan {
    pub plan: Arc<dyn ExecutionPlan>,
    pub settled: Vec<RunConstant<Arc<dyn ExecutionPlan>>>,
    /// The correlated subqueries, by number.
    pub queries: Vec<RowQuery<Arc<dyn ExecutionPlan>>>,
}

/// Plans one statement.
pub(crate) struct Planner {
    state: PlanState,
    context: Context,
    tables: FxHashMap<String, Arc<dyn TableSource>>,
}

/// The state that all statements share: rules, without functions and tables.
fn base() -> PlanState {
    let mut config = SessionConfig::new()
        .with_create_default_catalog_and_schema(false)
        .with_information_schema(false)
        .with_batch_size(BATCH_ROWS)
        .with_target_partitions(1);
    let options = config.options_mut();
    options.sql_parser.enable_ident_normalization = false;
    options.execution.enable_recursive_ctes = true;
    options.execution.skip_physical_aggregate_schema_check = true;
    options.optimizer.prefer_existing_sort = true;
    options.optimizer.hash_join_inlist_pushdown_max_distinct_values = MIN_JOIN_KEYS;
    options.optimizer.hash_join_inlist_pushdown_max_size = MAX_JOIN_KEY_BYTES;
    let mut analyzing: Vec<Arc<dyn AnalyzerRule + Send + Sync>> = vec![
        Arc::new(JsonTables),
        Arc::new(Laterals),
        Arc::new(UnnestRule),
        Arc::new(RowByRowRule),
    ];
    analyzing.extend(meaning::analyzer_rules());
    analyzing.push(Arc::new(Subqueries));
    analyzing.push(Arc::new(NarrowedDocuments));
    analyzing.push(Arc::new(SidesWithoutKeys));
    analyzing.extend(Analyzer::new().rules);
    SessionStateBuilder::new()
        .with_config(config)
        .with_analyzer_rules(rules::analyzing(analyzing))
        .with_expr_planners(SessionStateDefaults::default_expr_planners())
        .with_query_planner(Arc::new(UnfoldPlanner))
        .build()
}

impl Planner {
    /// A planner for a statement of this extent with a memory limit, the tables that it names and their total number of
    /// rows.
    pub(crate) fn new(
        context: Context,
        memory_bytes: u64,
        tables: impl IntoIterator<Item = (String, Arc<dyn TableProvider>)>,
        rows: usize,
        extent: QueryClass,
    ) -> Self {
        let mut state = match extent {
            QueryClass::Constants => CONSTANTS.clone(),
            QueryClass::OneTable => ONE_TABLE.clone(),
            QueryClass::Any => ANY.clone(),
            QueryClass::Cached => KEPT.clone(),
        };
        let partitions = match rows > MAX_DIRECT_ROWS {
            true => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            false => 1,
        };
        let mut config = state.config().clone().with_target_partitions(partitions);
        let options = config.options_mut();
        let is_kept = extent == QueryClass::Cached;
        let context = Context { is_kept, ..context };
        options.extensions.insert(context.clone());
        options.optimizer.hash_join_inlist_pushdown_max_distinct_values =
            (rows / ROWS_OF_JOIN_KEY).clamp(MIN_JOIN_KEYS, MAX_JOIN_KEYS);
        *state.config_mut() = config;
        let resources = &context.shared.resources;
        let limited = resources.environment(state.runtime_env(), memory_bytes);
        let mut state =
            SessionStateBuilder::new_from_existing(state).with_runtime_env(limited).build();
        // Functions get the context from the options that are fixed here.
        state.mark_start_execution();
        let sources = tables.into_iter();
        let tables = sources.map(|(name, table)| (name, provider_as_source(table))).collect();
        Self { state, context, tables }
    }

    /// Keeps the ORDER BY of queries in FROM, which the planner otherwise drops if there is no
    /// LIMIT.
    pub(crate) fn keep_orders(&mut self) {
        let options = self.state.config_mut().options_mut();
        options.sql_parser.enable_subquery_sort_elimination = false;
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
        best::best(plan).and_then(late::late).map_err(from_plan)
    }

    /// The plan of a query for the cache. A query of one table is planned without an optimizer, whatever the number of
    /// its rows.
    pub(crate) async fn kept_plan(&self, query: ast::Query) -> Result<KeptPlan> {
        let _planning = self.context.planning.begin();
        let plan = analysed(&self.state, self.plan(query)?).map_err(from_plan)?;
        let (plan, decided) = settle(plan, &self.state).map_err(from_plan)?;
        let mut settled = Vec::with_capacity(decided.constants.len());
        for each in decided.constants {
            settled.push(match each {
                RunConstant::Constant(constant) => RunConstant::Constant(constant),
                RunConstant::Query(query, is_exists) => {
                    RunConstant::Query(self.made(query).await?, is_exists)
                }
            });
        }
        let mut queries = Vec::with_capacity(decided.queries.len());
        for RowQuery { plan, is_exists, slots } in decided.queries {
            queries.push(RowQuery { plan: self.made(plan).await?, is_exists, slots });
        }
        Ok(KeptPlan { plan: self.made(plan).await?, settled, queries })
    }

    /// The physical plan: made directly for one table, by the optimizer otherwise.
    async fn made(&self, plan: LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        match direct::made(&plan, &self.state).map_err(from_plan)? {
            Some(made) => Ok(made),
            None => optimised(&self.state, plan).await.map_err(from_plan),
        }
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

/// The physical plan of an analysed one: made directly for a small table, by the optimizer otherwise.
pub(super) async fn made_of(
    plan: LogicalPlan,
    state: &PlanState,
) -> PlanResult<Arc<dyn ExecutionPlan>> {
    if let Some(made) = direct::planned(&plan, state)? {
        return Ok(made);
    }
    optimised(state, plan).await
}

/// The plan after the analyzer rules, which give it MySQL's meaning.
pub(crate) fn analysed(state: &PlanState, plan: LogicalPlan) -> PlanResult<LogicalPlan> {
    state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})
}

/// The physical plan by way of the optimizer.
pub(crate) async fn optimised(
    state: &PlanState,
    plan: LogicalPlan,
) -> PlanResult<Arc<dyn ExecutionPlan>> {
    let plan = state.optimizer().optimize(plan, state, |_, _| {})?;
    let optimised = watch::conditions(lazy::in_turn(plan)?)?;
    watch::check(state.config_options())?;
    let plan = state.query_planner().create_physical_plan(&optimised, state).await?;
    match state.config().target_partitions() {
        // With one target partition, each input of a UNION is still a partition of its own.
        1 => sequential_union::in_order(plan),
        _ => Ok(plan),
    }
}

/// The planner state for a plan that is made inside a running plan.
pub(crate) fn state_of(options: &ConfigOptions) -> PlanState {
    let mut state = ANY.clone();
    let mut config = state.config().clone().with_target_partitions(1);
    let Some(context) = Context::of_options(options) else {
        *state.config_mut() = config;
        return state;
    };
    config.options_mut().extensions.insert(context.clone());
    *state.config_mut() = config;
    let memory_bytes = context.shared.settings.max_query_memory_bytes;
    let limited = context.shared.resources.environment(state.runtime_env(), memory_bytes);
    let mut state = SessionStateBuilder::new_from_existing(state).with_runtime_env(limited).build();
    state.mark_start_execution();
    state
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
        let most_rounds = self.context.most_recursion_rounds;
        Ok(provider_as_source(Arc::new(WorkingTable::new(name, schema, most_rounds))))
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
