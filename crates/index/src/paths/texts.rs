//! Text indexes of the texts at paths. Each text of a document is separate: a match never spans two of them.
//!
//! ```text
//! section PTXT, id of the path: label              which path it is, beside the sections of the text index of that id
//! ```

use super::{PathSpec, damaged};
use crate::{
    Result, SectionTag, SectionWriter, Sections,
    text::{self, TextBuilder, TextIndex, TextSource},
};

pub(crate) const LABEL: SectionTag = SectionTag(*b"PTXT");

/// The text index of the texts at paths in a segment.
pub struct PathTexts {
    label: Vec<u8>,
    texts: TextIndex,
}

impl PathTexts {
    /// Opens the index of this number; `None` if the segment was written before it existed.
    pub(super) fn open(sections: &Sections, id: u32, doc_count: u32) -> Result<Option<Self>> {
        let Some(label) = sections.get(LABEL, id) else { return Ok(None) };
        let texts = TextIndex::open(sections, id, doc_count)?.ok_or_else(damaged)?;
        Ok(Some(Self { label: label.to_vec(), texts }))
    }

    /// Whether they are of these paths.
    pub(super) fn is_of(&self, spec: &PathSpec) -> bool {
        self.label == spec.label
    }

    /// The text index.
    pub fn index(&self) -> &TextIndex {
        &self.texts
    }
}

/// Merges text indexes. Each input has the new number of each of its documents, or [`text::GONE`].
pub(super) fn merge(
    sources: &[(&PathTexts, &[u32])],
    doc_count: u32,
    spec: &PathSpec,
    out: &mut SectionWriter,
) -> Result<()> {
    let sources = sources.iter().map(|&(path, map)| TextSource { text: Some(&path.texts), map });
    let sources: Vec<TextSource<'_>> = sources.collect();
    out.add(LABEL, spec.id, &spec.label);
    text::merge(&sources, doc_count, spec.id, out)
}

/// Writes the sections of the collected texts.
pub(super) fn finish(texts: TextBuilder, spec: &PathSpec, out: &mut SectionWriter) -> Result<()> {
    out.add(LABEL, spec.id, &spec.label);
    texts.finish(spec.id, out)
}
