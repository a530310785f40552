//! The state of a session between statements, and what a statement can read of it.

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
pub use meta::LastSearch;
pub(crate) use meta::Meta;
pub(crate) use random::{Generator, RandomGenerators};
use remora_mysql::{ErrorCode, LexMode, messages};
pub(crate) use variables::VariableTarget;
pub(crate) use warnings::{Warning, WarningLevel, Warnings};

use crate::{
    Column, Error, Identity, Result,
    agents::{Agents, ServedPart},
    catalog::{Reader, TableName, check_seen, database_collation},
    parse::Source,
    shared::{InstanceState, LocksOwner},
    transaction::TransactionState,
    variables::Variables,
};

/// How often a waiting statement checks whether it was killed.
const INTERRUPT_STEP: Duration = Duration::from_millis(50);

/// How a connection is encrypted, in MySQL's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encryption {
    /// The protocol version, such as `TLSv1.3`.
    pub version: String,
    /// The cipher suite, such as `TLS_AES_256_GCM_SHA384`.
    pub cipher: String,
}

/// Prepared statements by their names in lower case.
pub(crate) type NamedStatements = FxHashMap<String, Arc<Source>>;

/// The snapshot that all parts of one statement read, such as the facets of a SELECT: the first
/// part takes it. The time limit applies to all parts together.
pub(crate) struct StatementSnapshot {
    reader: OnceLock<Reader>,
    /// Whether the first part has begun.
    has_begun: bool,
    /// When the statement began.
    since: Instant,
}

impl StatementSnapshot {
    /// Begins a statement. Its first read takes the snapshot.
    pub(crate) fn new() -> Self {
        Self { reader: OnceLock::new(), has_begun: false, since: Instant::now() }
    }
}

/// Ends a statement that was killed or that exceeds its time limit.
struct KillOrTimeout {
    interrupted: Arc<AtomicBool>,
    /// `None` if the clock cannot represent it.
    deadline: Option<Instant>,
}

impl Interrupt for KillOrTimeout {
    fn ending(&self) -> Option<Ending> {
        let is_late = || self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        self.interrupted.ending().or_else(|| is_late().then_some(Ending::TimedOut))
    }
}

/// The columns of views, as far as the running statement has determined them.
#[derive(Default)]
pub(crate) struct DescribedViews {
    /// The columns of each view, or the error in its definition.
    pub columns: FxHashMap<TableName, Result<Vec<Column>>>,
    /// Whether they are being determined. Guards against recursion.
    pub is_busy: bool,
}

/// The state of one client's session.
pub(crate) struct SessionState {
    /// What all sessions share.
    pub shared: Arc<InstanceState>,
    /// The connection's number.
    pub id: u64,
    /// The authenticated user and their rights.
    pub identity: Identity,
    /// The current database.
    pub database: Option<String>,
    /// System variables with this session's values.
    pub variables: Variables,
    /// User variables (`@x`), by names in lower case. Shared with the functions of a running
    /// statement.
    pub user_variables: UserVariables,
    /// The warnings of the last statement. Shared with the functions of a running statement.
    pub warnings: Warnings,
    /// Whether warnings of expressions end the running statement: in a statement that writes in
    /// strict mode without IGNORE.
    pub refuses_warnings: bool,
    /// The value of LAST_INSERT_ID().
    pub last_insert_id: LastInsertId,
    /// The AUTO_INCREMENT value that the next statement makes first (`insert_id`).
    pub insert_id: Option<u64>,
    /// The row at fault, from 0 on, where rows that a program gave were refused for one of them that is known.
    pub failed_row: Option<usize>,
    /// The value of FOUND_ROWS().
    pub found_rows: u64,
    /// The value of ROW_COUNT(): rows changed by the last statement, -1 after a statement that
    /// returns rows.
    pub row_count: i64,
    /// The open transaction with its savepoints, and temporary tables.
    pub transaction: TransactionState,
    /// Set after COMMIT RELEASE or ROLLBACK RELEASE: the server closes the connection.
    pub is_released: bool,
    /// Whether the session has a connection that can be closed.
    pub may_be_released: bool,
    /// Whether LOCK TABLES is in effect.
    pub locks_tables: bool,
    /// Statements made by PREPARE.
    pub named_statements: NamedStatements,
    /// When the running statement began.
    pub clock: Clock,
    /// Set by KILL to end the running statement.
    pub interrupted: Arc<AtomicBool>,
    /// Changed system variables that the client has not been told yet.
    pub changes: Vec<(String, String)>,
    /// Whether affected rows count rows that match rather than rows that change
    /// (CLIENT_FOUND_ROWS).
    pub counts_found_rows: bool,
    /// Whether the client accepts several result sets of one statement.
    pub takes_many_results: bool,
    /// The snapshot shared by the parts of a running statement.
    pub moment: Option<StatementSnapshot>,
    /// How the connection is encrypted, if it is.
    pub encryption: Option<Encryption>,
    /// Whether the session began in Sphinx's dialect; `None` for the global default.
    pub first_dialect: Option<bool>,
    /// The last search, for SHOW META.
    pub meta: Option<Box<Meta>>,
    /// How many searches [`SessionState::meta`] has described.
    pub searches: u64,
    /// The columns of views that the running statement has determined.
    pub described_views: Mutex<DescribedViews>,
    /// The tables on other servers that the running statement has opened.
    pub agents: Mutex<Option<Arc<Agents>>>,
    /// The part of a table that another server opened over this connection.
    pub part: Option<Box<ServedPart>>,
    /// The session's named locks. They are released when this is dropped.
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
            insert_id: None,
            failed_row: None,
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
            first_dialect: None,
            meta: None,
            searches: 0,
            described_views: Mutex::default(),
            agents: Mutex::default(),
            part: None,
            locks,
        }
    }

    /// The snapshot that a statement reads: the transaction's, or else the newest. Call it once in
    /// a statement. Its searches end when the statement is killed or exceeds its time.
    pub(crate) fn reader(&self) -> Reader {
        let newest = || self.shared.database.reader();
        let reader = match (self.transaction.reader(), &self.moment) {
            (Some(reader), _) => reader,
            (None, Some(moment)) => moment.reader.get_or_init(newest).clone(),
            (None, None) => newest(),
        };
        self.limited(&reader, self.variables.max_execution_time_ms)
    }

    /// The same snapshot, whose searches end with KILL or after `limit_ms`; 0 means no limit.
    pub(crate) fn limited(&self, reader: &Reader, limit_ms: u64) -> Reader {
        reader.clone().with_interrupt(self.interrupt(limit_ms))
    }

    /// The interrupt of a statement's searches: KILL and the time limit.
    fn interrupt(&self, limit_ms: u64) -> Arc<dyn Interrupt> {
        if limit_ms == 0 {
            return Arc::<AtomicBool>::clone(&self.interrupted);
        }
        let deadline = Instant::now().checked_add(Duration::from_millis(limit_ms));
        Arc::new(KillOrTimeout { interrupted: Arc::clone(&self.interrupted), deadline })
    }

    /// The database of names that have none; 1046 if none is selected.
    pub(crate) fn current_database(&self) -> Result<&str> {
        let missing = || Error::new(ErrorCode::NoDatabase, messages::NO_DATABASE);
        self.database.as_deref().ok_or_else(missing)
    }

    /// The state that functions of a statement can read, copied now.
    pub(crate) fn context(&self) -> Context {
        Context::of(self)
    }

    /// 1317 if the statement was killed.
    pub(crate) fn check_interrupted(&self) -> Result<()> {
        match self.interrupted.load(Ordering::Relaxed) {
            true => Err(Error::interrupted()),
            false => Ok(()),
        }
    }

    /// How much of `limit_ms` is left to the next part of a statement; 3024 if nothing is. 0 means
    /// no limit.
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

    /// Waits for a resource that other sessions hold; 1317 if the statement is killed meanwhile.
    pub(crate) async fn wait_for<T>(&self, free: impl Future<Output = T>) -> Result<T> {
        let mut free = std::pin::pin!(free);
        loop {
            match tokio::time::timeout(INTERRUPT_STEP, free.as_mut()).await {
                Ok(held) => return Ok(held),
                Err(_) => self.check_interrupted()?,
            }
        }
    }

    /// An error if the statement was killed or its transaction exceeds the memory limit.
    pub(crate) fn check_progress(&self) -> Result<()> {
        self.check_interrupted()?;
        self.transaction.check_size(self.shared.settings.max_query_memory_bytes)
    }

    /// Adds a warning.
    pub(crate) fn warn(&self, code: ErrorCode, message: impl Into<String>) {
        self.warnings.push(Warning::new(WarningLevel::Warning, code, message));
    }

    /// Adds a note, unless `sql_notes` is off.
    pub(crate) fn note(&self, code: ErrorCode, message: impl Into<String>) {
        if !self.variables.sql_notes {
            return;
        }
        self.warnings.push(Warning::new(WarningLevel::Note, code, message));
    }

    /// Selects a database; 1044 if the user may read nothing in it, 1049 if it does not exist.
    pub(crate) fn use_database(&mut self, name: &str) -> Result<()> {
        check_seen(&self.shared, &self.identity, name)?;
        self.database = Some(name.to_owned());
        self.settle_database()
    }

    /// Sets `collation_database` and `character_set_database` to those of the current database.
    pub(crate) fn settle_database(&mut self) -> Result<()> {
        let collation = match &self.database {
            Some(name) => Value::Text(database_collation(&self.shared, name).name().into()),
            None => self.variables.get("collation_server")?,
        };
        self.variables.set("collation_database", &collation).map(|_| ())
    }

    /// The value of `@name`.
    pub(crate) fn user_variable(&self, name: &str) -> Value {
        self.user_variables.get(name)
    }

    /// How the session's `sql_mode` reads quotes.
    pub(crate) fn lex_mode(&self) -> LexMode {
        self.variables.lex_mode()
    }
}
