//! The stored SELECT of a view. Its names keep the meaning they had when the view was made: tables have their
//! databases, columns their tables, `*` is expanded, every column has a name, and joins by common names list them.
//!
//! While the SELECT is resolved, the meaning of each name is noted by its place in the text. The notes are then written
//! into the parsed tree, and the tree becomes the text.

use std::{cell::RefCell, ops::ControlFlow};

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, JoinConstraint, JoinOperator, ObjectName, Query, Select, SelectItem, TableFactor,
    TableWithJoins, Value, ValueWithSpan, VisitMut, VisitorMut,
};
use remora_mysql::{ErrorCode, LexMode, TokenKind};
use rustc_hash::FxHashMap;

use super::{
    Catalog, Output, Resolver, Shown,
    places::Standing,
    resolver,
    scope::{Scope, quoted},
    views::{parsed, quoted_text},
};
use crate::{
    Error, Result,
    catalog::TableName,
    parse::{JSON_VALUE_OF, Source, tokens},
};

/// Longest name of a column.
const MAX_NAME: usize = 64;

/// A place in the text, 1 for its first byte; 0 is none.
type TextOffset = u64;

/// What the names of a SELECT mean.
#[derive(Default)]
pub(super) struct Notes {
    /// Tables and views, by the places of their names.
    tables: FxHashMap<TextOffset, TableName>,
    /// What columns are called with their tables, by the places of their names.
    columns: FxHashMap<TextOffset, Vec<Ident>>,
    /// What the columns of a relation have before their names, by what plans call it.
    relations: FxHashMap<String, Vec<Ident>>,
    /// What is selected, by the places of SELECT.
    items: FxHashMap<TextOffset, Vec<NotedItem>>,
    /// The names that a NATURAL JOIN joins by, by the places of the tables behind it.
    natural: FxHashMap<TextOffset, Vec<String>>,
}

/// What is selected by one item.
#[derive(Clone)]
pub(super) enum NotedItem {
    /// An expression of this name, and whether that was given.
    One(String, bool),
    /// All of these columns.
    All(Vec<(Vec<Ident>, String)>),
}

/// The text of a view's SELECT that is kept. Its columns are to be called `names` where given.
///
/// # Errors
/// What is wrong with it, 1353 and 1060 with its columns; what could not be read as it was written is
/// refused.
pub(crate) fn frozen(
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
    let env = super::Env { scope: None, common: None, standing: Standing::default() };
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

/// The text of a tree. What would be another tree when it is read is refused.
fn text_of(written: Query) -> Result<String> {
    let mut shown = written.clone();
    let _ = shown.visit(&mut Texts);
    let text = shown.to_string();
    if parsed(&text).ok().as_ref() != Some(&written) {
        return Err(Error::unsupported(format!("a view of {text}")));
    }
    // Names are quoted: what is not is a word of the language, or of MySQL's functions.
    let mut bytes = text.into_bytes();
    let words = tokens(&bytes, LexMode::default())?;
    // MySQL has no such function, so it could not read what SHOW CREATE VIEW shows.
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

/// Texts as the default `sql_mode` reads them.
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
    /// Notes what a table in FROM is, by the name that it has there.
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

    /// Notes what a name means.
    pub(super) fn note_name(&self, name: &[Ident], meant: &Expr, scope: &Scope<'_>) {
        let Some(notes) = &self.notes else { return };
        let Some(place) = name.first().and_then(place) else { return };
        let mut notes = notes.borrow_mut();
        if let Some(called) = notes.called(meant, scope) {
            notes.columns.insert(place, called);
        }
    }

    /// Notes what a SELECT selects.
    pub(super) fn note_items(&self, select: &Select, items: Vec<NotedItem>) {
        let place = select.select_token.0.span.start.column;
        if let Some(notes) = self.notes.as_ref().filter(|_| place > 0) {
            notes.borrow_mut().items.insert(place, items);
        }
    }

    /// All columns that `*` stands for, as they are noted.
    pub(super) fn noted_all<'e>(
        &self,
        columns: impl Iterator<Item = (&'e Expr, &'e Shown)>,
        scope: &Scope<'_>,
    ) -> NotedItem {
        let Some(notes) = &self.notes else { return NotedItem::All(Vec::new()) };
        let notes = notes.borrow();
        let called =
            |(expr, shown): (&Expr, &Shown)| Some((notes.called(expr, scope)?, shown.name.clone()));
        NotedItem::All(columns.filter_map(called).collect())
    }

    /// Notes the names that a NATURAL JOIN joins by.
    pub(super) fn note_natural(&self, place: Option<TextOffset>, names: &[String]) {
        if let (Some(notes), Some(place)) = (&self.notes, place) {
            notes.borrow_mut().natural.insert(place, names.to_vec());
        }
    }
}

/// The place of a name in the text.
fn place(name: &Ident) -> Option<TextOffset> {
    Some(name.span.start.column).filter(|column| *column > 0)
}

/// The place by which a table in FROM is told from others.
pub(super) fn place_of(factor: &TableFactor) -> Option<TextOffset> {
    match factor {
        TableFactor::Table { name, .. } => place(name.0.first()?.as_ident()?),
        TableFactor::Derived { alias, .. } | TableFactor::JsonTable { alias, .. } => {
            place(&alias.as_ref()?.name)
        }
        _ => None,
    }
}

/// The place of the SELECT that names the columns of a query.
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
    /// What a column is called with its table.
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

    /// Gives the columns of the view names that columns may have. 1060 for two of one name, 1166 for a name
    /// that was given and is none.
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

    /// Says of the NATURAL JOINs of a part of FROM which columns they join by.
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

/// Whether a column may be called so.
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

/// 1166 for a name that no column has.
pub(crate) fn check_column_name(name: &str) -> Result<()> {
    match is_name(name) {
        true => Ok(()),
        false => {
            Err(Error::new(ErrorCode::WrongColumnName, format!("Incorrect column name '{name}'")))
        }
    }
}
