//! Records of terms in fewer than 128 documents: one run of bits.
//!
//! ```text
//! small  := 1 entry places                                     df = 1
//!         | 0 df:7 entry{df} places                            df < 16
//!         | 0 df:7 start:32 gamma(bytes) entry{df}             places in TPOS
//! entry  := (tf = 1):1 rice(gap) [gamma(tf - 1) if tf > 1]     gap: document - previous - 1, the
//!                                                              first: document
//! places := first_k:5 [gap_k:5 if any tf > 1] (rice(first) rice(gap){tf - 1}){df}
//! ```
//! The codes are those of `bits`, padded to whole bytes. The parameter of the gaps is derived from df and the
//! number of documents.

use std::borrow::Cow;

use super::{
    Decoded,
    bits::{BitReader, BitWriter, best_rice},
};
use crate::{IndexError, Result, bytes::Stored};

/// From this many documents on, the positions are in TPOS.
const PLACES_APART: u32 = 16;

/// Appends the record of a term. If the term is in many documents, its places go to `positions`
/// instead.
pub(super) fn write(
    term: &Decoded,
    doc_count: u32,
    records: &mut Vec<u8>,
    positions: &mut Vec<u8>,
) -> Result<()> {
    let df = term.docs.len() as u32;
    let start = positions.len();
    let mut out = BitWriter::new(records);
    if df == 1 {
        out.push(1, 1);
    } else {
        out.push(df << 1, 8);
    }
    if df >= PLACES_APART {
        let mut places = BitWriter::new(positions);
        write_places(term, &mut places);
        places.finish();
        let start = u32::try_from(start).map_err(|_| IndexError::Full("4 GiB of positions"))?;
        out.push(start, 32);
        out.gamma(positions.len() as u32 - start);
    }
    write_entries(term, gap_parameter(df, doc_count), &mut out);
    if df < PLACES_APART {
        write_places(term, &mut out);
    }
    out.finish();
    Ok(())
}

fn write_entries(term: &Decoded, k: u32, out: &mut BitWriter<'_>) {
    let mut next = 0;
    for (&doc, &tf) in term.docs.iter().zip(&term.tfs) {
        out.push(u32::from(tf == 1), 1);
        out.rice(doc - next, k);
        if tf > 1 {
            out.gamma(tf - 1);
        }
        next = doc + 1;
    }
}

fn write_places(term: &Decoded, out: &mut BitWriter<'_>) {
    if term.places.len() == term.docs.len() {
        let first_k = best_rice(term.places.iter().copied());
        out.push(first_k, 5);
        return term.places.iter().for_each(|&place| out.rice(place, first_k));
    }
    let starts = term.tfs.iter().scan(0, |next, &tf| {
        let start = *next;
        *next += tf as usize;
        Some((start, tf as usize))
    });
    let firsts = starts.clone().map(|(start, _)| term.places[start]);
    let gaps = starts.clone().flat_map(|(start, tf)| &term.places[start + 1..start + tf]);
    let (first_k, gap_k) = (best_rice(firsts), best_rice(gaps.copied()));
    out.push(first_k, 5);
    out.push(gap_k, 5);
    for (start, tf) in starts {
        out.rice(term.places[start], first_k);
        term.places[start + 1..start + tf].iter().for_each(|&gap| out.rice(gap, gap_k));
    }
}

/// The Rice parameter for gaps of `df` documents that are spread evenly over `doc_count`.
fn gap_parameter(df: u32, doc_count: u32) -> u32 {
    // The logarithm of the mean gap times about ln 2, rounded down, without a division.
    let (documents, gaps) = (doc_count - doc_count / 4, df + 1);
    let k = documents.max(1).ilog2().saturating_sub(gaps.ilog2());
    if documents >> k < gaps { k.saturating_sub(1) } else { k }
}

/// A small record.
#[derive(Clone, Copy)]
pub(super) struct Small<'a> {
    df: u32,
    gap_parameter: u32,
    entries: BitReader<'a>,
    /// The offset and size of the positions in TPOS, if they are there.
    apart: Option<(u32, u32)>,
}

impl<'a> Small<'a> {
    /// Reads the head of the record that `section` begins with.
    #[inline]
    pub fn open(section: &'a [u8], doc_count: u32) -> Result<Self> {
        let (df, at) = match section.first() {
            Some(&head) if head & 1 == 0 => (u32::from(head >> 1), 8),
            _ => (1, 1),
        };
        let mut entries = BitReader::new(section, at);
        let apart = match df {
            PLACES_APART.. => Some((entries.take(32), entries.gamma()?)),
            _ => None,
        };
        Ok(Self { df, gap_parameter: gap_parameter(df, doc_count), entries, apart })
    }

    /// The number of documents that contain the term.
    #[inline]
    pub fn df(&self) -> u32 {
        self.df
    }

    /// Visits each document with its number of occurrences, ascending. Returns the reader at the
    /// end of the entries.
    #[inline]
    pub fn for_each(&self, mut visit: impl FnMut(u32, u32)) -> Result<BitReader<'a>> {
        let mut reader = self.entries;
        let mut next = 0u32;
        for _ in 0..self.df {
            let (single, gap) = reader.flag_and_rice(self.gap_parameter)?;
            let tf = if single { 1 } else { reader.gamma()?.saturating_add(1) };
            let doc = next.saturating_add(gap);
            visit(doc, tf);
            next = doc.saturating_add(1);
        }
        Ok(reader)
    }

    /// Appends the whole list to `out`.
    pub fn decode(&self, positions: &Stored, out: &mut Decoded) -> Result<()> {
        let first = out.tfs.len();
        let end = self.for_each(|doc, tf| {
            out.docs.push(doc);
            out.tfs.push(tf);
        })?;
        let tfs = &out.tfs[first..];
        let mut places = SmallPlaces::open(self, end, positions, tfs.iter().any(|&tf| tf > 1))?;
        for &tf in tfs {
            places.read(tf, |place| out.places.push(place))?;
        }
        Ok(())
    }
}

/// The places of a small record, read in order.
pub(super) struct SmallPlaces<'a> {
    bytes: Cow<'a, [u8]>,
    /// The next bit.
    at: usize,
    first_k: u32,
    gap_k: u32,
}

impl<'a> SmallPlaces<'a> {
    /// `end` is where the entries end. `repeated` says whether some document contains the term more
    /// than once.
    pub fn open(
        small: &Small<'a>,
        end: BitReader<'a>,
        positions: &'a Stored,
        repeated: bool,
    ) -> Result<Self> {
        let (bytes, at) = match small.apart {
            Some((start, bytes)) => (positions.read(u64::from(start), bytes as usize)?, 0),
            None => (Cow::Borrowed(end.bytes()), end.position()),
        };
        let mut reader = BitReader::new(&bytes, at);
        let first_k = reader.take(5);
        let gap_k = if repeated { reader.take(5) } else { 0 };
        let at = reader.position();
        Ok(Self { bytes, at, first_k, gap_k })
    }

    /// Visits the places of the next document, which contains the term `tf` times.
    #[inline]
    pub fn read(&mut self, tf: u32, mut visit: impl FnMut(u32)) -> Result<()> {
        let mut reader = BitReader::new(&self.bytes, self.at);
        visit(reader.rice(self.first_k)?);
        for _ in 1..tf {
            visit(reader.rice(self.gap_k)?);
        }
        self.at = reader.position();
        Ok(())
    }
}
