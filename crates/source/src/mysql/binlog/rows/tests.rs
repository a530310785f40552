//! Events recorded from real servers.

use remora_engine::{Date, DateTime, Decimal, Value, ZERO_TIMESTAMP_MICROS};
use remora_mysql::Charset;

use super::*;
use crate::mysql::schema::Range;
use crate::mysql::{
    binlog::FormatDescription,
    schema::{ColumnDefault, Generation, Labels, SourceColumn, SourceType, TextType},
};

const MARIADB_MAP: &str = "1e00000000000100017400026678000e090f01f60410fefe121113fefefc1309000c030402\
    01f701f801020301fe04ee9002fc3f";
const MARIADB_UPDATE: &str = "1e000000000001000eff3fff3f00c0fbffff01dcc87fed2978fc85cdcccc3d020102059\
    9b280a2cc1965e079f01ed27ffffece0261620200c3a9040093fa967b00c0faffff01dc007fed2978fc85cdcccc3d020\
    1020599b280a2cc190000000000007ffffece0261620200c3a9040093fa967b";
const MYSQL_MAP: &str = "7b00000000000100017400026678000e090f01f60410fefe121113fefefc1309000c03040201f7\
    01f801020301fe04ee9002fc3f0101400306083ffcff000d";
const MYSQL_INSERT: &str = "7b0000000000110002000effff0000fbffff01dcc87fed2978fc85cdcccc3d0201020599b2\
    80a2cc1965e079f01ed27ffffece0261620200c3a9040093fa967bfc3fffff7f0162";
const MYSQL_DELETE: &str = "7b0000000000110002000efffffc3fffff7f0162";
const JSON_MAP: &str = "790000000000010001740002666a000203f5010402010100";
/// `n` becomes a text, and the first element of `list` becomes 7.5.
const JSON_PARTIAL_UPDATE: &str = "7900000000001100020002ffff0001000000620000000003006100190001001a00040\
    01e0004000501000222000c2c006e6c6973747465787402000a0005010005020034736f6d65206c6f6e6765722074657874\
    2c20736f207468617420746865726520697320736f6d657468696e6720746f2073617665010100010000001c00000000092\
    42e6c6973745b305d070ff604020187050003242e6e030c0178";

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits: Vec<_> = hexadecimal.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn table(columns: &[(&str, SourceType)], key: &[usize]) -> SourceTable {
    let column = |(ordinal, (name, kind)): (usize, &(&str, SourceType))| SourceColumn {
        name: (*name).to_owned(),
        ordinal,
        kind: kind.clone(),
        range: Range::default(),
        nullable: true,
        generation: Generation::None,
        default: ColumnDefault::Null,
        collation: None,
        renamed_from: None,
    };
    SourceTable {
        database: "t".to_owned(),
        name: "fx".to_owned(),
        columns: columns.iter().enumerate().map(column).collect(),
        key: key.to_vec(),
        image_columns: columns.len(),
        unique_keys: Vec::new(),
        period_end: None,
        words: Default::default(),
    }
}

fn mixed() -> SourceTable {
    let text = |name: &str, length| TextType { charset: Charset::named(name).unwrap(), length };
    let labels = |labels: &[&str]| Labels {
        charset: Charset::UTF8MB4,
        labels: labels.iter().map(|&label| label.to_owned()).collect(),
    };
    let columns = [
        ("id", SourceType::Int { bits: 24, unsigned: false }),
        ("k", SourceType::VarChar(text("latin1", 9))),
        ("u", SourceType::Int { bits: 8, unsigned: true }),
        ("d", SourceType::Decimal { precision: 12, scale: 3 }),
        ("f", SourceType::Float),
        ("b", SourceType::Bit(10)),
        ("e", SourceType::Enum(labels(&["x", "yö"]))),
        ("s", SourceType::Set(labels(&["p", "q", "r"]))),
        ("dt", SourceType::DateTime(2)),
        ("ts", SourceType::Timestamp(3)),
        ("tm", SourceType::Time(1)),
        ("bi", SourceType::Binary(4)),
        ("c", SourceType::Char(text("utf8mb4", 100))),
        ("t", SourceType::Text(text("sjis", 65_535))),
    ];
    table(&columns, &[1, 0])
}

fn first_row() -> Row {
    let date = Date { year: 2024, month: 2, day: 0 };
    vec![
        Value::Int(-5),
        Value::Text("Ü".into()),
        Value::Uint(200),
        Value::Decimal(Decimal::from_canonical("-1234567.890").unwrap()),
        Value::Float(f64::from(0.1_f32)),
        Value::Uint(513),
        Value::Text("yö".into()),
        Value::Text("p,r".into()),
        Value::DateTime(DateTime { date, micros: 36_672_250_000 }),
        Value::Timestamp(1_709_210_096_789_000),
        Value::Time(-1_500_000),
        Value::Bytes(b"ab\0\0".as_slice().into()),
        Value::Text("é".into()),
        Value::Text("日本".into()),
    ]
}

fn second_row() -> Row {
    let mut row = vec![Value::Null; 14];
    row[0] = Value::Int(8_388_607);
    row[1] = Value::Text("b".into());
    row
}

fn changes(
    table: &SourceTable,
    map: &[u8],
    kind: RowsKind,
    version: RowsVersion,
    body: &[u8],
) -> Result<Vec<RowChange>> {
    let map = TableMap::parse(map, &FormatDescription::default())
        .map_err(|_| Error::Setting("damaged map".to_owned()))?;
    let mut changes = Vec::new();
    RowDecoder::new(table, &map)?.decode(kind, version, body, &mut |change| {
        changes.push(change);
        Ok(())
    })?;
    Ok(changes)
}

#[test]
fn rows_of_mysql_are_read() {
    let (map, insert) = (bytes(MYSQL_MAP), bytes(MYSQL_INSERT));
    let inserted = changes(&mixed(), &map, RowsKind::Insert, RowsVersion::V2, &insert).unwrap();
    assert_eq!(inserted, [RowChange::Insert(first_row()), RowChange::Insert(second_row())]);
    let delete = bytes(MYSQL_DELETE);
    let deleted = changes(&mixed(), &map, RowsKind::Delete, RowsVersion::V2, &delete).unwrap();
    assert_eq!(deleted, [RowChange::Delete(second_row())]);
}

#[test]
fn updates_of_mariadb_are_read() {
    let (map, update) = (bytes(MARIADB_MAP), bytes(MARIADB_UPDATE));
    let updated = changes(&mixed(), &map, RowsKind::Update, RowsVersion::V1, &update).unwrap();
    let mut after = first_row();
    after[0] = Value::Int(-6);
    after[2] = Value::Uint(0);
    after[9] = Value::Timestamp(ZERO_TIMESTAMP_MICROS);
    assert_eq!(updated, [RowChange::Update { before: first_row(), after }]);
}

#[test]
fn before_images_decode_only_needed_columns() {
    let map = TableMap::parse(&bytes(MARIADB_MAP), &FormatDescription::default()).unwrap();
    let mut decoder = RowDecoder::new(&mixed(), &map).unwrap();
    decoder.require_before_columns(&[2, 13]);
    let mut changes = Vec::new();
    let update = bytes(MARIADB_UPDATE);
    let visited = decoder.decode(RowsKind::Update, RowsVersion::V1, &update, &mut |change| {
        changes.push(change);
        Ok(())
    });
    visited.unwrap();
    let [RowChange::Update { before, after }] = &changes[..] else { panic!("{changes:?}") };
    for (place, (found, whole)) in before.iter().zip(first_row()).enumerate() {
        let is_read = [0, 1, 2, 13].contains(&place);
        assert_eq!(*found, if is_read { whole } else { Value::Null }, "{place}");
    }
    assert_eq!((&after[0], &after[13]), (&Value::Int(-6), &first_row()[13]));
}

#[test]
fn columns_are_reordered_and_extra_columns_dropped() {
    let mut narrow = mixed();
    narrow.columns =
        vec![narrow.columns[13].clone(), narrow.columns[1].clone(), narrow.columns[0].clone()];
    narrow.key = vec![1, 2];
    let (map, insert) = (bytes(MYSQL_MAP), bytes(MYSQL_INSERT));
    let inserted = changes(&narrow, &map, RowsKind::Insert, RowsVersion::V2, &insert).unwrap();
    let expected = vec![Value::Text("日本".into()), Value::Text("Ü".into()), Value::Int(-5)];
    assert_eq!(inserted[0], RowChange::Insert(expected));
}

#[test]
fn partial_updates_are_applied_to_the_document_before() {
    let documents = table(
        &[("id", SourceType::Int { bits: 32, unsigned: false }), ("v", SourceType::Json)],
        &[0],
    );
    let (map, update) = (bytes(JSON_MAP), bytes(JSON_PARTIAL_UPDATE));
    let updated =
        changes(&documents, &map, RowsKind::PartialUpdate, RowsVersion::V2, &update).unwrap();
    let row = |text: &str| vec![Value::Int(1), Value::Json(text.into())];
    let text = "\"text\": \"some longer text, so that there is something to save\"}";
    let before = row(&format!("{{\"n\": 1, \"list\": [1, 2], {text}"));
    let after = row(&format!("{{\"n\": \"x\", \"list\": [7.5, 2], {text}"));
    assert_eq!(updated, [RowChange::Update { before, after }]);
}

#[test]
fn mismatched_column_definition_is_named() {
    let refused = |change: &dyn Fn(&mut SourceTable)| {
        let mut table = mixed();
        change(&mut table);
        let (map, insert) = (bytes(MYSQL_MAP), bytes(MYSQL_INSERT));
        let error = changes(&table, &map, RowsKind::Insert, RowsVersion::V2, &insert).unwrap_err();
        error.to_string()
    };
    let column = |name: &str| format!("table t.fx is not followed: column {name:?} is of the type");
    let wider = SourceType::Int { bits: 32, unsigned: false };
    assert!(refused(&|table| table.columns[0].kind = wider.clone()).starts_with(&column("id")));
    let signed = SourceType::Int { bits: 8, unsigned: false };
    assert!(refused(&|table| table.columns[2].kind = signed.clone()).starts_with(&column("u")));
    assert!(
        refused(&|table| table.columns[8].kind = SourceType::DateTime(3))
            .starts_with(&column("dt"))
    );
    assert!(refused(&|table| table.image_columns = 15).contains("14 columns in the binlog and 15"));
    let collation = refused(&|table| table.columns[1].collation = Some(9));
    assert!(collation.contains("column \"k\" has the collation 8 in the binlog and 9"));
}

#[test]
fn incomplete_row_image_error_names_the_column() {
    // The first of two rows lacks its last column.
    let mut insert = bytes(MYSQL_INSERT);
    insert[12] = 0x1f;
    let map = bytes(MYSQL_MAP);
    let error = changes(&mixed(), &map, RowsKind::Insert, RowsVersion::V2, &insert).unwrap_err();
    assert!(error.to_string().contains("lacks column \"t\": set binlog_row_image=FULL"), "{error}");
}

#[test]
fn damage_is_an_error_or_another_value_but_no_panic() {
    let events = [
        (MYSQL_MAP, RowsKind::Insert, RowsVersion::V2, MYSQL_INSERT),
        (MARIADB_MAP, RowsKind::Update, RowsVersion::V1, MARIADB_UPDATE),
        (MYSQL_MAP, RowsKind::PartialUpdate, RowsVersion::V2, MYSQL_INSERT),
    ];
    for (map, kind, version, body) in events {
        let (map, body) = (bytes(map), bytes(body));
        for place in 0..body.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xfe, 0xff] {
                let mut damaged = body.clone();
                damaged[place] = byte;
                let _ = changes(&mixed(), &map, kind, version, &damaged);
            }
            let _ = changes(&mixed(), &map, kind, version, &body[..place]);
        }
        for place in 0..map.len() {
            for byte in 0..=255 {
                let mut damaged = map.clone();
                damaged[place] = byte;
                let _ = changes(&mixed(), &damaged, kind, version, &body);
            }
            let _ = changes(&mixed(), &map[..place], kind, version, &body);
        }
    }
    let documents = table(
        &[("id", SourceType::Int { bits: 32, unsigned: false }), ("v", SourceType::Json)],
        &[0],
    );
    let (map, body) = (bytes(JSON_MAP), bytes(JSON_PARTIAL_UPDATE));
    for place in 0..body.len() {
        for byte in 0..=255 {
            let mut damaged = body.clone();
            damaged[place] = byte;
            let _ = changes(&documents, &map, RowsKind::PartialUpdate, RowsVersion::V2, &damaged);
        }
    }
}

/// A table map that is not understood stops its table, not the stream.
#[test]
fn unknown_row_layout_stops_only_its_table() {
    let whole = bytes(MYSQL_MAP);
    let refusal = |map: &[u8]| {
        let insert = bytes(MYSQL_INSERT);
        let rows = changes(&mixed(), map, RowsKind::Insert, RowsVersion::V2, &insert);
        match rows {
            Err(Error::TableRefused { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    };
    // The list of collations names a column that does not exist.
    let mut foreign = whole.clone();
    foreign.extend([2, 3, 63, 99, 8]);
    assert!(refusal(&foreign).contains("is not understood"));
    assert!(refusal(&whole[..20]).contains("is not understood"));
    // A type that no server had when this was written.
    let mut unknown = whole.clone();
    let kinds = whole.windows(4).position(|kinds| kinds == [9, 15, 1, 246]);
    let kinds = kinds.or_else(|| whole.windows(3).position(|kinds| kinds == [9, 15, 1])).unwrap();
    unknown[kinds + 2] = 200;
    assert!(refusal(&unknown).contains("type 200"), "{}", refusal(&unknown));
}
