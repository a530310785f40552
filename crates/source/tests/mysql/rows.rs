//! Rows in one form, whoever holds them: what each column's value is as text, byte by byte.
//!
//! The source is asked in SQL that says for each type what the exact value is; what is stored here
//! is written by the engine. Neither side uses the code under test to do so.

use std::collections::BTreeMap;

use mysql::{Conn, prelude::Queryable};
use remora_engine::{Database, HIDDEN_KEY, Value};

use crate::generator::shape::{self, Column};

/// A value; `None` is NULL.
pub type Cell = Option<Vec<u8>>;

/// A table's columns by lower-case name, and its rows sorted.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
}

/// Every table of a database at the source, by `database.table`, with the columns
/// that `wanted` names: a computed one need not be in the binlog, and then it cannot be followed.
pub fn of_source(
    connection: &mut Conn,
    database: &str,
    wanted: &dyn Fn(&str, &Column) -> bool,
) -> BTreeMap<String, Rows> {
    connection.query_drop("SET time_zone = '+00:00'").unwrap();
    let mut tables = BTreeMap::new();
    for name in shape::table_names(connection, database).unwrap() {
        let shape = shape::read(connection, database, &name).unwrap();
        let full_name = format!("{database}.{name}");
        let columns: BTreeMap<_, _> = shape
            .columns
            .iter()
            .filter(|column| wanted(&full_name, column))
            .map(|column| (column.name.to_lowercase(), column))
            .collect();
        let list: Vec<_> = columns.values().map(|column| expression(column)).collect();
        let sql = format!("SELECT {} FROM `{database}`.`{name}`", list.join(", "));
        let mut rows: Vec<Vec<Cell>> = connection
            .query_map(sql, |row: mysql::Row| {
                let cells = row.unwrap().into_iter().zip(columns.values());
                cells.map(|(value, column)| canonical(column, value)).collect()
            })
            .unwrap();
        rows.sort();
        let columns = columns.into_keys().collect();
        tables.insert(full_name, Rows { columns, rows });
    }
    tables
}

/// Every table that is visible here.
pub fn of_engine(engine: &Database) -> BTreeMap<String, Rows> {
    engine.tables().into_iter().map(|name| (name.clone(), table_of_engine(engine, &name))).collect()
}

/// A table that is visible here.
pub fn table_of_engine(engine: &Database, name: &str) -> Rows {
    let schema = engine.schema(name).unwrap();
    let is_shown = |place: &usize| schema.columns[*place].name != HIDDEN_KEY;
    let mut places: Vec<_> = (0..schema.columns.len()).filter(is_shown).collect();
    places.sort_by_key(|&place| schema.columns[place].name.to_lowercase());
    let columns = places.iter().map(|&place| schema.columns[place].name.to_lowercase()).collect();
    let mut rows = Vec::new();
    engine
        .scan(name, &mut |row| {
            rows.push(places.iter().map(|&place| written(&row[place])).collect());
            Ok(())
        })
        .unwrap();
    rows.sort();
    Rows { columns, rows }
}

/// What a value here is written as.
pub fn written(value: &Value) -> Cell {
    match value {
        Value::Null => None,
        Value::Text(text) | Value::Json(text) => Some(text.as_bytes().to_vec()),
        other => Some(other.to_string().into_bytes()),
    }
}

/// The exact value, as SQL says it.
pub fn expression(column: &Column) -> String {
    let name = format!("`{}`", column.name.replace('`', "``"));
    match &*column.data_type {
        "float" | "double" => format!("{name} + 0e0"),
        "bit" | "year" | "tinyint" | "smallint" | "mediumint" | "int" | "bigint" => {
            format!("{name} + 0")
        }
        // Without the zeros of ZEROFILL.
        "decimal" => format!("{name} + 0"),
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" | "vector" => {
            format!("HEX({name})")
        }
        data_type if is_geometry(data_type) => format!("HEX({name})"),
        _ => name,
    }
}

fn is_geometry(data_type: &str) -> bool {
    ["geometry", "point", "linestring", "polygon", "geomcollection", "geometrycollection"]
        .iter()
        .any(|end| data_type.ends_with(end))
}

/// What the source answered, written as the engine writes values.
pub fn canonical(column: &Column, value: mysql::Value) -> Cell {
    let bytes = match value {
        mysql::Value::NULL => return None,
        mysql::Value::Bytes(bytes) => bytes,
        other => panic!("the text protocol gave {other:?}"),
    };
    let text = || String::from_utf8(bytes.clone()).unwrap();
    Some(match &*column.data_type {
        // A FLOAT is shown by the shortest digits that name it.
        "float" => {
            let number: f64 = text().parse().unwrap();
            let shortest = (number as f32 + 0.0).to_string().parse().unwrap();
            Value::Float(shortest).to_string().into_bytes()
        }
        "double" => Value::Float(text().parse().unwrap()).to_string().into_bytes(),
        "time" | "datetime" | "timestamp" => without_zeros(&text()).into_bytes(),
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" | "vector" => {
            format!("0x{}", text()).into_bytes()
        }
        data_type if is_geometry(data_type) => format!("0x{}", text()).into_bytes(),
        _ => bytes,
    })
}

/// A time with six digits of its fraction, or none if that is zero.
fn without_zeros(time: &str) -> String {
    match time.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|digit| digit == b'0') => whole.to_owned(),
        Some((whole, fraction)) => format!("{whole}.{fraction:0<6}"),
        None => time.to_owned(),
    }
}

/// The first difference between two sets of tables, in a sentence.
pub fn difference(
    here: &BTreeMap<String, Rows>,
    source: &BTreeMap<String, Rows>,
) -> Option<String> {
    let names = |tables: &BTreeMap<String, Rows>| tables.keys().cloned().collect::<Vec<_>>();
    if names(here) != names(source) {
        return Some(format!("tables here {:?}, at the source {:?}", names(here), names(source)));
    }
    here.iter().find_map(|(name, here)| {
        table_difference(here, &source[name]).map(|text| format!("{name}: {text}"))
    })
}

/// The first difference between two tables, in a sentence.
fn table_difference(here: &Rows, source: &Rows) -> Option<String> {
    if here.columns != source.columns {
        return Some(format!("columns {:?}, at the source {:?}", here.columns, source.columns));
    }
    if here.rows == source.rows {
        return None;
    }
    let only = |rows: &Rows, other: &Rows| -> Vec<Vec<Cell>> {
        rows.rows.iter().filter(|row| other.rows.binary_search(row).is_err()).cloned().collect()
    };
    let (ours, theirs) = (only(here, source), only(source, here));
    let mut text = format!(
        "{} rows here, {} at the source; only here {}, only there {}",
        here.rows.len(),
        source.rows.len(),
        ours.len(),
        theirs.len()
    );
    let closest = ours.first().and_then(|row| {
        theirs.iter().min_by_key(|other| row.iter().zip(*other).filter(|(a, b)| a != b).count())
    });
    let (ours, theirs) = (ours.first(), closest.or(theirs.first()));
    for (place, column) in here.columns.iter().enumerate() {
        let cell = |row: Option<&Vec<Cell>>| row.map_or("-".to_owned(), |row| shown(&row[place]));
        let mark =
            if ours.map(|row| &row[place]) == theirs.map(|row| &row[place]) { ' ' } else { '!' };
        text.push_str(&format!("\n {mark} {column}: {} | {}", cell(ours), cell(theirs)));
    }
    Some(text)
}

fn shown(cell: &Cell) -> String {
    match cell {
        None => "NULL".to_owned(),
        Some(bytes) => String::from_utf8_lossy(bytes).chars().take(120).collect(),
    }
}
