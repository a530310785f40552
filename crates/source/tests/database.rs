//! Files into a database and back out of it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{io::Cursor, path::Path};

use remora_engine::{
    Change, ChangeBatch, Database, Durability, Filter, HIDDEN_PREFIX, Options, Row, SearchRequest,
    Selection, TableChanges, TextQuery, Value,
};
use remora_source::files::{
    Compression, DatabaseSink, ExportOptions, Format, ImportOptions, ImportReport, Importer, Input,
    KeyChoice, Reading, check_export, export_table, infer_schema,
};

const TEXT: &str = r#"
{"id":1,"title":"Remora","body":"A fish that travels with sharks.","year":1758,"tags":["fish"],"price":0.1}
{"id":9007199254740993,"title":"コバンザメ","body":"サメに吸い付いて泳ぐ。","year":null}
{"id":3,"title":"","body":"Line\nbreaks, \"quotes\" and \\N","year":-5,"price":1e300}
"#;

fn open(path: &Path) -> Database {
    let options = Options { durability: Durability::None, ..Options::default() };
    Database::open(path, options).unwrap()
}

fn import(database: &Database, table: &str, inputs: &mut [Input]) -> ImportReport {
    let schema = database.schema(table).unwrap();
    let options = ImportOptions { batch_rows: 2, skip_bad: u64::MAX, ..ImportOptions::default() };
    Importer::new(&DatabaseSink::new(database), schema, options).run(inputs, &mut |_| {}).unwrap()
}

fn rows(database: &Database, table: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    database
        .scan(table, &mut |row| {
            rows.push(row);
            Ok(())
        })
        .unwrap();
    rows
}

fn count(database: &Database, text: &str) -> u64 {
    let text = Some(TextQuery::Term(text.into()));
    let selection = Selection { table: "fish".into(), text, ..Selection::default() };
    database.count(&selection).unwrap().count
}

#[test]
fn exported_table_imports_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory.path().join("data"));
    let mut inputs = [Input::from_stream("fish.jsonl", Cursor::new(TEXT)).unwrap()];
    let schema =
        infer_schema(&mut inputs, "fish", &KeyChoice::Auto, &Reading::default()).unwrap().schema;
    database.create_table(schema.clone()).unwrap();
    assert_eq!(import(&database, "fish", &mut inputs).rows, 3);
    assert_eq!(
        (count(&database, "shark"), count(&database, "サメ"), count(&database, "x")),
        (1, 1, 0)
    );
    let expected = rows(&database, "fish");
    assert_eq!(expected.len(), 3);
    assert_eq!(expected[2][0], Value::Int(9_007_199_254_740_993));

    for (number, format) in [Format::JsonLines, Format::Csv, Format::Tsv].into_iter().enumerate() {
        let mut out = Vec::new();
        let options = ExportOptions::new(format, Compression::Zstd);
        let report = export_table(&database, "fish", &mut out, &options, &mut |_| {}).unwrap();
        assert_eq!(report.rows, 3);
        let table = format!("copy{number}");
        database
            .create_table(remora_engine::Schema { name: table.clone(), ..schema.clone() })
            .unwrap();
        import(&database, &table, &mut [Input::from_stream("out", Cursor::new(out)).unwrap()]);
        assert_eq!(rows(&database, &table), expected, "{format:?}");
    }
    database.close().unwrap();
}

#[test]
fn exports_have_no_computed_key_columns() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory.path().join("data"));
    let mut inputs =
        [Input::from_stream("fish.jsonl", Cursor::new("{\"id\":1,\"name\":\"AbC\"}\n")).unwrap()];
    let mut schema =
        infer_schema(&mut inputs, "fish", &KeyChoice::Auto, &Reading::default()).unwrap().schema;
    let mut column = schema.columns[1].clone();
    let hidden = format!("{HIDDEN_PREFIX}0.low");
    (column.id, column.name, column.nullable) = (99, hidden.clone(), true);
    schema.columns.push(column);
    database.create_table(schema).unwrap();
    let text = |text: &str| Value::Text(text.into());
    let changes = vec![Change::Put(vec![Value::Int(1), text("AbC"), text("abc")])];
    let tables = vec![TableChanges { table: "fish".into(), changes }];
    database.apply_computed(ChangeBatch { tables, positions: Vec::new() }).unwrap();
    for format in [Format::JsonLines, Format::Json, Format::Mongo, Format::Csv, Format::Tsv] {
        let mut out = Vec::new();
        let options = ExportOptions::new(format, Compression::None);
        export_table(&database, "fish", &mut out, &options, &mut |_| {}).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(out.contains("AbC") && !out.contains("abc") && !out.contains("#key"), "{out}");
    }
    let plain = || ExportOptions::new(Format::Csv, Compression::None);
    let named = ExportOptions { columns: vec![hidden.to_uppercase()], ..plain() };
    let filtered = ExportOptions { filter: Some(Filter::IsNotNull(hidden)), ..plain() };
    for options in [named, filtered] {
        let refused = check_export(&database, "fish", &options).unwrap_err().to_string();
        assert!(refused.ends_with("it has id, name"), "{refused}");
    }
    // What is no row of theirs is not imported either.
    let schema = database.schema("fish").unwrap();
    let importer = Importer::new(&DatabaseSink::new(&database), schema, ImportOptions::default())
        .run(&mut inputs, &mut |_| {});
    let refused = importer.unwrap_err().to_string();
    assert!(refused.contains("keys over expressions (low)"), "{refused}");
    database.close().unwrap();
}

#[test]
fn a_file_is_not_read_twice_even_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let (data, file) = (directory.path().join("data"), directory.path().join("rows.csv"));
    std::fs::write(&file, "name,size\nRemora,1\nbroken\nShark,2\n").unwrap();
    let inputs = || [Input::new(file.to_str().unwrap()).unwrap()];
    let database = open(&data);
    let schema = infer_schema(&mut inputs(), "fish", &KeyChoice::Generated, &Reading::default())
        .unwrap()
        .schema;
    database.create_table(schema).unwrap();
    let report = import(&database, "fish", &mut inputs());
    assert_eq!((report.rows, report.skipped), (2, 1));
    database.close().unwrap();
    drop(database);

    let database = open(&data);
    let report = import(&database, "fish", &mut inputs());
    assert_eq!((report.rows, report.files_done_before), (0, 1));
    std::fs::write(&file, "name,size\nTuna,3\n").unwrap();
    assert_eq!(import(&database, "fish", &mut inputs()).rows, 1);
    let request = SearchRequest {
        selection: Selection {
            table: "fish".into(),
            filter: Some(Filter::IsNotNull("size".into())),
            ..Selection::default()
        },
        limit: 10,
        ..SearchRequest::default()
    };
    let hits = database.search(&request).unwrap().hits;
    let keys: Vec<_> = hits.iter().map(|hit| hit.key[0].clone()).collect();
    assert_eq!(keys, [6, 4, 2].map(Value::Uint));
    database.close().unwrap();
}

/// A column that was found short and is not: its record is named, and the others come in.
#[test]
fn value_too_long_for_the_index_is_an_error_of_its_record() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory.path().join("data"));
    let mut inputs = [Input::from_stream("fish.jsonl", Cursor::new(TEXT)).unwrap()];
    let mut schema =
        infer_schema(&mut inputs, "fish", &KeyChoice::Auto, &Reading::default()).unwrap().schema;
    let title = schema.columns.iter().position(|column| column.name == "title").unwrap();
    schema.columns[title].indexed = true;
    database.create_table(schema).unwrap();
    let long = "x".repeat((1 << 20) + 1);
    let text =
        format!("{{\"id\":1,\"title\":\"a\"}}\n{{\"id\":2,\"title\":\"{long}\"}}\n{{\"id\":3}}\n");
    let mut inputs = [Input::from_stream("long.jsonl", Cursor::new(text)).unwrap()];
    let report = import(&database, "fish", &mut inputs);
    assert_eq!((report.rows, report.skipped, report.problems[0].line), (2, 1, 2));
    assert!(report.problems[0].message.contains("column \"title\""), "{:?}", report.problems);
    database.close().unwrap();
}
