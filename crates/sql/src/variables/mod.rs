//! System variables: their definitions, the values set, and typed fields for those that are read
//! often.

mod definitions;
mod set;
mod time_zone;

use std::sync::Arc;

use remora_engine::Value;
use remora_mysql::{BlockMode, Charset, Collation, ErrorCode, SqlMode};
use rustc_hash::FxHashMap;

pub(crate) use definitions::{
    DEFINITIONS, VariableDefinition, VariableKind, VariableScope, definition,
};
pub(crate) use time_zone::SessionTimeZone;

use crate::{Error, Result, ResultCharset};

/// The global values that were set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Globals {
    values: Arc<FxHashMap<&'static str, Value>>,
}

/// The variables of a session: all by name, frequently used ones also as typed fields.
#[derive(Clone, Debug)]
pub(crate) struct Variables {
    /// Whether each statement is its own transaction.
    pub autocommit: bool,
    /// `sql_mode`.
    pub sql_mode: SqlMode,
    /// `sql_dialect`: whether statements are in Sphinx's dialect where it differs from MySQL's.
    pub is_sphinx: bool,
    /// `time_zone`.
    pub time_zone: SessionTimeZone,
    /// `collation_connection`: the collation of literals.
    pub collation_connection: Collation,
    /// The character set of statements.
    pub character_set_client: Charset,
    /// The character set of results; `None` if texts are sent without conversion.
    pub character_set_results: Option<ResultCharset>,
    /// The most rows of a SELECT.
    pub sql_select_limit: u64,
    /// The time limit of a SELECT in milliseconds; 0 means none.
    pub max_execution_time_ms: u64,
    /// The most bytes of a GROUP_CONCAT.
    pub group_concat_max_len: u64,
    /// The digits that a division adds to the scale.
    pub div_precision_increment: u8,
    /// The default mode of WEEK().
    pub default_week_format: u8,
    /// The mode of AES_ENCRYPT and AES_DECRYPT.
    pub block_mode: BlockMode,
    /// The most iterations of a recursive common table expression.
    pub cte_max_recursion_depth: u64,
    /// The most bytes of a packet, and of a text that a function returns.
    pub max_allowed_packet: u64,
    /// Whether notes are stored with the warnings.
    pub sql_notes: bool,
    /// Whether new transactions are READ ONLY.
    pub transaction_read_only: bool,
    /// The GTID set that reads wait for.
    pub wait_for_position: Option<Arc<str>>,
    /// The longest wait, in milliseconds.
    pub wait_for_position_ms: u64,
    /// The value to which TIMESTAMP = n fixes NOW(), in microseconds.
    pub timestamp_micros: Option<i64>,
    globals: Globals,
    session: FxHashMap<&'static str, Value>,
}

impl Globals {
    /// The global value.
    pub(crate) fn get(&self, definition: &VariableDefinition) -> Value {
        self.values.get(definition.name).cloned().unwrap_or_else(|| definition.default_value())
    }

    /// Sets the global value.
    pub(crate) fn set(&mut self, name: &'static str, value: Value) {
        Arc::make_mut(&mut self.values).insert(name, value);
    }
}

impl Variables {
    /// The variables of a new session.
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
            // Its value was checked when it became global.
            let _ = variables.apply(name, value);
        }
        variables
    }

    /// The value of a variable, as SELECT @@name returns it; 1193 if there is none.
    pub(crate) fn get(&self, name: &str) -> Result<Value> {
        let definition = definition(name).ok_or_else(|| unknown(name))?;
        Ok(self.value_of(definition))
    }

    /// The session's value of a variable.
    pub(crate) fn value_of(&self, definition: &VariableDefinition) -> Value {
        match definition.scope {
            VariableScope::Global => self.globals.get(definition),
            _ => match self.session.get(definition.name) {
                Some(value) => value.clone(),
                None => self.globals.get(definition),
            },
        }
    }

    /// Adopts new global values, so that this session sees them from now on.
    pub(crate) fn see_globals(&mut self, globals: &Globals) {
        // Variables that this session has not set keep the value from its start.
        let scoped = |name: &&&'static str| {
            definition(name).is_some_and(|definition| definition.scope == VariableScope::Both)
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

/// 1193: there is no such variable.
pub(crate) fn unknown(name: &str) -> Error {
    Error::new(ErrorCode::UnknownVariable, format!("Unknown system variable '{name}'"))
}
