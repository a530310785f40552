//! Ids of documents: numbers that increase with time and are never reused.
//!
//! ```text
//! id := milliseconds since 2020-01-01 00:00:00 UTC << 22 | number within the millisecond
//! ```
//! An id is greater than every id before it, whatever the clock does. The upper limit of ids is stored, as a position
//! under a source name that begins with `#ids.`, before ids are given: a second ahead and once a second, so that most
//! writes store nothing beside their rows. After a restart ids continue above the stored limit.

use std::{
    collections::HashMap,
    time::{SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use remora_engine::{ChangeBatch, Database};

use crate::{Error, Result};

/// The prefix of the names of stored limits.
const STORED: &str = "#ids.";
/// 2020-01-01 00:00:00 UTC, in milliseconds since 1970.
const BEGIN_MS: u128 = 1_577_836_800_000;
/// The bits of the number within a millisecond.
const NUMBER_BITS: u32 = 22;
/// How far ahead the stored limit is, in milliseconds.
const AHEAD_MS: i64 = 1_000;

/// The ids of all collections.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    collections: Mutex<HashMap<String, Given>>,
}

#[derive(Clone, Copy, Debug)]
struct Given {
    /// The last id that was generated.
    last: i64,
    /// The stored limit. No id above it was ever given.
    stored: i64,
}

impl Ids {
    /// Reserves `count` consecutive ids of a collection and returns the first.
    pub fn take(&self, engine: &Database, collection: &str, count: usize) -> Result<i64> {
        self.take_at(engine, collection, count, now_ms())
    }

    /// Renames a collection by `rename`, which gets what is to be stored in the same step: under
    /// the new name, ids continue above those of the old name and of an earlier collection of the
    /// new name.
    pub fn rename(
        &self,
        engine: &Database,
        from: &str,
        to: &str,
        rename: impl FnOnce(Vec<(String, String)>) -> Result<()>,
    ) -> Result<()> {
        // Locked, so that no id is generated under a name that no longer exists.
        let mut collections = self.collections.lock();
        let mut highest: i64 = 0;
        for name in [from, to] {
            let stored = engine.source_position(&format!("{STORED}{name}"))?;
            let stored = stored.and_then(|text| text.parse().ok()).unwrap_or(0);
            highest = stored.max(highest);
        }
        let gone = (format!("{STORED}{from}"), String::new());
        rename(vec![gone, (format!("{STORED}{to}"), highest.to_string())])?;
        collections.remove(from);
        collections.remove(to);
        Ok(())
    }

    fn take_at(
        &self,
        engine: &Database,
        collection: &str,
        count: usize,
        now_ms: i64,
    ) -> Result<i64> {
        // Locked while the limit is stored; other callers wait for it.
        let mut collections = self.collections.lock();
        let name = format!("{STORED}{collection}");
        let mut given = match collections.get(collection) {
            Some(given) => *given,
            None => {
                let stored = engine.source_position(&name)?;
                let stored = stored.and_then(|text| text.parse().ok()).unwrap_or(0);
                Given { last: stored, stored }
            }
        };
        let exhausted = || Error::request(format!("collection {collection:?} has no more ids"));
        let count = i64::try_from(count).map_err(|_| exhausted())?;
        let first = given.last.checked_add(1).ok_or_else(exhausted)?.max(now_ms << NUMBER_BITS);
        given.last = first.checked_add(count - 1).ok_or_else(exhausted)?;
        if given.last > given.stored {
            given.stored = given.last.checked_add(AHEAD_MS << NUMBER_BITS).ok_or_else(exhausted)?;
            let positions = vec![(name, given.stored.to_string())];
            engine.apply(ChangeBatch { positions, ..ChangeBatch::default() })?;
        }
        collections.insert(collection.to_owned(), given);
        Ok(first)
    }
}

/// Milliseconds since the beginning of 2020; 0 before that.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    i64::try_from(since.saturating_sub(BEGIN_MS)).unwrap_or(i64::MAX) & (i64::MAX >> NUMBER_BITS)
}

#[cfg(test)]
mod tests {
    use remora_engine::Options;

    use super::*;

    #[test]
    fn ids_grow_whatever_the_clock_does_and_across_restarts() {
        let directory = tempfile::tempdir().unwrap();
        let mut last = 0;
        for clock in [5_000, 4_000, 4_000, 0, 9_000] {
            let engine = Database::open(directory.path(), Options::default()).unwrap();
            let ids = Ids::default();
            for count in [1, 10, 1] {
                let first = ids.take_at(&engine, "a", count, clock).unwrap();
                assert!(first > last, "{first} behind {last} at {clock}");
                last = first + count as i64 - 1;
            }
            engine.close().unwrap();
        }
        // If the clock is ahead, ids follow it.
        assert_eq!(last >> NUMBER_BITS, 9_000);
    }

    #[test]
    fn ids_go_on_under_another_name() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Database::open(directory.path(), Options::default()).unwrap();
        let ids = Ids::default();
        let (a, b) = (
            ids.take_at(&engine, "a", 1, 9).unwrap(),
            ids.take_at(&engine, "b", 1, 90_000).unwrap(),
        );
        let apply = |positions| {
            engine.apply(ChangeBatch { positions, ..ChangeBatch::default() })?;
            Ok(())
        };
        ids.rename(&engine, "a", "b", apply).unwrap();
        assert!(ids.take_at(&engine, "b", 1, 0).unwrap() > b && b > a);
        ids.rename(&engine, "b", "c", apply).unwrap();
        assert!(ids.take_at(&engine, "c", 1, 0).unwrap() > b);
        assert_eq!(engine.source_position("#ids.b").unwrap(), None);
    }

    #[test]
    fn the_first_ids_of_a_moment_are_that_moment() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Database::open(directory.path(), Options::default()).unwrap();
        let ids = Ids::default();
        assert_eq!(ids.take_at(&engine, "a", 2, 77).unwrap(), 77 << NUMBER_BITS);
        assert!(now_ms() > 150_000_000_000 && now_ms() << NUMBER_BITS > 0);
        // Ids of different collections are independent.
        assert_eq!(ids.take_at(&engine, "b", 1, 77).unwrap(), 77 << NUMBER_BITS);
    }
}
