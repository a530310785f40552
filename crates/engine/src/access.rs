//! Access paths: the indexes that a request allows, and the ones that were chosen.

/// An order in which a table's rows can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableIndex {
    /// The primary key.
    Key,
    /// The secondary index at this place of [`crate::Schema::indexes`].
    Secondary(usize),
}

/// Some of a table's indexes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexSet(u128);

impl IndexSet {
    /// All that a table may have.
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

    /// Takes an index out.
    pub fn remove(&mut self, index: TableIndex) {
        self.0 &= !Self::bit(index);
    }

    /// Whether it is one of them.
    pub fn contains(self, index: TableIndex) -> bool {
        self.0 & Self::bit(index) != 0
    }

    /// Whether there are none.
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

/// Indexes that may be used for one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Those that may be.
    pub indexes: IndexSet,
    /// Whether one of them is used wherever that is possible, though a look at all rows may take less time.
    pub forced: bool,
}

impl Default for Allowed {
    fn default() -> Self {
        Self { indexes: IndexSet::ALL, forced: false }
    }
}

/// Which of a table's indexes a request may use. Text indexes are not among them: a condition on text is always
/// theirs, and a look-up of rows by their whole keys needs no leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllowedIndexes {
    /// To find the rows that a condition holds for.
    pub find: Allowed,
    /// To take rows in an order.
    pub order: Allowed,
}

/// How an index finds rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundBy {
    /// Which it is.
    pub index: TableIndex,
    /// Of how many leading columns the values are given.
    pub columns: usize,
    /// Whether the column behind them lies between bounds.
    pub is_bounded: bool,
    /// Whether there is one combination of those values; else several are looked up.
    pub is_single: bool,
}

/// How the rows of a request are found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessPath {
    /// By which indexes; none where every row is looked at.
    pub found_by: Vec<FoundBy>,
    /// Whether several of them are of conditions joined by OR; else segments differ in which leaves the fewest rows.
    pub is_union: bool,
    /// Whether the text index says first which rows there are.
    pub by_text: bool,
    /// The paths whose indexes do, by their places in [`crate::Schema::paths`].
    pub by_paths: Vec<usize>,
    /// What has the rows in the order that is asked for; `None` where they are sorted.
    pub ordered_by: Option<TableIndex>,
    /// The indexes that the condition says something of.
    pub possible: Vec<TableIndex>,
    /// How many rows are looked at.
    pub examined: u64,
    /// For how many of those the condition holds.
    pub matching: u64,
    /// How many segments there are.
    pub segments: usize,
    /// Of how many of them every row is looked at.
    pub scanned: usize,
}

/// How often an index answered since the directory was opened. A request counts once for each index that it uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexAnswers {
    /// Rows were looked up by their whole keys.
    pub lookups: u64,
    /// It found the rows whose leading columns have certain values.
    pub equalities: u64,
    /// The same where a column lies between bounds.
    pub ranges: u64,
    /// It gave rows in their order.
    pub orders: u64,
    /// Texts were searched.
    pub searches: u64,
}

/// How often each index of a table answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexUsage {
    /// The primary key.
    pub key: IndexAnswers,
    /// The secondary indexes, in the order of [`crate::Schema::indexes`].
    pub secondary: Vec<IndexAnswers>,
    /// The text indexes, in the order of [`crate::Schema::texts`].
    pub texts: Vec<IndexAnswers>,
}
