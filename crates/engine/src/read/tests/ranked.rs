//! Queries by keywords: the best rows are the first of all, whatever was not weighed, and however rows lie.

use proptest::prelude::*;
use remora_words::{rank::Ranker, settings::Settings};

use super::{
    random::Random,
    searches::{answer, term},
    table::{BM25, BODY, Stored, TITLE, moment, row, schema, view},
};
use crate::{
    Hit, KeywordQuery, Row, Schema, SearchRequest, SortBy, SortKey, TextQuery, WordsDef,
    read::search::{best, count as counted, search},
    snapshot::TableView,
};

const WORDS: [&str; 6] = ["a", "b", "c", "d", "rare", "often"];

pub fn ranked_schema(random: &mut Random) -> Schema {
    let fields = if random.chance(50) { vec![BODY] } else { vec![TITLE, BODY] };
    let mut settings = Settings::default();
    settings.set("min_infix_len", "1").unwrap();
    let words = WordsDef::new(9, fields, &settings, Vec::new()).unwrap();
    Schema { words: Some(words), ..schema(false) }
}

pub fn text(random: &mut Random) -> String {
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

pub fn request(random: &mut Random) -> SearchRequest {
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
                    let found = best(view, request, moment()).unwrap();
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
            let Ok(all) = search(&one, &request, BM25, moment()) else { continue };
            compared += 1;
            request.limit = 1 + random.below(20);
            request.offset = random.below(4);
            let page = request.offset..all.hits.len().min(request.offset + request.limit);
            let expected = &all.hits[page.start.min(page.end)..page.end];
            found += usize::from(best(&one, &request, moment()).unwrap().is_some());
            check_pages(&[(&one, 1), (&four, 1), (&four, 2), (&one, 4)], &request, expected);
            for view in [&one, &four] {
                let best = answer(view, &request);
                prop_assert_eq!(best.total, all.total, "{:?}", &request.selection.text);
                prop_assert_eq!(&best.hits, expected, "{:?}", &request.selection.text);
                prop_assert_eq!(
                    counted(view, &request.selection, moment()).unwrap().count,
                    all.total
                );
            }
        }
        prop_assert!(compared >= 20 && found >= compared / 2, "{compared} {found}");
    }
}

/// The best row of so few is the first of all, where bounds by words alone would be too low.
fn check_best(query: KeywordQuery, bodies: &[&str]) {
    let words = WordsDef::new(9, vec![TITLE, BODY], &Settings::default(), Vec::new()).unwrap();
    let schema = Schema { words: Some(words), ..schema(false) };
    let rows = bodies.iter().zip(1..).map(|(body, id)| {
        let (title, body) = body.split_once('/').unwrap_or(("", body));
        Stored { row: row(id, title, body), deleted: false }
    });
    let view = view(schema, vec![rows.collect()]);
    let mut request = term("");
    request.selection.text = Some(TextQuery::Keywords(query.into()));
    let key = SortKey { by: SortBy::Key, descending: false };
    request.sort = vec![SortKey { by: SortBy::Score, descending: true }, key];
    request.limit = 100;
    let all = search(&view, &request, BM25, moment()).unwrap().hits;
    for limit in 1..bodies.len() {
        request.limit = limit;
        let found = best(&view, &request, moment()).unwrap();
        let (hits, _) = found.expect("a query by keywords");
        assert_eq!(hits, all[..limit.min(all.len())], "{:?}", request.selection.text);
    }
}

#[test]
fn runs_over_phrases_are_longer_than_the_query() {
    for ranker in ["sph04", "matchany", "proximity_bm25", "proximity"] {
        // Of so many repetitions: two fields could have as many words as the query has in each.
        let times = |text: &str, times: usize| vec![text; times].join(" ");
        for (text, bodies) in [
            (
                r#""q r" "p q r s""#,
                [times("p q r s", 3), times("p q r s", 5), times("q r p q r s", 1)],
            ),
            (r#""p q p""#, [times("p q", 3) + " p", times("p q", 5) + " p", times("p q p x", 4)]),
        ] {
            let ranker = Ranker::by_name(ranker).unwrap();
            let bodies = bodies.each_ref().map(String::as_str);
            check_best(KeywordQuery { text: text.into(), ranker, ..Default::default() }, &bodies);
        }
    }
}

#[test]
fn weights_that_overflow_are_weighed() {
    let bodies = ["often x much", "often much", "often much much often", "much often x x"];
    for (boost, table_weight) in [("100000000", None), ("100000", Some(100))] {
        let text = format!("often^{boost} much^{boost}");
        let ranker = Ranker::by_name("bm25").unwrap();
        check_best(KeywordQuery { text, ranker, table_weight, ..Default::default() }, &bodies);
    }
    let field_weights = vec![("title".to_owned(), 3), ("body".to_owned(), 1_610_612_733)];
    let (text, ranker) = ("a b".to_owned(), Ranker::by_name("matchany").unwrap());
    let query = KeywordQuery { text, ranker, field_weights, ..Default::default() };
    check_best(query, &["a b/", "a/b", "/a b", "b a/a"]);
}

#[test]
fn what_is_excluded_within_counts_its_hits() {
    let (text, ranker) = ("((a -b) MAYBE c) | d".to_owned(), Ranker::by_name("wordcount").unwrap());
    let query = KeywordQuery { text, ranker, ..Default::default() };
    check_best(query, &["c d d d", "a a b d", "d d c", "a"]);
}
