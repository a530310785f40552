//! Cancels a statement from another thread.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use remora_sql::Session;

/// Cancels the statement that is running in a [`Connection`](crate::Connection), from any thread.
/// It is cheap to clone.
///
/// ```
/// let db = remora::Database::in_memory()?;
/// let mut connection = db.connection();
/// let canceller = connection.canceller()?;
/// std::thread::spawn(move || {
///     // The statement may not have started yet.
///     loop {
///         std::thread::sleep(std::time::Duration::from_millis(50));
///         canceller.cancel();
///     }
/// });
/// // SLEEP returns 1 if it is cancelled; a statement that is cancelled before it sleeps is an error.
/// match connection.query("SELECT SLEEP(60)", []) {
///     Ok(rows) => assert_eq!(rows.one::<i32>()?, 1),
///     Err(error) => assert!(matches!(error, remora::Error::Busy(_))),
/// }
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Canceller {
    interrupter: Arc<AtomicBool>,
}

impl Canceller {
    pub(super) fn of(session: &Session) -> Self {
        Self { interrupter: session.interrupter() }
    }

    /// Cancels the running statement, which soon ends with [`Error::Busy`](crate::Error::Busy) and
    /// MySQL's number 1317. Its changes are undone; a transaction that contains it continues.
    /// Without a running statement nothing happens.
    pub fn cancel(&self) {
        self.interrupter.store(true, Ordering::Relaxed);
    }

    /// Notes that a statement begins, which was not cancelled yet.
    pub(super) fn begin(&self) {
        self.interrupter.store(false, Ordering::Relaxed);
    }
}
