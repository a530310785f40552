//! Top k: the engine leaves out rows that are certainly not among the first of an order, and the plan above the scan
//! sorts and limits the rest. Each server does so of a table with rows on other servers.

use std::sync::Arc;

use datafusion::{
    arrow::compute::SortOptions,
    common::ScalarValue,
    error::{DataFusionError, Result},
    physical_expr::{
        PhysicalExpr, PhysicalSortExpr, ScalarFunctionExpr,
        expressions::{Column, DynamicFilterPhysicalExpr, Literal},
    },
};
use remora_engine::{BestRows, ColumnType, MAX_BEST_ROWS, SortBy, SortKey, TextQuery};

use super::ScanExec;

type PhysicalExprRef = Arc<dyn PhysicalExpr>;

/// Whether a text condition has a keyword query, whose rows are found all at once.
fn has_keywords(text: &TextQuery) -> bool {
    match text {
        TextQuery::Keywords(_) => true,
        TextQuery::Term(_) | TextQuery::Piece(_) => false,
        TextQuery::And(parts) | TextQuery::Or(parts) => parts.iter().any(has_keywords),
        TextQuery::Not(part) => has_keywords(part),
    }
}

impl ScanExec {
    /// The scan of the first `rows` rows in this order of the projection, maybe with others; `None`
    /// if all rows are local or the engine does not know the order.
    pub(crate) fn of_best(&self, order: &[PhysicalSortExpr], rows: usize) -> Option<Self> {
        let is_whole = self.overlay.is_none() && self.shape.limit.is_none();
        if !is_whole || !self.reader.has_remote_parts(&self.table) {
            return None;
        }
        let best = self.best_of(order, rows, false)?;
        Some(Self { best: Some(best), ..self.clone() })
    }

    /// The scan of the first `rows` rows of a table of this server in this order of the projection, with those that the
    /// session has not committed if it is to run; `None` if the key and no index have the order, or if a join or an
    /// outer row may leave few rows.
    pub(crate) fn of_first(
        &self,
        order: &[PhysicalSortExpr],
        rows: usize,
        runs: bool,
    ) -> Result<Option<Self>> {
        let learnt =
            |filter: &PhysicalExprRef| filter.downcast_ref::<DynamicFilterPhysicalExpr>().is_some();
        let is_here = !self.table.is_empty() && !self.reader.has_remote_parts(&self.table);
        let is_plain = self.scores.is_empty() && self.dynamic.iter().all(learnt);
        if !is_here || !is_plain || self.shape.limit.is_some() || self.best.is_some() {
            return Ok(None);
        }
        let is_descending = order.last().is_some_and(|key| key.options.descending);
        let best = self.best_of(order, rows, is_descending);
        // Otherwise each attempt would read all rows, and weigh them.
        let has_order = |best: &BestRows| {
            best.sort.first().is_some_and(|part| self.has_index(part))
                && best.sort.iter().all(|part| self.needs_no_texts(part))
        };
        let is_weighed = self.shape.text.as_ref().is_some_and(has_keywords);
        let Some(best) = best.filter(|best| has_order(best) && !is_weighed) else {
            return Ok(None);
        };
        let reader = match (&self.overlay, &self.own) {
            (None, _) => self.reader.clone(),
            (Some(_), Some(_)) if !runs => self.reader.clone(),
            (Some(_), Some(own)) => own
                .seen_by(&self.reader)
                .map_err(|error| DataFusionError::External(Box::new(error)))?,
            (Some(_), None) => return Ok(None),
        };
        // The sort above had a filter of its own, which it set while it ran.
        let (best, dynamic) = (Some(best), Vec::new());
        Ok(Some(Self { reader, overlay: None, best, dynamic, ..self.clone() }))
    }

    /// Whether the key or an index begins with a part of an order.
    fn has_index(&self, part: &SortKey) -> bool {
        let (SortBy::TextKey(name, _) | SortBy::Column(name)) = &part.by else {
            return part.by == SortBy::Key;
        };
        let sql = self.sql();
        let position = sql.schema.columns.iter().position(|column| column.name == *name);
        position.is_some_and(|position| {
            sql.schema.primary_key.first() == Some(&position) || sql.leads_index(position)
        })
    }

    /// Whether a part of an order needs no sort keys of texts, or an index begins with them.
    fn needs_no_texts(&self, part: &SortKey) -> bool {
        !matches!(part.by, SortBy::TextKey(..)) || self.has_index(part)
    }

    /// Whether the first rows are in the order of the key.
    pub(crate) fn is_in_key_order(&self) -> bool {
        let Some(best) = &self.best else { return false };
        let schema = &self.sql().schema;
        let mut key = schema.primary_key.iter().filter_map(|&key| schema.columns.get(key));
        let direction = best.sort.first().map(|part| part.descending);
        for part in &best.sort {
            if Some(part.descending) != direction {
                return false;
            }
            match (&part.by, key.next()) {
                (SortBy::Key, _) | (_, None) => return true,
                (SortBy::Column(name), Some(column)) if column.name == *name => {}
                _ => return false,
            }
        }
        true
    }

    /// About how many rows it has at most, if that is known.
    pub(crate) fn row_count(&self) -> Option<usize> {
        self.rows.get_value().copied()
    }

    /// The first rows of an order; `None` if the engine does not have it.
    fn best_of(
        &self,
        order: &[PhysicalSortExpr],
        rows: usize,
        key_descending: bool,
    ) -> Option<BestRows> {
        if rows > MAX_BEST_ROWS {
            return None;
        }
        let (mut sort, mut score) = (Vec::with_capacity(order.len() + 1), None);
        for key in order {
            let SortOptions { descending, nulls_first } = key.options;
            // The engine sorts NULL as the least value.
            if nulls_first == descending {
                return None;
            }
            let by = match self.scored_by(&key.expr) {
                Some(at) if *score.get_or_insert(at) == at => SortBy::Score,
                Some(_) => return None,
                None => self.sorted_by(&key.expr)?,
            };
            sort.push(SortKey { by, descending });
        }
        // Ties are broken by key.
        sort.push(SortKey { by: SortBy::Key, descending: key_descending });
        Some(BestRows { sort, score: score.unwrap_or(0), rows })
    }

    /// The index of the score that an expression reads. Weights of keyword queries are integers, so
    /// casts keep them.
    fn scored_by(&self, expression: &PhysicalExprRef) -> Option<usize> {
        if let Some(column) = expression.downcast_ref::<Column>() {
            let at = self.places.get(column.index())?.checked_sub(self.columns.len())?;
            let is_weight = matches!(
                self.scores.get(at)?,
                TextQuery::Keywords(query) if query.factors.is_none()
            );
            return is_weight.then_some(at);
        }
        let call = expression.downcast_ref::<ScalarFunctionExpr>()?;
        match (call.name(), call.args()) {
            ("match_score" | "cast_signed", [of]) => self.scored_by(of),
            _ => None,
        }
    }

    /// The sort key for an expression: a column, or its collation key.
    fn sorted_by(&self, expression: &PhysicalExprRef) -> Option<SortBy> {
        if let Some(column) = expression.downcast_ref::<Column>() {
            let (name, kind, _) = self.column_at(column)?;
            let is_in_order = match kind {
                ColumnType::Text | ColumnType::Bytes | ColumnType::Json => false,
                // Local times of an hour that occurs twice are not in the order of their moments.
                ColumnType::Timestamp => self.zone.to_fixed_offset().is_ok(),
                _ => true,
            };
            return is_in_order.then_some(SortBy::Column(name));
        }
        let call = expression.downcast_ref::<ScalarFunctionExpr>()?;
        let ("collation_key", [of, number]) = (call.name(), call.args()) else { return None };
        let ScalarValue::Int64(Some(number)) = number.downcast_ref::<Literal>()?.value() else {
            return None;
        };
        let (name, kind, has_letters) = self.column_at(of.downcast_ref::<Column>()?)?;
        let is_text = kind == ColumnType::Text && has_letters;
        is_text.then_some(SortBy::TextKey(name, u32::try_from(*number).ok()?))
    }

    /// The name and type of an indexed column of the projection, and whether its texts are compared as texts.
    fn column_at(&self, column: &Column) -> Option<(String, ColumnType, bool)> {
        let sql = self.sql();
        let position = *self.columns.get(*self.places.get(column.index())?)?;
        let definition = sql.schema.columns.get(position).filter(|column| column.indexed)?;
        let kind = &sql.columns.get(position)?.kind;
        let has_letters = kind.is_text() && !kind.has_labels();
        Some((definition.name.clone(), definition.kind, has_letters))
    }
}
