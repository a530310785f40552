//! Column names of selected expressions: their text as written.

use remora_mysql::TokenKind;

use crate::parse::Source;

/// Words that may stand between SELECT and its first expression.
const MODIFIERS: [&str; 10] = [
    "ALL",
    "DISTINCT",
    "DISTINCTROW",
    "HIGH_PRIORITY",
    "STRAIGHT_JOIN",
    "SQL_SMALL_RESULT",
    "SQL_BIG_RESULT",
    "SQL_BUFFER_RESULT",
    "SQL_CACHE",
    "SQL_NO_CACHE",
];
/// Words that end the selected expressions.
const ENDS: [&str; 14] = [
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "UNION",
    "INTERSECT",
    "EXCEPT",
    "INTO",
    "FOR",
    "LOCK",
    "WINDOW",
    "PROCEDURE",
];

/// The texts of the select items of the SELECT at this position.
pub(crate) fn texts(source: &Source, place: usize) -> Vec<String> {
    let found = source.tokens.binary_search_by_key(&place, |token| token.start);
    let Ok(select) = found else { return Vec::new() };
    let mut at = select + 1;
    while is_modifier(source, at) {
        at += 1;
    }
    let mut texts = Vec::new();
    let (mut first, mut depth) = (at, 0_usize);
    loop {
        let end = at >= source.tokens.len() || (depth == 0 && is_end(source, at));
        if end || (depth == 0 && source.is(at, ",")) {
            texts.push(text(source, first, at));
            first = at + 1;
        }
        if end {
            return texts;
        }
        if source.is(at, "(") {
            depth += 1;
        } else if source.is(at, ")") {
            depth = depth.saturating_sub(1);
        }
        at += 1;
    }
}

fn is_modifier(source: &Source, at: usize) -> bool {
    MODIFIERS.iter().any(|word| source.is_word(at, word))
        || source.is_word(at, "SQL_CALC_FOUND_ROWS")
}

fn is_end(source: &Source, at: usize) -> bool {
    // A word after a point is always a name.
    let is_name = at > 0 && source.is(at - 1, ".");
    let word = !is_name && ENDS.iter().any(|word| source.is_word(at, word));
    word || source.is(at, ")") || source.is(at, ";")
}

/// The text of the tokens from `first` to before `end`. A string literal is named by its value.
fn text(source: &Source, first: usize, end: usize) -> String {
    let Some(tokens) = source.tokens.get(first..end) else { return String::new() };
    let (Some(begin), Some(last)) = (tokens.first(), tokens.last()) else { return String::new() };
    let all_text = tokens.iter().all(|token| token.kind == TokenKind::Text);
    if all_text {
        let plain = source.plain(first).unwrap_or_default();
        return plain.trim_start().to_owned();
    }
    let bytes = source.text.get(begin.start..last.end).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use remora_mysql::LexMode;

    use super::*;
    use crate::parse::split;

    #[test]
    fn texts_are_as_they_were_written() {
        let text = b"select distinct a+1 , f(b,  c) , 'it''s', (select x from y), t.from from t";
        let source = split(text, false, LexMode::default()).unwrap().remove(0);
        assert_eq!(texts(&source, 0), ["a+1", "f(b,  c)", "it's", "(select x from y)", "t.from"]);
    }
}
