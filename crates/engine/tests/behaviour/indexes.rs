//! Searches along secondary indexes give what filtering and sorting every row gives.

use std::{
    cmp::Ordering,
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use remora_engine::{
    Change, ChangeBatch, ColumnDef, ColumnType, Comparison, Database, Definition, FacetRequest,
    Filter, IndexColumn, IndexDef, Literal, ScanRequest, Schema, SearchRequest, Selection, SortBy,
    SortKey, TableChanges, TextDef, TextQuery, Value, ValuesReply, ValuesRequest,
    register_text_key,
};

use crate::common::*;

const ORDERS: &str = "orders";
const COLUMNS: [&str; 4] = ["id", "status", "amount", "name"];

/// Key, a number of few values, one of many, a short text; `None` is NULL.
type Order = (i64, Option<i64>, i64, Option<String>);
type Test = Box<dyn Fn(&Order) -> bool>;
/// Whether a row is one of those that are asked for.
type Holds<'h> = &'h dyn Fn(&Order) -> bool;

fn index(columns: &[(usize, bool)]) -> IndexDef {
    let column = |&(column, descending): &(usize, bool)| IndexColumn {
        column,
        descending,
        order: None,
        prefix: None,
    };
    IndexDef { columns: columns.iter().map(column).collect() }
}

/// The number of the order without regard to case.
const FOLDED: u32 = 7;
/// The same, until it changes.
const CHANGED: u32 = 8;
static HAS_CHANGED: AtomicBool = AtomicBool::new(false);

/// The same index with its texts in that order.
fn folded(mut index: IndexDef) -> IndexDef {
    let texts = index.columns.iter_mut().filter(|part| part.column == 3);
    texts.for_each(|part| part.order = Some(FOLDED));
    index
}

fn schema(indexes: Vec<IndexDef>) -> Schema {
    register_text_key(|order, text, key| {
        let start = key.len();
        key.extend(text.to_ascii_lowercase());
        if order == CHANGED && HAS_CHANGED.load(Relaxed) {
            key[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    });
    let column = |id, kind, nullable| ColumnDef {
        id,
        name: COLUMNS[id as usize].to_owned(),
        kind,
        nullable,
        indexed: true,
        declared: None,
    };
    Schema {
        indexes,
        ..Schema::over(
            ORDERS,
            vec![
                column(0, ColumnType::Int(64), false),
                column(1, ColumnType::Int(8), true),
                column(2, ColumnType::Int(32), false),
                column(3, ColumnType::Text, true),
            ],
            vec![0],
        )
    }
}

fn all_indexes() -> Vec<IndexDef> {
    vec![
        index(&[(1, false)]),
        index(&[(2, false)]),
        index(&[(1, false), (2, true)]),
        index(&[(3, true), (1, false)]),
        index(&[(3, false), (2, false)]),
        folded(index(&[(3, false), (2, false)])),
        folded(index(&[(1, false), (3, true)])),
    ]
}

fn row((id, status, amount, name): &Order) -> Vec<Value> {
    let name = name.as_ref().map_or(Value::Null, |name| Value::Text(name.as_str().into()));
    vec![Value::Int(*id), status.map_or(Value::Null, Value::Int), Value::Int(*amount), name]
}

fn apply_orders(database: &Database, changes: Vec<Change>) {
    let tables = vec![TableChanges { table: Arc::from(ORDERS), changes }];
    database.apply(ChangeBatch { tables, positions: Vec::new() }).unwrap();
}

fn random_order(random: &mut Random, id: i64) -> Order {
    // Most rows have one status; the others are rare.
    let status = match random.below(20) {
        0 => None,
        1..4 => Some(random.below(6) as i64),
        _ => Some(7),
    };
    let name = (random.below(9) > 0).then(|| any_name(random, 60));
    (id, status, random.below(900) as i64, name)
}

fn value(order: &Order, column: usize) -> Value {
    row(order)[column].clone()
}

/// A name, of which some differ in case alone.
fn any_name(random: &mut Random, bound: u64) -> String {
    let name = if random.below(3) == 0 { "Name" } else { "name" };
    format!("{name} {}", random.below(bound))
}

/// A condition on names without regard to case.
fn folded_condition(kind: u64, (a, b): (Value, Value)) -> (Filter, Test) {
    let key = |value: &Value| match value {
        Value::Text(text) => text.to_ascii_lowercase().into_bytes(),
        other => panic!("no text: {other:?}"),
    };
    let begun = String::from_utf8(key(&a)).unwrap();
    let (a, b) = (key(&a).min(key(&b)), key(&a).max(key(&b)));
    let of = |order: &Order| order.3.as_ref().map(|name| name.to_ascii_lowercase().into_bytes());
    let name = COLUMNS[3].to_owned();
    match kind {
        0 => {
            let filter = Filter::KeyIn(name, FOLDED, vec![a.clone()]);
            (filter, Box::new(move |order| of(order).is_some_and(|key| key == a)))
        }
        1 => {
            let filter = Filter::KeyIn(name, FOLDED, vec![b.clone(), a.clone()]);
            (filter, Box::new(move |order| of(order).is_some_and(|key| key == a || key == b)))
        }
        2 => {
            // Of one digit, so that longer ones begin with it.
            let begun = begun[..begun.len().min(6)].to_uppercase();
            let filter = Filter::Begins(name, Some(FOLDED), begun.clone());
            let begun = begun.to_ascii_lowercase().into_bytes();
            (filter, Box::new(move |order| of(order).is_some_and(|key| key.starts_with(&begun))))
        }
        3 => {
            let filter = Filter::Begins(name, None, begun.clone());
            let begins = move |name: &String| name.starts_with(&begun);
            (filter, Box::new(move |order| order.3.as_ref().is_some_and(&begins)))
        }
        _ => {
            let (low, high) = (Bound::Excluded(a.clone()), Bound::Included(b.clone()));
            let filter = Filter::KeyWithin(name, FOLDED, low, high);
            (filter, Box::new(move |order| of(order).is_some_and(|key| key > a && key <= b)))
        }
    }
}

/// A condition on a column, and what it means.
fn condition(random: &mut Random, column: usize) -> (Filter, Test) {
    let name = COLUMNS[column].to_owned();
    let literal = |random: &mut Random| match column {
        0 => Value::Int(random.below(8_000) as i64),
        1 => Value::Int(random.below(9) as i64),
        2 => Value::Int(random.below(920) as i64 - 10),
        _ => Value::Text(any_name(random, 62).into()),
    };
    let (a, b) = (literal(random), literal(random));
    if column == 3 && random.below(2) == 0 {
        return folded_condition(random.below(5), (a, b));
    }
    let compare = |comparison, literal: &Value| Filter::Compare {
        column: COLUMNS[column].to_owned(),
        comparison,
        literal: Literal::Value(literal.clone()),
    };
    let is = move |order: &Order, test: &dyn Fn(Ordering) -> bool, with: &Value| {
        let value = value(order, column);
        !value.is_null() && test(remora_engine::compare(&value, with))
    };
    match random.below(9) {
        0..4 => (
            compare(Comparison::Equal, &a),
            Box::new(move |order| is(order, &|ordering| ordering.is_eq(), &a)),
        ),
        4 => (
            compare(Comparison::Greater, &a),
            Box::new(move |order| is(order, &|ordering| ordering.is_gt(), &a)),
        ),
        5 => (
            compare(Comparison::LessOrEqual, &a),
            Box::new(move |order| is(order, &|ordering| ordering.is_le(), &a)),
        ),
        6 => {
            let (low, high) = if remora_engine::compare(&a, &b).is_le() { (a, b) } else { (b, a) };
            let between = (Literal::Value(low.clone()), Literal::Value(high.clone()));
            let test: Test = Box::new(move |order| {
                is(order, &|ordering| ordering.is_ge(), &low)
                    && is(order, &|ordering| ordering.is_le(), &high)
            });
            (Filter::Between(name, between.0, between.1), test)
        }
        7 => {
            let list = vec![Literal::Value(a.clone()), Literal::Value(b.clone())];
            let test: Test = Box::new(move |order| {
                is(order, &|ordering| ordering.is_eq(), &a)
                    || is(order, &|ordering| ordering.is_eq(), &b)
            });
            (Filter::In(name, list), test)
        }
        _ => (Filter::IsNull(name), Box::new(move |order| value(order, column).is_null())),
    }
}

fn sort(random: &mut Random) -> Vec<SortKey> {
    if random.below(6) == 0 {
        return vec![SortKey { by: SortBy::Key, descending: random.below(2) == 0 }];
    }
    let shapes: [&[usize]; 6] = [&[2], &[1, 2], &[3, 1], &[3, 2], &[1], &[2, 1]];
    let columns = shapes[random.below(6) as usize];
    let descending = random.below(2) == 0;
    let folded = random.below(2) == 0;
    let key = |&column: &usize| SortKey {
        by: match column == 3 && folded {
            true => SortBy::TextKey(COLUMNS[3].to_owned(), FOLDED),
            false => SortBy::Column(COLUMNS[column].to_owned()),
        },
        // Mixed directions too, which some indexes have.
        descending: descending != (column == 2 && columns.len() > 1),
    };
    let mut keys: Vec<SortKey> = columns.iter().map(key).collect();
    if random.below(3) > 0 {
        keys.push(SortKey { by: SortBy::Key, descending: random.below(2) == 0 });
    }
    keys
}

fn compare_by(keys: &[SortKey], a: &Order, b: &Order) -> Ordering {
    let directed = |ordering: Ordering, descending| match descending {
        true => ordering.reverse(),
        false => ordering,
    };
    for key in keys {
        let column = match &key.by {
            SortBy::Column(name) | SortBy::TextKey(name, _) => {
                COLUMNS.iter().position(|other| other == name).unwrap()
            }
            _ => 0,
        };
        let folded = |value: Value| match (value, &key.by) {
            (Value::Text(text), SortBy::TextKey(..)) => {
                Value::Text(text.to_ascii_lowercase().into())
            }
            (value, _) => value,
        };
        let (a, b) = (folded(value(a, column)), folded(value(b, column)));
        let ordering = match (a.is_null(), b.is_null()) {
            (false, false) => remora_engine::compare(&a, &b),
            (a, b) => b.cmp(&a),
        };
        if ordering.is_ne() {
            return directed(ordering, key.descending);
        }
    }
    directed(a.0.cmp(&b.0), keys.last().is_none_or(|key| key.descending))
}

/// Asks for pages of random searches, behind cursors too, and compares them with the rows.
fn compare(database: &Database, random: &mut Random, orders: &[Order], times: usize) {
    for _ in 0..times {
        let mut is_asked = |column: &usize| random.below(if *column == 0 { 6 } else { 2 }) == 0;
        let mut columns: Vec<usize> = (0..4).filter(&mut is_asked).collect();
        if random.below(4) == 0 {
            // Several conditions on one column.
            columns = vec![1 + random.below(3) as usize; 2 + random.below(2) as usize];
        }
        let only = columns.first().copied().filter(|first| columns.iter().all(|it| it == first));
        let (filters, tests): (Vec<_>, Vec<_>) =
            columns.into_iter().map(|column| condition(random, column)).unzip();
        let any = !filters.is_empty() && random.below(3) == 0;
        let joined = if any { Filter::Or(filters.clone()) } else { Filter::And(filters.clone()) };
        let filter = (!filters.is_empty()).then_some(joined);
        let keys = sort(random);
        let holds = |order: &&Order| match any {
            true => tests.iter().any(|test| test(order)),
            false => tests.iter().all(|test| test(order)),
        };
        let mut expected: Vec<&Order> = orders.iter().filter(holds).collect();
        expected.sort_by(|a, b| compare_by(&keys, a, b));
        let selection = Selection { table: ORDERS.to_owned(), filter, ..Selection::default() };
        let total = expected.len() as u64;
        assert_eq!(database.count(&selection).unwrap().count, total, "{selection:?}");
        let facet = only
            .filter(|column| *column > 0)
            .or_else(|| Some(1).filter(|_| selection.filter.is_none()));
        facet.iter().for_each(|column| compare_values(database, &selection, *column, &expected));
        compare_values_in_order(database, random, &selection, &expected);
        let mut request = SearchRequest {
            selection,
            sort: keys,
            limit: 1 + random.below(40) as usize,
            offset: match random.below(4) {
                3 => 1_000 + random.below(9_000) as usize,
                few => few as usize * 7,
            },
            fields: vec![COLUMNS[0].to_owned()],
            ..SearchRequest::default()
        };
        let mut at = request.offset;
        let page = expected.iter().skip(at).take(request.limit).map(|order| order.0);
        let page: Vec<i64> = page.collect();
        if let Some(hits) = database.reader().first_page(&request).unwrap() {
            let ids: Vec<i64> = hits.iter().map(|hit| id_of(&hit.fields)).collect();
            assert_eq!(ids, page, "{request:?}");
        }
        for _ in 0..3 {
            let reply = database.search(&request).unwrap();
            let ids: Vec<i64> = reply.hits.iter().map(|hit| id_of(&hit.key)).collect();
            let wanted = expected.iter().skip(at).take(request.limit).map(|order| order.0);
            assert_eq!(ids, wanted.collect::<Vec<_>>(), "{request:?}");
            assert_eq!(reply.total, total);
            at += ids.len();
            request.offset = 0;
            request.after = reply.cursor;
            if request.after.is_none() {
                break;
            }
        }
    }
}

/// Compares the different values of a column with those that rows have.
fn compare_values(database: &Database, selection: &Selection, column: usize, rows: &[&Order]) {
    let (selection, column_name) = (selection.clone(), COLUMNS[column].to_owned());
    let (limit, values_only) = (usize::MAX, true);
    let request =
        FacetRequest { selection, column: column_name, limit, values_only, ..Default::default() };
    let reply = database.facet(&request).unwrap();
    assert_eq!(reply.matched, rows.len() as u64, "{request:?}");
    let found = reply.values.into_iter();
    let mut found: Vec<String> = found.map(|(value, _)| format!("{value:?}")).collect();
    let mut wanted: Vec<String> =
        rows.iter().map(|order| format!("{:?}", value(order, column))).collect();
    found.sort();
    wanted.sort();
    wanted.dedup();
    assert_eq!(found, wanted, "{request:?}");
}

/// Compares the first values along an index with those that rows have, where an index has them.
fn compare_values_in_order(
    database: &Database,
    random: &mut Random,
    selection: &Selection,
    rows: &[&Order],
) {
    let shapes: [&[usize]; 6] = [&[1], &[2], &[3], &[3, 2], &[1, 2], &[3, 2]];
    let columns = shapes[random.below(6) as usize];
    let is_folded = random.below(2) == 0;
    let named = |&column: &usize| {
        (COLUMNS[column].to_owned(), (column == 3 && is_folded).then_some(FOLDED))
    };
    let ends = if columns.len() == 1 { random.below(3) } else { 0 };
    let request = ValuesRequest {
        selection: selection.clone(),
        columns: columns.iter().map(named).collect(),
        descending: random.below(2) == 0,
        limit: match random.below(4) {
            0 => usize::MAX,
            _ => random.below(90) as usize,
        },
        values_only: random.below(2) == 0,
        ends: (0..ends).map(|_| any_end(random, columns[0])).collect(),
    };
    if let Some(reply) = database.reader().values_in_order(&request).unwrap() {
        compare_first_values(&request, reply, rows, columns);
    }
}

/// One end of a column that some index has behind another.
fn any_end(random: &mut Random, column: usize) -> (String, bool) {
    let behind = match (column, random.below(2)) {
        (1, 0) | (3, 1) => 2,
        (1, _) => 3,
        _ => 1,
    };
    (COLUMNS[behind].to_owned(), random.below(2) == 0)
}

/// What a row is sorted by, its values of the columns, and the row.
type Keyed = (Vec<Value>, Vec<Value>, Vec<Value>);

/// Compares an answer with what is counted of rows.
fn compare_first_values(
    request: &ValuesRequest,
    reply: ValuesReply,
    rows: &[&Order],
    columns: &[usize],
) {
    let key = |order: &Order, place: usize| match (
        value(order, columns[place]),
        request.columns[place].1,
    ) {
        (Value::Text(text), Some(_)) => Value::Text(text.to_ascii_lowercase().into()),
        (value, _) => value,
    };
    let keys = |order: &Order| (0..columns.len()).map(|place| key(order, place)).collect();
    let compare_values = |(a, b): (&Value, &Value)| match (a.is_null(), b.is_null()) {
        (false, false) => remora_engine::compare(a, b),
        (a, b) => b.cmp(&a),
    };
    let in_order = |a: &[Value], b: &[Value]| {
        a.iter().zip(b).map(compare_values).find(|it| it.is_ne()).unwrap_or(Ordering::Equal)
    };
    let values = |order: &Order| columns.iter().map(|column| value(order, *column)).collect();
    let mut all: Vec<Keyed> =
        rows.iter().map(|order| (keys(order), values(order), row(order))).collect();
    all.sort_by(|a, b| in_order(&a.0, &b.0));
    if request.descending {
        all.reverse();
    }
    let groups = all.chunk_by(|a, b| in_order(&a.0, &b.0).is_eq()).take(request.limit);
    let groups: Vec<&[Keyed]> = groups.collect();
    assert_eq!(reply.values.len(), groups.len(), "{request:?}");
    for (found, group) in reply.values.into_iter().zip(groups) {
        // Texts that are one by their order are given where they are the same bytes alone.
        let is_one = group.iter().all(|(_, values, _)| *values == found.values);
        assert!(is_one, "{found:?} of {request:?}");
        match request.values_only {
            true => assert!(found.count > 0, "{request:?}"),
            false => assert_eq!(found.count, group.len() as u64, "{found:?} of {request:?}"),
        }
        let ends = request.ends.iter().map(|(name, greatest)| {
            let column = COLUMNS.iter().position(|column| column == name).unwrap();
            let values = group.iter().map(|(.., row)| row[column].clone());
            let mut values: Vec<Value> = values.filter(|value| !value.is_null()).collect();
            values.sort_by(remora_engine::compare);
            let end = if *greatest { values.last() } else { values.first() };
            end.cloned().unwrap_or(Value::Null)
        });
        assert_eq!(found.ends, ends.collect::<Vec<_>>(), "{request:?}");
    }
}

/// Deletes all rows of one status: its value is still among those of the segments.
fn forget(database: &Database, orders: &mut Vec<Order>, status: i64) {
    let gone = orders.extract_if(.., |order| order.1 == Some(status));
    let gone: Vec<Change> = gone.map(|order| Change::Delete(vec![Value::Int(order.0)])).collect();
    assert!(!gone.is_empty());
    apply_orders(database, gone);
    let all = Selection { table: ORDERS.to_owned(), ..Selection::default() };
    compare_values(database, &all, 1, &orders.iter().collect::<Vec<_>>());
}

/// Asks for pages that begin behind a row of the page before, as applications do.
fn compare_next_pages(database: &Database, random: &mut Random, orders: &[Order], times: usize) {
    for _ in 0..times {
        let descending = random.below(2) == 0;
        let last = &orders[random.below(orders.len() as u64) as usize];
        let beyond = if descending { Comparison::Less } else { Comparison::Greater };
        let compare = |column: usize, comparison| Filter::Compare {
            column: COLUMNS[column].to_owned(),
            comparison,
            literal: Literal::Value(value(last, column)),
        };
        let equal = vec![compare(2, Comparison::Equal), compare(0, beyond)];
        let filter = Some(Filter::Or(vec![compare(2, beyond), Filter::And(equal)]));
        let selection = Selection { table: ORDERS.to_owned(), filter, ..Selection::default() };
        let by = [SortBy::Column(COLUMNS[2].to_owned()), SortBy::Key];
        let sort = by.map(|by| SortKey { by, descending }).to_vec();
        let fields = vec![COLUMNS[0].to_owned()];
        let request =
            SearchRequest { selection, sort, limit: 20, fields, ..SearchRequest::default() };
        let mut wanted: Vec<(i64, i64)> = orders.iter().map(|it| (it.2, it.0)).collect();
        wanted.sort_unstable();
        if descending {
            wanted.reverse();
        }
        let place = wanted.iter().position(|it| *it == (last.2, last.0)).unwrap();
        let wanted: Vec<i64> = wanted[place + 1..].iter().take(20).map(|it| it.1).collect();
        let hits = database.reader().first_page(&request).unwrap();
        // The end of the index is not worth a walk to some conditions, but these say where it begins.
        let hits = hits.expect("the page is read along the index");
        let ids: Vec<i64> = hits.iter().map(|hit| id_of(&hit.fields)).collect();
        assert_eq!(ids, wanted, "{request:?}");
    }
}

/// Changes a part of the rows and deletes some, in small batches.
fn change(database: &Database, random: &mut Random, orders: &mut Vec<Order>) {
    for _ in 0..4 {
        let mut changes = Vec::new();
        for _ in 0..150 {
            let at = random.below(orders.len() as u64) as usize;
            if random.below(3) == 0 {
                let (id, ..) = orders.swap_remove(at);
                changes.push(Change::Delete(vec![Value::Int(id)]));
            } else {
                orders[at] = random_order(random, orders[at].0);
                changes.push(Change::Put(row(&orders[at])));
            }
        }
        apply_orders(database, changes);
    }
}

fn filled(database: &Database, random: &mut Random, indexes: Vec<IndexDef>) -> Vec<Order> {
    database.create_table(schema(indexes)).unwrap();
    let orders: Vec<Order> = (0..9_000).map(|id| random_order(random, id)).collect();
    apply_orders(database, orders.iter().map(|order| Change::Put(row(order))).collect());
    orders
}

#[test]
fn index_order_searches_equal_a_sort() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::seeded();
    let database = Database::open(directory.path(), quick()).unwrap();
    let mut orders = filled(&database, &mut random, all_indexes());
    compare(&database, &mut random, &orders, 300);
    compare_next_pages(&database, &mut random, &orders, 30);
    change(&database, &mut random, &mut orders);
    forget(&database, &mut orders, 3);
    compare(&database, &mut random, &orders, 300);
    compare_next_pages(&database, &mut random, &orders, 30);
    database.optimize(Some(ORDERS)).unwrap();
    compare(&database, &mut random, &orders, 150);
    drop(database);
    let database = Database::open(directory.path(), quick()).unwrap();
    compare(&database, &mut random, &orders, 150);
    database.close().unwrap();
    let report = Database::check(directory.path(), &mut |_| {}).unwrap();
    assert_eq!(report.problems, []);
}

#[test]
fn the_first_values_of_a_column_are_taken_from_an_index() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::seeded();
    let database = Database::open(directory.path(), quick()).unwrap();
    let mut orders = filled(&database, &mut random, all_indexes());
    for _ in 0..3 {
        let equal = Filter::Compare {
            column: COLUMNS[1].to_owned(),
            comparison: Comparison::Equal,
            literal: Literal::Value(Value::Int(2)),
        };
        let above = |column: usize| Filter::Compare {
            column: COLUMNS[column].to_owned(),
            comparison: Comparison::Greater,
            literal: Literal::Value(Value::Int(450)),
        };
        let every: Holds<'_> = &|_| true;
        // The conditions of an index's columns, and one of a column that none of them has.
        let asked: [(usize, Option<Filter>, Holds<'_>, bool); 5] = [
            (1, None, every, true),
            (2, None, every, true),
            (2, Some(above(2)), &|order| order.2 > 450, true),
            (2, Some(equal), &|order| order.1 == Some(2), true),
            (2, Some(above(0)), &|order| order.0 > 450, false),
        ];
        for (column, filter, holds, is_answered) in asked {
            let rows: Vec<&Order> = orders.iter().filter(|order| holds(order)).collect();
            for (descending, values_only) in [(false, false), (true, false), (true, true)] {
                let selection = Selection {
                    table: ORDERS.to_owned(),
                    filter: filter.clone(),
                    ..Selection::default()
                };
                let request = ValuesRequest {
                    selection,
                    columns: vec![(COLUMNS[column].to_owned(), None)],
                    descending,
                    limit: 12,
                    values_only,
                    ends: Vec::new(),
                };
                let reply = database.reader().values_in_order(&request).unwrap();
                assert_eq!(reply.is_some(), is_answered, "{request:?}");
                if let Some(reply) = reply {
                    compare_first_values(&request, reply, &rows, &[column]);
                }
            }
        }
        // All values, with the ends of the index's next column.
        let request = ValuesRequest {
            selection: Selection { table: ORDERS.to_owned(), ..Selection::default() },
            columns: vec![(COLUMNS[1].to_owned(), None)],
            limit: usize::MAX,
            ends: vec![(COLUMNS[2].to_owned(), false), (COLUMNS[2].to_owned(), true)],
            ..ValuesRequest::default()
        };
        let reply = database.reader().values_in_order(&request).unwrap().unwrap();
        compare_first_values(&request, reply, &orders.iter().collect::<Vec<_>>(), &[1]);
        // Combinations of the values of two columns.
        let columns = [3, 2].map(|column| (COLUMNS[column].to_owned(), None)).to_vec();
        let request = ValuesRequest { columns, limit: 40, ends: Vec::new(), ..request };
        let reply = database.reader().values_in_order(&request).unwrap().unwrap();
        compare_first_values(&request, reply, &orders.iter().collect::<Vec<_>>(), &[3, 2]);
        change(&database, &mut random, &mut orders);
    }
}

/// An update leaves a deleted row in a segment, and the page behind an OFFSET is still found without reading the rows
/// before it.
#[test]
fn a_far_page_is_found_in_segments_with_deleted_rows() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::seeded();
    let database = Database::open(directory.path(), quick()).unwrap();
    let mut orders = filled(&database, &mut random, vec![index(&[(2, false)])]);
    let more: Vec<Order> = (9_000..24_000).map(|id| random_order(&mut random, id)).collect();
    apply_orders(&database, more.iter().map(|order| Change::Put(row(order))).collect());
    orders.extend(more);
    let above = |amount: i64| Filter::Compare {
        column: COLUMNS[2].to_owned(),
        comparison: Comparison::Greater,
        literal: Literal::Value(Value::Int(amount)),
    };
    for _ in 0..4 {
        for (by, amount) in [(Some(2), None), (Some(2), Some(100)), (None, None)] {
            for (descending, offset) in [(false, 15_000), (true, 12_345), (true, usize::MAX)] {
                let by = match by {
                    Some(column) => SortBy::Column(COLUMNS[column].to_owned()),
                    None => SortBy::Key,
                };
                let request = SearchRequest {
                    selection: Selection {
                        table: ORDERS.to_owned(),
                        filter: amount.map(above),
                        ..Selection::default()
                    },
                    sort: vec![SortKey { by, descending }],
                    limit: 7,
                    offset,
                    fields: vec![COLUMNS[0].to_owned()],
                    ..SearchRequest::default()
                };
                let holds = |order: &&Order| amount.is_none_or(|amount| order.2 > amount);
                let mut wanted: Vec<&Order> = orders.iter().filter(holds).collect();
                wanted.sort_by(|a, b| compare_by(&request.sort, a, b));
                let wanted = wanted.iter().skip(offset).take(7).map(|order| order.0);
                let wanted: Vec<i64> = wanted.collect();
                let hits = database.reader().first_page(&request).unwrap();
                let hits = hits.expect("the page is found along the order");
                let ids: Vec<i64> = hits.iter().map(|hit| id_of(&hit.fields)).collect();
                assert_eq!(ids, wanted, "{request:?}");
                let path = database.reader().first_access(&request).unwrap().unwrap();
                assert_eq!(path.examined as usize, wanted.len(), "{request:?}");
            }
        }
        change(&database, &mut random, &mut orders);
    }
}

#[test]
fn later_declared_index_is_built_in_the_background() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::seeded();
    let database = Database::open(directory.path(), quick()).unwrap();
    let mut orders = filled(&database, &mut random, Vec::new());
    let bytes = || database.statistics(ORDERS).unwrap().index_bytes;
    let before = bytes();
    let altered = Definition::Alter { schema: schema(all_indexes()), fills: Vec::new() };
    database.define(vec![altered], Vec::new()).unwrap();
    compare(&database, &mut random, &orders, 60);
    let made = |database: &Database| {
        let figures = database.statistics(ORDERS).unwrap();
        assert_eq!(figures.indexes.len(), all_indexes().len());
        assert_eq!(figures.indexes[2].columns, "status, amount DESC");
        assert!(figures.indexes.iter().all(|index| index.segments <= figures.segments));
        figures.indexes.iter().all(|index| index.rows == figures.rows)
    };
    wait_until(|| made(&database));
    // 14 bits for each of 9,000 rows and six indexes, one is the beginning of another; and up to a byte for their fences.
    let grown = bytes() - before;
    assert!((6 * 9_000 * 14 / 8..6 * 9_000 * 22 / 8).contains(&grown), "{grown}");
    change(&database, &mut random, &mut orders);
    compare(&database, &mut random, &orders, 150);
    let dropped = Definition::Alter { schema: schema(Vec::new()), fills: Vec::new() };
    database.define(vec![dropped], Vec::new()).unwrap();
    compare(&database, &mut random, &orders, 60);
    database.optimize(Some(ORDERS)).unwrap();
    assert!(bytes() < before + 5 * 9_000);
}

/// The columns of so small a segment are read sooner than so many values are looked up, but not if few rows may be read.
#[test]
fn many_values_are_found_within_a_row_read_limit() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::seeded();
    let database = Database::open(directory.path(), quick()).unwrap();
    let orders = filled(&database, &mut random, vec![index(&[(2, false)])]);
    let list = |column: usize, values: &dyn Fn(&Order) -> Value| {
        let listed = orders.iter().step_by(100).map(values).map(Literal::Value);
        Filter::In(COLUMNS[column].to_owned(), listed.collect())
    };
    let few = |filter: Filter, most: u64| {
        let request = ScanRequest {
            table: ORDERS.to_owned(),
            filter: Some(filter),
            columns: vec![0],
            batch_rows: 1_000,
            in_key_order: true,
            ..ScanRequest::default()
        };
        database.reader().scan_within(request, most).unwrap().map(|scan| scan.rows())
    };
    let amounts = || list(2, &|order| Value::Int(order.2));
    let wanted =
        orders.iter().filter(|order| orders.iter().step_by(100).any(|listed| listed.2 == order.2));
    let wanted = wanted.count() as u64;
    assert!(wanted > 300, "{wanted}");
    assert_eq!(few(amounts(), 8_192), Some(wanted));
    assert_eq!(few(amounts(), wanted - 1), None);
    assert_eq!(few(list(0, &|order| Value::Int(order.0)), 90), Some(90));
    assert_eq!(few(list(0, &|order| Value::Int(order.0)), 89), None);
    // No index helps with those.
    assert_eq!(few(list(1, &|order| Value::Int(order.1.unwrap_or(1))), 8_192), None);
}

/// An order of texts that is not the one by which a segment was sorted.
#[test]
fn an_index_in_another_order_than_its_column_is_found_and_rebuilt() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::seeded();
    let mut by_name = index(&[(3, false)]);
    by_name.columns[0].order = Some(CHANGED);
    let database = Database::open(directory.path(), quick()).unwrap();
    filled(&database, &mut random, vec![index(&[(2, false)]), by_name]);
    database.close().unwrap();
    let problems = || {
        let report = Database::check(directory.path(), &mut |_| {}).unwrap();
        report.problems.iter().map(ToString::to_string).collect::<Vec<String>>()
    };
    assert_eq!(problems(), Vec::<String>::new());
    HAS_CHANGED.store(true, Relaxed);
    let found = problems();
    assert!(
        found.iter().any(|problem| problem.contains("an index that is not in the order")),
        "{found:?}"
    );
    let repaired = Database::repair(directory.path(), &mut |_| {}).unwrap();
    assert_eq!(repaired.after.problems, []);
    assert_eq!(problems(), Vec::<String>::new());
}

#[test]
fn a_page_by_text_along_an_index_loses_no_rows() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path(), quick()).unwrap();
    let mut schema = schema(vec![index(&[(1, false), (2, false)])]);
    let normalization = Default::default();
    schema.texts.push(TextDef { id: 9, columns: vec![3], delimiter: None, normalization });
    database.create_table(schema).unwrap();
    // A tenth of the rows has status 3; the amounts are in another order than the keys.
    let status = |id: i64| if id % 10 == 0 { 3 } else { 1 };
    let orders =
        (0..4_000).map(|id| (id, Some(status(id)), id * 7 % 4_001, Some("a red wine".into())));
    let orders: Vec<Order> = orders.collect();
    apply_orders(&database, orders.iter().map(|order| Change::Put(row(order))).collect());
    let mut wanted: Vec<&Order> = orders.iter().filter(|order| order.1 == Some(3)).collect();
    wanted.sort_by_key(|order| order.2);
    for (offset, text) in [(0, "red"), (30, "red"), (100, "wine"), (390, "a red")] {
        let filter = Filter::Compare {
            column: COLUMNS[1].to_owned(),
            comparison: Comparison::Equal,
            literal: Literal::Value(Value::Int(3)),
        };
        let text = Some(TextQuery::Term(text.to_owned()));
        let table = ORDERS.to_owned();
        let request = SearchRequest {
            selection: Selection { table, text, filter: Some(filter), ..Selection::default() },
            sort: vec![SortKey { by: SortBy::Column(COLUMNS[2].to_owned()), descending: false }],
            limit: 20,
            offset,
            fields: vec![COLUMNS[0].to_owned()],
            ..SearchRequest::default()
        };
        let hits = database.reader().first_page(&request).unwrap().unwrap();
        let ids: Vec<i64> = hits.iter().map(|hit| id_of(&hit.fields)).collect();
        let page = wanted.iter().skip(offset).take(20).map(|order| order.0);
        assert_eq!(ids, page.collect::<Vec<_>>(), "{request:?}");
    }
}
