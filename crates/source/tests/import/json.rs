//! JSON of every form into a table in memory: arrays, lines, MongoDB's, flattened, with keys of their own.

use std::io::{Cursor, Read};

use remora_source::files::Rows;

use super::*;

/// Imports a text into a table that is made from it.
fn load(
    name: &str,
    text: &str,
    shape: &Shape,
    key: &KeyChoice,
    skip_bad: u64,
) -> (MemorySink, Result<(Schema, ImportReport)>) {
    let sink = MemorySink::default();
    let reading = Reading { format: None, shape: shape.clone() };
    let mut input = [Input::from_stream(name, Cursor::new(text.to_owned())).unwrap()];
    let done = infer_schema(&mut input, "t", key, &reading).and_then(|inferred| {
        let schema = Arc::new(inferred.schema);
        let options = ImportOptions { reading: reading.clone(), skip_bad, ..small(2, 2) };
        let report =
            Importer::new(&sink, Arc::clone(&schema), options).run(&mut input, &mut |_| {})?;
        Ok((Schema::clone(&schema), report))
    });
    (sink, done)
}

fn rows_of(sink: &MemorySink) -> Vec<Row> {
    sink.rows.borrow().values().cloned().collect()
}

fn columns(schema: &Schema) -> Vec<(&str, ColumnType)> {
    schema.columns.iter().map(|column| (column.name.as_str(), column.kind)).collect()
}

fn text(value: &str) -> Value {
    Value::Text(value.into())
}

const PLAIN: Shape = Shape { rows: Rows::Members, key: Vec::new() };

#[test]
fn one_array_lines_and_pretty_documents_are_the_same_rows() {
    let documents = r#"{"id":1,"a":{"b":[1]},"c":"x"} {"id":2,"a":{"b":[2]},"c":"y"} {"id":3,"a":{"b":[3]},"c":"z"}"#;
    let array = format!("[{}]", documents.replace("} {\"id", "},\n{\"id"));
    let lines = documents.replace("} {\"id", "}\n{\"id");
    let pretty = lines.replace(",\"", ",\n  \"");
    let mut found = Vec::new();
    for (name, text) in
        [("a.json", &array), ("a.jsonl", &lines), ("-", &lines), ("-", &pretty), ("-", &array)]
    {
        let (sink, done) = load(name, text, &PLAIN, &KeyChoice::Auto, 0);
        let (schema, report) = done.unwrap();
        assert_eq!(report.rows, 3, "{name}");
        assert_eq!(columns(&schema)[1], ("a", ColumnType::Json));
        found.push(rows_of(&sink));
    }
    found.windows(2).for_each(|pair| assert_eq!(pair[0], pair[1]));
    assert_eq!(
        found[0][1],
        [Value::Int(2), Value::Json("{\"b\":[2]}".into()), super::json::text("y")]
    );
}

#[test]
fn nested_objects_are_columns_where_asked_for() {
    let documents = concat!(
        r#"[{"id":1,"a":{"b":1,"c":{"d":"x"}},"l":[1,{"m":2}],"e":{}},"#,
        r#"{"id":2,"a":{"b":2.5,"c":{"d":"y","n":"2024-01-02"}}}]"#
    );
    let shape = Shape { rows: Rows::FlatMembers, key: Vec::new() };
    let key = KeyChoice::Columns(vec!["a.c.d".into()]);
    let (sink, done) = load("f", documents, &shape, &key, 0);
    let (schema, _) = done.unwrap();
    let expected = [
        ("id", ColumnType::Int(64)),
        ("a.b", ColumnType::Double),
        ("a.c.d", ColumnType::Text),
        ("l", ColumnType::Json),
        ("e", ColumnType::Json),
        ("a.c.n", ColumnType::Date),
    ];
    assert_eq!(columns(&schema), expected);
    assert_eq!(schema.primary_key, [2]);
    let rows = rows_of(&sink);
    let date = Value::Date(Date { year: 2024, month: 1, day: 2 });
    assert_eq!(
        rows[1],
        [Value::Int(2), Value::Float(2.5), text("y"), Value::Null, Value::Null, date]
    );
    assert_eq!(rows[0][3], Value::Json(r#"[1,{"m":2}]"#.into()));
}

#[test]
fn a_path_into_a_document_is_a_key() {
    let documents = "{\"a\":{\"b\":\"k1\"},\"v\":1}\n{\"a\":{\"b\":\"k2\"},\"v\":2}\n{\"a\":{\"b\":\"k1\"},\"v\":3}\n";
    let shape = Shape { rows: Rows::Members, key: vec!["a.b".into()] };
    let key = KeyChoice::Columns(vec!["a.b".into()]);
    let (sink, done) = load("f.jsonl", documents, &shape, &key, 0);
    let (schema, report) = done.unwrap();
    assert_eq!(columns(&schema)[2], ("a.b", ColumnType::Text));
    assert_eq!((schema.primary_key, report.rows), (vec![2], 3));
    let values: Vec<_> =
        rows_of(&sink).iter().map(|row| (row[1].clone(), row[2].clone())).collect();
    assert!(values.contains(&(Value::Int(3), text("k1"))), "{values:?}");
    // Without a key rows are numbered.
    let (sink, done) = load("f.jsonl", documents, &PLAIN, &KeyChoice::Auto, 0);
    assert_eq!(done.unwrap().0.columns[0].name, "_row");
    assert_eq!(sink.rows.borrow().len(), 3);
}

#[test]
fn exports_of_mongo_are_values() {
    let documents = concat!(
        r#"{"_id":{"$oid":"5d505646cf6d4fe581014ab2"},"at":{"$date":"2019-08-11T17:54:14.692Z"},"#,
        r#""n":{"$numberLong":"9007199254740993"},"price":{"$numberDecimal":"12345678901234567.891"},"#,
        r#""tags":["a",{"$oid":"5d505646cf6d4fe581014ab3"}],"b":{"$binary":{"base64":"AQI=","subType":"00"}}}"#,
        "\n",
        r#"{"_id":{"$oid":"5d505646cf6d4fe581014ab4"},"at":{"$date":{"$numberLong":"-1"}},"n":7,"#,
        r#""price":{"$numberDecimal":"0.1"}}"#,
        "\n",
    );
    for documents in
        [documents.to_owned(), format!("[{}]", documents.trim_end().replace('\n', ","))]
    {
        let (sink, done) = load("c.json", &documents, &PLAIN, &KeyChoice::Auto, 0);
        let (schema, _) = done.unwrap();
        let expected = [
            ("_id", ColumnType::Text),
            ("at", ColumnType::Timestamp),
            ("n", ColumnType::Int(64)),
            ("price", ColumnType::Decimal(20, 3)),
            ("tags", ColumnType::Json),
            ("b", ColumnType::Text),
        ];
        assert_eq!(columns(&schema), expected);
        assert_eq!(schema.primary_key, [0]);
        let row = &rows_of(&sink)[0];
        assert_eq!(row[1], Value::Timestamp(1_565_546_054_692_000));
        assert_eq!(row[2], Value::Int(9_007_199_254_740_993));
        assert_eq!(row[3], Value::Decimal(Decimal::parse("12345678901234567.891", 20, 3).unwrap()));
        assert_eq!(row[4], Value::Json(r#"["a","5d505646cf6d4fe581014ab3"]"#.into()));
        assert_eq!(row[5], text("0102"));
    }
}

/// Seven documents, of which the fourth and the sixth are wrong within.
const SEVEN: &str = "[{\"id\":1},\n{\"id\":2},\n{\"id\":3},\n{\"id\":4,\"id\":5},\n{\"id\":5},\n{\"id\":\"\\ud800\"},\n{\"id\":7}]";

#[test]
fn bad_documents_up_to_the_limit_are_skipped() {
    for (skip_bad, rows, line) in [(0, 2, 4), (1, 4, 6)] {
        let (sink, done) = load("a.json", SEVEN, &PLAIN, &KeyChoice::Auto, skip_bad);
        let Err(Error::Record(problem)) = done else { panic!("{skip_bad}") };
        assert_eq!((problem.line, problem.file.as_str()), (line, "a.json"), "{problem}");
        // Batches of two: nothing of the one that stopped it.
        assert_eq!(sink.rows.borrow().len(), if skip_bad == 0 { 2 } else { rows - 1 });
    }
    for skip_bad in [2, u64::MAX] {
        let (sink, done) = load("a.json", SEVEN, &PLAIN, &KeyChoice::Auto, skip_bad);
        let (_, report) = done.unwrap();
        assert_eq!((report.rows, report.skipped, sink.rows.borrow().len()), (5, 2, 5));
        let shown: Vec<_> =
            report.problems.iter().map(|it| (it.line, it.message.as_str())).collect();
        assert!(shown[0].0 == 4 && shown[0].1.contains("\"id\" comes twice"), "{shown:?}");
        assert!(shown[1].0 == 6 && shown[1].1.contains(", in id"), "{shown:?}");
    }
}

#[test]
fn invalid_json_structure_stops_even_if_errors_are_skipped() {
    for (text, message) in [
        (
            "[{\"id\":1} {\"id\":2}]",
            "a.json:1: not JSON at byte 10 of the file: between two documents",
        ),
        ("[{\"id\":1},\n{\"id\":2", "ends within the document that begins on line 2"),
        (
            "[{\"id\":1},\n{\"id\":2}\n",
            "a.json:3: not JSON at byte 20 of the file: the file ends before the ']'",
        ),
    ] {
        let (sink, done) = load("a.json", text, &PLAIN, &KeyChoice::Auto, u64::MAX);
        let error = done.map(drop).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
        assert!(sink.rows.borrow().is_empty());
    }
}

#[test]
fn file_with_only_a_bad_document_is_reported_with_its_position() {
    for (text, message) in [
        ("{\"a\":1e999}", "f.jsonl:1: not JSON: number out of range at byte 10, in a"),
        ("{\"a\":{\"b\":1,\"b\":2}}", "f.jsonl:1: the name \"b\" comes twice"),
        ("{\"a\":NaN}", "f.jsonl:1: not JSON: expected value at byte 6"),
        ("[1,2]", "f.jsonl:1: not a JSON object: 1"),
    ] {
        let (sink, done) = load("f.jsonl", text, &PLAIN, &KeyChoice::Auto, 0);
        let error = done.map(drop).unwrap_err().to_string();
        assert!(error.starts_with(message), "{text}: {error}");
        assert!(sink.rows.borrow().is_empty());
    }
}

#[test]
fn column_count_is_limited() {
    let wide = |from: usize| {
        let members: Vec<_> = (from..from + 1000).map(|at| format!("\"m{at}\":1")).collect();
        format!("{{{}}}\n", members.join(","))
    };
    let text: String = (0..5).map(|at| wide(at * 1000)).collect();
    let error =
        load("f.jsonl", &text, &PLAIN, &KeyChoice::Auto, 0).1.map(drop).unwrap_err().to_string();
    assert!(error.contains("more than 4096 different members"), "{error}");
}

#[test]
fn csv_has_no_documents() {
    let shape = Shape { rows: Rows::FlatMembers, key: Vec::new() };
    let error = load("f.csv", "id,a\n1,2\n", &shape, &KeyChoice::Auto, 0).1.map(drop).unwrap_err();
    assert!(error.to_string().contains("only documents are flattened"), "{error}");
}

/// An array of so many documents that is made while it is read.
struct Endless {
    left: usize,
    pending: Cursor<Vec<u8>>,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.pending.position() == self.pending.get_ref().len() as u64 && self.left > 0 {
            self.left -= 1;
            let text = format!("{{\"id\":{},\"text\":\"t\"}},", self.left);
            let text = if self.left == 0 { text.replace("},", "}]") } else { text };
            self.pending = Cursor::new(text.into_bytes());
        }
        self.pending.read(buffer)
    }
}

/// Counts rows and keeps none.
#[derive(Default)]
struct CountingSink {
    rows: Cell<usize>,
    largest_batch: Cell<usize>,
}

impl RowSink for CountingSink {
    fn apply(&self, batch: ChangeBatch) -> Result<()> {
        let rows = batch.tables.iter().map(|table| table.changes.len()).sum();
        self.rows.set(self.rows.get() + rows);
        self.largest_batch.set(self.largest_batch.get().max(rows));
        Ok(())
    }

    fn source_position(&self, _: &str) -> Result<Option<String>> {
        Ok(None)
    }

    fn is_empty(&self, _: &str) -> Result<bool> {
        Ok(true)
    }

    fn largest_row_number(&self, _: &str) -> Result<u64> {
        Ok(0)
    }
}

#[test]
fn an_array_of_any_length_is_read_in_batches() {
    let stream = Endless { left: 50_000, pending: Cursor::new(b"[".to_vec()) };
    let mut input = [Input::from_stream("-", stream).unwrap()];
    let sink = CountingSink::default();
    let options = ImportOptions { reading: reading(Format::Json), ..small(1_000, 2) };
    Importer::new(&sink, id_and_text(), options).run(&mut input, &mut |_| {}).unwrap();
    assert_eq!((sink.rows.get(), sink.largest_batch.get()), (50_000, 1_000));
}
