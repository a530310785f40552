//! Text forms of dates and times.
//!
//! ```text
//! date      := YYYY "-" MM "-" DD                       parts may be zero, as in MySQL
//! date_time := date (("T" | " ") clock)?
//! clock     := HH ":" MM (":" SS fraction?)?            below 24 hours
//! fraction  := "." digit{1,9}                           rounded to microseconds
//! timestamp := date_time ("Z" | ("+" | "-") HH ":"? MM)?   UTC without an offset
//! time      := "-"? H{1,3} ":" MM (":" SS fraction?)?   up to 838:59:59
//! epoch     := "-"? digit+ fraction?                    seconds since 1970-01-01 00:00:00 UTC
//! ```

use std::{fmt, ops::RangeInclusive};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
/// The longest duration that MySQL allows, 838:59:59.999999, in microseconds.
pub(crate) const TIME_LIMIT_MICROS: i64 = (838 * 3_600 + 59 * 60 + 60) * MICROS_PER_SECOND - 1;
/// The value of a TIMESTAMP `0000-00-00 00:00:00`, which is no instant: just below the first one.
pub const ZERO_TIMESTAMP_MICROS: i64 = -62_167_219_200_000_001;
/// The instants of the years 0 to 9999, in microseconds since 1970, and the zero before them.
pub(crate) const TIMESTAMP_RANGE_MICROS: RangeInclusive<i64> =
    ZERO_TIMESTAMP_MICROS..=253_402_300_799_999_999;

/// No text of an instant has more bytes.
const LONGEST_INSTANT: usize = 64;
const ZERO_DATE: Date = Date { year: 0, month: 0, day: 0 };

/// A calendar date as in MySQL: parts may be zero (`2024-00-00`, `0000-00-00`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    /// 0 to 9999.
    pub year: u16,
    /// 0 to 12.
    pub month: u8,
    /// 0 to 31.
    pub day: u8,
}

/// A date and a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime {
    /// The date.
    pub date: Date,
    /// Microseconds since midnight, below 86,400,000,000.
    pub micros: u64,
}

impl Date {
    /// Whether every part is within its range.
    pub fn is_valid(&self) -> bool {
        self.year <= 9999 && self.month <= 12 && self.day <= 31
    }

    /// The date `days` after 1970-01-01, if its year is 0 to 9999.
    pub(crate) fn from_epoch_days(days: i64) -> Option<Self> {
        // Years begin in March here, so that the leap day is the last of its year; all eras of 400 years have 146,097
        // days.
        let days = days.checked_add(719_468)?;
        let era = days.div_euclid(146_097);
        let day_of_era = days.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        let year = u16::try_from(year).ok().filter(|&year| year <= 9999)?;
        Some(Self { year, month: month as u8, day: day as u8 })
    }

    /// Days since 1970-01-01; `None` if month or day is zero. A day beyond the end of its month counts into the next
    /// month.
    pub(crate) fn to_epoch_days(self) -> Option<i64> {
        if self.month == 0 || self.day == 0 {
            return None;
        }
        let (month, day) = (i64::from(self.month), i64::from(self.day));
        let year = i64::from(self.year) - i64::from(month <= 2);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let month_from_march = if month > 2 { month - 3 } else { month + 9 };
        let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        Some(era * 146_097 + day_of_era - 719_468)
    }
}

impl DateTime {
    /// Whether every part is within its range.
    pub fn is_valid(&self) -> bool {
        self.date.is_valid() && self.micros < MICROS_PER_DAY as u64
    }

    /// Parses a date with or without a time of day, and without an offset.
    pub fn parse(text: &str) -> Option<Self> {
        parse_date_time(text)
    }

    /// Parses an ISO 8601 date, or a date and a time of day with or without `Z` or an offset, into an instant in
    /// microseconds; UTC without an offset. `None` for other texts, and for dates that no calendar has.
    pub fn parse_instant(text: &str) -> Option<i64> {
        // Most texts are none.
        if !text.as_bytes().first().is_some_and(u8::is_ascii_digit) || text.len() > LONGEST_INSTANT
        {
            return None;
        }
        let date = parse_date(text.get(..10)?)?;
        let is_of_calendar = Date::from_epoch_days(date.to_epoch_days()?) == Some(date);
        if is_of_calendar { parse_timestamp(text) } else { None }
    }

    /// Parses seconds since 1970 into an instant in microseconds.
    pub fn parse_epoch(text: &str) -> Option<i64> {
        parse_epoch(text)
    }

    /// The UTC date and time of an instant, if its year is 0 to 9999.
    pub fn from_timestamp(micros: i64) -> Option<Self> {
        if micros == ZERO_TIMESTAMP_MICROS {
            return Some(Self { date: ZERO_DATE, micros: 0 });
        }
        let date = Date::from_epoch_days(micros.div_euclid(MICROS_PER_DAY))?;
        Some(Self { date, micros: micros.rem_euclid(MICROS_PER_DAY) as u64 })
    }

    /// The instant of this date and time in UTC, in microseconds since 1970; `None` if month or day is zero, except
    /// for the zero date at midnight.
    pub fn to_timestamp(&self) -> Option<i64> {
        if self.date == ZERO_DATE && self.micros == 0 {
            return Some(ZERO_TIMESTAMP_MICROS);
        }
        let days = self.date.to_epoch_days()?;
        days.checked_mul(MICROS_PER_DAY)?.checked_add_unsigned(self.micros)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl fmt::Display for DateTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ", self.date)?;
        write_clock(self.micros, out)
    }
}

/// Writes a duration as `[-]HH:MM:SS[.ffffff]`.
pub(super) fn write_span(micros: i64, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    if micros < 0 {
        out.write_str("-")?;
    }
    write_clock(micros.unsigned_abs(), out)
}

/// Writes an instant as its UTC date and time; outside the years 0 to 9999 as epoch seconds.
pub(super) fn write_timestamp(micros: i64, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match DateTime::from_timestamp(micros) {
        Some(moment) => write!(out, "{moment}"),
        None => write!(out, "{}", micros.div_euclid(MICROS_PER_SECOND)),
    }
}

fn write_clock(micros: u64, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let seconds = micros / 1_000_000;
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    write!(out, "{hours:02}:{minutes:02}:{:02}", seconds % 60)?;
    match micros % 1_000_000 {
        0 => Ok(()),
        fraction => write!(out, ".{fraction:06}"),
    }
}

/// Parses a date.
pub(crate) fn parse_date(text: &str) -> Option<Date> {
    let (year, rest) = digits(text, 4)?;
    let (month, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let date = Date { year: year as u16, month: month as u8, day: day as u8 };
    (rest.is_empty() && date.is_valid()).then_some(date)
}

/// Parses a date with or without a time of day.
pub(crate) fn parse_date_time(text: &str) -> Option<DateTime> {
    let Some((date, clock)) = text.split_once(['T', 't', ' ']) else {
        return Some(DateTime { date: parse_date(text)?, micros: 0 });
    };
    let date = parse_date(date)?;
    let micros = parse_clock(clock, 2).filter(|&micros| micros <= MICROS_PER_DAY)?;
    if micros < MICROS_PER_DAY {
        return Some(DateTime { date, micros: micros as u64 });
    }
    // 23:59:59.9999999 rounds up to the next midnight.
    let next = Date::from_epoch_days(date.to_epoch_days()?.checked_add(1)?)?;
    clock.starts_with("23").then_some(DateTime { date: next, micros: 0 })
}

/// Parses an instant: a date, a time of day, `Z` or an offset; UTC without an offset.
pub(crate) fn parse_timestamp(text: &str) -> Option<i64> {
    let (local, offset_minutes) = split_offset(text)?;
    let micros = parse_date_time(local)?.to_timestamp()?;
    if micros == ZERO_TIMESTAMP_MICROS {
        return Some(micros);
    }
    let micros = micros.checked_sub(offset_minutes * 60 * MICROS_PER_SECOND)?;
    TIMESTAMP_RANGE_MICROS.contains(&micros).then_some(micros)
}

/// Parses a duration: as text or in seconds.
pub(crate) fn parse_time(text: &str) -> Option<i64> {
    let micros = if text.contains(':') {
        let unsigned = text.strip_prefix('-');
        let micros = parse_clock(unsigned.unwrap_or(text), 3)?;
        if unsigned.is_some() { -micros } else { micros }
    } else {
        parse_seconds(text)?
    };
    (-TIME_LIMIT_MICROS..=TIME_LIMIT_MICROS).contains(&micros).then_some(micros)
}

/// Parses epoch seconds of the years 0 to 9999 into microseconds.
pub(crate) fn parse_epoch(text: &str) -> Option<i64> {
    parse_seconds(text).filter(|micros| TIMESTAMP_RANGE_MICROS.contains(micros))
}

fn parse_seconds(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix('-');
    let (seconds, fraction) = split_fraction(unsigned.unwrap_or(text))?;
    let (seconds, _) = digits(seconds, seconds.len())?;
    let micros = seconds.checked_mul(MICROS_PER_SECOND)?.checked_add(fraction)?;
    Some(if unsigned.is_some() { -micros } else { micros })
}

/// `HH:MM[:SS[.f]]` in microseconds, with at most `hour_digits` digits of hours.
fn parse_clock(text: &str, hour_digits: usize) -> Option<i64> {
    let (text, fraction) = split_fraction(text)?;
    let mut parts = text.split(':');
    let hours = parts.next().filter(|hours| hours.len() <= hour_digits)?;
    let (hours, _) = digits(hours, hours.len())?;
    let (minutes, rest) = digits(parts.next()?, 2)?;
    let seconds = parts.next();
    let (seconds, seconds_rest) = seconds.map_or(Some((0, "")), |text| digits(text, 2))?;
    let whole = rest.is_empty() && seconds_rest.is_empty() && parts.next().is_none();
    let in_range = minutes < 60 && seconds < 60 && (hour_digits > 2 || hours < 24);
    let total_seconds = hours * 3_600 + minutes * 60 + seconds;
    (whole && in_range).then_some(total_seconds * MICROS_PER_SECOND + fraction)
}

/// The text before the point, and the fraction after it in microseconds, rounded.
fn split_fraction(text: &str) -> Option<(&str, i64)> {
    let Some((whole, fraction)) = text.split_once('.') else { return Some((text, 0)) };
    if fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let (nanos, _) = digits(fraction, fraction.len())?;
    let nanos = nanos * 10_i64.pow(9 - fraction.len() as u32);
    Some((whole, (nanos + 500) / 1_000))
}

/// The local part, and how many minutes it is ahead of UTC.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(local) = text.strip_suffix(['Z', 'z']) {
        return Some((local, 0));
    }
    // A sign within the first ten bytes belongs to the date.
    let Some(sign) = text.rfind(['+', '-']).filter(|&sign| sign > 10) else {
        return Some((text, 0));
    };
    let (local, offset) = text.split_at_checked(sign)?;
    let negative = offset.starts_with('-');
    let (hours, rest) = digits(offset.get(1..)?, 2)?;
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let (minutes, rest) = if rest.is_empty() { (0, "") } else { digits(rest, 2)? };
    let total = hours * 60 + minutes;
    let valid = rest.is_empty() && minutes < 60 && hours <= 15;
    valid.then_some((local.trim_end(), if negative { -total } else { total }))
}

/// A number of exactly `count` digits at the start, and the rest.
fn digits(text: &str, count: usize) -> Option<(i64, &str)> {
    let (number, rest) = text.split_at_checked(count)?;
    let all_digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    Some((all_digits.then(|| number.parse().ok())??, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Value;

    #[test]
    fn dates_are_read_with_zero_parts_and_nothing_else() {
        assert_eq!(parse_date("2024-01-31"), Some(Date { year: 2024, month: 1, day: 31 }));
        assert_eq!(parse_date("0000-00-00"), Some(Date { year: 0, month: 0, day: 0 }));
        for text in ["2024-1-31", "2024-13-01", "2024-01-32", "24-01-31", "2024-01-31 ", "", "x"] {
            assert_eq!(parse_date(text), None, "{text:?}");
        }
    }

    #[test]
    fn moments_are_read_with_zones() {
        let noon = 1_706_702_400_000_000;
        for text in [
            "2024-01-31 12:00:00",
            "2024-01-31T12:00:00Z",
            "2024-01-31 12:00",
            "2024-01-31T14:30:00+02:30",
            "2024-01-31T07:00:00.000000-0500",
        ] {
            assert_eq!(parse_timestamp(text), Some(noon), "{text:?}");
        }
        assert_eq!(parse_timestamp("2024-01-31"), Some(noon - 43_200_000_000));
        assert_eq!(parse_timestamp("0000-00-00 00:00:00"), Some(ZERO_TIMESTAMP_MICROS));
        assert_eq!(Value::Timestamp(ZERO_TIMESTAMP_MICROS).to_string(), "0000-00-00 00:00:00");
        assert_eq!(parse_timestamp("0000-00-00 00:00:01"), None);
        assert_eq!(parse_epoch("1706702400.5"), Some(noon + 500_000));
        assert_eq!(parse_epoch("99999999999999"), None);
        assert_eq!(parse_date_time("2024-01-31T12:00:00+01:00"), None);
        assert_eq!(parse_date_time("2024-01-31 24:00:00"), None);
        let rounded =
            parse_date_time("2024-02-29 23:59:59.9999996").map(|moment| moment.to_string());
        assert_eq!(rounded.as_deref(), Some("2024-03-01 00:00:00"));
    }

    #[test]
    fn instants_are_dates_of_the_calendar() {
        let midnight = parse_timestamp("2024-02-29").unwrap();
        for text in ["2024-02-29", "2024-02-29T00:00:00Z", "2024-02-28T23:00-01:00"] {
            assert_eq!(DateTime::parse_instant(text), Some(midnight), "{text:?}");
        }
        for text in [
            "2023-02-29",
            "2024-02-30T00:00:00Z",
            "2024-00-00",
            "0000-00-00",
            "2024-02",
            "",
            "x",
            "5",
        ] {
            assert_eq!(DateTime::parse_instant(text), None, "{text:?}");
        }
    }

    #[test]
    fn spans_are_read_up_to_the_limit() {
        assert_eq!(parse_time("-838:59:59.999999"), Some(-TIME_LIMIT_MICROS));
        assert_eq!(parse_time("839:00:00"), None);
        assert_eq!(parse_time("01:02:03.5"), Some(3_723_500_000));
        assert_eq!(parse_time("-90"), Some(-90_000_000));
        assert_eq!(Value::Time(-3_723_500_000).to_string(), "-01:02:03.500000");
        assert_eq!(Value::Time(3_020_399_000_000).to_string(), "838:59:59");
        assert_eq!(parse_time("1:60:00"), None);
    }

    #[test]
    fn signs_and_other_letters_among_digits_are_refused() {
        for text in ["+024-01-01", "2024-+1-01", "2024-01-31 +2:00:00", "２０２４-01-01"] {
            assert_eq!(parse_date_time(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn timestamps_round_trip(
            micros in ZERO_TIMESTAMP_MICROS + 1..=*TIMESTAMP_RANGE_MICROS.end(),
        ) {
            let text = Value::Timestamp(micros).to_string();
            prop_assert_eq!(parse_timestamp(&text), Some(micros));
            let moment = DateTime::from_timestamp(micros).unwrap();
            prop_assert_eq!(moment.to_timestamp(), Some(micros));
            let civil = jiff::Timestamp::from_microsecond(micros).ok();
            if let Some(civil) = civil.map(|civil| civil.to_zoned(jiff::tz::TimeZone::UTC)) {
                prop_assert_eq!(civil.strftime("%Y-%m-%d").to_string(), moment.date.to_string());
            }
        }

        #[test]
        fn spans_round_trip(micros in -TIME_LIMIT_MICROS..=TIME_LIMIT_MICROS) {
            prop_assert_eq!(parse_time(&Value::Time(micros).to_string()), Some(micros));
        }

        #[test]
        fn any_text_is_refused_or_read(text in "[-0-9:. TZ+]{0,30}") {
            let _ = (parse_timestamp(&text), parse_time(&text), parse_epoch(&text));
        }
    }
}
