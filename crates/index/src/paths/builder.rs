//! Collects the values of a path from documents.

use super::{PathSpec, first_bytes, writer::PathWriter};
use crate::{IndexError, Result, SectionWriter};

/// The number of values of a path in a usual document, and the bytes of each.
const USUAL_VALUES: usize = 2;
const USUAL_VALUE_BYTES: usize = 12;

/// The values at each path in one document, path after path. Reused between documents, to keep its buffers.
#[derive(Clone, Debug, Default)]
pub struct PathKeys {
    bytes: Vec<u8>,
    /// The end offset of each value.
    ends: Vec<usize>,
    /// For each path, the number of values of it and all paths before.
    counts: Vec<usize>,
}

impl PathKeys {
    /// Removes all values and paths.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.counts.clear();
    }

    /// Reserves capacity for a usual document with so many paths.
    pub fn reserve(&mut self, paths: usize) {
        self.bytes.reserve(USUAL_VALUE_BYTES * USUAL_VALUES * paths);
        self.ends.reserve(USUAL_VALUES * paths);
        self.counts.reserve(paths);
    }

    /// Adds a value of the current path; `write` appends its bytes.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Ends the current path: values added later are those of the next one.
    pub fn end_path(&mut self) {
        self.counts.push(self.ends.len());
    }

    /// The size of the values in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.len() + size_of::<usize>() * self.ends.len()
    }

    /// The number of paths.
    pub fn paths(&self) -> usize {
        self.counts.len()
    }

    /// The values of a path, by its index.
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

/// Collects the values of one path of a segment's documents, in document order. Memory: the values and 16
/// bytes for each.
#[derive(Default)]
pub(super) struct PathBuilder {
    bytes: Vec<u8>,
    /// The end offset of each value, and its document.
    ends: Vec<(usize, u32)>,
    doc_count: u32,
}

impl PathBuilder {
    /// Adds the values of the next document.
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
