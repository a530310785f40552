//! SELECT of very many expressions without a table. Planning compares each column with all others, so the row is made
//! in parts; equal literals are planned once.

use std::{
    collections::HashMap,
    ops::ControlFlow,
    sync::Arc,
    time::{Duration, Instant},
};

use datafusion::{
    arrow::{array::RecordBatch, datatypes::Schema},
    sql::sqlparser::ast::{self, Expr, SelectItem, SetExpr, Visitor},
};

use super::run::ResolvedQuery;
use crate::{
    Column, Error, Reply, Result,
    error::from_plan,
    output,
    parse::{Source, Visit},
    resolve::{MAX_COLUMNS, texts},
    state::SessionState,
};

/// The most columns of such a row: the largest number of parameters of a statement.
const MOST: usize = 65_535;
/// Columns planned at once.
const AT_ONCE: usize = 64;

/// A wide row, split into parts.
pub(super) struct WideRow {
    parts: Vec<ast::Query>,
    /// The name of each column, and its index among the columns of all parts.
    columns: Vec<(String, usize)>,
    /// The source with which parts are planned. It is short, because planning a part scans it.
    source: Source,
}

impl WideRow {
    /// Splits a query, if it is such a row; otherwise gives it back.
    pub(super) fn of(
        mut query: ast::Query,
        source: &Source,
    ) -> std::result::Result<Self, Box<ast::Query>> {
        let SetExpr::Select(select) = query.body.as_mut() else { return Err(query.into()) };
        if !(MAX_COLUMNS + 1..=MOST).contains(&select.projection.len()) {
            return Err(query.into());
        }
        let begin = select.select_token.0.span.start.column as usize;
        let items = std::mem::take(&mut select.projection);
        let with = |items: Vec<SelectItem>| {
            let mut part = query.clone();
            if let SetExpr::Select(select) = part.body.as_mut() {
                select.projection = items;
            }
            part
        };
        let is_expression = |item: &SelectItem| {
            matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
        };
        // User variable assignments are recognized by their `:=`.
        let assigns = source.tokens.iter().any(|token| source.bytes(token) == b":=");
        // All queries of a statement must read one snapshot, but each part has its own.
        let has_query = |item: &SelectItem| item.visit(&mut SeekingQuery).is_break();
        let is_wide = query.to_string().trim_end() == "SELECT"
            && items.iter().all(is_expression)
            && !items.iter().any(has_query);
        if !is_wide || assigns {
            return Err(with(items).into());
        }
        let mut names = texts(source, begin.saturating_sub(1)).into_iter();
        let mut known: HashMap<ast::Value, usize> = HashMap::new();
        let (mut distinct, mut columns) = (Vec::new(), Vec::with_capacity(items.len()));
        for item in items {
            let text = names.next().unwrap_or_default();
            let (name, expr) = match item {
                SelectItem::ExprWithAlias { expr, alias } => (alias.value, expr),
                SelectItem::UnnamedExpr(expr) => (text, expr),
                _ => continue,
            };
            let next = distinct.len();
            let place = match &expr {
                Expr::Value(value) => *known.entry(value.value.clone()).or_insert(next),
                _ => next,
            };
            if place == next {
                distinct.push(SelectItem::UnnamedExpr(expr));
            }
            columns.push((name, place));
        }
        let parts = distinct.chunks(AT_ONCE).map(|items| with(items.to_vec())).collect();
        let source = Source {
            interrupted: Arc::clone(&source.interrupted),
            ..Source::new(Vec::new(), Vec::new(), source.mode)
        };
        Ok(Self { parts, columns, source })
    }

    /// Sends the columns and the row. Leaves the remaining time in `max_execution_time`.
    pub(super) async fn send<R: Reply>(
        self,
        session: &mut SessionState,
        reply: &mut R,
    ) -> Result<()> {
        let (mut told, mut fields, mut arrays) = (Vec::new(), Vec::new(), Vec::new());
        let (limit_ms, begun) = (session.variables.max_execution_time_ms, Instant::now());
        for part in self.parts {
            session.check_interrupted()?;
            if limit_ms > 0 {
                let left = Duration::from_millis(limit_ms).saturating_sub(begun.elapsed());
                let left_ms = u64::try_from(left.as_millis()).unwrap_or(limit_ms);
                session.variables.max_execution_time_ms = left_ms;
                if left_ms == 0 {
                    return Err(Error::query_timeout());
                }
            }
            let rows =
                ResolvedQuery::new(session, part, &self.source).await?.collect(session).await?;
            told.extend(rows.columns);
            if let Some(batch) = rows.batches.into_iter().find(|batch| batch.num_rows() > 0) {
                fields.extend(batch.schema().fields().iter().cloned());
                arrays.extend(batch.columns().iter().cloned());
            }
        }
        let columns = named(&self.columns, &told);
        reply.columns(&columns)?;
        if !arrays.is_empty() {
            let places = || self.columns.iter().map(|(_, place)| *place);
            let fields: Vec<_> = places().filter_map(|place| fields.get(place).cloned()).collect();
            let arrays = places().filter_map(|place| arrays.get(place).cloned()).collect();
            let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
            output::send(&batch.map_err(|error| from_plan(error.into()))?, &columns, reply)?;
            session.found_rows = 1;
        }
        Ok(())
    }

    /// The columns, found without running.
    pub(super) async fn columns(self, session: &SessionState) -> Result<Vec<Column>> {
        let mut told = Vec::new();
        for part in self.parts {
            session.check_interrupted()?;
            told.extend(
                ResolvedQuery::new(session, part, &self.source).await?.columns(session).await?,
            );
        }
        Ok(named(&self.columns, &told))
    }
}

struct SeekingQuery;

impl Visitor for SeekingQuery {
    type Break = ();

    fn pre_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

fn named(columns: &[(String, usize)], told: &[Column]) -> Vec<Column> {
    let column = |(name, place): &(String, usize)| {
        Some(Column { name: name.clone(), ..told.get(*place)?.clone() })
    };
    columns.iter().filter_map(column).collect()
}
