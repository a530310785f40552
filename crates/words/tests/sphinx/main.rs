//! Random queries, compared with Sphinx 2.2.11: equal ids in the same order, equal integer weights, equal word
//! statistics, equal texts of errors and warnings.
//!
//! `REMORA_SEED` repeats a run, `REMORA_QUERIES` sets the number of queries of each test.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod answers;
mod broken;
mod client;
mod collection;
mod compare;
mod corpus;
mod engine;
mod excerpt_case;
mod excerpts;
mod expressions;
mod known;
mod marked;
mod packed;
mod peer;
mod queries;
mod random;
mod run;
mod server;
mod shrink;
mod sql;
mod trial;

use std::rc::Rc;

use corpus::{Corpus, Vocabulary};
use engine::{Found, Idf, Make, Options, Sort};
use queries::QueryStyle;
use random::Random;
use run::{Run, run};
use server::Index;
use trial::Sphinx;

/// The engines that are compared with Sphinx.
fn engines() -> Box<Make> {
    Box::new(collection::make)
}

#[test]
fn plain_queries() {
    let corpora = |random: &mut Random| {
        let tiny = (0..3).map(|_| Vocabulary::Tiny);
        let all = tiny.chain([Vocabulary::Natural, Vocabulary::Inflected]);
        all.map(|vocabulary| Corpus::random(random, vocabulary, &[])).collect()
    };
    let ask = |random: &mut Random, corpus: &Corpus| {
        (queries::query(random, corpus, QueryStyle::Distinct), queries::options(random, corpus))
    };
    let make = &*engines();
    run(Run { name: "plain_queries", corpora: &corpora, ask: &ask, make });
}

#[test]
fn repeated_words() {
    let corpora = |random: &mut Random| {
        (0..4).map(|_| Corpus::random(random, Vocabulary::Tiny, &[])).collect()
    };
    let ask = |random: &mut Random, corpus: &Corpus| {
        (queries::query(random, corpus, QueryStyle::Repeated), queries::options(random, corpus))
    };
    let make = &*engines();
    run(Run { name: "repeated_words", corpora: &corpora, ask: &ask, make });
}

#[test]
fn quorums_of_words_that_are_one() {
    let corpora = |random: &mut Random| {
        let stemmed = ["morphology = stem_en"];
        let exact = ["morphology = stem_en", "index_exact_words = 1"];
        vec![
            Corpus::random(random, Vocabulary::Tiny, &stemmed),
            Corpus::random(random, Vocabulary::Tiny, &[]),
            Corpus::random(random, Vocabulary::Inflected, &stemmed),
            Corpus::random(random, Vocabulary::Inflected, &exact),
        ]
    };
    let ask = |random: &mut Random, corpus: &Corpus| {
        (queries::merged_quorum(random, corpus), queries::options(random, corpus))
    };
    let make = &*engines();
    run(Run { name: "quorums_of_words_that_are_one", corpora: &corpora, ask: &ask, make });
}

#[test]
fn broken_queries() {
    let corpora = |random: &mut Random| {
        let exact = ["morphology = stem_en", "index_exact_words = 1"];
        vec![
            Corpus::random(random, Vocabulary::Tiny, &[]),
            Corpus::random(random, Vocabulary::Tiny, &["min_infix_len = 2"]),
            Corpus::random(random, Vocabulary::Inflected, &exact),
        ]
    };
    let ask =
        |random: &mut Random, corpus: &Corpus| (broken::query(random, corpus), Options::default());
    let make = &*engines();
    run(Run { name: "broken_queries", corpora: &corpora, ask: &ask, make });
}

#[test]
fn ranking_expressions() {
    let corpora = |random: &mut Random| {
        let tiny = (0..3).map(|_| Vocabulary::Tiny);
        tiny.map(|vocabulary| Corpus::random(random, vocabulary, &[])).collect()
    };
    let ask = |random: &mut Random, corpus: &Corpus| {
        (
            queries::query(random, corpus, QueryStyle::Distinct),
            queries::ranked_options(random, corpus),
        )
    };
    let make = &*engines();
    run(Run { name: "ranking_expressions", corpora: &corpora, ask: &ask, make });
}

#[test]
fn ranking_expressions_of_repeated_words() {
    let corpora = |random: &mut Random| {
        (0..3).map(|_| Corpus::random(random, Vocabulary::Tiny, &[])).collect()
    };
    let ask = |random: &mut Random, corpus: &Corpus| {
        (
            queries::query(random, corpus, QueryStyle::Repeated),
            queries::ranked_options(random, corpus),
        )
    };
    let make = &*engines();
    let name = "ranking_expressions_of_repeated_words";
    run(Run { name, corpora: &corpora, ask: &ask, make });
}

#[test]
fn wildcards() {
    let corpora = |random: &mut Random| {
        vec![
            Corpus::random(random, Vocabulary::Natural, &["min_infix_len = 2"]),
            Corpus::random(random, Vocabulary::Natural, &["min_prefix_len = 2"]),
            Corpus::random(random, Vocabulary::Tiny, &["min_infix_len = 3"]),
        ]
    };
    let ask = |random: &mut Random, corpus: &Corpus| {
        (queries::query(random, corpus, QueryStyle::Wildcards), queries::options(random, corpus))
    };
    let make = &*engines();
    run(Run { name: "wildcards", corpora: &corpora, ask: &ask, make });
}

#[test]
fn sentences_paragraphs_and_zones() {
    let (strip, sp) = ("html_strip = 1", "index_sp = 1");
    let zones = "index_zones = h*, th, note";
    let corpora = |random: &mut Random| {
        let of = |settings: &[&str]| Corpus::random(random, Vocabulary::Tiny, settings);
        let settings: [&[&str]; 6] = [
            &[sp],
            &[sp, strip],
            &[sp, strip, zones],
            &[sp, strip, zones],
            &[strip, zones],
            &[sp, strip, zones, "morphology = stem_en"],
        ];
        settings.map(of).into()
    };
    let ask = |random: &mut Random, corpus: &Corpus| {
        (queries::query(random, corpus, QueryStyle::Marked), queries::options(random, corpus))
    };
    let make = &*engines();
    run(Run { name: "sentences_paragraphs_and_zones", corpora: &corpora, ask: &ask, make });
}

#[test]
fn expanded_keywords() {
    let expand = "expand_keywords = 1";
    let corpora = |random: &mut Random| {
        let exact = ["morphology = stem_en", "index_exact_words = 1", expand];
        vec![
            Corpus::random(random, Vocabulary::Natural, &["min_infix_len = 2", expand]),
            Corpus::random(random, Vocabulary::Natural, &["min_prefix_len = 2", expand]),
            Corpus::random(random, Vocabulary::Inflected, &exact),
            Corpus::random(random, Vocabulary::Inflected, &["min_infix_len = 3", exact[0], expand]),
        ]
    };
    let ask = |random: &mut Random, corpus: &Corpus| {
        (queries::query(random, corpus, QueryStyle::Distinct), queries::options(random, corpus))
    };
    let make = &*engines();
    run(Run { name: "expanded_keywords", corpora: &corpora, ask: &ask, make });
}

#[test]
fn morphology_and_stopwords() {
    let corpora = |random: &mut Random| {
        let stemmed = Corpus::random(random, Vocabulary::Inflected, &["morphology = stem_en"]);
        let exact = ["morphology = stem_en", "index_exact_words = 1"];
        let exact = Corpus::random(random, Vocabulary::Inflected, &exact);
        let plain = Corpus::random(random, Vocabulary::Tiny, &[]);
        let (first, third) = (plain.vocabulary[0].clone(), plain.vocabulary[2].clone());
        vec![stemmed, exact, plain.with_stopwords(&[&first, &third])]
    };
    let ask = |random: &mut Random, corpus: &Corpus| {
        (queries::query(random, corpus, QueryStyle::Distinct), queries::options(random, corpus))
    };
    let make = &*engines();
    run(Run { name: "morphology_and_stopwords", corpora: &corpora, ask: &ask, make });
}

/// The queries by which the harness is tested.
const HARNESS_SEED: u64 = 20_261_121;

/// Adds one to the weight of one document in results of queries for beta.
fn altered(query: &str, found: &mut Found) {
    if query.contains("beta") && found.rows.len() > 2 {
        found.rows[1].1 += 1;
    }
}

#[test]
fn fuzzer_finds_and_shrinks_an_altered_weight() {
    let corpora = |random: &mut Random| vec![Corpus::random(random, Vocabulary::Tiny, &[])];
    let ask = |random: &mut Random, corpus: &Corpus| {
        let query = queries::query(random, corpus, QueryStyle::Distinct);
        (format!("{query} | beta"), queries::options(random, corpus))
    };
    let make = peer::make(altered);
    let run = Run { name: "altered", corpora: &corpora, ask: &ask, make: &*make };
    // The harness itself is what is tested: some random queries have a smaller case than the one that is expected.
    let failed = run::failures(&run, HARNESS_SEED, 20).failures;
    let small = &failed.first().expect("the altered weight is found").shrunk;
    assert_eq!(small.query.trim(), "beta");
    assert_eq!(small.options, Options::default());
    assert_eq!(small.corpus.documents.len(), 3);
}

#[test]
fn shards_find_what_one_index_finds() {
    let mut random = Random::named(run::seed(), "shards");
    let corpus = Rc::new(Corpus::random(&mut random, Vocabulary::Tiny, &[]));
    let indexes: Vec<Index> =
        [1, 3].map(|shards| Index { corpus: Rc::clone(&corpus), shards }).into();
    let mut sphinx = Sphinx::start(&indexes);
    let idf = Idf { local_df: true, ..Idf::default() };
    let sort = Sort::Extended("@id asc".to_owned());
    let options = Options { idf, sort, ..Options::default() };
    let ids = |found: &Found| found.rows.iter().map(|row| row.0).collect::<Vec<u64>>();
    for _ in 0..50 {
        let query = queries::query(&mut random, &corpus, QueryStyle::Distinct);
        let one = sphinx.search(0, &query, &options);
        let three = sphinx.search(1, &query, &options);
        let (Ok(Ok(one)), Ok(Ok(three))) = (one, three) else { continue };
        assert_eq!(ids(&one), ids(&three), "{query}");
        assert_eq!(one.total_found, three.total_found, "{query}");
    }
}

#[test]
fn keywords_are_those_of_the_index() {
    let mut random = Random::named(run::seed(), "keywords");
    let corpus = Corpus::random(&mut random, Vocabulary::Tiny, &["morphology = stem_en"]);
    let documents = corpus.documents.len() as u32;
    let mut sphinx = Sphinx::start(&[Index { corpus: Rc::new(corpus), shards: 1 }]);
    let keywords = sphinx.client().keywords("i0", "Alphas quux").unwrap().unwrap();
    let names: Vec<(&str, &str)> =
        keywords.iter().map(|word| (&*word.tokenized, &*word.normalized)).collect();
    assert_eq!(names, [("alphas", "alpha"), ("quux", "quux")]);
    assert!((1..=documents).contains(&keywords[0].documents));
    assert!(keywords[0].hits >= keywords[0].documents && keywords[1].hits == 0);
}
