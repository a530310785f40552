//! The condition of a shape, from the syntax tree.

use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, Expr, SearchModifier, UnaryOperator, ValueWithSpan,
};

use super::{
    leaves::{PlainCall, chain, column, column_named, comparison, list_of, literal, parts_of},
    normalize::{NormalizedQuery, REPEATED, group_of},
    shape::{ColumnName, Comparison, Keywords, LiteralGroup, Match, ShapeCondition},
};
use crate::parse::KEYWORDS;

/// The deepest nesting of a condition.
const MAX_DEPTH: usize = 24;

/// The condition that an expression is; `None` if no shape has it.
pub(super) fn condition(
    parsed: &NormalizedQuery<'_>,
    expr: &Expr,
    depth: usize,
) -> Option<ShapeCondition> {
    if depth > MAX_DEPTH {
        return None;
    }
    let all = |op: &BinaryOperator| {
        let operands = chain(expr, op).into_iter();
        operands.map(|each| condition(parsed, each, depth)).collect::<Option<Vec<_>>>()
    };
    match expr {
        Expr::Nested(inner) => condition(parsed, inner, depth + 1),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
            Some(ShapeCondition::Not(Box::new(condition(parsed, expr, depth + 1)?)))
        }
        Expr::BinaryOp { op: op @ BinaryOperator::And, .. } => all(op).map(ShapeCondition::And),
        Expr::BinaryOp { op: op @ BinaryOperator::Or, .. } => all(op).map(ShapeCondition::Or),
        Expr::BinaryOp { left, op, right } => compared(left, comparison(op)?, right),
        Expr::Function(_) => called(parsed, expr, depth),
        Expr::MatchAgainst { .. } => {
            matching(expr, |text| group_of(&text.value)).map(ShapeCondition::Match)
        }
        Expr::IsNull(expr) => column(expr).map(ShapeCondition::IsNull),
        Expr::IsNotNull(expr) => {
            Some(ShapeCondition::Not(Box::new(ShapeCondition::IsNull(column(expr)?))))
        }
        Expr::InList { expr, list, negated } => {
            let columns = match expr.as_ref() {
                Expr::Tuple(columns) => columns.iter().map(column).collect::<Option<_>>()?,
                expr => vec![column(expr)?],
            };
            let group = list_of(list, columns.len())?;
            Some(negated_if(*negated, ShapeCondition::In(columns, group)))
        }
        Expr::Between { expr, negated, low, high } => {
            let between = ShapeCondition::Between(column(expr)?, literal(low)?, literal(high)?);
            Some(negated_if(*negated, between))
        }
        Expr::Like { negated, any: false, expr, pattern, escape_char: None } => {
            Some(negated_if(*negated, ShapeCondition::Like(column(expr)?, literal(pattern)?)))
        }
        _ => None,
    }
}

/// The condition, or what it denies.
pub(super) fn negated_if(negated: bool, condition: ShapeCondition) -> ShapeCondition {
    if negated { ShapeCondition::Not(Box::new(condition)) } else { condition }
}

fn compared(left: &Expr, comparison: Comparison, right: &Expr) -> Option<ShapeCondition> {
    if let Some(group) = literal(left) {
        return Some(ShapeCondition::Compare(column(right)?, comparison.mirrored(), group));
    }
    let group = literal(right)?;
    if comparison == Comparison::Greater
        && let Some((column, text)) = position(left)
    {
        return Some(ShapeCondition::Holds(column, text, group));
    }
    Some(ShapeCondition::Compare(column(left)?, comparison, group))
}

/// The column of INSTR, LOCATE or POSITION, and the text that is sought in it.
fn position(expr: &Expr) -> Option<(ColumnName, LiteralGroup)> {
    if let Expr::Position { expr: text, r#in: of } = expr {
        return Some((column(of)?, literal(text)?));
    }
    let call = PlainCall::of(expr).filter(|call| call.duplicates.is_none())?;
    let [first, second] = <[_; 2]>::try_from(call.expressions()?).ok()?;
    if call.is("INSTR") {
        return Some((column(first)?, literal(second)?));
    }
    if call.is("LOCATE") { Some((column(second)?, literal(first)?)) } else { None }
}

/// A call that is a condition: a query by keywords, or an operand of OR that is repeated.
fn called(parsed: &NormalizedQuery<'_>, expr: &Expr, depth: usize) -> Option<ShapeCondition> {
    let call = PlainCall::of(expr).filter(|call| call.duplicates.is_none())?;
    let args = call.expressions()?;
    let value = |expr: &'_ Expr| match expr {
        Expr::Value(value) => Some(value.value.clone()),
        _ => None,
    };
    if call.is_quoted(REPEATED) {
        let [operand, number] = <[_; 2]>::try_from(args).ok()?;
        let repeated = parsed.repeated(&value(number)?)?;
        let operand = condition(parsed, operand, depth)?;
        return Some(ShapeCondition::Again(Box::new(operand), repeated));
    }
    // Only MATCH('…') has a text there that is no literal of the statement.
    let (query, table) = match args.as_slice() {
        [query, options] if is_empty_text(options) => (query, None),
        [query, options, table] if is_empty_text(options) => (query, Some(table)),
        _ => return None,
    };
    if !call.is(KEYWORDS) {
        return None;
    }
    let table = match table.map(|table| value(table)) {
        // A literal is no name.
        Some(Some(text)) if group_of(&text).is_none() => match text {
            ast::Value::SingleQuotedString(name) => Some(name),
            _ => return None,
        },
        Some(_) => return None,
        None => None,
    };
    Some(ShapeCondition::Keywords(Keywords { text: literal(query)?, table, options: Vec::new() }))
}

fn is_empty_text(expr: &Expr) -> bool {
    let Expr::Value(value) = expr else { return false };
    matches!(&value.value, ast::Value::SingleQuotedString(text) if text.is_empty())
}

/// MATCH … AGAINST; `group` gives the group of its text.
pub(super) fn matching(
    expr: &Expr,
    group: impl FnOnce(&ValueWithSpan) -> Option<LiteralGroup>,
) -> Option<Match> {
    let Expr::MatchAgainst { columns, match_value, opt_search_modifier } = expr else {
        return None;
    };
    let boolean = match opt_search_modifier {
        None | Some(SearchModifier::InNaturalLanguageMode) => false,
        Some(SearchModifier::InBooleanMode) => true,
        Some(
            SearchModifier::InNaturalLanguageModeWithQueryExpansion
            | SearchModifier::WithQueryExpansion,
        ) => return None,
    };
    let columns = columns.iter().map(|name| column_named(&parts_of(name)?));
    let columns = columns.collect::<Option<Vec<_>>>()?;
    Some(Match { columns, text: group(match_value)?, boolean })
}
