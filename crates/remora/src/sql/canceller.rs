//! Cancels a statement from another thread.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use remora_sql::Session;

/// Ends the statement that runs in a [`Connection`](crate::Connection), from any thread. Cheap to clone.
///
/// ```
/// let db = remora::Database::in_memory()?;
/// let mut connection = db.connection();
/// let canceller = connection.canceller()?;
/// std::thread::spawn(move || {
///     // Whether the statement runs by then is not known here.
///     loop {
///         std::thread::sleep(std::time::Duration::from_millis(50));
///         canceller.cancel();
///     }
/// });
/// // SLEEP gives 1 if it is ended; a statement that is ended before it sleeps is an error.
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

    /// Ends the statement that runs, with [`Error::Busy`](crate::Error::Busy) and MySQL's number 1317, soon: what it
    /// changed is undone, a transaction that it is in goes on. Nothing happens if none runs.
    pub fn cancel(&self) {
        self.interrupter.store(true, Ordering::Relaxed);
    }

    /// A statement begins, which nobody has cancelled.
    pub(super) fn begin(&self) {
        self.interrupter.store(false, Ordering::Relaxed);
    }
}
