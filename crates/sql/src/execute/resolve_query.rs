//! Makes a query ready to be planned: its names, its views, the arguments of AGAINST, the tables that it reads.

use std::sync::Arc;

use datafusion::{catalog::TableProvider, sql::sqlparser::ast};

use super::{against, run::ResolvedQuery, views};
use crate::{
    Error, Result,
    blocking::run_blocking_if_long,
    meaning::{RewriteSettings, RunLiteral, mark_run_literals, rewrite},
    parse::Source,
    plan::{Planner, QueryClass, has_joins, has_straight_joins, is_light, normalise_recursive},
    resolve::{
        InheritedOrder, Resolved, SessionCatalog, asked_of_agents, refuse_without_wait, resolve,
    },
    scan::EngineTable,
    state::SessionState,
};

/// The purpose for which a query is resolved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// A client's SELECT.
    Run,
    /// A SELECT inside another statement.
    Within,
    Keep,
    Explain,
}

impl ResolvedQuery {
    /// Resolves a SELECT that is part of another statement.
    pub(super) async fn of(
        session: &SessionState,
        query: ast::Query,
        source: &Source,
    ) -> Result<Self> {
        Self::reading(session, query, source, Purpose::Within).await
    }

    /// Resolves a client's SELECT.
    pub(super) async fn new(
        session: &SessionState,
        query: ast::Query,
        source: &Source,
    ) -> Result<Self> {
        Self::reading(session, query, source, Purpose::Run).await
    }

    /// Resolves a query for EXPLAIN.
    pub(super) async fn to_explain(
        session: &SessionState,
        query: ast::Query,
        source: &Source,
    ) -> Result<Self> {
        Self::reading(session, query, source, Purpose::Explain).await
    }

    /// Resolves a query over few rows, for a cached plan in which these literals may be parameters.
    pub(super) async fn of_few(
        session: &SessionState,
        query: ast::Query,
        source: &Source,
        literals: &[RunLiteral],
    ) -> Result<Self> {
        let mut resolved = Self::reading(session, query, source, Purpose::Keep).await?;
        mark_run_literals(&mut resolved.query, literals);
        Ok(resolved)
    }

    async fn reading(
        session: &SessionState,
        mut query: ast::Query,
        source: &Source,
        purpose: Purpose,
    ) -> Result<Self> {
        if purpose == Purpose::Keep && query.settings.is_some() {
            return Err(Error::unsupported("a plan with OPTION that is kept"));
        }
        if purpose == Purpose::Within {
            refuse_without_wait(&query)?;
        }
        let (is_light, is_straight) = (is_light(&query), has_straight_joins(&query));
        Box::pin(views::describe_for(session, &query)).await?;
        // Before the argument of AGAINST is evaluated: that may read tables of other servers too.
        if let Some(asked) = asked_of_agents(&query) {
            session.ask_agents(asked);
        }
        against::settle(session, &mut query, source).await?;
        let is_client = matches!(purpose, Purpose::Run | Purpose::Explain);
        let catalog = SessionCatalog::of(session, &query);
        let catalog = if is_client { catalog.for_client() } else { catalog };
        if catalog.is_in_turn() && purpose == Purpose::Keep {
            // Types are those of the variables at that moment.
            return Err(Error::unsupported("a plan of := that is kept"));
        }
        let limit = session.variables.sql_select_limit;
        let reading = RewriteSettings {
            sql_mode: session.variables.sql_mode,
            database: session.database.clone().unwrap_or_default(),
        };
        let resolved = run_blocking_if_long(source.is_long(), || -> Result<Resolved> {
            let mut resolved = resolve(query, source, &catalog, limit)?;
            rewrite(&mut resolved.query, &reading)?;
            normalise_recursive(&mut resolved.query);
            Ok(resolved)
        });
        let resolved = resolved?;
        if purpose == Purpose::Keep {
            check_kept(&resolved, &catalog)?;
        }
        let Resolved { query, columns, tables, places, selects, searched, window, inherited_order } =
            resolved;
        let is_light = is_light && !catalog.has_remote_parts();
        let memory = session.shared.settings.max_query_memory_bytes;
        let extent =
            if purpose == Purpose::Keep { QueryClass::Cached } else { QueryClass::of(&query) };
        let tables = match has_joins(&query) {
            // A cached plan must not depend on a table's key.
            true => altered(tables, |_, table| table.without_key()),
            false => tables,
        };
        let (tables, rows) = match purpose {
            Purpose::Run | Purpose::Within => (tables, catalog.rows()),
            Purpose::Keep => (altered(tables, |relation, table| table.kept(relation)), 0),
            Purpose::Explain => {
                (altered(tables, |relation, table| table.in_plan(relation)), catalog.rows())
            }
        };
        let mut planner = Planner::new(session.context(), memory, tables, rows, extent);
        if catalog.is_in_turn() || inherited_order != InheritedOrder::None {
            planner.keep_orders();
        }
        // Variables are assigned in the order of rows. Views have STRAIGHT_JOIN too.
        if is_straight || catalog.is_in_turn() || has_straight_joins(&query) {
            planner.keep_join_order();
        }
        let planner = Arc::new(planner);
        let is_long = source.is_long();
        let shown = columns;
        Ok(Self { query, planner, shown, window, is_light, is_long, places, selects, searched })
    }
}

type Tables = Vec<(String, Arc<dyn TableProvider>)>;

/// The tables of a query, with the engine's tables replaced by `alter`.
fn altered(tables: Tables, alter: fn(&str, &EngineTable) -> EngineTable) -> Tables {
    let altered = |(name, table): (String, Arc<dyn TableProvider>)| {
        let any: &dyn std::any::Any = table.as_ref();
        let made: Option<Arc<dyn TableProvider>> =
            any.downcast_ref::<EngineTable>().map(|table| Arc::new(alter(&name, table)) as _);
        (name, made.unwrap_or(table))
    };
    tables.into_iter().map(altered).collect()
}

/// 1235 for a query whose plan cannot be cached.
fn check_kept(resolved: &Resolved, catalog: &SessionCatalog<'_>) -> Result<()> {
    let why = match () {
        // A cached plan takes the LIMIT of the statement to its tables.
        () if resolved.inherited_order == InheritedOrder::Any => {
            "a plan with the order of a query in FROM that is kept"
        }
        // SHOW META reports each run.
        () if !resolved.searched.is_empty() => "a plan of MATCH('…') that is kept",
        // Each run needs new snapshots of the other servers.
        () if catalog.has_remote_parts() => "a plan over other servers that is kept",
        () => return Ok(()),
    };
    Err(Error::unsupported(why))
}
