//! A text and its words.

use std::num::NonZeroU32;

/// A word of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    pub start: u32,
    pub end: u32,
    /// As the index counts.
    pub position: u32,
    /// The number of the query's word that it matches, from 1.
    pub term: Option<NonZeroU32>,
}

impl Word {
    /// The number of the query's word that it matches, from 0.
    pub(super) fn term(&self) -> Option<usize> {
        self.term.map(|term| term.get() as usize - 1)
    }
}

/// A text whose words are known. Its tokens are words and, between them, runs of spaces and of other characters.
pub(super) struct Text<'t> {
    pub text: &'t str,
    pub words: Vec<Word>,
}

/// A part of a text, as it grows shorter: in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub start: usize,
    pub end: usize,
}

/// What limits are of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    pub characters: u64,
    pub words: u64,
}

impl Size {
    pub(super) fn add(&mut self, other: Self) {
        self.characters += other.characters;
        self.words += other.words;
    }

    pub(super) fn subtract(&mut self, other: Self) {
        self.characters = self.characters.saturating_sub(other.characters);
        self.words = self.words.saturating_sub(other.words);
    }
}

/// The most that an excerpt may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub characters: u64,
    pub words: u64,
}

impl Limits {
    /// Zero: no limit.
    pub(super) fn new(characters: u32, words: u32) -> Self {
        let limit = |number: u32| if number == 0 { u64::MAX } else { number.into() };
        Self { characters: limit(characters), words: limit(words) }
    }

    pub(super) fn fit(self, size: Size) -> bool {
        size.characters <= self.characters && size.words <= self.words
    }
}

impl<'t> Text<'t> {
    pub(super) fn slice(&self, part: Part) -> &'t str {
        self.text.get(part.start..part.end).unwrap_or("")
    }

    /// The words within the part.
    pub(super) fn words_in(&self, part: Part) -> &[Word] {
        let from = self.words.partition_point(|word| (word.start as usize) < part.start);
        let to = self.words.partition_point(|word| word.end as usize <= part.end);
        self.words.get(from..to).unwrap_or(&[])
    }

    pub(super) fn size(&self, part: Part) -> Size {
        let characters = self.slice(part).chars().count() as u64;
        Size { characters, words: self.words_in(part).len() as u64 }
    }

    /// The size from the first match of a part to its last.
    pub(super) fn match_size(&self, part: Part) -> Size {
        let mut matches = self.words_in(part).iter().filter(|word| word.term.is_some());
        let Some(first) = matches.next() else { return Size::default() };
        let last = matches.next_back().unwrap_or(first);
        self.size(Part { start: first.start as usize, end: last.end as usize })
    }

    /// As many of the words of a part as fit, one at least.
    pub(super) fn cut(&self, part: Part, characters: u64, words: u64) -> Part {
        let mut cut = Part { end: part.start, ..part };
        let mut size = Size::default();
        for word in self.words_in(part) {
            let end = word.end as usize;
            size.add(self.size(Part { start: cut.end, end }));
            if size.words > 1 && (size.characters > characters || size.words > words) {
                return cut;
            }
            cut.end = end;
        }
        part
    }

    /// The first token of a part; `None` if it is a match or the part is empty.
    pub(super) fn first_token(&self, part: Part) -> Option<Part> {
        let at = self.words.partition_point(|word| (word.start as usize) < part.start);
        let end = match self.words.get(at).filter(|word| word.start as usize == part.start) {
            Some(word) if word.term.is_some() => return None,
            Some(word) => word.end as usize,
            None => {
                let next = self.words.get(at).map_or(part.end, |word| word.start as usize);
                let gap = self.text.get(part.start..part.end.min(next))?;
                let is_space = gap.chars().next()?.is_whitespace();
                let length = gap.find(|c: char| c.is_whitespace() != is_space);
                part.start + length.unwrap_or(gap.len())
            }
        };
        (end <= part.end).then_some(Part { start: part.start, end })
    }

    /// The last token of a part; `None` if it is a match or the part is empty.
    pub(super) fn last_token(&self, part: Part) -> Option<Part> {
        let at = self.words.partition_point(|word| word.end as usize <= part.end);
        let last = at.checked_sub(1).and_then(|at| self.words.get(at));
        let start = match last.filter(|word| word.end as usize == part.end) {
            Some(word) if word.term.is_some() => return None,
            Some(word) => word.start as usize,
            None => {
                let before = last.map_or(part.start, |word| word.end as usize);
                let gap = self.text.get(part.start.max(before)..part.end)?;
                let is_space = gap.chars().next_back()?.is_whitespace();
                let kept = gap.trim_end_matches(|c: char| c.is_whitespace() == is_space);
                part.end - (gap.len() - kept.len())
            }
        };
        (start >= part.start).then_some(Part { start, end: part.end })
    }
}
