//! Document frequency and term frequency: what matching and scoring know of each term, computed once.
//!
//! A score needs the number of rows that contain each term and, for scored documents, how often. Matching runs first
//! and often computes the same, so it stores it here.

use remora_index::text::TextIndex;

use super::expression::Matcher;
use crate::Result;

/// Term frequencies in documents of one segment, ascending by document.
pub(super) type Frequencies = Vec<(u32, u32)>;

/// The known frequencies of each term in each segment.
pub(super) struct Occurrences {
    segments: usize,
    known: Vec<KnownFrequencies>,
}

/// The known frequencies of one term in one segment.
#[derive(Clone, Default)]
pub(super) struct KnownFrequencies {
    /// Document frequency: the number of live documents that contain it.
    pub holding: Option<u64>,
    /// Term frequency in each selected document that contains it.
    pub frequencies: Option<Frequencies>,
}

impl Occurrences {
    /// An empty record.
    pub fn new(terms: usize, segments: usize) -> Self {
        Self { segments, known: vec![KnownFrequencies::default(); terms * segments] }
    }

    /// The record of a term in a segment.
    pub fn known(&mut self, term: usize, segment: usize) -> &mut KnownFrequencies {
        &mut self.known[term * self.segments + segment]
    }

    /// Records the number of live documents of the segment that contain the term.
    pub fn note_holding(&mut self, term: usize, segment: usize, live: u64) {
        self.known(term, segment).holding = Some(live);
    }

    /// Records the term frequency in each selected document of the segment that contains the term; other documents
    /// may be included.
    pub fn note_frequencies(&mut self, term: usize, segment: usize, frequencies: Frequencies) {
        self.known(term, segment).frequencies = Some(frequencies);
    }
}

/// The frequencies of the documents in an ascending list.
pub(super) fn common(frequencies: &[(u32, u32)], docs: &[u32]) -> Frequencies {
    let mut rest = frequencies;
    let mut found = Vec::with_capacity(docs.len().min(frequencies.len()));
    for &doc in docs {
        rest = from_doc(rest, doc);
        found.extend(rest.first().filter(|first| first.0 == doc));
    }
    found
}

/// The frequencies from `doc` on, by galloping: it is usually near.
#[inline]
pub(super) fn from_doc(frequencies: &[(u32, u32)], doc: u32) -> &[(u32, u32)] {
    let mut step = 1;
    while step < frequencies.len() && frequencies[step].0 < doc {
        step *= 2;
    }
    let (start, end) = (step / 2, frequencies.len().min(step + 1));
    let behind = frequencies[start..end].partition_point(|&(other, _)| other < doc);
    &frequencies[start + behind..]
}

/// The frequencies of a text in all documents of the segment, if that costs little more than finding the
/// documents; `None` if it costs more, or texts must be read.
pub(super) fn cheap_frequencies(
    index: &TextIndex,
    matcher: &Matcher,
) -> Result<Option<Frequencies>> {
    let Matcher::Exact(pattern) = matcher else { return Ok(None) };
    if !index.reads_postings(pattern) {
        return Ok(None);
    }
    let mut counted = Vec::new();
    let doubtful = index.occurrences(pattern, None, &mut counted)?;
    Ok((!doubtful).then_some(counted))
}
