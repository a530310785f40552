//! The words of a query, and which of them a word of a text is.

use rustc_hash::FxHashMap;

use crate::{
    analysis::{Analyzer, QueryTokenKind, Span},
    query::{MAX_WORDS, Wildcard, Word},
};

/// How many patterns are compared with words of one text at most; what comes behind matches none.
const MAX_COMPARED: u32 = 20_000_000;

/// The words of a query, each once.
#[derive(Debug, Default)]
pub(super) struct Terms {
    by_keyword: FxHashMap<String, u32>,
    by_written: FxHashMap<String, u32>,
    patterns: Vec<(Wildcard, u32)>,
    numbers: FxHashMap<String, u32>,
    /// Their lengths in characters.
    pub weights: Vec<u32>,
}

impl Terms {
    /// The words of a text that is no query; and them in their order, with positions.
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

    /// Adds a word of a query and gives its number.
    pub(super) fn add_word(&mut self, word: &Word, analyzer: &Analyzer) -> Option<u32> {
        self.add(&word.text, word.is_exact, analyzer)
    }

    fn add(&mut self, word: &str, is_exact: bool, analyzer: &Analyzer) -> Option<u32> {
        let keyword = analyzer.keyword(word, is_exact)?;
        if let Some(number) = self.numbers.get(&keyword) {
            return Some(*number);
        }
        if self.weights.len() >= 2 * MAX_WORDS {
            return None;
        }
        let number = self.weights.len() as u32;
        let is_pattern = analyzer.settings().has_wildcards() && word.contains(['*', '?', '%']);
        if is_pattern {
            match Wildcard::new(word, analyzer.settings()) {
                Ok(pattern) if !pattern.is_nothing() => self.patterns.push((pattern, number)),
                _ => {}
            }
        } else if is_exact && keyword.starts_with('=') {
            self.by_written.insert(word.to_owned(), number);
        } else {
            self.by_keyword.insert(keyword.clone(), number);
        }
        self.weights.push(word.chars().count() as u32);
        self.numbers.insert(keyword, number);
        Some(number)
    }
}

/// Finds the words of a query in one text.
pub(super) struct Finder<'q> {
    terms: &'q Terms,
    is_exact: bool,
    /// What patterns matched, by the word as written.
    known: FxHashMap<Box<str>, Box<[u32]>>,
    compared: u32,
    exact: String,
}

/// Most words that are remembered.
const MAX_KNOWN: usize = 65_536;

impl<'q> Finder<'q> {
    pub(super) fn new(terms: &'q Terms, analyzer: &Analyzer) -> Self {
        let is_exact = analyzer.settings().index_exact_words();
        let known = FxHashMap::default();
        Self { terms, is_exact, known, compared: 0, exact: String::new() }
    }

    /// Calls `each` with the number of every word of the query that this word is.
    pub(super) fn find(&mut self, span: &Span<'_>, each: &mut dyn FnMut(u32)) {
        let Some(keyword) = span.keyword else { return };
        self.terms.by_keyword.get(keyword).copied().into_iter().for_each(&mut *each);
        self.terms.by_written.get(span.written).copied().into_iter().for_each(&mut *each);
        if self.terms.patterns.is_empty() {
            return;
        }
        if let Some(known) = self.known.get(span.written) {
            return known.iter().copied().for_each(each);
        }
        let found = self.compare(span, keyword);
        found.iter().copied().for_each(each);
        if self.known.len() < MAX_KNOWN {
            self.known.insert(span.written.into(), found.into());
        }
    }

    fn compare(&mut self, span: &Span<'_>, keyword: &str) -> Vec<u32> {
        let size = self.terms.patterns.len() as u32;
        if self.compared.saturating_add(size) > MAX_COMPARED {
            return Vec::new();
        }
        self.compared += size;
        self.exact.clear();
        self.exact.push_str(if self.is_exact { "=" } else { "" });
        self.exact.push_str(if self.is_exact { span.written } else { keyword });
        let fits = |(pattern, _): &&(Wildcard, u32)| pattern.matches(&self.exact);
        self.terms.patterns.iter().filter(fits).map(|(_, number)| *number).collect()
    }
}
