//! Named locks among the sessions of one server: GET_LOCK and its relatives.
//!
//! A session may hold many locks, and each several times. They are released when the session ends, whatever its
//! transactions do. In a deadlock, the session that closes the cycle is refused.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use remora_mysql::ErrorCode;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{Error, Result};

/// The most locks that all sessions hold together.
const MAX_HELD: usize = 1 << 16;
/// The longest name, in characters.
const MAX_NAME_CHARS: usize = 64;
/// How often a waiting session checks whether its statement has ended.
const STEP: Duration = Duration::from_millis(20);

/// The named locks of all sessions.
#[derive(Default)]
pub(crate) struct NamedLocks {
    table: Mutex<Table>,
    freed: Condvar,
}

#[derive(Default)]
struct Table {
    held: FxHashMap<String, Held>,
    /// The lock that each waiting session waits for.
    awaited: FxHashMap<u64, String>,
    open: FxHashSet<u64>,
    last_session: u64,
}

struct Held {
    session: u64,
    connection: u64,
    times: u64,
}

/// A session's access to the locks, for its statements.
pub(crate) struct SessionLocks {
    all: Arc<NamedLocks>,
    session: u64,
    connection: u64,
}

/// Owned by the session. Dropping it releases the session's locks.
pub(crate) struct LocksOwner(Arc<SessionLocks>);

impl LocksOwner {
    /// Registers a session.
    pub(crate) fn new(all: &Arc<NamedLocks>, connection: u64) -> Self {
        let mut table = all.table.lock();
        table.last_session += 1;
        let session = table.last_session;
        table.open.insert(session);
        Self(Arc::new(SessionLocks { all: Arc::clone(all), session, connection }))
    }

    /// The handle through which statements take locks.
    pub(crate) fn side(&self) -> Arc<SessionLocks> {
        Arc::clone(&self.0)
    }
}

impl Drop for LocksOwner {
    fn drop(&mut self) {
        self.0.all.table.lock().open.remove(&self.0.session);
        self.0.release_all();
    }
}

impl SessionLocks {
    /// Takes a lock, waiting at most `patience`, or without limit if that is `None`. Returns false
    /// if another session held it until then. Ends with 1317 if `is_over` says so, and with 3058
    /// instead of waiting in a deadlock.
    pub(crate) fn take(
        &self,
        name: &str,
        patience: Option<Duration>,
        is_over: impl Fn() -> bool,
    ) -> Result<bool> {
        let deadline = patience.and_then(|patience| Instant::now().checked_add(patience));
        let mut table = self.all.table.lock();
        loop {
            if is_over() || !table.open.contains(&self.session) {
                return Err(Error::interrupted());
            }
            if table.take(name, self.session, self.connection)? {
                return Ok(true);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(false);
            }
            if table.closes_circle(name, self.session) {
                return Err(deadlock());
            }
            table.awaited.insert(self.session, name.to_owned());
            let step = left.map_or(STEP, |left| left.min(STEP));
            self.all.freed.wait_for(&mut table, step);
            table.awaited.remove(&self.session);
        }
    }

    /// Releases a lock once. Returns false if another session holds it, `None` if nobody does.
    pub(crate) fn release(&self, name: &str) -> Option<bool> {
        let mut table = self.all.table.lock();
        let held = table.held.get_mut(name)?;
        if held.session != self.session {
            return Some(false);
        }
        held.times -= 1;
        if held.times == 0 {
            table.held.remove(name);
            self.all.freed.notify_all();
        }
        Some(true)
    }

    /// Releases all locks of the session; returns how often they were taken.
    pub(crate) fn release_all(&self) -> u64 {
        let mut released = 0;
        self.all.table.lock().held.retain(|_, held| {
            let own = held.session == self.session;
            released += if own { held.times } else { 0 };
            !own
        });
        self.all.freed.notify_all();
        released
    }

    /// The connection that holds a lock, if one does.
    pub(crate) fn holder(&self, name: &str) -> Option<u64> {
        self.all.table.lock().held.get(name).map(|held| held.connection)
    }
}

impl Table {
    /// Takes a lock if it is free or already the session's own.
    fn take(&mut self, name: &str, session: u64, connection: u64) -> Result<bool> {
        if let Some(held) = self.held.get_mut(name) {
            let own = held.session == session;
            held.times += u64::from(own);
            return Ok(own);
        }
        if self.held.len() >= MAX_HELD {
            let message = format!("{MAX_HELD} locks are held by name, which is the limit");
            return Err(Error::new(ErrorCode::OutOfMemory, message));
        }
        self.held.insert(name.to_owned(), Held { session, connection, times: 1 });
        Ok(true)
    }

    /// Whether waiting for this lock would deadlock: its holder waits, directly or through others,
    /// for `session`.
    fn closes_circle(&self, name: &str, session: u64) -> bool {
        let mut next = self.held.get(name);
        // Each session waits for one lock at most, and no cycle exists yet, so this ends.
        while let Some(held) = next {
            if held.session == session {
                return true;
            }
            next = self.awaited.get(&held.session).and_then(|name| self.held.get(name));
        }
        false
    }
}

/// The normalised name of a lock (case-insensitive); 3057 or 4163 if the name is not allowed.
pub(crate) fn lock_name(given: Option<&str>) -> Result<String> {
    match given {
        None | Some("") => {
            let shown = given.unwrap_or("NULL");
            let message = format!(
                "Incorrect user-level lock name '{shown}'. The name is empty, NULL, or can not be \
                 expressed in the current character-set."
            );
            Err(Error::new(ErrorCode::UserLockName, message))
        }
        Some(name) if name.chars().count() > MAX_NAME_CHARS => {
            let message = format!(
                "User-level lock name '{name}' should not exceed {MAX_NAME_CHARS} characters."
            );
            Err(Error::new(ErrorCode::UserLockNameTooLong, message))
        }
        Some(name) => Ok(name.to_lowercase()),
    }
}

/// 3058: waiting would deadlock.
fn deadlock() -> Error {
    let message = "Deadlock found when trying to get user-level lock; try rolling back \
                   transaction/releasing locks and restarting lock acquisition.";
    Error::new(ErrorCode::UserLockDeadlock, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> (LocksOwner, LocksOwner) {
        let all = Arc::new(NamedLocks::default());
        (LocksOwner::new(&all, 1), LocksOwner::new(&all, 2))
    }

    fn at_once(side: &SessionLocks, name: &str) -> bool {
        side.take(name, Some(Duration::ZERO), || false).unwrap()
    }

    #[test]
    fn a_lock_is_one_sessions_and_as_often_as_it_took_it() {
        let (first, second) = two();
        let (a, b) = (first.side(), second.side());
        assert!(at_once(&a, "x") && at_once(&a, "x") && !at_once(&b, "x"));
        assert_eq!((a.holder("x"), b.release("x"), b.release("y")), (Some(1), Some(false), None));
        assert_eq!((a.release("x"), at_once(&b, "x")), (Some(true), false));
        assert_eq!((a.release("x"), at_once(&b, "x")), (Some(true), true));
        assert!(at_once(&b, "y") && at_once(&b, "y"));
        assert_eq!((b.release_all(), b.release_all(), b.holder("y")), (3, 0, None));
    }

    #[test]
    fn the_end_of_a_session_frees_its_locks_and_ends_its_waits() {
        let (first, second) = two();
        let (a, b) = (first.side(), second.side());
        assert!(at_once(&a, "x"));
        let waiting = std::thread::spawn(move || b.take("x", None, || false));
        drop(first);
        assert!(waiting.join().unwrap().unwrap());
        assert_eq!(a.holder("x"), Some(2));
        let waiting = std::thread::spawn(move || a.take("x", None, || false));
        assert_eq!(waiting.join().unwrap().unwrap_err().code, ErrorCode::Interrupted);
        drop(second);
    }

    #[test]
    fn a_circle_is_not_closed() {
        let (first, second) = two();
        let (a, b) = (first.side(), second.side());
        assert!(at_once(&a, "x") && at_once(&b, "y"));
        let waiting = std::thread::spawn(move || b.take("x", None, || false));
        while a.all.table.lock().awaited.is_empty() {
            std::thread::yield_now();
        }
        // The other session's wait wakes up only at intervals, so this may take several tries.
        let error = loop {
            match a.take("y", Some(Duration::from_millis(1)), || false) {
                Ok(taken) => assert!(!taken),
                Err(error) => break error,
            }
        };
        assert_eq!(error.code, ErrorCode::UserLockDeadlock);
        a.release("x");
        assert!(waiting.join().unwrap().unwrap());
    }

    #[test]
    fn names_are_short_and_compare_without_case() {
        assert_eq!(lock_name(Some("Äb")).unwrap(), "äb");
        for wrong in [None, Some("")] {
            assert_eq!(lock_name(wrong).unwrap_err().code, ErrorCode::UserLockName);
        }
        let long = lock_name(Some(&"é".repeat(65)));
        assert_eq!(long.unwrap_err().code, ErrorCode::UserLockNameTooLong);
        assert!(lock_name(Some(&"é".repeat(64))).is_ok());
    }
}
