//! The state of a session between statements, and what each statement may ask of it.

mod agents;
mod context;
mod last_insert_id;
mod meta;
mod position;
mod random;
mod transaction;
mod variables;
mod warnings;

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use remora_engine::{Ending, Interrupt, Value};
use rustc_hash::FxHashMap;

pub(crate) use context::{Clock, Context, ContextGuard, UserVariables};
pub(crate) use last_insert_id::LastInsertId;
pub(crate) use meta::Meta;
pub(crate) use random::{Generator, RandomGenerators};
use remora_mysql::{ErrorCode, LexMode};
pub(crate) use variables::VariableTarget;
pub(crate) use warnings::{Level, Warning, Warnings};

use crate::{
    Column, Error, Identity, Result,
    agents::{Agents, ServedPart},
    catalog::{Reader, TableName, check_seen},
    parse::Source,
    shared::{InstanceState, LocksOwner},
    transaction::TransactionState,
    variables::Variables,
};

/// How soon a statement that waits notices that it was killed.
const INTERRUPT_STEP: Duration = Duration::from_millis(50);

/// How a connection is encrypted, in the words that MySQL has for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encryption {
    /// The protocol, as `TLSv1.3`.
    pub version: String,
    /// The cipher, as `TLS_AES_256_GCM_SHA384`.
    pub cipher: String,
}

/// Statements by their names in lower case.
pub(crate) type NamedStatements = FxHashMap<String, Arc<Source>>;

/// The moment that all parts of a statement read which is several: that of the first. They have their time together.
pub(crate) struct StatementSnapshot {
    reader: OnceLock<Reader>,
    /// Whether the first part has begun.
    has_begun: bool,
    /// When the statement was begun.
    since: Instant,
}

impl StatementSnapshot {
    /// That of a statement which begins now.
    pub(crate) fn new() -> Self {
        Self { reader: OnceLock::new(), has_begun: false, since: Instant::now() }
    }
}

/// Ends a statement that was killed, or that takes too long.
struct KillOrTimeout {
    interrupted: Arc<AtomicBool>,
    /// `None` if it is too far away to be told.
    deadline: Option<Instant>,
}

impl Interrupt for KillOrTimeout {
    fn ending(&self) -> Option<Ending> {
        let is_late = || self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        self.interrupted.ending().or_else(|| is_late().then_some(Ending::TimedOut))
    }
}

/// The columns of views.
#[derive(Default)]
pub(crate) struct DescribedViews {
    /// What each view gives, or what is wrong with it.
    pub columns: FxHashMap<TableName, Result<Vec<Column>>>,
    /// Whether they are being found out.
    pub is_busy: bool,
}

/// One client's state.
pub(crate) struct SessionState {
    /// What all sessions share.
    pub shared: Arc<InstanceState>,
    /// The connection's number.
    pub id: u64,
    /// Who asks.
    pub identity: Identity,
    /// The chosen database.
    pub database: Option<String>,
    /// System variables as this session sees them.
    pub variables: Variables,
    /// `@x`: names in lower case. Shared with the functions of a running statement.
    pub user_variables: UserVariables,
    /// What the last statement warned of. Shared with the functions of a running statement.
    pub warnings: Warnings,
    /// Whether what expressions warn of ends the running statement: it writes, in strict mode and
    /// without IGNORE.
    pub refuses_warnings: bool,
    /// What LAST_INSERT_ID() gives.
    pub last_insert_id: LastInsertId,
    /// What FOUND_ROWS() gives.
    pub found_rows: u64,
    /// What ROW_COUNT() gives: rows changed by the last statement, -1 after one with rows.
    pub row_count: i64,
    /// The open transaction, the savepoints in it, and temporary tables.
    pub transaction: TransactionState,
    /// COMMIT or ROLLBACK said RELEASE: the connection ends.
    pub is_released: bool,
    /// Whether the session has a connection that can end.
    pub may_be_released: bool,
    /// LOCK TABLES was said, and not taken back.
    pub locks_tables: bool,
    /// Statements made by PREPARE.
    pub named_statements: NamedStatements,
    /// The moment the running statement began at.
    pub clock: Clock,
    /// Set to end the running statement.
    pub interrupted: Arc<AtomicBool>,
    /// System variables that changed since the client was last told.
    pub changes: Vec<(String, String)>,
    /// Whether affected rows are those found, as the client asked (CLIENT_FOUND_ROWS).
    pub counts_found_rows: bool,
    /// Whether a statement may give the client several result sets.
    pub takes_many_results: bool,
    /// What the parts of one statement read, while they run.
    pub moment: Option<StatementSnapshot>,
    /// How the connection is encrypted, if it is.
    pub encryption: Option<Encryption>,
    /// The last search, for SHOW META.
    pub meta: Option<Box<Meta>>,
    /// The columns of views, as the running statement is told of them.
    pub described_views: Mutex<DescribedViews>,
    /// The tables of other servers that the running statement has opened.
    pub agents: Mutex<Option<Arc<Agents>>>,
    /// The part of a table that another server has opened here.
    pub part: Option<Box<ServedPart>>,
    /// The locks by name, which are free again when this goes.
    pub locks: LocksOwner,
}

impl SessionState {
    pub(crate) fn new(shared: Arc<InstanceState>, id: u64, identity: Identity) -> Self {
        let variables = Variables::new(&shared.globals.read());
        let locks = LocksOwner::new(&shared.locks, id);
        let database = Some(shared.settings.default_database.clone());
        let transaction = TransactionState::new(&shared);
        Self {
            shared,
            id,
            identity,
            database: database.filter(|name| !name.is_empty()),
            variables,
            user_variables: UserVariables::default(),
            warnings: Warnings::default(),
            refuses_warnings: false,
            last_insert_id: LastInsertId::default(),
            found_rows: 0,
            row_count: 0,
            transaction,
            is_released: false,
            may_be_released: false,
            locks_tables: false,
            named_statements: FxHashMap::default(),
            clock: Clock::default(),
            interrupted: Arc::default(),
            changes: Vec::new(),
            counts_found_rows: false,
            takes_many_results: true,
            moment: None,
            encryption: None,
            meta: None,
            described_views: Mutex::default(),
            agents: Mutex::default(),
            part: None,
            locks,
        }
    }

    /// The snapshot that a statement reads: the transaction's, else a new one. Taken once for each
    /// statement, with which its searches end.
    pub(crate) fn reader(&self) -> Reader {
        let newest = || self.shared.database.reader();
        let reader = match (self.transaction.reader(), &self.moment) {
            (Some(reader), _) => reader,
            (None, Some(moment)) => moment.reader.get_or_init(newest).clone(),
            (None, None) => newest(),
        };
        self.limited(&reader, self.variables.max_execution_time_ms)
    }

    /// The same moment, whose searches end with the statement, and after so many milliseconds, where 0 is any number.
    pub(crate) fn limited(&self, reader: &Reader, limit_ms: u64) -> Reader {
        reader.clone().with_interrupt(self.interrupt(limit_ms))
    }

    /// What ends the searches of a statement: KILL, and the end of its time.
    fn interrupt(&self, limit_ms: u64) -> Arc<dyn Interrupt> {
        if limit_ms == 0 {
            return Arc::<AtomicBool>::clone(&self.interrupted);
        }
        let deadline = Instant::now().checked_add(Duration::from_millis(limit_ms));
        Arc::new(KillOrTimeout { interrupted: Arc::clone(&self.interrupted), deadline })
    }

    /// The database for names without one; 1046 if none is chosen.
    pub(crate) fn current_database(&self) -> Result<&str> {
        let missing = || Error::new(ErrorCode::NoDatabase, "No database selected");
        self.database.as_deref().ok_or_else(missing)
    }

    /// What functions of a statement may ask: a picture of this moment.
    pub(crate) fn context(&self) -> Context {
        Context::of(self)
    }

    /// An error if the statement was killed.
    pub(crate) fn check_interrupted(&self) -> Result<()> {
        match self.interrupted.load(Ordering::Relaxed) {
            true => Err(Error::interrupted()),
            false => Ok(()),
        }
    }

    /// What is left of so many milliseconds, where 0 is any number, to a part of a statement; 3024 if nothing is.
    pub(crate) fn left_of(&self, limit_ms: u64) -> Result<u64> {
        let Some(moment) = self.moment.as_ref().filter(|_| limit_ms > 0) else {
            return Ok(limit_ms);
        };
        let left = Duration::from_millis(limit_ms).saturating_sub(moment.since.elapsed());
        match u64::try_from(left.as_millis()).unwrap_or(limit_ms) {
            0 => Err(Error::query_timeout()),
            left_ms => Ok(left_ms),
        }
    }

    /// Waits for what other sessions hold; an error if the statement is killed meanwhile.
    pub(crate) async fn wait_for<T>(&self, free: impl Future<Output = T>) -> Result<T> {
        let mut free = std::pin::pin!(free);
        loop {
            match tokio::time::timeout(INTERRUPT_STEP, free.as_mut()).await {
                Ok(held) => return Ok(held),
                Err(_) => self.check_interrupted()?,
            }
        }
    }

    /// An error if the statement was killed, or if its transaction has become too large.
    pub(crate) fn check_progress(&self) -> Result<()> {
        self.check_interrupted()?;
        self.transaction.check_size(self.shared.settings.max_query_memory_bytes)
    }

    /// Adds a warning.
    pub(crate) fn warn(&self, code: ErrorCode, message: impl Into<String>) {
        self.warnings.push(Warning::new(Level::Warning, code, message));
    }

    /// Adds a note, unless `sql_notes` is off.
    pub(crate) fn note(&self, code: ErrorCode, message: impl Into<String>) {
        if !self.variables.sql_notes {
            return;
        }
        self.warnings.push(Warning::new(Level::Note, code, message));
    }

    /// Chooses a database; 1044 if nothing of it may be read, 1049 if there is none of that name.
    pub(crate) fn use_database(&mut self, name: &str) -> Result<()> {
        check_seen(&self.shared, &self.identity, name)?;
        self.database = Some(name.to_owned());
        Ok(())
    }

    /// The value of `@name`.
    pub(crate) fn user_variable(&self, name: &str) -> Value {
        self.user_variables.get(name)
    }

    /// How quotes are read in this session.
    pub(crate) fn lex_mode(&self) -> LexMode {
        self.variables.lex_mode()
    }
}
