//! Pages of keys are what a map of all keys has.

use std::{
    collections::BTreeSet,
    ops::Bound,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    Change, Database, Durability, Options, Value,
    write::tests::fixture::{batch, schema},
};

#[test]
fn pages_of_keys_are_those_of_a_map() {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let seed = std::env::var("REMORA_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut state: u64 = seed.unwrap_or(clock);
    println!("REMORA_SEED={state}");
    let mut below = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
        (state >> 33) % end
    };
    let directory = tempfile::tempdir().unwrap();
    let options = Options { durability: Durability::None, ..Options::default() };
    let database = Database::open(directory.path(), options).unwrap();
    let mut by_text = schema();
    by_text.primary_key = vec![1];
    database.create_table(by_text).unwrap();
    let texts = ["a b", "a", "A", "a\0", "a\u{ff}", "b", "é", "海", "🐦", "\u{7f}"];
    let mut text = || {
        let parts = (0..1 + below(3)).map(|_| texts[below(10) as usize]);
        parts.collect::<Vec<_>>().concat()
    };
    let mut keys = BTreeSet::new();
    for step in 0..400 {
        let (one, gone) = (text(), text());
        let row = vec![Value::Int(step), Value::Text(one.as_str().into())];
        let delete = Change::Delete(vec![Value::Text(gone.as_str().into())]);
        database.apply(batch(vec![Change::Put(row), delete])).unwrap();
        keys.insert(one);
        keys.remove(&gone);
        let (after, limit) = (text(), step as usize % 9);
        let after_key = [Value::Text(after.as_str().into())];
        let reader = database.reader();
        let page = |after: Option<&[Value]>, limit| -> Vec<String> {
            let page = reader.keys_after("t", after, limit).unwrap();
            page.iter().map(|key| key[0].to_string()).collect()
        };
        let shown = |text: &String| Value::Text(text.as_str().into()).to_string();
        let behind = keys.range((Bound::Excluded(after), Bound::Unbounded));
        let expected: Vec<String> = behind.take(limit).map(shown).collect();
        assert_eq!(page(Some(&after_key), limit), expected);
        if step % 50 == 0 {
            assert_eq!(page(None, usize::MAX), keys.iter().map(shown).collect::<Vec<_>>());
            database.optimize(None).unwrap();
        }
    }
    assert!(database.reader().keys_after("t", Some(&[]), 1).is_err());
    assert!(database.reader().keys_after("none", None, 1).is_err());
}
