//! Dates and times: now, their parts, and their differences.

use jiff::tz::TimeZone;
use remora_mysql::{Collation, ErrorCode, messages};

use super::super::{
    call::{Call, TypeContext},
    decimal::Dec,
    function::{Caching, Definition},
    temporal::{
        self, DAY, MONTHS, Moment, SECOND, WEEKDAYS, date_of_day_number, last_day, local_of_utc,
        parse_zone, round_micros, utc_of_local, year_week,
    },
    types::ExprType,
    value::SqlValue,
};
use crate::{Result, SqlType, parse::Unit};

/// The last moment that MySQL converts between time zones, in microseconds since 1970.
const LAST_TIMESTAMP: i64 = 32_536_771_200 * SECOND - 1;

/// The function that gives the time in UTC of a local time of the session.
pub(crate) const INSTANT: &str = "#instant";

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("now", 1, 1, now_type, now).cached(Caching::PerStatement),
    Definition::new("sysdate", 1, 1, now_type, sysdate).volatile(),
    Definition::new("utc_timestamp", 1, 1, now_type, utc_timestamp).cached(Caching::PerStatement),
    Definition::new("current_date", 0, 0, date_type, |call, _| Ok(SqlValue::Date(call.today())))
        .cached(Caching::PerStatement),
    Definition::new("utc_date", 0, 0, date_type, utc_date).cached(Caching::PerStatement),
    Definition::new("current_time", 1, 1, clock_type, current_time).cached(Caching::PerStatement),
    Definition::new("utc_time", 1, 1, clock_type, utc_time).cached(Caching::PerStatement),
    // DATE() is a cast in MySQL: SHOW CREATE TABLE prints it as one.
    Definition::new("date", 1, 1, date_type, super::casts::date),
    Definition::new("time", 1, 1, time_of_type, time),
    Definition::new("year", 1, 1, year_type, |c, a| part(c, a, |m| i64::from(m.year))),
    Definition::new("month", 1, 1, int::<3>, |c, a| part(c, a, |m| i64::from(m.month))),
    Definition::new("dayofmonth", 1, 1, int::<3>, |c, a| part(c, a, |m| i64::from(m.day))),
    Definition::new("quarter", 1, 1, int::<2>, |c, a| part(c, a, |m| (i64::from(m.month) + 2) / 3)),
    Definition::new("dayofweek", 1, 1, int::<2>, |c, a| {
        day_part(c, a, |m| (temporal::weekday(m.day_number()) + 1) % 7 + 1)
    }),
    Definition::new("weekday", 1, 1, int::<2>, |c, a| {
        day_part(c, a, |m| temporal::weekday(m.day_number()))
    }),
    Definition::new("dayofyear", 1, 1, int::<4>, |c, a| {
        day_part(c, a, |m| m.day_number() - temporal::day_number(i64::from(m.year), 1, 1) + 1)
    }),
    Definition::new("week", 1, 2, int::<3>, week),
    Definition::new("weekofyear", 1, 1, int::<3>, |c, a| day_part(c, a, |m| temporal::week(m, 3))),
    Definition::new("yearweek", 1, 2, int::<7>, yearweek),
    Definition::new("hour", 1, 1, int::<4>, |c, a| clock(c, a, |t| t / (3_600 * SECOND))),
    Definition::new("minute", 1, 1, int::<3>, |c, a| clock(c, a, |t| t / (60 * SECOND) % 60)),
    Definition::new("second", 1, 1, int::<3>, |c, a| clock(c, a, |t| t / SECOND % 60)),
    Definition::new("microsecond", 1, 1, int::<21>, |c, a| clock(c, a, |t| t % SECOND)),
    Definition::new("time_to_sec", 1, 1, int::<10>, time_to_sec),
    Definition::new("to_days", 1, 1, int::<8>, |c, a| day_part(c, a, |m| m.day_number())),
    Definition::new("to_seconds", 1, 1, int::<21>, |c, a| {
        day_part(c, a, |m| m.day_number() * 86_400 + m.micros / SECOND)
    }),
    Definition::new("from_days", 1, 1, date_type, from_days),
    Definition::new("last_day", 1, 1, date_type, last_day_of),
    Definition::new("monthname", 1, 1, name_type, monthname),
    Definition::new("dayname", 1, 1, name_type, dayname),
    Definition::new("makedate", 2, 2, date_type, makedate),
    Definition::new("maketime", 3, 3, maketime_type, maketime),
    Definition::new("sec_to_time", 1, 1, sec_to_time_type, sec_to_time),
    Definition::new("datediff", 2, 2, int::<9>, datediff),
    Definition::new("timestampdiff", 3, 3, int::<21>, timestampdiff),
    Definition::new("extract", 2, 2, extract_type, extract),
    Definition::new("period_add", 2, 2, int::<21>, period_add),
    Definition::new("period_diff", 2, 2, int::<21>, period_diff),
    Definition::new("convert_tz", 3, 3, convert_tz_type, convert_tz),
    Definition::new("unix_timestamp", 0, 1, unix_type, unix_timestamp)
        .cached(Caching::PerStatement),
    Definition::new(INSTANT, 1, 1, instant_type, instant),
];

fn date_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::date())
}

fn int<const LENGTH: u32>(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::int(LENGTH))
}

fn year_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::column(SqlType::Year, true, 4, Collation::BINARY))
}

fn name_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::text(9, typing.collation))
}

fn digits(typing: &TypeContext<'_>, index: usize) -> u8 {
    typing.constant(index).and_then(|digits| u8::try_from(digits).ok()).unwrap_or(0).min(6)
}

fn now_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::date_time(digits(typing, 0)).not_null())
}

fn clock_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let kind = ExprType::time(digits(typing, 0)).not_null();
    Ok(ExprType { length: kind.length - 2, ..kind })
}

/// Excess digits are truncated, not rounded.
fn cut<'a>(moment: Moment, call: &Call<'_>) -> SqlValue<'a> {
    let digits = call.result.scale();
    let unit = 10i64.pow(u32::from(6 - digits.min(6)));
    SqlValue::DateTime(Moment { micros: moment.micros / unit * unit, ..moment }, digits)
}

fn now<'a>(call: &Call<'_>, _args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(cut(call.now(), call))
}

fn sysdate<'a>(call: &Call<'_>, _args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let micros = jiff::Timestamp::now().as_microsecond();
    Ok(SqlValue::or_null(local_of_utc(micros, &call.time_zone()), |moment| cut(moment, call)))
}

fn utc(call: &Call<'_>) -> Moment {
    local_of_utc(call.now_micros(), &jiff::tz::TimeZone::UTC).unwrap_or_default()
}

fn utc_timestamp<'a>(call: &Call<'_>, _args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(cut(utc(call), call))
}

fn utc_date<'a>(call: &Call<'_>, _args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(SqlValue::Date(utc(call).midnight()))
}

fn cut_time<'a>(micros: i64, call: &Call<'_>) -> SqlValue<'a> {
    let digits = call.result.scale();
    let unit = 10i64.pow(u32::from(6 - digits.min(6)));
    SqlValue::Time(micros / unit * unit, digits)
}

fn current_time<'a>(call: &Call<'_>, _args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(cut_time(call.now().micros, call))
}

fn utc_time<'a>(call: &Call<'_>, _args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(cut_time(utc(call).micros, call))
}

fn moment(call: &Call<'_>, args: &[SqlValue<'_>]) -> Option<Moment> {
    args.first()?.moment(call)
}

fn time_of_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let kind = typing.get(0);
    let digits = match typing.constant_text(0) {
        Some(text) => temporal::parse_time(text).map_or(0, |parsed| parsed.digits),
        None if kind.is_string() || kind.is_float() => 6,
        None => kind.scale().min(6),
    };
    Ok(ExprType::time(digits))
}

fn time<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let digits = call.result.scale();
    let time = args.first().and_then(|value| value.time(call));
    Ok(SqlValue::or_null(time, |(micros, _)| SqlValue::Time(round_micros(micros, digits), digits)))
}

fn part<'a>(call: &Call<'_>, args: &[SqlValue<'a>], of: fn(Moment) -> i64) -> Result<SqlValue<'a>> {
    Ok(SqlValue::or_null(moment(call, args), |moment| SqlValue::Int(of(moment))))
}

/// A date part that requires a date without zero parts.
fn day_part<'a>(
    call: &Call<'_>,
    args: &[SqlValue<'a>],
    of: fn(Moment) -> i64,
) -> Result<SqlValue<'a>> {
    let moment = moment(call, args).filter(|moment| !moment.has_zero_part());
    Ok(SqlValue::or_null(moment, |moment| SqlValue::Int(of(moment))))
}

fn clock<'a>(call: &Call<'_>, args: &[SqlValue<'a>], of: fn(i64) -> i64) -> Result<SqlValue<'a>> {
    let time = args.first().and_then(|value| value.time(call));
    Ok(SqlValue::or_null(time, |(micros, _)| SqlValue::Int(of(micros.abs()))))
}

fn mode(call: &Call<'_>, args: &[SqlValue<'_>]) -> u8 {
    match args.get(1) {
        Some(mode) => (mode.count(call) & 7) as u8,
        None => call.context.map_or(0, |context| context.week_format) & 7,
    }
}

fn week<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let moment = moment(call, args).filter(|moment| !moment.has_zero_part());
    let without_mode = args.get(1).is_some_and(SqlValue::is_null);
    Ok(SqlValue::or_null(moment, |moment| match without_mode {
        true => SqlValue::Int(0),
        false => SqlValue::Int(temporal::week(moment, mode(call, args))),
    }))
}

fn yearweek<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let moment = moment(call, args).filter(|moment| !moment.has_zero_part());
    let mode = args.get(1).map_or(0, |mode| (mode.count(call) & 7) as u8);
    let without_mode = args.get(1).is_some_and(SqlValue::is_null);
    Ok(SqlValue::or_null(moment, |moment| {
        if without_mode {
            return SqlValue::Int(0);
        }
        let (year, week) = year_week(moment, mode, true);
        SqlValue::Int(year * 100 + week)
    }))
}

fn time_to_sec<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let time = args.first().and_then(|value| value.time(call));
    Ok(SqlValue::or_null(time, |(micros, _)| SqlValue::Int(micros / SECOND)))
}

fn from_days<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let days = args.first().filter(|value| !value.is_null()).map(|value| value.count(call));
    let Some(days) = days else { return Ok(SqlValue::Null) };
    let date = match days {
        // In the year 0, as FROM_DAYS counts, February has 28 days.
        1..=365 => date_of_day_number(days + 365).map(|date| Moment { year: 0, ..date }),
        days => date_of_day_number(days).filter(|date| !date.is_zero_date()),
    };
    if date.is_none() {
        call.warn(ErrorCode::DateOutOfRange, || {
            messages::value_out_of_range("DATE", format!("from_days({days})"))
        });
    }
    Ok(SqlValue::or_null(date, SqlValue::Date))
}

fn last_day_of<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(SqlValue::or_null(moment(call, args).and_then(last_day), SqlValue::Date))
}

fn monthname<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let month = moment(call, args).and_then(|moment| usize::from(moment.month).checked_sub(1));
    Ok(SqlValue::or_null(month.and_then(|month| MONTHS.get(month)), |name| SqlValue::text(*name)))
}

fn dayname<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let moment = moment(call, args).filter(|moment| !moment.has_zero_part());
    let day =
        moment.and_then(|moment| usize::try_from(temporal::weekday(moment.day_number())).ok());
    Ok(SqlValue::or_null(day.and_then(|day| WEEKDAYS.get(day)), |name| SqlValue::text(*name)))
}

fn makedate<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [year, day] = args else { return Ok(SqlValue::Null) };
    if year.is_null() || day.is_null() {
        return Ok(SqlValue::Null);
    }
    let (year, day) = (year.count(call), day.count(call));
    let year = match year {
        0..=69 => year + 2_000,
        70..=99 => year + 1_900,
        year => year,
    };
    let possible = day > 0 && (0..10_000).contains(&year);
    let first = temporal::day_number(year, 1, 1);
    let date = possible.then(|| date_of_day_number(first.checked_add(day)? - 1)).flatten();
    Ok(SqlValue::or_null(date, SqlValue::Date))
}

fn maketime_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let kind = typing.get(2);
    let digits = if kind.is_string() || kind.is_float() { 6 } else { kind.scale().min(6) };
    Ok(ExprType::time(digits))
}

fn seconds_in_micros(value: &SqlValue<'_>, call: &Call<'_>) -> i64 {
    let exact = match value {
        SqlValue::Text(_) | SqlValue::Double(_) => Dec::from_double(value.double(call)),
        value => value.decimal(call),
    };
    let micros = exact.rescaled(6).and_then(|exact| exact.units.to_i128());
    i64::try_from(micros.unwrap_or(i128::MAX)).unwrap_or(i64::MAX)
}

fn maketime<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [hour, minute, second] = args else { return Ok(SqlValue::Null) };
    if args.iter().any(SqlValue::is_null) {
        return Ok(SqlValue::Null);
    }
    let (hour, minute) = (hour.count(call), minute.count(call));
    let micros = seconds_in_micros(second, call);
    if !(0..60).contains(&minute) || !(0..60 * SECOND).contains(&micros) {
        return Ok(SqlValue::Null);
    }
    let hours = hour.unsigned_abs().min(839) as i64;
    let size = (hours * 3_600 + minute * 60) * SECOND + micros;
    let size = size.min(temporal::LONGEST_TIME);
    Ok(SqlValue::Time(if hour < 0 { -size } else { size }, call.result.scale()))
}

fn sec_to_time_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let kind = typing.get(0);
    let digits = if kind.is_string() || kind.is_float() { 6 } else { kind.scale().min(6) };
    Ok(ExprType::time(digits))
}

fn sec_to_time<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let value = args.first().filter(|value| !value.is_null());
    let most = temporal::LONGEST_TIME;
    Ok(SqlValue::or_null(value, |value| {
        SqlValue::Time(seconds_in_micros(value, call).clamp(-most, most), call.result.scale())
    }))
}

fn datediff<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [a, b] = args else { return Ok(SqlValue::Null) };
    let real = |value: &SqlValue<'_>| value.moment(call).filter(|moment| !moment.has_zero_part());
    Ok(SqlValue::or_null(real(a).zip(real(b)), |(a, b)| {
        SqlValue::Int(a.day_number() - b.day_number())
    }))
}

fn timestampdiff<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [unit, a, b] = args else { return Ok(SqlValue::Null) };
    let unit = Unit::by_name(&unit.string().unwrap_or_default());
    let real = |value: &SqlValue<'_>| value.moment(call).filter(|moment| !moment.has_zero_part());
    let (Some(unit), Some((a, b))) = (unit, real(a).zip(real(b))) else {
        return Ok(SqlValue::Null);
    };
    let micros = b.total_micros() - a.total_micros();
    let second = i128::from(SECOND);
    let whole = match unit {
        Unit::Microsecond => micros,
        Unit::Second => micros / second,
        Unit::Minute => micros / (60 * second),
        Unit::Hour => micros / (3_600 * second),
        Unit::Day => micros / i128::from(DAY),
        Unit::Week => micros / i128::from(7 * DAY),
        Unit::Month => i128::from(months_between(a, b)),
        Unit::Quarter => i128::from(months_between(a, b) / 3),
        _ => i128::from(months_between(a, b) / 12),
    };
    Ok(SqlValue::Int(i64::try_from(whole).unwrap_or(i64::MAX)))
}

/// The number of whole months between two dates.
fn months_between(a: Moment, b: Moment) -> i64 {
    let (early, late, sign) = if a <= b { (a, b, 1) } else { (b, a, -1) };
    let count = |moment: Moment| i64::from(moment.year) * 12 + i64::from(moment.month);
    let not_full = (late.day, late.micros) < (early.day, early.micros);
    sign * (count(late) - count(early) - i64::from(not_full))
}

fn extract_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let unit = typing.constant_text(0).and_then(Unit::by_name);
    Ok(ExprType::int(match unit {
        Some(Unit::Year) => 5,
        Some(Unit::YearMonth | Unit::Microsecond) => 7,
        Some(Unit::Quarter) => 2,
        Some(Unit::Hour) => 4,
        Some(Unit::Month | Unit::Week | Unit::Day | Unit::Minute | Unit::Second) => 3,
        Some(Unit::MinuteSecond) => 5,
        Some(Unit::HourMinute) => 6,
        Some(Unit::HourSecond) => 8,
        Some(Unit::DayHour | Unit::SecondMicrosecond) => 9,
        Some(Unit::DayMinute | Unit::MinuteMicrosecond) => 11,
        _ => 21,
    }))
}

fn extract<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [unit, value] = args else { return Ok(SqlValue::Null) };
    let Some(unit) = Unit::by_name(&unit.string().unwrap_or_default()) else {
        return Ok(SqlValue::Null);
    };
    let of_date = matches!(
        unit,
        Unit::Year | Unit::YearMonth | Unit::Quarter | Unit::Month | Unit::Week | Unit::Day
    );
    if of_date {
        return Ok(SqlValue::or_null(value.moment(call), |moment| {
            let (year, month) = (i64::from(moment.year), i64::from(moment.month));
            SqlValue::Int(match unit {
                Unit::Year => year,
                Unit::YearMonth => year * 100 + month,
                Unit::Quarter => (month + 2) / 3,
                Unit::Month => month,
                Unit::Week => temporal::week(moment, mode(call, &[])),
                _ => i64::from(moment.day),
            })
        }));
    }
    let found = day_and_clock(call, value);
    Ok(SqlValue::or_null(found, |(day, micros)| SqlValue::Int(clock_parts(unit, day, micros))))
}

/// The day of the month and the microseconds of its time. A time has the day 0.
pub(super) fn day_and_clock(call: &Call<'_>, value: &SqlValue<'_>) -> Option<(i64, i64)> {
    /// The least number that is read as a date.
    const LEAST_DATE: u128 = 10_000;
    let is_date = match value {
        SqlValue::DateTime(..) | SqlValue::Date(_) => true,
        SqlValue::Time(..) => false,
        SqlValue::Text(text) => {
            let is_whole = |text| temporal::parse_moment(text).is_none_or(|parsed| parsed.complete);
            temporal::is_like_date(text) && is_whole(text)
        }
        number if number.is_number() => {
            let whole = number.integer(call);
            whole > 0 && whole.unsigned_abs() >= LEAST_DATE
        }
        _ => false,
    };
    match is_date {
        true => value.moment(call).map(|moment| (i64::from(moment.day), moment.micros)),
        false => value.time(call).map(|(micros, _)| (0, micros)),
    }
}

fn clock_parts(unit: Unit, day: i64, micros: i64) -> i64 {
    let size = micros.abs();
    let (hour, minute) = (size / (3_600 * SECOND), size / (60 * SECOND) % 60);
    let (second, fraction) = (size / SECOND % 60, size % SECOND);
    let number = match unit {
        Unit::Hour => hour,
        Unit::Minute => minute,
        Unit::Second => second,
        Unit::Microsecond => fraction,
        Unit::DayHour => day * 100 + hour,
        Unit::DayMinute => day * 10_000 + hour * 100 + minute,
        Unit::DaySecond => day * 1_000_000 + hour * 10_000 + minute * 100 + second,
        Unit::HourMinute => hour * 100 + minute,
        Unit::HourSecond => hour * 10_000 + minute * 100 + second,
        Unit::MinuteSecond => minute * 100 + second,
        Unit::DayMicrosecond => {
            (day * 1_000_000 + hour * 10_000 + minute * 100 + second) * SECOND + fraction
        }
        Unit::HourMicrosecond => (hour * 10_000 + minute * 100 + second) * SECOND + fraction,
        Unit::MinuteMicrosecond => (minute * 100 + second) * SECOND + fraction,
        _ => second * SECOND + fraction,
    };
    if micros < 0 { -number } else { number }
}

/// The months since the year 0 of a period YYMM or YYYYMM.
fn period_months(period: i64) -> Option<i64> {
    let (year, month) = (period / 100, period % 100);
    let year = match year {
        0..=69 => year + 2_000,
        70..=99 => year + 1_900,
        year => year,
    };
    (period > 0 && (1..=12).contains(&month)).then_some(year * 12 + month - 1)
}

fn wrong_period(name: &str) -> crate::Error {
    crate::Error::new(ErrorCode::WrongArguments, messages::incorrect_arguments(name))
}

fn period_add<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [period, months] = args else { return Ok(SqlValue::Null) };
    if args.iter().any(SqlValue::is_null) {
        return Ok(SqlValue::Null);
    }
    let start = period_months(period.count(call)).ok_or_else(|| wrong_period("period_add"))?;
    let total = start.saturating_add(months.count(call));
    Ok(SqlValue::Int(total / 12 * 100 + total % 12 + 1))
}

fn period_diff<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [a, b] = args else { return Ok(SqlValue::Null) };
    if args.iter().any(SqlValue::is_null) {
        return Ok(SqlValue::Null);
    }
    let months = |value: &SqlValue<'_>| {
        period_months(value.count(call)).ok_or_else(|| wrong_period("period_diff"))
    };
    Ok(SqlValue::Int(months(a)? - months(b)?))
}

fn convert_tz_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let kind = typing.get(0);
    let digits = match typing.constant_text(0) {
        Some(text) => temporal::parse_moment(text).map_or(0, |parsed| parsed.digits),
        None if kind.is_string() => 6,
        None => kind.scale().min(6),
    };
    Ok(ExprType::date_time(digits))
}

fn convert_tz<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [value, from, to] = args else { return Ok(SqlValue::Null) };
    let zone = |value: &SqlValue<'_>| value.string().and_then(|name| parse_zone(&name));
    let (Some(moment), Some((from, to))) = (value.moment(call), zone(from).zip(zone(to))) else {
        return Ok(SqlValue::Null);
    };
    if moment.has_zero_part() {
        return Ok(SqlValue::Null);
    }
    // Beyond the timestamps of MySQL, the first second of 1970 to 3001-01-18 23:59:59, the time stays as it is.
    let utc = utc_of_local(moment, &from);
    let utc = utc.filter(|utc| (SECOND..=LAST_TIMESTAMP).contains(utc));
    let shifted = utc.and_then(|utc| local_of_utc(utc, &to)).unwrap_or(moment);
    Ok(SqlValue::DateTime(shifted, call.result.scale()))
}

fn instant_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::date_time(typing.get(0).scale().min(6)))
}

/// The time in UTC of a local time.
fn instant<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(local) = args.first().and_then(|value| value.moment(call)) else {
        return Ok(SqlValue::Null);
    };
    let utc = utc_of_local(local, &call.time_zone());
    let utc = utc.and_then(|utc| local_of_utc(utc, &TimeZone::UTC));
    // The zero is no time of a zone.
    Ok(SqlValue::DateTime(utc.unwrap_or(local), call.result.scale()))
}

fn unix_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let kind = typing.get(0);
    let digits = match typing.constant_text(0) {
        _ if typing.types.is_empty() => 0,
        Some(text) => temporal::parse_moment(text).map_or(6, |parsed| parsed.digits),
        None if kind.is_string() || kind.is_float() => 6,
        None => kind.scale().min(6),
    };
    Ok(match digits {
        0 => ExprType::int(21),
        digits => ExprType::decimal(11 + u32::from(digits), u32::from(digits)),
    })
}

fn unix_timestamp<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(value) = args.first() else {
        return Ok(SqlValue::Int(call.now_micros() / SECOND));
    };
    if value.is_null() {
        return Ok(SqlValue::Null);
    }
    let utc = value.moment(call).and_then(|moment| utc_of_local(moment, &call.time_zone()));
    // Dates before 1970 and invalid dates give 0.
    let micros = utc.filter(|utc| *utc >= 0).unwrap_or(0);
    let units = datafusion::arrow::datatypes::i256::from_i128(i128::from(micros));
    let exact = Dec { units, scale: 6 };
    Ok(SqlValue::or_null(exact.cut(call.result.scale()), SqlValue::Dec))
}
