//! AUTO_INCREMENT values and hidden row numbers. No value is issued twice.
//!
//! A counter is in memory, above every value in its table. Each commit of rows that used it stores it as a position,
//! under a source name that begins with `#next.`. After a restart it continues above both the stored value and the
//! table's values.

use std::sync::Arc;

use parking_lot::Mutex;
use remora_engine::{SearchRequest, Selection, SortBy, SortKey, Value};
use rustc_hash::FxHashMap;

use crate::{Result, error::from_engine_write, shared::InstanceState};

/// The prefix of the names under which counters are stored.
const STORED: &str = "#next.";

/// The counters of all tables.
#[derive(Default)]
pub(crate) struct Counters {
    next: Mutex<FxHashMap<Arc<str>, u64>>,
}

impl Counters {
    /// The next value of a table's counter, without taking it.
    pub(crate) fn peek(&self, shared: &InstanceState, table: &str, column: &str) -> Result<u64> {
        self.next_of(shared, table, table, column)
    }

    fn next_of(
        &self,
        shared: &InstanceState,
        counter: &str,
        table: &str,
        column: &str,
    ) -> Result<u64> {
        let mut counters = self.next.lock();
        if let Some(next) = counters.get(counter) {
            return Ok(*next);
        }
        let next = first(shared, counter, table, column)?;
        counters.insert(counter.into(), next);
        Ok(next)
    }

    /// Takes the next value of a counter.
    pub(crate) fn take(
        &self,
        shared: &InstanceState,
        counter: &str,
        table: &str,
        column: &str,
    ) -> Result<u64> {
        self.next_of(shared, counter, table, column)?;
        let mut counters = self.next.lock();
        let next = counters.entry(counter.into()).or_insert(1);
        let taken = *next;
        *next = taken.saturating_add(1);
        Ok(taken)
    }

    /// Moves a counter past a value that a client supplied.
    pub(crate) fn pass(
        &self,
        shared: &InstanceState,
        counter: &str,
        table: &str,
        column: &str,
        given: u64,
    ) -> Result<()> {
        self.next_of(shared, counter, table, column)?;
        let mut counters = self.next.lock();
        let next = counters.entry(counter.into()).or_insert(1);
        *next = (*next).max(given.saturating_add(1));
        Ok(())
    }

    /// Sets a counter, as ALTER TABLE … AUTO_INCREMENT does, but not below the table's greatest
    /// value.
    pub(crate) fn raise(
        &self,
        shared: &InstanceState,
        table: &str,
        column: &str,
        next: u64,
    ) -> Result<()> {
        let held = above(shared, table, column)?;
        self.next.lock().insert(table.into(), next.max(held));
        Ok(())
    }

    /// Drops the counter of a table that was dropped or replaced.
    pub(crate) fn forget(&self, table: &str) {
        self.next.lock().remove(table);
    }

    /// The position to store in the commit of rows that used the counter.
    pub(crate) fn stored(&self, table: &str) -> Option<(String, String)> {
        let next = *self.next.lock().get(table)?;
        Some((position_name(table), next.to_string()))
    }
}

/// The name of the position that stores a table's counter.
pub(crate) fn position_name(table: &str) -> String {
    format!("{STORED}{table}")
}

/// The first free value: above the stored counter and above the table's greatest value.
fn first(shared: &InstanceState, counter: &str, table: &str, column: &str) -> Result<u64> {
    let stored =
        shared.database.source_position(&position_name(counter)).map_err(from_engine_write)?;
    let stored = stored.and_then(|text| text.parse::<u64>().ok()).unwrap_or(1);
    Ok(stored.max(above(shared, table, column)?))
}

/// One more than the greatest value in the table.
fn above(shared: &InstanceState, table: &str, column: &str) -> Result<u64> {
    let request = SearchRequest {
        selection: Selection { table: table.to_owned(), ..Selection::default() },
        sort: vec![SortKey { by: SortBy::Column(column.to_owned()), descending: true }],
        limit: 1,
        fields: vec![column.to_owned()],
        ..SearchRequest::default()
    };
    let reply = shared.database.search(&request).map_err(from_engine_write)?;
    let largest = reply.hits.first().and_then(|hit| hit.fields.first());
    let above = match largest {
        Some(Value::Int(number)) => u64::try_from(*number).map_or(1, |n| n.saturating_add(1)),
        Some(Value::Uint(number)) => number.saturating_add(1),
        Some(Value::Float(number)) if *number >= 0.0 => *number as u64 + 1,
        _ => 1,
    };
    Ok(above.max(1))
}
