//! DATE_FORMAT and STR_TO_DATE: format specifiers.

use std::fmt::Write;

use super::{Moment, SECOND, date_of_day_number, day_number, weekday, year_week};

/// Names of months, from January.
pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// Names of weekdays, from Monday.
pub(crate) const WEEKDAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Formats a date and time. `None` if the format needs a part that is zero. `hours` may exceed 23
/// for a time.
pub(crate) fn format_date(moment: Moment, hours: i64, format: &str) -> Option<String> {
    let mut out = String::with_capacity(format.len() * 2);
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        let Some(letter) = letters.next() else {
            out.push('%');
            break;
        };
        if !push_date_part(&mut out, moment, letter)? {
            push_clock_part(&mut out, moment, hours, letter);
        }
    }
    Some(out)
}

/// Writes a date specifier; returns whether the letter is one, `None` if the part is zero.
fn push_date_part(out: &mut String, moment: Moment, letter: char) -> Option<bool> {
    let Moment { year, month, day, .. } = moment;
    let month_name = || MONTHS.get(usize::from(month).checked_sub(1)?).copied();
    let weekday_index = || -> Option<usize> {
        (!moment.is_zero_date()).then(|| usize::try_from(weekday(moment.day_number())).ok())?
    };
    let weekday_name = || WEEKDAYS.get(weekday_index()?).copied();
    let (week, mode) = match letter {
        'U' => (true, 0),
        'u' => (true, 1),
        'V' | 'X' => (true, 2),
        'v' | 'x' => (true, 3),
        _ => (false, 0),
    };
    // Writing to a String cannot fail.
    let _ = match letter {
        'Y' => write!(out, "{year:04}"),
        'y' => write!(out, "{:02}", year % 100),
        'm' => write!(out, "{month:02}"),
        'c' => write!(out, "{month}"),
        'd' => write!(out, "{day:02}"),
        'e' => write!(out, "{day}"),
        'D' => write!(out, "{day}{}", ordinal(day)),
        'M' => out.write_str(month_name()?),
        'b' => out.write_str(month_name()?.get(..3)?),
        'W' => out.write_str(weekday_name()?),
        'a' => out.write_str(weekday_name()?.get(..3)?),
        'w' => write!(out, "{}", (weekday_index()? + 1) % 7),
        'j' => {
            let first = day_number(i64::from(year), 1, 1);
            write!(out, "{:03}", moment.day_number() - first + 1)
        }
        'X' | 'x' => write!(out, "{:04}", year_week(moment, mode, true).0),
        _ if week => write!(out, "{:02}", year_week(moment, mode, false).1),
        _ => return Some(false),
    };
    Some(true)
}

fn ordinal(day: u8) -> &'static str {
    match (day / 10, day % 10) {
        (1, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

fn push_clock_part(out: &mut String, moment: Moment, hours: i64, letter: char) {
    let (minute, second) = (moment.minute(), moment.second());
    let twelve = (hours % 24 + 11) % 12 + 1;
    let half = if hours % 24 < 12 { "AM" } else { "PM" };
    // Writing to a String cannot fail.
    let _ = match letter {
        'H' => write!(out, "{hours:02}"),
        'k' => write!(out, "{hours}"),
        'h' | 'I' => write!(out, "{twelve:02}"),
        'l' => write!(out, "{twelve}"),
        'i' => write!(out, "{minute:02}"),
        's' | 'S' => write!(out, "{second:02}"),
        'f' => write!(out, "{:06}", moment.fraction()),
        'p' => out.write_str(half),
        'r' => write!(out, "{twelve:02}:{minute:02}:{second:02} {half}"),
        'T' => write!(out, "{hours:02}:{minute:02}:{second:02}"),
        other => out.write_char(other),
    };
}

/// The result of parsing a text by a format.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FormattedMoment {
    /// The date and the time of day.
    pub moment: Moment,
    /// Whether text is left after the format.
    pub rest: bool,
}

#[derive(Default)]
struct Parts {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    afternoon: Option<bool>,
    twelve: bool,
    year_day: Option<i64>,
    weekday: Option<i64>,
    /// The week, whether it starts on Monday, and whether its year is given too.
    week: Option<(i64, bool, bool)>,
    week_year: Option<i64>,
}

/// STR_TO_DATE: `None` if the text does not match the format or the date is impossible.
pub(crate) fn parse_by_format(text: &str, format: &str) -> Option<FormattedMoment> {
    let mut parts = Parts::default();
    let rest = read(text, format, &mut parts, 0)?;
    let moment = parts.moment()?;
    Some(FormattedMoment { moment, rest: !rest.trim_start().is_empty() })
}

/// Parses by the format and returns the rest of the text.
fn read<'a>(text: &'a str, format: &str, parts: &mut Parts, depth: u8) -> Option<&'a str> {
    let mut text = text;
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        text = text.trim_start();
        if text.is_empty() {
            break;
        }
        if letter == '%' {
            let letter = letters.next()?;
            text = read_part(text, letter, parts, depth)?;
        } else if !letter.is_whitespace() {
            text = text.strip_prefix(letter)?;
        }
    }
    Some(text)
}

fn read_part<'a>(text: &'a str, letter: char, parts: &mut Parts, depth: u8) -> Option<&'a str> {
    let (digits, slot): (usize, &mut i64) = match letter {
        'Y' => (4, &mut parts.year),
        'm' | 'c' => (2, &mut parts.month),
        'd' | 'e' => (2, &mut parts.day),
        'H' | 'k' => (2, &mut parts.hour),
        'i' => (2, &mut parts.minute),
        's' | 'S' => (2, &mut parts.second),
        'h' | 'I' | 'l' => {
            parts.twelve = true;
            let (hour, rest) = number(text, 2)?;
            parts.hour = hour;
            return (1..=12).contains(&hour).then_some(rest);
        }
        _ => return read_other(text, letter, parts, depth),
    };
    let (value, rest) = number(text, digits)?;
    *slot = value;
    if letter == 'Y' && text.len() - rest.len() <= 2 {
        *slot = short_year(value);
    }
    Some(rest)
}

fn short_year(year: i64) -> i64 {
    if year < 70 { year + 2_000 } else { year + 1_900 }
}

fn read_other<'a>(text: &'a str, letter: char, parts: &mut Parts, depth: u8) -> Option<&'a str> {
    match letter {
        'y' => {
            let (year, rest) = number(text, 2)?;
            parts.year = short_year(year);
            Some(rest)
        }
        'D' => {
            let (day, rest) = number(text, 2)?;
            parts.day = day;
            rest.get(2..)
        }
        'M' => name(text, &MONTHS, usize::MAX).map(|(at, rest)| (parts.month = at + 1, rest).1),
        'b' => name(text, &MONTHS, 3).map(|(at, rest)| (parts.month = at + 1, rest).1),
        'W' | 'a' => {
            let length = if letter == 'a' { 3 } else { usize::MAX };
            let (at, rest) = name(text, &WEEKDAYS, length)?;
            parts.weekday = Some(at);
            Some(rest)
        }
        'w' => {
            let (day, rest) = number(text, 1)?;
            parts.weekday = Some((day + 6) % 7);
            (day < 7).then_some(rest)
        }
        'j' => number(text, 3).map(|(day, rest)| (parts.year_day = Some(day), rest).1),
        'U' | 'u' | 'V' | 'v' => {
            let (week, rest) = number(text, 2)?;
            parts.week = Some((week, matches!(letter, 'u' | 'v'), matches!(letter, 'V' | 'v')));
            (week <= 53).then_some(rest)
        }
        'X' | 'x' => number(text, 4).map(|(year, rest)| (parts.week_year = Some(year), rest).1),
        'f' => {
            let count = text.bytes().take_while(u8::is_ascii_digit).count().min(6);
            let (micros, rest) = number(text, 6)?;
            parts.micros = micros * 10i64.pow(6 - count as u32);
            Some(rest)
        }
        'p' => {
            let half = text.get(..2)?.to_ascii_uppercase();
            parts.afternoon = Some(half == "PM");
            matches!(half.as_str(), "AM" | "PM").then(|| text.get(2..))?
        }
        'r' if depth == 0 => read(text, "%I:%i:%S %p", parts, 1),
        'T' if depth == 0 => read(text, "%H:%i:%S", parts, 1),
        '%' => text.strip_prefix('%'),
        _ => None,
    }
}

fn number(text: &str, most_digits: usize) -> Option<(i64, &str)> {
    let count = text.bytes().take(most_digits).take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(count);
    Some((digits.parse().ok()?, rest))
}

fn name<'a>(text: &'a str, names: &[&str], length: usize) -> Option<(i64, &'a str)> {
    let fits = |name: &str| {
        let wanted = name.get(..length.min(name.len())).unwrap_or(name);
        text.get(..wanted.len()).is_some_and(|start| start.eq_ignore_ascii_case(wanted))
    };
    let at = names.iter().position(|name| fits(name))?;
    let taken = names.get(at)?.len().min(length);
    Some((i64::try_from(at).ok()?, text.get(taken..)?))
}

impl Parts {
    fn moment(&self) -> Option<Moment> {
        let hour = match (self.twelve, self.afternoon) {
            (true, half) => self.hour % 12 + if half == Some(true) { 12 } else { 0 },
            (false, Some(_)) => return None,
            (false, None) => self.hour,
        };
        if hour > 23 || self.minute > 59 || self.second > 59 {
            return None;
        }
        let seconds = hour * 3_600 + self.minute * 60 + self.second;
        let micros = seconds * SECOND + self.micros;
        let date = self.date()?;
        Some(Moment { micros, ..date }).filter(|moment| moment.is_possible())
    }

    fn date(&self) -> Option<Moment> {
        if let Some(day) = self.year_day {
            return date_of_day_number(day_number(self.year, 1, 1) + day - 1).filter(|_| day > 0);
        }
        if let (Some((week, monday_first, strict)), Some(weekday)) = (self.week, self.weekday) {
            let year = if strict { self.week_year? } else { self.year };
            return date_of_week(year, week, weekday, monday_first, strict);
        }
        let year = u16::try_from(self.year).ok()?;
        Some(Moment::date(year, u8::try_from(self.month).ok()?, u8::try_from(self.day).ok()?))
    }
}

fn date_of_week(
    year: i64,
    week: i64,
    day: i64,
    monday_first: bool,
    strict: bool,
) -> Option<Moment> {
    if strict && week == 0 {
        return None;
    }
    let days = day_number(year, 1, 1);
    let first = if monday_first { weekday(days) } else { (weekday(days) + 1) % 7 };
    let mut number = days;
    if monday_first {
        number += if first <= 3 { 0 } else { 7 } - first + (week - 1) * 7 + day;
    } else {
        number += if first == 0 { 0 } else { 7 } - first + (week - 1) * 7 + (day + 1) % 7;
    }
    date_of_day_number(number).filter(|_| number > 0)
}

#[cfg(test)]
mod tests {
    use super::super::parse_moment;
    use super::*;

    fn shown(text: &str, format: &str) -> Option<String> {
        let moment = parse_moment(text).unwrap().moment;
        format_date(moment, i64::from(moment.hour()), format)
    }

    #[test]
    fn every_letter_is_written() {
        let text = "2009-10-04 22:23:00.5";
        let all = shown(text, "%W %M %Y|%D %y %a %d %m %b %j|%H %k %I %r %T %S %w|%f %p %e %c %l");
        let expected = "Sunday October 2009|4th 09 Sun 04 10 Oct 277|\
                        22 22 10 10:23:00 PM 22:23:00 00 0|500000 PM 4 10 10";
        assert_eq!(all.as_deref(), Some(expected));
        assert_eq!(
            shown("1999-01-01", "%X %V %x %v %U %u").as_deref(),
            Some("1998 52 1998 53 00 00")
        );
        assert_eq!(shown("2006-00-00", "%M"), None);
        assert_eq!(shown("2006-06-00", "%d %% %z").as_deref(), Some("00 % z"));
    }

    #[test]
    fn texts_are_read_by_a_format() {
        let read = |text, format| parse_by_format(text, format).map(|found| found.moment.text(0));
        assert_eq!(read("01,5,2013", "%d,%m,%Y").as_deref(), Some("2013-05-01 00:00:00"));
        assert_eq!(read("May 1, 2013", "%M %d,%Y").as_deref(), Some("2013-05-01 00:00:00"));
        assert_eq!(read("09:30:17 PM", "%h:%i:%s %p").as_deref(), Some("0000-00-00 21:30:17"));
        assert_eq!(read("200442 Monday", "%X%V %W").as_deref(), Some("2004-10-18 00:00:00"));
        assert_eq!(read("2020-02-30", "%Y-%m-%d"), None);
        assert_eq!(read("abc", "%Y"), None);
    }
}
