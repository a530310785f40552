//! Finds a sequence of single terms, document at a time (leapfrog intersection): cursors skip over each other
//! until all are at one document, then its positions decide.

use super::{
    TextIndex,
    element::Element,
    postings::{Postings, PostingsCursor, positions},
};
use crate::{Bitmap, DocSet, Result, docset::gallop};

/// What the caller needs of each matching document.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatchDetail {
    /// Only that it matches; the number of occurrences may be too low.
    Document,
    /// The number of occurrences.
    Occurrences,
}

/// One cursor for each element.
pub(crate) struct Lockstep<'a> {
    /// The rarest term first.
    cursors: Vec<(&'a Element, PostingsCursor<'a>)>,
    /// The posting lists of the same terms.
    postings: Vec<Postings<'a>>,
    wanted: MatchDetail,
    begins: Vec<u32>,
}

impl<'a> Lockstep<'a> {
    /// Takes each element with its term, the rarest first.
    pub fn new(
        text: &'a TextIndex,
        elements: impl Iterator<Item = &'a Element>,
        terms: &[u32],
        wanted: MatchDetail,
    ) -> Result<Self> {
        let postings = terms.iter().map(|&term| text.postings(term));
        let postings: Vec<Postings<'_>> = postings.collect::<Result<_>>()?;
        let cursor = |(element, postings): (&'a Element, &Postings<'a>)| {
            Ok((element, PostingsCursor::new(postings, &text.positions)?))
        };
        let cursors = elements.zip(&postings).map(cursor).collect::<Result<_>>()?;
        Ok(Self { cursors, postings, wanted, begins: Vec::new() })
    }

    /// Visits the documents that contain the sequence, ascending, with the number of occurrences. Documents
    /// outside `among` may be omitted.
    pub fn run(mut self, among: Option<&DocSet>, visit: &mut dyn FnMut(u32, u32)) -> Result<()> {
        if let Some(DocSet::List(docs)) = among {
            return self.run_along(docs, visit);
        }
        if let Some(mut common) = self.common() {
            if let Some(DocSet::Bits(among)) = among {
                common.intersect(among);
            }
            return common.iter().try_for_each(|doc| match self.advance(doc)? {
                Some(reached) if reached == doc => self.visit(doc, visit),
                _ => Ok(()),
            });
        }
        let mut target = 0;
        while let Some(reached) = self.advance(target)? {
            if reached == target {
                if among.is_none_or(|among| among.contains(reached)) {
                    self.visit(reached, visit)?;
                }
                target = reached.saturating_add(1);
            } else {
                target = reached;
            }
        }
        Ok(())
    }

    fn run_along(mut self, docs: &[u32], visit: &mut dyn FnMut(u32, u32)) -> Result<()> {
        let mut at = 0;
        while let Some(&doc) = docs.get(at) {
            let Some(reached) = self.advance(doc)? else { return Ok(()) };
            if reached == doc {
                self.visit(doc, visit)?;
            }
            at += gallop(&docs[at..], reached.max(doc.saturating_add(1)));
        }
        Ok(())
    }

    /// The documents that contain all terms, if all posting lists are bitmaps.
    fn common(&self) -> Option<Bitmap> {
        let mut all = self.postings.first()?.to_bitmap()?;
        for other in &self.postings[1..] {
            all.intersect(&other.to_bitmap()?);
        }
        Some(all)
    }

    /// Moves the cursors to `doc`. Returns `doc` if all terms are in it, else the next candidate.
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

    /// All cursors are at `doc`: decides by positions whether it contains the sequence.
    #[inline]
    fn visit(&mut self, doc: u32, visit: &mut dyn FnMut(u32, u32)) -> Result<()> {
        self.begins.clear();
        let last = self.cursors.len() - 1;
        for (index, (element, cursor)) in self.cursors.iter_mut().enumerate() {
            let positions = positions(cursor.places()?);
            let begins = positions.filter_map(|position| element.begin(position));
            if index == 0 {
                self.begins.extend(begins);
            } else if index == last && self.wanted == MatchDetail::Document {
                let one = have_common(&self.begins, begins);
                self.begins.truncate(usize::from(one));
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

/// Whether two ascending lists have a common element.
#[inline]
fn have_common(list: &[u32], other: impl Iterator<Item = u32>) -> bool {
    let mut rest = list.iter();
    let mut next = rest.next();
    for value in other {
        while next.is_some_and(|next| *next < value) {
            next = rest.next();
        }
        match next {
            None => return false,
            Some(&next) if next == value => return true,
            Some(_) => {}
        }
    }
    false
}

/// Keeps the elements that are in both ascending lists.
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
