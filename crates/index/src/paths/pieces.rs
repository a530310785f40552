//! Indexes paths in bounded memory, like an external sort. Values and texts of consecutive documents are
//! collected until they reach a size; then they become an ordered piece. In the end the pieces are merged in
//! one pass.

use super::{
    PathBuilder, PathIndex, PathKeys, PathKind, PathPart, PathSpec, PathTexts, damaged, texts,
};
use crate::{
    IndexError, Result, SectionWriter, Sections,
    text::{GONE, TextBuilder},
};

/// When the values and texts of all paths together reach this many bytes, they become a piece.
/// Building a piece takes a few times as much memory.
pub const PIECE_BYTES: usize = 32 << 20;
/// What a document adds to that size for each path, besides its values.
const DOCUMENT_BYTES: usize = 8;

/// The index of one path over consecutive documents of a segment.
pub struct PathPiece {
    /// The first document.
    first: u32,
    part: PathPart,
}

/// The pieces of one path, in document order and without gaps.
pub struct PathPieces {
    spec: PathSpec,
    pieces: Vec<PathPiece>,
}

impl PathPieces {
    /// Whether they are of this path.
    pub(crate) fn is_of(&self, spec: &PathSpec) -> bool {
        self.spec == *spec
    }

    /// The pieces as inputs of a merge, each with its part of `map`, the new numbers of all documents.
    ///
    /// # Errors
    /// [`IndexError::Invalid`] if no piece covers a document that is not gone.
    pub(crate) fn sources<'p>(&'p self, map: &'p [u32]) -> Result<Vec<(&'p PathPart, &'p [u32])>> {
        let mut rest = map;
        let mut sources = Vec::with_capacity(self.pieces.len());
        let mut at = 0;
        for piece in &self.pieces {
            let (before, count) = (piece.first.saturating_sub(at), piece.part.doc_count());
            let (skipped, behind) = rest.split_at_checked(before as usize).ok_or_else(left_out)?;
            let (of_piece, behind) =
                behind.split_at_checked(count as usize).ok_or_else(left_out)?;
            if piece.first < at || !are_gone(skipped) {
                return Err(left_out());
            }
            sources.push((&piece.part, of_piece));
            (rest, at) = (behind, piece.first.saturating_add(count));
        }
        if !are_gone(rest) {
            return Err(left_out());
        }
        Ok(sources)
    }
}

fn are_gone(map: &[u32]) -> bool {
    map.iter().all(|&new| new == GONE)
}

fn left_out() -> IndexError {
    IndexError::Invalid("the pieces of a path leave documents out".to_owned())
}

/// Collects the values and texts at paths, in document order. Memory: a few times [`PIECE_BYTES`], and the
/// finished pieces.
pub struct PathsBuilder {
    paths: Vec<Collected>,
    /// The first document of the current piece.
    first: u32,
    /// The number of the next document.
    next: u32,
    collected_bytes: usize,
    most_collected_bytes: usize,
    ordered_bytes: u64,
    piece_bytes: usize,
}

/// One path: its finished pieces and the current one.
struct Collected {
    pieces: PathPieces,
    current: Current,
}

enum Current {
    Values(PathBuilder),
    Texts(Box<TextBuilder>),
}

impl PathsBuilder {
    /// A builder for these paths whose first document has number 0.
    pub fn new(specs: &[PathSpec]) -> Self {
        Self::with_pieces(specs, PIECE_BYTES)
    }

    /// As [`PathsBuilder::new`], with another size of pieces in bytes; a piece may exceed it by one
    /// document.
    pub fn with_pieces(specs: &[PathSpec], piece_bytes: usize) -> Self {
        let collected = |spec: &PathSpec| Collected {
            pieces: PathPieces { spec: spec.clone(), pieces: Vec::new() },
            current: Current::new(spec.kind),
        };
        Self {
            paths: specs.iter().map(collected).collect(),
            first: 0,
            next: 0,
            collected_bytes: 0,
            most_collected_bytes: 0,
            ordered_bytes: 0,
            piece_bytes,
        }
    }

    /// Sets the number of the first document, before any is added.
    #[must_use]
    pub fn starting_at(mut self, first: u32) -> Self {
        (self.first, self.next) = (first, first);
        self
    }

    /// The number of paths.
    pub fn paths(&self) -> usize {
        self.paths.len()
    }

    /// Adds the values at the paths of the next document.
    ///
    /// # Errors
    /// [`IndexError::Invalid`] if a text is not UTF-8 or the number of paths differs; [`IndexError::Full`] if
    /// the document exceeds a limit of the format. After an error the builder must be dropped.
    pub fn add(&mut self, keys: &PathKeys) -> Result<()> {
        if keys.paths() != self.paths.len() {
            return Err(IndexError::Invalid("a document's paths are not the spec's".to_owned()));
        }
        if self.paths.is_empty() {
            return Ok(());
        }
        if self.collected_bytes >= self.piece_bytes {
            self.end_piece()?;
        }
        for (place, path) in self.paths.iter_mut().enumerate() {
            path.current.add(keys.of(place))?;
        }
        self.collected_bytes += keys.bytes() + DOCUMENT_BYTES * self.paths.len();
        self.most_collected_bytes = self.most_collected_bytes.max(self.collected_bytes);
        self.next += 1;
        Ok(())
    }

    /// The size of the finished pieces and of the collected values, in bytes.
    pub fn bytes(&self) -> u64 {
        self.ordered_bytes + self.collected_bytes as u64
    }

    /// The greatest size of collected values so far, in bytes.
    pub fn most_collected_bytes(&self) -> usize {
        self.most_collected_bytes
    }

    /// Finishes the current piece.
    ///
    /// # Errors
    /// [`IndexError::Full`] if a limit of the format is exceeded. After an error the builder must be dropped.
    pub fn end_piece(&mut self) -> Result<()> {
        if self.first == self.next {
            return Ok(());
        }
        for path in &mut self.paths {
            let spec = &path.pieces.spec;
            let full = std::mem::replace(&mut path.current, Current::new(spec.kind));
            let (part, bytes) = full.finish_alone(spec, self.next - self.first)?;
            self.ordered_bytes += bytes;
            path.pieces.pieces.push(PathPiece { first: self.first, part });
        }
        (self.first, self.collected_bytes) = (self.next, 0);
        Ok(())
    }

    /// Finishes, and returns the pieces of each path.
    ///
    /// # Errors
    /// [`IndexError::Full`] if a limit of the format is exceeded.
    pub fn finish_pieces(mut self) -> Result<Vec<PathPieces>> {
        self.end_piece()?;
        Ok(self.paths.into_iter().map(|path| path.pieces).collect())
    }

    /// Writes the sections of all paths.
    pub(crate) fn finish(self, out: &mut SectionWriter) -> Result<()> {
        if self.paths.iter().all(|path| path.pieces.pieces.is_empty()) {
            let mut paths = self.paths.into_iter();
            return paths.try_for_each(|path| path.current.finish(&path.pieces.spec, out));
        }
        let doc_count = self.next;
        let map: Vec<u32> = (0..doc_count).collect();
        for pieces in self.finish_pieces()? {
            PathPart::merge(&pieces.sources(&map)?, doc_count, &pieces.spec, out)?;
        }
        Ok(())
    }
}

impl Current {
    fn new(kind: PathKind) -> Self {
        match kind {
            PathKind::Values => Self::Values(PathBuilder::default()),
            PathKind::Texts(normalization) => {
                Self::Texts(Box::new(TextBuilder::new(normalization)))
            }
        }
    }

    fn add<'v>(&mut self, found: impl Iterator<Item = &'v [u8]>) -> Result<()> {
        match self {
            Self::Values(values) => {
                values.add(found);
                Ok(())
            }
            Self::Texts(texts) => {
                let found: Result<Vec<&str>, _> = found.map(std::str::from_utf8).collect();
                let no_text = |_| IndexError::Invalid("a path's text is no UTF-8".to_owned());
                texts.add(&found.map_err(no_text)?)
            }
        }
    }

    /// Builds the index of these documents in memory, outside of a segment. Returns it with its
    /// size in bytes.
    fn finish_alone(self, spec: &PathSpec, doc_count: u32) -> Result<(PathPart, u64)> {
        let mut out = SectionWriter::new();
        self.finish(spec, &mut out)?;
        let sections = Sections::open(out.finish())?;
        let bytes = sections.len();
        let part = match spec.kind {
            PathKind::Values => {
                PathIndex::open(&sections, spec.id, doc_count)?.map(PathPart::Values)
            }
            PathKind::Texts(_) => PathTexts::open(&sections, spec.id, doc_count)?
                .map(|texts| PathPart::Texts(Box::new(texts))),
        };
        Ok((part.ok_or_else(damaged)?, bytes))
    }

    /// Writes the sections of the path.
    fn finish(self, spec: &PathSpec, out: &mut SectionWriter) -> Result<()> {
        match self {
            Self::Values(values) => values.finish(spec, out),
            Self::Texts(texts) => texts::finish(*texts, spec, out),
        }
    }
}
