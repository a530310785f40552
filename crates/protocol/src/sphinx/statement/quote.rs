//! Quotes names and texts, so that their content cannot end the quotes.

/// A quoted name: `` `a``b` `` for a`b.
pub fn name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A quoted text for sessions in which backslashes escape. In other sessions, too, its content cannot end the quotes.
pub fn text(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('\'');
    for character in text.chars() {
        match character {
            '\\' => quoted.push_str("\\\\"),
            '\'' => quoted.push_str("''"),
            '\0' => quoted.push_str("\\0"),
            '\u{1A}' => quoted.push_str("\\Z"),
            other => quoted.push(other),
        }
    }
    quoted.push('\'');
    quoted
}

/// A number with an exponent, so that MySQL reads it as a double.
pub fn number(number: f64) -> String {
    format!("{number:e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_names_and_texts_are_escaped() {
        assert_eq!(name("a`b"), "`a``b`");
        assert_eq!(text("it's \\' \0"), "'it''s \\\\'' \\0'");
        assert_eq!(text("\\"), "'\\\\'");
        assert_eq!(number(0.1), "1e-1");
    }
}
