//! Adds intervals to dates and times, and formats and parses them.

use remora_mysql::{ErrorCode, messages};

use super::{
    super::{
        call::{Call, TypeContext},
        decimal::Dec,
        function::Definition,
        temporal::{
            self, DAY, Interval, LONGEST_TIME, Moment, SECOND, format_date, local_of_utc,
            parse_by_format, round_micros,
        },
        types::{ExprType, UNBOUNDED},
        value::SqlValue,
    },
    dates::day_and_clock,
};
use crate::{Result, SqlType, parse::Unit};

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("date_add", 3, 3, add_type, |call, args| date_add(call, args, false)),
    Definition::new("date_sub", 3, 3, add_type, |call, args| date_add(call, args, true)),
    Definition::new("linear_time", 1, 1, linear_type, linear),
    Definition::new("timestampadd", 3, 3, timestampadd_type, timestampadd),
    Definition::new("addtime", 2, 2, addtime_type, |call, args| addtime(call, args, 1)),
    Definition::new("subtime", 2, 2, addtime_type, |call, args| addtime(call, args, -1)),
    Definition::new("timediff", 2, 2, timediff_type, timediff),
    Definition::new("timestamp", 1, 2, timestamp_type, timestamp),
    Definition::new("date_format", 2, 2, format_type, date_format),
    Definition::new("time_format", 2, 2, format_type, time_format),
    Definition::new("str_to_date", 2, 2, str_to_date_type, str_to_date),
    Definition::new("from_unixtime", 1, 2, from_unixtime_type, from_unixtime),
    Definition::new("get_format", 2, 2, get_format_type, get_format),
];

/// The fraction digits of a value's seconds.
fn digits_of(typing: &TypeContext<'_>, index: usize) -> u8 {
    let kind = typing.get(index);
    match typing.constant_text(index) {
        Some(text) => temporal::parse_moment(text)
            .map(|parsed| parsed.digits)
            .or_else(|| temporal::parse_time(text).map(|parsed| parsed.digits))
            .unwrap_or(0),
        None if kind.is_string() || kind.is_float() => 6,
        None => kind.scale().min(6),
    }
}

fn unit_of(typing: &TypeContext<'_>, index: usize) -> Option<Unit> {
    typing.constant_text(index).and_then(Unit::by_name)
}

fn added_type(
    typing: &TypeContext<'_>,
    kind: &ExprType,
    unit: Option<Unit>,
    size: usize,
) -> ExprType {
    let Some(unit) = unit else { return ExprType::null() };
    let size_digits = match unit {
        unit if unit.has_micros() => 6,
        Unit::Second => match typing.constant_text(size) {
            Some(text) if text.contains('.') => 6,
            _ if typing.get(size).scale() > 0 => 6,
            _ => 0,
        },
        _ => 0,
    };
    let digits = kind.scale().max(size_digits).min(6);
    match kind.kind {
        SqlType::Date if !unit.has_clock() => ExprType::date(),
        SqlType::Date => ExprType::date_time(size_digits),
        SqlType::DateTime(_) | SqlType::Timestamp(_) => ExprType::date_time(digits),
        SqlType::Time(_) if unit.has_clock() => ExprType::time(digits),
        SqlType::Time(_) => ExprType::date_time(digits),
        _ => {
            let text = ExprType::text(29, typing.collation);
            ExprType { kind: SqlType::Char, ..text }
        }
    }
}

fn add_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(added_type(typing, &typing.get(0), unit_of(typing, 2), 1))
}

fn timestampadd_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(added_type(typing, &typing.get(2), unit_of(typing, 0), 1))
}

fn interval(call: &Call<'_>, size: &SqlValue<'_>, unit: Unit) -> Option<Interval> {
    if size.is_null() {
        return None;
    }
    if let SqlValue::Text(text) = size {
        return interval_of_text(text, unit);
    }
    if !unit.is_single() {
        let text = match size {
            SqlValue::Dec(number) => number.to_string().replace('.', " "),
            value => value.string()?.into_owned(),
        };
        return Interval::of_text(&text, unit);
    }
    if let SqlValue::Uint(size) = size {
        let size = signed(*size);
        return match unit {
            Unit::Second => Some(Interval::of_micros(i128::from(size) * i128::from(SECOND))),
            unit => Interval::of_number(size, unit),
        };
    }
    if unit == Unit::Second {
        let micros = size.decimal(call).rescaled(6)?.units.to_i128()?;
        return Some(Interval::of_micros(micros));
    }
    Interval::of_number(i64::try_from(size.integer(call)).ok()?, unit)
}

/// An unsigned size beyond the signed integers is taken as a negative one, as `-2 | 5` is.
fn signed(size: u64) -> i64 {
    size.cast_signed()
}

/// Parses an interval's size given as text; `None` if it is out of range.
pub(crate) fn interval_of_text(text: &str, unit: Unit) -> Option<Interval> {
    if !unit.is_single() {
        return Interval::of_text(text, unit);
    }
    if unit == Unit::Second {
        let micros = Dec::parse_prefix(text).0.rescaled(6)?.units.to_i128()?;
        return Some(Interval::of_micros(micros));
    }
    let number = super::super::number::integer_prefix(text).0;
    let number = i64::try_from(number).or_else(|_| u64::try_from(number).map(signed)).ok()?;
    Interval::of_number(number, unit)
}

fn linear_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::int(20))
}

/// A time, or a date and time since the year 0, in microseconds.
fn linear<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let micros = match args.first() {
        Some(SqlValue::Time(micros, _)) => Some(*micros),
        Some(value) => {
            value.moment(call).and_then(|moment| i64::try_from(moment.total_micros()).ok())
        }
        None => None,
    };
    Ok(SqlValue::or_null(micros, SqlValue::Int))
}

fn date_add<'a>(call: &Call<'_>, args: &[SqlValue<'a>], minus: bool) -> Result<SqlValue<'a>> {
    let [value, size, unit] = args else { return Ok(SqlValue::Null) };
    let unit = unit.string().and_then(|name| Unit::by_name(&name));
    let Some(unit) = unit.filter(|_| !value.is_null()) else { return Ok(SqlValue::Null) };
    let Some(interval) = interval(call, size, unit) else {
        return Ok(if size.is_null() { SqlValue::Null } else { overflow(call) });
    };
    let interval = if minus { interval.negated() } else { interval };
    Ok(added(call, value, interval, unit))
}

fn timestampadd<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [unit, size, value] = args else { return Ok(SqlValue::Null) };
    date_add(call, &[value.clone(), size.clone(), unit.clone()], false)
}

fn overflow<'a>(call: &Call<'_>) -> SqlValue<'a> {
    call.warn(ErrorCode::DateOverflow, || messages::DATE_OVERFLOW.to_owned());
    SqlValue::Null
}

fn added<'a>(
    call: &Call<'_>,
    value: &SqlValue<'_>,
    interval: Interval,
    unit: Unit,
) -> SqlValue<'a> {
    if let (SqlValue::Time(micros, _), SqlType::Time(digits)) = (value, call.result.kind) {
        let Interval::Micros(more) = interval else { return SqlValue::Null };
        let total = i128::from(*micros) + more;
        let Ok(total) = i64::try_from(total) else { return overflow(call) };
        if total.abs() > LONGEST_TIME {
            return overflow(call);
        }
        return SqlValue::Time(total, digits);
    }
    let Some((moment, has_clock, digits)) = value.moment_with_clock(call) else {
        return SqlValue::Null;
    };
    let real = match interval {
        Interval::Months(_) => moment.month > 0,
        _ => !moment.has_zero_part(),
    };
    if !real {
        value.warn_incorrect(call, "datetime");
        return SqlValue::Null;
    }
    let Some(later) = interval.after(moment) else { return overflow(call) };
    match call.result.kind {
        SqlType::Date => SqlValue::Date(later.midnight()),
        SqlType::DateTime(digits) => SqlValue::DateTime(later, digits),
        _ if !has_clock && !unit.has_clock() => SqlValue::text(later.date_text()),
        _ => {
            let shown = if later.fraction() > 0 || digits > 0 { 6 } else { 0 };
            SqlValue::text(later.text(shown))
        }
    }
}

fn addtime_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let kind = typing.get(0);
    let digits = digits_of(typing, 0).max(digits_of(typing, 1));
    Ok(match kind.kind {
        SqlType::DateTime(_) | SqlType::Timestamp(_) => ExprType::date_time(digits),
        SqlType::Date => ExprType::date_time(digits),
        SqlType::Time(_) => ExprType::time(digits),
        _ => ExprType { kind: SqlType::Char, ..ExprType::text(29, typing.collation) },
    })
}

fn addtime<'a>(call: &Call<'_>, args: &[SqlValue<'a>], sign: i64) -> Result<SqlValue<'a>> {
    let [value, more] = args else { return Ok(SqlValue::Null) };
    if args.iter().any(SqlValue::is_null) {
        return Ok(SqlValue::Null);
    }
    let Some((more, _)) = more.time(call) else { return Ok(SqlValue::Null) };
    let more = more * sign;
    let digits = call.result.scale();
    if is_date(call, value) {
        let Some(moment) = value.moment(call) else { return Ok(SqlValue::Null) };
        if moment.has_zero_part() {
            value.warn_truncated(call, "date");
            return Ok(SqlValue::Null);
        }
        let total = moment.total_micros() + i128::from(more);
        let Some(later) = Moment::from_total_micros(total) else { return Ok(overflow(call)) };
        return Ok(match call.result.kind {
            SqlType::DateTime(_) => SqlValue::DateTime(later, digits),
            _ => SqlValue::text(later.text(if later.fraction() > 0 { 6 } else { 0 })),
        });
    }
    let Some((micros, _)) = value.time(call) else { return Ok(SqlValue::Null) };
    let total = (micros + more).clamp(-LONGEST_TIME, LONGEST_TIME);
    Ok(match call.result.kind {
        SqlType::Time(_) => SqlValue::Time(total, digits),
        _ => SqlValue::text(temporal::time_text(total, if total % SECOND != 0 { 6 } else { 0 })),
    })
}

/// Whether a value is a date, with or without a time of day, where a time is expected. A number is one if it is no time.
fn is_date(call: &Call<'_>, value: &SqlValue<'_>) -> bool {
    match value {
        SqlValue::Date(_) | SqlValue::DateTime(..) => true,
        SqlValue::Text(text) => {
            let is_whole = |text| temporal::parse_moment(text).is_none_or(|parsed| parsed.complete);
            temporal::is_like_date(text) && is_whole(text)
        }
        number if number.is_number() => {
            number.integer(call) > i128::from(temporal::time_number(LONGEST_TIME))
        }
        _ => false,
    }
}

fn timediff_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::time(digits_of(typing, 0).max(digits_of(typing, 1))))
}

fn timediff<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [a, b] = args else { return Ok(SqlValue::Null) };
    let total = |value: &SqlValue<'_>| -> Option<(bool, i128)> {
        match is_date(call, value) {
            true => value.moment(call).map(|moment| (true, moment.total_micros())),
            false => value.time(call).map(|(micros, _)| (false, i128::from(micros))),
        }
    };
    let (Some((a_dated, a)), Some((b_dated, b))) = (total(a), total(b)) else {
        return Ok(SqlValue::Null);
    };
    if a_dated != b_dated {
        return Ok(SqlValue::Null);
    }
    let most = i128::from(LONGEST_TIME);
    let span = (a - b).clamp(-most, most);
    Ok(SqlValue::Time(i64::try_from(span).unwrap_or(0), call.result.scale()))
}

fn timestamp_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let first = digits_of(typing, 0);
    let digits = if typing.types.len() > 1 { first.max(digits_of(typing, 1)) } else { first };
    Ok(ExprType::date_time(digits))
}

fn timestamp<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let digits = call.result.scale();
    let Some(moment) = args.first().and_then(|value| value.moment(call)) else {
        return Ok(SqlValue::Null);
    };
    let more = match args.get(1) {
        None => 0,
        Some(value) => match value.time(call) {
            Some((micros, _)) => micros,
            None => return Ok(SqlValue::Null),
        },
    };
    let total = moment.total_micros() + i128::from(more);
    let later = if more == 0 { Some(moment) } else { Moment::from_total_micros(total) };
    Ok(SqlValue::or_null(later, |moment| SqlValue::DateTime(moment, digits)))
}

/// The longest text that a format can produce.
fn format_length(format: Option<&str>) -> u32 {
    let Some(format) = format else { return UNBOUNDED / 1_024 };
    let mut length = 0;
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        length += match letter {
            '%' => match letters.next() {
                Some('M' | 'W') => 64,
                Some('D' | 'Y' | 'X' | 'x') => 4,
                Some('a' | 'b') => 32,
                Some('j') => 3,
                Some('f') => 6,
                Some('r') => 11,
                Some('T') => 8,
                Some('H' | 'k') => 7,
                _ => 2,
            },
            _ => 1,
        };
    }
    length
}

fn format_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::text(format_length(typing.constant_text(1)), typing.collation))
}

fn date_format<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [value, format] = args else { return Ok(SqlValue::Null) };
    let (Some(moment), Some(format)) = (value.moment(call), format.string()) else {
        return Ok(SqlValue::Null);
    };
    if format.is_empty() {
        return Ok(SqlValue::Null);
    }
    Ok(SqlValue::or_null(format_date(moment, i64::from(moment.hour()), &format), SqlValue::text))
}

fn time_format<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [value, format] = args else { return Ok(SqlValue::Null) };
    let (Some((_, micros)), Some(format)) = (day_and_clock(call, value), format.string()) else {
        return Ok(SqlValue::Null);
    };
    let size = micros.abs();
    let clock = Moment { micros: size % DAY, ..Moment::default() };
    let shown = format_date(clock, size / (3_600 * SECOND), &format);
    let sign = if micros < 0 { "-" } else { "" };
    Ok(SqlValue::or_null(shown, |shown| SqlValue::text(format!("{sign}{shown}"))))
}

fn str_to_date_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let Some(format) = typing.constant_text(1) else { return Ok(ExprType::date_time(6)) };
    let has = |letters: &str| {
        format.split('%').skip(1).any(|part| part.starts_with(|first| letters.contains(first)))
    };
    let date = has("abcDdejMmUuVvWwXxYy");
    let clock = has("fHhIiklprSsT");
    let digits = if has("f") { 6 } else { 0 };
    Ok(match (date, clock) {
        (true, true) => ExprType::date_time(digits),
        (false, true) => ExprType::time(digits),
        _ => ExprType::date(),
    })
}

fn str_to_date<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [value, format] = args else { return Ok(SqlValue::Null) };
    let (Some(text), Some(format)) = (value.string(), format.string()) else {
        return Ok(SqlValue::Null);
    };
    let mode = call.sql_mode();
    let strict_zero = mode.has(remora_mysql::SqlMode::NO_ZERO_IN_DATE);
    let is_time = matches!(call.result.kind, SqlType::Time(_));
    let found = parse_by_format(&text, &format)
        .filter(|found| is_time || !strict_zero || !found.moment.has_zero_part());
    let Some(found) = found else {
        call.warn(ErrorCode::WrongValueForFunction, || {
            format!("Incorrect datetime value: '{text}' for function str_to_date")
        });
        return Ok(SqlValue::Null);
    };
    if found.rest {
        call.warn_truncated(if is_time { "time" } else { "datetime" }, &text);
    }
    let digits = call.result.scale();
    Ok(match call.result.kind {
        SqlType::Date => SqlValue::Date(found.moment.midnight()),
        SqlType::Time(_) => SqlValue::Time(found.moment.micros, digits),
        _ => SqlValue::DateTime(found.moment, digits),
    })
}

fn from_unixtime_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    if typing.types.len() > 1 {
        return format_type(typing);
    }
    let kind = typing.get(0);
    let digits = if kind.is_string() || kind.is_float() { 6 } else { kind.scale().min(6) };
    Ok(ExprType::date_time(digits))
}

fn from_unixtime<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [value, rest @ ..] = args else { return Ok(SqlValue::Null) };
    if args.iter().any(SqlValue::is_null) {
        return Ok(SqlValue::Null);
    }
    let exact = match value {
        SqlValue::Text(_) | SqlValue::Double(_) => Dec::from_double(value.double(call)),
        value => value.decimal(call),
    };
    let micros = exact.rescaled(6).and_then(|exact| exact.units.to_i128());
    let micros = micros.and_then(|micros| i64::try_from(micros).ok());
    // As in MySQL, the limit is the last second of the year 3001.
    let micros = micros.filter(|micros| (0..=32_536_771_199 * SECOND).contains(micros));
    let moment = micros.and_then(|micros| local_of_utc(micros, &call.time_zone()));
    let Some(moment) = moment else { return Ok(SqlValue::Null) };
    if let Some(format) = rest.first().and_then(SqlValue::string) {
        return Ok(SqlValue::or_null(
            format_date(moment, i64::from(moment.hour()), &format),
            SqlValue::text,
        ));
    }
    let digits = call.result.scale();
    let rounded = round_micros(moment.micros, digits);
    Ok(SqlValue::DateTime(Moment { micros: rounded, ..moment }, digits))
}

fn get_format_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::text(17, typing.collation))
}

fn get_format<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [kind, place] = args else { return Ok(SqlValue::Null) };
    let kind = kind.string().unwrap_or_default().to_ascii_uppercase();
    let place = place.string().unwrap_or_default().to_ascii_uppercase();
    let format = match (kind.as_str(), place.as_str()) {
        ("DATE", "USA") => "%m.%d.%Y",
        ("DATE", "JIS" | "ISO") => "%Y-%m-%d",
        ("DATE", "EUR") => "%d.%m.%Y",
        ("DATE", "INTERNAL") => "%Y%m%d",
        ("TIME", "USA") => "%h:%i:%s %p",
        ("TIME", "JIS" | "ISO") => "%H:%i:%s",
        ("TIME", "EUR") => "%H.%i.%s",
        ("TIME", "INTERNAL") => "%H%i%s",
        (_, "USA" | "EUR") => "%Y-%m-%d %H.%i.%s",
        (_, "JIS" | "ISO") => "%Y-%m-%d %H:%i:%s",
        (_, "INTERNAL") => "%Y%m%d%H%i%s",
        _ => return Ok(SqlValue::Null),
    };
    Ok(SqlValue::text(format))
}
