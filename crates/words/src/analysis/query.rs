//! The tokens of a query.

use super::{
    Analyzer,
    forms::Tokens,
    tokenizer::{Kind, Tokenizer},
};

/// A token of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryToken {
    /// Where it begins in the query, in bytes.
    pub start: usize,
    /// Where it ends; for words that replace others, where those do.
    pub end: usize,
    /// The positions that too short words before it took.
    pub skipped: u32,
    /// What it is.
    pub kind: QueryTokenKind,
}

/// What a token of a query is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryTokenKind {
    /// One of `( ) | - ! @ ~ " / ^ $ <`; `=` where words are indexed as written; `*` that stands alone.
    Special(char),
    /// A word.
    Word {
        /// Folded, not yet stemmed: [`Analyzer::keyword`] takes it. A blended word is whole.
        word: String,
        /// It is a stop word: it takes `positions - 1 + stopword_step` positions.
        is_stop: bool,
        /// How many positions it takes: 1; the number of its parts if it is blended, which may be 0.
        positions: u32,
    },
}

/// The tokens of a query, one after the other.
pub struct QueryTokens<'a> {
    analyzer: &'a Analyzer,
    tokens: Tokens<'a>,
    word: String,
    /// Where the next token is looked for.
    offset: usize,
    /// Where the last token ended.
    end: usize,
    /// Too short words that no word has counted.
    skipped: u32,
}

impl<'a> QueryTokens<'a> {
    pub(super) fn new(analyzer: &'a Analyzer, text: &'a str) -> Self {
        let tokens = Tokens::new(Tokenizer::query(&analyzer.rules, text), &analyzer.sequences);
        Self { analyzer, tokens, word: String::new(), offset: 0, end: 0, skipped: 0 }
    }

    /// Where the next token is looked for, in bytes of the text.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Looks for the next token there. A separator right behind the last word belongs to the word.
    pub fn seek(&mut self, offset: usize) {
        let is_here = offset == self.offset || offset == self.end;
        if is_here || offset > self.end && self.tokens.is_ready() {
            return;
        }
        self.skipped += self.tokens.tokenizer.take_skipped();
        (self.offset, self.end) = (offset, offset);
        self.tokens.seek(offset);
    }

    /// The positions of the too short words behind the last token, once there is no more.
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
            // Too short words before an operator are counted by the next word.
            self.skipped += self.tokens.tokenizer.take_skipped();
            return Some(self.special(token.start, token.end, c));
        }
        let positions = match token.kind {
            Kind::Whole => self.tokens.tokenizer.count_parts(&token),
            // At the very beginning of a query it takes none.
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
