//! FUZZY: approximate matching of texts.
//!
//! The normalised term is cut into atoms. It matches a row in a text index if and only if
//! - for every word of it, the row has a word within `distance` Levenshtein edits (an insertion,
//!   removal or exchange of one code point), and
//! - for every run of character atoms (Han, kana, Hangul, Thai …), some window of one of the
//!   row's normalised texts lies within `distance` edits of the run. A run that is not longer
//!   than the distance would be near everything: it must occur as it stands.
//!
//! Separators do not count, nor does the order of words. A term of separators alone must occur
//! as it stands.
//!
//! A run is found without reading every text: it is cut into `distance + 1` pieces, one of which must occur
//! unchanged (pigeonhole principle). Texts that contain a piece, but not the whole run, are read and compared.

use remora_index::{
    DocSet,
    text::{AtomKind, Normalization, Pattern, TextIndex, atoms},
};

use super::texts::retain_rows;
use crate::{
    Result, TextDef,
    indexing::indexed_texts,
    interrupt::InterruptCheck,
    snapshot::{SegmentView, TableView},
};

/// A term prepared for one text index.
pub(super) struct FuzzyTerm {
    /// The term as an exact pattern.
    pub whole: Pattern,
    words: Vec<String>,
    runs: Vec<Run>,
    distance: u8,
}

/// One text index of one segment, with access to its original texts.
pub(super) struct IndexedText<'v> {
    pub view: &'v TableView,
    pub segment: &'v SegmentView,
    pub definition: &'v TextDef,
    pub index: &'v TextIndex,
    /// Asked before each row whose text is read.
    pub unless: &'v InterruptCheck,
}

impl IndexedText<'_> {
    /// What is read of a row.
    fn read(&self) -> (&[usize], &InterruptCheck) {
        (&self.definition.columns, self.unless)
    }
}

/// A maximal run of character atoms.
struct Run {
    whole: Pattern,
    characters: Vec<char>,
    /// Every similar text contains one of these; empty if the run must occur exactly.
    pieces: Vec<Pattern>,
}

impl FuzzyTerm {
    /// Cuts a normalised term.
    pub fn new(whole: Pattern, normalization: &Normalization, distance: u8) -> Self {
        let (mut words, mut runs, mut run) = (Vec::new(), Vec::new(), String::new());
        for (kind, atom) in atoms(whole.text()) {
            match kind {
                AtomKind::Character => run.push_str(atom),
                AtomKind::Word => words.push(atom.to_owned()),
                AtomKind::Separator => {}
            }
            if kind != AtomKind::Character {
                runs.extend(Run::new(&std::mem::take(&mut run), normalization, distance));
            }
        }
        runs.extend(Run::new(&run, normalization, distance));
        Self { whole, words, runs, distance }
    }

    /// The number of atoms, without separators.
    pub fn atoms(&self) -> u64 {
        let characters: usize = self.runs.iter().map(|run| run.characters.len()).sum();
        (self.words.len() + characters) as u64
    }

    /// The matching documents; may include deleted ones. Adds the number of texts read to `texts_read`.
    pub fn find(&self, place: &IndexedText<'_>, texts_read: &mut u64) -> Result<DocSet> {
        let mut docs: Option<DocSet> = None;
        for word in &self.words {
            let found = place.index.find_similar_word(word, self.distance)?;
            docs = Some(narrowed(docs, found));
        }
        for run in &self.runs {
            if docs.as_ref().is_some_and(DocSet::is_empty) {
                break;
            }
            let found = run.find(place, docs.as_ref(), self.distance, texts_read)?;
            docs = Some(narrowed(docs, found));
        }
        match docs {
            Some(docs) => Ok(docs),
            None => occurs(&self.whole, place, None, texts_read),
        }
    }
}

fn narrowed(docs: Option<DocSet>, found: DocSet) -> DocSet {
    match docs {
        Some(docs) => docs.intersect(&found),
        None => found,
    }
}

impl Run {
    /// `None` for an empty run.
    fn new(run: &str, normalization: &Normalization, distance: u8) -> Option<Self> {
        let whole = Pattern::new(run, normalization)?;
        let characters: Vec<char> = whole.text().chars().collect();
        let count = usize::from(distance) + 1;
        let piece = |index: usize| {
            let bound = |index: usize| index * characters.len() / count;
            let piece: String = characters[bound(index)..bound(index + 1)].iter().collect();
            Pattern::new(&piece, normalization)
        };
        let long = characters.len() > usize::from(distance);
        let pieces = if long { (0..count).filter_map(piece).collect() } else { Vec::new() };
        Some(Self { whole, pieces, characters })
    }

    /// The matching documents, restricted to `among` if that is given.
    fn find(
        &self,
        place: &IndexedText<'_>,
        among: Option<&DocSet>,
        distance: u8,
        texts_read: &mut u64,
    ) -> Result<DocSet> {
        let exact = occurs(&self.whole, place, among, texts_read)?;
        let len = place.segment.segment.doc_count();
        let mut near = DocSet::empty();
        for piece in &self.pieces {
            near = near.union(&place.index.find(piece)?.docs, len);
        }
        if let Some(among) = among {
            near = near.intersect(among);
        }
        let near = near.subtract(&exact).without(place.segment.deleted.as_ref());
        *texts_read += u64::from(near.count());
        let near = retain_rows(place.view, place.segment, &near, place.read(), |row| {
            normalized_texts(place.definition, row)
                .any(|text| has_near_window(&text, &self.characters, distance.into()))
        })?;
        Ok(exact.union(&near, len))
    }
}

/// The documents that contain the pattern exactly.
fn occurs(
    pattern: &Pattern,
    place: &IndexedText<'_>,
    among: Option<&DocSet>,
    texts_read: &mut u64,
) -> Result<DocSet> {
    let found = place.index.find(pattern)?;
    if !found.verify {
        return Ok(found.docs);
    }
    let docs = match among {
        Some(among) => found.docs.intersect(among),
        None => found.docs,
    };
    let docs = docs.without(place.segment.deleted.as_ref());
    *texts_read += u64::from(docs.count());
    retain_rows(place.view, place.segment, &docs, place.read(), |row| {
        normalized_texts(place.definition, row).any(|text| text.contains(pattern.text()))
    })
}

/// The normalised texts of a row in a text index.
pub(super) fn normalized_texts<'r>(
    definition: &'r TextDef,
    row: &'r [crate::Value],
) -> impl Iterator<Item = String> + 'r {
    let texts = indexed_texts(definition, row).into_iter();
    texts.map(|text| definition.normalization.apply(&text).into_owned())
}

/// Whether some window of the text lies within `distance` edits of `run`: Sellers' algorithm,
/// O(text × run).
fn has_near_window(text: &str, run: &[char], distance: usize) -> bool {
    let mut edits: Vec<usize> = (0..=run.len()).collect();
    let last = run.len();
    for c in text.chars() {
        let mut diagonal = 0;
        for (at, &expected) in run.iter().enumerate() {
            let exchanged = diagonal + usize::from(c != expected);
            diagonal = edits[at + 1];
            edits[at + 1] = exchanged.min(diagonal + 1).min(edits[at] + 1);
        }
        if edits[last] <= distance {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The textbook's distance of two whole strings.
    pub fn levenshtein(a: &[char], b: &[char]) -> usize {
        let mut previous: Vec<usize> = (0..=b.len()).collect();
        for (i, x) in a.iter().enumerate() {
            let mut current = vec![i + 1];
            for (j, y) in b.iter().enumerate() {
                let exchanged = previous[j] + usize::from(x != y);
                current.push(exchanged.min(previous[j + 1] + 1).min(current[j] + 1));
            }
            previous = current;
        }
        previous[b.len()]
    }

    proptest! {
        #[test]
        fn a_near_window_is_a_near_substring(
            text in "[abc]{1,12}", run in "[abc]{1,5}", d in 0..3usize,
        ) {
            let characters: Vec<char> = text.chars().collect();
            let run: Vec<char> = run.chars().collect();
            prop_assume!(run.len() > d);
            let windows = (0..characters.len())
                .flat_map(|start| (start + 1..=characters.len()).map(move |end| (start, end)));
            let expected = windows.into_iter()
                .any(|(start, end)| levenshtein(&characters[start..end], &run) <= d);
            prop_assert_eq!(has_near_window(&text, &run, d), expected);
        }
    }
}
