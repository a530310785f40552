//! Conditions in schema descriptions.

use remora_engine::{Comparison, Filter, Literal, Value};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The deepest nesting of conditions.
const MAX_DEPTH: usize = 32;

/// One condition: a column with an operator, or exactly one of `any`, `all` and `not`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// The column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// The operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<Operator>,
    /// The compared value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Constant>,
    /// The values of `in`, or the bounds of `between`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<Constant>>,
    /// At least one of these must be true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub any: Option<Vec<Condition>>,
    /// All of these must be true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<Vec<Condition>>,
    /// This must be false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not: Option<Box<Condition>>,
}

/// An operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names and signs say it")]
pub enum Operator {
    #[serde(rename = "=")]
    Equal,
    #[serde(rename = "!=")]
    NotEqual,
    #[serde(rename = "<")]
    Less,
    #[serde(rename = "<=")]
    LessOrEqual,
    #[serde(rename = ">")]
    Greater,
    #[serde(rename = ">=")]
    GreaterOrEqual,
    In,
    Between,
    IsNull,
    IsNotNull,
}

/// A constant: text, number or boolean, which the engine converts to the column's type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Constant {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Text(String),
}

impl Condition {
    /// The conditions whose conjunction is the filter.
    pub fn list(filter: &Filter) -> Vec<Self> {
        match filter {
            Filter::And(parts) => parts.iter().map(Self::from_filter).collect(),
            other => vec![Self::from_filter(other)],
        }
    }

    /// The filter.
    ///
    /// # Errors
    /// A value is missing, or conditions are nested too deep.
    pub fn to_filter(&self) -> Result<Filter> {
        self.to_filter_within(MAX_DEPTH)
    }

    fn to_filter_within(&self, depth: usize) -> Result<Filter> {
        let depth = depth.checked_sub(1).ok_or_else(|| {
            Error::Schema(format!("required: conditions stand more than {MAX_DEPTH} deep"))
        })?;
        let each = |parts: &[Self]| -> Result<Vec<Filter>> {
            parts.iter().map(|part| part.to_filter_within(depth)).collect()
        };
        match (&self.column, &self.any, &self.all, &self.not) {
            (Some(column), None, None, None) => self.column_filter(column),
            (None, Some(any), None, None) => Ok(Filter::Or(each(any)?)),
            (None, None, Some(all), None) => Ok(Filter::And(each(all)?)),
            (None, None, None, Some(not)) => {
                Ok(Filter::Not(Box::new(not.to_filter_within(depth)?)))
            }
            _ => Err(Error::Schema(
                "required: a condition has a `column` with an `op`, or one of `any`, `all`, `not`"
                    .into(),
            )),
        }
    }

    fn column_filter(&self, column: &str) -> Result<Filter> {
        let error = |message: &str| {
            Error::Schema(format!("required, column \"{column}\": the operator {message}"))
        };
        let comparison = match (self.op, self.values.as_deref()) {
            (None, _) => return Err(error("`op` is missing")),
            (Some(Operator::IsNull), _) => return Ok(Filter::IsNull(column.to_owned())),
            (Some(Operator::IsNotNull), _) => return Ok(Filter::IsNotNull(column.to_owned())),
            (Some(Operator::In), Some(values)) => {
                let values = values.iter().map(Constant::literal).collect();
                return Ok(Filter::In(column.to_owned(), values));
            }
            (Some(Operator::Between), Some([low, high])) => {
                let (low, high) = (low.literal(), high.literal());
                return Ok(Filter::Between(column.to_owned(), low, high));
            }
            (Some(Operator::In), _) => return Err(error("needs `values`")),
            (Some(Operator::Between), _) => return Err(error("needs two `values`, low and high")),
            (Some(Operator::Equal), _) => Comparison::Equal,
            (Some(Operator::NotEqual), _) => Comparison::NotEqual,
            (Some(Operator::Less), _) => Comparison::Less,
            (Some(Operator::LessOrEqual), _) => Comparison::LessOrEqual,
            (Some(Operator::Greater), _) => Comparison::Greater,
            (Some(Operator::GreaterOrEqual), _) => Comparison::GreaterOrEqual,
        };
        let literal = self.value.as_ref().ok_or_else(|| error("needs a `value`"))?.literal();
        Ok(Filter::Compare { column: column.to_owned(), comparison, literal })
    }

    fn from_filter(filter: &Filter) -> Self {
        let each = |parts: &[Filter]| Some(parts.iter().map(Self::from_filter).collect());
        let constants = |literals: &[Literal]| Some(literals.iter().map(Constant::of).collect());
        let on = |column: &str, op| Self {
            column: Some(column.to_owned()),
            op: Some(op),
            ..Self::default()
        };
        match filter {
            Filter::And(parts) => Self { all: each(parts), ..Self::default() },
            Filter::Or(parts) => Self { any: each(parts), ..Self::default() },
            Filter::Not(part) => {
                Self { not: Some(Box::new(Self::from_filter(part))), ..Self::default() }
            }
            Filter::Compare { column, comparison, literal } => {
                let value = Some(Constant::of(literal));
                Self { value, ..on(column, Operator::of(*comparison)) }
            }
            Filter::In(column, values) => {
                Self { values: constants(values), ..on(column, Operator::In) }
            }
            Filter::Between(column, low, high) => {
                let values = Some(vec![Constant::of(low), Constant::of(high)]);
                Self { values, ..on(column, Operator::Between) }
            }
            // Definitions never contain these.
            Filter::KeyIn(..)
            | Filter::Prefix(_)
            | Filter::KeyWithin(..)
            | Filter::Begins(..)
            | Filter::Path(..)
            | Filter::PathsTogether(..)
            | Filter::PathTexts(..)
            | Filter::PathMayHold(..)
            | Filter::Rows(_) => Self::default(),
            Filter::IsNull(column) => on(column, Operator::IsNull),
            Filter::IsNotNull(column) => on(column, Operator::IsNotNull),
        }
    }
}

impl Operator {
    fn of(comparison: Comparison) -> Self {
        match comparison {
            Comparison::Equal => Self::Equal,
            Comparison::NotEqual => Self::NotEqual,
            Comparison::Greater => Self::Greater,
            Comparison::GreaterOrEqual => Self::GreaterOrEqual,
            Comparison::Less => Self::Less,
            Comparison::LessOrEqual => Self::LessOrEqual,
        }
    }
}

impl Constant {
    /// The literal as text, since the engine knows the column's type.
    fn literal(&self) -> Literal {
        Literal::Text(match self {
            Self::Bool(truth) => truth.to_string(),
            Self::Int(number) => number.to_string(),
            Self::Uint(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        })
    }

    fn of(literal: &Literal) -> Self {
        match literal {
            Literal::Text(text) => Self::Text(text.clone()),
            Literal::Value(Value::Bool(truth)) => Self::Bool(*truth),
            Literal::Value(Value::Int(number)) => Self::Int(*number),
            Literal::Value(other) => Self::Text(other.to_string()),
        }
    }
}
