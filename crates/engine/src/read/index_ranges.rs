//! Conditions on the leading columns of secondary indexes.
//!
//! Documents whose first columns have given values, and whose next one lies in a range, are ranges of an index; two
//! binary searches find each range. The lengths of the ranges give the number of candidates before any is read. The
//! whole condition is then evaluated on the candidates.

use std::{
    cmp::Ordering,
    ops::{Bound, Range},
};

use remora_index::{
    column::{Cell, Predicate},
    segment::{IndexSpec, Segment, SegmentIndex},
};

use super::{
    filter::{Condition, Conjunct},
    literal::OwnedCell,
};
use crate::{FoundBy, IndexSet, Schema, TableIndex, indexing::allowed_specs};

/// More candidates than one in this many documents are found sooner from the columns.
const CANDIDATE_SHARE: u32 = 32;
/// A search of an index takes about as long as a look at so many values of a column; of one whose texts have an
/// order, as so many keys that are made of them.
const SEARCH_COST: usize = 512;
pub(super) const KEYED_SEARCH_COST: usize = 32;
/// More candidates than one in so many documents are found sooner by a key made of each text.
pub(super) const KEYED_CANDIDATE_SHARE: u32 = 2;

/// What a condition says of the leading columns of each index.
pub(super) struct IndexRanges(Vec<Asked>);

/// What a condition says of one index.
pub(super) struct Asked {
    index: TableIndex,
    spec: IndexSpec,
    /// The values of the first columns: those of each.
    values: Vec<Vec<OwnedCell>>,
    /// The bounds of the column behind them.
    bounds: Option<(Bound<OwnedCell>, Bound<OwnedCell>)>,
    /// Whether that is all that the condition says.
    is_all: bool,
}

impl IndexRanges {
    /// What the condition says; `None` if that is nothing that one of the allowed indexes helps with.
    pub fn new(schema: &Schema, condition: &Condition, allowed: IndexSet) -> Option<Self> {
        if schema.indexes.is_empty() {
            return None;
        }
        let conjuncts = condition.conjuncts();
        let specs = allowed_specs(schema, allowed).into_iter();
        let asked = specs.filter_map(|(index, spec)| Asked::new(index, spec, &conjuncts));
        let mut asked: Vec<Asked> = asked.collect();
        if condition.is_of_conjuncts() {
            asked.iter_mut().for_each(|it| it.is_all = it.says_all(&conjuncts));
        }
        (!asked.is_empty()).then_some(Self(asked))
    }

    /// The documents of a segment that the condition may hold for, ascending, by the index that
    /// leaves the fewest, and whether it holds for all of them; `None` where they are found sooner from the columns,
    /// unless that is to be `forced`.
    pub fn candidates(&self, segment: &Segment, forced: bool) -> Option<(Vec<u32>, FoundBy, bool)> {
        let share = |asked: &Asked| if forced { 1 } else { asked.candidate_share() };
        let (_, asked, index, ranges) = self
            .fewest(segment, forced)
            .filter(|(count, asked, ..)| *count <= segment.doc_count() / share(asked))?;
        let mut docs: Vec<u32> = ranges.into_iter().flatten().map(|at| index.doc(at)).collect();
        docs.sort_unstable();
        Some((docs, asked.found_by(), asked.is_all))
    }

    /// How many documents of a segment the index leaves that leaves the fewest.
    pub fn count(&self, segment: &Segment, forced: bool) -> Option<u32> {
        self.fewest(segment, forced).map(|(count, ..)| count)
    }

    /// The index that leaves the fewest documents of a segment: how many, and its ranges.
    fn fewest<'s>(
        &self,
        segment: &'s Segment,
        forced: bool,
    ) -> Option<(u32, &Asked, SegmentIndex<'s>, Vec<Range<u32>>)> {
        let mut best: Option<(u32, &Asked, SegmentIndex<'_>, Vec<Range<u32>>)> = None;
        for asked in &self.0 {
            let Some(index) = segment.index(&asked.spec) else { continue };
            let Some(ranges) = asked.ranges(&index, forced) else { continue };
            let count = ranges.iter().map(Range::len).sum::<usize>();
            let Ok(count) = u32::try_from(count) else { continue };
            if best.as_ref().is_none_or(|(least, ..)| count < *least) {
                best = Some((count, asked, index, ranges));
            }
        }
        best
    }

    /// How many values one of the indexes may have to look for.
    pub fn most_searches(&self) -> usize {
        self.0.iter().map(Asked::searches).max().unwrap_or(0)
    }

    /// Whether it is of texts by their keys alone.
    pub fn is_keyed(&self) -> bool {
        self.0.iter().all(Asked::is_keyed)
    }

    /// The indexes that help.
    pub fn possible(&self) -> impl Iterator<Item = TableIndex> {
        self.0.iter().map(|asked| asked.index)
    }
}

impl Asked {
    /// What conditions say of an index; `None` if nothing.
    pub fn new(index: TableIndex, spec: IndexSpec, conjuncts: &[Conjunct<'_>]) -> Option<Self> {
        let (mut values, mut bounds) = (Vec::new(), None);
        for part in &spec.parts {
            // NULL has no key, and is found by either order.
            let of_part = |it: &&Conjunct<'_>| {
                let is_null = matches!(it.predicate, Predicate::IsNull);
                it.id == part.column && (it.order == part.order || is_null)
            };
            match Said::of(conjuncts.iter().filter(of_part).map(|it| it.predicate)) {
                Said::Values(of_part) => values.push(of_part),
                Said::Bounds(low, high) => {
                    bounds = Some((low, high));
                    break;
                }
                Said::Nothing => break,
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

    /// What a condition says of an index; `None` if that is not all that it says.
    pub fn of_all(index: TableIndex, spec: &IndexSpec, condition: &Condition) -> Option<Self> {
        let conjuncts = condition.conjuncts();
        if !condition.is_of_conjuncts() {
            return None;
        }
        let asked = Self::new(index, spec.clone(), &conjuncts)?;
        asked.says_all(&conjuncts).then_some(asked)
    }

    /// Whether the conditions say no more.
    fn says_all(&self, conjuncts: &[Conjunct<'_>]) -> bool {
        let parts = self.values.len() + usize::from(self.bounds.is_some());
        let parts = self.spec.parts.get(..parts).unwrap_or_default();
        conjuncts.iter().all(|it| match it.predicate {
            // What else is said of the column is left out beside it.
            Predicate::IsNull => {
                let alone = conjuncts.iter().filter(|other| other.id == it.id).count() == 1;
                alone && parts.iter().any(|part| part.column == it.id)
            }
            _ => parts.iter().any(|part| (part.column, part.order) == (it.id, it.order)),
        })
    }

    /// How rows are found.
    pub fn found_by(&self) -> FoundBy {
        FoundBy {
            index: self.index,
            columns: self.values.len(),
            is_bounded: self.bounds.is_some(),
            is_single: self.searches() == 1,
        }
    }

    /// How many combinations of values of the first columns there are.
    fn searches(&self) -> usize {
        self.values.iter().fold(1, |all: usize, of| all.saturating_mul(of.len()))
    }

    /// The bounds of the column behind so many that have one value.
    pub fn bounds_behind(self, columns: usize) -> Option<(Bound<OwnedCell>, Bound<OwnedCell>)> {
        (self.values.len() == columns).then_some(self.bounds).flatten()
    }

    /// Whether its rows are ranges that hold runs of the column at a place: all columns before have one value, and
    /// nothing is said of those behind.
    pub fn is_of_runs(&self, at: usize) -> bool {
        let (before, rest) = self.values.split_at(self.values.len().min(at));
        let is_last = match rest {
            [] => before.len() == at,
            [_] => self.bounds.is_none(),
            _ => false,
        };
        is_last && before.iter().all(|values| values.len() == 1)
    }

    /// Whether a look at the columns makes keys of texts.
    fn is_keyed(&self) -> bool {
        let parts = self.values.len() + usize::from(self.bounds.is_some());
        self.spec.parts.iter().take(parts).any(|part| part.order.is_some())
    }

    fn candidate_share(&self) -> u32 {
        if self.is_keyed() { KEYED_CANDIDATE_SHARE } else { CANDIDATE_SHARE }
    }

    /// About how many values of a column could be looked at instead of all searches.
    pub fn search_cost(&self) -> usize {
        let each = if self.is_keyed() { KEYED_SEARCH_COST } else { SEARCH_COST };
        self.searches().saturating_mul(each)
    }

    /// The positions of the index; `None` if there are too many to look up.
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

/// What conditions say of one column.
enum Said {
    Nothing,
    Values(Vec<OwnedCell>),
    Bounds(Bound<OwnedCell>, Bound<OwnedCell>),
}

impl Said {
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

/// The values that stand in a list, which ascends, and in the one before, if there was one.
fn in_both(before: Option<Vec<OwnedCell>>, list: Vec<OwnedCell>) -> Vec<OwnedCell> {
    let Some(mut before) = before else { return list };
    before.retain(|value| list.binary_search(value).is_ok());
    before
}

/// Of two bounds on one side the one that lets less through; `side` is how the value of the tighter
/// one stands to the other's.
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
