//! A view is replaced by its SELECT, as a derived table with a scope of its own.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::{
    ast::{
        Expr, Ident, ObjectName, Query, Select, Statement as Parsed, TableAliasColumnDef,
        TableFactor, Value, ValueWithSpan, Visitor, VisitorMut,
        helpers::attached_token::AttachedToken,
    },
    tokenizer::Span,
};
use remora_mysql::{ErrorCode, LexMode};

use super::{
    Catalog, Env, Resolver, named_once,
    places::{SelectKind, SelectPosition},
    scope::Relation,
    too_nested,
};
use crate::{
    Error, Result,
    catalog::{TableName, View},
    parse::{
        Statement, Visit, VisitMut, split, tokens,
        write::{derived_table, table_alias},
    },
};

/// The most views of a statement, counting those inside views each time. A chain of views that each use the one before
/// twice doubles with each step.
const MAX_VIEWS: usize = 256;

/// The deepest nesting of views: each level takes much stack.
const MAX_WITHIN: usize = 16;
/// The most views of a statement with a cached plan.
const MAX_KEPT: usize = 16;

impl View {
    /// The syntax tree of its SELECT. It has no positions, because those would be taken for positions in the statement.
    pub(crate) fn query(&self) -> Result<Query> {
        let mut query = parsed(&self.select).map_err(|error| {
            let message = format!("The view '{}' is not understood: {}", self.name, error.message);
            Error::new(ErrorCode::ViewInvalid, message)
        })?;
        let mut placeless = Placeless::default();
        let _ = VisitMut::visit(&mut query, &mut placeless);
        match placeless.lacks_database && !placeless.has_with {
            true => Err(Error::unsupported(format!(
                "the view '{}', whose tables lack their databases",
                self.name
            ))),
            false => Ok(query),
        }
    }
}

/// Removes the character set that servers write into each cast to a text, if it is the one that all texts have.
fn without_charsets(select: &str) -> Result<String> {
    const SAME: [&str; 3] = ["UTF8MB4", "UTF8MB3", "UTF8"];
    let text = select.as_bytes();
    let tokens = tokens(text, LexMode::default())?;
    let (mut kept, mut from) = (String::with_capacity(select.len()), 0);
    for window in tokens.windows(3) {
        let [charset, name, close] = window else { continue };
        let is_same = SAME.iter().any(|same| name.is_word(text, same));
        if is_same && charset.is_word(text, "CHARSET") && close.is(text, ")") {
            kept.push_str(select.get(from..charset.start).unwrap_or_default());
            from = name.end;
        }
    }
    kept.push_str(select.get(from..).unwrap_or_default());
    Ok(kept)
}

/// The syntax tree of a stored SELECT.
pub(super) fn parsed(select: &str) -> Result<Query> {
    let select = without_charsets(select)?;
    let mut sources = split(select.as_bytes(), false, LexMode::default())?;
    let mut source = sources.pop().ok_or_else(|| Error::unsupported("a view of nothing"))?;
    source.is_kept = true;
    match (Statement { source: source.into(), parameters: &[] }).parse()? {
        Parsed::Query(query) => Ok(*query),
        other => Err(Error::unsupported(other)),
    }
}

/// Removes the positions from a tree.
#[derive(Default)]
struct Placeless {
    /// Whether a table is not qualified with a database, as a common table expression is not.
    lacks_database: bool,
    has_with: bool,
}

impl VisitorMut for Placeless {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.has_with |= query.with.is_some();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        select.select_token = AttachedToken::empty();
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<()> {
        let parts = relation.0.iter().filter_map(|part| part.as_ident());
        let parts: Vec<Ident> = parts.cloned().map(placeless).collect();
        let is_dual = |name: &Ident| name.value.eq_ignore_ascii_case("dual");
        self.lacks_database |= matches!(parts.as_slice(), [one] if !is_dual(one));
        *relation = ObjectName::from(parts);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => name.span = Span::empty(),
            Expr::CompoundIdentifier(names) => {
                names.iter_mut().for_each(|name| name.span = Span::empty());
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
        value.span = Span::empty();
        ControlFlow::Continue(())
    }
}

fn placeless(name: Ident) -> Ident {
    Ident { span: Span::empty(), ..name }
}

impl Resolver<'_> {
    /// The derived table that replaces a view in FROM; `None` if the name is not a view.
    pub(super) fn view(
        &mut self,
        name: &ObjectName,
        given: Option<&str>,
        env: Env<'_>,
    ) -> Result<Option<(TableFactor, Relation)>> {
        let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
        let full = match parts.as_slice() {
            [table] if env.common.is_some_and(|all| all.find(&table.value).is_some()) => {
                return Ok(None);
            }
            [table] => match self.catalog.database() {
                Ok(database) => TableName::new(database, &table.value),
                Err(_) => return Ok(None),
            },
            [database, table] => TableName::new(&database.value, &table.value),
            _ => return Ok(None),
        };
        let Some(view) = self.catalog.view(&full)? else { return Ok(None) };
        self.enter(&full)?;
        let read = self.view_body(&view);
        self.within.pop();
        let (query, columns) = read.map_err(|error| invalid(error, &full))?;
        let determining = std::mem::take(&mut self.determining);
        let called = given.unwrap_or(&full.table).to_owned();
        let unique = self.unique(&called);
        self.note_relation(&parts, given, &full, &unique);
        let factor = derived_table(query, table_alias(&unique));
        let relation = Relation {
            alias: called,
            database: Some(full.database),
            unique,
            columns,
            key: Vec::new(),
            determining,
            is_view: true,
        };
        Ok(Some((factor, relation)))
    }

    /// Error 1462 for a view inside itself, 1038 for too many views.
    fn enter(&mut self, name: &TableName) -> Result<()> {
        if self.within.contains(name) {
            return Err(recursive(name));
        }
        if self.within.len() >= MAX_WITHIN {
            return Err(too_nested());
        }
        self.views += 1;
        if self.views > MAX_VIEWS {
            let message = format!(
                "The views of the statement read more than {MAX_VIEWS} views, those within views counted \
                 each time"
            );
            return Err(Error::new(ErrorCode::OutOfMemory, message));
        }
        self.within.push(name.clone());
        Ok(())
    }

    fn view_body(&mut self, view: &View) -> Result<(Query, Vec<super::scope::NamedColumn>)> {
        let mut query = view.query()?;
        let names = (!view.head.columns.is_empty()).then_some(view.head.columns.as_slice());
        let standing = SelectPosition::of(SelectKind::Derived);
        let env = Env { scope: None, common: None, standing };
        let outputs = self.query(&mut query, env, names)?;
        if names.is_some_and(|names| names.len() != outputs.len()) {
            return Err(super::column_counts());
        }
        Ok((query, named_once(&outputs)?))
    }
}

/// Whether a query names a view.
pub(super) fn names_view(query: &Query, catalog: &dyn Catalog) -> bool {
    struct Seeking<'c>(&'c dyn Catalog);
    impl Visitor for Seeking<'_> {
        type Break = ();

        fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
            let parts: Vec<&str> = relation
                .0
                .iter()
                .filter_map(|part| part.as_ident())
                .map(|part| part.value.as_str())
                .collect();
            let name = match parts.as_slice() {
                [table] => self.0.database().ok().map(|database| TableName::new(database, *table)),
                [database, table] => Some(TableName::new(*database, *table)),
                _ => None,
            };
            // An error of a view is reported where the view is read.
            match name.is_some_and(|name| !matches!(self.0.view(&name), Ok(None))) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    Visit::visit(query, &mut Seeking(catalog)).is_break()
}

/// Converts an error inside a view to 1356, which names the view only.
fn invalid(error: Error, name: &TableName) -> Error {
    let hidden = matches!(
        error.code,
        ErrorCode::NoSuchTable
            | ErrorCode::UnknownColumn
            | ErrorCode::UnknownDatabase
            | ErrorCode::DatabaseAccessDenied
            | ErrorCode::DoesNotExist
            | ErrorCode::TableAccessDenied
            | ErrorCode::ColumnAccessDenied
    );
    if !hidden && !is_invalid(&error) {
        return error;
    }
    let message = format!(
        "View '{name}' references invalid table(s) or column(s) or function(s) or definer/invoker of view \
         lack rights to use them"
    );
    Error::new(ErrorCode::ViewInvalid, message)
}

/// Whether the error is already a 1356 of a view inside.
fn is_invalid(error: &Error) -> bool {
    error.code == ErrorCode::ViewInvalid && error.message.starts_with("View '")
}

/// Error 1462.
pub(super) fn recursive(name: &TableName) -> Error {
    let message = format!("`{}`.`{}` contains view recursion", name.database, name.table);
    Error::new(ErrorCode::ViewRecursion, message)
}

/// Replaces views by their SELECTs and returns each view used once, also those inside views; `None` if the result could
/// mean something else.
pub(crate) fn expanded(
    query: &mut Query,
    mut find: impl FnMut(Option<&str>, &str) -> Option<View>,
) -> Option<Vec<View>> {
    let (common, views) = (Vec::new(), Vec::new());
    let mut expanding = Expanding { find: &mut find, made: 0, common, views };
    match VisitMut::visit(query, &mut expanding).is_continue() {
        true => Some(expanding.views),
        false => None,
    }
}

struct Expanding<'f> {
    find: &'f mut dyn FnMut(Option<&str>, &str) -> Option<View>,
    /// The number of replaced names.
    made: usize,
    /// The names of common table expressions, which hide views.
    common: Vec<String>,
    views: Vec<View>,
}

impl VisitorMut for Expanding<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let named = query.with.iter().flat_map(|with| &with.cte_tables);
        self.common.extend(named.map(|it| it.alias.name.value.clone()));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name, alias: given, args: None, index_hints, .. } = factor else {
            return ControlFlow::Continue(());
        };
        let is_hinted = !index_hints.is_empty();
        let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
        let found = match parts.as_slice() {
            [table] if self.common.iter().any(|it| it.eq_ignore_ascii_case(&table.value)) => None,
            [table] => (self.find)(None, &table.value),
            [database, table] => (self.find)(Some(&database.value), &table.value),
            _ => None,
        };
        let Some(view) = found else { return ControlFlow::Continue(()) };
        self.made += 1;
        // A view has no indexes to hint at.
        let is_kept = self.made <= MAX_KEPT && !is_hinted;
        let Some(query) = view.query().ok().filter(|_| is_kept) else {
            return ControlFlow::Break(());
        };
        let called = given.take().map_or_else(|| view.name.table.clone(), |it| it.name.value);
        let mut named = table_alias(&called);
        named.columns = columns_of(&view.head.columns);
        *factor = derived_table(query, named);
        if self.views.iter().all(|known| known.name != view.name) {
            self.views.push(view);
        }
        // The visitor goes on into the SELECT.
        ControlFlow::Continue(())
    }
}

/// A column list of an alias.
fn columns_of(names: &[String]) -> Vec<TableAliasColumnDef> {
    let column =
        |name: &String| TableAliasColumnDef { name: Ident::with_quote('`', name), data_type: None };
    names.iter().map(column).collect()
}

/// A text as a literal that the default `sql_mode` reads correctly.
pub(super) fn quoted_text(text: &str) -> Value {
    let escaped = text.replace('\\', "\\\\").replace('\'', "\\'").replace('\0', "\\0");
    Value::Placeholder(format!("'{escaped}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn casts_to_the_usual_character_set_are_plain() {
        let text = "select cast(`a` as char(3) charset utf8mb4) AS `charset`,'charset utf8mb4)' from `d`.`t`";
        let kept = "select cast(`a` as char(3) ) AS `charset`,'charset utf8mb4)' from `d`.`t`";
        assert_eq!(without_charsets(text).unwrap(), kept);
        let other = "select cast(`a` as char charset latin1)";
        assert_eq!(without_charsets(other).unwrap(), other);
    }

    #[test]
    fn kept_texts_have_what_clients_may_not_send() {
        let kept = [
            "select cast(`a` as varchar(9)) AS `a` from `d`.`t`",
            "select cast(`a` as bigint) AS `a`,convert(`b`,int) AS `b` from `d`.`t`",
            "select `a` AS `a` from `d`.`t` fetch first 2 rows only",
            "values (1),(2)",
        ];
        for select in kept {
            assert!(parsed(select).is_ok(), "{select}");
            let source = split(select.as_bytes(), false, LexMode::default()).unwrap().remove(0);
            let sent = Statement { source: source.into(), parameters: &[] };
            assert_eq!(sent.parse().unwrap_err().code, ErrorCode::ParseError, "{select}");
        }
    }
}
