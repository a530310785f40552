//! Queries by keywords: the best rows are the first of all, whatever was not weighed, and however rows lie.

use std::sync::Arc;

use proptest::prelude::*;
use remora_index::{SectionWriter, Sections, segment::Segment};
use remora_words::{rank::Ranker, settings::Settings};

use super::{
    random::Random,
    searches::{answer, term},
    table::{BM25, BODY, Stored, TITLE, moment, row, schema, view},
};
use crate::{
    Hit, KeywordQuery, Row, Schema, SearchRequest, SortBy, SortKey, TextQuery, Value, WordsDef,
    read::search::{best, count as counted, search},
    snapshot::{SegmentView, TableView},
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
    fn top_k_by_weight_equals_the_sorted_prefix(seed: u64) {
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

/// The same rows where the chosen segments were written before there were lists of pairs.
fn without_pairs(view: &TableView, is_chosen: impl Fn(usize) -> bool) -> TableView {
    let mut view = view.clone();
    let words = view.schema.words.as_ref().unwrap().segment_id();
    for (_, one) in view.segments.iter_mut().enumerate().filter(|(nth, _)| is_chosen(*nth)) {
        let sections = Sections::open(one.segment.bytes().unwrap().into_owned()).unwrap();
        let mut out = SectionWriter::new();
        for (tag, id, _) in sections.sizes().filter(|(tag, ..)| !tag.0.starts_with(b"TPR")) {
            out.add(tag, id, sections.get(tag, id).unwrap());
        }
        let segment = Segment::open(out.finish()).unwrap();
        assert!(one.segment.words(words).unwrap().has_pairs());
        assert!(!segment.words(words).unwrap().has_pairs());
        let deleted = one.deleted.as_deref().cloned();
        *one = SegmentView::new(Arc::new(segment), deleted, &view.schema);
    }
    view
}

/// Words of which some stand at one place: of one stem, a form beside its stem, a blended word and its parts.
const PLACED: [&str; 10] =
    ["the", "of", "in", "run", "running", "=running", "s&t", "s", "t", "rare"];

fn placed_schema(random: &mut Random) -> Schema {
    let fields = if random.chance(40) { vec![BODY] } else { vec![TITLE, BODY] };
    let mut settings = Settings::default();
    for (name, value) in
        [("morphology", "stem_en"), ("index_exact_words", "1"), ("blend_chars", "&")]
    {
        if random.chance(50) {
            settings.set(name, value).unwrap();
        }
    }
    let words = WordsDef::new(9, fields, &settings, Vec::new()).unwrap();
    Schema { words: Some(words), ..schema(false) }
}

fn placed_words(random: &mut Random, most: usize) -> Vec<&'static str> {
    let word = |random: &mut Random| match random.below(30) {
        0 => PLACED[9],
        1..=12 => PLACED[random.below(3)],
        _ => PLACED[random.below(9)],
    };
    (0..random.below(most + 1)).map(|_| word(random)).collect()
}

/// Any or all of some words, whose runs are as long as the query at times.
fn placed_query(random: &mut Random, run: &[&str]) -> String {
    let mut words = match random.chance(60) {
        true => run.to_vec(),
        false => placed_words(random, 7),
    };
    // Nearly as long as positions are told apart, and longer.
    if random.chance(8) {
        words = words.repeat(6);
    }
    words.push(PLACED[random.below(10)]);
    let boost = ["", "", "", "^3", "^0.1"][random.below(5)];
    match random.below(6) {
        0 | 1 => words.join(" "),
        2 => format!("\"{}\"/2", words.join(" ")),
        3 => format!("@body {}", words.join(" | ")),
        _ => format!("{}{boost}", words.join(" | ")),
    }
}

/// A request for some of the rows of such a query.
fn placed_request(random: &mut Random, run: &[&str]) -> SearchRequest {
    let names = ["proximity_bm25", "matchany", "sph04", "proximity", "bm25", "wordcount"];
    let ranker = [0, 0, 0, 1, 1, 2, 3, 4, 5][random.below(9)];
    let asked = KeywordQuery {
        text: placed_query(random, run),
        ranker: Ranker::by_name(names[ranker]).unwrap(),
        field_weights: match random.below(3) {
            0 => vec![("title".to_owned(), 1 + random.below(4) as i32), ("body".to_owned(), 2)],
            _ => Vec::new(),
        },
        table_weight: random.chance(20).then_some(3),
        ..KeywordQuery::default()
    };
    let mut request = term("");
    request.selection.text = Some(TextQuery::Keywords(asked.into()));
    request.sort = vec![
        SortKey { by: SortBy::Score, descending: true },
        SortKey { by: SortBy::Key, descending: false },
    ];
    request
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn proximity_top_k_equals_full_ranking(seed: u64) {
        let mut random = Random::new(seed);
        let schema = placed_schema(&mut random);
        let count = 200 + random.below(400) as i64;
        let mut runs: Vec<Vec<&str>> = Vec::new();
        let rows: Vec<Row> = (1..=count)
            .map(|id| {
                let (title, body) = (placed_words(&mut random, 3), placed_words(&mut random, 12));
                // Some texts are so long that their shifts meet.
                let filler = if random.chance(3) { " x".repeat(511) } else { String::new() };
                let body = format!("{}{filler} {}", body.join(" "), placed_words(&mut random, 4).join(" "));
                let placed = body.split(' ').filter_map(|word| PLACED.into_iter().find(|it| *it == word));
                runs.push(placed.collect());
                row(id, &title.join(" "), &body)
            })
            .collect();
        let one = view(schema.clone(), spread(&mut random, &rows, 1));
        let three = view(schema, spread(&mut random, &rows, 3));
        let (bare, mixed) = (without_pairs(&one, |_| true), without_pairs(&three, |nth| nth == 1));
        let mut compared = 0;
        for _ in 0..40 {
            let run = &runs[random.below(runs.len())];
            let from = random.below(run.len().max(1));
            let run = &run[from.min(run.len())..run.len().min(from + 2 + random.below(5))];
            let mut request = placed_request(&mut random, run);
            request.limit = 100_000;
            let Ok(all) = search(&one, &request, BM25, moment()) else { continue };
            compared += 1;
            request.limit = 1 + random.below(12);
            let expected = &all.hits[..all.hits.len().min(request.limit)];
            for view in [&one, &three, &bare, &mixed] {
                let (hits, _) = best(view, &request, moment()).unwrap().expect("a query by keywords");
                prop_assert_eq!(&hits, expected, "{:?}", &request.selection.text);
                let some = answer(view, &request);
                prop_assert_eq!(&some.hits, expected, "{:?}", &request.selection.text);
            }
        }
        prop_assert!(compared >= 25, "{compared}");
    }
}

/// A text of few words, so that they stand near each other again and again.
fn chained(random: &mut Random, most: usize) -> String {
    let word = |random: &mut Random| match random.below(40) {
        0 => "rare",
        1..=6 => "x",
        _ => ["p", "q", "p", "q", "r", "s"][random.below(6)],
    };
    let words: Vec<&str> = (0..random.below(most + 1)).map(|_| word(random)).collect();
    words.join(" ")
}

/// A request for some of the rows of a proximity.
fn chained_request(random: &mut Random) -> SearchRequest {
    let words = ["p q", "q p", "q p r", "p q r", "s q p r", "p * q", "p rare", "p q p", "p -q"];
    let limit = ["", "", "", "@body ", "@title[3] "][random.below(5)];
    let text = format!("{limit}\"{}\"~{}", words[random.below(9)], 1 + random.below(6));
    let ranker =
        ["proximity_bm25", "proximity", "matchany", "sph04"][[0, 0, 0, 1, 2, 3][random.below(6)]];
    let asked = KeywordQuery {
        text,
        ranker: Ranker::by_name(ranker).unwrap(),
        field_weights: match random.below(3) {
            0 => vec![("title".to_owned(), 1 + random.below(9) as i32)],
            _ => Vec::new(),
        },
        ..KeywordQuery::default()
    };
    let mut request = term("");
    request.selection.text = Some(TextQuery::Keywords(asked.into()));
    request.sort = vec![
        SortKey { by: SortBy::Score, descending: true },
        SortKey { by: SortBy::Key, descending: false },
    ];
    request
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn the_longest_runs_of_proximities_are_found(seed: u64) {
        let mut random = Random::new(seed);
        let schema = ranked_schema(&mut random);
        let rows: Vec<Row> = (1..=300 + random.below(300) as i64)
            .map(|id| {
                let most = [8, 40, 90][random.below(3)];
                row(id, &chained(&mut random, 12), &chained(&mut random, most))
            })
            .collect();
        let one = view(schema.clone(), spread(&mut random, &rows, 1));
        let three = view(schema, spread(&mut random, &rows, 3));
        for _ in 0..40 {
            let mut request = chained_request(&mut random);
            request.limit = 100_000;
            let Ok(all) = search(&one, &request, BM25, moment()) else { continue };
            request.limit = 1 + random.below(30);
            let expected = &all.hits[..all.hits.len().min(request.limit)];
            for view in [&one, &three] {
                let (hits, _) = best(view, &request, moment()).unwrap().expect("a query by keywords");
                prop_assert_eq!(&hits, expected, "{:?}", &request.selection.text);
            }
        }
    }
}

/// Whether words stand in a text one behind the other.
fn has_phrase(text: &str, phrase: &[&str]) -> bool {
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    words.windows(phrase.len()).any(|window| window == phrase)
}

/// Whether all words stand in a window of a text that takes less than `length` steps.
fn has_window(text: &str, wanted: &[&str], length: usize) -> bool {
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    let has_all = |window: &[&str]| wanted.iter().all(|word| window.contains(word));
    words.windows(length.min(words.len()).max(1)).any(has_all)
}

/// Texts of two fields, the second ones with words far apart.
fn titles_and_bodies(random: &mut Random) -> Vec<(String, String)> {
    let mut both = || {
        let filler = " x".repeat(random.below(3) * 255);
        let body = format!("{}{filler} {}", text(random), text(random));
        (text(random), body)
    };
    (0..300).map(|_| both()).collect()
}

/// A table of such texts, and whether their titles are searched.
fn table_of(random: &mut Random, texts: &[(String, String)]) -> (TableView, bool) {
    let schema = ranked_schema(random);
    let has_titles = schema.words.as_ref().unwrap().columns.len() == 2;
    let rows: Vec<Row> = (1..).zip(texts).map(|(id, (title, body))| row(id, title, body)).collect();
    (view(schema, spread(random, &rows, 2)), has_titles)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn phrase_searches_match_a_scan(seed: u64) {
        let mut random = Random::new(seed);
        let texts = titles_and_bodies(&mut random);
        let (view, has_titles) = table_of(&mut random, &texts);
        let asked = |text: String| {
            let mut request = term("");
            let query = KeywordQuery { text, ..Default::default() };
            request.selection.text = Some(TextQuery::Keywords(query.into()));
            request
        };
        let counted = |text: String| {
            counted(&view, &asked(text).selection, moment()).unwrap().count
        };
        let mut found = 0;
        for _ in 0..60 {
            let words: Vec<&str> = (0..2 + random.below(3)).map(|_| WORDS[random.below(6)]).collect();
            let is_found = |(title, body): &&(String, String)| {
                has_phrase(body, &words) || has_titles && has_phrase(title, &words)
            };
            let expected = texts.iter().filter(is_found).count() as u64;
            found += expected;
            let phrase = format!("\"{}\"", words.join(" "));
            prop_assert_eq!(counted(phrase.clone()), expected, "{}", phrase);
            let mut request = asked(phrase.clone());
            request.limit = 1_000;
            request.sort = vec![SortKey { by: SortBy::Score, descending: true }];
            let (hits, _) = best(&view, &request, moment()).unwrap().expect("a query by keywords");
            prop_assert_eq!(hits.len() as u64, expected, "{}", phrase);
            // Stars leave places free: beside another word phrases are looked for in each document.
            let phrase = format!("\"{}\"", words.join([" * ", " * * "][random.below(2)]));
            let expected = counted(format!("{phrase} | zzzz"));
            prop_assert_eq!(counted(phrase.clone()), expected, "{}", phrase);
        }
        prop_assert!(found > 0);
    }

    #[test]
    fn proximity_searches_match_a_scan(seed: u64) {
        let mut random = Random::new(seed);
        let texts = titles_and_bodies(&mut random);
        let (view, has_titles) = table_of(&mut random, &texts);
        let counted = |text: String| {
            let mut request = term("");
            let query = KeywordQuery { text, ..Default::default() };
            request.selection.text = Some(TextQuery::Keywords(query.into()));
            counted(&view, &request.selection, moment()).unwrap().count
        };
        let mut found = 0;
        for _ in 0..60 {
            let words: Vec<&str> = (0..2 + random.below(4)).map(|_| WORDS[random.below(6)]).collect();
            let distance = 1 + random.below(5);
            let length = words.len() - 1 + distance;
            let is_found = |(title, body): &&(String, String)| {
                has_window(body, &words, length) || has_titles && has_window(title, &words, length)
            };
            let expected = texts.iter().filter(is_found).count() as u64;
            found += expected;
            let near = format!("\"{}\"~{distance}", words.join(" "));
            prop_assert_eq!(counted(near.clone()), expected, "{}", near);
            // A field is left out: places alone do not decide. Beside another word they are not asked.
            let near = format!("@body {near}");
            prop_assert_eq!(counted(near.clone()), counted(format!("{near} | zzzz")), "{}", near);
        }
        prop_assert!(found > 0);
    }
}

/// How often a word counts for a query.
type Times = Box<dyn Fn(&str) -> i32>;

/// A query for many of the words `k0` to `k39`.
fn many_words(random: &mut Random) -> (String, Times) {
    let count = |is_counted: bool| i32::from(is_counted);
    match random.below(4) {
        0 => ("*3*".to_owned(), Box::new(move |word| count(word.contains('3')))),
        1 => {
            // A word of two wildcards counts once for each.
            let times = move |word: &str| {
                count(word.starts_with("k1") || word.starts_with("k2")) + count(word.ends_with('9'))
            };
            ("(k1* | k2*) | *9".to_owned(), Box::new(times))
        }
        _ => {
            let all = 0..2 + random.below(40);
            let mut wanted: Vec<String> = all.map(|_| format!("k{}", random.below(40))).collect();
            wanted.sort();
            wanted.dedup();
            let text = wanted.join(" | ");
            (text, Box::new(move |word| count(wanted.iter().any(|it| it == word))))
        }
    }
}

/// The best rows of a query by a ranker: what they weigh, and their ids.
fn weighed(view: &TableView, text: &str, ranker: &Ranker, limit: usize) -> Vec<(i32, i64)> {
    let query = KeywordQuery { text: text.into(), ranker: ranker.clone(), ..Default::default() };
    let mut request = term("");
    request.selection.text = Some(TextQuery::Keywords(query.into()));
    let by_key = SortKey { by: SortBy::Key, descending: false };
    request.sort = vec![SortKey { by: SortBy::Score, descending: true }, by_key];
    request.limit = limit;
    let hits = match best(view, &request, moment()).unwrap() {
        Some((hits, _)) => hits,
        None => search(view, &request, BM25, moment()).unwrap().hits,
    };
    let weighed = |hit: &Hit| {
        let Value::Int(id) = hit.key[0] else { panic!("{hit:?}") };
        (hit.score.unwrap() as i32, id)
    };
    hits.iter().map(weighed).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn many_keywords_weigh_what_a_scan_counts(seed: u64) {
        let mut random = Random::new(seed);
        let mut settings = Settings::default();
        settings.set("min_infix_len", "1").unwrap();
        let words = WordsDef::new(9, vec![BODY], &settings, Vec::new()).unwrap();
        let schema = Schema { words: Some(words), ..schema(false) };
        let texts: Vec<Vec<String>> = (0..300)
            .map(|_| (0..random.below(14)).map(|_| format!("k{}", random.below(40))).collect())
            .collect();
        let rows: Vec<Row> =
            (1..).zip(&texts).map(|(id, words)| row(id, "", &words.join(" "))).collect();
        let view = view(schema, spread(&mut random, &rows, 2));
        for _ in 0..20 {
            let (text, times) = many_words(&mut random);
            let name = ["wordcount", "none"][random.below(2)];
            let weigh = |words: &Vec<String>| {
                let weight: i32 = words.iter().map(|word| times(word)).sum();
                if name == "none" { weight.min(1) } else { weight }
            };
            let mut expected: Vec<(i32, i64)> =
                texts.iter().map(weigh).zip(1..).filter(|it| it.0 > 0).collect();
            expected.sort_by_key(|&(weight, id)| (-weight, id));
            for limit in [1_000, 1 + random.below(30)] {
                let found = weighed(&view, &text, &Ranker::by_name(name).unwrap(), limit);
                prop_assert_eq!(&found[..], &expected[..limit.min(expected.len())], "{}", &text);
            }
        }
    }
}

/// The best row of so few is the first of all, where bounds by words alone would be too low.
fn check_best(query: KeywordQuery, bodies: &[&str]) {
    check_best_with(&[], query, bodies);
}

/// The same of words with settings. `C++` is one word where there are exceptions.
fn check_best_with(settings: &[(&str, &str)], query: KeywordQuery, bodies: &[&str]) {
    let mut set = Settings::default();
    for (name, value) in settings {
        set.set(name, value).unwrap();
    }
    let files = vec![("exceptions.txt".to_owned(), "C++ => cplusplus\n".to_owned())];
    let words = WordsDef::new(9, vec![TITLE, BODY], &set, files).unwrap();
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
fn overflowing_weights_are_computed() {
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
fn an_excluded_word_counts_its_hits() {
    let (text, ranker) = ("((a -b) MAYBE c) | d".to_owned(), Ranker::by_name("wordcount").unwrap());
    let query = KeywordQuery { text, ranker, ..Default::default() };
    check_best(query, &["c d d d", "a a b d", "d d c", "a"]);
}

/// What a wildcard stands for stands where that word does, so that a run changes its shift.
#[test]
fn runs_of_wildcards_are_longer_than_their_shifts() {
    let mut bodies = vec!["blue blue red red red red food food food", "red food blue"];
    bodies.extend(["filler"; 9]);
    for ranker in ["proximity_bm25", "matchany", "sph04", "proximity"] {
        for text in ["red food fo* blue", "red | food | fo* | blue"] {
            let (text, ranker) = (text.to_owned(), Ranker::by_name(ranker).unwrap());
            let query = KeywordQuery { text, ranker, ..Default::default() };
            check_best_with(&[("min_prefix_len", "2")], query, &bodies);
        }
    }
}

/// An exception with blended characters takes no place of its own: the word behind it stands there too.
#[test]
fn words_after_blended_exceptions_have_correct_positions() {
    let settings = [("blend_chars", "+"), ("exceptions", "exceptions.txt")];
    let mut bodies = vec!["blue green red red red cplusplus blue green", "red C++ blue green"];
    bodies.extend(["developer of C++", "C++ developer", "developer"]);
    bodies.extend(["filler"; 9]);
    for ranker in ["proximity_bm25", "matchany", "sph04"] {
        for text in [
            "red cplusplus blue green",
            "red | cplusplus | blue | green",
            "\"C++ developer\"",
            "\"cplusplus blue\" | red",
        ] {
            let (text, ranker) = (text.to_owned(), Ranker::by_name(ranker).unwrap());
            let query = KeywordQuery { text, ranker, ..Default::default() };
            check_best_with(&settings, query, &bodies);
        }
    }
}
