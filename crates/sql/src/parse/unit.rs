//! The words for units of time.

/// The units of INTERVAL and EXTRACT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Microsecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    SecondMicrosecond,
    MinuteMicrosecond,
    MinuteSecond,
    HourMicrosecond,
    HourSecond,
    HourMinute,
    DayMicrosecond,
    DaySecond,
    DayMinute,
    DayHour,
    YearMonth,
}

const UNITS: &[(&str, Unit)] = &[
    ("MICROSECOND", Unit::Microsecond),
    ("SECOND", Unit::Second),
    ("MINUTE", Unit::Minute),
    ("HOUR", Unit::Hour),
    ("DAY", Unit::Day),
    ("WEEK", Unit::Week),
    ("MONTH", Unit::Month),
    ("QUARTER", Unit::Quarter),
    ("YEAR", Unit::Year),
    ("SECOND_MICROSECOND", Unit::SecondMicrosecond),
    ("MINUTE_MICROSECOND", Unit::MinuteMicrosecond),
    ("MINUTE_SECOND", Unit::MinuteSecond),
    ("HOUR_MICROSECOND", Unit::HourMicrosecond),
    ("HOUR_SECOND", Unit::HourSecond),
    ("HOUR_MINUTE", Unit::HourMinute),
    ("DAY_MICROSECOND", Unit::DayMicrosecond),
    ("DAY_SECOND", Unit::DaySecond),
    ("DAY_MINUTE", Unit::DayMinute),
    ("DAY_HOUR", Unit::DayHour),
    ("YEAR_MONTH", Unit::YearMonth),
];

impl Unit {
    /// The unit of this name, in any case, with or without `SQL_TSI_`.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_uppercase();
        let name = name.strip_prefix("SQL_TSI_").unwrap_or(&name);
        UNITS.iter().find(|(each, _)| *each == name).map(|(_, unit)| *unit)
    }
}
