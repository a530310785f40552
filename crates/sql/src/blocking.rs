//! Runs blocking or slow work so that other tasks of the thread can continue.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::block_in_place,
};

/// The most long texts that are parsed in separate threads at a time.
const MAX_READING: usize = 64;

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
    // Each occupies a thread, and the number of threads is limited.
    let place = READING.fetch_add(1, Ordering::Relaxed);
    let done = if place < MAX_READING { run_blocking(read) } else { read() };
    READING.fetch_sub(1, Ordering::Relaxed);
    done
}
