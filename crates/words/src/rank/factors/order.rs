//! `exact_order`: whether the words of the query occur in its order; others may be between them.

use super::{FieldFactors, words::FactorWords};
use crate::hits::Hit;

/// How many words have occurred in order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Order {
    field: Option<u8>,
    last: u32,
    count: u32,
}

impl Order {
    pub fn follow(&mut self, hit: &Hit, words: &FactorWords, field: &mut FieldFactors) {
        if self.field != Some(hit.field()) {
            *self = Self { field: Some(hit.field()), last: 0, count: 0 };
        }
        if hit.query_position == self.last + 1 {
            self.count += 1;
            self.last += 1;
            field.exact_order |= self.count == words.distinct;
        }
    }
}
