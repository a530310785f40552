//! Sets variables: validates values and updates the typed fields.

use remora_engine::Value;
use remora_mysql::{
    BlockMode, Charset, Collation, Comments, ErrorCode, LexMode, SqlMode, charset_default, messages,
};

use super::{SessionTimeZone, VariableKind, Variables, definition, unknown};
use crate::{Error, Result, ResultCharset};

/// The largest `max_allowed_packet`, as in MySQL.
const MAX_PACKET_BYTES: u64 = 1 << 30;

impl Variables {
    /// Sets a variable of this session and returns its new value; 1193, 1231 or 1232 as in MySQL.
    pub(crate) fn set(&mut self, name: &str, value: &Value) -> Result<Value> {
        let definition = definition(name).ok_or_else(|| unknown(name))?;
        let value = checked(definition.name, definition.kind, value)?;
        let value = self.apply(definition.name, &value)?.unwrap_or(value);
        self.session.insert(definition.name, value.clone());
        Ok(value)
    }

    /// How quotes are read by the lexer.
    pub(crate) fn lex_mode(&self) -> LexMode {
        LexMode::of_sql_mode(self.sql_mode, self.character_set_client, Comments::default())
    }

    /// Updates the typed fields. Returns the value in MySQL's own spelling if that differs.
    pub(super) fn apply(&mut self, name: &'static str, value: &Value) -> Result<Option<Value>> {
        let text = || value.to_string();
        let number = || match value {
            Value::Uint(number) => *number,
            Value::Int(number) => u64::try_from(*number).unwrap_or(0),
            _ => 0,
        };
        let small = || u8::try_from(number()).unwrap_or(u8::MAX);
        match name {
            "autocommit" => self.autocommit = number() != 0,
            "sql_notes" => self.sql_notes = number() != 0,
            "transaction_read_only" | "tx_read_only" => self.transaction_read_only = number() != 0,
            "sql_select_limit" => self.sql_select_limit = number(),
            "max_execution_time" => self.max_execution_time_ms = number(),
            "group_concat_max_len" => self.group_concat_max_len = number().max(4),
            "div_precision_increment" => self.div_precision_increment = small().min(30),
            "default_week_format" => self.default_week_format = small().min(7),
            "block_encryption_mode" => {
                let name = text().to_ascii_lowercase();
                self.block_mode = BlockMode::parse(&name)
                    .ok_or_else(|| wrong_value("block_encryption_mode", &text()))?;
                return Ok(Some(Value::Text(name.into())));
            }
            "max_allowed_packet" => {
                self.max_allowed_packet = number().clamp(1 << 10, MAX_PACKET_BYTES) >> 10 << 10;
                return Ok(Some(Value::Uint(self.max_allowed_packet)));
            }
            "cte_max_recursion_depth" => self.cte_max_recursion_depth = number(),
            "sql_dialect" => {
                let name = text().to_ascii_lowercase();
                self.is_sphinx = match name.as_str() {
                    "mysql" => false,
                    "sphinx" => true,
                    _ => return Err(wrong_value("sql_dialect", &text())),
                };
                return Ok(Some(Value::Text(name.into())));
            }
            "sql_mode" => {
                self.sql_mode =
                    SqlMode::parse(&text()).map_err(|mode| wrong_value("sql_mode", mode))?;
                return Ok(Some(Value::Text(self.sql_mode.to_string().into())));
            }
            "transaction_isolation" | "tx_isolation" => {
                let level = text().to_ascii_uppercase();
                if !ISOLATION_LEVELS.contains(&level.as_str()) {
                    return Err(wrong_value(name, &text()));
                }
                return Ok(Some(Value::Text(level.into())));
            }
            "lc_time_names" => return names_of_times(&text()).map(Some),
            "time_zone" => {
                self.time_zone = SessionTimeZone::parse(&text())?;
                return Ok(Some(Value::Text(self.time_zone.name.as_str().into())));
            }
            "timestamp" => self.set_timestamp(value),
            "sql_wait_for_position" => {
                self.wait_for_position = Some(text()).filter(|set| !set.is_empty()).map(Into::into);
            }
            "sql_wait_for_position_ms" => self.wait_for_position_ms = number(),
            _ => return self.apply_charset(name, value),
        }
        Ok(None)
    }

    fn set_timestamp(&mut self, value: &Value) {
        let seconds = match value {
            Value::Float(seconds) => *seconds,
            _ => 0.0,
        };
        self.timestamp_micros = (seconds > 0.0).then_some((seconds * 1e6).round() as i64);
    }

    /// Setting a character set also sets its collation, and the reverse.
    fn apply_charset(&mut self, name: &'static str, value: &Value) -> Result<Option<Value>> {
        let is_null = value.is_null();
        let charset = || by_charset(&value.to_string());
        let (pair, collation) = match name {
            "character_set_results" if is_null => {
                self.character_set_results = None;
                return Ok(None);
            }
            "character_set_client" => {
                let collation = charset()?;
                self.character_set_client = client_charset(collation)?;
                (None, collation)
            }
            "character_set_results" => {
                let collation = charset()?;
                self.character_set_results = ResultCharset::of(collation);
                (None, collation)
            }
            "character_set_connection" => {
                let collation = charset()?;
                self.collation_connection = collation;
                (Some("collation_connection"), collation)
            }
            "collation_connection" => {
                let collation = by_collation(&value.to_string())?;
                self.collation_connection = collation;
                (Some("character_set_connection"), collation)
            }
            "character_set_server" => (Some("collation_server"), charset()?),
            "collation_server" => (Some("character_set_server"), by_collation(&value.to_string())?),
            "character_set_database" => (Some("collation_database"), charset()?),
            "collation_database" => {
                (Some("character_set_database"), by_collation(&value.to_string())?)
            }
            _ => return Ok(None),
        };
        let spelling = |name: &str| match name.starts_with("collation") {
            true => Value::Text(collation.name().into()),
            false => Value::Text(collation.charset().into()),
        };
        if let Some(pair) = pair {
            self.session.insert(pair, spelling(pair));
        }
        Ok(Some(spelling(name)))
    }
}

/// The character set of statements; 1231 for those that MySQL does not allow for clients.
fn client_charset(collation: Collation) -> Result<Charset> {
    let name = collation.charset();
    if matches!(name, "ucs2" | "utf16" | "utf16le" | "utf32") {
        return Err(wrong_value("character_set_client", name));
    }
    // The binary character set is read as UTF-8.
    Ok(Charset::named(name).unwrap_or(Charset::UTF8MB4))
}

fn by_charset(name: &str) -> Result<Collation> {
    let unknown = || Error::new(ErrorCode::UnknownCharset, messages::unknown_charset(name));
    charset_default(name).ok_or_else(unknown)
}

fn by_collation(name: &str) -> Result<Collation> {
    let unknown = || Error::new(ErrorCode::UnknownCollation, messages::unknown_collation(name));
    Collation::by_name(name).ok_or_else(unknown)
}

/// Converts a value to the type of a variable.
fn checked(name: &'static str, kind: VariableKind, value: &Value) -> Result<Value> {
    match (kind, value) {
        (VariableKind::Switch, _) => switch(name, value),
        (VariableKind::Unsigned, Value::Int(number)) => {
            Ok(Value::Uint(u64::try_from(*number).unwrap_or(0)))
        }
        (VariableKind::Unsigned, Value::Uint(_)) => Ok(value.clone()),
        (VariableKind::Unsigned, Value::Bool(truth)) => Ok(Value::Uint(u64::from(*truth))),
        (VariableKind::Unsigned, Value::Null) => Err(wrong_value(name, "NULL")),
        (VariableKind::Double, Value::Float(_)) => Ok(value.clone()),
        (VariableKind::Double, Value::Int(number)) => Ok(Value::Float(*number as f64)),
        (VariableKind::Double, Value::Uint(number)) => Ok(Value::Float(*number as f64)),
        (VariableKind::Double, Value::Decimal(number)) => {
            Ok(Value::Float(number.to_string().parse().unwrap_or(0.0)))
        }
        (VariableKind::Unsigned | VariableKind::Double, _) => Err(wrong_type(name)),
        (VariableKind::Text, Value::Null) if name.starts_with("character_set") => Ok(Value::Null),
        (VariableKind::Text, Value::Null) => Err(wrong_value(name, "NULL")),
        (VariableKind::Text | VariableKind::Nullable, Value::Text(_) | Value::Null) => {
            Ok(value.clone())
        }
        (VariableKind::Text | VariableKind::Nullable, Value::Bytes(bytes)) => {
            Ok(Value::Text(String::from_utf8_lossy(bytes).into()))
        }
        (VariableKind::Text | VariableKind::Nullable, value) => enumerated(name, value),
    }
}

fn switch(name: &str, value: &Value) -> Result<Value> {
    let truth = match value {
        Value::Int(0) | Value::Uint(0) | Value::Bool(false) => 0,
        Value::Int(1) | Value::Uint(1) | Value::Bool(true) => 1,
        Value::Text(text) => match text.to_ascii_uppercase().as_str() {
            "ON" | "TRUE" | "1" => 1,
            "OFF" | "FALSE" | "0" => 0,
            _ => return Err(wrong_value(name, text)),
        },
        Value::Null => return Err(wrong_value(name, "NULL")),
        Value::Float(_) | Value::Decimal(_) => return Err(wrong_type(name)),
        value => return Err(wrong_value(name, &value.to_string())),
    };
    Ok(Value::Int(truth))
}

/// Accepts numbers for variables whose values are words.
fn enumerated(name: &'static str, value: &Value) -> Result<Value> {
    let word = match (name, value) {
        ("completion_type", Value::Int(0) | Value::Uint(0)) => "NO_CHAIN",
        ("sql_mode", Value::Int(_) | Value::Uint(_)) => {
            let modes = value.to_string().parse().ok().and_then(SqlMode::of_number);
            let modes = modes.ok_or_else(|| wrong_value(name, &value.to_string()))?;
            return Ok(Value::Text(modes.to_string().into()));
        }
        ("lc_time_names", Value::Int(0) | Value::Uint(0)) => "en_US",
        ("lc_time_names", Value::Int(1) | Value::Uint(1)) => "en_GB",
        ("lc_time_names", Value::Int(_) | Value::Uint(_)) => {
            return names_of_times(&value.to_string());
        }
        ("transaction_isolation" | "tx_isolation", Value::Int(_) | Value::Uint(_)) => {
            let place = value.to_string().parse().ok();
            let level = place.and_then(|place: usize| ISOLATION_LEVELS.get(place).copied());
            level.ok_or_else(|| wrong_value(name, &value.to_string()))?
        }
        ("session_track_gtids" | "session_track_transaction_info", Value::Int(0)) => "OFF",
        _ => return Err(wrong_type(name)),
    };
    Ok(Value::Text(word.into()))
}

/// The values of `transaction_isolation`, by their numbers.
const ISOLATION_LEVELS: [&str; 4] =
    ["READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"];

/// Locales in which days and months have English names.
const ENGLISH: [&str; 9] =
    ["en_US", "en_AU", "en_CA", "en_GB", "en_IN", "en_NZ", "en_PH", "en_ZA", "en_ZW"];

/// Checks the locale for names of days and months: 1235 if it is not English.
fn names_of_times(name: &str) -> Result<Value> {
    let known = ENGLISH.iter().find(|known| known.eq_ignore_ascii_case(name));
    let what =
        || format!("lc_time_names = '{name}': days and months have English names, as with 'en_US'");
    known.map(|known| Value::Text((*known).into())).ok_or_else(|| Error::unsupported(what()))
}

/// 1231: the value is not allowed.
fn wrong_value(name: &str, value: &str) -> Error {
    let message = format!("Variable '{name}' can't be set to the value of '{value}'");
    Error::new(ErrorCode::WrongValueForVariable, message)
}

/// 1232: the value has the wrong type.
fn wrong_type(name: &str) -> Error {
    let message = format!("Incorrect argument type to variable '{name}'");
    Error::new(ErrorCode::WrongTypeForVariable, message)
}
