//! Converts rows to documents (cells, texts, keywords, path values) and builds a segment of them.

use std::borrow::Cow;

use remora_index::{
    column::{Cell, ColumnKind},
    paths::{PathKeys, PathKind, PathSpec},
    segment::{
        ColumnSpec, Document, IndexPart, IndexSpec, Segment, SegmentBuilder, SegmentIndex,
        SegmentSpec, TextSpec,
    },
};

use crate::{
    ColumnDef, IndexSet, PathDef, Result, Schema, TableIndex, TextDef, Value, WordsDef,
    encode::{FittedRow, column_kind, encode_cell, path_values},
    schema::{
        FIRST_PATH_TEXTS, PATH_TEXTS, PrefixColumn, is_prefix_column, text_order, without_absent,
    },
};

/// The specification of a table's segments.
pub(crate) fn segment_spec(schema: &Schema) -> SegmentSpec {
    let columns = indexed_columns(schema);
    let columns =
        columns.map(|(_, column)| ColumnSpec { id: column.id, kind: column_kind(column.kind) });
    let prefixes = PrefixColumn::all(schema).into_iter();
    let columns =
        columns.chain(prefixes.map(|it| ColumnSpec { id: it.id, kind: ColumnKind::Bytes }));
    let texts = schema.texts.iter();
    let texts = texts.map(|text| TextSpec { id: text.id, normalization: text.normalization });
    SegmentSpec {
        columns: columns.collect(),
        texts: texts.collect(),
        indexes: stored_indexes(schema),
        words: schema.words.as_ref().and_then(WordsDef::spec).into_iter().collect(),
        paths: path_specs(schema),
    }
}

/// The version of the encoding of path values. Indexes with another version are built again, like
/// those of new paths.
const PATH_VALUES: u8 = 2;
/// The version of texts at paths, stored with their normalisation. Version 3 did not record which
/// documents have other values.
const TEXTS_OF_PATHS: u8 = 5;
/// The version of the combined values of several paths.
const JOINT_VALUES: u8 = 4;

/// The specifications of the indexed paths, in the schema's order. A path is identified by its column's id and its
/// names, so a path that is declared again is the same.
pub(crate) fn path_specs(schema: &Schema) -> Vec<PathSpec> {
    let mut specs: Vec<PathSpec> = Vec::with_capacity(schema.paths.len());
    for path in &schema.paths {
        let label = path_label(schema, path);
        let kind = if path.texts { PathKind::Texts(PATH_TEXTS) } else { PathKind::Values };
        let number = |hash: u32| match path.texts {
            true => hash % FIRST_PATH_TEXTS + FIRST_PATH_TEXTS,
            false => hash,
        };
        let mut id = number(crc32fast::hash(&label));
        while specs.iter().any(|other| other.id == id) {
            id = number(id.wrapping_add(1));
        }
        specs.push(PathSpec { id, label, kind });
    }
    specs
}

/// The label that identifies a path.
fn path_label(schema: &Schema, path: &PathDef) -> Vec<u8> {
    let column = schema.columns.get(path.column).map_or(u32::MAX, |column| column.id);
    let form = match (path.texts, path.is_plain()) {
        (true, _) => TEXTS_OF_PATHS,
        (false, true) => PATH_VALUES,
        (false, false) => JOINT_VALUES,
    };
    let mut label = vec![form];
    label.extend(column.to_le_bytes());
    for names in path.paths() {
        if !path.is_plain() {
            label.extend((names.len() as u32).to_le_bytes());
        }
        for name in names {
            label.extend((name.len() as u32).to_le_bytes());
            label.extend_from_slice(name.as_bytes());
        }
    }
    label
}

/// The secondary indexes that segments store. An index that is a prefix of another is not stored: the longer one
/// serves it.
pub(crate) fn stored_indexes(schema: &Schema) -> Vec<IndexSpec> {
    let mut specs = index_specs(schema);
    let all = specs.clone();
    specs.retain(|spec| !all.iter().any(|other| is_longer(other, spec)));
    specs
}

/// Whether `index` has `other` as a proper prefix.
fn is_longer(index: &IndexSpec, other: &IndexSpec) -> bool {
    index.parts.len() > other.parts.len() && index.parts.starts_with(&other.parts)
}

/// The secondary indexes that a table declares. An index is identified by its columns' ids, which are never
/// reused, so an index that is declared again, or under another name, is the same.
pub(crate) fn index_specs(schema: &Schema) -> Vec<IndexSpec> {
    placed_specs(schema).into_iter().map(|(_, spec)| spec).collect()
}

/// The specifications of [`index_specs`], each with its position among the table's indexes.
pub(crate) fn placed_specs(schema: &Schema) -> Vec<(TableIndex, IndexSpec)> {
    let mut specs: Vec<(TableIndex, IndexSpec)> = Vec::with_capacity(schema.indexes.len());
    for (place, index) in schema.indexes.iter().enumerate() {
        let parts = index.columns.iter().map_while(|part| {
            if part.prefix.is_some() {
                let (column, descending) = (PrefixColumn::of(schema, part)?.id, part.descending);
                return Some(IndexPart { column, descending, order: None });
            }
            let column = schema.columns.get(part.column)?.id;
            let order = match part.order {
                Some(number) => Some(text_order(number)?),
                None => None,
            };
            Some(IndexPart { column, descending: part.descending, order })
        });
        let parts: Vec<IndexPart> = parts.collect();
        if parts.is_empty() || specs.iter().any(|(_, other)| other.parts == parts) {
            continue;
        }
        let mut hash = crc32fast::Hasher::new();
        for part in &parts {
            hash.update(&part.column.to_le_bytes());
            hash.update(&[u8::from(part.descending)]);
            if let Some(order) = part.order {
                hash.update(&order.number.to_le_bytes());
            }
        }
        let mut id = hash.finalize();
        while specs.iter().any(|(_, other)| other.id == id) {
            id = id.wrapping_add(1);
        }
        specs.push((TableIndex::Secondary(place), IndexSpec { id, parts }));
    }
    specs
}

/// Whether the segment lacks one of the stored indexes, because it was built before that was declared, and a merge can
/// add it.
pub(crate) fn lacks_an_index(segment: &Segment, stored: &[IndexSpec]) -> bool {
    let has_column =
        |part: &IndexPart| !is_prefix_column(part.column) || segment.column(part.column).is_some();
    let can_be_added = |spec: &&IndexSpec| spec.parts.iter().all(has_column);
    stored.iter().filter(can_be_added).any(|spec| segment.index(spec).is_none())
}

/// The index of a segment that serves one of the table's indexes: itself, or a longer one that has it as a prefix.
pub(crate) fn index_for<'s>(
    segment: &'s Segment,
    spec: &IndexSpec,
    all: &[IndexSpec],
) -> Option<SegmentIndex<'s>> {
    let mut longer = all.iter().filter(|other| is_longer(other, spec));
    segment.index(spec).or_else(|| longer.find_map(|other| segment.index(other)))
}

/// The indexes of a set, and the table's longer indexes that have one of them as a prefix and may be stored in its
/// place. Each has its own specification.
pub(crate) fn allowed_specs(schema: &Schema, allowed: IndexSet) -> Vec<(TableIndex, IndexSpec)> {
    let specs = placed_specs(schema);
    if specs.iter().all(|(index, _)| allowed.contains(*index)) {
        return specs;
    }
    let named = |spec: &IndexSpec| {
        let mut named = specs.iter().filter(|(index, _)| allowed.contains(*index));
        named.any(|(_, it)| it == spec || is_longer(spec, it))
    };
    specs.iter().filter(|(_, spec)| named(spec)).cloned().collect()
}

/// The original texts of a row in a text index: one for each of its columns that is not NULL, or one joined text
/// if the index has a delimiter.
pub(crate) fn indexed_texts<'r>(text: &TextDef, row: &'r [Value]) -> Vec<Cow<'r, str>> {
    let columns = text.columns.iter().filter_map(|&column| match row.get(column) {
        Some(Value::Text(text) | Value::Json(text)) => Some(&**text),
        _ => None,
    });
    match &text.delimiter {
        None => columns.map(Cow::Borrowed).collect(),
        Some(delimiter) => {
            let parts: Vec<&str> = columns.collect();
            if parts.is_empty() { Vec::new() } else { vec![Cow::Owned(parts.join(delimiter))] }
        }
    }
}

/// The text of each keyword field of a row.
fn fields<'r>(words: &WordsDef, row: &'r [Value]) -> Vec<&'r str> {
    let text = |&column: &usize| match row.get(column) {
        Some(Value::Text(text) | Value::Json(text)) => &**text,
        _ => "",
    };
    words.columns.iter().map(text).collect()
}

/// The bytes of a row's indexed texts and path values.
pub(crate) fn indexed_bytes(schema: &Schema, row: &[Value], paths: &PathKeys) -> usize {
    let texts = schema.texts.iter().flat_map(|text| indexed_texts(text, row));
    texts.map(|text| text.len()).sum::<usize>() + paths.bytes()
}

/// Builds a segment from rows, which must come in ascending key order.
pub(crate) struct RowIndexer<'s> {
    schema: &'s Schema,
    /// The indexed paths.
    paths: Vec<&'s PathDef>,
    /// The prefix columns.
    prefixes: Vec<PrefixColumn>,
    builder: SegmentBuilder,
    documents: usize,
    /// The values at the paths in a row.
    path_keys: PathKeys,
}

impl<'s> RowIndexer<'s> {
    /// An empty segment of the table.
    pub fn new(schema: &'s Schema) -> Self {
        Self::of_spec(schema, segment_spec(schema), |_| true)
    }

    fn of_spec(schema: &'s Schema, mut spec: SegmentSpec, has: impl Fn(&PathSpec) -> bool) -> Self {
        let mut prefixes = PrefixColumn::all(schema);
        prefixes.retain(|prefix| spec.columns.iter().any(|column| column.id == prefix.id));
        let paths = spec.paths.iter().zip(&schema.paths);
        let paths = paths.filter(|(path, _)| has(path)).map(|(_, path)| path).collect();
        spec.paths.retain(has);
        let (builder, path_keys) = (SegmentBuilder::new(&spec), PathKeys::default());
        Self { schema, paths, prefixes, builder, documents: 0, path_keys }
    }

    /// Reserves capacity for rows with so many bytes of text.
    pub fn reserve_text(&mut self, bytes: usize) {
        self.builder.reserve_text(bytes);
    }

    /// An indexer that builds only what the given segment has: its paths and prefix columns, in the
    /// format of its version.
    pub fn as_in(schema: &'s Schema, segment: &Segment) -> Self {
        let mut spec = segment_spec(schema);
        without_absent(&mut spec, std::iter::once(segment));
        let mut indexer = Self::of_spec(schema, spec, |path| segment.has_path(path));
        let mut texts = schema.texts.iter().filter_map(|text| segment.text(text.id));
        if !texts.all(|text| text.knows_characters()) {
            indexer.builder.forget_characters();
        }
        indexer
    }

    /// Adds the next row, as read from the row store.
    pub fn add(&mut self, key: &[u8], row: &[Value]) -> Result<()> {
        let mut paths = std::mem::take(&mut self.path_keys);
        // Earlier versions could store documents that cannot be parsed; they have no values.
        let _ = path_values(self.paths.iter().copied(), row, &mut paths);
        let added = self.add_with(key, row, &paths);
        self.path_keys = paths;
        added
    }

    /// Adds the next row.
    pub fn add_fitted(&mut self, key: &[u8], fitted: &FittedRow) -> Result<()> {
        self.add_with(key, &fitted.row, &fitted.paths)
    }

    fn add_with(&mut self, key: &[u8], row: &[Value], paths: &PathKeys) -> Result<()> {
        let scratch = byte_cells(self.schema, &self.prefixes, row);
        let columns: Vec<Cell<'_>> = scratch.iter().map(ScratchCell::as_cell).collect();
        let texts: Vec<Vec<Cow<'_, str>>> =
            self.schema.texts.iter().map(|text| indexed_texts(text, row)).collect();
        let texts: Vec<Vec<&str>> =
            texts.iter().map(|texts| texts.iter().map(Cow::as_ref).collect()).collect();
        let words = self.schema.words.iter().map(|words| fields(words, row));
        let words: Vec<Vec<&str>> = words.collect();
        let (columns, texts, words) = (&columns, &texts, &words);
        self.builder.add(&Document { key, columns, texts, words, paths })?;
        self.documents += 1;
        Ok(())
    }

    /// The values at the paths of the row last added by [`RowIndexer::add`].
    pub fn last_paths(&self) -> &PathKeys {
        &self.path_keys
    }

    /// The number of rows added.
    pub fn documents(&self) -> usize {
        self.documents
    }

    /// The segment, or `None` if no row was added.
    pub fn finish(self) -> Result<Option<Segment>> {
        if self.documents == 0 { Ok(None) } else { Ok(Some(self.builder.finish()?)) }
    }
}

/// A cell that may own its bytes, so that all cells of a row can exist side by side.
enum ScratchCell {
    Null,
    Ordinal(u64),
    Bytes(Vec<u8>),
}

impl ScratchCell {
    fn as_cell(&self) -> Cell<'_> {
        match self {
            Self::Null => Cell::Null,
            Self::Ordinal(number) => Cell::Ordinal(*number),
            Self::Bytes(bytes) => Cell::Bytes(bytes),
        }
    }
}

fn byte_cells(schema: &Schema, prefixes: &[PrefixColumn], row: &[Value]) -> Vec<ScratchCell> {
    let cells = indexed_columns(schema).map(|(position, column)| {
        let mut scratch = Vec::new();
        let value = row.get(position).unwrap_or(&Value::Null);
        match encode_cell(column.kind, value, &mut scratch) {
            Cell::Null => ScratchCell::Null,
            Cell::Ordinal(number) => ScratchCell::Ordinal(number),
            Cell::Bytes(bytes) => ScratchCell::Bytes(bytes.to_vec()),
        }
    });
    let prefixes = prefixes.iter();
    let prefixes = prefixes.map(|it| it.value(row).map_or(ScratchCell::Null, ScratchCell::Bytes));
    cells.chain(prefixes).collect()
}

/// The columns that the segments hold, with their positions in a row.
fn indexed_columns(schema: &Schema) -> impl Iterator<Item = (usize, &ColumnDef)> {
    schema.columns.iter().enumerate().filter(|(_, column)| column.indexed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ColumnType, IndexColumn, encode::strategies::table};

    fn index(schema: &mut Schema, columns: &[(usize, bool)]) {
        let column =
            |&(column, descending)| IndexColumn { column, descending, order: None, prefix: None };
        schema.add_index(columns.iter().map(column));
    }

    #[test]
    fn index_that_is_a_prefix_of_another_is_stored_once() {
        let mut schema = table(&[ColumnType::Int(64); 4]);
        schema.primary_key = vec![0, 1];
        schema.columns.iter_mut().for_each(|column| column.indexed = true);
        index(&mut schema, &[(2, false)]);
        index(&mut schema, &[(2, false), (3, true), (1, false)]);
        index(&mut schema, &[(2, false), (3, true)]);
        index(&mut schema, &[(2, false), (3, false)]);
        index(&mut schema, &[(2, true)]);
        let of_key: [&[(usize, bool)]; 2] = [&[(0, false)], &[(0, false), (1, false)]];
        of_key.iter().for_each(|columns| index(&mut schema, columns));
        assert_eq!((schema.indexes.len(), index_specs(&schema).len()), (5, 5));
        let stored: Vec<usize> =
            stored_indexes(&schema).iter().map(|spec| spec.parts.len()).collect();
        assert_eq!(stored, [3, 2, 1]);
    }

    #[test]
    fn text_keys_are_not_a_text_index() {
        let mut schema = table(&[ColumnType::Text, ColumnType::Int(64)]);
        schema.primary_key = vec![0, 1];
        schema.columns.iter_mut().for_each(|column| column.indexed = true);
        index(&mut schema, &[(0, false)]);
        assert_eq!(schema.indexes.len(), 1);
    }
}
