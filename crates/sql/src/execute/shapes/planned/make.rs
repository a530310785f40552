//! Makes a cached plan of a statement.

use std::sync::atomic::AtomicU32;

use datafusion::sql::sqlparser::ast::Query;
use futures::future::BoxFuture;
use remora_engine::SortKey;

use super::{
    super::{
        condition::Tests,
        parameterize::{Constants, ParameterizedText},
        shape::LiteralGroup,
    },
    CachedPlan, PlanSettings, Read,
    by_row::CorrelatedPlan,
    derived, fixed,
    from::PlanTables,
    literals::PlanLiterals,
    page_fill::PageFillEstimate,
    path_order::PathOrder,
    pure::is_pure,
    pushdown::PushedConditions,
    result_order,
    searched::{gives_scores, scored, texts_of},
    tree::{PlanNode, Tree, tree},
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
    let (parameterized, mut query) = read(session, statement, query)?;
    let views = NamedView::all_of(&mut query, session, reader)?;
    let tables = PlanTables::of(&mut query, session, reader)?;
    let variables = variables::read_by(&query, session)?;
    derived::move_conditions(&mut query, &parameterized, &tables);
    let mut taken = PushedConditions::default();
    taken.page(&mut query, &parameterized)?;
    taken.conditions(&mut query, (&parameterized, constants), &tables);
    let scored = scored(&query, &parameterized)?;
    taken.groups.extend(texts_of(&scored));
    if !is_pure(&query) {
        return None;
    }
    let literals = PlanLiterals::of(&query, &parameterized, constants, &taken.groups);
    let planned = planned_without_warnings(session, query, statement, literals).await;
    let Planned { tree, columns, places, selects, literals } = planned?;
    let of_scan = |scan: usize| tables.of_relation(tree.scans.get(scan)?.relation()?, &places);
    let table = |scan: usize| tables.all.get(of_scan(scan)?);
    let order = result_order::order(&tree, &tree.root, table);
    let of = |scan: usize| {
        let table = of_scan(scan)?;
        let (_, tests) = taken.tests.iter().find(|(it, _)| *it == table)?;
        Some((tests, tables.all.get(table)?))
    };
    if !gives_scores(&tree.scans, &scored, order.as_ref(), of, constants) {
        return None;
    }
    let by_path = PathOrder::of(&tree, &tree.root, table);
    let orders = tree.queries.iter().map(|it| result_order::first_of(&tree, &it.plan, table));
    let orders: Vec<_> = orders.collect();
    let is_fixed = |group: &LiteralGroup| !taken.groups.contains(group) && !literals.has(*group);
    let rest = (0..parameterized.ends.len()).filter(is_fixed);
    let fixed = rest.map(|group| (group, fixed(group, constants))).collect();
    let PushedConditions { tests, limit, offset, made, .. } = taken;
    let searches = tests.iter().any(|(_, tests)| !tests.texts.is_empty());
    let scored = texts_of(&scored).collect();
    let Tree { scans, root, settled, queries, calls, recursions } = tree;
    let queries = queries.into_iter().zip(orders).map(correlated).collect();
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
        selects,
        likely: PageFillEstimate::default(),
        given_up: AtomicU32::new(0),
        key_bytes: parameterized.key.len(),
    })
}

fn correlated(
    (query, order): (plan::CorrelatedQuery<PlanNode>, Option<(Vec<SortKey>, usize)>),
) -> CorrelatedPlan {
    let plan::CorrelatedQuery { plan: part, is_exists, slots } = query;
    CorrelatedPlan { part, is_exists, slots, order }
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

/// The scans with the conditions taken off their tables. `None` if a table is scanned twice, because its conditions
/// would reach one scan only, or if a table with conditions is not scanned.
fn reads(
    scans: Vec<CachedScan>,
    tables: &PlanTables,
    mut tests: Vec<(usize, Tests)>,
    places: &[StatementTable],
) -> Option<Vec<Read>> {
    let mut reads: Vec<Read> = Vec::with_capacity(scans.len());
    for scan in scans {
        let table = tables.of_relation(scan.relation()?, places)?;
        if reads.iter().any(|read| read.table == table) {
            return None;
        }
        let tests_of = tests.iter().position(|(of, _)| *of == table);
        let place = places.iter().find(|place| scan.relation() == Some(&place.unique)).cloned();
        let tests = tests_of.map(|at| tests.swap_remove(at));
        reads.push(Read { scan, table, place, tests });
    }
    tests.is_empty().then_some(reads)
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
