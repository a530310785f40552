//! Keys as SQL literals, for the condition of the next chunk.

use crate::mysql::{
    quote::quoted,
    schema::{SourceColumn, SourceTable, SourceType},
};

/// A key column's value as a literal that compares as the column is ordered. `None` if the type cannot be part of a
/// key.
pub(super) fn literal(column: &SourceColumn, value: &mysql::Value) -> Option<String> {
    let mysql::Value::Bytes(bytes) = value else { return None };
    let text = || std::str::from_utf8(bytes).ok();
    match &column.kind {
        SourceType::Int { .. } | SourceType::Decimal { .. } | SourceType::Year => {
            text().map(str::to_owned)
        }
        SourceType::Float | SourceType::Double => {
            let digits = text()?;
            Some(if digits.contains('e') { digits.to_owned() } else { format!("{digits}e0") })
        }
        // MySQL 5.6 compares a BIT with a hexadecimal literal as signed numbers.
        SourceType::Bit(_) => {
            let number = bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
            Some(number.to_string())
        }
        SourceType::Date
        | SourceType::Time(_)
        | SourceType::DateTime(_)
        | SourceType::Timestamp(_)
        | SourceType::Char(_)
        | SourceType::VarChar(_)
        | SourceType::Text(_)
        | SourceType::Uuid
        | SourceType::Inet4
        | SourceType::Inet6 => text().map(quoted_literal),
        SourceType::Binary(_) | SourceType::VarBinary(_) | SourceType::Blob(_) => {
            Some(hexadecimal(bytes))
        }
        SourceType::Enum(labels) => {
            let label = text()?;
            let place = labels.labels.iter().position(|known| known == label);
            Some(place.map_or(0, |place| place + 1).to_string())
        }
        SourceType::Set(labels) => {
            let chosen: Vec<_> = text()?.split(',').collect();
            let places = labels.labels.iter().enumerate();
            let bits = places.filter(|(_, label)| chosen.contains(&label.as_str()));
            Some(bits.fold(0_u64, |bits, (place, _)| bits | 1 << (place & 63)).to_string())
        }
        SourceType::ShortYear | SourceType::Json | SourceType::Geometry | SourceType::Vector(_) => {
            None
        }
    }
}

/// The condition for rows after this key, in a form for which both servers use ranges of the key's index. Empty without
/// a key.
pub(super) fn behind(table: &SourceTable, after: &[String]) -> String {
    let columns: Vec<_> = table.key_columns().map(|column| compared(table, column)).collect();
    let mut ways = Vec::with_capacity(after.len());
    for (place, (column, value)) in columns.iter().zip(after).enumerate() {
        let before = columns.iter().zip(after).take(place);
        let mut parts: Vec<_> =
            before.map(|(column, value)| format!("{column} = {value}")).collect();
        parts.push(format!("{column} > {value}"));
        ways.push(format!("({})", parts.join(" AND ")));
    }
    ways.join(" OR ")
}

/// The key's columns for ORDER BY.
pub(super) fn order(table: &SourceTable) -> String {
    let columns: Vec<_> = table.key_columns().map(|column| named(table, column)).collect();
    columns.join(", ")
}

/// ENUM and SET are ordered by number, but compare with a number only as numbers.
fn compared(table: &SourceTable, column: &SourceColumn) -> String {
    let name = named(table, column);
    match column.kind {
        SourceType::Enum(_) | SourceType::Set(_) => format!("{name} + 0"),
        _ => name,
    }
}

/// Qualified with the table's name, it means the column and not an alias in the select list.
fn named(table: &SourceTable, column: &SourceColumn) -> String {
    format!("{}.{}", quoted(&table.name), quoted(&column.name))
}

/// A text as a literal in which backslashes escape.
fn quoted_literal(text: &str) -> String {
    let mut sql = String::with_capacity(text.len() + 2);
    sql.push('\'');
    for character in text.chars() {
        match character {
            '\'' => sql.push_str("\\'"),
            '\\' => sql.push_str("\\\\"),
            '\0' => sql.push_str("\\0"),
            other => sql.push(other),
        }
    }
    sql.push('\'');
    sql
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut sql = String::from("x'");
    for byte in bytes {
        // Writing to a String never fails.
        let _ = write!(sql, "{byte:02x}");
    }
    sql.push('\'');
    sql
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::schema::{ColumnDefault, Generation, Range};

    fn column(name: &str, kind: SourceType) -> SourceColumn {
        SourceColumn {
            name: name.to_owned(),
            ordinal: 0,
            kind,
            range: Range::default(),
            nullable: false,
            generation: Generation::None,
            default: ColumnDefault::None,
            collation: None,
            renamed_from: None,
        }
    }

    #[test]
    fn a_composite_key_is_compared_part_by_part() {
        let table = SourceTable {
            database: "d".to_owned(),
            name: "t".to_owned(),
            columns: vec![
                column("a", SourceType::Int { bits: 32, unsigned: false }),
                column("b`c", SourceType::Binary(2)),
            ],
            key: vec![1, 0],
            image_columns: 2,
            unique_keys: Vec::new(),
            period_end: None,
            words: Default::default(),
        };
        let after = vec!["x'00ff'".to_owned(), "-5".to_owned()];
        assert_eq!(
            behind(&table, &after),
            "(`t`.`b``c` > x'00ff') OR (`t`.`b``c` = x'00ff' AND `t`.`a` > -5)"
        );
        assert_eq!(behind(&table, &[]), "");
        assert_eq!(order(&table), "`t`.`b``c`, `t`.`a`");
    }

    #[test]
    fn literals_are_quoted_by_type() {
        let bytes = |text: &str| mysql::Value::Bytes(text.as_bytes().to_vec());
        let date = column("d", SourceType::Date);
        assert_eq!(literal(&date, &bytes("2024-01-02")), Some("'2024-01-02'".to_owned()));
        let float = column("f", SourceType::Double);
        assert_eq!(literal(&float, &bytes("1.5")), Some("1.5e0".to_owned()));
        assert_eq!(literal(&float, &bytes("1e20")), Some("1e20".to_owned()));
        let bits = column("b", SourceType::Bit(64));
        let highest = mysql::Value::Bytes(vec![0x80, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(literal(&bits, &highest), Some("9223372036854775809".to_owned()));
        let blob = column("b", SourceType::VarBinary(9));
        assert_eq!(literal(&blob, &bytes("a'")), Some("x'6127'".to_owned()));
        assert_eq!(quoted_literal("a'\\\0"), "'a\\'\\\\\\0'");
    }
}
