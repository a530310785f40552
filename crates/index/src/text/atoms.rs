//! Cuts normalised text into atoms.
//!
//! The kind of an atom depends on each code point alone, not on its neighbours. So a substring has the same
//! atoms as the text, except at its two ends:
//! - a **word** is a maximal run of letters, digits and marks of scripts that put spaces between
//!   words;
//! - a **character** is one letter, digit or mark of a script that does not (Han, kana, Thai …);
//!   Hangul has spaces: as words it takes a third of the positions, and a piece of a word is
//!   found from the vocabulary, particles or not;
//! - a **separator** is a maximal run of anything else.

use std::sync::LazyLock;

use icu_properties::{
    CodePointMapData, CodePointMapDataBorrowed,
    props::{GeneralCategory, GeneralCategoryGroup},
};
use remora_words::scripts::is_without_spaces;

/// The kind of an atom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomKind {
    /// A run of letters, digits and marks.
    Word,
    /// One character of a script without spaces.
    Character,
    /// A run of anything else.
    Separator,
}

/// The atoms of a normalised text, in order; together they are the text.
pub fn atoms(text: &str) -> impl Iterator<Item = (AtomKind, &str)> {
    Atoms { rest: text }
}

struct Atoms<'t> {
    rest: &'t str,
}

impl<'t> Iterator for Atoms<'t> {
    type Item = (AtomKind, &'t str);

    fn next(&mut self) -> Option<Self::Item> {
        let (kind, end) = first_atom(self.rest)?;
        let (atom, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some((kind, atom))
    }
}

/// The kind and length of the first atom.
#[inline]
pub(super) fn first_atom(text: &str) -> Option<(AtomKind, usize)> {
    let (kind, mut end) = first(text)?;
    if kind != AtomKind::Character {
        end += ascii_run(&text.as_bytes()[end..], kind);
        while let Some((next, length)) = first(&text[end..])
            && next == kind
        {
            end += length;
            end += ascii_run(&text.as_bytes()[end..], kind);
        }
    }
    Some((kind, end))
}

/// The kind and length of the first code point.
#[inline]
pub(super) fn first(text: &str) -> Option<(AtomKind, usize)> {
    let &byte = text.as_bytes().first()?;
    if byte < 0x80 {
        let word = byte.is_ascii_alphanumeric();
        return Some((if word { AtomKind::Word } else { AtomKind::Separator }, 1));
    }
    let c = text.chars().next()?;
    Some((kind_of(c), c.len_utf8()))
}

/// The length in bytes of the prefix of ASCII characters of this kind, the most common case in runs.
#[inline]
fn ascii_run(bytes: &[u8], kind: AtomKind) -> usize {
    let wanted = if kind == AtomKind::Word { ASCII_WORD } else { ASCII_SEPARATOR };
    bytes.iter().take_while(|&&byte| ASCII[usize::from(byte)] == wanted).count()
}

const ASCII_SEPARATOR: u8 = 0;
const ASCII_WORD: u8 = 1;
/// The kind of each byte; 2 if it is not ASCII.
static ASCII: [u8; 256] = {
    let mut kinds = [2; 256];
    let mut byte = 0;
    while byte < 128 {
        let word = (byte as u8).is_ascii_alphanumeric();
        kinds[byte] = if word { ASCII_WORD } else { ASCII_SEPARATOR };
        byte += 1;
    }
    kinds
};

/// The kind of one code point.
#[inline]
fn kind_of(c: char) -> AtomKind {
    match BASIC_PLANE.get(c as usize) {
        Some(&kind) => kind,
        None => look_up(c),
    }
}

/// The kinds of the code points of the basic multilingual plane: one load instead of two walks of a trie.
static BASIC_PLANE: LazyLock<Box<[AtomKind]>> = LazyLock::new(|| {
    let kind = |code| char::from_u32(code).map_or(AtomKind::Separator, look_up);
    (0..0x1_0000).map(kind).collect()
});

const CATEGORIES: CodePointMapDataBorrowed<'static, GeneralCategory> =
    CodePointMapData::<GeneralCategory>::new();

fn look_up(c: char) -> AtomKind {
    let category = CATEGORIES.get(c);
    let groups =
        [GeneralCategoryGroup::Letter, GeneralCategoryGroup::Mark, GeneralCategoryGroup::Number];
    if !groups.iter().any(|group| group.contains(category)) {
        AtomKind::Separator
    } else if is_without_spaces(c) {
        AtomKind::Character
    } else {
        AtomKind::Word
    }
}

#[cfg(test)]
mod tests {
    use AtomKind::{Character, Separator, Word};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_are_split_by_script() {
        let cut: Vec<_> = atoms("c++ e-mail Tシャツ、2番 русский ไทย").collect();
        let expected = [
            (Word, "c"),
            (Separator, "++ "),
            (Word, "e"),
            (Separator, "-"),
            (Word, "mail"),
            (Separator, " "),
            (Word, "T"),
            (Character, "シ"),
            (Character, "ャ"),
            (Character, "ツ"),
            (Separator, "、"),
            (Word, "2"),
            (Character, "番"),
            (Separator, " "),
            (Word, "русский"),
            (Separator, " "),
            (Character, "ไ"),
            (Character, "ท"),
            (Character, "ย"),
        ];
        assert_eq!(cut, expected);
        assert_eq!(atoms("コーヒー").filter(|atom| atom.0 == Character).count(), 4);
    }

    proptest! {
        #[test]
        fn atoms_cover_the_text_and_do_not_depend_on_the_start(text: String, at: usize) {
            prop_assert_eq!(atoms(&text).map(|atom| atom.1).collect::<String>(), text.clone());
            let at = (0..=at % (text.len() + 1)).rev().find(|&at| text.is_char_boundary(at)).unwrap();
            let inner = atoms(&text[at..]).skip(1).collect::<Vec<_>>();
            let whole = atoms(&text).collect::<Vec<_>>();
            prop_assert!(whole.ends_with(&inner));
        }
    }
}
