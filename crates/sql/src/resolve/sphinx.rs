//! Sphinx's dialect: syntax that it shares with MySQL but that means something else.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
    OrderByExpr, Query, Select, SelectItem, SetExpr, Setting, TableFactor, TableWithJoins, Value,
    ValueWithSpan, visit_expressions_mut,
};
use remora_engine::united_name;
use remora_mysql::ErrorCode;
use rustc_hash::FxHashMap;

use super::{
    Resolver, best_of_groups, clauses, keywords, limit,
    scope::{Scope, quoted},
};
use crate::{
    Error, Result,
    agents::AgentOptions,
    parse::{
        CUTOFF, GroupRows, MAX_MATCHES, MAX_QUERY_TIME, RAND_SEED, change_own_expressions,
        function_call, visit_own_expressions, write::table_alias,
    },
};

/// The default LIMIT.
const ROWS: u64 = 20;
/// The default of `max_matches`.
const MOST_MATCHES: u64 = 1_000;
/// Databases whose tables are not searched like Sphinx's indexes.
const SYSTEM: [&str; 4] = ["information_schema", "mysql", "performance_schema", "sys"];
/// Sphinx's former names of some functions.
const OLD_NAMES: [&str; 6] = ["@count", "@distinct", "@expr", "@groupby", "@id", "@weight"];

/// The value of an option.
fn option(settings: Option<&[Setting]>, name: &str) -> Option<u64> {
    let of = |setting: &&Setting| setting.key.value == name;
    match &settings?.iter().rfind(of)?.value {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => {
            text.parse().ok()
        }
        _ => None,
    }
}

/// The most rows of a statement: `OPTION max_matches`.
pub(crate) fn most_matches(settings: Option<&[Setting]>) -> u64 {
    option(settings, MAX_MATCHES).unwrap_or(MOST_MATCHES)
}

/// The most rows that a statement looks for: `OPTION cutoff`; `None` for 0, which means all.
pub(super) fn cutoff(settings: Option<&[Setting]>) -> Option<u64> {
    option(settings, CUTOFF).filter(|rows| *rows > 0)
}

/// Gives `RAND()` the seed of `OPTION rand_seed`.
pub(super) fn seed(query: &mut Query) {
    let Some(seed) = option(query.settings.as_deref(), RAND_SEED) else { return };
    let _ = visit_expressions_mut(query, |expr| {
        if let Expr::Function(function) = expr
            && function.name.to_string().eq_ignore_ascii_case("rand")
            && let FunctionArguments::List(list) = &mut function.args
            && list.args.is_empty()
        {
            let seed = Expr::Value(Value::Number(seed.to_string(), false).into());
            list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Expr(seed)));
        }
        ControlFlow::<()>::Continue(())
    });
}

/// The time limit of a statement in milliseconds: `OPTION max_query_time`; `None` for 0, which means no limit.
pub(crate) fn max_query_time(query: &Query) -> Option<u64> {
    option(query.settings.as_deref(), MAX_QUERY_TIME).filter(|limit| *limit > 0)
}

/// A statement's options for asking other servers; `None` if it has none.
pub(crate) fn asked_of_agents(query: &Query) -> Option<AgentOptions> {
    let asked = AgentOptions::of(|name| option(query.settings.as_deref(), name));
    (asked != AgentOptions::default()).then_some(asked)
}

/// Limits a client's query on tables: twenty rows without LIMIT, never more than `most` and `cutoff`.
pub(super) fn limit(query: &mut Query, most: u64, cutoff: Option<u64>) -> Result<()> {
    if !reads_tables(&query.body) {
        return Ok(());
    }
    let (offset, rows) = match query.limit_clause.take() {
        Some(clause) => limit::parts(clause)?,
        None => (0, ROWS),
    };
    if offset >= most {
        let message = format!("offset out of bounds (offset={offset}, max_matches={most})");
        return Err(Error::new(ErrorCode::ParseError, message));
    }
    let most = most.min(cutoff.unwrap_or(most)).saturating_sub(offset);
    query.limit_clause = Some(limit::clause_of(offset, rows.min(most)));
    Ok(())
}

fn reads_tables(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => {
            let is_system = |factor: &TableFactor| match factor {
                TableFactor::Table { name, .. } => {
                    let first = name.0.first().and_then(|part| part.as_ident());
                    let is = |each: &&str| {
                        first.is_some_and(|first| first.value.eq_ignore_ascii_case(each))
                    };
                    name.0.len() > 1 && SYSTEM.iter().any(is)
                }
                _ => false,
            };
            !select.from.is_empty() && !select.from.iter().all(|from| is_system(&from.relation))
        }
        SetExpr::Query(query) => reads_tables(&query.body),
        SetExpr::SetOperation { left, .. } => reads_tables(left),
        _ => false,
    }
}

impl Resolver<'_> {
    /// Whether a SELECT is in Sphinx's dialect. The SELECT of a view never is.
    pub(super) fn is_sphinx(&self) -> bool {
        self.catalog.is_sphinx() && self.within.is_empty() && self.notes.is_none()
    }

    /// Error 1064 at the first bracket. MySQL has no brackets, and Sphinx's are already handled.
    pub(super) fn refused_bracket(&self) -> Error {
        let count = self.source.tokens.len();
        let place = (0..count).find(|place| self.source.is(*place, "["));
        self.source.syntax_error(place.unwrap_or(count))
    }

    /// The `GROUP n BY` and WITHIN GROUP ORDER BY of a SELECT. In Sphinx's dialect every group has a best row.
    pub(super) fn group_rows(
        &self,
        said: Option<GroupRows>,
        is_grouped: bool,
    ) -> Option<GroupRows> {
        let is_meant = is_grouped && self.is_sphinx();
        said.or_else(|| is_meant.then(GroupRows::default))
    }

    /// Replaces several tables in FROM by one, as Sphinx reads them.
    pub(super) fn unite(&self, select: &mut Select) -> Result<()> {
        if !self.is_sphinx() || select.from.len() < 2 {
            return Ok(());
        }
        let Some((first, name)) = united(&select.from) else {
            let what = "anything but names of tables of one database where several tables as one are in FROM";
            return Err(Error::unsupported(what));
        };
        select.from.truncate(1);
        for from in &mut select.from {
            if let TableFactor::Table { name: written, alias: called, .. } = &mut from.relation {
                *written = name.clone();
                *called = Some(table_alias(&first));
            }
        }
        Ok(())
    }

    /// Replaces aliases of select items in WHERE, where they take precedence over columns. Sphinx permits no other
    /// expressions there.
    pub(super) fn name_selected(
        &mut self,
        condition: &mut Expr,
        projection: &[SelectItem],
    ) -> Result<()> {
        if !self.is_sphinx() {
            return Ok(());
        }
        let named = |item: &SelectItem| match item {
            // An alias of a group key may have the name of the key's own column.
            SelectItem::ExprWithAlias { expr, alias } if !best_of_groups::is_group(expr) => {
                Some((alias.value.to_lowercase(), expr.clone()))
            }
            _ => None,
        };
        let named: FxHashMap<String, Expr> = projection.iter().filter_map(named).collect();
        let mut said: Vec<Expr> = Vec::new();
        let replaced = change_own_expressions(condition, |expr| {
            let Expr::Identifier(name) = &*expr else { return ControlFlow::Continue(()) };
            let Some(value) = named.get(&name.value.to_lowercase()) else {
                return ControlFlow::Continue(());
            };
            if said.len() >= MAX_NAMED {
                let what = format!("more than {MAX_NAMED} names of selected values in WHERE");
                return ControlFlow::Break(Error::unsupported(what));
            }
            said.push(value.clone());
            *expr = Expr::Nested(Box::new(value.clone()));
            ControlFlow::Continue(())
        });
        if let ControlFlow::Break(error) = replaced {
            return Err(error);
        }
        said.iter().try_for_each(|said| self.count_said(said))
    }

    /// Refuses a second keyword query on a table.
    pub(super) fn check_matches(&self, condition: Option<&Expr>) -> Result<()> {
        let Some(condition) = condition.filter(|_| self.is_sphinx()) else { return Ok(()) };
        let mut tables: Vec<Option<String>> = Vec::new();
        let second = visit_own_expressions(condition, |expr| {
            let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
            if !keywords::is_query(function) {
                return ControlFlow::Continue(());
            }
            let table = keywords::table_of(function);
            if tables.contains(&table) {
                return ControlFlow::Break(());
            }
            tables.push(table);
            ControlFlow::Continue(())
        });
        if second.is_continue() {
            return Ok(());
        }
        Err(Error::new(ErrorCode::ParseError, "too many MATCH() clauses"))
    }

    /// Orders rows as Sphinx does: by key if there is no ORDER BY, and among equal rows.
    pub(super) fn order_rows(&self, order: &mut Vec<OrderByExpr>, scope: &Scope<'_>) {
        match (self.weight.is_some(), order.is_empty()) {
            (true, true) => order.extend(keywords::order(scope)),
            (_, _) if self.is_sphinx() => order.extend(keywords::keys(scope)),
            _ => {}
        }
    }
}

/// The alias of the first of several tables of one database, and the name of all of them as one table.
fn united(from: &[TableWithJoins]) -> Option<(String, ObjectName)> {
    let named = |from: &TableWithJoins| match &from.relation {
        TableFactor::Table { name, alias: None, args: None, index_hints, .. }
            if from.joins.is_empty()
                && index_hints.is_empty()
                && clauses::check(&from.relation).is_ok() =>
        {
            let parts: Option<Vec<&Ident>> = name.0.iter().map(|part| part.as_ident()).collect();
            let mut parts = parts?;
            let table = parts.pop()?.value.clone();
            let database: Vec<String> = parts.into_iter().map(|part| part.value.clone()).collect();
            Some((database, table))
        }
        _ => None,
    };
    let named: Vec<(Vec<String>, String)> = from.iter().map(named).collect::<Option<_>>()?;
    let ((database, first), others) = named.split_first()?;
    if others.iter().any(|(other, _)| other != database) {
        return None;
    }
    let all = united_name(named.iter().map(|(_, table)| table.as_str()));
    let parts = database.iter().chain([&all]).map(|part| quoted(part));
    Some((first.clone(), ObjectName::from(parts.collect::<Vec<Ident>>())))
}

/// Whether a SELECT reads tables of the system, which Sphinx does not have.
pub(super) fn is_of_system(scope: &Scope<'_>) -> bool {
    let is_system = |database: &String| SYSTEM.iter().any(|it| database.eq_ignore_ascii_case(it));
    scope.relations.iter().any(|relation| relation.database.as_ref().is_some_and(is_system))
}

/// The name of a result's column as Sphinx shows it: in lower case, except for texts in quotes and names within documents.
pub(super) fn column_name(name: &str) -> String {
    let (mut quote, mut is_part) = (None, false);
    let letter = |letter: char| {
        if quote.is_some() {
            quote = quote.filter(|mark| *mark != letter);
            return letter;
        }
        quote = matches!(letter, '\'' | '"').then_some(letter);
        is_part = letter == '.' || is_part && (letter.is_alphanumeric() || letter == '_');
        if is_part { letter } else { letter.to_ascii_lowercase() }
    };
    name.chars().map(letter).collect()
}

/// Error 1064 for one of Sphinx's former names.
pub(super) fn check_variable(name: &str) -> Result<()> {
    match OLD_NAMES.iter().any(|old| name.eq_ignore_ascii_case(old)) {
        false => Ok(()),
        true => {
            let message = "Using the old-fashion @variables (@count, @weight, etc.) is deprecated";
            Err(Error::new(ErrorCode::ParseError, message))
        }
    }
}

/// A division that is 0 if the divisor is 0; `None` for other expressions.
pub(super) fn division(expr: &mut Expr) -> Option<Expr> {
    use BinaryOperator::{Divide, Modulo, MyIntegerDivide};
    let Expr::BinaryOp { op: Divide | Modulo | MyIntegerDivide, .. } = expr else { return None };
    let zero = Expr::Value(Value::Number("0".to_owned(), false).into());
    let division = std::mem::replace(expr, zero.clone());
    Some(function_call("coalesce", vec![division, zero]))
}

/// The most replaced aliases in a condition.
const MAX_NAMED: usize = 1_000;
