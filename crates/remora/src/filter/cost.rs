//! Estimates, before a search, how many values and ranges a filter looks up in path indexes; the engine bounds that.

use std::ops::Bound;

use remora_engine::{PathTest, PathValue};

/// Most ranges of several paths that the engine is asked for at once: their lists of values, multiplied.
const MAX_RANGES: usize = 10_000;
/// Most bytes of the texts in each, where there are several.
const MAX_RANGE_BYTES: usize = 1_024;
/// What a range has beside its texts, about.
const RANGE_BYTES: usize = 32;

/// What tests cost, all together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// Ranges of several paths.
    pub ranges: usize,
    /// Bytes of those, and of what asks for them, about.
    pub bytes: usize,
    /// Values in lists, which the engine counts wherever they stand.
    pub values: usize,
}

impl Cost {
    /// Most of a whole filter, whatever indexes it asks. The engine refuses one with more values.
    pub const MOST: Self = Self { ranges: 100_000, bytes: 16 << 20, values: 1_000_000 };

    /// What is left of it; `None` if the other is more.
    pub fn without(self, other: Self) -> Option<Self> {
        Some(Self {
            ranges: self.ranges.checked_sub(other.ranges)?,
            bytes: self.bytes.checked_sub(other.bytes)?,
            values: self.values.checked_sub(other.values)?,
        })
    }
}

/// How large a test of one path is.
#[derive(Clone, Copy)]
pub(super) struct Size {
    /// Its values; one where it is a range.
    pub values: usize,
    /// The bytes of its longest text.
    longest: usize,
}

impl Size {
    /// That of a test. Cost: a look at each value.
    pub fn of(test: &PathTest) -> Self {
        let (values, longest) = match test {
            PathTest::In(values) => (values.len(), values.iter().map(bytes_of).max()),
            PathTest::Begins(text) => (1, Some(text.len())),
            PathTest::Within(low, high) => {
                let bytes = |bound: &Bound<PathValue>| match bound {
                    Bound::Included(value) | Bound::Excluded(value) => bytes_of(value),
                    Bound::Unbounded => 0,
                };
                (1, Some(bytes(low).max(bytes(high))))
            }
            PathTest::Exists | PathTest::Nested => (1, None),
        };
        Self { values, longest: longest.unwrap_or_default() }
    }
}

/// The tests of several paths, one after the other: what the engine makes of them.
#[derive(Clone, Copy)]
pub(super) struct Lists {
    /// The numbers of their values, multiplied.
    ranges: usize,
    /// Most bytes of texts in one of the ranges.
    bytes: usize,
    /// Their values, added.
    pub values: usize,
}

impl Lists {
    /// No test.
    pub const NONE: Self = Self { ranges: 1, bytes: 0, values: 0 };

    /// With one more; `None` if that is too many.
    pub fn with(self, test: Size) -> Option<Self> {
        let ranges = self.ranges.saturating_mul(test.values.max(1));
        let bytes = self.bytes.saturating_add(test.longest);
        let fits = ranges <= MAX_RANGES && (ranges == 1 || bytes <= MAX_RANGE_BYTES);
        fits.then_some(Self { ranges, bytes, values: self.values.saturating_add(test.values) })
    }

    /// What they cost of an index whose paths have so many bytes.
    pub fn cost(self, path_bytes: usize) -> Cost {
        let of_one = self.bytes.saturating_add(RANGE_BYTES);
        let bytes = self.ranges.saturating_mul(2).saturating_mul(of_one);
        Cost { ranges: self.ranges, bytes: bytes.saturating_add(path_bytes), values: self.values }
    }
}

fn bytes_of(value: &PathValue) -> usize {
    match value {
        PathValue::Text(text) => text.len(),
        _ => 0,
    }
}
