//! Conditions on the leading columns of secondary indexes.
//!
//! Documents whose first columns have given values, and whose next one lies in a range, are ranges of an index; two
//! binary searches find each range. The lengths of the ranges give the number of candidates before any is read. The
//! whole condition is then evaluated on the candidates.
//!
//! The documents of two indexes are intersected, as bitmaps, where that is cheaper. For an index that finds few documents
//! it is not, as long as the other column has numbers or few values: a test costs less than a position of an index.
//! It is if the test makes a sort key for each document, and if each index alone would find too many. Measured with
//! `examples/intersections.rs` (300,000 rows in one segment; microseconds for COUNT(*) of `a = 1 AND b = 2`; -O3):
//!
//! ```text
//! share of a, b                 columns   index of a, tests of b   both indexes
//! 1 %,  2 %                         394                       36             42
//! 0.5 %, 2 % (50 texts)             402                       33             49
//! 2 %,  2 % (50 texts)              421                       76             69
//! 1 %,  4 % (range of texts)      1,436                    1,044             95
//! 4 % (range of texts), 5 %     193,902                    9,669            290
//! 5 %, 10 %                         765                 not used            195
//! ```

use std::{
    cmp::Ordering,
    ops::{Bound, Range},
};

use remora_index::{
    Bitmap,
    column::{Cell, Column, Predicate},
    segment::{IndexPart, IndexSpec, Segment, SegmentIndex},
};

use super::{
    candidates::Candidates,
    filter::{CompiledFilter, Conjunct},
    literal::OwnedCell,
};
use crate::{FoundBy, IndexSet, Schema, TableIndex, indexing::allowed_specs};

/// If more than one in this many documents is a candidate, reading the columns is cheaper.
const CANDIDATE_SHARE: u32 = 32;
/// A search of an index costs about as much as reading this many values of a column. For an index with a text
/// order the unit is a sort key instead.
const SEARCH_COST: usize = 512;
pub(super) const KEYED_SEARCH_COST: usize = 32;
/// As [`CANDIDATE_SHARE`], for an index with a text order, where the alternative computes a sort key for each text.
pub(super) const KEYED_CANDIDATE_SHARE: u32 = 2;

/// A sort key costs as much as reading this many positions of an index into a bitmap; so much less does the test of a
/// candidate without a sort key cost, that it counts as one.
const KEY_COST: u64 = 64;
/// Passing over so many documents of a bitmap costs as much as reading one position of an index.
const DOCS_OF_POSITION: u32 = 256;
/// If two indexes find no more than one in this many documents together, intersecting them is cheaper than reading columns.
const INTERSECTED_SHARE: u32 = 4;
/// If more than one in this many documents is found, a bitmap sorts them sooner than a sort.
const SORTED_SHARE: u32 = 128;

/// A condition as ranges of each usable index.
pub(super) struct IndexRanges(Vec<ConditionRanges>);

/// What an index finds in a segment.
struct FoundRanges<'a, 's> {
    asked: &'a ConditionRanges,
    index: SegmentIndex<'s>,
    /// Ranges of its positions.
    ranges: Vec<Range<u32>>,
    /// The number of these positions.
    count: u32,
}

impl FoundRanges<'_, '_> {
    /// Whether it is cheaper to intersect the documents with those of another index than to test them in columns, or, if
    /// they are so many, to read all of the columns.
    fn is_worth(&self, other: &Self, segment: &Segment) -> bool {
        let mut untold = other
            .asked
            .columns()
            .filter(|part| self.asked.columns().all(|told| told.column != part.column));
        let Some(first) = untold.next() else { return false };
        let all = segment.doc_count();
        if self.count > all / self.asked.candidate_share() {
            return self.count.saturating_add(other.count) <= all / INTERSECTED_SHARE;
        }
        // A dictionary needs a sort key for each of its values.
        let keys = |part: &IndexPart| {
            let values = segment.column(part.column).and_then(Column::value_count);
            let made = part.order.map_or(0, |_| values.unwrap_or(u32::MAX).min(self.count));
            u64::from(made) * KEY_COST
        };
        let keys: u64 = untold.chain([first]).map(keys).sum();
        u64::from(other.count) + u64::from(all / DOCS_OF_POSITION) < u64::from(self.count) + keys
    }

    fn bits(&self, all: u32) -> Bitmap {
        let mut bits = Bitmap::new(all);
        for at in self.ranges.iter().cloned().flatten() {
            bits.insert(self.index.doc(at));
        }
        bits
    }

    /// The documents, ascending.
    fn docs(&self, all: u32) -> Vec<u32> {
        if self.count > all / SORTED_SHARE {
            return self.bits(all).iter().collect();
        }
        let positions = self.ranges.iter().cloned().flatten();
        let mut docs: Vec<u32> = positions.map(|at| self.index.doc(at)).collect();
        docs.sort_unstable();
        docs
    }
}

/// A condition as ranges of one index.
pub(super) struct ConditionRanges {
    index: TableIndex,
    spec: IndexSpec,
    /// For each leading column fixed by `=` or IN, its values.
    values: Vec<Vec<OwnedCell>>,
    /// The bounds of the next column.
    bounds: Option<(Bound<OwnedCell>, Bound<OwnedCell>)>,
    /// Whether that is equivalent to the whole condition.
    is_all: bool,
}

impl IndexRanges {
    /// The ranges; `None` if no allowed index helps.
    pub fn new(schema: &Schema, condition: &CompiledFilter, allowed: IndexSet) -> Option<Self> {
        if schema.indexes.is_empty() {
            return None;
        }
        let conjuncts = condition.conjuncts();
        let specs = allowed_specs(schema, allowed).into_iter();
        let asked = specs.filter_map(|(index, spec)| ConditionRanges::new(index, spec, &conjuncts));
        let mut asked: Vec<ConditionRanges> = asked.collect();
        asked.iter_mut().for_each(|it| it.is_all = it.is_equivalent(condition));
        (!asked.is_empty()).then_some(Self(asked))
    }

    /// The candidate documents of a segment by the most selective index, or by two intersected, with the indexes and
    /// whether all candidates satisfy the condition. `None` if reading the columns is cheaper, unless the index is
    /// `forced`.
    pub fn candidates(&self, segment: &Segment, forced: bool) -> Option<Candidates> {
        let all = segment.doc_count();
        let mut found = self.found(segment, forced);
        found.sort_by_key(|it| it.count);
        let first = found.first()?;
        if let Some(second) = found.iter().skip(1).find(|it| first.is_worth(it, segment)) {
            let mut docs = first.bits(all);
            docs.intersect(&second.bits(all));
            let found = [first, second].map(|it| it.asked.found_by());
            let found = found.map(|it| FoundBy { is_intersected: true, ..it });
            return Some(Candidates::of(docs.iter().collect(), found, false));
        }
        let share = if forced { 1 } else { first.asked.candidate_share() };
        let is_few = first.count <= all / share;
        let found_by = first.asked.found_by();
        is_few.then(|| Candidates::of(first.docs(all), [found_by], first.asked.is_all))
    }

    /// The number of candidates by the most selective index.
    pub fn count(&self, segment: &Segment, forced: bool) -> Option<u32> {
        self.found(segment, forced).iter().map(|it| it.count).min()
    }

    /// What each index finds in a segment.
    fn found<'s>(&self, segment: &'s Segment, forced: bool) -> Vec<FoundRanges<'_, 's>> {
        let mut found = Vec::with_capacity(self.0.len());
        for asked in &self.0 {
            let Some(index) = segment.index(&asked.spec) else { continue };
            let Some(ranges) = asked.ranges(&index, forced) else { continue };
            let count = ranges.iter().map(Range::len).sum::<usize>();
            let Ok(count) = u32::try_from(count) else { continue };
            found.push(FoundRanges { asked, index, ranges, count });
        }
        found
    }

    /// The greatest number of searches that one of the indexes needs.
    pub fn most_searches(&self) -> usize {
        self.0.iter().map(ConditionRanges::searches).max().unwrap_or(0)
    }

    /// Whether all of the indexes have a text order.
    pub fn is_keyed(&self) -> bool {
        self.0.iter().all(ConditionRanges::is_keyed)
    }

    /// The usable indexes.
    pub fn possible(&self) -> impl Iterator<Item = TableIndex> {
        self.0.iter().map(|asked| asked.index)
    }
}

impl ConditionRanges {
    /// Conditions as ranges of an index; `None` if they do not restrict its first column.
    pub fn new(index: TableIndex, spec: IndexSpec, conjuncts: &[Conjunct<'_>]) -> Option<Self> {
        let (mut values, mut bounds) = (Vec::new(), None);
        for part in &spec.parts {
            // NULL has no sort key, and is found in any order.
            let of_part = |it: &&Conjunct<'_>| {
                let is_null = matches!(it.predicate, Predicate::IsNull);
                it.id == part.column && (it.order == part.order || is_null)
            };
            match ColumnConstraint::of(conjuncts.iter().filter(of_part).map(|it| it.predicate)) {
                ColumnConstraint::Values(of_part) => values.push(of_part),
                ColumnConstraint::Bounds(low, high) => {
                    bounds = Some((low, high));
                    break;
                }
                ColumnConstraint::Nothing => break,
            }
        }
        (!values.is_empty() || bounds.is_some()).then_some(Self {
            index,
            spec,
            values,
            bounds,
            is_all: false,
        })
    }

    /// A condition as ranges of an index; `None` if they are not equivalent to the whole condition.
    pub fn of_all(index: TableIndex, spec: &IndexSpec, condition: &CompiledFilter) -> Option<Self> {
        let asked = Self::new(index, spec.clone(), &condition.conjuncts())?;
        asked.is_equivalent(condition).then_some(asked)
    }

    /// Whether the ranges are equivalent to a whole condition, of which they were made.
    pub fn is_equivalent(&self, condition: &CompiledFilter) -> bool {
        condition.is_of_conjuncts() && self.constrains_all(&condition.conjuncts())
    }

    /// Whether the ranges are equivalent to all of the conditions.
    fn constrains_all(&self, conjuncts: &[Conjunct<'_>]) -> bool {
        let parts = self.values.len() + usize::from(self.bounds.is_some());
        let parts = self.spec.parts.get(..parts).unwrap_or_default();
        conjuncts.iter().all(|it| match it.predicate {
            // Beside IS NULL, other conditions on the column are not part of the ranges.
            Predicate::IsNull => {
                let alone = conjuncts.iter().filter(|other| other.id == it.id).count() == 1;
                alone && parts.iter().any(|part| part.column == it.id)
            }
            _ => parts.iter().any(|part| (part.column, part.order) == (it.id, it.order)),
        })
    }

    /// The columns that it constrains.
    pub fn columns(&self) -> impl Iterator<Item = &IndexPart> {
        let parts = self.values.len() + usize::from(self.bounds.is_some());
        self.spec.parts.iter().take(parts)
    }

    /// How rows are found.
    pub fn found_by(&self) -> FoundBy {
        FoundBy {
            index: self.index,
            columns: self.values.len(),
            is_bounded: self.bounds.is_some(),
            is_single: self.searches() == 1,
            is_intersected: false,
        }
    }

    /// The number of searches: combinations of the leading columns' values.
    pub fn searches(&self) -> usize {
        self.values.iter().fold(1, |all: usize, of| all.saturating_mul(of.len()))
    }

    /// Whether exactly `columns` leading columns are fixed, each to one value.
    pub fn is_of_values(&self, columns: usize) -> bool {
        self.values.len() == columns && self.searches() == 1
    }

    /// The bounds of the column behind the leading ones.
    pub fn bounds(self) -> Option<(Bound<OwnedCell>, Bound<OwnedCell>)> {
        self.bounds
    }

    /// Whether it selects whole runs of the column at `at`: each column before it has one value, and columns
    /// behind it are not restricted.
    pub fn is_of_runs(&self, at: usize) -> bool {
        let (before, rest) = self.values.split_at(self.values.len().min(at));
        let is_last = match rest {
            [] => before.len() == at,
            [_] => self.bounds.is_none(),
            _ => false,
        };
        is_last && before.iter().all(|values| values.len() == 1)
    }

    /// Whether reading the columns instead would compute sort keys.
    fn is_keyed(&self) -> bool {
        let parts = self.values.len() + usize::from(self.bounds.is_some());
        self.spec.parts.iter().take(parts).any(|part| part.order.is_some())
    }

    fn candidate_share(&self) -> u32 {
        if self.is_keyed() { KEYED_CANDIDATE_SHARE } else { CANDIDATE_SHARE }
    }

    /// The cost of all searches, in values of a column (or sort keys) that could be read instead.
    pub fn search_cost(&self) -> usize {
        let each = if self.is_keyed() { KEYED_SEARCH_COST } else { SEARCH_COST };
        self.searches().saturating_mul(each)
    }

    /// The ranges of index positions; `None` if there are too many to search.
    pub fn ranges<'a>(&'a self, index: &SegmentIndex<'_>, forced: bool) -> Option<Vec<Range<u32>>> {
        let cost = if forced { self.searches() } else { self.search_cost() };
        if cost > index.len() as usize {
            return None;
        }
        let mut prefixes: Vec<Vec<Cell<'_>>> = vec![Vec::new()];
        for of_part in &self.values {
            let longer = prefixes.iter().flat_map(|prefix| {
                of_part.iter().map(move |value| {
                    let mut longer = prefix.clone();
                    longer.push(value.as_cell());
                    longer
                })
            });
            prefixes = longer.collect();
        }
        let bounds = self.bounds.as_ref();
        let borrowed = |bound: &'a Bound<OwnedCell>| bound.as_ref().map(OwnedCell::as_cell);
        let ranges = prefixes.iter().map(|prefix| match bounds {
            Some((low, high)) => index.range(prefix, borrowed(low), borrowed(high)),
            None => index.range(prefix, Bound::Unbounded, Bound::Unbounded),
        });
        Some(ranges.collect())
    }
}

/// The conditions on one column.
enum ColumnConstraint {
    Nothing,
    Values(Vec<OwnedCell>),
    Bounds(Bound<OwnedCell>, Bound<OwnedCell>),
}

impl ColumnConstraint {
    fn of<'p>(predicates: impl Iterator<Item = &'p Predicate>) -> Self {
        // NULL satisfies no comparison.
        let none = || (Bound::Excluded(OwnedCell::Null), Bound::Unbounded);
        let (mut low, mut high) = none();
        let mut list: Option<Vec<OwnedCell>> = None;
        for predicate in predicates {
            let (from, to) = match predicate {
                Predicate::IsNull => return Self::Values(vec![OwnedCell::Null]),
                Predicate::OrdinalIn(values) => {
                    let values = values.iter().copied().map(OwnedCell::Ordinal);
                    list = Some(in_both(list, values.collect()));
                    continue;
                }
                Predicate::BytesIn(values) => {
                    let values = values.iter().cloned().map(OwnedCell::Bytes);
                    list = Some(in_both(list, values.collect()));
                    continue;
                }
                Predicate::OrdinalRange(from, to) => {
                    (from.map(OwnedCell::Ordinal), to.map(OwnedCell::Ordinal))
                }
                Predicate::BytesRange(from, to) => {
                    (from.clone().map(OwnedCell::Bytes), to.clone().map(OwnedCell::Bytes))
                }
            };
            low = tighter(low, from, Ordering::Greater);
            high = tighter(high, to, Ordering::Less);
        }
        match (list, &low, &high) {
            (Some(mut values), ..) => {
                values.retain(|value| is_within(value, &low, &high));
                Self::Values(values)
            }
            (None, Bound::Included(from), Bound::Included(to)) if from == to => {
                Self::Values(vec![from.clone()])
            }
            _ if (&low, &high) == (&none().0, &none().1) => Self::Nothing,
            _ => Self::Bounds(low, high),
        }
    }
}

/// The intersection of a list of values, ascending, and the one before, if there was one.
fn in_both(before: Option<Vec<OwnedCell>>, list: Vec<OwnedCell>) -> Vec<OwnedCell> {
    let Some(mut before) = before else { return list };
    before.retain(|value| list.binary_search(value).is_ok());
    before
}

/// The tighter of two bounds on one side; `side` is how a tighter value compares with the other.
fn tighter(one: Bound<OwnedCell>, other: Bound<OwnedCell>, side: Ordering) -> Bound<OwnedCell> {
    let value = |bound: &Bound<OwnedCell>| match bound {
        Bound::Included(value) | Bound::Excluded(value) => Some(value.clone()),
        Bound::Unbounded => None,
    };
    match (value(&one), value(&other)) {
        (_, None) => one,
        (None, Some(_)) => other,
        (Some(mine), Some(theirs)) => match theirs.cmp(&mine) {
            Ordering::Equal if matches!(one, Bound::Excluded(_)) => one,
            Ordering::Equal => other,
            ordering if ordering == side => other,
            _ => one,
        },
    }
}

fn is_within(value: &OwnedCell, low: &Bound<OwnedCell>, high: &Bound<OwnedCell>) -> bool {
    let above = match low {
        Bound::Included(low) => value >= low,
        Bound::Excluded(low) => value > low,
        Bound::Unbounded => true,
    };
    above
        && match high {
            Bound::Included(high) => value <= high,
            Bound::Excluded(high) => value < high,
            Bound::Unbounded => true,
        }
}
