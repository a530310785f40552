//! Queries in the mix of a study of distributed search: 3.1 words on average, a third of them repeated.

use anyhow::{Context, Result};
use serde::Serialize;

use super::words::Words;
use crate::random::SplitMix64;

/// How many of 1,000 queries have one word, two words and so on: 3.1 on average.
const LENGTHS: [usize; 10] = [178, 260, 230, 140, 90, 50, 25, 15, 6, 6];
/// How many of 1,000 queries are repetitions: 6,770 of the study's 10,000 were distinct.
const REPEATED: usize = 323;

/// The words of one query, for every kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// Distinct words that need not occur together.
    pub words: Vec<String>,
    /// As many distinct words that are adjacent in some text.
    pub run: Vec<String>,
}

/// A way to ask for words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One of the words.
    Any,
    /// All of them.
    All,
    /// Words behind each other.
    Phrase,
    /// Words near each other.
    Proximity,
}

impl Kind {
    /// The name in tables and file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::All => "all",
            Self::Phrase => "phrase",
            Self::Proximity => "proximity",
        }
    }

    /// The query in Sphinx's query language.
    pub fn text(self, query: &Query) -> String {
        match self {
            Self::Any => query.words.join(" | "),
            Self::All => query.words.join(" "),
            Self::Phrase => format!("\"{}\"", query.run.join(" ")),
            Self::Proximity => format!("\"{}\"~5", query.run.join(" ")),
        }
    }
}

/// The statement, the same for both servers; texts consist of letters, digits and operators only.
pub fn statement(index: &str, text: &str, options: &str) -> String {
    format!(
        "SELECT id, WEIGHT() AS w FROM {index} WHERE MATCH('{text}') LIMIT 100 OPTION max_matches=1000, {options}"
    )
}

/// `count` queries; a seed always gives the same ones.
pub fn queries(words: &Words<'_>, seed: u64, count: usize) -> Result<Vec<Query>> {
    let mut random = SplitMix64::new(seed);
    let mut queries: Vec<Query> = Vec::with_capacity(count);
    for _ in 0..count {
        let before = (random.below(1_000) < REPEATED && !queries.is_empty())
            .then(|| random.below(queries.len()));
        let query = match before.and_then(|at| queries.get(at)) {
            Some(query) => query.clone(),
            None => {
                let length = length(&mut random);
                query_of(words, &mut random, length)?
            }
        };
        queries.push(query);
    }
    Ok(queries)
}

/// A query of distinct words; the run is empty if no text has one of that length.
pub fn long_query(words: &Words<'_>, random: &mut SplitMix64, length: usize) -> Result<Query> {
    let words = words.draw(random, length).context("the texts have too few different words")?;
    Ok(Query { words, run: Vec::new() })
}

fn query_of(words: &Words<'_>, random: &mut SplitMix64, length: usize) -> Result<Query> {
    let run = words.run(random, length).context("the texts are too short for phrases")?;
    Ok(Query { run, ..long_query(words, random, length)? })
}

/// Draws a number of words by [`LENGTHS`].
fn length(random: &mut SplitMix64) -> usize {
    let place = random.below(LENGTHS.iter().sum());
    let mut before: usize = 0;
    let is_behind = |count: &usize| {
        before += count;
        place < before
    };
    1 + LENGTHS.iter().position(is_behind).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Document;

    fn texts() -> Vec<Document> {
        let text = (0..40).map(|n| format!("word{n}")).collect::<Vec<_>>().join(" ");
        vec![Document { text, ..Default::default() }]
    }

    #[test]
    fn lengths_are_those_of_the_study() {
        let all: usize = LENGTHS.iter().sum();
        let words: usize = LENGTHS.iter().zip(1..).map(|(count, length)| count * length).sum();
        assert_eq!((all, words), (1_000, 3_107));
        let mut random = SplitMix64::new(9);
        let drawn: Vec<usize> = (0..10_000).map(|_| length(&mut random)).collect();
        let mean = drawn.iter().sum::<usize>() as f64 / 10_000.0;
        assert!((3.0..3.2).contains(&mean), "{mean}");
        assert!(drawn.contains(&1) && drawn.contains(&10) && !drawn.contains(&0));
    }

    #[test]
    fn the_same_seed_draws_the_same_and_a_third_again() {
        let documents = texts();
        let words = Words::of(&documents);
        let first = queries(&words, 7, 2_000).unwrap();
        assert_eq!(first, queries(&words, 7, 2_000).unwrap());
        assert_ne!(first, queries(&words, 8, 2_000).unwrap());
        assert!(first.iter().all(|query| query.words.len() == query.run.len()));
        let mut different: Vec<String> = first
            .iter()
            .filter(|query| query.words.len() > 3)
            .map(|query| Kind::Any.text(query))
            .collect();
        let all = different.len();
        different.sort_unstable();
        different.dedup();
        let share = different.len() as f64 / all as f64;
        assert!((0.6..0.75).contains(&share), "{share}");
    }

    #[test]
    fn kinds_are_written_in_sphinxs_language() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect();
        let query = Query { words: words("reef coral"), run: words("great barrier reef") };
        let texts = [Kind::Any, Kind::All, Kind::Phrase, Kind::Proximity].map(|it| it.text(&query));
        let expected =
            ["reef | coral", "reef coral", "\"great barrier reef\"", "\"great barrier reef\"~5"];
        assert_eq!(texts, expected);
        assert_eq!(
            statement("wiki", "a | b", "ranker=bm25"),
            "SELECT id, WEIGHT() AS w FROM wiki WHERE MATCH('a | b') LIMIT 100 OPTION max_matches=1000, ranker=bm25"
        );
    }
}
