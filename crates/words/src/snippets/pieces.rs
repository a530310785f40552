//! Splits a text into pieces: its words, and the runs of spaces and of other signs between them.

use crate::analysis::Span;

/// The kind of a piece: the number of a query word, or one of these.
const SIGNS: u32 = u32::MAX;
const WORD: u32 = u32::MAX - 1;

/// A piece of a text. It begins where the previous one ends.
#[derive(Clone, Copy)]
struct Piece {
    /// The end of the piece in the text, in bytes and in characters.
    end: u32,
    end_character: u32,
    kind: u32,
}

/// The pieces of a text.
#[derive(Default)]
pub(super) struct Pieces {
    pieces: Vec<Piece>,
    /// The positions of the words, only if requested.
    positions: Vec<u32>,
}

impl Pieces {
    /// Keeps only the matches at marked positions; other words there become matches of word 0.
    pub(super) fn mark(&mut self, is_marked: impl Fn(u32) -> bool) {
        for (piece, &position) in self.pieces.iter_mut().zip(&self.positions) {
            piece.kind = match piece.kind {
                SIGNS => SIGNS,
                WORD if is_marked(position) => 0,
                number if is_marked(position) => number,
                _ => WORD,
            };
        }
    }

    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    pub(super) fn is_word(&self, at: usize) -> bool {
        self.pieces.get(at).is_some_and(|piece| piece.kind != SIGNS)
    }

    /// The number of the query word that the piece matches, if it does.
    pub(super) fn number(&self, at: usize) -> Option<u32> {
        self.pieces.get(at).map(|piece| piece.kind).filter(|&kind| kind < WORD)
    }

    /// The position of the last word; 0 without positions.
    pub(super) fn last_position(&self) -> u32 {
        self.positions.iter().rev().copied().find(|&position| position > 0).unwrap_or(0)
    }

    fn before(&self, at: usize) -> Piece {
        let first = Piece { end: 0, end_character: 0, kind: SIGNS };
        at.checked_sub(1).and_then(|at| self.pieces.get(at)).copied().unwrap_or(first)
    }

    /// The number of characters in these pieces.
    pub(super) fn characters(&self, from: usize, to: usize) -> u64 {
        u64::from(self.before(to).end_character.saturating_sub(self.before(from).end_character))
    }

    /// The number of words among these pieces.
    pub(super) fn words(&self, from: usize, to: usize) -> u64 {
        (from..to).filter(|&at| self.is_word(at)).count() as u64
    }

    /// The pieces that end a sentence: with `?` or `!`, or with a full stop before a space and no lower-case letter.
    pub(super) fn sentence_ends(&self, text: &str) -> Vec<usize> {
        let ends = |at: &usize| {
            let bytes = self.bytes(*at, *at + 1);
            let (signs, behind) = (text.get(bytes.clone()), text.get(bytes.end..));
            let (signs, behind) = (signs.unwrap_or(""), behind.unwrap_or(""));
            let next = behind.trim_start();
            let is_space = next.len() < behind.len();
            !self.is_word(*at)
                && (signs.contains(['?', '!'])
                    || signs.contains('.') && is_space && !next.starts_with(char::is_lowercase))
        };
        (0..self.len()).filter(ends).collect()
    }

    /// The byte range of these pieces in the text.
    pub(super) fn bytes(&self, from: usize, to: usize) -> std::ops::Range<usize> {
        self.before(from).end as usize..self.before(to).end as usize
    }
}

/// Splits a text at its words.
pub(super) struct Cutter<'a> {
    text: &'a str,
    pieces: Pieces,
    has_positions: bool,
    /// Stop words at the last position: a match at the same position marks them too.
    pending: Vec<usize>,
    position: u32,
}

impl<'a> Cutter<'a> {
    pub(super) fn new(text: &'a str, has_positions: bool) -> Self {
        Self { text, pieces: Pieces::default(), has_positions, pending: Vec::new(), position: 0 }
    }

    fn end_byte(&self) -> usize {
        self.pieces.before(self.pieces.len()).end as usize
    }

    fn push(&mut self, end: usize, kind: u32, position: u32) {
        let before = self.pieces.before(self.pieces.len());
        let text = self.text.get(before.end as usize..end).unwrap_or("");
        let end_character = before.end_character + text.chars().count() as u32;
        self.pieces.pieces.push(Piece { end: end as u32, end_character, kind });
        if self.has_positions {
            self.pieces.positions.push(position);
        }
    }

    /// Adds the runs of spaces and of other signs before `end`.
    fn signs(&mut self, end: usize) {
        let start = self.end_byte();
        let Some(text) = self.text.get(start..end) else { return };
        let mut is_space = None;
        for (at, c) in text.char_indices() {
            if is_space.is_some_and(|is_space| is_space != c.is_whitespace()) {
                self.push(start + at, SIGNS, 0);
            }
            is_space = Some(c.is_whitespace());
        }
        if !text.is_empty() {
            self.push(end, SIGNS, 0);
        }
    }

    /// Adds the next word; `number` is that of the query word it matches.
    pub(super) fn word(&mut self, span: &Span<'_>, number: Option<u32>) {
        if span.position != self.position {
            self.pending.clear();
            self.position = span.position;
        }
        if span.start < self.end_byte() {
            // The span lies within the text of the previous word, for example a part of a blended
            // word.
            if let (Some(number), Some(last)) = (number, self.pieces.pieces.last_mut())
                && last.kind == WORD
            {
                last.kind = number;
            }
            return;
        }
        self.signs(span.start);
        self.push(span.end, number.unwrap_or(WORD), span.position);
        match number {
            None => self.pending.push(self.pieces.len() - 1),
            Some(number) => {
                for at in self.pending.drain(..) {
                    self.pieces.pieces[at].kind = number;
                }
            }
        }
    }

    pub(super) fn end(mut self) -> Pieces {
        self.signs(self.text.len());
        self.pieces
    }
}
