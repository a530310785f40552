//! The primary keys of a segment: finds the document of a key and the key of a document.
//!
//! ```text
//! section KEYS, id 0:
//! keys   := layout:u8 count:u32 body
//! layout := 0 (integers) | 1 (front-coded)
//! body   := numbers | front_coded
//! ```
//! If all keys of a segment have eight bytes, they are stored as big-endian numbers (`numbers`, as in
//! columns). Otherwise they are front-coded. Section KBLM is the bloom filter.

mod bloom;
mod front_coded;
mod integers;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use self::{
    bloom::Bloom,
    front_coded::{FrontCoded, FrontCodedWriter},
    integers::Integers,
};
use crate::{
    IndexError, Result, SectionTag, SectionWriter, Sections,
    column::{MAX_DOCUMENTS, cursor::SectionCursor, numbers::write_numbers},
};

const KEYS: SectionTag = SectionTag(*b"KEYS");
const BLOOM: SectionTag = SectionTag(*b"KBLM");
const INTEGERS: u8 = 0;
const FRONT_CODED: u8 = 1;
/// The longest key.
const MAX_KEY_BYTES: usize = u16::MAX as usize;

/// Collects the keys of a segment, strictly ascending by bytes.
pub struct KeysWriter {
    keys: Collected,
    hashes: Vec<u64>,
}

enum Collected {
    /// All keys so far have eight bytes.
    Integers(Vec<u64>),
    FrontCoded(FrontCodedWriter),
}

impl Default for KeysWriter {
    fn default() -> Self {
        Self { keys: Collected::Integers(Vec::new()), hashes: Vec::new() }
    }
}

impl KeysWriter {
    /// Appends the next key. A rejected key leaves the writer unchanged.
    ///
    /// # Errors
    /// [`IndexError::Invalid`] if the key is longer than 65,535 bytes or does not come after the
    /// last one. [`IndexError::Full`] if every document number has a key already.
    pub fn push(&mut self, key: &[u8]) -> Result<()> {
        if self.hashes.len() >= MAX_DOCUMENTS as usize {
            return Err(IndexError::Full("every document number has a key"));
        }
        if key.len() > MAX_KEY_BYTES {
            return Err(IndexError::Invalid("a key is longer than 65,535 bytes".into()));
        }
        if let (Collected::Integers(numbers), None) = (&self.keys, key_number(key)) {
            self.keys = Collected::FrontCoded(front_code(numbers));
        }
        let is_ascending = match &mut self.keys {
            Collected::Integers(numbers) => {
                key_number(key).is_some_and(|number| push_ascending(numbers, number))
            }
            Collected::FrontCoded(writer) => writer.push(key),
        };
        if !is_ascending {
            return Err(IndexError::Invalid("keys do not ascend".into()));
        }
        self.hashes.push(bloom::hash(key));
        Ok(())
    }

    /// Writes the sections of this part.
    ///
    /// # Errors
    /// It never fails at present: all keys that were collected can be written.
    pub fn finish(self, out: &mut SectionWriter) -> Result<()> {
        let layout = match &self.keys {
            Collected::Integers(_) => INTEGERS,
            Collected::FrontCoded(_) => FRONT_CODED,
        };
        let mut section = vec![layout];
        section.extend_from_slice(&(self.hashes.len() as u32).to_le_bytes());
        match self.keys {
            Collected::Integers(numbers) => write_numbers(&numbers, &mut section),
            Collected::FrontCoded(writer) => writer.finish(&mut section),
        }
        out.add(KEYS, 0, &section);
        out.add(BLOOM, 0, &bloom::build(&self.hashes));
        Ok(())
    }
}

fn front_code(numbers: &[u64]) -> FrontCodedWriter {
    let mut writer = FrontCodedWriter::default();
    for number in numbers {
        writer.push(&number.to_be_bytes());
    }
    writer
}

/// The number whose big-endian bytes are the key; `None` if the key does not have eight bytes.
#[inline]
fn key_number(key: &[u8]) -> Option<u64> {
    key.try_into().ok().map(u64::from_be_bytes)
}

fn push_ascending(numbers: &mut Vec<u64>, number: u64) -> bool {
    let is_ascending = numbers.last().is_none_or(|last| *last < number);
    if is_ascending {
        numbers.push(number);
    }
    is_ascending
}

/// The keys of a segment. Cloning copies no keys; reading takes no locks.
#[derive(Clone)]
pub struct Keys {
    layout: Layout,
    bloom: Bloom,
    len: u32,
}

/// Counts of look-ups in bloom filters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BloomCounts {
    /// Look-ups in the filter.
    pub checks: u64,
    /// Look-ups that ruled the key out, and so saved a search among the keys.
    pub saves: u64,
}

#[derive(Clone)]
enum Layout {
    Integers(Integers),
    FrontCoded(FrontCoded),
}

impl Keys {
    /// Opens the keys of a segment.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if the keys or their bloom filter are missing or are not what the
    /// writer wrote.
    pub fn open(sections: &Sections) -> Result<Self> {
        let mut cursor = SectionCursor::new(sections.require(KEYS, 0)?);
        let (layout, len) = (cursor.u8()?, cursor.u32()?);
        if len > MAX_DOCUMENTS {
            return Err(IndexError::corrupt("number of keys"));
        }
        let layout = match layout {
            INTEGERS => Layout::Integers(Integers::read(&mut cursor, len)?),
            FRONT_CODED => Layout::FrontCoded(FrontCoded::read(&mut cursor, len)?),
            _ => return Err(IndexError::corrupt("layout of the keys")),
        };
        cursor.finish()?;
        let bloom = Bloom::open(sections.require(BLOOM, 0)?.clone())?;
        Ok(Self { layout, bloom, len })
    }

    /// The number of documents.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends the key of a document to `out`; appends nothing past the end.
    pub fn read(&self, doc: u32, out: &mut Vec<u8>) {
        match &self.layout {
            _ if doc >= self.len => {}
            Layout::Integers(integers) => out.extend_from_slice(&integers.get(doc).to_be_bytes()),
            Layout::FrontCoded(keys) => keys.get(doc, out),
        }
    }

    /// The document that has the key. Cost: a look-up in the bloom filter; if that passes, an interpolation
    /// search.
    #[inline]
    pub fn find(&self, key: &[u8]) -> Option<u32> {
        self.find_counted(key, &mut BloomCounts::default())
    }

    /// As [`Keys::find`]; adds the look-ups in the bloom filter to `counts`.
    pub fn find_counted(&self, key: &[u8], counts: &mut BloomCounts) -> Option<u32> {
        match &self.layout {
            Layout::Integers(integers) => {
                let number = key_number(key).filter(|&number| integers.spans(number))?;
                self.may_contain(key, counts).then(|| integers.find(number))?
            }
            Layout::FrontCoded(keys) => self.may_contain(key, counts).then(|| keys.find(key))?,
        }
    }

    #[inline]
    fn may_contain(&self, key: &[u8], counts: &mut BloomCounts) -> bool {
        let may = self.bloom.may_contain(bloom::hash(key));
        counts.checks += 1;
        counts.saves += u64::from(!may);
        may
    }

    /// The first document whose key is not below `key` (`len()` if none).
    pub fn lower_bound(&self, key: &[u8]) -> u32 {
        match &self.layout {
            Layout::Integers(integers) => integers.lower_bound(key),
            Layout::FrontCoded(keys) => keys.lower_bound(key),
        }
    }

    /// Compares the keys of two documents of two segments. Integer keys are not copied. A document past the
    /// end has the empty key.
    pub fn compare(&self, doc: u32, other: &Keys, other_doc: u32) -> Ordering {
        if let (Layout::Integers(mine), Layout::Integers(theirs)) = (&self.layout, &other.layout)
            && doc < self.len
            && other_doc < other.len
        {
            return mine.get(doc).cmp(&theirs.get(other_doc));
        }
        let (mut mine, mut theirs) = (Vec::new(), Vec::new());
        self.read(doc, &mut mine);
        other.read(other_doc, &mut theirs);
        mine.cmp(&theirs)
    }
}
