//! Takes conditions off a syntax tree. Each run sends them to the engine with its own literals.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, JoinConstraint, LimitClause, Query, Select, SetExpr, UnaryOperator,
    Value, ValueWithSpan, VisitorMut,
};

use super::{
    super::{
        condition::Tests,
        constant::Constant,
        leaves::{self, PlainCall, comparison},
        of_condition::negated_if,
        parameterize::{Constants, FIRST_MADE, MadeValue, ParameterizedText},
        shape::{ColumnName, Comparison, LiteralGroup, ShapeCondition},
        table::ShapeTable,
    },
    from::{JoinedTables, PlanTables, constraint, may_be_bare},
    labels::UnnamedItems,
    searched::{literal_group, matching},
};
use crate::{parse::VisitMut, search};

/// The most columns of a row comparison.
const MAX_ROW: usize = 8;

/// The conditions that were taken.
#[derive(Default)]
pub(super) struct PushedConditions {
    /// The conditions of each table that has any, with the table's index.
    pub tests: Vec<(usize, Tests)>,
    pub limit: Option<LiteralGroup>,
    pub offset: Option<LiteralGroup>,
    /// The groups of all literals taken.
    pub groups: Vec<LiteralGroup>,
    /// The values made of literals in conditions, by number.
    pub made: Vec<MadeLiteral>,
}

/// A value made of literals.
#[derive(Debug)]
pub(super) enum MadeLiteral {
    Sum(LiteralGroup, LiteralGroup),
    Difference(LiteralGroup, LiteralGroup),
    /// `CONCAT('%', 'word', '%')`.
    Text(Vec<LiteralGroup>),
}

impl MadeLiteral {
    /// The value for these literals; `None` if their types do not fit, or a number is not of 64 bits.
    pub(super) fn value(&self, constants: &Constants<'_>) -> Option<MadeValue> {
        let number = |group: &LiteralGroup| match constants.one(*group) {
            Constant::Integer(number) => i64::try_from(number).ok(),
            _ => None,
        };
        let text = |group: &LiteralGroup| match constants.one(*group) {
            Constant::Text(text) => Some(text),
            _ => None,
        };
        match self {
            Self::Sum(left, right) => {
                number(left)?.checked_add(number(right)?).map(MadeValue::Integer)
            }
            Self::Difference(left, right) => {
                number(left)?.checked_sub(number(right)?).map(MadeValue::Integer)
            }
            Self::Text(parts) => parts.iter().map(text).collect::<Option<_>>().map(MadeValue::Text),
        }
    }
}

/// A text and the literals of the statement that is planned.
type PlannedLiterals<'l> = (&'l ParameterizedText, &'l Constants<'l>);

impl PushedConditions {
    /// Takes the conditions of WHERE and ON, also of subqueries, that the engine answers exactly for any literals. If a
    /// column is called as a text with literals of a subquery that must not change, all subqueries' literals stay part of the plan.
    pub fn conditions(
        &mut self,
        query: &mut Query,
        literals: PlannedLiterals<'_>,
        (tables, unnamed): (&PlanTables, &UnnamedItems),
    ) {
        if unnamed.has_fixed_queries {
            if let SetExpr::Select(select) = query.body.as_mut() {
                self.of_select(select, literals, tables);
            }
            return;
        }
        let _ = query.visit(&mut EachSelect(|select: &mut Select| {
            self.of_select(select, literals, tables);
        }));
    }

    fn of_select(
        &mut self,
        select: &mut Select,
        literals: PlannedLiterals<'_>,
        tables: &PlanTables,
    ) {
        let joined = tables.joined_by(select);
        if let Some(condition) = select.selection.take() {
            let of = |condition: &ShapeCondition| joined.of_where(condition);
            select.selection = self.of_condition(condition, literals, (tables, &joined), of);
        }
        let joins = select.from.iter_mut().enumerate();
        let joins = joins.flat_map(|(part, from)| {
            let joins = from.joins.iter_mut().enumerate();
            joins.map(move |(place, join)| ((part, place), join))
        });
        for (place, join) in joins {
            let whole = join.clone();
            let Some(constraint) = constraint(&mut join.join_operator) else { continue };
            let JoinConstraint::On(condition) = constraint else { continue };
            let of = |condition: &ShapeCondition| joined.of_join(condition, &whole, place);
            match self.of_condition(condition.clone(), literals, (tables, &joined), of) {
                Some(rest) => *condition = rest,
                None if may_be_bare(&whole) => *constraint = JoinConstraint::None,
                None => *condition = Expr::Value(Value::Boolean(true).into()),
            }
        }
    }

    /// Takes the conjuncts it can and returns the rest. `of` gives the table that a conjunct can be pushed down to.
    fn of_condition(
        &mut self,
        condition: Expr,
        literals: PlannedLiterals<'_>,
        (tables, joined): (&PlanTables, &JoinedTables<'_>),
        of: impl Fn(&ShapeCondition) -> Option<usize>,
    ) -> Option<Expr> {
        let mut parts = Vec::new();
        conjuncts(condition, &mut parts);
        let mut left = Vec::new();
        for part in parts {
            let mut reading = Reading::new(literals, Some(joined));
            reading.made = std::mem::take(&mut self.made);
            let taken = reading.condition(&part).and_then(|condition| {
                let (place, is_sure) = (of(&condition)?, reading.patterns == 0);
                let table = tables.all.get(place)?;
                (is_sure || reading.answers(&condition, table)).then_some(())?;
                self.add(place, &condition, table)
            });
            self.made = reading.made;
            match taken {
                Some(()) => self.groups.append(&mut reading.groups),
                None => left.push(part),
            }
        }
        left.into_iter().reduce(|left, right| Expr::BinaryOp {
            left: Box::new(left),
            op: BinaryOperator::And,
            right: Box::new(right),
        })
    }

    fn add(&mut self, place: usize, condition: &ShapeCondition, table: &ShapeTable) -> Option<()> {
        if let Some((_, tests)) = self.tests.iter_mut().find(|(of, _)| *of == place) {
            return tests.add(condition, table);
        }
        let mut tests = Tests::default();
        tests.add(condition, table)?;
        self.tests.push((place, tests));
        Some(())
    }

    /// Takes LIMIT and OFFSET; `None` if they are not literals.
    pub fn page(&mut self, query: &mut Query, parameterized: &ParameterizedText) -> Option<()> {
        let (limit, offset) = match query.limit_clause.take() {
            None => return Some(()),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
                (limit, offset.map(|offset| offset.value))
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => (Some(limit), Some(offset)),
            Some(_) => return None,
        };
        let mut reading = Reading::of_text(parameterized);
        self.limit =
            limit.map(|limit| reading.literal(&limit)).map_or(Some(None), |it| it.map(Some))?;
        self.offset =
            offset.map(|offset| reading.literal(&offset)).map_or(Some(None), |it| it.map(Some))?;
        self.groups.append(&mut reading.groups);
        Some(())
    }
}

/// Whether a condition only compares columns with literals.
pub(super) fn is_comparison(condition: &Expr, parameterized: &ParameterizedText) -> bool {
    let mut reading = Reading::of_text(parameterized);
    reading.condition(condition).is_some() && reading.patterns == 0
}

/// Calls a function for each SELECT of a query.
struct EachSelect<F>(F);

impl<F: FnMut(&mut Select)> VisitorMut for EachSelect<F> {
    type Break = ();

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        (self.0)(select);
        ControlFlow::Continue(())
    }
}

/// Splits a condition into its conjuncts.
pub(super) fn conjuncts(condition: Expr, parts: &mut Vec<Expr>) {
    // With a work list instead of recursion: there may be thousands.
    let mut left = vec![condition];
    while let Some(condition) = left.pop() {
        match condition {
            Expr::BinaryOp { left: one, op: BinaryOperator::And, right: other } => {
                left.push(*other);
                left.push(*one);
            }
            Expr::Nested(inner)
                if matches!(*inner, Expr::BinaryOp { op: BinaryOperator::And, .. }) =>
            {
                left.push(*inner);
            }
            other => parts.push(other),
        }
    }
}

struct Reading<'l> {
    parameterized: &'l ParameterizedText,
    /// The tables whose functional keys expressions may match.
    tables: Option<&'l JoinedTables<'l>>,
    /// The groups of literals read so far.
    groups: Vec<LiteralGroup>,
    made: Vec<MadeLiteral>,
    /// The literals of the statement that is planned, if patterns are read.
    constants: Option<&'l Constants<'l>>,
    /// The number of patterns of LIKE, which the engine answers exactly or not.
    patterns: usize,
}

impl<'l> Reading<'l> {
    /// Reads comparisons alone.
    fn of_text(parameterized: &'l ParameterizedText) -> Self {
        let (groups, made, constants) = (Vec::new(), Vec::new(), None);
        Self { parameterized, tables: None, groups, made, constants, patterns: 0 }
    }

    fn new(
        (parameterized, constants): PlannedLiterals<'l>,
        tables: Option<&'l JoinedTables<'l>>,
    ) -> Self {
        Self { tables, constants: Some(constants), ..Self::of_text(parameterized) }
    }

    /// Whether the engine answers a condition exactly for the literals of the statement that is planned.
    fn answers(&self, condition: &ShapeCondition, table: &ShapeTable) -> bool {
        let Some(constants) = self.constants else { return false };
        let made = self.made.iter().map(|made| made.value(constants)).collect();
        let constants = Constants { made, ..constants.clone() };
        let tests = Tests::new(Some(condition), table);
        tests.is_some_and(|tests| tests.fill(&constants, table).is_some())
    }

    /// The condition; `None` if it is more than comparisons of columns with literals.
    fn condition(&mut self, expr: &Expr) -> Option<ShapeCondition> {
        match expr {
            Expr::Nested(inner) => self.condition(inner),
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
                Some(ShapeCondition::Not(Box::new(self.condition(expr)?)))
            }
            Expr::IsNull(expr) => Some(ShapeCondition::IsNull(self.column(expr)?)),
            Expr::IsNotNull(expr) => {
                Some(ShapeCondition::Not(Box::new(ShapeCondition::IsNull(self.column(expr)?))))
            }
            Expr::Between { expr, negated, low, high } => {
                let column = self.column(expr)?;
                let between =
                    ShapeCondition::Between(column, self.number(low)?, self.number(high)?);
                Some(negated_if(*negated, between))
            }
            Expr::Like { negated: false, any: false, expr, pattern, escape_char: None } => {
                let column = self.column(expr)?;
                let group = self.pattern(pattern)?;
                let begins = match pattern.as_ref() {
                    Expr::Value(ValueWithSpan {
                        value: Value::SingleQuotedString(text), ..
                    }) => search::plain_beginning(text).is_some(),
                    _ => false,
                };
                if begins {
                    return Some(ShapeCondition::Begins(column, group));
                }
                self.patterns += 1;
                self.constants?;
                Some(ShapeCondition::Like(column, group))
            }
            Expr::InList { expr, list, negated } => {
                let column = self.column(expr)?;
                let listed = ShapeCondition::In(vec![column], self.list(list)?);
                Some(negated_if(*negated, listed))
            }
            Expr::BinaryOp { left, op, right } => self.binary(left, op, right),
            Expr::MatchAgainst { .. } => {
                let searched = matching(expr, self.parameterized)?;
                self.groups.push(searched.text);
                Some(ShapeCondition::Match(searched))
            }
            _ => None,
        }
    }

    fn binary(&mut self, left: &Expr, op: &BinaryOperator, right: &Expr) -> Option<ShapeCondition> {
        let comparison = match op {
            BinaryOperator::And => {
                return Some(ShapeCondition::And(vec![
                    self.condition(left)?,
                    self.condition(right)?,
                ]));
            }
            BinaryOperator::Or => return self.either(left, right),
            op => comparison(op)?,
        };
        if let (Expr::Tuple(left), Expr::Tuple(right)) = (left, right) {
            return self.row(left, comparison, right);
        }
        match self.column(left) {
            Some(column) => Some(ShapeCondition::Compare(column, comparison, self.number(right)?)),
            None => {
                let column = self.column(right)?;
                Some(ShapeCondition::Compare(column, comparison.mirrored(), self.number(left)?))
            }
        }
    }

    /// Rewrites a row comparison as an OR over the first column that decides.
    fn row(
        &mut self,
        left: &[Expr],
        comparison: Comparison,
        right: &[Expr],
    ) -> Option<ShapeCondition> {
        let strict = match comparison {
            Comparison::Less | Comparison::LessOrEqual => Comparison::Less,
            Comparison::Greater | Comparison::GreaterOrEqual => Comparison::Greater,
            Comparison::Equal | Comparison::NotEqual => return None,
        };
        if left.len() != right.len() || left.len() < 2 || left.len() > MAX_ROW {
            return None;
        }
        let columns = left.iter().map(|it| self.column(it)).collect::<Option<Vec<_>>>()?;
        let literals = right.iter().map(|it| self.literal(it)).collect::<Option<Vec<_>>>()?;
        let pairs: Vec<_> = columns.into_iter().zip(literals).collect();
        let last = pairs.len() - 1;
        let decided_at = |place: usize| {
            let equal = pairs.iter().take(place);
            let mut parts: Vec<ShapeCondition> = equal
                .map(|(column, group)| {
                    ShapeCondition::Compare(column.clone(), Comparison::Equal, *group)
                })
                .collect();
            let comparison = if place == last { comparison } else { strict };
            let (column, group) = pairs.get(place)?;
            parts.push(ShapeCondition::Compare(column.clone(), comparison, *group));
            if parts.len() == 1 { parts.pop() } else { Some(ShapeCondition::And(parts)) }
        };
        (0..pairs.len()).map(decided_at).collect::<Option<_>>().map(ShapeCondition::Or)
    }

    /// The column that an expression is, or the hidden column that holds its values.
    fn column(&self, expr: &Expr) -> Option<ColumnName> {
        column(expr).or_else(|| self.tables?.hidden_column(expr))
    }

    /// A left-deep chain of ORs as one list.
    fn either(&mut self, left: &Expr, right: &Expr) -> Option<ShapeCondition> {
        let mut parts = vec![self.condition(right)?];
        let mut rest = left;
        while let Expr::BinaryOp { left, op: BinaryOperator::Or, right } = rest {
            parts.push(self.condition(right)?);
            rest = left;
        }
        parts.push(self.condition(rest)?);
        parts.reverse();
        Some(ShapeCondition::Or(parts))
    }

    /// The group of a literal that is alone in its group.
    fn literal(&mut self, expr: &Expr) -> Option<LiteralGroup> {
        let group = self.group_of(expr)?;
        let range = self.parameterized.literals_of(group);
        (range.len() == 1).then(|| {
            self.groups.push(group);
            group
        })
    }

    /// The group of such a literal, or of the sum or difference of two.
    fn number(&mut self, expr: &Expr) -> Option<LiteralGroup> {
        let (left, is_difference, right) = match expr {
            Expr::Nested(inner) => return self.number(inner),
            Expr::BinaryOp { left, op: BinaryOperator::Plus, right } => (left, false, right),
            Expr::BinaryOp { left, op: BinaryOperator::Minus, right } => (left, true, right),
            expr => return self.literal(expr),
        };
        let (left, right) = (self.literal(left)?, self.literal(right)?);
        self.make(match is_difference {
            true => MadeLiteral::Difference(left, right),
            false => MadeLiteral::Sum(left, right),
        })
    }

    /// The group of a literal, or of several that CONCAT joins.
    fn pattern(&mut self, expr: &Expr) -> Option<LiteralGroup> {
        let Some(call) = PlainCall::of(expr) else { return self.literal(expr) };
        if !call.is("CONCAT") || call.duplicates.is_some() {
            return None;
        }
        let parts = call.expressions()?;
        let parts = parts.into_iter().map(|part| self.literal(part)).collect::<Option<Vec<_>>>()?;
        self.make(MadeLiteral::Text(parts))
    }

    fn make(&mut self, made: MadeLiteral) -> Option<LiteralGroup> {
        self.made.push(made);
        FIRST_MADE.checked_add(self.made.len() - 1)
    }

    /// The group of a list's literals.
    fn list(&mut self, list: &[Expr]) -> Option<LiteralGroup> {
        let group = self.group_of(list.first()?)?;
        let same = list.iter().all(|member| self.group_of(member) == Some(group));
        (same && self.parameterized.literals_of(group).len() == list.len()).then(|| {
            self.groups.push(group);
            group
        })
    }

    fn group_of(&self, expr: &Expr) -> Option<LiteralGroup> {
        let (value, negative) = match expr {
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => (expr.as_ref(), true),
            expr => (expr, false),
        };
        let Expr::Value(value) = value else { return None };
        literal_group(value, negative, self.parameterized)
    }
}

/// The column that an expression is, qualified or not.
fn column(expr: &Expr) -> Option<ColumnName> {
    match expr {
        Expr::Nested(inner) => column(inner),
        expr => leaves::column(expr),
    }
}
