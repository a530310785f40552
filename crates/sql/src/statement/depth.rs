//! How deep a statement's tree will be, before it is made: chains of operators are as deep as they
//! are long, and whoever walks the tree, or drops it, needs so much of a stack.

use super::{Source, TokenKind};
use crate::{Code, Error, Result};

/// The deepest tree: of what nests, and of chains of operators.
pub(super) const MAX_DEPTH: usize = 400;

/// Words that join expressions as operators do, or stand before one.
const OPERATORS: [&str; 17] = [
    "BETWEEN", "BINARY", "COLLATE", "DIV", "ESCAPE", "IN", "INTERVAL", "IS", "LIKE", "MEMBER",
    "MOD", "NOT", "PRIOR", "REGEXP", "RLIKE", "SOUNDS", "XOR",
];

/// Words behind which another expression begins. Chains of AND and of OR become trees that are as
/// wide as they are deep.
const SEPARATORS: [&str; 23] = [
    "AND",
    "AS",
    "ELSE",
    "FROM",
    "GROUP",
    "HAVING",
    "JOIN",
    "LIMIT",
    "ON",
    "OR",
    "ORDER",
    "OVER",
    "PARTITION",
    "SELECT",
    "SET",
    "THEN",
    "USING",
    "VALUES",
    "WHEN",
    "WHERE",
    "WINDOW",
    "WITH",
    "CASE",
];

/// Words that join queries.
const SETS: [&str; 4] = ["EXCEPT", "INTERSECT", "MINUS", "UNION"];

/// Words that begin a query in parentheses.
const QUERIES: [&str; 4] = ["SELECT", "TABLE", "VALUES", "WITH"];
/// How often the same query may be read: where several parentheses stand before one in FROM or IN, it
/// is read again for each of them, and what is within it as often for each time.
const MOST_READINGS: usize = 64;

/// What stands within one pair of parentheses.
#[derive(Clone, Copy)]
struct Level {
    /// How often it is read.
    readings: usize,
    /// The expression so far.
    chain: usize,
    /// What stands behind its last operator.
    operand: usize,
    /// The deepest expression that has ended.
    deepest: usize,
    /// Queries that were joined.
    sets: usize,
}

impl Default for Level {
    fn default() -> Self {
        Self { readings: 1, chain: 0, operand: 0, deepest: 0, sets: 0 }
    }
}

impl Level {
    /// The level of a parenthesis that opens in this one, `run` of which stand before a query.
    fn within(self, run: usize) -> Self {
        let readings = self.readings.saturating_mul(run.max(1));
        Self { readings, ..Self::default() }
    }

    fn operator(&mut self) {
        self.chain = self.chain.max(self.operand) + 1;
        self.operand = 0;
    }

    fn separator(&mut self) {
        self.deepest = self.depth();
        self.chain = 0;
        self.operand = 0;
    }

    fn depth(&self) -> usize {
        self.deepest.max(self.chain).max(self.operand)
    }
}

/// Refuses a statement whose tree may be too deep.
pub(super) fn check(source: &Source) -> Result<()> {
    let is_any = |at: usize, words: &[&str]| words.iter().any(|word| source.is_word(at, word));
    let mut outer: Vec<Level> = Vec::new();
    let mut level = Level::default();
    for (at, token) in source.tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Operator => match source.bytes(token) {
                b"(" => {
                    // The first of several counts for all of them.
                    let run = if at > 0 && source.is(at - 1, "(") { 1 } else { run_at(source, at) };
                    let inner = level.within(run);
                    outer.push(std::mem::replace(&mut level, inner));
                    if level.readings > MOST_READINGS {
                        return Err(too_deep());
                    }
                }
                b")" => {
                    let inner = level.depth() + level.sets + 1;
                    level = outer.pop().unwrap_or_default();
                    level.operand = level.operand.max(inner);
                }
                b"," | b";" => level.separator(),
                b"." => {}
                _ => level.operator(),
            },
            TokenKind::Word if is_any(at, &OPERATORS) => level.operator(),
            TokenKind::Word if is_any(at, &SEPARATORS) => level.separator(),
            TokenKind::Word if is_any(at, &SETS) => {
                level.separator();
                level.sets += 1;
            }
            _ => {}
        }
        if level.depth() + level.sets > MAX_DEPTH {
            return Err(too_deep());
        }
    }
    Ok(())
}

/// How many parentheses stand here before a query; 1 where they stand before anything else.
fn run_at(source: &Source, at: usize) -> usize {
    let run = (at..).take_while(|at| source.is(*at, "(")).count();
    match QUERIES.iter().any(|word| source.is_word(at + run, word)) {
        true => run,
        false => 1,
    }
}

/// 1038 for what nests deeper than there is room for.
pub(super) fn too_deep() -> Error {
    let message = format!("The statement nests deeper than {MAX_DEPTH} levels");
    Error::new(Code::OutOfMemory, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::{LexMode, split};

    fn fits(text: &str) -> bool {
        let source = split(text.as_bytes(), false, LexMode::default()).unwrap().remove(0);
        check(&source).is_ok()
    }

    #[test]
    fn chains_and_nests_are_measured_together() {
        let most = MAX_DEPTH;
        let plus = |times: usize| "+1".repeat(times);
        assert!(fits(&format!("SELECT 1{}", plus(most))));
        assert!(!fits(&format!("SELECT 1{}", plus(most + 1))));
        assert!(fits(&format!("SELECT 1{}, 1{}", plus(most), plus(most))));
        assert!(!fits(&format!("SELECT (1{}){}", plus(most / 2), plus(most / 2))));
        assert!(!fits(&format!("SELECT {}1", "NOT ".repeat(most + 1))));
        assert!(fits(&format!("SELECT 1 WHERE a = 1{}", " OR a = 1".repeat(20_000))));
        assert!(fits(&format!("SELECT a IN (1{})", ",1".repeat(20_000))));
        assert!(!fits(&format!("SELECT 1{}", " UNION SELECT 1".repeat(most + 1))));
    }

    #[test]
    fn queries_that_would_be_read_too_often_are_refused() {
        let nested = |open: &str, times: usize| {
            let close = ")".repeat(open.len());
            (0..times)
                .fold("t".to_owned(), |inner, _| format!("{open}SELECT * FROM {inner}{close} AS u"))
        };
        let fits_from = |open, times| fits(&format!("SELECT * FROM {}", nested(open, times)));
        assert!(fits_from("(", 100) && fits_from("((", 6) && fits_from("(((", 3));
        assert!(!fits_from("((", 7) && !fits_from("(((", 4));
        assert!(fits(&format!("SELECT {}1{}", "((".repeat(60), "))".repeat(60))));
    }
}
