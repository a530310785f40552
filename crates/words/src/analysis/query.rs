//! The tokens of a query.

use super::{
    Analyzer,
    forms::Tokens,
    tokenizer::{Kind, Tokenizer},
};

/// A token of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryToken {
    /// The start of the token in the query, in bytes.
    pub start: usize,
    /// The end of the token. For the replacement of a sequence of words, it is the end of the
    /// sequence.
    pub end: usize,
    /// The positions taken by too short words before it.
    pub skipped: u32,
    /// The kind of the token.
    pub kind: QueryTokenKind,
}

/// The kind of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryTokenKind {
    /// One of `( ) | - ! @ ~ " / ^ $ <`; `=` if words are also indexed as written; `*` as a single character.
    Special(char),
    /// A word.
    Word {
        /// The folded word, not yet stemmed, for [`Analyzer::keyword`]. A blended word is whole.
        word: String,
        /// Whether it is a stop word, which takes `positions - 1 + stopword_step` positions.
        is_stop: bool,
        /// The number of positions it takes: 1; for a blended word the number of its parts, which may be 0.
        positions: u32,
    },
}

/// Iterates over the tokens of a query.
pub struct QueryTokens<'a> {
    analyzer: &'a Analyzer,
    tokens: Tokens<'a>,
    word: String,
    /// Where the search for the next token starts.
    offset: usize,
    /// The end of the last token.
    end: usize,
    /// Too short words not yet counted for a word.
    skipped: u32,
}

impl<'a> QueryTokens<'a> {
    pub(super) fn new(analyzer: &'a Analyzer, text: &'a str) -> Self {
        let tokens = Tokens::new(Tokenizer::query(&analyzer.rules, text), &analyzer.sequences);
        Self { analyzer, tokens, word: String::new(), offset: 0, end: 0, skipped: 0 }
    }

    /// Where the search for the next token starts, in bytes of the text.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Continues at `offset`. A separator directly after the last word belongs to that word.
    pub fn seek(&mut self, offset: usize) {
        let is_here = offset == self.offset || offset == self.end;
        if is_here || offset > self.end && self.tokens.is_ready() {
            return;
        }
        self.skipped += self.tokens.tokenizer.take_skipped();
        (self.offset, self.end) = (offset, offset);
        self.tokens.seek(offset);
    }

    /// The positions taken by too short words after the last token. Call it at the end.
    #[must_use]
    pub fn trailing(&self) -> u32 {
        self.skipped * self.analyzer.settings.overshort_step()
    }

    /// Whether the character only separates words.
    #[must_use]
    pub fn is_separator(&self, c: char) -> bool {
        let rules = &self.analyzer.rules;
        rules.characters.get(c).is_separator() && !rules.is_special(c) && !rules.is_wildcard(c)
    }

    fn special(&mut self, start: usize, end: usize, c: char) -> QueryToken {
        if c == '"' {
            self.tokens.tokenizer.is_quoted ^= true;
        }
        (self.offset, self.end) = (end, end);
        QueryToken { start, end, skipped: 0, kind: QueryTokenKind::Special(c) }
    }
}

impl Iterator for QueryTokens<'_> {
    type Item = QueryToken;

    fn next(&mut self) -> Option<QueryToken> {
        let mut word = std::mem::take(&mut self.word);
        let Some(token) = self.tokens.next(&mut word) else {
            self.skipped += self.tokens.tokenizer.take_skipped();
            return None;
        };
        if let Kind::Special(c) = token.kind {
            // Too short words before an operator count for the next word.
            self.skipped += self.tokens.tokenizer.take_skipped();
            return Some(self.special(token.start, token.end, c));
        }
        let positions = match token.kind {
            Kind::Whole => self.tokens.tokenizer.count_parts(&token),
            // A word of blended characters only takes no position at the start of a query.
            Kind::Pure => u32::from(token.start > 0),
            Kind::Exception { is_blended: true } => 0,
            _ => 1,
        };
        (self.offset, self.end) = (token.resume, token.end);
        if !self.tokens.is_ready() {
            self.tokens.seek(token.resume);
        }
        let skipped = token.skipped + std::mem::take(&mut self.skipped);
        let skipped = skipped * self.analyzer.settings.overshort_step();
        let is_stop = self.analyzer.keyword(&word, false).is_none();
        let kind = QueryTokenKind::Word { word, is_stop, positions };
        Some(QueryToken { start: token.start, end: token.end, skipped, kind })
    }
}
