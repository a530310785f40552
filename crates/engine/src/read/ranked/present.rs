//! Which of many keywords a document has. To ask each keyword's cursor about each document takes the time of all keywords
//! for a document that has few of them. Instead the cursors wait in the order of their next documents, and a document
//! moves only those that stood before it.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, binary_heap::PeekMut},
};

use remora_index::words::WordCursor;

use crate::{Result, interrupt::InterruptTicker};

/// The order of the cursors.
pub(super) struct Present {
    /// The next document of each cursor, with its term and its place there.
    waiting: BinaryHeap<Reverse<(u32, u32, u32)>>,
    /// The document for which the rest is valid.
    doc: Option<u32>,
    /// The cursors that stand on it, by term and place.
    here: Vec<(u32, u32)>,
    /// For each term the last document that was found to have it.
    last: Vec<Option<u32>>,
}

impl Present {
    pub fn new(terms: usize) -> Self {
        let (waiting, here) = (BinaryHeap::new(), Vec::new());
        Self { waiting, doc: None, here, last: vec![None; terms] }
    }

    /// Goes to a document, in any order. Going back moves each cursor.
    pub fn go_to(
        &mut self,
        doc: u32,
        terms: &mut [Vec<WordCursor<'_>>],
        ticker: &mut InterruptTicker,
    ) -> Result<()> {
        if self.doc == Some(doc) {
            return Ok(());
        }
        let is_ahead = self.doc.is_some_and(|before| before < doc);
        // Until this has ended without an error.
        self.doc = None;
        match is_ahead {
            true => self.forward(doc, terms, ticker)?,
            false => self.begin(doc, terms, ticker)?,
        }
        self.collect(doc);
        self.doc = Some(doc);
        Ok(())
    }

    fn begin(
        &mut self,
        doc: u32,
        terms: &mut [Vec<WordCursor<'_>>],
        ticker: &mut InterruptTicker,
    ) -> Result<()> {
        self.here.clear();
        let mut waiting = std::mem::take(&mut self.waiting).into_vec();
        waiting.clear();
        for (term, cursors) in (0..).zip(terms) {
            for (place, cursor) in (0..).zip(cursors) {
                ticker.step()?;
                let next = match cursor.seek(doc)? {
                    true => Some(doc),
                    false => cursor.advance(doc)?,
                };
                waiting.extend(next.map(|next| Reverse((next, term, place))));
            }
        }
        self.waiting = waiting.into();
        Ok(())
    }

    fn forward(
        &mut self,
        doc: u32,
        terms: &mut [Vec<WordCursor<'_>>],
        ticker: &mut InterruptTicker,
    ) -> Result<()> {
        let mut advance = |term: u32, place: u32| -> Result<Option<u32>> {
            ticker.step()?;
            let cursor = terms.get_mut(term as usize).and_then(|it| it.get_mut(place as usize));
            Ok(cursor.map(|cursor| cursor.advance(doc)).transpose()?.flatten())
        };
        for (term, place) in self.here.drain(..) {
            let next = advance(term, place)?;
            self.waiting.extend(next.map(|next| Reverse((next, term, place))));
        }
        while let Some(mut first) = self.waiting.peek_mut() {
            let Reverse((next, term, place)) = *first;
            if next >= doc {
                break;
            }
            match advance(term, place)? {
                Some(next) => *first = Reverse((next, term, place)),
                None => {
                    PeekMut::pop(first);
                }
            }
        }
        Ok(())
    }

    /// Takes the cursors that stand on the document.
    fn collect(&mut self, doc: u32) {
        while let Some(first) = self.waiting.peek_mut() {
            let Reverse((next, term, place)) = *first;
            if next != doc {
                break;
            }
            PeekMut::pop(first);
            self.here.push((term, place));
            if let Some(last) = self.last.get_mut(term as usize) {
                *last = Some(doc);
            }
        }
    }

    /// Whether the document has the term.
    #[inline]
    pub fn has(&self, term: usize) -> bool {
        self.doc.is_some() && self.last.get(term).is_some_and(|last| *last == self.doc)
    }

    /// The places of the term's cursors that stand on the document, in order.
    pub fn of_term(&self, term: usize) -> impl Iterator<Item = usize> {
        let start = self.here.partition_point(|&(of, _)| (of as usize) < term);
        let rest = self.here.get(start..).unwrap_or(&[]);
        rest.iter().take_while(move |(of, _)| *of as usize == term).map(|it| it.1 as usize)
    }
}
