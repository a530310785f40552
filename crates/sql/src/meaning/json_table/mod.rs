//! JSON_TABLE: its declared columns, and the rows made from a document. Values are texts, which
//! casts then convert to the columns' types.

mod cell;
mod documents;
mod indexed;

use std::{collections::HashSet, sync::Arc};

use datafusion::sql::sqlparser::ast::{
    DataType, JsonTableColumn, JsonTableColumnErrorHandling, JsonTableNamedColumn, Value,
    ValueWithSpan,
};
use remora_mysql::{ErrorCode, messages};

use super::json::{self, Json, Path};
use crate::{Error, Result};

pub(crate) use cell::is_year;
pub(crate) use documents::Documents;
pub(crate) use indexed::ValueKind;

/// The most columns, since planning compares each with all others.
const MAX_COLUMNS: usize = 1_024;

/// The size of a row without its values, in bytes.
const ROW_BYTES: usize = size_of::<JsonRow>();

/// The text that a cast converts to a column's value; `None` for NULL. Rows of the same parent
/// share it.
pub(crate) type JsonCell = Option<Arc<str>>;

/// The values of a row as texts.
pub(crate) type JsonRow = Vec<JsonCell>;

/// Called with the bytes that are about to be used. It can refuse them, and ends statements that
/// were interrupted.
pub(crate) type JsonRoom<'r> = dyn FnMut(usize) -> Result<()> + 'r;

/// A parsed JSON_TABLE: the path of its rows and its columns.
#[derive(Debug)]
pub(crate) struct JsonTable {
    path: Path,
    parts: Vec<ColumnSource>,
    columns: Vec<JsonColumn>,
}

/// A column of the result.
#[derive(Debug)]
pub(crate) struct JsonColumn {
    /// The column's name.
    pub name: String,
    /// The type to cast to; `None` for ordinality columns.
    pub kind: Option<DataType>,
}

/// The source of a column, or of all columns of a nested path.
#[derive(Debug)]
enum ColumnSource {
    Ordinality,
    Value(Box<ValuePart>),
    Nested { path: Path, parts: Vec<ColumnSource>, width: usize },
}

/// A column with a value at a path.
#[derive(Debug)]
struct ValuePart {
    name: String,
    kind: DataType,
    path: Path,
    /// Whether the column is EXISTS PATH: 1 or 0.
    is_exists: bool,
    on_empty: OnEmptyOrError,
    on_error: OnEmptyOrError,
}

/// The clauses ON EMPTY and ON ERROR.
#[derive(Debug)]
enum OnEmptyOrError {
    Error,
    /// A default value; NULL if the clause is absent.
    Default(JsonCell),
}

impl JsonTable {
    /// Parses path and columns. Defaults are checked even if they are never used.
    ///
    /// # Errors
    /// 3143 for an invalid path, 1117 for too many columns, 1060 for duplicate names, and errors of
    /// defaults that do not fit.
    pub(crate) fn new(path: &ValueWithSpan, columns: &[JsonTableColumn]) -> Result<Self> {
        let mut described = Vec::new();
        describe(columns, &mut described);
        if described.len() > MAX_COLUMNS {
            return Err(Error::new(ErrorCode::TooManyColumns, messages::TOO_MANY_COLUMNS));
        }
        let mut names = HashSet::new();
        if let Some(twice) = described.iter().find(|it| !names.insert(it.name.to_lowercase())) {
            let message = messages::duplicate_column(&twice.name);
            return Err(Error::new(ErrorCode::DuplicateColumn, message));
        }
        let parts = parts_of(columns)?;
        Ok(Self { path: parsed_path(path)?, parts, columns: described })
    }

    /// The columns of the result, with those of nested paths in their places.
    pub(crate) fn columns(&self) -> &[JsonColumn] {
        &self.columns
    }

    /// The rows of a document. The size of each is reported to `room` before it is stored.
    ///
    /// # Errors
    /// Errors of `room`, and those that ON EMPTY and ON ERROR ask for.
    pub(crate) fn rows(&self, document: &Json, room: &mut JsonRoom<'_>) -> Result<Vec<JsonRow>> {
        let mut rows = Vec::new();
        Making { room }.table(document, &self.path, &self.parts, &mut rows)?;
        Ok(rows)
    }
}

/// The text that a cast converts to a value of this type; `Some(None)` for NULL, `None` if the
/// value does not fit.
pub(super) fn fitted(value: &Json, kind: &DataType) -> Option<Option<String>> {
    cell::fitted(value, kind).ok()
}

/// The approximate memory of a parsed document, in bytes: a node for each value, plus its text.
fn document_bytes(text: &str) -> usize {
    // Both our tree and the parser's exist while parsing.
    const NODE_BYTES: usize = size_of::<Json>() + size_of::<serde_json::Value>();
    let begins_value = |byte: &&u8| matches!(byte, b',' | b':' | b'[' | b'{');
    let nodes = 1 + text.as_bytes().iter().filter(begins_value).count();
    nodes.saturating_mul(NODE_BYTES).saturating_add(text.len())
}

fn describe(columns: &[JsonTableColumn], described: &mut Vec<JsonColumn>) {
    for column in columns {
        match column {
            JsonTableColumn::Named(named) => described.push(JsonColumn {
                name: named.name.value.clone(),
                kind: Some(named.r#type.clone()),
            }),
            JsonTableColumn::ForOrdinality(name) => {
                described.push(JsonColumn { name: name.value.clone(), kind: None });
            }
            JsonTableColumn::Nested(nested) => describe(&nested.columns, described),
        }
    }
}

fn parsed_path(path: &ValueWithSpan) -> Result<Path> {
    match &path.value {
        Value::SingleQuotedString(text) => Path::parse(text),
        other => Err(Error::unsupported(other)),
    }
}

fn parts_of(columns: &[JsonTableColumn]) -> Result<Vec<ColumnSource>> {
    columns
        .iter()
        .map(|column| match column {
            JsonTableColumn::Named(named) => {
                Ok(ColumnSource::Value(Box::new(ValuePart::of(named)?)))
            }
            JsonTableColumn::ForOrdinality(_) => Ok(ColumnSource::Ordinality),
            JsonTableColumn::Nested(nested) => {
                let parts = parts_of(&nested.columns)?;
                let width = parts.iter().map(ColumnSource::width).sum();
                Ok(ColumnSource::Nested { path: parsed_path(&nested.path)?, parts, width })
            }
        })
        .collect()
}

impl ColumnSource {
    /// The number of columns from this source.
    fn width(&self) -> usize {
        match self {
            Self::Nested { width, .. } => *width,
            _ => 1,
        }
    }
}

impl ValuePart {
    fn of(column: &JsonTableNamedColumn) -> Result<Self> {
        let is_exists = column.exists;
        let otherwise = |handling: &Option<JsonTableColumnErrorHandling>| match handling {
            Some(JsonTableColumnErrorHandling::Default(value)) if !is_exists => {
                default(value, column).map(OnEmptyOrError::Default)
            }
            Some(JsonTableColumnErrorHandling::Error) => Ok(OnEmptyOrError::Error),
            _ => Ok(OnEmptyOrError::Default(None)),
        };
        Ok(Self {
            name: column.name.value.clone(),
            kind: column.r#type.clone(),
            is_exists,
            on_empty: otherwise(&column.on_empty)?,
            on_error: otherwise(&column.on_error)?,
            path: parsed_path(&column.path)?,
        })
    }

    /// The text of this column for a row; `number` is the row's ordinal.
    fn value(&self, place: &Json, number: usize) -> Result<JsonCell> {
        let found = self.path.find(place);
        if self.is_exists {
            return Ok(Some(if found.is_empty() { "0" } else { "1" }.into()));
        }
        let misfit = match found.as_slice() {
            [] => {
                return self.on_empty.taken(|| {
                    let message = format!("Missing value for JSON_TABLE column '{}'", self.name);
                    Error::new(ErrorCode::JsonTableMissing, message)
                });
            }
            [only] => match cell::fitted(only, &self.kind) {
                Ok(text) => return Ok(text.map(Arc::from)),
                Err(misfit) => misfit,
            },
            several if matches!(self.kind, DataType::JSON) => {
                let all = Json::Array(several.iter().copied().cloned().collect());
                return Ok(Some(all.text().into()));
            }
            _ => cell::ConversionError::Nested,
        };
        self.on_error.taken(|| misfit.error(&self.name, number))
    }
}

impl OnEmptyOrError {
    fn taken(&self, error: impl FnOnce() -> Error) -> Result<JsonCell> {
        match self {
            Self::Error => Err(error()),
            Self::Default(value) => Ok(value.clone()),
        }
    }
}

/// A default value, given as JSON text.
fn default(value: &ValueWithSpan, column: &JsonTableNamedColumn) -> Result<JsonCell> {
    let Value::SingleQuotedString(text) = &value.value else {
        return Err(Error::unsupported(
            "non-string DEFAULT value for a column in a JSON_TABLE expression",
        ));
    };
    let name = &column.name.value;
    let value = match json::parse_argument(text, 1, "JSON_TABLE")? {
        value if matches!(column.r#type, DataType::JSON) => return Ok(Some(value.text().into())),
        // JSON null as a default is the text `null` in a text column, not SQL NULL.
        Json::Null => Json::Text("null".to_owned()),
        value => value,
    };
    let fitted = cell::fitted(&value, &column.r#type).map_err(|misfit| match misfit {
        cell::ConversionError::Nested => {
            Error::new(ErrorCode::InvalidDefault, messages::invalid_default(name))
        }
        other => other.error(name, 1),
    });
    fitted.map(|text| text.map(Arc::from))
}

/// Builds the rows of a document.
struct Making<'m, 'r> {
    room: &'m mut JsonRoom<'r>,
}

impl Making<'_, '_> {
    /// The rows of all values at a path.
    fn table(
        &mut self,
        document: &Json,
        path: &Path,
        parts: &[ColumnSource],
        rows: &mut Vec<JsonRow>,
    ) -> Result<()> {
        let places = path.find(document);
        (self.room)(size_of_val(places.as_slice()))?;
        for (index, place) in places.into_iter().enumerate() {
            self.rows_of(place, index + 1, parts, rows)?;
        }
        Ok(())
    }

    /// The rows of one value: one, or one for each row of its nested paths.
    fn rows_of(
        &mut self,
        place: &Json,
        number: usize,
        parts: &[ColumnSource],
        rows: &mut Vec<JsonRow>,
    ) -> Result<()> {
        let mut plain = JsonRow::new();
        let mut nested: Vec<(usize, Vec<JsonRow>)> = Vec::new();
        for part in parts {
            match part {
                ColumnSource::Value(value) => {
                    let text = value.value(place, number)?;
                    (self.room)(text.as_ref().map_or(0, |text| text.len()))?;
                    plain.push(text);
                }
                ColumnSource::Ordinality => plain.push(Some(number.to_string().into())),
                ColumnSource::Nested { path, parts, width } => {
                    let mut found = Vec::new();
                    self.table(place, path, parts, &mut found)?;
                    nested.push((plain.len(), found));
                    plain.extend(std::iter::repeat_n(None, *width));
                }
            }
        }
        let row_bytes = ROW_BYTES + size_of_val(plain.as_slice());
        if nested.iter().all(|(_, found)| found.is_empty()) {
            (self.room)(row_bytes)?;
            rows.push(plain);
            return Ok(());
        }
        for (at, found) in nested {
            for values in found {
                (self.room)(row_bytes)?;
                let mut row = plain.clone();
                let end = at + values.len();
                row.splice(at..end, values);
                rows.push(row);
            }
        }
        Ok(())
    }
}
