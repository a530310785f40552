//! Compares conversions with recorded answers of MySQL 9.7: type, literal, then the stored value and its warnings, or
//! the error. Lines that begin with `~` are intended differences.

use jiff::tz::TimeZone;
use remora_engine::Value;
use remora_mysql::Collation;

use super::*;
use crate::{
    catalog::parse_column,
    meaning::{number::format_float, temporal::time_text},
    parse::read,
    write::rows::literal::{CellExpr, Parameters, given},
};

fn converter(strict: bool) -> Converter {
    Converter {
        mode: SqlMode::DEFAULT,
        strict,
        zone: TimeZone::UTC,
        now_micros: 1_795_269_600_000_000,
        client: Charset::UTF8MB4,
        warnings: Warnings::default(),
    }
}

fn shown_as(kind: &TypeSpec, value: &Value) -> String {
    let digits = kind.fraction_digits();
    match value {
        Value::Null => "<null>".to_owned(),
        Value::Float(number) if kind.sql == SqlType::Float => format_float(*number as f32),
        Value::Float(number) => match kind.digits {
            Some((_, scale)) => format!("{number:.*}", usize::from(scale)),
            None => text_of(value),
        },
        Value::Uint(number) if kind.sql == SqlType::Year => format!("{number:04}"),
        Value::Uint(number) if matches!(kind.sql, SqlType::Bit(_)) => format!("{number:X}"),
        Value::Bytes(bytes) => bytes.iter().map(|byte| format!("{byte:02X}")).collect(),
        Value::Time(micros) => time_text(*micros, digits),
        Value::DateTime(_) | Value::Timestamp(_) => {
            let text = value.to_string();
            let (whole, fraction) =
                text.trim_end_matches('Z').split_once('.').unwrap_or((&text, ""));
            let fraction: String =
                fraction.chars().chain("000000".chars()).take(usize::from(digits)).collect();
            let whole = whole.trim_end_matches('Z').replace('T', " ");
            if digits == 0 { whole } else { format!("{whole}.{fraction}") }
        }
        other => other.to_string(),
    }
}

fn converted(declared: &str, literal: &str) -> Option<String> {
    let spec = parse_column(declared, Collation::UTF8MB4_0900_AI_CI)?;
    let literal = literal.replace("{''b'':1,''a''", "{\"b\":1,\"a\"");
    let given = read(&literal, |tokens| {
        given(tokens, &Parameters { values: &[], places: Vec::new() }, |_| false)
    });
    let Ok(given) = given else { return None };
    if matches!(given, CellExpr::Expression(_)) {
        return None;
    }
    let converter = converter(true);
    let slot = TargetColumn { name: "c", kind: &spec.kind, row: 1 };
    Some(match converter.fit(slot, given.value(&spec.kind).ok()?) {
        Ok(value) => {
            let mut line = shown_as(&spec.kind, &value);
            for warning in converter.warnings.list() {
                let (level, code) = (warning.level.name(), warning.code.number());
                line.push_str(&format!("\t{level} {code} {}", warning.message));
            }
            line
        }
        Err(error) => format!("ERROR {} {}", error.code.number(), error.message),
    })
}

#[test]
fn sets_are_made_of_lists_texts_and_numbers() {
    for (literal, expected) in [
        ("(7,3,3)", "[3, 7]"),
        ("()", "[]"),
        ("'9, 1'", "[1, 9]"),
        ("'[4294967295]'", "[4294967295]"),
        ("5", "[5]"),
        ("'x'", "ERROR 1366 Incorrect multi value: 'x' for column 'c' at row 1"),
        ("(-1,2)", "ERROR 1264 Out of range value for column 'c' at row 1: '[-1, 2]'"),
    ] {
        assert_eq!(converted("multi", literal).as_deref(), Some(expected), "{literal}");
    }
    assert_eq!(converted("multi64", "(-1,2)").as_deref(), Some("[-1, 2]"));
    assert_eq!(converted("int", "(1,2)"), None);
}

#[test]
fn values_are_converted_as_mysql_converts_them() {
    let mut differences = Vec::new();
    for line in include_str!("golden.tsv").lines() {
        let known = line.starts_with('~');
        let mut parts = line.trim_start_matches('~').splitn(3, '\t');
        let (Some(declared), Some(literal), Some(expected)) =
            (parts.next(), parts.next(), parts.next())
        else {
            panic!("{line:?} has no three parts");
        };
        let Some(found) = converted(declared, literal) else { continue };
        // The table's name is added by the code that makes rows.
        let expected = expected.replace("'t.c'", "'c'");
        if (found != expected) != known {
            differences.push(format!("{declared} {literal}\n  MySQL {expected}\n  here  {found}"));
        }
    }
    let count = differences.len();
    assert!(count == 0, "{count} differ:\n{}", differences.join("\n"));
}
