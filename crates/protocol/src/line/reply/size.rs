//! Sizes for people.

/// A size with three significant digits and a unit: `1.50MB`, `12.3MB`, `813MB`.
pub fn human_bytes(bytes: u64) -> String {
    let mut size = bytes as f64;
    let mut units = ["KB", "MB", "GB", "TB", "PB", "EB"].into_iter();
    let mut unit = "B";
    // From 999.5 on it would be rounded to four digits.
    while size >= 999.5 {
        let Some(next) = units.next() else { break };
        (size, unit) = (size / 1024.0, next);
    }
    match size {
        _ if unit == "B" => format!("{bytes}B"),
        ..9.995 => format!("{size:.2}{unit}"),
        ..99.95 => format!("{size:.1}{unit}"),
        _ => format!("{size:.0}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits() {
        let cases = [
            (0, "0B"),
            (999, "999B"),
            (1000, "0.98KB"),
            (1536 << 10, "1.50MB"),
            (12_897_485, "12.3MB"),
            (813 << 20, "813MB"),
            (u64::MAX, "16.0EB"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(human_bytes(bytes), expected);
        }
    }
}
