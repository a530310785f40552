//! The texts that paths lead to, in a text index of their own: the ordinary one, of which each text of a document is
//! one of its texts, so that nothing is found across two of them.
//!
//! ```text
//! section PTXT, id of the path: label              which path it is, beside the sections of the text index of that id
//! ```

use super::{PathSpec, damaged};
use crate::{
    Result, SectionTag, SectionWriter, Sections,
    text::{self, Normalization, TextBuilder, TextIndex, TextSource},
};

pub(crate) const LABEL: SectionTag = SectionTag(*b"PTXT");
/// Bytes of text that are indexed at once: bounds the memory of it.
const RUN_BYTES: usize = 32 << 20;

/// The texts that paths lead to in all documents of a segment.
pub struct PathTexts {
    label: Vec<u8>,
    texts: TextIndex,
}

impl PathTexts {
    /// Those of this number, or `None` if the segment was written before they were indexed.
    pub(super) fn open(sections: &Sections, id: u32, doc_count: u32) -> Result<Option<Self>> {
        let Some(label) = sections.get(LABEL, id) else { return Ok(None) };
        let texts = TextIndex::open(sections, id, doc_count)?.ok_or_else(damaged)?;
        Ok(Some(Self { label: label.to_vec(), texts }))
    }

    /// Whether they are of these paths.
    pub(super) fn is_of(&self, spec: &PathSpec) -> bool {
        self.label == spec.label
    }

    /// What finds them.
    pub fn index(&self) -> &TextIndex {
        &self.texts
    }
}

/// Merges the texts of inputs: each is its texts, and the new number of each of its documents, or [`text::GONE`].
pub(super) fn merge(
    sources: &[(&PathTexts, &[u32])],
    doc_count: u32,
    spec: &PathSpec,
    out: &mut SectionWriter,
) -> Result<()> {
    let sources = sources.iter().map(|&(path, map)| TextSource { text: Some(&path.texts), map });
    let sources: Vec<TextSource<'_>> = sources.collect();
    write(&sources, doc_count, spec, out)
}

fn write(
    sources: &[TextSource<'_>],
    doc_count: u32,
    spec: &PathSpec,
    out: &mut SectionWriter,
) -> Result<()> {
    out.add(LABEL, spec.id, &spec.label);
    text::merge(sources, doc_count, spec.id, out)
}

/// Collects the texts that paths lead to in a segment's documents, in order. Memory: some times [`RUN_BYTES`], and the
/// indexes of what came before.
pub(super) struct TextsBuilder {
    normalization: Normalization,
    /// Documents that follow each other, each run with its first.
    done: Vec<(u32, TextIndex)>,
    current: TextBuilder,
    current_bytes: usize,
    /// The first document of those that are collected.
    first: u32,
    doc_count: u32,
    run_bytes: usize,
}

impl TextsBuilder {
    /// No documents yet.
    pub(super) fn new(normalization: Normalization) -> Self {
        Self {
            normalization,
            done: Vec::new(),
            current: TextBuilder::new(normalization),
            current_bytes: 0,
            first: 0,
            doc_count: 0,
            run_bytes: RUN_BYTES,
        }
    }

    /// The same with runs of another size.
    #[cfg(test)]
    pub(super) fn with_runs(normalization: Normalization, run_bytes: usize) -> Self {
        Self { run_bytes, ..Self::new(normalization) }
    }

    /// How many documents there are.
    pub(super) fn doc_count(&self) -> u32 {
        self.doc_count
    }

    /// Adds the next document by its texts.
    pub(super) fn add(&mut self, texts: &[&str]) -> Result<()> {
        if self.current_bytes >= self.run_bytes {
            self.end_run()?;
        }
        self.current.add(texts)?;
        self.current_bytes += texts.iter().map(|text| text.len()).sum::<usize>();
        self.doc_count += 1;
        Ok(())
    }

    fn end_run(&mut self) -> Result<()> {
        let full = std::mem::replace(&mut self.current, TextBuilder::new(self.normalization));
        let mut out = SectionWriter::new();
        full.finish(0, &mut out)?;
        let sections = Sections::open(out.finish())?;
        let index = TextIndex::open(&sections, 0, self.doc_count - self.first)?;
        self.done.push((self.first, index.ok_or_else(damaged)?));
        (self.first, self.current_bytes) = (self.doc_count, 0);
        Ok(())
    }

    /// Writes the sections of the texts.
    pub(super) fn finish(mut self, spec: &PathSpec, out: &mut SectionWriter) -> Result<()> {
        if self.done.is_empty() {
            out.add(LABEL, spec.id, &spec.label);
            return self.current.finish(spec.id, out);
        }
        self.end_run()?;
        let ends = self.done.iter().skip(1).map(|(first, _)| *first).chain([self.doc_count]);
        let maps = self.done.iter().zip(ends).map(|((first, _), end)| (*first..end).collect());
        let maps: Vec<Vec<u32>> = maps.collect();
        let runs = self.done.iter().zip(&maps);
        let sources = runs.map(|((_, index), map)| TextSource { text: Some(index), map });
        write(&sources.collect::<Vec<_>>(), self.doc_count, spec, out)
    }
}
