//! The keyword index of a segment, for ranked search: posting lists with frequencies and positions.
//!
//! It is separate from the substring index ([`crate::text`]) but has the same parts: a sorted vocabulary,
//! postings and positions. The analyzer decides what a keyword is; here it is bytes. The fields of a document
//! are concatenated, so that a place is one number: the sum of the last positions of the fields before it,
//! plus the position in its own field.
//!
//! ```text
//! WLEN := fields:u16 has_counts:u8 width:u8 last:width{documents * fields} [count:width{documents * fields}]
//!                        the last position of each field, and its keywords where that is another number
//! WSTA := postings:u64 hits:u64 total:u64{fields}         total: keywords of each field
//! TFLD := see `fields`
//! TPRK TPRO TPRL: see `pairs`
//! ```
//! The other sections are those of a text index, under the id of the keyword index.

mod builder;
mod fields;
mod lengths;
mod merge;
mod pairs;
mod pairs_writer;
mod writer;

use std::{cell::Cell, ops::ControlFlow};

pub(crate) use builder::WordsBuilder;
pub use fields::MOST_FIELDS;
pub(crate) use merge::{WordsSource, merge};
pub(crate) use pairs::PAIR_LISTS;
use remora_words::hits::PackedPosition;
pub(crate) use writer::STATISTICS as WORDS;

use crate::{
    Bitmap, DocSet, IndexError, Result, SectionWriter, Sections, Slice,
    bytes::Stored,
    text::{
        POSITIONS,
        parts::{Offsets, Postings, PostingsCursor, Vocabulary, positions},
    },
};
use fields::{FIELDS, Fields, LEAST_DOCUMENTS, documents_of};
use lengths::Lengths;
pub use pairs::MOST_DISTANCE as MOST_PAIR_DISTANCE;
use pairs::PairLists;
use pairs_writer::PairsWriter;

/// A union of several keywords is built as a list if it has at most one in this many documents.
const FEW_SHARE: u32 = 128;

/// If the wanted documents are fewer than one in so many of a keyword, they are looked up one by one.
const FEW_FREQUENCIES: usize = 16;

/// The keyword index of a segment.
#[derive(Clone)]
pub struct WordsIndex {
    doc_count: u32,
    vocabulary: Vocabulary,
    posting_offsets: Offsets,
    records: Slice,
    positions: Stored,
    lengths: Lengths,
    totals: Vec<u64>,
    hit_count: u64,
    /// Posting lists by field; `None` with one field or more than [`MOST_FIELDS`], or if the segment was
    /// written before they existed.
    lists: Option<Fields>,
    /// Lists of pairs of frequent keywords; `None` for few documents, or if the segment was written before they existed.
    pairs: Option<PairLists>,
}

impl WordsIndex {
    /// Opens the keyword index `id`; `None` if the segment was written before it was declared.
    pub(crate) fn open(sections: &Sections, id: u32, doc_count: u32) -> Result<Option<Self>> {
        let Some(statistics) = sections.get(writer::STATISTICS, id) else { return Ok(None) };
        let lengths = Lengths::open(sections.require(writer::LENGTHS, id)?, doc_count)?;
        let vocabulary = Vocabulary::open(sections, id)?;
        let posting_offsets = Offsets::open(sections.require(writer::POSTING_OFFSETS, id)?)?;
        if posting_offsets.len() != vocabulary.len() {
            return Err(IndexError::corrupt("the size of the words' index"));
        }
        Ok(Some(Self {
            doc_count,
            totals: writer::totals(statistics, lengths.fields())?,
            hit_count: writer::hits(statistics)?,
            vocabulary,
            posting_offsets,
            records: sections.require(writer::POSTINGS, id)?.clone(),
            positions: sections.require_stored(POSITIONS, id)?.paged(),
            lengths,
            lists: sections.get(FIELDS, id).map(Fields::open).transpose()?,
            pairs: PairLists::open(sections, id)?,
        }))
    }

    /// The number of fields.
    pub fn fields(&self) -> usize {
        self.lengths.fields()
    }

    /// The total length in keywords of each field, deleted documents included.
    pub fn totals(&self) -> &[u64] {
        &self.totals
    }

    /// The length in keywords of a field of a document.
    pub fn count(&self, doc: u32, field: usize) -> u32 {
        self.lengths.count(doc, field)
    }

    /// The position of the last keyword of a document's field. The places of the next field, as [`WordCursor::steps`] add
    /// up to them, are behind those of this one.
    #[inline]
    pub fn last_position(&self, doc: u32, field: usize) -> u32 {
        self.lengths.last(doc, field)
    }

    /// Whether two places of a document, as [`WordCursor::steps`] add up to them, are in one field; `first` is not
    /// behind `last`.
    #[inline]
    pub fn are_in_one_field(&self, doc: u32, first: u32, last: u32) -> bool {
        let (mut before, fields) = (0u32, self.lengths.fields());
        for field in 1..fields {
            let end = before.saturating_add(self.lengths.last(doc, field - 1));
            if last <= end {
                break;
            }
            before = end;
        }
        first > before
    }

    /// The number of a keyword in this segment.
    pub fn find(&self, keyword: &str) -> Option<u32> {
        let at = self.vocabulary.lower_bound(keyword.as_bytes());
        let is_it = at < self.vocabulary.words() && self.vocabulary.word(at) == keyword.as_bytes();
        is_it.then_some(at)
    }

    /// Calls `visit` with each keyword that begins with `prefix`, and its number, in order, until `visit`
    /// breaks.
    pub fn for_each_with_prefix(
        &self,
        prefix: &str,
        visit: impl FnMut(&str, u32) -> ControlFlow<()>,
    ) {
        self.for_each(self.vocabulary.words_with_prefix(prefix), visit);
    }

    /// Calls `visit` with each keyword that contains `piece`, and its number, in order, until `visit` breaks.
    pub fn for_each_with_piece(
        &self,
        piece: &str,
        visit: impl FnMut(&str, u32) -> ControlFlow<()>,
    ) {
        self.for_each(self.vocabulary.words_with_piece(piece), visit);
    }

    fn for_each(
        &self,
        numbers: impl IntoIterator<Item = u32>,
        mut visit: impl FnMut(&str, u32) -> ControlFlow<()>,
    ) {
        for number in numbers {
            if let Ok(keyword) = std::str::from_utf8(self.vocabulary.word(number))
                && visit(keyword, number).is_break()
            {
                return;
            }
        }
    }

    /// The document frequency of the keyword, deleted documents included.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if postings are damaged.
    pub fn document_count(&self, keyword: u32) -> Result<u32> {
        Ok(self.postings(keyword)?.df())
    }

    /// Calls `visit` with each document that contains the keyword and its term frequency, in ascending order,
    /// until `visit` breaks.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if postings are damaged.
    pub fn for_each_posting(
        &self,
        keyword: u32,
        mut visit: impl FnMut(u32, u32) -> ControlFlow<()>,
    ) -> Result<()> {
        let has_ended = Cell::new(false);
        let visit = |doc, hits| {
            if !has_ended.get() {
                has_ended.set(visit(doc, hits).is_break());
            }
        };
        self.postings(keyword)?.for_each_with(|_| !has_ended.get(), visit)
    }

    /// Calls `visit` for those of the documents `docs`, which ascend, that contain the keyword, with their places in `docs`
    /// and their term frequencies, until `visit` breaks.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if postings are damaged; [`IndexError::Io`] if they cannot be read.
    pub fn for_each_frequency(
        &self,
        keyword: u32,
        docs: &[u32],
        mut visit: impl FnMut(usize, u32) -> ControlFlow<()>,
    ) -> Result<()> {
        if docs.len() < self.document_count(keyword)? as usize / FEW_FREQUENCIES {
            let mut cursor = self.cursor(keyword)?;
            for (at, &doc) in docs.iter().enumerate() {
                if cursor.seek(doc)? && visit(at, cursor.frequency()?).is_break() {
                    break;
                }
            }
            return Ok(());
        }
        let mut wanted = docs.iter().copied().enumerate().peekable();
        self.for_each_posting(keyword, |doc, hits| {
            while wanted.next_if(|&(_, wanted)| wanted < doc).is_some() {}
            match wanted.peek() {
                Some(&(at, wanted)) if wanted == doc => visit(at, hits),
                Some(_) => ControlFlow::Continue(()),
                None => ControlFlow::Break(()),
            }
        })
    }

    /// As [`WordsIndex::for_each_posting`], but skips a block of documents if `may_have` is false for an upper
    /// bound of the block's term frequencies.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if postings are damaged.
    pub fn for_each_frequent(
        &self,
        keyword: u32,
        may_have: impl FnMut(u32) -> bool,
        visit: impl FnMut(u32, u32),
    ) -> Result<()> {
        self.postings(keyword)?.for_each_with(may_have, visit)
    }

    /// The documents that contain the keyword.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if postings are damaged.
    pub fn documents(&self, keyword: u32) -> Result<DocSet> {
        documents_of(&self.postings(keyword)?, self.doc_count)
    }

    /// The longest field, which has no lists ([`WordsIndex::documents_in`]); `None` if no field has.
    pub fn longest_field(&self) -> Option<usize> {
        self.lists.as_ref().map(Fields::longest)
    }

    /// The documents that contain the keyword in a field, by its list or, for a rare keyword, by positions.
    /// `None` for the longest field, and for all fields if the segment has no lists by field.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if postings are damaged; [`IndexError::Io`] if they cannot be read.
    pub fn documents_in(&self, keyword: u32, field: usize) -> Result<Option<DocSet>> {
        let Some(lists) = self.lists.as_ref().filter(|lists| lists.longest() != field) else {
            return Ok(None);
        };
        if self.document_count(keyword)? as usize >= LEAST_DOCUMENTS {
            return lists.documents(keyword, field, self.doc_count).map(Some);
        }
        let (mut cursor, mut docs) = (self.cursor(keyword)?, Vec::new());
        let mut next = cursor.advance(0)?;
        while let Some(doc) = next {
            let mut is_there = false;
            cursor.places(|place| is_there |= usize::from(place.field()) == field)?;
            docs.extend(is_there.then_some(doc));
            next = cursor.advance(doc + 1)?;
        }
        Ok(Some(DocSet::ascending(docs, self.doc_count)))
    }

    /// Whether there are lists of pairs ([`WordsIndex::documents_apart`]).
    pub fn has_pairs(&self) -> bool {
        self.pairs.is_some()
    }

    /// Checks the lists of pairs, if there are any, against the postings.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if postings or lists are damaged; [`IndexError::Io`] if they cannot be read.
    pub fn has_right_pairs(&self) -> Result<bool> {
        let Some(pairs) = &self.pairs else { return Ok(true) };
        let fields = self.fields();
        let of_document = |doc| (0..fields).map(|field| self.count(doc, field)).sum();
        let lengths: Vec<u32> = (0..self.doc_count).map(of_document).collect();
        let mut writer = PairsWriter::new(lengths.len());
        for keyword in 0..self.vocabulary.words() {
            writer.push(self.document_count(keyword)?, self.posting_offsets.start(keyword));
        }
        let positions = self.positions.read_all()?;
        let bytes = self.records.len() + positions.len();
        let postings = (&self.records[..], &Stored::Memory(positions));
        let Some(made) = writer.finish(postings, bytes, &lengths, self.hit_count)? else {
            return Ok(false);
        };
        let mut out = SectionWriter::new();
        made.add(0, &mut out);
        match PairLists::open(&Sections::open(out.finish())?, 0)? {
            Some(made) => pairs.is_same(&made),
            None => Ok(false),
        }
    }

    /// The documents in which a place of the second keyword is the first one's plus `distance`, where places are those of
    /// concatenated fields, and huge documents with both keywords; `None` if no list tells, as for keywords that are not
    /// frequent.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if the lists are damaged; [`IndexError::Io`] if they cannot be read.
    pub fn documents_apart(&self, keywords: (u32, u32), distance: u32) -> Result<Option<DocSet>> {
        let Some(pairs) = &self.pairs else { return Ok(None) };
        pairs.documents(keywords, distance, self.doc_count)
    }

    /// The documents that contain the keyword as a bitmap, in words of 64 bits with the lowest byte first;
    /// `None` if they are few and stored as a list.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if postings are damaged.
    pub fn bits(&self, keyword: u32) -> Result<Option<&[[u8; 8]]>> {
        Ok(self.postings(keyword)?.bit_words())
    }

    /// The documents that contain at least one of the keywords.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if postings are damaged.
    pub fn united(&self, keywords: &[u32]) -> Result<DocSet> {
        if let [only] = keywords {
            return self.documents(*only);
        }
        let all = keywords.iter().map(|&keyword| self.postings(keyword));
        let all = all.collect::<Result<Vec<_>>>()?;
        let count: u64 = all.iter().map(|postings| u64::from(postings.df())).sum();
        if count <= u64::from(self.doc_count / FEW_SHARE) {
            let mut docs = Vec::with_capacity(count as usize);
            for postings in all {
                postings.for_each_doc(|doc| docs.push(doc))?;
            }
            docs.sort_unstable();
            docs.dedup();
            return Ok(DocSet::ascending(docs, self.doc_count));
        }
        let mut docs = Bitmap::new(self.doc_count);
        for postings in all {
            match postings.bit_words() {
                Some(words) => {
                    let all = docs.words_mut().iter_mut().zip(words);
                    all.for_each(|(all, word)| *all |= u64::from_le_bytes(*word));
                }
                None => postings.for_each_doc(|doc| {
                    docs.insert(doc);
                })?,
            }
        }
        Ok(DocSet::Bits(docs.into()))
    }

    /// The documents of `docs` that contain the keyword.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if postings are damaged.
    pub fn intersect(&self, keyword: u32, docs: DocSet) -> Result<DocSet> {
        let postings = self.postings(keyword)?;
        let (DocSet::Bits(_), Some(words)) = (&docs, postings.bit_words()) else {
            return Ok(docs.intersect(&documents_of(&postings, self.doc_count)?));
        };
        let mut docs = docs.into_bitmap(self.doc_count);
        let all = docs.words_mut().iter_mut().zip(words);
        all.for_each(|(all, word)| *all &= u64::from_le_bytes(*word));
        Ok(DocSet::Bits(docs.into()))
    }

    /// The documents of `docs`, which ascend, that contain the keyword.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if postings are damaged; [`IndexError::Io`] if they cannot be read.
    pub fn having(&self, keyword: u32, mut docs: Vec<u32>) -> Result<Vec<u32>> {
        let mut cursor = self.cursor(keyword)?;
        let mut failed = None;
        docs.retain(|&doc| match cursor.seek(doc) {
            Ok(is_there) => is_there,
            Err(error) => {
                failed = failed.take().or(Some(error));
                false
            }
        });
        failed.map_or(Ok(docs), Err)
    }

    /// A cursor over the documents that contain the keyword.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if postings are damaged; [`IndexError::Io`] if they cannot be read.
    pub fn cursor(&self, keyword: u32) -> Result<WordCursor<'_>> {
        let cursor = PostingsCursor::new(&self.postings(keyword)?, &self.positions)?;
        Ok(WordCursor { cursor, index: self, doc: None })
    }

    fn postings(&self, keyword: u32) -> Result<Postings<'_>> {
        Postings::open(&self.records, self.posting_offsets.start(keyword), self.doc_count)
    }
}

/// A cursor over the posting list of a keyword.
pub struct WordCursor<'a> {
    cursor: PostingsCursor<'a>,
    index: &'a WordsIndex,
    doc: Option<u32>,
}

impl WordCursor<'_> {
    /// Goes to the first document that is not below `doc`; `None` if there is none. `doc` must not decrease
    /// between calls.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if postings are damaged.
    #[inline]
    pub fn advance(&mut self, doc: u32) -> Result<Option<u32>> {
        if self.doc.is_none_or(|at| at < doc) {
            self.doc = self.cursor.advance(doc)?;
            if self.doc.is_none() {
                self.doc = Some(u32::MAX);
            }
        }
        Ok(self.doc.filter(|&at| at != u32::MAX))
    }

    /// Goes to a document, in any order, and tells whether it contains the keyword.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if postings are damaged.
    #[inline]
    pub fn seek(&mut self, doc: u32) -> Result<bool> {
        if self.doc == Some(doc) {
            return Ok(true);
        }
        let is_there = self.cursor.seek(doc)?;
        self.doc = is_there.then_some(doc);
        Ok(is_there)
    }

    /// The term frequency in the current document.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if postings are damaged.
    pub fn frequency(&mut self) -> Result<u32> {
        self.cursor.frequency()
    }

    /// The places of the keyword in the current document, as the format has them: the first place, then gaps.
    /// The fields are concatenated; within a field places differ as positions do.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if positions are damaged; [`IndexError::Io`] if they cannot be read.
    #[inline]
    pub fn steps(&mut self) -> Result<&[u32]> {
        match self.doc {
            Some(_) => self.cursor.places(),
            None => Ok(&[]),
        }
    }

    /// Calls `each` with the places of the keyword in the current document, in order.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if positions are damaged; [`IndexError::Io`] if they cannot be read.
    pub fn places(&mut self, mut each: impl FnMut(PackedPosition)) -> Result<()> {
        let Some(doc) = self.doc else { return Ok(()) };
        let lengths = &self.index.lengths;
        let places = self.cursor.places()?;
        let (mut field, mut before) = (0, 0);
        let mut last = lengths.last(doc, 0);
        for at in positions(places) {
            while at > before + last && field + 1 < lengths.fields() {
                before += last;
                field += 1;
                last = lengths.last(doc, field);
            }
            let position = at.saturating_sub(before);
            each(PackedPosition::new(field as u8, position, position == last));
        }
        Ok(())
    }
}
