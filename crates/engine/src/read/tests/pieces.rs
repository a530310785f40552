//! Pieces: whole words, beginnings of words, and substrings of certain text indexes.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use remora_index::text::Normalization;

use super::{
    oracle::{Oracle, id},
    random::Random,
    table::{BODY, TITLE, moment, row, schema, single, view},
};
use crate::{
    ColumnLetters, LetterClasses, Piece, PieceMatch, Row, Selection, TextQuery, Value,
    read::search::{count, search},
    request::SearchRequest,
    snapshot::TableView,
};

fn piece(texts: &[u32], text: &str, matching: PieceMatch) -> TextQuery {
    TextQuery::Piece(Piece {
        texts: texts.to_vec(),
        text: text.to_owned(),
        matching,
        letters: None,
    })
}

/// The ids of the rows, ascending.
fn ids(view: &TableView, query: TextQuery) -> Vec<i64> {
    let table = view.schema.name.clone();
    let selection = Selection { table, text: Some(query), ..Selection::default() };
    let total = count(view, &selection, moment()).unwrap().count;
    let request = SearchRequest { selection, limit: 1000, ..SearchRequest::default() };
    let hits = search(view, &request, (1.2, 0.75), moment()).unwrap().hits;
    assert_eq!(total, hits.len() as u64);
    let id = |value: &Value| if let Value::Int(id) = value { *id } else { panic!("{value}") };
    let mut ids: Vec<i64> = hits.iter().map(|hit| id(&hit.key[0])).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn words_have_bounds() {
    let texts = [
        "quantum",
        "Quantum physics",
        "quantums",
        "a quantum, physics",
        "quantum and physics",
        "量子quantum力学",
        "quantum-physics",
        "quantum   Physicist",
    ];
    let rows = (0..).zip(texts).map(|(id, text)| row(id, text, "")).collect();
    let view = single(schema(false), rows);
    let words = |text: &str| ids(&view, piece(&[], text, PieceMatch::Words));
    let prefix = |text: &str| ids(&view, piece(&[], text, PieceMatch::WordPrefix));
    assert_eq!(words("QUANTUM"), [0, 1, 3, 4, 5, 6, 7]);
    assert_eq!(words("quantum physics"), [1, 3, 6]);
    assert_eq!(words("quantum/physics"), [1, 3, 6]);
    assert_eq!(words("uantum"), [0; 0]);
    assert_eq!(words("量子"), [5]);
    assert_eq!(words("子"), [5]);
    assert_eq!(words("子quantum"), [5]);
    assert_eq!(words(", !"), [0; 0]);
    assert_eq!(prefix("quant"), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(prefix("quantum phys"), [1, 3, 6, 7]);
    let long = "a b c d e f g h";
    let rows = vec![row(0, long, ""), row(1, "a b, c d e; f g i", ""), row(2, "a b c d", "")];
    let view = single(schema(false), rows);
    assert_eq!(ids(&view, piece(&[], "A,b c d e f g, h", PieceMatch::Words)), [0]);
    assert_eq!(ids(&view, piece(&[], "a b c d e f g", PieceMatch::Words)), [0, 1]);
}

#[test]
fn piece_searches_can_be_limited_to_texts() {
    let view = single(schema(true), vec![row(1, "rain", "sun"), row(2, "sun", "rain")]);
    let find = |texts: &[u32]| ids(&view, piece(texts, "rain", PieceMatch::Substring));
    assert_eq!(find(&[4]), [1]);
    assert_eq!(find(&[9]), [1, 2]);
    assert_eq!(find(&[]), [1, 2]);
    assert_eq!(find(&[77]), [0; 0]);
}

#[test]
fn piece_searches_match_a_scan_of_all_rows() {
    for seed in 1..=60u64 {
        let mut random = Random::new(seed);
        let rows = random.rows(1 + (seed as usize * 7) % 90);
        let spread = random.spread(&rows, 1 + seed as usize % 4);
        let schema = schema(seed % 2 == 0);
        let view = view(schema.clone(), spread);
        let oracle = Oracle::new(&schema, &rows);
        for _ in 0..40 {
            let near = PieceMatch::Near(random.below(4) as u32);
            let plain = [PieceMatch::Substring, PieceMatch::Words, PieceMatch::WordPrefix];
            let matching = if random.chance(25) { near } else { random.one(&plain) };
            let texts = random.one(&[&[][..], &[4], &[9], &[4, 9]]);
            let text = match random.below(3) {
                0 => random.term(&rows),
                _ => random.text(4),
            };
            let mut query = piece(texts, &text, matching);
            if random.chance(30) {
                let other = TextQuery::Term(random.term(&rows));
                query = TextQuery::And(vec![query, other]);
            }
            let selected = oracle.select(Some(&query), None);
            let mut expected: Vec<i64> = selected.into_iter().map(id).collect();
            expected.sort_unstable();
            assert_eq!(ids(&view, query.clone()), expected, "seed {seed}: {query:?}");
        }
    }
}

/// Letters that are equal but for case and accents, or to themselves alone.
#[derive(Debug)]
struct Letters {
    loose: bool,
}

fn loose_key(letter: char) -> String {
    // Only what is one letter: `ß` is not equal to `ss`.
    let normalization = Normalization { fold_accents: true, ..Normalization::default() };
    let key = normalization.apply(letter.encode_utf8(&mut [0; 4])).into_owned();
    if key.chars().count() == 1 { key } else { letter.to_string() }
}

static LOOSE: LazyLock<HashMap<String, Vec<char>>> = LazyLock::new(|| {
    let mut classes: HashMap<String, Vec<char>> = HashMap::new();
    for letter in (0..0x1_0000).filter_map(char::from_u32) {
        classes.entry(loose_key(letter)).or_default().push(letter);
    }
    classes
});

impl LetterClasses for Letters {
    fn are_equal(&self, a: char, b: char) -> bool {
        a == b || self.loose && loose_key(a) == loose_key(b)
    }

    fn equals(&self, letter: char, out: &mut Vec<char>) {
        match LOOSE.get(&loose_key(letter)).filter(|_| self.loose) {
            Some(letters) => out.extend(letters),
            None => out.push(letter),
        }
    }
}

fn holds_letters(row: &Row, column: usize, text: &str, letters: &Letters) -> bool {
    let Value::Text(held) = &row[column] else { return false };
    let (held, text): (Vec<char>, Vec<char>) = (held.chars().collect(), text.chars().collect());
    held.windows(text.len())
        .any(|window| window.iter().zip(&text).all(|(a, b)| letters.are_equal(*a, *b)))
}

#[test]
fn letter_searches_match_a_scan() {
    for seed in 1..=60u64 {
        let mut random = Random::new(seed * 31);
        let rows = random.rows(1 + (seed as usize * 7) % 90);
        let spread = random.spread(&rows, 1 + seed as usize % 4);
        let two_texts = seed % 2 == 0;
        let view = view(schema(two_texts), spread);
        let letters = Arc::new(Letters { loose: seed % 3 != 0 });
        for _ in 0..40 {
            let column = random.one(&[TITLE, BODY]);
            let text = match random.below(4) {
                0 => random.term(&rows).to_uppercase(),
                1 => random.text(2),
                _ => random.term(&rows),
            };
            if text.is_empty() {
                continue;
            }
            let texts = vec![if two_texts && column == BODY { 9 } else { 4 }];
            let query = TextQuery::Piece(Piece {
                texts,
                text: text.clone(),
                matching: PieceMatch::Substring,
                letters: Some(ColumnLetters {
                    column,
                    classes: letters.clone(),
                    is_tested_again: false,
                }),
            });
            let holding = rows.iter().filter(|row| holds_letters(row, column, &text, &letters));
            let mut expected: Vec<i64> = holding.map(id).collect();
            expected.sort_unstable();
            assert_eq!(ids(&view, query), expected, "seed {seed}: {text:?} in {column}");
        }
    }
}

#[test]
fn letter_searches_use_the_index_where_possible() {
    let rows = (0..100).map(|id| row(id, if id % 2 == 0 { "Café noir" } else { "cafe, ﬁne" }, ""));
    let view = single(schema(true), rows.collect());
    let count = |text: &str, loose| {
        let classes = Arc::new(Letters { loose });
        let query = TextQuery::Piece(Piece {
            texts: vec![4],
            text: text.to_owned(),
            matching: PieceMatch::Substring,
            letters: Some(ColumnLetters { column: TITLE, classes, is_tested_again: false }),
        });
        let table = view.schema.name.clone();
        let selection = Selection { table, text: Some(query), ..Selection::default() };
        let reply = count(&view, &selection, moment()).unwrap();
        (reply.count, reply.report.texts_read)
    };
    assert_eq!(count("CAFE", true), (100, 0));
    assert_eq!(count("é n", true), (50, 0));
    // Case makes a difference: what is found is read.
    assert_eq!(count("Café", false), (50, 50));
    // `ﬁ` is no `fi`, though it becomes one.
    assert_eq!(count("fin", true), (0, 50));
    assert_eq!(count("ﬁn", true), (50, 100));
}
