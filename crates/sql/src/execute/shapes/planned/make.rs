//! A statement becomes a plan that is kept.

use datafusion::sql::sqlparser::ast::{self, Query, SetExpr, TableFactor};

use super::{
    super::{
        lift::{Constants, Lifted},
        table::Table,
    },
    Meaning, Plan, fixed,
    pure::is_pure,
    steps::{self, Stepped, stepped},
    taken::Taken,
};
use crate::{
    Column,
    catalog::Reader,
    execute::{hinted_limit, marks, run::Query as Planning},
    parse::Statement,
    plan::Extent,
    state::SessionState,
};

/// Longest text of which plans are kept: a longer one costs less to plan than to run, or nests deep.
const MAX_TEXT_BYTES: usize = 2_048;

/// Plans a statement; `None` if it cannot be kept. What is wrong with it is told by the general way.
pub(super) async fn plan(
    session: &mut SessionState,
    statement: &Statement<'_>,
    reader: &Reader,
    constants: &Constants<'_>,
    meaning: Meaning,
) -> Option<Plan> {
    let source = &statement.source;
    let is_plain = source.text.len() <= MAX_TEXT_BYTES
        && marks(source).next().is_none()
        && hinted_limit(source).is_none();
    if !is_plain {
        return None;
    }
    // Places in the text are those of this statement, which may have stood behind blanks.
    let mut lifted = Lifted::default();
    if !lifted.read(&source.text, source.mode, session.database.as_deref()) {
        return None;
    }
    let ast::Statement::Query(mut query) = statement.parse().ok()? else { return None };
    let table = table_of(&query, session, reader)?;
    let mut taken = Taken::default();
    taken.page(&mut query, &lifted)?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        taken.conditions(select, &lifted, &table);
    }
    if !is_pure(&query) {
        return None;
    }
    let warned = session.warnings.count();
    let planned = planned(session, *query, statement).await;
    if session.warnings.count() != warned {
        // It would be warned of at each run.
        session.warnings.clear();
        return None;
    }
    let (stepped, columns) = planned?;
    let order = steps::order(&stepped, &table);
    let Stepped { scan, steps, calls } = stepped;
    let groups = 0..lifted.ends.len();
    let rest = groups.filter(|group| !taken.groups.contains(group));
    let fixed = rest.map(|group| (group, fixed(group, constants))).collect();
    let Taken { tests, limit, offset, .. } = taken;
    Some(Plan { table, meaning, fixed, tests, limit, offset, scan, steps, order, calls, columns })
}

async fn planned(
    session: &SessionState,
    query: Query,
    statement: &Statement<'_>,
) -> Option<(Stepped, Vec<Column>)> {
    let planning = Planning::of_few(session, query, &statement.source).await.ok()?;
    let (plan, columns) = planning.direct(session).await.ok()??;
    Some((stepped(&plan)?, columns))
}

/// The table of a query that is of one table of the engine, and locks nothing.
fn table_of(query: &Query, session: &SessionState, reader: &Reader) -> Option<Table> {
    if Extent::of(query) != Extent::OneTable || !query.locks.is_empty() {
        return None;
    }
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let [from] = select.from.as_slice() else { return None };
    let TableFactor::Table { name, alias, args: None, .. } = &from.relation else { return None };
    let names: Option<Vec<&str>> =
        name.0.iter().map(|part| Some(part.as_ident()?.value.as_str())).collect();
    let (database, table) = match names?.as_slice() {
        [table] => (session.database.as_deref(), *table),
        [database, table] => (Some(*database), *table),
        _ => return None,
    };
    let alias = alias.as_ref().map(|alias| alias.name.value.as_str());
    let table = Table::of((database, table), alias, &session.shared, reader)?;
    (from.joins.is_empty() && !table.is_changed_by(session)).then_some(table)
}
