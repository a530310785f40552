//! The priority of the threads that merge.

use std::{panic::resume_unwind, thread};

/// Runs a function in a new thread with this niceness, and waits for it.
pub(super) fn aside<T: Send>(niceness: i32, run: &(dyn Fn() -> T + Sync)) -> T {
    thread::scope(|scope| {
        let lowered = move || {
            lower_priority(niceness);
            run()
        };
        let builder = thread::Builder::new().name("remora-merge-l".to_owned());
        match builder.spawn_scoped(scope, lowered) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => run(),
        }
    })
}

/// Lowers the priority of this thread. Only on Linux: elsewhere it would affect the whole process.
pub(crate) fn lower_priority(niceness: i32) {
    if niceness == 0 || !cfg!(target_os = "linux") {
        return;
    }
    let lowered = rustix::process::getpriority_process(None)
        .and_then(|now| rustix::process::setpriority_process(None, now.max(niceness)));
    if let Err(error) = lowered {
        tracing::debug!(%error, "the priority of a merge thread could not be lowered");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_thread_aside_has_another_priority() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let before = niceness();
        let expected = if cfg!(target_os = "linux") { before.max(7) } else { before };
        assert_eq!(
            (aside(7, &niceness), aside(0, &niceness), niceness()),
            (expected, before, before)
        );
    }
}
