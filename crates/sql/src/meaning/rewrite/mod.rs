//! Before planning: every operator and special form becomes a function call by name, and conditions become booleans, so
//! that DataFusion's own meaning never applies.

mod aggregates;
mod arguments;
mod calls;
mod casts;
mod digits;
mod frames;
mod run_literals;
mod special;

use std::{cell::Cell, ops::ControlFlow};

pub(crate) use calls::may_be_cached;
pub(crate) use run_literals::{
    COMPARISONS, RUN_LITERAL, RunLiteral, RunLiteralValue, mark_run_literals,
};
pub(crate) use special::is_volatile;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, Ident, JoinConstraint, JoinOperator, ObjectName, Query, Select,
    SelectItem, UnaryOperator, Value, ValueWithSpan, VisitorMut,
};
use remora_mysql::{ErrorCode, SqlMode, messages};

use super::library::NUMBERS_OF;
use crate::{
    Error, Result,
    parse::{SOUNDS_LIKE, VisitMut, function_named},
};

/// Session settings that decide how a statement is read.
#[derive(Clone, Debug)]
pub(crate) struct RewriteSettings {
    /// `sql_mode`.
    pub sql_mode: SqlMode,
    /// The current database, for messages.
    pub database: String,
}

/// Rewrites a statement, a query or an expression.
pub(crate) fn rewrite(node: &mut impl VisitMut, reading: &RewriteSettings) -> Result<()> {
    let mut rewriter = Rewriter { reading, depth: 0, sequences: Cell::new(0) };
    match node.visit(&mut rewriter) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// The deepest nesting of expressions.
const MAX_DEPTH: usize = 512;
/// The most values of a row in an equality comparison, each of which becomes a condition.
const MAX_COMPARED: usize = 512;
/// The most rows of an IN list that become conditions if no index can answer them.
const MAX_ALTERNATIVES: usize = 64;
/// The most values of a row that is compared by order with conditions, so that an index can answer
/// them. Each condition repeats all earlier values.
const MAX_ORDERED: usize = 8;

struct Rewriter<'a> {
    reading: &'a RewriteSettings,
    depth: usize,
    /// The number of RAND(seed) calls so far.
    sequences: Cell<i64>,
}

impl VisitorMut for Rewriter<'_> {
    type Break = Error;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message = "Expression nested too deeply";
            return ControlFlow::Break(Error::new(ErrorCode::ParseError, message));
        }
        bind_minus(expr);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        self.depth -= 1;
        let old = std::mem::replace(expr, null());
        match self.expression(old) {
            Ok(new) => {
                *expr = new;
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        let is_row = |item: &SelectItem| {
            matches!(
                item,
                SelectItem::UnnamedExpr(Expr::Tuple(_))
                    | SelectItem::ExprWithAlias { expr: Expr::Tuple(_), .. }
            )
        };
        if select.projection.iter().any(is_row) {
            return ControlFlow::Break(operand_columns(1));
        }
        if let Err(error) = select.named_window.iter_mut().try_for_each(frames::plain_offsets_of) {
            return ControlFlow::Break(error);
        }
        conditions_of(select);
        literals_of(select);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Error> {
        ControlFlow::Continue(())
    }
}

/// A minus sign binds tightest: `-3 ^ 2` is `(-3) ^ 2`.
fn bind_minus(expr: &mut Expr) {
    let Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } = expr else { return };
    let Expr::BinaryOp { op: BinaryOperator::BitwiseXor, left, .. } = inner.as_mut() else {
        return;
    };
    let base = std::mem::replace(left.as_mut(), null());
    **left = Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(base) };
    *expr = std::mem::replace(inner.as_mut(), null());
}

/// Makes the conditions in WHERE, HAVING and ON booleans.
fn conditions_of(select: &mut Select) {
    let conditions = [&mut select.selection, &mut select.having, &mut select.qualify];
    conditions.into_iter().flatten().for_each(make_truth);
    for join in select.from.iter_mut().flat_map(|from| from.joins.iter_mut()) {
        if let Some(expr) = join_condition(&mut join.join_operator) {
            make_truth(expr);
        }
    }
}

fn join_condition(operator: &mut JoinOperator) -> Option<&mut Expr> {
    let constraint = match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::CrossJoin(constraint)
        | JoinOperator::StraightJoin(constraint)
        | JoinOperator::Semi(constraint)
        | JoinOperator::LeftSemi(constraint)
        | JoinOperator::Anti(constraint)
        | JoinOperator::LeftAnti(constraint) => constraint,
        _ => return None,
    };
    match constraint {
        JoinConstraint::On(expr) => Some(expr),
        _ => None,
    }
}

/// Gives selected literals their exact types.
fn literals_of(select: &mut Select) {
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item
            && matches!(expr, Expr::Value(_))
        {
            let value = std::mem::replace(expr, null());
            *expr = call("literal", vec![value]);
        }
    }
}

fn make_truth(expr: &mut Expr) {
    let old = std::mem::replace(expr, null());
    *expr = truth(old);
}

/// The expression as a boolean.
fn truth(expr: Expr) -> Expr {
    match expr {
        Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. }
        | Expr::UnaryOp { op: UnaryOperator::Not, .. }
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::InSubquery { .. }
        | Expr::Exists { .. } => expr,
        Expr::Nested(inner) => Expr::Nested(Box::new(truth(*inner))),
        expr => call("truth", vec![expr]),
    }
}

/// The condition of an IF or a CASE as a boolean.
fn branch_truth(expr: Expr) -> Expr {
    if let Expr::Nested(inner) = expr {
        return Expr::Nested(Box::new(branch_truth(*inner)));
    }
    match truth(expr) {
        Expr::Function(mut asked) if asked.name == function_name("truth") => {
            asked.name = function_name("branch_truth");
            Expr::Function(asked)
        }
        expr => expr,
    }
}

fn not(expr: Expr) -> Expr {
    Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(truth(expr)) }
}

fn negated_if(negated: bool, expr: Expr) -> Expr {
    if negated { not(expr) } else { expr }
}

fn both(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    let (left, right) = (Box::new(truth(left)), Box::new(truth(right)));
    Expr::Nested(Box::new(Expr::BinaryOp { left, op, right }))
}

/// A call of a function.
fn call(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Function(function(name, digits::with_numbers(name, args)))
}

fn function(name: &str, args: Vec<Expr>) -> Function {
    function_named(Ident::with_quote('`', name), args)
}

/// A quoted lower-case name.
fn function_name(name: &str) -> ObjectName {
    ObjectName::from(vec![Ident::with_quote('`', name)])
}

fn null() -> Expr {
    literal(Value::Null)
}

fn literal(value: Value) -> Expr {
    Expr::Value(ValueWithSpan::from(value))
}

fn text(value: impl Into<String>) -> Expr {
    literal(Value::SingleQuotedString(value.into()))
}

fn number(value: i64) -> Expr {
    literal(Value::Number(value.to_string(), false))
}

impl Rewriter<'_> {
    fn expression(&self, expr: Expr) -> Result<Expr> {
        Ok(match expr {
            Expr::BinaryOp { left, op, right } => self.binary(*left, op, *right)?,
            Expr::UnaryOp { op, expr } => unary(op, *expr)?,
            Expr::Value(value) => special::value(value),
            Expr::Function(function) => self.function(function)?,
            Expr::Between { expr, negated: true, low, high } if is_quantified(&expr) => {
                call(NUMBERS_OF, vec![*expr, text("not between"), *low, *high])
            }
            Expr::InList { expr, list, negated: true } if is_quantified(&expr) => {
                let args = [*expr, text("not in")].into_iter().chain(list);
                call(NUMBERS_OF, args.collect())
            }
            Expr::Between { expr, negated, low, high } => {
                negated_if(negated, call("between", vec![*expr, *low, *high]))
            }
            Expr::InList { expr, list, negated } => {
                negated_if(negated, in_list(*expr, list, negated)?)
            }
            Expr::IsTrue(expr) => Expr::IsTrue(Box::new(truth(*expr))),
            Expr::IsNotTrue(expr) => Expr::IsNotTrue(Box::new(truth(*expr))),
            Expr::IsFalse(expr) => Expr::IsFalse(Box::new(truth(*expr))),
            Expr::IsNotFalse(expr) => Expr::IsNotFalse(Box::new(truth(*expr))),
            Expr::IsUnknown(expr) => Expr::IsNull(expr),
            Expr::IsNotUnknown(expr) => Expr::IsNotNull(expr),
            other => special::special(other)?,
        })
    }

    fn binary(&self, left: Expr, op: BinaryOperator, right: Expr) -> Result<Expr> {
        let name = match &op {
            BinaryOperator::And | BinaryOperator::Or => return Ok(both(left, op, right)),
            BinaryOperator::StringConcat if self.reading.sql_mode.has(SqlMode::PIPES_AS_CONCAT) => {
                "concat"
            }
            BinaryOperator::StringConcat => return Ok(both(left, BinaryOperator::Or, right)),
            BinaryOperator::Custom(name) if name == SOUNDS_LIKE => {
                let sound = |side| call("soundex", vec![side]);
                return Ok(call("=", vec![sound(left), sound(right)]));
            }
            BinaryOperator::Plus | BinaryOperator::Minus if is_row(&left) || is_row(&right) => {
                return Err(operand_columns(1));
            }
            BinaryOperator::Plus | BinaryOperator::Minus => {
                return Ok(sum(left, op == BinaryOperator::Minus, right));
            }
            op => operator_name(op).ok_or_else(|| Error::unsupported(op))?,
        };
        comparison(name, left, right)
    }
}

fn operator_name(op: &BinaryOperator) -> Option<&'static str> {
    Some(match op {
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::Modulo => "%",
        BinaryOperator::MyIntegerDivide | BinaryOperator::DuckIntegerDivide => "div",
        BinaryOperator::Eq => "=",
        BinaryOperator::NotEq => "<>",
        BinaryOperator::Lt => "<",
        BinaryOperator::LtEq => "<=",
        BinaryOperator::Gt => ">",
        BinaryOperator::GtEq => ">=",
        BinaryOperator::Spaceship => "<=>",
        BinaryOperator::Xor => "xor",
        BinaryOperator::BitwiseOr => "|",
        BinaryOperator::BitwiseAnd => "&",
        BinaryOperator::BitwiseXor | BinaryOperator::PGBitwiseXor => "^",
        BinaryOperator::PGBitwiseShiftLeft => "<<",
        BinaryOperator::PGBitwiseShiftRight => ">>",
        BinaryOperator::Arrow => "json_extract",
        BinaryOperator::LongArrow => "->>",
        BinaryOperator::Regexp => "regexp_like",
        _ => return None,
    })
}

/// A comparison of values or of rows, or another operator.
fn comparison(name: &str, left: Expr, right: Expr) -> Result<Expr> {
    match (row(left), row(right)) {
        (Ok(left), Ok(right)) => rows(name, left, right),
        (Err(left), Err(right)) => {
            let plain = !matches!(name, "=" | "<>" | "<" | "<=" | ">" | ">=" | "<=>");
            let numeric =
                plain && !matches!(name, "concat" | "json_extract" | "->>" | "regexp_like");
            // Beside binary strings they stay bytes.
            let may_be_bytes = matches!(name, "&" | "|" | "^")
                && !(digits::is_digits(&left) && digits::is_digits(&right));
            let args = match numeric && !may_be_bytes {
                true => vec![digits::hex_as_number(left), digits::hex_as_number(right)],
                false => vec![left, right],
            };
            Ok(call(name, args))
        }
        (Ok(row), Err(other)) | (Err(other), Ok(row)) => {
            if matches!(other, Expr::Subquery(_)) {
                return Err(Error::unsupported("a row compared with a subquery"));
            }
            Err(operand_columns(row.len()))
        }
    }
}

fn operand_columns(count: usize) -> Error {
    Error::new(ErrorCode::OperandColumns, messages::operand_columns(count))
}

/// The values of a row with several columns, or the expression itself.
#[expect(clippy::result_large_err, reason = "the expression is given back, not an error")]
fn row(expr: Expr) -> std::result::Result<Vec<Expr>, Expr> {
    match expr {
        Expr::Tuple(values) if values.len() > 1 => Ok(values),
        Expr::Nested(inner) if matches!(*inner, Expr::Tuple(_)) => row(*inner),
        Expr::Function(function) if arguments::is_named(&function, "row") => {
            Ok(arguments::arguments(&function))
        }
        other => Err(other),
    }
}

/// `(a, b) < (c, d)` as `a < c OR a = c AND b < d`.
fn rows(name: &str, left: Vec<Expr>, right: Vec<Expr>) -> Result<Expr> {
    if left.len() != right.len() {
        return Err(operand_columns(left.len()));
    }
    if !matches!(name, "=" | "<>" | "<" | "<=" | ">" | ">=" | "<=>") {
        return Err(operand_columns(1));
    }
    if matches!(name, "=" | "<>" | "<=>") && left.len() > MAX_COMPARED {
        let message = format!("Rows of more than {MAX_COMPARED} values are not compared");
        return Err(Error::new(ErrorCode::OutOfMemory, message));
    }
    let mut pairs = left.into_iter().zip(right).rev();
    let mut compared = |name: &str, op: BinaryOperator| -> Result<Expr> {
        let mut whole: Option<Expr> = None;
        for (left, right) in pairs.by_ref() {
            let one = comparison(name, left, right)?;
            whole = Some(match whole {
                Some(rest) => both(one, op.clone(), rest),
                None => one,
            });
        }
        whole.ok_or_else(|| operand_columns(1))
    };
    match name {
        "=" | "<=>" => compared(name, BinaryOperator::And),
        "<>" => compared(name, BinaryOperator::Or),
        name => ordered_rows(name, pairs),
    }
}

/// Whether it is `ANY(set)` or `ALL(set)`, for which NOT applies to each number.
fn is_quantified(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_quantified(inner),
        Expr::Function(function) => {
            ["any", "all"].iter().any(|it| arguments::is_named(function, it))
        }
        _ => false,
    }
}

fn is_row(expr: &Expr) -> bool {
    match expr {
        Expr::Tuple(_) => true,
        Expr::Nested(inner) => is_row(inner),
        Expr::Function(function) => arguments::is_named(function, "row"),
        _ => false,
    }
}

/// An ordered row comparison with volatile values, such as `(RAND(), a) < (b, c)`, each of which is
/// evaluated once. `pairs` are given last to first.
fn ordered_once(name: &str, pairs: Vec<(Expr, Expr)>) -> Result<Expr> {
    if pairs.iter().any(|(left, right)| is_row(left) || is_row(right)) {
        return Err(Error::unsupported("rows within rows compared by their order"));
    }
    let (mut args, right): (Vec<Expr>, Vec<Expr>) = pairs.into_iter().rev().unzip();
    args.extend(right);
    Ok(call(name, vec![call("row_order", args), number(0)]))
}

fn ordered_rows(name: &str, pairs: impl Iterator<Item = (Expr, Expr)>) -> Result<Expr> {
    let pairs: Vec<(Expr, Expr)> = pairs.collect();
    let varies = |(left, right): &(Expr, Expr)| special::varies(left) || special::varies(right);
    if pairs.len() > MAX_ORDERED || pairs.iter().any(varies) {
        return ordered_once(name, pairs);
    }
    let strict = name.trim_end_matches('=');
    let mut whole: Option<Expr> = None;
    for (left, right) in pairs {
        whole = Some(match whole {
            None => comparison(name, left, right)?,
            // Each nested row would double the comparisons.
            Some(_) if is_row(&left) => {
                return Err(Error::unsupported("rows within rows compared by their order"));
            }
            Some(rest) => {
                let before = comparison(strict, left.clone(), right.clone())?;
                let same = comparison("=", left, right)?;
                both(before, BinaryOperator::Or, both(same, BinaryOperator::And, rest))
            }
        });
    }
    whole.ok_or_else(|| operand_columns(1))
}

fn in_list(expr: Expr, list: Vec<Expr>, negated: bool) -> Result<Expr> {
    match row(expr) {
        Err(expr) => {
            let mut args = vec![expr];
            args.extend(list);
            Ok(call("in", args))
        }
        Ok(left)
            if left.iter().any(special::varies)
                || list.len() > MAX_ALTERNATIVES && (negated || !left.iter().all(is_column)) =>
        {
            let mut args = vec![number(i64::try_from(left.len()).unwrap_or(i64::MAX))];
            let width = left.len();
            args.extend(left);
            for each in list {
                let right = row(each).map_err(|_| operand_columns(width))?;
                let plain = right.len() == width && !right.iter().any(is_row);
                args.extend(if plain { right } else { return Err(operand_columns(width)) });
            }
            Ok(call("row_in", args))
        }
        Ok(left) => {
            let same = list.into_iter().map(|each| {
                let right = row(each).map_err(|_| operand_columns(left.len()))?;
                rows("=", left.clone(), right)
            });
            let same: Vec<Expr> = same.collect::<Result<_>>()?;
            one_of(same).ok_or_else(|| operand_columns(left.len()))
        }
    }
}

fn is_column(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

/// OR of conditions, as a balanced tree; `None` if there are none.
fn one_of(mut conditions: Vec<Expr>) -> Option<Expr> {
    if conditions.len() <= 1 {
        return conditions.pop();
    }
    let behind = conditions.split_off(conditions.len() / 2);
    Some(both(one_of(conditions)?, BinaryOperator::Or, one_of(behind)?))
}

fn unary(op: UnaryOperator, expr: Expr) -> Result<Expr> {
    Ok(match op {
        UnaryOperator::Not | UnaryOperator::BangNot => not(expr),
        UnaryOperator::Plus => expr,
        UnaryOperator::Minus => special::negative(expr),
        UnaryOperator::BitwiseNot => call("~", vec![digits::hex_as_number(expr)]),
        op => return Err(Error::unsupported(op)),
    })
}

/// A sum or difference. If an operand is an INTERVAL, the other one is a date.
fn sum(left: Expr, minus: bool, right: Expr) -> Expr {
    let spans = (arguments::span(left), arguments::span(right));
    let (date, (size, unit)) = match spans {
        (Err(date), Ok(span)) => (date, span),
        (Ok(span), Err(date)) if !minus => (date, span),
        (left, right) => {
            let whole = |side: std::result::Result<(Expr, Expr), Expr>| match side {
                Ok((size, unit)) => call("interval", vec![size, unit]),
                Err(expr) => digits::hex_as_number(expr),
            };
            return call(if minus { "-" } else { "+" }, vec![whole(left), whole(right)]);
        }
    };
    call(if minus { "date_sub" } else { "date_add" }, vec![date, size, unit])
}
