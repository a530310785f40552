//! Formats numbers, times and aligned columns for people.

use std::{borrow::Cow, time::Duration};

/// `1234567` as `1,234,567`.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 row`, `1,234 rows`.
pub(super) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", thousands(number), if number == 1 { "" } else { "s" })
}

/// A time with three significant digits: `38.2 us`, `1.24 ms`, `2.50 s`.
pub(super) fn elapsed(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let (value, unit) = match seconds {
        _ if seconds < 1e-3 => (seconds * 1e6, "us"),
        _ if seconds < 1.0 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    match value {
        _ if value < 9.995 => format!("{value:.2} {unit}"),
        _ if value < 99.95 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    }
}

/// The terminal columns of a text; East Asian wide characters take two.
pub(super) fn width(text: &str) -> usize {
    let wide = |letter: char| {
        matches!(u32::from(letter), 0x1100..=0x115F | 0x2E80..=0xA4CF | 0xAC00..=0xD7A3
            | 0xF900..=0xFAFF | 0xFE30..=0xFE6F | 0xFF00..=0xFF60 | 0xFFE0..=0xFFE6
            | 0x1F300..=0x1FAFF | 0x20000..=0x3FFFD)
    };
    text.chars().map(|letter| if wide(letter) { 2 } else { 1 }).sum()
}

/// The text truncated to this many columns, with `…` if it was longer.
pub(super) fn shorten(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let mut shortened = String::new();
    let mut taken = 1;
    for letter in text.chars() {
        taken += width(letter.encode_utf8(&mut [0; 4]));
        if taken > columns {
            break;
        }
        shortened.push(letter);
    }
    shortened.push('…');
    Cow::Owned(shortened)
}

/// Rows with each column padded to its widest cell; cells are truncated to `most_columns`.
pub(super) fn align(rows: &[Vec<String>], most_columns: usize) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        for (index, cell) in row.iter().enumerate() {
            let cell = width(cell).min(most_columns);
            match widths.get_mut(index) {
                Some(widest) => *widest = cell.max(*widest),
                None => widths.push(cell),
            }
        }
    }
    let mut text = String::new();
    for row in rows {
        let last = row.len().saturating_sub(1);
        for (index, (cell, widest)) in row.iter().zip(&widths).enumerate() {
            let cell = shorten(cell, most_columns);
            text.push_str(&cell);
            if index < last {
                let padding = widest.saturating_sub(width(&cell)) + 2;
                text.extend(std::iter::repeat_n(' ', padding));
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(counted(1, "row"), "1 row");
        assert_eq!(counted(1_000, "row"), "1,000 rows");
        assert_eq!(elapsed(Duration::from_nanos(38_200)), "38.2 us");
        assert_eq!(elapsed(Duration::from_micros(1_240)), "1.24 ms");
        assert_eq!(elapsed(Duration::from_secs(250)), "250 s");
    }

    #[test]
    fn columns_line_up() {
        let rows = [vec!["日本".to_owned(), "1".to_owned()], vec!["x".to_owned(), "22".to_owned()]];
        assert_eq!(align(&rows, 40), "日本  1\nx     22\n");
        assert_eq!(shorten("abcdef", 4), "abc…");
        assert_eq!(shorten("日本語", 4), "日…");
    }
}
