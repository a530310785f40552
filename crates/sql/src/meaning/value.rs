//! Values during evaluation, and MySQL's conversions between their types.

use std::borrow::Cow;

use datafusion::arrow::datatypes::i256;
use remora_mysql::{ErrorCode, SqlMode, messages};

use super::{
    call::Call,
    decimal::Dec,
    number::{double_prefix, format_double, format_float, integer_prefix, round_to_integer},
    temporal::{self, Moment, moment_of_number, parse_moment, time_of_number, time_text},
};

/// A value. Texts borrow from their rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SqlValue<'a> {
    /// NULL.
    Null,
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A decimal.
    Dec(Dec),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// Text.
    Text(Cow<'a, str>),
    /// A label of an ENUM or labels of a SET, with the number.
    Member(Cow<'a, str>, u64),
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
    /// A JSON document.
    Json(Cow<'a, str>),
    /// A date.
    Date(Moment),
    /// A date and time, displayed with so many fraction digits.
    DateTime(Moment, u8),
    /// A time in microseconds, displayed with so many fraction digits.
    Time(i64, u8),
}

impl<'a> SqlValue<'a> {
    /// An owned text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(Cow::Owned(text.into()))
    }

    /// Owned bytes.
    pub(crate) fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Bytes(Cow::Owned(bytes.into()))
    }

    /// 1 for true, 0 for false.
    pub(crate) fn truth(truth: bool) -> Self {
        Self::Int(i64::from(truth))
    }

    /// The value made from `Some`, or NULL.
    pub(crate) fn or_null<T>(value: Option<T>, make: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Null, make)
    }

    /// An integer in the smallest representation.
    pub(crate) fn whole(number: i128) -> Self {
        match i64::try_from(number) {
            Ok(number) => Self::Int(number),
            Err(_) => match u64::try_from(number) {
                Ok(number) => Self::Uint(number),
                Err(_) => Self::Dec(Dec::whole(number)),
            },
        }
    }

    /// The bytes of its text; 0 for other types.
    pub(crate) fn text_bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Json(text) | Self::Member(text, _) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            _ => 0,
        }
    }

    /// Whether there is no value.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Converts to a double; NULL and invalid texts give 0, the latter with a warning.
    pub(crate) fn double(&self, call: &Call<'_>) -> f64 {
        match self {
            Self::Null => 0.0,
            Self::Int(number) => *number as f64,
            Self::Uint(number) | Self::Member(_, number) => *number as f64,
            Self::Dec(number) => number.to_double(),
            Self::Float(number) => f64::from(*number),
            Self::Double(number) => *number,
            Self::Text(text) => double_of_text(text, call),
            Self::Json(text) => match text.as_ref() {
                "true" => 1.0,
                "false" => 0.0,
                text => double_of_text(unquoted(text).as_ref(), call),
            },
            Self::Bytes(bytes) => double_of_text(&String::from_utf8_lossy(bytes), call),
            Self::Date(_) | Self::DateTime(..) | Self::Time(..) => self.decimal(call).to_double(),
        }
    }

    /// Whether it is a number.
    pub(crate) fn is_number(&self) -> bool {
        matches!(
            self,
            Self::Int(_) | Self::Uint(_) | Self::Dec(_) | Self::Float(_) | Self::Double(_)
        )
    }

    /// Converts to an exact decimal; NULL and invalid texts give 0, the latter with a warning.
    pub(crate) fn decimal(&self, call: &Call<'_>) -> Dec {
        match self {
            Self::Null => Dec::ZERO,
            Self::Int(number) => Dec::whole(i128::from(*number)),
            Self::Uint(number) | Self::Member(_, number) => Dec::whole(i128::from(*number)),
            Self::Dec(number) => *number,
            Self::Float(number) => Dec::from_double(f64::from(*number)),
            Self::Double(number) => Dec::from_double(*number),
            Self::Text(text) => decimal_of_text(text, call),
            Self::Json(text) => decimal_of_text(unquoted(text).as_ref(), call),
            Self::Bytes(bytes) => decimal_of_text(&String::from_utf8_lossy(bytes), call),
            Self::Date(moment) => Dec::whole(i128::from(moment.date_number())),
            Self::DateTime(moment, digits) => {
                with_fraction(moment.number(), i64::from(moment.fraction()), *digits)
            }
            Self::Time(micros, digits) => {
                with_fraction(temporal::time_number(*micros), micros % temporal::SECOND, *digits)
            }
        }
    }

    /// Converts to an integer within 64 bits, signed or unsigned. Decimals and doubles are rounded;
    /// of a text the numeric prefix counts.
    pub(crate) fn integer(&self, call: &Call<'_>) -> i128 {
        match self {
            Self::Null => 0,
            Self::Int(number) => i128::from(*number),
            Self::Uint(number) | Self::Member(_, number) => i128::from(*number),
            Self::Dec(number) => clamp(number.to_whole().unwrap_or(i128::MAX)),
            Self::Float(number) => integer_of_double(f64::from(*number)),
            Self::Double(number) => integer_of_double(*number),
            Self::Text(text) => integer_of_text(text, call),
            Self::Json(text) => integer_of_double(double_of_text(unquoted(text).as_ref(), call)),
            Self::Bytes(bytes) => integer_of_text(&String::from_utf8_lossy(bytes), call),
            Self::Date(moment) => i128::from(moment.date_number()),
            // Rounded as a time: 23:59:59.5 is the next day.
            Self::DateTime(moment, _) => {
                let rounded = moment.rounded(0).unwrap_or_else(|| moment.midnight());
                i128::from(rounded.number())
            }
            Self::Time(micros, _) => {
                i128::from(temporal::time_number(temporal::round_micros(*micros, 0)))
            }
        }
    }

    /// Converts an argument that counts characters, rows or digits; capped to 64 bits.
    pub(crate) fn count(&self, call: &Call<'_>) -> i64 {
        let number = match self {
            Self::Text(text) => integer_of_double(double_prefix(text).0),
            value => value.integer(call),
        };
        i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
    }

    /// Whether it is true; `None` for NULL.
    pub(crate) fn is_true(&self, call: &Call<'_>) -> Option<bool> {
        Some(match self {
            Self::Null => return None,
            Self::Int(number) => *number != 0,
            Self::Uint(number) => *number != 0,
            Self::Dec(number) => !number.is_zero(),
            Self::Date(moment) | Self::DateTime(moment, _) => *moment != Moment::default(),
            Self::Time(micros, _) => *micros != 0,
            value => value.double(call) != 0.0,
        })
    }

    /// Converts to text; `None` for NULL. Invalid bytes are replaced.
    pub(crate) fn string(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Null => return None,
            Self::Text(text) | Self::Member(text, _) | Self::Json(text) => {
                Cow::Borrowed(text.as_ref())
            }
            Self::Bytes(bytes) => String::from_utf8_lossy(bytes),
            Self::Int(number) => Cow::Owned(number.to_string()),
            Self::Uint(number) => Cow::Owned(number.to_string()),
            Self::Dec(number) => Cow::Owned(number.to_string()),
            Self::Float(number) => Cow::Owned(format_float(*number)),
            Self::Double(number) => Cow::Owned(format_double(*number)),
            Self::Date(moment) => Cow::Owned(moment.date_text()),
            Self::DateTime(moment, digits) => Cow::Owned(moment.text(*digits)),
            Self::Time(micros, digits) => Cow::Owned(time_text(*micros, *digits)),
        })
    }

    /// Converts to bytes; `None` for NULL.
    pub(crate) fn octets(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::Bytes(bytes) => Some(Cow::Borrowed(bytes.as_ref())),
            value => Some(match value.string()? {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            }),
        }
    }

    /// Converts to a date and time; `None` and a warning if that is impossible.
    pub(crate) fn moment(&self, call: &Call<'_>) -> Option<Moment> {
        self.moment_with_clock(call).map(|(moment, ..)| moment)
    }

    /// The date and time of an operand beside a date. A text, or bytes, that are no date are the date of zeros,
    /// with a warning.
    pub(crate) fn moment_beside_date(&self, call: &Call<'_>) -> Option<Moment> {
        let found = self.moment(call);
        match self {
            Self::Text(_) | Self::Bytes(_) | Self::Member(..) => Some(found.unwrap_or_default()),
            _ => found,
        }
    }

    /// Converts to a date and time; also returns whether it has a time of day, and its fraction
    /// digits.
    pub(crate) fn moment_with_clock(&self, call: &Call<'_>) -> Option<(Moment, bool, u8)> {
        match self {
            Self::Null => None,
            Self::Date(moment) => Some((*moment, false, 0)),
            Self::DateTime(moment, digits) => Some((*moment, true, *digits)),
            Self::Time(micros, digits) => {
                let total = i128::from(call.today().day_number()) * i128::from(temporal::DAY);
                let moment = Moment::from_total_micros(total + i128::from(*micros))?;
                Some((moment, true, *digits))
            }
            Self::Int(_) | Self::Uint(_) | Self::Dec(_) | Self::Float(_) | Self::Double(_) => {
                let found = self.moment_of_number(call);
                if found.is_none() {
                    self.warn_incorrect(call, "datetime");
                }
                found
            }
            value => {
                let text = value.string()?;
                let text = if matches!(value, Self::Json(_)) { unquoted(&text) } else { text };
                call.moment_of_text(&text)
            }
        }
    }

    fn moment_of_number(&self, call: &Call<'_>) -> Option<(Moment, bool, u8)> {
        let exact = self.decimal(call);
        let whole = exact.cut(0)?.units.to_i128()?;
        let (moment, has_clock) = moment_of_number(i64::try_from(whole).ok()?)?;
        let fraction = exact.minus(Dec::whole(whole))?.rescaled(6)?.units.to_i128()?;
        if fraction == 0 || !has_clock {
            return Some((moment, has_clock, 0));
        }
        let micros = moment.micros + i64::try_from(fraction).ok()?;
        let moment = Moment { micros, ..moment }.rounded(6)?;
        Some((moment, true, exact.scale.min(6)))
    }

    /// Converts to a time in microseconds with its fraction digits; `None` and a warning if that is
    /// impossible.
    pub(crate) fn time(&self, call: &Call<'_>) -> Option<(i64, u8)> {
        match self {
            Self::Null => None,
            Self::Time(micros, digits) => Some((*micros, *digits)),
            Self::Date(_) => Some((0, 0)),
            Self::DateTime(moment, digits) => Some((moment.micros, *digits)),
            Self::Int(_) | Self::Uint(_) | Self::Dec(_) | Self::Float(_) | Self::Double(_) => {
                let exact = self.decimal(call);
                let whole = exact.cut(0)?.units.to_i128()?;
                let fraction = exact.minus(Dec::whole(whole))?.rescaled(6)?.units.to_i128()?;
                let seconds = i64::try_from(whole).ok().and_then(time_of_number);
                let Some(seconds) = seconds else {
                    self.warn_truncated(call, "time");
                    return None;
                };
                let fraction = i64::try_from(fraction).ok()?;
                let micros = seconds + fraction;
                if micros.abs() > temporal::LONGEST_TIME {
                    self.warn_truncated(call, "time");
                }
                let most = temporal::LONGEST_TIME;
                Some((micros.clamp(-most, most), exact.scale.min(6)))
            }
            value => {
                let text = value.string()?;
                let parsed = temporal::parse_time(&text);
                if parsed.is_none_or(|parsed| !parsed.complete) {
                    value.warn_truncated(call, "time");
                }
                parsed.map(|parsed| (parsed.micros, parsed.digits))
            }
        }
    }

    /// Warns that it is not a value of this type.
    pub(crate) fn warn_incorrect(&self, call: &Call<'_>, kind: &str) {
        let text = self.string().unwrap_or_default();
        call.warn(ErrorCode::TruncatedValue, || messages::incorrect_value(kind, text));
    }

    /// Warns that only a prefix is a value of this type.
    pub(crate) fn warn_truncated(&self, call: &Call<'_>, kind: &str) {
        let text = self.string().unwrap_or_default();
        call.warn(ErrorCode::TruncatedValue, || messages::truncated_incorrect_value(kind, text));
    }

    /// The value with owned data.
    pub(crate) fn into_owned(self) -> SqlValue<'static> {
        match self {
            Self::Null => SqlValue::Null,
            Self::Int(number) => SqlValue::Int(number),
            Self::Uint(number) => SqlValue::Uint(number),
            Self::Dec(number) => SqlValue::Dec(number),
            Self::Float(number) => SqlValue::Float(number),
            Self::Double(number) => SqlValue::Double(number),
            Self::Text(text) => SqlValue::Text(Cow::Owned(text.into_owned())),
            Self::Member(text, number) => SqlValue::Member(Cow::Owned(text.into_owned()), number),
            Self::Bytes(bytes) => SqlValue::Bytes(Cow::Owned(bytes.into_owned())),
            Self::Json(text) => SqlValue::Json(Cow::Owned(text.into_owned())),
            Self::Date(moment) => SqlValue::Date(moment),
            Self::DateTime(moment, digits) => SqlValue::DateTime(moment, digits),
            Self::Time(micros, digits) => SqlValue::Time(micros, digits),
        }
    }
}

fn with_fraction(number: i64, micros: i64, digits: u8) -> Dec {
    let units = i256::from_i128(i128::from(number) * 1_000_000 + i128::from(micros));
    let exact = Dec { units, scale: 6 };
    exact.cut(digits).unwrap_or(exact)
}

fn clamp(number: i128) -> i128 {
    number.clamp(i128::from(i64::MIN), i128::from(u64::MAX))
}

/// A double rounded to an integer, capped to 63 bits.
pub(crate) fn integer_of_double(number: f64) -> i128 {
    // The cast saturates, and the number is never NaN.
    let rounded = round_to_integer(number);
    if rounded >= 9_223_372_036_854_775_808.0 {
        return i128::from(i64::MAX);
    }
    i128::from(rounded as i64)
}

fn double_of_text(text: &str, call: &Call<'_>) -> f64 {
    let (number, complete) = double_prefix(text);
    if !complete && !text.is_empty() {
        call.warn_truncated("DOUBLE", text);
    }
    number
}

fn decimal_of_text(text: &str, call: &Call<'_>) -> Dec {
    let (number, taken) = Dec::parse_prefix(text);
    let rest = text.get(taken..).unwrap_or("");
    if taken == 0 || !rest.trim_end().is_empty() {
        call.warn_truncated("DECIMAL", text);
    }
    number
}

fn integer_of_text(text: &str, call: &Call<'_>) -> i128 {
    let (number, complete) = integer_prefix(text);
    if !complete {
        call.warn_truncated("INTEGER", text);
    }
    number
}

/// The text of a JSON string; other JSON stays unchanged.
pub(crate) fn unquoted(json: &str) -> Cow<'_, str> {
    if json.starts_with('"')
        && let Ok(text) = serde_json::from_str::<String>(json)
    {
        return Cow::Owned(text);
    }
    Cow::Borrowed(json)
}

impl Call<'_> {
    /// Parses a date and time, within what `sql_mode` permits.
    pub(crate) fn moment_of_text(&self, text: &str) -> Option<(Moment, bool, u8)> {
        let Some(parsed) = parse_moment(text) else {
            self.warn(ErrorCode::TruncatedValue, || messages::incorrect_value("datetime", text));
            return None;
        };
        if parsed.moment.is_zero_date() && self.sql_mode().has(SqlMode::NO_ZERO_DATE) {
            self.warn(ErrorCode::TruncatedValue, || messages::incorrect_value("datetime", text));
            return None;
        }
        if !parsed.complete {
            self.warn_truncated("datetime", text);
        }
        let moment = match parsed.offset_minutes {
            Some(minutes) => self.shifted(parsed.moment, minutes)?,
            None => parsed.moment,
        };
        Some((moment, parsed.has_clock, parsed.digits))
    }

    /// Converts a date and time at an offset from UTC to the session's time zone.
    fn shifted(&self, moment: Moment, offset_minutes: i32) -> Option<Moment> {
        let since_1970 = moment.total_micros() - 719_528 * i128::from(temporal::DAY);
        let utc = since_1970 - i128::from(offset_minutes) * 60 * i128::from(temporal::SECOND);
        temporal::local_of_utc(i64::try_from(utc).ok()?, &self.time_zone())
    }

    /// NULL and a warning instead of a text that is too long.
    pub(crate) fn too_long<'v>(&self, function: &str) -> SqlValue<'v> {
        let most = self.longest_text();
        self.warn(ErrorCode::FunctionResultTooLong, || {
            format!(
                "Result of {function}() was larger than max_allowed_packet ({most}) - truncated"
            )
        });
        SqlValue::Null
    }

    /// The date and time of a value if `sql_mode` permits its zero parts; otherwise `None` and a
    /// warning.
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
