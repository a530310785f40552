//! When two indexes answer an AND sooner than one: `intersections ROWS DIRECTORY`.
//!
//! Loads ROWS rows whose columns have so many random values each, and counts the rows with one value in each of two
//! columns: by the columns alone, by the index of the first with tests in the column of the second, and with both
//! indexes allowed. Prints the median of each, in microseconds.

use std::{error::Error, ops::Bound, path::Path, time::Instant};

use remora_engine::{
    Allowed, AllowedIndexes, Change, ChangeBatch, ColumnDef, ColumnType, Comparison, Database,
    Filter, IndexColumn, IndexDef, IndexSet, Literal, Options, Reader, Schema, Selection,
    TableChanges, TableIndex, Value, register_text_key,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

const TABLE: &str = "pairs";
/// Rows of one batch.
const ROWS_AT_ONCE: i64 = 50_000;
/// How often each count is made.
const TIMES: usize = 31;
/// How many values the columns have; the last ones are texts.
const VALUES: [u64; 9] = [1_000, 200, 100, 50, 20, 10, 50, 20, MANY];
/// So many values that most are there once; a range of one in 25 is asked for.
const MANY: u64 = 1 << 30;
const FIRST_TEXT: usize = 6;
const ORDER: u32 = 1;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [rows, directory] = &arguments[..] else {
        return Err("intersections ROWS DIRECTORY".into());
    };
    register_text_key(text_key);
    let rows: i64 = rows.parse()?;
    let database = Database::open(Path::new(directory), Options::default())?;
    database.create_table(schema())?;
    for first in (0..rows).step_by(ROWS_AT_ONCE as usize) {
        let changes = (first..rows.min(first + ROWS_AT_ONCE)).map(row).map(Change::Put);
        let tables = vec![TableChanges { table: TABLE.into(), changes: changes.collect() }];
        database.apply(ChangeBatch { tables, positions: Vec::new() })?;
    }
    database.optimize(Some(TABLE))?;
    let reader = database.reader();
    println!("{:>18} {:>9} {:>9} {:>9} {:>9}  rows", "share", "columns", "first", "both", "path");
    for first in 0..VALUES.len() {
        for second in 0..VALUES.len() {
            if first != second {
                compare(&reader, first, second)?;
            }
        }
    }
    Ok(())
}

/// Measures one pair of columns.
fn compare(reader: &Reader, first: usize, second: usize) -> Outcome<()> {
    let only: IndexSet = [TableIndex::Secondary(first)].into_iter().collect();
    let mut told = Vec::new();
    let mut found = 0;
    for indexes in [IndexSet::default(), only, IndexSet::ALL] {
        let selection = Selection {
            table: TABLE.to_owned(),
            text: None,
            filter: Some(Filter::And(vec![equal(first), equal(second)])),
            fuzzy: None,
            indexes: AllowedIndexes {
                find: Allowed { indexes, forced: false },
                ..AllowedIndexes::default()
            },
        };
        let mut taken = Vec::new();
        for _ in 0..TIMES {
            let started = Instant::now();
            found = reader.count(&selection)?.count;
            taken.push(started.elapsed().as_nanos() as f64 / 1_000.0);
        }
        taken.sort_by(f64::total_cmp);
        told.push(taken.get(TIMES / 2).copied().unwrap_or_default());
        if told.len() == 3 {
            let path = reader.access(&selection)?;
            let way = match path.found_by.as_slice() {
                [] => "scan",
                [_] => "one",
                _ => "both",
            };
            let shares: Vec<String> = [first, second].map(share).into();
            let times: Vec<String> = told.iter().map(|time| format!("{time:>9.0}")).collect();
            println!("{:>18} {} {way:>9}  {found}", shares.join(" "), times.join(" "));
        }
    }
    Ok(())
}

fn share(column: usize) -> String {
    let values = VALUES.get(column).copied().unwrap_or(1);
    let values = if values == MANY { 25 } else { values };
    let text = if column < FIRST_TEXT { "" } else { "t" };
    format!("{}%{text}", 100.0 / values as f64)
}

fn equal(column: usize) -> Filter {
    let name = format!("c{column}");
    if column < FIRST_TEXT {
        let literal = Literal::Value(Value::Int(3));
        return Filter::Compare { column: name, comparison: Comparison::Equal, literal };
    }
    let mut key = Vec::new();
    if VALUES.get(column) == Some(&MANY) {
        text_key(ORDER, text(MANY / 25).as_bytes(), &mut key);
        return Filter::KeyWithin(name, ORDER, Bound::Unbounded, Bound::Excluded(key));
    }
    text_key(ORDER, text(3).as_bytes(), &mut key);
    Filter::KeyIn(name, ORDER, vec![key])
}

/// About as dear as a collation's key: two bytes for each letter, of its lower case.
fn text_key(_order: u32, text: &[u8], key: &mut Vec<u8>) {
    for letter in String::from_utf8_lossy(text).chars().flat_map(char::to_lowercase) {
        key.extend((letter as u16).to_be_bytes());
    }
}

fn text(number: u64) -> String {
    format!("Status number {number:010}")
}

fn schema() -> Schema {
    let column = |id: usize, name: String, kind| ColumnDef {
        id: id as u32,
        name,
        kind,
        nullable: false,
        indexed: true,
        declared: None,
    };
    let mut columns = vec![column(0, "id".to_owned(), ColumnType::Int(64))];
    columns.extend((0..VALUES.len()).map(|number| {
        let kind = if number < FIRST_TEXT { ColumnType::Int(32) } else { ColumnType::Text };
        column(number + 1, format!("c{number}"), kind)
    }));
    let index = |number: usize| {
        let order = (number >= FIRST_TEXT).then_some(ORDER);
        let part = IndexColumn { column: number + 1, descending: false, order, prefix: None };
        IndexDef { columns: vec![part] }
    };
    Schema {
        name: TABLE.to_owned(),
        columns,
        primary_key: vec![0],
        texts: Vec::new(),
        indexes: (0..VALUES.len()).map(index).collect(),
        required: None,
        synonyms: Vec::new(),
        words: None,
        paths: Vec::new(),
        declared: None,
    }
}

fn row(id: i64) -> Vec<Value> {
    let mut values = vec![Value::Int(id)];
    for (number, limit) in VALUES.into_iter().enumerate() {
        // Numbers that look random.
        let seed = (id as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ (number as u64) << 33);
        let value = (seed ^ seed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33;
        values.push(match number < FIRST_TEXT {
            true => Value::Int((value % limit) as i64),
            false => Value::Text(text(value % limit).into()),
        });
    }
    values
}
