//! What functions ask of the session while a statement runs: carried to them by DataFusion's
//! options, a picture of the moment the statement began at, but for user variables and warnings,
//! which are the session's own.

use std::{
    any::Any,
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use datafusion::{
    common::{
        config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions},
        plan_err,
    },
    error::Result as PlanResult,
};
use jiff::{Timestamp, tz::TimeZone};
use parking_lot::Mutex;
use remora_engine::Value;
use rustc_hash::FxHashMap;

use super::{
    SessionState,
    variables::{Collation, SqlMode},
    warnings::{Level, Warning, Warnings},
};
use crate::{Code, instance::Shared};

/// The moment a statement began at: NOW() is the same in all of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    /// Microseconds since 1970 UTC.
    pub micros: i64,
}

/// `@x`: names in lower case. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct UserVariables {
    values: Arc<Mutex<FxHashMap<String, Value>>>,
}

/// What functions may ask.
#[derive(Clone)]
pub(crate) struct Context {
    /// What all sessions share.
    pub shared: Arc<Shared>,
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
    /// `max_allowed_packet`: longer texts become NULL with a warning.
    pub max_text_bytes: u64,
    /// LAST_INSERT_ID().
    pub last_insert_id: u64,
    /// FOUND_ROWS().
    pub found_rows: u64,
    /// ROW_COUNT().
    pub row_count: i64,
    /// User variables, of which assignments are seen at once.
    pub user_variables: UserVariables,
    /// Where to warn.
    pub warnings: Warnings,
    /// Set when the statement is to end.
    pub interrupted: Arc<AtomicBool>,
    /// Gone when the statement has ended.
    pub running: Weak<()>,
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
        let values = self.values.lock();
        values.get(&name.to_lowercase()).cloned().unwrap_or(Value::Null)
    }

    /// Sets `@name`.
    pub(crate) fn set(&self, name: &str, value: Value) {
        self.values.lock().insert(name.to_lowercase(), value);
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
            max_text_bytes: variables.max_allowed_packet,
            last_insert_id: session.last_insert_id,
            found_rows: session.found_rows,
            row_count: session.row_count,
            user_variables: session.user_variables.clone(),
            warnings: session.warnings.clone(),
            interrupted: Arc::clone(&session.interrupted),
            running: Arc::downgrade(&session.running),
        }
    }

    /// The context of the statement that a function runs in, if there is one.
    pub(crate) fn of_options(options: &ConfigOptions) -> Option<&Self> {
        options.extensions.get::<Self>()
    }

    /// Whether the statement was killed, or ended while a part of it went on.
    pub(crate) fn has_ended(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || self.running.strong_count() == 0
    }

    /// Adds a warning.
    pub(crate) fn warn(&self, code: Code, message: impl Into<String>) {
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
