//! WITH: common table expressions, each in the scope of those before it.
//!
//! Below WITH RECURSIVE, DataFusion takes every UNION for a recursion and drops its ORDER BY, LIMIT and WITH. So an
//! expression that does not name itself is put in parentheses there; one that does loses its LIMIT to a second
//! expression, and its WITH to the statement's.

use std::{collections::HashSet, vec::IntoIter};

use datafusion::sql::sqlparser::ast::{
    Cte, Expr, Query, SetExpr, With, helpers::attached_token::AttachedToken,
};

use super::{
    Env, InheritedOrder, Output, Resolver, VisibleCte,
    assigned::AssignmentScope,
    column_counts,
    expr::empty,
    limit, named_once,
    places::{SelectKind, SelectPosition},
    recursion::{self, Recursion},
    same_count,
    scope::{not_unique, quoted},
    select::item,
};
use crate::{
    Result,
    parse::write::{query_of, select_from, table_alias, table_named},
};

/// What resolves the query behind the expressions.
type Then<'t, 'c> = &'t mut dyn FnMut(&mut Resolver<'c>, Env<'_>) -> Result<Vec<Output>>;

/// A resolved expression.
struct CommonTable {
    cte: Cte,
    /// Whether DataFusion shall take its UNION for a recursion.
    is_recursion: bool,
}

/// The name of an expression in the statement and in plans, and the names of its columns, if given.
#[derive(Clone, Copy)]
struct Names<'n> {
    alias: &'n str,
    unique: &'n str,
    columns: Option<&'n [String]>,
}

impl<'c> Resolver<'c> {
    /// Resolves the common table expressions of a query, then the query.
    pub(super) fn with(
        &mut self,
        with: With,
        query: &mut Query,
        env: Env<'_>,
        names: Option<&[String]>,
    ) -> Result<Vec<Output>> {
        let With { with_token, recursive, cte_tables } = with;
        let mut seen = HashSet::new();
        if let Some(twice) = cte_tables.iter().find(|cte| !seen.insert(&cte.alias.name.value)) {
            return Err(not_unique(&twice.alias.name.value));
        }
        let mut made = Vec::with_capacity(cte_tables.len());
        let tables = cte_tables.into_iter();
        let columns =
            self.common_tables((tables, recursive), &mut made, env, &mut |resolver, env| {
                resolver.body(query, env, names)
            })?;
        let recursive = made.iter().any(|table| table.is_recursion);
        let cte_tables = made.into_iter().map(|table| table.planned(recursive)).collect();
        query.with = Some(With { with_token, recursive, cte_tables });
        Ok(columns)
    }

    /// Resolves expressions one after the other, then what is behind them. They are added to `made` in their order.
    fn common_tables(
        &mut self,
        (mut tables, is_recursive): (IntoIter<Cte>, bool),
        made: &mut Vec<CommonTable>,
        env: Env<'_>,
        then: Then<'_, 'c>,
    ) -> Result<Vec<Output>> {
        let Some(mut cte) = tables.next() else { return then(self, env) };
        let alias = cte.alias.name.value.clone();
        let unique = self.unique(&alias);
        let given: Vec<String> =
            cte.alias.columns.iter().map(|column| column.name.value.clone()).collect();
        let given = (!given.is_empty()).then_some(given.as_slice());
        let names = Names { alias: &alias, unique: &unique, columns: given };
        let before = self.parts;
        let derived = Env { standing: SelectPosition::of(SelectKind::Derived), ..env };
        let turn = std::mem::replace(&mut self.turn, AssignmentScope::Never);
        let recursion = match is_recursive {
            true => recursion::taken(&mut cte.query, &alias)?,
            false => None,
        };
        let is_recursion = recursion.is_some();
        let columns = match recursion {
            Some(recursion) => {
                let (query, columns) = self.recursion(recursion, made, derived, names)?;
                *cte.query = query;
                columns
            }
            None => self.query(&mut cte.query, derived, given)?,
        };
        self.turn = turn;
        if given.is_some_and(|given| given.len() != columns.len()) {
            return Err(column_counts());
        }
        cte.alias = table_alias(&unique);
        let columns = named_once(&columns)?;
        let determining = match is_recursion {
            true => Vec::new(),
            false => std::mem::take(&mut self.determining),
        };
        let parts = self.parts - before;
        let order = limit::order_of(&cte.query);
        made.push(CommonTable { cte, is_recursion });
        let outer = env.common;
        let common = VisibleCte { alias, unique, columns, determining, parts, order, outer };
        let env = Env { common: Some(&common), ..env };
        self.common_tables((tables, is_recursive), made, env, then)
    }

    /// Resolves an expression that names itself. Its columns are those of its first SELECT.
    fn recursion(
        &mut self,
        mut recursion: Recursion,
        made: &mut Vec<CommonTable>,
        env: Env<'_>,
        names: Names<'_>,
    ) -> Result<(Query, Vec<Output>)> {
        // Its LIMIT is that of another expression, which reads it.
        let own = recursion.window.map(|_| self.unique(names.alias));
        let unique = own.as_deref().unwrap_or(names.unique);
        let inner = Names { unique, ..names };
        let columns = match recursion.with.take() {
            Some(With { recursive, cte_tables, .. }) => {
                let tables = (cte_tables.into_iter(), recursive);
                self.common_tables(tables, made, env, &mut |resolver, env| {
                    resolver.blocks(&mut recursion, env, inner)
                })?
            }
            None => self.blocks(&mut recursion, env, inner)?,
        };
        let Recursion { first, further, is_distinct, window, .. } = recursion;
        let query = query_of(Recursion::union(first, further, is_distinct));
        let Some(window) = window else { return Ok((query, columns)) };
        let cte = Cte {
            alias: table_alias(unique),
            query: Box::new(query),
            from: None,
            materialized: None,
            closing_paren_token: AttachedToken::empty(),
        };
        made.push(CommonTable { cte, is_recursion: true });
        self.parts += 1;
        Ok((first_rows(unique, &columns, window), columns))
    }

    /// Resolves the query blocks of an expression that names itself.
    fn blocks(
        &mut self,
        recursion: &mut Recursion,
        env: Env<'_>,
        names: Names<'_>,
    ) -> Result<Vec<Output>> {
        let columns = self.set_expr(&mut recursion.first, env, names.columns)?;
        let common = VisibleCte {
            alias: names.alias.to_owned(),
            unique: names.unique.to_owned(),
            columns: named_once(&columns)?,
            determining: Vec::new(),
            parts: 1,
            order: InheritedOrder::None,
            outer: env.common,
        };
        let standing = SelectPosition::of(SelectKind::Union);
        let env = Env { common: Some(&common), standing, ..env };
        for block in &mut recursion.further {
            let others = self.set_expr(&mut block.query, env, None)?;
            same_count(&columns, &others)?;
            if let Some(refused) = block.refused.take() {
                return Err(refused);
            }
        }
        Ok(columns)
    }
}

impl CommonTable {
    /// The expression for the planner, below WITH RECURSIVE or not.
    fn planned(self, is_recursive: bool) -> Cte {
        let Self { mut cte, is_recursion } = self;
        let is_set = matches!(cte.query.body.as_ref(), SetExpr::SetOperation { .. });
        if is_recursive && !is_recursion && is_set {
            let query = std::mem::replace(cte.query.as_mut(), empty());
            *cte.query = query_of(SetExpr::Query(Box::new(query)));
        }
        cte
    }
}

/// Some rows of an expression.
fn first_rows(of: &str, columns: &[Output], (offset, most): (u64, u64)) -> Query {
    let mut select = select_from(Vec::new(), vec![table_named(&[of], None)]);
    let shown = columns.iter().map(|column| {
        let expr = Expr::CompoundIdentifier(vec![quoted(of), quoted(&column.planned)]);
        item(expr, &column.planned)
    });
    select.projection = shown.collect();
    let mut query = query_of(SetExpr::Select(Box::new(select)));
    query.limit_clause = Some(limit::clause_of(offset, most));
    query
}
