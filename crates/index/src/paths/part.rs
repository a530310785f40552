//! The index of a path in a segment: its ordered values, or its texts.

use super::{HEAD, PathIndex, PathSpec, PathTexts, merge, texts};
use crate::{Result, SectionWriter, Sections, text::Normalization};

/// What is indexed at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// Values in order, in an order-preserving encoding.
    Values,
    /// Texts (UTF-8), searched by substring under this normalisation.
    Texts(Normalization),
}

/// The index of a path in a segment.
pub enum PathPart {
    /// The ordered values.
    Values(PathIndex),
    /// The texts.
    Texts(Box<PathTexts>),
}

impl PathPart {
    /// Opens the indexes of all paths of a segment, each with its number.
    pub(crate) fn open_all(sections: &Sections, doc_count: u32) -> Result<Vec<(u32, Self)>> {
        let mut parts = Vec::new();
        for id in sections.ids(HEAD) {
            let values = PathIndex::open(sections, id, doc_count)?;
            parts.extend(values.map(|values| (id, Self::Values(values))));
        }
        for id in sections.ids(texts::LABEL) {
            let texts = PathTexts::open(sections, id, doc_count)?;
            parts.extend(texts.map(|texts| (id, Self::Texts(Box::new(texts)))));
        }
        Ok(parts)
    }

    /// Whether it is the index of this path.
    pub(crate) fn is_of(&self, spec: &PathSpec) -> bool {
        match self {
            Self::Values(values) => spec.kind == PathKind::Values && values.is_of(spec),
            Self::Texts(texts) => spec.kind != PathKind::Values && texts.is_of(spec),
        }
    }

    /// The number of documents of the segment.
    pub(super) fn doc_count(&self) -> u32 {
        match self {
            Self::Values(values) => values.doc_count,
            Self::Texts(texts) => texts.index().doc_count(),
        }
    }

    /// Writes the merged sections of a path for `doc_count` documents. Each input has the new number of each
    /// of its documents, ascending, or [`crate::text::GONE`].
    pub(crate) fn merge(
        sources: &[(&Self, &[u32])],
        doc_count: u32,
        spec: &PathSpec,
        out: &mut SectionWriter,
    ) -> Result<()> {
        let (mut values, mut texts) = (Vec::new(), Vec::new());
        for (part, map) in sources {
            match part {
                Self::Values(part) => values.push((part, *map)),
                Self::Texts(part) => texts.push((&**part, *map)),
            }
        }
        match spec.kind {
            PathKind::Values => merge::merge(&values, doc_count, spec, out),
            PathKind::Texts(_) => texts::merge(&texts, doc_count, spec, out),
        }
    }
}
