//! Top k over tables with rows on other servers: each server leaves out rows that cannot be among
//! the first k, and the plan above the scan sorts and limits the rest.

use std::sync::Arc;

use datafusion::{
    arrow::compute::SortOptions,
    common::ScalarValue,
    physical_expr::{
        PhysicalExpr, PhysicalSortExpr, ScalarFunctionExpr,
        expressions::{Column, Literal},
    },
};
use remora_engine::{BestRows, ColumnType, MAX_BEST_ROWS, SortBy, SortKey, TextQuery};

use super::ScanExec;

type Expression = Arc<dyn PhysicalExpr>;

impl ScanExec {
    /// The scan of the first `rows` rows in this order of the projection, maybe with others; `None`
    /// if all rows are local or the engine does not know the order.
    pub(crate) fn of_best(&self, order: &[PhysicalSortExpr], rows: usize) -> Option<Self> {
        let is_whole = self.overlay.is_none() && self.shape.limit.is_none();
        let is_few = rows <= MAX_BEST_ROWS;
        if !is_whole || !is_few || !self.reader.has_remote_parts(&self.table) {
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
        sort.push(SortKey { by: SortBy::Key, descending: false });
        let best = BestRows { sort, score: score.unwrap_or(0), rows };
        Some(Self { best: Some(best), ..self.clone() })
    }

    /// The index of the score that an expression reads. Weights of keyword queries are integers, so
    /// casts keep them.
    fn scored_by(&self, expression: &Expression) -> Option<usize> {
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
    fn sorted_by(&self, expression: &Expression) -> Option<SortBy> {
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
