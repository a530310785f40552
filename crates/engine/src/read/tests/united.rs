//! Several tables as one: every answer is that of one table with the same rows, of a key that several have the last's.

use std::{collections::BTreeMap, path::Path};

use proptest::prelude::*;

use super::{
    random::Random,
    ranked,
    searches::request,
    table::{BODY, TITLE},
};
use crate::{
    Change, ChangeBatch, ColumnDef, ColumnType, Database, Definition, Durability, Error,
    FacetRequest, HIDDEN_PREFIX, IndexColumn, Options, Reader, Row, ScanRequest, Schema,
    SearchRequest, TableChanges, Value, united_name,
};

const WHOLE: &str = "whole";
const DISTRIBUTED: &str = "distributed";

fn open(path: &Path) -> Database {
    let options = Options { durability: Durability::None, ..Options::default() };
    Database::open(path, options).unwrap()
}

fn part(number: usize) -> String {
    format!("part{number}")
}

fn create(database: &Database, schema: &Schema, name: &str) {
    database.create_table(Schema { name: name.to_owned(), ..schema.clone() }).unwrap();
}

fn apply(database: &Database, table: &str, changes: Vec<Change>) {
    let tables = vec![TableChanges { table: table.into(), changes }];
    database.apply(ChangeBatch { tables, positions: Vec::new() }).unwrap();
}

fn row(random: &mut Random, id: i64) -> Row {
    let mut row = random.row(id);
    row[TITLE] = Value::Text(ranked::text(random).into());
    row[BODY] = Value::Text(ranked::text(random).into());
    row
}

/// Parts, and one table that is to have what they have together.
struct Pair {
    database: Database,
    schema: Schema,
    parts: Vec<BTreeMap<i64, Row>>,
    whole: BTreeMap<i64, Row>,
}

impl Pair {
    fn new(database: Database, schema: Schema, count: usize) -> Self {
        for number in 0..count {
            create(&database, &schema, &part(number));
        }
        create(&database, &schema, WHOLE);
        let names = (0..count).map(part).collect();
        database.create_table(Schema::distributed(DISTRIBUTED, names)).unwrap();
        let parts = vec![BTreeMap::new(); count];
        Self { database, schema, parts, whole: BTreeMap::new() }
    }

    /// Changes some rows of some parts, and then what differs of the one table.
    fn change(&mut self, random: &mut Random) {
        for _ in 0..1 + random.below(12) {
            let at = random.below(self.parts.len());
            let mut changes = Vec::new();
            for _ in 0..random.below(40) {
                let id = random.below(150) as i64;
                if random.chance(25) {
                    self.parts[at].remove(&id);
                    changes.push(Change::Delete(vec![Value::Int(id)]));
                } else {
                    let row = row(random, id);
                    self.parts[at].insert(id, row.clone());
                    changes.push(Change::Put(row));
                }
            }
            apply(&self.database, &part(at), changes);
            if random.chance(10) {
                self.database.optimize(Some(&part(at))).unwrap();
            }
        }
        let mut merged = BTreeMap::new();
        self.parts.iter().for_each(|part| merged.extend(part.clone()));
        let gone = self.whole.keys().filter(|id| !merged.contains_key(id));
        let mut changes: Vec<Change> =
            gone.map(|id| Change::Delete(vec![Value::Int(*id)])).collect();
        let put = merged.iter().filter(|(id, row)| self.whole.get(id) != Some(row));
        changes.extend(put.map(|(_, row)| Change::Put(row.clone())));
        while !changes.is_empty() {
            let rest = changes.split_off(changes.len().min(1 + random.below(60)));
            apply(&self.database, WHOLE, std::mem::replace(&mut changes, rest));
        }
        self.whole = merged;
    }

    fn names(&self) -> [String; 2] {
        let parts: Vec<String> = (0..self.parts.len()).map(part).collect();
        [DISTRIBUTED.to_owned(), united_name(parts.iter().map(String::as_str))]
    }

    fn compare(&self, random: &mut Random) -> usize {
        let reader = self.database.reader();
        let rows: Vec<Row> = self.whole.values().cloned().collect();
        let mut found = 0;
        for name in self.names() {
            assert_eq!(reader.row_count(&name).unwrap(), rows.len() as u64);
            self.compare_rows(&reader, &name, &rows);
            for _ in 0..20 {
                let asked = match random.chance(75) {
                    true => ranked::request(random),
                    false => request(random, &rows),
                };
                found += compare_answers(&reader, &name, asked);
            }
        }
        found
    }

    /// All rows, in the order of keys and by their keys.
    fn compare_rows(&self, reader: &Reader, name: &str, expected: &[Row]) {
        let mut rows = Vec::new();
        let mut push = |row| {
            rows.push(row);
            Ok(())
        };
        self.database.scan(name, &mut push).unwrap();
        assert_eq!(rows, expected, "{name:?}");
        for id in (0..150).step_by(7) {
            let row = reader.get(name, &[Value::Int(id)]).unwrap();
            assert_eq!(row.as_ref(), self.whole.get(&id), "{name:?} {id}");
        }
        let words = |name: &str| {
            let mut words = Vec::new();
            let mut visit = |word: &str, rows| words.push((word.to_owned(), rows));
            reader.for_each_keyword(name, &mut visit).unwrap();
            words
        };
        assert_eq!(words(name), words(WHOLE));
        assert_eq!(self.schema.columns, reader.schema(name).unwrap().columns);
    }
}

/// How many rows a request finds, after it was asked of both in every way.
fn compare_answers(reader: &Reader, name: &str, mut asked: SearchRequest) -> usize {
    asked.fields = vec!["*".to_owned()];
    let of = |table: &str| {
        let mut asked = asked.clone();
        asked.selection.table = table.to_owned();
        asked
    };
    let (as_one, whole) = (of(name), of(WHOLE));
    let (mine, theirs) = (reader.search(&as_one), reader.search(&whole));
    let (Ok(mine), Ok(theirs)) = (&mine, &theirs) else {
        assert_eq!(mine.is_err(), theirs.is_err(), "{asked:?}");
        return 0;
    };
    assert_eq!((&mine.hits, mine.total), (&theirs.hits, theirs.total), "{asked:?}");
    let count = |asked: &SearchRequest| reader.count(&asked.selection).unwrap().count;
    assert_eq!(count(&as_one), count(&whole), "{asked:?}");
    let best = |asked| reader.best_page(asked).unwrap().map(|(hits, _)| hits);
    assert_eq!(best(&as_one), best(&whole), "{asked:?}");
    let facet = |asked: &SearchRequest| {
        let (selection, column) = (asked.selection.clone(), "category".to_owned());
        let request = FacetRequest { selection, column, limit: 100, ..FacetRequest::default() };
        reader.facet(&request).map(|reply| (reply.values, reply.distinct, reply.matched)).unwrap()
    };
    assert_eq!(facet(&as_one), facet(&whole), "{asked:?}");
    if let Some(crate::TextQuery::Keywords(query)) = &asked.selection.text {
        let report = |table| reader.keywords(table, query).unwrap();
        let (mine, theirs) = (report(name), report(WHOLE));
        assert_eq!(format!("{mine:?}"), format!("{theirs:?}"), "{asked:?}");
    }
    theirs.hits.len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn distributed_table_equals_one_table(seed: u64) {
        let mut random = Random::new(seed);
        let directory = tempfile::tempdir().unwrap();
        let schema = ranked::ranked_schema(&mut random);
        let count = random.one(&[1, 2, 3, 8]);
        let mut pair = Pair::new(open(directory.path()), schema, count);
        let mut found = 0;
        for _ in 0..4 {
            pair.change(&mut random);
            found += pair.compare(&mut random);
        }
        prop_assert!(found > 0, "nothing was found");
        // What is stored of it is read again.
        pair.database.close().unwrap();
        pair.database = open(directory.path());
        pair.compare(&mut random);
    }
}

fn refusal<T: std::fmt::Debug>(refused: Result<T, Error>) -> String {
    refused.unwrap_err().to_string()
}

#[test]
fn tables_with_different_columns_are_not_combined() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path());
    let mut random = Random::new(7);
    let schema = ranked::ranked_schema(&mut random);
    create(&database, &schema, "a");
    let mut other = schema.clone();
    other.columns[1].nullable = false;
    create(&database, &other, "b");
    let mut words = remora_words::settings::Settings::default();
    words.set("min_word_len", "2").unwrap();
    let fields = schema.words.clone().unwrap().columns;
    let words = crate::WordsDef::new(9, fields, &words, Vec::new()).unwrap();
    create(&database, &Schema { words: Some(words), ..schema.clone() }, "c");
    database.create_table(Schema::distributed(DISTRIBUTED, vec!["a".to_owned()])).unwrap();
    let count = |name: &str| database.reader().row_count(name);
    let of = |names: [&str; 2]| refusal(count(&united_name(names)));
    assert!(of(["a", "b"]).contains("column 2: \"number\" has another type"), "{}", of(["a", "b"]));
    assert!(of(["a", "c"]).contains("the settings of the words differ"), "{}", of(["a", "c"]));
    assert!(of(["a", "gone"]).contains("there is no table \"gone\""), "{}", of(["a", "gone"]));
    assert_eq!(count(&united_name(["a", DISTRIBUTED])).unwrap(), 0);
    let change = Change::Put(row(&mut random, 1));
    let tables = vec![TableChanges { table: DISTRIBUTED.into(), changes: vec![change] }];
    let written = database.apply(ChangeBatch { tables, positions: Vec::new() });
    assert!(refusal(written).contains("is distributed over a"));
    let own = Schema::distributed(DISTRIBUTED, vec![DISTRIBUTED.to_owned()]);
    assert!(refusal(own.validate()).contains("a part of itself"));
    let nested = Schema::distributed("n", vec![DISTRIBUTED.into()]);
    database.create_table(nested).unwrap();
    assert!(refusal(count("n")).contains("which is distributed itself"));
    database.drop_table("a").unwrap();
    assert!(refusal(count(DISTRIBUTED)).contains("distributed over \"a\", which is not there"));
    // It is still there to be shown, altered and dropped.
    assert_eq!(database.schema(DISTRIBUTED).unwrap().parts(), ["a"]);
    let schema = Schema::distributed(DISTRIBUTED, vec!["b".to_owned()]);
    database.define(vec![Definition::Alter { schema, fills: Vec::new() }], Vec::new()).unwrap();
    assert_eq!(count(DISTRIBUTED).unwrap(), 0);
}

#[test]
fn recreated_part_has_another_version() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path());
    let mut random = Random::new(3);
    let schema = ranked::ranked_schema(&mut random);
    create(&database, &schema, "a");
    create(&database, &schema, "b");
    let name = united_name(["a", "b"]);
    let version = || database.reader().version(&name).unwrap();
    let (first, schema_before) = (version(), database.schema(&name).unwrap());
    assert_eq!(version(), first);
    apply(&database, "b", vec![Change::Put(row(&mut random, 5))]);
    let second = version();
    assert_ne!(second, first);
    assert!(std::sync::Arc::ptr_eq(&schema_before, &database.schema(&name).unwrap()));
    database.drop_table("b").unwrap();
    create(&database, &schema, "b");
    assert_ne!(version(), second);
    assert_eq!(database.reader().row_count(&name).unwrap(), 0);
}

/// A table of a number and a text, with as many hidden columns behind them, by which it is indexed.
fn with_computed(name: &str, hidden: u32) -> Schema {
    let column = |id: u32, name: String, kind| ColumnDef {
        id,
        name,
        kind,
        nullable: id > 1,
        indexed: true,
        declared: None,
    };
    let mut columns = vec![
        column(1, "id".to_owned(), ColumnType::Int(64)),
        column(2, "name".to_owned(), ColumnType::Text),
    ];
    columns.extend((0..hidden).map(|nth| {
        let name = format!("{HIDDEN_PREFIX}0.key{nth}");
        column(3 + nth + hidden, name, ColumnType::Text)
    }));
    let mut schema = Schema { columns, ..Schema::distributed(name, Vec::new()) };
    schema.declared = None;
    let part = |column| IndexColumn { column, descending: false, order: None, prefix: None };
    schema.add_index([part(1)]);
    for place in 2..2 + hidden as usize {
        schema.add_index([part(place)]);
        schema.add_index([part(1), part(place)]);
    }
    schema
}

#[test]
fn distributed_tables_have_no_computed_columns() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path());
    let text = |text: &str| Value::Text(text.into());
    for (name, hidden) in [("none", 0), ("one", 1), ("two", 2)] {
        database.create_table(with_computed(name, hidden)).unwrap();
        let id = i64::from(hidden);
        let mut rows = vec![vec![Value::Int(id), text(name)], vec![Value::Int(7), text(name)]];
        rows.iter_mut().for_each(|row| row.extend((0..hidden).map(|_| text("hidden"))));
        let changes = rows.into_iter().map(Change::Put).collect();
        let tables = vec![TableChanges { table: name.into(), changes }];
        database.apply_computed(ChangeBatch { tables, positions: Vec::new() }).unwrap();
    }
    let row = |id: i64, name: &str| vec![Value::Int(id), text(name)];
    let reader = database.reader();
    for names in [["none", "one", "two"], ["one", "none", "two"], ["none", "two", "one"]] {
        let united = united_name(names);
        let schema = reader.schema(&united).unwrap();
        assert_eq!(schema.columns.len(), 2);
        assert_eq!(schema.indexes.len(), 1);
        assert_eq!(reader.get(&united, &[Value::Int(7)]).unwrap(), Some(row(7, names[2])));
        assert_eq!(reader.get(&united, &[Value::Int(1)]).unwrap(), Some(row(1, "one")));
        let request = ScanRequest {
            table: united.clone(),
            columns: vec![0, 1],
            batch_rows: 10,
            in_key_order: true,
            ..ScanRequest::default()
        };
        let mut found = Vec::new();
        for batch in reader.scan(request).unwrap() {
            let batch = batch.unwrap();
            found.extend((0..batch.rows).map(|at| -> Row {
                batch.columns.iter().map(|column| column.value(at)).collect()
            }));
        }
        found.sort_by_key(|row| format!("{row:?}"));
        assert_eq!(found, [row(0, "none"), row(1, "one"), row(2, "two"), row(7, names[2])]);
        let fields = vec!["*".to_owned()];
        let mut asked = SearchRequest { limit: 10, fields, ..SearchRequest::default() };
        asked.selection.table = united;
        let hits = reader.search(&asked).unwrap().hits;
        assert!(hits.iter().all(|hit| hit.fields.len() == 2), "{hits:?}");
        assert_eq!(hits.len(), 4);
    }
    // What is seen must be the same still.
    let mut other = with_computed("other", 1);
    other.columns[1].name = "title".to_owned();
    database.create_table(other).unwrap();
    let refused = database.reader().schema(&united_name(["one", "other"]));
    assert!(refused.unwrap_err().to_string().contains("column 2"));
}
