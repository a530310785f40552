//! The shape of a statement, from its syntax tree. What a shape may be is in [`super::shape`].

use datafusion::sql::sqlparser::ast::{
    self, DataType, Expr, FunctionArg, FunctionArgExpr, GroupByExpr, Join, JoinConstraint,
    JoinOperator, JsonTableColumn, JsonTableNamedColumn, LimitClause, OrderByExpr, OrderByKind,
    OrderByOptions, Query, SelectFlavor, SelectItem, SelectItemQualifiedWildcardKind,
    SelectModifiers, SetExpr, TableAlias, TableFactor, TableWithJoins, WildcardAdditionalOptions,
};

use super::{
    leaves::{PlainCall, column, comparison, is_reserved, literal, name, parts_of},
    normalize::{NormalizedQuery, group_of, group_of_text},
    of_condition::{condition, matching},
    shape::{
        ColumnName, Comparison, JsonKeys, LiteralGroup, MatchOption, MatchOptions, OrderBy, Select,
        Shape, ShapeCondition, ShapeItem, Value,
    },
};
use crate::parse::{MAX_QUERY_TIME, NamedOptions, OptionValue};

/// The shape of a statement, if it has one.
pub(super) fn shape(parsed: &NormalizedQuery<'_>) -> Option<Shape> {
    let mut select = select(parsed, enclosed(&parsed.query))?;
    if !parsed.options.is_empty() {
        *options_of(select.condition.as_mut()?)? = options(&parsed.options)?;
    }
    let branches = parsed.branches;
    let plain = branches.times == 1 || select.is_plain();
    plain.then_some(Shape { select, branches, all: parsed.all })
}

/// A query without parentheses around it.
fn enclosed(query: &Query) -> &Query {
    match (query.body.as_ref(), &query.order_by, &query.limit_clause) {
        (SetExpr::Query(inner), None, None) if is_alone(query) => inner,
        _ => query,
    }
}

/// Whether a query has nothing but a body, an order and a limit.
fn is_alone(query: &Query) -> bool {
    let Query {
        with: None,
        body: _,
        order_by: _,
        limit_clause: _,
        fetch: None,
        locks,
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators,
    } = query
    else {
        return false;
    };
    locks.is_empty() && pipe_operators.is_empty()
}

/// The options of the condition's only keyword query.
fn options_of(condition: &mut ShapeCondition) -> Option<&mut MatchOptions> {
    match condition {
        ShapeCondition::Keywords(keywords) => Some(&mut keywords.options),
        ShapeCondition::And(parts) => parts.iter_mut().find_map(options_of),
        _ => None,
    }
}

fn options(named: &NamedOptions) -> Option<MatchOptions> {
    let group = |text: &Option<String>| group_of_text(text.as_deref()?);
    let option = |value: &OptionValue| match value {
        OptionValue::Word(word) => {
            let is_name = word.starts_with(|first: char| first.is_ascii_alphabetic());
            (is_name && !is_reserved(word)).then(|| MatchOption::Word(word.clone()))
        }
        OptionValue::Text(text) => group(text).map(MatchOption::Literal),
        OptionValue::List(parts) => {
            let part = |(name, number): &(String, _)| Some((name.clone(), group(number)?));
            parts.iter().map(part).collect::<Option<_>>().map(MatchOption::List)
        }
        OptionValue::Call(name, text) => Some(MatchOption::Call(name.clone(), group(text)?)),
    };
    let named = named.iter().map(|(name, value)| {
        // Only the general path enforces this time limit.
        if name == MAX_QUERY_TIME { None } else { Some((name.clone(), option(value)?)) }
    });
    named.collect()
}

/// The parts of a SELECT that shapes know.
pub(super) struct SelectParts<'t> {
    pub distinct: bool,
    /// Whether ALL or SQL_NO_CACHE stands before the items, which change nothing.
    pub has_modifier: bool,
    pub items: &'t [SelectItem],
    pub from: &'t [TableWithJoins],
    pub condition: Option<&'t Expr>,
    groups: &'t [Expr],
}

impl<'t> SelectParts<'t> {
    /// The parts; `None` if there are others.
    fn of(select: &'t ast::Select) -> Option<Self> {
        let ast::Select {
            select_token: _,
            optimizer_hints,
            distinct,
            select_modifiers,
            top: None,
            top_before_distinct: _,
            projection,
            exclude: None,
            into: None,
            from,
            lateral_views,
            prewhere: None,
            selection,
            connect_by,
            group_by: GroupByExpr::Expressions(groups, with),
            cluster_by,
            distribute_by,
            sort_by,
            having: None,
            named_window,
            qualify: None,
            window_before_qualify: _,
            value_table_mode: None,
            flavor: SelectFlavor::Standard,
        } = select
        else {
            return None;
        };
        let is_whole = optimizer_hints.is_empty()
            && lateral_views.is_empty()
            && connect_by.is_empty()
            && with.is_empty()
            && cluster_by.is_empty()
            && distribute_by.is_empty()
            && sort_by.is_empty()
            && named_window.is_empty();
        if !is_whole {
            return None;
        }
        let uncached = SelectModifiers { sql_no_cache: true, ..SelectModifiers::default() };
        let has_modifier = match (distinct, select_modifiers) {
            (None | Some(ast::Distinct::Distinct), None) => false,
            (Some(ast::Distinct::All), None) => true,
            (None | Some(ast::Distinct::All), Some(set)) if *set == uncached => true,
            _ => return None,
        };
        let distinct = matches!(distinct, Some(ast::Distinct::Distinct));
        let (items, condition) = (projection.as_slice(), selection.as_ref());
        Some(Self { distinct, has_modifier, items, from, condition, groups })
    }

    /// The parts of a query that has no order and no limit, no groups and no modifiers.
    pub fn of_plain(query: &'t Query) -> Option<Self> {
        let SetExpr::Select(select) = query.body.as_ref() else { return None };
        let is_plain = is_alone(query) && query.order_by.is_none() && query.limit_clause.is_none();
        let parts = Self::of(select).filter(|_| is_plain)?;
        let is_plain = !parts.distinct && !parts.has_modifier && parts.groups.is_empty();
        is_plain.then_some(parts)
    }
}

fn select(parsed: &NormalizedQuery<'_>, query: &Query) -> Option<Select> {
    let SetExpr::Select(body) = query.body.as_ref() else { return None };
    let parts = SelectParts::of(body).filter(|_| is_alone(query))?;
    let items = parts.items.iter().map(|each| item(parsed, each)).collect::<Option<Vec<_>>>()?;
    let [from] = parts.from else { return None };
    let ((database, table, alias), joined) = source(from)?;
    let condition = match parts.condition {
        Some(expr) => Some(condition(parsed, expr, 0)?),
        None => None,
    };
    let mut groups = parts.groups.iter().map(column).collect::<Option<Vec<_>>>()?;
    if parts.distinct {
        // DISTINCT of columns is the same as GROUP BY them.
        let named = items.iter().map(|item| match item {
            ShapeItem::One(Value::Column(column), _) => Some(column.clone()),
            _ => None,
        });
        groups = named.collect::<Option<_>>().filter(|_| groups.is_empty())?;
    }
    let order = order(query)?;
    let (limit, offset) = limit(query)?;
    Some(Select { items, database, table, alias, joined, condition, groups, order, limit, offset })
}

/// The database, the table and its alias.
pub(super) type TableNames = (Option<String>, String, Option<String>);

/// The names of a table, if it is nothing but a table.
pub(super) fn table(factor: &TableFactor) -> Option<TableNames> {
    let TableFactor::Table {
        name: names,
        alias,
        args: None,
        with_hints,
        version: None,
        with_ordinality: false,
        partitions,
        json_path: None,
        sample: None,
        index_hints,
    } = factor
    else {
        return None;
    };
    if !with_hints.is_empty() || !partitions.is_empty() || !index_hints.is_empty() {
        return None;
    }
    let (database, table) = match parts_of(names)?.as_slice() {
        [table] => (None, name(table)?),
        [database, table] => (Some(name(database)?), name(table)?),
        _ => return None,
    };
    Some((database, table, alias_of(alias.as_ref())?))
}

/// An alias, if there is one. The outer `None` means that it has more than a name.
pub(super) fn alias_of(alias: Option<&TableAlias>) -> Option<Option<String>> {
    let Some(alias) = alias else { return Some(None) };
    let TableAlias { explicit: _, name: ident, columns, at: None } = alias else { return None };
    if columns.is_empty() { Some(Some(name(ident)?)) } else { None }
}

/// The table of a FROM, and the JSON_TABLE that it is joined with.
fn source(from: &TableWithJoins) -> Option<(TableNames, Option<JsonKeys>)> {
    let join = match from.joins.as_slice() {
        [] => return Some((table(&from.relation)?, None)),
        [join] => join,
        _ => return None,
    };
    let Join { relation, global: false, join_operator } = join else { return None };
    let (JoinOperator::Join(JoinConstraint::On(on)) | JoinOperator::Inner(JoinConstraint::On(on))) =
        join_operator
    else {
        return None;
    };
    let (of, keys) = match &from.relation {
        keys @ TableFactor::JsonTable { .. } => (relation, keys),
        of => (of, relation),
    };
    Some((table(of)?, Some(joined_on(json_keys(keys)?, on)?)))
}

fn json_keys(factor: &TableFactor) -> Option<JsonKeys> {
    let TableFactor::JsonTable { json_expr, json_path, columns, alias } = factor else {
        return None;
    };
    let [JsonTableColumn::Named(of_key)] = columns.as_slice() else { return None };
    let JsonTableNamedColumn {
        name: ident,
        r#type,
        path,
        exists: false,
        on_empty: None,
        on_error: None,
    } = of_key
    else {
        return None;
    };
    let (array, members) = (literal(json_expr)?, group_of(&json_path.value)?);
    let (bits, unsigned) = match r#type {
        DataType::Int(None) | DataType::Integer(None) => (32, false),
        DataType::IntUnsigned(None) | DataType::IntegerUnsigned(None) => (32, true),
        DataType::MediumInt(None) => (24, false),
        DataType::MediumIntUnsigned(None) => (24, true),
        DataType::BigInt(None) => (64, false),
        DataType::BigIntUnsigned(None) => (64, true),
        _ => return None,
    };
    let half = 1_i128 << (bits - 1);
    let range = if unsigned { (0, half * 2 - 1) } else { (-half, half - 1) };
    let (member, column) = (group_of(&path.value)?, name(ident)?);
    let alias = alias_of(alias.as_ref())??;
    let key = ColumnName { table: None, name: String::new(), hidden: None };
    Some(JsonKeys { array, members, member, range, alias, column, key })
}

/// `ON` the JSON_TABLE's column equals a column of the table.
fn joined_on(mut keys: JsonKeys, on: &Expr) -> Option<JsonKeys> {
    let Expr::BinaryOp { left, op, right } = on else { return None };
    let (left, right) = (column(left)?, column(right)?);
    let is_keys = |column: &ColumnName| {
        column.table.as_deref() == Some(&keys.alias)
            && column.name.eq_ignore_ascii_case(&keys.column)
    };
    keys.key = match (comparison(op)?, is_keys(&left), is_keys(&right)) {
        (Comparison::Equal, true, false) => right,
        (Comparison::Equal, false, true) => left,
        _ => return None,
    };
    Some(keys)
}

/// What an item of a SELECT is, and its alias.
pub(super) fn named(item: &SelectItem) -> Option<(&Expr, Option<String>)> {
    match item {
        SelectItem::UnnamedExpr(expr) => Some((expr, None)),
        SelectItem::ExprWithAlias { expr, alias } => Some((expr, Some(name(alias)?))),
        SelectItem::ExprWithAliases { .. }
        | SelectItem::QualifiedWildcard(..)
        | SelectItem::Wildcard(_) => None,
    }
}

fn item(parsed: &NormalizedQuery<'_>, item: &SelectItem) -> Option<ShapeItem> {
    match item {
        SelectItem::Wildcard(more) => return is_bare(more).then_some(ShapeItem::Every(None)),
        SelectItem::QualifiedWildcard(kind, more) => {
            let SelectItemQualifiedWildcardKind::ObjectName(of) = kind else { return None };
            let [of] = <[_; 1]>::try_from(parts_of(of)?).ok()?;
            let every = ShapeItem::Every(Some(name(of)?));
            return is_bare(more).then_some(every);
        }
        _ => {}
    }
    let (expr, alias) = named(item)?;
    let value = value(expr)?;
    let name = match (alias, &value) {
        (Some(alias), _) => alias,
        (None, Value::Column(column)) => column.name.clone(),
        // The column's name would contain the literals' text, which is not part of the shape.
        (None, Value::Score(_) | Value::Member { .. }) => return None,
        (None, _) => written(parsed, expr)?,
    };
    Some(ShapeItem::One(value, name))
}

/// Whether `*` stands without more words.
fn is_bare(more: &WildcardAdditionalOptions) -> bool {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike: None,
        opt_exclude: None,
        opt_except: None,
        opt_replace: None,
        opt_rename: None,
        opt_alias: None,
    } = more
    else {
        return false;
    };
    true
}

/// The text of a call.
pub(super) fn written(parsed: &NormalizedQuery<'_>, expr: &Expr) -> Option<String> {
    let column = PlainCall::of(expr)?.name.span.start.column;
    parsed.call_at(usize::try_from(column).ok()?.checked_sub(1)?)
}

fn value(expr: &Expr) -> Option<Value> {
    match expr {
        Expr::MatchAgainst { .. } => {
            return matching(expr, |text| group_of(&text.value)).map(Value::Score);
        }
        Expr::BinaryOp { left, op, right } => {
            let is_text = match op {
                ast::BinaryOperator::LongArrow => true,
                ast::BinaryOperator::Arrow => false,
                _ => return None,
            };
            return Some(Value::Member { column: column(left)?, path: literal(right)?, is_text });
        }
        _ => {}
    }
    let Some(call) = PlainCall::of(expr) else { return column(expr).map(Value::Column) };
    if call.duplicates.is_some() {
        return None;
    }
    match call.args {
        [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)] if call.is("COUNT") => {
            return Some(Value::CountRows);
        }
        [] if call.is("WEIGHT") => return Some(Value::Weight),
        _ => {}
    }
    match call.expressions()?.as_slice() {
        [of] if call.is("COUNT") => column(of).map(Value::CountValues),
        [of] if call.is("MIN") => column(of).map(Value::Least),
        [of] if call.is("MAX") => column(of).map(Value::Greatest),
        [of] if call.is("JSON_UNQUOTE") => extracted(of, true),
        [_, _] => extracted(expr, false),
        _ => None,
    }
}

/// `JSON_EXTRACT(column, '$.path')`.
fn extracted(expr: &Expr, is_text: bool) -> Option<Value> {
    let call =
        PlainCall::of(expr).filter(|call| call.duplicates.is_none() && call.is("JSON_EXTRACT"))?;
    let [of, path] = <[_; 2]>::try_from(call.expressions()?).ok()?;
    Some(Value::Member { column: column(of)?, path: literal(path)?, is_text })
}

fn order(query: &Query) -> Option<Vec<(OrderBy, bool)>> {
    let Some(order) = &query.order_by else { return Some(Vec::new()) };
    let ast::OrderBy { kind: OrderByKind::Expressions(list), interpolate: None } = order else {
        return None;
    };
    let each = |by: &OrderByExpr| {
        let OrderByExpr { expr, options, with_fill: None } = by else { return None };
        let OrderByOptions { asc, nulls_first: None } = options else { return None };
        let by = match expr {
            // A number that is a literal is no number here.
            Expr::Value(value) => match &value.value {
                ast::Value::Number(digits, false) => OrderBy::Item(digits.parse().ok()?),
                _ => return None,
            },
            expr => OrderBy::Value(value(expr)?),
        };
        Some((by, *asc == Some(false)))
    };
    list.iter().map(each).collect()
}

fn limit(query: &Query) -> Option<(Option<LiteralGroup>, Option<LiteralGroup>)> {
    match &query.limit_clause {
        None => Some((None, None)),
        Some(LimitClause::LimitOffset { limit: Some(limit), offset, limit_by }) => {
            let offset = match offset {
                Some(offset) => Some(literal(&offset.value)?),
                None => None,
            };
            limit_by.is_empty().then_some((Some(literal(limit)?), offset))
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
            Some((Some(literal(limit)?), Some(literal(offset)?)))
        }
        Some(LimitClause::LimitOffset { limit: None, .. }) => None,
    }
}
