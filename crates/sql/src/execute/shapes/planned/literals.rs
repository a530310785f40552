//! The literals that are parameters of a cached plan's expressions: `HAVING COUNT(*) > 5`, `LOWER(name) = 'x'`, `NOW() -
//! INTERVAL 7 DAY`. The plan was made for their kinds, not for their values.

use std::collections::{BTreeSet, HashMap};

use datafusion::common::ScalarValue;
use remora_mysql::TokenKind;

use super::super::{
    constant::Constant,
    parameterize::{Constants, Literal, LiteralKind, ParameterizedText, TextPiece},
    shape::LiteralGroup,
};
use crate::{
    meaning::{RunLiteral, RunLiteralValue},
    plan::RunConstant,
};

/// Integers of more digits may be of another type.
const MAX_INTEGER: i128 = 999_999_999_999_999_999;

/// The kind of a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlanLiteralKind {
    /// An integer that is not negative.
    Integer,
    /// A text of ASCII characters, which every character set has.
    Text,
}

/// The literals of a statement that may be parameters, and those that are.
#[derive(Default)]
pub(super) struct PlanLiterals {
    candidates: Vec<RunLiteral>,
    /// The group and the kind of each candidate.
    groups: Vec<(LiteralGroup, PlanLiteralKind)>,
    /// The numbers of the candidates that are parameters.
    used: Vec<usize>,
}

impl PlanLiterals {
    /// The literals of a statement that may be parameters: those that the engine does not get, and that are not at the
    /// `fixed` positions, where they decide the name of a column.
    pub(super) fn of(
        parameterized: &ParameterizedText,
        constants: &Constants<'_>,
        taken: &[LiteralGroup],
        fixed: &BTreeSet<usize>,
    ) -> Self {
        let mut this = Self::default();
        let left = (0..parameterized.ends.len()).filter(|group| !taken.contains(group));
        let left: Vec<LiteralGroup> = left.collect();
        let times = times(&left, parameterized, constants);
        for group in left {
            let [literal] = parameterized.literals_of(group) else { continue };
            let place = place_of(literal);
            let Some(value) = value_of(group, constants) else { continue };
            // Expressions with equal texts may have become one, which those with other literals would not.
            let is_only = times.get(&value.to_lowercase()) == Some(&1);
            if is_only && !fixed.contains(&place) {
                this.groups.push((group, kind_of(&value)));
                this.candidates.push(RunLiteral { place, value });
            }
        }
        this
    }

    /// The candidates in the order of their numbers and of the text.
    pub(super) fn candidates(&self) -> &[RunLiteral] {
        &self.candidates
    }

    /// Whether no literal is a parameter.
    pub(super) fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    /// These literals, of which a plan has these as parameters.
    pub(super) fn taken<P>(mut self, settled: &[RunConstant<P>]) -> Self {
        let numbers = settled.iter().filter_map(|settled| match settled {
            RunConstant::Literal(number) => Some(*number),
            RunConstant::Constant(_) | RunConstant::Query(..) => None,
        });
        self.used = numbers.collect();
        self
    }

    /// Whether the literals of a group are parameters.
    pub(super) fn has(&self, group: LiteralGroup) -> bool {
        self.used().any(|(it, _)| it == group)
    }

    /// Whether a statement's literals are of the kinds that the plan was made for.
    pub(super) fn fit(&self, constants: &Constants<'_>) -> bool {
        self.used().all(|(group, kind)| {
            value_of(group, constants).is_some_and(|value| kind_of(&value) == kind)
        })
    }

    /// The value of the parameter with this number in a statement.
    pub(super) fn value(&self, number: usize, constants: &Constants<'_>) -> Option<ScalarValue> {
        let (group, _) = self.groups.get(number)?;
        Some(match value_of(*group, constants)? {
            RunLiteralValue::Integer(number) => ScalarValue::Int64(Some(number)),
            RunLiteralValue::Text(text) => ScalarValue::Utf8View(Some(text)),
        })
    }

    fn used(&self) -> impl Iterator<Item = (LiteralGroup, PlanLiteralKind)> {
        self.used.iter().filter_map(|number| self.groups.get(*number).copied())
    }
}

/// How often each value stands among the literals of a query: those of these groups, and the numbers in ORDER BY.
fn times(
    groups: &[LiteralGroup],
    parameterized: &ParameterizedText,
    constants: &Constants<'_>,
) -> HashMap<String, usize> {
    let of_groups = groups.iter().flat_map(|group| constants.group(*group));
    let of_groups = of_groups.filter_map(|literal| value(constants.constant(literal)));
    let integers = parameterized.pieces.iter().filter_map(|piece| match piece {
        TextPiece::Token(token) if token.kind == TokenKind::Integer => {
            let digits = constants.text.get(token.start..token.end)?;
            std::str::from_utf8(digits).ok()?.parse().ok().map(RunLiteralValue::Integer)
        }
        _ => None,
    });
    let mut times = HashMap::new();
    for value in of_groups.chain(integers) {
        *times.entry(value.to_lowercase()).or_default() += 1;
    }
    times
}

fn kind_of(value: &RunLiteralValue) -> PlanLiteralKind {
    match value {
        RunLiteralValue::Integer(_) => PlanLiteralKind::Integer,
        RunLiteralValue::Text(_) => PlanLiteralKind::Text,
    }
}

/// The value of the only literal of a group; `None` if it is of another kind.
fn value_of(group: LiteralGroup, constants: &Constants<'_>) -> Option<RunLiteralValue> {
    value(constants.one(group))
}

fn value(constant: Constant<'_>) -> Option<RunLiteralValue> {
    match constant {
        Constant::Integer(number @ 0..=MAX_INTEGER) => {
            i64::try_from(number).ok().map(RunLiteralValue::Integer)
        }
        Constant::Text(text) if text.is_ascii() => Some(RunLiteralValue::Text(text.into_owned())),
        _ => None,
    }
}

/// The position of a literal in the text, as its syntax tree has it.
fn place_of(literal: &Literal) -> usize {
    match literal.kind {
        // That of a parameter is the end of its mark.
        LiteralKind::Parameter => literal.end.saturating_sub(1),
        _ => literal.start,
    }
}
