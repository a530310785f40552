//! Cursors over posting lists: seek documents in ascending order, and read their positions.

use super::{
    bits::BitReader,
    packing::BLOCK,
    places::{Places, read_group},
    reader::{Counted, DocsReader, Form, Large, Postings},
    small::{Small, SmallPlaces},
};
use crate::{IndexError, Result, bytes::Stored};

/// This many documents of a block are checked one by one before a search.
const NEAR: usize = 4;
/// A group with more positions than this is decoded chunk by chunk, not as a whole.
const WHOLE_GROUP: usize = 8192;

/// A cursor over one term's postings.
pub(crate) enum PostingsCursor<'a> {
    /// Over a small record.
    Small(SmallCursor<'a>),
    /// Over a large one.
    Large(Box<LargeCursor<'a>>),
}

impl<'a> PostingsCursor<'a> {
    /// A cursor before the first document. `positions` is the section of positions that are not in the
    /// records.
    pub fn new(postings: &Postings<'a>, positions: &'a Stored) -> Result<Self> {
        Ok(match postings.form() {
            Form::Small(small) => Self::Small(SmallCursor::new(small, positions)?),
            Form::Large(large) => Self::Large(Box::new(LargeCursor::new(large, positions))),
        })
    }

    /// Goes to the first document that is not below `doc`; `None` if there is none. `doc` must not decrease
    /// between calls.
    #[inline]
    pub fn advance(&mut self, doc: u32) -> Result<Option<u32>> {
        match self {
            Self::Small(small) => Ok(small.advance(doc)),
            Self::Large(large) => large.advance(doc),
        }
    }

    /// Goes to a document, in any order. Returns whether the document has the term. If not, [`PostingsCursor::advance`] to it goes
    /// to the next one.
    #[inline]
    pub fn seek(&mut self, doc: u32) -> Result<bool> {
        match self {
            Self::Small(small) => Ok(small.seek(doc)),
            Self::Large(large) => large.seek(doc),
        }
    }

    /// The term frequency in the current document.
    pub fn frequency(&mut self) -> Result<u32> {
        match self {
            Self::Small(small) => Ok(small.entries.get(small.index).map_or(0, |entry| entry.1)),
            Self::Large(large) => large.frequency(),
        }
    }

    /// The encoded positions in the current document; `postings::positions` decodes them.
    #[inline]
    pub fn places(&mut self) -> Result<&[u32]> {
        match self {
            Self::Small(small) => small.places(),
            Self::Large(large) => large.places(),
        }
    }
}

/// A cursor over a small record: all documents are decoded at once, positions in order.
pub(crate) struct SmallCursor<'a> {
    small: Small<'a>,
    positions: &'a Stored,
    /// (document, occurrences).
    entries: Vec<(u32, u32)>,
    entries_end: BitReader<'a>,
    index: usize,
    /// A reader of positions, at those of entry `places_at`.
    places: Option<SmallPlaces<'a>>,
    places_at: usize,
    /// The positions read last.
    found: Vec<u32>,
}

impl<'a> SmallCursor<'a> {
    fn new(small: &Small<'a>, positions: &'a Stored) -> Result<Self> {
        let mut entries = Vec::with_capacity(small.df() as usize);
        let entries_end = small.for_each(|doc, tf| entries.push((doc, tf)))?;
        Ok(Self {
            small: *small,
            positions,
            entries,
            entries_end,
            index: 0,
            places: None,
            places_at: 0,
            found: Vec::new(),
        })
    }

    fn advance(&mut self, doc: u32) -> Option<u32> {
        while self.entries.get(self.index).is_some_and(|entry| entry.0 < doc) {
            self.index += 1;
        }
        self.entries.get(self.index).map(|entry| entry.0)
    }

    fn seek(&mut self, doc: u32) -> bool {
        let is_behind = |entry: Option<&(u32, u32)>| entry.is_some_and(|entry| entry.0 >= doc);
        let before = self.index.checked_sub(1);
        if before.is_some_and(|before| is_behind(self.entries.get(before))) {
            self.index = self.entries.partition_point(|entry| entry.0 < doc);
        }
        self.advance(doc) == Some(doc)
    }

    fn places(&mut self) -> Result<&[u32]> {
        if self.places_at > self.index {
            (self.places, self.places_at) = (None, 0);
        }
        let places = match &mut self.places {
            Some(places) => places,
            none => {
                let repeated = self.entries.iter().any(|entry| entry.1 > 1);
                let (small, end) = (&self.small, self.entries_end);
                none.insert(SmallPlaces::open(small, end, self.positions, repeated)?)
            }
        };
        for &(_, tf) in self.entries.get(self.places_at..self.index).unwrap_or(&[]) {
            places.read(tf, |_| ())?;
        }
        self.found.clear();
        if let Some(&(_, tf)) = self.entries.get(self.index) {
            places.read(tf, |place| self.found.push(place))?;
        }
        self.places_at = self.index + 1;
        Ok(&self.found)
    }
}

/// A cursor over a large record: decodes one block at a time, and its positions when they are first needed.
pub(crate) struct LargeCursor<'a> {
    docs: DocsReader<'a>,
    places: Places<'a>,
    index: usize,
    /// In the bitmap form, the current document until its ordinal is looked up.
    standing: Option<u32>,
    /// In the bitmap form, the counter for ordinals.
    counted: Counted,
    /// The block for which `starts` is filled in.
    group: Option<u32>,
    /// Whether positions of this block were needed before.
    is_known: bool,
    /// Whether all positions of the block are decoded, not only those of one document.
    whole: bool,
    /// The start of each posting's positions in the block.
    starts: [usize; BLOCK + 1],
    decoded: Vec<u32>,
}

impl<'a> LargeCursor<'a> {
    fn new(large: &Large<'a>, positions: &'a Stored) -> Self {
        Self {
            docs: DocsReader::new(large),
            places: large.places(positions),
            index: 0,
            standing: None,
            counted: Counted::default(),
            group: None,
            is_known: false,
            whole: false,
            starts: [0; BLOCK + 1],
            decoded: Vec::new(),
        }
    }

    #[inline]
    fn advance(&mut self, doc: u32) -> Result<Option<u32>> {
        if !self.docs.large().is_bits() {
            return self.advance_list(doc);
        }
        self.standing = self.docs.large().next_of_bits(doc);
        Ok(self.standing)
    }

    #[inline]
    fn seek(&mut self, doc: u32) -> Result<bool> {
        let large = self.docs.large();
        if large.is_bits() {
            let is_there = large.has_bit(doc);
            self.standing = is_there.then_some(doc);
            return Ok(is_there);
        }
        if self.docs.docs().first().is_some_and(|&first| first > doc) {
            // The document is before the block: search from the first block on, unless the previous
            // block ends below it.
            let block = self.docs.block().unwrap_or(0);
            if block == 0 || large.last_doc(block - 1)? < doc {
                // An advance from here finds the block's first document.
                self.index = 0;
                return Ok(false);
            }
            let block = large.find_block_from_start(doc)?;
            self.docs.load(block)?;
            self.index = 0;
        } else if self.docs.docs().get(self.index).is_none_or(|&at| at > doc) {
            self.index = 0;
        }
        Ok(self.advance_list(doc)? == Some(doc))
    }

    #[inline]
    fn advance_list(&mut self, doc: u32) -> Result<Option<u32>> {
        if self.docs.docs().last().is_none_or(|&last| last < doc) && !self.load_block_of(doc)? {
            return Ok(None);
        }
        let rest = self.docs.docs().get(self.index..).unwrap_or(&[]);
        // The requested document is usually the next one or near it.
        let near = rest.iter().take(NEAR).position(|&other| other >= doc);
        self.index += near.unwrap_or_else(|| rest.partition_point(|&other| other < doc));
        let reached = self.docs.docs().get(self.index).copied();
        reached.map(Some).ok_or_else(|| IndexError::corrupt("a block's last document"))
    }

    /// Loads the first block whose last document is not below `doc`; false if there is none.
    fn load_block_of(&mut self, doc: u32) -> Result<bool> {
        let large = self.docs.large();
        let mut block = self.docs.block().unwrap_or(0);
        if large.last_doc(block)? < doc {
            block = large.find_block(block, doc)?;
            if block == large.blocks() {
                return Ok(false);
            }
        }
        if self.docs.block() != Some(block) {
            self.docs.load(block)?;
            self.index = 0;
        }
        Ok(true)
    }

    /// In the bitmap form frequencies are found by ordinal, without decoding documents.
    fn find_standing(&mut self) -> Result<()> {
        let Some(doc) = self.standing.take() else { return Ok(()) };
        if let Some(ordinal) = self.docs.large().ordinal(doc, &mut self.counted)? {
            self.docs.skip_to(ordinal / BLOCK as u32)?;
            self.index = ordinal as usize % BLOCK;
        }
        if self.index < self.docs.len() {
            Ok(())
        } else {
            Err(IndexError::corrupt("a rank past the number of documents"))
        }
    }

    #[inline]
    fn places(&mut self) -> Result<&[u32]> {
        self.find_standing()?;
        let Some(block) = self.docs.block() else { return Ok(&[]) };
        if self.group != Some(block) {
            self.load_starts()?;
            (self.group, self.is_known, self.whole) = (Some(block), false, false);
        } else if !self.whole && !self.is_known {
            // Positions of a second document of the block are needed, so those of all are decoded.
            self.is_known = true;
            self.load_group(block)?;
        }
        let (from, to) = (self.starts[self.index], self.starts[self.index + 1]);
        if self.whole {
            return Ok(self.decoded.get(from..to).unwrap_or(&[]));
        }
        let (first, last) = self.docs.large().group_range(block)?;
        let total = self.starts[self.docs.len()];
        self.decoded.clear();
        read_group(&self.places.bytes(first, last)?, from, to, total, &mut self.decoded)?;
        Ok(&self.decoded)
    }

    /// Prepares the positions of the block; decodes all of them unless they are very many.
    fn load_group(&mut self, block: u32) -> Result<()> {
        let total = self.starts[self.docs.len()];
        self.whole = total <= WHOLE_GROUP;
        if self.whole {
            let (first, last) = self.docs.large().group_range(block)?;
            self.decoded.clear();
            read_group(&self.places.bytes(first, last)?, 0, total, total, &mut self.decoded)?;
        }
        Ok(())
    }

    fn frequency(&mut self) -> Result<u32> {
        self.find_standing()?;
        self.docs.tf(self.index)
    }

    fn load_starts(&mut self) -> Result<()> {
        self.docs.load_tfs()?;
        let mut start = 0usize;
        for (index, &tf) in self.docs.tfs().iter().enumerate() {
            start = start.saturating_add(tf as usize);
            self.starts[index + 1] = start;
        }
        Ok(())
    }
}
