//! The columns of views, for statements that list columns. Planning determines them, because the tables below may have
//! changed.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{ObjectName, Query, Visitor};
use remora_mysql::LexMode;

use super::run;
use crate::{
    Access, Column, Result,
    catalog::{TableName, View},
    parse::{
        Source, Visit,
        write::{query_of_all, table_named},
    },
    show,
    state::SessionState,
};

/// Determines the columns of the view that a SHOW or DESCRIBE statement names.
pub(crate) async fn describe_shown(session: &SessionState, source: &Source) -> Result<()> {
    let reader = session.reader();
    if !View::are_there(&reader) {
        return Ok(());
    }
    match show::table_of_columns(session, source) {
        Some(name) if View::is_there(&reader, &name) => describe(session, vec![name]).await,
        _ => Ok(()),
    }
}

/// Determines the columns of all views, if a query reads them from `information_schema`.
pub(super) async fn describe_for(session: &SessionState, query: &Query) -> Result<()> {
    let reader = session.reader();
    if !View::are_there(&reader) || query.visit(&mut Seeking).is_continue() {
        return Ok(());
    }
    let may = |name: &TableName| session.identity.may(&name.database, &name.table, Access::Read);
    describe(session, View::names(&reader).filter(may).collect()).await
}

struct Seeking;

impl Visitor for Seeking {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let last = relation.0.last().and_then(|part| part.as_ident());
        match last.is_some_and(|last| last.value.eq_ignore_ascii_case("COLUMNS")) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

async fn describe(session: &SessionState, names: Vec<TableName>) -> Result<()> {
    {
        let mut described = session.described_views.lock();
        if described.is_busy {
            // The SELECT of a view may itself read the columns of views.
            return Ok(());
        }
        described.columns.clear();
        described.is_busy = true;
    }
    let mut found = Vec::with_capacity(names.len());
    let mut ended = Ok(());
    for name in names {
        ended = session.check_interrupted();
        if ended.is_err() {
            break;
        }
        let columns = Box::pin(columns(session, &name)).await;
        found.push((name, columns));
    }
    let mut described = session.described_views.lock();
    described.is_busy = false;
    described.columns.extend(found);
    ended
}

async fn columns(session: &SessionState, name: &TableName) -> Result<Vec<Column>> {
    let query =
        query_of_all(table_named(&[name.database.as_str(), name.table.as_str()], None), None);
    let source = Source::new(Vec::new(), Vec::new(), LexMode::default());
    run::ResolvedQuery::of(session, query, &source).await?.columns(session).await
}
