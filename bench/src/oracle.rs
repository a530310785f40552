//! The oracle: answers queries by a full scan of every normalised text.

use aho_corasick::AhoCorasick;
use anyhow::{Context, Result};
use remora_engine::{Normalization, TextQuery};
use rustc_hash::FxHashMap;

use crate::corpus::Corpus;

/// The most ids that an answer lists.
pub const NEWEST: usize = 100;

/// The rows that contain each term of a set of queries.
pub struct Oracle {
    ids: Vec<u64>,
    rows: FxHashMap<String, Vec<u32>>,
}

/// The exact answer to a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The number of matching rows.
    pub total: u64,
    /// The newest (largest) ids, at most [`NEWEST`], descending.
    pub newest: Vec<u64>,
}

impl Oracle {
    /// Scans the corpus once, using all CPUs, for all the terms of the queries.
    pub fn scan<'q>(
        corpus: &Corpus,
        queries: impl IntoIterator<Item = &'q TextQuery>,
    ) -> Result<Self> {
        let mut terms = Vec::new();
        queries.into_iter().for_each(|query| collect_terms(query, &mut terms));
        terms.sort_unstable();
        terms.dedup();
        let rows = rows_of_terms(&corpus.texts, &terms)?;
        Ok(Self { ids: corpus.ids(), rows: terms.into_iter().zip(rows).collect() })
    }

    /// The answer to a query whose terms were scanned for.
    pub fn answer(&self, query: &TextQuery) -> Answer {
        let matching = self.matching(query);
        let newest = matching.iter().enumerate().rev().filter(|(_, is_match)| **is_match);
        Answer {
            total: matching.iter().filter(|is_match| **is_match).count() as u64,
            newest: newest.take(NEWEST).filter_map(|(row, _)| self.ids.get(row).copied()).collect(),
        }
    }

    fn matching(&self, query: &TextQuery) -> Vec<bool> {
        let mut result = vec![false; self.ids.len()];
        match query {
            TextQuery::Term(term) => {
                for row in self.rows.get(&normalised(term)).into_iter().flatten() {
                    result[*row as usize] = true;
                }
            }
            // No suite uses these queries.
            TextQuery::Piece(_) | TextQuery::Keywords(_) => {}
            TextQuery::And(parts) => {
                result.fill(true);
                for part in parts {
                    combine(&mut result, &self.matching(part), |left, right| left && right);
                }
            }
            TextQuery::Or(parts) => {
                for part in parts {
                    combine(&mut result, &self.matching(part), |left, right| left || right);
                }
            }
            TextQuery::Not(part) => {
                combine(&mut result, &self.matching(part), |_, right| !right);
            }
        }
        result
    }
}

/// For each term the numbers of the texts that contain it, ascending.
pub fn rows_of_terms(texts: &[String], terms: &[String]) -> Result<Vec<Vec<u32>>> {
    let automaton = AhoCorasick::new(terms).context("cannot build the scanner of the truth")?;
    let chunk = texts.len().div_ceil(crate::measure::processors()).max(1);
    let parts: Vec<Vec<Vec<u32>>> = std::thread::scope(|scope| {
        let workers: Vec<_> = texts
            .chunks(chunk)
            .enumerate()
            .map(|(number, part)| {
                let automaton = &automaton;
                let first = (number * chunk) as u32;
                scope.spawn(move || scan_part(automaton, part, first, terms.len()))
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or_default()).collect()
    });
    let mut rows = vec![Vec::new(); terms.len()];
    for part in parts {
        rows.iter_mut().zip(part).for_each(|(all, more)| all.extend(more));
    }
    Ok(rows)
}

fn scan_part(
    automaton: &AhoCorasick,
    texts: &[String],
    first: u32,
    term_count: usize,
) -> Vec<Vec<u32>> {
    let mut rows = vec![Vec::new(); term_count];
    for (row, text) in (first..).zip(texts) {
        for found in automaton.find_overlapping_iter(text) {
            let list: &mut Vec<u32> = &mut rows[found.pattern().as_usize()];
            if list.last() != Some(&row) {
                list.push(row);
            }
        }
    }
    rows
}

fn collect_terms(query: &TextQuery, terms: &mut Vec<String>) {
    match query {
        TextQuery::Term(term) => terms.push(normalised(term)),
        TextQuery::Piece(_) | TextQuery::Keywords(_) => {}
        TextQuery::And(parts) | TextQuery::Or(parts) => {
            parts.iter().for_each(|part| collect_terms(part, terms));
        }
        TextQuery::Not(part) => collect_terms(part, terms),
    }
}

fn normalised(term: &str) -> String {
    Normalization::default().apply(term).into_owned()
}

fn combine(left: &mut [bool], right: &[bool], with: impl Fn(bool, bool) -> bool) {
    left.iter_mut().zip(right).for_each(|(left, right)| *left = with(*left, *right));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Document;

    fn corpus(texts: &[&str]) -> Corpus {
        let document = |(number, text): (usize, &&str)| Document {
            id: number as u64 + 1,
            text: (*text).into(),
            ..Default::default()
        };
        Corpus::new(texts.iter().enumerate().map(document).collect())
    }

    fn term(text: &str) -> TextQuery {
        TextQuery::Term(text.into())
    }

    #[test]
    fn agrees_with_contains_on_every_term() {
        let corpus = corpus(&["band and sand", "an d", "日本語と日本", "", "本日は"]);
        for text in ["an", "and", "band", "日本", "本", "d", " ", "zz"] {
            let oracle = Oracle::scan(&corpus, [&term(text)]).unwrap();
            let expected: Vec<u64> = (0..5)
                .rev()
                .filter(|row| corpus.texts[*row].contains(text))
                .map(|row| row as u64 + 1)
                .collect();
            let answer = oracle.answer(&term(text));
            assert_eq!(answer.newest, expected, "{text}");
            assert_eq!(answer.total, expected.len() as u64, "{text}");
        }
    }

    #[test]
    fn combines_terms() {
        let corpus = corpus(&["solar eclipse", "lunar eclipse", "eclipse", "moon"]);
        let query = TextQuery::And(vec![
            term("eclipse"),
            TextQuery::Not(Box::new(TextQuery::Or(vec![term("lunar"), term("solar")]))),
        ]);
        let oracle = Oracle::scan(&corpus, [&query]).unwrap();
        assert_eq!(oracle.answer(&query), Answer { total: 1, newest: vec![3] });
    }
}
