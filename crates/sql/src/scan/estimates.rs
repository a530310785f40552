//! What plans estimate of a table: rows that satisfy conditions, and distinct values of a column.

use datafusion::{common::config::ConfigOptions, error::Result, logical_expr::Expr};

use super::EngineTable;
use crate::catalog::{Key, KeyPart};

impl EngineTable {
    /// The estimated number of rows that satisfy conditions, whose columns are not qualified. Cost: as that of counting
    /// what indexes answer.
    pub(crate) fn estimated_rows(
        &self,
        conditions: &[Expr],
        options: &ConfigOptions,
    ) -> Result<usize> {
        let scan = self.scan_of(Vec::new(), conditions, None, options)?;
        Ok(scan.rows.get_value().copied().unwrap_or(self.rows))
    }

    /// The estimated number of distinct values of a column; `None` if no index begins with it.
    pub(crate) fn distinct_values(&self, column: &str) -> Option<usize> {
        let begins = |key: &&Key| {
            let first = key.parts.first().and_then(KeyPart::column);
            first.is_some_and(|first| first.eq_ignore_ascii_case(column))
        };
        let mut keys = self.table.keys.iter().filter(begins);
        if keys.clone().any(|key| key.parts.len() == 1 && self.table.is_unique(key)) {
            return Some(self.rows);
        }
        let index = keys.find_map(|key| self.table.index_of(key))?.0;
        if self.engine_name.is_empty() || self.reader.has_remote_parts(&self.engine_name) {
            return None;
        }
        let found = self.reader.distinct(&self.engine_name, index, 1).ok()??;
        Some(usize::try_from(found).unwrap_or(usize::MAX))
    }
}
