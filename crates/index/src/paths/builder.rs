//! Collects the values of a path from documents.

use super::{PathSpec, first_bytes, writer::PathWriter};
use crate::{IndexError, Result, SectionWriter};

/// The values that each path leads to in one document, path after path. Kept between documents for its memory.
#[derive(Clone, Debug, Default)]
pub struct PathKeys {
    bytes: Vec<u8>,
    /// Where each value ends.
    ends: Vec<usize>,
    /// How many values there are up to the end of each path.
    counts: Vec<usize>,
}

impl PathKeys {
    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.counts.clear();
    }

    /// Adds a value of the path, which `write` appends.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// The values that follow are those of the next path.
    pub fn end_path(&mut self) {
        self.counts.push(self.ends.len());
    }

    /// Bytes of memory that the values take.
    pub fn bytes(&self) -> usize {
        self.bytes.len() + size_of::<usize>() * self.ends.len()
    }

    /// How many paths there are.
    pub fn paths(&self) -> usize {
        self.counts.len()
    }

    /// The values of a path, by its place.
    pub fn of(&self, path: usize) -> impl Iterator<Item = &[u8]> {
        let end_of = |counts: &[usize], at: Option<usize>| {
            at.and_then(|at| counts.get(at)).copied().unwrap_or_default()
        };
        let (first, last) =
            (end_of(&self.counts, path.checked_sub(1)), end_of(&self.counts, Some(path)));
        let mut start = end_of(&self.ends, first.checked_sub(1));
        self.ends.get(first..last).unwrap_or_default().iter().map(move |&end| {
            let value = self.bytes.get(start..end).unwrap_or_default();
            start = end;
            value
        })
    }
}

/// Collects the values of a path of a segment's documents, in order. Memory: the values, and 16 bytes each.
#[derive(Default)]
pub(super) struct PathBuilder {
    bytes: Vec<u8>,
    /// Where each value ends, and its document.
    ends: Vec<(usize, u32)>,
    doc_count: u32,
}

impl PathBuilder {
    /// Adds the next document by its values.
    pub fn add<'v>(&mut self, values: impl Iterator<Item = &'v [u8]>) {
        for value in values {
            self.bytes.extend_from_slice(value);
            self.ends.push((self.bytes.len(), self.doc_count));
        }
        self.doc_count += 1;
    }

    /// Writes the sections of the path.
    pub fn finish(self, spec: &PathSpec, out: &mut SectionWriter) -> Result<()> {
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
        let mut order: Vec<(u64, u32)> =
            (0..count).map(|at| (first_bytes(entry(at).0), at)).collect();
        order.sort_unstable_by(|(one, a), (other, b)| {
            one.cmp(other).then_with(|| entry(*a).cmp(&entry(*b)))
        });
        let mut writer = PathWriter::with_room(self.doc_count, self.bytes.len());
        for (_, at) in order {
            let (value, doc) = entry(at);
            writer.push(value, doc)?;
        }
        Ok(writer)
    }
}
