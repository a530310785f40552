//! The stored SELECT of a view. Its names keep the meaning they had when the view was created: tables are qualified
//! with databases and columns with tables, `*` is expanded, every column has a name, and NATURAL JOIN becomes USING.
//!
//! While the SELECT is resolved, the meaning of each name is recorded by its position in the text. The recorded
//! meanings are then written into the parsed tree, and the tree is printed.

use std::{cell::RefCell, ops::ControlFlow};

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, JoinConstraint, JoinOperator, ObjectName, Query, Select, SelectItem, TableFactor,
    TableWithJoins, Value, ValueWithSpan, VisitorMut,
};
use remora_mysql::{ErrorCode, LexMode, TokenKind, messages};
use rustc_hash::FxHashMap;

use super::{
    Catalog, ClientColumn, Output, Resolver,
    places::SelectPosition,
    resolver,
    scope::{Scope, quoted},
    views::{parsed, quoted_text},
};
use crate::{
    Error, Result,
    catalog::TableName,
    parse::{JSON_VALUE_OF, Source, VisitMut, tokens},
};

/// The longest column name, in characters.
const MAX_NAME: usize = 64;

/// A position in the text, from 1; 0 means none.
type TextOffset = u64;

/// The recorded meanings of a SELECT's names.
#[derive(Default)]
pub(super) struct Notes {
    /// Tables and views, by the positions of their names.
    tables: FxHashMap<TextOffset, TableName>,
    /// Qualified columns, by the positions of their names.
    columns: FxHashMap<TextOffset, Vec<Ident>>,
    /// The qualifier of a relation's columns, by the relation's name in plans.
    relations: FxHashMap<String, Vec<Ident>>,
    /// The select lists, by the positions of SELECT.
    items: FxHashMap<TextOffset, Vec<NotedItem>>,
    /// The columns of a NATURAL JOIN, by the position of its right table.
    natural: FxHashMap<TextOffset, Vec<String>>,
}

/// An item of a select list.
#[derive(Clone)]
pub(super) enum NotedItem {
    /// An expression with this name, and whether it is an explicit alias.
    One(String, bool),
    /// The columns of a `*`.
    All(Vec<(Vec<Ident>, String)>),
}

/// The stored text of a view's SELECT. `names` are the view's column names, if it lists them.
///
/// # Errors
/// Errors of the query; 1353 and 1060 for its column names. A statement whose printed text would not be read as the
/// same tree is refused.
pub(crate) fn view_text(
    query: Query,
    source: &Source,
    catalog: &dyn Catalog,
    names: &[String],
) -> Result<String> {
    let pristine = query.clone();
    let mut resolver =
        Resolver { notes: Some(RefCell::default()), ..resolver(&query, source, catalog) };
    let mut query = query;
    let given = (!names.is_empty()).then_some(names);
    let env = super::Env { scope: None, common: None, standing: SelectPosition::default() };
    let outputs = resolver.query(&mut query, env, given)?;
    if given.is_some_and(|names| names.len() != outputs.len()) {
        return Err(super::column_counts());
    }
    let mut notes = resolver.notes.map(RefCell::into_inner).unwrap_or_default();
    let mut written = pristine;
    let first = first_select(&written);
    notes.name_columns(first, given.is_some(), &outputs)?;
    let _ = written.visit(&mut notes);
    text_of(written)
}

/// The text of a tree. Refused if it would not be read as the same tree.
fn text_of(written: Query) -> Result<String> {
    let mut shown = written.clone();
    let _ = shown.visit(&mut Texts);
    let text = shown.to_string();
    if parsed(&text).ok().as_ref() != Some(&written) {
        return Err(Error::unsupported(format!("a view of {text}")));
    }
    // All names are quoted, so an unquoted word is a keyword or a function.
    let mut bytes = text.into_bytes();
    let words = tokens(&bytes, LexMode::default())?;
    // MySQL has no function of this internal name, so it could not read the text.
    let internal = JSON_VALUE_OF.to_ascii_uppercase();
    if words.iter().any(|word| word.is_word(&bytes, &internal)) {
        return Err(Error::unsupported("a view with clauses of JSON_VALUE"));
    }
    for word in words.iter().filter(|token| token.kind == TokenKind::Word) {
        if let Some(word) = bytes.get_mut(word.start..word.end)
            && word != b"AS"
        {
            word.make_ascii_lowercase();
        }
    }
    String::from_utf8(bytes).map_err(|_| Error::unsupported("a view of what is no text"))
}

/// Escapes strings for the default `sql_mode`.
struct Texts;

impl VisitorMut for Texts {
    type Break = ();

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
        match &value.value {
            Value::SingleQuotedString(text) => value.value = quoted_text(text),
            Value::NationalStringLiteral(text) => {
                value.value = Value::Placeholder(format!("N{}", quoted_text(text)));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Resolver<'_> {
    /// Records the table of a name in FROM.
    pub(super) fn note_relation(
        &self,
        written: &[&Ident],
        given: Option<&str>,
        full: &TableName,
        unique: &str,
    ) {
        let Some(notes) = &self.notes else { return };
        let Some(place) = written.first().and_then(|first| place(first)) else { return };
        let mut notes = notes.borrow_mut();
        notes.tables.insert(place, full.clone());
        let before = match given {
            Some(alias) => vec![quoted(alias)],
            None => vec![quoted(&full.database), quoted(&full.table)],
        };
        notes.relations.insert(unique.to_owned(), before);
    }

    /// Records the meaning of a name.
    pub(super) fn note_name(&self, name: &[Ident], meant: &Expr, scope: &Scope<'_>) {
        let Some(notes) = &self.notes else { return };
        let Some(place) = name.first().and_then(place) else { return };
        let mut notes = notes.borrow_mut();
        if let Some(called) = notes.called(meant, scope) {
            notes.columns.insert(place, called);
        }
    }

    /// Records the select list of a SELECT.
    pub(super) fn note_items(&self, select: &Select, items: Vec<NotedItem>) {
        let place = select.select_token.0.span.start.column;
        if let Some(notes) = self.notes.as_ref().filter(|_| place > 0) {
            notes.borrow_mut().items.insert(place, items);
        }
    }

    /// The columns of a `*` as they are recorded.
    pub(super) fn noted_all<'e>(
        &self,
        columns: impl Iterator<Item = (&'e Expr, &'e ClientColumn)>,
        scope: &Scope<'_>,
    ) -> NotedItem {
        let Some(notes) = &self.notes else { return NotedItem::All(Vec::new()) };
        let notes = notes.borrow();
        let called = |(expr, shown): (&Expr, &ClientColumn)| {
            Some((notes.called(expr, scope)?, shown.name.clone()))
        };
        NotedItem::All(columns.filter_map(called).collect())
    }

    /// Records the columns of a NATURAL JOIN.
    pub(super) fn note_natural(&self, place: Option<TextOffset>, names: &[String]) {
        if let (Some(notes), Some(place)) = (&self.notes, place) {
            notes.borrow_mut().natural.insert(place, names.to_vec());
        }
    }
}

/// The position of a name in the text.
fn place(name: &Ident) -> Option<TextOffset> {
    Some(name.span.start.column).filter(|column| *column > 0)
}

/// The position that identifies a table in FROM.
pub(super) fn place_of(factor: &TableFactor) -> Option<TextOffset> {
    match factor {
        TableFactor::Table { name, .. } => place(name.0.first()?.as_ident()?),
        TableFactor::Derived { alias, .. } | TableFactor::JsonTable { alias, .. } => {
            place(&alias.as_ref()?.name)
        }
        _ => None,
    }
}

/// The position of the SELECT that names the columns of a query.
fn first_select(query: &Query) -> Option<TextOffset> {
    use datafusion::sql::sqlparser::ast::SetExpr;
    let mut body = query.body.as_ref();
    loop {
        match body {
            SetExpr::Select(select) => return Some(select.select_token.0.span.start.column),
            SetExpr::Query(query) => body = query.body.as_ref(),
            SetExpr::SetOperation { left, .. } => body = left.as_ref(),
            _ => return None,
        }
    }
}

impl Notes {
    /// The qualified name of a column.
    fn called(&self, meant: &Expr, scope: &Scope<'_>) -> Option<Vec<Ident>> {
        let Expr::CompoundIdentifier(parts) = meant else { return None };
        let [unique, planned] = parts.as_slice() else { return None };
        let relation = scope.planned_relation(&unique.value)?;
        let named = relation.columns.iter().find(|named| named.planned == planned.value)?;
        let before = self.relations.get(&unique.value);
        let mut called = before.cloned().unwrap_or_else(|| vec![quoted(&relation.alias)]);
        called.push(quoted(&named.shown));
        Some(called)
    }

    /// Gives the view's columns valid names. Error 1060 for a duplicate, 1166 for an invalid explicit name.
    fn name_columns(
        &mut self,
        first: Option<TextOffset>,
        are_given: bool,
        outputs: &[Output],
    ) -> Result<()> {
        if !are_given && let Some(items) = first.and_then(|first| self.items.get_mut(&first)) {
            let mut number = 0;
            for item in items {
                match item {
                    NotedItem::All(all) => number += all.len(),
                    NotedItem::One(name, is_given) => {
                        number += 1;
                        if *is_given {
                            check_column_name(name)?;
                        } else if !is_name(name) {
                            *name = format!("Name_exp_{number}");
                        }
                    }
                }
            }
        }
        super::named_once(outputs).map(|_| ())
    }

    /// Turns the NATURAL JOINs of a part of FROM into USING.
    fn say_names(&self, from: &mut TableWithJoins) {
        if let TableFactor::NestedJoin { table_with_joins, .. } = &mut from.relation {
            self.say_names(table_with_joins);
        }
        for join in &mut from.joins {
            if let TableFactor::NestedJoin { table_with_joins, .. } = &mut join.relation {
                self.say_names(table_with_joins);
            }
            let names = place_of(&join.relation).and_then(|place| self.natural.get(&place));
            let Some(names) = names else { continue };
            if let Some(constraint) = natural(&mut join.join_operator) {
                if names.is_empty() {
                    *constraint = JoinConstraint::On(Expr::Value(Value::Boolean(true).into()));
                    continue;
                }
                let names = names.iter().map(|name| ObjectName::from(vec![quoted(name)]));
                *constraint = JoinConstraint::Using(names.collect());
            }
        }
    }
}

fn natural(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    let constraint = match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint) => constraint,
        _ => return None,
    };
    (*constraint == JoinConstraint::Natural).then_some(constraint)
}

/// Whether this is a valid column name.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.ends_with(' ') && name.chars().count() <= MAX_NAME
}

fn quote(name: &mut Ident) {
    name.quote_style = Some('`');
}

impl VisitorMut for Notes {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        for table in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            quote(&mut table.alias.name);
            table.alias.columns.iter_mut().for_each(|column| quote(&mut column.name));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        select.from.iter_mut().for_each(|from| self.say_names(from));
        let place = select.select_token.0.span.start.column;
        let Some(noted) = self.items.get(&place) else { return ControlFlow::Continue(()) };
        let mut projection = Vec::with_capacity(select.projection.len());
        for (item, noted) in std::mem::take(&mut select.projection).into_iter().zip(noted) {
            let named = |expr, name: &str| match is_name(name) {
                true => SelectItem::ExprWithAlias { expr, alias: quoted(name) },
                false => SelectItem::UnnamedExpr(expr),
            };
            match (item, noted) {
                (
                    SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. },
                    NotedItem::One(name, _),
                ) => projection.push(named(expr, name)),
                (_, NotedItem::All(all)) => {
                    projection.extend(all.iter().map(|(called, name)| {
                        named(Expr::CompoundIdentifier(called.clone()), name)
                    }));
                }
                (item, _) => projection.push(item),
            }
        }
        select.projection = projection;
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { name, alias, .. } => {
                let noted = name.0.first().and_then(|first| place(first.as_ident()?));
                let noted = noted.and_then(|place| self.tables.get(&place));
                let parts = name.0.iter().filter_map(|part| part.as_ident());
                let written = parts.map(|part| quoted(&part.value)).collect();
                *name = ObjectName::from(match noted {
                    Some(full) => vec![quoted(&full.database), quoted(&full.table)],
                    None => written,
                });
                alias.iter_mut().for_each(|alias| quote(&mut alias.name));
            }
            TableFactor::Derived { alias, .. } | TableFactor::JsonTable { alias, .. } => {
                if let Some(alias) = alias {
                    quote(&mut alias.name);
                    alias.columns.iter_mut().for_each(|column| quote(&mut column.name));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let columns = &self.columns;
        let noted = |name: &Ident| columns.get(&place(name)?).cloned();
        match expr {
            Expr::Identifier(name) => {
                if let Some(called) = noted(name) {
                    *expr = Expr::CompoundIdentifier(called);
                }
            }
            Expr::CompoundIdentifier(names) => {
                if let Some(called) = names.first().and_then(noted) {
                    *names = called;
                }
            }
            Expr::MatchAgainst { columns, .. } => {
                for column in columns {
                    let first = column.0.first().and_then(|part| part.as_ident());
                    if let Some(called) = first.and_then(noted) {
                        *column = ObjectName::from(called);
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Error 1166 for an invalid column name.
pub(crate) fn check_column_name(name: &str) -> Result<()> {
    match is_name(name) {
        true => Ok(()),
        false => Err(Error::new(ErrorCode::WrongColumnName, messages::incorrect_column_name(name))),
    }
}
