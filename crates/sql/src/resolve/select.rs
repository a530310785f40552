//! Resolves one SELECT.

use std::collections::{HashMap, HashSet};

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, GroupByWithModifier, ObjectName, OrderByExpr,
    OrderByOptions, Select, SelectItem, SelectItemQualifiedWildcardKind, Value, ValueWithSpan,
};
use remora_mysql::{ErrorCode, messages};

use super::{
    ClientColumn, Env, Output, Resolver, attributes,
    best_of_groups::{self, GroupBestRows},
    distinct,
    expr::{ClauseContext, SelectAlias, is_aggregate},
    from::{binary, opaque},
    grouping::{self, NonKeyColumns},
    hints, items, keywords, limit,
    places::{SelectKind, SelectPosition},
    scope::{Clause, Scope, Visible, quoted, unknown_column},
    sets::Grouped,
    sphinx,
    view_text::NotedItem,
    windows,
};
use crate::{
    Error, Result,
    parse::{function_call, take_group_rows, write::select_from},
};

/// The most columns of a SELECT, as for a table in MySQL. Planning compares each with all others.
pub(crate) const MAX_COLUMNS: usize = 4_096;

/// Whether anybody reads the select list and the order. EXISTS does not: without aggregates and HAVING, they may name any
/// columns beside groups.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SelectList {
    Read,
    Unread,
}

impl SelectList {
    fn of(select: &Select, order: &[OrderByExpr], items: &[SelectedItem], env: Env<'_>) -> Self {
        let ordered = order.iter().map(|each| &each.expr);
        let mut parts = items.iter().map(|item| &item.expr).chain(ordered);
        let is_read = select.having.is_some() || parts.any(grouping::has_aggregate);
        if env.standing.in_exists && !is_read { Self::Unread } else { Self::Read }
    }
}

/// A selected expression.
#[derive(Clone, Debug)]
pub(super) struct SelectedItem {
    pub expr: Expr,
    pub shown: ClientColumn,
    pub planned: String,
}

impl Resolver<'_> {
    /// Resolves a SELECT, together with the ORDER BY of its query.
    pub(super) fn select(
        &mut self,
        select: &mut Select,
        order: &mut Vec<OrderByExpr>,
        env: Env<'_>,
        names: Option<&[String]>,
    ) -> Result<Vec<Output>> {
        self.selects += 1;
        let standing = SelectPosition { select: self.selects, ..env.standing };
        let (env, outer_weight) = (Env { standing, ..env }, self.weight.take());
        windows::unfold(select, order)?;
        let scope = self.scope_of(select, env)?;
        let is_distinct = select.distinct.is_some();
        self.condition(select, &scope, env)?;
        let mut items = self.items(select, &scope, env)?;
        let taken = if order.is_empty() { &[] } else { scope.visible.as_slice() };
        name_items(&mut items, names, taken, env.scope.is_some());
        let windows = ClauseContext { aggregates: true, ..ClauseContext::plain(Clause::Order) };
        self.nodes(&mut select.named_window, &scope, env, windows)?;
        let aliases: Vec<SelectAlias> = items.iter().map(alias_of).collect();
        let (said, group_names) =
            (take_group_rows(select), best_of_groups::group_names(select, &items));
        let mut groups = self.groups(select, &items, &aliases, &scope, env)?;
        let is_of_rows = is_of_rows(select, &items, &groups.0);
        let is_grouped = is_grouped(&items, &groups.0);
        let is_one_row = is_grouped && groups.0.is_empty();
        let said = self.group_rows(said, is_grouped);
        let is_plain = !is_grouped && !is_distinct && select.having.is_none() && order.is_empty();
        if is_plain {
            let inherited = limit::inherited_order(select, env.common);
            self.inherited_order = self.inherited_order.max(inherited);
        }
        let place = ClauseContext {
            clause: Clause::Having,
            aliases: &aliases,
            aliases_first: true,
            groups: &groups.0,
            aggregates: true,
        };
        if let Some(having) = &mut select.having {
            self.expr(having, &scope, env, place)?;
        }
        if is_of_rows {
            self.order_rows(order, &scope);
        }
        self.order(order, &items, &aliases, &scope, env)?;
        let best_rows = self.best_rows(said, (&items, &groups.0), &aliases, &scope, env)?;
        self.weight = outer_weight;
        let grouped = Grouped { by_best_rows: best_rows.is_some(), has_rollup: groups.1 };
        self.unnest(select, order, &mut groups.0, &mut items, grouped)?;
        let group = best_of_groups::group_of(&groups.0, &group_names);
        replace_groups(select, order, group.as_ref(), &mut items)?;
        let has_key = !groups.1 && best_rows.is_none() && !is_one_row;
        let determining = match has_key && env.standing.kind == SelectKind::Derived {
            true => grouping::determining(select, &groups.0, &items, &scope),
            false => Vec::new(),
        };
        let list = SelectList::of(select, order, &items, env);
        self.group(select, order, groups, &mut items, (&scope, best_rows, list))?;
        self.determining = determining;
        for each in order.iter_mut() {
            by_name(each, &items, select.distinct.is_some());
        }
        if !env.standing.in_exists {
            distinct::check(select, order, &scope)?;
        }
        self.list = self.turned(select, order, (&items, is_distinct), &scope)?;
        if self.list.is_none() {
            select.projection =
                items.iter().map(|each| item(each.expr.clone(), &each.planned)).collect();
        }
        let output = |item: SelectedItem| Output { planned: item.planned, shown: item.shown };
        Ok(items.into_iter().map(output).collect())
    }

    /// Resolves FROM with the SELECT's hints.
    fn scope_of<'e>(&mut self, select: &mut Select, env: Env<'e>) -> Result<Scope<'e>> {
        select.select_modifiers = None;
        select.optimizer_hints.clear();
        let mut scope = Scope::new(env.scope);
        let place = (select.select_token.0.span.start.column as usize).checked_sub(1);
        let hints = place.map(|place| hints::of_select(self.source, place)).unwrap_or_default();
        let outer = std::mem::replace(&mut self.hints, hints);
        self.unite(select)?;
        self.sources(select, &mut scope, env)?;
        self.hints = outer;
        Ok(scope)
    }

    /// Resolves WHERE, which also defines WEIGHT().
    fn condition(&mut self, select: &mut Select, scope: &Scope<'_>, env: Env<'_>) -> Result<()> {
        let Select { selection, projection, .. } = &mut *select;
        if let Some(selection) = selection {
            self.name_selected(selection, projection)?;
            self.expr(selection, scope, env, ClauseContext::plain(Clause::Where))?;
        }
        self.check_matches(select.selection.as_ref())?;
        self.weight = keywords::weight(select.selection.as_ref());
        if let Some(selection) = &mut select.selection {
            let weight = self.weight.clone().unwrap_or_else(keywords::one);
            keywords::replace_weight(selection, &weight);
        }
        Ok(())
    }

    /// The select items, with `*` expanded.
    fn items(
        &mut self,
        select: &mut Select,
        scope: &Scope<'_>,
        env: Env<'_>,
    ) -> Result<Vec<SelectedItem>> {
        let column = select.select_token.0.span.start.column as usize;
        let texts = column.checked_sub(1).map(|place| items::texts(self.source, place));
        let mut texts = texts.unwrap_or_default().into_iter();
        let mut made = Vec::new();
        let mut noted = Vec::new();
        for each in std::mem::take(&mut select.projection) {
            let text = texts.next();
            let before = made.len();
            let is_given = match each {
                SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => None,
                _ => Some(matches!(each, SelectItem::ExprWithAlias { .. })),
            };
            match each {
                SelectItem::Wildcard(_) => made.extend(everything(scope)?),
                SelectItem::QualifiedWildcard(kind, _) => made.extend(all_of(&kind, scope)?),
                SelectItem::UnnamedExpr(expr) => {
                    made.push(self.item(expr, None, text, scope, env)?)
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    made.push(self.item(expr, Some(alias.value), text, scope, env)?);
                }
                other @ SelectItem::ExprWithAliases { .. } => {
                    return Err(Error::unsupported(other));
                }
            }
            if made.len() > MAX_COLUMNS {
                return Err(Error::new(ErrorCode::TooManyColumns, messages::TOO_MANY_COLUMNS));
            }
            if self.notes.is_some() {
                noted.push(self.noted_item(
                    made.get(before..).unwrap_or_default(),
                    is_given,
                    scope,
                ));
            }
        }
        self.note_items(select, noted);
        Ok(made)
    }

    /// A select item as recorded for a view. `is_given` tells whether the name of an expression is an explicit alias;
    /// it is `None` for `*`.
    fn noted_item(
        &self,
        made: &[SelectedItem],
        is_given: Option<bool>,
        scope: &Scope<'_>,
    ) -> NotedItem {
        match (made, is_given) {
            ([item], Some(is_given)) => NotedItem::One(item.shown.name.clone(), is_given),
            (all, _) => self.noted_all(all.iter().map(|item| (&item.expr, &item.shown)), scope),
        }
    }

    fn item(
        &mut self,
        mut expr: Expr,
        alias: Option<String>,
        text: Option<String>,
        scope: &Scope<'_>,
        env: Env<'_>,
    ) -> Result<SelectedItem> {
        let (is_named, is_column) = (alias.is_some(), is_name(&expr));
        let mut name = alias.unwrap_or_else(|| name_of(&expr, text.clone()));
        let place = ClauseContext { aggregates: true, ..ClauseContext::plain(Clause::Fields) };
        self.expr(&mut expr, scope, env, place)?;
        if is_column && !is_named && attributes::is_part(&expr) {
            name = text.unwrap_or(name);
        }
        let (table, column) = column_of(&expr, scope).unwrap_or_default();
        if is_column && !is_named && is_of_view(&expr, scope) {
            name.clone_from(&column);
        }
        if self.is_sphinx() && !sphinx::is_of_system(scope) {
            name = sphinx::column_name(&name);
        }
        let shown = ClientColumn { name, table, column };
        Ok(SelectedItem { expr, shown, planned: String::new() })
    }

    /// The resolved group keys, and whether WITH ROLLUP is present.
    fn groups(
        &mut self,
        select: &mut Select,
        items: &[SelectedItem],
        aliases: &[SelectAlias],
        scope: &Scope<'_>,
        env: Env<'_>,
    ) -> Result<(Vec<Expr>, bool)> {
        let none = GroupByExpr::Expressions(Vec::new(), Vec::new());
        let group_by = std::mem::replace(&mut select.group_by, none);
        let GroupByExpr::Expressions(mut groups, modifiers) = group_by else {
            return Err(Error::unsupported("GROUP BY ALL"));
        };
        // GROUPBY() cannot be its own group key.
        let others = aliases.iter().filter(|alias| !best_of_groups::is_group(&alias.expr));
        let aliases: Vec<SelectAlias> = match groups.is_empty() {
            true => Vec::new(),
            false => others.cloned().collect(),
        };
        for group in &mut groups {
            if let Some(position) = position(group) {
                let item = position.checked_sub(1).and_then(|at| items.get(at));
                let unknown = || unknown_column(&position.to_string(), Clause::Group);
                let item = item.ok_or_else(unknown)?;
                *group = item.expr.clone();
                if is_aggregate(group) || best_of_groups::is_group(group) {
                    let message = format!("Can't group on '{}'", item.shown.name);
                    return Err(Error::new(ErrorCode::WrongGroup, message));
                }
                continue;
            }
            let place = ClauseContext { aliases: &aliases, ..ClauseContext::plain(Clause::Group) };
            self.expr(group, scope, env, place)?;
        }
        let rollup = matches!(modifiers.as_slice(), [GroupByWithModifier::Rollup]);
        if !modifiers.is_empty() && !rollup {
            return Err(Error::unsupported("this kind of GROUP BY"));
        }
        Ok((groups, rollup))
    }

    fn order(
        &mut self,
        order: &mut [OrderByExpr],
        items: &[SelectedItem],
        aliases: &[SelectAlias],
        scope: &Scope<'_>,
        env: Env<'_>,
    ) -> Result<()> {
        for each in order {
            if let Some(position) = position(&each.expr) {
                let item = position.checked_sub(1).and_then(|at| items.get(at));
                let unknown = || unknown_column(&position.to_string(), Clause::Order);
                each.expr = item.ok_or_else(unknown)?.expr.clone();
                continue;
            }
            let is_name = matches!(each.expr, Expr::Identifier(_));
            let place = ClauseContext {
                aliases,
                aliases_first: is_name,
                aggregates: true,
                ..ClauseContext::plain(Clause::Order)
            };
            self.expr(&mut each.expr, scope, env, place)?;
        }
        Ok(())
    }

    /// Rewrites a SELECT with groups.
    fn group(
        &mut self,
        select: &mut Select,
        order: &mut Vec<OrderByExpr>,
        (mut groups, rollup): (Vec<Expr>, bool),
        items: &mut [SelectedItem],
        (scope, best_rows, list): (&Scope<'_>, Option<GroupBestRows>, SelectList),
    ) -> Result<()> {
        let ordered = order.iter().map(|each| &each.expr);
        let mut all = items.iter().map(|item| &item.expr).chain(&select.having).chain(ordered);
        if groups.is_empty() && !all.any(grouping::has_aggregate) {
            // Without groups HAVING is another WHERE.
            if let Some(having) = select.having.take() {
                select.selection = Some(match select.selection.take() {
                    Some(selection) => nested_and(selection, having),
                    None => having,
                });
            }
            let is_strict = self.catalog.only_full_group_by();
            let made =
                best_rows.is_none().then(|| distinct::as_groups(select, order, items, is_strict));
            let Some(made) = made.flatten() else { return Ok(()) };
            groups = made;
        } else if best_rows.is_none() && !rollup && distinct::is_of_groups(&groups, items) {
            select.distinct = None;
        }
        match &best_rows {
            Some(_) if rollup => {
                return Err(Error::unsupported("WITH ROLLUP of GROUP n BY or WITHIN GROUP"));
            }
            Some(best_rows) => best_rows.group(select, order, &groups, items, scope)?,
            None => {
                let mut parts = items.iter().map(|item| &item.expr).chain(&select.having);
                if groups.is_empty() && parts.any(grouping::has_aggregate) {
                    // A single row has no order.
                    order.clear();
                }
                self.beside_groups(select, order, &groups, (items, list), scope)?;
            }
        }
        if best_rows.is_some_and(|best_rows| best_rows.are_several()) {
            return Ok(());
        }
        let constants = groups.iter().all(grouping::is_constant);
        let mut kept: Vec<Expr> =
            groups.iter().filter(|group| !grouping::is_constant(group)).cloned().collect();
        if constants && !groups.is_empty() {
            kept = groups.into_iter().take(1).map(opaque).collect();
        }
        if !rollup {
            // Duplicate keys are dropped, except WITH ROLLUP, which makes totals for each.
            let mut known = HashSet::new();
            kept.retain(|group| known.insert(grouping::bare_text(group)));
        }
        if rollup {
            distinguish(&mut kept);
            if order.is_empty() {
                *order = kept.iter().flat_map(sorted_group).collect();
            }
            kept = vec![Expr::Rollup(kept.into_iter().map(|group| vec![group]).collect())];
        }
        select.group_by = GroupByExpr::Expressions(kept, Vec::new());
        Ok(())
    }
}

impl Resolver<'_> {
    /// Rewrites columns that are not group keys.
    fn beside_groups(
        &self,
        select: &mut Select,
        order: &mut [OrderByExpr],
        groups: &[Expr],
        (items, list): (&mut [SelectedItem], SelectList),
        scope: &Scope<'_>,
    ) -> Result<()> {
        let strict = self.catalog.only_full_group_by() && list == SelectList::Read;
        let non_key_columns = if strict { NonKeyColumns::Determined } else { NonKeyColumns::Any };
        let check = grouping::Grouping::new(groups, select, scope, non_key_columns);
        for (index, item) in items.iter_mut().enumerate() {
            check.apply(&mut item.expr, grouping::ExprPosition::Item(index + 1))?;
        }
        if let Some(having) = &mut select.having {
            check.apply(having, grouping::ExprPosition::Having)?;
        }
        for (index, each) in order.iter_mut().enumerate() {
            check.apply(&mut each.expr, grouping::ExprPosition::Order(index + 1))?;
        }
        Ok(())
    }
}

/// Spells repeated keys differently, since no two columns of a plan may be the same.
fn distinguish(groups: &mut [Expr]) {
    let spelled = |group: &Expr| grouping::bare_text(group).to_lowercase();
    let given: HashSet<String> = groups.iter().map(spelled).collect();
    let mut known = HashSet::new();
    for group in groups {
        let mut distinct = group.clone();
        let mut times = 1;
        while times > 1 && given.contains(&spelled(&distinct)) || !known.insert(spelled(&distinct))
        {
            times += 1;
            distinct = function_call("coalesce", vec![group.clone(); times]);
        }
        *group = distinct;
    }
}

/// Replaces GROUPBY() everywhere.
fn replace_groups(
    select: &mut Select,
    order: &mut [OrderByExpr],
    group: Option<&Expr>,
    items: &mut [SelectedItem],
) -> Result<()> {
    for item in items {
        best_of_groups::replace_group(&mut item.expr, group)?;
    }
    if let Some(having) = &mut select.having {
        best_of_groups::replace_group(having, group)?;
    }
    order.iter_mut().try_for_each(|each| best_of_groups::replace_group(&mut each.expr, group))
}

/// Whether a SELECT returns rows as they are, without groups or DISTINCT.
fn is_of_rows(select: &Select, items: &[SelectedItem], groups: &[Expr]) -> bool {
    select.distinct.is_none() && !is_grouped(items, groups)
}

/// Whether a SELECT has groups or aggregates.
fn is_grouped(items: &[SelectedItem], groups: &[Expr]) -> bool {
    !groups.is_empty() || items.iter().any(|item| grouping::has_aggregate(&item.expr))
}

/// The order of a group key with its ROLLUP total last.
fn sorted_group(group: &Expr) -> [OrderByExpr; 2] {
    let summed = function_call("grouping", vec![group.clone()]);
    let options = OrderByOptions { asc: None, nulls_first: None };
    [summed, group.clone()].map(|expr| OrderByExpr { expr, options, with_fill: None })
}

fn nested_and(left: Expr, right: Expr) -> Expr {
    let nested = |expr: Expr| Expr::Nested(Box::new(expr));
    binary(nested(left), BinaryOperator::And, nested(right))
}

/// Orders by a select item through its name in the plan. Distinct rows can be ordered in no other way, so parentheses, as
/// an alias gets them, do not matter there.
fn by_name(order: &mut OrderByExpr, items: &[SelectedItem], is_distinct: bool) {
    let text = |expr: &Expr| match is_distinct {
        true => grouping::bare_text(expr),
        false => expr.to_string(),
    };
    let ordered = text(&order.expr);
    if let Some(item) = items.iter().find(|item| text(&item.expr) == ordered) {
        order.expr = Expr::Identifier(quoted(&item.planned));
    } else if position(&order.expr).is_some() {
        // Otherwise the plan would take the number for a position.
        order.expr = opaque(order.expr.clone());
    }
}

/// The number of a select item, if the expression is one.
pub(super) fn position(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => digits.parse().ok(),
        _ => None,
    }
}

/// Gives the items unique names in plans. No item gets the name of a column in `taken`, unless it is that column,
/// because a plan that orders by an unselected column carries both. Items of a subquery (`within`) get names apart from
/// those of the outer query.
fn name_items(
    items: &mut [SelectedItem],
    names: Option<&[String]>,
    taken: &[Visible],
    within: bool,
) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for visible in taken {
        *counts.entry(visible.name.planned.to_lowercase()).or_default() += 1;
    }
    let mut used: HashSet<String> = HashSet::new();
    // The last suffix of each name.
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for (index, item) in items.iter_mut().enumerate() {
        if let Some(name) = names.and_then(|names| names.get(index)) {
            item.shown.name.clone_from(name);
        }
        // With a point it could be taken for a qualified column.
        let mut base = item.shown.name.to_lowercase().replace('.', "#");
        let count = counts.get(&base).copied().unwrap_or(0);
        let is_own = count == 1 && is_column(&item.expr, &base);
        if within || count > 0 && !is_own {
            base.push('#');
        }
        let mut planned = base.clone();
        let number = numbers.entry(base.clone()).or_insert(1);
        while !used.insert(planned.clone()) {
            *number += 1;
            planned = format!("{base}#{number}");
        }
        item.planned = planned;
    }
}

fn is_column(expr: &Expr, name: &str) -> bool {
    let Expr::CompoundIdentifier(parts) = expr else { return false };
    parts.last().is_some_and(|last| last.value.to_lowercase() == name)
}

fn alias_of(item: &SelectedItem) -> SelectAlias {
    let name = item.shown.name.to_lowercase();
    SelectAlias { name, expr: item.expr.clone() }
}

/// The default name of an expression.
fn name_of(expr: &Expr, text: Option<String>) -> String {
    match expr {
        Expr::Identifier(name) if !name.value.starts_with('@') => name.value.clone(),
        Expr::CompoundIdentifier(name) => {
            name.last().map_or(String::new(), |last| last.value.clone())
        }
        expr => text.unwrap_or_else(|| expr.to_string()),
    }
}

/// The alias of the table whose column an expression is, and the column's name in the table.
fn column_of(expr: &Expr, scope: &Scope<'_>) -> Option<(String, String)> {
    let Expr::CompoundIdentifier(name) = expr else { return None };
    let [unique, column] = name.as_slice() else { return None };
    let relation = scope.planned_relation(&unique.value)?;
    let named = relation.columns.iter().find(|named| named.planned == column.value);
    let column = named.map_or(String::new(), |named| named.shown.clone());
    Some((relation.alias.clone(), column))
}

fn is_name(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

/// Whether an expression is a column of a view.
fn is_of_view(expr: &Expr, scope: &Scope<'_>) -> bool {
    let Expr::CompoundIdentifier(name) = expr else { return false };
    let relation = name.first().and_then(|unique| scope.planned_relation(&unique.value));
    relation.is_some_and(|relation| relation.is_view)
}

fn shown_of(visible: &Visible) -> ClientColumn {
    let name = visible.name.shown.clone();
    ClientColumn { table: visible.table.clone(), column: name.clone(), name }
}

fn everything(scope: &Scope<'_>) -> Result<Vec<SelectedItem>> {
    if scope.relations.is_empty() {
        return Err(Error::new(ErrorCode::NoTablesUsed, "No tables used"));
    }
    let item = |visible: &Visible| SelectedItem {
        expr: visible.expr.clone(),
        shown: shown_of(visible),
        planned: String::new(),
    };
    Ok(scope.visible.iter().filter(|visible| !visible.name.hidden).map(item).collect())
}

fn all_of(kind: &SelectItemQualifiedWildcardKind, scope: &Scope<'_>) -> Result<Vec<SelectedItem>> {
    let SelectItemQualifiedWildcardKind::ObjectName(name) = kind else {
        return Err(Error::unsupported(kind));
    };
    let relation = relation_of(name, scope)
        .ok_or_else(|| Error::new(ErrorCode::UnknownTable, messages::unknown_table(plain(name))))?;
    let item = |visible: Visible| SelectedItem {
        shown: shown_of(&visible),
        expr: visible.expr,
        planned: String::new(),
    };
    let shown = relation.visible().into_iter().filter(|visible| !visible.name.hidden);
    Ok(shown.map(item).collect())
}

fn relation_of<'s>(name: &ObjectName, scope: &'s Scope<'_>) -> Option<&'s super::scope::Relation> {
    let parts: Vec<&str> =
        name.0.iter().filter_map(|part| part.as_ident()).map(|part| part.value.as_str()).collect();
    match parts.as_slice() {
        [table] => scope.relation(None, table),
        [database, table] => scope.relation(Some(database), table),
        _ => None,
    }
}

fn plain(name: &ObjectName) -> String {
    let parts: Vec<&str> =
        name.0.iter().filter_map(|part| part.as_ident()).map(|part| part.value.as_str()).collect();
    parts.join(".")
}

/// An item of a projection.
pub(super) fn item(expr: Expr, name: &str) -> SelectItem {
    SelectItem::ExprWithAlias { expr, alias: quoted(name) }
}

/// A SELECT of nothing.
pub(super) fn empty_select() -> Select {
    select_from(Vec::new(), Vec::new())
}
