//! The rows that are looked up: sysbench's, numbered from 1.

use std::{fmt::Write, path::Path};

use anyhow::Result;
use remora_engine::{
    Change, ChangeBatch, ColumnDef, ColumnType, Database, Durability, Options, Schema,
    TableChanges, Value,
};

/// Rows of one INSERT.
pub const ROWS_PER_INSERT: u64 = 1_000;
/// Rows of one batch.
const ROWS_PER_BATCH: u64 = 20_000;

/// The columns of a row except its id: `k`, `c`, `pad`.
fn values(id: u64) -> (i64, String, String) {
    let mut state = id.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut digits = |count: usize| -> String {
        let mut text = String::with_capacity(count);
        while text.len() < count {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let group = state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 20;
            // Writing to a `String` cannot fail.
            let _ = write!(text, "{:011}-", group % 100_000_000_000);
        }
        text.truncate(count);
        text
    };
    let (c, pad) = (digits(119), digits(59));
    ((id * 7_919 % 1_000_003) as i64, c, pad)
}

/// An INSERT of consecutive rows.
pub fn insert(table: &str, first: u64, count: u64) -> String {
    let mut text = format!("INSERT INTO {table} VALUES ");
    for id in first..first + count {
        let (k, c, pad) = values(id);
        let comma = if id == first { "" } else { "," };
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{comma}({id},{k},'{c}','{pad}')");
    }
    text
}

/// Makes a data directory with the table `database.sbtest` of this many rows.
pub fn engine_table(data: &Path, database: &str, rows: u64) -> Result<()> {
    let options = Options { durability: Durability::None, ..Options::default() };
    let engine = Database::open(data, options)?;
    fill(&engine, &format!("{database}.sbtest"), rows)
}

/// Creates the table and inserts the rows.
pub fn fill(engine: &Database, name: &str, rows: u64) -> Result<()> {
    let column = |id, name: &str, kind, declared: &str| ColumnDef {
        id,
        name: name.to_owned(),
        kind,
        nullable: false,
        indexed: true,
        declared: Some(declared.to_owned()),
    };
    engine.create_table(Schema {
        name: name.to_owned(),
        columns: vec![
            column(1, "id", ColumnType::Int(32), "int NOT NULL"),
            column(2, "k", ColumnType::Int(32), "int NOT NULL"),
            column(3, "c", ColumnType::Text, "char(120) NOT NULL"),
            column(4, "pad", ColumnType::Text, "char(60) NOT NULL"),
        ],
        primary_key: vec![0],
        texts: Vec::new(),
        required: None,
        indexes: Vec::new(),
        synonyms: Vec::new(),
        words: None,
        paths: Vec::new(),
        declared: None,
    })?;
    let mut first = 1;
    while first <= rows {
        let end = (first + ROWS_PER_BATCH).min(rows + 1);
        let changes = (first..end).map(|id| {
            let (k, c, pad) = values(id);
            let (c, pad) = (Value::Text(c.into()), Value::Text(pad.into()));
            Change::Put(vec![Value::Int(id as i64), Value::Int(k), c, pad])
        });
        let table = TableChanges { table: name.into(), changes: changes.collect() };
        engine.apply(ChangeBatch { tables: vec![table], ..ChangeBatch::default() })?;
        first = end;
    }
    Ok(())
}
