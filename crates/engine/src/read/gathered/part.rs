//! The interface of a part of a table, local or remote.

use std::sync::Arc;

use crate::{
    FacetRequest, KeywordQuery, KeywordStatistics, Result, Row, ScanRequest, Schema, Selection,
    Value, WantedStatistics, interrupt::InterruptCheck,
};

/// A pending answer; calling it waits. So all parts can be asked before the first answer arrives.
pub type Answer<'a, T> = Box<dyn FnOnce() -> Result<T> + 'a>;

/// Values with their row counts; `None` if there are more than [`crate::MAX_FACET_VALUES`], or too
/// many bytes.
pub type PartValues = Option<Vec<(Value, u64)>>;

/// Rows in key order, in batches.
pub type PartRows = Box<dyn Iterator<Item = Result<Vec<Row>>> + Send>;

/// A snapshot of the rows of a table in one place. All methods fail with [`crate::Error::Ended`] soon after
/// `unless` says so.
pub trait Part: Send + Sync {
    /// The name shown to users.
    fn name(&self) -> &str;

    /// The table's definition at this place. It was validated.
    fn schema(&self) -> &Schema;

    /// The number of rows.
    fn rows(&self) -> u64;

    /// The version of its rows: parts with equal versions have the same rows.
    fn version(&self) -> &str;

    /// The least and the greatest key that it may have, encoded; `None` without rows.
    fn ends(&self) -> Option<&(Vec<u8>, Vec<u8>)>;

    /// A page of its encoded keys, ascending, from `from` on (included); empty at the end.
    ///
    /// # Errors
    /// [`crate::Error::RemoteServer`] if it does not answer.
    fn keys_from(&self, from: &[u8], unless: &InterruptCheck) -> Result<Vec<Vec<u8>>>;

    /// The same part without the rows with these keys. It need not have all of them.
    ///
    /// # Errors
    /// [`crate::Error::RemoteServer`] if it does not answer.
    fn hide(&self, keys: &[Vec<u8>], unless: &InterruptCheck) -> Result<Arc<dyn Part>>;

    /// What this part adds to the statistics of a query. The query contains the statistics that are known already.
    fn statistics<'a>(
        &'a self,
        asked: &'a KeywordQuery,
        wanted: &'a WantedStatistics,
        unless: &'a InterruptCheck,
    ) -> Answer<'a, KeywordStatistics>;

    /// The number of rows of a selection.
    fn count<'a>(&'a self, selection: Selection, unless: &'a InterruptCheck) -> Answer<'a, u64>;

    /// The number of rows of a selection for each value of an indexed column, in any order. The request's limit does
    /// not count.
    fn facet<'a>(
        &'a self,
        request: FacetRequest,
        unless: &'a InterruptCheck,
    ) -> Answer<'a, PartValues>;

    /// Starts to read columns and scores of the matching rows, in key order.
    ///
    /// # Errors
    /// [`crate::Error::Request`] if the request is invalid, [`crate::Error::RemoteServer`] if it does not answer.
    fn scan(&self, request: ScanRequest, unless: &InterruptCheck) -> Result<PartRows>;
}
