//! Conditions on columns, resolved once for each request and evaluated segment by segment.
//!
//! A condition is two-valued: a comparison with NULL is false, `!=` is the complement of `=` and
//! therefore true for NULL, and NOT is the complement of what it negates, rows with NULL
//! included.

use std::ops::Bound::{self, Included, Unbounded};

use remora_index::{
    DocSet, TextOrder,
    column::{Cell, Column, Predicate},
    paths::PathSpec,
    segment::Segment,
    text::{Pattern, TextIndex},
};

use super::{
    columns::{indexed, joint_place, path_place, position, texts_place},
    docs::Docs,
    letters::LetterTerm,
    literal::{self, LiteralBounds, OwnedCell},
    prefix::{CollatedPrefix, Scratch, end_of},
};
use crate::{
    ColumnDef, ColumnType, Comparison, Error, Filter, Literal, PathTest, RequestPart, Result,
    RowSet, Schema,
    encode::{KeyRange, joint_ranges, ranges},
    schema::{MAX_LISTED_VALUES, NO_TEXT, PATH_TEXTS, is_prefix_column, text_order},
    snapshot::TableView,
};

/// Deepest nesting of a filter.
const MAX_DEPTH: usize = 32;
/// If at most one in this many documents is a candidate, testing each candidate is cheaper than selecting from the
/// whole column.
const RETAIN_SHARE: usize = 16;

/// A filter whose names and literals are resolved.
pub(super) enum CompiledFilter {
    /// The column with this id satisfies the predicate.
    Column { id: u32, predicate: Predicate },
    /// The sort key of the column's text, in a text order, satisfies the predicate.
    Keyed { id: u32, order: TextOrder, predicate: Predicate },
    /// The column's text has a prefix.
    Begins { id: u32, letters: CollatedPrefix },
    /// A path, or several together, have a value within one of the ranges.
    Path { path: PathSpec, ranges: Vec<KeyRange> },
    /// One of the texts at paths contains the pattern; for some patterns false positives are possible
    /// ([`crate::texts_tell`]).
    Texts { path: PathSpec, pattern: Box<Pattern> },
    /// A value at the paths may contain these letters: a text that contains them, or a value that is not a text, which
    /// `others` finds. There are false positives.
    MayHold { path: PathSpec, letters: Box<LetterTerm>, others: Box<Pattern> },
    /// The row is one of these.
    Rows(RowSet),
    /// Never true.
    Never,
    /// AND.
    All(Vec<CompiledFilter>),
    /// OR.
    Any(Vec<CompiledFilter>),
    /// NOT.
    Not(Box<CompiledFilter>),
}

/// A conjunct: a condition on one column that must be true.
#[derive(Clone, Copy)]
pub(super) struct Conjunct<'c> {
    /// The column's id.
    pub id: u32,
    /// The text order whose sort keys are compared; `None` for the column's values.
    pub order: Option<TextOrder>,
    pub predicate: &'c Predicate,
}

/// A column that has the same value in every row, or texts with the same sort key.
pub(super) struct Equality {
    pub id: u32,
    pub order: Option<TextOrder>,
    pub value: OwnedCell,
}

impl CompiledFilter {
    /// Resolves a filter of a table.
    pub fn new(view: &TableView, filter: &Filter) -> Result<Self> {
        let (schema, paths) = (&*view.schema, &*view.paths);
        Compiler { schema, in_values: 0, paths, of_prefixes: false }.condition(filter, 1)
    }

    /// The conjuncts: conditions on columns that must all be true.
    pub fn conjuncts(&self) -> Vec<Conjunct<'_>> {
        match self {
            Self::Column { id, predicate } => vec![Conjunct { id: *id, order: None, predicate }],
            Self::Keyed { id, order, predicate } => {
                vec![Conjunct { id: *id, order: Some(*order), predicate }]
            }
            Self::All(parts) => parts.iter().flat_map(Self::conjuncts).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether no row satisfies the condition, as its form tells.
    pub fn is_never(&self) -> bool {
        match self {
            Self::Never => true,
            Self::Column { predicate, .. } | Self::Keyed { predicate, .. } => match predicate {
                Predicate::OrdinalIn(values) => values.is_empty(),
                Predicate::BytesIn(values) => values.is_empty(),
                _ => false,
            },
            Self::All(parts) => parts.iter().any(Self::is_never),
            Self::Any(parts) => parts.iter().all(Self::is_never),
            _ => false,
        }
    }

    /// Whether the condition is exactly the AND of its [`CompiledFilter::conjuncts`].
    pub fn is_of_conjuncts(&self) -> bool {
        match self {
            Self::Column { .. } | Self::Keyed { .. } => true,
            Self::All(parts) => parts.iter().all(Self::is_of_conjuncts),
            _ => false,
        }
    }

    /// The ORs among its conjuncts, each as the list of its alternatives.
    pub fn alternatives(&self) -> Vec<&[Self]> {
        match self {
            Self::Any(parts) => vec![parts],
            Self::All(parts) => parts.iter().flat_map(Self::alternatives).collect(),
            _ => Vec::new(),
        }
    }

    /// The columns that have the same value in every row that satisfies the condition.
    pub fn equalities(&self) -> Vec<Equality> {
        let conjuncts = self.conjuncts().into_iter();
        let equality = |Conjunct { id, order, predicate }: Conjunct<'_>| {
            Some(Equality { id, order, value: only_value(predicate)? })
        };
        conjuncts.filter_map(equality).collect()
    }

    /// The paths whose indexes contain every row that satisfies the condition; `None` if a row may satisfy it
    /// without being in any of them.
    pub fn paths(&self) -> Option<Vec<&PathSpec>> {
        match self {
            Self::Path { path, .. } | Self::Texts { path, .. } | Self::MayHold { path, .. } => {
                Some(vec![path])
            }
            Self::All(parts) => {
                let paths: Vec<&PathSpec> =
                    parts.iter().filter_map(Self::paths).flatten().collect();
                (!paths.is_empty()).then_some(paths)
            }
            Self::Any(parts) => {
                let paths: Option<Vec<_>> = parts.iter().map(Self::paths).collect();
                paths.map(|paths| paths.concat())
            }
            _ => None,
        }
    }

    /// The candidate documents by the indexes of paths, and whether all of them satisfy the condition. `None` if
    /// paths do not narrow it: no conjunct is about a path, or an alternative of an OR is not.
    pub fn left_by_paths(&self, segment: &Segment) -> Result<Option<(DocSet, bool)>> {
        let len = segment.doc_count();
        match self {
            Self::Path { path, ranges } => Ok(Some((with_values(segment, path, ranges)?, true))),
            Self::Texts { path, pattern } => {
                Ok(Some((texts_of(segment, path)?.find(pattern)?.docs, true)))
            }
            Self::MayHold { path, letters, others } => {
                Ok(Some((may_hold(segment, path, letters, others)?, true)))
            }
            Self::All(parts) => {
                let (mut left, mut is_all): (Option<DocSet>, bool) = (None, true);
                for part in parts {
                    let Some((docs, is_whole)) = part.left_by_paths(segment)? else {
                        is_all = false;
                        continue;
                    };
                    is_all &= is_whole;
                    left = Some(match left {
                        None => docs,
                        Some(left) => left.intersect(&docs),
                    });
                }
                Ok(left.map(|left| (left, is_all)))
            }
            Self::Any(parts) => {
                let (mut left, mut is_all) = (DocSet::empty(), true);
                for part in parts {
                    let Some((docs, is_whole)) = part.left_by_paths(segment)? else {
                        return Ok(None);
                    };
                    is_all &= is_whole;
                    left = left.union(&docs, len);
                }
                Ok(Some((left, is_all)))
            }
            _ => Ok(None),
        }
    }

    /// Whether the condition depends on this column only.
    pub fn is_of(&self, column: u32) -> bool {
        match self {
            Self::Never => true,
            Self::Path { .. } | Self::Texts { .. } | Self::MayHold { .. } | Self::Rows(_) => false,
            Self::Column { id, .. } | Self::Keyed { id, .. } | Self::Begins { id, .. } => {
                *id == column
            }
            Self::All(parts) | Self::Any(parts) => parts.iter().all(|part| part.is_of(column)),
            Self::Not(part) => part.is_of(column),
        }
    }

    /// The documents of `docs` that satisfy the condition. Deleted documents may be among them.
    pub fn filtered(&self, segment: &Segment, docs: Docs) -> Result<DocSet> {
        match docs {
            Docs::Every => self.select(segment),
            Docs::Some(docs) if docs.is_empty() => Ok(docs),
            Docs::Some(DocSet::List(mut docs))
                if docs.len() <= segment.doc_count() as usize / RETAIN_SHARE =>
            {
                self.retain(segment, &mut docs)?;
                Ok(DocSet::List(docs))
            }
            Docs::Some(docs) => Ok(self.select(segment)?.intersect(&docs)),
        }
    }

    fn select(&self, segment: &Segment) -> Result<DocSet> {
        let len = segment.doc_count();
        match self {
            Self::Never => Ok(DocSet::empty()),
            Self::Column { id, predicate } => match segment.column(*id) {
                Some(column) => Ok(column.select(predicate)?),
                None if holds_if_absent(*id, predicate) => Ok(DocSet::all(len)),
                None => Ok(DocSet::empty()),
            },
            Self::Keyed { id, order, predicate } => match segment.column(*id) {
                Some(column) => Ok(column.select_by_key(*order, predicate)?),
                None => Ok(DocSet::empty()),
            },
            Self::Begins { id, letters } => {
                let mut docs: Vec<u32> = (0..len).collect();
                retain_letters(segment.column(*id), letters, &mut docs);
                Ok(DocSet::ascending(docs, len))
            }
            Self::Path { path, ranges } => with_values(segment, path, ranges),
            Self::Texts { path, pattern } => Ok(texts_of(segment, path)?.find(pattern)?.docs),
            Self::MayHold { path, letters, others } => may_hold(segment, path, letters, others),
            Self::Rows(rows) => rows.docs(segment).cloned(),
            Self::All(parts) => {
                let narrowed =
                    parts.iter().try_fold(Docs::Every, |docs, part| -> Result<Docs> {
                        Ok(Docs::Some(part.filtered(segment, docs)?))
                    })?;
                Ok(narrowed.into_set(len))
            }
            Self::Any(parts) => parts.iter().try_fold(DocSet::empty(), |docs, part| {
                Ok(docs.union(&part.select(segment)?, len))
            }),
            Self::Not(part) => Ok(part.select(segment)?.complement(len)),
        }
    }

    fn retain(&self, segment: &Segment, docs: &mut Vec<u32>) -> Result<()> {
        match self {
            Self::Never => docs.clear(),
            Self::Column { id, predicate } => match segment.column(*id) {
                Some(column) => column.retain(docs, predicate),
                None if holds_if_absent(*id, predicate) => {}
                None => docs.clear(),
            },
            Self::Keyed { id, order, predicate } => match segment.column(*id) {
                Some(column) => column.retain_by_key(docs, *order, predicate),
                None => docs.clear(),
            },
            Self::Begins { id, letters } => retain_letters(segment.column(*id), letters, docs),
            Self::Path { path, ranges } => {
                let found = with_values(segment, path, ranges)?;
                docs.retain(|doc| found.contains(*doc));
            }
            Self::Texts { path, pattern } => {
                let among = DocSet::List(docs.clone());
                let found = texts_of(segment, path)?.find_among(pattern, &among)?.docs;
                docs.retain(|doc| found.contains(*doc));
            }
            Self::MayHold { path, letters, others } => {
                let found = may_hold(segment, path, letters, others)?;
                docs.retain(|doc| found.contains(*doc));
            }
            Self::Rows(rows) => {
                let found = rows.docs(segment)?;
                docs.retain(|doc| found.contains(*doc));
            }
            Self::All(parts) => parts.iter().try_for_each(|part| part.retain(segment, docs))?,
            Self::Any(parts) => {
                let mut rest = docs.clone();
                for part in parts {
                    let mut kept = rest.clone();
                    part.retain(segment, &mut kept)?;
                    remove(&mut rest, &kept);
                }
                remove(docs, &rest);
            }
            Self::Not(part) => {
                let mut kept = docs.clone();
                part.retain(segment, &mut kept)?;
                remove(docs, &kept);
            }
        }
        Ok(())
    }
}

/// Evaluates a condition on a single column for a value.
pub(super) struct ValueTest<'c> {
    condition: &'c CompiledFilter,
    key: Vec<u8>,
    scratch: Scratch,
}

impl<'c> ValueTest<'c> {
    /// The test for a column's values; `None` if the condition is also about another column.
    pub fn new(condition: &'c CompiledFilter, column: u32) -> Option<Self> {
        condition.is_of(column).then(|| Self {
            condition,
            key: Vec::new(),
            scratch: Scratch::default(),
        })
    }

    /// Whether the value satisfies the condition.
    pub fn holds(&mut self, cell: Cell<'_>) -> bool {
        self.tests(self.condition, cell)
    }

    fn tests(&mut self, condition: &CompiledFilter, cell: Cell<'_>) -> bool {
        match (condition, cell) {
            (
                CompiledFilter::Never | CompiledFilter::Path { .. } | CompiledFilter::Texts { .. },
                _,
            ) => false,
            (CompiledFilter::MayHold { .. } | CompiledFilter::Rows(_), _) => false,
            (CompiledFilter::Column { predicate, .. }, cell) => predicate.matches(cell),
            (CompiledFilter::Keyed { order, predicate, .. }, cell) => {
                predicate.matches_by_key(*order, cell, &mut self.key)
            }
            (CompiledFilter::Begins { letters, .. }, Cell::Bytes(text)) => {
                letters.begin(text, &mut self.scratch)
            }
            (CompiledFilter::Begins { .. }, _) => false,
            (CompiledFilter::All(parts), cell) => parts.iter().all(|part| self.tests(part, cell)),
            (CompiledFilter::Any(parts), cell) => parts.iter().any(|part| self.tests(part, cell)),
            (CompiledFilter::Not(part), cell) => !self.tests(part, cell),
        }
    }
}

/// The only value that satisfies a predicate, if there is exactly one.
fn only_value(predicate: &Predicate) -> Option<OwnedCell> {
    match predicate {
        Predicate::IsNull => Some(OwnedCell::Null),
        Predicate::OrdinalRange(Included(from), Included(to)) if from == to => {
            Some(OwnedCell::Ordinal(*from))
        }
        Predicate::BytesRange(Included(from), Included(to)) if from == to => {
            Some(OwnedCell::Bytes(from.clone()))
        }
        Predicate::OrdinalIn(values) => match values[..] {
            [only] => Some(OwnedCell::Ordinal(only)),
            _ => None,
        },
        Predicate::BytesIn(values) => match &values[..] {
            [only] => Some(OwnedCell::Bytes(only.clone())),
            _ => None,
        },
        _ => None,
    }
}

/// The documents with a value within one of the ranges at a path.
fn with_values(segment: &Segment, path: &PathSpec, ranges: &[KeyRange]) -> Result<DocSet> {
    let values = segment.path(path).ok_or_else(not_everywhere)?;
    let ranges = ranges
        .iter()
        .map(|(low, high)| (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice)));
    Ok(values.select(ranges)?)
}

/// The text index of paths in a segment.
fn texts_of<'s>(segment: &'s Segment, path: &PathSpec) -> Result<&'s TextIndex> {
    segment.path_texts(path).ok_or_else(not_everywhere)
}

/// The documents in which a value at the paths may contain these letters.
fn may_hold(
    segment: &Segment,
    path: &PathSpec,
    letters: &LetterTerm,
    others: &Pattern,
) -> Result<DocSet> {
    let (index, documents) = (texts_of(segment, path)?, segment.doc_count());
    let held = letters.find(index, documents)?;
    let found = held.sure.union(&held.doubtful, documents);
    Ok(found.union(&index.find(others)?.docs, documents))
}

fn shown(paths: &[Vec<String>]) -> String {
    paths.iter().map(|names| names.join(".")).collect::<Vec<_>>().join(", ")
}

fn not_everywhere() -> Error {
    invalid("The path is not indexed in all segments yet; ask again later".to_owned())
}

fn retain_letters(column: Option<&Column>, letters: &CollatedPrefix, docs: &mut Vec<u32>) {
    let mut scratch = Scratch::default();
    docs.retain(|&doc| match column.map(|column| column.get(doc)) {
        Some(Cell::Bytes(text)) => letters.begin(text, &mut scratch),
        _ => false,
    });
}

/// Whether all documents of a segment without the column satisfy a predicate. All values of the column are NULL then, but
/// nothing is known of the prefixes of another column.
fn holds_if_absent(id: u32, predicate: &Predicate) -> bool {
    matches!(predicate, Predicate::IsNull) || is_prefix_column(id)
}

/// Removes `gone` from `docs`; both are ascending.
fn remove(docs: &mut Vec<u32>, gone: &[u32]) {
    let mut gone = gone.iter().copied().peekable();
    docs.retain(|&doc| {
        while gone.next_if(|&other| other < doc).is_some() {}
        gone.next_if_eq(&doc).is_none()
    });
}

struct Compiler<'s> {
    schema: &'s Schema,
    in_values: usize,
    /// The specifications of the schema's paths.
    paths: &'s [PathSpec],
    /// Whether columns may be named of which segments hold no more than prefixes.
    of_prefixes: bool,
}

impl<'s> Compiler<'s> {
    fn condition(&mut self, filter: &Filter, depth: usize) -> Result<CompiledFilter> {
        if depth > MAX_DEPTH {
            return Err(invalid(format!("The filter nests deeper than {MAX_DEPTH}; flatten it")));
        }
        match filter {
            Filter::Compare { column, comparison, literal } => {
                compare(self.column(column)?, *comparison, literal)
            }
            Filter::In(column, literals) => self.one_of(self.column(column)?, literals),
            Filter::Between(column, low, high) => {
                let column = self.column(column)?;
                let low = literal::bounds(column, low)?.from;
                let high = literal::bounds(column, high)?.to;
                Ok(range(column, low.map(Included), high.map(Included)))
            }
            Filter::KeyIn(column, order, keys) => self.keyed(column, *order, |this| {
                this.count_values(keys.len())?;
                let mut keys = keys.clone();
                keys.sort_unstable();
                keys.dedup();
                Ok(Predicate::BytesIn(keys))
            }),
            Filter::KeyWithin(column, order, low, high) => {
                self.keyed(column, *order, |_| Ok(Predicate::BytesRange(low.clone(), high.clone())))
            }
            Filter::Begins(column, Some(order), text) => self.begins(column, *order, text),
            Filter::Begins(column, None, text) => {
                let column = self.column(column)?;
                if column.kind != ColumnType::Text {
                    return Err(no_text(&column.name));
                }
                let (low, high) = (Included(text.as_bytes().to_vec()), end_of(text.as_bytes()));
                let predicate = Predicate::BytesRange(low, high);
                Ok(CompiledFilter::Column { id: column.id, predicate })
            }
            Filter::Path(column, names, test) => self.path(column, names, test),
            Filter::PathsTogether(column, paths, tests) => self.joint(column, paths, tests),
            Filter::PathTexts(column, paths, text) => self.texts(column, paths, text),
            Filter::PathMayHold(column, paths, text) => self.may_hold(column, paths, text),
            Filter::Prefix(part) => self.prefixes(part, depth),
            Filter::Rows(rows) => Ok(CompiledFilter::Rows(rows.clone())),
            Filter::IsNull(column) => Ok(is_null(self.column(column)?)),
            Filter::IsNotNull(column) => Ok(not(is_null(self.column(column)?))),
            Filter::And(parts) => Ok(CompiledFilter::All(self.conditions(parts, depth)?)),
            Filter::Or(parts) => Ok(CompiledFilter::Any(self.conditions(parts, depth)?)),
            // What is not among a superset may be among the rest.
            Filter::Not(part) if has_prefixes(part) => {
                self.condition(part, depth + 1)?;
                Ok(CompiledFilter::All(Vec::new()))
            }
            Filter::Not(part) => Ok(not(self.condition(part, depth + 1)?)),
        }
    }

    fn conditions(&mut self, filters: &[Filter], depth: usize) -> Result<Vec<CompiledFilter>> {
        filters.iter().map(|filter| self.condition(filter, depth + 1)).collect()
    }

    /// What a condition implies of the prefixes that segments hold.
    fn prefixes(&mut self, filter: &Filter, depth: usize) -> Result<CompiledFilter> {
        let before = std::mem::replace(&mut self.of_prefixes, true);
        let condition = self.condition(filter, depth + 1);
        self.of_prefixes = before;
        Ok(condition?.of_prefixes(self.schema))
    }

    fn column(&self, name: &str) -> Result<&'s ColumnDef> {
        let named = || self.schema.columns.get(position(self.schema, name)?);
        if let Some(column) = self.of_prefixes.then(named).flatten() {
            return Ok(column);
        }
        indexed(self.schema, name, RequestPart::Filter)
    }

    /// A condition on the sort keys of a column's texts.
    fn keyed(
        &mut self,
        column: &str,
        order: u32,
        predicate: impl FnOnce(&mut Self) -> Result<Predicate>,
    ) -> Result<CompiledFilter> {
        let (id, order) = self.ordered(column, order)?;
        Ok(CompiledFilter::Keyed { id, order, predicate: predicate(self)? })
    }

    /// A condition on the prefix of a column's texts.
    fn begins(&self, column: &str, order: u32, text: &str) -> Result<CompiledFilter> {
        let (id, order) = self.ordered(column, order)?;
        Ok(CompiledFilter::Begins { id, letters: CollatedPrefix::new(text, order) })
    }

    /// The id of a text column, and its text order.
    fn ordered(&self, column: &str, order: u32) -> Result<(u32, TextOrder)> {
        let column = self.column(column)?;
        let name = &column.name;
        if column.kind != ColumnType::Text {
            return Err(no_text(name));
        }
        let known = text_order(order);
        let order = known.ok_or_else(|| invalid(format!("'{name}' has no order {order}")))?;
        Ok((column.id, order))
    }

    /// A condition on the values at a path.
    fn path(&mut self, column: &str, names: &[String], test: &PathTest) -> Result<CompiledFilter> {
        self.count_tested(test)?;
        let place = path_place(self.schema, column, names);
        let path = self.spec(place).ok_or_else(|| {
            let shown = names.join(".");
            invalid(format!("Path '{shown}' of column '{column}' is not indexed"))
        })?;
        Ok(CompiledFilter::Path { path, ranges: ranges(test) })
    }

    /// A condition on the values at several paths together.
    fn joint(
        &mut self,
        column: &str,
        paths: &[Vec<String>],
        tests: &[PathTest],
    ) -> Result<CompiledFilter> {
        tests.iter().try_for_each(|test| self.count_tested(test))?;
        let place = joint_place(self.schema, column, paths);
        let path = self.spec(place).ok_or_else(|| {
            let shown = shown(paths);
            invalid(format!("Paths '{shown}' of column '{column}' are not indexed together"))
        })?;
        let ranges =
            joint_ranges(tests).filter(|_| tests.len() <= paths.len()).ok_or_else(|| {
                let shown = shown(paths);
                invalid(format!(
                    "The condition on paths '{shown}' has too many values, or tests a path before \
                     the last for something other than values"
                ))
            })?;
        Ok(CompiledFilter::Path { path, ranges })
    }

    fn count_tested(&mut self, test: &PathTest) -> Result<()> {
        match test {
            PathTest::In(values) => self.count_values(values.len()),
            _ => Ok(()),
        }
    }

    /// A condition on the texts at paths.
    fn texts(&self, column: &str, paths: &[Vec<String>], text: &str) -> Result<CompiledFilter> {
        let path = self.spec_of_texts(column, paths)?;
        let pattern = Pattern::new(text, &PATH_TEXTS);
        Ok(pattern.map_or(CompiledFilter::Never, |pattern| CompiledFilter::Texts {
            path,
            pattern: Box::new(pattern),
        }))
    }

    /// A condition that a value at the paths, shown as text, contains some letters.
    fn may_hold(&self, column: &str, paths: &[Vec<String>], text: &str) -> Result<CompiledFilter> {
        let path = self.spec_of_texts(column, paths)?;
        let letters = LetterTerm::as_spelled(text, &PATH_TEXTS);
        // Every value contains the empty text.
        let (Some(letters), Some(others)) = (letters, Pattern::new(NO_TEXT, &PATH_TEXTS)) else {
            return Ok(not(CompiledFilter::Never));
        };
        Ok(CompiledFilter::MayHold { path, letters: Box::new(letters), others: Box::new(others) })
    }

    /// The index spec of the texts of paths.
    fn spec_of_texts(&self, column: &str, paths: &[Vec<String>]) -> Result<PathSpec> {
        let place = texts_place(self.schema, column, paths);
        self.spec(place).ok_or_else(|| {
            let shown = shown(paths);
            invalid(format!("The texts of '{shown}' in column '{column}' are not indexed"))
        })
    }

    /// The index spec of one of the table's paths.
    fn spec(&self, place: Option<usize>) -> Option<PathSpec> {
        place.and_then(|place| self.paths.get(place)).cloned()
    }

    fn count_values(&mut self, count: usize) -> Result<()> {
        self.in_values = self.in_values.saturating_add(count);
        if self.in_values > MAX_LISTED_VALUES {
            let message =
                format!("The filter has more than {MAX_LISTED_VALUES} IN values; split it");
            return Err(invalid(message));
        }
        Ok(())
    }

    fn one_of(&mut self, column: &ColumnDef, literals: &[Literal]) -> Result<CompiledFilter> {
        self.count_values(literals.len())?;
        let (mut ordinals, mut bytes) = (Vec::new(), Vec::new());
        for literal in literals.iter().filter(|literal| !literal::is_null(literal)) {
            match literal::bounds(column, literal)?.exact() {
                Some(OwnedCell::Ordinal(ordinal)) => ordinals.push(ordinal),
                Some(OwnedCell::Bytes(value)) => bytes.push(value),
                Some(OwnedCell::Null) | None => {}
            }
        }
        let predicate = if !ordinals.is_empty() {
            ordinals.sort_unstable();
            ordinals.dedup();
            Predicate::OrdinalIn(ordinals)
        } else if !bytes.is_empty() {
            bytes.sort_unstable();
            bytes.dedup();
            Predicate::BytesIn(bytes)
        } else {
            return Ok(CompiledFilter::Never);
        };
        Ok(CompiledFilter::Column { id: column.id, predicate })
    }
}

fn compare(
    column: &ColumnDef,
    comparison: Comparison,
    literal: &Literal,
) -> Result<CompiledFilter> {
    if literal::is_null(literal) {
        let name = &column.name;
        return Err(invalid(format!("'{name}' is compared with NULL; use IS NULL instead")));
    }
    let bounds = literal::bounds(column, literal)?;
    let exact = bounds.is_exact();
    let LiteralBounds { from, to } = bounds;
    Ok(match comparison {
        Comparison::Equal if !exact => CompiledFilter::Never,
        Comparison::Equal => range(column, from.map(Included), to.map(Included)),
        Comparison::NotEqual if !exact => not(CompiledFilter::Never),
        Comparison::NotEqual => not(range(column, from.map(Included), to.map(Included))),
        Comparison::Greater if exact => range(column, from.map(Bound::Excluded), Some(Unbounded)),
        Comparison::Less if exact => range(column, Some(Unbounded), to.map(Bound::Excluded)),
        Comparison::Greater | Comparison::GreaterOrEqual => {
            range(column, from.map(Included), Some(Unbounded))
        }
        Comparison::Less | Comparison::LessOrEqual => {
            range(column, Some(Unbounded), to.map(Included))
        }
    })
}

/// The predicate of values within the bounds; `None` as a bound means that there is no value on that side.
fn range(
    column: &ColumnDef,
    low: Option<Bound<OwnedCell>>,
    high: Option<Bound<OwnedCell>>,
) -> CompiledFilter {
    let (Some(low), Some(high)) = (low, high) else { return CompiledFilter::Never };
    let is_bytes = |bound: &Bound<OwnedCell>| {
        matches!(bound, Included(OwnedCell::Bytes(_)) | Bound::Excluded(OwnedCell::Bytes(_)))
    };
    let predicate = if is_bytes(&low) || is_bytes(&high) {
        Predicate::BytesRange(low.map(OwnedCell::into_bytes), high.map(OwnedCell::into_bytes))
    } else {
        Predicate::OrdinalRange(low.map(|cell| cell.ordinal()), high.map(|cell| cell.ordinal()))
    };
    CompiledFilter::Column { id: column.id, predicate }
}

fn is_null(column: &ColumnDef) -> CompiledFilter {
    CompiledFilter::Column { id: column.id, predicate: Predicate::IsNull }
}

pub(super) fn not(condition: CompiledFilter) -> CompiledFilter {
    match condition {
        CompiledFilter::Not(inner) => *inner,
        other => CompiledFilter::Not(Box::new(other)),
    }
}

fn no_text(name: &str) -> Error {
    invalid(format!("'{name}' is not a text column: only texts have such keys"))
}

/// Whether a condition is only implied: part of it is told by prefixes.
fn has_prefixes(filter: &Filter) -> bool {
    match filter {
        Filter::Prefix(_) => true,
        Filter::And(parts) | Filter::Or(parts) => parts.iter().any(has_prefixes),
        Filter::Not(part) => has_prefixes(part),
        _ => false,
    }
}

fn invalid(message: String) -> Error {
    Error::request(RequestPart::Filter, message)
}
