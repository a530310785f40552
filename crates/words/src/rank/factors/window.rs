//! `max_window_hits`: the most hits within a number of positions.

use std::collections::VecDeque;

use super::FieldFactors;
use crate::hits::Hit;

/// The hits of the current window.
#[derive(Clone, Debug)]
pub(super) struct HitWindow {
    width: i32,
    places: VecDeque<u32>,
}

/// Added to the place of the last hit of a field, so that no other hit is near it.
const END: u32 = 1 << 23;

impl HitWindow {
    pub fn new(width: i32) -> Self {
        Self { width, places: VecDeque::new() }
    }

    pub fn clear(&mut self) {
        self.places.clear();
    }

    pub fn follow(&mut self, hit: &Hit, field: &mut FieldFactors) {
        if self.width <= 1 {
            field.max_window_hits = 1;
            return;
        }
        let place = if hit.is_last { hit.at | END } else { hit.at };
        let width = self.width.cast_unsigned();
        while self.places.front().is_some_and(|first| first.wrapping_add(width) <= place) {
            self.places.pop_front();
        }
        self.places.push_back(place);
        field.max_window_hits = field.max_window_hits.max(self.places.len() as u32);
    }
}
