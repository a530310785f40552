//! Access paths: the indexes that a request allows, and the ones that were chosen.

/// An index of a table: an order in which its rows can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableIndex {
    /// The primary key.
    Key,
    /// The secondary index at this position in [`crate::Schema::indexes`].
    Secondary(usize),
}

/// A set of a table's indexes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexSet(u128);

impl IndexSet {
    /// All indexes that a table may have.
    pub const ALL: Self = Self(u128::MAX);

    fn bit(index: TableIndex) -> u128 {
        let place = match index {
            TableIndex::Key => 0,
            TableIndex::Secondary(place) => place.saturating_add(1),
        };
        u32::try_from(place).ok().and_then(|place| 1_u128.checked_shl(place)).unwrap_or(0)
    }

    /// Adds an index.
    pub fn insert(&mut self, index: TableIndex) {
        self.0 |= Self::bit(index);
    }

    /// Removes an index.
    pub fn remove(&mut self, index: TableIndex) {
        self.0 &= !Self::bit(index);
    }

    /// Whether the set contains the index.
    pub fn contains(self, index: TableIndex) -> bool {
        self.0 & Self::bit(index) != 0
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<TableIndex> for IndexSet {
    fn from_iter<I: IntoIterator<Item = TableIndex>>(indexes: I) -> Self {
        let mut set = Self::default();
        indexes.into_iter().for_each(|index| set.insert(index));
        set
    }
}

/// The indexes that may be used for one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// The allowed indexes.
    pub indexes: IndexSet,
    /// Whether one of them must be used if possible, even if a full scan is cheaper.
    pub forced: bool,
}

impl Default for Allowed {
    fn default() -> Self {
        Self { indexes: IndexSet::ALL, forced: false }
    }
}

/// The indexes that a request may use (index hints). Text indexes are not included: a text condition always uses
/// them. Look-ups of rows by full key are always allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllowedIndexes {
    /// The indexes for finding the rows that satisfy a condition.
    pub find: Allowed,
    /// The indexes for reading rows in an order.
    pub order: Allowed,
}

/// How an index finds rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundBy {
    /// The index.
    pub index: TableIndex,
    /// The number of leading columns with given values.
    pub columns: usize,
    /// Whether the next column has bounds.
    pub is_bounded: bool,
    /// Whether there is a single combination of values; otherwise several are looked up.
    pub is_single: bool,
    /// Whether its rows were intersected with those of another index.
    pub is_intersected: bool,
}

/// The access path of a request: how its rows are found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessPath {
    /// The key and secondary indexes used to find rows; empty if there are none, as in a full scan.
    pub found_by: Vec<FoundBy>,
    /// Whether several indexes are the alternatives of an OR. Otherwise several mean that their rows are intersected
    /// ([`FoundBy::is_intersected`]), or that segments differ in which index is the most selective.
    pub is_union: bool,
    /// Whether a text index finds the rows first.
    pub by_text: bool,
    /// The paths whose indexes are used, by their positions in [`crate::Schema::paths`].
    pub by_paths: Vec<usize>,
    /// The index that has the requested order; `None` if rows are sorted.
    pub ordered_by: Option<TableIndex>,
    /// The path whose index has the requested order, by its position in [`crate::Schema::paths`].
    pub ordered_by_path: Option<usize>,
    /// The indexes that could be used for the condition.
    pub possible: Vec<TableIndex>,
    /// The number of rows examined.
    pub examined: u64,
    /// The number of those that satisfy the condition.
    pub matching: u64,
    /// The number of segments.
    pub segments: usize,
    /// The number of segments that are fully scanned.
    pub scanned: usize,
}

/// Usage counters of an index since the data directory was opened. A request counts once for each index that it
/// uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexAnswers {
    /// Look-ups of rows by full key.
    pub lookups: u64,
    /// Uses to find rows by equality on leading columns.
    pub equalities: u64,
    /// Uses to find rows by a range of a column.
    pub ranges: u64,
    /// Uses to read rows in order.
    pub orders: u64,
    /// Text searches.
    pub searches: u64,
}

/// Usage counters of all indexes of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexUsage {
    /// The primary key.
    pub key: IndexAnswers,
    /// The secondary indexes, in the order of [`crate::Schema::indexes`].
    pub secondary: Vec<IndexAnswers>,
    /// The text indexes, in the order of [`crate::Schema::texts`].
    pub texts: Vec<IndexAnswers>,
}
