//! Estimates, before a search, how many values and ranges a filter looks up in path indexes; the engine bounds that.

use std::ops::Bound;

use remora_engine::{PathTest, PathValue};

/// The most ranges over several paths in one condition of the engine. Their number is the product
/// of the lengths of the lists of values.
const MAX_RANGES: usize = 10_000;
/// The most bytes of texts in a range, if there are several ranges.
const MAX_RANGE_BYTES: usize = 1_024;
/// The approximate bytes of a range without its texts.
const RANGE_BYTES: usize = 32;

/// The cost of several tests together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// The number of ranges of several paths.
    pub ranges: usize,
    /// The approximate bytes of these ranges and of the conditions that have them.
    pub bytes: usize,
    /// The number of values in lists. The engine limits their number in the whole filter.
    pub values: usize,
}

impl Cost {
    /// The most that a whole filter may cost, for all its indexes together. The engine refuses a filter with more
    /// values.
    pub const MOST: Self = Self { ranges: 100_000, bytes: 16 << 20, values: 1_000_000 };

    /// The rest after `other` is taken away; `None` if `other` is more.
    pub fn without(self, other: Self) -> Option<Self> {
        Some(Self {
            ranges: self.ranges.checked_sub(other.ranges)?,
            bytes: self.bytes.checked_sub(other.bytes)?,
            values: self.values.checked_sub(other.values)?,
        })
    }
}

/// The size of a test of one path.
#[derive(Clone, Copy)]
pub(super) struct Size {
    /// The number of its values; 1 for a range.
    pub values: usize,
    /// The bytes of its longest text.
    longest: usize,
}

impl Size {
    /// The size of a test. It looks at each value.
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
            PathTest::Exists | PathTest::Nested | PathTest::Container => (1, None),
            PathTest::Filled => (2, None),
        };
        Self { values, longest: longest.unwrap_or_default() }
    }
}

/// The ranges that the engine makes of tests of several paths, one path after the other.
#[derive(Clone, Copy)]
pub(super) struct Lists {
    /// The product of the numbers of values of all tests.
    ranges: usize,
    /// The most bytes of texts in one of the ranges.
    bytes: usize,
    /// The sum of the numbers of values.
    pub values: usize,
}

impl Lists {
    /// No test.
    pub const NONE: Self = Self { ranges: 1, bytes: 0, values: 0 };

    /// The ranges with one more test; `None` if they are too many.
    pub fn with(self, test: Size) -> Option<Self> {
        let ranges = self.ranges.saturating_mul(test.values.max(1));
        let bytes = self.bytes.saturating_add(test.longest);
        let fits = ranges <= MAX_RANGES && (ranges == 1 || bytes <= MAX_RANGE_BYTES);
        fits.then_some(Self { ranges, bytes, values: self.values.saturating_add(test.values) })
    }

    /// The cost of these ranges for an index whose paths have this many bytes.
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
