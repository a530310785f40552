//! System variables: a table of definitions, what was set over their defaults, and the hot ones
//! typed.

mod definitions;
mod set;
mod time_zone;

use std::sync::Arc;

use remora_engine::Value;
use remora_mysql::{BlockMode, Charset, Collation, ErrorCode, SqlMode};
use rustc_hash::FxHashMap;

pub(crate) use definitions::{DEFINITIONS, Definition, Kind, Scope, definition};
pub(crate) use time_zone::SessionTimeZone;

use crate::{Error, Result, ResultCharset};

/// What was set for new sessions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Globals {
    values: Arc<FxHashMap<&'static str, Value>>,
}

/// The variables of a session: the hot ones typed, all by name.
#[derive(Clone, Debug)]
pub(crate) struct Variables {
    /// Each statement is a transaction of its own.
    pub autocommit: bool,
    /// `sql_mode`.
    pub sql_mode: SqlMode,
    /// Whether statements are Sphinx's where MySQL means something else by the same words: `sql_dialect`.
    pub is_sphinx: bool,
    /// `time_zone`.
    pub time_zone: SessionTimeZone,
    /// The collation literals have.
    pub collation_connection: Collation,
    /// The character set statements come in.
    pub character_set_client: Charset,
    /// The character set replies are to be in; `None` sends columns as they are.
    pub character_set_results: Option<ResultCharset>,
    /// Most rows of a SELECT.
    pub sql_select_limit: u64,
    /// Longest time of a SELECT in milliseconds; 0 is any.
    pub max_execution_time_ms: u64,
    /// Bytes of a GROUP_CONCAT.
    pub group_concat_max_len: u64,
    /// Digits that a division adds.
    pub div_precision_increment: u8,
    /// The mode of WEEK().
    pub default_week_format: u8,
    /// The mode of AES_ENCRYPT.
    pub block_mode: BlockMode,
    /// Most rounds of a recursive common table expression.
    pub cte_max_recursion_depth: u64,
    /// Bytes of a packet, and of a text that a function makes.
    pub max_allowed_packet: u64,
    /// Whether notes are kept with the warnings.
    pub sql_notes: bool,
    /// Whether a new transaction may only read.
    pub transaction_read_only: bool,
    /// The GTID set that reads wait for.
    pub wait_for_position: Option<Arc<str>>,
    /// How long they wait, in milliseconds.
    pub wait_for_position_ms: u64,
    /// What TIMESTAMP = n fixes NOW() to, in microseconds.
    pub timestamp_micros: Option<i64>,
    globals: Globals,
    session: FxHashMap<&'static str, Value>,
}

impl Globals {
    /// The value for new sessions.
    pub(crate) fn get(&self, definition: &Definition) -> Value {
        self.values.get(definition.name).cloned().unwrap_or_else(|| definition.default_value())
    }

    /// Sets it.
    pub(crate) fn set(&mut self, name: &'static str, value: Value) {
        Arc::make_mut(&mut self.values).insert(name, value);
    }
}

impl Variables {
    /// A new session's.
    pub(crate) fn new(globals: &Globals) -> Self {
        let mut variables = Self {
            autocommit: true,
            sql_mode: SqlMode::DEFAULT,
            is_sphinx: false,
            time_zone: SessionTimeZone::default(),
            collation_connection: Collation::UTF8MB4_0900_AI_CI,
            character_set_client: Charset::UTF8MB4,
            character_set_results: ResultCharset::of(Collation::UTF8MB4_0900_AI_CI),
            sql_select_limit: u64::MAX,
            max_execution_time_ms: 0,
            group_concat_max_len: 1_024,
            div_precision_increment: 4,
            default_week_format: 0,
            block_mode: BlockMode::DEFAULT,
            cte_max_recursion_depth: 1_000,
            max_allowed_packet: 67_108_864,
            sql_notes: true,
            transaction_read_only: false,
            wait_for_position: None,
            wait_for_position_ms: 10_000,
            timestamp_micros: None,
            globals: globals.clone(),
            session: FxHashMap::default(),
        };
        for (name, value) in globals.values.iter() {
            // It was checked when it became the global value.
            let _ = variables.apply(name, value);
        }
        variables
    }

    /// The value of a variable as SELECT @@name gives it; 1193 if there is none of that name.
    pub(crate) fn get(&self, name: &str) -> Result<Value> {
        let definition = definition(name).ok_or_else(|| unknown(name))?;
        Ok(self.value_of(definition))
    }

    /// The value of a variable in this session.
    pub(crate) fn value_of(&self, definition: &Definition) -> Value {
        match definition.scope {
            Scope::Global => self.globals.get(definition),
            _ => match self.session.get(definition.name) {
                Some(value) => value.clone(),
                None => self.globals.get(definition),
            },
        }
    }

    /// Keeps the value that new sessions have, as this session sees it from now on.
    pub(crate) fn see_globals(&mut self, globals: &Globals) {
        // What is not set here stays as it was when the session began.
        let scoped = |name: &&&'static str| {
            definition(name).is_some_and(|definition| definition.scope == Scope::Both)
        };
        let names: Vec<&'static str> = globals.values.keys().filter(scoped).copied().collect();
        for name in names {
            if let Some(definition) = definition(name) {
                let value = self.value_of(definition);
                self.session.entry(name).or_insert(value);
            }
        }
        self.globals = globals.clone();
    }
}

/// 1193.
pub(crate) fn unknown(name: &str) -> Error {
    Error::new(ErrorCode::UnknownVariable, format!("Unknown system variable '{name}'"))
}
