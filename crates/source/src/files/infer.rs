//! Infers a schema from the first records of files: types, the key, and the searched texts.
//!
//! Every longer text column goes into the table's one text index, in which a match lies within one
//! column. Everything else is a typed column that can be filtered, sorted and counted by.

use remora_engine::{ColumnDef, ColumnType, Normalization, Schema, TextDef};

use super::{
    format::Reading,
    input::Input,
    row::ROW_NUMBER_COLUMN,
    sample::{ColumnSample, Sample},
};
use crate::{Error, Result};

const SAMPLE_BYTES: usize = 16 << 20;
const SAMPLE_RECORDS: usize = 10_000;
/// The most files that are sampled.
const SAMPLE_FILES: usize = 64;

/// Values are held in segments if 99 of 100 have at most this many bytes.
const INDEXED_BYTES: usize = 200;

/// Texts with these names are searched even if they are short.
const SEARCHED_NAMES: [&str; 8] =
    ["title", "name", "text", "body", "content", "description", "summary", "abstract"];

/// How the primary key is found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeyChoice {
    /// A column named `id`, `_id`, `pk`, `key`, `<table>_id` or `_row` with distinct values, else `Generated`.
    #[default]
    Auto,
    /// These columns.
    Columns(Vec<String>),
    /// A column `_row` that numbers the records.
    Generated,
}

/// A schema and what it was made from.
#[derive(Clone, Debug)]
pub struct Inference {
    /// The schema.
    pub schema: Schema,
    /// Records looked at.
    pub records: usize,
    /// Malformed records among them, which were skipped.
    pub malformed: usize,
}

/// Samples the first 10,000 records or 16 MiB, divided among the inputs, and chooses a schema. Streams can still be
/// read from their start.
///
/// # Errors
/// An input cannot be read, has no valid record, a key column does not exist, or there are more columns than a table
/// may have.
pub fn infer_schema(
    inputs: &mut [Input],
    table: &str,
    key: &KeyChoice,
    reading: &Reading,
) -> Result<Inference> {
    let files = inputs.len().clamp(1, SAMPLE_FILES);
    let mut sample = Sample::default();
    for input in inputs.iter_mut().take(SAMPLE_FILES) {
        sample.read(input, reading, SAMPLE_BYTES / files, SAMPLE_RECORDS.div_ceil(files))?;
    }
    if sample.records == 0 {
        if let Some(problem) = sample.problem {
            return Err(Error::Record(problem));
        }
        let names: Vec<_> = inputs.iter().map(Input::name).take(3).collect();
        let why = match sample.is_cut {
            true => format!(" that ends within the first {} MiB", (SAMPLE_BYTES / files) >> 20),
            false if files == 1 => ", which is empty or has a header alone".to_owned(),
            false => ", which are empty or have a header alone".to_owned(),
        };
        return Err(Error::Schema(format!(
            "no record in {}{why}: give a file that has one, or a schema with --schema",
            names.join(", "),
        )));
    }
    let key = match key {
        KeyChoice::Auto => find_key(&sample, table)
            .map_or(KeyChoice::Generated, |name| KeyChoice::Columns(vec![name])),
        chosen => chosen.clone(),
    };
    let schema = schema_of(&sample, table, &key)?;
    Ok(Inference { schema, records: sample.records, malformed: sample.malformed })
}

fn schema_of(sample: &Sample, table: &str, key: &KeyChoice) -> Result<Schema> {
    let mut columns = Vec::new();
    if *key == KeyChoice::Generated {
        columns.push(column(ROW_NUMBER_COLUMN, ColumnType::Uint(64), true));
    }
    columns.extend(sample.columns.iter().map(|seen| {
        let kind = seen.column_type();
        column(&seen.name, kind, is_indexed(seen, kind))
    }));
    refuse_equal_names(&columns)?;
    let primary_key = key_columns(key, &columns)?;
    for (id, column) in columns.iter_mut().enumerate() {
        column.id = u32::try_from(id).unwrap_or(u32::MAX);
        column.nullable = !primary_key.contains(&id);
        column.indexed |= primary_key.contains(&id);
    }
    let first = usize::from(*key == KeyChoice::Generated);
    let texts = text_indexes(sample, &columns, &primary_key, first);
    let name = table.to_owned();
    Ok(Schema {
        name,
        columns,
        primary_key,
        texts,
        required: None,
        indexes: Vec::new(),
        synonyms: Vec::new(),
        words: None,
        paths: Vec::new(),
        declared: None,
    })
}

fn column(name: &str, kind: ColumnType, indexed: bool) -> ColumnDef {
    ColumnDef { id: 0, name: name.to_owned(), kind, nullable: true, indexed, declared: None }
}

fn is_indexed(seen: &ColumnSample, kind: ColumnType) -> bool {
    match kind {
        ColumnType::Text | ColumnType::Json => {
            seen.length_at(99) <= INDEXED_BYTES && !seen.stored_only
        }
        _ => true,
    }
}

fn refuse_equal_names(columns: &[ColumnDef]) -> Result<()> {
    let mut names: Vec<_> = columns.iter().map(|column| column.name.to_lowercase()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => Err(Error::Schema(format!(
            "two fields are named \"{}\" but for case: rename one, or choose columns with --schema",
            pair[0]
        ))),
    }
}

/// The field that looks like an identifier, if there is one.
fn find_key(sample: &Sample, table: &str) -> Option<String> {
    let of_table = format!("{}_id", table.rsplit('.').next().unwrap_or(table));
    ["id", "_id", "pk", "key", &of_table, ROW_NUMBER_COLUMN].iter().find_map(|name| {
        let mut columns = sample.columns.iter();
        let is_key = |seen: &&ColumnSample| {
            seen.name.eq_ignore_ascii_case(name) && seen.can_be_key(sample.records)
        };
        columns.find(is_key).map(|seen| seen.name.clone())
    })
}

fn key_columns(key: &KeyChoice, columns: &[ColumnDef]) -> Result<Vec<usize>> {
    let position = |name: &String| {
        columns.iter().position(|column| column.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
            let names: Vec<_> =
                columns.iter().map(|column| column.name.as_str()).take(20).collect();
            Error::Schema(format!(
                "no field \"{name}\" in the sample: it cannot be the primary key; there are {}",
                names.join(", ")
            ))
        })
    };
    match key {
        KeyChoice::Columns(names) => names.iter().map(position).collect(),
        KeyChoice::Auto | KeyChoice::Generated => Ok(vec![0]),
    }
}

/// One index over all longer texts; over all texts if none is long.
fn text_indexes(
    sample: &Sample,
    columns: &[ColumnDef],
    primary_key: &[usize],
    first: usize,
) -> Vec<TextDef> {
    let texts: Vec<_> = sample
        .columns
        .iter()
        .enumerate()
        .map(|(at, seen)| (at + first, seen))
        .filter(|(at, seen)| {
            let is_text = columns.get(*at).is_some_and(|column| column.kind == ColumnType::Text);
            is_text && !primary_key.contains(at) && !seen.stored_only
        })
        .collect();
    let mut chosen: Vec<_> =
        texts.iter().filter(|(_, seen)| is_searched(seen)).map(|(at, _)| *at).collect();
    if chosen.is_empty() {
        chosen = texts.iter().map(|(at, _)| *at).collect();
    }
    if chosen.is_empty() {
        return Vec::new();
    }
    let normalization = Normalization::default();
    vec![TextDef { id: 0, columns: chosen, delimiter: None, normalization }]
}

fn is_searched(seen: &ColumnSample) -> bool {
    let named = SEARCHED_NAMES.iter().any(|name| seen.name.eq_ignore_ascii_case(name));
    named || seen.chars_at(95) > 40 || seen.mean_chars() > 24
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn infer(text: &str, key: &KeyChoice) -> Result<Schema> {
        let mut input = Input::from_stream("f", Cursor::new(text.to_owned())).unwrap();
        infer_schema(std::slice::from_mut(&mut input), "t", key, &Reading::default())
            .map(|found| found.schema)
    }

    fn kinds(schema: &Schema) -> Vec<(&str, ColumnType)> {
        schema.columns.iter().map(|column| (column.name.as_str(), column.kind)).collect()
    }

    #[test]
    fn types_of_json() {
        let text = concat!(
            r#"{"id":1,"big":18446744073709551615,"x":1,"b":true,"d":"2024-01-02","#,
            r#""dt":"2024-01-02 03:04:05","ts":"2024-01-02T03:04:05Z","tags":["a"],"mix":1,"n":null}"#,
            "\nnot json\n",
            r#"{"id":2,"big":1,"x":1.5,"dt":"2024-01-02","mix":"a","late":false,"wide":-1}"#,
            "\n",
            r#"{"id":3,"wide":18446744073709551615}"#,
        );
        let schema = infer(text, &KeyChoice::Auto).unwrap();
        let expected = [
            ("id", ColumnType::Int(64)),
            ("big", ColumnType::Uint(64)),
            ("x", ColumnType::Double),
            ("b", ColumnType::Bool),
            ("d", ColumnType::Date),
            ("dt", ColumnType::DateTime),
            ("ts", ColumnType::Timestamp),
            ("tags", ColumnType::Json),
            ("mix", ColumnType::Text),
            ("n", ColumnType::Text),
            ("late", ColumnType::Bool),
            ("wide", ColumnType::Decimal(20, 0)),
        ];
        assert_eq!(kinds(&schema), expected);
        assert!(!schema.columns[0].nullable && schema.columns[1].nullable);
    }

    #[test]
    fn a_day_that_its_month_lacks_makes_a_text() {
        let text = "id,day,at,unknown\n1,2024-02-30,2024-02-30 10:00:00,2024-02-00\n\
                    2,2024-02-28,2024-02-28 10:00:00,0000-00-00\n";
        let schema = infer(text, &KeyChoice::Auto).unwrap();
        let expected = [
            ("id", ColumnType::Int(64)),
            ("day", ColumnType::Text),
            ("at", ColumnType::Text),
            ("unknown", ColumnType::Date),
        ];
        assert_eq!(kinds(&schema), expected);
    }

    #[test]
    fn types_of_csv() {
        let text = "id,zip,price,long,on,day\n1,01234,1.5,1234567890.1234567,true,2024-01-02\n\
                    2,5,,12.3,\\N,2024-01-03\n";
        let schema = infer(text, &KeyChoice::Auto).unwrap();
        let expected = [
            ("id", ColumnType::Int(64)),
            ("zip", ColumnType::Text),
            ("price", ColumnType::Double),
            ("long", ColumnType::Decimal(17, 7)),
            ("on", ColumnType::Bool),
            ("day", ColumnType::Date),
        ];
        assert_eq!(kinds(&schema), expected);
    }

    #[test]
    fn longer_texts_are_searched_and_short_ones_are_columns() {
        let long = "word ".repeat(60);
        let text =
            format!("{{\"id\":\"a\",\"title\":\"T\",\"lang\":\"en\",\"note\":\"{long}\"}}\n");
        let schema = infer(&text, &KeyChoice::Auto).unwrap();
        assert_eq!(schema.texts.len(), 1);
        assert_eq!(schema.texts[0].columns, [1, 3]);
        assert_eq!(schema.texts[0].delimiter, None);
        let indexed: Vec<_> = schema.columns.iter().map(|column| column.indexed).collect();
        assert_eq!(indexed, [true, true, true, false]);
    }

    #[test]
    fn a_key_must_be_distinct_or_named() {
        let text = "{\"id\":1,\"a\":5}\n{\"id\":1,\"a\":6}\n";
        let numbered = infer(text, &KeyChoice::Auto).unwrap();
        assert_eq!((numbered.columns[0].name.as_str(), numbered.primary_key), ("_row", vec![0]));
        let again = infer("{\"_row\":7,\"a\":5}", &KeyChoice::Auto).unwrap();
        assert_eq!((again.columns.len(), again.primary_key), (2, vec![0]));
        let named = infer(text, &KeyChoice::Columns(vec!["a".into(), "id".into()])).unwrap();
        assert_eq!(named.primary_key, [1, 0]);
        let message = infer(text, &KeyChoice::Columns(vec!["b".into()])).unwrap_err().to_string();
        assert!(message.contains("no field \"b\"") && message.contains("id, a"), "{message}");
        let numbered = infer(text, &KeyChoice::Generated).unwrap();
        assert_eq!(numbered.columns[0].name, "_row");
        assert_eq!(numbered.primary_key, [0]);
        let of_table = infer("{\"T_ID\":1}", &KeyChoice::Auto).unwrap();
        assert_eq!(of_table.primary_key, [0]);
    }

    #[test]
    fn a_dump_has_its_known_columns() {
        let text = concat!(
            r#"{"index":{"_type":"_doc","_id":"12"}}"#,
            "\n",
            r#"{"title":"A","text":"b","opening_text":"b","category":["c"],"language":"en","#,
            r#""timestamp":"2024-01-02T03:04:05Z","incoming_links":3,"popularity_score":1.5e-5,"#,
            r#""outgoing_link":["x"],"namespace":0}"#,
            "\n",
        );
        let schema = infer(text, &KeyChoice::Auto).unwrap();
        let find = |name: &str| schema.columns.iter().position(|column| column.name == name);
        assert_eq!(schema.columns[0].kind, ColumnType::Int(64));
        assert_eq!(schema.texts[0].columns, [find("title").unwrap(), find("text").unwrap()]);
        assert!(!schema.columns[find("opening_text").unwrap()].indexed);
        assert_eq!(schema.columns[find("timestamp").unwrap()].kind, ColumnType::Timestamp);
        assert_eq!(schema.columns[find("category").unwrap()].kind, ColumnType::Json);
        assert_eq!(find("outgoing_link"), None);
    }

    #[test]
    fn empty_input_is_an_error() {
        let empty = "which is empty or has a header alone: give a file";
        for (text, part) in [("id,a\n", empty), ("[]", empty), ("\n\n", "no header")] {
            let message = infer(text, &KeyChoice::Auto).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
