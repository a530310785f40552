//! Queries by keywords: the best rows are the first of all, whatever was not weighed, and however rows lie.

use proptest::prelude::*;
use remora_words::{rank::Ranker, settings::Settings};

use super::{
    random::Random,
    searches::{answer, term},
    table::{BM25, BODY, POSITION, Stored, TITLE, row, schema, view},
};
use crate::{
    Hit, KeywordQuery, Row, Schema, SearchRequest, SortBy, SortKey, TextQuery, WordsDef,
    read::search::{best, count as counted, search},
    snapshot::TableView,
};

const WORDS: [&str; 6] = ["a", "b", "c", "d", "rare", "often"];

fn ranked_schema(random: &mut Random) -> Schema {
    let fields = if random.chance(50) { vec![BODY] } else { vec![TITLE, BODY] };
    let mut settings = Settings::default();
    settings.set("min_infix_len", "1").unwrap();
    let words = WordsDef::new(9, fields, &settings, Vec::new()).unwrap();
    Schema { words: Some(words), ..schema(false) }
}

fn text(random: &mut Random) -> String {
    let word = |random: &mut Random| match random.below(20) {
        0 => WORDS[4],
        1..=9 => WORDS[5],
        _ => WORDS[random.below(4)],
    };
    let words: Vec<&str> = (0..random.below(9)).map(|_| word(random)).collect();
    words.join(" ")
}

/// The rows in so many segments; some documents of each are gone.
fn spread(random: &mut Random, rows: &[Row], segments: usize) -> Vec<Vec<Stored>> {
    let mut all: Vec<Vec<Stored>> = (0..segments).map(|_| Vec::new()).collect();
    for row in rows {
        let at = random.below(segments);
        all[at].push(Stored { row: row.clone(), deleted: false });
    }
    for (at, segment) in all.iter_mut().enumerate() {
        for gone in 0..random.below(20) {
            let id = 10_000 + (at * 100 + gone) as i64;
            let row = row(id, &text(random), &text(random));
            segment.push(Stored { row, deleted: true });
        }
    }
    all
}

fn words(random: &mut Random, least: usize) -> String {
    let count = least + random.below(4);
    let words: Vec<&str> = (0..count).map(|_| WORDS[random.below(WORDS.len())]).collect();
    words.join(" ")
}

fn query(random: &mut Random, depth: usize) -> String {
    let part = |random: &mut Random| match depth {
        0 => WORDS[random.below(WORDS.len())].to_owned(),
        _ => format!("({})", query(random, depth - 1)),
    };
    match random.below(19) {
        0 => words(random, 1),
        1 => format!("\"{}\"/1", words(random, 1)),
        2 => format!("\"{}\"/{}", words(random, 2), 1 + random.below(3)),
        3 => format!("\"{}\"", words(random, 1)),
        4 => format!("\"{}\"~{}", words(random, 2), 1 + random.below(4)),
        5 => format!("{} | {}", part(random), part(random)),
        6 => format!("{} | {} | {}", part(random), part(random), part(random)),
        7 => format!("{} MAYBE {}", part(random), part(random)),
        8 => format!("{} -{}", part(random), part(random)),
        9 => format!("@body {}", words(random, 1)),
        10 => format!("^{} | {}$", WORDS[random.below(6)], WORDS[random.below(6)]),
        11 => format!("*{} | ^o*", ["e*", "n", "r*"][random.below(3)]),
        12 => ["o*", "^*f*", "*n$"][random.below(3)].to_owned(),
        13 => format!("{} NEAR/{} {}", part(random), 1 + random.below(4), part(random)),
        14 => format!("{} << {}", part(random), part(random)),
        15 => format!("@title[2] {}", words(random, 1)),
        16 => format!("often^{} | {}", [2.5, 100_000.0][random.below(2)], words(random, 1)),
        17 => format!("often often | {0} {0}", WORDS[random.below(6)]),
        _ => format!("{} {}", part(random), part(random)),
    }
}

fn ranker(random: &mut Random) -> Ranker {
    let names = "proximity_bm25 bm25 none proximity matchany wordcount fieldmask sph04";
    let names: Vec<&str> = names.split(' ').collect();
    let most = if random.chance(50) { 1 } else { names.len() };
    Ranker::by_name(names[random.below(most)]).unwrap()
}

fn request(random: &mut Random) -> SearchRequest {
    let asked = KeywordQuery {
        text: {
            let depth = random.below(3);
            query(random, depth)
        },
        ranker: ranker(random),
        field_weights: match random.below(3) {
            0 => vec![("title".to_owned(), 7), ("body".to_owned(), 2)],
            _ => Vec::new(),
        },
        table_weight: [None, Some(3), Some(-2)][random.below(6).min(2)],
        ..KeywordQuery::default()
    };
    let mut request = term("");
    request.selection.text = Some(TextQuery::Keywords(asked.into()));
    let score = SortKey { by: SortBy::Score, descending: true };
    let key = SortKey { by: SortBy::Key, descending: random.chance(20) };
    request.sort = if random.chance(10) { vec![score] } else { vec![score, key] };
    request
}

/// The page that [`best`] finds, in each view from as many threads at once.
fn check_pages(views: &[(&TableView, usize)], request: &SearchRequest, expected: &[Hit]) {
    for &(view, threads) in views {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let found = best(view, request, POSITION).unwrap();
                    let Some((hits, _)) = found else { return };
                    assert_eq!(hits, expected, "{:?}", request.selection.text);
                });
            }
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn the_best_by_weight_are_the_first_of_all(seed: u64) {
        let mut random = Random::new(seed);
        let schema = ranked_schema(&mut random);
        let count = 300 + random.below(500) as i64;
        let rows: Vec<Row> =
            (1..=count).map(|id| row(id, &text(&mut random), &text(&mut random))).collect();
        let one = view(schema.clone(), spread(&mut random, &rows, 1));
        let four = view(schema, spread(&mut random, &rows, 4));
        let (mut compared, mut found) = (0, 0);
        for _ in 0..40 {
            let mut request = request(&mut random);
            request.limit = 100_000;
            // Some queries are none: a NOT of everything, two limits in a row.
            let Ok(all) = search(&one, &request, BM25, POSITION) else { continue };
            compared += 1;
            request.limit = 1 + random.below(20);
            request.offset = random.below(4);
            let page = request.offset..all.hits.len().min(request.offset + request.limit);
            let expected = &all.hits[page.start.min(page.end)..page.end];
            found += usize::from(best(&one, &request, POSITION).unwrap().is_some());
            check_pages(&[(&one, 1), (&four, 1), (&four, 2), (&one, 4)], &request, expected);
            for view in [&one, &four] {
                let best = answer(view, &request);
                prop_assert_eq!(best.total, all.total, "{:?}", &request.selection.text);
                prop_assert_eq!(&best.hits, expected, "{:?}", &request.selection.text);
                prop_assert_eq!(
                    counted(view, &request.selection, POSITION).unwrap().count,
                    all.total
                );
            }
        }
        prop_assert!(compared >= 20 && found >= compared / 2, "{compared} {found}");
    }
}
