//! Blocking or slow work, moved aside so that other tasks of the thread go on.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::block_in_place,
};

/// Long texts that are read in threads of their own at a time.
const MAX_READING: usize = 64;

/// Waits in a function without keeping other queries from the thread.
pub(crate) fn run_blocking<T>(wait: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(wait),
        _ => wait(),
    }
}

/// Reads or plans a long text without keeping the thread's other tasks waiting.
pub(crate) fn run_blocking_if_long<T>(is_long: bool, read: impl FnOnce() -> T) -> T {
    static READING: AtomicUsize = AtomicUsize::new(0);
    if !is_long {
        return read();
    }
    // Each takes a thread of its own, of which there are not many.
    let place = READING.fetch_add(1, Ordering::Relaxed);
    let done = if place < MAX_READING { run_blocking(read) } else { read() };
    READING.fetch_sub(1, Ordering::Relaxed);
    done
}
