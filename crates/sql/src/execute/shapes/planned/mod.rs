//! Cached plans: statements over few rows, planned once for all statements of a shape. They may contain any expression,
//! equi-joins, semi-joins, groups and order.
//!
//! A statement that comes a second time is planned without its literals. Conditions that compare columns with literals,
//! and LIMIT, are taken off the syntax tree ([`pushdown`]); each run sends them to the engine with its own literals. The
//! rest is planned like any query and becomes a tree ([`tree`]) of scans, joins ([`mod@join`]) and steps over one batch
//! of rows ([`steps`], [`group`]). Each run decides which side of a join is read first: the one with fewer rows after
//! its conditions; of the other side only matching keys are read ([`read`]). Literals that are compared elsewhere are
//! parameters too ([`literals`]). All others, and the variables of the session ([`variables`]), are part of the plan, so
//! a shape may have several plans. A run over few rows stays in the thread of its connection, one over more goes to
//! the planning threads, and one over very many takes the general way ([`ScanLimits`](crate::scan::ScanLimits)).

mod by_row;
mod derived;
mod early_sort;
mod ends;
mod explain;
mod expressions;
mod from;
mod group;
mod join;
mod labels;
mod literals;
mod make;
mod one_to_one;
mod page_fill;
mod path_order;
mod planned_run;
mod pure;
mod pushdown;
mod read;
mod recursion;
mod result_order;
mod run;
#[cfg(test)]
mod search_tests;
mod searched;
mod steps;
mod subquery_columns;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_literals;
#[cfg(test)]
mod tests_of_rows;
mod trace;
mod tree;
mod vain_attempts;
mod variables;
#[cfg(test)]
mod view_tests;
mod views;
mod window;

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
};

use jiff::tz::TimeZone;
use parking_lot::RwLock;
use remora_engine::Value;
use remora_mysql::{Collation, SqlMode};

use super::{
    condition::Tests,
    parameterize::{Constants, LiteralKind},
    shape::LiteralGroup,
    table::ShapeTable,
};
use crate::{
    Column, Outcome, Reply, Result, SqlType,
    catalog::Reader,
    execute::access::Explained,
    parse::{
        Source, Statement,
        write::{ChangedQuery, SoughtRows},
    },
    plan::RunConstant,
    resolve::StatementTable,
    scan::CachedScan,
    state::SessionState,
};
use by_row::CorrelatedPlan;
use labels::Labels;
use literals::PlanLiterals;
use make::PlannedQuery;
use page_fill::PageFillEstimate;
use path_order::PathOrder;
use pushdown::MadeLiteral;
use result_order::ResultOrder;
use tree::PlanNode;
use vain_attempts::VainAttempts;
use variables::ReadVariable;
use views::NamedView;

/// The most plans of one shape.
const MAX_PLANS: usize = 8;
/// The most bytes of the texts of these plans, without literals, if there are several. Plans of longer texts take more
/// memory.
const MAX_PLANNED_BYTES: usize = 16 << 10;
/// The number of plans that a shape may make before its plans must have been used twice for each further one.
const FREE_PLANS: u32 = 4;

/// The plans of one shape.
#[derive(Default)]
pub(super) struct ShapePlans {
    /// Newest first.
    plans: RwLock<Vec<Arc<CachedPlan>>>,
    made: AtomicU32,
    used: AtomicU32,
    /// Whether the statement was parsed and has no shape of its own.
    has_no_shape: AtomicBool,
}

/// A cached plan.
pub(super) struct CachedPlan {
    /// All tables that the statement names.
    tables: Vec<ShapeTable>,
    /// All views that the statement names.
    views: Vec<NamedView>,
    meaning: PlanSettings,
    /// The literals that are part of the plan. It is used only for statements with the same values.
    fixed: Vec<(LiteralGroup, Vec<Fixed>)>,
    /// The literals that are parameters of its expressions.
    literals: PlanLiterals,
    /// The session's variables that are part of the plan, in the same way.
    variables: Vec<ReadVariable>,
    limit: Option<LiteralGroup>,
    offset: Option<LiteralGroup>,
    /// The values made of literals in conditions.
    made: Vec<MadeLiteral>,
    reads: Vec<Read>,
    root: PlanNode,
    /// The scan whose rows decide the order of the result, and that order, if the engine has it. Steps and joins keep
    /// the order of that scan's rows.
    order: Option<ResultOrder>,
    /// The path of documents whose values decide the order of the result.
    by_path: Option<PathOrder>,
    /// Whether a scan has a text condition.
    searches: bool,
    /// The literals of each MATCH … AGAINST whose score is wanted.
    scored: Vec<LiteralGroup>,
    /// The constants that each run computes first, by number.
    settled: Vec<RunConstant<PlanNode>>,
    /// The correlated subqueries, by number.
    queries: Vec<CorrelatedPlan>,
    /// Whether its expressions call functions, which may read the session's context.
    calls: bool,
    /// The number of its recursive expressions.
    recursions: usize,
    columns: Vec<Column>,
    /// The names of columns that follow the statement's literals.
    labels: Labels,
    /// The number of its SELECTs.
    selects: usize,
    likely: PageFillEstimate,
    /// Runs over too many rows: the statement takes the general path then.
    vain_runs: VainAttempts,
    /// Reads of the first rows of an order whose groups did not fill the page.
    vain_walks: VainAttempts,
    /// The bytes of its text without literals.
    key_bytes: usize,
}

/// A scan of a table.
struct Read {
    scan: CachedScan,
    /// The table's index in `tables`.
    table: usize,
    /// Its place in the statement.
    place: Option<StatementTable>,
    /// The conditions that each run fills with its literals, and the index of their table.
    tests: Option<(usize, Arc<Tests>)>,
}

/// The session's variables that decide the meaning of a statement.
#[derive(PartialEq)]
struct PlanSettings {
    database: Option<String>,
    sql_mode: SqlMode,
    collation: Collation,
    time_zone: TimeZone,
    division_digits: u8,
    week_format: u8,
    max_text_bytes: u64,
    max_concat_bytes: u64,
}

/// A literal that is part of a plan.
#[derive(PartialEq)]
enum Fixed {
    Text(LiteralKind, Box<[u8]>),
    Parameter(Value),
}

impl PlanSettings {
    fn of(session: &SessionState) -> Self {
        let variables = &session.variables;
        Self {
            database: session.database.clone(),
            sql_mode: variables.sql_mode,
            collation: variables.collation_connection,
            time_zone: variables.time_zone.zone.clone(),
            division_digits: variables.div_precision_increment,
            week_format: variables.default_week_format,
            max_text_bytes: variables.max_allowed_packet,
            max_concat_bytes: variables.group_concat_max_len,
        }
    }
}

impl CachedPlan {
    fn is_current(&self, reader: &Reader) -> bool {
        self.tables.iter().all(|table| table.is_current(reader))
            && self.views.iter().all(|view| view.is_current(reader))
    }

    fn is_for(
        &self,
        meaning: &PlanSettings,
        (session, reader): (&SessionState, &Reader),
        constants: &Constants<'_>,
    ) -> bool {
        self.meaning == *meaning
            && variables::are_same(&self.variables, session)
            && self.literals.fit(constants)
            && self.labels.fit(constants)
            && self.fixed.iter().all(|(group, kept)| *kept == fixed(*group, constants))
            && self.is_current(reader)
    }
}

/// The literals of a group, in the form that plans keep.
fn fixed(group: LiteralGroup, constants: &Constants<'_>) -> Vec<Fixed> {
    let kept = constants.group(group).iter().map(|literal| match literal.kind {
        LiteralKind::Parameter => {
            let value = constants.parameters.get(literal.start);
            Fixed::Parameter(value.cloned().unwrap_or(Value::Null))
        }
        kind => {
            let bytes = constants.text.get(literal.start..literal.end).unwrap_or_default();
            Fixed::Text(kind, bytes.into())
        }
    });
    kept.collect()
}

impl ShapePlans {
    /// Whether there is a plan for the tables' current definitions.
    pub fn is_current(&self, reader: &Reader) -> bool {
        self.plans.read().iter().any(|plan| plan.is_current(reader))
    }

    /// Whether no statement of this text needs to be parsed for a shape of its own: that does not depend on literals.
    pub fn has_no_shape(&self) -> bool {
        self.has_no_shape.load(Relaxed)
    }

    /// Remembers that.
    pub fn say_that_no_shape_is_there(&self) {
        self.has_no_shape.store(true, Relaxed);
    }

    /// How often the plans were used.
    #[cfg(test)]
    pub fn uses(&self) -> u32 {
        self.used.load(Relaxed)
    }

    /// No plans yet, of a statement that has no shape of its own.
    pub fn without_shape() -> Self {
        Self { has_no_shape: AtomicBool::new(true), ..Self::default() }
    }

    /// Runs a statement of the shape. `source` gives its text if it must be planned. `None` if it takes the general
    /// path.
    pub async fn run<R: Reply>(
        &self,
        session: &mut SessionState,
        reader: &Reader,
        constants: &Constants<'_>,
        source: impl FnOnce(&SessionState) -> Option<Arc<Source>>,
        reply: &mut R,
    ) -> Result<Option<Outcome>> {
        let query = PlannedQuery::Statement;
        let plan = self.plan_for(session, reader, constants, query, source).await;
        let Some(plan) = plan else { return Ok(None) };
        let outcome = run::run(session, reader, &plan, constants, reply).await?;
        self.used.fetch_add(u32::from(outcome.is_some()), Relaxed);
        Ok(outcome)
    }

    /// The rows of a query that finds rows for a statement. `None` if it takes the general path, which tells the labels of
    /// its columns too.
    pub async fn rows(
        &self,
        session: &mut SessionState,
        reader: &Reader,
        constants: &Constants<'_>,
        source: &Arc<Source>,
        found: &SoughtRows,
    ) -> Result<Option<Vec<Vec<Value>>>> {
        let (query, source) =
            (PlannedQuery::Found(found), |_: &SessionState| Some(Arc::clone(source)));
        let plan = self.plan_for(session, reader, constants, query, source).await;
        let Some(plan) = plan else { return Ok(None) };
        let has_labels =
            |column: &Column| matches!(column.kind, SqlType::Bit(_) | SqlType::Enum | SqlType::Set);
        if plan.columns.iter().any(has_labels) {
            return Ok(None);
        }
        let rows = run::found(session, reader, &plan, constants).await?;
        self.used.fetch_add(u32::from(rows.is_some()), Relaxed);
        Ok(rows)
    }

    /// The plan for a query with these literals, cached or new; `None` if it has none.
    async fn plan_for(
        &self,
        session: &mut SessionState,
        reader: &Reader,
        constants: &Constants<'_>,
        query: PlannedQuery<'_>,
        source: impl FnOnce(&SessionState) -> Option<Arc<Source>>,
    ) -> Option<Arc<CachedPlan>> {
        let meaning = PlanSettings::of(session);
        let found = {
            let plans = self.plans.read();
            let of = (&*session, reader);
            plans.iter().find(|plan| plan.is_for(&meaning, of, constants)).map(Arc::clone)
        };
        match found {
            Some(plan) => Some(plan),
            None => self.make(session, reader, constants, (query, meaning), source).await,
        }
    }

    /// The accesses of a statement's tables, and its number of SELECTs; `None` if it takes the general path. Runs the
    /// plan.
    pub async fn explain(
        session: &mut SessionState,
        reader: &Reader,
        constants: &Constants<'_>,
        source: &Arc<Source>,
        changed: Option<&ChangedQuery>,
    ) -> Result<Option<Explained>> {
        match Self::made(session, reader, constants, source, changed).await {
            Some(plan) if plan.tables.is_empty() => Ok(None),
            Some(plan) => run::explain(session, reader, plan, constants).await,
            None => Ok(None),
        }
    }

    /// Runs a statement and returns the measured steps, one line each; `None` if it takes the general path.
    pub async fn analyze(
        session: &mut SessionState,
        reader: &Reader,
        constants: &Constants<'_>,
        source: &Arc<Source>,
    ) -> Result<Option<Vec<String>>> {
        match Self::made(session, reader, constants, source, None).await {
            Some(plan) if plan.tables.is_empty() => Ok(None),
            Some(plan) => run::analyze(session, reader, plan, constants).await,
            None => Ok(None),
        }
    }

    async fn made(
        session: &mut SessionState,
        reader: &Reader,
        constants: &Constants<'_>,
        source: &Arc<Source>,
        changed: Option<&ChangedQuery>,
    ) -> Option<Arc<CachedPlan>> {
        let statement = Statement { source: Arc::clone(source), parameters: constants.parameters };
        let meaning = PlanSettings::of(session);
        let query = changed.map_or(PlannedQuery::Statement, PlannedQuery::Changed);
        let planning = (&statement, query);
        make::plan(session, planning, reader, constants, meaning).await.map(Arc::new)
    }

    /// Plans the statement; `None` if that does not pay off or the plan cannot be cached.
    async fn make(
        &self,
        session: &mut SessionState,
        reader: &Reader,
        constants: &Constants<'_>,
        (query, meaning): (PlannedQuery<'_>, PlanSettings),
        source: impl FnOnce(&SessionState) -> Option<Arc<Source>>,
    ) -> Option<Arc<CachedPlan>> {
        let (made, used) = (self.made.fetch_add(1, Relaxed), self.used.load(Relaxed));
        if made >= FREE_PLANS.saturating_add(used / 2) {
            self.made.fetch_sub(1, Relaxed);
            return None;
        }
        let statement = Statement { source: source(session)?, parameters: constants.parameters };
        let planning = (&statement, query);
        let Some(plan) = make::plan(session, planning, reader, constants, meaning).await else {
            // Count the failure too, so that planning is not tried again and again.
            self.made.fetch_add(1, Relaxed);
            return None;
        };
        let plan = Arc::new(plan);
        let mut plans = self.plans.write();
        plans.retain(|plan| plan.is_current(reader));
        let most = (MAX_PLANNED_BYTES / plan.key_bytes.max(1)).clamp(1, MAX_PLANS);
        plans.truncate(most - 1);
        plans.insert(0, Arc::clone(&plan));
        Some(plan)
    }
}
