//! The columns of an INSERT's query that ON DUPLICATE KEY UPDATE names. The query selects them behind the values of the
//! rows, and the expressions find them in a table of their own.

use std::{ops::ControlFlow, sync::Arc};

use datafusion::sql::sqlparser::ast::{
    self, Expr, Ident, ObjectNamePart, Query, Select, SelectItem, SetExpr, TableFactor, Visitor,
    VisitorMut,
};
use remora_engine::{ColumnDef, Row, Schema, Value};
use remora_mysql::ErrorCode;
use rustc_hash::FxHashSet;

use super::{evaluate::TreeQuery, target::TargetTable};
use crate::{
    Column, Error, Result,
    catalog::{ColumnSpec, DefaultSpec, TableOptions, row_number_column},
    parse::{Visit, VisitMut, write::column_named},
    resolve::is_grouped,
    state::SessionState,
    write::{
        convert::{Converter, TargetColumn},
        rows::computed::NEW_COLUMN,
    },
};

/// The number of the collation of columns that are no texts.
const BINARY: u16 = 63;

/// The name of the table of these columns.
pub(super) const SELECTED: &str = "#selected";

/// Columns that a query selects behind the values of the rows, and their values.
#[derive(Default)]
pub(super) struct ColumnsBeside {
    /// The columns as the expressions name them.
    names: Vec<Vec<String>>,
    /// Whether the query is a SELECT DISTINCT that may have more rows because of these columns.
    widens_distinct: bool,
    /// The definition of a table of these columns, once the query has run.
    pub schema: Option<Arc<Schema>>,
    /// Their values, for each row of the query.
    pub rows: Vec<Row>,
}

impl ColumnsBeside {
    /// Finds the names in expressions that are columns of the query's tables, and selects them too. In the expressions,
    /// columns of [`SELECTED`] replace them. Cost: one plan for each name.
    ///
    /// # Errors
    /// 1052 for a name that is also a column of the table, or of several of the query's tables.
    pub(super) async fn find(
        session: &mut SessionState,
        query: &mut TreeQuery<'_>,
        target: &TargetTable,
        expressions: &mut [&mut Expr],
    ) -> Result<Self> {
        let mut selected = Self::default();
        let mut named = Names::default();
        expressions.iter().for_each(|expr| _ = Visit::visit(&**expr, &mut named));
        if named.found.is_empty() || rows_of(&query.query).is_none() {
            return Ok(selected);
        }
        let Names { mut found, tables, .. } = named;
        let mut seen = FxHashSet::default();
        found.retain(|it| seen.insert(it.clone()));
        for (name, is_within) in found {
            let qualifier = name.len().checked_sub(2).and_then(|place| name.get(place));
            let belongs_within = is_within && qualifier.is_none_or(|it| tables.contains(it));
            if belongs_within || selected.names.contains(&name) {
                continue;
            }
            let is_own = is_column_of(target, &name);
            match of_query(session, query, &name).await {
                Ok(()) if is_own => return Err(ambiguous(&name)),
                Ok(()) => {
                    selected.widens_distinct |= !may_be_added(query, &name);
                    selected.names.push(name);
                }
                Err(error) if error.code == ErrorCode::UnknownColumn => {}
                Err(error) => return Err(error),
            }
        }
        if let SetExpr::Select(select) = &mut *query.query.body {
            let items = selected.names.iter().enumerate();
            select.projection.extend(items.map(|(nth, name)| SelectItem::ExprWithAlias {
                expr: column_named(name),
                alias: Ident::with_quote('`', column(nth)),
            }));
        }
        let mut replacing = Replacing { selected: &selected, tables: &tables, within: 0 };
        for expr in expressions.iter_mut() {
            let _ = VisitMut::visit(&mut **expr, &mut replacing);
        }
        Ok(selected)
    }

    /// How many columns they are.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// Keeps one row of each that SELECT DISTINCT has without these columns.
    ///
    /// # Errors
    /// 1235 if texts are selected, which may be equal although they are written differently.
    pub(super) fn keep_distinct(
        &self,
        columns: &[Column],
        rows: &mut Vec<Vec<Value>>,
    ) -> Result<()> {
        if !self.widens_distinct {
            return Ok(());
        }
        let shown = columns.len().saturating_sub(self.len());
        if columns.iter().take(shown).any(|column| column.collation != BINARY) {
            let what = "ON DUPLICATE KEY UPDATE with a column that SELECT DISTINCT of texts does not select";
            return Err(Error::unsupported(what));
        }
        let mut known = FxHashSet::default();
        rows.retain(|row| known.insert(format!("{:?}", row.get(..shown))));
        Ok(())
    }

    /// Takes the values of these columns from the ends of the query's rows.
    pub(super) fn take(
        &mut self,
        session: &SessionState,
        columns: &[Column],
        rows: &mut [Vec<Value>],
    ) {
        let columns = columns.get(columns.len().saturating_sub(self.len())..).unwrap_or_default();
        let collation = TableOptions::default().collation;
        let specs: Vec<ColumnSpec> = columns
            .iter()
            .map(|column| ColumnSpec {
                not_null: false,
                default: DefaultSpec::None,
                ..ColumnSpec::of_result(column, collation)
            })
            .collect();
        let silent = Converter::silent(session);
        for row in rows {
            let own = row.split_off(row.len().saturating_sub(self.len()));
            let own = own.into_iter().zip(&specs).map(|(value, spec)| {
                let slot = TargetColumn { name: "", kind: &spec.kind, row: 1 };
                silent.fit(slot, value).unwrap_or(Value::Null)
            });
            // The number of the row.
            self.rows.push(own.chain([Value::Uint(0)]).collect());
        }
        let defined = specs.iter().enumerate().map(|(nth, spec)| ColumnDef {
            id: nth as u32,
            name: column(nth),
            kind: spec.kind.engine_type(),
            nullable: true,
            indexed: false,
            declared: Some(spec.written(collation)),
        });
        let columns = defined.chain([row_number_column(specs.len() as u32)]).collect();
        let schema = Schema::over(SELECTED, columns, vec![specs.len()]);
        self.schema = Some(Arc::new(schema));
    }
}

/// The place among these columns of one that replaced a name.
pub(super) fn place_of(expr: &Expr) -> Option<usize> {
    let Expr::CompoundIdentifier(path) = expr else { return None };
    match path.as_slice() {
        [table, column] if table.value == SELECTED => column.value.strip_prefix('#')?.parse().ok(),
        _ => None,
    }
}

fn column(nth: usize) -> String {
    format!("#{nth}")
}

fn ambiguous(name: &[String]) -> Error {
    Error::ambiguous_column(name.join("."), "field list")
}

/// Whether a name means a column of the table that rows are inserted into.
fn is_column_of(target: &TargetTable, name: &[String]) -> bool {
    let [qualifiers @ .., column] = name else { return false };
    let mut qualifiers = qualifiers.iter().rev();
    let is_table = qualifiers.next().is_none_or(|table| *table == target.name.table);
    let is_database = qualifiers.next().is_none_or(|it| *it == target.name.database);
    is_table && is_database && target.table.column(column).is_some()
}

/// The SELECT whose rows a query has one by one, so that each belongs to one row of its tables.
fn rows_of(query: &Query) -> Option<&Select> {
    let SetExpr::Select(select) = &*query.body else { return None };
    (!is_grouped(select) && !select.from.is_empty()).then_some(select)
}

/// Whether a further column of this name leaves the query's rows as they are: a DISTINCT must select it already.
fn may_be_added(query: &TreeQuery<'_>, name: &[String]) -> bool {
    let Some(select) = rows_of(&query.query).filter(|select| select.distinct.is_some()) else {
        return true;
    };
    select.projection.iter().any(|item| {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            return false;
        };
        name_of(expr).is_some_and(|selected| {
            let pairs = selected.iter().rev().zip(name.iter().rev());
            pairs.into_iter().all(|(one, other)| one.eq_ignore_ascii_case(other))
        })
    })
}

/// Whether the query's tables have a column of this name: 1054 if not.
async fn of_query(
    session: &mut SessionState,
    query: &TreeQuery<'_>,
    name: &[String],
) -> Result<()> {
    let mut asked = Query { order_by: None, limit_clause: None, ..query.query.clone() };
    if let SetExpr::Select(select) = &mut *asked.body {
        select.projection = vec![SelectItem::UnnamedExpr(column_named(name))];
        (select.distinct, select.having) = (None, None);
    }
    TreeQuery { query: asked, source: query.source }.check(session).await
}

/// The names in expressions, except those of the new row.
#[derive(Default)]
struct Names {
    /// The names, and whether each stands in a subquery.
    found: Vec<(Vec<String>, bool)>,
    /// The tables of subqueries.
    tables: Vec<String>,
    within: usize,
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.within += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.within = self.within.saturating_sub(1);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        self.tables.extend(alias_of(table));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Some(name) = name_of(expr) {
            self.found.push((name, self.within > 0));
        }
        ControlFlow::Continue(())
    }
}

/// Replaces the names of selected columns.
struct Replacing<'s> {
    selected: &'s ColumnsBeside,
    tables: &'s [String],
    within: usize,
}

impl VisitorMut for Replacing<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.within += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.within = self.within.saturating_sub(1);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Some(name) = name_of(expr) else { return ControlFlow::Continue(()) };
        let qualifier = name.len().checked_sub(2).and_then(|place| name.get(place));
        if self.within > 0 && qualifier.is_none_or(|it| self.tables.contains(it)) {
            return ControlFlow::Continue(());
        }
        if let Some(nth) = self.selected.names.iter().position(|known| *known == name) {
            *expr = column_named(&[SELECTED.to_owned(), column(nth)]);
        }
        ControlFlow::Continue(())
    }
}

/// What a relation is called.
fn alias_of(table: &TableFactor) -> Option<String> {
    match table {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::JsonTable { alias: Some(alias), .. } => Some(alias.name.value.clone()),
        TableFactor::Table { name, .. } => match name.0.last()? {
            ObjectNamePart::Identifier(name) => Some(name.value.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// The parts of a name that may be a column's.
fn name_of(expr: &Expr) -> Option<Vec<String>> {
    let parts: &[ast::Ident] = match expr {
        Expr::Identifier(name) => std::slice::from_ref(name),
        Expr::CompoundIdentifier(path) => path,
        _ => return None,
    };
    let is_new = parts.last().is_some_and(|name| name.value.starts_with(NEW_COLUMN));
    (!is_new).then(|| parts.iter().map(|part| part.value.clone()).collect())
}
