//! Segments: immutable runs of documents in key order, with everything that is indexed about them.

mod builder;
mod fences;
mod index;
mod live;
mod merge;
mod sort_key;

use std::{
    borrow::Cow,
    fmt,
    fs::File,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use remora_words::analysis::Analyzer;

use crate::{
    Bitmap, IndexError, Keys, Result, SectionTag, Sections,
    bytes::read_u32,
    column::{Cell, Column, ColumnKind},
    paths::{PathIndex, PathKeys, PathPart, PathPieces, PathSpec},
    text::{NEIGHBOUR_LISTS, Normalization, POSITIONS, TextIndex, UNION_COUNTS},
    words::{PAIR_LISTS, WORDS, WordsIndex},
};

pub use builder::SegmentBuilder;
use index::{INDEX, StoredIndex};
pub use index::{IndexPart, IndexSpec, SegmentIndex};
pub use live::LiveRanks;
pub use merge::merge;

/// ```text
/// SPEC := documents:u32 columns:u32 texts:u32 column_id:u32{columns} text_id:u32{texts}
/// ```
const SPEC: SectionTag = SectionTag(*b"SPEC");

/// The most documents of one segment: twice a document number must fit in 32 bits.
const MAX_DOCUMENTS: u32 = (1 << 31) - 1;

/// What a segment indexes; derived from a table's schema.
#[derive(Clone, Debug, Default)]
pub struct SegmentSpec {
    /// The columns, by their stable numbers.
    pub columns: Vec<ColumnSpec>,
    /// The text indexes, by their stable numbers.
    pub texts: Vec<TextSpec>,
    /// The secondary indexes.
    pub indexes: Vec<IndexSpec>,
    /// The keywords for ranked search.
    pub words: Vec<WordsSpec>,
    /// The paths into documents.
    pub paths: Vec<PathSpec>,
}

/// Keywords to be written.
#[derive(Clone)]
pub struct WordsSpec {
    /// Stable number, unique in the table beside those of text indexes and never reused.
    pub id: u32,
    /// How many fields a document has: 1 to 256.
    pub fields: usize,
    /// The analyzer that cuts a text into keywords.
    pub analyzer: Arc<Analyzer>,
}

impl fmt::Debug for WordsSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("WordsSpec").field("id", &self.id).field("fields", &self.fields).finish()
    }
}

/// One column to be written.
#[derive(Clone, Copy, Debug)]
pub struct ColumnSpec {
    /// Stable number, unique in the table and never reused.
    pub id: u32,
    /// How its values are stored.
    pub kind: ColumnKind,
}

/// One text index to be written.
#[derive(Clone, Copy, Debug)]
pub struct TextSpec {
    /// Stable number, unique in the table and never reused.
    pub id: u32,
    /// How text is normalised before it is cut.
    pub normalization: Normalization,
}

/// One document, in the order of the spec.
pub struct Document<'a> {
    /// Order-preserving bytes of the primary key.
    pub key: &'a [u8],
    /// One value for each column of the spec.
    pub columns: &'a [Cell<'a>],
    /// For each text index the original texts of its columns, without NULLs. A match never spans two texts.
    pub texts: &'a [Vec<&'a str>],
    /// For each entry of the spec's `words` the texts of its fields; an empty text for NULL.
    pub words: &'a [Vec<&'a str>],
    /// For each path of the spec the values at that path.
    pub paths: &'a PathKeys,
}

/// An immutable segment. Cheap to clone behind an `Arc`; safe to read from any thread.
pub struct Segment {
    number: u64,
    sections: Sections,
    keys: Keys,
    columns: Vec<(u32, Column)>,
    texts: Vec<(u32, TextIndex)>,
    indexes: Vec<(u32, StoredIndex)>,
    words: Vec<(u32, WordsIndex)>,
    paths: Vec<(u32, PathPart)>,
}

impl Segment {
    /// Opens a segment's bytes, verifying every checksum.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if a checksum is wrong, or a part that the segment should have is
    /// missing or damaged.
    pub fn open(bytes: Vec<u8>) -> Result<Self> {
        Self::read(Sections::open(bytes)?)
    }

    /// Opens a segment's file and verifies every checksum. Some kinds of sections stay in the file and are
    /// read on demand: positions and lists of neighbours, which only phrases and ranked queries need, and occurrence
    /// counts, which only scores need. Everything else is read into memory.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if a checksum is wrong, or a part that the segment should have is
    /// missing or damaged. [`IndexError::Io`] if the file cannot be read.
    pub fn open_file(file: File) -> Result<Self> {
        Self::read(Sections::open_file(
            file,
            &[POSITIONS, UNION_COUNTS, NEIGHBOUR_LISTS, PAIR_LISTS],
        )?)
    }

    fn read(sections: Sections) -> Result<Self> {
        let spec = sections.require(SPEC, 0)?;
        let (columns, texts) = (read_u32(spec, 4)? as usize, read_u32(spec, 8)? as usize);
        let doc_count = read_u32(spec, 0)?;
        let keys = Keys::open(&sections)?;
        if keys.len() != doc_count || spec.len() as u64 != 12 + (columns + texts) as u64 * 4 {
            return Err(IndexError::corrupt("the segment's size"));
        }
        let missing = || IndexError::corrupt("a column or text index is missing");
        let id = |index: usize| read_u32(spec, 12 + index * 4);
        let columns = (0..columns).map(|index| {
            let id = id(index)?;
            Ok((id, Column::open(&sections, id, doc_count)?.ok_or_else(missing)?))
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let texts = (0..texts).map(|index| {
            let id = id(columns.len() + index)?;
            Ok((id, TextIndex::open(&sections, id, doc_count)?.ok_or_else(missing)?))
        });
        let texts = texts.collect::<Result<Vec<_>>>()?;
        let ids = sections.sizes().filter(|(tag, ..)| *tag == INDEX).map(|(_, id, _)| id);
        let mut indexes = Vec::new();
        for id in ids {
            let stored = StoredIndex::open(&sections, id, doc_count)?;
            indexes.extend(stored.map(|stored| (id, stored)));
        }
        let ids = sections.sizes().filter(|(tag, ..)| *tag == WORDS).map(|(_, id, _)| id);
        let mut words = Vec::new();
        for id in ids {
            let stored = WordsIndex::open(&sections, id, doc_count)?;
            words.extend(stored.map(|stored| (id, stored)));
        }
        let paths = PathPart::open_all(&sections, doc_count)?;
        static OPENED: AtomicU64 = AtomicU64::new(0);
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        Ok(Self { number, sections, keys, columns, texts, indexes, words, paths })
    }

    /// A number that no other segment has that this process opened or made.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The bytes of the segment's file. If it was opened from a file, they are read back from it.
    ///
    /// # Errors
    /// [`IndexError::Io`] if the segment lies in a file that cannot be read.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>> {
        self.sections.bytes()
    }

    /// The length of [`Segment::bytes`].
    pub fn byte_count(&self) -> u64 {
        self.sections.len()
    }

    /// Bytes held in memory.
    pub fn memory_bytes(&self) -> u64 {
        self.sections.memory_bytes()
    }

    /// The number of documents, deleted ones included.
    pub fn doc_count(&self) -> u32 {
        self.keys.len()
    }

    /// The keys.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The column; `None` if the segment was written before it existed: then all its values are NULL.
    pub fn column(&self, id: u32) -> Option<&Column> {
        self.columns.iter().find(|(other, _)| *other == id).map(|(_, column)| column)
    }

    /// The text index, or `None` if the segment was written before it existed.
    pub fn text(&self, id: u32) -> Option<&TextIndex> {
        self.texts.iter().find(|(other, _)| *other == id).map(|(_, text)| text)
    }

    /// The keyword index; `None` if the segment was written before it was declared.
    pub fn words(&self, id: u32) -> Option<&WordsIndex> {
        self.words.iter().find(|(other, _)| *other == id).map(|(_, words)| words)
    }

    /// The ordered values of a path; `None` if the segment was written before it was indexed.
    pub fn path(&self, spec: &PathSpec) -> Option<&PathIndex> {
        match self.path_part(spec)? {
            PathPart::Values(values) => Some(values),
            PathPart::Texts(_) => None,
        }
    }

    /// The text index of the texts at a path; `None` if the segment was written before they were indexed.
    pub fn path_texts(&self, spec: &PathSpec) -> Option<&TextIndex> {
        match self.path_part(spec)? {
            PathPart::Texts(texts) => Some(texts.index()),
            PathPart::Values(_) => None,
        }
    }

    /// Whether the segment has the index of a path.
    pub fn has_path(&self, spec: &PathSpec) -> bool {
        self.path_part(spec).is_some()
    }

    fn path_part(&self, spec: &PathSpec) -> Option<&PathPart> {
        let mut parts = self.paths.iter().filter(|(id, _)| *id == spec.id);
        parts.find(|(_, part)| part.is_of(spec)).map(|(_, part)| part)
    }

    /// The index, or `None` if the segment was written before it existed.
    pub fn index(&self, spec: &IndexSpec) -> Option<SegmentIndex<'_>> {
        let (_, stored) = self.indexes.iter().find(|(id, _)| *id == spec.id)?;
        stored.is_by(&spec.parts).then(|| SegmentIndex::new(self, stored, spec))
    }

    /// The name, the id and the size in bytes of each section.
    pub fn section_sizes(&self) -> Vec<(String, u32, u64)> {
        let name = |tag: SectionTag| String::from_utf8_lossy(&tag.0).into_owned();
        self.sections.sizes().map(|(tag, id, bytes)| (name(tag), id, bytes)).collect()
    }
}

/// One input of a merge: a segment and its deleted documents.
pub struct MergeInput {
    /// The segment.
    pub segment: Arc<Segment>,
    /// Deleted documents, if any.
    pub deleted: Option<Arc<Bitmap>>,
    /// The indexes of paths that the segment itself lacks, of all its documents that are not deleted.
    pub paths: Vec<PathPieces>,
}

impl MergeInput {
    /// Adds the sources of a path's index, from the segment or from `self.paths`, each with the new numbers
    /// of its documents. False if neither has it.
    fn push_path<'i>(
        &'i self,
        spec: &PathSpec,
        map: &'i [u32],
        sources: &mut Vec<(&'i PathPart, &'i [u32])>,
    ) -> Result<bool> {
        if let Some(part) = self.segment.path_part(spec) {
            sources.push((part, map));
            return Ok(true);
        }
        let Some(pieces) = self.paths.iter().find(|pieces| pieces.is_of(spec)) else {
            return Ok(false);
        };
        sources.extend(pieces.sources(map)?);
        Ok(true)
    }
}

/// The `SPEC` section.
fn encode_spec(spec: &SegmentSpec, doc_count: u32) -> Vec<u8> {
    let counts = [doc_count, spec.columns.len() as u32, spec.texts.len() as u32];
    let columns = spec.columns.iter().map(|column| column.id);
    let texts = spec.texts.iter().map(|text| text.id);
    counts.into_iter().chain(columns).chain(texts).flat_map(u32::to_le_bytes).collect()
}
