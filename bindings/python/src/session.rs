//! The session of a connection: its statements, and the documents of its transaction.

use std::{
    cell::RefCell,
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use parking_lot::ReentrantMutex;
use pyo3::prelude::*;
use remora::Canceller;

use crate::{
    errors::{closed, programming, raised},
    process::OfProcess,
    signals::{Quick, is_main_thread, watched},
};

/// The session of a connection, which its collections share: for one statement at a time of whichever thread.
pub(crate) struct SharedSession {
    /// A handler of a signal may come back to it in the same thread.
    session: ReentrantMutex<RefCell<OfProcess<Session>>>,
    canceller: Canceller,
    /// Whether a transaction is open, or begins with the next statement: documents belong to it then.
    has_transaction: AtomicBool,
}

/// A session of SQL and what it remembers.
struct Session {
    connection: remora::Connection,
    quick: Quick,
}

impl SharedSession {
    pub fn new(connection: remora::Connection, canceller: Canceller) -> Self {
        let has_transaction = AtomicBool::new(has_transaction(&connection));
        let session = Session { connection, quick: Quick::default() };
        let session = ReentrantMutex::new(RefCell::new(OfProcess::new(session)));
        Self { session, canceller, has_transaction }
    }

    /// Runs `work` with the session, without the interpreter. In the main thread signals are looked after, unless
    /// the text was quick before.
    pub fn lend<T: Send>(
        &self,
        py: Python<'_>,
        text: &str,
        work: impl FnOnce(&mut remora::Connection, &AtomicBool) -> remora::Result<T> + Send,
    ) -> PyResult<T> {
        let is_main = is_main_thread(py)?;
        py.detach(|| {
            self.with(|Session { connection, quick }| {
                let begin = Instant::now();
                let answer = if is_main && !quick.has(text) {
                    watched(&self.canceller, |ends| work(connection, ends))
                } else {
                    Ok(work(connection, &AtomicBool::new(false)))
                };
                if is_main && answer.is_ok() {
                    quick.note(text, begin.elapsed());
                }
                answer?.map_err(raised)
            })
        })
    }

    /// Runs `work` with the session, for documents of its transaction. Called without the interpreter.
    pub fn lend_detached<T>(
        &self,
        work: impl FnOnce(&mut remora::Connection) -> remora::Result<T>,
    ) -> PyResult<T> {
        self.with(|session| work(&mut session.connection).map_err(raised))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Session) -> PyResult<T>) -> PyResult<T> {
        let session = self.session.lock();
        let mut session = session.try_borrow_mut().map_err(|_| {
            programming("the connection runs another statement in this thread, which a signal has interrupted")
        })?;
        let session = session.get_mut()?.ok_or_else(closed)?;
        let done = work(session);
        self.has_transaction.store(has_transaction(&session.connection), Ordering::Release);
        done
    }

    /// Asks the session what it knows.
    pub fn ask<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&remora::Connection) -> T + Send,
    ) -> PyResult<T> {
        py.detach(|| {
            let session = self.session.lock();
            let session =
                session.try_borrow().map_err(|_| programming("the connection runs a statement"))?;
            Ok(ask(&session.get()?.ok_or_else(closed)?.connection))
        })
    }

    /// Whether documents belong to a transaction of this session. Waits for no statement.
    pub fn has_transaction(&self) -> bool {
        self.has_transaction.load(Ordering::Acquire)
    }

    /// Commits the open transaction, as definitions do in SQL. Called without the interpreter.
    pub fn commit_open(&self) -> PyResult<()> {
        if !self.has_transaction() {
            return Ok(());
        }
        self.lend_detached(|connection| match connection.in_transaction() {
            true => connection.execute("COMMIT", []).map(drop),
            false => Ok(()),
        })
    }

    /// Ends the statement that runs, from another thread.
    pub fn interrupt(&self) {
        self.canceller.cancel();
    }

    /// Rolls back what is open, and ends the session. Called without the interpreter.
    pub fn close(&self) -> PyResult<()> {
        let session = self.session.lock();
        let mut session = session.try_borrow_mut().map_err(|_| {
            programming(
                "the connection runs a statement in this thread, which a signal has interrupted",
            )
        })?;
        drop(session.take()?);
        Ok(())
    }
}

/// Whether documents belong to a transaction of this connection.
pub(crate) fn has_transaction(connection: &remora::Connection) -> bool {
    !connection.is_autocommit() || connection.in_transaction()
}
