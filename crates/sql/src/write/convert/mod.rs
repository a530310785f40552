//! Converts values to their columns' types by MySQL's rules. A value that does not fit is an error in strict mode;
//! otherwise it is rounded or truncated with a warning.

mod json;
mod multi;
mod number;
mod of_json;
mod text;
mod text_of;
mod time;

pub(crate) use text_of::text_of;

use jiff::tz::TimeZone;
use remora_engine::Value;
use remora_mysql::{Charset, ErrorCode, SqlMode, messages};

use crate::{
    Error, Result, SqlType,
    catalog::TypeSpec,
    meaning::geometry,
    state::{SessionState, Warning, WarningLevel, Warnings},
};

/// The most characters of a value in an error message.
const SHOWN_CHARS: usize = 128;

/// The conversion settings of a statement.
pub(crate) struct Converter {
    /// `sql_mode`.
    pub(super) mode: SqlMode,
    /// Whether a value that does not fit is an error.
    strict: bool,
    /// The time zone of the given times.
    pub(super) zone: TimeZone,
    /// The statement's start, in microseconds since 1970.
    pub(super) now_micros: i64,
    /// The character set of the client's texts.
    pub(super) client: Charset,
    warnings: Warnings,
}

/// The column that a value is for.
#[derive(Clone, Copy)]
pub(crate) struct TargetColumn<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type.
    pub kind: &'a TypeSpec,
    /// The row's number in the statement, from 1.
    pub row: u64,
}

impl Converter {
    /// A converter with the session's settings. `lenient` is IGNORE.
    pub(crate) fn new(session: &SessionState, lenient: bool) -> Self {
        let mode = session.variables.sql_mode;
        Self {
            mode,
            strict: mode.is_strict() && !lenient,
            zone: session.variables.time_zone.zone.clone(),
            now_micros: session.clock.micros,
            client: session.variables.character_set_client,
            warnings: session.warnings.clone(),
        }
    }

    /// A strict converter that discards warnings.
    pub(crate) fn quiet(session: &SessionState) -> Self {
        Self { strict: true, warnings: Warnings::default(), ..Self::new(session, false) }
    }

    /// Accepts any value as far as it fits, without warnings.
    pub(crate) fn silent(session: &SessionState) -> Self {
        Self { strict: false, warnings: Warnings::default(), ..Self::new(session, true) }
    }

    /// A strict converter with default settings and without a session.
    pub(crate) fn without_session() -> Self {
        Self {
            mode: SqlMode::DEFAULT,
            strict: true,
            zone: TimeZone::UTC,
            now_micros: 0,
            client: Charset::UTF8MB4,
            warnings: Warnings::default(),
        }
    }

    /// Whether a value that does not fit is an error.
    pub(crate) fn is_strict(&self) -> bool {
        self.strict
    }

    /// Converts a value for the column. NULL stays NULL.
    pub(crate) fn fit(&self, slot: TargetColumn<'_>, value: Value) -> Result<Value> {
        let value = match value {
            Value::Json(document) if of_json::is_scalar(slot) => {
                self.scalar_of_json(slot, &document)?
            }
            value => value,
        };
        if value.is_null() {
            return Ok(Value::Null);
        }
        match slot.kind.sql {
            _ if slot.kind.integer_bits().is_some() => self.fit_integer(slot, &value),
            SqlType::Float | SqlType::Double => self.fit_float(slot, &value),
            SqlType::Decimal(digits, scale) => self.fit_decimal(slot, &value, digits, scale),
            SqlType::Bit(bits) => self.fit_bits(slot, &value, bits),
            SqlType::Year => self.fit_year(slot, &value),
            SqlType::Date => self.fit_date(slot, &value),
            SqlType::DateTime(digits) => self.fit_date_time(slot, &value, digits),
            SqlType::Timestamp(digits) => self.fit_timestamp(slot, &value, digits),
            SqlType::Time(digits) => self.fit_time(slot, &value, digits),
            SqlType::Enum => self.fit_enum(slot, &value),
            SqlType::Set => self.fit_set(slot, &value),
            SqlType::Json => match slot.kind.multi() {
                Some(multi) => self.fit_multi(slot, multi, &value),
                None => json::fit(slot, value),
            },
            SqlType::Geometry => fit_geometry(slot, value),
            SqlType::Vector => text::fit_vector(slot, value),
            _ => self.fit_text(slot, value),
        }
    }

    /// The value of a NOT NULL column that is given NULL where this is not an error.
    pub(crate) fn implicit(&self, kind: &TypeSpec) -> Value {
        let zero = remora_engine::Date { year: 0, month: 0, day: 0 };
        match kind.sql {
            _ if kind.integer_bits().is_some() && kind.unsigned => Value::Uint(0),
            _ if kind.integer_bits().is_some() => Value::Int(0),
            SqlType::Float | SqlType::Double => Value::Float(0.0),
            SqlType::Decimal(_, scale) => {
                Value::Decimal(remora_engine::Decimal::from_scaled(0, scale))
            }
            SqlType::Bit(_) | SqlType::Year => Value::Uint(0),
            SqlType::Date => Value::Date(zero),
            SqlType::DateTime(_) => {
                Value::DateTime(remora_engine::DateTime { date: zero, micros: 0 })
            }
            SqlType::Timestamp(_) => Value::Timestamp(remora_engine::ZERO_TIMESTAMP_MICROS),
            SqlType::Time(_) => Value::Time(0),
            SqlType::Json if kind.multi().is_some() => Value::Json("[]".into()),
            SqlType::Json => Value::Json("null".into()),
            SqlType::Enum => {
                let first = kind.labels.first().map_or("", |label| label);
                Value::Text(first.into())
            }
            _ if kind.is_text() => Value::Text("".into()),
            SqlType::Char => Value::Bytes(vec![0; length(kind)].into()),
            _ => Value::Bytes([].into()),
        }
    }

    /// Error 1264; if not strict, a warning, and the column gets `instead`.
    pub(super) fn out_of_range(&self, slot: TargetColumn<'_>, instead: Value) -> Result<Value> {
        let TargetColumn { name, row, .. } = slot;
        let message = messages::out_of_range(name, row);
        self.complain(ErrorCode::OutOfRange, message, instead)
    }

    /// Error 1265; if not strict, a warning, and the column gets `instead`.
    pub(super) fn truncated(&self, slot: TargetColumn<'_>, instead: Value) -> Result<Value> {
        self.complain(ErrorCode::DataTruncated, truncated_text(slot), instead)
    }

    /// Error 1406; if not strict, warning 1265, and the column gets `instead`.
    pub(super) fn too_long(&self, slot: TargetColumn<'_>, instead: Value) -> Result<Value> {
        if !self.strict {
            return self.truncated(slot, instead);
        }
        let TargetColumn { name, row, .. } = slot;
        let message = messages::data_too_long(name, row);
        Err(Error::new(ErrorCode::DataTooLong, message))
    }

    /// 1366: `Incorrect integer value: 'x' for column …`.
    pub(super) fn incorrect(
        &self,
        slot: TargetColumn<'_>,
        kind: &str,
        value: &Value,
        instead: Value,
    ) -> Result<Value> {
        self.complain(ErrorCode::WrongValueForColumn, incorrect_text(slot, kind, value), instead)
    }

    /// Error 1292, like [`Converter::incorrect`].
    pub(super) fn incorrect_time(
        &self,
        slot: TargetColumn<'_>,
        kind: &str,
        value: &Value,
        instead: Value,
    ) -> Result<Value> {
        self.complain(ErrorCode::TruncatedValue, incorrect_text(slot, kind, value), instead)
    }

    /// Adds a note, whatever the mode.
    pub(super) fn note(&self, code: ErrorCode, message: String) {
        self.warnings.push(Warning::new(WarningLevel::Note, code, message));
    }

    /// An error if strict, else a warning.
    pub(crate) fn complain(
        &self,
        code: ErrorCode,
        message: String,
        instead: Value,
    ) -> Result<Value> {
        if self.strict {
            return Err(Error::new(code, message));
        }
        self.warn(code, message);
        Ok(instead)
    }

    /// Adds a warning, whatever the mode.
    pub(crate) fn warn(&self, code: ErrorCode, message: String) {
        self.warnings.push(Warning::new(WarningLevel::Warning, code, message));
    }
}

fn length(kind: &TypeSpec) -> usize {
    usize::try_from(kind.length).unwrap_or(usize::MAX)
}

pub(super) fn truncated_text(slot: TargetColumn<'_>) -> String {
    messages::data_truncated(slot.name, slot.row)
}

pub(super) fn incorrect_text(slot: TargetColumn<'_>, kind: &str, value: &Value) -> String {
    let shown = shown(value);
    format!("Incorrect {kind} value: '{shown}' for column '{}' at row {}", slot.name, slot.row)
}

/// A year as an expression gives it, for a hidden column. A YEAR column would accept fewer years and convert two-digit
/// ones.
pub(crate) fn year_as_given(value: Value) -> Value {
    match value {
        Value::Int(year) => u64::try_from(year).map_or(Value::Null, Value::Uint),
        value => value,
    }
}

/// A value as error messages print it: bytes beyond ASCII as `\xFF`.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => bytes
            .iter()
            .take(SHOWN_CHARS)
            .map(|&byte| match byte {
                b' '..=b'~' => char::from(byte).to_string(),
                _ => format!("\\x{byte:02X}"),
            })
            .collect(),
        other => text_of(other).chars().take(SHOWN_CHARS).collect(),
    }
}

/// A geometry of the column's shape; error 1416 for another.
fn fit_geometry(slot: TargetColumn<'_>, value: Value) -> Result<Value> {
    let fits = |bytes: &[u8]| {
        let wanted = slot.kind.spelling.filter(|spelling| *spelling != "geometry");
        let name = geometry::name(bytes);
        let same = |wanted: &str| name.is_some_and(|name| name.eq_ignore_ascii_case(wanted));
        geometry::to_text(bytes).is_some() && wanted.is_none_or(same)
    };
    match &value {
        Value::Bytes(bytes) if fits(bytes) => Ok(value),
        _ => {
            let message = "Cannot get geometry object from data you send to the GEOMETRY field";
            Err(Error::new(ErrorCode::NoGeometry, message))
        }
    }
}

#[cfg(test)]
mod tests;
