//! Converts dates and times.

use remora_engine::{Date, DateTime, Value, ZERO_TIMESTAMP_MICROS};
use remora_mysql::{ErrorCode, SqlMode, messages};

use super::{Converter, TargetColumn, incorrect_text, number::integer_of, text_of};
use crate::{
    Result,
    meaning::temporal::{
        Moment, local_of_utc, moment_of_number, parse_moment, parse_time, round_micros,
        time_of_number, utc_of_local,
    },
};

/// The least TIMESTAMP, in microseconds: the second after the epoch.
const FIRST_TIMESTAMP: i64 = 1_000_000;
/// The greatest TIMESTAMP, in microseconds: 2038-01-19 03:14:07.999999 UTC.
const LAST_TIMESTAMP: i64 = 2_147_483_647_999_999;
const ZERO: DateTime = DateTime { date: Date { year: 0, month: 0, day: 0 }, micros: 0 };

/// A parsed date and time, and whether the whole value was parsed.
struct Read {
    moment: Moment,
    complete: bool,
}

impl Converter {
    pub(super) fn fit_date(&self, slot: TargetColumn<'_>, value: &Value) -> Result<Value> {
        let zero = Value::Date(ZERO.date);
        let Some(read) = self.moment(value).filter(|read| self.allows(read.moment)) else {
            return self.incorrect_time(slot, "date", value, zero);
        };
        // A fraction of a second may round to the next day.
        let Some(moment) = self.rounded(read.moment, 0) else {
            let message = messages::DATE_OVERFLOW.to_owned();
            self.complain(ErrorCode::DateOverflow, message, zero.clone())?;
            return self.out_of_range(slot, zero);
        };
        if !read.complete {
            return self.incorrect_time(slot, "date", value, Value::Date(date(moment)));
        }
        if moment.micros != 0 || matches!(value, Value::Time(_)) {
            self.note(ErrorCode::TruncatedValue, incorrect_text(slot, "date", value));
        }
        Ok(Value::Date(date(moment)))
    }

    pub(super) fn fit_date_time(
        &self,
        slot: TargetColumn<'_>,
        value: &Value,
        digits: u8,
    ) -> Result<Value> {
        let read = self.moment(value).filter(|read| self.allows(read.moment));
        let rounded =
            read.and_then(|read| Some((self.rounded(read.moment, digits)?, read.complete)));
        let Some((moment, complete)) = rounded else {
            return self.incorrect_time(slot, "datetime", value, Value::DateTime(ZERO));
        };
        let held = Value::DateTime(date_time(moment));
        if complete { Ok(held) } else { self.incorrect_time(slot, "datetime", value, held) }
    }

    pub(super) fn fit_timestamp(
        &self,
        slot: TargetColumn<'_>,
        value: &Value,
        digits: u8,
    ) -> Result<Value> {
        match value {
            // Rounding would make the first second of year 0 of it.
            Value::Timestamp(ZERO_TIMESTAMP_MICROS) => return Ok(value.clone()),
            Value::Timestamp(micros) => {
                return Ok(Value::Timestamp(round_micros(*micros, digits)));
            }
            _ => {}
        }
        let zero = Value::Timestamp(ZERO_TIMESTAMP_MICROS);
        let read = self.moment(value).filter(|read| self.allows(read.moment));
        let rounded =
            read.and_then(|read| Some((self.rounded(read.moment, digits)?, read.complete)));
        let Some((moment, complete)) = rounded else {
            return self.incorrect_time(slot, "datetime", value, zero);
        };
        if moment.is_zero_date() && moment.micros == 0 {
            return Ok(zero);
        }
        let fits = |micros: &i64| (FIRST_TIMESTAMP..=LAST_TIMESTAMP).contains(micros);
        let possible = !moment.has_zero_part();
        let micros = possible.then(|| utc_of_local(moment, &self.zone)).flatten().filter(fits);
        match micros {
            Some(micros) if complete => Ok(Value::Timestamp(micros)),
            Some(micros) => self.incorrect_time(slot, "datetime", value, Value::Timestamp(micros)),
            None => self.incorrect_time(slot, "datetime", value, zero),
        }
    }

    pub(super) fn fit_time(
        &self,
        slot: TargetColumn<'_>,
        value: &Value,
        digits: u8,
    ) -> Result<Value> {
        let read = match value {
            Value::Time(micros) => Some((*micros, true, false)),
            Value::Date(_) => Some((0, true, false)),
            Value::DateTime(moment) => Some((moment.micros as i64, true, false)),
            Value::Timestamp(micros) => {
                local_of_utc(*micros, &self.zone).map(|moment| (moment.micros, true, false))
            }
            Value::Text(_) | Value::Bytes(_) | Value::Json(_) => {
                let text = text_of(value);
                if text.trim().is_empty() {
                    return Ok(Value::Time(0));
                }
                let dated = parse_moment(&text).is_some_and(|parsed| parsed.has_clock)
                    && text.contains('-')
                    && text.trim().len() >= 12;
                parse_time(&text).map(|time| (time.micros, time.complete, dated))
            }
            number => {
                let whole = i64::try_from(integer_toward_zero(number)).ok();
                let fraction = fraction_micros(number);
                whole.and_then(time_of_number).map(|micros| {
                    let micros = if micros < 0 || is_negative(number) {
                        micros - fraction
                    } else {
                        micros + fraction
                    };
                    (micros, micros.abs() < 839 * 3_600_000_000, false)
                })
            }
        };
        let Some((micros, complete, dated)) = read else {
            return self.incorrect_time(slot, "time", value, Value::Time(0));
        };
        let most = 838 * 3_600_000_000 + 59 * 60_000_000 + 59_000_000;
        let held = Value::Time(round_micros(micros, digits).clamp(-most, most));
        if !complete {
            return self.incorrect_time(slot, "time", value, held);
        }
        if dated {
            self.note(ErrorCode::TruncatedValue, incorrect_text(slot, "time", value));
        }
        Ok(held)
    }

    /// The statement's start, as a column stores it.
    pub(crate) fn now(&self, slot: TargetColumn<'_>) -> Result<Value> {
        let unit = 10_i64.pow(u32::from(6 - slot.kind.fraction_digits().min(6)));
        let micros = self.now_micros.div_euclid(unit) * unit;
        self.fit(slot, Value::Timestamp(micros))
    }

    /// The date and time in a value, if it has one.
    fn moment(&self, value: &Value) -> Option<Read> {
        let whole = |moment| Some(Read { moment, complete: true });
        match value {
            Value::Date(date) => whole(moment_of(*date, 0)),
            Value::DateTime(at) => whole(moment_of(at.date, at.micros as i64)),
            Value::Timestamp(micros) => {
                local_of_utc(*micros, &self.zone).map(|moment| Read { moment, complete: true })
            }
            Value::Time(micros) => {
                let today = local_of_utc(self.now_micros, &self.zone)?.midnight();
                let total = today.total_micros() + i128::from(*micros);
                whole(Moment::from_total_micros(total)?)
            }
            Value::Text(_) | Value::Bytes(_) | Value::Json(_) => {
                let parsed = parse_moment(&text_of(value))?;
                let moment = match parsed.offset_minutes {
                    Some(minutes) => {
                        let utc = parsed.moment.total_micros() - i128::from(minutes) * 60_000_000;
                        let utc = Moment::from_total_micros(utc)?;
                        let micros = utc_of_local(utc, &jiff::tz::TimeZone::UTC)?;
                        local_of_utc(micros, &self.zone)?
                    }
                    None => parsed.moment,
                };
                Some(Read { moment, complete: parsed.complete })
            }
            number => {
                let (moment, _) =
                    moment_of_number(i64::try_from(integer_toward_zero(number)).ok()?)?;
                let micros = moment.micros + fraction_micros(number);
                whole(Moment { micros, ..moment })
            }
        }
    }

    /// Whether `sql_mode` permits a date.
    fn allows(&self, moment: Moment) -> bool {
        if moment.is_zero_date() && moment.micros == 0 {
            return !self.mode.has(SqlMode::NO_ZERO_DATE);
        }
        !(moment.has_zero_part() && self.mode.has(SqlMode::NO_ZERO_IN_DATE))
    }

    fn rounded(&self, moment: Moment, digits: u8) -> Option<Moment> {
        if self.mode.has(SqlMode::TIME_TRUNCATE_FRACTIONAL) {
            let unit = 10_i64.pow(u32::from(6 - digits.min(6)));
            return Some(Moment { micros: moment.micros / unit * unit, ..moment });
        }
        moment.rounded(digits)
    }
}

fn moment_of(date: Date, micros: i64) -> Moment {
    Moment { micros, ..Moment::date(date.year, date.month, date.day) }
}

fn date(moment: Moment) -> Date {
    Date { year: moment.year, month: moment.month, day: moment.day }
}

fn date_time(moment: Moment) -> DateTime {
    DateTime { date: date(moment), micros: moment.micros.unsigned_abs() }
}

/// A number truncated to an integer.
fn integer_toward_zero(value: &Value) -> i128 {
    match value {
        Value::Float(number) => number.trunc() as i128,
        Value::Decimal(number) => {
            let text = number.as_str();
            text.split_once('.').map_or(text, |(whole, _)| whole).parse().unwrap_or(i128::MAX)
        }
        other => integer_of(other),
    }
}

fn is_negative(value: &Value) -> bool {
    match value {
        Value::Float(number) => *number < 0.0,
        Value::Decimal(number) => number.as_str().starts_with('-'),
        _ => false,
    }
}

/// The fraction of a number, in microseconds.
fn fraction_micros(value: &Value) -> i64 {
    match value {
        Value::Float(number) => (number.fract().abs() * 1e6).round() as i64,
        Value::Decimal(number) => {
            let fraction = number.as_str().split_once('.').map_or("", |(_, fraction)| fraction);
            let digits: String = fraction.chars().chain("000000".chars()).take(6).collect();
            digits.parse().unwrap_or(0)
        }
        _ => 0,
    }
}
