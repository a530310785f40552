//! Texts of a megabyte through updates, deletions, merges and restarts: found, returned and
//! counted as reading the rows would.

use std::collections::BTreeMap;

use remora_engine::{Normalization, SearchRequest, Selection, TextQuery, Value};

use crate::common::*;

const LONG_BYTES: usize = 1 << 20;

/// A text of about a megabyte, now and then of a single word.
fn long_text(random: &mut Random) -> String {
    let glue = if random.below(4) == 0 { "" } else { " " };
    let mut text = String::new();
    while text.len() < LONG_BYTES {
        text.push_str(&random.text().replace(' ', glue));
        text.push_str(glue);
    }
    text
}

fn normalized(text: &str) -> String {
    Normalization::default().apply(text).into_owned()
}

fn compare(
    database: &remora_engine::Database,
    bodies: &BTreeMap<i64, String>,
    random: &mut Random,
) {
    assert_eq!(count(database), bodies.len() as u64);
    let texts: Vec<(i64, String)> =
        bodies.iter().map(|(id, body)| (*id, normalized(body))).collect();
    for _ in 0..12 {
        let (_, text) = &texts[random.below(texts.len() as u64) as usize];
        let chars: Vec<char> = text.chars().collect();
        let start = random.below(chars.len() as u64 + 1) as usize;
        let most = [4, 30, 3_000][random.below(3) as usize];
        let length = 1 + random.below(most) as usize;
        let piece: String = chars.iter().skip(start).take(length).collect();
        if normalized(&piece).is_empty() {
            continue;
        }
        let wanted = normalized(&piece);
        let holding = texts.iter().filter(|(_, text)| text.contains(&wanted));
        let expected: Vec<i64> = holding.map(|(id, _)| *id).collect();
        let shown: String = piece.chars().take(40).collect();
        assert_eq!(find(database, &piece), expected, "{shown:?}");
    }
}

#[test]
fn long_texts_stay_searchable() {
    let mut random = Random::seeded();
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(directory.path(), quick());
    let mut bodies: BTreeMap<i64, String> = BTreeMap::new();
    for round in 0..3 {
        for id in 0..4 {
            let long = random.below(2) == 0 || id == round;
            let body = if long { long_text(&mut random) } else { random.text() };
            apply(&database, vec![put(id, round, &body)]).unwrap();
            bodies.insert(id, body);
        }
        apply(&database, vec![delete(3)]).unwrap();
        bodies.remove(&3);
        compare(&database, &bodies, &mut random);
        match round {
            0 => database.optimize(None).unwrap(),
            _ => {
                database.close().unwrap();
                database = open(directory.path(), quick());
            }
        }
        compare(&database, &bodies, &mut random);
    }
    for (id, body) in &bodies {
        let row = database.get(TABLE, &[Value::Int(*id)]).unwrap().unwrap();
        assert!(row[2] == Value::Text(body.as_str().into()), "row {id}");
    }
    check_is_clean(database);
}

/// A page of long texts is refused before it fills the memory; a smaller one is answered.
#[test]
fn pages_of_long_texts_are_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    // One separator again and again is a long text that is quickly indexed.
    let body = ",".repeat(3 << 20);
    for id in 0..24 {
        apply(&database, vec![put(id, 0, &body)]).unwrap();
    }
    let page = |limit| {
        let selection = Selection { table: TABLE.to_owned(), ..Selection::default() };
        let fields = vec!["body".to_owned()];
        database.search(&SearchRequest { selection, limit, fields, ..SearchRequest::default() })
    };
    assert_eq!(page(20).unwrap().hits.len(), 20);
    let refused = page(24).unwrap_err().to_string();
    assert!(refused.contains("more than 64 MiB"), "{refused}");
    let text = Some(TextQuery::Term(",,".to_owned()));
    let selection = Selection { table: TABLE.to_owned(), text, ..Selection::default() };
    assert_eq!(database.count(&selection).unwrap().count, 24);
}
