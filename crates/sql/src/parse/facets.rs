//! `SELECT … FACET …`: how many of the rows that a SELECT finds have each value, a result set for each FACET.
//!
//! ```text
//! facet := "FACET" value ("," value)* ["BY" expr ("," expr)*] ["DISTINCT" expr]
//!          ["ORDER" "BY" part ("," part)*] ["LIMIT" [number ","] number]
//! value := expr ["AS" name]              part := (expr | "FACET" "(" ")" | "COUNT" "(" "*" ")") ["ASC" | "DESC"]
//! ```
//! Each FACET becomes a separate SELECT over the same FROM and WHERE, grouped, with the best row for each group.

use std::ops::Range;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, LimitClause, OrderBy, OrderByExpr, OrderByKind, OrderByOptions,
    Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins,
};
use remora_mysql::{ErrorCode, TokenKind};

use super::{
    Source, count_of, function_call, groups, query, syntax,
    write::{expressions, limit_of, number, query_of, select_from},
};
use crate::{Error, Result, blocking::run_blocking_if_long};

/// Most FACETs of a SELECT.
const MAX_FACETS: usize = 32;

/// A SELECT and its FACETs.
pub(crate) struct Faceted {
    /// The tokens of the SELECT without them.
    pub select: Range<usize>,
    /// The query of each.
    pub facets: Vec<Query>,
}

/// The tokens of one FACET.
struct Facet {
    /// The values, and their aliases.
    values: Vec<(Range<usize>, Option<String>)>,
    by: Vec<Range<usize>>,
    distinct: Option<Range<usize>>,
    /// The parts of ORDER BY, `None` for FACET(), and whether they descend.
    order: Vec<(Option<Range<usize>>, bool)>,
    /// The numbers of LIMIT.
    limit: Vec<String>,
}

/// Words that may follow the values of a FACET.
const CLAUSES: [&str; 5] = ["BY", "DISTINCT", "ORDER", "LIMIT", "FACET"];
/// Words after which a word is a name.
const BEFORE_NAMES: [&str; 14] = [
    "SELECT", "AS", "BY", "WHERE", "AND", "OR", "NOT", "FROM", "JOIN", "ON", "HAVING", "IN",
    "LIKE", "DISTINCT",
];

/// The FACETs of a SELECT, if it has any.
pub(crate) fn faceted(source: &Source) -> Result<Option<Faceted>> {
    let depths = depths(source);
    let top = |at: usize, word: &str| depths.get(at) == Some(&0) && source.is_word(at, word);
    let count = source.tokens.len();
    let Some(from) = (0..count).find(|&at| top(at, "FROM")) else { return Ok(None) };
    let is_facet = |at: &usize| top(*at, "FACET") && begins(source, *at);
    let starts: Vec<usize> = (from + 2..count).filter(is_facet).collect();
    let Some(&first) = starts.first() else { return Ok(None) };
    if starts.len() > MAX_FACETS {
        let count = starts.len();
        let message = format!(
            "This SELECT has {count} FACETs, and at most {MAX_FACETS} are answered: ask for the others by another SELECT"
        );
        return Err(Error::new(ErrorCode::ParseError, message));
    }
    // With UNION no SELECT is the one whose rows a FACET counts.
    let is_united = |at: &usize| ["UNION", "EXCEPT", "INTERSECT"].iter().any(|word| top(*at, word));
    if (from..first).any(|at| is_united(&at)) {
        return Err(source.syntax_error(first));
    }
    let read = || {
        let counted = query(syntax::statement_within(source, 0..first, &[])?)?;
        let ends = starts.iter().skip(1).copied().chain([count]);
        let facets = starts.iter().zip(ends).map(|(&start, end)| {
            let place = NestedTokens { source, depths: &depths };
            Facet::read(&place, start + 1..end)?.query(source, &counted)
        });
        facets.collect::<Result<_>>()
    };
    let facets = run_blocking_if_long(source.is_long(), read)?;
    Ok(Some(Faceted { select: 0..first, facets }))
}

/// Whether this FACET begins a clause and is not a name.
fn begins(source: &Source, at: usize) -> bool {
    let is_name = BEFORE_NAMES.iter().any(|word| source.is_word(at - 1, word))
        || [",", ".", "="].iter().any(|mark| source.is(at - 1, mark));
    let has_value = source.tokens.get(at + 1).is_some_and(|next| {
        matches!(next.kind, TokenKind::Word | TokenKind::Quoted | TokenKind::Integer)
            || source.is(at + 1, "(")
    });
    let is_alias = ["WHERE", "JOIN", "ON", "LEFT", "INNER", "ORDER", "GROUP", "LIMIT", "OPTION"]
        .iter()
        .any(|word| source.is_word(at + 1, word));
    !is_name && has_value && !is_alias
}

/// The number of open parentheses at each token.
fn depths(source: &Source) -> Vec<usize> {
    let mut depth = 0usize;
    let of = |at: usize| {
        if source.is(at, ")") {
            depth = depth.saturating_sub(1);
        }
        let here = depth;
        if source.is(at, "(") {
            depth += 1;
        }
        here
    };
    (0..source.tokens.len()).map(of).collect()
}

fn shown(source: &Source, range: Range<usize>) -> String {
    let Some([first, .., last]) = source.tokens.get(range.clone()) else {
        let only = source.tokens.get(range).and_then(|tokens| tokens.first());
        let bytes = only.map_or(&[][..], |token| source.bytes(token));
        return String::from_utf8_lossy(bytes).into_owned();
    };
    let bytes = source.text.get(first.start..last.end).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

/// The tokens of a statement and the depth of each.
struct NestedTokens<'s> {
    source: &'s Source,
    depths: &'s [usize],
}

impl NestedTokens<'_> {
    fn is_top(&self, at: usize, word: &str) -> bool {
        self.depths.get(at) == Some(&0) && self.source.is_word(at, word)
    }

    /// Where the next clause of a FACET begins.
    fn end_of_clause(&self, range: Range<usize>) -> usize {
        let end = range.end;
        let mut places = range;
        places.find(|&at| CLAUSES.iter().any(|word| self.is_top(at, word))).unwrap_or(end)
    }

    /// The parts between commas; none is empty.
    fn parts(&self, range: Range<usize>) -> Result<Vec<Range<usize>>> {
        let mut parts = Vec::new();
        let mut start = range.start;
        for at in range.clone() {
            if self.depths.get(at) == Some(&0) && self.source.is(at, ",") {
                parts.push(start..at);
                start = at + 1;
            }
        }
        parts.push(start..range.end);
        match parts.iter().find(|part| part.is_empty()) {
            Some(empty) => Err(self.source.syntax_error(empty.start)),
            None => Ok(parts),
        }
    }
}

impl Facet {
    fn read(place: &NestedTokens<'_>, range: Range<usize>) -> Result<Self> {
        let source = place.source;
        let mut at = range.start;
        let clause = |at: &mut usize| {
            let part = *at..place.end_of_clause(*at..range.end);
            *at = part.end;
            part
        };
        let values = place.parts(clause(&mut at))?.into_iter().map(|part| value(source, part));
        let mut facet = Self {
            values: values.collect(),
            by: Vec::new(),
            distinct: None,
            order: Vec::new(),
            limit: vec!["20".to_owned()],
        };
        if place.is_top(at, "BY") && at < range.end {
            at += 1;
            facet.by = place.parts(clause(&mut at))?;
        }
        if place.is_top(at, "DISTINCT") && at < range.end {
            at += 1;
            let part = clause(&mut at);
            if part.is_empty() {
                return Err(source.syntax_error(at));
            }
            facet.distinct = Some(part);
        }
        if place.is_top(at, "ORDER") && at < range.end {
            if !source.is_word(at + 1, "BY") {
                return Err(source.syntax_error(at + 1));
            }
            at += 2;
            for part in place.parts(clause_of_order(place, &mut at, range.end))? {
                facet.order.push(order_part(source, part)?);
            }
        }
        if place.is_top(at, "LIMIT") && at < range.end {
            let part = at + 1..range.end;
            let numbers = place.parts(part.clone())?;
            let is_number = |part: &Range<usize>| {
                let kind = source.tokens.get(part.start).map(|token| token.kind);
                part.len() == 1 && kind == Some(TokenKind::Integer)
            };
            if numbers.len() > 2 || !numbers.iter().all(is_number) {
                return Err(source.syntax_error(part.start));
            }
            let number = |part: &Range<usize>| source.plain(part.start);
            facet.limit = numbers.iter().filter_map(number).collect();
            at = part.end;
        }
        if at < range.end { Err(source.syntax_error(at)) } else { Ok(facet) }
    }

    /// Its query: counts of the rows that another finds.
    fn query(self, source: &Source, counted: &Query) -> Result<Query> {
        let Self { values, by, distinct, order, limit } = self;
        let SetExpr::Select(of) = counted.body.as_ref() else { return Err(source.syntax_error(0)) };
        let ordered = order.iter().filter_map(|(part, _)| part.as_ref());
        let parts = values.iter().map(|(value, _)| value).chain(&by).chain(&distinct);
        let parts: Vec<_> = parts.chain(ordered).map(|part| (part.clone(), &[][..])).collect();
        let mut read = expressions(source, &parts)?.into_iter();
        let exprs: Vec<Expr> = read.by_ref().take(values.len()).collect();
        let groups: Vec<Expr> = match by.len() {
            0 => exprs.clone(),
            count => read.by_ref().take(count).collect(),
        };
        // For a multi-value attribute it is one number, not the set.
        let group = || function_call("GROUPBY", Vec::new());
        let is_of_one = by.is_empty() && values.len() == 1;
        let mut projection: Vec<SelectItem> = Vec::with_capacity(values.len() + 2);
        for (expr, (tokens, alias)) in exprs.into_iter().zip(values) {
            let column = column_of(&expr, &of.from);
            projection.push(match (alias, column) {
                (None, Some((column, _))) if is_of_one => named(group(), column),
                (None, Some((part, true))) => named(expr, part),
                (None, Some(_)) => SelectItem::UnnamedExpr(expr),
                (alias, _) => named(expr, alias.unwrap_or_else(|| shown(source, tokens))),
            });
        }
        projection.push(named(count_of(None), "count(*)".to_owned()));
        if let Some((expr, tokens)) = distinct.and_then(|tokens| Some((read.next()?, tokens))) {
            let name = format!("count(distinct {})", shown(source, tokens));
            projection.push(named(count_of(Some(expr)), name));
        }
        let mut parts = Vec::with_capacity(order.len());
        for (part, is_descending) in order {
            let asc = is_descending.then_some(false);
            let mut all = match (part, groups.as_slice()) {
                (Some(_), _) => read.next().into_iter().collect(),
                (None, [_]) => vec![group()],
                (None, groups) => groups.to_vec(),
            };
            let last = all.pop().map(|last| ordered_by(last, asc));
            parts.extend(all.into_iter().map(|expr| ordered_by(expr, None)).chain(last));
        }
        let rows = function_call(groups::ROWS, vec![number(1)]);
        let groups = std::iter::once(rows).chain(groups).collect();
        let select = Select {
            projection,
            selection: of.selection.clone(),
            group_by: GroupByExpr::Expressions(groups, Vec::new()),
            ..select_from(Vec::new(), of.from.clone())
        };
        let is_unordered = parts.is_empty();
        let order_by = OrderBy { kind: OrderByKind::Expressions(parts), interpolate: None };
        let limit_clause = match limit.as_slice() {
            [offset, limit] => {
                LimitClause::OffsetCommaLimit { offset: number(offset), limit: number(limit) }
            }
            limit => limit_of(number(limit.concat())),
        };
        Ok(Query {
            order_by: (!is_unordered).then_some(order_by),
            limit_clause: Some(limit_clause),
            settings: counted.settings.clone(),
            ..query_of(SetExpr::Select(Box::new(select)))
        })
    }
}

fn named(expr: Expr, name: String) -> SelectItem {
    SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('`', name) }
}

fn ordered_by(expr: Expr, asc: Option<bool>) -> OrderByExpr {
    OrderByExpr { expr, options: OrderByOptions { asc, nulls_first: None }, with_fill: None }
}

fn order_part(source: &Source, mut part: Range<usize>) -> Result<(Option<Range<usize>>, bool)> {
    let last = part.end - 1;
    let is_descending = source.is_word(last, "DESC");
    if is_descending || source.is_word(last, "ASC") {
        part.end = last;
    }
    if part.is_empty() {
        return Err(source.syntax_error(part.start));
    }
    let is_facet = source.is_word(part.start, "FACET") && source.is(part.start + 1, "(");
    Ok(((!is_facet).then_some(part), is_descending))
}

/// ORDER BY's parts, of which FACET() may be one.
fn clause_of_order(place: &NestedTokens<'_>, at: &mut usize, end: usize) -> Range<usize> {
    let start = *at;
    let stops = |at: &usize| place.is_top(*at, "LIMIT");
    *at = (start..end).find(stops).unwrap_or(end);
    start..*at
}

fn value(source: &Source, part: Range<usize>) -> (Range<usize>, Option<String>) {
    match part.len() > 2 && source.is_word(part.end - 2, "AS") {
        true => (part.start..part.end - 2, source.plain(part.end - 1)),
        false => (part, None),
    }
}

/// The name of the column that a value is, with its table or without, and whether it is a part of a document, which only
/// Sphinx's dialect names by dots. A part has its whole name.
fn column_of(value: &Expr, from: &[TableWithJoins]) -> Option<(String, bool)> {
    let (name, first) = match value {
        Expr::Identifier(name) => (name, name),
        Expr::CompoundIdentifier(parts) => {
            let [.., before, last] = parts.as_slice() else { return None };
            if !is_table(&before.value, from) {
                let parts: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
                return Some((parts.join("."), true));
            }
            (last, parts.first()?)
        }
        _ => return None,
    };
    (!first.value.starts_with('@')).then(|| (name.value.clone(), false))
}

/// Whether a name is that of a table in FROM, or its alias.
fn is_table(name: &str, from: &[TableWithJoins]) -> bool {
    let is_it = |factor: &TableFactor| match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. } => {
            alias.name.value.eq_ignore_ascii_case(name)
        }
        TableFactor::Table { name: table, .. } => {
            let last = table.0.last().and_then(|part| part.as_ident());
            last.is_some_and(|last| last.value.eq_ignore_ascii_case(name))
        }
        // Its tables stand in parentheses: MySQL's dialect alone has them.
        _ => true,
    };
    let joined = |from: &TableWithJoins| from.joins.iter().any(|join| is_it(&join.relation));
    from.iter().any(|from| is_it(&from.relation) || joined(from))
}
