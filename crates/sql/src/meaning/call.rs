//! The context of a function call: its types and the session.

use std::{any::Any, cell::RefCell};

use datafusion::common::ScalarValue;
use jiff::tz::TimeZone;
use remora_mysql::{Collation, ErrorCode, SqlMode, messages};

use super::{
    temporal::{Moment, local_of_utc},
    types::ExprType,
};
use crate::{Result, state::Context};

/// What is known of a call during planning, to derive its result type.
pub(crate) struct TypeContext<'a> {
    /// The arguments' types.
    pub types: &'a [ExprType],
    /// The arguments' values where they are constants.
    pub scalars: &'a [Option<&'a ScalarValue>],
    /// The collation of literals.
    pub collation: Collation,
    /// The digits that a division adds to the scale (`div_precision_increment`).
    pub division_digits: u8,
}

impl<'a> TypeContext<'a> {
    /// The type of an argument, or the type of NULL if there is none.
    pub(crate) fn get(&self, index: usize) -> ExprType {
        self.types.get(index).cloned().unwrap_or_else(ExprType::null)
    }

    /// The value of a constant integer argument.
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

    /// The value of a constant text argument.
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

/// The context while a call runs.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    /// The session's state, if there is a session. Functions read what differs from statement to statement by
    /// [`Call::session`].
    pub context: Option<&'a Context>,
    /// The arguments' types.
    pub types: &'a [ExprType],
    /// The result's type.
    pub result: &'a ExprType,
    /// What a function may keep from row to row of one batch.
    pub kept: Option<&'a KeptForCall>,
}

/// A value that a function made for one row and uses for the next ones.
#[derive(Default)]
pub(crate) struct KeptForCall(RefCell<Option<Box<dyn Any>>>);

impl<'a> Call<'a> {
    /// The session's state, to read what differs from statement to statement, such as its counters and the clock. What
    /// planning computes from it is not kept for further statements.
    pub(crate) fn session(&self) -> Option<&'a Context> {
        self.context.inspect(|context| context.planning.note_session_read())
    }

    /// The value that was kept if `is_right`, or else a new one, which is kept if there is a place for it.
    pub(crate) fn keep<T: 'static, R>(
        &self,
        is_right: impl Fn(&T) -> bool,
        make: impl FnOnce() -> Result<T>,
        with: impl FnOnce(&T) -> R,
    ) -> Result<R> {
        let Some(KeptForCall(place)) = self.kept else { return Ok(with(&make()?)) };
        let before = place.take().and_then(|kept| kept.downcast::<T>().ok());
        let value = match before.filter(|value| is_right(value)) {
            Some(value) => value,
            None => Box::new(make()?),
        };
        let result = with(&value);
        place.replace(Some(value));
        Ok(result)
    }

    /// Adds a warning, if there is a session.
    pub(crate) fn warn(&self, code: ErrorCode, message: impl FnOnce() -> String) {
        if let Some(context) = self.context {
            context.warn(code, message());
        }
    }

    /// Adds a warning unless the statement has it already.
    pub(crate) fn warn_once(&self, code: ErrorCode, message: impl FnOnce() -> String) {
        if let Some(context) = self.context {
            context.warn_once(code, message());
        }
    }

    /// Warns that only a prefix of a text is a value of this type.
    pub(crate) fn warn_truncated(&self, kind: &str, text: &str) {
        self.warn(ErrorCode::TruncatedValue, || messages::truncated_incorrect_value(kind, text));
    }

    /// The session's time zone; UTC without a session.
    pub(crate) fn time_zone(&self) -> TimeZone {
        self.context.map_or(TimeZone::UTC, |context| context.time_zone.clone())
    }

    /// The statement's start in microseconds since 1970 UTC.
    pub(crate) fn now_micros(&self) -> i64 {
        match self.session() {
            Some(context) => context.clock.micros,
            None => jiff::Timestamp::now().as_microsecond(),
        }
    }

    /// The statement's start in the session's time zone.
    pub(crate) fn now(&self) -> Moment {
        local_of_utc(self.now_micros(), &self.time_zone()).unwrap_or_default()
    }

    /// The date of the statement's start in the session's time zone.
    pub(crate) fn today(&self) -> Moment {
        self.now().midnight()
    }

    /// The most bytes of a text that a function may produce.
    pub(crate) fn longest_text(&self) -> u64 {
        // Several copies exist at once: the value, the column and the reply.
        let most = |context: &Context| context.max_text_bytes.min(context.max_batch_bytes / 4);
        self.context.map_or(64 << 20, most)
    }

    /// The session's `sql_mode`; the default without a session.
    pub(crate) fn sql_mode(&self) -> SqlMode {
        self.context.map_or(SqlMode::DEFAULT, |context| context.sql_mode)
    }

    /// The type of an argument.
    pub(crate) fn type_of(&self, index: usize) -> Option<&ExprType> {
        self.types.get(index)
    }
}
