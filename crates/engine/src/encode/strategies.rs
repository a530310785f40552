//! Random types, values, tables and rows for this crate's tests (strategies of proptest).

use proptest::{prelude::*, sample::Index};

use super::literal::single;
use crate::{
    ColumnDef, ColumnType, Date, DateTime, Decimal, Row, Schema, Value,
    value::{TIME_LIMIT_MICROS, TIMESTAMP_RANGE_MICROS},
};

/// A nullable column.
pub(crate) fn column(id: u32, kind: ColumnType) -> ColumnDef {
    ColumnDef { id, name: format!("c{id}"), kind, nullable: true, indexed: true, declared: None }
}

/// A table with columns of these types, all of them part of its key.
pub(crate) fn table(kinds: &[ColumnType]) -> Schema {
    let columns: Vec<_> =
        kinds.iter().enumerate().map(|(id, &kind)| column(id as u32, kind)).collect();
    Schema {
        name: "t".to_owned(),
        primary_key: (0..columns.len()).collect(),
        columns,
        texts: Vec::new(),
        required: None,
        indexes: Vec::new(),
        synonyms: Vec::new(),
        words: None,
        paths: Vec::new(),
        declared: None,
    }
}

/// Any type.
pub(crate) fn any_kind() -> BoxedStrategy<ColumnType> {
    let bits = || prop::sample::select(vec![8u8, 16, 24, 32, 64]);
    let decimal = (1u8..=65).prop_flat_map(|precision| {
        (Just(precision), 0..=precision.min(30))
            .prop_map(|(precision, scale)| ColumnType::Decimal(precision, scale))
    });
    prop_oneof![
        bits().prop_map(ColumnType::Int),
        bits().prop_map(ColumnType::Uint),
        decimal,
        prop::sample::select(vec![
            ColumnType::Float,
            ColumnType::Double,
            ColumnType::Bool,
            ColumnType::Text,
            ColumnType::Bytes,
            ColumnType::Date,
            ColumnType::Time,
            ColumnType::DateTime,
            ColumnType::Timestamp,
            ColumnType::Json,
        ]),
    ]
    .boxed()
}

/// Any value except NULL that a column of this type can hold.
pub(crate) fn any_value(kind: ColumnType) -> BoxedStrategy<Value> {
    match kind {
        ColumnType::Int(bits) => (any::<i64>(), 0..64u32)
            .prop_map(move |(number, small)| Value::Int(number >> small.max(64 - u32::from(bits))))
            .boxed(),
        ColumnType::Uint(bits) => (any::<u64>(), 0..64u32)
            .prop_map(move |(number, small)| Value::Uint(number >> small.max(64 - u32::from(bits))))
            .boxed(),
        ColumnType::Float => any::<f32>()
            .prop_filter_map("too large", |number| single(number.into()).map(Value::Float))
            .boxed(),
        ColumnType::Double => prop_oneof![any::<f64>(), (-4..4i8).prop_map(f64::from)]
            .prop_map(|number| Value::Float(number + 0.0))
            .boxed(),
        ColumnType::Decimal(precision, scale) => any_decimal(precision, scale),
        ColumnType::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        ColumnType::Text => text().prop_map(|text| Value::Text(text.into())).boxed(),
        ColumnType::Bytes => {
            prop::collection::vec(prop_oneof![Just(0), Just(255), any::<u8>()], 0..6)
                .prop_map(|bytes| Value::Bytes(bytes.into()))
                .boxed()
        }
        ColumnType::Date => any_date().prop_map(Value::Date).boxed(),
        ColumnType::Time => (-TIME_LIMIT_MICROS..=TIME_LIMIT_MICROS).prop_map(Value::Time).boxed(),
        ColumnType::DateTime => (any_date(), 0..86_400_000_000u64)
            .prop_map(|(date, micros)| Value::DateTime(DateTime { date, micros }))
            .boxed(),
        ColumnType::Timestamp => TIMESTAMP_RANGE_MICROS.prop_map(Value::Timestamp).boxed(),
        ColumnType::Json => text()
            .prop_map(|text| Value::Json(serde_json::to_string(&text).unwrap().into()))
            .boxed(),
    }
}

/// A type and `count` values of it, some of them NULL.
pub(crate) fn typed_values(count: usize) -> BoxedStrategy<(ColumnType, Vec<Value>)> {
    any_kind()
        .prop_flat_map(move |kind| (Just(kind), prop::collection::vec(nullable(kind), count)))
        .boxed()
}

/// The types of a table and `count` rows of it.
pub(crate) fn table_rows(count: usize) -> BoxedStrategy<(Vec<ColumnType>, Vec<Row>)> {
    prop::collection::vec(any_kind(), 1..20)
        .prop_flat_map(move |kinds| {
            let row: Vec<_> = kinds.iter().map(|&kind| nullable(kind)).collect();
            (Just(kinds), prop::collection::vec(row, count))
        })
        .boxed()
}

/// The types of a key, and two keys, which often share parts.
pub(crate) fn key_values() -> BoxedStrategy<(Vec<ColumnType>, Row, Row)> {
    prop::collection::vec(any_kind(), 1..4)
        .prop_flat_map(|kinds| {
            let row: Vec<_> = kinds.iter().map(|&kind| any_value(kind)).collect();
            (Just(kinds), row.clone(), row, any::<Index>())
        })
        .prop_map(|(kinds, a, mut b, shared)| {
            let shared = shared.index(kinds.len() + 1).saturating_sub(1);
            b[..shared].clone_from_slice(&a[..shared]);
            (kinds, a, b)
        })
        .boxed()
}

fn nullable(kind: ColumnType) -> BoxedStrategy<Value> {
    prop_oneof![1 => Just(Value::Null), 7 => any_value(kind)].boxed()
}

fn text() -> BoxedStrategy<String> {
    prop_oneof!["[ab\0\u{1}]{0,5}", ".{0,8}"].boxed()
}

fn any_date() -> BoxedStrategy<Date> {
    (0..=9999u16, 0..=12u8, 0..=31u8)
        .prop_map(|(year, month, day)| Date { year, month, day })
        .boxed()
}

fn any_decimal(precision: u8, scale: u8) -> BoxedStrategy<Value> {
    (any::<bool>(), prop::collection::vec(0..10u8, 1..=usize::from(precision)))
        .prop_map(move |(negative, digits)| {
            let sign = if negative { "-" } else { "" };
            let digits: String = digits.iter().map(|digit| char::from(b'0' + digit)).collect();
            let text = format!("{sign}{digits}e-{scale}");
            Value::Decimal(Decimal::parse(&text, precision, scale).unwrap())
        })
        .boxed()
}
