//! Which conditions of a plan the text index answers.

use datafusion::{
    common::ScalarValue,
    logical_expr::{Expr, Operator, expr::ScalarFunction},
};
use remora_engine::TextQuery;

use super::{IndexAnswer, beginning, held, holds, like, matching, may_hold};
use crate::{catalog::SqlTable, parse::MATCH};

/// The shortest literal of a regular expression that is worth looking up, in characters.
const MIN_LITERAL: usize = 2;

/// A table, and a way to tell which of its columns an expression is.
pub(crate) struct SearchedTable<'a> {
    /// The table.
    pub table: &'a SqlTable,
    /// Maps an expression to the position of its column in the schema.
    pub column: &'a dyn Fn(&Expr) -> Option<usize>,
}

/// What the text index can answer of a condition on the table's rows.
pub(crate) fn plan(asked: &SearchedTable<'_>, filter: &Expr) -> IndexAnswer {
    asked.plan(filter).unwrap_or(IndexAnswer::Scan)
}

impl SearchedTable<'_> {
    fn plan(&self, filter: &Expr) -> Option<IndexAnswer> {
        match filter {
            Expr::ScalarFunction(call) => self.call(call),
            Expr::Not(inner) => self.negated(inner),
            Expr::BinaryExpr(binary) => match binary.op {
                Operator::And => self.both(&binary.left, &binary.right),
                Operator::Or => self.either(&binary.left, &binary.right),
                operator => self.compared(&binary.left, operator, &binary.right),
            },
            _ => None,
        }
    }

    fn call(&self, call: &ScalarFunction) -> Option<IndexAnswer> {
        let args = call.args.as_slice();
        match (call.func.name(), args) {
            ("truth", [inner]) => self.plan(inner),
            ("like", [column, pattern, rest @ ..]) => {
                Some(like(self.table, self.column(column)?, &text(pattern)?, escape(rest)?))
            }
            ("regexp_like", [column, pattern]) => {
                let literal = literal_of(&text(pattern)?)?;
                Some(may_hold(self.table, self.column(column)?, &literal))
            }
            (MATCH, [mode, query, columns @ ..]) => {
                let columns: Option<Vec<usize>> =
                    columns.iter().map(|column| self.column(column)).collect();
                let query = matching(self.table, &columns?, &text(query)?, &text(mode)?).ok()?;
                Some(IndexAnswer::Exact(query))
            }
            _ => None,
        }
    }

    /// The engine's NOT knows no NULL, so rows with nullable columns are checked again.
    fn negated(&self, inner: &Expr) -> Option<IndexAnswer> {
        let IndexAnswer::Exact(query) = self.plan(inner)? else { return None };
        let columns = &self.table.schema.columns;
        let present = inner.column_refs().into_iter().all(|column| {
            let position = (self.column)(&Expr::Column(column.clone()));
            position.and_then(|at| columns.get(at)).is_some_and(|column| !column.nullable)
        });
        let query = TextQuery::Not(Box::new(query));
        Some(if present { IndexAnswer::Exact(query) } else { IndexAnswer::Superset(query) })
    }

    fn both(&self, left: &Expr, right: &Expr) -> Option<IndexAnswer> {
        let (left, right) = (plan(self, left), plan(self, right));
        let and = |a, b| TextQuery::And(vec![a, b]);
        Some(match (left, right) {
            (IndexAnswer::Exact(a), IndexAnswer::Exact(b)) => IndexAnswer::Exact(and(a, b)),
            (IndexAnswer::Scan, IndexAnswer::Scan) => return None,
            (IndexAnswer::Scan, IndexAnswer::Exact(one) | IndexAnswer::Superset(one))
            | (IndexAnswer::Exact(one) | IndexAnswer::Superset(one), IndexAnswer::Scan) => {
                IndexAnswer::Superset(one)
            }
            (
                IndexAnswer::Exact(a) | IndexAnswer::Superset(a),
                IndexAnswer::Exact(b) | IndexAnswer::Superset(b),
            ) => IndexAnswer::Superset(and(a, b)),
        })
    }

    fn either(&self, left: &Expr, right: &Expr) -> Option<IndexAnswer> {
        let (left, right) = (plan(self, left), plan(self, right));
        let or = |a, b| TextQuery::Or(vec![a, b]);
        Some(match (left, right) {
            (IndexAnswer::Exact(a), IndexAnswer::Exact(b)) => IndexAnswer::Exact(or(a, b)),
            (IndexAnswer::Scan, _) | (_, IndexAnswer::Scan) => return None,
            (
                IndexAnswer::Exact(a) | IndexAnswer::Superset(a),
                IndexAnswer::Exact(b) | IndexAnswer::Superset(b),
            ) => IndexAnswer::Superset(or(a, b)),
        })
    }

    /// INSTR or LOCATE compared with 0.
    fn compared(&self, left: &Expr, operator: Operator, right: &Expr) -> Option<IndexAnswer> {
        let (column, part) = found_in(left, operator, right)?;
        Some(holds(self.table, self.column(column)?, &text(part)?))
    }

    fn column(&self, expr: &Expr) -> Option<usize> {
        (self.column)(expr)
    }
}

/// Substrings that a text must contain for a condition to hold.
pub(crate) struct RequiredSubstrings<'e> {
    /// The text's expression.
    pub of: &'e Expr,
    /// The pattern or text sought.
    pub sought: &'e Expr,
    /// The prefix that the text must have; empty if none is required.
    pub beginning: String,
    /// Substrings that the text must contain, in any order.
    pub held: Vec<String>,
}

/// The substrings that a condition by LIKE, REGEXP, INSTR or LOCATE requires.
pub(crate) fn letters(filter: &Expr) -> Option<RequiredSubstrings<'_>> {
    let without =
        |of, sought, held| RequiredSubstrings { of, sought, beginning: String::new(), held };
    match filter {
        Expr::ScalarFunction(call) => match (call.func.name(), call.args.as_slice()) {
            ("truth", [inner]) => letters(inner),
            ("like", [of, sought, rest @ ..]) => {
                let escape = escape(rest)?;
                let pattern = text(sought)?;
                let (beginning, _) = beginning(&pattern, escape);
                Some(RequiredSubstrings { of, sought, beginning, held: held(&pattern, escape) })
            }
            ("regexp_like", [of, sought]) => {
                Some(without(of, sought, vec![literal_of(&text(sought)?)?]))
            }
            _ => None,
        },
        Expr::BinaryExpr(binary) => {
            let (of, sought) = found_in(&binary.left, binary.op, &binary.right)?;
            Some(without(of, sought, vec![text(sought)?]))
        }
        _ => None,
    }
}

/// The escape character of LIKE.
fn escape(given: &[Expr]) -> Option<Option<char>> {
    match given {
        [] => Some(Some('\\')),
        [escape] => Some(text(escape)?.chars().next()),
        _ => None,
    }
}

/// The text and the sought text of INSTR or LOCATE, if a comparison with 0 requires a match.
fn found_in<'e>(
    left: &'e Expr,
    operator: Operator,
    right: &'e Expr,
) -> Option<(&'e Expr, &'e Expr)> {
    let (call, operator, number) = match (left, right) {
        (Expr::ScalarFunction(call), Expr::Literal(number, _)) => (call, operator, number),
        (Expr::Literal(number, _), Expr::ScalarFunction(call)) => (call, operator.swap()?, number),
        _ => return None,
    };
    let number = match number {
        ScalarValue::Int64(Some(number)) => *number,
        ScalarValue::UInt64(Some(number)) => i64::try_from(*number).ok()?,
        _ => return None,
    };
    let is_there =
        matches!((operator, number), (Operator::Gt | Operator::NotEq, 0) | (Operator::GtEq, 1));
    match (call.func.name(), call.args.as_slice()) {
        ("instr", [of, part]) | ("locate", [part, of]) if is_there => Some((of, part)),
        _ => None,
    }
}

/// The text of a literal expression.
pub(crate) fn text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Literal(
            ScalarValue::Utf8(Some(text))
            | ScalarValue::Utf8View(Some(text))
            | ScalarValue::LargeUtf8(Some(text)),
            _,
        ) => Some(text.clone()),
        Expr::Alias(alias) => text(&alias.expr),
        _ => None,
    }
}

/// The longest literal that every match of a regular expression contains; `None` if there is none
/// or the expression has alternatives.
fn literal_of(pattern: &str) -> Option<String> {
    if pattern.contains(['|', '(', ')']) {
        return None;
    }
    let (mut best, mut run) = (String::new(), String::new());
    let mut characters = pattern.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '[' => {
                end_run(&mut run, &mut best);
                // A `]` that is the first member of a set does not end it.
                let _ = characters.next_if_eq(&'^');
                let _ = characters.next_if_eq(&']');
                if characters.any(|c| c == '[' || c == '\\') {
                    return None;
                }
                let inside = pattern.matches('[').count() == pattern.matches(']').count();
                if !inside {
                    return None;
                }
                break;
            }
            '?' | '*' | '{' => {
                run.pop();
                end_run(&mut run, &mut best);
                if c == '{' {
                    characters.by_ref().find(|&c| c == '}')?;
                }
            }
            '+' => end_run(&mut run, &mut best),
            '\\' => match characters.next()? {
                // `\<` and `\>` are word boundaries.
                '<' | '>' => return None,
                escaped if escaped.is_ascii_punctuation() => run.push(escaped),
                _ => return None,
            },
            '.' | '^' | '$' => end_run(&mut run, &mut best),
            c => run.push(c),
        }
    }
    end_run(&mut run, &mut best);
    (best.chars().count() >= MIN_LITERAL).then_some(best)
}

fn end_run(run: &mut String, best: &mut String) {
    if run.chars().count() > best.chars().count() {
        std::mem::swap(run, best);
    }
    run.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_expressions_give_what_they_must_hold() {
        let cases = [
            ("quantum", Some("quantum")),
            ("^quantum.*physics$", Some("quantum")),
            ("colou?r", Some("colo")),
            ("ab+c", Some("ab")),
            ("a{2}bcd", Some("bcd")),
            ("c\\+\\+", Some("c++")),
            ("\\<quantum\\>", None),
            ("a|b", None),
            ("(ab)?", None),
            ("\\d+", None),
            (".", None),
            ("abc[de]fgh", Some("abc")),
        ];
        for (pattern, expected) in cases {
            assert_eq!(literal_of(pattern).as_deref(), expected, "{pattern}");
        }
    }
}
