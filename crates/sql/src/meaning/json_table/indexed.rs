//! Which values of a document a column of JSON_TABLE has: those at a path that an index over paths follows too.

use datafusion::sql::sqlparser::ast::DataType;
use remora_engine::element_place;

use super::{
    ColumnSource, JsonTable, OnEmptyOrError, ValuePart,
    cell::{is_year, whole_range},
};
use crate::meaning::json::{Path, PathStep};

/// How the values of a column compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Number,
    Text,
}

impl JsonTable {
    /// The names that lead, through objects and arrays, to each scalar that may become a value of a column other than NULL.
    /// `None` if other values may, if rows may raise errors, or if the path leads elsewhere too.
    pub(crate) fn values_of(&self, column: usize) -> Option<(Vec<String>, ValueKind)> {
        if may_fail(&self.parts) {
            return None;
        }
        let mut steps: Vec<&PathStep> = self.path.steps.iter().collect();
        let part = found(&self.parts, column, &mut steps)?;
        let is_null = |it: &OnEmptyOrError| matches!(it, OnEmptyOrError::Default(None));
        if part.is_exists || !is_null(&part.on_empty) || !is_null(&part.on_error) {
            return None;
        }
        Some((names(&steps)?, kind(&part.kind)?))
    }
}

/// Whether a row may raise an error.
fn may_fail(parts: &[ColumnSource]) -> bool {
    parts.iter().any(|part| match part {
        ColumnSource::Ordinality => false,
        ColumnSource::Value(value) => {
            let is_error = |it: &OnEmptyOrError| matches!(it, OnEmptyOrError::Error);
            is_error(&value.on_empty) || is_error(&value.on_error)
        }
        ColumnSource::Nested { parts, .. } => may_fail(parts),
    })
}

/// The source of a column; the steps of its path are appended to `steps`.
fn found<'p>(
    parts: &'p [ColumnSource],
    column: usize,
    steps: &mut Vec<&'p PathStep>,
) -> Option<&'p ValuePart> {
    let mut before = 0;
    for part in parts {
        let width = part.width();
        if column < before + width {
            let path: &Path = match part {
                ColumnSource::Ordinality => return None,
                ColumnSource::Value(value) => {
                    steps.extend(&value.path.steps);
                    return Some(value);
                }
                ColumnSource::Nested { path, .. } => path,
            };
            steps.extend(&path.steps);
            let ColumnSource::Nested { parts, .. } = part else { return None };
            return found(parts, column - before, steps);
        }
        before += width;
    }
    None
}

/// The names of a path. An index follows one array between two names, and one behind the last; a name that is a number leads it
/// to an element of an array only.
fn names(steps: &[&PathStep]) -> Option<Vec<String>> {
    let (mut names, mut is_in_array) = (Vec::new(), false);
    for step in steps {
        match step {
            PathStep::Key(name) if element_place(name).is_none() => {
                names.push(name.clone());
                is_in_array = false;
            }
            PathStep::Index(_) | PathStep::AnyIndex | PathStep::Range(..) if !is_in_array => {
                is_in_array = true
            }
            _ => return None,
        }
    }
    (!names.is_empty()).then_some(names)
}

fn kind(kind: &DataType) -> Option<ValueKind> {
    match kind {
        _ if is_year(kind) => None,
        _ if whole_range(kind).is_some() => Some(ValueKind::Number),
        DataType::Decimal(_)
        | DataType::Numeric(_)
        | DataType::Dec(_)
        | DataType::Double(_)
        | DataType::DoublePrecision
        | DataType::Float(_)
        | DataType::Real => Some(ValueKind::Number),
        DataType::Char(_)
        | DataType::Character(_)
        | DataType::Varchar(_)
        | DataType::CharacterVarying(_)
        | DataType::Text
        | DataType::TinyText
        | DataType::MediumText
        | DataType::LongText => Some(ValueKind::Text),
        _ => None,
    }
}
