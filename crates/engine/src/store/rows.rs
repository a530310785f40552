//! Rows of one table out of a snapshot of the store.

use std::sync::Arc;

use super::{Keyspace, StoreSnapshot};
use crate::{Result, Row, encode::RowFormat, snapshot::RowReader};

/// The rows of one table at the moment of a store snapshot.
pub(crate) struct StoredRows {
    snapshot: Arc<dyn StoreSnapshot>,
    keyspace: Keyspace,
    format: Arc<RowFormat>,
}

impl StoredRows {
    /// The rows of table number `table`, read with `format`.
    pub fn new(snapshot: Arc<dyn StoreSnapshot>, table: u32, format: Arc<RowFormat>) -> Self {
        Self { snapshot, keyspace: Keyspace::Rows(table), format }
    }
}

impl RowReader for StoredRows {
    fn get(&self, key: &[u8], wanted: &dyn Fn(usize) -> bool) -> Result<Option<Row>> {
        let stored = self.snapshot.get(self.keyspace, key)?;
        stored.map(|bytes| self.format.decode_columns(&bytes, wanted)).transpose()
    }

    fn scan(&self, from: &[u8], visit: &mut dyn FnMut(&[u8], Row) -> Result<bool>) -> Result<()> {
        self.snapshot
            .scan(self.keyspace, from, &mut |key, bytes| visit(key, self.format.decode(bytes)?))
    }
}
