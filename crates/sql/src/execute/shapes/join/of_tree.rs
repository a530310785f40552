//! The shape of a join, from its syntax tree. What it may be is in [`super`].

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DuplicateTreatment, Expr, FunctionArg, FunctionArgExpr, Join, JoinConstraint,
    JoinOperator, Query, SelectItem, TableFactor, TableWithJoins,
};

use super::{Chain, Items, JoinCondition, JoinPredicate, JoinShape, LiteralOffset, Named};
use crate::execute::shapes::{
    leaves::{PlainCall, chain, column, comparison, list_of, literal},
    normalize::NormalizedQuery,
    of_tree::{SelectParts, alias_of, named, table, written},
    shape::{ColumnName, Comparison, LiteralGroup},
};

/// The deepest nesting of parentheses and subqueries.
const MAX_DEPTH: usize = 8;
/// The most tables of a FROM.
const MAX_TABLES: usize = 8;

/// The shape of a statement, if it is a join of this form.
pub(in crate::execute::shapes) fn shape(parsed: &NormalizedQuery<'_>) -> Option<JoinShape> {
    if parsed.branches.times != 1 || !parsed.options.is_empty() {
        return None;
    }
    let parts = SelectParts::of_plain(&parsed.query)?;
    let items = items(parsed, parts.items)?;
    let chain = match (&items, parts.from) {
        (
            Items::Count(_),
            [TableWithJoins { relation: of @ TableFactor::Derived { .. }, joins }],
        ) => {
            let is_alone = joins.is_empty() && parts.condition.is_none();
            derived(of).filter(|_| is_alone)?
        }
        _ => joined(&parts, 0)?,
    };
    Some(JoinShape { items, chain })
}

/// One side of a comparison.
enum Operand {
    Literal(LiteralGroup),
    Column(ColumnName, Option<LiteralOffset>),
}

fn items(parsed: &NormalizedQuery<'_>, items: &[SelectItem]) -> Option<Items> {
    if let [item] = items
        && let Some((expr, alias)) = named(item)
        && let Some(call) = PlainCall::of(expr)
    {
        let name = || alias.or_else(|| written(parsed, expr));
        return match (call.duplicates, call.args) {
            _ if !call.is("COUNT") => None,
            (None, [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]) => name().map(Items::Count),
            (
                Some(DuplicateTreatment::Distinct),
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(of))],
            ) => {
                let of = match of {
                    Expr::Nested(inner) => inner,
                    of => of,
                };
                Some(Items::CountDistinct(column(of)?, name()?))
            }
            _ => None,
        };
    }
    columns(items).map(Items::Columns)
}

/// Columns and their names.
fn columns(items: &[SelectItem]) -> Option<Vec<(ColumnName, String)>> {
    let each = |item: &SelectItem| {
        let (expr, alias) = named(item)?;
        let column = column(expr)?;
        let name = alias.unwrap_or_else(|| column.name.clone());
        Some((column, name))
    };
    items.iter().map(each).collect()
}

/// `( SELECT columns FROM … ) alias`, whose rows are only counted.
fn derived(factor: &TableFactor) -> Option<Chain> {
    let TableFactor::Derived { lateral: false, subquery, alias, sample: None } = factor else {
        return None;
    };
    alias_of(alias.as_ref())??;
    let parts = SelectParts::of_plain(subquery)?;
    let columns = columns(parts.items)?;
    // Duplicate column names are an error, which the general path reports.
    let mut names: Vec<String> = columns.iter().map(|(_, name)| name.to_lowercase()).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair.first() == pair.last()) {
        return None;
    }
    let mut chain = joined(&parts, 1)?;
    chain.selected = columns.into_iter().map(|(column, _)| column).collect();
    Some(chain)
}

/// The tables of a FROM, with what ON and WHERE say of them.
fn joined(parts: &SelectParts<'_>, depth: usize) -> Option<Chain> {
    if depth > MAX_DEPTH {
        return None;
    }
    let mut chain = Chain::default();
    for from in parts.from {
        // ON may name no table before the last comma.
        let first = chain.tables.len();
        chain.tables.push(named_table(&from.relation)?);
        for Join { relation, global, join_operator } in &from.joins {
            let (JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::CrossJoin(constraint)) = join_operator
            else {
                return None;
            };
            chain.tables.push(named_table(relation)?);
            match constraint {
                JoinConstraint::On(on) => said(on, depth, first, &mut chain)?,
                JoinConstraint::None => {}
                JoinConstraint::Using(_) | JoinConstraint::Natural => return None,
            }
            if *global {
                return None;
            }
        }
    }
    if let Some(condition) = parts.condition {
        said(condition, depth, 0, &mut chain)?;
    }
    let is_few = !chain.tables.is_empty() && chain.tables.len() <= MAX_TABLES;
    is_few.then_some(chain)
}

fn named_table(factor: &TableFactor) -> Option<Named> {
    let (database, table, alias) = table(factor)?;
    Some(Named { database, table, alias })
}

/// Conditions that may name the tables from number `first` on.
fn said(expr: &Expr, depth: usize, first: usize, chain: &mut Chain) -> Option<()> {
    let mut facts = Vec::new();
    all_facts(expr, depth, &mut facts)?;
    let sees = first..chain.tables.len();
    chain.facts.extend(facts.into_iter().map(|fact| JoinCondition { fact, sees: sees.clone() }));
    Some(())
}

fn all_facts(expr: &Expr, depth: usize, facts: &mut Vec<JoinPredicate>) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    for expr in chain(expr, &BinaryOperator::And) {
        match expr {
            Expr::Nested(inner) => all_facts(inner, depth + 1, facts)?,
            expr => fact(expr, depth, facts)?,
        }
    }
    Some(())
}

fn fact(expr: &Expr, depth: usize, facts: &mut Vec<JoinPredicate>) -> Option<()> {
    match expr {
        Expr::BinaryOp { left, op, right } => {
            facts.push(compared(operand(left)?, comparison(op)?, operand(right)?)?);
        }
        Expr::Between { expr, negated: false, low, high } => {
            let (column, low, high) = (column(expr)?, literal(low)?, literal(high)?);
            let least = Comparison::GreaterOrEqual;
            facts.push(JoinPredicate::Constant(column.clone(), least, low));
            facts.push(JoinPredicate::Constant(column, Comparison::LessOrEqual, high));
        }
        Expr::InList { expr, list, negated: false } => {
            facts.push(JoinPredicate::In(column(expr)?, list_of(list, 1)?));
        }
        Expr::InSubquery { expr, subquery, negated: false } => {
            facts.push(in_chain(column(expr)?, subquery, depth)?);
        }
        _ => return None,
    }
    Some(())
}

fn compared(left: Operand, comparison: Comparison, right: Operand) -> Option<JoinPredicate> {
    Some(match (left, right) {
        (Operand::Column(left, None), Operand::Literal(group)) => {
            JoinPredicate::Constant(left, comparison, group)
        }
        (Operand::Literal(group), Operand::Column(right, None)) => {
            JoinPredicate::Constant(right, comparison.mirrored(), group)
        }
        (Operand::Column(left, None), Operand::Column(right, added)) => {
            JoinPredicate::Columns(left, comparison, right, added)
        }
        (Operand::Column(left, added), Operand::Column(right, None)) => {
            JoinPredicate::Columns(right, comparison.mirrored(), left, added)
        }
        _ => return None,
    })
}

/// `column IN (SELECT column FROM …)`.
fn in_chain(column: ColumnName, subquery: &Query, depth: usize) -> Option<JoinPredicate> {
    let parts = SelectParts::of_plain(subquery)?;
    let [(selected, _)] = <[_; 1]>::try_from(columns(parts.items)?).ok()?;
    let chain = joined(&parts, depth + 1)?;
    Some(JoinPredicate::InChain(column, selected, chain))
}

fn operand(expr: &Expr) -> Option<Operand> {
    if let Some(group) = literal(expr) {
        return Some(Operand::Literal(group));
    }
    let Expr::BinaryOp { left, op, right } = expr else {
        return column(expr).map(|column| Operand::Column(column, None));
    };
    let subtracted = match op {
        BinaryOperator::Minus => true,
        BinaryOperator::Plus => false,
        _ => return None,
    };
    let added = LiteralOffset { subtracted, literal: literal(right)? };
    Some(Operand::Column(column(left)?, Some(added)))
}
