//! Terms of characters: one or two code points each, in about two bytes.
//!
//! ```text
//! TCHF := (first:u32 start:u32){firsts}   first code points, ascending, and the number of the
//!                                         first term that begins so
//! TCHA := code:u32{seconds}               second code points, ascending
//! TCHS := width:u8 second:width{terms}    place in TCHA plus one, 0 where there is no second;
//!                                         2 or 3 bytes each
//! ```
//! Terms are numbered from 0 in byte order, which is also the order of their code points. They are looked up
//! whole or by their first character only.

use std::ops::Range;

use super::sorted::partition;
use crate::{IndexError, Result, SectionTag, SectionWriter, Sections, Slice, bytes::read_u32};

const FIRSTS: SectionTag = SectionTag(*b"TCHF");
const ALPHABET: SectionTag = SectionTag(*b"TCHA");
const SECONDS: SectionTag = SectionTag(*b"TCHS");

const FIRST_BYTES: usize = 8;

/// Collects the terms of characters of a segment, ascending.
#[derive(Default)]
pub(crate) struct CharactersWriter {
    firsts: Vec<(char, u32)>,
    /// The second code point of each term.
    seconds: Vec<Option<char>>,
}

impl CharactersWriter {
    /// Appends the next term.
    pub fn push(&mut self, term: &str) {
        let mut chars = term.chars();
        let Some(first) = chars.next() else { return };
        if self.firsts.last().is_none_or(|last| last.0 != first) {
            self.firsts.push((first, self.seconds.len() as u32));
        }
        self.seconds.push(chars.next());
    }

    /// Writes the sections of the text index `id`.
    pub fn finish(self, id: u32, out: &mut SectionWriter) {
        let mut alphabet: Vec<char> = self.seconds.iter().copied().flatten().collect();
        alphabet.sort_unstable();
        alphabet.dedup();
        let firsts = self.firsts.iter().flat_map(|&(first, start)| [u32::from(first), start]);
        out.add(FIRSTS, id, &firsts.flat_map(u32::to_le_bytes).collect::<Vec<_>>());
        let codes = alphabet.iter().flat_map(|&second| u32::from(second).to_le_bytes());
        out.add(ALPHABET, id, &codes.collect::<Vec<_>>());
        let width = if alphabet.len() < 1 << 16 { 2 } else { 3 };
        let mut seconds = Vec::with_capacity(1 + self.seconds.len() * width);
        seconds.push(width as u8);
        for second in self.seconds {
            let place = second.and_then(|second| alphabet.binary_search(&second).ok());
            let place = place.map_or(0, |place| place as u32 + 1);
            seconds.extend_from_slice(&place.to_le_bytes()[..width]);
        }
        out.add(SECONDS, id, &seconds);
    }
}

/// The terms of characters of a segment.
#[derive(Clone)]
pub(crate) struct Characters {
    firsts: Slice,
    alphabet: Slice,
    seconds: Slice,
    width: usize,
    terms: u32,
}

impl Characters {
    /// Opens the characters of the text index `id`.
    pub fn open(sections: &Sections, id: u32) -> Result<Self> {
        let firsts = sections.require(FIRSTS, id)?.clone();
        let alphabet = sections.require(ALPHABET, id)?.clone();
        let section = sections.require(SECONDS, id)?;
        let width = section.first().map_or(0, |&width| usize::from(width));
        let seconds = section.part(section.len().min(1)..section.len())?;
        if !matches!(width, 2 | 3)
            || !seconds.len().is_multiple_of(width)
            || !firsts.len().is_multiple_of(FIRST_BYTES)
        {
            return Err(IndexError::corrupt("the size of the terms of characters"));
        }
        let terms = (seconds.len() / width) as u32;
        Ok(Self { firsts, alphabet, seconds, width, terms })
    }

    /// The number of terms.
    pub fn len(&self) -> u32 {
        self.terms
    }

    /// A term; empty past the end.
    pub fn term(&self, term: u32) -> String {
        let (first, second) = self.pair(term);
        first.into_iter().chain(second).collect()
    }

    /// The characters of a term; none past the end.
    pub fn pair(&self, term: u32) -> (Option<char>, Option<char>) {
        if term >= self.terms {
            return (None, None);
        }
        let behind =
            partition(0, self.firsts.len() / FIRST_BYTES, |index| self.start(index) <= term);
        let character = |code: Option<u32>| code.and_then(char::from_u32);
        (character(self.first(behind.saturating_sub(1))), character(self.code(self.second(term))))
    }

    /// The term that equals `piece`.
    pub fn find_exact(&self, piece: &str) -> Range<u32> {
        let mut chars = piece.chars();
        match (chars.next(), chars.next(), chars.next()) {
            (Some(first), second, None) => self.find_pair(first, second),
            _ => 0..0,
        }
    }

    /// The terms that begin with `piece`.
    pub fn find_prefix(&self, piece: &str) -> Range<u32> {
        let mut chars = piece.chars();
        match (chars.next(), chars.next()) {
            (Some(first), None) => self.group(first),
            _ => self.find_exact(piece),
        }
    }

    /// The term of two characters, or of one.
    pub fn find_pair(&self, first: char, second: Option<char>) -> Range<u32> {
        let second = match second {
            None => 0,
            Some(second) => match self.place_of(second) {
                Some(place) => place + 1,
                None => return 0..0,
            },
        };
        let group = self.group(first);
        let (start, end) = (group.start as usize, group.end as usize);
        let at = partition(start, end, |term| self.second(term as u32) < second) as u32;
        at..at + u32::from(at < group.end && self.second(at) == second)
    }

    /// The terms that begin with the code point.
    fn group(&self, first: char) -> Range<u32> {
        let code = Some(u32::from(first));
        let firsts = self.firsts.len() / FIRST_BYTES;
        let index = partition(0, firsts, |index| self.first(index) < code);
        if self.first(index) != code {
            return 0..0;
        }
        let end = self.start(index + 1);
        self.start(index).min(end)..end
    }

    fn first(&self, index: usize) -> Option<u32> {
        read_u32(&self.firsts, index * FIRST_BYTES).ok()
    }

    fn start(&self, index: usize) -> u32 {
        let start = read_u32(&self.firsts, index * FIRST_BYTES + 4);
        start.map_or(self.terms, |start| start.min(self.terms))
    }

    #[inline]
    fn second(&self, term: u32) -> u32 {
        let at = term as usize * self.width;
        match self.seconds.get(at..at + self.width) {
            Some(&[low, high]) => u32::from_le_bytes([low, high, 0, 0]),
            Some(&[low, middle, high]) => u32::from_le_bytes([low, middle, high, 0]),
            _ => 0,
        }
    }

    fn code(&self, second: u32) -> Option<u32> {
        read_u32(&self.alphabet, (second as usize).checked_sub(1)? * 4).ok()
    }

    fn place_of(&self, second: char) -> Option<u32> {
        let place = |index: usize| read_u32(&self.alphabet, index * 4).ok();
        let code = Some(u32::from(second));
        let index = partition(0, self.alphabet.len() / 4, |index| place(index) < code);
        (place(index) == code).then_some(index as u32)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn check(terms: &BTreeSet<String>, piece: &str) {
        let mut writer = CharactersWriter::default();
        terms.iter().for_each(|term| writer.push(term));
        let mut out = SectionWriter::new();
        writer.finish(3, &mut out);
        let characters = Characters::open(&Sections::open(out.finish()).unwrap(), 3).unwrap();
        let numbers = |holds: &dyn Fn(&str) -> bool| {
            let numbered = terms.iter().enumerate().filter(|(_, term)| holds(term));
            numbered.map(|(number, _)| number as u32).collect::<Vec<_>>()
        };
        for (number, term) in terms.iter().enumerate() {
            assert_eq!(&characters.term(number as u32), term);
        }
        assert_eq!(characters.term(characters.len()), "");
        let exact: Vec<u32> = characters.find_exact(piece).collect();
        assert_eq!(exact, numbers(&|term| term == piece));
        let prefix: Vec<u32> = characters.find_prefix(piece).collect();
        assert_eq!(prefix, numbers(&|term| term.starts_with(piece)));
    }

    proptest! {
        #[test]
        fn term_searches_match_a_scan(
            terms in proptest::collection::btree_set("[日本語ー東\u{20000}\u{20001}]{1,2}", 0..60),
            piece in "[日本語ー東京\u{20000}\u{20002}]{1,3}",
        ) {
            check(&terms, &piece);
        }
    }

    #[test]
    fn more_than_65536_second_code_points_are_counted() {
        let seconds = ('\u{100}'..).take(70_000);
        let terms: BTreeSet<String> = seconds.map(|second| format!("日{second}")).collect();
        for piece in ["日\u{101}", "日\u{11000}", "日", "本"] {
            check(&terms, piece);
        }
    }
}
