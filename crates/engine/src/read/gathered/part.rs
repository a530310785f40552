//! The interface of a part of a table, wherever it lies.

use std::sync::Arc;

use crate::{
    KeywordQuery, KeywordStatistics, Result, Row, ScanRequest, Schema, Selection, WantedStatistics,
    interrupt::Unless,
};

/// What was asked for, which calling this waits for: so several are asked before the first has answered.
pub type Answer<'a, T> = Box<dyn FnOnce() -> Result<T> + 'a>;

/// Rows in the order of keys, some at a time.
pub type PartRows = Box<dyn Iterator<Item = Result<Vec<Row>>> + Send>;

/// Rows of a table in one place, as they were at a moment. All methods fail with [`crate::Error::Ended`] soon after `unless` says so.
pub trait Part: Send + Sync {
    /// What people know it by.
    fn name(&self) -> &str;

    /// The table's definition there; it is valid.
    fn schema(&self) -> &Schema;

    /// How many rows it has.
    fn rows(&self) -> u64;

    /// What its rows are known by: two parts of equal versions have the same.
    fn version(&self) -> &str;

    /// The first and the last key that it may have, in their bytes; `None` without rows.
    fn ends(&self) -> Option<&(Vec<u8>, Vec<u8>)>;

    /// Some of its keys in their order, from one on, of which there may be a row or not; none at the end.
    ///
    /// # Errors
    /// [`crate::Error::Elsewhere`] if it does not answer.
    fn keys_from(&self, from: &[u8], unless: &Unless) -> Result<Vec<Vec<u8>>>;

    /// The same part without the rows of these keys, of which it may have some.
    ///
    /// # Errors
    /// [`crate::Error::Elsewhere`] if it does not answer.
    fn hide(&self, keys: &[Vec<u8>], unless: &Unless) -> Result<Arc<dyn Part>>;

    /// What it adds to the numbers of a query, which has those that are known.
    fn statistics<'a>(
        &'a self,
        asked: &'a KeywordQuery,
        wanted: &'a WantedStatistics,
        unless: &'a Unless,
    ) -> Answer<'a, KeywordStatistics>;

    /// How many rows a selection has.
    fn count<'a>(&'a self, selection: Selection, unless: &'a Unless) -> Answer<'a, u64>;

    /// Begins to read columns and scores of the rows that match, in the order of keys.
    ///
    /// # Errors
    /// [`crate::Error::Request`] if it cannot be asked for that, [`crate::Error::Elsewhere`] if it does not answer.
    fn scan(&self, request: ScanRequest, unless: &Unless) -> Result<PartRows>;
}
