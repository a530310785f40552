//! The terms of a text and their positions.
//!
//! Atoms are numbered in order (*ordinals*), and exactly one term begins at every atom. A term is the atom;
//! if a character of a script without spaces is involved, also what directly follows. A character or word is
//! indexed together with the character after it, a character together with the first code point of the word
//! after it (`東京`, `2010年`, `第1`). So a few characters, including digits, need one look-up. A single space
//! between two atoms, by far the most frequent separator, has no ordinal; the atom after it has a flag
//! instead.
//!
//! ```text
//! position := ordinal * 2 + (a single space stands before the atom)
//! ```
//! Two atoms are adjacent in the text if and only if their ordinals are. Then the flag tells whether a single
//! space or nothing is between them. So adjacency is decided without the text.

use std::ops::Range;

use super::{
    atoms::{AtomKind, first_atom},
    boundaries::{Kinds, WordOrSeparator},
};

/// Calls `visit(range, position)` for each term of a normalised text, ascending, with the range of its bytes. Returns
/// the ordinal behind the last atom.
pub(crate) fn cut(text: &str, first: u32, mut visit: impl FnMut(Range<usize>, u32)) -> u32 {
    let kinds = Kinds::of(text);
    let mut ordinal = first;
    let WordOrSeparator { start, has_space, .. } = kinds.for_each(|atom| {
        visit(atom.start..atom.end, ordinal * 2 + u32::from(atom.has_space));
        ordinal += 1;
    });
    // The rest is a single atom, or a text with characters of scripts without spaces.
    let place = AtomStart { start, ordinal, has_space };
    cut_from(text, place, visit)
}

/// The start of the first atom that was not visited yet.
struct AtomStart {
    start: usize,
    ordinal: u32,
    /// Whether a single space stands before it.
    has_space: bool,
}

/// As [`cut`], from a place within the text.
fn cut_from(text: &str, place: AtomStart, mut visit: impl FnMut(Range<usize>, u32)) -> u32 {
    let AtomStart { mut start, mut ordinal, has_space: mut space } = place;
    let mut atom = first_atom(&text[start..]);
    while let Some((kind, bytes)) = atom {
        let end = start + bytes;
        let next = first_atom(&text[end..]);
        let is_space = bytes == 1 && text.as_bytes()[start] == b' ';
        if is_space && next.is_some() && start > 0 {
            space = true;
        } else {
            let next = next.map(|(kind, bytes)| (kind, &text[end..end + bytes]));
            let joined = joined_bytes(kind, next.as_ref());
            visit(start..end + joined, ordinal * 2 + u32::from(space));
            ordinal += 1;
            space = false;
        }
        (start, atom) = (end, next);
    }
    ordinal
}

/// The number of bytes of the next atom that belong to this atom's term.
#[inline]
pub(crate) fn joined_bytes(kind: AtomKind, next: Option<&(AtomKind, &str)>) -> usize {
    match (kind, next) {
        (AtomKind::Character | AtomKind::Word, Some((AtomKind::Character, next))) => next.len(),
        (AtomKind::Character, Some((AtomKind::Word, next))) => {
            next.chars().next().map_or(0, char::len_utf8)
        }
        _ => 0,
    }
}

/// Ordinals skipped between two texts of one document, so that no match spans them.
pub(crate) const TEXT_GAP: u32 = 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_is_cut_as_atom_by_atom(
            parts in proptest::collection::vec(
                "[a-zA-Z0-9]{1,9}|[ ,.-]{1,3}| |[éя]{1,4}|[한국]{1,40}|[–…]|\\PC{0,3}",
                0..60,
            ),
            character in proptest::option::of((0usize..60, "[日本]{1,2}| 日|日 ")),
        ) {
            let mut parts = parts;
            if let Some((at, character)) = character {
                parts.insert(at.min(parts.len()), character);
            }
            let text = parts.concat();
            let (mut cut_at_once, mut by_atoms) = (Vec::new(), Vec::new());
            let end = cut(&text, 3, |term, position| cut_at_once.push((term, position)));
            let place = AtomStart { start: 0, ordinal: 3, has_space: false };
            let expected = cut_from(&text, place, |term, at| by_atoms.push((term, at)));
            prop_assert_eq!(end, expected);
            prop_assert_eq!(cut_at_once, by_atoms);
        }
    }

    #[test]
    fn one_term_begins_at_every_atom() {
        let mut terms = Vec::new();
        let text = "to be, 東京都 府 2年10";
        let end = cut(text, 10, |term, position| {
            terms.push((&text[term], position / 2, position % 2));
        });
        let expected = [
            ("to", 10, 0),
            ("be", 11, 1),
            (", ", 12, 0),
            ("東京", 13, 0),
            ("京都", 14, 0),
            ("都", 15, 0),
            ("府", 16, 1),
            ("2年", 17, 1),
            ("年1", 18, 0),
            ("10", 19, 0),
        ];
        assert_eq!(terms, expected);
        assert_eq!(end, 20);
    }
}
