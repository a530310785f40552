//! ORDER BY, resolved: the comparison of two rows.

use std::cmp::Ordering;

use remora_index::{
    Keys, TextOrder,
    column::{Cell, Column},
};

use super::{columns::indexed, docs::Docs, literal::OwnedCell, score::SegmentScores};
use crate::{
    ColumnType, Error, RequestPart, Result, Schema, SortBy, SortKey,
    schema::text_order,
    snapshot::{SegmentView, TableView},
};

/// The most parts of an ordering.
const MAX_PARTS: usize = 64;

/// An ordering with resolved names. Keys are unique, so that a key part ends it.
pub(super) struct Order {
    /// The parts before the key.
    pub parts: Vec<OrderPart>,
    /// The direction of the key, which breaks ties.
    pub key_descending: bool,
}

/// One part of an ordering.
pub(super) struct OrderPart {
    /// The value it sorts by.
    pub by: PartBy,
    /// Whether the largest value comes first.
    pub descending: bool,
}

/// The value that a part sorts by.
pub(super) enum PartBy {
    /// The column with this id.
    Column(u32, ColumnType),
    /// The texts of the column with this id, by their sort keys in a text order.
    Keyed(u32, TextOrder),
    /// The score.
    Score,
}

impl Order {
    /// Resolves an ordering. An empty one is by key, descending. If the primary key has one column, sorting by
    /// that column is sorting by key.
    pub fn new(schema: &Schema, keys: &[SortKey]) -> Result<Self> {
        if keys.len() > MAX_PARTS {
            let message = format!("The order has more than {MAX_PARTS} parts; name fewer");
            return Err(Error::request(RequestPart::Sort, message));
        }
        let mut parts = Vec::with_capacity(keys.len());
        for key in keys {
            let descending = key.descending;
            let by = match &key.by {
                SortBy::Key => return Ok(Self { parts, key_descending: descending }),
                SortBy::Score => PartBy::Score,
                SortBy::Column(name) if is_key(schema, name) => {
                    return Ok(Self { parts, key_descending: descending });
                }
                SortBy::Column(name) => {
                    let column = indexed(schema, name, RequestPart::Sort)?;
                    PartBy::Column(column.id, column.kind)
                }
                SortBy::TextKey(name, order) => {
                    let column = indexed(schema, name, RequestPart::Sort)?;
                    let known = text_order(*order).filter(|_| column.kind == ColumnType::Text);
                    let order = known.ok_or_else(|| {
                        let message = format!("'{name}' has no order {order}");
                        Error::request(RequestPart::Sort, message)
                    })?;
                    PartBy::Keyed(column.id, order)
                }
            };
            parts.push(OrderPart { by, descending });
        }
        Ok(Self { parts, key_descending: keys.last().is_none_or(|key| key.descending) })
    }

    /// Whether the order is by key alone.
    pub fn is_by_key(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether the highest scores come first.
    pub fn begins_with_best(&self) -> bool {
        matches!(self.parts.first(), Some(OrderPart { by: PartBy::Score, descending: true }))
    }

    /// Whether the order is by score, highest first, then by key.
    pub fn is_by_best_alone(&self) -> bool {
        self.begins_with_best() && self.parts.len() == 1 && !self.key_descending
    }

    /// Whether texts are compared by their sort keys.
    pub fn has_text_keys(&self) -> bool {
        self.parts.iter().any(|part| matches!(part.by, PartBy::Keyed(..)))
    }

    /// Whether rows must be scored.
    pub fn needs_scores(&self) -> bool {
        self.parts.iter().any(|part| matches!(part.by, PartBy::Score))
    }
}

fn is_key(schema: &Schema, name: &str) -> bool {
    match (schema.primary_key.as_slice(), super::columns::position(schema, name)) {
        ([only], Some(position)) => *only == position,
        _ => false,
    }
}

/// An ordering of the documents of one segment.
pub(super) struct SegmentOrder<'v> {
    parts: Vec<SegmentPart<'v>>,
    keys: &'v Keys,
    key_descending: bool,
}

struct SegmentPart<'v> {
    values: SortValues<'v>,
    descending: bool,
}

enum SortValues<'v> {
    Column(Option<&'v Column>),
    Keyed(Option<&'v Column>, TextOrder),
    Score(&'v SegmentScores),
}

impl<'v> SegmentOrder<'v> {
    /// The ordering of one segment; `scores` are those of the segment.
    pub fn new(order: &Order, view: &'v SegmentView, scores: Option<&'v SegmentScores>) -> Self {
        let values = |part: &OrderPart| match (&part.by, scores) {
            (PartBy::Column(id, _), _) => SortValues::Column(view.segment.column(*id)),
            (PartBy::Keyed(id, order), _) => SortValues::Keyed(view.segment.column(*id), *order),
            (PartBy::Score, Some(scores)) => SortValues::Score(scores),
            (PartBy::Score, None) => SortValues::Column(None),
        };
        let parts = order.parts.iter();
        let parts = parts
            .map(|part| SegmentPart { values: values(part), descending: part.descending })
            .collect();
        Self { parts, keys: view.segment.keys(), key_descending: order.key_descending }
    }

    /// Calls `visit(rank, document)` with each live document of `docs`. Ranks order the documents of this segment
    /// by the first part. Documents with equal ranks may still differ in it.
    pub fn for_each_ranked(
        &self,
        view: &SegmentView,
        docs: &Docs,
        mut visit: impl FnMut(u64, u32),
    ) {
        let Some(first) = self.parts.first() else { return };
        let flip = if first.descending { !0 } else { 0 };
        match &first.values {
            SortValues::Column(Some(column)) => {
                docs.for_each_live(view, |doc| visit(column.rank(doc) ^ flip, doc));
            }
            SortValues::Column(None) | SortValues::Keyed(None, _) => {
                docs.for_each_live(view, |doc| visit(0, doc));
            }
            SortValues::Keyed(Some(column), order) => {
                let mut key = Vec::new();
                docs.for_each_live(view, |doc| {
                    visit(rank(column.get(doc), *order, &mut key) ^ flip, doc)
                });
            }
            SortValues::Score(scores) => {
                scores.iter().for_each(|(doc, score)| visit(score_rank(score) ^ flip, doc));
            }
        }
    }

    /// Compares two documents of this segment with equal ranks.
    pub fn compare_ties(&self, a: u32, b: u32) -> Ordering {
        // The rank of a score is exact; that of a column may be a prefix of the value.
        let decided = usize::from(matches!(
            self.parts.first(),
            Some(SegmentPart { values: SortValues::Score(_), .. })
        ));
        for part in self.parts.iter().skip(decided) {
            let ordering = match &part.values {
                SortValues::Column(Some(column)) => column.compare(a, b),
                SortValues::Column(None) => Ordering::Equal,
                SortValues::Keyed(..) => part.compare(part.cell(a), part.cell(b)),
                SortValues::Score(scores) => scores.get(a).total_cmp(&scores.get(b)),
            };
            if ordering.is_ne() {
                return directed(ordering, part.descending);
            }
        }
        directed(a.cmp(&b), self.key_descending)
    }

    /// Compares a document with one of another segment.
    pub fn compare_across(&self, doc: u32, other: &SegmentOrder<'_>, other_doc: u32) -> Ordering {
        for (part, theirs) in self.parts.iter().zip(&other.parts) {
            let ordering = part.compare(part.cell(doc), theirs.cell(other_doc));
            if ordering.is_ne() {
                return directed(ordering, part.descending);
            }
        }
        directed(self.keys.compare(doc, other.keys, other_doc), self.key_descending)
    }

    /// The sort key of a document in the first part, if that has a text order and the document a text.
    pub fn first_key(&self, doc: u32) -> Option<Vec<u8>> {
        let part = self.parts.first()?;
        let SortValues::Keyed(_, order) = &part.values else { return None };
        let Cell::Bytes(text) = part.cell(doc) else { return None };
        let mut key = Vec::new();
        order.write_key(text, &mut key);
        Some(key)
    }

    /// The order of two documents whose sort keys in the first part compare so.
    pub fn by_first(&self, ordering: Ordering) -> Ordering {
        directed(ordering, self.parts.first().is_some_and(|part| part.descending))
    }

    /// The cells of a document that are stored in a cursor.
    pub fn cells(&self, doc: u32) -> impl Iterator<Item = Cell<'_>> {
        self.parts.iter().map(move |part| part.cell(doc))
    }

    /// A test for whether a document comes after a cursor.
    pub fn is_after<'a>(&'a self, after: &'a PageStart) -> impl Fn(u32) -> bool + 'a {
        let seat = KeyPosition::new(self.keys, &after.key);
        move |doc| {
            for (part, cell) in self.parts.iter().zip(&after.cells) {
                let ordering = part.compare(part.cell(doc), cell.as_cell());
                if ordering.is_ne() {
                    return directed(ordering, part.descending).is_gt();
                }
            }
            directed(seat.compare(doc), self.key_descending).is_gt()
        }
    }
}

/// A number that orders scores, including negative ones.
fn score_rank(score: f64) -> u64 {
    let bits = score.to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// A number that orders texts by the first bytes of their sort keys.
fn rank(cell: Cell<'_>, order: TextOrder, key: &mut Vec<u8>) -> u64 {
    let Cell::Bytes(text) = cell else { return 0 };
    order.write_key(text, key);
    let mut first = [0; 8];
    first.iter_mut().zip(key).for_each(|(slot, byte)| *slot = *byte);
    u64::from_be_bytes(first)
}

impl SegmentPart<'_> {
    /// The document's value of this part.
    fn cell(&self, doc: u32) -> Cell<'_> {
        match &self.values {
            SortValues::Column(column) | SortValues::Keyed(column, _) => {
                column.map_or(Cell::Null, |column| column.get(doc))
            }
            SortValues::Score(scores) => Cell::Ordinal(score_rank(scores.get(doc))),
        }
    }

    /// Compares two values of this part; texts with a text order by their sort keys.
    fn compare(&self, one: Cell<'_>, other: Cell<'_>) -> Ordering {
        match (&self.values, one, other) {
            (SortValues::Keyed(_, order), Cell::Bytes(one), Cell::Bytes(other)) if one != other => {
                let (mut mine, mut theirs) = (Vec::new(), Vec::new());
                order.write_key(one, &mut mine);
                order.write_key(other, &mut theirs);
                mine.cmp(&theirs)
            }
            _ => one.cmp(&other),
        }
    }
}

/// The row behind which a page starts.
pub(super) struct PageStart {
    /// The values in the parts of the order.
    pub cells: Vec<OwnedCell>,
    /// The encoded key.
    pub key: Vec<u8>,
}

/// The position of a key among the documents of a segment.
pub(super) struct KeyPosition {
    /// The number of documents below it.
    pub below: u32,
    /// Whether the next document has exactly this key.
    pub is_there: bool,
}

impl KeyPosition {
    /// Looks the key up: O(log documents).
    pub fn new(keys: &Keys, key: &[u8]) -> Self {
        let below = keys.lower_bound(key);
        let mut found = Vec::new();
        keys.read(below, &mut found);
        Self { below, is_there: below < keys.len() && found == key }
    }

    /// How a document's key compares with the key.
    fn compare(&self, doc: u32) -> Ordering {
        match doc.cmp(&self.below) {
            Ordering::Equal if !self.is_there => Ordering::Greater,
            ordering => ordering,
        }
    }

    /// The documents behind it in this direction.
    pub fn behind(&self, descending: bool) -> std::ops::Range<u32> {
        if descending {
            0..self.below
        } else {
            self.below.saturating_add(u32::from(self.is_there))..u32::MAX
        }
    }
}

fn directed(ordering: Ordering, descending: bool) -> Ordering {
    if descending { ordering.reverse() } else { ordering }
}

/// One document of a view.
#[derive(Clone, Copy, Debug)]
pub(super) struct DocumentAddress {
    /// The segment's position in the view.
    pub segment: usize,
    /// The document.
    pub doc: u32,
}

impl DocumentAddress {
    /// Writes the encoded key to `key`.
    pub fn read_key(self, view: &TableView, key: &mut Vec<u8>) {
        key.clear();
        if let Some(segment) = view.segments.get(self.segment) {
            segment.segment.keys().read(self.doc, key);
        }
    }
}
