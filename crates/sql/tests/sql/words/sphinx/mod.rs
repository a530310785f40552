//! Random queries over tables, compared with Sphinx 2.2.11: ids, order, weights, counts, words, errors. The queries and the
//! comparison are those of `crates/words/tests/sphinx`. Each is answered by tables of one segment and of several, among
//! deleted and changed rows, by distributed tables of 2, 3 and 8 parts, by several sessions at the same time, and in a
//! transaction that wrote the rows. All of them must answer as the model of that test does, which reads every row.
//!
//! `REMORA_SEED` repeats a run, `REMORA_QUERIES` sets the number of queries of each test.

#![allow(dead_code, reason = "the modules are those of another test, which uses all of them")]

#[path = "../../../../../words/tests/sphinx/broken.rs"]
mod broken;
#[path = "../../../../../words/tests/sphinx/client.rs"]
mod client;
#[path = "../../../../../words/tests/sphinx/collection.rs"]
mod collection;
#[path = "../../../../../words/tests/sphinx/compare.rs"]
mod compare;
#[path = "../../../../../words/tests/sphinx/corpus.rs"]
mod corpus;
#[path = "../../../../../words/tests/sphinx/engine.rs"]
mod engine;
#[path = "../../../../../words/tests/sphinx/excerpt_case.rs"]
mod excerpt_case;
#[path = "../../../../../words/tests/sphinx/expressions.rs"]
mod expressions;
#[path = "../../../../../words/tests/sphinx/known.rs"]
mod known;
#[path = "../../../../../words/tests/sphinx/marked.rs"]
mod marked;
#[path = "../../../../../words/tests/sphinx/queries.rs"]
mod queries;
#[path = "../../../../../words/tests/sphinx/random.rs"]
mod random;
#[path = "../../../../../words/tests/sphinx/run.rs"]
mod run;
#[path = "../../../../../words/tests/sphinx/server.rs"]
mod server;
#[path = "../../../../../words/tests/sphinx/shrink.rs"]
mod shrink;
#[path = "../../../../../words/tests/sphinx/sql.rs"]
mod sql;
mod tables;
#[path = "../../../../../words/tests/sphinx/trial.rs"]
mod trial;

use corpus::{Corpus, Vocabulary};
use queries::QueryStyle;
use random::Random;
use run::{Run, run};

/// A corpus without empty fields: Sphinx's indexer gives them the length of the field before.
fn corpus(random: &mut Random, vocabulary: Vocabulary, settings: &[&str]) -> Corpus {
    let mut corpus = Corpus::random(random, vocabulary, settings);
    let word = corpus.vocabulary[0].clone();
    let fields = corpus.documents.iter_mut().flat_map(|document| &mut document.fields);
    fields.filter(|field| field.is_empty()).for_each(|field| field.clone_from(&word));
    corpus
}

#[test]
fn tables_answer_like_sphinx() {
    let corpora = |random: &mut Random| {
        vec![
            corpus(random, Vocabulary::Tiny, &[]),
            corpus(random, Vocabulary::Tiny, &[]),
            corpus(random, Vocabulary::Natural, &["min_infix_len = 2"]),
            corpus(
                random,
                Vocabulary::Inflected,
                &["morphology = stem_en", "index_exact_words = 1"],
            ),
        ]
    };
    let ask = |random: &mut Random, corpus: &Corpus| {
        let style = match random.below(8) {
            0 => QueryStyle::Repeated,
            1 | 2 if corpus.has_wildcards() => QueryStyle::Wildcards,
            _ => QueryStyle::Distinct,
        };
        if random.once_in(16) {
            return (broken::query(random, corpus), engine::Options::default());
        }
        let options = match random.once_in(4) {
            true => queries::ranked_options(random, corpus),
            false => queries::options(random, corpus),
        };
        (queries::query(random, corpus, style), options)
    };
    let make = &*tables::make();
    run(Run { name: "tables_answer_like_sphinx", corpora: &corpora, ask: &ask, make });
}

#[test]
fn tables_with_marks_answer_like_sphinx() {
    let (sp, strip, zones) = ("index_sp = 1", "html_strip = 1", "index_zones = h*, th, note");
    let corpora = |random: &mut Random| {
        vec![
            corpus(random, Vocabulary::Tiny, &[sp]),
            corpus(random, Vocabulary::Tiny, &[sp, strip, zones]),
            corpus(random, Vocabulary::Inflected, &[strip, zones, "morphology = stem_en"]),
        ]
    };
    let ask = |random: &mut Random, corpus: &Corpus| {
        let options = match random.once_in(4) {
            true => queries::ranked_options(random, corpus),
            false => queries::options(random, corpus),
        };
        (queries::query(random, corpus, QueryStyle::Marked), options)
    };
    let make = &*tables::make();
    run(Run { name: "tables_with_marks_answer_like_sphinx", corpora: &corpora, ask: &ask, make });
}
