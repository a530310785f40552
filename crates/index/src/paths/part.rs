//! What a segment has of a path: its values in their order, or its texts.

use super::{HEAD, PathIndex, PathSpec, PathTexts, merge, texts};
use crate::{Result, SectionWriter, Sections, text::Normalization};

/// What is indexed of what paths lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// Values, which are bytes in an order.
    Values,
    /// Texts, each of which is UTF-8, normalised so.
    Texts(Normalization),
}

/// What a segment has of a path.
pub enum PathPart {
    /// Its values.
    Values(PathIndex),
    /// Its texts.
    Texts(Box<PathTexts>),
}

impl PathPart {
    /// All that a segment has, by their numbers.
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

    /// Whether it is of this path.
    pub(crate) fn is_of(&self, spec: &PathSpec) -> bool {
        match self {
            Self::Values(values) => spec.kind == PathKind::Values && values.is_of(spec),
            Self::Texts(texts) => spec.kind != PathKind::Values && texts.is_of(spec),
        }
    }

    /// How many documents it is of.
    pub(super) fn doc_count(&self) -> u32 {
        match self {
            Self::Values(values) => values.doc_count,
            Self::Texts(texts) => texts.index().doc_count(),
        }
    }

    /// Writes the merged sections of a path for `doc_count` documents. An input is what a segment has, and the new
    /// number of each of its documents, ascending, or [`crate::text::GONE`].
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
