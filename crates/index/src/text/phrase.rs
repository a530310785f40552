//! Finds a sequence of term sets by their positions.
//!
//! If each set is a single term, the search is document at a time (`lockstep`). Otherwise it is set at a
//! time: the set with the fewest bytes of postings gives the candidate places, and every other set, cheapest
//! first, keeps those that it confirms. Positions are decoded only for documents that are still candidates.

use std::{cell::Cell, cmp::Ordering};

use super::{
    TextIndex, any_term,
    element::Element,
    lockstep::{Lockstep, MatchDetail},
    postings::{Decoded, Postings, PostingsCursor, positions},
    vocabulary::TermSet,
};
use crate::{Bitmap, DocSet, Result, docset::gallop};

/// A candidate place: the document in the high half, the ordinal of the pattern's first atom in the low half.
/// Numbers sort several times faster than pairs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PatternStart(u64);

impl PatternStart {
    fn new(doc: u32, ordinal: u32) -> Self {
        Self(u64::from(doc) << 32 | u64::from(ordinal))
    }

    fn doc(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn ordinal(self) -> u32 {
        self.0 as u32
    }
}

/// Sets of at most this many terms are intersected first, to find candidate documents.
const CHEAP_TERMS: usize = 64;
/// The positions of a set with at most this many bytes of postings are read without narrowing.
const RARE_BYTES: u64 = 1024;
/// Sets of more terms test small postings against a bitmap before they make a cursor.
const FEW_TERMS: usize = 8;
/// A thread keeps a buffer for at most this many places between patterns.
const KEPT_PLACES: usize = 1 << 17;

/// An element with its terms looked up.
struct Found<'a> {
    element: &'a Element,
    terms: TermSet,
    cost: u64,
}

impl Found<'_> {
    /// The term, if there is exactly one.
    fn only_term(&self) -> Option<u32> {
        let mut terms = self.terms.iter();
        terms.next().filter(|_| self.terms.len() == 1).map(|(term, _)| term)
    }
}

/// Visits the documents that contain the sequence, ascending, with the number of occurrences. Documents
/// outside `among` may be omitted.
pub(crate) fn for_each(
    text: &TextIndex,
    elements: &[Element],
    among: Option<&DocSet>,
    wanted: MatchDetail,
    visit: &mut dyn FnMut(u32, u32),
) -> Result<()> {
    let mut found: Vec<Found<'_>> = elements.iter().map(|element| look_up(text, element)).collect();
    if found.iter().any(|found| found.terms.len() == 0) {
        return Ok(());
    }
    found.sort_by_key(|found| found.cost);
    let single: Option<Vec<u32>> = found.iter().map(Found::only_term).collect();
    if let Some(terms) = single {
        let elements = found.iter().map(|found| found.element);
        return Lockstep::new(text, elements, &terms, wanted)?.run(among, visit);
    }
    let mut places = KEPT.take();
    let result = fill_places(text, &found, among, &mut places);
    let documents = places.chunk_by(|a, b| a.doc() == b.doc());
    documents.for_each(|places| visit(places[0].doc(), places.len() as u32));
    places.clear();
    places.shrink_to(KEPT_PLACES);
    KEPT.set(places);
    result
}

thread_local! {
    static KEPT: Cell<Vec<PatternStart>> = const { Cell::new(Vec::new()) };
}

fn look_up<'a>(text: &TextIndex, element: &'a Element) -> Found<'a> {
    let terms = text.vocabulary.find(&element.terms);
    let cost = any_term::postings_cost(text, &terms);
    Found { element, terms, cost }
}

/// Fills in the places where the sequence occurs, ascending.
fn fill_places(
    text: &TextIndex,
    found: &[Found<'_>],
    among: Option<&DocSet>,
    places: &mut Vec<PatternStart>,
) -> Result<()> {
    let docs = common_documents(text, found, among)?;
    candidates(text, &found[0], docs, places)?;
    for other in &found[1..] {
        if places.is_empty() {
            break;
        }
        confirm(text, other, places)?;
    }
    Ok(())
}

/// The documents that contain a term of every cheap set; `None` if that would not narrow anything.
fn common_documents(
    text: &TextIndex,
    found: &[Found<'_>],
    among: Option<&DocSet>,
) -> Result<Option<DocSet>> {
    let mut docs = among.cloned();
    // A list is already short; building the unions would cost more than it saves.
    if matches!(docs, Some(DocSet::List(_))) {
        return Ok(docs);
    }
    // Nothing is intersected either if one set is so rare that its positions can be read at once.
    if docs.is_none() && found[0].cost <= RARE_BYTES {
        return Ok(docs);
    }
    let cheap = || found.iter().filter(|found| found.terms.len() <= CHEAP_TERMS);
    if cheap().count() + usize::from(docs.is_some()) < 2 {
        return Ok(docs);
    }
    for set in cheap() {
        let holding = any_term::unite(text, &set.terms)?;
        docs = Some(match docs {
            Some(docs) => docs.intersect(&holding),
            None => holding,
        });
    }
    Ok(docs)
}

/// The candidate places of one set; only `docs` can contain all sets.
fn candidates(
    text: &TextIndex,
    found: &Found<'_>,
    docs: Option<DocSet>,
    places: &mut Vec<PatternStart>,
) -> Result<()> {
    let asked = docs.map(|docs| CandidateDocuments::new(docs, found.terms.len(), text.doc_count));
    let mut all = Decoded::default();
    let mut add = |doc: u32, its_places: &[u32]| {
        let begins = positions(its_places).filter_map(|at| found.element.begin(at));
        places.extend(begins.map(|ordinal| PatternStart::new(doc, ordinal)));
    };
    for (term, _) in found.terms.iter() {
        let postings = text.postings(term)?;
        match &asked {
            Some(asked) => asked.for_each_common(text, &postings, |_, doc, cursor| {
                add(doc, cursor.places()?);
                Ok(())
            })?,
            None => {
                all.clear();
                postings.decode_unchecked(&text.positions, &mut all)?;
                all.for_each_document(&mut add);
            }
        }
    }
    // Each term's places are a sorted run, which a stable sort merges.
    places.sort();
    Ok(())
}

/// Keeps the places at which a term of the set occurs at the element's distance.
fn confirm(text: &TextIndex, found: &Found<'_>, places: &mut Vec<PatternStart>) -> Result<()> {
    let groups = Groups::new(places, found.terms.len(), text.doc_count);
    let mut confirmed = vec![false; places.len()];
    for (term, _) in found.terms.iter() {
        let postings = text.postings(term)?;
        groups.asked.for_each_common(text, &postings, |group, _, cursor| {
            let range = groups.range(group);
            mark(found.element, cursor.places()?, places, range, &mut confirmed);
            Ok(())
        })?;
    }
    let mut kept = confirmed.iter();
    places.retain(|_| kept.next().copied().unwrap_or(false));
    Ok(())
}

/// The candidate documents: a list, and a bitmap if many small postings are tested.
struct CandidateDocuments {
    list: Vec<u32>,
    bits: Option<Bitmap>,
}

impl CandidateDocuments {
    fn new(docs: DocSet, terms: usize, doc_count: u32) -> Self {
        let list = match &docs {
            DocSet::List(list) => list.clone(),
            DocSet::Bits(bits) => bits.iter().collect(),
        };
        let bits = (terms > FEW_TERMS).then(|| docs.into_bitmap(doc_count));
        Self { list, bits }
    }

    /// Calls `visit(index in the list, document, cursor at it)` for each candidate document that contains the
    /// term.
    fn for_each_common(
        &self,
        text: &TextIndex,
        postings: &Postings<'_>,
        mut visit: impl FnMut(usize, u32, &mut PostingsCursor<'_>) -> Result<()>,
    ) -> Result<()> {
        if self.misses(postings)? {
            return Ok(());
        }
        let mut cursor = PostingsCursor::new(postings, &text.positions)?;
        let mut at = 0;
        while let Some(&doc) = self.list.get(at) {
            let Some(reached) = cursor.advance(doc)? else { break };
            match reached.cmp(&doc) {
                Ordering::Equal => {
                    visit(at, doc, &mut cursor)?;
                    at += 1;
                }
                _ => at += gallop(&self.list[at..], reached),
            }
        }
        Ok(())
    }

    /// Whether a cheap test shows that none of the term's documents is a candidate.
    fn misses(&self, postings: &Postings<'_>) -> Result<bool> {
        let (Some(bits), true) = (&self.bits, postings.is_small()) else { return Ok(false) };
        let mut misses = true;
        postings.for_each_doc(|doc| misses &= !bits.contains(doc))?;
        Ok(misses)
    }
}

/// Marks the places of one document that the element's positions confirm: a merge of two ascending lists.
fn mark(
    element: &Element,
    its_places: &[u32],
    places: &[PatternStart],
    range: std::ops::Range<usize>,
    confirmed: &mut [bool],
) {
    let mut at = range.start;
    for ordinal in positions(its_places).filter_map(|position| element.begin(position)) {
        while at < range.end && places[at].ordinal() < ordinal {
            at += 1;
        }
        if at < range.end && places[at].ordinal() == ordinal {
            confirmed[at] = true;
        }
    }
}

/// The places, grouped by document.
struct Groups {
    asked: CandidateDocuments,
    starts: Vec<usize>,
}

impl Groups {
    fn new(places: &[PatternStart], terms: usize, doc_count: u32) -> Self {
        let (mut docs, mut starts) = (Vec::new(), Vec::new());
        for (index, doc) in places.iter().map(|place| place.doc()).enumerate() {
            if docs.last() != Some(&doc) {
                docs.push(doc);
                starts.push(index);
            }
        }
        starts.push(places.len());
        Self { asked: CandidateDocuments::new(DocSet::List(docs), terms, doc_count), starts }
    }

    fn range(&self, group: usize) -> std::ops::Range<usize> {
        self.starts[group]..self.starts[group + 1]
    }
}
