//! Estimates how deep a statement's syntax tree will be, before it is built. A chain of operators is as deep as it is
//! long, and every walk over the tree, and dropping it, needs that much stack.
//!
//! It also estimates the cost of planning. Every rule asks at each level of an expression for types and names, and each
//! answer walks everything below: a level costs the square of its depth. One deep expression is planned quickly;
//! thousands are not.

use std::ops::{ControlFlow, Range};

use datafusion::sql::sqlparser::ast::{Expr, Visitor};
use remora_mysql::{ErrorCode, TokenKind};

use super::{Source, Visit};
use crate::{Error, Result};

/// The deepest syntax tree: nested expressions and chains of operators count.
pub(super) const MAX_DEPTH: usize = 400;

/// The most that a plan may cost, in visits of one level by another: about a second of planning.
const MAX_COST: u64 = 25_000_000;
/// The most conditions joined by AND, including those in parentheses and in merged queries. A plan that moves
/// conditions makes one chain of them, as deep as it is long.
const MAX_CONDITIONS: usize = 2_048;
/// The most windows, and the most aggregates. A plan visits all of them once for each aggregate and twice for each
/// window, so the cost grows with the square of their number.
const MAX_WINDOWS: usize = 256;
const MAX_AGGREGATES: usize = 1_024;
/// The most common table expressions. If each reads the one before it, the plan is as deep as their number.
const MAX_TABLE_EXPRESSIONS: usize = 1_024;
/// The names of aggregates.
const AGGREGATES: [&str; 15] = [
    "AVG",
    "BIT_AND",
    "BIT_OR",
    "BIT_XOR",
    "COUNT",
    "GROUP_CONCAT",
    "JSON_ARRAYAGG",
    "JSON_OBJECTAGG",
    "MAX",
    "MIN",
    "STD",
    "STDDEV",
    "SUM",
    "VARIANCE",
    "ANY_VALUE",
];
/// The cost of one level of a comparison, relative to one of a sum. Both sides are converted to the type in which they
/// are compared.
const COMPARISON_COST: u64 = 8;

/// Words that join expressions as operators do, or stand before one.
const OPERATORS: [&str; 17] = [
    "BETWEEN", "BINARY", "COLLATE", "DIV", "ESCAPE", "IN", "INTERVAL", "IS", "LIKE", "MEMBER",
    "MOD", "NOT", "PRIOR", "REGEXP", "RLIKE", "SOUNDS", "XOR",
];

/// Those that compare, and the signs that do.
const COMPARISONS: [&str; 6] = ["BETWEEN", "IN", "LIKE", "REGEXP", "RLIKE", "XOR"];
const COMPARISON_SIGNS: [&[u8]; 8] = [b"=", b"<", b">", b"<=", b">=", b"<>", b"!=", b"<=>"];

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
/// The most times that the parser may read one query. In FROM and IN it reads a query once more for each parenthesis
/// before it. Nested queries multiply.
const MOST_READINGS: usize = 64;

/// The content of one pair of parentheses.
#[derive(Clone, Copy)]
struct Level {
    /// The number of times that the parser reads it.
    readings: usize,
    /// The depth of the current expression so far.
    chain: usize,
    /// The depth of the operand after the last operator.
    operand: usize,
    /// The depth of the deepest finished expression.
    deepest: usize,
    /// The number of queries joined by UNION and the like.
    sets: usize,
    /// The conditions joined by AND.
    conditions: Conditions,
    /// The number of commas. If a row is compared, each of its values becomes a condition.
    commas: usize,
    /// Whether this is the list of selected items, whose conditions are not joined with others.
    is_selected: bool,
}

/// The number of conditions joined by AND. Conditions joined by OR do not count.
#[derive(Clone, Copy, Default)]
struct Conditions {
    /// Those of finished clauses.
    before: usize,
    /// Those of this clause after its last OR.
    here: usize,
    has_or: bool,
    /// Whether the next AND belongs to BETWEEN.
    is_between: bool,
}

impl Conditions {
    /// Counts a word. Returns false if there are too many conditions.
    fn take(&mut self, word: &str) -> bool {
        match word {
            // The branches of CASE are separate conditions, and so are the queries of a UNION.
            "WHEN" | "THEN" | "ELSE" => {
                (self.here, self.has_or, self.is_between) = (0, false, false)
            }
            "UNION" | "EXCEPT" | "INTERSECT" | "MINUS" => *self = Self::default(),
            "AND" if self.is_between => self.is_between = false,
            "AND" => self.here += 1,
            "BETWEEN" => self.is_between = true,
            "OR" => (self.here, self.has_or) = (0, true),
            _ => self.end(),
        }
        self.fit()
    }

    /// Drops the conditions of a selected item: they are not joined with others.
    fn forget(&mut self, is_selected: bool) {
        if is_selected {
            (self.here, self.has_or, self.is_between) = (0, false, false);
        }
    }

    /// Ends the clause.
    fn end(&mut self) {
        self.before += if self.has_or { 0 } else { self.here };
        (self.here, self.has_or, self.is_between) = (0, false, false);
    }

    /// Adds the conditions of a closed parenthesis. Returns false if there are too many.
    fn take_inner(&mut self, mut inner: Self) -> bool {
        inner.end();
        self.here += inner.before;
        self.fit()
    }

    /// Adds the further values of a row that is compared. Returns false if there are too many conditions.
    fn take_row(&mut self, more: usize) -> bool {
        self.here += more;
        self.fit()
    }

    fn fit(&self) -> bool {
        self.before + self.here <= MAX_CONDITIONS
    }
}

impl Default for Level {
    fn default() -> Self {
        let conditions = Conditions::default();
        let is_selected = false;
        Self {
            readings: 1,
            chain: 0,
            operand: 0,
            deepest: 0,
            sets: 0,
            conditions,
            commas: 0,
            is_selected,
        }
    }
}

impl Level {
    /// The level inside an opening parenthesis, the first of `run` parentheses before a query.
    fn within(self, run: usize) -> Self {
        let readings = self.readings.saturating_mul(run.max(1));
        Self { readings, ..Self::default() }
    }

    /// Adds an operator and returns the cost of planning it.
    fn operator(&mut self, weight: u64) -> u64 {
        self.chain = self.chain.max(self.operand) + 1;
        self.operand = 0;
        weight * square(self.chain)
    }

    /// Begins the next expression, after a word or a comma. Returns false if there are too many conditions.
    fn separator(&mut self, word: &str) -> bool {
        self.deepest = self.depth();
        self.chain = 0;
        self.operand = 0;
        match word {
            "SELECT" | "SET" => self.is_selected = true,
            "FROM" | "WHERE" | "HAVING" => {
                self.conditions.forget(self.is_selected);
                self.is_selected = false;
            }
            "," => self.conditions.forget(self.is_selected),
            _ => {}
        }
        self.conditions.take(word)
    }

    fn depth(&self) -> usize {
        self.deepest.max(self.chain).max(self.operand)
    }
}

/// The cost of one level at this depth.
fn square(depth: usize) -> u64 {
    (depth as u64).saturating_pow(2)
}

/// Refuses tokens of a statement whose syntax tree may be too deep or whose plan would cost too much. The ranges are
/// planned together, so their costs add up.
pub(super) fn check(source: &Source, ranges: &[Range<usize>]) -> Result<()> {
    check_parts(source, ranges)?;
    let is_any = |at: usize, words: &[&str]| words.iter().any(|word| source.is_word(at, word));
    let which = |at: usize, words: &[&'static str]| {
        words.iter().find(|word| source.is_word(at, word)).copied()
    };
    let mut outer: Vec<Level> = Vec::new();
    let mut level = Level::default();
    let (mut cost, mut fits) = (0_u64, true);
    let all = ranges.iter().flat_map(|range| range.clone().map(|at| (range.start, at)));
    for (start, at) in all {
        let Some(token) = source.tokens.get(at) else { break };
        if at == start {
            (level, outer) = (Level::default(), Vec::new());
        }
        match token.kind {
            TokenKind::Operator => match source.bytes(token) {
                b"(" => {
                    // The first of several parentheses counts for all of them.
                    let is_behind = at > start && source.is(at - 1, "(");
                    let run = if is_behind { 1 } else { run_at(source, at) };
                    let inner = level.within(run);
                    outer.push(std::mem::replace(&mut level, inner));
                    if level.readings > MOST_READINGS {
                        return Err(too_deep());
                    }
                }
                b")" => {
                    let inner = level.depth() + level.sets + 1;
                    let (conditions, commas) = (level.conditions, level.commas);
                    level = outer.pop().unwrap_or_default();
                    fits &= level.conditions.take_inner(conditions);
                    if is_compared(source, at + 1) {
                        fits &= level.conditions.take_row(commas);
                    }
                    level.operand = level.operand.max(inner);
                    cost += square(inner);
                }
                b"," | b";" => {
                    fits &= level.separator(",");
                    level.commas += 1;
                }
                b"." => {}
                sign if COMPARISON_SIGNS.contains(&sign) => {
                    cost += level.operator(COMPARISON_COST);
                }
                _ => cost += level.operator(1),
            },
            TokenKind::Word if is_any(at, &COMPARISONS) => {
                cost += level.operator(COMPARISON_COST);
                if source.is_word(at, "BETWEEN") {
                    fits &= level.conditions.take("BETWEEN");
                }
            }
            TokenKind::Word if is_any(at, &OPERATORS) => cost += level.operator(1),
            TokenKind::Word => {
                if let Some(word) = which(at, &SEPARATORS) {
                    fits &= level.separator(word);
                } else if let Some(word) = which(at, &SETS) {
                    fits &= level.separator(word);
                    level.sets += 1;
                }
            }
            _ => {}
        }
        check_limits(&level, cost, fits)?;
    }
    Ok(())
}

fn check_limits(level: &Level, cost: u64, fits: bool) -> Result<()> {
    if !fits {
        return Err(too_many_conditions());
    }
    if level.depth() + level.sets > MAX_DEPTH {
        return Err(too_deep());
    }
    if cost > MAX_COST {
        return Err(too_costly());
    }
    Ok(())
}

/// The number of nodes of an expression made by substitution; error 1038 if it is too deep.
pub(crate) fn checked_parts(expr: &Expr) -> Result<usize> {
    let mut parts = Parts { depth: 0, count: 0 };
    match expr.visit(&mut parts) {
        ControlFlow::Continue(()) => Ok(parts.count),
        ControlFlow::Break(()) => Err(too_deep()),
    }
}

struct Parts {
    depth: usize,
    count: usize,
}

impl Visitor for Parts {
    type Break = ();

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.depth += 1;
        self.count += 1;
        match self.depth > MAX_DEPTH {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

/// Whether this token is a comparison operator.
fn is_compared(source: &Source, at: usize) -> bool {
    let sign = source.tokens.get(at).is_some_and(|token| {
        token.kind == TokenKind::Operator && COMPARISON_SIGNS.contains(&source.bytes(token))
    });
    sign || source.is_word(at, "IN") || source.is_word(at, "NOT") && source.is_word(at + 1, "IN")
}

/// Refuses too many windows, aggregates and common table expressions: planning them would take too long.
fn check_parts(source: &Source, ranges: &[Range<usize>]) -> Result<()> {
    let (mut windows, mut aggregates, mut expressions) = (0, 0, 0);
    for at in ranges.iter().cloned().flatten() {
        let Some(token) = source.tokens.get(at) else { break };
        if token.kind != TokenKind::Word {
            continue;
        }
        let is_called = source.is(at + 1, "(");
        windows += usize::from(source.is_word(at, "OVER"));
        let aggregates_here = is_called && AGGREGATES.iter().any(|name| source.is_word(at, name));
        aggregates += usize::from(aggregates_here);
        let is_query = || QUERIES.iter().any(|word| source.is_word(at + 2, word));
        expressions += usize::from(source.is_word(at, "AS") && is_called && is_query());
    }
    for (found, most, what) in [
        (windows, MAX_WINDOWS, "windows"),
        (aggregates, MAX_AGGREGATES, "aggregates"),
        (expressions, MAX_TABLE_EXPRESSIONS, "common table expressions"),
    ] {
        if found > most {
            let message =
                format!("The statement has more than {most} {what}: use several statements");
            return Err(Error::new(ErrorCode::OutOfMemory, message));
        }
    }
    Ok(())
}

/// The number of consecutive parentheses here if a query follows them, else 1.
fn run_at(source: &Source, at: usize) -> usize {
    let run = (at..).take_while(|at| source.is(*at, "(")).count();
    match QUERIES.iter().any(|word| source.is_word(at + run, word)) {
        true => run,
        false => 1,
    }
}

/// Error 1038: nested too deep.
pub(super) fn too_deep() -> Error {
    let message = format!("The statement nests deeper than {MAX_DEPTH} levels");
    Error::new(ErrorCode::OutOfMemory, message)
}

/// Error 1038: too many conditions.
fn too_many_conditions() -> Error {
    let message = format!(
        "The statement joins more than {MAX_CONDITIONS} conditions by AND: use IN and NOT IN with a list, \
         or a table to join with"
    );
    Error::new(ErrorCode::OutOfMemory, message)
}

/// Error 1038: planning would cost too much.
pub(crate) fn too_costly() -> Error {
    let message = "The statement's expressions are too deep, or too many of them are: use shorter chains of \
                   operators, fewer levels of calls, or several statements";
    Error::new(ErrorCode::OutOfMemory, message)
}

#[cfg(test)]
mod tests {
    use remora_mysql::LexMode;

    use super::*;
    use crate::parse::split;

    fn fits(text: &str) -> bool {
        let source = split(text.as_bytes(), false, LexMode::default()).unwrap().remove(0);
        check(&source, std::slice::from_ref(&(0..source.tokens.len()))).is_ok()
    }

    #[test]
    fn chains_and_nests_are_measured_together() {
        let most = MAX_DEPTH;
        let plus = |times: usize| "+1".repeat(times);
        assert!(fits(&format!("SELECT 1{}", plus(most))));
        assert!(!fits(&format!("SELECT 1{}", plus(most + 1))));
        assert!(fits(&format!("SELECT 1{}, 1{}", plus(most / 2), plus(most / 2 + 100))));
        assert!(!fits(&format!("SELECT (1{}){}", plus(most / 2), plus(most / 2))));
        assert!(!fits(&format!("SELECT {}1", "NOT ".repeat(most + 1))));
        assert!(fits(&format!("SELECT 1 WHERE a = 1{}", " OR a = 1".repeat(20_000))));
        assert!(fits(&format!("SELECT a IN (1{})", ",1".repeat(20_000))));
        assert!(!fits(&format!("SELECT 1{}", " UNION SELECT 1".repeat(most + 1))));
    }

    #[test]
    fn conditions_that_must_hold_together_are_so_many() {
        let most = MAX_CONDITIONS;
        let ands = |times: usize| format!("a = 1{}", " AND a <> 1".repeat(times));
        assert!(fits(&format!("SELECT 1 WHERE {}", ands(most))));
        assert!(!fits(&format!("SELECT 1 WHERE {}", ands(most + 1))));
        // Conditions of merged queries count together; conditions joined by OR do not.
        let half = ands(most / 2);
        assert!(!fits(&format!("SELECT 1 WHERE ({half}) AND ({half}) AND {half}")));
        assert!(!fits(&format!(
            "SELECT * FROM (SELECT 1 WHERE {half}) d WHERE ({half}) AND ({half})"
        )));
        assert!(fits(&format!("SELECT 1 WHERE ({half}) OR ({half}) OR ({half})")));
        // Selected items, branches of CASE and parts of a UNION are not joined with other conditions.
        let branch = "WHEN a = 1 AND b = 1 AND c = 1 THEN 1 ";
        assert!(fits(&format!("SELECT CASE {}END FROM t", branch.repeat(most))));
        assert!(fits(&format!("SELECT {half}, {half}, {half} FROM t WHERE {half}")));
        let part = format!("SELECT 1 WHERE {half}");
        assert!(fits(&[part.as_str(); 5].join(" UNION ALL ")));
        assert!(!fits(&format!("SELECT 1 FROM t JOIN u ON {half} WHERE {}", ands(most))));
        assert!(fits(&format!("SELECT 1 WHERE 0{}", " OR a = 1 AND b = 2".repeat(20_000))));
        assert!(fits(&format!("SELECT 1 WHERE 0{}", " OR (a = 1 AND b = 2)".repeat(20_000))));
        assert!(fits(&format!("SELECT 1 WHERE 0{}", " OR a BETWEEN 1 AND 2".repeat(20_000))));
    }

    #[test]
    fn common_table_expressions_are_so_many() {
        let chain = |times: usize| {
            let next = |at| format!(", c{at} (v) AS (SELECT v FROM c{})", at - 1);
            let rest: String = (1..times).map(next).collect();
            fits(&format!("WITH c0 AS (SELECT 1 AS v){rest} SELECT * FROM c{}", times - 1))
        };
        assert!(chain(MAX_TABLE_EXPRESSIONS) && !chain(MAX_TABLE_EXPRESSIONS + 1));
    }

    #[test]
    fn deep_expressions_are_few() {
        let sums = |depth: usize, times: usize| {
            let sum = format!("1{}", "+1".repeat(depth));
            fits(&format!("SELECT {}", vec![sum; times].join(",")))
        };
        assert!(sums(390, 1) && sums(100, 60) && sums(12, 4_000) && sums(2, 100_000));
        assert!(!sums(390, 2) && !sums(100, 100) && !sums(50, 1_000));
        let compared = |depth: usize| fits(&format!("SELECT 1{}", " = 1".repeat(depth)));
        assert!(compared(200) && !compared(250));
        assert!(fits(&format!("SELECT {}1{}", "COALESCE(".repeat(390), ", 1)".repeat(390))));
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
