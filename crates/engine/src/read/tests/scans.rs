//! Scans and look-ups by key against plain rows.

use std::sync::Arc;

use proptest::prelude::*;

use super::{
    oracle::{Oracle, id},
    random::Random,
    table::{BM25, moment, schema, view},
};
use crate::{
    Filter, KeyValues, Row, ScanRequest, TextQuery, Value,
    read::{
        get::{get, get_many},
        scan::{Scan, ViewScan},
    },
    snapshot::TableView,
};

/// The rows that a scan gives, and whether each batch keeps to its size.
fn rows_of(view: &Arc<TableView>, request: ScanRequest) -> Vec<Row> {
    let most = request.batch_rows.max(1);
    read_all(ViewScan::new(Arc::clone(view), request, BM25, moment()).unwrap(), most)
}

fn read_all(scan: ViewScan, most: usize) -> Vec<Row> {
    let scan = Scan::from(scan);
    let announced = scan.rows();
    let mut rows = Vec::new();
    for batch in scan {
        let batch = batch.unwrap();
        assert!((1..=most).contains(&batch.rows));
        for row in 0..batch.rows {
            rows.push(batch.columns.iter().map(|column| column.value(row)).collect());
        }
    }
    assert_eq!(announced, rows.len() as u64);
    rows
}

fn request(random: &mut Random, rows: &[Row]) -> ScanRequest {
    let count = random.below(4);
    // Half of them ask only for what is indexed.
    let columns = if random.chance(50) { 4 } else { 6 };
    ScanRequest {
        table: "articles".to_owned(),
        text: random.chance(40).then(|| random.query(rows, 2)),
        filter: random.chance(40).then(|| random.filter(2)),
        columns: (0..count).map(|_| random.below(columns)).collect(),
        scores: Vec::new(),
        batch_rows: random.one(&[0, 1, 7, 100, 10_000]),
        batch_bytes: random.one(&[None, None, Some(0), Some(30), Some(300)]),
        in_key_order: random.chance(50),
        limit: random.chance(30).then(|| random.below(60) as u64),
        ..ScanRequest::default()
    }
}

fn check_scan(view: &Arc<TableView>, rows: &[Row], request: &ScanRequest) {
    let oracle = Oracle::new(&view.schema, rows);
    let mut expected = oracle.select(request.text.as_ref(), request.filter.as_ref());
    expected.sort_by_key(|row| id(row));
    // The key tells the rows apart.
    let mut with_key = request.clone();
    with_key.columns.push(0);
    let project = |row: &&Row| -> Row {
        with_key.columns.iter().map(|&column| row[column].clone()).collect()
    };
    let expected: Vec<Row> = expected.iter().map(project).collect();
    let few = ViewScan::few(Arc::clone(view), with_key.clone(), u64::MAX, moment().1).unwrap();
    let most = request.batch_rows.max(1);
    for found in [rows_of(view, with_key.clone()), read_all(few.unwrap(), most)] {
        check_rows(found, &expected, request);
    }
}

fn check_rows(mut found: Vec<Row>, expected: &[Row], request: &ScanRequest) {
    let limit = request.limit.map_or(usize::MAX, |limit| limit as usize);
    if request.in_key_order {
        assert_eq!(found, expected[..limit.min(expected.len())], "{request:?}");
        return;
    }
    assert_eq!(found.len(), expected.len().min(limit), "{request:?}");
    found.sort_by_key(|row| match row.last() {
        Some(Value::Int(id)) => *id,
        other => panic!("no key: {other:?}"),
    });
    let is_found = |row: &&Row| expected.contains(row);
    assert_eq!(found.iter().filter(is_found).count(), found.len(), "{request:?}");
    found.dedup();
    assert_eq!(found.len(), expected.len().min(limit), "a row came twice: {request:?}");
}

fn check_keys(view: &TableView, rows: &[Row], random: &mut Random) {
    let columns: Vec<usize> = (0..random.below(5)).map(|_| random.below(6)).collect();
    let count = random.one(&[0, 1, 2, 300]);
    let keys = (0..count).map(|_| match rows.is_empty() || random.chance(30) {
        true => 200_000 + random.below(1_000) as i64,
        false => id(&rows[random.below(rows.len())]),
    });
    let keys: Vec<KeyValues> = keys.map(|id| KeyValues::from_iter([Value::Int(id)])).collect();
    let mut found = vec![None; keys.len()];
    let mut visit = |place: usize, values: &mut Row| {
        assert!(found[place].replace(std::mem::take(values)).is_none(), "a key was visited twice");
        Ok(())
    };
    get_many(view, &keys, &columns, &mut visit).unwrap();
    for (key, found) in keys.iter().zip(found) {
        let row = rows.iter().find(|row| row[0] == key[0]);
        let project = |row: &Row| columns.iter().map(|&column| row[column].clone()).collect();
        let expected: Option<Row> = row.map(project);
        assert_eq!(found, expected, "{key:?}");
        assert_eq!(get(view, key, &columns).unwrap(), expected, "{key:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn scans_and_key_lookups_equal_the_rows(seed: u64) {
        let mut random = Random::new(seed);
        let mut schema = schema(random.chance(50));
        // The key's column may be in the keys alone.
        schema.columns[0].indexed = random.chance(70);
        let count = random.one(&[0, 3, 40, 700]);
        let rows = random.rows(count);
        let segments = 1 + random.below(7);
        let view = Arc::new(view(schema, random.spread(&rows, segments)));
        for _ in 0..12 {
            check_scan(&view, &rows, &request(&mut random, &rows));
            check_keys(&view, &rows, &mut random);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn scans_tell_the_score_of_each_row(seed: u64) {
        let mut random = Random::new(seed);
        let schema = schema(random.chance(50));
        let rows = random.rows(120);
        let segments = 1 + random.below(5);
        let view = Arc::new(view(schema, random.spread(&rows, segments)));
        let oracle = Oracle::new(&view.schema, &rows);
        for _ in 0..8 {
            let mut request = request(&mut random, &rows);
            request.columns = vec![0, super::table::BODY];
            request.scores = vec![random.query(&rows, 2), random.query(&rows, 1)];
            for found in rows_of(&view, request.clone()) {
                let row = rows.iter().find(|row| row[0] == found[0]).unwrap();
                for (query, score) in request.scores.iter().zip(&found[2..]) {
                    let holds = oracle.matches(query, row);
                    let expected = if holds { oracle.score(Some(query), row) } else { 0.0 };
                    let Value::Float(score) = score else { panic!("{score:?}") };
                    prop_assert!((score - expected).abs() < 1e-9, "{score} {expected} {query:?}");
                }
            }
        }
    }
}

#[test]
fn a_scan_of_few_rows_looks_at_no_more() {
    let mut random = Random::new(7);
    let rows = random.rows(100);
    let view = Arc::new(view(schema(false), random.spread(&rows, 3)));
    let few = |filter: Option<Filter>, columns: Vec<usize>, most| {
        let request = ScanRequest { filter, columns, batch_rows: 1_000, ..ScanRequest::default() };
        let scan = ViewScan::few(Arc::clone(&view), request, most, moment().1).unwrap()?;
        Some(read_all(scan, 1_000).len())
    };
    for columns in [vec![0], vec![0, super::table::BODY]] {
        assert_eq!(few(None, columns.clone(), 99), None);
        // Deleted documents are looked at too, but in the row store.
        assert_eq!(few(None, columns.clone(), 10_000), Some(100));
        // No row has one of no values, and none is looked at.
        for name in ["id", "number", "category"] {
            let none = || Filter::In(name.to_owned(), Vec::new());
            assert_eq!(few(Some(none()), columns.clone(), 0), Some(0), "{name}");
            let nobody = Filter::And(vec![none(), Filter::IsNull("number".to_owned())]);
            assert_eq!(few(Some(nobody), columns.clone(), 0), Some(0), "{name}");
        }
    }
}

#[test]
fn long_strings_end_a_batch_early() {
    let mut random = Random::new(5);
    let mut rows = random.rows(60);
    for row in &mut rows {
        row[super::table::BODY] = Value::Text("x".repeat(1 << 20).into());
    }
    let view = Arc::new(view(schema(false), random.spread(&rows, 2)));
    for text in [None, Some(TextQuery::Term("x".to_owned()))] {
        let columns = vec![super::table::BODY];
        let request = ScanRequest { text, columns, batch_rows: 1_000, ..ScanRequest::default() };
        let scan = ViewScan::new(Arc::clone(&view), request, BM25, moment()).unwrap();
        let sizes: Vec<usize> = scan.map(|batch| batch.unwrap().rows).collect();
        assert!(sizes.len() > 1, "{sizes:?}");
        assert_eq!(sizes.iter().sum::<usize>(), 60);
    }
}

#[test]
fn errors_name_what_is_wrong() {
    let view = Arc::new(view(schema(false), Vec::new()));
    let request = ScanRequest { columns: vec![6], ..ScanRequest::default() };
    let error =
        ViewScan::new(Arc::clone(&view), request, BM25, moment()).err().unwrap().to_string();
    assert!(error.contains("6 columns: there is no column 6"), "{error}");
    let key = [KeyValues::from_iter([Value::Int(1), Value::Int(2)])];
    assert!(get_many(&view, &key, &[], &mut |_, _| Ok(())).is_err());
    assert!(get(&view, &[Value::Null], &[]).is_err());
}
