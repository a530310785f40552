//! What functions may ask of the session while a statement runs. DataFusion's options carry it to them: a copy of the
//! session's state at the begin of the statement. User variables and warnings are the session's own.

use std::{
    any::Any,
    cell::RefCell,
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use datafusion::{
    common::{
        ScalarValue,
        config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions},
        plan_err,
    },
    error::Result as PlanResult,
};
use jiff::{Timestamp, tz::TimeZone};
use parking_lot::Mutex;
use remora_engine::{Ending, Interrupt, Value};
use remora_mysql::{BlockMode, Collation, ErrorCode, SqlMode};
use rustc_hash::FxHashMap;

use super::{LastInsertId, Level, RandomGenerators, SessionState, Warning, Warnings};
use crate::{
    Error, Result,
    agents::Agents,
    shared::{InstanceState, SessionLocks},
};

/// The moment a statement began at: NOW() is the same in all of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    /// Microseconds since 1970 UTC.
    pub micros: i64,
}

/// Most bytes of the names and values of a session's variables.
const MAX_VARIABLE_BYTES: usize = 256 << 20;
/// What a variable takes besides its name and its text.
const VARIABLE_BYTES: usize = 128;

/// `@x`: names in lower case. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct UserVariables {
    kept: Arc<Mutex<KeptVariables>>,
}

#[derive(Debug, Default)]
struct KeptVariables {
    values: FxHashMap<String, Value>,
    bytes: usize,
}

thread_local! {
    static CALLER: RefCell<Option<Arc<Context>>> = const { RefCell::new(None) };
}

/// As long as it is held, functions that are called in this thread ask a context.
pub(crate) struct ContextGuard {
    before: Option<Arc<Context>>,
}

impl ContextGuard {
    /// Has them ask this one.
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        Self { before: CALLER.replace(Some(Arc::clone(context))) }
    }
}

impl Drop for ContextGuard {
    fn drop(&mut self) {
        CALLER.set(self.before.take());
    }
}

/// Ends a statement that was killed, or that nobody waits for any more.
struct KillOrDisconnect {
    interrupted: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
}

impl Interrupt for KillOrDisconnect {
    fn ending(&self) -> Option<Ending> {
        self.interrupted.ending().or_else(|| self.ended.ending())
    }
}

/// What functions may ask.
#[derive(Clone)]
pub(crate) struct Context {
    /// What all sessions share.
    pub shared: Arc<InstanceState>,
    /// The connection's number.
    pub connection_id: u64,
    /// `user@host` as USER() gives it.
    pub user: String,
    /// The chosen database.
    pub database: Option<String>,
    /// When the statement began.
    pub clock: Clock,
    /// The session's time zone.
    pub time_zone: TimeZone,
    /// `sql_mode`.
    pub sql_mode: SqlMode,
    /// `collation_connection`: what literals compare by.
    pub collation: Collation,
    /// `group_concat_max_len`, in bytes.
    pub group_concat_max_bytes: u64,
    /// `div_precision_increment`.
    pub division_digits: u8,
    /// `default_week_format`.
    pub week_format: u8,
    /// `block_encryption_mode`.
    pub block_mode: BlockMode,
    /// `max_allowed_packet`: longer texts become NULL with a warning.
    pub max_text_bytes: u64,
    /// LAST_INSERT_ID().
    pub last_insert_id: LastInsertId,
    /// FOUND_ROWS().
    pub found_rows: u64,
    /// ROW_COUNT().
    pub row_count: i64,
    /// User variables, of which assignments are seen at once.
    pub user_variables: UserVariables,
    /// What the statement opened in other servers, as long as it runs.
    pub agents: Weak<Agents>,
    /// Where to warn.
    pub warnings: Warnings,
    /// Set when the statement is to end.
    pub interrupted: Arc<AtomicBool>,
    /// Set when nobody waits for the statement any more.
    pub ended: Arc<AtomicBool>,
    /// The session's side of the locks by name.
    pub locks: Arc<SessionLocks>,
    /// Where the sequences of RAND(seed) are.
    pub chances: RandomGenerators,
    /// `cte_max_recursion_depth`.
    pub most_recursion_rounds: u64,
    /// Most bytes of the texts that one call makes of a batch of rows.
    pub max_batch_bytes: u64,
    /// Whether the statement is being planned: what is calculated then becomes a part of the plan.
    pub planning: Planning,
    /// Whether the statement is planned for many runs.
    pub is_kept: bool,
    /// What a kept plan's constants are in this run, by their numbers.
    pub settled: Arc<[ScalarValue]>,
    /// What the queries of a kept plan that run for each row read of that row.
    pub outer_row: Vec<ScalarValue>,
}

/// Whether a statement is being planned. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Planning(Arc<AtomicBool>);

impl Planning {
    /// Says so for as long as the answer is held.
    pub(crate) fn begin(&self) -> BeingPlanned {
        self.0.store(true, Ordering::Relaxed);
        BeingPlanned(self.clone())
    }

    /// Whether it is.
    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A statement that is being planned.
pub(crate) struct BeingPlanned(Planning);

impl Drop for BeingPlanned {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Relaxed);
    }
}

impl Clock {
    /// This moment.
    pub(crate) fn now() -> Self {
        Self { micros: Timestamp::now().as_microsecond() }
    }
}

impl UserVariables {
    /// The value of `@name`, NULL if it was never set. The name in any case.
    pub(crate) fn get(&self, name: &str) -> Value {
        let kept = self.kept.lock();
        kept.values.get(&name.to_lowercase()).cloned().unwrap_or(Value::Null)
    }

    /// The value of `@name` if it was ever set.
    pub(crate) fn find(&self, name: &str) -> Option<Value> {
        self.kept.lock().values.get(&name.to_lowercase()).cloned()
    }

    /// Sets `@name`; 1038 where the session's variables would take too much memory.
    pub(crate) fn set(&self, name: &str, value: Value) -> Result<()> {
        let name = name.to_lowercase();
        let taken = |value: &Value| VARIABLE_BYTES + name.len() + text_bytes(value);
        let mut kept = self.kept.lock();
        let before = kept.values.get(&name).map_or(0, taken);
        let bytes = kept.bytes - before + taken(&value);
        if bytes > MAX_VARIABLE_BYTES {
            let message =
                format!("the variables of a session take more than {MAX_VARIABLE_BYTES} bytes");
            return Err(Error::new(ErrorCode::OutOfMemory, message));
        }
        kept.bytes = bytes;
        kept.values.insert(name, value);
        Ok(())
    }
}

fn text_bytes(value: &Value) -> usize {
    match value {
        Value::Text(text) | Value::Json(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}

impl Context {
    pub(super) fn of(session: &SessionState) -> Self {
        let variables = &session.variables;
        Self {
            shared: Arc::clone(&session.shared),
            connection_id: session.id,
            user: format!("{}@{}", session.identity.user, session.identity.host),
            database: session.database.clone(),
            clock: session.clock,
            time_zone: variables.time_zone.zone.clone(),
            sql_mode: variables.sql_mode,
            collation: variables.collation_connection,
            group_concat_max_bytes: variables.group_concat_max_len,
            division_digits: variables.div_precision_increment,
            week_format: variables.default_week_format,
            block_mode: variables.block_mode,
            max_text_bytes: variables.max_allowed_packet,
            last_insert_id: session.last_insert_id.clone(),
            found_rows: session.found_rows,
            row_count: session.row_count,
            user_variables: session.user_variables.clone(),
            agents: session.agents.lock().as_ref().map(Arc::downgrade).unwrap_or_default(),
            warnings: session.warnings.clone(),
            interrupted: Arc::clone(&session.interrupted),
            ended: Arc::default(),
            locks: session.locks.side(),
            chances: RandomGenerators::default(),
            most_recursion_rounds: variables.cte_max_recursion_depth,
            max_batch_bytes: session.shared.settings.max_query_memory_bytes,
            planning: Planning::default(),
            is_kept: false,
            settled: Arc::default(),
            outer_row: Vec::new(),
        }
    }

    /// The context of the statement that a function runs in, if there is one.
    pub(crate) fn of_options(options: &ConfigOptions) -> Option<&Self> {
        options.extensions.get::<Self>()
    }

    /// The context of the kept plan that runs in this thread, if one does: its functions were made with the options of
    /// the statement that it was planned for.
    pub(crate) fn of_caller() -> Option<Arc<Self>> {
        CALLER.with_borrow(Clone::clone)
    }

    /// Whether a function that waits is to give up.
    pub(crate) fn is_over(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || self.ended.load(Ordering::Relaxed)
    }

    /// What ends the searches of the statement.
    pub(crate) fn interrupt(&self) -> Arc<dyn Interrupt> {
        let (interrupted, ended) = (Arc::clone(&self.interrupted), Arc::clone(&self.ended));
        Arc::new(KillOrDisconnect { interrupted, ended })
    }

    /// Adds a warning, unless it is there already.
    pub(crate) fn warn_once(&self, code: ErrorCode, message: impl Into<String>) {
        self.warnings.push_once(Warning::new(Level::Warning, code, message));
    }

    /// Adds a warning.
    pub(crate) fn warn(&self, code: ErrorCode, message: impl Into<String>) {
        self.warnings.push(Warning::new(Level::Warning, code, message));
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Context").field("connection", &self.connection_id).finish()
    }
}

impl ConfigExtension for Context {
    const PREFIX: &'static str = "remora";
}

impl ExtensionOptions for Context {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _value: &str) -> PlanResult<()> {
        plan_err!("{key} is not set this way")
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_take_so_much_and_no_more() {
        let variables = UserVariables::default();
        let long = Value::Text("x".repeat(MAX_VARIABLE_BYTES / 4).into());
        for name in ["a", "b", "A", "c"] {
            variables.set(name, long.clone()).unwrap();
        }
        assert_eq!(variables.set("d", long.clone()).unwrap_err().code, ErrorCode::OutOfMemory);
        variables.set("A", Value::Int(1)).unwrap();
        variables.set("d", long).unwrap();
        assert_eq!((variables.get("a"), variables.get("x")), (Value::Int(1), Value::Null));
    }
}
