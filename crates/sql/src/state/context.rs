//! The session state that functions can read while a statement runs: a copy made when the statement
//! begins, carried in DataFusion's options. User variables and warnings are shared with the
//! session.

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
    execution::SessionState as PlanState,
};
use jiff::{Timestamp, tz::TimeZone};
use parking_lot::Mutex;
use remora_engine::{Ending, Interrupt, Value};
use remora_mysql::{BlockMode, Collation, ErrorCode, SqlMode};
use rustc_hash::FxHashMap;

use super::{LastInsertId, RandomGenerators, SessionState, Warning, WarningLevel, Warnings};
use crate::{
    Error, Result,
    agents::Agents,
    shared::{InstanceState, SessionLocks},
};

/// When a statement began: NOW() gives the same moment throughout.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    /// Microseconds since 1970 UTC.
    pub micros: i64,
}

/// The most bytes of the names and values of a session's user variables.
const MAX_VARIABLE_BYTES: usize = 256 << 20;
/// The overhead of a variable besides its name and text, in bytes.
const VARIABLE_BYTES: usize = 128;

/// User variables (`@x`), by names in lower case. Clones share them.
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

/// While this is held, functions called in this thread use its context.
pub(crate) struct ContextGuard {
    before: Option<Arc<Context>>,
}

impl ContextGuard {
    /// Makes `context` the one that functions of this thread use.
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        Self { before: CALLER.replace(Some(Arc::clone(context))) }
    }
}

impl Drop for ContextGuard {
    fn drop(&mut self) {
        CALLER.set(self.before.take());
    }
}

/// Ends a statement that was killed or whose client is gone.
struct KillOrDisconnect {
    interrupted: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
}

impl Interrupt for KillOrDisconnect {
    fn ending(&self) -> Option<Ending> {
        self.interrupted.ending().or_else(|| self.ended.ending())
    }
}

/// What a statement's functions may read of its session.
#[derive(Clone)]
pub(crate) struct Context {
    /// What all sessions share.
    pub shared: Arc<InstanceState>,
    /// The connection's number.
    pub connection_id: u64,
    /// `user@host` as USER() gives it.
    pub user: String,
    /// The current database.
    pub database: Option<String>,
    /// When the statement began.
    pub clock: Clock,
    /// The session's time zone.
    pub time_zone: TimeZone,
    /// `sql_mode`.
    pub sql_mode: SqlMode,
    /// `collation_connection`: the collation of literals.
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
    /// User variables. Assignments are visible at once.
    pub user_variables: UserVariables,
    /// The parts that the statement opened on other servers, while it runs.
    pub agents: Weak<Agents>,
    /// Where warnings go.
    pub warnings: Warnings,
    /// Set by KILL: the statement must end.
    pub interrupted: Arc<AtomicBool>,
    /// Set when the client no longer waits for the statement.
    pub ended: Arc<AtomicBool>,
    /// The session's access to named locks (GET_LOCK).
    pub locks: Arc<SessionLocks>,
    /// The generators of RAND(seed).
    pub chances: RandomGenerators,
    /// `cte_max_recursion_depth`.
    pub most_recursion_rounds: u64,
    /// The most bytes of text that one call may produce for a batch of rows.
    pub max_batch_bytes: u64,
    /// Whether the statement is being planned. Values computed then become part of the plan.
    pub planning: Planning,
    /// The planner's state for plans that are made while the statement runs. Its planner sets it.
    pub nested_planning: Option<&'static PlanState>,
    /// Whether the plan will be kept for further runs.
    pub is_kept: bool,
    /// Whether tables are joined in the order in which the statement names them.
    pub keeps_join_order: bool,
    /// What plans of the statement estimate of tables and conditions, by hashes: each is counted once.
    pub estimates: Arc<Mutex<FxHashMap<u64, f64>>>,
    /// The values of a kept plan's constants in this run, by their numbers.
    pub settled: Arc<[ScalarValue]>,
    /// For the correlated subqueries of a kept plan, the values they read of the outer row.
    pub outer_row: Vec<ScalarValue>,
}

/// Whether a statement is being planned. Clones share this.
#[derive(Clone, Debug, Default)]
pub(crate) struct Planning(Arc<PlanningFlags>);

#[derive(Debug, Default)]
struct PlanningFlags {
    is_on: AtomicBool,
    has_read_session: AtomicBool,
}

impl Planning {
    /// Sets the flag until the returned guard is dropped.
    pub(crate) fn begin(&self) -> BeingPlanned {
        self.0.is_on.store(true, Ordering::Relaxed);
        BeingPlanned(self.clone())
    }

    /// Whether the statement is being planned.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_on.load(Ordering::Relaxed)
    }

    /// Notes that a function reads what differs from statement to statement. While the statement is planned, its value
    /// becomes part of the plan.
    pub(crate) fn note_session_read(&self) {
        if self.is_on() {
            self.0.has_read_session.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the plan holds values that another statement would not get.
    pub(crate) fn has_read_session(&self) -> bool {
        self.0.has_read_session.load(Ordering::Relaxed)
    }
}

/// Keeps [`Planning`] set until it is dropped.
pub(crate) struct BeingPlanned(Planning);

impl Drop for BeingPlanned {
    fn drop(&mut self) {
        self.0.0.is_on.store(false, Ordering::Relaxed);
    }
}

impl Clock {
    /// The current moment.
    pub(crate) fn now() -> Self {
        Self { micros: Timestamp::now().as_microsecond() }
    }
}

impl UserVariables {
    /// The value of `@name`, or NULL if it was never set. Names are case-insensitive.
    pub(crate) fn get(&self, name: &str) -> Value {
        let kept = self.kept.lock();
        kept.values.get(&name.to_lowercase()).cloned().unwrap_or(Value::Null)
    }

    /// The value of `@name`, or `None` if it was never set.
    pub(crate) fn find(&self, name: &str) -> Option<Value> {
        self.kept.lock().values.get(&name.to_lowercase()).cloned()
    }

    /// Sets `@name`; 1038 if the session's variables would exceed [`MAX_VARIABLE_BYTES`].
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
            nested_planning: None,
            keeps_join_order: false,
            estimates: Arc::default(),
            is_kept: false,
            settled: Arc::default(),
            outer_row: Vec::new(),
        }
    }

    /// The context of the statement whose options a function received, if there is one.
    pub(crate) fn of_options(options: &ConfigOptions) -> Option<&Self> {
        options.extensions.get::<Self>()
    }

    /// The context of the kept plan that this thread runs, if it runs one. Functions of such a plan
    /// hold the options of the statement that it was planned for, which are out of date.
    pub(crate) fn of_caller() -> Option<Arc<Self>> {
        CALLER.with_borrow(Clone::clone)
    }

    /// Whether a function that waits must give up.
    pub(crate) fn is_over(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || self.ended.load(Ordering::Relaxed)
    }

    /// The interrupt that ends the statement's searches.
    pub(crate) fn interrupt(&self) -> Arc<dyn Interrupt> {
        let (interrupted, ended) = (Arc::clone(&self.interrupted), Arc::clone(&self.ended));
        Arc::new(KillOrDisconnect { interrupted, ended })
    }

    /// Adds a warning, unless it is there already.
    pub(crate) fn warn_once(&self, code: ErrorCode, message: impl Into<String>) {
        self.warnings.push_once(Warning::new(WarningLevel::Warning, code, message));
    }

    /// Adds a warning.
    pub(crate) fn warn(&self, code: ErrorCode, message: impl Into<String>) {
        self.warnings.push(Warning::new(WarningLevel::Warning, code, message));
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
