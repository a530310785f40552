//! Name resolution: relations and columns get unique names, `*` is expanded, aliases and positions are replaced by
//! their expressions, and USING and NATURAL joins get conditions. Errors about names have MySQL's wording.
//!
//! This module does not use types; `meaning` does.

mod assigned;
mod attributes;
mod best_of_groups;
mod clauses;
mod common_tables;
mod distinct;
mod expr;
mod expression_keys;
mod factors;
mod from;
mod grouping;
mod highlight;
mod hints;
mod implied_order;
mod items;
mod json_table;
mod keywords;
mod limit;
mod matching;
mod places;
mod quantified;
mod recursion;
mod requested_tables;
mod rows;
mod scope;
mod scores;
mod select;
mod sets;
mod sphinx;
mod sphinx_functions;
mod tables;
mod values;
mod view_text;
mod views;
mod windows;

pub(crate) use assigned::plain_name;
pub(crate) use clauses::refuse_without_wait;
pub(crate) use expr::{check_of_one_row, is_aggregate_name};
pub(crate) use from::names_dual;
pub(crate) use grouping::is_grouped;
pub(crate) use implied_order::add_implied_order;
pub(crate) use items::texts;
pub(crate) use limit::InheritedOrder;
pub(crate) use matching::literal;
pub(crate) use places::{SelectKind, StatementTable, number_of, number_tables};
pub(crate) use select::MAX_COLUMNS;
pub(crate) use sphinx::{asked_of_agents, max_query_time, most_matches};
pub(crate) use tables::SessionCatalog;
pub(crate) use view_text::{check_column_name, view_text};
pub(crate) use views::expanded;

use std::{cell::RefCell, collections::HashSet, ops::ControlFlow, sync::Arc};

use datafusion::{
    catalog::TableProvider,
    sql::sqlparser::ast::{Expr, OrderByExpr, OrderByKind, Query, SetExpr, SetQuantifier, Visitor},
};

use crate::{
    Error, Result,
    catalog::{ExpressionSettings, TableName, View},
    parse::{Source, Visit, visit_expressions, write::query_of},
    show::RequestedTables,
};

use assigned::{AssignmentList, AssignmentScope};
use expr::ClauseContext;
use hints::Hint;
use places::SelectPosition;
use remora_engine::TextQuery;
use remora_mysql::ErrorCode;
use requested_tables::RequiredValues;
use scope::{Clause, NamedColumn, Scope, duplicate_column, quoted, unknown_column};

/// The deepest nesting of queries.
const MAX_DEPTH: usize = 64;
/// The deepest nesting of subqueries in expressions.
const MAX_WITHIN: usize = 12;

/// The session as the resolver sees it.
pub(crate) trait Catalog {
    /// The table of this name; errors 1146 and 1142.
    fn table(&self, name: &TableName) -> Result<Arc<dyn TableProvider>>;

    /// Like `table`, but a table of `information_schema` has only rows about the requested tables.
    fn table_with(
        &self,
        name: &TableName,
        requested_tables: &RequestedTables,
    ) -> Result<Arc<dyn TableProvider>>;

    /// The view of this name, if no table has the name; error 1142.
    fn view(&self, name: &TableName) -> Result<Option<View>>;

    /// The current database; error 1046.
    fn database(&self) -> Result<&str>;

    /// The value of `@name` or `@@name`; `None` if it is read when the statement runs.
    fn variable(&self, name: &str) -> Result<Option<remora_engine::Value>>;

    /// The value of `@name` before the statement, if it was ever set.
    fn before(&self, name: &str) -> Option<remora_engine::Value>;

    /// Whether plain columns beside groups are an error.
    fn only_full_group_by(&self) -> bool;

    /// Whether statements are in Sphinx's dialect.
    fn is_sphinx(&self) -> bool;

    /// The session's variables that decide the values of expressions.
    fn expression_settings(&self) -> ExpressionSettings;
}

/// A query with resolved names.
pub(crate) struct Resolved {
    /// The query. It calls its tables as `tables` does.
    pub query: Query,
    /// The names of its columns and of their tables, for clients.
    pub columns: Vec<ClientColumn>,
    /// The tables it reads, by their names in plans.
    pub tables: Vec<(String, Arc<dyn TableProvider>)>,
    /// The places of its tables, in order.
    pub places: Vec<StatementTable>,
    /// The number of SELECTs.
    pub selects: usize,
    /// The keyword queries, with the engine's names of their tables.
    pub searched: Vec<(String, TextQuery)>,
    /// Offset and limit of a query with SQL_CALC_FOUND_ROWS. The query itself returns all rows.
    pub window: Option<(u64, u64)>,
    /// The order of a query in FROM that rows have, here or within.
    pub inherited_order: InheritedOrder,
}

/// A result column, for clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientColumn {
    /// Its name.
    pub name: String,
    /// The alias of its table; empty for expressions.
    pub table: String,
    /// The column's name in its table; empty for expressions.
    pub column: String,
}

/// Resolves a query. `limit` is the default limit (`sql_select_limit`).
pub(crate) fn resolve(
    mut query: Query,
    source: &Source,
    catalog: &dyn Catalog,
    limit: u64,
) -> Result<Resolved> {
    sphinx::seed(&mut query);
    let settings = query.settings.take();
    if catalog.is_sphinx() {
        let settings = settings.as_deref();
        sphinx::limit(&mut query, sphinx::most_matches(settings), sphinx::cutoff(settings))?;
    }
    add_implied_order(&mut query);
    let mut resolver = resolver(&query, source, catalog);
    let window = limit::take_window(&mut query, limit)?;
    let env = Env { scope: None, common: None, standing: SelectPosition::default() };
    let columns = resolver.query(&mut query, env, None)?;
    let columns = columns.into_iter().map(|column| column.shown).collect();
    let Resolver { mut tables, places, selects, turned, inherited_order, .. } = resolver;
    if turned > 0 && window.is_some() {
        return Err(Error::unsupported(":= beside SQL_CALC_FOUND_ROWS"));
    }
    expression_keys::replaced(&mut query, &mut tables, catalog.expression_settings());
    let searched = scores::replaced(&mut query, &mut tables)?;
    Ok(Resolved { query, columns, tables, places, selects, searched, window, inherited_order })
}

/// A new resolver.
fn resolver<'c>(query: &Query, source: &'c Source, catalog: &'c dyn Catalog) -> Resolver<'c> {
    Resolver {
        catalog,
        source,
        used: HashSet::new(),
        tables: Vec::new(),
        depth: 0,
        parts: 0,
        copied: 0,
        said: 0,
        has_queries: has_queries(query) || views::names_view(query, catalog),
        named: HashSet::new(),
        places: Vec::new(),
        selects: 0,
        hints: Vec::new(),
        wanted: Vec::new(),
        weight: None,
        views: 0,
        within: Vec::new(),
        reached: Vec::new(),
        notes: None,
        turn: AssignmentScope::Any,
        assigned: HashSet::new(),
        turned: 0,
        list: None,
        inherited_order: InheritedOrder::None,
        determining: Vec::new(),
    }
}

/// The most SELECTs and tables in copies of common table expressions. A chain of expressions that each use the one
/// before twice doubles with each step.
const MAX_COPIED: usize = 1_000;

/// The most expressions in rewritten row comparisons. A rewrite contains its operands twice, so
/// nested ones double with each level; with more, planning would take seconds.
const MAX_REWRITTEN_EXPRS: usize = 8_000;

struct Resolver<'c> {
    catalog: &'c dyn Catalog,
    source: &'c Source,
    /// The names of relations in the plan.
    used: HashSet<String>,
    tables: Vec<(String, Arc<dyn TableProvider>)>,
    depth: usize,
    /// The number of SELECTs and tables in the plan so far.
    parts: usize,
    /// How many of those are in copies of common table expressions.
    copied: usize,
    /// The number of expressions in rewritten comparisons.
    said: usize,
    /// Whether the query has subqueries.
    has_queries: bool,
    /// The common table expressions used so far, by their names in plans.
    named: HashSet<String>,
    /// The places of tables.
    places: Vec<StatementTable>,
    /// The number of SELECTs so far.
    selects: usize,
    /// The order that SELECTs without one have from a query in their FROM.
    inherited_order: InheritedOrder,
    /// The columns of the last query that all its others depend on, by their names in plans; empty if there are none.
    determining: Vec<String>,
    /// The index hints of the current SELECT.
    hints: Vec<Hint>,
    /// The conditions of the current SELECT on columns of `information_schema`.
    wanted: Vec<RequiredValues>,
    /// The value of WEIGHT() in the current SELECT.
    weight: Option<Expr>,
    /// The number of views used, including those inside views.
    views: usize,
    /// The views being resolved, outermost first.
    within: Vec<TableName>,
    /// The relations that JSON_TABLEs of the current FROM depend on, by their names in plans.
    reached: Vec<String>,
    /// Records the meanings of names in the query of a new view.
    notes: Option<RefCell<view_text::Notes>>,
    /// Whether the current SELECT may assign variables.
    turn: AssignmentScope,
    /// The variables assigned so far.
    assigned: HashSet<String>,
    /// How many SELECTs that read tables assign variables.
    turned: usize,
    /// The select list of the last resolved SELECT, if it assigns variables.
    list: Option<AssignmentList>,
}

/// A column of a query.
#[derive(Clone, Debug)]
struct Output {
    /// Its name in plans, unique in the query.
    planned: String,
    shown: ClientColumn,
}

/// The surroundings of a query.
#[derive(Clone, Copy)]
struct Env<'a> {
    scope: Option<&'a Scope<'a>>,
    common: Option<&'a VisibleCte<'a>>,
    standing: SelectPosition,
}

/// Visible common table expressions, as a list from the innermost outwards.
struct VisibleCte<'a> {
    alias: String,
    /// Its name in plans.
    unique: String,
    columns: Vec<NamedColumn>,
    /// The names in plans of columns that all others depend on; empty if there are none.
    determining: Vec<String>,
    /// The number of SELECTs and tables in its plan.
    parts: usize,
    order: InheritedOrder,
    outer: Option<&'a VisibleCte<'a>>,
}

impl VisibleCte<'_> {
    fn find(&self, name: &str) -> Option<&VisibleCte<'_>> {
        match self.alias == name {
            true => Some(self),
            false => self.outer.and_then(|outer| outer.find(name)),
        }
    }
}

impl Resolver<'_> {
    /// Resolves a query. `names` are its column names, if given.
    fn query(
        &mut self,
        query: &mut Query,
        env: Env<'_>,
        names: Option<&[String]>,
    ) -> Result<Vec<Output>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(too_nested());
        }
        // Subqueries in expressions are planned several times for each enclosing query.
        if std::iter::successors(env.scope, |scope| scope.parent).nth(MAX_WITHIN).is_some() {
            return Err(too_nested());
        }
        limit::normalise(query, self.depth > 1)?;
        clauses::take_locks(query, self.depth > 1)?;
        let with = query.with.take();
        let result = match with {
            Some(with) => self.with(with, query, env, names),
            None => self.body(query, env, names),
        };
        self.depth -= 1;
        result
    }

    fn body(
        &mut self,
        query: &mut Query,
        env: Env<'_>,
        names: Option<&[String]>,
    ) -> Result<Vec<Output>> {
        let mut order = match query.order_by.take() {
            Some(mut order) => match &mut order.kind {
                OrderByKind::Expressions(exprs) => std::mem::take(exprs),
                OrderByKind::All(_) => Vec::new(),
            },
            None => Vec::new(),
        };
        let columns = match query.body.as_mut() {
            SetExpr::Select(select) => {
                let columns = self.select(select, &mut order, env, names)?;
                if query.limit_clause.is_some() {
                    self.inherit_any_order();
                }
                if let Some(list) = self.list.take() {
                    list.wrap(query, order);
                    return Ok(columns);
                }
                columns
            }
            SetExpr::Query(inner) if order.is_empty() && query.limit_clause.is_none() => {
                self.query(inner, env, names)?
            }
            body => {
                let turn = std::mem::replace(&mut self.turn, AssignmentScope::Never);
                let columns = self.set_expr(body, env, names)?;
                self.determining.clear();
                self.turn = turn;
                self.outputs_in(&mut order, &columns, env)?;
                columns
            }
        };
        limit::set_order(query, order);
        Ok(columns)
    }

    /// From now on an order that is inherited is not only that of first rows which are all read.
    fn inherit_any_order(&mut self) {
        if self.inherited_order == InheritedOrder::OfFirstRows {
            self.inherited_order = InheritedOrder::Any;
        }
    }

    fn set_expr(
        &mut self,
        body: &mut SetExpr,
        env: Env<'_>,
        names: Option<&[String]>,
    ) -> Result<Vec<Output>> {
        self.parts += 1;
        match body {
            SetExpr::Select(select) => {
                let columns = self.select(select, &mut Vec::new(), env, names)?;
                self.inherit_any_order();
                Ok(columns)
            }
            SetExpr::Query(query) => self.query(query, env, names),
            SetExpr::SetOperation { left, right, set_quantifier, .. } => {
                if *set_quantifier == SetQuantifier::Distinct {
                    *set_quantifier = SetQuantifier::None;
                }
                let mut columns = self.set_expr(left, env, names)?;
                let in_exists = env.standing.in_exists;
                let standing =
                    SelectPosition { in_exists, ..SelectPosition::of(SelectKind::Union) };
                let others = self.set_expr(right, Env { standing, ..env }, None)?;
                same_count(&columns, &others)?;
                // Columns of a UNION belong to no table.
                for Output { shown, .. } in &mut columns {
                    shown.table.clear();
                    shown.column.clone_from(&shown.name);
                }
                Ok(columns)
            }
            SetExpr::Values(_) => self.values(body, env, names),
            SetExpr::Table(table) => {
                let mut select = values::select_all(table)?;
                let columns = self.select(&mut select, &mut Vec::new(), env, names)?;
                *body = SetExpr::Select(Box::new(select));
                Ok(columns)
            }
            _ => Err(Error::unsupported(&*body)),
        }
    }

    /// ORDER BY of a UNION: names and positions of its columns.
    fn outputs_in(
        &mut self,
        order: &mut [OrderByExpr],
        columns: &[Output],
        env: Env<'_>,
    ) -> Result<()> {
        let mut scope = Scope::new(env.scope);
        scope.visible = columns
            .iter()
            .map(|column| scope::Visible {
                name: NamedColumn {
                    shown: column.shown.name.clone(),
                    planned: column.shown.name.to_lowercase(),
                    hidden: false,
                },
                expr: Expr::Identifier(quoted(&column.planned)),
                table: String::new(),
            })
            .collect();
        for each in order {
            match select::position(&each.expr) {
                Some(position) => {
                    let column = position.checked_sub(1).and_then(|at| columns.get(at));
                    let unknown = || unknown_column(&position.to_string(), Clause::Order);
                    each.expr = Expr::Identifier(quoted(&column.ok_or_else(unknown)?.planned));
                }
                None => {
                    self.expr(&mut each.expr, &scope, env, ClauseContext::plain(Clause::Order))?
                }
            }
        }
        Ok(())
    }

    /// A name that no relation of the plan has yet.
    fn unique(&mut self, alias: &str) -> String {
        // In a subquery, a column with the name of an outer relation would take precedence. So relations get names that
        // no column has.
        let mut number = 1;
        let mut name = match self.has_queries {
            true => format!("{alias}#{number}"),
            false => alias.to_owned(),
        };
        while !self.used.insert(name.clone()) {
            number += 1;
            name = format!("{alias}#{number}");
        }
        name
    }

    /// Counts a use of a common table expression. Each use but the first copies its plan. Error 1038 if there are too
    /// many copies.
    fn count_copy(&mut self, common: &VisibleCte<'_>) -> Result<()> {
        self.parts += common.parts;
        if self.named.insert(common.unique.clone()) {
            return Ok(());
        }
        self.copied += common.parts;
        if self.copied <= MAX_COPIED {
            return Ok(());
        }
        let message = format!(
            "The common table expressions that are used more than once take more than \
             {MAX_COPIED} SELECTs and tables: keep the rows of one in a temporary table"
        );
        Err(Error::new(ErrorCode::OutOfMemory, message))
    }

    /// Counts the expressions of a rewritten comparison. Error 1038 if there are too many.
    fn count_said(&mut self, said: &Expr) -> Result<()> {
        let most = MAX_REWRITTEN_EXPRS;
        let counted = visit_expressions(said, |_| {
            self.said += 1;
            if self.said > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if counted.is_continue() {
            return Ok(());
        }
        let message = "The statement compares rows with queries too deep within each other";
        Err(Error::new(ErrorCode::OutOfMemory, message))
    }

    /// A call that reads a variable at run time.
    fn read_in_turn(&self, name: &str) -> Expr {
        let before = self.catalog.before(name);
        let is_assigned = self.assigned.contains(&assigned::plain_name(name));
        assigned::read(name, before.as_ref(), is_assigned)
    }

    fn assigned_in_turn(&mut self, variable: &Expr, value: &Expr) -> Result<Expr> {
        let (made, name) = assigned::assignment(variable, value)?;
        self.assigned.insert(name);
        Ok(made)
    }

    fn variable(&self, name: &str) -> Result<Option<Expr>> {
        Ok(self.catalog.variable(name)?.as_ref().map(matching::literal))
    }
}

/// Whether a query has subqueries.
fn has_queries(query: &Query) -> bool {
    struct Counted(usize);
    impl Visitor for Counted {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.0 += 1;
            if self.0 > 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    query.visit(&mut Counted(0)).is_break()
}

/// Error 1353.
fn column_counts() -> Error {
    let message = "In definition of view, derived table or common table expression, SELECT list and column \
                   names list have different column counts";
    Error::new(ErrorCode::ViewColumns, message)
}

/// The columns of a relation; error 1060 for duplicate names.
fn named_once(columns: &[Output]) -> Result<Vec<NamedColumn>> {
    let mut seen = HashSet::new();
    let mut named = Vec::with_capacity(columns.len());
    for column in columns {
        if !seen.insert(column.shown.name.to_lowercase()) {
            return Err(duplicate_column(&column.shown.name));
        }
        named.push(NamedColumn {
            shown: column.shown.name.clone(),
            planned: column.planned.clone(),
            hidden: false,
        });
    }
    Ok(named)
}

/// Error 1222 unless both have the same number of columns.
fn same_count(columns: &[Output], others: &[Output]) -> Result<()> {
    if columns.len() == others.len() {
        return Ok(());
    }
    let message = "The used SELECT statements have a different number of columns";
    Err(Error::new(ErrorCode::UnionColumns, message))
}

/// Error 1473.
fn too_nested() -> Error {
    Error::new(ErrorCode::NestingTooDeep, "Too high level of nesting for select")
}
