//! Predicates on one column.

use std::ops::{Bound, RangeBounds};

use super::{Cell, ColumnKind};
use crate::TextOrder;

/// A predicate on one column. NULL satisfies only [`Predicate::IsNull`].
#[derive(Clone, Debug)]
pub enum Predicate {
    /// The value is NULL.
    IsNull,
    /// The value is within the bounds.
    OrdinalRange(Bound<u64>, Bound<u64>),
    /// The value is one of these (sorted, distinct).
    OrdinalIn(Vec<u64>),
    /// The value is within the bounds.
    BytesRange(Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// The value is one of these (sorted, distinct).
    BytesIn(Vec<Vec<u8>>),
}

impl Predicate {
    /// Whether the predicate applies to columns of this kind.
    pub(super) fn fits(&self, kind: ColumnKind) -> bool {
        match self {
            Self::IsNull => true,
            Self::OrdinalRange(..) | Self::OrdinalIn(_) => kind == ColumnKind::Ordinal,
            Self::BytesRange(..) | Self::BytesIn(_) => kind == ColumnKind::Bytes,
        }
    }

    /// Whether a value satisfies the predicate; a value of another kind does not.
    pub fn matches(&self, cell: Cell<'_>) -> bool {
        match (cell, self) {
            (Cell::Null, Self::IsNull) => true,
            (Cell::Ordinal(value), Self::OrdinalRange(low, high)) => (*low, *high).contains(&value),
            (Cell::Ordinal(value), Self::OrdinalIn(values)) => values.binary_search(&value).is_ok(),
            (Cell::Bytes(value), Self::BytesRange(low, high)) => {
                let bounds = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
                RangeBounds::<[u8]>::contains(&bounds, value)
            }
            (Cell::Bytes(value), Self::BytesIn(values)) => {
                values.binary_search_by(|other| other.as_slice().cmp(value)).is_ok()
            }
            _ => false,
        }
    }

    /// Whether the sort key of a text, in a text order, satisfies the predicate; otherwise as
    /// [`Self::matches`]. `key` is a scratch buffer.
    pub fn matches_by_key(&self, order: TextOrder, cell: Cell<'_>, key: &mut Vec<u8>) -> bool {
        match cell {
            Cell::Bytes(text) => {
                order.write_key(text, key);
                self.matches(Cell::Bytes(key))
            }
            cell => self.matches(cell),
        }
    }
}

/// The least and the greatest number within the bounds, if any is.
pub(super) fn inclusive(low: Bound<u64>, high: Bound<u64>) -> Option<(u64, u64)> {
    let low = match low {
        Bound::Included(low) => low,
        Bound::Excluded(low) => low.checked_add(1)?,
        Bound::Unbounded => 0,
    };
    let high = match high {
        Bound::Included(high) => high,
        Bound::Excluded(high) => high.checked_sub(1)?,
        Bound::Unbounded => u64::MAX,
    };
    (low <= high).then_some((low, high))
}
