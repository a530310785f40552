//! Whole-word matching, instead of substrings.
//!
//! The words of a text are its runs of word and character atoms; separators only delimit them. A word matches
//! where it is not part of a longer one; characters of scripts without spaces have no such restriction.
//! Several words match if they are consecutive, with any separators between them. If that is a single space,
//! positions decide; otherwise the text must be read to see whether it is a separator.

use super::{AtomKind, Normalization, Pattern, TextIndex, atoms, pattern::AtomRun};
use crate::{DocSet, Result};

/// The most gaps between words for which positions decide the separators.
const MAX_GAPS: usize = 5;

/// Words that must follow each other.
#[derive(Clone, Debug)]
pub struct WordPattern {
    /// The pattern with single spaces between all words; positions alone decide it.
    sure: Option<Pattern>,
    /// The pattern with another separator at some places, or without the last words if there are
    /// many. Positions cannot decide it, so the texts must be read.
    doubtful: Option<Pattern>,
    words: Vec<Atom>,
    open_end: bool,
    /// If the words may stand in any order, how far apart they may be.
    apart: Option<Apart>,
    text: String,
}

/// Words that must stand near each other, in any order.
#[derive(Clone, Debug)]
struct Apart {
    most: usize,
    words: Vec<(String, Pattern)>,
}

/// An atom of a word, and whether a separator stands before it.
type Atom = (String, bool);

/// The words of a normalised text in order: its runs of word and character atoms between
/// separators.
pub fn word_runs(text: &str) -> Vec<Vec<(AtomKind, &str)>> {
    let atoms: Vec<(AtomKind, &str)> = atoms(text).collect();
    let runs = atoms.split(|atom| atom.0 == AtomKind::Separator);
    runs.filter(|run| !run.is_empty()).map(<[_]>::to_vec).collect()
}

impl WordPattern {
    /// Normalises and cuts `text`. With `open_end`, the last word may be the beginning of a longer
    /// one. `None` if the text has no word.
    pub fn new(text: &str, normalization: &Normalization, open_end: bool) -> Option<Self> {
        let text = normalization.apply(text);
        let runs = word_runs(&text);
        let gaps = runs.len().checked_sub(1)?;
        let all_told = gaps <= MAX_GAPS;
        let told = if all_told { &runs[..] } else { &runs[..=MAX_GAPS] };
        let others = (u32::from(all_told)..1 << gaps.min(MAX_GAPS)).collect::<Vec<_>>();
        // If words were left out, they may follow the last word of the pattern directly.
        let end = open_end || !all_told;
        let doubtful = !others.is_empty();
        let sure = || Pattern::of_runs(&runs, [0], open_end);
        Some(Self {
            sure: all_told.then(sure),
            doubtful: doubtful.then(|| Pattern::of_runs(told, others, end)),
            words: flattened(&runs),
            open_end,
            apart: None,
            text: text.to_string(),
        })
    }

    /// Normalises and cuts `text`. Its words may be in any order; the first and the last of them
    /// must begin at most `apart` words from each other. `None` if the text has no word.
    pub fn near(text: &str, normalization: &Normalization, apart: u32) -> Option<Self> {
        let words = Self::new(text, normalization, false)?;
        let runs = word_runs(&words.text);
        if runs.len() == 1 {
            return Some(words);
        }
        let word = |run: &AtomRun<'_>| {
            let text = joined(run);
            (text, Pattern::of_runs(std::slice::from_ref(run), [0], false))
        };
        let mut each: Vec<_> = runs.iter().map(word).collect();
        each.sort_by(|a, b| a.0.cmp(&b.0));
        each.dedup_by(|a, b| a.0 == b.0);
        let apart = Apart { most: apart as usize, words: each };
        Some(Self { sure: None, doubtful: None, apart: Some(apart), ..words.clone() })
    }

    /// The normalised text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The pattern if the index alone decides it, which is so for a single word.
    pub fn as_pattern(&self) -> Option<&Pattern> {
        self.sure.as_ref().filter(|_| self.doubtful.is_none() && self.apart.is_none())
    }

    /// The documents that certainly match, and those whose texts must be passed to
    /// [`WordPattern::occurs_in`]. Both may include deleted documents.
    ///
    /// # Errors
    /// The same as those of [`TextIndex::find`].
    pub fn find(&self, index: &TextIndex) -> Result<(DocSet, DocSet)> {
        if let Some(apart) = &self.apart {
            return Ok((DocSet::empty(), apart.all(index)?));
        }
        let sure = match &self.sure {
            Some(pattern) => index.find(pattern)?.docs,
            None => DocSet::empty(),
        };
        let doubtful = match &self.doubtful {
            Some(pattern) => index.find(pattern)?.docs.subtract(&sure),
            None => DocSet::empty(),
        };
        Ok((sure, doubtful))
    }

    /// Whether a normalised text matches.
    pub fn occurs_in(&self, text: &str) -> bool {
        if let Some(apart) = &self.apart {
            return apart.occurs_in(text);
        }
        let atoms = flattened(&word_runs(text));
        (0..atoms.len()).any(|start| self.begins(&atoms[start..]))
    }

    fn begins(&self, atoms: &[Atom]) -> bool {
        let last = self.words.len() - 1;
        atoms.len() > last
            && self.words.iter().zip(atoms).enumerate().all(|(at, (word, atom))| {
                let same_word = word.0 == atom.0;
                let begins = at == last && self.open_end && atom.0.starts_with(&word.0);
                (same_word || begins) && (at == 0 || word.1 == atom.1)
            })
    }
}

impl Apart {
    /// The documents that contain each of the words.
    fn all(&self, index: &TextIndex) -> Result<DocSet> {
        let mut docs: Option<DocSet> = None;
        for (_, pattern) in &self.words {
            let found = index.find(pattern)?.docs;
            docs = Some(match docs {
                Some(docs) => docs.intersect(&found),
                None => found,
            });
        }
        Ok(docs.unwrap_or_else(DocSet::empty))
    }

    /// Whether all words occur close enough to each other somewhere. This is checked at each
    /// occurrence of one of them.
    fn occurs_in(&self, text: &str) -> bool {
        let words: Vec<String> = word_runs(text).iter().map(|run| joined(run)).collect();
        let mut last: Vec<Option<usize>> = vec![None; self.words.len()];
        for (at, word) in words.iter().enumerate() {
            let mut is_one = false;
            for ((wanted, _), last) in self.words.iter().zip(&mut last) {
                if wanted == word {
                    *last = Some(at);
                    is_one = true;
                }
            }
            let first = last.iter().copied().min().flatten();
            if is_one && first.is_some_and(|first| at - first <= self.most) {
                return true;
            }
        }
        false
    }
}

fn joined(run: &AtomRun<'_>) -> String {
    run.iter().map(|atom| atom.1).collect()
}

fn flattened(runs: &[AtomRun<'_>]) -> Vec<Atom> {
    let atoms = runs
        .iter()
        .flat_map(|run| run.iter().enumerate().map(|(at, atom)| (atom.1.to_owned(), at == 0)));
    atoms.collect()
}
