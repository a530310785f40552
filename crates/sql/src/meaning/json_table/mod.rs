//! What JSON_TABLE makes of a document: its columns as they were declared, and the rows that a document becomes, as
//! texts, which casts make values of the columns' types.

mod cell;
mod documents;

use std::{collections::HashSet, sync::Arc};

use datafusion::sql::sqlparser::ast::{
    DataType, JsonTableColumn, JsonTableColumnErrorHandling, JsonTableNamedColumn, Value,
    ValueWithSpan,
};
use remora_mysql::ErrorCode;

use super::json::{self, Json, Path};
use crate::{Error, Result};

pub(crate) use cell::is_year;
pub(crate) use documents::Documents;

/// Most columns: each is planned beside all others.
const MAX_COLUMNS: usize = 1_024;

/// What a row takes beside its values, in bytes.
const ROW_BYTES: usize = size_of::<JsonRow>();

/// The text of which a cast makes a value; `None` is NULL. Rows of one place have it together.
pub(crate) type JsonCell = Option<Arc<str>>;

/// A row's values as text.
pub(crate) type JsonRow = Vec<JsonCell>;

/// Is told how many bytes rows are about to take; refuses them, and ends what takes too long.
pub(crate) type JsonRoom<'r> = dyn FnMut(usize) -> Result<()> + 'r;

/// A JSON_TABLE as it was declared: where its rows are in a document, and what stands in its columns.
#[derive(Debug)]
pub(crate) struct JsonTable {
    path: Path,
    parts: Vec<ColumnSource>,
    columns: Vec<JsonColumn>,
}

/// A column of the result.
#[derive(Debug)]
pub(crate) struct JsonColumn {
    /// What it is called.
    pub name: String,
    /// The type to cast to; numbers of rows need none.
    pub kind: Option<DataType>,
}

/// What gives one column, or those of a nested path.
#[derive(Debug)]
enum ColumnSource {
    Ordinality,
    Value(Box<ValuePart>),
    Nested { path: Path, parts: Vec<ColumnSource>, width: usize },
}

/// A value at a path.
#[derive(Debug)]
struct ValuePart {
    name: String,
    kind: DataType,
    path: Path,
    /// Whether it is 1 or 0: whether there is a value.
    is_exists: bool,
    on_empty: OnEmptyOrError,
    on_error: OnEmptyOrError,
}

/// What stands where there is no value, or none that fits.
#[derive(Debug)]
enum OnEmptyOrError {
    Error,
    /// This value; NULL where nothing is said.
    Default(JsonCell),
}

impl JsonTable {
    /// The table of a path and columns. Defaults are looked at here, whether one is needed or not.
    ///
    /// # Errors
    /// 3143 for what is no path, 1117 for more columns than are planned, 1060 for two of one name, the errors of defaults
    /// that do not fit.
    pub(crate) fn new(path: &ValueWithSpan, columns: &[JsonTableColumn]) -> Result<Self> {
        let mut described = Vec::new();
        describe(columns, &mut described);
        if described.len() > MAX_COLUMNS {
            return Err(Error::new(ErrorCode::TooManyColumns, "Too many columns"));
        }
        let mut names = HashSet::new();
        if let Some(twice) = described.iter().find(|it| !names.insert(it.name.to_lowercase())) {
            let message = format!("Duplicate column name '{}'", twice.name);
            return Err(Error::new(ErrorCode::DuplicateColumn, message));
        }
        let parts = parts_of(columns)?;
        Ok(Self { path: parsed_path(path)?, parts, columns: described })
    }

    /// The columns of the result, those of nested paths in their places.
    pub(crate) fn columns(&self) -> &[JsonColumn] {
        &self.columns
    }

    /// The rows of a document. `room` is told of each before it is held.
    ///
    /// # Errors
    /// What `room` says; the errors that ON EMPTY and ON ERROR ask for.
    pub(crate) fn rows(&self, document: &Json, room: &mut JsonRoom<'_>) -> Result<Vec<JsonRow>> {
        let mut rows = Vec::new();
        Making { room }.table(document, &self.path, &self.parts, &mut rows)?;
        Ok(rows)
    }
}

/// The text of which a cast makes a value of a type, as columns have it: NULL has none. `None` if it does not fit.
pub(super) fn fitted(value: &Json, kind: &DataType) -> Option<Option<String>> {
    cell::fitted(value, kind).ok()
}

/// About how many bytes the document of a text takes: each value of it a node, and what it says.
fn document_bytes(text: &str) -> usize {
    // A node of our tree, and one of the parser's beside it.
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
    /// How many columns it gives.
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

    /// The text of the column at a place, the so many-th of its path.
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

/// A default, which is the text of a document.
fn default(value: &ValueWithSpan, column: &JsonTableNamedColumn) -> Result<JsonCell> {
    let Value::SingleQuotedString(text) = &value.value else {
        return Err(Error::unsupported(
            "non-string DEFAULT value for a column in a JSON_TABLE expression",
        ));
    };
    let name = &column.name.value;
    let value = match json::parse_argument(text, 1, "JSON_TABLE")? {
        value if matches!(column.r#type, DataType::JSON) => return Ok(Some(value.text().into())),
        // Not NULL: the word, where the column is one of texts.
        Json::Null => Json::Text("null".to_owned()),
        value => value,
    };
    let fitted = cell::fitted(&value, &column.r#type).map_err(|misfit| match misfit {
        cell::ConversionError::Nested => {
            Error::new(ErrorCode::InvalidDefault, format!("Invalid default value for '{name}'"))
        }
        other => other.error(name, 1),
    });
    fitted.map(|text| text.map(Arc::from))
}

/// Makes the rows of a document.
struct Making<'m, 'r> {
    room: &'m mut JsonRoom<'r>,
}

impl Making<'_, '_> {
    /// The rows of all places of a path.
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

    /// The rows of one place: one, or as many as its nested paths have.
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
