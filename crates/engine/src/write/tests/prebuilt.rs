//! Definitions with segments built ahead: the index agrees with the rows, whatever is written meanwhile.

use std::{collections::BTreeMap, sync::Arc};

use remora_words::settings::Settings;

use super::fixture::{batch, rows, schema};
use crate::{
    Change, Database, Definition, KeywordQuery, Options, Schema, Selection, TextQuery, Value,
    WordsDef,
};

const WORDS: [&str; 5] = ["coral", "reef", "sea", "shark", "wreck"];

/// The table with keyword settings of this id.
fn with_words(number: u32) -> Schema {
    let words = WordsDef::new(number, vec![1], &Settings::default(), Vec::new()).unwrap();
    Schema { words: Some(words), ..schema() }
}

fn alter(schema: Schema) -> Definition {
    Definition::Alter { schema, fills: Vec::new() }
}

/// Pseudorandom numbers, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % end
    }

    /// Random puts and deletes.
    fn changes(&mut self, count: u64, keys: u64) -> Vec<Change> {
        let change = |_| {
            let key = Value::Int(self.below(keys) as i64);
            if self.below(4) == 0 {
                return Change::Delete(vec![key]);
            }
            let words: Vec<&str> =
                (0..self.below(4)).map(|_| WORDS[self.below(5) as usize]).collect();
            Change::Put(vec![key, Value::Text(words.join(" ").into())])
        };
        (0..count).map(change).collect()
    }
}

/// Each keyword finds as many rows as a scan does.
fn check(database: &Database) {
    let mut expected: BTreeMap<&str, u64> = WORDS.iter().map(|word| (*word, 0)).collect();
    for row in rows(database) {
        let Value::Text(text) = &row[1] else { panic!("{row:?}") };
        for (word, count) in &mut expected {
            *count += u64::from(text.split(' ').any(|one| one == *word));
        }
    }
    for (word, count) in expected {
        let query = KeywordQuery { text: word.to_owned(), ..KeywordQuery::default() };
        let text = Some(TextQuery::Keywords(Arc::new(query)));
        let selection = Selection { table: "t".to_owned(), text, ..Selection::default() };
        assert_eq!(database.count(&selection).unwrap().count, count, "{word}");
    }
    let all = Selection { table: "t".to_owned(), ..Selection::default() };
    assert_eq!(database.count(&all).unwrap().count, rows(database).len() as u64);
}

fn segments(database: &Database) -> usize {
    database.snapshot().tables.get("t").unwrap().segments.len()
}

#[test]
fn rows_written_meanwhile_are_in_the_new_segments() {
    let seed = std::env::var("REMORA_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    println!("REMORA_SEED={seed}");
    let mut random = Random(seed);
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path(), Options::default()).unwrap();
    database.create_table(schema()).unwrap();
    for round in 1..12 {
        database.apply(batch(random.changes(400, 600))).unwrap();
        let definition = alter(with_words(round));
        let ahead = database.prebuild_segments(&definition).unwrap().unwrap();
        for _ in 0..random.below(4) {
            database.apply(batch(random.changes(20, 900))).unwrap();
        }
        database.define_indexed(vec![definition], Vec::new(), vec![ahead]).unwrap();
        check(&database);
        // One segment of the rows indexed ahead, one of those written since.
        assert!(segments(&database) <= 2, "{}", segments(&database));
    }
    database.close().unwrap();
    let database = Database::open(directory.path(), Options::default()).unwrap();
    check(&database);
}

/// The writer uses the segments built ahead and indexes only rows written since.
#[test]
fn built_segments_are_published() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path(), Options::default()).unwrap();
    database.create_table(schema()).unwrap();
    database.apply(batch(Random(1).changes(500, 300))).unwrap();
    let definition = alter(with_words(1));
    let ahead = database.prebuild_segments(&definition).unwrap().unwrap();
    let made = ahead.segments.clone();
    database.apply(batch(Random(2).changes(5, 300))).unwrap();
    database.define_indexed(vec![definition.clone()], Vec::new(), vec![ahead]).unwrap();
    let view = Arc::clone(database.snapshot().tables.get("t").unwrap());
    assert_eq!(made.len(), 1);
    assert!(view.segments.iter().any(|segment| segment.is_of(&made[0])));
    check(&database);
    // Nothing is indexed if the existing segments serve the definition.
    assert!(database.prebuild_segments(&definition).unwrap().is_none());
    let gone = alter(Schema { name: "gone".to_owned(), ..with_words(2) });
    assert!(database.prebuild_segments(&gone).unwrap().is_none());
    assert!(database.prebuild_segments(&Definition::Drop("t".to_owned())).unwrap().is_none());
}

/// Segments built ahead are not used if the table has changed or was emptied.
#[test]
fn segments_for_an_outdated_definition_are_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path(), Options::default()).unwrap();
    database.create_table(schema()).unwrap();
    let changes = || batch(Random(3).changes(200, 100));
    let ahead = |database: &Database, number: u32| {
        database.prebuild_segments(&alter(with_words(number))).unwrap().unwrap()
    };
    database.apply(changes()).unwrap();
    let other = ahead(&database, 1);
    // Other keyword settings than those the segments were built for.
    database.define_indexed(vec![alter(with_words(2))], Vec::new(), vec![other]).unwrap();
    check(&database);
    let stale = ahead(&database, 3);
    database.define(vec![alter(with_words(4))], Vec::new()).unwrap();
    database.define_indexed(vec![alter(with_words(3))], Vec::new(), vec![stale]).unwrap();
    check(&database);
    let emptied = ahead(&database, 5);
    let again = vec![Definition::Drop("t".to_owned()), Definition::Create(with_words(3))];
    database.define(again, Vec::new()).unwrap();
    database.apply(batch(Random(4).changes(50, 100))).unwrap();
    database.define_indexed(vec![alter(with_words(5))], Vec::new(), vec![emptied]).unwrap();
    check(&database);
}
