//! Finds documents of one term in ascending order and reads their positions.

use super::{
    bits::BitReader,
    packing::BLOCK,
    places::{Places, read_group},
    reader::{DocsReader, Form, Large, Postings},
    small::{Small, SmallPlaces},
};
use crate::{Result, bytes::Stored};

/// A group of more places than this is decoded chunk by chunk, not whole.
const WHOLE_GROUP: usize = 8192;

/// A cursor over one term's postings.
pub(crate) enum Cursor<'a> {
    /// Over a small record.
    Small(SmallCursor<'a>),
    /// Over a large one.
    Large(Box<LargeCursor<'a>>),
}

impl<'a> Cursor<'a> {
    /// Starts before the first document. `positions` is the section of the places that
    /// do not stand in the records.
    pub fn new(postings: &Postings<'a>, positions: &'a Stored) -> Result<Self> {
        Ok(match postings.form() {
            Form::Small(small) => Self::Small(SmallCursor::new(small, positions)?),
            Form::Large(large) => Self::Large(Box::new(LargeCursor::new(large, positions))),
        })
    }

    /// Whether `doc` holds the term. Documents are asked in ascending order.
    #[inline]
    pub fn seek(&mut self, doc: u32) -> Result<bool> {
        match self {
            Self::Small(small) => Ok(small.seek(doc)),
            Self::Large(large) => large.seek(doc),
        }
    }

    /// The positions of the document that was found last, ascending, into `out` (emptied first).
    pub fn positions(&mut self, out: &mut Vec<u32>) -> Result<()> {
        out.clear();
        match self {
            Self::Small(small) => small.places(out)?,
            Self::Large(large) => large.places(out)?,
        }
        let mut position = 0u32;
        for place in out.iter_mut() {
            position = position.saturating_add(*place);
            *place = position;
        }
        Ok(())
    }
}

/// Over a small record: its documents are decoded at once, its places in order.
pub(crate) struct SmallCursor<'a> {
    small: Small<'a>,
    positions: &'a Stored,
    /// (document, occurrences).
    entries: Vec<(u32, u32)>,
    entries_end: BitReader<'a>,
    index: usize,
    /// The places from those of entry `places_at` on.
    places: Option<SmallPlaces<'a>>,
    places_at: usize,
}

impl<'a> SmallCursor<'a> {
    fn new(small: &Small<'a>, positions: &'a Stored) -> Result<Self> {
        let mut entries = Vec::with_capacity(small.df() as usize);
        let entries_end = small.for_each(|doc, tf| entries.push((doc, tf)))?;
        let (small, places) = (*small, None);
        Ok(Self { small, positions, entries, entries_end, index: 0, places, places_at: 0 })
    }

    fn seek(&mut self, doc: u32) -> bool {
        while self.entries.get(self.index).is_some_and(|entry| entry.0 < doc) {
            self.index += 1;
        }
        self.entries.get(self.index).is_some_and(|entry| entry.0 == doc)
    }

    fn places(&mut self, out: &mut Vec<u32>) -> Result<()> {
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
        if let Some(&(_, tf)) = self.entries.get(self.index) {
            places.read(tf, |place| out.push(place))?;
        }
        self.places_at = self.index + 1;
        Ok(())
    }
}

/// Over a large record: one block at a time; the places of a block once one is asked for.
pub(crate) struct LargeCursor<'a> {
    docs: DocsReader<'a>,
    places: Places<'a>,
    index: usize,
    /// The block whose places are decoded.
    group: Option<u32>,
    /// Where the places of each posting of the block begin.
    starts: [usize; BLOCK + 1],
    decoded: Vec<u32>,
}

impl<'a> LargeCursor<'a> {
    fn new(large: &Large<'a>, positions: &'a Stored) -> Self {
        Self {
            docs: DocsReader::new(large),
            places: large.places(positions),
            index: 0,
            group: None,
            starts: [0; BLOCK + 1],
            decoded: Vec::new(),
        }
    }

    fn seek(&mut self, doc: u32) -> Result<bool> {
        if let Some(ordinal) = self.docs.large().ordinal(doc)? {
            return self.seek_ordinal(ordinal);
        }
        if self.docs.large().is_bits() { Ok(false) } else { self.seek_list(doc) }
    }

    /// The frequencies of the bits form are found by ordinal: the documents are not decoded.
    fn seek_ordinal(&mut self, ordinal: u32) -> Result<bool> {
        self.docs.skip_to(ordinal / BLOCK as u32)?;
        self.index = ordinal as usize % BLOCK;
        Ok(self.index < self.docs.len())
    }

    fn seek_list(&mut self, doc: u32) -> Result<bool> {
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
        let docs = self.docs.docs();
        self.index += docs.get(self.index..).unwrap_or(&[]).partition_point(|&other| other < doc);
        Ok(docs.get(self.index) == Some(&doc))
    }

    fn places(&mut self, out: &mut Vec<u32>) -> Result<()> {
        let Some(block) = self.docs.block() else { return Ok(()) };
        let loaded = self.group == Some(block);
        if !loaded {
            self.load_starts()?;
        }
        let total = self.starts[self.docs.len()];
        let (from, to) = (self.starts[self.index], self.starts[self.index + 1]);
        if total > WHOLE_GROUP {
            let (first, last) = self.docs.large().group_range(block)?;
            self.group = Some(block);
            return read_group(&self.places.bytes(first, last)?, from, to, total, out);
        }
        if !loaded {
            let (first, last) = self.docs.large().group_range(block)?;
            self.decoded.clear();
            read_group(&self.places.bytes(first, last)?, 0, total, total, &mut self.decoded)?;
            self.group = Some(block);
        }
        out.extend_from_slice(self.decoded.get(from..to).unwrap_or(&[]));
        Ok(())
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
