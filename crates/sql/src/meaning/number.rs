//! Numbers as texts: how MySQL prints doubles, and how it parses numbers at the start of a text.

/// The number at the start of a text, after spaces, and whether the whole text was consumed
/// (trailing spaces do not count).
pub(crate) fn double_prefix(text: &str) -> (f64, bool) {
    let trimmed = text.trim_start_matches(|c: char| c.is_ascii_whitespace());
    let length = float_length(trimmed.as_bytes());
    let (number, rest) = trimmed.split_at_checked(length).unwrap_or(("", trimmed));
    let complete =
        length > 0 && rest.trim_end_matches(|c: char| c.is_ascii_whitespace()).is_empty();
    let number: f64 = number.parse().unwrap_or(0.0);
    (if number.is_infinite() { f64::MAX.copysign(number) } else { number }, complete)
}

/// The length of the prefix that looks like a number, in bytes.
fn float_length(bytes: &[u8]) -> usize {
    let digits = |from: usize| {
        bytes.get(from..).map_or(0, |rest| rest.iter().take_while(|b| b.is_ascii_digit()).count())
    };
    let mut at = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
    let whole = digits(at);
    at += whole;
    let mut fraction = 0;
    if bytes.get(at) == Some(&b'.') {
        fraction = digits(at + 1);
        if whole + fraction > 0 {
            at += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return 0;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'-' | b'+')));
        let exponent = digits(at + 1 + sign);
        if exponent > 0 {
            at += 1 + sign + exponent;
        }
    }
    at
}

/// The integer at the start of a text, capped to 64 bits, and whether the whole text was consumed.
pub(crate) fn integer_prefix(text: &str) -> (i128, bool) {
    let trimmed = text.trim_start_matches(|c: char| c.is_ascii_whitespace());
    let (negative, digits) = match trimmed.as_bytes().first() {
        Some(b'-') => (true, trimmed.get(1..).unwrap_or("")),
        Some(b'+') => (false, trimmed.get(1..).unwrap_or("")),
        _ => (false, trimmed),
    };
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = digits.split_at(length);
    let complete =
        length > 0 && rest.trim_end_matches(|c: char| c.is_ascii_whitespace()).is_empty();
    let most = if negative { 1u128 << 63 } else { u128::from(u64::MAX) };
    let digits = digits.trim_start_matches('0');
    let number = match digits.len() {
        0 => 0,
        1..=38 => digits.parse().unwrap_or(most),
        _ => most,
    };
    let fits = number <= most;
    let number = number.min(most) as i128;
    (if negative { -number } else { number }, complete && fits)
}

/// A double in MySQL's format: the shortest digits that parse to the same number, with an exponent
/// if that is shorter.
pub(crate) fn format_double(number: f64) -> String {
    format_shortest(&format!("{number:e}"), number == 0.0)
}

/// A float in MySQL's format.
pub(crate) fn format_float(number: f32) -> String {
    // Six significant digits, which a float always has.
    let digits = format!("{number:.5e}");
    format_shortest(&digits, number == 0.0)
}

/// Formats digits in the form `d.ddde±x`.
fn format_shortest(scientific: &str, zero: bool) -> String {
    if zero {
        return "0".to_owned();
    }
    let (sign, rest) = match scientific.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", scientific),
    };
    let (mantissa, exponent) = rest.split_once('e').unwrap_or((rest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_end_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    if !(-15..15).contains(&exponent) {
        let (first, others) = digits.split_at(1);
        let point = if others.is_empty() { "" } else { "." };
        return format!("{sign}{first}{point}{others}e{exponent}");
    }
    if exponent < 0 {
        let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0));
        return format!("{sign}0.{zeros}{digits}");
    }
    if count <= exponent + 1 {
        let zeros = "0".repeat(usize::try_from(exponent + 1 - count).unwrap_or(0));
        return format!("{sign}{digits}{zeros}");
    }
    let (whole, fraction) = digits.split_at(usize::try_from(exponent + 1).unwrap_or(0));
    format!("{sign}{whole}.{fraction}")
}

/// Rounds half to even, as MySQL converts doubles to integers.
pub(crate) fn round_to_integer(number: f64) -> f64 {
    number.round_ties_even()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_numbers_as_far_as_they_look_like_one() {
        assert_eq!(double_prefix("12abc"), (12.0, false));
        assert_eq!(double_prefix(" 1.5e2 "), (150.0, true));
        assert_eq!(double_prefix("abc"), (0.0, false));
        assert_eq!(double_prefix(""), (0.0, false));
        assert_eq!(double_prefix("1e400"), (f64::MAX, true));
        assert_eq!(integer_prefix("-9223372036854775809"), (i128::from(i64::MIN), false));
        assert_eq!(integer_prefix("18446744073709551615"), (i128::from(u64::MAX), true));
        assert_eq!(integer_prefix("1.9"), (1, false));
    }

    #[test]
    fn doubles_are_written_as_mysql_writes_them() {
        let written = |number: f64| format_double(number);
        assert_eq!(written(0.1), "0.1");
        assert_eq!(written(1e15), "1e15");
        assert_eq!(written(123456789012345.0), "123456789012345");
        assert_eq!(written(-1.5e-7), "-0.00000015");
        assert_eq!(written(1e-20), "1e-20");
        assert_eq!(written(1e100), "1e100");
        assert_eq!(format_float(6.5), "6.5");
        assert_eq!(format_float(0.1), "0.1");
    }
}
