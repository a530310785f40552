//! What the examples that measure have in common: the texts that they load, and the table that holds them.

use std::{
    error::Error,
    fs::{self, File},
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
};

use remora_engine::{ColumnDef, ColumnType, Schema, TextDef, WordsDef};

pub type Outcome<T> = Result<T, Box<dyn Error>>;

pub const TABLE: &str = "docs";

/// The files of texts in a directory, in the order of their names.
pub fn wiki_files(data: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files: Vec<_> =
        fs::read_dir(data)?.map(|entry| Ok(entry?.path())).collect::<Outcome<_>>()?;
    files.retain(|path| {
        path.file_name().is_some_and(|it| it.to_string_lossy().starts_with("wiki-"))
    });
    files.sort();
    Ok(files)
}

/// The values of a file of JSON Lines packed by zstd.
pub fn lines(path: &Path) -> Outcome<impl Iterator<Item = Outcome<serde_json::Value>>> {
    let reader = BufReader::new(zstd::Decoder::new(File::open(path)?)?);
    Ok(reader.lines().map(|line| Ok(serde_json::from_str(&line?)?)))
}

/// A member that is a text; empty if there is none.
pub fn text<'v>(value: &'v serde_json::Value, name: &str) -> &'v str {
    value.get(name).and_then(serde_json::Value::as_str).unwrap_or_default()
}

/// A table of `id`, `title` and `text`.
pub fn schema(texts: Vec<TextDef>, words: Option<WordsDef>) -> Schema {
    let kinds = [ColumnType::Uint(64), ColumnType::Text, ColumnType::Text];
    let columns = ["id", "title", "text"].into_iter().zip(kinds).zip(1..);
    let column = |((name, kind), id): ((&str, ColumnType), u32)| ColumnDef {
        id,
        name: name.to_owned(),
        kind,
        nullable: false,
        indexed: id == 1,
        declared: None,
    };
    Schema {
        name: TABLE.to_owned(),
        columns: columns.map(column).collect(),
        primary_key: vec![0],
        texts,
        required: None,
        indexes: Vec::new(),
        synonyms: Vec::new(),
        words,
        paths: Vec::new(),
        declared: None,
    }
}
