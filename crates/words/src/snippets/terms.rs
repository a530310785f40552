//! The words of a query, and which of them a word of a text matches.

use rustc_hash::FxHashMap;

use super::wildcards::Wildcards;
use crate::{
    Result, WordsError,
    analysis::{Analyzer, QueryTokenKind, Span},
    query::{MAX_WORDS, Word},
};

/// The most words with wildcards: each one is tried on every word of a text.
const MAX_WILDCARDS: usize = 64;
/// The most places in the query that are kept per word.
const MAX_PLACES: usize = 4;

/// The distinct words of a query.
#[derive(Debug, Default)]
pub(super) struct Terms {
    /// The numbers of the words that a keyword, or a word as written, matches.
    by_keyword: FxHashMap<String, Vec<u32>>,
    by_written: FxHashMap<String, Vec<u32>>,
    patterns: Vec<(String, u32)>,
    wildcards: Wildcards,
    numbers: FxHashMap<String, u32>,
    /// Whether a word of a text may match one number in several ways.
    has_shared_numbers: bool,
    /// Only words searched in this field are added; `None` for all.
    field: Option<u8>,
    /// The length of each word in characters.
    pub weights: Vec<u32>,
    /// The first places of each word in the query.
    pub places: Vec<Vec<u32>>,
    /// The place of the next word.
    next_place: u32,
}

impl Terms {
    /// No words yet; only those searched in a field will be added.
    pub(super) fn of_field(field: Option<u8>) -> Self {
        Self { field, ..Self::default() }
    }

    /// The words of a plain text; also in order, with positions.
    pub(super) fn of_words(text: &str, analyzer: &Analyzer) -> (Self, Vec<(u32, u32)>) {
        let (mut terms, mut order) = (Self::default(), Vec::new());
        let (mut position, mut is_exact) = (0_u32, false);
        for token in analyzer.query(text).take(4 * MAX_WORDS) {
            let QueryTokenKind::Word { word, is_stop, positions } = token.kind else {
                is_exact = token.kind == QueryTokenKind::Special('=');
                continue;
            };
            let first = position + token.skipped + 1;
            position += token.skipped + positions;
            if is_stop {
                position = (position + analyzer.settings().stopword_step()).saturating_sub(1);
            } else if let Some(number) = terms.add(&word, is_exact, analyzer) {
                order.push((number, first));
            }
            is_exact = false;
            analyzer.spans(&word, &mut |part| {
                if !part.is_whole && part.written != word {
                    terms.add(part.written, false, analyzer);
                }
            });
        }
        (terms, order)
    }

    /// Adds a word of a query, with the others at its place, and returns its number; `None` if it is not searched in
    /// the field.
    pub(super) fn add_word(&mut self, word: &Word, analyzer: &Analyzer) -> Option<u32> {
        if self.field.is_some_and(|field| !word.limit.fields.contains(field)) {
            return None;
        }
        if word.others.is_empty() {
            return self.add(&word.text, word.is_exact, analyzer);
        }
        let all: Vec<&Word> = std::iter::once(word).chain(&word.others).collect();
        let keyword = |word: &&Word| analyzer.keyword(&word.text, word.is_exact);
        let keywords: Vec<String> = all.iter().filter_map(keyword).collect();
        let (number, is_new) = self.number(keywords.join("|"), &word.text)?;
        self.has_shared_numbers = true;
        for (place, word) in all.into_iter().filter(|_| is_new).enumerate() {
            // Forms that the query does not name are left out rather than refused.
            if place == 0 || self.patterns.len() < MAX_WILDCARDS {
                self.note(&word.text, word.is_exact, number, analyzer);
            }
        }
        Some(number)
    }

    fn add(&mut self, word: &str, is_exact: bool, analyzer: &Analyzer) -> Option<u32> {
        let keyword = analyzer.keyword(word, is_exact)?;
        let (number, is_new) = self.number(keyword, word)?;
        if is_new {
            self.note(word, is_exact, number, analyzer);
        }
        Some(number)
    }

    /// The number of a word of this name, and whether it is new; `None` if there are too many.
    fn number(&mut self, name: String, word: &str) -> Option<(u32, bool)> {
        let place = self.next_place;
        self.next_place += 1;
        if let Some(&number) = self.numbers.get(&name) {
            let places = self.places.get_mut(number as usize);
            let places = places.filter(|places| places.len() < MAX_PLACES);
            places.into_iter().for_each(|places| places.push(place));
            return Some((number, false));
        }
        if self.weights.len() >= 2 * MAX_WORDS {
            return None;
        }
        let number = self.weights.len() as u32;
        self.weights.push(word.chars().count() as u32);
        self.places.push(vec![place]);
        self.numbers.insert(name, number);
        Some((number, true))
    }

    /// Notes what the word of this number matches.
    fn note(&mut self, word: &str, is_exact: bool, number: u32, analyzer: &Analyzer) {
        let Some(keyword) = analyzer.keyword(word, is_exact) else { return };
        let is_pattern = analyzer.settings().has_wildcards() && word.contains(['*', '?', '%']);
        if is_pattern {
            self.patterns.push((word.to_owned(), number));
        } else if is_exact && keyword.starts_with('=') {
            self.by_written.entry(word.to_owned()).or_default().push(number);
        } else {
            self.by_keyword.entry(keyword).or_default().push(number);
        }
    }

    /// Prepares for reading texts, once all words are added.
    ///
    /// # Errors
    /// [`WordsError::Query`] for too many words with wildcards.
    pub(super) fn finish(&mut self) -> Result<()> {
        if self.patterns.len() > MAX_WILDCARDS {
            let message = format!("query has more than {MAX_WILDCARDS} words with wildcards");
            return Err(WordsError::Query(message));
        }
        self.wildcards = Wildcards::new(&self.patterns);
        Ok(())
    }

    /// The greatest length among the words that `is_asked` accepts, in characters; `None` if it accepts none.
    pub(super) fn longest(&self, is_asked: impl Fn(usize) -> bool) -> Option<u32> {
        let weights = self.weights.iter().enumerate();
        weights.filter(|(number, _)| is_asked(*number)).map(|(_, length)| *length).max()
    }

    /// Calls `each` with the number of every query word that this word matches.
    pub(super) fn find(&self, span: &Span<'_>, each: &mut impl FnMut(u32)) {
        let Some(keyword) = span.keyword else { return };
        let mut found = Vec::new();
        let mut each = |number| {
            if self.has_shared_numbers {
                if found.contains(&number) {
                    return;
                }
                found.push(number);
            }
            each(number);
        };
        self.by_keyword.get(keyword).into_iter().flatten().copied().for_each(&mut each);
        self.by_written.get(span.written).into_iter().flatten().copied().for_each(&mut each);
        self.wildcards.find(span.written, &mut each);
    }
}
