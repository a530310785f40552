//! Patterns with alternative characters: `é` for `e`, `カ` for `か`.
//!
//! The elements of a pattern are pieces of terms. For each piece, the spellings that occur in the vocabulary
//! are enumerated character by character; few survive more than two or three characters. The terms of the
//! remaining spellings are united, and positions are read as usual.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    TextIndex,
    atoms::{AtomKind, atoms},
    element::TermMatch,
    pattern::{Pattern, chains},
};

/// The most spellings of one piece that are enumerated at a time.
const MAX_SPELLINGS: usize = 4_096;

impl TextIndex {
    /// The pattern with every spelling that occurs in this index; it is valid for this index only. `others(c,
    /// out)` appends the normalised characters that may stand for `c`, including `c`. `None` if there are too
    /// many spellings. Characters that would be cut into other atoms are left out and appended to `strays`.
    pub fn spelled(
        &self,
        pattern: &Pattern,
        others: &dyn Fn(char, &mut Vec<char>),
        strays: &mut Vec<char>,
    ) -> Option<Pattern> {
        let same_kind = |c: char, out: &mut Vec<char>| {
            let wanted = kind(c);
            others(c, out);
            out.retain(|&other| kind(other) == wanted);
        };
        let mut spelled = pattern.clone();
        for c in pattern.text().chars() {
            let mut characters = Vec::new();
            others(c, &mut characters);
            let wanted = kind(c);
            strays.extend(characters.into_iter().filter(|&other| kind(other) != wanted));
        }
        strays.sort_unstable();
        strays.dedup();
        for element in spelled.alternatives.iter_mut().flatten() {
            self.spell(&mut element.terms, &same_kind)?;
        }
        // Ready-made lists cover only the pattern's own spelling.
        spelled.chains = chains(&spelled.alternatives);
        Some(spelled)
    }

    fn spell(&self, terms: &mut TermMatch, others: &dyn Fn(char, &mut Vec<char>)) -> Option<()> {
        let (piece, inner) = match terms {
            TermMatch::Contains(piece) | TermMatch::Suffix(piece) => (piece, true),
            TermMatch::Exact(piece) | TermMatch::Prefix(piece) | TermMatch::Word(piece) => {
                (piece, false)
            }
            TermMatch::Terms(_) => return Some(()),
        };
        let piece = std::mem::take(piece);
        let spellings = self.spellings(&piece, inner, others)?;
        let with = |text: String| match terms {
            TermMatch::Contains(_) => TermMatch::Contains(text),
            TermMatch::Suffix(_) => TermMatch::Suffix(text),
            TermMatch::Prefix(_) => TermMatch::Prefix(text),
            TermMatch::Word(_) => TermMatch::Word(text),
            TermMatch::Exact(_) | TermMatch::Terms(_) => TermMatch::Exact(text),
        };
        if spellings.iter().all(|spelling| *spelling == piece) {
            *terms = with(piece);
            return Some(());
        }
        let mut found: BTreeMap<u32, u32> = BTreeMap::new();
        for spelling in spellings {
            for (term, times) in self.vocabulary.find(&with(spelling)).iter() {
                *found.entry(term).or_default() += times;
            }
        }
        *terms = TermMatch::Terms(found.into_iter().collect::<Arc<[_]>>());
        Some(())
    }

    /// The spellings of a piece that occur in some term.
    fn spellings(
        &self,
        piece: &str,
        inner: bool,
        others: &dyn Fn(char, &mut Vec<char>),
    ) -> Option<Vec<String>> {
        let has = |spelling: &str| match inner {
            true => self.vocabulary.has_piece(spelling),
            false => self.vocabulary.has_prefix(spelling),
        };
        let mut alive = vec![String::new()];
        let mut characters = Vec::new();
        for c in piece.chars() {
            characters.clear();
            others(c, &mut characters);
            characters.retain(|&other| self.vocabulary.may_hold(other));
            let mut next = Vec::new();
            for begun in &alive {
                for other in &characters {
                    let spelling = format!("{begun}{other}");
                    if has(&spelling) {
                        next.push(spelling);
                    }
                }
                if next.len() > MAX_SPELLINGS {
                    return None;
                }
            }
            alive = next;
        }
        Some(alive)
    }
}

fn kind(c: char) -> Option<AtomKind> {
    atoms(c.encode_utf8(&mut [0; 4])).next().map(|atom| atom.0)
}
