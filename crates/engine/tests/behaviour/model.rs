//! Random changes, merges, checkpoints and restarts against a map and a scan with `str::contains`.

use std::collections::BTreeMap;

use remora_engine::{Normalization, Options};

use crate::common::*;

const TERMS: [&str; 9] = ["ship", "data", "a", "京都", "é", "été 2024", "한", "yard s", "r S"];

#[test]
fn a_database_equals_a_map() {
    let mut random = Random::seeded();
    for _ in 0..4 {
        one_life(&mut random);
    }
}

fn one_life(random: &mut Random) {
    let directory = tempfile::tempdir().unwrap();
    // A tiny limit makes checkpoints a part of everything.
    let options = Options { checkpoint_bytes: 20_000, ..quick() };
    let mut database = open(directory.path(), options.clone());
    let mut model: BTreeMap<i64, (i64, String)> = BTreeMap::new();
    for step in 0..400i64 {
        match random.below(40) {
            0 => {
                database.close().unwrap();
                database = open(directory.path(), options.clone());
            }
            1 => database.optimize(Some(TABLE)).unwrap(),
            2 => database.checkpoint().unwrap(),
            3 => {
                let changes: Vec<_> = (0..1_200).map(|id| (id, random.text())).collect();
                model.extend(changes.iter().map(|(id, text)| (*id, (step, text.clone()))));
                let changes = changes.iter().map(|(id, text)| put(*id, step, text));
                apply(&database, changes.collect()).unwrap();
            }
            _ => {
                let changes = (0..random.below(6)).map(|_| {
                    let id = random.below(300) as i64 - 100;
                    if random.below(3) == 0 {
                        model.remove(&id);
                        return delete(id);
                    }
                    let text = random.text();
                    let change = put(id, step, &text);
                    model.insert(id, (step, text));
                    change
                });
                let changes = changes.collect();
                apply(&database, changes).unwrap();
            }
        }
        if step % 40 == 0 {
            compare(&database, &model);
        }
    }
    compare(&database, &model);
    check_is_clean(database);
}

fn compare(database: &remora_engine::Database, model: &BTreeMap<i64, (i64, String)>) {
    let expected: Vec<_> = model.iter().map(|(id, (score, text))| row(*id, *score, text)).collect();
    assert_eq!(rows(database), expected);
    assert_eq!(count(database), model.len() as u64);
    let normalization = Normalization::default();
    for term in TERMS {
        let folded = normalization.apply(term);
        let has = |text: &str| normalization.apply(text).contains(&*folded);
        let expected = model.iter().filter(|(_, (_, text))| has(text)).map(|(id, _)| *id);
        assert_eq!(find(database, term), expected.collect::<Vec<_>>(), "{term}");
    }
}
