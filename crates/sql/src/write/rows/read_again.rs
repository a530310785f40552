//! The table that a statement changes must not be read by one of its subqueries: error 1093. What a derived table or a
//! WITH reads is read before, and is permitted.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Query, TableFactor, Visitor};
use remora_mysql::ErrorCode;

use super::named::{NamedTable, full_name};
use crate::{
    Error, Result,
    parse::{Visit, write::ChangedRows},
    state::SessionState,
};

/// Checks the subqueries of an UPDATE or DELETE.
pub(super) fn check_rows<'n>(
    session: &'n SessionState,
    changed: impl Iterator<Item = &'n NamedTable>,
    rows: &'n ChangedRows,
    assigned: impl Iterator<Item = &'n Expr>,
) -> Result<()> {
    let mut reads = Reads::new(session, changed);
    let with = rows.with.iter().flat_map(|with| &with.cte_tables);
    reads.hidden.extend(with.map(|cte| cte.alias.name.value.clone()));
    let order = rows.order.iter().map(|order| &order.expr);
    reads.check(rows.condition.iter().chain(order).chain(assigned))?;
    let joins = rows.tables.iter().flat_map(|table| &table.joins);
    let mut joins = joins.map(|join| join.join_operator.visit(&mut reads));
    match joins.find(ControlFlow::is_break) {
        Some(ControlFlow::Break(alias)) => Err(refused(&alias)),
        _ => Ok(()),
    }
}

/// Checks the subqueries of expressions for a table that gets rows. They may read it by another name.
pub(super) fn check_expressions<'e>(
    session: &SessionState,
    changed: &NamedTable,
    expressions: impl Iterator<Item = &'e Expr>,
) -> Result<()> {
    let mut reads = Reads::new(session, std::iter::once(changed));
    reads.only_by_name = true;
    reads.check(expressions)
}

/// Checks those of ON DUPLICATE KEY UPDATE beside given rows. Here they may not read the table by another name either,
/// because its name stands for the row that is changed.
pub(super) fn check_assigned<'e>(
    session: &SessionState,
    changed: &NamedTable,
    expressions: impl Iterator<Item = &'e Expr>,
) -> Result<()> {
    Reads::new(session, std::iter::once(changed)).check(expressions)
}

fn refused(alias: &str) -> Error {
    let message = format!("You can't specify target table '{alias}' for update in FROM clause");
    Error::new(ErrorCode::ReadsItsTarget, message)
}

/// Looks for the changed tables in subqueries. It breaks with the alias of one.
struct Reads<'r> {
    session: &'r SessionState,
    /// The changed tables. Temporary tables are not among them.
    changed: Vec<&'r NamedTable>,
    /// The queries of WITH, by their addresses, which stay the same during the walk.
    with: Vec<*const Query>,
    /// The names of these, which hide tables.
    hidden: Vec<String>,
    /// Whether a table may be read under another name than that of the changed one.
    only_by_name: bool,
    /// How many derived tables and queries of WITH the walk is in.
    apart: usize,
}

impl<'r> Reads<'r> {
    fn new(session: &'r SessionState, changed: impl Iterator<Item = &'r NamedTable>) -> Self {
        let is_stored = |named: &&NamedTable| session.transaction.temporary(&named.name).is_none();
        let changed = changed.filter(is_stored).collect();
        Self {
            session,
            changed,
            with: Vec::new(),
            hidden: Vec::new(),
            only_by_name: false,
            apart: 0,
        }
    }

    fn check<'e>(&mut self, mut expressions: impl Iterator<Item = &'e Expr>) -> Result<()> {
        match expressions.try_for_each(|expr| expr.visit(self)) {
            ControlFlow::Break(alias) => Err(refused(&alias)),
            ControlFlow::Continue(()) => Ok(()),
        }
    }

    fn is_with(&self, query: &Query) -> bool {
        self.with.iter().any(|with| std::ptr::eq(*with, query))
    }
}

impl Visitor for Reads<'_> {
    type Break = String;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        self.apart += usize::from(self.is_with(query));
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.with.push(&raw const *cte.query);
            self.hidden.push(cte.alias.name.value.clone());
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        self.apart -= usize::from(self.is_with(query));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<String> {
        match factor {
            TableFactor::Derived { .. } => self.apart += 1,
            TableFactor::Table { name, alias, .. } if self.apart == 0 => {
                let alias = alias.as_ref().map(|alias| alias.name.value.as_str());
                let is_with = name.0.len() == 1
                    && self
                        .hidden
                        .iter()
                        .any(|hidden| name.to_string().trim_matches('`') == hidden);
                let read = full_name(self.session, name).ok().filter(|_| !is_with);
                let is_it = |changed: &&&NamedTable| {
                    let is_named = alias.is_none_or(|alias| alias == changed.alias);
                    Some(&changed.name) == read.as_ref() && (is_named || !self.only_by_name)
                };
                let found = self.changed.iter().find(is_it);
                if let Some(found) = found {
                    return ControlFlow::Break(found.alias.clone());
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<String> {
        self.apart -= usize::from(matches!(factor, TableFactor::Derived { .. }));
        ControlFlow::Continue(())
    }
}
