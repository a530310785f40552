//! Dates and times with MySQL's semantics: any part of a date may be zero.
//!
//! A date and time is packed into 64 bits so that integer order is chronological order:
//!
//! ```text
//! packed := ((year * 13 + month) << 5 | day) << 41 | hour << 36 | minute << 30 | second << 24
//!           | microseconds
//! ```

mod calendar;
mod format;
mod interval;
mod parse;
mod zone;

use std::fmt::Write;

pub(crate) use calendar::{
    date_of_day_number, day_number, days_in_month, week, weekday, year_week,
};
pub(crate) use format::{MONTHS, WEEKDAYS, format_date, parse_by_format};
pub(crate) use interval::Interval;
pub(crate) use parse::{
    ParsedMoment, is_like_date, last_day, moment_of_number, parse_moment, parse_time,
    time_of_number,
};
pub(crate) use zone::{local_of_utc, only_moment, parse_zone, utc_of_local};

/// Microseconds in a second.
pub(crate) const SECOND: i64 = 1_000_000;
/// Microseconds in a day.
pub(crate) const DAY: i64 = 86_400 * SECOND;
/// MySQL's longest TIME, 838:59:59, in microseconds.
pub(crate) const LONGEST_TIME: i64 = (838 * 3_600 + 59 * 60 + 59) * SECOND;

/// A date and time of day in parts. Any part of the date may be zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    /// 0 to 9999.
    pub year: u16,
    /// 0 to 12.
    pub month: u8,
    /// 0 to 31.
    pub day: u8,
    /// Microseconds since midnight.
    pub micros: i64,
}

impl Moment {
    /// A date at midnight.
    pub(crate) fn date(year: u16, month: u8, day: u8) -> Self {
        Self { year, month, day, micros: 0 }
    }

    /// Unpacks a date and time.
    pub(crate) fn unpack(packed: i64) -> Self {
        let date = packed >> 41;
        let (months, day) = (date >> 5, date & 31);
        let clock = (packed >> 24) & 0x1_ffff;
        let seconds = (clock >> 12) * 3_600 + ((clock >> 6) & 63) * 60 + (clock & 63);
        Self {
            year: u16::try_from(months / 13).unwrap_or(0),
            month: u8::try_from(months % 13).unwrap_or(0),
            day: day as u8,
            micros: seconds * SECOND + (packed & 0xff_ffff),
        }
    }

    /// Packs a date and time.
    pub(crate) fn pack(self) -> i64 {
        let months = i64::from(self.year) * 13 + i64::from(self.month);
        let date = months << 5 | i64::from(self.day);
        let clock =
            i64::from(self.hour()) << 12 | i64::from(self.minute()) << 6 | i64::from(self.second());
        (date << 17 | clock) << 24 | i64::from(self.fraction())
    }

    /// The hour, 0 to 23.
    pub(crate) fn hour(self) -> u8 {
        (self.micros / (3_600 * SECOND)) as u8
    }

    /// The minute, 0 to 59.
    pub(crate) fn minute(self) -> u8 {
        (self.micros / (60 * SECOND) % 60) as u8
    }

    /// The second, 0 to 59.
    pub(crate) fn second(self) -> u8 {
        (self.micros / SECOND % 60) as u8
    }

    /// The microseconds within the second.
    pub(crate) fn fraction(self) -> u32 {
        (self.micros % SECOND) as u32
    }

    /// Whether the date is 0000-00-00.
    pub(crate) fn is_zero_date(self) -> bool {
        self.year == 0 && self.month == 0 && self.day == 0
    }

    /// Whether the month or the day is zero.
    pub(crate) fn has_zero_part(self) -> bool {
        self.month == 0 || self.day == 0
    }

    /// Whether the calendar has such a day. Zero parts are allowed.
    pub(crate) fn is_possible(self) -> bool {
        let most = match self.month {
            0 => 31,
            month => days_in_month(self.year, month),
        };
        self.year <= 9_999 && self.month <= 12 && self.day <= most
    }

    /// The same date at midnight.
    pub(crate) fn midnight(self) -> Self {
        Self { micros: 0, ..self }
    }

    /// Days since the year 0, as TO_DAYS counts them.
    pub(crate) fn day_number(self) -> i64 {
        day_number(i64::from(self.year), i64::from(self.month), i64::from(self.day))
    }

    /// Microseconds since the year 0.
    pub(crate) fn total_micros(self) -> i128 {
        i128::from(self.day_number()) * i128::from(DAY) + i128::from(self.micros)
    }

    /// The date and time at this many microseconds since the year 0, if before the year 10000.
    pub(crate) fn from_total_micros(total: i128) -> Option<Self> {
        let day = i64::try_from(total.div_euclid(i128::from(DAY))).ok()?;
        let micros = total.rem_euclid(i128::from(DAY)) as i64;
        let date = date_of_day_number(day)?;
        Some(Self { micros, ..date })
    }

    /// Rounded to so many fraction digits of a second, half up; `None` if out of range.
    pub(crate) fn rounded(self, digits: u8) -> Option<Self> {
        let rounded = round_micros(self.micros, digits);
        if rounded < DAY {
            return Some(Self { micros: rounded, ..self });
        }
        if self.has_zero_part() {
            return None;
        }
        Self::from_total_micros(i128::from(self.day_number()) * i128::from(DAY) + i128::from(DAY))
    }

    /// The date as `2020-01-02`.
    pub(crate) fn date_text(self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }

    /// The date and time as `2020-01-02 03:04:05.678`.
    pub(crate) fn text(self, digits: u8) -> String {
        let mut out = self.date_text();
        let (hour, minute, second) = (self.hour(), self.minute(), self.second());
        // Writing to a String cannot fail.
        let _ = write!(out, " {hour:02}:{minute:02}:{second:02}");
        push_fraction(&mut out, self.fraction(), digits);
        out
    }

    /// The date as the number 20200102.
    pub(crate) fn date_number(self) -> i64 {
        i64::from(self.year) * 10_000 + i64::from(self.month) * 100 + i64::from(self.day)
    }

    /// The date and time as the number 20200102030405.
    pub(crate) fn number(self) -> i64 {
        let clock = i64::from(self.hour()) * 10_000
            + i64::from(self.minute()) * 100
            + i64::from(self.second());
        self.date_number() * 1_000_000 + clock
    }
}

/// Microseconds rounded to so many fraction digits of a second, half away from zero.
pub(crate) fn round_micros(micros: i64, digits: u8) -> i64 {
    let unit = 10i64.pow(u32::from(6 - digits.min(6)));
    let half = if micros < 0 { -unit / 2 } else { unit / 2 };
    if unit == 1 { micros } else { (micros + half) / unit * unit }
}

fn push_fraction(out: &mut String, micros: u32, digits: u8) {
    if digits > 0 {
        let all = format!("{micros:06}");
        out.push('.');
        out.push_str(all.get(..usize::from(digits.min(6))).unwrap_or(&all));
    }
}

/// A time as `-838:59:59.000`.
pub(crate) fn time_text(micros: i64, digits: u8) -> String {
    let (sign, size) = (if micros < 0 { "-" } else { "" }, micros.unsigned_abs());
    let seconds = size / 1_000_000;
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    let mut out = format!("{sign}{hours:02}:{minutes:02}:{:02}", seconds % 60);
    push_fraction(&mut out, (size % 1_000_000) as u32, digits);
    out
}

/// A time as the number -8385959, without the fraction.
pub(crate) fn time_number(micros: i64) -> i64 {
    let seconds = micros / SECOND;
    seconds / 3_600 * 10_000 + seconds / 60 % 60 * 100 + seconds % 60
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_packed_in_order() {
        let texts = [
            "0000-00-00 00:00:00",
            "2020-00-00 00:00:00",
            "2020-01-01 00:00:00.000001",
            "2020-01-01 23:59:59",
            "2020-12-31 00:00:00",
            "9999-12-31 23:59:59.999999",
        ];
        let packed: Vec<i64> =
            texts.iter().map(|text| parse_moment(text).unwrap().moment.pack()).collect();
        assert!(packed.is_sorted());
        for (text, packed) in texts.iter().zip(packed) {
            let moment = Moment::unpack(packed);
            assert_eq!(moment.text(if text.contains('.') { 6 } else { 0 }), *text);
            assert_eq!(moment.pack(), packed);
        }
    }

    #[test]
    fn times_are_written_with_their_sign_and_digits() {
        assert_eq!(time_text(-LONGEST_TIME, 0), "-838:59:59");
        assert_eq!(time_text(1_500_000, 1), "00:00:01.5");
        assert_eq!(time_number(-3_723 * SECOND), -10_203);
    }
}
