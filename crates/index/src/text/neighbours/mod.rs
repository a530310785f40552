//! Precomputed lists for adjacent frequent terms.
//!
//! Deciding by positions whether two terms are adjacent costs as much as the rarer one has documents: nothing
//! if it is rare, milliseconds if both are frequent. So the documents of frequent neighbours are stored:
//! - a **run** of characters whose first and last part, each without one character, are frequent has a list
//!   of its documents, from three characters on;
//! - so has a **pair** of frequent words that stand behind each other with a single space between
//!   them: the documents that hold it as a piece of text, in which the first may end and the second begin a
//!   longer word.
//!
//! A sequence without a list is decided by positions, in the documents that the lists of its parts leave. For
//! the most frequent words every adjacent pair has an entry, so a pair without one occurs nowhere.
//!
//! ```text
//! TNBK := (left:u32 right:u32){entries}   ascending by left, then right
//! TNBO := offsets                         where each entry's list lies in TNBL, see `offsets`
//! TNBL := [list]{entries}                 see `lists`; a pair without one is decided by positions
//! TNBC := documents:u32                   two words that are in more documents each, of up to 32 bytes, and
//!                                         have no entry stand nowhere behind each other
//! ```
//! `left` is a term, or the number of all terms plus an entry, a run that is one character shorter;
//! `right` is a term: the pair's second word, the run's last two characters. TNBL stays in the file of a segment that was
//! opened from one. A text index that was written before these sections existed has none; TNBC may be absent, which tells nothing.

mod gathering;
pub(crate) mod lists;
mod pairs;
mod runs;
mod sketch;
mod stream;
mod words;
mod writer;

pub(crate) use stream::Occurrences;
pub(crate) use writer::{MIN_DOCUMENTS, NeighboursWriter};

use super::{
    TextIndex,
    atoms::{AtomKind, atoms},
    element::{Element, TermMatch},
    offsets::Offsets,
    postings::Decoded,
    sorted::partition,
    vocabulary::Vocabulary,
};
use crate::{
    DocSet, IndexError, Result, SectionTag, SectionWriter, Sections, Slice,
    bytes::{Stored, read_u32, read_u64},
};

const KEYS: SectionTag = SectionTag(*b"TNBK");
const LISTS_OFFSETS: SectionTag = SectionTag(*b"TNBO");
const COMPLETE: SectionTag = SectionTag(*b"TNBC");
/// The lists.
pub(crate) const NEIGHBOUR_LISTS: SectionTag = SectionTag(*b"TNBL");

const KEY_BYTES: usize = 8;
/// Most characters of a run with a list.
const MOST_CHARACTERS: usize = 8;
/// Longer words are in no pairs.
const MOST_WORD_BYTES: usize = 32;
/// Most runs and pairs of one pattern that are looked up.
const MOST_LOOKED_UP: usize = 24;
/// The list of a part is used to narrow the search only if it has at most one in this many documents.
const NARROW_SHARE: u32 = 32;
/// The lists of this many parts are intersected before positions are read.
const NARROWED_BY: usize = 3;

/// The lists of a text index.
#[derive(Clone)]
pub(crate) struct Neighbours {
    keys: Slice,
    offsets: Offsets,
    lists: Stored,
    complete: Option<u32>,
    terms: u32,
    doc_count: u32,
}

/// What the lists say about a pair.
enum ListLookup {
    /// This entry has its list.
    Entry(u32),
    /// No document holds it.
    Nowhere,
    /// Positions must decide.
    Unknown,
}

/// Adjacent terms of a pattern that may have a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Chain {
    /// A word that ends so, a single space, and one that begins so.
    Pair(String, String),
    /// Characters: three or more.
    Run(Vec<char>),
}

/// The parts of a pattern that may have lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chains {
    chains: Vec<Chain>,
    /// The first chain is the whole pattern.
    whole: bool,
}

impl Chains {
    /// The chains of a pattern with these elements.
    pub fn new(elements: &[Element]) -> Self {
        let mut chains = Vec::new();
        let mut run = Run::default();
        for (at, element) in elements.iter().enumerate() {
            if !run.continues(element) {
                chains.extend(run.take());
                run.begin(element);
            }
            chains.extend(at.checked_sub(1).and_then(|before| pair(&elements[before], element)));
        }
        chains.extend(run.take());
        let whole = match (chains.as_slice(), elements) {
            ([Chain::Run(run)], [first, ..]) => {
                first.space.is_none() && run.len() == covered(elements)
            }
            ([Chain::Pair(..)], [first, second]) => {
                first.space.is_none()
                    && matches!(first.terms, TermMatch::Suffix(_))
                    && matches!(second.terms, TermMatch::Prefix(_))
            }
            _ => false,
        };
        Self { chains, whole }
    }
}

/// How many atoms the elements tell if all of them are pairs of characters.
fn covered(elements: &[Element]) -> usize {
    elements.last().map_or(0, |last| last.distance as usize + 2)
}

fn pair(first: &Element, second: &Element) -> Option<Chain> {
    let (TermMatch::Suffix(a) | TermMatch::Exact(a)) = &first.terms else { return None };
    let (TermMatch::Prefix(b) | TermMatch::Exact(b) | TermMatch::Word(b)) = &second.terms else {
        return None;
    };
    let behind = second.distance == first.distance + 1 && second.space == Some(true);
    (behind && is_word(a) && is_word(b)).then(|| Chain::Pair(a.clone(), b.clone()))
}

/// Whether a term is a word alone.
fn is_word(term: &str) -> bool {
    let mut atoms = atoms(term);
    matches!((atoms.next(), atoms.next()), (Some((AtomKind::Word, _)), None))
}

/// The two characters of a term that is just those.
pub(super) fn two_characters(term: &str) -> Option<[char; 2]> {
    let mut atoms = atoms(term);
    match (atoms.next(), atoms.next(), atoms.next()) {
        (Some((AtomKind::Character, a)), Some((AtomKind::Character, b)), None) => {
            Some([a.chars().next()?, b.chars().next()?])
        }
        _ => None,
    }
}

/// Consecutive characters, collected from elements.
#[derive(Default)]
struct Run {
    first: u32,
    characters: Vec<char>,
}

impl Run {
    fn begin(&mut self, element: &Element) {
        self.characters.clear();
        self.first = element.distance;
        if let TermMatch::Exact(term) = &element.terms {
            self.characters.extend(two_characters(term).into_iter().flatten());
        }
    }

    /// Adds the element if it continues the run; false if it does not.
    fn continues(&mut self, element: &Element) -> bool {
        let TermMatch::Exact(term) = &element.terms else { return false };
        let Some(two) = two_characters(term) else { return false };
        let next = self.first + self.characters.len() as u32;
        if self.characters.is_empty() || element.space != Some(false) {
            return false;
        }
        match next.checked_sub(element.distance) {
            Some(0) => self.characters.extend(two),
            Some(1) if self.characters.last() == Some(&two[0]) => self.characters.push(two[1]),
            _ => return false,
        }
        true
    }

    fn take(&mut self) -> Option<Chain> {
        let characters = std::mem::take(&mut self.characters);
        (characters.len() > 2).then_some(Chain::Run(characters))
    }
}

impl Neighbours {
    /// Opens the lists of the text index `id`, whose vocabulary has `terms` terms; `None` if it has none.
    pub fn open(sections: &Sections, id: u32, terms: u32, doc_count: u32) -> Result<Option<Self>> {
        let Some(keys) = sections.get(KEYS, id) else { return Ok(None) };
        let offsets = Offsets::open(sections.require(LISTS_OFFSETS, id)?)?;
        if keys.len() != offsets.len() as usize * KEY_BYTES {
            return Err(IndexError::corrupt("the number of neighbours"));
        }
        let lists = sections.require_stored(NEIGHBOUR_LISTS, id)?.clone();
        let complete =
            sections.get(COMPLETE, id).map(|section| read_u32(section, 0)).transpose()?;
        Ok(Some(Self { keys: keys.clone(), offsets, lists, complete, terms, doc_count }))
    }

    fn entry(&self, left: u32, right: u32) -> Option<u32> {
        let wanted = key(left, right);
        let at = |index: usize| {
            read_u64(&self.keys, index * KEY_BYTES).map_or(u64::MAX, |key| key.rotate_left(32))
        };
        let entries = self.offsets.len() as usize;
        let index = partition(0, entries, |index| at(index) < wanted);
        (index < entries && at(index) == wanted).then_some(index as u32)
    }

    fn count(&self, entry: u32) -> Result<u32> {
        let range = self.offsets.range(entry);
        let head = self.lists.read(range.start as u64, range.len().min(lists::HEAD_BYTES))?;
        lists::count(&head, self.doc_count)
    }

    fn documents(&self, entry: u32) -> Result<DocSet> {
        let range = self.offsets.range(entry);
        lists::read(&self.lists.read(range.start as u64, range.len())?, self.doc_count)
    }
}

/// The key of an entry, ordered as entries are.
fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

/// What the lists say about the whole pattern.
fn whole<'a>(text: &'a TextIndex, chains: &Chains) -> Result<Option<(&'a Neighbours, ListLookup)>> {
    let Some(neighbours) = &text.neighbours else { return Ok(None) };
    let Some(chain) = chains.chains.first().filter(|_| chains.whole) else { return Ok(None) };
    let told = match chain {
        Chain::Pair(a, b) => pair_told(text, neighbours, a, b)?,
        Chain::Run(run) if run.len() <= MOST_CHARACTERS => {
            match longest(neighbours, &text.vocabulary, run) {
                Some((entry, characters)) if characters == run.len() => ListLookup::Entry(entry),
                _ => ListLookup::Unknown,
            }
        }
        Chain::Run(_) => ListLookup::Unknown,
    };
    Ok(Some((neighbours, told)))
}

/// The documents of a pattern; `None` if no list has them.
pub(crate) fn documents(text: &TextIndex, chains: &Chains) -> Result<Option<DocSet>> {
    match whole(text, chains)? {
        Some((neighbours, ListLookup::Entry(entry))) => neighbours.documents(entry).map(Some),
        Some((_, ListLookup::Nowhere)) => Ok(Some(DocSet::empty())),
        _ => Ok(None),
    }
}

/// The number of documents that contain a pattern; `None` if no list tells.
pub(crate) fn count(text: &TextIndex, chains: &Chains) -> Result<Option<u32>> {
    match whole(text, chains)? {
        Some((neighbours, ListLookup::Entry(entry))) => neighbours.count(entry).map(Some),
        Some((_, ListLookup::Nowhere)) => Ok(Some(0)),
        _ => Ok(None),
    }
}

/// The documents of `among` that contain the parts of a pattern that have lists; `None` if that narrows
/// nothing.
pub(crate) fn narrow(
    text: &TextIndex,
    chains: &Chains,
    among: Option<&DocSet>,
) -> Result<Option<DocSet>> {
    let Some(neighbours) = &text.neighbours else { return Ok(None) };
    let mut entries = Vec::new();
    for chain in &chains.chains {
        match chain {
            Chain::Pair(a, b) => match pair_told(text, neighbours, a, b)? {
                ListLookup::Entry(entry) => entries.push(entry),
                ListLookup::Nowhere => return Ok(Some(DocSet::empty())),
                ListLookup::Unknown => {}
            },
            Chain::Run(run) => entries_of(neighbours, &text.vocabulary, run, &mut entries),
        }
    }
    entries.truncate(MOST_LOOKED_UP);
    let counted = entries.into_iter().map(|entry| Ok((neighbours.count(entry)?, entry)));
    let mut counted = counted.collect::<Result<Vec<_>>>()?;
    // Long lists narrow little and cost more to read.
    counted.retain(|(count, _)| *count <= text.doc_count / NARROW_SHARE);
    counted.sort_unstable();
    counted.dedup();
    let mut docs: Option<DocSet> = None;
    for &(_, entry) in counted.iter().take(NARROWED_BY) {
        let next = neighbours.documents(entry)?;
        docs = Some(match docs.as_ref().or(among) {
            Some(docs) => docs.clone().intersect(&next),
            None => next,
        });
    }
    Ok(docs)
}

/// Checks the lists, if there are any, against the postings.
pub(crate) fn are_right(text: &TextIndex) -> Result<bool> {
    let Some(neighbours) = &text.neighbours else { return Ok(true) };
    let mut writer = NeighboursWriter::new(text.doc_count);
    let mut decoded = Decoded::default();
    for term in 0..text.vocabulary.len() {
        decoded.clear();
        text.postings(term)?.decode(&text.positions, &mut decoded)?;
        writer.push(&text.vocabulary.term(term), &decoded);
    }
    let words = (0..text.vocabulary.words()).map(|word| text.vocabulary.word(word));
    let postings = (&*text.records, &text.posting_offsets);
    let mut out = SectionWriter::new();
    writer.finish(0, words, postings, (text.positions.read_all()?, None), &mut out)?;
    let made = Sections::open(out.finish())?;
    let (keys, lists) = (made.require(KEYS, 0)?, made.require(NEIGHBOUR_LISTS, 0)?);
    let entries = Offsets::open(made.require(LISTS_OFFSETS, 0)?)?;
    let complete = made.get(COMPLETE, 0).map(|section| read_u32(section, 0)).transpose()?;
    let same_places = |entry| entries.range(entry) == neighbours.offsets.range(entry);
    Ok(complete == neighbours.complete
        && **keys == *neighbours.keys
        && **lists == *neighbours.lists.read_all()?
        && entries.len() == neighbours.offsets.len()
        && (0..entries.len()).all(same_places))
}

/// The entries of the longest parts of a run.
fn entries_of(
    neighbours: &Neighbours,
    vocabulary: &Vocabulary,
    run: &[char],
    entries: &mut Vec<u32>,
) {
    let mut told = 0;
    for start in 0..run.len().min(MOST_LOOKED_UP) {
        let Some((entry, characters)) = longest(neighbours, vocabulary, &run[start..]) else {
            continue;
        };
        // A part within the one before adds nothing.
        if start + characters > told {
            entries.push(entry);
            told = start + characters;
        }
    }
}

fn pair_told(text: &TextIndex, neighbours: &Neighbours, a: &str, b: &str) -> Result<ListLookup> {
    let numbers = (text.vocabulary.word_number(a), text.vocabulary.word_number(b));
    let (Some(left), Some(right)) = numbers else { return Ok(ListLookup::Unknown) };
    if let Some(entry) = neighbours.entry(left, right) {
        let has_list = !neighbours.offsets.range(entry).is_empty();
        return Ok(if has_list { ListLookup::Entry(entry) } else { ListLookup::Unknown });
    }
    let Some(complete) = neighbours.complete else { return Ok(ListLookup::Unknown) };
    for (word, term) in [(a, left), (b, right)] {
        if word.len() > MOST_WORD_BYTES || text.postings(term)?.df() <= complete {
            return Ok(ListLookup::Unknown);
        }
    }
    Ok(ListLookup::Nowhere)
}

/// The longest prefix of the run that has a list, and its number of characters.
fn longest(neighbours: &Neighbours, vocabulary: &Vocabulary, run: &[char]) -> Option<(u32, usize)> {
    let mut terms = run.windows(2).map(|two| vocabulary.pair_number(two[0], two[1]));
    let mut entry = neighbours.entry(terms.next()??, terms.next()??)?;
    let mut characters = 3;
    for term in terms.take(MOST_CHARACTERS - characters) {
        let left = neighbours.terms.checked_add(entry)?;
        let Some(longer) = term.and_then(|term| neighbours.entry(left, term)) else { break };
        entry = longer;
        characters += 1;
    }
    Some((entry, characters))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Normalization, Pattern};

    fn chains(text: &str) -> (Vec<String>, bool) {
        let pattern = Pattern::new(text, &Normalization::default()).unwrap();
        let shown = pattern.chains.chains.iter().map(|chain| match chain {
            Chain::Pair(a, b) => format!("{a}_{b}"),
            Chain::Run(run) => run.iter().collect(),
        });
        (shown.collect(), pattern.chains.whole)
    }

    #[test]
    fn pattern_is_split_into_pieces_with_posting_lists() {
        let expect = |text, shown: &[&str], whole| {
            let shown = shown.iter().map(|one| (*one).to_owned()).collect();
            assert_eq!(chains(text), (shown, whole), "{text}");
        };
        expect("of the", &["of_the"], true);
        expect("of the reef", &["of_the", "the_reef"], false);
        expect("of the ", &["of_the"], false);
        expect(" of the", &[], false);
        expect("of  the", &[], false);
        expect("of, the", &[], false);
        expect("2010年 the", &[], false);
        expect("the", &[], false);
        expect("日本の", &["日本の"], true);
        expect("日本の東京", &["日本の東京"], true);
        expect("日本の東", &["日本の東"], true);
        expect("日本", &[], false);
        expect("日本の 東京都", &["日本の", "東京都"], false);
        expect("日本の、", &["日本の"], false);
        expect("の日本2010", &["の日本"], false);
        expect("in 日本の", &["日本の"], false);
    }
}
