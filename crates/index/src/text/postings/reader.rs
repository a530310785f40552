//! Decodes posting lists.

use super::{
    Decoded, RANK_DOCS, SKIP_BYTES,
    packing::{self, BLOCK},
    places::{Places, read_group},
    small::Small,
};
use crate::{
    Bitmap, IndexError, Result,
    bytes::{Stored, read_u32, read_u64},
    varint::VarintReader,
};

/// Decodes the places of a document to absolute positions, ascending.
#[inline]
pub(crate) fn positions(places: &[u32]) -> impl Iterator<Item = u32> {
    places.iter().scan(0u32, |position, place| {
        *position = position.saturating_add(*place);
        Some(*position)
    })
}

/// The postings of one term, not decoded yet.
#[derive(Clone, Copy)]
pub(crate) struct Postings<'a> {
    df: u32,
    form: Form<'a>,
}

/// The two forms of a record.
#[derive(Clone, Copy)]
pub(super) enum Form<'a> {
    /// One run of bits, for fewer than 128 documents.
    Small(Small<'a>),
    /// Blocks of 128 documents.
    Large(Large<'a>),
}

/// The areas of a large record.
#[derive(Clone, Copy)]
pub(super) struct Large<'a> {
    df: u32,
    skip: &'a [u8],
    bits: Option<BitsForm<'a>>,
    docs: &'a [u8],
    positions_start: u32,
    positions_bytes: u32,
}

/// The documents as a bitmap.
#[derive(Clone, Copy)]
struct BitsForm<'a> {
    ranks: &'a [u8],
    words: &'a [u8],
    doc_count: u32,
}

impl<'a> Postings<'a> {
    /// Reads the head of the record that starts at `offset` of the postings section.
    #[inline]
    pub fn open(section: &'a [u8], offset: usize, doc_count: u32) -> Result<Self> {
        let corrupt = || IndexError::corrupt("a term's number of documents");
        let record = section.get(offset..).ok_or_else(corrupt)?;
        let (df, form) = if record.first() == Some(&0) {
            let mut reader = VarintReader::new(record, 1);
            let df = reader.next()?;
            (df, Form::Large(Large::open(&record[reader.position()..], df, doc_count)?))
        } else {
            let small = Small::open(record, doc_count)?;
            (small.df(), Form::Small(small))
        };
        if df == 0 || df > doc_count {
            return Err(corrupt());
        }
        Ok(Self { df, form })
    }

    /// The number of documents that contain the term.
    #[inline]
    pub fn df(&self) -> u32 {
        self.df
    }

    pub(super) fn form(&self) -> &Form<'a> {
        &self.form
    }

    /// Whether decoding the whole list is almost free.
    #[inline]
    pub fn is_small(&self) -> bool {
        matches!(self.form, Form::Small(_))
    }

    /// Whether the documents are stored as a bitmap.
    pub fn is_bits(&self) -> bool {
        matches!(&self.form, Form::Large(large) if large.bits.is_some())
    }

    /// A copy of the bitmap, if the documents are stored so: `documents / 8` bytes.
    pub fn to_bitmap(self) -> Option<Bitmap> {
        match self.form {
            Form::Large(Large { bits: Some(bits), .. }) => Some(bits.to_bitmap()),
            _ => None,
        }
    }

    /// The bitmap of documents in words of 64 bits, lowest byte first, if the documents are stored
    /// so.
    pub fn bit_words(&self) -> Option<&'a [[u8; 8]]> {
        let Form::Large(Large { bits: Some(bits), .. }) = self.form else { return None };
        Some(bits.words.as_chunks().0)
    }

    /// Calls `visit` with each document, ascending.
    #[inline]
    pub fn for_each_doc(&self, mut visit: impl FnMut(u32)) -> Result<()> {
        match &self.form {
            Form::Small(small) => small.for_each(|doc, _| visit(doc)).map(drop),
            Form::Large(large) => match &large.bits {
                Some(bits) => {
                    bits.for_each(visit);
                    Ok(())
                }
                None => large.for_each_block(|docs| docs.iter().for_each(|&doc| visit(doc))),
            },
        }
    }

    /// Calls `visit` with each document and its number of occurrences, ascending.
    #[inline]
    pub fn for_each(&self, mut visit: impl FnMut(u32, u32)) -> Result<()> {
        match &self.form {
            Form::Small(small) => small.for_each(visit).map(drop),
            Form::Large(large) => {
                let mut docs = DocsReader::new(large);
                for block in 0..large.blocks() {
                    docs.load(block)?;
                    docs.load_tfs()?;
                    docs.docs().iter().zip(docs.tfs()).for_each(|(&doc, &tf)| visit(doc, tf));
                }
                Ok(())
            }
        }
    }

    /// As [`Postings::for_each`], but skips a block of documents if `may_have` is false for an upper bound of
    /// the block's term frequencies (`u32::MAX` from 255 on). Small records have no blocks to skip.
    #[inline]
    pub fn for_each_with(
        &self,
        mut may_have: impl FnMut(u32) -> bool,
        mut visit: impl FnMut(u32, u32),
    ) -> Result<()> {
        let Form::Large(large) = &self.form else { return self.for_each(visit) };
        let mut docs = DocsReader::new(large);
        for block in 0..large.blocks() {
            if !may_have(large.most_occurrences(block)) {
                continue;
            }
            docs.load(block)?;
            docs.load_tfs()?;
            docs.docs().iter().zip(docs.tfs()).for_each(|(&doc, &tf)| visit(doc, tf));
        }
        Ok(())
    }

    /// Appends the whole list to `out`. `positions` is the section of the places that are not in
    /// the records.
    pub fn decode(&self, positions: &Stored, out: &mut Decoded) -> Result<()> {
        let (docs, places) = (out.docs.len(), out.places.len());
        self.decode_unchecked(positions, out)?;
        out.check(docs, places)
    }

    /// Appends the whole list to `out` without checking invariants.
    pub fn decode_unchecked(&self, positions: &Stored, out: &mut Decoded) -> Result<()> {
        self.decode_covering(&(0..=u32::MAX), positions, out)
    }

    /// As [`Postings::decode_unchecked`], but only documents within a range are needed. Nearby ones
    /// are included where that is cheaper than leaving them out.
    pub fn decode_covering(
        &self,
        documents: &std::ops::RangeInclusive<u32>,
        positions: &Stored,
        out: &mut Decoded,
    ) -> Result<()> {
        match &self.form {
            Form::Small(small) => small.decode(positions, out),
            Form::Large(large) => {
                let mut docs = DocsReader::new(large);
                let mut places = large.places(positions);
                places.load()?;
                for block in 0..large.blocks() {
                    let last_doc = large.last_doc(block)?;
                    if last_doc < *documents.start() {
                        continue;
                    }
                    docs.load(block)?;
                    docs.load_tfs()?;
                    out.docs.extend_from_slice(docs.docs());
                    out.tfs.extend_from_slice(docs.tfs());
                    let (first, last) = large.group_range(block)?;
                    let total = sum(docs.tfs())?;
                    let group = places.bytes(first, last)?;
                    read_group(&group, 0, total, total, &mut out.places)?;
                    if last_doc >= *documents.end() {
                        break;
                    }
                }
                Ok(())
            }
        }
    }
}

fn sum(tfs: &[u32]) -> Result<usize> {
    let sum: u64 = tfs.iter().map(|&tf| u64::from(tf)).sum();
    usize::try_from(sum).map_err(|_| IndexError::corrupt("a block's occurrences"))
}

impl<'a> Large<'a> {
    fn open(record: &'a [u8], df: u32, doc_count: u32) -> Result<Self> {
        let corrupt = || IndexError::corrupt("a large posting record");
        let blocks = df.div_ceil(BLOCK as u32) as usize;
        let form = *record.first().ok_or_else(corrupt)?;
        let docs_bytes = read_u32(record, 1)? as usize;
        let (positions_start, positions_bytes) = (read_u32(record, 5)?, read_u32(record, 9)?);
        let (skip, rest) =
            record[13..].split_at_checked(blocks * SKIP_BYTES).ok_or_else(corrupt)?;
        let (bits, rest) = match form {
            0 => (None, rest),
            1 => {
                let ranks_bytes = (doc_count as usize).div_ceil(RANK_DOCS) * 4;
                let words_bytes = doc_count.div_ceil(64) as usize * 8;
                let (ranks, rest) = rest.split_at_checked(ranks_bytes).ok_or_else(corrupt)?;
                let (words, rest) = rest.split_at_checked(words_bytes).ok_or_else(corrupt)?;
                (Some(BitsForm { ranks, words, doc_count }), rest)
            }
            _ => return Err(corrupt()),
        };
        let docs = rest.get(..docs_bytes).ok_or_else(corrupt)?;
        Ok(Self { df, skip, bits, docs, positions_start, positions_bytes })
    }

    pub fn is_bits(&self) -> bool {
        self.bits.is_some()
    }

    /// In the bitmap form, the first document that is not below `doc`.
    #[inline]
    pub fn next_of_bits(&self, doc: u32) -> Option<u32> {
        self.bits?.next(doc)
    }

    /// In the bitmap form, whether the document has the term.
    #[inline]
    pub fn has_bit(&self, doc: u32) -> bool {
        self.bits.is_some_and(|bits| bits.word(doc as usize / 64) >> (doc % 64) & 1 == 1)
    }

    /// See [`BitsForm::ordinal`]; in the list form always `None`.
    #[inline]
    pub fn ordinal(&self, doc: u32, counted: &mut Counted) -> Result<Option<u32>> {
        let ordinal = self.bits.and_then(|bits| bits.ordinal(doc, counted));
        if ordinal.is_some_and(|ordinal| ordinal >= self.df) {
            return Err(IndexError::corrupt("a rank past the number of documents"));
        }
        Ok(ordinal)
    }

    pub fn blocks(&self) -> u32 {
        self.df.div_ceil(BLOCK as u32)
    }

    fn skip_u32(&self, block: u32, at: usize) -> Result<u32> {
        read_u32(self.skip, block as usize * SKIP_BYTES + at)
    }

    pub fn last_doc(&self, block: u32) -> Result<u32> {
        self.skip_u32(block, 0)
    }

    /// An upper bound of the term frequencies in the block: the greatest one if it is below 255, else
    /// `u32::MAX`.
    fn most_occurrences(&self, block: u32) -> u32 {
        match self.skip.get(block as usize * SKIP_BYTES + 12) {
            Some(&most) if most < u8::MAX => most.into(),
            _ => u32::MAX,
        }
    }

    /// The last document before the block.
    fn previous(&self, block: u32) -> Result<Option<u32>> {
        if block == 0 { Ok(None) } else { self.last_doc(block - 1).map(Some) }
    }

    fn block_len(&self, block: u32) -> usize {
        (self.df as usize - block as usize * BLOCK).min(BLOCK)
    }

    /// The term's places.
    pub fn places<'p>(&self, positions: &'p Stored) -> Places<'p> {
        Places::new(positions, self.positions_start, self.positions_bytes)
    }

    /// The range of the term's position bytes that belongs to the block.
    pub fn group_range(&self, block: u32) -> Result<(u32, u32)> {
        let next = block + 1;
        let end = if next < self.blocks() { self.skip_u32(next, 8)? } else { u32::MAX };
        Ok((self.skip_u32(block, 8)?, end))
    }

    /// The first block after `block` whose last document is not below `doc`. Gallops, because the next
    /// document is usually near.
    pub fn find_block(&self, block: u32, doc: u32) -> Result<u32> {
        let (mut low, mut step, blocks) = (block + 1, 1, self.blocks());
        while low + step < blocks && self.last_doc(low + step)? < doc {
            low += step;
            step *= 2;
        }
        self.find_between(low, (low + step).min(blocks), doc)
    }

    /// The first block whose last document is not below `doc`, or the last one.
    pub fn find_block_from_start(&self, doc: u32) -> Result<u32> {
        self.find_between(0, self.blocks().saturating_sub(1), doc)
    }

    /// The first block from `low` on whose last document is not below `doc`; `high` if none before it is.
    fn find_between(&self, mut low: u32, mut high: u32, doc: u32) -> Result<u32> {
        while low < high {
            let middle = (low + high) / 2;
            if self.last_doc(middle)? < doc {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    #[inline]
    fn for_each_block(&self, mut visit: impl FnMut(&[u32])) -> Result<()> {
        let mut docs = DocsReader::new(self);
        for block in 0..self.blocks() {
            docs.load(block)?;
            visit(docs.docs());
        }
        Ok(())
    }
}

impl BitsForm<'_> {
    fn word(&self, index: usize) -> u64 {
        read_u64(self.words, index * 8).unwrap_or(0)
    }

    fn to_bitmap(self) -> Bitmap {
        let (words, _) = self.words.as_chunks();
        Bitmap::from_words(self.doc_count, words.iter().map(|word| u64::from_le_bytes(*word)))
    }

    #[inline]
    fn for_each(&self, mut visit: impl FnMut(u32)) {
        for (index, word) in self.words.chunks_exact(8).enumerate() {
            let mut word = read_u64(word, 0).unwrap_or(0);
            while word != 0 {
                visit(index as u32 * 64 + word.trailing_zeros());
                word &= word - 1;
            }
        }
    }

    /// The first document that is not below `doc`.
    #[inline]
    fn next(&self, doc: u32) -> Option<u32> {
        let mut index = doc as usize / 64;
        let mut words = self.words.get(index * 8..)?.chunks_exact(8);
        let mut word = read_u64(words.next()?, 0).unwrap_or(0) & (!0 << (doc % 64));
        while word == 0 {
            index += 1;
            word = read_u64(words.next()?, 0).unwrap_or(0);
        }
        Some(index as u32 * 64 + word.trailing_zeros())
    }

    /// The ordinal of `doc`: the number of documents before it with the term; `None` if `doc` does not have
    /// it. With ascending calls that share `counted`, each call counts only a few words.
    #[inline]
    fn ordinal(&self, doc: u32, counted: &mut Counted) -> Option<u32> {
        let index = doc as usize / 64;
        let word = self.word(index);
        if word >> (doc % 64) & 1 == 0 {
            return None;
        }
        let group = doc as usize / RANK_DOCS;
        let first = group * (RANK_DOCS / 64);
        if counted.word < first || counted.word > index {
            let before = read_u32(self.ranks, group * 4).ok()?;
            *counted = Counted { word: first, before };
        }
        while counted.word < index {
            let ones = self.word(counted.word).count_ones();
            *counted =
                Counted { word: counted.word + 1, before: counted.before.saturating_add(ones) };
        }
        let within = (word & ((1u64 << (doc % 64)) - 1)).count_ones();
        Some(counted.before.saturating_add(within))
    }
}

/// The progress of counting documents in the bitmap form.
#[derive(Default)]
pub(super) struct Counted {
    /// The index of a word.
    word: usize,
    /// The number of documents before it.
    before: u32,
}

/// Decodes one block of documents and frequencies at a time.
pub(super) struct DocsReader<'a> {
    large: Large<'a>,
    block: Option<u32>,
    len: usize,
    docs: [u32; BLOCK],
    tfs: [u32; BLOCK],
    /// The start of the block's frequencies; `usize::MAX` once they are decoded.
    tfs_at: usize,
    /// In the bitmap form, the next document to visit while blocks are loaded in sequence.
    bits_next: u32,
}

const DECODED: usize = usize::MAX;

impl<'a> DocsReader<'a> {
    pub fn new(large: &Large<'a>) -> Self {
        Self {
            large: *large,
            block: None,
            len: 0,
            docs: [0; BLOCK],
            tfs: [0; BLOCK],
            tfs_at: DECODED,
            bits_next: 0,
        }
    }

    pub fn large(&self) -> &Large<'a> {
        &self.large
    }

    /// The loaded block.
    pub fn block(&self) -> Option<u32> {
        self.block
    }

    /// The number of postings in the block.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn docs(&self) -> &[u32] {
        &self.docs[..self.len]
    }

    pub fn tfs(&self) -> &[u32] {
        &self.tfs[..self.len]
    }

    fn block_bytes(&self, block: u32) -> Result<&'a [u8]> {
        let offset = self.large.skip_u32(block, 4)? as usize;
        let bytes = self.large.docs.get(offset..);
        bytes.ok_or_else(|| IndexError::corrupt("a documents offset"))
    }

    /// Decodes the block's documents; its frequencies stay packed.
    #[inline]
    pub fn load(&mut self, block: u32) -> Result<()> {
        if self.block == Some(block) {
            return Ok(());
        }
        self.len = self.large.block_len(block);
        self.tfs_at = if self.large.bits.is_some() {
            self.load_bits(block)?;
            0
        } else {
            self.load_list(block)?
        };
        self.block = Some(block);
        Ok(())
    }

    /// Goes to a block of the bitmap form without decoding its documents.
    pub fn skip_to(&mut self, block: u32) -> Result<()> {
        if self.block == Some(block) {
            return Ok(());
        }
        if block >= self.large.blocks() {
            return Err(IndexError::corrupt("a block past the last"));
        }
        self.len = self.large.block_len(block);
        self.tfs_at = 0;
        self.block = Some(block);
        Ok(())
    }

    fn load_list(&mut self, block: u32) -> Result<usize> {
        let bytes = self.block_bytes(block)?;
        let previous = self.large.previous(block)?;
        if self.len == BLOCK {
            return packing::unpack_documents(bytes, previous, &mut self.docs);
        }
        let mut reader = VarintReader::new(bytes, 0);
        let mut next = previous.map_or(0, |doc| doc.saturating_add(1));
        for doc in &mut self.docs[..self.len] {
            *doc = next.saturating_add(reader.next()?);
            next = doc.saturating_add(1);
        }
        Ok(reader.position())
    }

    /// Blocks of the bitmap form are decoded in sequence, each from the end of the last one. After a jump,
    /// decoding starts at the last document of the block before.
    fn load_bits(&mut self, block: u32) -> Result<()> {
        let Some(bits) = self.large.bits else { return Ok(()) };
        if self.block.map(|last| last + 1) != Some(block) {
            self.bits_next = self.large.previous(block)?.map_or(0, |doc| doc.saturating_add(1));
        }
        let mut index = self.bits_next as usize / 64;
        let mut word = bits.word(index) & (!0u64 << (self.bits_next % 64));
        for doc in &mut self.docs[..self.len] {
            while word == 0 {
                index += 1;
                if index * 8 >= bits.words.len() {
                    return Err(IndexError::corrupt("fewer bits than documents"));
                }
                word = bits.word(index);
            }
            *doc = index as u32 * 64 + word.trailing_zeros();
            word &= word - 1;
            self.bits_next = *doc + 1;
        }
        Ok(())
    }

    /// The frequency at `index` of the loaded block. Cheaper than decoding all of them.
    #[inline]
    pub fn tf(&mut self, index: usize) -> Result<u32> {
        match self.block {
            Some(block) if self.tfs_at != DECODED && self.len == BLOCK => {
                let bytes = self.block_bytes(block)?.get(self.tfs_at..).unwrap_or(&[]);
                packing::frequency(bytes, index)
            }
            _ => {
                self.load_tfs()?;
                Ok(self.tfs().get(index).copied().unwrap_or(0))
            }
        }
    }

    /// Decodes the frequencies of the loaded block.
    pub fn load_tfs(&mut self) -> Result<()> {
        let (Some(block), true) = (self.block, self.tfs_at != DECODED) else { return Ok(()) };
        read_tfs(self.block_bytes(block)?, self.tfs_at, &mut self.tfs[..self.len])?;
        self.tfs_at = DECODED;
        Ok(())
    }
}

fn read_tfs(bytes: &[u8], at: usize, tfs: &mut [u32]) -> Result<()> {
    if let Ok(tfs) = tfs.try_into() {
        return packing::unpack_frequencies(bytes.get(at..).unwrap_or(&[]), tfs);
    }
    let mut reader = VarintReader::new(bytes, at);
    for tf in tfs {
        *tf = reader.next()?.saturating_add(1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::{
        Slice,
        text::postings::{PostingsCursor, PostingsWriter},
    };

    /// The positions of the term in each document.
    type Model = BTreeMap<u32, Vec<u32>>;

    fn model(doc_count: u32, one_in: u32, seed: u64) -> Model {
        let mut state = seed;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u32
        };
        let mut model = Model::new();
        for doc in 0..doc_count {
            if random() % one_in == 0 {
                let mut position = random() % 300;
                let places = 1 + if random() % 4 == 0 { random() % 40 } else { 0 };
                let positions = (0..places).map(|_| {
                    position += 1 + random() % 50;
                    position
                });
                model.insert(doc, positions.collect());
            }
        }
        model
    }

    fn decoded(model: &Model) -> Decoded {
        let mut decoded = Decoded::default();
        for (&doc, positions) in model {
            decoded.docs.push(doc);
            decoded.tfs.push(positions.len() as u32);
            let before = [0].into_iter().chain(positions.iter().copied());
            decoded.places.extend(positions.iter().zip(before).map(|(at, before)| at - before));
        }
        decoded
    }

    fn write(model: &Model, doc_count: u32) -> (Vec<u8>, Vec<u8>) {
        let mut writer = PostingsWriter::new(doc_count);
        writer.records = vec![7; 3];
        writer.positions = vec![9; 5];
        writer.write(&decoded(model), &vec![10; doc_count as usize]).unwrap();
        (writer.records, writer.positions)
    }

    fn in_memory(positions: Vec<u8>) -> Stored {
        Stored::Memory(Slice::new(positions))
    }

    fn in_a_file(positions: &[u8]) -> Stored {
        use std::io::Write;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(positions).unwrap();
        let (file, range) = (std::sync::Arc::new(file), 0..positions.len() as u64);
        let stored = Stored::File { file, range, pages: None };
        if positions.len().is_multiple_of(2) { stored.paged() } else { stored }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn all_read_methods_give_equal_values(doc_count in 1u32..3000, one_in in 1u32..40, seed: u64) {
            let model = model(doc_count, one_in, seed);
            prop_assume!(!model.is_empty());
            let (bytes, positions) = write(&model, doc_count);
            let positions = in_memory(positions);
            let postings = Postings::open(&bytes, 3, doc_count).unwrap();
            prop_assert_eq!(postings.df() as usize, model.len());
            let mut all = Decoded::default();
            postings.decode(&positions, &mut all).unwrap();
            let expected = decoded(&model);
            prop_assert_eq!(&all.docs, &expected.docs);
            prop_assert_eq!(&all.tfs, &expected.tfs);
            prop_assert_eq!(&all.places, &expected.places);
            let mut docs = Vec::new();
            postings.for_each_doc(|doc| docs.push(doc)).unwrap();
            prop_assert_eq!(&docs, &expected.docs);
            let mut tfs = Vec::new();
            postings.for_each(|_, tf| tfs.push(tf)).unwrap();
            prop_assert_eq!(&tfs, &expected.tfs);
            if let Some(bits) = postings.to_bitmap() {
                prop_assert!(bits.iter().eq(docs.iter().copied()));
            }
        }

        #[test]
        fn cursor_finds_existing_keys(
            doc_count in 1u32..6000, one_in in 1u32..40, step in 1u32..900, seed: u64, file: bool,
        ) {
            let model = model(doc_count, one_in, seed);
            prop_assume!(!model.is_empty());
            let (bytes, positions) = write(&model, doc_count);
            let stored = if file { in_a_file(&positions) } else { in_memory(positions) };
            let postings = Postings::open(&bytes, 3, doc_count).unwrap();
            let mut cursor = PostingsCursor::new(&postings, &stored).unwrap();
            let mut doc = seed as u32 % step;
            while doc < doc_count {
                let reached = cursor.advance(doc).unwrap();
                prop_assert_eq!(reached, model.range(doc..).next().map(|(&doc, _)| doc));
                let Some(reached) = reached else { break };
                if seed >> (doc % 60) & 3 != 0 {
                    let found: Vec<u32> = super::positions(cursor.places().unwrap()).collect();
                    prop_assert_eq!(Some(&found), model.get(&reached));
                }
                doc += 1 + (seed >> (doc % 50)) as u32 % step;
            }
        }

        #[test]
        fn documents_are_found_in_any_order(
            doc_count in 1u32..6000, one_in in 1u32..40, seed: u64, file: bool,
        ) {
            let model = model(doc_count, one_in, seed);
            prop_assume!(!model.is_empty());
            let (bytes, positions) = write(&model, doc_count);
            let stored = if file { in_a_file(&positions) } else { in_memory(positions) };
            let postings = Postings::open(&bytes, 3, doc_count).unwrap();
            let mut cursor = PostingsCursor::new(&postings, &stored).unwrap();
            let mut state = seed | 1;
            for step in 0..400u32 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let near = step * 7 % doc_count;
                let doc = if state >> 63 == 0 { near } else { (state >> 33) as u32 % doc_count };
                let next = model.range(doc..).next().map(|it| *it.0);
                prop_assert_eq!(cursor.seek(doc).unwrap(), next == Some(doc), "{}", doc);
                prop_assert_eq!(cursor.advance(doc).unwrap(), next);
                let Some(positions) = model.get(&doc) else { continue };
                prop_assert_eq!(cursor.frequency().unwrap() as usize, positions.len());
                if state >> 62 & 1 == 0 {
                    let found: Vec<u32> = super::positions(cursor.places().unwrap()).collect();
                    prop_assert_eq!(&found, positions);
                }
            }
        }

        #[test]
        fn damaged_bytes_never_panic(
            seed: u64, at: usize, value: u8, cut: usize, one_in in 3u32..30,
        ) {
            let (mut bytes, mut positions) = write(&model(3000, one_in, seed), 3000);
            for damaged in [&mut bytes, &mut positions] {
                let index = at % damaged.len();
                damaged[index] = value;
                damaged.truncate(damaged.len() - cut % 64 % damaged.len());
            }
            let positions = in_memory(positions);
            if let Ok(postings) = Postings::open(&bytes, 3, 3000) {
                let _ = postings.decode(&positions, &mut Decoded::default());
                let _ = postings.for_each_doc(|_| ());
                if let Ok(mut cursor) = PostingsCursor::new(&postings, &positions) {
                    for doc in 0..3000 {
                        if matches!(cursor.advance(doc), Ok(Some(_))) {
                            let _ = cursor.places();
                        }
                    }
                }
            }
        }
    }
}
