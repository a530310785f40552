//! Any bytes through every reader of files: rows or errors, never a panic, and always an end.
#![no_main]

use std::{io::Cursor, sync::LazyLock};

use libfuzzer_sys::fuzz_target;
use remora_engine::Schema;
use remora_source::{
    files::{
        FilePosition, Format, Input, KeyChoice, Reading, RecordBatch, RowParser, Rows, Shape, infer_schema,
        open_reader,
    },
    schema_file::SchemaFile,
};

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let text = r#"{"name": "t", "primary_key": ["id"], "columns": [
        {"name": "id", "type": "int64"}, {"name": "a", "type": "text"},
        {"name": "b", "type": "double"}, {"name": "c", "type": "json"},
        {"name": "d", "type": "decimal(20,3)"}, {"name": "e", "type": "datetime"},
        {"name": "f", "type": "timestamp"}, {"name": "g", "type": "bytes"},
        {"name": "h", "type": "time"}, {"name": "i", "type": "uint8"}]}"#;
    SchemaFile::parse(text).and_then(|file| file.to_schema()).expect("a valid description")
});

fuzz_target!(|bytes: &[u8]| {
    let formats = [
        Format::JsonLines,
        Format::Json,
        Format::Mongo,
        Format::Csv,
        Format::Tsv,
        Format::Cirrus,
    ];
    let shapes = [Rows::Members, Rows::FlatMembers]
        .map(|rows| Shape { rows, key: vec!["a".to_owned(), "a.b".to_owned()] });
    for shape in &shapes {
        let Ok(mut input) = Input::from_stream("f", Cursor::new(bytes.to_vec())) else { return };
        let reading = Reading { format: None, shape: shape.clone() };
        let _ = infer_schema(std::slice::from_mut(&mut input), "t", &KeyChoice::Auto, &reading);
    }
    for (format, shape) in formats.iter().flat_map(|&format| shapes.iter().map(move |shape| (format, shape))) {
        let stream = Box::new(Cursor::new(bytes.to_vec()));
        let opened = open_reader("f", stream, format, shape, &FilePosition::default());
        let Ok(mut reader) = opened else { continue };
        let mut parser = RowParser::new(&SCHEMA, reader.layout());
        let mut batch = RecordBatch::default();
        while reader.read_into(&mut batch).is_ok_and(|more| more) {}
        for record in batch.iter() {
            let _ = parser.parse(&record, 1);
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = SchemaFile::parse(text).and_then(|file| file.to_schema());
    }
});
