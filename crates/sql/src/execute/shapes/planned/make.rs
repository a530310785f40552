//! Makes a cached plan of a statement.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::Query;
use futures::future::BoxFuture;
use jiff::tz::TimeZone;

use super::{
    super::{
        condition::Tests,
        parameterize::{Constants, ParameterizedText},
        shape::{LiteralGroup, Match},
    },
    CachedPlan, PlanSettings, Read,
    by_row::CorrelatedPlan,
    derived,
    early_sort::sort_before_queries,
    fixed,
    from::PlanTables,
    labels::{Labels, UnnamedItems},
    literals::PlanLiterals,
    page_fill::PageFillEstimate,
    path_order::PathOrder,
    pure::is_pure,
    pushdown::PushedConditions,
    result_order::{self, ResultOrder},
    searched::{gives_scores, scored, texts_of},
    tree::{PlanNode, Tree, tree},
    vain_attempts::VainAttempts,
    variables,
    views::NamedView,
};
use crate::{
    Column,
    catalog::Reader,
    execute::{hinted_limit, marks, run::ResolvedQuery as Planning},
    parse::{
        Statement,
        write::{ChangedQuery, SoughtRows},
    },
    plan,
    resolve::{StatementTable, add_implied_order},
    scan::CachedScan,
    state::SessionState,
};

/// The query of a statement that is planned.
#[derive(Clone, Copy)]
pub(super) enum PlannedQuery<'q> {
    /// The statement itself.
    Statement,
    /// The query of the rows that it changes.
    Changed(&'q ChangedQuery),
    /// A query that finds rows for it.
    Found(&'q SoughtRows),
}

/// Plans a query of a statement for the cache; `None` if it cannot be cached. Errors are left to the general path. Boxed,
/// so that crates above do not compile it for each of their replies.
pub(super) fn plan<'a>(
    session: &'a mut SessionState,
    planning: (&'a Statement<'a>, PlannedQuery<'a>),
    reader: &'a Reader,
    constants: &'a Constants<'a>,
    meaning: PlanSettings,
) -> BoxFuture<'a, Option<CachedPlan>> {
    Box::pin(made(session, planning, reader, constants, meaning))
}

async fn made(
    session: &mut SessionState,
    (statement, query): (&Statement<'_>, PlannedQuery<'_>),
    reader: &Reader,
    constants: &Constants<'_>,
    meaning: PlanSettings,
) -> Option<CachedPlan> {
    let is_statement = matches!(query, PlannedQuery::Statement);
    let (parameterized, mut query) = read(session, statement, query)?;
    let unnamed = UnnamedItems::of(&query, &parameterized);
    let views = NamedView::all_of(&mut query, session, reader)?;
    let tables = PlanTables::of(&mut query, session, reader)?;
    let variables = variables::read_by(&query, session)?;
    derived::move_conditions(&mut query, &parameterized, &tables);
    let mut taken = PushedConditions::default();
    taken.page(&mut query, &parameterized)?;
    taken.conditions(&mut query, (&parameterized, constants), (&tables, &unnamed));
    let scored = scored(&query, &parameterized)?;
    taken.groups.extend(texts_of(&scored));
    if !is_pure(&query) {
        return None;
    }
    let literals = PlanLiterals::of(&parameterized, constants, &taken.groups, &unnamed.fixed);
    let planned = planned_without_warnings(session, query, statement, literals).await;
    let Planned { mut tree, columns, places, selects, literals } = planned?;
    let labels = match is_statement {
        true => unnamed.labels(&columns, &parameterized, constants)?,
        false => Labels::default(),
    };
    let orders = (&tables, places.as_slice(), taken.tests.as_slice());
    let (order, by_path) = orders_of(&mut tree, orders, (&scored, constants), &meaning.time_zone)?;
    let is_fixed = |group: &LiteralGroup| !taken.groups.contains(group) && !literals.has(*group);
    let rest = (0..parameterized.ends.len()).filter(is_fixed);
    let fixed = rest.map(|group| (group, fixed(group, constants))).collect();
    let PushedConditions { tests, limit, offset, made, .. } = taken;
    let searches = tests.iter().any(|(_, tests)| !tests.texts.is_empty());
    let scored = texts_of(&scored).collect();
    let Tree { scans, root, settled, queries, calls, recursions } = tree;
    let queries = queries.into_iter().map(correlated).collect();
    let reads = reads(scans, &tables, tests, &places)?;
    Some(CachedPlan {
        tables: tables.all,
        views,
        meaning,
        fixed,
        literals,
        variables,
        limit,
        offset,
        made,
        reads,
        root,
        order,
        by_path,
        searches,
        scored,
        settled,
        queries,
        calls,
        recursions,
        columns,
        labels,
        selects,
        likely: PageFillEstimate::default(),
        vain_runs: VainAttempts::default(),
        vain_walks: VainAttempts::default(),
        key_bytes: parameterized.key.len(),
    })
}

/// The orders of the result that the engine has; notes in the tree what its parts need of them. `None` if scores are
/// wanted that the plan does not compute.
fn orders_of(
    tree: &mut Tree,
    (tables, places, tests): (&PlanTables, &[StatementTable], &[(usize, Tests)]),
    (scored, constants): (&[Match], &Constants<'_>),
    zone: &TimeZone,
) -> Option<(Option<ResultOrder>, Option<PathOrder>)> {
    let owner = |scan: &CachedScan| tables.of_relation(scan.relation()?, places);
    let owners: Vec<Option<usize>> = tree.scans.iter().map(owner).collect();
    let of_scan = |scan: usize| owners.get(scan).copied().flatten();
    let table = |scan: usize| tables.all.get(of_scan(scan)?);
    sort_before_queries(&mut tree.root.steps);
    result_order::note_first_rows(tree, table);
    let order = result_order::order(tree, &tree.root, table, zone);
    let of = |scan: usize| {
        let table = of_scan(scan)?;
        let (_, tests) = tests.iter().find(|(it, _)| *it == table)?;
        Some((tests, tables.all.get(table)?))
    };
    let by_path = PathOrder::of(tree, &tree.root, table);
    let is_scored = gives_scores(&tree.scans, scored, order.as_ref(), of, constants);
    is_scored.then_some((order, by_path))
}

fn correlated(query: plan::CorrelatedQuery<PlanNode>) -> CorrelatedPlan {
    let plan::CorrelatedQuery { plan: part, is_exists, slots } = query;
    CorrelatedPlan { part, is_exists, slots }
}

/// The text without its literals and the tree of a query.
fn read(
    session: &SessionState,
    statement: &Statement<'_>,
    query: PlannedQuery<'_>,
) -> Option<(ParameterizedText, Query)> {
    let source = &statement.source;
    if marks(source).next().is_some() || hinted_limit(source).is_some() {
        return None;
    }
    // Parse positions refer to this source, not to the client's text, which may begin with blanks.
    let database = session.database.as_deref();
    let parameterized = match query {
        PlannedQuery::Statement => ParameterizedText::of(source, None, database)?,
        PlannedQuery::Changed(changed) => ParameterizedText::of(source, Some(changed), database)?,
        PlannedQuery::Found(found) => {
            let mut read = ParameterizedText::default();
            read.read_found(source, found, database).then_some(read)?
        }
    };
    if !parameterized.has_key {
        return None;
    }
    let query = match query {
        PlannedQuery::Statement => {
            let mut query = statement.parse_query().ok()?;
            add_implied_order(&mut query);
            query
        }
        PlannedQuery::Changed(changed) => changed.query.clone(),
        PlannedQuery::Found(found) => found.query.clone(),
    };
    Some((parameterized, query))
}

/// The scans with the conditions taken off their tables: of a table of a common table expression that is named several
/// times, each scan. `None` if a table with conditions is not scanned.
fn reads(
    scans: Vec<CachedScan>,
    tables: &PlanTables,
    tests: Vec<(usize, Tests)>,
    places: &[StatementTable],
) -> Option<Vec<Read>> {
    let tests = tests.into_iter().map(|(table, tests)| (table, Arc::new(tests)));
    let tests: Vec<(usize, Arc<Tests>)> = tests.collect();
    let read = |scan: CachedScan| {
        let table = tables.of_relation(scan.relation()?, places)?;
        let tests = tests.iter().find(|(of, _)| *of == table).cloned();
        let place = places.iter().find(|place| scan.relation() == Some(&place.unique)).cloned();
        Some(Read { scan, table, place, tests })
    };
    let reads: Vec<Read> = scans.into_iter().map(read).collect::<Option<_>>()?;
    let is_read = |(table, _): &(usize, Arc<Tests>)| reads.iter().any(|read| read.table == *table);
    tests.iter().all(is_read).then_some(reads)
}

/// Plans a query; `None` also if that warns, because a cached plan would not repeat the warning.
async fn planned_without_warnings(
    session: &mut SessionState,
    query: Query,
    statement: &Statement<'_>,
    literals: PlanLiterals,
) -> Option<Planned> {
    let warned = session.warnings.count();
    let planned = planned(session, query, statement, literals).await;
    if session.warnings.count() != warned {
        session.warnings.clear();
        return None;
    }
    planned
}

/// Plans a query with these literals as parameters, as far as that pays off.
async fn planned(
    session: &SessionState,
    query: Query,
    statement: &Statement<'_>,
    literals: PlanLiterals,
) -> Option<Planned> {
    if literals.candidates().is_empty() {
        return planned_with(session, query, statement, literals).await;
    }
    let open = planned_with(session, query.clone(), statement, literals).await;
    match open {
        // No literal is one.
        Some(open) if open.literals.is_empty() => Some(open),
        open => {
            let fixed = planned_with(session, query, statement, PlanLiterals::default()).await?;
            let open = open.filter(|open| {
                let scans = open.tree.scans.iter().zip(&fixed.tree.scans);
                let are_all = open.tree.scans.len() == fixed.tree.scans.len();
                are_all && scans.into_iter().all(|(open, fixed)| open.seeks_like(fixed))
            });
            Some(open.unwrap_or(fixed))
        }
    }
}

async fn planned_with(
    session: &SessionState,
    query: Query,
    statement: &Statement<'_>,
    literals: PlanLiterals,
) -> Option<Planned> {
    let candidates = literals.candidates();
    let planning = Planning::of_few(session, query, &statement.source, candidates).await.ok()?;
    let (plan, columns) = planning.to_keep(session).await.ok()??;
    let (places, selects) = planning.places();
    let tree = tree(&plan)?;
    let literals = literals.taken(&tree.settled);
    Some(Planned { tree, columns, places: places.to_vec(), selects, literals })
}

/// The result of planning.
struct Planned {
    tree: Tree,
    columns: Vec<Column>,
    places: Vec<StatementTable>,
    selects: usize,
    literals: PlanLiterals,
}
