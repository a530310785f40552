//! What a segment has of a path: its values in their order, or its texts.

use super::{HEAD, PathBuilder, PathIndex, PathSpec, PathTexts, merge, texts, texts::TextsBuilder};
use crate::{IndexError, Result, SectionWriter, Sections, text::Normalization};

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

/// Collects what a path leads to in a segment's documents, in order.
pub struct PathPartBuilder(Collected);

enum Collected {
    Values(PathBuilder),
    Texts(Box<TextsBuilder>),
}

impl PathPartBuilder {
    /// No documents yet.
    pub fn new(kind: PathKind) -> Self {
        Self(match kind {
            PathKind::Values => Collected::Values(PathBuilder::default()),
            PathKind::Texts(normalization) => {
                Collected::Texts(Box::new(TextsBuilder::new(normalization)))
            }
        })
    }

    /// Adds the next document by its values or texts.
    ///
    /// # Errors
    /// [`IndexError::Invalid`] if a text is no UTF-8, [`IndexError::Full`] if there is more of it than the format allows.
    pub fn add<'v>(&mut self, found: impl Iterator<Item = &'v [u8]>) -> Result<()> {
        match &mut self.0 {
            Collected::Values(values) => {
                values.add(found);
                Ok(())
            }
            Collected::Texts(texts) => {
                let found: Result<Vec<&str>, _> = found.map(std::str::from_utf8).collect();
                let no_text = |_| IndexError::Invalid("a path's text is no UTF-8".to_owned());
                texts.add(&found.map_err(no_text)?)
            }
        }
    }

    /// What a segment of these documents has, outside of a segment.
    ///
    /// # Errors
    /// [`IndexError::Full`] if there is more than the format allows.
    pub fn finish_alone(self, spec: &PathSpec) -> Result<PathPart> {
        match self.0 {
            Collected::Values(values) => values.finish_alone(spec).map(PathPart::Values),
            Collected::Texts(texts) => {
                let (doc_count, mut out) = (texts.doc_count(), SectionWriter::new());
                texts.finish(spec, &mut out)?;
                let read = PathTexts::open(&Sections::open(out.finish())?, spec.id, doc_count)?;
                read.map(|texts| PathPart::Texts(Box::new(texts))).ok_or_else(super::damaged)
            }
        }
    }

    /// Writes the sections of the path.
    pub(crate) fn finish(self, spec: &PathSpec, out: &mut SectionWriter) -> Result<()> {
        match self.0 {
            Collected::Values(values) => values.finish(spec, out),
            Collected::Texts(texts) => texts.finish(spec, out),
        }
    }
}
