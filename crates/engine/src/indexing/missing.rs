//! Builds the indexes of paths that a segment lacks because it is older than them, from the rows of its documents,
//! in order.

use remora_index::{
    IndexError,
    paths::{PIECE_BYTES, PathKeys, PathPieces, PathSpec, PathsBuilder},
    segment::Segment,
};

use crate::{PathDef, Result, Schema, Value, encode::path_values};

/// The share of the memory limit at which collected values are sorted into a piece: one in this
/// many bytes.
const PIECES: u64 = 8;

/// The index under construction for the paths that a segment lacks.
pub(crate) struct MissingPaths<'s> {
    paths: Vec<&'s PathDef>,
    specs: Vec<PathSpec>,
    builder: PathsBuilder,
    keys: PathKeys,
    held_bytes: u64,
}

/// A document has more at a path than can be indexed.
#[derive(Clone, Debug)]
pub(crate) struct TooMuch {
    /// The path.
    pub spec: PathSpec,
    /// The message, with the declared path and the size.
    pub why: String,
}

impl<'s> MissingPaths<'s> {
    /// Prepares the paths of the schema that the segment lacks, except those for which `passed_over` is true;
    /// `None` if there are none. `held_bytes` limits one document's values at the paths, and the size of pieces.
    pub fn of(
        (schema, specs): (&'s Schema, &[PathSpec]),
        segment: &Segment,
        passed_over: impl Fn(&PathSpec) -> bool,
        held_bytes: u64,
    ) -> Option<Self> {
        let is_missing = |spec: &PathSpec| !segment.has_path(spec) && !passed_over(spec);
        let missing = specs.iter().zip(&schema.paths).filter(|(spec, _)| is_missing(spec));
        let (specs, paths): (Vec<PathSpec>, Vec<&PathDef>) =
            missing.map(|(spec, path)| (spec.clone(), path)).unzip();
        let piece_bytes = usize::try_from(held_bytes / PIECES).unwrap_or(PIECE_BYTES);
        let builder = PathsBuilder::with_pieces(&specs, piece_bytes.min(PIECE_BYTES));
        let keys = PathKeys::default();
        (!specs.is_empty()).then_some(Self { paths, specs, builder, keys, held_bytes })
    }

    /// Sets the number of the first document.
    #[must_use]
    pub fn starting_at(self, first: u32) -> Self {
        Self { builder: self.builder.starting_at(first), ..self }
    }

    /// Adds the next document by its row (`None` for a deleted one). Returns an error value if it has too much at
    /// a path.
    pub fn add(&mut self, row: Option<&[Value]>) -> Result<Option<TooMuch>> {
        // Earlier versions could store documents that cannot be parsed; they have no values.
        let _ = path_values(self.paths.iter().copied(), row.unwrap_or_default(), &mut self.keys);
        let bytes = self.keys.bytes() as u64;
        if bytes > self.held_bytes {
            let what = format!("{bytes} bytes, the limit is {}", self.held_bytes);
            return Ok(self.too_much(&what));
        }
        match self.builder.add(&self.keys) {
            Err(IndexError::Full(what)) => Ok(self.too_much(what)),
            added => Ok(added.map(|()| None)?),
        }
    }

    /// The error value for the path at which the last document has the most.
    fn too_much(&self, what: &str) -> Option<TooMuch> {
        let bytes_at = |place: usize| self.keys.of(place).map(<[u8]>::len).sum::<usize>();
        let paths = self.specs.iter().zip(&self.paths).enumerate();
        let (_, (spec, path)) = paths.max_by_key(|(place, _)| bytes_at(*place))?;
        let shown: Vec<String> = path.paths().map(|names| names.join(".")).collect();
        let shown = shown.join(", ");
        let why = format!("a document has too much at the path {shown:?} to be indexed: {what}");
        Some(TooMuch { spec: spec.clone(), why })
    }

    /// Sorts the documents added since the last piece into a new piece.
    pub fn order(&mut self) -> Result<()> {
        Ok(self.builder.end_piece()?)
    }

    /// The bytes held in memory.
    pub fn bytes(&self) -> u64 {
        self.builder.bytes()
    }

    /// The greatest size of unsorted values, in bytes.
    pub fn most_collected_bytes(&self) -> usize {
        self.builder.most_collected_bytes()
    }

    /// The finished pieces.
    pub fn finish(self) -> Result<Vec<PathPieces>> {
        Ok(self.builder.finish_pieces()?)
    }
}
