//! INTERVAL: units, sizes, and adding them to dates.

use super::{DAY, Moment, SECOND, days_in_month};
use crate::parse::Unit;

impl Unit {
    /// The microseconds of each part of the unit, the smallest last; empty for months and years.
    fn parts(self) -> &'static [i64] {
        const MINUTE: i64 = 60 * SECOND;
        const HOUR: i64 = 60 * MINUTE;
        match self {
            Self::Microsecond => &[1],
            Self::Second => &[SECOND],
            Self::Minute => &[MINUTE],
            Self::Hour => &[HOUR],
            Self::Day => &[DAY],
            Self::Week => &[7 * DAY],
            Self::SecondMicrosecond => &[SECOND, 1],
            Self::MinuteMicrosecond => &[MINUTE, SECOND, 1],
            Self::MinuteSecond => &[MINUTE, SECOND],
            Self::HourMicrosecond => &[HOUR, MINUTE, SECOND, 1],
            Self::HourSecond => &[HOUR, MINUTE, SECOND],
            Self::HourMinute => &[HOUR, MINUTE],
            Self::DayMicrosecond => &[DAY, HOUR, MINUTE, SECOND, 1],
            Self::DaySecond => &[DAY, HOUR, MINUTE, SECOND],
            Self::DayMinute => &[DAY, HOUR, MINUTE],
            Self::DayHour => &[DAY, HOUR],
            Self::Month | Self::Quarter | Self::Year | Self::YearMonth => &[],
        }
    }

    /// Whether the unit is counted in months.
    pub(crate) fn is_months(self) -> bool {
        self.parts().is_empty()
    }

    /// Whether it has a part smaller than a day.
    pub(crate) fn has_clock(self) -> bool {
        !self.is_months() && !matches!(self, Self::Day | Self::Week)
    }

    /// Whether it has microseconds.
    pub(crate) fn has_micros(self) -> bool {
        self.parts().last() == Some(&1)
    }

    /// Whether its size is a single number.
    pub(crate) fn is_single(self) -> bool {
        self.parts().len() == 1 || matches!(self, Self::Month | Self::Quarter | Self::Year)
    }
}

/// The size of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Interval {
    /// Calendar months.
    Months(i64),
    /// Whole days.
    Days(i64),
    /// Microseconds.
    Micros(i128),
}

impl Interval {
    /// An interval of a single-part unit; `None` if it is out of range.
    pub(crate) fn of_number(number: i64, unit: Unit) -> Option<Self> {
        Some(match unit {
            Unit::Year => Self::Months(number.checked_mul(12)?),
            Unit::Quarter => Self::Months(number.checked_mul(3)?),
            Unit::Month => Self::Months(number),
            Unit::Week => Self::Days(number.checked_mul(7)?),
            Unit::Day => Self::Days(number),
            unit => Self::Micros(i128::from(number) * i128::from(*unit.parts().first()?)),
        })
    }

    /// An interval in microseconds.
    pub(crate) fn of_micros(micros: i128) -> Self {
        Self::Micros(micros)
    }

    /// Parses a text such as `1 02:03` for a unit with several parts: numbers with any separators.
    /// If there are fewer numbers than parts, they are the last parts.
    pub(crate) fn of_text(text: &str, unit: Unit) -> Option<Self> {
        let text = text.trim_start();
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let mut numbers: Vec<(i64, usize)> = Vec::new();
        for word in text.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty()) {
            numbers.push((word.parse().ok()?, word.len()));
        }
        let size = if unit == Unit::YearMonth {
            let (years, months) = match numbers.as_slice() {
                [(months, _)] => (0, *months),
                [(years, _), (months, _), ..] => (*years, *months),
                [] => (0, 0),
            };
            Self::Months(years.checked_mul(12)?.checked_add(months)?)
        } else {
            Self::of_parts(&numbers, unit)?
        };
        Some(if negative { size.negated() } else { size })
    }

    fn of_parts(numbers: &[(i64, usize)], unit: Unit) -> Option<Self> {
        let sizes = unit.parts();
        let numbers = numbers.get(..numbers.len().min(sizes.len()))?;
        let first = sizes.len() - numbers.len();
        let mut total: i128 = 0;
        for ((number, digits), size) in numbers.iter().zip(sizes.get(first..)?) {
            let mut number = i128::from(*number);
            if *size == 1 && *digits < 6 {
                number *= 10i128.pow(6 - *digits as u32);
            }
            total += number * i128::from(*size);
        }
        Some(Self::Micros(total))
    }

    /// The negated interval.
    pub(crate) fn negated(self) -> Self {
        match self {
            Self::Months(months) => Self::Months(-months),
            Self::Days(days) => Self::Days(-days),
            Self::Micros(micros) => Self::Micros(-micros),
        }
    }

    /// The date and time later by this interval, if it is in range.
    pub(crate) fn after(self, moment: Moment) -> Option<Moment> {
        match self {
            Self::Months(months) => after_months(moment, months),
            Self::Days(days) => {
                let total = i64::checked_add(moment.day_number(), days)?;
                let date = date_in_calendar(total)?;
                Some(Moment { micros: moment.micros, ..date })
            }
            Self::Micros(micros) => {
                let total = moment.total_micros().checked_add(micros)?;
                let day = i64::try_from(total.div_euclid(i128::from(DAY))).ok()?;
                let date = date_in_calendar(day)?;
                Some(Moment { micros: total.rem_euclid(i128::from(DAY)) as i64, ..date })
            }
        }
    }
}

fn date_in_calendar(day: i64) -> Option<Moment> {
    super::date_of_day_number(day).filter(|_| day > 0)
}

fn after_months(moment: Moment, months: i64) -> Option<Moment> {
    let from = i64::from(moment.year) * 12 + i64::from(moment.month) - 1;
    let total = from.checked_add(months)?;
    if !(0..120_000).contains(&total) {
        return None;
    }
    let (year, month) = ((total / 12) as u16, (total % 12 + 1) as u8);
    let day = moment.day.min(days_in_month(year, month));
    Some(Moment { year, month, day, micros: moment.micros })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_keep_to_the_calendar() {
        let last = Moment::date(2020, 1, 31);
        assert_eq!(Interval::Months(1).after(last), Some(Moment::date(2020, 2, 29)));
        assert_eq!(Interval::Months(-2).after(last), Some(Moment::date(2019, 11, 30)));
        assert_eq!(Interval::Months(120_000).after(last), None);
        assert_eq!(Interval::Days(1).after(last), Some(Moment::date(2020, 2, 1)));
    }

    #[test]
    fn texts_of_several_parts_are_read_from_the_right() {
        let micros = |text, unit| Interval::of_text(text, unit);
        let minute = 60 * i128::from(SECOND);
        assert_eq!(micros("1:30", Unit::MinuteSecond), Some(Interval::Micros(minute * 3 / 2)));
        assert_eq!(micros("30", Unit::MinuteSecond), Some(Interval::Micros(minute / 2)));
        assert_eq!(micros("-1 1", Unit::DayHour), Some(Interval::Micros(-25 * 60 * minute)));
        assert_eq!(micros("1.5", Unit::SecondMicrosecond), Some(Interval::Micros(1_500_000)));
        assert_eq!(micros("1-2", Unit::YearMonth), Some(Interval::Months(14)));
    }
}
