//! Parses dates and times in texts and numbers with MySQL's leniency: any punctuation between the
//! parts or none, two-digit years, and trailing text, which is ignored with a warning.

use super::{LONGEST_TIME, Moment, SECOND, days_in_month};

/// A parsed date and time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ParsedMoment {
    /// The date and time. The date is possible, but may have zero parts.
    pub moment: Moment,
    /// Whether a time of day was given.
    pub has_clock: bool,
    /// The fraction digits of the second.
    pub digits: u8,
    /// Whether the whole text was parsed.
    pub complete: bool,
    /// The offset in minutes east of UTC, if the text has one.
    pub offset_minutes: Option<i32>,
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn number(&mut self, most_digits: usize) -> Option<(u32, usize)> {
        let first = self.at;
        let mut number = 0u32;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            if self.at - first == most_digits {
                break;
            }
            number = number.checked_mul(10)?.checked_add(u32::from(digit - b'0'))?;
            self.at += 1;
        }
        (self.at > first).then_some((number, self.at - first))
    }

    fn skip(&mut self, skipped: impl Fn(u8) -> bool) -> usize {
        let first = self.at;
        while self.peek().is_some_and(&skipped) {
            self.at += 1;
        }
        self.at - first
    }

    /// Parses the fraction after a point: microseconds rounded half up, and the number of digits.
    fn fraction(&mut self) -> (i64, u8) {
        let (mut micros, mut digits, mut seventh) = (0i64, 0u8, 0u8);
        let mut count = 0u32;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            if count < 6 {
                micros = micros * 10 + i64::from(digit - b'0');
                digits += 1;
            } else if count == 6 {
                seventh = digit - b'0';
            }
            count += 1;
            self.at += 1;
        }
        micros *= 10i64.pow(6 - u32::from(digits));
        (micros + i64::from(seventh >= 5), digits)
    }
}

/// Parses the date, with a time of day if given, at the start of a text.
pub(crate) fn parse_moment(text: &str) -> Option<ParsedMoment> {
    let text = text.trim_matches(|c: char| c.is_ascii_whitespace());
    let mut scan = Scanner { bytes: text.as_bytes(), at: 0 };
    let run = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'T').count();
    let compact = run == text.len() || text.as_bytes().get(run) == Some(&b'.');
    let mut parts = [0u32; 6];
    let (fields, year_digits) = match compact {
        true => compact_parts(&mut scan, run, &mut parts),
        false => spaced_parts(&mut scan, &mut parts)?,
    };
    if fields < 3 {
        return None;
    }
    let (mut micros, mut digits) = (0, 0);
    if fields == 6 && scan.peek() == Some(b'.') {
        scan.at += 1;
        (micros, digits) = scan.fraction();
    }
    let offset_minutes = if fields >= 4 { offset(&mut scan) } else { None };
    let complete = scan.at == text.len();
    let [year, month, day, hour, minute, second] = parts;
    let year = match year_digits {
        2 if year < 70 => year + 2_000,
        2 => year + 1_900,
        _ => year,
    };
    // A two-digit year of an all-zero date is the year 0.
    let year = if year_digits == 2 && parts == [0; 6] && micros == 0 { 0 } else { year };
    if month > 12 || day > 31 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let clock = i64::from(hour * 3_600 + minute * 60 + second) * SECOND;
    let date = Moment::date(u16::try_from(year).ok()?, month as u8, day as u8);
    if !date.is_possible() {
        return None;
    }
    let moment = Moment { micros: clock, ..date };
    let moment = if micros == SECOND {
        add_second(moment)?
    } else {
        Moment { micros: clock + micros, ..moment }
    };
    Some(ParsedMoment { moment, has_clock: fields > 3, digits, complete, offset_minutes })
}

fn add_second(moment: Moment) -> Option<Moment> {
    Moment { micros: moment.micros + SECOND, ..moment }.rounded(6)
}

/// Parses `YYYYMMDDhhmmss`, `YYMMDD` and the like.
fn compact_parts(scan: &mut Scanner<'_>, run: usize, parts: &mut [u32; 6]) -> (usize, usize) {
    let year_digits = if run == 4 || run == 8 || run >= 14 { 4 } else { 2 };
    let mut fields = 0;
    for part in parts.iter_mut() {
        let most = if fields == 0 { year_digits } else { 2 };
        if fields == 3 {
            scan.skip(|byte| byte == b'T');
        }
        let Some((number, _)) = scan.number(most) else { break };
        *part = number;
        fields += 1;
    }
    (fields, year_digits)
}

/// Parses `YYYY-MM-DD hh:mm:ss` with any punctuation.
fn spaced_parts(scan: &mut Scanner<'_>, parts: &mut [u32; 6]) -> Option<(usize, usize)> {
    let mut fields = 0;
    let mut year_digits = 0;
    for part in parts.iter_mut() {
        let before = scan.at;
        if fields == 3 {
            let spaces = scan.skip(|byte| byte.is_ascii_whitespace());
            let mark = spaces == 0 && scan.skip(|byte| byte == b'T') == 1;
            if spaces == 0 && !mark && scan.skip(|byte| byte.is_ascii_punctuation()) == 0 {
                break;
            }
        } else if fields > 0 {
            if fields > 3 && matches!(scan.peek(), Some(b'+' | b'-' | b'.')) {
                break;
            }
            let skipped = scan.skip(|byte| byte.is_ascii_punctuation());
            if skipped == 0 {
                break;
            }
        }
        let Some((number, digits)) = scan.number(if fields == 0 { 4 } else { 2 }) else {
            if fields < 3 {
                return None;
            }
            scan.at = before;
            break;
        };
        if fields == 0 {
            year_digits = digits;
        }
        *part = number;
        fields += 1;
    }
    Some((fields, year_digits))
}

/// Parses an offset such as `+05:30`.
fn offset(scan: &mut Scanner<'_>) -> Option<i32> {
    let before = scan.at;
    let sign = match scan.peek()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    scan.at += 1;
    let parts = scan.number(2).and_then(|(hours, digits)| {
        let colon = digits == 2 && scan.peek() == Some(b':');
        scan.at += usize::from(colon);
        let (minutes, count) = scan.number(2).filter(|_| colon)?;
        (count == 2 && minutes < 60 && hours <= 14).then_some((hours, minutes))
    });
    match parts {
        Some((hours, minutes)) => Some(sign * (hours * 60 + minutes) as i32),
        None => {
            scan.at = before;
            None
        }
    }
}

/// The date in a number such as `20200102` or `200102030405`.
pub(crate) fn moment_of_number(number: i64) -> Option<(Moment, bool)> {
    let (date, clock, has_clock) = match number {
        0 => return Some((Moment::default(), false)),
        1..=100 => return None,
        101..=691_231 => (number + 20_000_000, 0, false),
        691_232..=700_100 => return None,
        700_101..=991_231 => (number + 19_000_000, 0, false),
        991_232..=10_000_100 => return None,
        10_000_101..=99_991_231 => (number, 0, false),
        99_991_232..=101_000_000 => return None,
        101_000_001..=691_231_235_959 => {
            (number / 1_000_000 + 20_000_000, number % 1_000_000, true)
        }
        691_231_235_960..=700_101_000_000 => return None,
        700_101_000_001..=991_231_235_959 => {
            (number / 1_000_000 + 19_000_000, number % 1_000_000, true)
        }
        _ => (number / 1_000_000, number % 1_000_000, true),
    };
    let year = u16::try_from(date / 10_000).ok()?;
    let (month, day) = ((date / 100 % 100) as u8, (date % 100) as u8);
    let (hour, minute, second) = (clock / 10_000, clock / 100 % 100, clock % 100);
    let moment = Moment::date(year, month, day);
    let possible = moment.is_possible() && hour < 24 && minute < 60 && second < 60;
    let micros = (hour * 3_600 + minute * 60 + second) * SECOND;
    possible.then_some((Moment { micros, ..moment }, has_clock))
}

/// The time in a number `hhmmss`, or the time of day of a date and time such as `20200102030405`; `None` if there is no
/// such time.
pub(crate) fn time_of_number(number: i64) -> Option<i64> {
    /// The number of the longest time.
    const LONGEST: u64 = 8_385_959;
    /// The least number that is read as a date and time.
    const LEAST_MOMENT: i64 = 10_000_000_000;
    let size = number.unsigned_abs();
    if size > LONGEST {
        let moment = moment_of_number(number).filter(|_| number >= LEAST_MOMENT);
        return moment.map(|(moment, _)| moment.micros);
    }
    let (hours, minutes, seconds) = (size / 10_000, size / 100 % 100, size % 100);
    if minutes > 59 || seconds > 59 {
        return None;
    }
    let micros = i64::try_from(hours * 3_600 + minutes * 60 + seconds).ok()? * SECOND;
    Some(if number < 0 { -micros } else { micros })
}

/// Whether a text is written like a date rather than like a time: five digits or more without a separator, or three
/// numbers of which the first two end with a mark other than a colon.
pub(crate) fn is_like_date(text: &str) -> bool {
    let mut scan = Scanner { bytes: text.trim_ascii_start().as_bytes(), at: 0 };
    let digit = |byte: u8| byte.is_ascii_digit();
    let mark = |byte: u8| byte.is_ascii_punctuation() && byte != b':';
    let first = scan.skip(digit);
    if scan.peek().is_none_or(|byte| matches!(byte, b'.' | b'T')) && first >= 5 {
        return true;
    }
    first > 0
        && scan.skip(mark) > 0
        && scan.skip(digit) > 0
        && scan.skip(mark) > 0
        && scan.skip(digit) > 0
}

/// A parsed time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ParsedTime {
    /// Microseconds, capped to MySQL's range.
    pub micros: i64,
    /// The fraction digits of the second.
    pub digits: u8,
    /// Whether the whole text was parsed and is in range.
    pub complete: bool,
}

/// Parses the time, or the time of day of a date and time, at the start of a text.
pub(crate) fn parse_time(text: &str) -> Option<ParsedTime> {
    let text = text.trim_matches(|c: char| c.is_ascii_whitespace());
    // A text that is not just digits is a date only if a space separates the date from the time.
    let compact = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let dated = compact && text.split('.').next().is_some_and(|digits| digits.len() >= 12)
        || text.contains(|letter: char| letter.is_ascii_whitespace());
    if text.len() >= 12
        && !text.starts_with('-')
        && dated
        && let Some(parsed) = parse_moment(text).filter(|parsed| parsed.has_clock)
    {
        let ParsedMoment { moment, digits, complete, .. } = parsed;
        return Some(ParsedTime { micros: moment.micros, digits, complete });
    }
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut scan = Scanner { bytes: rest.as_bytes(), at: 0 };
    let (seconds, possible) = seconds(&mut scan)?;
    if !possible {
        return None;
    }
    let (mut micros, mut digits) = (0, 0);
    if scan.peek() == Some(b'.') {
        scan.at += 1;
        (micros, digits) = scan.fraction();
    }
    let size = seconds.saturating_mul(SECOND).saturating_add(micros);
    let fits = size <= LONGEST_TIME;
    let size = size.min(LONGEST_TIME);
    let complete = scan.at == rest.len() && fits;
    Some(ParsedTime { micros: if negative { -size } else { size }, digits, complete })
}

/// Parses whole seconds; also returns whether minutes and seconds are below 60.
fn seconds(scan: &mut Scanner<'_>) -> Option<(i64, bool)> {
    let (first, _) = scan.number(10)?;
    let mut days = 0i64;
    let mut hours = i64::from(first);
    let spaced =
        scan.peek() == Some(b' ') && scan.bytes.get(scan.at + 1).is_some_and(u8::is_ascii_digit);
    if spaced {
        scan.at += 1;
        days = i64::from(first);
        hours = i64::from(scan.number(10)?.0);
    } else if scan.peek() != Some(b':') {
        let number = i64::from(first);
        let (hours, minutes, seconds) = (number / 10_000, number / 100 % 100, number % 100);
        return Some((hours * 3_600 + minutes * 60 + seconds, minutes < 60 && seconds < 60));
    }
    let mut parts = [0i64; 2];
    for part in &mut parts {
        let follows = scan.bytes.get(scan.at + 1).is_some_and(u8::is_ascii_digit);
        if scan.peek() != Some(b':') || !follows {
            break;
        }
        scan.at += 1;
        *part = i64::from(scan.number(10)?.0);
    }
    let [minutes, seconds] = parts;
    let hours = days.checked_mul(24)?.checked_add(hours)?;
    Some((hours * 3_600 + minutes * 60 + seconds, minutes < 60 && seconds < 60))
}

/// The last day of the month, or `None` if the month is 0.
pub(crate) fn last_day(moment: Moment) -> Option<Moment> {
    (moment.month > 0).then(|| Moment {
        day: days_in_month(moment.year, moment.month),
        micros: 0,
        ..moment
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<String> {
        parse_moment(text).map(|parsed| parsed.moment.text(parsed.digits))
    }

    #[test]
    fn dates_are_read_in_every_form() {
        let expect = |text: &str, moment: &str| assert_eq!(read(text).as_deref(), Some(moment));
        expect("2020-01-02", "2020-01-02 00:00:00");
        expect("2020-1-2 3:4:5.678", "2020-01-02 03:04:05.678");
        expect("20200102", "2020-01-02 00:00:00");
        expect("200102", "2020-01-02 00:00:00");
        expect("20200102030405.5", "2020-01-02 03:04:05.5");
        expect("20-1-2", "2020-01-02 00:00:00");
        expect("70/1/2", "1970-01-02 00:00:00");
        expect("2020-01-02T03:04", "2020-01-02 03:04:00");
        expect("0000-00-00", "0000-00-00 00:00:00");
        expect("2020-01-02 23:59:59.9999999", "2020-01-03 00:00:00.000000");
        assert_eq!(read("2020-02-30"), None);
        assert_eq!(read("2020-13-01"), None);
        assert_eq!(read("abc"), None);
        assert_eq!(read("2020-01"), None);
        assert!(!parse_moment("2020-01-02x").unwrap().complete);
        let offset = parse_moment("2020-01-02 03:04:05+05:30").unwrap();
        assert_eq!(offset.offset_minutes, Some(330));
    }

    #[test]
    fn times_are_read_in_every_form() {
        let read = |text: &str| parse_time(text).map(|parsed| parsed.micros / SECOND);
        assert_eq!(read("10:11:12"), Some(36_672));
        assert_eq!(read("-1 1:1:1"), Some(-90_061));
        assert_eq!(read("101112"), Some(36_672));
        assert_eq!(read("12"), Some(12));
        assert_eq!(read("10:11"), Some(36_660));
        assert_eq!(read("2020-01-02 10:11:12"), Some(36_672));
        assert_eq!(read("10:61:00"), None);
        assert_eq!(read("900:00:00"), Some(LONGEST_TIME / SECOND));
        assert_eq!(read("x"), None);
    }

    #[test]
    fn dates_and_times_are_told_apart_by_their_form() {
        for text in
            ["2024-02-29", "2024-2-9 10:11", "20240229", "240229", "10111", "24.1.1", " 2024/1/1"]
        {
            assert!(is_like_date(text), "{text}");
        }
        for text in ["10:11:12", "1 10:11", "1011", "2024", "12-31", "2024.5", "-24-01-01", "", "x"]
        {
            assert!(!is_like_date(text), "{text}");
        }
    }

    #[test]
    fn numbers_beyond_all_times_are_read_as_dates() {
        assert_eq!(time_of_number(101_112), Some(36_672 * SECOND));
        assert_eq!(time_of_number(-8_385_959), Some(-LONGEST_TIME));
        assert_eq!(time_of_number(20_240_131_101_112), Some(36_672 * SECOND));
        for number in
            [8_385_960, 8_386_000, 20_240_131, -20_240_131_101_112, 20_249_931_101_112, i64::MIN]
        {
            assert_eq!(time_of_number(number), None, "{number}");
        }
    }
}
