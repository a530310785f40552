//! Finds several term sets next to each other by their positions.
//!
//! Where each set is one term, document by document: the cursors leap over each other until all
//! stand at one document, and its positions decide. Otherwise set by set: the one with the fewest
//! bytes of postings gives the places where the pattern may begin, and every other set, cheapest
//! first, keeps those of them that it confirms. Only the positions of documents that are still
//! candidates are decoded.

use std::{cell::Cell, cmp::Ordering};

use super::{
    TextIndex, find,
    pattern::Element,
    postings::{Cursor, Postings},
    vocabulary::TermSet,
};
use crate::{Bitmap, DocSet, Result, docset::gallop};

/// A place where the pattern may begin: the document in the high half, the ordinal of the
/// pattern's first atom in the low one. Numbers sort several times faster than pairs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place(u64);

impl Place {
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

/// Sets of at most this many terms are united to find the documents first.
const CHEAP_TERMS: usize = 64;
/// The positions of a set with at most this many bytes of postings are read without narrowing.
const RARE_BYTES: u64 = 1024;
/// Sets of more terms test small postings by bits before they make a cursor.
const FEW_TERMS: usize = 8;
/// A thread keeps the memory of at most this many places between patterns.
const KEPT_PLACES: usize = 1 << 17;

/// One element with its terms looked up.
struct Found<'a> {
    element: &'a Element,
    terms: TermSet,
    cost: u64,
}

impl Found<'_> {
    /// The term, if there is just one.
    fn only_term(&self) -> Option<u32> {
        let mut terms = self.terms.iter();
        terms.next().filter(|_| self.terms.len() == 1).map(|(term, _)| term)
    }
}

/// Visits the documents that hold the elements next to each other, ascending, with how often;
/// those outside `among` may be left out.
pub(crate) fn for_each(
    text: &TextIndex,
    elements: &[Element],
    among: Option<&DocSet>,
    visit: &mut dyn FnMut(u32, u32),
) -> Result<()> {
    let mut found: Vec<Found<'_>> = elements.iter().map(|element| look_up(text, element)).collect();
    if found.iter().any(|found| found.terms.len() == 0) {
        return Ok(());
    }
    found.sort_by_key(|found| found.cost);
    let single: Option<Vec<u32>> = found.iter().map(Found::only_term).collect();
    if let Some(terms) = single {
        let elements: Vec<&Element> = found.iter().map(|found| found.element).collect();
        return Lockstep::new(text, &elements, &terms, among)?.run(visit);
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
    static KEPT: Cell<Vec<Place>> = const { Cell::new(Vec::new()) };
}

fn look_up<'a>(text: &TextIndex, element: &'a Element) -> Found<'a> {
    let terms = text.vocabulary.find(&element.terms);
    let cost = find::postings_cost(text, &terms);
    Found { element, terms, cost }
}

/// Where the pattern begins if the element stands where it does.
#[inline]
fn begin(element: &Element, position: u32) -> Option<u32> {
    if element.space.is_some_and(|space| space != (position & 1 == 1)) {
        return None;
    }
    (position / 2).checked_sub(element.distance)
}

/// One cursor for each element, all moved to the same document.
struct Lockstep<'a> {
    /// The rarest term first.
    cursors: Vec<(&'a Element, Cursor<'a>)>,
    among: Option<&'a DocSet>,
    begins: Vec<u32>,
    positions: Vec<u32>,
}

impl<'a> Lockstep<'a> {
    fn new(
        text: &'a TextIndex,
        elements: &[&'a Element],
        terms: &[u32],
        among: Option<&'a DocSet>,
    ) -> Result<Self> {
        let cursor = |(&element, &term): (&&'a Element, &u32)| {
            Ok((element, Cursor::new(&text.postings(term)?, &text.positions)?))
        };
        let cursors = elements.iter().zip(terms).map(cursor).collect::<Result<_>>()?;
        Ok(Self { cursors, among, begins: Vec::new(), positions: Vec::new() })
    }

    fn run(mut self, visit: &mut dyn FnMut(u32, u32)) -> Result<()> {
        if let Some(DocSet::List(docs)) = self.among {
            let mut at = 0;
            while let Some(&doc) = docs.get(at) {
                let Some(reached) = self.advance(doc)? else { return Ok(()) };
                if reached == doc {
                    self.visit(doc, visit)?;
                }
                at += gallop(&docs[at..], reached.max(doc.saturating_add(1)));
            }
            return Ok(());
        }
        let mut target = 0;
        while let Some(reached) = self.advance(target)? {
            if reached == target {
                if self.among.is_none_or(|among| among.contains(reached)) {
                    self.visit(reached, visit)?;
                }
                target = reached.saturating_add(1);
            } else {
                target = reached;
            }
        }
        Ok(())
    }

    /// Moves the cursors to `doc`: `doc` itself if all terms are in it, else a document that may
    /// be the next one.
    #[inline]
    fn advance(&mut self, doc: u32) -> Result<Option<u32>> {
        for (_, cursor) in &mut self.cursors {
            match cursor.advance(doc)? {
                Some(reached) if reached == doc => {}
                other => return Ok(other),
            }
        }
        Ok(Some(doc))
    }

    /// All cursors stand at `doc`: do the elements stand next to each other in it?
    #[inline]
    fn visit(&mut self, doc: u32, visit: &mut dyn FnMut(u32, u32)) -> Result<()> {
        self.begins.clear();
        for (index, (element, cursor)) in self.cursors.iter_mut().enumerate() {
            cursor.positions(&mut self.positions)?;
            let begins = self.positions.iter().filter_map(|&position| begin(element, position));
            if index == 0 {
                self.begins.extend(begins);
            } else {
                retain_common(&mut self.begins, begins);
            }
            if self.begins.is_empty() {
                return Ok(());
            }
        }
        visit(doc, self.begins.len() as u32);
        Ok(())
    }
}

/// Keeps what is in both ascending lists.
#[inline]
fn retain_common(list: &mut Vec<u32>, mut other: impl Iterator<Item = u32>) {
    let mut kept = 0;
    let mut next = other.next();
    for at in 0..list.len() {
        let value = list[at];
        while next.is_some_and(|next| next < value) {
            next = other.next();
        }
        if next == Some(value) {
            list[kept] = value;
            kept += 1;
        }
    }
    list.truncate(kept);
}

/// The places where the elements stand next to each other, ascending.
fn fill_places(
    text: &TextIndex,
    found: &[Found<'_>],
    among: Option<&DocSet>,
    places: &mut Vec<Place>,
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

/// The documents that hold a term of every cheap set; `None` if that would not narrow anything.
fn common_documents(
    text: &TextIndex,
    found: &[Found<'_>],
    among: Option<&DocSet>,
) -> Result<Option<DocSet>> {
    let mut docs = among.cloned();
    // A list is short already; uniting the sets would cost more than it saves.
    if matches!(docs, Some(DocSet::List(_))) {
        return Ok(docs);
    }
    // So does reading the positions of a rare set at once.
    if docs.is_none() && found[0].cost <= RARE_BYTES {
        return Ok(docs);
    }
    let cheap = || found.iter().filter(|found| found.terms.len() <= CHEAP_TERMS);
    if cheap().count() + usize::from(docs.is_some()) < 2 {
        return Ok(docs);
    }
    for set in cheap() {
        let holding = find::unite(text, &set.terms)?;
        docs = Some(match docs {
            Some(docs) => docs.intersect(&holding),
            None => holding,
        });
    }
    Ok(docs)
}

/// The places that one set gives; `docs` are the only documents that can hold all sets.
fn candidates(
    text: &TextIndex,
    found: &Found<'_>,
    docs: Option<DocSet>,
    places: &mut Vec<Place>,
) -> Result<()> {
    let wanted = docs.map(|docs| Wanted::new(docs, found.terms.len(), text.doc_count));
    let mut positions = Vec::new();
    for (term, _) in found.terms.iter() {
        let postings = text.postings(term)?;
        let mut add = |doc: u32, cursor: &mut Cursor<'_>| {
            cursor.positions(&mut positions)?;
            let begins = positions.iter().filter_map(|&p| begin(found.element, p));
            places.extend(begins.map(|ordinal| Place::new(doc, ordinal)));
            Ok(())
        };
        match &wanted {
            Some(wanted) => {
                wanted.for_each_common(text, &postings, |_, doc, cursor| add(doc, cursor))?
            }
            None => {
                let mut cursor = Cursor::new(&postings, &text.positions)?;
                let mut target = 0;
                while let Some(doc) = cursor.advance(target)? {
                    add(doc, &mut cursor)?;
                    target = doc.saturating_add(1);
                }
            }
        }
    }
    // Each term's places are a sorted run, which a stable sort takes as it is.
    places.sort();
    Ok(())
}

/// Keeps the places where a term of the set stands at its distance.
fn confirm(text: &TextIndex, found: &Found<'_>, places: &mut Vec<Place>) -> Result<()> {
    let groups = Groups::new(places, found.terms.len(), text.doc_count);
    let mut confirmed = vec![false; places.len()];
    let mut positions = Vec::new();
    for (term, _) in found.terms.iter() {
        let postings = text.postings(term)?;
        groups.wanted.for_each_common(text, &postings, |group, _, cursor| {
            cursor.positions(&mut positions)?;
            mark(found.element, &positions, places, groups.range(group), &mut confirmed);
            Ok(())
        })?;
    }
    let mut kept = confirmed.iter();
    places.retain(|_| kept.next().copied().unwrap_or(false));
    Ok(())
}

/// Documents that are asked about: a list, and bits where many small postings are tested.
struct Wanted {
    list: Vec<u32>,
    bits: Option<Bitmap>,
}

impl Wanted {
    fn new(docs: DocSet, terms: usize, doc_count: u32) -> Self {
        let list = match &docs {
            DocSet::List(list) => list.clone(),
            DocSet::Bits(bits) => bits.iter().collect(),
        };
        let bits = (terms > FEW_TERMS).then(|| docs.into_bitmap(doc_count));
        Self { list, bits }
    }

    /// Calls `visit(index in the list, document, cursor at it)` for each wanted document that
    /// holds the term.
    fn for_each_common(
        &self,
        text: &TextIndex,
        postings: &Postings<'_>,
        mut visit: impl FnMut(usize, u32, &mut Cursor<'_>) -> Result<()>,
    ) -> Result<()> {
        if self.misses(postings)? {
            return Ok(());
        }
        let mut cursor = Cursor::new(postings, &text.positions)?;
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

    /// Whether it is cheap to know that none of the term's documents is wanted.
    fn misses(&self, postings: &Postings<'_>) -> Result<bool> {
        let (Some(bits), true) = (&self.bits, postings.is_small()) else { return Ok(false) };
        let mut misses = true;
        postings.for_each_doc(|doc| misses &= !bits.contains(doc))?;
        Ok(misses)
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
    fn new(places: &[Place], terms: usize, doc_count: u32) -> Self {
        let (mut docs, mut starts) = (Vec::new(), Vec::new());
        for (index, doc) in places.iter().map(|place| place.doc()).enumerate() {
            if docs.last() != Some(&doc) {
                docs.push(doc);
                starts.push(index);
            }
        }
        starts.push(places.len());
        Self { wanted: Wanted::new(DocSet::List(docs), terms, doc_count), starts }
    }

    fn range(&self, group: usize) -> std::ops::Range<usize> {
        self.starts[group]..self.starts[group + 1]
    }
}
