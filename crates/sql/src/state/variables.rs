//! System variables as a session sets and reads them.

use remora_engine::Value;
use remora_mysql::{ErrorCode, messages};

use super::SessionState;
use crate::{
    Error, Result,
    variables::{VariableDefinition, VariableScope, definition, unknown},
};

/// Which value of a variable is set or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VariableTarget {
    /// The value of this session.
    Session,
    /// The value that new sessions start with.
    Global,
}

impl VariableTarget {
    /// The target that a keyword names, or `None` if it is not one.
    pub(crate) fn named(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "global" | "persist" | "persist_only" => Some(Self::Global),
            "session" | "local" => Some(Self::Session),
            _ => None,
        }
    }
}

impl SessionState {
    /// Sets a system variable of this session. The client is told of the change.
    pub(crate) fn set_variable(&mut self, name: &str, value: &Value) -> Result<()> {
        let definition = definition(name).ok_or_else(|| unknown(name))?;
        self.may_set_variable(definition, value)?;
        match (definition.name, value) {
            ("last_insert_id" | "identity", Value::Int(id)) => {
                self.last_insert_id.set(u64::try_from(*id).unwrap_or(0));
            }
            ("insert_id", Value::Int(id)) => {
                self.insert_id = u64::try_from(*id).ok().filter(|id| *id > 0);
            }
            ("insert_id", Value::Uint(id)) => self.insert_id = Some(*id),
            ("tx_isolation", value) => return self.set_variable("transaction_isolation", value),
            ("tx_read_only", value) => return self.set_variable("transaction_read_only", value),
            _ => {}
        }
        let before = self.variables.value_of(definition);
        let value = self.variables.set(definition.name, value)?;
        self.warn_of_no_effect(definition, &before, &value, false);
        self.changes.push((definition.name.to_owned(), definition.shown(&value)));
        Ok(())
    }

    /// Checks that a session may set this variable to this value, without setting it. Returns 1238
    /// or 1621 for read-only variables, and an error for a position that can never be reached.
    pub(crate) fn may_set_variable(
        &self,
        definition: &VariableDefinition,
        value: &Value,
    ) -> Result<()> {
        if definition.fixed {
            return Err(read_only(definition.name));
        }
        match (definition.name, value) {
            (name @ ("max_allowed_packet" | "net_buffer_length"), _) => {
                let message = format!(
                    "SESSION variable '{name}' is read-only. Use SET GLOBAL to assign the value"
                );
                Err(Error::new(ErrorCode::SessionVariable, message))
            }
            ("sql_wait_for_position", Value::Text(gtids)) => self.check_position(gtids),
            _ => Ok(()),
        }
    }

    /// Warns if a variable was changed that is stored but has no effect here.
    fn warn_of_no_effect(
        &self,
        definition: &VariableDefinition,
        before: &Value,
        value: &Value,
        is_global: bool,
    ) {
        // The session's `wait_timeout` works; the global one is a setting.
        let decided = is_global && definition.name == "wait_timeout";
        if before == value || definition.has_effect() && !decided {
            return;
        }
        let mend = match definition.setting() {
            Some(setting) => format!("; the server's settings file decides it: {setting}"),
            None if decided => "; the server's settings file decides it: sql.wait_timeout_s".into(),
            None => String::new(),
        };
        let name = definition.name;
        self.warn(
            ErrorCode::NotSupported,
            format!("Setting variable '{name}' has no effect{mend}"),
        );
    }

    /// The value of a variable that is computed instead of stored.
    pub(crate) fn live_variable(&self, name: &str) -> Option<Value> {
        let text = |text: &str| Some(Value::Text(text.into()));
        match name {
            "version" => text(&self.shared.settings.version),
            "warning_count" => Some(Value::Uint(u64::from(self.warnings.count()))),
            "error_count" => Some(Value::Uint(self.warnings.errors())),
            "last_insert_id" | "identity" => Some(Value::Uint(self.last_insert_id.get())),
            "insert_id" => Some(Value::Uint(self.insert_id.unwrap_or(0))),
            "pseudo_thread_id" => Some(Value::Uint(self.id)),
            "timestamp" => {
                let micros = self.clock.micros;
                Some(Value::Float(micros as f64 / 1e6))
            }
            "gtid_executed" => text(&self.applied_gtids()),
            "system_time_zone" => {
                let zone = jiff::tz::TimeZone::system();
                let shown = jiff::Timestamp::now().to_zoned(zone);
                text(&shown.strftime("%Z").to_string())
            }
            "tx_isolation" => self.variables.get("transaction_isolation").ok(),
            "tx_read_only" => self.variables.get("transaction_read_only").ok(),
            _ => None,
        }
    }

    /// Sets the value that new sessions start with.
    pub(crate) fn set_global(&mut self, name: &str, value: &Value) -> Result<()> {
        let definition = definition(name).ok_or_else(|| unknown(name))?;
        self.may_set_global(definition)?;
        // Validates the value against a copy of this session's variables.
        let mut checked = self.variables.clone();
        let value = checked.set(definition.name, value)?;
        let before = self.shared.globals.read().get(definition);
        self.warn_of_no_effect(definition, &before, &value, true);
        let mut globals = self.shared.globals.write();
        globals.set(definition.name, value);
        self.variables.see_globals(&globals);
        Ok(())
    }

    /// Checks that this client may set the global value, without setting it; 1238, 1228 or 1227 if
    /// not.
    pub(crate) fn may_set_global(&self, definition: &VariableDefinition) -> Result<()> {
        let name = definition.name;
        if definition.fixed {
            return Err(read_only(name));
        }
        if definition.scope == VariableScope::Session {
            let message = format!(
                "Variable '{name}' is a SESSION variable and can't be used with SET GLOBAL"
            );
            return Err(Error::new(ErrorCode::LocalVariable, message));
        }
        if self.identity.rights.is_some() {
            let message = messages::privileges_required("SUPER or SYSTEM_VARIABLES_ADMIN");
            return Err(Error::new(ErrorCode::SpecificAccessDenied, message));
        }
        Ok(())
    }

    /// The value of `@@name`, with an optional scope before the name. Returns 1193 if it is
    /// unknown, 1238 if the scope is wrong.
    pub(crate) fn system_variable(&self, name: &str) -> Result<Value> {
        let (scope, name) = match name.split_once('.') {
            Some((scope, name)) => {
                (Some(VariableTarget::named(scope).ok_or_else(|| unknown(name))?), name)
            }
            None => (None, name),
        };
        let definition = definition(name).ok_or_else(|| unknown(name))?;
        match (scope, definition.scope) {
            (Some(VariableTarget::Session), VariableScope::Global) => {
                return Err(wrong_scope(definition.name, "GLOBAL"));
            }
            (Some(VariableTarget::Global), VariableScope::Session) => {
                return Err(wrong_scope(definition.name, "SESSION"));
            }
            _ => {}
        }
        if let Some(value) = self.live_variable(definition.name) {
            return Ok(value);
        }
        Ok(match scope {
            Some(VariableTarget::Global) => self.shared.globals.read().get(definition),
            _ => self.variables.value_of(definition),
        })
    }
}

/// 1238: the variable cannot be set.
fn read_only(name: &str) -> Error {
    let message = format!("Variable '{name}' is a read only variable");
    Error::new(ErrorCode::ReadOnlyVariable, message)
}

/// 1238: the variable cannot be read with this scope.
fn wrong_scope(name: &str, scope: &str) -> Error {
    let message = format!("Variable '{name}' is a {scope} variable");
    Error::new(ErrorCode::ReadOnlyVariable, message)
}
