//! Runs blocking or slow work so that other tasks of the thread can continue.

use std::sync::atomic::{AtomicUsize, Ordering};

use remora_engine::{ColumnBatch, KeywordQuery, Scan, TextQuery};
use remora_words::rank::Ranker;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::block_in_place,
};

/// The most long texts that are parsed in separate threads at a time.
const MAX_READING: usize = 64;
/// The most long searches at a time that leave their threads to other tasks.
const MAX_SEARCHING: usize = 256;

/// Runs a function that blocks, without blocking other tasks of the thread.
pub(crate) fn run_blocking<T>(wait: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(wait),
        _ => wait(),
    }
}

/// Parses or plans a long text without blocking other tasks of the thread.
pub(crate) fn run_blocking_if_long<T>(is_long: bool, read: impl FnOnce() -> T) -> T {
    static READING: AtomicUsize = AtomicUsize::new(0);
    if !is_long {
        return read();
    }
    run_among(&READING, MAX_READING, read)
}

/// Runs a function so, unless `most` run so by the same counter. Each occupies a thread, and the number of threads is
/// limited.
fn run_among<T>(running: &AtomicUsize, most: usize, work: impl FnOnce() -> T) -> T {
    let place = running.fetch_add(1, Ordering::Relaxed);
    let done = if place < most { run_blocking(work) } else { work() };
    running.fetch_sub(1, Ordering::Relaxed);
    done
}

/// A keyword query of more bytes may have so many words that it takes long.
const LONG_QUERY_BYTES: usize = 64;

/// Runs a search of the engine. One that may take long, because it has many words or weighs all rows by an expression,
/// does not block other tasks of the thread.
pub(crate) fn run_search<T>(text: Option<&TextQuery>, search: impl FnOnce() -> T) -> T {
    run_search_if_long(text.is_some_and(may_take_long), search)
}

/// The same, where it is known whether it may take long.
pub(crate) fn run_search_if_long<T>(is_long: bool, search: impl FnOnce() -> T) -> T {
    static SEARCHING: AtomicUsize = AtomicUsize::new(0);
    if is_long { run_among(&SEARCHING, MAX_SEARCHING, search) } else { search() }
}

/// Whether a text condition may take much longer than it takes to move the other tasks of the thread.
pub(crate) fn may_take_long(text: &TextQuery) -> bool {
    match text {
        TextQuery::Term(_) | TextQuery::Piece(_) => false,
        TextQuery::Keywords(query) => weighs_long(query),
        TextQuery::And(parts) | TextQuery::Or(parts) => parts.iter().any(may_take_long),
        TextQuery::Not(part) => may_take_long(part),
    }
}

fn weighs_long(query: &KeywordQuery) -> bool {
    query.text.len() > LONG_QUERY_BYTES
        || query.text.contains('*')
        || matches!(query.ranker, Ranker::Expression(_) | Ranker::Export(_))
}

/// The rows of a scan, read as [`run_search`] does.
pub(crate) struct ScanRows {
    pub rows: Scan,
    pub is_long: bool,
}

impl Iterator for ScanRows {
    type Item = remora_engine::Result<ColumnBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        run_search_if_long(self.is_long, || self.rows.next())
    }
}
