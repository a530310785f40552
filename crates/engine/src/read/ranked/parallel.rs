//! Threads that weigh segments beside the caller of a query.
//!
//! They pay off only for a query that visits so many postings that the start of a thread, some 30 us, is little against
//! it, and only while processors are idle. So all queries of the process together have one thread less than there are
//! processors: with many clients each query runs on its own thread, as before.

use std::{
    num::NonZero,
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use crate::Result;

/// The fewest postings for which a thread is started. Fewer in tests, whose tables are small.
const POSTINGS_PER_THREAD: u64 = if cfg!(test) { 4 } else { 500_000 };

/// The most threads beside the caller of one query.
const MOST_BESIDE: usize = 7;

/// The threads that may still be started.
static FREE: LazyLock<AtomicUsize> = LazyLock::new(|| {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    // Tests run with threads on every machine.
    AtomicUsize::new(if cfg!(test) { 8 } else { processors - 1 })
});

#[cfg(test)]
thread_local! {
    /// Set by tests that count what a query does: its queries run on the caller's thread alone.
    pub(crate) static ALONE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Permission to start some threads, given back when it is dropped.
struct Permits(usize);

impl Permits {
    fn take(wanted: usize) -> Self {
        let mut taken = 0;
        // An update that takes nothing is an error here, which means the same.
        let _ = FREE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| {
            taken = wanted.min(free);
            (taken > 0).then(|| free - taken)
        });
        Self(taken)
    }
}

impl Drop for Permits {
    fn drop(&mut self) {
        FREE.fetch_add(self.0, Ordering::Relaxed);
    }
}

/// Calls `work` for each of the items in their order, on several threads if there are many postings to visit. Returns
/// the results in the order of the items. After an error the items that were not begun are left out.
///
/// # Errors
/// The first error of `work`. A panic in a thread goes on in the caller.
pub(super) fn each<T: Send>(
    items: usize,
    postings: u64,
    work: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let by_postings = usize::try_from(postings / POSTINGS_PER_THREAD).unwrap_or(MOST_BESIDE);
    let wanted = by_postings.min(items.saturating_sub(1)).min(MOST_BESIDE);
    #[cfg(test)]
    let wanted = if ALONE.get() { 0 } else { wanted };
    let permits = Permits::take(wanted);
    if permits.0 == 0 {
        return (0..items).map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let run = || {
        let mut done = Vec::new();
        loop {
            let item = next.fetch_add(1, Ordering::Relaxed);
            if item >= items {
                return Ok(done);
            }
            match work(item) {
                Ok(result) => done.push((item, result)),
                Err(error) => {
                    next.store(items, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
    };
    let mut done = thread::scope(|scope| {
        let start = |_| {
            let builder = thread::Builder::new().name("remora-ranked".to_owned());
            // Without a thread the caller does its part.
            builder.spawn_scoped(scope, run).ok()
        };
        let beside: Vec<_> = (0..permits.0).filter_map(start).collect();
        let mut done = run();
        for thread in beside {
            let others = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            match (&mut done, others) {
                (Ok(done), Ok(others)) => done.extend(others),
                (Ok(_), Err(error)) => done = Err(error),
                (Err(_), _) => {}
            }
        }
        done
    })?;
    done.sort_unstable_by_key(|&(item, _)| item);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}
