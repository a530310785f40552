//! JSON_TABLE over a constant document: its rows become a table of texts, cast to the columns'
//! types.

mod cell;

use std::sync::Arc;

use datafusion::{
    arrow::{
        array::{ArrayRef, RecordBatch, RecordBatchOptions, StringViewArray},
        datatypes::Schema,
    },
    catalog::TableProvider,
    datasource::MemTable,
    error::Result as PlanResult,
    sql::sqlparser::ast::{
        CastKind, DataType, Expr, JsonTableColumn, JsonTableColumnErrorHandling,
        JsonTableNamedColumn, ObjectName, SetExpr, TableFactor, TableWithJoins, Value,
        ValueWithSpan,
    },
};
use remora_mysql::{Collation, ErrorCode};

use super::{
    Resolver, alias, query_of,
    scope::{Named, Relation, quoted},
    select::{empty_select, item},
};
use crate::{
    Error, Result,
    error::from_plan,
    meaning::{
        json::{self, Json, Path},
        types::ExprType,
    },
};

/// Most rows that a document may become.
const MAX_ROWS: usize = 1 << 22;

/// Most columns: each is planned beside all others.
const MAX_COLUMNS: usize = 1_024;

/// A row's values as text.
type Row = Vec<Option<String>>;

/// A column of the result.
struct Column {
    name: String,
    /// The type to cast to; numbers of rows need none.
    kind: Option<DataType>,
}

impl Resolver<'_> {
    /// Makes JSON_TABLE a derived table of constants.
    pub(super) fn json_table(
        &mut self,
        document: &Expr,
        path: &ValueWithSpan,
        columns: &[JsonTableColumn],
        called: String,
    ) -> Result<(TableFactor, Relation)> {
        let text = constant(document)?;
        let mut described = Vec::new();
        describe(columns, &mut described);
        if described.len() > MAX_COLUMNS {
            return Err(Error::new(ErrorCode::TooManyColumns, "Too many columns"));
        }
        check_defaults(columns)?;
        let rows = match text {
            None => Vec::new(),
            Some(text) => {
                let document = Json::parse(&text).map_err(|error| invalid(&error))?;
                let mut rows = Vec::new();
                table(&document, &parsed_path(path)?, columns, &mut rows)?;
                rows
            }
        };
        let unique = self.unique(&called);
        let inner = self.unique("values");
        let provider = texts(&described, &rows).map_err(from_plan)?;
        self.tables.push((inner.clone(), provider));
        let factor = derived(&described, &inner, &unique);
        let named = |column: &Column| Named {
            shown: column.name.clone(),
            planned: column.name.to_lowercase(),
            hidden: false,
        };
        let relation = Relation {
            alias: called,
            database: None,
            unique,
            columns: described.iter().map(named).collect(),
            key: Vec::new(),
            is_view: false,
        };
        Ok((factor, relation))
    }
}

/// The document's text; NULL is none.
fn constant(document: &Expr) -> Result<Option<String>> {
    match document {
        Expr::Nested(inner) => constant(inner),
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => {
            Ok(Some(text.clone()))
        }
        Expr::Value(ValueWithSpan { value: Value::Null, .. }) => Ok(None),
        _ => Err(Error::unsupported("JSON_TABLE of anything but a constant")),
    }
}

fn parsed_path(path: &ValueWithSpan) -> Result<Path> {
    match &path.value {
        Value::SingleQuotedString(text) => Path::parse(text),
        other => Err(Error::unsupported(other)),
    }
}

/// 3140.
fn invalid(error: &serde_json::Error) -> Error {
    let message = format!("Invalid JSON text in argument 1 to function json_table: \"{error}\"");
    Error::new(ErrorCode::InvalidJsonText, message)
}

fn describe(columns: &[JsonTableColumn], described: &mut Vec<Column>) {
    for column in columns {
        match column {
            JsonTableColumn::Named(named) => described
                .push(Column { name: named.name.value.clone(), kind: Some(named.r#type.clone()) }),
            JsonTableColumn::ForOrdinality(name) => {
                described.push(Column { name: name.value.clone(), kind: None });
            }
            JsonTableColumn::Nested(nested) => describe(&nested.columns, described),
        }
    }
}

fn width(column: &JsonTableColumn) -> usize {
    match column {
        JsonTableColumn::Nested(nested) => nested.columns.iter().map(width).sum(),
        _ => 1,
    }
}

/// The rows of all places of a path.
fn table(
    document: &Json,
    path: &Path,
    columns: &[JsonTableColumn],
    rows: &mut Vec<Row>,
) -> Result<()> {
    for (index, place) in path.find(document).into_iter().enumerate() {
        rows_of(place, index + 1, columns, rows)?;
        if rows.len() > MAX_ROWS {
            let message = format!("JSON_TABLE gives more than {MAX_ROWS} rows");
            return Err(Error::new(ErrorCode::OutOfMemory, message));
        }
    }
    Ok(())
}

/// The rows of one place: one, or as many as its nested paths have.
fn rows_of(
    place: &Json,
    number: usize,
    columns: &[JsonTableColumn],
    rows: &mut Vec<Row>,
) -> Result<()> {
    let mut plain = Vec::new();
    let mut nested: Vec<(usize, Vec<Row>)> = Vec::new();
    for column in columns {
        match column {
            JsonTableColumn::Named(named) => plain.push(value(place, number, named)?),
            JsonTableColumn::ForOrdinality(_) => plain.push(Some(number.to_string())),
            JsonTableColumn::Nested(inner) => {
                let mut found = Vec::new();
                table(place, &parsed_path(&inner.path)?, &inner.columns, &mut found)?;
                nested.push((plain.len(), found));
                plain.extend(std::iter::repeat_n(None, width(column)));
            }
        }
    }
    if nested.iter().all(|(_, found)| found.is_empty()) {
        rows.push(plain);
        return Ok(());
    }
    for (at, found) in nested {
        for values in found {
            let mut row = plain.clone();
            let end = at + values.len();
            row.splice(at..end, values);
            rows.push(row);
        }
    }
    Ok(())
}

/// The text of a column at a place, which a cast makes its value.
fn value(place: &Json, number: usize, column: &JsonTableNamedColumn) -> Result<Option<String>> {
    let path = parsed_path(&column.path)?;
    let found = path.find(place);
    let name = &column.name.value;
    if column.exists {
        return Ok(Some(u8::from(!found.is_empty()).to_string()));
    }
    let misfit = match found.as_slice() {
        [] => {
            return otherwise(column.on_empty.as_ref(), column, || {
                let message = format!("Missing value for JSON_TABLE column '{name}'");
                Error::new(ErrorCode::JsonTableMissing, message)
            });
        }
        [only] => match cell::fitted(only, &column.r#type) {
            Ok(text) => return Ok(text),
            Err(misfit) => misfit,
        },
        several if matches!(column.r#type, DataType::JSON) => {
            let all = Json::Array(several.iter().copied().cloned().collect());
            return Ok(Some(all.text()));
        }
        _ => cell::Misfit::Nested,
    };
    otherwise(column.on_error.as_ref(), column, || misfit.error(name, number))
}

/// What stands where there is no value, or none that fits.
fn otherwise(
    handling: Option<&JsonTableColumnErrorHandling>,
    column: &JsonTableNamedColumn,
    error: impl FnOnce() -> Error,
) -> Result<Option<String>> {
    match handling {
        Some(JsonTableColumnErrorHandling::Default(value)) => default(value, column),
        Some(JsonTableColumnErrorHandling::Error) => Err(error()),
        _ => Ok(None),
    }
}

/// A default, which is the text of a document.
fn default(value: &ValueWithSpan, column: &JsonTableNamedColumn) -> Result<Option<String>> {
    let Value::SingleQuotedString(text) = &value.value else {
        return Err(Error::unsupported(
            "non-string DEFAULT value for a column in a JSON_TABLE expression",
        ));
    };
    let name = &column.name.value;
    let value = match json::parse_argument(text, 1, "JSON_TABLE")? {
        value if matches!(column.r#type, DataType::JSON) => return Ok(Some(value.text())),
        // Not NULL: the word, where the column is one of texts.
        Json::Null => Json::Text("null".to_owned()),
        value => value,
    };
    cell::fitted(&value, &column.r#type).map_err(|misfit| match misfit {
        cell::Misfit::Nested => {
            Error::new(ErrorCode::InvalidDefault, format!("Invalid default value for '{name}'"))
        }
        other => other.error(name, 1),
    })
}

/// Defaults are looked at before there are rows, whether one is needed or not.
fn check_defaults(columns: &[JsonTableColumn]) -> Result<()> {
    for column in columns {
        match column {
            JsonTableColumn::Named(named) if !named.exists => {
                for handling in [&named.on_empty, &named.on_error].into_iter().flatten() {
                    if let JsonTableColumnErrorHandling::Default(value) = handling {
                        default(value, named)?;
                    }
                }
            }
            JsonTableColumn::Nested(nested) => check_defaults(&nested.columns)?,
            _ => {}
        }
    }
    Ok(())
}

/// The rows as a table of texts.
fn texts(columns: &[Column], rows: &[Row]) -> PlanResult<Arc<dyn TableProvider>> {
    let kind = ExprType::text(u32::MAX, Collation::UTF8MB4_0900_AI_CI);
    let field = |column: &Column| kind.field(&column.name.to_lowercase());
    let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let array = |index: usize| {
        let values = rows.iter().map(|row| row.get(index).and_then(Option::as_deref));
        Arc::new(values.collect::<StringViewArray>()) as ArrayRef
    };
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let arrays = (0..columns.len()).map(array).collect();
    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)?;
    Ok(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?))
}

/// `(SELECT CAST(a AS type) … FROM inner) AS unique`.
fn derived(columns: &[Column], inner: &str, unique: &str) -> TableFactor {
    let mut select = empty_select();
    select.projection = columns
        .iter()
        .map(|column| {
            let name = column.name.to_lowercase();
            let value = Expr::CompoundIdentifier(vec![quoted(inner), quoted(&name)]);
            item(cast(value, column.kind.clone()), &name)
        })
        .collect();
    let relation = TableFactor::Table {
        name: ObjectName::from(vec![quoted(inner)]),
        alias: Some(alias(inner)),
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    };
    select.from = vec![TableWithJoins { relation, joins: Vec::new() }];
    TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query_of(SetExpr::Select(Box::new(select)))),
        alias: Some(alias(unique)),
        sample: None,
    }
}

fn cast(value: Expr, kind: Option<DataType>) -> Expr {
    let value = match &kind {
        // The text 0 is the year 2000, the number is not.
        Some(kind) if cell::is_year(kind) => cast(value, Some(DataType::BigInt(None))),
        _ => value,
    };
    let data_type = match kind {
        None => DataType::UnsignedInteger,
        Some(
            DataType::TinyInt(_)
            | DataType::SmallInt(_)
            | DataType::MediumInt(_)
            | DataType::Int(_)
            | DataType::Integer(_)
            | DataType::BigInt(_)
            | DataType::Boolean
            | DataType::Bool,
        ) => DataType::SignedInteger,
        Some(
            DataType::TinyIntUnsigned(_)
            | DataType::SmallIntUnsigned(_)
            | DataType::MediumIntUnsigned(_)
            | DataType::IntUnsigned(_)
            | DataType::IntegerUnsigned(_)
            | DataType::BigIntUnsigned(_),
        ) => DataType::UnsignedInteger,
        Some(DataType::Text | DataType::LongText | DataType::MediumText | DataType::TinyText) => {
            DataType::Char(None)
        }
        Some(
            DataType::Blob(_) | DataType::LongBlob | DataType::MediumBlob | DataType::TinyBlob,
        ) => DataType::Binary(None),
        Some(other) => other,
    };
    let expr = Box::new(value);
    Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None }
}
