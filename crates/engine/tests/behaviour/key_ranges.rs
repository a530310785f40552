//! Conditions on parts of a composite key give what reading every row gives.

use std::sync::Arc;

use remora_engine::{
    Change, ChangeBatch, ColumnDef, ColumnType, Comparison, Database, Filter, Literal, Scan,
    ScanRequest, Schema, Selection, TableChanges, Value,
};

use crate::common::*;

const LINES: &str = "lines";
/// The parts of the key, whether each is unsigned, and one more column.
const COLUMNS: [(&str, bool); 4] = [("w", false), ("d", true), ("o", false), ("amount", false)];

type Line = [i64; 4];
type Test = Box<dyn Fn(&Line) -> bool>;

fn schema() -> Schema {
    let column = |(id, (name, unsigned)): (u32, (&str, bool))| ColumnDef {
        id,
        name: name.to_owned(),
        kind: if unsigned { ColumnType::Uint(8) } else { ColumnType::Int(32) },
        nullable: false,
        indexed: true,
        declared: None,
    };
    Schema {
        name: LINES.to_owned(),
        columns: (1..).zip(COLUMNS).map(column).collect(),
        primary_key: vec![0, 1, 2],
        texts: Vec::new(),
        required: None,
        indexes: Vec::new(),
        synonyms: Vec::new(),
        words: None,
        paths: Vec::new(),
        declared: None,
    }
}

fn value(column: usize, number: i64) -> Value {
    match COLUMNS[column].1 {
        true => Value::Uint(number as u64),
        false => Value::Int(number),
    }
}

fn apply_lines(database: &Database, lines: &[Line], is_put: bool) {
    let row = |line: &Line| (0..4).map(|column| value(column, line[column])).collect::<Vec<_>>();
    let change = |line: &Line| match is_put {
        true => Change::Put(row(line)),
        false => Change::Delete(row(line).into_iter().take(3).collect()),
    };
    let changes = lines.iter().map(change).collect();
    let tables = vec![TableChanges { table: Arc::from(LINES), changes }];
    database.apply(ChangeBatch { tables, positions: Vec::new() }).unwrap();
}

/// A condition on a column, and what it means.
fn condition(random: &mut Random, column: usize) -> (Filter, Test) {
    let name = COLUMNS[column].0.to_owned();
    let bound = [4, 12, 60, 9][column];
    let mut number = || random.below(bound) as i64 - i64::from(column != 1 && bound < 50);
    let (a, b) = (number(), number());
    let literal = |number| Literal::Value(value(column, number));
    let compare = |comparison| Filter::Compare {
        column: COLUMNS[column].0.to_owned(),
        comparison,
        literal: literal(a),
    };
    match random.below(7) {
        0..3 => (compare(Comparison::Equal), Box::new(move |line| line[column] == a)),
        3 => (compare(Comparison::Greater), Box::new(move |line| line[column] > a)),
        4 => (compare(Comparison::LessOrEqual), Box::new(move |line| line[column] <= a)),
        5 => {
            let (low, high) = (a.min(b), a.max(b));
            let filter = Filter::Between(name, literal(low), literal(high));
            (filter, Box::new(move |line| (low..=high).contains(&line[column])))
        }
        _ => {
            let filter = Filter::In(name, vec![literal(a), literal(b)]);
            (filter, Box::new(move |line| line[column] == a || line[column] == b))
        }
    }
}

fn request(filter: Option<Filter>) -> ScanRequest {
    ScanRequest {
        table: LINES.to_owned(),
        filter,
        columns: vec![0, 1, 2, 3],
        batch_rows: 1_000,
        in_key_order: true,
        ..ScanRequest::default()
    }
}

fn scanned(database: &Database, filter: Filter) -> Vec<Line> {
    lines_of(database.reader().scan(request(Some(filter))).unwrap())
}

fn lines_of(scan: Scan) -> Vec<Line> {
    let mut lines = Vec::new();
    for batch in scan {
        let batch = batch.unwrap();
        let number = |row: usize, column: usize| match batch.columns[column].value(row) {
            Value::Int(number) => number,
            Value::Uint(number) => number as i64,
            other => panic!("no number: {other:?}"),
        };
        lines.extend((0..batch.rows).map(|row| [0, 1, 2, 3].map(|column| number(row, column))));
    }
    lines
}

#[test]
fn conditions_on_key_parts_match_a_scan() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path(), quick()).unwrap();
    database.create_table(schema()).unwrap();
    let mut random = Random::seeded();
    let mut lines: Vec<Line> = Vec::new();
    for (w, d) in (-1..3).flat_map(|w| (0..12).map(move |d| (w, d))) {
        lines.extend((0..60).map(|o| [w, d, o, random.below(9) as i64]));
    }
    // One large segment, gaps in it, and small ones beside it.
    apply_lines(&database, &lines, true);
    let gone: Vec<Line> = lines.iter().copied().filter(|_| random.below(10) == 0).collect();
    apply_lines(&database, &gone, false);
    lines.retain(|line| !gone.contains(line));
    let changed: Vec<usize> = (0..200).map(|_| random.below(lines.len() as u64) as usize).collect();
    for part in changed.chunks(70) {
        part.iter().for_each(|&at| lines[at][3] = 8 - lines[at][3]);
        let put: Vec<Line> = part.iter().map(|&at| lines[at]).collect();
        apply_lines(&database, &put, true);
    }
    let mut few = 0;
    for _ in 0..3_000 {
        let columns = (0..4).filter(|_| random.below(3) > 0);
        let columns: Vec<usize> = columns.collect();
        let (filters, tests): (Vec<_>, Vec<_>) =
            columns.into_iter().map(|column| condition(&mut random, column)).unzip();
        if filters.is_empty() {
            continue;
        }
        // Some are joined by OR, of which each narrows by what it can.
        let any = random.below(3) == 0;
        let filter = if any { Filter::Or(filters) } else { Filter::And(filters) };
        let holds = |line: &Line| match any {
            true => tests.iter().any(|test| test(line)),
            false => tests.iter().all(|test| test(line)),
        };
        let expected: Vec<Line> = lines.iter().copied().filter(holds).collect();
        assert_eq!(scanned(&database, filter.clone()), expected, "{filter:?}");
        let selection =
            Selection { table: LINES.to_owned(), filter: Some(filter), ..Selection::default() };
        assert_eq!(database.count(&selection).unwrap().count, expected.len() as u64);
        let most = random.below(400);
        let asked = request(selection.filter.clone());
        if let Some(scan) = database.reader().scan_within(asked, most).unwrap() {
            few += 1;
            assert!(expected.len() as u64 <= most, "{} rows of {most}", expected.len());
            assert_eq!(lines_of(scan), expected);
        }
    }
    assert!(few > 200, "only {few} looked at few");
    let all = ScanRequest { limit: Some(3), ..request(None) };
    let first = database.reader().scan_within(all, 100).unwrap().unwrap();
    assert_eq!(lines_of(first), lines[..3]);
    assert!(database.reader().scan_within(request(None), 100).unwrap().is_none());
}
