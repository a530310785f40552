//! A posting list in memory, as it is written and read.

use crate::{IndexError, Result};

/// The decoded posting list of a term. `places` are as in the format: the first position of a document, then
/// gaps.
#[derive(Default)]
pub(crate) struct Decoded {
    pub docs: Vec<u32>,
    pub tfs: Vec<u32>,
    pub places: Vec<u32>,
}

impl Decoded {
    /// Clears the list but keeps its buffers.
    pub fn clear(&mut self) {
        self.docs.clear();
        self.tfs.clear();
        self.places.clear();
    }

    /// Visits each document with its places.
    #[inline]
    pub fn for_each_document(&self, mut visit: impl FnMut(u32, &[u32])) {
        let mut rest = self.places.as_slice();
        for (&doc, &tf) in self.docs.iter().zip(&self.tfs) {
            let (places, behind) = rest.split_at(rest.len().min(tf as usize));
            visit(doc, places);
            rest = behind;
        }
    }

    /// Checks the invariants of the postings that follow the first `docs` documents and `places`
    /// places: documents ascend, each has an occurrence, positions ascend.
    pub(super) fn check(&self, docs: usize, places: usize) -> Result<()> {
        let corrupt = || IndexError::corrupt("postings that no writer wrote");
        let mut places = &self.places[places..];
        for &tf in &self.tfs[docs..] {
            let (mine, rest) = places.split_at_checked(tf as usize).ok_or_else(corrupt)?;
            let (_, gaps) = mine.split_first().ok_or_else(corrupt)?;
            if gaps.contains(&0) {
                return Err(corrupt());
            }
            places = rest;
        }
        let ascend = self.docs[docs..].is_sorted_by(|a, b| a < b);
        let ascend = ascend && self.docs.len() == self.tfs.len();
        if ascend && places.is_empty() { Ok(()) } else { Err(corrupt()) }
    }
}
