//! SQL sessions of a database: idle sessions kept for the next statement, prepared statements, and rows that are
//! changed by key within a session's transaction.

use std::{
    collections::HashMap,
    future::Future,
    panic::AssertUnwindSafe,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use remora_engine::{Change, Database, Value};
use remora_sql::{EmbeddedHost, Identity, Instance, Session, Settings};

use crate::{
    Error, Options, Result,
    keyed::{Decide, KeyedRows, View},
    runtime,
};

/// `@@version`: that of the MySQL whose behaviour SQL follows.
const VERSION: &str = concat!("9.7.0-remora-", env!("CARGO_PKG_VERSION"));
/// How often a transaction of one change is tried after another writer was faster.
const MAX_TRIES: usize = 100;
/// The most idle sessions that are kept.
const MAX_IDLE: usize = 32;
/// The most prepared statements that are kept.
const MAX_STATEMENTS: usize = 256;
/// The longest text of a prepared statement that is kept, in bytes.
const MAX_KEPT_BYTES: usize = 16 << 10;

/// The database of unqualified tables, as in a server over the same directory.
const DEFAULT_DATABASE: &str = "remora";

/// The sessions of a database.
pub(crate) struct Sessions {
    instance: Instance,
    next: AtomicU64,
    idle: Mutex<Vec<Session>>,
    statements: Mutex<Statements>,
}

impl Sessions {
    /// The sessions of this database. Statements spill rows that exceed their memory into the
    /// folder `spill`, or into a temporary one.
    pub fn new(engine: Database, options: &Options, spill: Option<PathBuf>) -> Self {
        let settings = Settings {
            version: VERSION.to_owned(),
            max_query_memory_bytes: options.max_query_memory_bytes,
            max_total_memory_bytes: options.max_total_memory_bytes,
            max_temporary_memory_bytes: options.max_total_memory_bytes,
            spill,
            max_spill_bytes: options.max_spill_bytes,
            max_direct_rows: remora_sql::MAX_DIRECT_ROWS,
            default_database: DEFAULT_DATABASE.to_owned(),
        };
        Self {
            instance: Instance::new(engine, Arc::new(EmbeddedHost), settings),
            next: AtomicU64::new(1),
            idle: Mutex::default(),
            statements: Mutex::default(),
        }
    }

    /// A session in its initial state.
    pub fn begin(&self) -> Session {
        if let Some(session) = self.idle.lock().pop() {
            return session;
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let identity = Identity { user: "root".into(), host: "localhost".into(), rights: None };
        self.instance.session(id, identity)
    }

    /// Takes a session back, and resets it.
    pub fn end(&self, mut session: Session) {
        session.reset(None);
        let mut idle = self.idle.lock();
        if idle.len() < MAX_IDLE {
            idle.push(session);
        }
    }

    /// The prepared statement of a text, from the cache if possible.
    pub fn prepare(
        &self,
        session: &mut Option<Session>,
        text: &str,
    ) -> Result<Arc<PreparedStatement>> {
        if let Some(known) = self.statements.lock().get(text) {
            return Ok(known);
        }
        let prepared = prepare(session, text)?;
        self.statements.lock().insert(text, &prepared);
        Ok(prepared)
    }
}

/// Runs work with the session. If the work panics, the session is lost.
pub(crate) fn lend<T, F>(
    session: &mut Option<Session>,
    is_deep: bool,
    run: impl FnOnce(Session) -> F,
) -> Result<T>
where
    T: Send,
    F: Future<Output = (Session, remora_sql::Result<T>)> + Send + 'static,
{
    let lent = session.take().ok_or(Error::Closed)?;
    let (lent, ran) = runtime::wait(is_deep, run(lent))?;
    *session = Some(lent);
    Ok(ran?)
}

/// Runs work in the open transaction of the session, or else in one of its own, which is tried again if another writer
/// was faster.
pub(crate) fn in_transaction<T>(
    session: &mut Option<Session>,
    mut work: impl FnMut(&mut Option<Session>) -> Result<T>,
) -> Result<T> {
    let status = session.as_ref().ok_or(Error::Closed)?.status();
    if status.in_transaction || !status.autocommit {
        return work(session);
    }
    for _ in 0..MAX_TRIES {
        lend(session, false, async move |mut session| {
            let begun = session.begin_transaction().await;
            (session, begun)
        })?;
        // A panic of the work must not leave the transaction open, which nobody began.
        let worked = std::panic::catch_unwind(AssertUnwindSafe(|| work(session)));
        let worked = worked.unwrap_or_else(|panic| {
            if let Some(open) = session.as_mut() {
                open.roll_back();
            }
            std::panic::resume_unwind(panic)
        });
        let done = worked.and_then(|done| {
            lend(session, false, async move |mut session| {
                let committed = session.commit_transaction().await;
                (session, committed)
            })?;
            Ok(done)
        });
        if done.is_err()
            && let Some(open) = session.as_mut()
        {
            open.roll_back();
        }
        match done {
            Err(Error::Conflict(_)) => {}
            done => return done,
        }
    }
    Err(Error::conflict("the rows are changed by others again and again: try again"))
}

impl KeyedRows for Option<Session> {
    fn write(&mut self, table: &Arc<str>, changes: Vec<Change>) -> Result<()> {
        let changes: Arc<[Change]> = changes.into();
        in_transaction(self, |session| change_rows(session, table, &changes))
    }

    fn change(&mut self, table: &Arc<str>, key: &[Value], decide: Decide<'_>) -> Result<bool> {
        in_transaction(self, |session| {
            let found = begin_reading(session)?.row(table, key)?;
            let Some(change) = decide(found)? else { return Ok(false) };
            change_rows(session, table, &[change].into())?;
            Ok(true)
        })
    }

    fn view(&mut self, table: &Arc<str>) -> Result<View> {
        let session = begin_reading(self)?;
        Ok(View { reader: session.reader(), changed: session.changed_rows(table) })
    }
}

/// The session at the beginning of a read.
pub(crate) fn begin_reading(session: &mut Option<Session>) -> Result<&Session> {
    lend(session, false, async move |mut session| {
        let begun = session.begin_reading().await;
        (session, begun)
    })?;
    session.as_ref().ok_or(Error::Closed)
}

/// Changes rows by a session. Expressions of keys may nest deep.
fn change_rows(
    session: &mut Option<Session>,
    table: &Arc<str>,
    changes: &Arc<[Change]>,
) -> Result<()> {
    let (table, changes) = (Arc::clone(table), Arc::clone(changes));
    lend(session, true, async move |mut session| {
        let changed = session.change_rows(&table, &changes).await;
        (session, changed)
    })?;
    Ok(())
}

/// Prepares a statement.
pub(crate) fn prepare(session: &mut Option<Session>, text: &str) -> Result<Arc<PreparedStatement>> {
    let (is_deep, text) = (runtime::may_be_deep(text), text.to_owned());
    let statement = lend(session, is_deep, async move |mut session| {
        let read = session.prepare(text.as_bytes()).await;
        (session, read)
    })?;
    Ok(Arc::new(PreparedStatement { statement, is_deep }))
}

/// A prepared statement.
pub(crate) struct PreparedStatement {
    pub statement: remora_sql::Prepared,
    /// Whether it may need a large stack.
    pub is_deep: bool,
}

/// A cache of prepared statements by text.
#[derive(Default)]
pub(crate) struct Statements {
    known: HashMap<String, Arc<PreparedStatement>>,
}

impl Statements {
    pub fn get(&self, text: &str) -> Option<Arc<PreparedStatement>> {
        self.known.get(text).cloned()
    }

    pub fn insert(&mut self, text: &str, prepared: &Arc<PreparedStatement>) {
        if text.len() > MAX_KEPT_BYTES {
            return;
        }
        if self.known.len() >= MAX_STATEMENTS {
            self.known.clear();
        }
        self.known.insert(text.to_owned(), Arc::clone(prepared));
    }

    pub fn clear(&mut self) {
        self.known.clear();
    }
}
