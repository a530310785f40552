//! Finds several term sets next to each other by their positions.
//!
//! Documents first: those that hold a term of every set that is cheap to unite. Then the set with
//! the fewest bytes of postings gives the candidates (document, ordinal of the pattern's first
//! atom), and every other set, cheapest first, keeps those of them that it confirms. Only the
//! positions of documents that are still candidates are decoded.

use super::{
    TextIndex, find,
    pattern::Element,
    postings::{Cursor, Postings},
    vocabulary::TermSet,
};
use crate::{Bitmap, DocSet, Result};

/// A place where the pattern may begin: the document in the high half, the ordinal of the
/// pattern's first atom in the low one. Numbers sort several times faster than pairs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(u64);

impl Place {
    fn new(doc: u32, ordinal: u32) -> Self {
        Self(u64::from(doc) << 32 | u64::from(ordinal))
    }

    /// The document.
    pub fn doc(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn ordinal(self) -> u32 {
        self.0 as u32
    }
}

/// Sets of at most this many terms are united to find the documents first.
const CHEAP_TERMS: usize = 64;

/// One element with its terms looked up.
struct Found<'a> {
    element: &'a Element,
    terms: TermSet,
    cost: u64,
}

/// The documents that hold the elements next to each other.
pub(crate) fn documents(text: &TextIndex, elements: &[Element]) -> Result<DocSet> {
    let places = places(text, elements)?;
    let mut docs: Vec<u32> = places.into_iter().map(Place::doc).collect();
    docs.dedup();
    if docs.len() as u32 > text.doc_count / 32 {
        return Ok(DocSet::Bits(DocSet::List(docs).into_bitmap(text.doc_count).into()));
    }
    Ok(DocSet::List(docs))
}

/// The places where the elements stand next to each other, ascending.
pub(crate) fn places(text: &TextIndex, elements: &[Element]) -> Result<Vec<Place>> {
    let mut found: Vec<Found<'_>> = elements.iter().map(|element| look_up(text, element)).collect();
    if found.iter().any(|found| found.terms.len() == 0) {
        return Ok(Vec::new());
    }
    found.sort_by_key(|found| found.cost);
    let docs = common_documents(text, &found)?;
    let mut places = candidates(text, &found[0], docs)?;
    for other in &found[1..] {
        if places.is_empty() {
            break;
        }
        confirm(text, other, &mut places)?;
    }
    Ok(places)
}

fn look_up<'a>(text: &TextIndex, element: &'a Element) -> Found<'a> {
    let terms = text.vocabulary.find(&element.terms);
    let cost = find::postings_cost(text, &terms);
    Found { element, terms, cost }
}

/// The documents that hold a term of every cheap set; `None` if that would not narrow anything.
fn common_documents(text: &TextIndex, found: &[Found<'_>]) -> Result<Option<DocSet>> {
    let mut cheap = found.iter().filter(|found| found.terms.len() <= CHEAP_TERMS);
    let (Some(first), Some(second)) = (cheap.next(), cheap.next()) else { return Ok(None) };
    let docs = find::unite(text, &first.terms)?;
    let mut docs = docs.intersect(&find::unite(text, &second.terms)?);
    for other in cheap {
        docs = docs.intersect(&find::unite(text, &other.terms)?);
    }
    Ok(Some(docs))
}

/// Where the pattern begins if the element stands where it does.
#[inline]
fn begin(element: &Element, position: u32) -> Option<u32> {
    if element.space.is_some_and(|space| space != (position & 1 == 1)) {
        return None;
    }
    (position / 2).checked_sub(element.distance)
}

/// The places that one set gives; `docs` are the only documents that can hold all sets.
fn candidates(text: &TextIndex, found: &Found<'_>, docs: Option<DocSet>) -> Result<Vec<Place>> {
    let wanted = docs.map(|docs| Wanted::new(docs, text.doc_count));
    let mut places = Vec::new();
    let (mut common, mut positions) = (Vec::new(), Vec::new());
    for (term, _) in found.terms.iter() {
        let postings = text.postings(term)?;
        common.clear();
        match &wanted {
            Some(wanted) => wanted.common(&postings, &mut common)?,
            None => postings.for_each_doc(|doc| common.push(doc))?,
        }
        if common.is_empty() {
            continue;
        }
        let mut cursor = Cursor::new(&postings, &text.positions)?;
        for &doc in &common {
            if cursor.seek(doc)? {
                cursor.positions(&mut positions)?;
                let begins = positions.iter().filter_map(|&p| begin(found.element, p));
                places.extend(begins.map(|ordinal| Place::new(doc, ordinal)));
            }
        }
    }
    if found.terms.len() > 1 {
        places.sort_unstable();
    }
    Ok(places)
}

/// Keeps the places where a term of the set stands at its distance.
fn confirm(text: &TextIndex, found: &Found<'_>, places: &mut Vec<Place>) -> Result<()> {
    let groups = Groups::new(places, text.doc_count);
    let docs = &groups.wanted.list;
    let mut confirmed = vec![false; places.len()];
    let (mut common, mut positions) = (Vec::new(), Vec::new());
    for (term, _) in found.terms.iter() {
        let postings = text.postings(term)?;
        common.clear();
        groups.wanted.common(&postings, &mut common)?;
        if common.is_empty() {
            continue;
        }
        let mut cursor = Cursor::new(&postings, &text.positions)?;
        let mut group = 0;
        for &doc in &common {
            group += docs[group..].partition_point(|&other| other < doc);
            if !cursor.seek(doc)? {
                continue;
            }
            cursor.positions(&mut positions)?;
            mark(found.element, &positions, places, groups.range(group), &mut confirmed);
        }
    }
    let mut kept = confirmed.iter();
    places.retain(|_| kept.next().copied().unwrap_or(false));
    Ok(())
}

/// Documents that are asked about, as a list and as bits.
struct Wanted {
    list: Vec<u32>,
    bits: Bitmap,
}

impl Wanted {
    fn new(docs: DocSet, doc_count: u32) -> Self {
        let list = docs.iter().collect();
        Self { list, bits: docs.into_bitmap(doc_count) }
    }

    /// Appends the wanted documents that may hold the term: its own if those are few (testing a
    /// bit is cheaper than seeking), else all that are wanted.
    fn common(&self, postings: &Postings<'_>, out: &mut Vec<u32>) -> Result<()> {
        if (postings.df() as usize) < self.list.len() * 8 {
            return postings.for_each_doc(|doc| {
                if self.bits.contains(doc) {
                    out.push(doc);
                }
            });
        }
        out.extend_from_slice(&self.list);
        Ok(())
    }
}

/// Marks the places of one document that the positions confirm: two ascending lists.
fn mark(
    element: &Element,
    positions: &[u32],
    places: &[Place],
    range: std::ops::Range<usize>,
    confirmed: &mut [bool],
) {
    let mut at = range.start;
    for ordinal in positions.iter().filter_map(|&position| begin(element, position)) {
        while at < range.end && places[at].ordinal() < ordinal {
            at += 1;
        }
        if at < range.end && places[at].ordinal() == ordinal {
            confirmed[at] = true;
        }
    }
}

/// The places document by document.
struct Groups {
    wanted: Wanted,
    starts: Vec<usize>,
}

impl Groups {
    fn new(places: &[Place], doc_count: u32) -> Self {
        let (mut docs, mut starts) = (Vec::new(), Vec::new());
        for (index, doc) in places.iter().map(|place| place.doc()).enumerate() {
            if docs.last() != Some(&doc) {
                docs.push(doc);
                starts.push(index);
            }
        }
        starts.push(places.len());
        Self { wanted: Wanted::new(DocSet::List(docs), doc_count), starts }
    }

    fn range(&self, group: usize) -> std::ops::Range<usize> {
        self.starts[group]..self.starts[group + 1]
    }
}
