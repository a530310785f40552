//! Random schema changes.

use remora_peers::Kind;

use super::{shape::Shape, tables};
use crate::random::Random;

/// The statements of one schema change of this table. `fresh` makes names that were never used.
pub fn change(
    random: &mut Random,
    kind: Kind,
    shape: &Shape,
    fresh: &mut dyn FnMut() -> String,
) -> Vec<String> {
    let table = &shape.name;
    let others: Vec<_> =
        shape.columns.iter().filter(|column| !shape.is_key(column) && !column.generated).collect();
    let other = (!others.is_empty()).then(|| random.pick(&others).name.clone());
    match (random.below(20), other) {
        (0..=2, other) => vec![add_column(random, kind, table, other.as_deref(), &fresh())],
        (3, Some(other)) => vec![format!("ALTER TABLE {table} DROP COLUMN {other}")],
        (4..=5, Some(other)) => modify(random, kind, shape, &other).into_iter().collect(),
        (6, Some(other)) => {
            let declared = declaration(shape, &other);
            vec![format!("ALTER TABLE {table} CHANGE {other} {} {declared}", fresh())]
        }
        (7, Some(other)) => {
            let length = if is_long(shape, &other) { "(10)" } else { "" };
            vec![format!("ALTER TABLE {table} ADD INDEX {} ({other}{length})", fresh())]
        }
        (8, _) => vec![format!("RENAME TABLE {table} TO {}", fresh())],
        (9, _) => {
            let again = tables::random_table(random, kind, table);
            vec![format!("DROP TABLE {table}"), again]
        }
        (10, _) => vec![format!("TRUNCATE TABLE {table}")],
        (11, _) => vec![tables::random_table(random, kind, &fresh())],
        (12..=13, _) => swap(random, kind, table, &fresh()),
        (14, _) => vec![format!("ALTER TABLE {table} CONVERT TO CHARACTER SET utf8mb4")],
        (15, _) => vec![format!("ALTER TABLE {table} ENGINE=InnoDB, COMMENT='{}'", fresh())],
        (16, Some(other)) => {
            let add = format!("ADD COLUMN {} INT NOT NULL DEFAULT 7", fresh());
            vec![format!("ALTER TABLE {table} {add}, DROP COLUMN {other}")]
        }
        (17, _) if kind != Kind::MySql56 => vec![create_as_select(table, &fresh())],
        (18, _) => temporary(table),
        (_, _) => {
            let name = fresh();
            vec![
                format!("CREATE TABLE {name} LIKE {table}"),
                format!("INSERT INTO {name} SELECT * FROM {table}"),
                format!("RENAME TABLE {table} TO {name}_x, {name} TO {table}, {name}_x TO {name}"),
            ]
        }
    }
}

fn add_column(
    random: &mut Random,
    kind: Kind,
    table: &str,
    other: Option<&str>,
    name: &str,
) -> String {
    let any = tables::random_type(random, kind);
    let declared = random.pick(&[
        any,
        "INT NOT NULL DEFAULT 42",
        "VARCHAR(20) CHARACTER SET utf8mb4 NOT NULL DEFAULT 'ålesund'",
        "DECIMAL(8,3) DEFAULT 1.5",
    ]);
    let place = match (random.below(4), other) {
        (0, _) => " FIRST".to_owned(),
        (1, Some(other)) => format!(" AFTER {other}"),
        _ => String::new(),
    };
    format!("ALTER TABLE {table} ADD COLUMN {name} {declared}{place}")
}

/// A wider or another type for a column.
fn modify(random: &mut Random, kind: Kind, shape: &Shape, column: &str) -> Option<String> {
    let table = &shape.name;
    let column = shape.column(column);
    let unsigned = if column.is_unsigned() { " UNSIGNED" } else { "" };
    let declared = match &*column.data_type {
        "tinyint" | "smallint" | "mediumint" => format!("INT{unsigned}"),
        "int" => format!("BIGINT{unsigned}"),
        "bigint" | "year" | "date" => "VARCHAR(40) CHARACTER SET utf8mb4".to_owned(),
        "varchar" => {
            let charset = column.charset.as_deref()?;
            format!("VARCHAR({}) CHARACTER SET {charset}", column.length? + 30)
        }
        "char" => "VARCHAR(200) CHARACTER SET utf8mb4".to_owned(),
        "tinytext" | "text" => "MEDIUMTEXT CHARACTER SET utf8mb4".to_owned(),
        "tinyblob" => "BLOB".to_owned(),
        "float" => "DOUBLE".to_owned(),
        "datetime" | "timestamp" => "DATETIME(6)".to_owned(),
        "enum" => "ENUM('small','it''s','größe','x','y','z','new')".to_owned(),
        "decimal" => "DECIMAL(65,30)".to_owned(),
        _ if random.chance(50) => return None,
        _ if kind.is_mariadb() => "LONGBLOB".to_owned(),
        _ => return None,
    };
    Some(format!("ALTER TABLE {table} MODIFY {} {declared}", column.name))
}

/// What an online schema-change tool does.
fn swap(random: &mut Random, kind: Kind, table: &str, name: &str) -> Vec<String> {
    let declared = tables::random_type(random, kind);
    vec![
        format!("CREATE TABLE _{name}_new LIKE {table}"),
        format!("ALTER TABLE _{name}_new ADD COLUMN {name} {declared}"),
        format!("INSERT IGNORE INTO _{name}_new SELECT *, NULL FROM {table}"),
        format!("RENAME TABLE {table} TO _{name}_old, _{name}_new TO {table}"),
        format!("DROP TABLE _{name}_old"),
    ]
}

fn create_as_select(table: &str, name: &str) -> String {
    format!(
        "CREATE TABLE {name} (num INT PRIMARY KEY) SELECT 1 AS num, 'made' AS word FROM {table} LIMIT 1"
    )
}

/// A table of this session's that hides the one of the same name and whose changes are nobody's.
fn temporary(table: &str) -> Vec<String> {
    vec![
        format!("CREATE TEMPORARY TABLE {table} (id INT PRIMARY KEY)"),
        format!("INSERT INTO {table} VALUES (1), (2)"),
        format!("ALTER TABLE {table} ADD COLUMN x INT"),
        format!("TRUNCATE TABLE {table}"),
        format!("DROP TEMPORARY TABLE {table}"),
    ]
}

/// How the column is declared now, as far as a change of its name needs it.
fn declaration(shape: &Shape, column: &str) -> String {
    let column = shape.column(column);
    let charset = match (&column.charset, &*column.data_type) {
        (Some(charset), data_type) if data_type != "json" => format!(" CHARACTER SET {charset}"),
        _ => String::new(),
    };
    let null = if column.nullable { " NULL" } else { " NOT NULL" };
    format!("{}{charset}{null}", column.declared.replace("/*m!100301 compressed*/", ""))
}

fn is_long(shape: &Shape, column: &str) -> bool {
    let data_type = &shape.column(column).data_type;
    ["text", "blob", "geometry", "point"].iter().any(|end| data_type.ends_with(end))
        || matches!(&**data_type, "varchar" | "varbinary" | "json" | "vector")
}
