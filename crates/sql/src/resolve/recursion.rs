//! Common table expressions that name themselves. MySQL takes them apart into query blocks: first those that do not name
//! the expression, then those that do, once each. A block of the second kind reads a table as its rows come in.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, JoinOperator, Query, Select, SetExpr, SetOperator, SetQuantifier, TableFactor,
    TableWithJoins, Visitor, With,
};
use remora_mysql::ErrorCode;

use super::{clauses, expr::empty, from::is_right, grouping::is_grouped, limit};
use crate::{
    Error, Result,
    parse::{Visit, visit_own_expressions},
};

/// A common table expression that names itself.
pub(super) struct Recursion {
    /// The common table expressions within it.
    pub with: Option<With>,
    /// The query blocks that do not name it.
    pub first: SetExpr,
    /// Those that do, at least one.
    pub further: Vec<RecursiveBlock>,
    /// Whether rows that are there already are left out.
    pub is_distinct: bool,
    /// Offset and limit.
    pub window: Option<(u64, u64)>,
}

/// A query block that reads the rows of its own expression.
pub(super) struct RecursiveBlock {
    pub query: SetExpr,
    /// What MySQL refuses after it has found the block's names.
    pub refused: Option<Error>,
}

/// Takes an expression apart that names itself; `None` if it does not.
///
/// # Errors
/// 3573, 3574, 3577, 4114 and 1235 for forms that MySQL has not either.
pub(super) fn taken(query: &mut Query, name: &str) -> Result<Option<Recursion>> {
    let references = of_query(query, name);
    if references.count() == 0 {
        return Ok(None);
    }
    if references.within > 0 {
        return Err(not_once(name));
    }
    let query = std::mem::replace(query, empty());
    let Unwrapped { with, body, window, is_ordered } = unwrapped(query)?;
    let Blocks { all, last_distinct } = blocks(body)?;
    if all.len() < 2 {
        let message = format!("Recursive Common Table Expression '{name}' should contain a UNION");
        return Err(Error::new(ErrorCode::RecursionWithoutUnion, message));
    }
    if is_ordered {
        return Err(not_in_mysql("ORDER BY over UNION in recursive Common Table Expression"));
    }
    let recursive: Vec<bool> = all.iter().map(|block| of_body(block, name).count() > 0).collect();
    for (block, _) in all.iter().zip(&recursive).filter(|(_, recursive)| **recursive) {
        check_whole(block)?;
    }
    let begin = recursive.iter().position(|recursive| *recursive).unwrap_or_default();
    if begin == 0 || !recursive.iter().skip(begin).all(|recursive| *recursive) {
        let message = format!(
            "Recursive Common Table Expression '{name}' should have one or more non-recursive \
             query blocks followed by one or more recursive ones"
        );
        return Err(Error::new(ErrorCode::RecursionOrder, message));
    }
    let is_distinct = last_distinct == Some(all.len() - 1);
    if last_distinct.is_some_and(|last| last >= begin) && !is_distinct {
        return Err(not_in_mysql(
            "recursive query blocks with UNION DISTINCT then UNION ALL, in recursive Common Table \
             Expression",
        ));
    }
    let mut all = all.into_iter();
    let firsts = all.by_ref().take(begin).enumerate();
    // The rows of the whole are made distinct as they come in.
    let is_united = |index| !is_distinct && last_distinct.is_some_and(|last| index <= last);
    let first = firsts.map(|(index, block)| (block, is_united(index)));
    let Some(first) = united(first) else { return Err(Error::unsupported("a query of nothing")) };
    let further = all.map(|query| block_of(query, name)).collect::<Result<_>>()?;
    Ok(Some(Recursion { with, first, further, is_distinct, window }))
}

impl Recursion {
    /// The union of its blocks, as the planner takes it for a recursion.
    pub(super) fn union(
        first: SetExpr,
        further: Vec<RecursiveBlock>,
        is_distinct: bool,
    ) -> SetExpr {
        let further = further.into_iter().map(|block| (block.query, false));
        let Some(further) = united(further) else { return first };
        union_of(first, further, is_distinct)
    }
}

/// A UNION of the blocks, each with whether it is DISTINCT from those before it.
fn united(mut blocks: impl Iterator<Item = (SetExpr, bool)>) -> Option<SetExpr> {
    let (first, _) = blocks.next()?;
    Some(blocks.fold(first, |before, (block, is_distinct)| union_of(before, block, is_distinct)))
}

fn union_of(left: SetExpr, right: SetExpr, is_distinct: bool) -> SetExpr {
    SetExpr::SetOperation {
        op: SetOperator::Union,
        set_quantifier: if is_distinct { SetQuantifier::None } else { SetQuantifier::All },
        left: Box::new(left),
        right: Box::new(right),
    }
}

/// A query without the parentheses around it.
struct Unwrapped {
    with: Option<With>,
    body: SetExpr,
    window: Option<(u64, u64)>,
    is_ordered: bool,
}

fn unwrapped(mut query: Query) -> Result<Unwrapped> {
    let (mut with, mut window, mut is_ordered): (Option<With>, _, _) = (None, None, false);
    loop {
        clauses::refuse_without_wait(&query)?;
        if query.fetch.is_some() {
            return Err(Error::unsupported("FETCH"));
        }
        is_ordered |= query.order_by.is_some();
        if let Some(clause) = query.limit_clause.take() {
            window = Some(narrowed(limit::parts(clause)?, window));
        }
        if let Some(inner) = query.with.take() {
            with = Some(match with.take() {
                Some(mut outer) => {
                    outer.recursive |= inner.recursive;
                    outer.cte_tables.extend(inner.cte_tables);
                    outer
                }
                None => inner,
            });
        }
        match *query.body {
            SetExpr::Query(inner) => query = *inner,
            body => return Ok(Unwrapped { with, body, window, is_ordered }),
        }
    }
}

/// The rows that an outer window leaves of an inner one.
fn narrowed((offset, limit): (u64, u64), outer: Option<(u64, u64)>) -> (u64, u64) {
    let Some((further, most)) = outer else { return (offset, limit) };
    let left = if limit == u64::MAX { limit } else { limit.saturating_sub(further) };
    (offset.saturating_add(further), left.min(most))
}

/// The query blocks of a UNION.
#[derive(Default)]
struct Blocks {
    all: Vec<SetExpr>,
    /// The last block behind UNION DISTINCT. It and all before it are distinct.
    last_distinct: Option<usize>,
}

fn blocks(body: SetExpr) -> Result<Blocks> {
    let (mut first, mut further) = (body, Vec::new());
    // A chain of UNIONs is as long as the statement.
    let first = loop {
        match first {
            SetExpr::SetOperation { op: SetOperator::Union, left, set_quantifier, right } => {
                further.push((set_quantifier == SetQuantifier::All, *right));
                first = *left;
            }
            other => break other,
        }
    };
    let mut found = match first {
        SetExpr::Query(query) if is_bare(&query) => blocks(opened(*query)?)?,
        first => Blocks { all: vec![first], last_distinct: None },
    };
    for (is_all, block) in further.into_iter().rev() {
        match block {
            // `a UNION ALL (b UNION c)` is not the same as `a UNION ALL b UNION c`.
            block if is_all && has_distinct(&block) => found.all.push(block),
            SetExpr::SetOperation { op: SetOperator::Union, .. } => {
                found.all.extend(blocks(block)?.all);
            }
            SetExpr::Query(query) if is_bare(&query) => {
                found.all.extend(blocks(opened(*query)?)?.all);
            }
            block => found.all.push(block),
        }
        if !is_all {
            found.last_distinct = found.all.len().checked_sub(1);
        }
    }
    Ok(found)
}

/// The query in parentheses.
fn opened(query: Query) -> Result<SetExpr> {
    clauses::refuse_without_wait(&query)?;
    Ok(*query.body)
}

/// Whether a query in parentheses is no more than its body.
fn is_bare(query: &Query) -> bool {
    query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
}

fn has_distinct(body: &SetExpr) -> bool {
    match body {
        SetExpr::SetOperation { op: SetOperator::Union, left, set_quantifier, right } => {
            *set_quantifier != SetQuantifier::All || has_distinct(left) || has_distinct(right)
        }
        SetExpr::Query(query) => is_bare(query) && has_distinct(&query.body),
        _ => false,
    }
}

/// Refuses recursion within a set operation that is a block of its own.
fn check_whole(block: &SetExpr) -> Result<()> {
    match block {
        SetExpr::Query(query) => check_whole(&query.body),
        SetExpr::SetOperation { op: SetOperator::Union, .. } => {
            Err(not_in_mysql("right nested recursive query blocks, in Common Table Expression"))
        }
        SetExpr::SetOperation { .. } => {
            let message =
                "Recursive table reference in EXCEPT or INTERSECT operand is not allowed.";
            Err(Error::new(ErrorCode::RecursionInSetOperation, message))
        }
        _ => Ok(()),
    }
}

/// A block that reads its own expression once.
fn block_of(query: SetExpr, name: &str) -> Result<RecursiveBlock> {
    if of_body(&query, name).own > 1 {
        return Err(not_once(name));
    }
    let (mut within, mut is_cut) = (&query, false);
    while let SetExpr::Query(inner) = within {
        is_cut |= inner.order_by.is_some() || inner.limit_clause.is_some();
        within = &inner.body;
    }
    let select = match within {
        SetExpr::Select(select) => Some(select),
        _ => None,
    };
    if is_cut || select.is_some_and(|select| select.distinct.is_some()) {
        return Err(not_in_mysql(
            "ORDER BY / LIMIT / SELECT DISTINCT in recursive query block of Common Table Expression",
        ));
    }
    let refused = select.and_then(|select| refused(select, name));
    Ok(RecursiveBlock { query, refused })
}

fn refused(select: &Select, name: &str) -> Option<Error> {
    let is_windowed = visit_own_expressions(select, |expr| match expr {
        Expr::Function(call) if call.over.is_some() => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    if is_windowed.is_break() || is_grouped(select) {
        let message = format!(
            "Recursive Common Table Expression '{name}' can contain neither aggregation nor window \
             functions in recursive query block"
        );
        return Some(Error::new(ErrorCode::RecursionAggregated, message));
    }
    let is_straight = select.select_modifiers.as_ref().is_some_and(|said| said.straight_join);
    let leads = select.from.first().is_some_and(|first| leads(&first.relation, name));
    if is_straight && !leads || select.from.iter().any(|from| is_behind(from, name)) {
        let message = format!(
            "In recursive query block of Recursive Common Table Expression '{name}', the recursive \
             table must neither be in the right argument of a LEFT JOIN, nor be forced to be \
             non-first with join order hints"
        );
        return Some(Error::new(ErrorCode::RecursionJoined, message));
    }
    None
}

/// Whether the expression is the first table of a factor.
fn leads(factor: &TableFactor, name: &str) -> bool {
    match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => leads(&table_with_joins.relation, name),
        factor => is_named(factor, name),
    }
}

/// Whether a join must read another table before the expression.
fn is_behind(from: &TableWithJoins, name: &str) -> bool {
    let nested = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => is_behind(table_with_joins, name),
        _ => false,
    };
    if nested(&from.relation) {
        return true;
    }
    let mut is_left = in_factor(&from.relation, name) > 0;
    from.joins.iter().any(|join| {
        let is_here = in_factor(&join.relation, name) > 0;
        let must_follow = match &join.join_operator {
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) | JoinOperator::StraightJoin(_) => {
                is_here
            }
            operator => is_right(operator) && is_left,
        };
        is_left |= is_here;
        must_follow || nested(&join.relation)
    })
}

/// How often a query names an expression.
#[derive(Clone, Copy, Default)]
struct SelfReferences {
    /// In FROM of its own blocks.
    own: usize,
    /// In subqueries, derived tables and other expressions.
    within: usize,
}

impl SelfReferences {
    fn count(self) -> usize {
        self.own + self.within
    }
}

fn of_query(query: &Query, name: &str) -> SelfReferences {
    if defines(query, name) {
        return SelfReferences::default();
    }
    let mut found = of_body(&query.body, name);
    let with = query.with.iter().flat_map(|with| &with.cte_tables);
    found.within += with.map(|table| of_query(&table.query, name).count()).sum::<usize>();
    found.within += count(&query.order_by, name);
    found
}

fn of_body(body: &SetExpr, name: &str) -> SelfReferences {
    match body {
        SetExpr::Select(select) => {
            let own = select.from.iter().map(|from| in_from(from, name)).sum();
            SelfReferences { own, within: count(&**select, name).saturating_sub(own) }
        }
        SetExpr::Query(query) => of_query(query, name),
        SetExpr::SetOperation { left, right, .. } => {
            let (left, right) = (of_body(left, name), of_body(right, name));
            SelfReferences { own: left.own + right.own, within: left.within + right.within }
        }
        SetExpr::Table(table) => {
            let is_own = table.schema_name.is_none() && table.table_name.as_deref() == Some(name);
            SelfReferences { own: usize::from(is_own), within: 0 }
        }
        other => SelfReferences { own: 0, within: count(other, name) },
    }
}

fn in_from(from: &TableWithJoins, name: &str) -> usize {
    let joined = from.joins.iter().map(|join| in_factor(&join.relation, name));
    in_factor(&from.relation, name) + joined.sum::<usize>()
}

fn in_factor(factor: &TableFactor, name: &str) -> usize {
    match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => in_from(table_with_joins, name),
        factor => usize::from(is_named(factor, name)),
    }
}

fn is_named(factor: &TableFactor, name: &str) -> bool {
    let TableFactor::Table { name: called, .. } = factor else { return false };
    let [part] = called.0.as_slice() else { return false };
    part.as_ident().is_some_and(|part| part.value == name)
}

/// Whether the name means another expression within a query.
fn defines(query: &Query, name: &str) -> bool {
    let mut tables = query.with.iter().flat_map(|with| &with.cte_tables);
    tables.any(|table| table.alias.name.value == name)
}

/// How often a part of a statement names an expression, in all its queries.
fn count(part: &impl Visit, name: &str) -> usize {
    struct Count<'n> {
        name: &'n str,
        found: usize,
        /// The queries around that have another expression of this name.
        hidden: usize,
    }
    impl Visitor for Count<'_> {
        type Break = ();

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            self.hidden += usize::from(defines(query, self.name));
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            self.hidden -= usize::from(defines(query, self.name));
            ControlFlow::Continue(())
        }

        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
            self.found += usize::from(self.hidden == 0 && is_named(factor, self.name));
            ControlFlow::Continue(())
        }
    }
    let mut counting = Count { name, found: 0, hidden: 0 };
    let _ = part.visit(&mut counting);
    counting.found
}

/// 1235 in MySQL's words.
fn not_in_mysql(what: &str) -> Error {
    let message = format!("This version of MySQL doesn't yet support '{what}'");
    Error::new(ErrorCode::NotSupported, message)
}

/// Error 3577.
fn not_once(name: &str) -> Error {
    let message = format!(
        "In recursive query block of Recursive Common Table Expression '{name}', the recursive \
         table must be referenced only once, and not in any subquery"
    );
    Error::new(ErrorCode::RecursionReferences, message)
}
