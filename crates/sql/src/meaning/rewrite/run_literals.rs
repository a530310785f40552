//! Marks the literals that stay parameters of a cached plan: operands of comparisons, and the sizes of intervals that are
//! compared. Their types do not depend on their values, so one plan serves all values.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Query, Value, VisitorMut,
};

use super::{arguments::is_named, call, null, number};
use crate::parse::VisitMut;

/// The function around a marked literal: its arguments are the literal and its number.
pub(crate) const RUN_LITERAL: &str = "run_literal";
/// The functions whose operands may be marked.
pub(crate) const COMPARISONS: [&str; 8] = ["=", "<>", "<", "<=", ">", ">=", "<=>", "between"];

/// A literal of the statement.
pub(crate) struct RunLiteral {
    /// The position of its first byte in the text.
    pub place: usize,
    pub value: RunLiteralValue,
}

/// The value of such a literal in the statement that is planned.
pub(crate) enum RunLiteralValue {
    Integer(i64),
    Text(String),
}

impl RunLiteralValue {
    /// The value as a text by which equal ones are found, in small letters.
    pub(crate) fn to_lowercase(&self) -> String {
        match self {
            Self::Integer(number) => number.to_string(),
            Self::Text(text) => text.to_lowercase(),
        }
    }
}

/// Marks the literals of a rewritten query that occur only where their values do not decide the plan. They are given in
/// the order of the text.
pub(crate) fn mark_run_literals(query: &mut Query, literals: &[RunLiteral]) {
    let mut counting = Counting { literals, all: vec![0; literals.len()], eligible: Vec::new() };
    counting.eligible.clone_from(&counting.all);
    let _ = VisitMut::visit(query, &mut counting);
    let Counting { all, eligible, .. } = counting;
    let is_marked = all.iter().zip(&eligible).map(|(all, eligible)| all == eligible).collect();
    let _ = VisitMut::visit(query, &mut Marking { literals, is_marked });
}

/// The number of the literal that an expression is.
fn number_of(expr: &Expr, literals: &[RunLiteral]) -> Option<usize> {
    let Expr::Value(value) = expr else { return None };
    let place = usize::try_from(value.span.start.column).ok()?.checked_sub(1)?;
    let number = literals.binary_search_by_key(&place, |it| it.place).ok()?;
    let is_it = match (&literals.get(number)?.value, &value.value) {
        (RunLiteralValue::Integer(number), Value::Number(digits, _)) => {
            digits.parse() == Ok(*number)
        }
        (RunLiteralValue::Text(text), Value::SingleQuotedString(it)) => it == text,
        _ => false,
    };
    is_it.then_some(number)
}

/// The literals in an expression that may be marked: if it compares them with something that is no literal.
fn eligible(expr: &mut Expr) -> Vec<&mut Expr> {
    let mut operands = arguments_of(expr, &COMPARISONS);
    if operands.iter().all(|operand| matches!(operand, Expr::Value(_))) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for operand in operands.drain(..) {
        if matches!(operand, Expr::Value(_)) {
            found.push(operand);
            continue;
        }
        let mut of_date = arguments_of(operand, &["date_add", "date_sub"]).into_iter();
        if let (Some(date), Some(size)) = (of_date.next(), of_date.next())
            && !matches!(date, Expr::Value(_))
            && matches!(size, Expr::Value(value) if matches!(value.value, Value::Number(..)))
        {
            found.push(size);
        }
    }
    found
}

/// The arguments of a call of one of these functions; none for other expressions.
fn arguments_of<'e>(expr: &'e mut Expr, names: &[&str]) -> Vec<&'e mut Expr> {
    let Expr::Function(function) = expr else { return Vec::new() };
    if !names.iter().any(|name| is_named(function, name)) {
        return Vec::new();
    }
    let FunctionArguments::List(list) = &mut function.args else { return Vec::new() };
    let plain = list.args.iter_mut().filter_map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    plain.collect()
}

/// Counts the occurrences of each literal, and those that may be marked.
struct Counting<'l> {
    literals: &'l [RunLiteral],
    all: Vec<usize>,
    eligible: Vec<usize>,
}

impl VisitorMut for Counting<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let add = |counts: &mut Vec<usize>, number: Option<usize>| {
            if let Some(count) = number.and_then(|number| counts.get_mut(number)) {
                *count += 1;
            }
        };
        add(&mut self.all, number_of(expr, self.literals));
        for literal in eligible(expr) {
            add(&mut self.eligible, number_of(literal, self.literals));
        }
        ControlFlow::Continue(())
    }
}

struct Marking<'l> {
    literals: &'l [RunLiteral],
    is_marked: Vec<bool>,
}

impl VisitorMut for Marking<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        for literal in eligible(expr) {
            let Some(it) = number_of(literal, self.literals) else { continue };
            if self.is_marked.get(it).copied().unwrap_or(false) {
                let value = std::mem::replace(literal, null());
                let it = number(i64::try_from(it).unwrap_or(i64::MAX));
                *literal = call(RUN_LITERAL, vec![value, it]);
            }
        }
        ControlFlow::Continue(())
    }
}
