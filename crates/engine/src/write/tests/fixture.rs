//! The table that the tests of writes and merges use.

use crate::{
    Change, ChangeBatch, ColumnDef, ColumnType, Database, Normalization, Row, Schema, Selection,
    TableChanges, TextDef, Value,
};

/// A table "t" with a number and a text.
pub(crate) fn schema() -> Schema {
    let column = |id, name: &str, kind| ColumnDef {
        id,
        name: name.to_owned(),
        kind,
        nullable: false,
        indexed: kind != ColumnType::Text,
        declared: None,
    };
    let normalization = Normalization::default();
    Schema {
        texts: vec![TextDef { id: 1, columns: vec![1], delimiter: None, normalization }],
        ..Schema::over(
            "t",
            vec![column(1, "id", ColumnType::Int(64)), column(2, "body", ColumnType::Text)],
            vec![0],
        )
    }
}

/// A batch of changes to "t".
pub(crate) fn batch(changes: Vec<Change>) -> ChangeBatch {
    ChangeBatch { tables: vec![TableChanges { table: "t".into(), changes }], positions: Vec::new() }
}

/// A batch that puts one row.
pub(crate) fn put(id: i64, text: &str) -> ChangeBatch {
    batch(vec![Change::Put(vec![Value::Int(id), Value::Text(text.into())])])
}

/// Copies a directory, as a crash would leave it.
pub(crate) fn copy(from: &std::path::Path, to: &std::path::Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            std::fs::create_dir(&to).unwrap();
            copy(&from, &to);
        } else {
            std::fs::copy(&from, &to).unwrap();
        }
    }
}

/// All rows of "t", read from the store.
pub(crate) fn rows(database: &Database) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut push = |row| {
        rows.push(row);
        Ok(())
    };
    database.scan("t", &mut push).unwrap();
    rows
}

/// The number of rows of "t" in the index.
pub(crate) fn count(database: &Database) -> u64 {
    let selection = Selection { table: "t".to_owned(), ..Selection::default() };
    database.count(&selection).unwrap().count
}
