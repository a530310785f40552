//! How many distinct values a column has, for the order of joins: `a JOIN b` has as many rows as both tables multiplied,
//! divided by the distinct values of the column that joins them.

use datafusion::common::{Statistics, stats::Precision};
use remora_engine::{Schema, TableIndex};

use super::ScanExec;
use crate::catalog::DistinctCount;

/// A count is estimated anew once the number of rows differs by more than an eighth.
const KEPT_FOR: u64 = 8;

impl ScanExec {
    /// The statistics with the distinct values of those columns that an index begins with. Cost: some searches in the
    /// index for each such column, once until the table has grown or shrunk.
    pub(super) fn with_distinct_counts(&self, mut statistics: Statistics) -> Statistics {
        // Rows on other servers are not counted before the plan runs.
        if self.table.is_empty() || self.reader.has_remote_parts(&self.table) {
            return statistics;
        }
        let rows = self.reader.row_count(&self.table).unwrap_or(0);
        for (column, place) in statistics.column_statistics.iter_mut().zip(&self.places) {
            let Some(position) = self.columns.get(*place) else { continue };
            if let Some(count) = self.distinct_values(*position, rows) {
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                column.distinct_count = Precision::Inexact(count);
            }
        }
        statistics
    }

    /// The estimated number of distinct values of the column at a position.
    fn distinct_values(&self, position: usize, rows: u64) -> Option<u64> {
        let schema = &self.sql.schema;
        if schema.primary_key == [position] {
            return Some(rows);
        }
        let index = index_of(schema, position)?;
        let mut counts = self.sql.distinct.lock();
        if let Some(known) = counts.get(&position)
            && known.rows.abs_diff(rows) <= known.rows / KEPT_FOR
        {
            return Some(known.values);
        }
        let values = self.reader.distinct(&self.table, index, 1).ok()??;
        counts.insert(position, DistinctCount { values, rows });
        Some(values)
    }
}

/// An index that begins with a whole column.
fn index_of(schema: &Schema, position: usize) -> Option<TableIndex> {
    if schema.primary_key.first() == Some(&position) {
        return Some(TableIndex::Key);
    }
    let begins = schema.indexes.iter().position(|index| {
        index.columns.first().is_some_and(|it| it.column == position && it.prefix.is_none())
    });
    begins.map(TableIndex::Secondary)
}
