//! The order of returned rows, and the comparison of two rows.

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

/// Most parts of an ordering.
const MAX_PARTS: usize = 64;

/// An ordering whose names are resolved. Keys are unique, so that a key part ends it.
pub(super) struct Order {
    /// What comes before the key.
    pub parts: Vec<Part>,
    /// The direction of the key, which breaks ties.
    pub key_descending: bool,
}

/// One part of an ordering.
pub(super) struct Part {
    /// By what.
    pub by: PartBy,
    /// Largest first.
    pub descending: bool,
}

/// What a part is by.
pub(super) enum PartBy {
    /// The column of this number.
    Column(u32, ColumnType),
    /// The texts of the column of this number, by their keys in an order.
    Keyed(u32, TextOrder),
    /// The score.
    Score,
}

impl Order {
    /// Resolves an ordering; an empty one is by key, descending. Sorting by the one column of the
    /// primary key is sorting by key.
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
            parts.push(Part { by, descending });
        }
        Ok(Self { parts, key_descending: keys.last().is_none_or(|key| key.descending) })
    }

    /// Whether it is by key alone.
    pub fn is_by_key(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether the highest scores come first.
    pub fn begins_with_best(&self) -> bool {
        matches!(self.parts.first(), Some(Part { by: PartBy::Score, descending: true }))
    }

    /// Whether the key alone tells rows of one score apart.
    pub fn is_by_best_alone(&self) -> bool {
        self.begins_with_best() && self.parts.len() == 1 && !self.key_descending
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

/// An ordering over the documents of one segment.
pub(super) struct SegmentOrder<'v> {
    parts: Vec<SegmentPart<'v>>,
    keys: &'v Keys,
    key_descending: bool,
}

struct SegmentPart<'v> {
    values: PartValues<'v>,
    descending: bool,
}

enum PartValues<'v> {
    Column(Option<&'v Column>),
    Keyed(Option<&'v Column>, TextOrder),
    Score(&'v SegmentScores),
}

impl<'v> SegmentOrder<'v> {
    /// The order over one segment; `scores` are its own.
    pub fn new(order: &Order, view: &'v SegmentView, scores: Option<&'v SegmentScores>) -> Self {
        let values = |part: &Part| match (&part.by, scores) {
            (PartBy::Column(id, _), _) => PartValues::Column(view.segment.column(*id)),
            (PartBy::Keyed(id, order), _) => PartValues::Keyed(view.segment.column(*id), *order),
            (PartBy::Score, Some(scores)) => PartValues::Score(scores),
            (PartBy::Score, None) => PartValues::Column(None),
        };
        let parts = order.parts.iter();
        let parts = parts
            .map(|part| SegmentPart { values: values(part), descending: part.descending })
            .collect();
        Self { parts, keys: view.segment.keys(), key_descending: order.key_descending }
    }

    /// Calls `visit(rank, document)` with each live document of `docs`. The rank puts documents of
    /// this segment into the order of the first part; where it is the same for two documents they
    /// may still differ.
    pub fn for_each_ranked(
        &self,
        view: &SegmentView,
        docs: &Docs,
        mut visit: impl FnMut(u64, u32),
    ) {
        let Some(first) = self.parts.first() else { return };
        let flip = if first.descending { !0 } else { 0 };
        match &first.values {
            PartValues::Column(Some(column)) => {
                docs.for_each_live(view, |doc| visit(column.rank(doc) ^ flip, doc));
            }
            PartValues::Column(None) | PartValues::Keyed(None, _) => {
                docs.for_each_live(view, |doc| visit(0, doc));
            }
            PartValues::Keyed(Some(column), order) => {
                let mut key = Vec::new();
                docs.for_each_live(view, |doc| {
                    visit(rank(column.get(doc), *order, &mut key) ^ flip, doc)
                });
            }
            PartValues::Score(scores) => {
                scores.iter().for_each(|(doc, score)| visit(score_rank(score) ^ flip, doc));
            }
        }
    }

    /// How two documents of this segment that have the same rank follow each other.
    pub fn compare_ties(&self, a: u32, b: u32) -> Ordering {
        // The rank of a score is the score itself, that of a column may be a part of the value.
        let decided = usize::from(matches!(
            self.parts.first(),
            Some(SegmentPart { values: PartValues::Score(_), .. })
        ));
        for part in self.parts.iter().skip(decided) {
            let ordering = match &part.values {
                PartValues::Column(Some(column)) => column.compare(a, b),
                PartValues::Column(None) => Ordering::Equal,
                PartValues::Keyed(..) => part.compare(part.cell(a), part.cell(b)),
                PartValues::Score(scores) => scores.get(a).total_cmp(&scores.get(b)),
            };
            if ordering.is_ne() {
                return directed(ordering, part.descending);
            }
        }
        directed(a.cmp(&b), self.key_descending)
    }

    /// How a document follows one of another segment.
    pub fn compare_across(&self, doc: u32, other: &SegmentOrder<'_>, other_doc: u32) -> Ordering {
        for (part, theirs) in self.parts.iter().zip(&other.parts) {
            let ordering = part.compare(part.cell(doc), theirs.cell(other_doc));
            if ordering.is_ne() {
                return directed(ordering, part.descending);
            }
        }
        directed(self.keys.compare(doc, other.keys, other_doc), self.key_descending)
    }

    /// The cells of a document that a cursor remembers.
    pub fn cells(&self, doc: u32) -> impl Iterator<Item = Cell<'_>> {
        self.parts.iter().map(move |part| part.cell(doc))
    }

    /// Tells for a document whether it lies behind a cursor.
    pub fn is_after<'a>(&'a self, after: &'a After) -> impl Fn(u32) -> bool + 'a {
        let seat = KeySeat::new(self.keys, &after.key);
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

/// A number that orders scores, negative ones too.
fn score_rank(score: f64) -> u64 {
    let bits = score.to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// A number that orders texts as the beginnings of their keys do.
fn rank(cell: Cell<'_>, order: TextOrder, key: &mut Vec<u8>) -> u64 {
    let Cell::Bytes(text) = cell else { return 0 };
    order.write_key(text, key);
    let mut first = [0; 8];
    first.iter_mut().zip(key).for_each(|(slot, byte)| *slot = *byte);
    u64::from_be_bytes(first)
}

impl SegmentPart<'_> {
    /// The value of this part.
    fn cell(&self, doc: u32) -> Cell<'_> {
        match &self.values {
            PartValues::Column(column) | PartValues::Keyed(column, _) => {
                column.map_or(Cell::Null, |column| column.get(doc))
            }
            PartValues::Score(scores) => Cell::Ordinal(score_rank(scores.get(doc))),
        }
    }

    /// How two values of this part stand to each other; of texts that are in an order by their keys.
    fn compare(&self, one: Cell<'_>, other: Cell<'_>) -> Ordering {
        match (&self.values, one, other) {
            (PartValues::Keyed(_, order), Cell::Bytes(one), Cell::Bytes(other)) if one != other => {
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
pub(super) struct After {
    /// Its values in the parts of the order.
    pub cells: Vec<OwnedCell>,
    /// Its encoded key.
    pub key: Vec<u8>,
}

/// Where a key lies among the documents of a segment.
pub(super) struct KeySeat {
    /// The documents below it.
    pub below: u32,
    /// Whether the next document has the key itself.
    pub is_there: bool,
}

impl KeySeat {
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
    /// The encoded key, put into `key`.
    pub fn read_key(self, view: &TableView, key: &mut Vec<u8>) {
        key.clear();
        if let Some(segment) = view.segments.get(self.segment) {
            segment.segment.keys().read(self.doc, key);
        }
    }
}
