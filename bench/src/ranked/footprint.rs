//! What words take on disk and in memory: the same rows in tables that differ by nothing else, with and without a text
//! index for substrings.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::Path,
    process::Command,
};

use anyhow::Result;
use serde::Serialize;

use super::servers::{Files, TABLE, run, start_remora};
use crate::{corpus::Document, measure::directory_bytes, table::Table};

/// The most that words may add, as a share of the text: on disk and in memory.
const MOST_ON_DISK: f64 = 0.35;
const MOST_RESIDENT: f64 = 0.1;

/// What a table takes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Footprint {
    pub has_text_index: bool,
    pub has_words: bool,
    /// Bytes of the data directory, all segments merged.
    pub disk_bytes: u64,
    /// Resident memory of a server that was started with it and has answered once, in bytes.
    pub resident_bytes: u64,
}

/// Loads the rows four times and measures each.
pub fn measure(files: &Files, documents: &[Document]) -> Result<Vec<Footprint>> {
    let rows = files.directory().join("docs.jsonl");
    write(&rows, documents)?;
    let mut footprints = Vec::new();
    for has_text_index in [false, true] {
        for has_words in [false, true] {
            eprintln!("loading a table {}", name(has_text_index, has_words));
            footprints.push(one(files, has_text_index, has_words)?);
        }
    }
    fs::remove_file(rows)?;
    Ok(footprints)
}

/// The rows as lines of JSON.
fn write(path: &Path, documents: &[Document]) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for Document { id, title, text, year, .. } in documents {
        let year = year.unwrap_or_default();
        let row = serde_json::json!({"id": id, "title": title, "text": text, "year": year});
        writeln!(file, "{row}")?;
    }
    Ok(file.flush()?)
}

fn one(files: &Files, has_text_index: bool, has_words: bool) -> Result<Footprint> {
    let directory = files.directory().join("footprint");
    fs::create_dir_all(&directory)?;
    fs::write(directory.join("schema.toml"), schema(has_text_index, has_words))?;
    let mut import = Command::new(files.remora());
    import.args(["import", "--data", "data", "--table", TABLE, "--schema", "schema.toml"]);
    import.arg("../docs.jsonl");
    run(&directory, import, "import")?;
    let start = || {
        let (settings, data) = (directory.join("remora.toml"), directory.join("data"));
        start_remora(files.remora(), &settings, &data, 0, "")
    };
    let server = start()?;
    server.connect()?.count(&format!("OPTIMIZE TABLE {TABLE}"))?;
    server.settle()?;
    server.stop()?;
    let disk_bytes = directory_bytes(&directory.join("data"))?;
    let server = start()?;
    server.connect()?.count(&format!("SELECT id FROM {TABLE} WHERE id = 1"))?;
    let resident_bytes = server.resident_bytes()?;
    server.stop()?;
    fs::remove_dir_all(&directory)?;
    Ok(Footprint { has_text_index, has_words, disk_bytes, resident_bytes })
}

/// The table's definition.
fn schema(has_text_index: bool, has_words: bool) -> String {
    let mut text = format!(
        "name = \"{TABLE}\"\nprimary_key = [\"id\"]\ncolumns = [\n {{ name = \"id\", type = \"uint64\" }},\n \
         {{ name = \"title\", type = \"text\", indexed = false }},\n {{ name = \"text\", type = \"text\", indexed = false }},\n \
         {{ name = \"year\", type = \"int32\" }},\n]\n"
    );
    if has_text_index {
        text += "[[texts]]\ncolumns = [\"title\", \"text\"]\n";
    }
    if has_words {
        text += "[words]\ncolumns = [\"title\", \"text\"]\n";
    }
    text
}

fn name(has_text_index: bool, has_words: bool) -> &'static str {
    match (has_text_index, has_words) {
        (false, false) => "without indexes of texts",
        (false, true) => "with words",
        (true, false) => "with a text index",
        (true, true) => "with a text index and words",
    }
}

/// All tables as shares of the text and, of words, what they add.
pub fn table(footprints: &[Footprint], text_bytes: u64) -> Table {
    let share = |bytes: u64| bytes as f64 / text_bytes.max(1) as f64;
    let mut table = Table::new(&["table", "disk", "resident", "words add", "", ""]);
    for it in footprints {
        let without = footprints.iter().find(|other| {
            it.has_words && !other.has_words && other.has_text_index == it.has_text_index
        });
        let (added, verdict) = match without {
            None => (String::new(), ""),
            Some(without) => {
                let disk = share(it.disk_bytes) - share(without.disk_bytes);
                let resident = share(it.resident_bytes) - share(without.resident_bytes);
                let is_missed = disk > MOST_ON_DISK || resident > MOST_RESIDENT;
                let added = format!("{disk:.3} disk, {resident:.3} resident");
                (added, if is_missed { "MISSED" } else { "" })
            }
        };
        table.row(vec![
            name(it.has_text_index, it.has_words).to_owned(),
            format!("{:.2}", share(it.disk_bytes)),
            format!("{:.2}", share(it.resident_bytes)),
            added,
            verdict.to_owned(),
            String::new(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_add_what_the_table_without_them_lacks() {
        let all = [
            (false, false, 100, 50),
            (false, true, 130, 55),
            (true, false, 200, 60),
            (true, true, 240, 80),
        ];
        let footprints = all.map(|(has_text_index, has_words, disk_bytes, resident_bytes)| {
            Footprint { has_text_index, has_words, disk_bytes, resident_bytes }
        });
        let text = table(&footprints, 100).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].ends_with("0.300 disk, 0.050 resident"), "{text}");
        assert!(lines[4].contains("0.400 disk, 0.200 resident") && lines[4].ends_with("MISSED"));
    }

    #[test]
    fn definitions_differ_by_their_indexes_only() {
        let plain = schema(false, false);
        assert!(schema(true, true).starts_with(&plain) && !plain.contains("[words]"));
    }
}
