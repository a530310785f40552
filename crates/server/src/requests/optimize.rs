//! OPTIMIZE of one table or of all.

use remora_protocol::line::{
    LineError,
    reply::{self, OptimizeReport},
};
use remora_sql::Access;

use super::{Answer, Caller, blocking};
use crate::report;

impl Caller {
    /// Merges what can be merged, and reports the result.
    pub(crate) fn optimize(&self, table: Option<&str>, out: &mut Vec<u8>) -> Answer {
        if table.is_none() {
            self.require_everything()?;
        }
        let table = table.map(|table| self.resolve(table, Access::Write)).transpose()?;
        let database = &self.shared.database;
        let tables = table.clone().map_or_else(|| database.tables(), |table| vec![table]);
        let sum = blocking(|| {
            database.optimize(table.as_deref())?;
            Ok::<_, LineError>(report::statistics(&self.shared, &tables))
        })?;
        let report = OptimizeReport {
            tables: tables.len() as u64,
            terms: sum.terms,
            delta_lists: sum.terms.saturating_sub(sum.bitmap_lists),
            bitmap_lists: sum.bitmap_lists,
            memory_bytes: sum.index_bytes,
        };
        reply::write_optimized(out, &report);
        Ok(())
    }
}
