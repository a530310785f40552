//! The statement that counts the rows a SELECT finds, without its LIMIT.

use std::ops::Range;

use remora_engine::Value;
use remora_mysql::TokenKind;

use super::{Source, facets::depths};

/// A statement that counts what another finds, and the values for its `?`.
#[derive(Clone, Debug)]
pub(crate) struct CountQuery {
    /// Its text.
    pub text: String,
    /// A value for each `?`.
    pub parameters: Vec<Value>,
}

/// What ends the part of a SELECT that says which rows it finds.
const ENDS: [&str; 5] = ["ORDER", "LIMIT", "OPTION", "INTO", "FOR"];
/// What makes of rows something else.
const GROUPED: [&str; 4] = ["GROUP", "HAVING", "DISTINCT", "DISTINCTROW"];
const AGGREGATES: [&str; 10] =
    ["AVG", "BIT_AND", "BIT_OR", "BIT_XOR", "COUNT", "GROUP_CONCAT", "MAX", "MIN", "STD", "SUM"];

/// What counts the rows of a SELECT; `None` for a statement of another form.
pub(crate) fn count_query(source: &Source, parameters: &[Value]) -> Option<CountQuery> {
    let depths = depths(source);
    let count = source.tokens.len();
    let top = |at: usize, word: &str| depths.get(at) == Some(&0) && source.is_word(at, word);
    let among = |at: usize, words: &[&str]| words.iter().any(|word| top(at, word));
    let is_other = (0..count).any(|at| among(at, &["UNION", "EXCEPT", "INTERSECT", "WITH"]));
    if !source.is_word(0, "SELECT") || is_other {
        return None;
    }
    let from = (0..count).find(|&at| top(at, "FROM"))?;
    // The order within groups is not the statement's.
    let is_within = |at: usize| at >= 2 && source.is_word(at - 2, "WITHIN");
    let is_end = |at: &usize| among(*at, &ENDS) && !is_within(*at);
    let end = (from..count).find(is_end).unwrap_or(count);
    let option = (end..count).rev().find(|&at| top(at, "OPTION")).unwrap_or(count);
    let is_aggregate = |at: usize| {
        source.is(at + 1, "(") && AGGREGATES.iter().any(|word| source.is_word(at, word))
    };
    let is_grouped = (0..end).any(|at| among(at, &GROUPED)) || (0..from).any(is_aggregate);
    let counted = if is_grouped { 0..end } else { from..end };
    let (rows, options) = (text(source, counted.clone()), text(source, option..count));
    let text = match is_grouped {
        true => format!("SELECT COUNT(*) FROM ({rows}) AS found {options}"),
        false => format!("SELECT COUNT(*) {rows} {options}"),
    };
    let parameters = [counted, option..count].into_iter().flat_map(|range| {
        let all = |range: Range<usize>| {
            let tokens = source.tokens.get(range).unwrap_or_default();
            tokens.iter().filter(|token| token.kind == TokenKind::Parameter).count()
        };
        let before = all(0..range.start);
        parameters.iter().skip(before).take(all(range)).cloned().collect::<Vec<_>>()
    });
    Some(CountQuery { text, parameters: parameters.collect() })
}

fn text(source: &Source, range: Range<usize>) -> String {
    let tokens = source.tokens.get(range).unwrap_or_default();
    let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return String::new() };
    let bytes = source.text.get(first.start..last.end).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use remora_mysql::LexMode;

    use super::*;
    use crate::parse::split;

    #[test]
    fn what_is_counted_is_what_is_found() {
        let counted = |text: &str| {
            let source = split(text.as_bytes(), false, LexMode::default()).unwrap().remove(0);
            let values = [Value::Int(1), Value::Int(2), Value::Int(3), Value::Int(4)];
            let count_query = count_query(&source, &values)?;
            let values: Vec<String> = count_query.parameters.iter().map(Value::to_string).collect();
            Some(format!("{} [{}]", count_query.text.trim_end(), values.join(",")))
        };
        let found = counted("SELECT ?, b FROM t WHERE MATCH(?) ORDER BY ? LIMIT 5 OPTION ranker=?");
        assert_eq!(found.unwrap(), "SELECT COUNT(*) FROM t WHERE MATCH(?) OPTION ranker=? [2,4]");
        let found = counted(
            "SELECT g FROM t WHERE MATCH('q') GROUP 2 BY g WITHIN GROUP ORDER BY a LIMIT ?",
        );
        assert_eq!(
            found.unwrap(),
            "SELECT COUNT(*) FROM (SELECT g FROM t WHERE MATCH('q') GROUP 2 BY g WITHIN GROUP \
             ORDER BY a) AS found []"
        );
        assert_eq!(counted("SELECT a FROM t UNION SELECT b FROM t"), None);
    }
}
