//! Notes on the disk that are searched as they are written.
//!
//! ```sh
//! cargo run --example notes                                   # shows it with notes of its own
//! cargo run --example notes -- ~/notes add "Herons nest at the reef"
//! cargo run --example notes -- ~/notes find heron
//! ```

use std::time::{SystemTime, UNIX_EPOCH};

use remora::{Database, Result, Table};
use serde::Serialize;

#[derive(Serialize)]
struct Note<'n> {
    /// Seconds since 1970, to the microsecond.
    written: String,
    text: &'n str,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [path, "add", text] => add(&notes(&Database::open(path)?)?, text),
        [path, "find", text] => find(&notes(&Database::open(path)?)?, text),
        _ => show(),
    }
}

/// The table, which is made the first time.
fn notes(db: &Database) -> Result<Table> {
    db.create_table("notes", |t| t.timestamp("written").key().text("text"))
}

fn add(notes: &Table, text: &str) -> Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let written = format!("{}.{:06}", now.as_secs(), now.subsec_micros());
    notes.insert(&Note { written, text })
}

fn find(notes: &Table, text: &str) -> Result<()> {
    let found = notes.search(text).highlight("[", "]").limit(10).run()?;
    println!("{} notes, newest first:", found.total);
    for note in found.rows {
        let written: String = note.row.get("written")?;
        println!("  {written}  {}", note.snippet.unwrap_or_default());
    }
    Ok(())
}

fn show() -> Result<()> {
    let notes = notes(&Database::in_memory()?)?;
    for text in ["Herons nest at the reef", "The reef at night", "珊瑚礁の魚"] {
        add(&notes, text)?;
    }
    ["REEF", "魚", "est at"].iter().try_for_each(|text| find(&notes, text))
}

#[test]
fn it_runs() -> Result<()> {
    show()
}
