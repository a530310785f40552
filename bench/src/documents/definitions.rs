//! What defines collections beside the mix of operations, as the last thread of tiedot's `bench2` does: it makes a
//! collection and its indexes, fills, renames, empties and drops it.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::{Result, ensure};
use remora::Database;

use super::{PATHS, sample::Sample};
use crate::random::SplitMix64;

const DOCUMENTS: u64 = 100;
const PAUSE: Duration = Duration::from_millis(100);

/// Defines collections until the mix has ended; the number of rounds.
pub(super) fn define(database: &Database, is_done: &AtomicBool) -> Result<u64> {
    let mut random = SplitMix64::new(3);
    let mut rounds = 0;
    while rounds == 0 || !is_done.load(Ordering::Relaxed) {
        let made = database.collection("made")?;
        for path in PATHS {
            made.index(path)?;
        }
        made.insert_many((0..DOCUMENTS).map(|_| Sample::new(&mut random, DOCUMENTS)))?;
        database.rename_collection("made", "renamed")?;
        let renamed = database.collection("renamed")?;
        let emptied = renamed.delete_where(remora::field("nested.nested.int").at_least(0))?;
        ensure!(emptied == DOCUMENTS, "{emptied} documents of {DOCUMENTS} were deleted");
        database.drop_table("renamed")?;
        rounds += 1;
        thread::sleep(PAUSE);
    }
    Ok(rounds)
}
