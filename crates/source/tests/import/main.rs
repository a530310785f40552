//! Imports into a table in memory, compared with what reading the lines one by one gives.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod json;
mod sphinx_conf;
mod tiedot;

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    io::{Cursor, Write},
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use proptest::prelude::*;
use remora_engine::{
    Change, ChangeBatch, ColumnDef, ColumnType, Date, DateTime, Decimal, RequestPart, Row, Schema,
    Value,
};
use remora_source::{
    Error, Result,
    files::{
        Compression, FilePosition, Format, ImportOptions, ImportReport, Importer, Input, KeyChoice,
        Reading, RecordBatch, RowParser, RowSink, RowWriter, Shape, infer_schema, open_reader,
    },
};

/// A table in memory.
#[derive(Default)]
struct MemorySink {
    rows: RefCell<BTreeMap<String, Row>>,
    positions: RefCell<BTreeMap<String, String>>,
    applied: Cell<usize>,
    /// Batches that are taken before the sink fails.
    batches_left: Cell<Option<usize>>,
    /// The key whose row makes a batch wrong.
    refused_key: Option<Value>,
}

impl RowSink for MemorySink {
    fn apply(&self, batch: ChangeBatch) -> Result<()> {
        if let Some(left) = self.batches_left.get() {
            let left = left.checked_sub(1).ok_or_else(|| Error::Sink("full".into()))?;
            self.batches_left.set(Some(left));
        }
        let changes = || batch.tables.iter().flat_map(|table| &table.changes);
        let put = |change: &Change| match change {
            Change::Put(row) | Change::Insert(row) => row.clone(),
            Change::Delete(_) => panic!("an import deletes nothing"),
        };
        if changes().map(put).any(|row| Some(&row[0]) == self.refused_key.as_ref()) {
            return Err(remora_engine::Error::request(RequestPart::Row, "refused").into());
        }
        for row in changes().map(put) {
            self.applied.set(self.applied.get() + 1);
            self.rows.borrow_mut().insert(format!("{:?}", row[0]), row);
        }
        self.positions.borrow_mut().extend(batch.positions);
        Ok(())
    }

    fn source_position(&self, source: &str) -> Result<Option<String>> {
        Ok(self.positions.borrow().get(source).cloned())
    }

    fn is_empty(&self, _table: &str) -> Result<bool> {
        Ok(self.rows.borrow().is_empty())
    }

    fn largest_row_number(&self, _table: &str) -> Result<u64> {
        let rows = self.rows.borrow();
        Ok(rows
            .values()
            .map(|row| if let Value::Uint(n) = row[0] { n } else { 0 })
            .max()
            .unwrap_or(0))
    }
}

fn schema(columns: &[(&str, ColumnType)]) -> Arc<Schema> {
    let columns = columns.iter().zip(0..).map(|(&(name, kind), id)| ColumnDef {
        id,
        name: name.into(),
        kind,
        nullable: id > 0,
        indexed: true,
        declared: None,
    });
    Arc::new(Schema::over("t", columns.collect(), vec![0]))
}

fn id_and_text() -> Arc<Schema> {
    schema(&[("id", ColumnType::Int(64)), ("text", ColumnType::Text)])
}

fn small(batch_rows: usize, threads: usize) -> ImportOptions {
    ImportOptions { batch_rows, threads, ..ImportOptions::default() }
}

fn reading(format: Format) -> Reading {
    Reading { format: Some(format), shape: Shape::default() }
}

fn skipping() -> ImportOptions {
    ImportOptions { skip_bad: u64::MAX, ..small(4, 2) }
}

fn import(
    sink: &MemorySink,
    schema: &Arc<Schema>,
    options: ImportOptions,
    paths: &[&Path],
) -> Result<ImportReport> {
    let mut inputs: Vec<_> =
        paths.iter().map(|path| Input::new(path.to_str().unwrap()).unwrap()).collect();
    Importer::new(sink, Arc::clone(schema), options).run(&mut inputs, &mut |_| {})
}

fn write(path: &Path, text: &str) {
    std::fs::File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
}

fn lines(numbers: impl IntoIterator<Item = usize>) -> String {
    numbers.into_iter().map(|n| format!("{{\"id\":{n},\"text\":\"t{n}\"}}\n")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn last_line_of_a_key_wins_for_any_batch_size_and_thread_count(
        ids in prop::collection::vec(0_i64..20, 0..200),
        batch_rows in 1_usize..20,
        threads in 1_usize..5,
    ) {
        let text: String = (0..).zip(&ids)
            .map(|(line, id)| format!("{{\"id\":{id},\"text\":\"line {line}\"}}\n")).collect();
        let mut expected = BTreeMap::new();
        for (line, &id) in ids.iter().enumerate() {
            let row = vec![Value::Int(id), Value::Text(format!("line {line}").into())];
            expected.insert(format!("{:?}", row[0]), row);
        }
        let sink = MemorySink::default();
        let mut input = [Input::from_stream("f.jsonl", Cursor::new(text)).unwrap()];
        let importer = Importer::new(&sink, id_and_text(), small(batch_rows, threads));
        let report = importer.run(&mut input, &mut |_| {}).unwrap();
        prop_assert_eq!(report.rows, ids.len() as u64);
        prop_assert_eq!(&*sink.rows.borrow(), &expected);
    }

    #[test]
    fn rerun_continues_where_the_last_import_failed(
        rows in 0_usize..60,
        batch_rows in 1_usize..9,
        stops in prop::collection::vec(0_usize..8, 0..4),
        packed in any::<bool>(),
        format in prop::sample::select(vec![Format::JsonLines, Format::Csv, Format::Json]),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows");
        let text = match format {
            Format::Csv => (0..rows).fold("id,text\n".to_owned(), |text, n| text + &format!("{n},\"t\n{n}\"\r\n")),
            Format::Json => format!("[{}]", lines(0..rows).trim_end().replace('\n', " ,\n")),
            _ => lines(0..rows),
        };
        let bytes = if packed { zstd::encode_all(text.as_bytes(), 1).unwrap() } else { text.into() };
        std::fs::write(&path, bytes).unwrap();
        let sink = MemorySink::default();
        let options = || ImportOptions {
            reading: reading(format),
            ..small(batch_rows, 2)
        };
        for stop in stops {
            sink.batches_left.set(Some(stop));
            let _ = import(&sink, &id_and_text(), options(), &[&path]);
        }
        sink.batches_left.set(None);
        import(&sink, &id_and_text(), options(), &[&path]).unwrap();
        prop_assert_eq!(sink.rows.borrow().len(), rows);
        prop_assert_eq!(sink.applied.get(), rows);
        let again = import(&sink, &id_and_text(), options(), &[&path]).unwrap();
        prop_assert_eq!((again.rows, again.files_done_before), (0, usize::from(rows > 0)));
        // An emptied table gets all rows again.
        sink.rows.borrow_mut().clear();
        let again = import(&sink, &id_and_text(), options(), &[&path]).unwrap();
        prop_assert_eq!((again.rows, again.files_resumed), (rows as u64, 0));
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        mut bytes in prop::collection::vec(any::<u8>(), 0..300),
        json in "([\\[\\]{}\",:a0-9\\\\\n\r\t -]|\"id\":|\\{\"index\":\\{\"_id\":\"1\"\\}\\}\n){0,60}",
        use_json in any::<bool>(),
    ) {
        if use_json {
            bytes = json.into_bytes();
        }
        let schema = id_and_text();
        let formats = [
            Format::JsonLines,
            Format::Json,
            Format::Mongo,
            Format::Csv,
            Format::Tsv,
            Format::Cirrus,
        ];
        for format in formats {
            let stream = Box::new(Cursor::new(bytes.clone()));
            let opened =
                open_reader("f", stream, format, &Shape::default(), &FilePosition::default());
            let Ok(mut reader) = opened else { continue };
            let mut parser = RowParser::new(&schema, reader.layout());
            let mut batch = RecordBatch::default();
            while reader.read_into(&mut batch).is_ok_and(|more| more) {}
            for record in batch.iter() {
                prop_assert!(record.span().offset < record.span().end_offset);
                let _ = parser.parse(&record, 1);
            }
        }
        if let Ok(mut input) = Input::from_stream("f", Cursor::new(bytes)) {
            let reading = Reading::default();
            let _ = infer_schema(std::slice::from_mut(&mut input), "t", &KeyChoice::Auto, &reading);
        }
    }
}

#[test]
fn malformed_line_stops_after_the_earlier_batches() {
    for (batch_rows, stored) in [(4, 8), (100, 0)] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.jsonl");
        write(&path, &(lines(0..10) + "{\"id\":10,\n" + &lines(11..13)));
        let sink = MemorySink::default();
        let stopped = import(&sink, &id_and_text(), small(batch_rows, 2), &[&path]);
        let error = stopped.unwrap_err().to_string();
        assert!(error.contains("a.jsonl:11: not JSON: EOF while parsing"), "{error}");
        assert_eq!(sink.rows.borrow().len(), stored);
        let again = import(&sink, &id_and_text(), skipping(), &[&path]).unwrap();
        let resumed = usize::from(stored > 0);
        assert_eq!((again.rows, again.skipped), (12 - stored as u64, 1));
        assert_eq!((again.files_resumed, again.problems[0].line), (resumed, 11));
    }
}

#[test]
fn problems_are_counted_and_the_first_ones_shown() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.csv");
    write(
        &path,
        &(1..=9).fold("id,text\n".to_owned(), |text, n| text + &format!("{n}x,a\n{n},a\n")),
    );
    let sink = MemorySink::default();
    let options = ImportOptions { shown_problems: 3, ..skipping() };
    let report = import(&sink, &id_and_text(), options, &[&path]).unwrap();
    assert_eq!((report.rows, report.skipped), (9, 9));
    let shown: Vec<_> =
        report.problems.iter().map(|problem| (problem.line, problem.offset)).collect();
    assert_eq!(shown, [(2, 8), (4, 17), (6, 26)]);
    assert_eq!(report.problems[0].message, "column \"id\": \"1x\" is not an integer of 64 bits");
}

#[test]
fn refused_row_is_found_and_skipped() {
    for bad in 0..11 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.jsonl");
        write(&path, &lines(0..11));
        let refused_key = Some(Value::Int(bad));
        let sink = MemorySink { refused_key, ..MemorySink::default() };
        let report = import(&sink, &id_and_text(), skipping(), &[&path]).unwrap();
        assert_eq!((report.rows, report.skipped), (10, 1));
        assert_eq!(report.problems[0].line, bad as u64 + 1);
        let again = import(&sink, &id_and_text(), skipping(), &[&path]).unwrap();
        assert_eq!(again.files_done_before, 1);
        let stopped = MemorySink { refused_key: Some(Value::Int(bad)), ..MemorySink::default() };
        let error = import(&stopped, &id_and_text(), small(4, 2), &[&path]).unwrap_err();
        let batch = bad / 4 * 4;
        let last = (batch + 4).min(11);
        let Error::Record(problem) = error else { panic!("{error}") };
        assert_eq!(problem.line, batch as u64 + 1);
        assert!(problem.message.contains(&format!("up to line {last}: refused")), "{problem}");
        assert_eq!(stopped.rows.borrow().len(), batch as usize);
    }
}

#[test]
fn a_cancelled_import_keeps_what_it_applied() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.jsonl");
    write(&path, &lines(0..100));
    let (sink, options) = (MemorySink::default(), small(4, 2));
    let cancel = Arc::clone(&options.cancel);
    let mut inputs = [Input::new(path.to_str().unwrap()).unwrap()];
    let mut seen = Vec::new();
    let stopped = Importer::new(&sink, id_and_text(), options).run(&mut inputs, &mut |progress| {
        seen.push((progress.rows, progress.total_bytes));
        cancel.store(true, Ordering::Relaxed);
    });
    assert!(matches!(stopped, Err(Error::Cancelled)));
    assert_eq!(seen, [(4, Some(std::fs::metadata(&path).unwrap().len()))]);
    import(&sink, &id_and_text(), small(4, 2), &[&path]).unwrap();
    assert_eq!(sink.applied.get(), 100);
}

#[test]
fn rows_without_a_key_are_numbered_over_all_files_and_runs() {
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (directory.path().join("a.jsonl"), directory.path().join("b.jsonl"));
    write(&first, "{\"text\":\"a\"}\n\n{\"text\":\"b\"}\n{\"text\":\"c\"}\n");
    write(&second, "{\"text\":\"d\"}\n");
    let schema = schema(&[("_row", ColumnType::Uint(64)), ("text", ColumnType::Text)]);
    let sink = MemorySink::default();
    sink.batches_left.set(Some(1));
    import(&sink, &schema, small(2, 1), &[&first, &second]).unwrap_err();
    sink.batches_left.set(None);
    import(&sink, &schema, small(2, 1), &[&first, &second]).unwrap();
    let numbers: Vec<_> = sink.rows.borrow().values().map(|row| row[0].clone()).collect();
    assert_eq!(numbers, [1, 3, 4, 5].map(Value::Uint));
    assert_eq!(sink.applied.get(), 4);
}

#[test]
fn unknown_fields_are_counted() {
    let sink = MemorySink::default();
    let text = "{\"id\":1,\"x\":[1]}\n{\"id\":2,\"x\":2,\"y\":3}\n";
    let mut input = [Input::from_stream("-", Cursor::new(text)).unwrap()];
    let report =
        Importer::new(&sink, id_and_text(), small(1, 2)).run(&mut input, &mut |_| {}).unwrap();
    assert_eq!(report.ignored, BTreeMap::from([("x".into(), 2), ("y".into(), 1)]));
    assert!(sink.positions.borrow().is_empty());
}

fn text_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        "\\PC{0,12}".prop_map(|text| Value::Text(text.into())),
        "[\\\\N\",\t\r\n\u{feff} a]{0,6}".prop_map(|text| Value::Text(text.into())),
    ]
}

fn value(kind: ColumnType) -> BoxedStrategy<Value> {
    let date = (0_u16..=9999, 0_u8..=12, 0_u8..=31);
    let date = date.prop_map(|(year, month, day)| Date { year, month, day });
    match kind {
        ColumnType::Int(_) => any::<i64>().prop_map(Value::Int).boxed(),
        ColumnType::Uint(_) => any::<u64>().prop_map(Value::Uint).boxed(),
        ColumnType::Float => any::<f32>()
            .prop_filter("never held", |number| number.is_finite())
            .prop_map(|number| Value::Float(number.to_string().parse().unwrap()))
            .boxed(),
        ColumnType::Double => any::<f64>()
            .prop_filter("never held", |number| number.is_finite())
            .prop_map(Value::Float)
            .boxed(),
        ColumnType::Decimal(_, scale) => (any::<i128>(), 0_u32..38)
            .prop_map(move |(scaled, cut)| {
                Value::Decimal(Decimal::from_scaled(scaled / 10_i128.pow(cut), scale))
            })
            .boxed(),
        ColumnType::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        ColumnType::Text => text_value().boxed(),
        ColumnType::Bytes => prop::collection::vec(any::<u8>(), 0..9)
            .prop_map(|bytes| Value::Bytes(bytes.into()))
            .boxed(),
        ColumnType::Date => date.prop_map(Value::Date).boxed(),
        ColumnType::Time => {
            (-3_020_399_999_999_i64..=3_020_399_999_999).prop_map(Value::Time).boxed()
        }
        ColumnType::DateTime => (date, 0_u64..86_400_000_000)
            .prop_map(|(date, micros)| Value::DateTime(DateTime { date, micros }))
            .boxed(),
        ColumnType::Timestamp => (-62_167_219_200_000_000_i64..=253_402_300_799_999_999)
            .prop_map(Value::Timestamp)
            .boxed(),
        ColumnType::Json => {
            prop::sample::select(vec!["{\"a\":[1, \"\\n\"]}", "[]", "\"x,y\"", "1.50", "true"])
                .prop_map(|json| Value::Json(json.into()))
                .boxed()
        }
    }
}

const COLUMNS: [(&str, ColumnType); 14] = [
    ("text", ColumnType::Text),
    ("int", ColumnType::Int(64)),
    ("uint", ColumnType::Uint(64)),
    ("float", ColumnType::Float),
    ("double", ColumnType::Double),
    ("decimal", ColumnType::Decimal(50, 11)),
    ("bool", ColumnType::Bool),
    ("bytes", ColumnType::Bytes),
    ("date", ColumnType::Date),
    ("time", ColumnType::Time),
    ("moment", ColumnType::DateTime),
    ("stamp", ColumnType::Timestamp),
    ("json", ColumnType::Json),
    ("tail", ColumnType::Text),
];

fn row() -> impl Strategy<Value = Row> {
    let cells: Vec<_> = COLUMNS
        .iter()
        .map(|&(_, kind)| prop_oneof![1 => Just(Value::Null), 4 => value(kind)].boxed())
        .collect();
    (text_value(), cells).prop_map(|(first, mut row)| {
        row[0] = first;
        row
    })
}

/// With JSON as it is written without blanks.
fn compact(row: Row) -> Row {
    let compact = |value| match value {
        Value::Json(text) => {
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            // The digits stay.
            let text = if value.is_number() { text.to_string() } else { value.to_string() };
            Value::Json(text.into())
        }
        other => other,
    };
    row.into_iter().map(compact).collect()
}

proptest! {
    #[test]
    fn exported_rows_import_unchanged(
        rows in prop::collection::vec(row(), 0..6),
        pretty in any::<bool>(),
    ) {
        let schema = schema(&COLUMNS);
        for format in [Format::JsonLines, Format::Json, Format::Mongo, Format::Csv, Format::Tsv] {
            let is_pretty = pretty && matches!(format, Format::Json | Format::Mongo);
            // The blanks of JSON columns stay where nothing writes them anew.
            let comparable = |rows: Vec<Row>| match is_pretty || format == Format::Mongo {
                true => rows.into_iter().map(compact).collect(),
                false => rows,
            };
            for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
                let mut writer =
                    RowWriter::new(Arc::clone(&schema), format, compression, Vec::new()).unwrap();
                writer = writer.pretty(is_pretty).unwrap();
                rows.iter().for_each(|row| writer.write(row).unwrap());
                let bytes = writer.finish().unwrap();
                let mut input = Input::from_stream("f", Cursor::new(bytes)).unwrap();
                let stream = input.open().unwrap();
                let mut reader =
                    open_reader("f", stream, format, &Shape::default(), &FilePosition::default())
                        .unwrap();
                let mut parser = RowParser::new(&schema, reader.layout());
                let mut batch = RecordBatch::default();
                while reader.read_into(&mut batch).unwrap() {}
                let read: Result<Vec<_>, _> =
                    batch.iter().map(|record| parser.parse(&record, 0)).collect();
                let read = read.map(comparable);
                prop_assert_eq!(read, Ok(comparable(rows.clone())), "{:?}", format);
            }
        }
    }
}
