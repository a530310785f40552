//! Converts records to rows: fields are matched to columns by name and converted to the columns' types.

use std::{collections::BTreeMap, sync::Arc};

use remora_engine::{ColumnType, DateTime, Row, Schema, Value};
use rustc_hash::FxHashMap;
use serde::{
    Deserializer as _,
    de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{
    document::read_document,
    literal::{fit_float, fit_int, fit_uint, parse_literal},
    record::{Layout, Record},
    shape::{Rows, Shape},
};

/// What stands in a row for a column that the record does not have, if SQL defined the table: the column has its
/// default then. No document has this text.
const NOT_GIVEN: &str = "";

/// Whether a row of a table that SQL defined has no value for a column, so that it has its default.
pub fn is_not_given(value: &Value) -> bool {
    matches!(value, Value::Json(text) if &**text == NOT_GIVEN)
}

/// The column that numbers the rows of files without a key.
pub(crate) const ROW_NUMBER_COLUMN: &str = "_row";

/// The most names of unknown fields in the report.
const MAX_IGNORED_NAMES: usize = 100;

/// The most bytes of a text id in a collection.
const MAX_ID_BYTES: usize = 512;

/// The most characters of a value in a message.
const SHOWN_CHARS: usize = 60;

/// Converts the records of one file to rows of one schema.
pub struct RowParser {
    columns: Vec<Column>,
    lookup: FxHashMap<String, usize>,
    key_columns: Vec<usize>,
    row_number: Option<usize>,
    /// Whether SQL defined the table, which then converts what the types of the engine do not take, and knows defaults.
    is_of_sql: bool,
    layout: Arc<Layout>,
    fields: Vec<Option<usize>>,
    ignored: BTreeMap<String, u64>,
}

#[derive(Clone)]
struct Column {
    name: String,
    kind: ColumnType,
    nullable: bool,
    /// Whether files do not know it, such as the column of a key over an expression.
    is_hidden: bool,
    /// Whether SQL converts what is no value of the type.
    is_of_sql: bool,
    /// Whether it is a set of numbers of Sphinx's dialect, which SQL reads from `1,2` as well as from JSON.
    is_number_set: bool,
}

impl RowParser {
    /// For records of this layout. If SQL defined the table, values that its types do not take stay as they are given,
    /// for [`is_not_given`] columns nothing is given, and nothing is refused for that: SQL converts and decides.
    /// Collections have whole rows in any case.
    pub fn new(schema: &Schema, layout: &Layout) -> Self {
        let has_documents = matches!(
            layout,
            Layout::Document { shape, .. } if shape.rows == Rows::Documents
        );
        let is_of_sql = schema.declared.is_some() && !has_documents;
        let column = |(at, def): (usize, &remora_engine::ColumnDef)| Column {
            name: def.name.clone(),
            kind: def.kind,
            nullable: def.nullable,
            is_hidden: schema.is_hidden(at),
            is_of_sql,
            is_number_set: def.declared.as_ref().is_some_and(|text| text.starts_with("multi")),
        };
        let columns: Vec<_> = schema.columns.iter().enumerate().map(column).collect();
        let shown = columns.iter().enumerate().filter(|(_, def)| !def.is_hidden);
        let lookup = shown.map(|(at, def)| (def.name.to_lowercase(), at));
        let lookup: FxHashMap<_, _> = lookup.collect();
        let is_number =
            |at: &usize| columns.get(*at).is_some_and(|def| def.name == ROW_NUMBER_COLUMN);
        let row_number = schema.primary_key.iter().copied().find(is_number);
        let row_number = row_number.filter(|_| !is_of_sql);
        let mut parser = Self {
            is_of_sql,
            columns,
            lookup,
            key_columns: schema.primary_key.clone(),
            row_number,
            layout: Arc::new(layout.clone()),
            fields: Vec::new(),
            ignored: BTreeMap::new(),
        };
        if let Layout::Columns(names) = layout {
            parser.fields = names.iter().map(|name| parser.column_of(name)).collect();
        }
        parser
    }

    /// Converts a record to a row. `row_number` is the value of a key column `_row` that the record lacks.
    ///
    /// # Errors
    /// Why the record is wrong, with the column and the value.
    pub fn parse(&mut self, record: &Record<'_>, row_number: u64) -> Result<Row, String> {
        if let Some(problem) = record.problem() {
            return Err(problem.to_owned());
        }
        let empty = if self.is_of_sql { Value::Json(NOT_GIVEN.into()) } else { Value::Null };
        let mut row = vec![empty; self.columns.len()];
        match &*Arc::clone(&self.layout) {
            Layout::Object => {
                let text = utf8(record.field(0).unwrap_or_default())?;
                read_document(text, record.span().line, &Shape::default(), false)?;
                self.parse_object(record.field(0), &mut row)?;
            }
            Layout::Document { shape, extended } => {
                if self.parse_document(record, shape, *extended, &mut row)? {
                    return Ok(row);
                }
            }
            Layout::IdAndObject => {
                self.parse_object(record.field(1), &mut row)?;
                self.fill_key(record.field(0), &mut row)?;
            }
            Layout::Columns(_) => self.parse_fields(record, &mut row)?,
        }
        if let Some(key) = self.row_number.and_then(|at| row.get_mut(at))
            && *key == Value::Null
        {
            *key = Value::Uint(row_number);
        }
        self.refuse_missing(&row)?;
        Ok(row)
    }

    /// The names of unknown fields, and how often each occurred.
    pub fn ignored(&self) -> &BTreeMap<String, u64> {
        &self.ignored
    }

    fn parse_object(&mut self, field: Option<&[u8]>, row: &mut Row) -> Result<(), String> {
        let text = utf8(field.unwrap_or_default())?;
        let mut problem = None;
        let mut json = serde_json::Deserializer::from_str(text);
        let visitor = ObjectVisitor { parser: self, row, problem: &mut problem };
        let parsed = json.deserialize_map(visitor).and_then(|()| json.end());
        parsed.map_err(|error| {
            problem.unwrap_or_else(|| match error.is_data() {
                true => format!("not a JSON object: {}", shorten(text)),
                false => not_json(&error),
            })
        })
    }

    /// Parses a document; true if the row is complete, as a collection's is, although its id may still be missing.
    fn parse_document(
        &mut self,
        record: &Record<'_>,
        shape: &Shape,
        extended: bool,
        row: &mut Row,
    ) -> Result<bool, String> {
        let text = utf8(record.field(0).unwrap_or_default())?;
        let document = read_document(text, record.span().line, shape, extended)?;
        if shape.rows != Rows::Documents {
            self.parse_object(Some(document.text.as_bytes()), row)?;
            return Ok(false);
        }
        if let (Some(path), Some(key)) = (shape.key.first(), document.keys.first())
            && let Some(id) = row.first_mut()
        {
            let is_text = self.columns.first().is_some_and(|it| it.kind == ColumnType::Text);
            *id = match is_text {
                true => Value::Text(text_id(path, key.as_deref())?.into()),
                false => Value::Int(document_id(path, key.as_deref())?),
            };
        }
        if let Some(cell) = row.get_mut(1) {
            *cell = Value::Json(document.text.into());
        }
        Ok(true)
    }

    fn parse_fields(&mut self, record: &Record<'_>, row: &mut Row) -> Result<(), String> {
        for (position, target) in self.fields.iter().enumerate() {
            let Some(target) = *target else { continue };
            let text = utf8(record.field(position).unwrap_or_default())?;
            let (Some(column), Some(cell)) = (self.columns.get(target), row.get_mut(target)) else {
                continue;
            };
            *cell = parse_field(column, text)?;
        }
        Ok(())
    }

    /// Uses a dump's document id as the key, unless the document has one.
    fn fill_key(&self, id: Option<&[u8]>, row: &mut Row) -> Result<(), String> {
        let [key] = *self.key_columns else { return Ok(()) };
        let (Some(column), Some(cell)) = (self.columns.get(key), row.get_mut(key)) else {
            return Ok(());
        };
        if *cell == Value::Null || self.is_of_sql && is_not_given(cell) {
            *cell = parse_field(column, utf8(id.unwrap_or_default())?)?;
        }
        Ok(())
    }

    fn refuse_missing(&self, row: &Row) -> Result<(), String> {
        if self.is_of_sql {
            return Ok(());
        }
        let missing = self.columns.iter().zip(row).enumerate().find(|(at, (column, value))| {
            **value == Value::Null && (!column.nullable || self.key_columns.contains(at))
        });
        match missing {
            Some((_, (column, _))) => {
                Err(format!("column \"{}\" must have a value and has none", column.name))
            }
            None => Ok(()),
        }
    }

    /// The column of a field name, case-insensitively. An unknown name is counted.
    fn column_of(&mut self, name: &str) -> Option<usize> {
        let found = self.lookup.get(name).or_else(|| self.lookup.get(&name.to_lowercase()));
        let found = found.copied();
        if found.is_none() {
            self.count_ignored(name);
        }
        found
    }

    fn count_ignored(&mut self, name: &str) {
        if let Some(count) = self.ignored.get_mut(name) {
            *count += 1;
        } else if self.ignored.len() < MAX_IGNORED_NAMES {
            self.ignored.insert(name.to_owned(), 1);
        }
    }
}

/// The text at a key path, for collections with text ids.
fn text_id(path: &str, key: Option<&str>) -> Result<String, String> {
    let key =
        key.ok_or_else(|| format!("nothing stands at the key path {path}: give it a text"))?;
    let id: String = serde_json::from_str(key).map_err(|_| {
        format!("the key {path}: {} is no text, which the ids of the collection are", shorten(key))
    })?;
    match (1..=MAX_ID_BYTES).contains(&id.len()) {
        true => Ok(id),
        false => {
            let (shown, bytes) = (shorten(key), id.len());
            Err(format!("the key {path}: {shown} has {bytes} bytes: an id has 1 to {MAX_ID_BYTES}"))
        }
    }
}

/// The integer at a key path, for collections with integer ids.
fn document_id(path: &str, key: Option<&str>) -> Result<i64, String> {
    let key = key.ok_or_else(|| {
        format!("nothing stands at the key path {path}: give it a number, or import without --key, so that ids are made")
    })?;
    key.parse().map_err(|_| {
        format!(
            "the key {path}: {} is not an integer of 64 bits, which ids are: import without --key, so that they are made",
            shorten(key)
        )
    })
}

/// Fields usually come in the order of the columns, so the column after the last one is tried first.
struct ObjectVisitor<'a> {
    parser: &'a mut RowParser,
    row: &'a mut Row,
    problem: &'a mut Option<String>,
}

impl<'de> Visitor<'de> for ObjectVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut guess = 0;
        let mut given = vec![false; self.parser.columns.len()];
        while let Some(target) = map.next_key_seed(NameSeed { parser: self.parser, guess })? {
            let column = target.and_then(|at| self.parser.columns.get(at));
            let (Some(at), Some(column)) = (target, column) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            // Names that differ by case alone are of one column.
            if given.get_mut(at).is_some_and(|given| std::mem::replace(given, true)) {
                *self.problem =
                    Some(format!("two members are for the column \"{}\": keep one", column.name));
                return Err(A::Error::custom("refused"));
            }
            let value = map.next_value_seed(ValueSeed { column, problem: self.problem })?;
            if let Some(cell) = self.row.get_mut(at) {
                *cell = value;
            }
            guess = at + 1;
        }
        Ok(())
    }
}

struct NameSeed<'a> {
    parser: &'a mut RowParser,
    guess: usize,
}

impl<'de> DeserializeSeed<'de> for NameSeed<'_> {
    type Value = Option<usize>;

    fn deserialize<D: serde::Deserializer<'de>>(self, source: D) -> Result<Self::Value, D::Error> {
        source.deserialize_str(self)
    }
}

impl Visitor<'_> for NameSeed<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        match self.parser.columns.get(self.guess) {
            Some(column) if column.name == name && !column.is_hidden => Ok(Some(self.guess)),
            _ => Ok(self.parser.column_of(name)),
        }
    }
}

struct ValueSeed<'a> {
    column: &'a Column,
    problem: &'a mut Option<String>,
}

impl ValueSeed<'_> {
    fn take<E: serde::de::Error>(
        self,
        value: Option<Value>,
        shown: impl Into<String>,
    ) -> Result<Value, E> {
        value.ok_or_else(|| {
            *self.problem = Some(misfit(self.column, &shown.into()));
            E::custom("misfit")
        })
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        let is_typed = !matches!(self.column.kind, ColumnType::Json | ColumnType::Decimal(..));
        if is_typed && !self.column.is_of_sql {
            return source.deserialize_any(self);
        }
        let raw = <&RawValue as serde::Deserialize>::deserialize(source)?.get();
        match self.column.kind {
            _ if raw == "null" => Ok(Value::Null),
            ColumnType::Json => Ok(Value::Json(raw.into())),
            _ if self.column.is_of_sql => {
                let value = for_sql(self.column.kind, raw);
                self.take(value, raw)
            }
            kind => self.take(parse_literal(kind, raw.trim_matches('"')), raw),
        }
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", type_name(self.column.kind))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: serde::de::Error>(self, truth: bool) -> Result<Value, E> {
        let value = match self.column.kind {
            ColumnType::Bool => Some(Value::Bool(truth)),
            ColumnType::Text => Some(Value::Text(truth.to_string().into())),
            _ => None,
        };
        self.take(value, truth.to_string())
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Value, E> {
        let value = match self.column.kind {
            ColumnType::Int(bits) => fit_int(bits, number),
            ColumnType::Uint(bits) => u64::try_from(number).ok().and_then(|n| fit_uint(bits, n)),
            ColumnType::Float | ColumnType::Double => {
                return self.visit_f64(number as f64);
            }
            ColumnType::Bool if number == 0 || number == 1 => Some(Value::Bool(number == 1)),
            ColumnType::Text => Some(Value::Text(number.to_string().into())),
            _ => None,
        };
        self.take(value, number.to_string())
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Value, E> {
        let value = match (self.column.kind, i64::try_from(number)) {
            (ColumnType::Uint(bits), _) => fit_uint(bits, number),
            (_, Ok(number)) => return self.visit_i64(number),
            (ColumnType::Float | ColumnType::Double, _) => return self.visit_f64(number as f64),
            (ColumnType::Text, _) => Some(Value::Text(number.to_string().into())),
            _ => None,
        };
        self.take(value, number.to_string())
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Value, E> {
        let value = match self.column.kind {
            ColumnType::Double => Some(Value::Float(number)),
            ColumnType::Float => fit_float(number).map(Value::Float),
            ColumnType::Int(_) | ColumnType::Uint(_) if is_exact_integer(number) => {
                parse_literal(self.column.kind, &format!("{number:.0}"))
            }
            ColumnType::Text => Some(Value::Text(format!("{number:?}").into())),
            _ => None,
        };
        self.take(value, number.to_string())
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        let value = match self.column.kind {
            ColumnType::Text => return Ok(Value::Text(text.into())),
            ColumnType::Int(_) | ColumnType::Uint(_) | ColumnType::Bool => None,
            ColumnType::Float | ColumnType::Double => None,
            kind => parse_literal(kind, text),
        };
        self.take(value, format!("\"{text}\""))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, _: A) -> Result<Value, A::Error> {
        self.take(None, "an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Value, A::Error> {
        self.take(None, "an object")
    }
}

/// A JSON value, neither null nor for a column of JSON, as SQL converts it; `None` for a column of bytes if it is no
/// text of bytes.
fn for_sql(kind: ColumnType, raw: &str) -> Option<Value> {
    let text = || Some(Value::Text(raw.into()));
    match raw.as_bytes().first()? {
        // The bytes of a number or an array would be its digits here, and hexadecimal digits at a server.
        byte if kind == ColumnType::Bytes && *byte != b'"' => None,
        b't' | b'f' if kind != ColumnType::Text => Some(Value::Int(i64::from(raw == "true"))),
        b'"' => {
            let text: String = serde_json::from_str(raw).ok()?;
            text_for_sql(kind, &text)
        }
        // A number keeps its digits: SQL rounds it.
        b'-' | b'0'..=b'9' => match (raw.parse::<i64>(), raw.parse::<u64>()) {
            (Ok(number), _) if kind != ColumnType::Text => Some(Value::Int(number)),
            (_, Ok(number)) if kind != ColumnType::Text => Some(Value::Uint(number)),
            _ => text(),
        },
        _ => text(),
    }
}

/// A text as SQL converts it, unless it has the form of the column's type in files. SQL knows which dates there are; a
/// moment with an offset becomes a DATETIME of UTC.
fn text_for_sql(kind: ColumnType, text: &str) -> Option<Value> {
    let literal = match kind {
        ColumnType::Date => None,
        ColumnType::DateTime => match parse_literal(ColumnType::Timestamp, text) {
            Some(Value::Timestamp(micros)) => DateTime::from_timestamp(micros).map(Value::DateTime),
            _ => None,
        },
        ColumnType::Bytes => return parse_literal(kind, text),
        kind => parse_literal(kind, text),
    };
    Some(literal.unwrap_or_else(|| Value::Text(text.into())))
}

fn is_exact_integer(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0
}

fn parse_field(column: &Column, text: &str) -> Result<Value, String> {
    match (column.kind, text) {
        (_, "\\N") => Ok(Value::Null),
        (ColumnType::Text, _) => Ok(Value::Text(unescape_null(text).into())),
        (ColumnType::Bytes, "") => parse_literal(column.kind, text).ok_or_else(String::new),
        (_, "") => Ok(Value::Null),
        // SQL reads it. Every other text that is no JSON is refused here, because a server would get it as a JSON text.
        (ColumnType::Json, _)
            if column.is_number_set && parse_literal(column.kind, text).is_none() =>
        {
            Ok(Value::Text(text.into()))
        }
        (kind, _) if column.is_of_sql && kind != ColumnType::Json => {
            text_for_sql(kind, text).ok_or_else(|| misfit(column, &format!("\"{text}\"")))
        }
        (kind, _) => {
            parse_literal(kind, text).ok_or_else(|| misfit(column, &format!("\"{text}\"")))
        }
    }
}

/// `\\N` is the text `\N`, `\\\N` is `\\N`, and so on.
fn unescape_null(text: &str) -> &str {
    if is_null_like(text) { text.get(1..).unwrap_or_default() } else { text }
}

/// Whether a text is `\N`, possibly with more `\` before it.
pub(crate) fn is_null_like(text: &str) -> bool {
    text.strip_suffix('N').is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b == b'\\'))
}

/// The message without serde_json's line number, which is always 1 here.
fn not_json(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let reason = message.split(" at line ").next().unwrap_or_default();
    format!("not JSON: {reason} at byte {}", error.column())
}

fn utf8(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes)
        .map_err(|error| format!("not UTF-8 at byte {} of the record", error.valid_up_to()))
}

fn misfit(column: &Column, shown: &str) -> String {
    let (name, kind) = (&column.name, type_name(column.kind));
    format!("column \"{name}\": {} is not {kind}", shorten(shown))
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn type_name(kind: ColumnType) -> String {
    match kind {
        ColumnType::Int(bits) => format!("an integer of {bits} bits"),
        ColumnType::Uint(bits) => format!("an unsigned integer of {bits} bits"),
        ColumnType::Float | ColumnType::Double => "a number".into(),
        ColumnType::Decimal(precision, scale) => {
            format!("a decimal of {precision} digits, {scale} of them after the point")
        }
        ColumnType::Bool => "true or false".into(),
        ColumnType::Text => "a text".into(),
        ColumnType::Bytes => "bytes as pairs of hexadecimal digits".into(),
        ColumnType::Date => "a date (2024-12-31)".into(),
        ColumnType::Time => "a time (23:59:59)".into(),
        ColumnType::DateTime => "a date and time without an offset (2024-12-31 23:59:59)".into(),
        ColumnType::Timestamp => "a moment (2024-12-31T23:59:59Z)".into(),
        ColumnType::Json => "JSON".into(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use remora_engine::{ColumnDef, Date, Decimal};

    use super::*;
    use crate::files::record::{RecordBatch, Span};

    /// All types, each with a value.
    pub(crate) fn kinds_and_values() -> Vec<(ColumnType, Value)> {
        let date = Date { year: 2024, month: 2, day: 29 };
        vec![
            (ColumnType::Int(64), Value::Int(i64::MIN)),
            (ColumnType::Uint(64), Value::Uint(u64::MAX)),
            (ColumnType::Float, Value::Float(f64::from(1.1_f32))),
            (ColumnType::Double, Value::Float(-1.5e-300)),
            (ColumnType::Decimal(30, 4), Value::Decimal(decimal("-12345678901234567890.1200"))),
            (ColumnType::Decimal(8, 2), Value::Decimal(Decimal::parse("12.30", 8, 2).unwrap())),
            (ColumnType::Bool, Value::Bool(true)),
            (ColumnType::Text, Value::Text("a \"b\"\n\u{1f600}".into())),
            (ColumnType::Bytes, Value::Bytes([0, 255, 10].as_slice().into())),
            (ColumnType::Date, Value::Date(date)),
            (ColumnType::Time, Value::Time(-3_600_000_001)),
            (ColumnType::DateTime, Value::DateTime(DateTime { date, micros: 1 })),
            (ColumnType::Timestamp, Value::Timestamp(-1)),
            (ColumnType::Json, Value::Json("{\"a\":[1, 2]}".into())),
        ]
    }

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text, 30, 4).unwrap()
    }

    /// A table with an integer key `id` and these columns.
    pub(crate) fn schema_of(columns: &[(&str, ColumnType)]) -> Schema {
        let all = [("id", ColumnType::Int(64))].into_iter().chain(columns.iter().copied());
        let columns = all.zip(0..).map(|((name, kind), id)| ColumnDef {
            id,
            name: name.into(),
            kind,
            nullable: id > 0,
            indexed: true,
            declared: None,
        });
        Schema::over("t", columns.collect(), vec![0])
    }

    fn parse_json(schema: &Schema, json: &[u8]) -> Result<Row, String> {
        let span = Span { line: 1, offset: 0, end_line: 2, end_offset: 1 };
        let mut batch = RecordBatch::default();
        batch.push(span, [json]);
        RowParser::new(schema, &Layout::Object).parse(&batch.iter().next().unwrap(), 7)
    }

    #[test]
    fn fields_are_found_in_any_order_and_case() {
        let schema = schema_of(&[("a", ColumnType::Text), ("b", ColumnType::Double)]);
        let row = parse_json(&schema, br#" {"B":1,"x":[{}],"\u0061":"\u00e9","id":3} "#);
        let expected = vec![Value::Int(3), Value::Text("é".into()), Value::Float(1.0)];
        assert_eq!(row.unwrap(), expected);
    }

    #[test]
    fn messages_name_the_column_and_the_value() {
        let schema = schema_of(&[
            ("n", ColumnType::Int(8)),
            ("d", ColumnType::Date),
            ("m", ColumnType::Decimal(4, 2)),
            ("t", ColumnType::Text),
        ]);
        let cases: [(&[u8], &str); 16] = [
            (
                br#"{"id":7,"t":"x","id":8}"#,
                "the name \"id\" comes twice in an object: keep one at byte 20",
            ),
            (br#"{"id":7,"x":{"a":[{"b":1,"b":2}]}}"#, "the name \"b\" comes twice"),
            (br#"{"id":7,"\u0061":1,"a":2}"#, "the name \"a\" comes twice"),
            (br#"{"id":7,"ID":8}"#, "two members are for the column \"id\": keep one"),
            (br#"{"id":1,"n":"12"}"#, r#"column "n": "12" is not an integer of 8 bits"#),
            (br#"{"id":1,"n":128}"#, r#"column "n": 128 is not an integer of 8 bits"#),
            (br#"{"id":1,"n":1.5}"#, r#"column "n": 1.5 is not an integer of 8 bits"#),
            (br#"{"id":1,"d":"soon"}"#, r#"column "d": "soon" is not a date (2024-12-31)"#),
            (br#"{"id":1,"m":123.4}"#, r#"column "m": 123.4 is not a decimal of 4 digits"#),
            (br#"{"id":1,"t":["a"]}"#, r#"column "t": an array is not a text"#),
            (br#"{"n":1}"#, r#"column "id" must have a value and has none"#),
            (br#"{"id":null}"#, r#"column "id" must have a value and has none"#),
            (br#"[1]"#, "not a JSON object: [1]"),
            (br#"{"id":1"#, "not JSON: EOF while parsing an object at byte 7"),
            (br#"{"id":1} x"#, "not JSON: trailing characters at byte 10"),
            (b"{\"id\":1,\"t\":\"\xff\"}", "not UTF-8 at byte 13 of the record"),
        ];
        for (json, message) in cases {
            let found = parse_json(&schema, json).unwrap_err();
            assert!(found.starts_with(message), "{found} / {message}");
        }
    }

    #[test]
    fn whole_floats_are_integers() {
        let schema = schema_of(&[("n", ColumnType::Uint(32))]);
        let row = parse_json(&schema, br#"{"id":1e3,"n":5.0}"#);
        assert_eq!(row.unwrap(), [Value::Int(1000), Value::Uint(5)]);
        assert!(parse_json(&schema, br#"{"id":9223372036854775808}"#).is_err());
    }

    #[test]
    fn deep_nesting_is_refused_or_kept_but_never_overflows() {
        let schema = schema_of(&[("j", ColumnType::Json)]);
        for name in ["j", "unknown"] {
            let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
            let _ = parse_json(&schema, format!(r#"{{"id":1,"{name}":{open}{close}}}"#).as_bytes());
        }
    }

    #[test]
    fn rows_are_numbered_where_the_key_asks_for_it() {
        let mut schema = schema_of(&[("a", ColumnType::Text)]);
        schema.columns[0].name = ROW_NUMBER_COLUMN.into();
        schema.columns[0].kind = ColumnType::Uint(64);
        let row = parse_json(&schema, br#"{"a":"x"}"#).unwrap();
        assert_eq!(row, [Value::Uint(7), Value::Text("x".into())]);
        let row = parse_json(&schema, br#"{"a":"x","_row":3}"#).unwrap();
        assert_eq!(row[0], Value::Uint(3));
    }

    #[test]
    fn null_and_empty_fields() {
        let column = |kind| Column {
            name: "c".into(),
            kind,
            nullable: true,
            is_hidden: false,
            is_of_sql: false,
            is_number_set: false,
        };
        let cases = [
            (ColumnType::Text, "", Value::Text("".into())),
            (ColumnType::Text, "\\N", Value::Null),
            (ColumnType::Text, "\\\\N", Value::Text("\\N".into())),
            (ColumnType::Text, "N", Value::Text("N".into())),
            (ColumnType::Int(64), "", Value::Null),
            (ColumnType::Int(64), "\\N", Value::Null),
            (ColumnType::Bytes, "", Value::Bytes([].as_slice().into())),
        ];
        for (kind, text, value) in cases {
            assert_eq!(parse_field(&column(kind), text), Ok(value), "{kind:?} {text:?}");
        }
    }
}
