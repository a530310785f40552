//! The rules of a planner: DataFusion's and ours, for each class of queries.

use std::sync::{Arc, LazyLock};

use datafusion::{
    catalog::TableProvider,
    datasource::provider_as_source,
    execution::{SessionState as PlanState, SessionStateBuilder, SessionStateDefaults},
    optimizer::{Analyzer, AnalyzerRule},
    prelude::SessionConfig,
};

use super::{
    Planner, QueryClass,
    early_limits::EarlyLimits,
    json_table::{JsonTables, NarrowedDocuments},
    keys::SidesWithoutKeys,
    late_subqueries::LateSubqueries,
    lateral::Laterals,
    lateral_rows::LateralRowsRule,
    row_by_row::RowByRowRule,
    rules,
    subquery::Subqueries,
    unnest::{UnnestPlanner, UnnestRule},
};
use crate::{MAX_DIRECT_ROWS, meaning, state::Context};

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
        Arc::new(EarlyLimits),
        Arc::new(Laterals),
        Arc::new(UnnestRule),
        Arc::new(RowByRowRule),
    ];
    analyzing.extend(meaning::analyzer_rules());
    analyzing.push(Arc::new(LateralRowsRule));
    analyzing.push(Arc::new(LateSubqueries));
    analyzing.push(Arc::new(Subqueries));
    analyzing.push(Arc::new(NarrowedDocuments));
    analyzing.push(Arc::new(SidesWithoutKeys));
    analyzing.extend(Analyzer::new().rules);
    SessionStateBuilder::new()
        .with_config(config)
        .with_analyzer_rules(rules::analyzing(analyzing))
        .with_expr_planners(SessionStateDefaults::default_expr_planners())
        .with_query_planner(Arc::new(UnnestPlanner))
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
        let context = Context { is_kept, nested_planning: Some(LazyLock::force(&ANY)), ..context };
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
}
