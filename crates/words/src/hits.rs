//! Places of keywords in a document, the hits that a query makes of them, and a document's match as a whole.
//!
//! `matching` makes hits, `rank` weighs them.

/// A keyword's place in a document: its field, its position there, and whether it is the field's last.
///
/// ```text
/// place := field:8 position:23 is_last:1        so that places ascend by field and position
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PackedPosition(pub u32);

/// The greatest position in a field.
pub const MAX_POSITION: u32 = (1 << 23) - 1;

impl PackedPosition {
    /// A place. Positions begin at 1.
    pub fn new(field: u8, position: u32, is_last: bool) -> Self {
        Self(u32::from(field) << 24 | position.min(MAX_POSITION) << 1 | u32::from(is_last))
    }

    /// The number of the field.
    pub fn field(self) -> u8 {
        (self.0 >> 24) as u8
    }

    /// The position in the field.
    pub fn position(self) -> u32 {
        self.0 >> 1 & MAX_POSITION
    }

    /// The place in the form of [`Hit::at`].
    pub(crate) fn number(self) -> u32 {
        u32::from(self.field()) << 24 | self.position()
    }

    /// Whether it is the field's last keyword.
    pub fn is_last(self) -> bool {
        self.0 & 1 == 1
    }
}

/// A match of a part of a query at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The field's number times 2^24 plus the position.
    pub at: u32,
    /// The word's position in the query.
    pub query_position: u32,
    /// For NEAR: the position of the operand that found it.
    pub node_position: u32,
    /// The number of words it represents.
    pub weight: u32,
    /// The number of query positions it spans.
    pub span: u32,
    /// The number of document positions it spans.
    pub length: u32,
    /// The other query positions it represents: one bit for each distance from `query_position`.
    pub others: u32,
    /// Whether it ends its field.
    pub is_last: bool,
}

impl Hit {
    /// The number of the field.
    pub fn field(&self) -> u8 {
        (self.at >> 24) as u8
    }

    /// The position in the field.
    pub fn position(&self) -> u32 {
        self.at & 0xFF_FFFF
    }

    /// The bit of its query position, modulo 32 as in Sphinx, which shifts a 64-bit number by it.
    pub(crate) fn query_bit(&self) -> u32 {
        1u64.wrapping_shl(self.query_position) as u32
    }

    /// The sort key of hits.
    pub(crate) fn order(&self) -> (u32, u32) {
        (self.at, self.query_position)
    }
}

/// The match of a query in a document.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Found {
    /// A bit for each of the first 32 fields with a match.
    pub fields: u32,
    /// The sum from which BM25 is computed.
    pub sum: f32,
}

/// The positions after the first one, ascending, as bits by distance; at most 32.
pub(crate) fn others(positions: &[u32]) -> u32 {
    let (first, others) = positions.split_first().unwrap_or((&0, &[]));
    let bit = |position: &u32| 1u32.checked_shl(position - first).unwrap_or(0);
    others.iter().fold(0, |mask, position| mask | bit(position))
}
