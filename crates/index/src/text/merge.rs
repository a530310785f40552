//! Merges text indexes: terms in one ordered pass, postings without reading any text.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, binary_heap::PeekMut},
};

use super::{
    TextIndex, characters_seen,
    offsets::Offsets,
    postings::{Decoded, Postings},
    vocabulary::{OrderedTerm, Vocabulary},
    writer::TextWriter,
};
use crate::{IndexError, Result, SectionWriter, Slice, bytes::Stored};

/// The entry for a deleted document in a map of new document numbers.
pub(crate) const GONE: u32 = u32::MAX;

/// One input of a merge.
pub(crate) struct TextSource<'a> {
    /// The text index; `None` if the segment was written before the index existed.
    pub text: Option<&'a TextIndex>,
    /// The new number of each document, ascending, or [`GONE`].
    pub map: &'a [u32],
}

/// Writes the merged sections of the text index `id` for `doc_count` documents.
pub(crate) fn merge(
    sources: &[TextSource<'_>],
    doc_count: u32,
    id: u32,
    out: &mut SectionWriter,
) -> Result<()> {
    let mut writer = TextWriter::new(merged_lengths(sources, doc_count));
    let inputs = sources.iter().filter_map(|source| {
        let text = source.text?;
        Some(TermInput {
            vocabulary: &text.vocabulary,
            records: &text.records,
            offsets: &text.posting_offsets,
            positions: &text.positions,
            doc_count: text.doc_count,
            map: source.map,
        })
    });
    merge_terms(inputs.collect(), |term, postings| writer.push(term, postings))?;
    let known = sources.iter().filter_map(|source| Some((source.text?.seen.as_ref(), source.map)));
    characters_seen::merge(known, GONE, id, out)?;
    writer.finish(id, None, out)
}

/// The terms of one input of a merge.
pub(crate) struct TermInput<'a> {
    /// The terms.
    pub vocabulary: &'a Vocabulary,
    /// The section of their posting lists.
    pub records: &'a Slice,
    /// The offset of each posting list.
    pub offsets: &'a Offsets,
    /// The section of their positions.
    pub positions: &'a Stored,
    /// The number of documents of the input.
    pub doc_count: u32,
    /// The new number of each document, ascending, or [`GONE`].
    pub map: &'a [u32],
}

impl TermInput<'_> {
    fn postings(&self, term: u32) -> Result<Postings<'_>> {
        Postings::open(self.records, self.offsets.start(term), self.doc_count)
    }
}

/// Calls `push` with each term that a live document contains, in order, with its postings under the new
/// document numbers.
pub(crate) fn merge_terms(
    inputs: Vec<TermInput<'_>>,
    mut push: impl FnMut(&[u8], &Decoded) -> Result<()>,
) -> Result<()> {
    let inputs: Vec<(TermInput<'_>, Renumbering<'_>)> = inputs
        .into_iter()
        .map(|input| {
            let new = Renumbering::new(input.map);
            (input, new)
        })
        .collect();
    let next = |index: usize, number: u32| {
        let vocabulary = inputs[index].0.vocabulary;
        let term = (number < vocabulary.len()).then(|| vocabulary.ordered_term(number));
        term.map(|term| Reverse((term, index, number)))
    };
    let mut heap: BinaryHeap<Reverse<(OrderedTerm<'_>, usize, u32)>> =
        (0..inputs.len()).filter_map(|index| next(index, 0)).collect();
    let (mut merged, mut characters) = (MergedPostings::default(), String::new());
    while let Some(&Reverse((term, index, number))) = heap.peek() {
        let (input, new) = &inputs[index];
        merged.append(input, number, *new)?;
        let next = next(index, number + 1);
        if let Some(mut least) = heap.peek_mut() {
            match next {
                Some(next) => *least = next,
                None => drop(PeekMut::pop(least)),
            }
        }
        if heap.peek().is_some_and(|Reverse((other, ..))| *other == term) {
            continue;
        }
        let postings = merged.in_order();
        if !postings.docs.is_empty() {
            push(term.bytes(&mut characters), postings)?;
        }
        merged.all.clear();
    }
    Ok(())
}

fn merged_lengths(sources: &[TextSource<'_>], doc_count: u32) -> Vec<u32> {
    let mut lengths = vec![0; doc_count as usize];
    for source in sources {
        let Some(text) = source.text else { continue };
        for (doc, &new) in source.map.iter().enumerate() {
            if let Some(length) = lengths.get_mut(new as usize) {
                *length = text.length(doc as u32);
            }
        }
    }
    lengths
}

/// How the documents of an input are renumbered.
#[derive(Clone, Copy)]
enum Renumbering<'a> {
    /// All `documents` are kept and get consecutive numbers from `first` on.
    Shift { first: u32, documents: u32 },
    /// Each document gets the number that this map has for it, or is deleted ([`GONE`]).
    Map(&'a [u32]),
}

impl<'a> Renumbering<'a> {
    fn new(map: &'a [u32]) -> Self {
        let first = map.first().copied().unwrap_or(0);
        let is_shift = first != GONE && (first..).zip(map).all(|(number, &new)| number == new);
        let documents = map.len() as u32;
        if is_shift { Self::Shift { first, documents } } else { Self::Map(map) }
    }
}

/// The postings of one term from several inputs.
#[derive(Default)]
struct MergedPostings {
    all: Decoded,
    input: Decoded,
    sorted: Decoded,
}

impl MergedPostings {
    /// Adds an input's live postings under their new numbers.
    fn append(&mut self, input: &TermInput<'_>, term: u32, new: Renumbering<'_>) -> Result<()> {
        let postings = input.postings(term)?;
        match new {
            Renumbering::Shift { first, documents } => {
                let start = self.all.docs.len();
                postings.decode(input.positions, &mut self.all)?;
                let docs = &mut self.all.docs[start..];
                if docs.last().is_some_and(|&last| last >= documents) {
                    return Err(IndexError::corrupt("a document past the segment's last"));
                }
                docs.iter_mut().for_each(|doc| *doc += first);
                Ok(())
            }
            Renumbering::Map(map) => {
                self.input.clear();
                postings.decode(input.positions, &mut self.input)?;
                self.append_live(map);
                Ok(())
            }
        }
    }

    fn append_live(&mut self, map: &[u32]) {
        let mut place = 0;
        for (&doc, &tf) in self.input.docs.iter().zip(&self.input.tfs) {
            let places = self.input.places.get(place..place + tf as usize).unwrap_or(&[]);
            place += tf as usize;
            match map.get(doc as usize) {
                Some(&new) if new != GONE => {
                    self.all.docs.push(new);
                    self.all.tfs.push(tf);
                    self.all.places.extend_from_slice(places);
                }
                _ => {}
            }
        }
    }

    /// The postings in document order. They already are, unless the keys of inputs interleave.
    fn in_order(&mut self) -> &Decoded {
        if self.all.docs.is_sorted() {
            return &self.all;
        }
        let mut starts = Vec::with_capacity(self.all.docs.len());
        let mut start = 0;
        for (&doc, &tf) in self.all.docs.iter().zip(&self.all.tfs) {
            starts.push((doc, tf, start));
            start += tf as usize;
        }
        starts.sort_unstable();
        self.sorted.clear();
        for (doc, tf, start) in starts {
            self.sorted.docs.push(doc);
            self.sorted.tfs.push(tf);
            self.sorted.places.extend_from_slice(&self.all.places[start..start + tf as usize]);
        }
        &self.sorted
    }
}
