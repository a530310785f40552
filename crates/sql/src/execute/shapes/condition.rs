//! Conditions prepared once and filled with literals in each run: a filter over columns and a text condition that mean
//! in the engine exactly what they mean in SQL.
//!
//! SQL has three truth values, the engine two. So negations are pushed down to the comparisons, and each comparison is
//! built to be false in the engine where SQL's result is unknown.

use std::ops::Bound;

use remora_engine::{Comparison as EngineComparison, Filter, Literal, TextQuery};
use remora_mysql::Collation;

use super::{
    compared_column::ComparedColumn,
    constant::{Constant, Fitted},
    parameterize::Constants,
    shape::{Comparison, Keywords, LiteralGroup, Match, MatchOption, Repeated, ShapeCondition},
    table::ShapeTable,
};
use crate::{agents::AgentOptions, meaning::collation::push_key, search};

/// A condition over columns.
#[derive(Debug)]
pub(super) enum ColumnTest {
    Compare(ComparedColumn, Comparison, LiteralGroup),
    In(ComparedColumn, LiteralGroup, bool),
    Between(ComparedColumn, LiteralGroup, LiteralGroup, bool),
    IsNull(ComparedColumn, bool),
    /// The text begins with the pattern's part before its only `%`.
    Begins(ComparedColumn, Collation, LiteralGroup),
    All(Vec<ColumnTest>),
    Any(Vec<ColumnTest>),
    Again(Box<ColumnTest>, Repeated),
}

/// A condition over texts.
#[derive(Debug)]
pub(super) enum TextTest {
    Match(Vec<usize>, LiteralGroup, bool),
    Keywords(Keywords),
    Like(usize, LiteralGroup, Option<LiteralGroup>),
    Not(Box<TextTest>),
    All(Vec<TextTest>),
    Any(Vec<TextTest>),
}

/// A complete condition, with places for its literals.
#[derive(Debug, Default)]
pub(super) struct Tests {
    pub texts: Vec<TextTest>,
    pub columns: Vec<ColumnTest>,
}

/// A condition with its literals filled in.
#[derive(Default)]
pub(super) struct FilledTests {
    pub text: Option<TextQuery>,
    pub filter: Option<Filter>,
}

impl Tests {
    /// Prepares a condition; `None` if the engine has no exact answer to it.
    pub fn new(condition: Option<&ShapeCondition>, table: &ShapeTable) -> Option<Self> {
        let mut tests = Self::default();
        match condition {
            Some(ShapeCondition::And(parts)) => {
                parts.iter().try_for_each(|part| tests.add(part, table))?;
            }
            Some(condition) => tests.add(condition, table)?,
            None => {}
        }
        Some(tests)
    }

    /// Adds a condition; `None`, with nothing added, if the engine has no exact answer to it.
    pub fn add(&mut self, condition: &ShapeCondition, table: &ShapeTable) -> Option<()> {
        if let ShapeCondition::Keywords(keywords) = condition {
            let is_other = keywords.table.as_ref().is_some_and(|name| !table.is_called(Some(name)));
            if is_other || self.keywords().is_some() {
                return None;
            }
            self.texts.push(TextTest::Keywords(keywords.clone()));
        } else if let Some(text) = text_test(condition, table, true) {
            self.texts.push(text);
        } else {
            self.columns.push(column_test(condition, table, true)?);
        }
        Some(())
    }

    /// The keyword query, if there is one.
    pub fn keywords(&self) -> Option<&Keywords> {
        self.texts.iter().find_map(|test| match test {
            TextTest::Keywords(keywords) => Some(keywords),
            _ => None,
        })
    }

    /// Whether it asks nothing of texts but a keyword query.
    pub fn is_by_keywords(&self) -> bool {
        self.texts.iter().all(|test| matches!(test, TextTest::Keywords(_)))
    }

    /// Whether rows without ORDER BY are ordered by the MATCH's rank, as in MySQL and Sphinx.
    pub fn ranks(&self) -> bool {
        let is_ranked = matches!(self.texts.as_slice(), [TextTest::Match(..)]);
        is_ranked || self.keywords().is_some()
    }

    /// Whether one of its conditions is a MATCH.
    pub fn has_match(&self) -> bool {
        self.texts.iter().any(|test| matches!(test, TextTest::Match(..)))
    }

    /// The MATCH of the condition, if it has exactly one.
    pub fn only_match(&self) -> Option<(&[usize], LiteralGroup, bool)> {
        let mut matches = self.texts.iter().filter_map(|test| match test {
            TextTest::Match(columns, text, boolean) => Some((columns.as_slice(), *text, *boolean)),
            _ => None,
        });
        let first = matches.next()?;
        (matches.next().is_none() && self.texts.len() == 1).then_some(first)
    }

    /// Fills in the literals; `None` if one needs a conversion.
    pub fn fill(&self, constants: &Constants<'_>, table: &ShapeTable) -> Option<FilledTests> {
        let columns = self.columns.iter().map(|test| test.fill(constants, 0));
        let mut columns: Vec<Filter> = columns.collect::<Option<_>>()?;
        let mut texts: Vec<TextQuery> = Vec::new();
        for test in &self.texts {
            match test.beginning(constants, table) {
                Some((filter, query)) => {
                    columns.push(filter);
                    texts.extend(query);
                }
                None => texts.push(test.fill(constants, table)?),
            }
        }
        let text = if texts.len() > 1 { Some(TextQuery::And(texts)) } else { texts.pop() };
        let filter = if columns.len() > 1 { Some(Filter::And(columns)) } else { columns.pop() };
        Some(FilledTests { text, filter })
    }
}

fn text_test(condition: &ShapeCondition, table: &ShapeTable, positive: bool) -> Option<TextTest> {
    let several = |parts: &[ShapeCondition], all: bool| {
        let parts: Option<Vec<_>> =
            parts.iter().map(|part| text_test(part, table, positive)).collect();
        Some(if all { TextTest::All(parts?) } else { TextTest::Any(parts?) })
    };
    let test = match condition {
        ShapeCondition::Match(Match { columns, text, boolean }) => {
            let columns: Option<Vec<usize>> =
                columns.iter().map(|column| table.position(column)).collect();
            TextTest::Match(columns?, *text, *boolean)
        }
        ShapeCondition::Like(column, pattern) => {
            TextTest::Like(table.text_position(column, positive)?, *pattern, None)
        }
        ShapeCondition::Holds(column, text, zero) => {
            TextTest::Like(table.text_position(column, positive)?, *text, Some(*zero))
        }
        ShapeCondition::And(parts) => return several(parts, positive),
        ShapeCondition::Or(parts) => return several(parts, !positive),
        ShapeCondition::Not(part) => return text_test(part, table, !positive),
        _ => return None,
    };
    Some(if positive { test } else { TextTest::Not(Box::new(test)) })
}

fn column_test(
    condition: &ShapeCondition,
    table: &ShapeTable,
    positive: bool,
) -> Option<ColumnTest> {
    let several = |parts: &[ShapeCondition], all: bool| {
        let parts: Option<Vec<_>> =
            parts.iter().map(|part| column_test(part, table, positive)).collect();
        Some(if all { ColumnTest::All(parts?) } else { ColumnTest::Any(parts?) })
    };
    match condition {
        ShapeCondition::Compare(column, comparison, group) => {
            let comparison = if positive { *comparison } else { comparison.negated() };
            Some(ColumnTest::Compare(table.asked(column)?, comparison, *group))
        }
        ShapeCondition::In(columns, group) => {
            let [column] = columns.as_slice() else { return None };
            Some(ColumnTest::In(table.asked(column)?, *group, positive))
        }
        ShapeCondition::Between(column, low, high) => {
            Some(ColumnTest::Between(table.asked(column)?, *low, *high, positive))
        }
        ShapeCondition::IsNull(column) => Some(ColumnTest::IsNull(table.tested(column)?, positive)),
        ShapeCondition::Begins(column, pattern) if positive => {
            let (operand, collation) = table.texts(column)?;
            Some(ColumnTest::Begins(operand, collation, *pattern))
        }
        ShapeCondition::And(parts) => several(parts, positive),
        ShapeCondition::Or(parts) => several(parts, !positive),
        ShapeCondition::Again(part, repeated) if positive => {
            Some(ColumnTest::Again(Box::new(column_test(part, table, true)?), *repeated))
        }
        ShapeCondition::Not(part) => column_test(part, table, !positive),
        _ => None,
    }
}

impl TextTest {
    /// The filter for a column whose text begins with a prefix. If no index has the column's order, also a text query
    /// that narrows down the rows to test.
    fn beginning(
        &self,
        constants: &Constants<'_>,
        table: &ShapeTable,
    ) -> Option<(Filter, Option<TextQuery>)> {
        let Self::Like(column, pattern, None) = self else { return None };
        let Constant::Text(pattern) = constants.one(*pattern) else { return None };
        let letters = search::plain_beginning(&pattern).filter(|letters| !letters.is_empty())?;
        let (operand, collation) = table.texts_at(*column)?;
        let begins = search::begins(&operand.name, collation, &letters);
        let query = match table.sql.leads_index(*column) {
            true => None,
            false => search::like(&table.sql, *column, &pattern, None).superset(),
        };
        Some((begins, query))
    }

    fn fill(&self, constants: &Constants<'_>, table: &ShapeTable) -> Option<TextQuery> {
        let several = |parts: &[Self]| {
            parts.iter().map(|part| part.fill(constants, table)).collect::<Option<Vec<_>>>()
        };
        match self {
            Self::Match(columns, group, boolean) => {
                let Constant::Text(text) = constants.one(*group) else { return None };
                let mode = if *boolean { "BOOLEAN" } else { "" };
                search::matching(&table.sql, columns, &text, mode).ok()
            }
            Self::Keywords(keywords) => {
                let Constant::Text(text) = constants.one(keywords.text) else { return None };
                let mode = keywords.mode(constants)?;
                search::matching(&table.sql, &[], &text, &mode).ok()
            }
            Self::Like(column, group, zero) => {
                let Constant::Text(text) = constants.one(*group) else { return None };
                let answer = match zero {
                    None => search::like(&table.sql, *column, &text, Some('\\')),
                    Some(zero) => {
                        let is_zero = constants.one(*zero) == Constant::Integer(0);
                        is_zero.then(|| search::holds(&table.sql, *column, &text))?
                    }
                };
                answer.exact()
            }
            Self::Not(part) => Some(TextQuery::Not(Box::new(part.fill(constants, table)?))),
            Self::All(parts) => Some(TextQuery::And(several(parts)?)),
            Self::Any(parts) => Some(TextQuery::Or(several(parts)?)),
        }
    }
}

impl Keywords {
    /// How its options ask other servers; the last one of a name counts.
    pub fn asked_of_agents(&self, constants: &Constants<'_>) -> AgentOptions {
        AgentOptions::of(|name| {
            let option = self.options.iter().rfind(|(said, _)| said == name);
            let MatchOption::Literal(group) = option?.1 else { return None };
            match constants.one(group) {
                Constant::Integer(number) => u64::try_from(number).ok(),
                Constant::Text(text) => text.parse().ok(),
                _ => None,
            }
        })
    }

    /// The mode of the MATCH: its options, one a line.
    fn mode(&self, constants: &Constants<'_>) -> Option<String> {
        let of = |group: &LiteralGroup| match constants.one(*group) {
            Constant::Text(text) => Some(text.replace(['\n', '\r'], " ")),
            Constant::Integer(number) => Some(number.to_string()),
            _ => None,
        };
        let mut mode = search::KEYWORDS_MODE.to_owned();
        for (name, value) in &self.options {
            let value = match value {
                MatchOption::Word(word) => word.clone(),
                MatchOption::Literal(group) => of(group)?,
                MatchOption::Call(function, group) => format!("{function}({})", of(group)?),
                MatchOption::List(list) => {
                    let part = |(name, group): &(String, LiteralGroup)| {
                        Some(format!("{name}={}", of(group)?))
                    };
                    list.iter().map(part).collect::<Option<Vec<_>>>()?.join(",")
                }
            };
            mode.push_str(&format!("\n{name}={value}"));
        }
        Some(mode)
    }
}

impl ColumnTest {
    /// Fills in the literals. `offset` is added to the group numbers, for a further repetition of the condition.
    fn fill(&self, constants: &Constants<'_>, offset: usize) -> Option<Filter> {
        let several = |parts: &[Self]| {
            parts.iter().map(|part| part.fill(constants, offset)).collect::<Option<Vec<_>>>()
        };
        match self {
            Self::Compare(operand, comparison, group) => {
                operand.test(*comparison, &constants.one(group + offset), constants)
            }
            Self::In(operand, group, positive) => {
                operand.one_of(constants, group + offset, *positive)
            }
            Self::Between(operand, low, high, positive) => {
                let low = constants.one(low + offset);
                let high = constants.one(high + offset);
                let (below, above) = match positive {
                    true => (Comparison::GreaterOrEqual, Comparison::LessOrEqual),
                    false => (Comparison::Less, Comparison::Greater),
                };
                let parts = vec![
                    operand.test(below, &low, constants)?,
                    operand.test(above, &high, constants)?,
                ];
                Some(if *positive { Filter::And(parts) } else { Filter::Or(parts) })
            }
            Self::IsNull(operand, positive) => Some(match positive {
                true => Filter::IsNull(operand.name.clone()),
                false => operand.is_not_null(),
            }),
            Self::Begins(operand, collation, pattern) => match constants.one(pattern + offset) {
                Constant::Null => Some(operand.nothing()),
                Constant::Text(pattern) => {
                    let letters = search::plain_beginning(&pattern)?;
                    Some(search::begins(&operand.name, *collation, &letters))
                }
                _ => None,
            },
            Self::All(parts) => Some(Filter::And(several(parts)?)),
            Self::Any(parts) => Some(Filter::Or(several(parts)?)),
            Self::Again(part, repeated) => {
                let each = (0..repeated.times)
                    .map(|time| part.fill(constants, offset + time * repeated.groups));
                Some(Filter::Or(each.collect::<Option<_>>()?))
            }
        }
    }
}

impl ComparedColumn {
    /// A comparison of the column with a literal; `None` if that needs a conversion.
    fn test(
        &self,
        comparison: Comparison,
        constant: &Constant<'_>,
        constants: &Constants<'_>,
    ) -> Option<Filter> {
        match (self.comparable, self.collation) {
            (Some(comparable), _) => {
                Some(self.compare(comparison, comparable.fit_in(constant, &constants.zone)?))
            }
            (None, Some(collation)) => self.compare_keys(collation, comparison, constant),
            (None, None) => None,
        }
    }

    /// The same for a text column that does not compare by bytes.
    fn compare_keys(
        &self,
        collation: Collation,
        comparison: Comparison,
        constant: &Constant<'_>,
    ) -> Option<Filter> {
        use Bound::{Excluded, Included, Unbounded};
        let text = match constant {
            Constant::Text(text) => text,
            Constant::Null => return Some(self.nothing()),
            _ => return None,
        };
        let mut key = Vec::new();
        push_key(text, collation, &mut key);
        let (column, order) = (self.name.clone(), u32::from(collation.0));
        let (low, high) = match comparison {
            Comparison::Equal => return Some(Filter::KeyIn(column, order, vec![key])),
            Comparison::NotEqual => {
                let equal = Filter::KeyIn(column, order, vec![key]);
                let other = Filter::Not(Box::new(equal));
                return Some(Filter::And(vec![self.is_not_null(), other]));
            }
            Comparison::Less => (Unbounded, Excluded(key)),
            Comparison::LessOrEqual => (Unbounded, Included(key)),
            Comparison::Greater => (Excluded(key), Unbounded),
            Comparison::GreaterOrEqual => (Included(key), Unbounded),
        };
        Some(Filter::KeyWithin(column, order, low, high))
    }

    /// A comparison of the column with a fitted literal. It is false where the column is NULL.
    pub fn compare(&self, comparison: Comparison, fitted: Fitted) -> Filter {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        let value = match (fitted, comparison) {
            (Fitted::Value(value), _) => value,
            (Fitted::Below, Greater | GreaterOrEqual | NotEqual)
            | (Fitted::Above, Less | LessOrEqual | NotEqual) => return self.is_not_null(),
            _ => return self.nothing(),
        };
        let comparison = match comparison {
            Equal => EngineComparison::Equal,
            NotEqual => EngineComparison::NotEqual,
            Less => EngineComparison::Less,
            LessOrEqual => EngineComparison::LessOrEqual,
            Greater => EngineComparison::Greater,
            GreaterOrEqual => EngineComparison::GreaterOrEqual,
        };
        let column = self.name.clone();
        let filter = Filter::Compare { column, comparison, literal: Literal::Value(value) };
        match comparison {
            // The engine's NotEqual is true for NULL.
            EngineComparison::NotEqual => Filter::And(vec![self.is_not_null(), filter]),
            _ => filter,
        }
    }

    fn one_of(
        &self,
        constants: &Constants<'_>,
        group: LiteralGroup,
        positive: bool,
    ) -> Option<Filter> {
        let literals = constants.group(group).iter().map(|literal| constants.constant(literal));
        let mut has_null = false;
        let holds = match (self.comparable, self.collation) {
            (Some(comparable), _) => {
                let mut values = Vec::new();
                for constant in literals {
                    match comparable.fit_in(&constant, &constants.zone)? {
                        Fitted::Value(value) => values.push(Literal::Value(value)),
                        Fitted::Below | Fitted::Above => {}
                        Fitted::Null => has_null = true,
                    }
                }
                Filter::In(self.name.clone(), values)
            }
            (None, Some(collation)) => {
                let mut keys = Vec::new();
                for constant in literals {
                    match constant {
                        Constant::Text(text) => {
                            let mut key = Vec::new();
                            push_key(&text, collation, &mut key);
                            keys.push(key);
                        }
                        Constant::Null => has_null = true,
                        _ => return None,
                    }
                }
                Filter::KeyIn(self.name.clone(), collation.0.into(), keys)
            }
            (None, None) => return None,
        };
        Some(match (positive, has_null) {
            (true, _) => holds,
            (false, true) => self.nothing(),
            (false, false) => Filter::And(vec![self.is_not_null(), Filter::Not(Box::new(holds))]),
        })
    }

    fn is_not_null(&self) -> Filter {
        Filter::IsNotNull(self.name.clone())
    }

    fn nothing(&self) -> Filter {
        Filter::In(self.name.clone(), Vec::new())
    }
}

impl Comparison {
    /// The negation, with NULL still false.
    fn negated(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
        }
    }
}
