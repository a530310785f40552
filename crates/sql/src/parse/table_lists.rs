//! Parentheses around tables in FROM that the parser does not know: lists, as in `a LEFT JOIN (b, c) ON …`, which are
//! cross joins, and `{OJ a LEFT JOIN b ON …}`.
//!
//! A comma binds less than JOIN. So each element of a list is put in parentheses: `(b, c JOIN d)` is
//! `((b) CROSS JOIN (c JOIN d))`.

use std::ops::Range;

use remora_mysql::TokenKind;
use rustc_hash::FxHashMap;

use super::Source;

/// What a token of such parentheses is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListToken {
    /// `(` of a list.
    Open,
    /// `,` between its tables.
    Comma,
    /// `)` of a list.
    Close,
    /// `{`, before OJ.
    OpenJoin,
    /// `}`.
    CloseJoin,
}

/// The clause that a token is in, as far as it concerns FROM.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListPlace {
    /// Where tables are named.
    Tables,
    /// The condition of a join.
    On,
    Elsewhere,
}

/// Words behind which tables are named.
const BEFORE_TABLE: [&str; 3] = ["FROM", "JOIN", "STRAIGHT_JOIN"];
/// Words behind which the condition of a join stands.
const BEFORE_CONDITION: [&str; 2] = ["ON", "USING"];
/// Words that begin a query, or a further part of one.
const QUERIES: [&str; 7] = ["SELECT", "WITH", "VALUES", "TABLE", "UNION", "EXCEPT", "INTERSECT"];
/// Words that end FROM.
const BEHIND_FROM: [&str; 8] =
    ["WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "WINDOW", "INTO", "SET"];

/// Parentheses that are open.
struct Open {
    at: usize,
    place: ListPlace,
    /// Whether they may be a list of tables.
    is_list: bool,
    commas: Vec<usize>,
}

/// Finds the tokens among these that belong to such parentheses.
pub(super) fn find(source: &Source, tokens: &Range<usize>) -> FxHashMap<usize, ListToken> {
    let mut found = FxHashMap::default();
    let mut open = vec![Open::at(tokens.start, ListPlace::Elsewhere, false)];
    for at in tokens.clone() {
        let Some(token) = source.tokens.get(at) else { break };
        let is_inner = open.len() > 1;
        let Some(inner) = open.last_mut() else { break };
        match token.kind {
            TokenKind::Word if at > tokens.start && source.is(at - 1, ".") => {}
            TokenKind::Word => inner.read_word(source, at),
            TokenKind::Operator if source.is(at, "(") => {
                let is_list = inner.expects_table(source, at, tokens.start);
                let place = if is_list { ListPlace::Tables } else { ListPlace::Elsewhere };
                open.push(Open::at(at, place, is_list));
            }
            TokenKind::Operator if source.is(at, "{") && source.is_word(at + 1, "OJ") => {
                found.insert(at, ListToken::OpenJoin);
                open.push(Open::at(at, ListPlace::Tables, false));
            }
            TokenKind::Operator if source.is(at, ")") && is_inner => {
                let Some(closed) = open.pop().filter(|closed| !closed.commas.is_empty()) else {
                    continue;
                };
                found.insert(closed.at, ListToken::Open);
                found.extend(closed.commas.into_iter().map(|comma| (comma, ListToken::Comma)));
                found.insert(at, ListToken::Close);
            }
            TokenKind::Operator if source.is(at, "}") && source.is(inner.at, "{") => {
                found.insert(at, ListToken::CloseJoin);
                open.pop();
            }
            TokenKind::Operator if source.is(at, ",") && inner.place != ListPlace::Elsewhere => {
                inner.place = ListPlace::Tables;
                if inner.is_list {
                    inner.commas.push(at);
                }
            }
            _ => {}
        }
    }
    found
}

impl Open {
    fn at(at: usize, place: ListPlace, is_list: bool) -> Self {
        Self { at, place, is_list, commas: Vec::new() }
    }

    /// The clause behind a word.
    fn read_word(&mut self, source: &Source, at: usize) {
        let is_any = |words: &[&str]| words.iter().any(|word| source.is_word(at, word));
        if is_any(&BEFORE_TABLE) {
            self.place = ListPlace::Tables;
        } else if is_any(&BEFORE_CONDITION) {
            self.place = ListPlace::On;
        } else if is_any(&QUERIES) {
            (self.place, self.is_list) = (ListPlace::Elsewhere, false);
        } else if is_any(&BEHIND_FROM) {
            self.place = ListPlace::Elsewhere;
        }
    }

    /// Whether a parenthesis here stands where a table may be named.
    fn expects_table(&self, source: &Source, at: usize, start: usize) -> bool {
        let Some(before) = at.checked_sub(1).filter(|before| *before >= start) else {
            return false;
        };
        // `USE INDEX FOR JOIN (…)` lists indexes.
        let is_hint =
            source.is_word(before, "JOIN") && before > start && source.is_word(before - 1, "FOR");
        let is_behind = BEFORE_TABLE.iter().any(|word| source.is_word(before, word)) && !is_hint;
        let is_first = source.is(before, ",") || source.is(before, "(");
        is_behind || is_first && self.place == ListPlace::Tables
    }
}

#[cfg(test)]
mod tests {
    use remora_mysql::LexMode;

    use super::*;
    use crate::parse::split;

    #[test]
    fn only_lists_of_tables_are_found() {
        let marked = |text: &str| {
            let source = split(text.as_bytes(), false, LexMode::default()).unwrap().remove(0);
            let found = find(&source, &(0..source.tokens.len()));
            let marks = source.tokens.iter().enumerate().map(|(at, token)| {
                let said = String::from_utf8_lossy(source.bytes(token)).into_owned();
                if found.contains_key(&at) { format!("<{said}>") } else { said }
            });
            marks.collect::<Vec<_>>().join(" ")
        };
        let is_marked = |text: &str| assert_eq!(marked(&text.replace(['<', '>'], "")), text);
        is_marked("select a , ( b , c ) from a left join <(> b <,> c <)> on f ( a , b ) = ( 1 )");
        is_marked(
            "select 1 from <(> a <,> <(> b <,> c join d using ( x , y ) <)> <)> where a in ( 1 , 2 )",
        );
        is_marked("select 1 from ( select a , b from c , <(> d <,> e <)> order by 1 , 2 ) x , y");
        is_marked("select 1 from ( ( select a , b from c ) union select 1 , 2 order by 1 , 2 ) x");
        is_marked(
            "select 1 from a use index for join ( a , b ) join b where ( 1 , 2 ) = ( a , b )",
        );
        is_marked(
            "select 1 from <{> oj a left join <(> b <,> c <)> on a = b <}> group by a , ( b )",
        );
        is_marked(
            "select trim ( both from ( a ) ) , extract ( day from ( b ) ) , ( 1 , 2 ) = ( 1 , 2 )",
        );
    }
}
