//! What a function knows while it runs: its types, and the session around it.

use datafusion::common::ScalarValue;
use jiff::tz::TimeZone;
use remora_mysql::{Collation, ErrorCode, SqlMode};

use super::{
    temporal::{Moment, local_of_utc},
    types::ExprType,
    value::SqlValue,
};
use crate::state::Context;

/// What is known of a call before it runs: enough to say its type.
pub(crate) struct TypeContext<'a> {
    /// The arguments' types.
    pub types: &'a [ExprType],
    /// The arguments that are constants.
    pub scalars: &'a [Option<&'a ScalarValue>],
    /// What literals compare by.
    pub collation: Collation,
    /// Digits that a division adds.
    pub division_digits: u8,
}

impl<'a> TypeContext<'a> {
    /// The type of an argument; that of NULL where there is none.
    pub(crate) fn get(&self, index: usize) -> ExprType {
        self.types.get(index).cloned().unwrap_or_else(ExprType::null)
    }

    /// An argument that is a constant whole number.
    pub(crate) fn constant(&self, index: usize) -> Option<i64> {
        match self.scalars.get(index).copied().flatten()? {
            ScalarValue::Int64(number) => *number,
            ScalarValue::UInt64(number) => i64::try_from((*number)?).ok(),
            ScalarValue::Float64(number) => number.map(|number| number.round_ties_even() as i64),
            ScalarValue::Decimal128(Some(units), _, scale) => {
                let unit = 10i128.checked_pow(u32::try_from(*scale).ok()?)?;
                i64::try_from(units / unit).ok()
            }
            ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => text.parse().ok(),
            _ => None,
        }
    }

    /// An argument that is a constant text.
    pub(crate) fn constant_text(&self, index: usize) -> Option<&'a str> {
        match self.scalars.get(index).copied().flatten()? {
            ScalarValue::Utf8(text)
            | ScalarValue::Utf8View(text)
            | ScalarValue::LargeUtf8(text) => text.as_deref(),
            _ => None,
        }
    }

    /// Whether no argument can be NULL.
    pub(crate) fn all_present(&self) -> bool {
        self.types.iter().all(|each| each.not_null)
    }
}

/// What is known while a call runs.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    /// The session's side, if there is a session.
    pub context: Option<&'a Context>,
    /// The arguments' types.
    pub types: &'a [ExprType],
    /// The result's type.
    pub result: &'a ExprType,
}

impl Call<'_> {
    /// Warns, where somebody listens.
    pub(crate) fn warn(&self, code: ErrorCode, message: impl FnOnce() -> String) {
        if let Some(context) = self.context {
            context.warn(code, message());
        }
    }

    /// The same once for each statement.
    pub(crate) fn warn_once(&self, code: ErrorCode, message: impl FnOnce() -> String) {
        if let Some(context) = self.context {
            context.warn_once(code, message());
        }
    }

    /// Warns that only the beginning of a text is a value of a type.
    pub(crate) fn warn_truncated(&self, kind: &str, text: &str) {
        self.warn(ErrorCode::TruncatedValue, || {
            format!("Truncated incorrect {kind} value: '{text}'")
        });
    }

    /// The session's time zone.
    pub(crate) fn time_zone(&self) -> TimeZone {
        self.context.map_or(TimeZone::UTC, |context| context.time_zone.clone())
    }

    /// When the statement began, in microseconds since 1970 UTC.
    pub(crate) fn now_micros(&self) -> i64 {
        match self.context {
            Some(context) => context.clock.micros,
            None => jiff::Timestamp::now().as_microsecond(),
        }
    }

    /// When the statement began, as the session's clocks showed it.
    pub(crate) fn now(&self) -> Moment {
        local_of_utc(self.now_micros(), &self.time_zone()).unwrap_or_default()
    }

    /// The date when the statement began.
    pub(crate) fn today(&self) -> Moment {
        self.now().midnight()
    }

    /// The longest text that a function may make, in bytes.
    pub(crate) fn longest_text(&self) -> u64 {
        // It is held several times on its way: as a value, in a column, in the reply.
        let most = |context: &Context| context.max_text_bytes.min(context.max_batch_bytes / 4);
        self.context.map_or(64 << 20, most)
    }

    /// NULL in the place of a text that would be too long, with a warning.
    pub(crate) fn too_long<'v>(&self, function: &str) -> SqlValue<'v> {
        let most = self.longest_text();
        self.warn(ErrorCode::FunctionResultTooLong, || {
            format!(
                "Result of {function}() was larger than max_allowed_packet ({most}) - truncated"
            )
        });
        SqlValue::Null
    }

    /// What the session wants statements to mean.
    pub(crate) fn sql_mode(&self) -> SqlMode {
        self.context.map_or(SqlMode::DEFAULT, |context| context.sql_mode)
    }

    /// The type of an argument.
    pub(crate) fn type_of(&self, index: usize) -> Option<&ExprType> {
        self.types.get(index)
    }
}

impl Call<'_> {
    /// The moment of a value, if `sql_mode` allows its zeros; else a warning.
    pub(crate) fn allowed_moment(&self, value: &SqlValue<'_>) -> Option<(Moment, bool, u8)> {
        let found = value.moment_with_clock(self)?;
        let mode = self.sql_mode();
        let (moment, ..) = found;
        let zero = moment.is_zero_date() && mode.has(SqlMode::NO_ZERO_DATE);
        let part =
            !moment.is_zero_date() && moment.has_zero_part() && mode.has(SqlMode::NO_ZERO_IN_DATE);
        if zero || part {
            value.warn_incorrect(self, "datetime");
            return None;
        }
        Some(found)
    }
}
