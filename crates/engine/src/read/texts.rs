//! Reads rows and their texts, for conditions that the index alone cannot decide.

use remora_index::{DocSet, segment::Segment};

use crate::{
    Error, Result, Row, Schema,
    interrupt::InterruptCheck,
    snapshot::{SegmentView, TableView},
    storage::store::RowVersion,
};

/// Keeps the documents of `docs`, which must be live, for whose row `holds` is true. Rows have only the given
/// columns.
pub(super) fn retain_rows(
    view: &TableView,
    segment: &SegmentView,
    docs: &DocSet,
    (columns, unless): (&[usize], &InterruptCheck),
    mut holds: impl FnMut(&Row) -> bool,
) -> Result<DocSet> {
    let mut kept = Vec::new();
    for_each_row(view, segment, docs, (columns, unless), |doc, row| {
        if holds(row) {
            kept.push(doc);
        }
    })?;
    Ok(DocSet::List(kept))
}

/// Calls `visit` with each document of `docs`, which must be live, and these columns of its row.
pub(super) fn for_each_row(
    view: &TableView,
    segment: &SegmentView,
    docs: &DocSet,
    (columns, unless): (&[usize], &InterruptCheck),
    mut visit: impl FnMut(u32, &Row),
) -> Result<()> {
    let mut key = Vec::new();
    for doc in docs.iter() {
        unless.check()?;
        key.clear();
        segment.segment.keys().read(doc, &mut key);
        visit(doc, &row(view, (&segment.segment, doc), &key, &|at| columns.contains(&at))?);
    }
    Ok(())
}

/// The row of a document that is live in the view and has this key, with the columns at the wanted positions.
pub(super) fn row(
    view: &TableView,
    (segment, doc): (&Segment, u32),
    key: &[u8],
    wanted: &dyn Fn(usize) -> bool,
) -> Result<Row> {
    let version = RowVersion { segment: segment.number(), doc };
    view.rows.get(key, Some(version), wanted)?.ok_or_else(|| without_row(view))
}

/// The error for a document without a row.
pub(super) fn without_row(view: &TableView) -> Error {
    let table = &view.schema.name;
    Error::Corrupt(format!("table {table} indexes a row that the row store does not have"))
}

/// The columns of all text indexes of a table.
pub(super) fn text_columns(schema: &Schema) -> Vec<usize> {
    schema.texts.iter().flat_map(|text| text.columns.iter().copied()).collect()
}
