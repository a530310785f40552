//! A text as its words and the gaps between them.

use std::ops::Range;

/// A word of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    pub start: u32,
    pub end: u32,
    /// As the index counts.
    pub position: u32,
    /// The number of the query's word that it matches.
    pub term: Option<std::num::NonZeroU32>,
}

/// A text whose words are known.
///
/// Its tokens are numbered: word i is token 2i + 1, the gap before it token 2i, the rest token 2n.
pub(super) struct Text<'t> {
    pub text: &'t str,
    pub words: Vec<Word>,
}

impl<'t> Text<'t> {
    pub(super) fn token_count(&self) -> usize {
        2 * self.words.len() + 1
    }

    fn range(&self, token: usize) -> Range<usize> {
        let start_of = |number: usize| self.words.get(number).map(|word| word.start as usize);
        let end_of = |number: usize| self.words.get(number).map_or(0, |word| word.end as usize);
        let number = token / 2;
        if token % 2 == 1 {
            return start_of(number).unwrap_or(self.text.len())..end_of(number);
        }
        let before = number.checked_sub(1).map_or(0, end_of);
        before..start_of(number).unwrap_or(self.text.len())
    }

    pub(super) fn slice(&self, token: usize) -> &'t str {
        self.text.get(self.range(token)).unwrap_or("")
    }

    /// Its characters.
    pub(super) fn length(&self, token: usize) -> u64 {
        self.slice(token).chars().count() as u64
    }

    pub(super) fn is_word(&self, token: usize) -> bool {
        token % 2 == 1 && token / 2 < self.words.len()
    }

    /// The query's word that this token matches, as [`Word::term`] has it.
    pub(super) fn term(&self, token: usize) -> Option<usize> {
        let word = self.words.get(token / 2).filter(|_| token % 2 == 1)?;
        word.term.map(|term| term.get() as usize - 1)
    }
}
