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

/// What stands within one pair of parentheses.
#[derive(Clone, Copy, Default)]
struct Level {
    /// The expression so far.
    chain: usize,
    /// What stands behind its last operator.
    operand: usize,
    /// The deepest expression that has ended.
    deepest: usize,
    /// Queries that were joined.
    sets: usize,
}

impl Level {
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
                b"(" => outer.push(std::mem::take(&mut level)),
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
}
