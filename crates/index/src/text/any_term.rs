//! The documents that contain any of several terms.

use std::{cell::RefCell, sync::Arc};

use super::{TextIndex, vocabulary::TermSet};
use crate::{Bitmap, DocSet, Result};

/// A union of more than one in this many documents is built as bits.
const DENSE_SHARE: u64 = 32;

/// The size of the terms' postings in bytes: the cost of reading them.
pub(super) fn postings_cost(text: &TextIndex, terms: &TermSet) -> u64 {
    match terms {
        TermSet::Range(range) => text.postings_bytes(range.clone()),
        TermSet::List(list) => {
            list.iter().map(|&(term, _)| text.postings_bytes(term..term + 1)).sum()
        }
    }
}

/// Whether the union of the terms is better built as bits.
pub(super) fn is_dense(text: &TextIndex, terms: &TermSet) -> bool {
    let most = u64::from(text.doc_count) / DENSE_SHARE;
    // Every posting list has at least one byte.
    terms.len() as u64 > most || postings_cost(text, terms) > most
}

/// The union of the documents of the terms.
pub(super) fn unite(text: &TextIndex, terms: &TermSet) -> Result<DocSet> {
    if let (1, Some((term, _))) = (terms.len(), terms.iter().next()) {
        return one_term(text, term);
    }
    if is_dense(text, terms) {
        let mut bits = Bitmap::new(text.doc_count);
        text.for_each_postings(terms, |postings, _| {
            match postings.is_bits().then(|| postings.to_bitmap()).flatten() {
                Some(dense) => bits.union(&dense),
                None => postings.for_each_doc(|doc| {
                    bits.insert(doc);
                })?,
            }
            Ok(())
        })?;
        return Ok(DocSet::Bits(Arc::new(bits)));
    }
    SCRATCH.with_borrow_mut(|scratch| scratch.unite(text, terms))
}

fn one_term(text: &TextIndex, term: u32) -> Result<DocSet> {
    let postings = text.postings(term)?;
    if let Some(bits) = postings.to_bitmap() {
        return Ok(DocSet::Bits(Arc::new(bits)));
    }
    let mut docs = Vec::with_capacity(postings.df() as usize);
    postings.for_each_doc(|doc| docs.push(doc))?;
    Ok(DocSet::List(docs))
}

thread_local! {
    static SCRATCH: RefCell<SparseUnion> = RefCell::default();
}

/// Unites sparse lists in linear time: a bitmap with a summary of its nonzero words, so that reading and
/// clearing touch only those.
#[derive(Default)]
struct SparseUnion {
    words: Vec<u64>,
    summary: Vec<u64>,
}

impl SparseUnion {
    fn unite(&mut self, text: &TextIndex, terms: &TermSet) -> Result<DocSet> {
        let words = text.doc_count.div_ceil(64) as usize;
        self.words.resize(self.words.len().max(words), 0);
        self.summary.resize(self.summary.len().max(words.div_ceil(64)), 0);
        let result = text
            .for_each_postings(terms, |postings, _| postings.for_each_doc(|doc| self.insert(doc)));
        // The words must be cleared even when a list was damaged.
        let docs = self.take();
        result.map(|()| DocSet::List(docs))
    }

    #[inline]
    fn insert(&mut self, doc: u32) {
        let index = doc as usize / 64;
        if let Some(word) = self.words.get_mut(index) {
            *word |= 1 << (doc % 64);
            self.summary[index / 64] |= 1 << (index % 64);
        }
    }

    fn take(&mut self) -> Vec<u32> {
        let mut docs = Vec::new();
        for (high, summary) in self.summary.iter_mut().enumerate() {
            while *summary != 0 {
                let index = high * 64 + summary.trailing_zeros() as usize;
                *summary &= *summary - 1;
                let mut word = std::mem::take(&mut self.words[index]);
                while word != 0 {
                    docs.push(index as u32 * 64 + word.trailing_zeros());
                    word &= word - 1;
                }
            }
        }
        docs
    }
}
