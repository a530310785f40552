//! Resolves the names in an expression and in its subqueries.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, Ident, Query, Values, VisitorMut,
};
use remora_mysql::{ErrorCode, messages};

use super::{
    Env, Resolver,
    assigned::{self, AssignmentScope},
    attributes, factors, highlight, keywords,
    places::{SelectKind, SelectPosition},
    scope::{Clause, Scope},
    sets, sphinx, sphinx_functions,
};
use crate::{
    Error, Result,
    meaning::COUNT_NUMBERS,
    parse::{VisitMut, visit_expressions, visit_own_expressions},
};

/// The aggregate functions.
const AGGREGATES: [&str; 25] = [
    COUNT_NUMBERS,
    "any_value",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "count",
    "group_concat",
    "json_arrayagg",
    "json_objectagg",
    "max",
    "min",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "sum",
    "var_pop",
    "var_samp",
    "variance",
    "st_collect",
    "first_value",
    "last_value",
    "nth_value",
    "grouping",
];

/// An alias of a selected expression.
#[derive(Clone, Debug)]
pub(super) struct SelectAlias {
    /// In lower case.
    pub name: String,
    /// The resolved expression.
    pub expr: Expr,
}

/// The clause of an expression, and what its names may mean there.
#[derive(Clone, Copy)]
pub(super) struct ClauseContext<'a> {
    pub clause: Clause,
    /// Aliases that can be named here.
    pub aliases: &'a [SelectAlias],
    /// Whether aliases take precedence over columns.
    pub aliases_first: bool,
    /// The group keys. In HAVING a column that is a group key takes precedence over an alias of the same name.
    pub groups: &'a [Expr],
    /// Whether aggregates are permitted.
    pub aggregates: bool,
}

impl ClauseContext<'_> {
    /// A clause that knows neither aliases nor aggregates.
    pub(super) fn plain(clause: Clause) -> Self {
        Self { clause, aliases: &[], aliases_first: false, groups: &[], aggregates: false }
    }
}

impl Resolver<'_> {
    /// Resolves an expression.
    pub(super) fn expr(
        &mut self,
        expr: &mut Expr,
        scope: &Scope<'_>,
        env: Env<'_>,
        place: ClauseContext<'_>,
    ) -> Result<()> {
        if matches!(place.clause, Clause::Where | Clause::On | Clause::Having) {
            super::rows::in_condition(expr)?;
        }
        self.nodes(expr, scope, env, place)
    }

    /// Resolves all expressions below a node.
    pub(super) fn nodes(
        &mut self,
        node: &mut impl VisitMut,
        scope: &Scope<'_>,
        env: Env<'_>,
        place: ClauseContext<'_>,
    ) -> Result<()> {
        let taken = Vec::new();
        let mut walk =
            Walk { resolver: self, scope, env, place, aggregates: 0, taken, is_exists: false };
        match node.visit(&mut walk) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }
}

struct Walk<'a, 'c> {
    resolver: &'a mut Resolver<'c>,
    scope: &'a Scope<'a>,
    env: Env<'a>,
    place: ClauseContext<'a>,
    /// The nesting depth in aggregates.
    aggregates: usize,
    /// Resolved subqueries that are to be put back.
    taken: Vec<Query>,
    /// Whether the last expression is EXISTS, whose query follows.
    is_exists: bool,
}

impl VisitorMut for Walk<'_, '_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let mut taken = std::mem::replace(query, empty());
        let in_exists = std::mem::take(&mut self.is_exists);
        let standing = SelectPosition { in_exists, ..SelectPosition::of(SelectKind::Subquery) };
        let own = self.scope_for_queries();
        let scope = own.as_ref().unwrap_or(self.scope);
        let env = Env { scope: Some(scope), standing, ..self.env };
        if let Err(error) = self.resolver.query(&mut taken, env, None) {
            return ControlFlow::Break(error);
        }
        self.taken.push(taken);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        if let Some(taken) = self.taken.pop() {
            *query = taken;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Function(function) = expr {
            super::matching::unit_as_text(function);
        }
        if let Some(said) = super::quantified::rewritten(expr) {
            *expr = said;
        }
        match self.said_in_sphinxs(expr) {
            Ok(Some(said)) => *expr = said,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        match super::rows::rewritten(expr) {
            Ok(Some(said)) => {
                if let Err(error) = self.resolver.count_said(&said) {
                    return ControlFlow::Break(error);
                }
                *expr = said;
            }
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        self.is_exists = matches!(expr, Expr::Exists { .. });
        if !matches!(self.place.clause, Clause::Fields | Clause::Order)
            && let Some(error) = misplaced_window(expr)
        {
            return ControlFlow::Break(error);
        }
        if is_aggregate(expr) {
            if self.aggregates > 0 || !self.place.aggregates {
                let message = messages::INVALID_GROUP_FUNCTION;
                return ControlFlow::Break(Error::new(ErrorCode::InvalidGroupFunction, message));
            }
            self.aggregates += 1;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if is_aggregate(expr) {
            self.aggregates = self.aggregates.saturating_sub(1);
            if self.is_of_outer_query(expr) {
                let what = "an aggregate of a query around the one that it stands in";
                return ControlFlow::Break(Error::unsupported(what));
            }
        }
        match self.one(expr) {
            Ok(Some(meant)) => *expr = meant,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

impl<'a> Walk<'a, '_> {
    /// The scope of a query here, if that is another than the expression's: with aliases of selected expressions.
    fn scope_for_queries(&self) -> Option<Scope<'a>> {
        let is_behind = matches!(self.place.clause, Clause::Having | Clause::Order);
        (is_behind && !self.place.aliases.is_empty()).then(|| Scope {
            relations: self.scope.relations.clone(),
            visible: self.scope.visible.clone(),
            parent: self.scope.parent,
            aliases: self.place.aliases,
        })
    }
}

impl Walk<'_, '_> {
    /// Whether a resolved aggregate names columns of outer queries only. MySQL then takes it for an aggregate of the
    /// outer query.
    fn is_of_outer_query(&self, aggregate: &Expr) -> bool {
        let (mut own, mut outer) = (false, false);
        let _: ControlFlow<()> = visit_expressions(aggregate, |each| {
            if let Expr::CompoundIdentifier(name) = each
                && let [relation, _] = name.as_slice()
            {
                let unique = &relation.value;
                own |= self.scope.relations.iter().any(|known| known.unique == *unique);
                outer |= self
                    .scope
                    .parent
                    .is_some_and(|parent| parent.planned_relation(unique).is_some());
            }
            ControlFlow::Continue(())
        });
        outer && !own
    }

    /// Whether assignments are evaluated in a defined order here: only in select items.
    fn is_in_turn(&self) -> bool {
        let is_selected = matches!(self.place.clause, Clause::Fields) && self.aggregates == 0;
        let may = match self.resolver.turn {
            AssignmentScope::Any => true,
            AssignmentScope::WithoutTable => self.scope.relations.is_empty(),
            AssignmentScope::Never => false,
        };
        may && is_selected && self.scope.parent.is_none()
    }

    fn one(&mut self, expr: &mut Expr) -> Result<Option<Expr>> {
        match expr {
            Expr::Identifier(ident) if ident.quote_style.is_none() && is_variable(ident) => {
                if self.resolver.is_sphinx() {
                    sphinx::check_variable(&ident.value)?;
                }
                match self.resolver.variable(&ident.value)? {
                    None if self.is_in_turn() => Ok(Some(self.resolver.read_in_turn(&ident.value))),
                    None => Err(Error::unsupported(assigned::REFUSED)),
                    meant => Ok(meant),
                }
            }
            Expr::BinaryOp { left, op: BinaryOperator::Assignment, right } => {
                if !self.is_in_turn() {
                    return Err(Error::unsupported(assigned::REFUSED));
                }
                self.resolver.assigned_in_turn(left, right).map(Some)
            }
            Expr::Identifier(ident) => self.noted_name(std::slice::from_ref(ident)).map(Some),
            Expr::CompoundIdentifier(name) => self.noted_name(name).map(Some),
            Expr::MatchAgainst { columns, match_value, opt_search_modifier } => {
                let mut names = Vec::with_capacity(columns.len());
                for column in columns {
                    let parts: Vec<Ident> =
                        column.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
                    names.push(self.noted_name(&parts)?);
                }
                super::matching::check_modifier(opt_search_modifier.as_ref())?;
                let mode = opt_search_modifier.as_ref().map(ToString::to_string);
                Ok(Some(super::matching::call(names, match_value, mode)))
            }
            Expr::Function(function) if keywords::is_weight(function) => {
                match self.place.clause {
                    // The keyword query is known only once the condition is resolved.
                    Clause::Where => return Ok(None),
                    Clause::On => return Err(Error::unsupported("WEIGHT() in ON: WHERE may ask")),
                    _ => {}
                }
                Ok(Some(self.resolver.weight.clone().unwrap_or_else(keywords::one)))
            }
            Expr::Function(function) if super::matching::is_of_paths(function) => {
                super::matching::at_paths(function).map(Some)
            }
            Expr::Function(function) => match keywords::call(function, self.scope)? {
                Some(meant) => Ok(Some(meant)),
                None => match self.shown(function)? {
                    None if self.resolver.is_sphinx() => Ok(self.called_in_sphinxs(function)),
                    meant => Ok(meant),
                },
            },
            expr if self.resolver.is_sphinx() => {
                sphinx_functions::arithmetic(expr, &self.resolver.tables);
                Ok(sphinx::division(expr).or_else(|| attributes::condition(expr)))
            }
            _ => Ok(None),
        }
    }

    /// Rewrites an expression that means something else in Sphinx's dialect, before its parts are
    /// resolved.
    fn said_in_sphinxs(&self, expr: &Expr) -> Result<Option<Expr>> {
        if !self.resolver.is_sphinx() {
            return match expr {
                Expr::CompoundFieldAccess { .. } => Err(self.resolver.refused_bracket()),
                _ => Ok(None),
            };
        }
        if !matches!(expr, Expr::CompoundFieldAccess { .. }) {
            return Ok(sphinx_functions::ahead(expr));
        }
        let Some((column, part)) = attributes::accessed(expr) else {
            return Err(self.resolver.refused_bracket());
        };
        let found = self.name(std::slice::from_ref(&column))?;
        if !attributes::is_document(&found, &self.resolver.tables) {
            return Err(self.scope.unknown(&[column], self.place.clause));
        }
        Ok(Some(part))
    }

    /// The meaning of a function in Sphinx's dialect, if it differs.
    fn called_in_sphinxs(&self, function: &Function) -> Option<Expr> {
        let column = |name: &str| {
            let found = self.scope.find_here(&[Ident::new(name)], self.place.clause);
            found.ok().flatten()
        };
        sphinx_functions::call(function, &self.resolver.tables, column)
    }

    /// The part of a document that a name with dots means in Sphinx's dialect.
    fn part_of_document(&self, name: &[Ident]) -> Result<Option<Expr>> {
        let Some((column, names)) = name.split_first() else { return Ok(None) };
        if names.is_empty() || !self.resolver.is_sphinx() {
            return Ok(None);
        }
        let found = self.scope.find_here(std::slice::from_ref(column), self.place.clause)?;
        let is_document = |found: &Expr| attributes::is_document(found, &self.resolver.tables);
        Ok(found.filter(is_document).map(|found| attributes::part(found, names)))
    }

    /// HIGHLIGHT, SNIPPET or PACKEDFACTORS, if the function is one of them.
    fn shown(&self, function: &Function) -> Result<Option<Expr>> {
        let Resolver { tables, weight, .. } = &*self.resolver;
        if let Some(meant) = highlight::call(function, self.scope, tables, weight.as_ref())? {
            return Ok(Some(meant));
        }
        if let Some(meant) = factors::call(function, weight.as_ref(), self.place.clause)? {
            return Ok(Some(meant));
        }
        match sets::distinct(function, tables) {
            Some(meant) => Ok(Some(meant)),
            None => keywords::snippet(function, tables),
        }
    }

    fn noted_name(&self, name: &[Ident]) -> Result<Expr> {
        let meant = self.name(name)?;
        self.resolver.note_name(name, &meant, self.scope);
        Ok(meant)
    }

    fn name(&self, name: &[Ident]) -> Result<Expr> {
        let ClauseContext { clause, aliases_first, .. } = self.place;
        let alias = || self.alias(name);
        let inside = self.aggregates > 0;
        if aliases_first
            && !inside
            && let Some(found) = self.grouped(name).or_else(alias)
        {
            return Ok(found);
        }
        if let Some(found) = self.scope.find_here(name, clause)? {
            return Ok(found);
        }
        if let Some(found) = alias() {
            return Ok(found);
        }
        let outer = self.scope.parent.map_or(Ok(None), |parent| parent.find(name, clause))?;
        match outer {
            Some(found) => Ok(found),
            None => match self.part_of_document(name)? {
                Some(part) => Ok(part),
                None => Err(self.scope.unknown(name, clause)),
            },
        }
    }

    /// The group key that is a column of this name.
    fn grouped(&self, name: &[Ident]) -> Option<Expr> {
        let [name] = name else { return None };
        let lower = name.value.to_lowercase();
        let is_called = |group: &&Expr| match group {
            Expr::CompoundIdentifier(parts) => {
                parts.last().is_some_and(|last| last.value.to_lowercase() == lower)
            }
            _ => false,
        };
        self.place.groups.iter().find(is_called).cloned()
    }

    fn alias(&self, name: &[Ident]) -> Option<Expr> {
        let [name] = name else { return None };
        let lower = name.value.to_lowercase();
        let named = |alias: &&SelectAlias| alias.name == lower;
        self.place.aliases.iter().find(named).map(|alias| nested(&alias.expr))
    }
}

/// Whether it is `@x` or `@@x`.
fn is_variable(ident: &Ident) -> bool {
    ident.value.starts_with('@')
}

/// An expression in place of a name, in parentheses if it needs them.
pub(super) fn nested(expr: &Expr) -> Expr {
    match expr {
        Expr::CompoundIdentifier(_) | Expr::Identifier(_) | Expr::Value(_) | Expr::Function(_) => {
            expr.clone()
        }
        _ => Expr::Nested(Box::new(expr.clone())),
    }
}

/// Whether it is a call of an aggregate without OVER.
pub(super) fn is_aggregate(expr: &Expr) -> bool {
    matches!(expr, Expr::Function(function) if aggregates(function))
}

fn aggregates(function: &Function) -> bool {
    let name = function.name.to_string().to_lowercase();
    let windowed = matches!(name.as_str(), "first_value" | "last_value" | "nth_value" | "grouping");
    function.over.is_none() && !windowed && is_aggregate_name(&name)
}

/// Error 3593 for a window function.
fn misplaced_window(expr: &Expr) -> Option<Error> {
    let Expr::Function(function) = expr else { return None };
    function.over.as_ref()?;
    let name = function.name.to_string().to_lowercase();
    Some(Error::new(ErrorCode::WindowMisplaced, messages::misplaced_window(&name)))
}

/// Errors 1111 and 3593 for what only a SELECT evaluates, aggregates and window functions, outside of the queries in an
/// expression of another statement.
pub(crate) fn check_of_one_row(expr: &Expr) -> Result<()> {
    // ANY_VALUE is a function of one row to MySQL.
    let is_any = |it: &Function| it.name.to_string().eq_ignore_ascii_case("any_value");
    let error = |expr: &Expr| {
        if is_aggregate(expr) && !matches!(expr, Expr::Function(it) if is_any(it)) {
            let message = messages::INVALID_GROUP_FUNCTION;
            return Some(Error::new(ErrorCode::InvalidGroupFunction, message));
        }
        misplaced_window(expr)
    };
    let each = |expr: &Expr| error(expr).map_or(ControlFlow::Continue(()), ControlFlow::Break);
    match visit_own_expressions(expr, each) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// Whether a function of this name, in lower case, is an aggregate.
pub(crate) fn is_aggregate_name(name: &str) -> bool {
    AGGREGATES.contains(&name)
}

/// A placeholder for a subquery that was taken out.
pub(super) fn empty() -> Query {
    super::query_of(datafusion::sql::sqlparser::ast::SetExpr::Values(Values {
        explicit_row: false,
        value_keyword: false,
        rows: Vec::new(),
    }))
}
