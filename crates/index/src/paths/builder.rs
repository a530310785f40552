//! Collects the values of a path from documents.

use super::{PathIndex, PathSpec, writer::PathWriter};
use crate::{IndexError, Result, SectionWriter};

/// The values that paths of one document lead to. Kept between documents for its memory.
#[derive(Clone, Debug, Default)]
pub struct PathKeys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl PathKeys {
    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds a value, which `write` appends.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// The values.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let value = self.bytes.get(start..end).unwrap_or_default();
            start = end;
            value
        })
    }
}

/// Collects the values of a path of a segment's documents, in order. Memory: the values, and 16 bytes each.
#[derive(Default)]
pub struct PathBuilder {
    bytes: Vec<u8>,
    /// Where each value ends, and its document.
    ends: Vec<(usize, u32)>,
    doc_count: u32,
}

impl PathBuilder {
    /// Adds the next document.
    pub fn add(&mut self, values: &PathKeys) {
        for value in values.iter() {
            self.bytes.extend_from_slice(value);
            self.ends.push((self.bytes.len(), self.doc_count));
        }
        self.doc_count += 1;
    }

    /// The values as a segment of these documents has them, outside of a segment.
    ///
    /// # Errors
    /// [`IndexError::Full`] if there are more than the format allows.
    pub fn finish_alone(self, spec: &PathSpec) -> Result<PathIndex> {
        let doc_count = self.doc_count;
        let (head, entries) = self.written()?.finish(&spec.label);
        PathIndex::read(&crate::Slice::new(head), crate::Slice::new(entries), doc_count)
    }

    /// Writes the sections of the path.
    pub(crate) fn finish(self, spec: &PathSpec, out: &mut SectionWriter) -> Result<()> {
        self.written()?.add_to(spec, out);
        Ok(())
    }

    fn written(self) -> Result<PathWriter> {
        let count = u32::try_from(self.ends.len())
            .map_err(|_| IndexError::Full("2^32 values of a path in one batch"))?;
        let entry = |at: u32| {
            let (end, doc) = self.ends.get(at as usize).copied().unwrap_or_default();
            let before = at.checked_sub(1).and_then(|before| self.ends.get(before as usize));
            let start = before.map_or(0, |(end, _)| *end);
            (self.bytes.get(start..end).unwrap_or_default(), doc)
        };
        let mut order: Vec<u32> = (0..count).collect();
        order.sort_unstable_by(|&a, &b| entry(a).cmp(&entry(b)));
        let mut writer = PathWriter::new(self.doc_count);
        for at in order {
            let (value, doc) = entry(at);
            writer.push(value, doc)?;
        }
        Ok(writer)
    }
}
