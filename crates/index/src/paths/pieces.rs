//! What paths lead to in documents, collected a piece at a time: the values or texts of documents that follow each other
//! are put in order and let go of once they are many bytes, and the pieces are merged in one pass. So what is collected
//! at once is bounded, however many documents there are.

use super::{
    PathBuilder, PathIndex, PathKeys, PathKind, PathPart, PathSpec, PathTexts, damaged, texts,
};
use crate::{
    IndexError, Result, SectionWriter, Sections,
    text::{GONE, TextBuilder},
};

/// Bytes of values and texts of all paths that are collected before they are put in order. That takes a few times as
/// much.
pub const PIECE_BYTES: usize = 32 << 20;
/// What a document counts for each path, whatever it leads to.
const DOCUMENT_BYTES: usize = 8;

/// What one path leads to in some documents of a segment that follow each other.
pub struct PathPiece {
    /// The first of the documents.
    first: u32,
    part: PathPart,
}

/// The pieces of one path, in the order of the documents, each of which follows the one before.
pub struct PathPieces {
    spec: PathSpec,
    pieces: Vec<PathPiece>,
}

impl PathPieces {
    /// Whether it is of this path.
    pub(crate) fn is_of(&self, spec: &PathSpec) -> bool {
        self.spec == *spec
    }

    /// The pieces as sources of a merge, each with its part of the new numbers of all documents.
    ///
    /// # Errors
    /// [`IndexError::Invalid`] if a document that is not gone is in none.
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

/// Collects what paths lead to in documents, in their order. Memory: some times [`PIECE_BYTES`], and what was put in
/// order before.
pub struct PathsBuilder {
    paths: Vec<Collected>,
    /// The first document of those that are collected.
    first: u32,
    /// The document that comes next.
    next: u32,
    collected_bytes: usize,
    most_collected_bytes: usize,
    ordered_bytes: u64,
    piece_bytes: usize,
}

/// One path: its pieces, and what is collected since the last.
struct Collected {
    pieces: PathPieces,
    current: Current,
}

enum Current {
    Values(PathBuilder),
    Texts(Box<TextBuilder>),
}

impl PathsBuilder {
    /// For these paths, of documents from number 0 on.
    pub fn new(specs: &[PathSpec]) -> Self {
        Self::with_pieces(specs, PIECE_BYTES)
    }

    /// The same with pieces of so many bytes, and one document's values more.
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

    /// The same for documents from this number on, of which there are none yet.
    #[must_use]
    pub fn starting_at(mut self, first: u32) -> Self {
        (self.first, self.next) = (first, first);
        self
    }

    /// How many paths there are.
    pub fn paths(&self) -> usize {
        self.paths.len()
    }

    /// Adds the next document by what the paths lead to in it.
    ///
    /// # Errors
    /// [`IndexError::Invalid`] if a text is no UTF-8 or there are other paths, [`IndexError::Full`] if the document has
    /// more than the format allows. After one it must be dropped.
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

    /// Bytes of the pieces that are in order, and of what is collected since.
    pub fn bytes(&self) -> u64 {
        self.ordered_bytes + self.collected_bytes as u64
    }

    /// The most bytes that were collected at once.
    pub fn most_collected_bytes(&self) -> usize {
        self.most_collected_bytes
    }

    /// Puts in order what is collected.
    ///
    /// # Errors
    /// [`IndexError::Full`] if there is more than the format allows. After one it must be dropped.
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

    /// All of it, a path after the other.
    ///
    /// # Errors
    /// [`IndexError::Full`] if there is more than the format allows.
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

    /// What a segment of these documents has, outside of a segment, and how many bytes that is.
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
