//! The terms of a text and their positions.
//!
//! Atoms are numbered in order (*ordinals*), and exactly one term begins at every atom. A term is the atom;
//! if a character of a script without spaces is involved, also what directly follows. A character or word is
//! indexed together with the character behind it, a character together with the first code point of the word
//! behind it (`東京`, `2010年`, `第1`). So a few characters, including digits, need one look-up. A single space
//! between two atoms, by far the most frequent separator, has no ordinal; the atom behind it has a flag
//! instead.
//!
//! ```text
//! position := ordinal * 2 + (a single space stands before the atom)
//! ```
//! Two atoms are adjacent in the text if and only if their ordinals are. Then the flag tells whether a single
//! space or nothing is between them. So adjacency is decided without the text.

use super::atoms::{AtomKind, atoms};

/// Calls `visit(term, position)` for each term of a normalised text, ascending. Returns the ordinal behind
/// the last atom.
pub(crate) fn cut<'t>(text: &'t str, first: u32, mut visit: impl FnMut(&'t str, u32)) -> u32 {
    let mut ordinal = first;
    let mut space = false;
    let mut start = 0;
    let mut rest = atoms(text).peekable();
    while let Some((kind, atom)) = rest.next() {
        let end = start + atom.len();
        let next = rest.peek();
        if kind == AtomKind::Separator && next.is_some() && atom == " " && start > 0 {
            space = true;
            start = end;
            continue;
        }
        let term = &text[start..end + joined_bytes(kind, next)];
        visit(term, ordinal * 2 + u32::from(space));
        ordinal += 1;
        space = false;
        start = end;
    }
    ordinal
}

/// The number of bytes of the next atom that belong to this atom's term.
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
    use super::*;

    #[test]
    fn one_term_begins_at_every_atom() {
        let mut terms = Vec::new();
        let end = cut("to be, 東京都 府 2年10", 10, |term, position| {
            terms.push((term, position / 2, position % 2));
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
