//! Finds the selected rows: text first, then filters, segment by segment.

use std::{
    mem,
    sync::{Arc, OnceLock},
    time::Instant,
};

use remora_index::DocSet;

use super::{
    candidates::{Candidates, FoundByKeys, add},
    docs::Docs,
    expression::{Expression, TextNode},
    filter::CompiledFilter,
    index_count::IndexCount,
    key_order::KeyWalk,
    matching::{Unread, matching, unread},
    narrow::Narrowing,
    occurrences::Occurrences,
};
use crate::{
    AccessPath, Allowed, Position, QueryReport, Result, Schema, Selection, TableIndex,
    interrupt::InterruptCheck,
    snapshot::{SegmentView, TableView},
};

/// If the text condition leaves at most one in this many documents, their columns are read directly.
const FEW_SHARE: u32 = 256;

/// A validated and resolved selection.
pub(super) struct Plan {
    /// The text condition.
    pub expression: Option<Expression>,
    /// The condition on columns.
    pub condition: Option<CompiledFilter>,
    /// The condition as ranges of keys and indexes. A count or a page by an index does without, so they are made when
    /// they are first asked for.
    narrowing: OnceLock<Option<Narrowing>>,
    /// The indexes that may be used.
    allowed: Allowed,
    schema: Arc<Schema>,
    /// Asked before each segment; by an expression also within it.
    pub(super) unless: InterruptCheck,
}

/// The rows of a selection.
pub(super) struct SelectedRows {
    /// For each segment of the view; deleted documents may be among them.
    pub docs: Vec<Docs>,
    /// The number of live documents.
    pub total: u64,
    /// The report.
    pub report: QueryReport,
}

/// The candidates of a segment by keys and indexes.
struct Narrowed {
    docs: Docs,
    /// Whether all of them certainly satisfy the condition.
    is_all: bool,
}

impl Narrowed {
    /// The candidates among `docs`; adds to `found` the indexes that found them.
    fn of(docs: Docs, candidates: Candidates, found: &mut FoundByKeys) -> Self {
        add(candidates.found, found);
        let left = DocSet::List(candidates.docs);
        let docs = match docs {
            Docs::Every => Docs::Some(left),
            Docs::Some(docs) => Docs::Some(left.intersect(&docs)),
        };
        Self { docs, is_all: candidates.is_all }
    }

    /// The candidates that satisfy the condition.
    fn satisfying(self, condition: &CompiledFilter, view: &SegmentView) -> Result<Docs> {
        match self.is_all {
            true => Ok(self.docs),
            false => Ok(Docs::Some(condition.filtered(&view.segment, self.docs)?)),
        }
    }
}

/// A walk over so few rows is always cheap enough.
const MIN_LOOKED_AT: u64 = 64;

/// Rows that indexes counted.
#[derive(Default)]
struct IndexCounted {
    total: u64,
    /// The indexes that counted them, or found them in a segment where that is cheaper.
    found: FoundByKeys,
    /// The number of rows counted or read.
    examined: u64,
    /// The number of segments of which all rows are read.
    scanned: usize,
}

/// The number of rows of a selection, and the report.
type Counted = (u64, QueryReport);

impl Plan {
    /// Validates and resolves a selection. Searches of texts end when `unless` says so, here and when the plan
    /// runs.
    pub fn new(view: &TableView, selection: &Selection, unless: &InterruptCheck) -> Result<Self> {
        let expression = Expression::new(view, selection, unless)?;
        let filter = selection.filter.as_ref();
        let condition = filter.map(|filter| CompiledFilter::new(view, filter)).transpose()?;
        let (allowed, schema) = (selection.indexes.find, Arc::clone(&view.schema));
        let (narrowing, unless) = (OnceLock::new(), unless.clone());
        Ok(Self { expression, condition, narrowing, allowed, schema, unless })
    }

    /// The condition as ranges of keys and indexes; `None` if it has none.
    fn narrowing(&self) -> Option<&Narrowing> {
        let new = || Narrowing::new(&self.schema, self.condition.as_ref()?, self.allowed);
        self.narrowing.get_or_init(new).as_ref()
    }

    /// Runs the selection. `started` is the time of the request.
    pub fn run(
        &self,
        view: &TableView,
        position: Position,
        started: Instant,
    ) -> Result<SelectedRows> {
        self.run_learning(view, position, started, None)
    }

    /// A walk in key order for the first `wanted` rows; `None` without a condition, or if another way is cheaper.
    pub fn key_walk(
        &self,
        view: &TableView,
        (descending, wanted): (bool, usize),
        allowed: Allowed,
    ) -> Option<KeyWalk<'_>> {
        let condition = self.condition.as_ref()?;
        let all = view.segments.iter().map(|view| u64::from(view.segment.doc_count())).sum();
        let is_sooner = allowed.forced || self.is_walked(view, all, wanted);
        let is_allowed = allowed.indexes.contains(TableIndex::Key) && is_sooner;
        let forced = allowed.forced;
        is_allowed.then(|| KeyWalk { condition, narrowing: self.narrowing(), descending, forced })
    }

    /// Whether a walk over `over` rows for the first `wanted` is cheaper than reading the candidates of keys or an
    /// index. It assumes that candidates are evenly spread over the walk.
    pub fn is_walked(&self, view: &TableView, over: u64, wanted: usize) -> bool {
        let left = view.segments.iter().map(|view| {
            let count = self.narrowing().and_then(|it| it.count(&view.segment));
            u64::from(count.unwrap_or_else(|| view.segment.doc_count()))
        });
        let left: u64 = left.sum();
        over.saturating_mul(wanted as u64) / left.max(1) <= left.max(MIN_LOOKED_AT)
    }

    /// An empty record for its terms' frequencies.
    pub fn occurrences(&self, view: &TableView) -> Occurrences {
        let terms = self.expression.as_ref().map_or(0, |expression| expression.terms.len());
        Occurrences::new(terms, view.segments.len())
    }

    /// As [`Plan::run`]; `learnt` receives the frequencies that a score needs.
    pub fn run_learning(
        &self,
        view: &TableView,
        position: Position,
        started: Instant,
        mut learnt: Option<&mut Occurrences>,
    ) -> Result<SelectedRows> {
        let mut report = self.report(view, position);
        self.note_searched(view);
        let mut docs = Vec::with_capacity(view.segments.len());
        for (at, segment) in view.segments.iter().enumerate() {
            self.unless.check()?;
            let learnt = learnt.as_deref_mut().map(|learnt| (learnt, at));
            docs.push(match &self.expression {
                Some(expression) => {
                    Docs::Some(matching(view, segment, expression, &mut report, learnt)?)
                }
                None => Docs::Every,
            });
        }
        let mut total = count_live(&docs, &view.segments);
        self.report_counts(&mut report, total);
        if let Some(condition) = &self.condition {
            let filtering = Instant::now();
            report.index_time = filtering - started;
            let mut found = FoundByKeys::new();
            for (docs, view) in docs.iter_mut().zip(&view.segments) {
                self.unless.check()?;
                let matching = std::mem::replace(docs, Docs::Every);
                *docs = self.narrowed(view, matching, &mut found).satisfying(condition, view)?;
            }
            view.usage.found(&found);
            total = count_live(&docs, &view.segments);
            report.filter_time = filtering.elapsed();
        } else {
            report.index_time = started.elapsed();
        }
        report.after_filters = total;
        Ok(SelectedRows { docs, total, report })
    }

    /// The documents of each segment, if at most `most` need to be examined; else `None`, before the condition is
    /// evaluated on any. Of a text condition those are examined that also satisfy the condition on columns. Without
    /// conditions `wanted` rows are enough.
    pub fn run_few(&self, view: &TableView, most: u64, wanted: u64) -> Result<Option<Vec<Docs>>> {
        // A join whose keys are all NULL looks for none.
        if self.condition.as_ref().is_some_and(CompiledFilter::is_never) {
            let none = view.segments.iter().map(|_| Docs::Some(DocSet::empty()));
            return Ok(Some(none.collect()));
        }
        if let Some(expression) = &self.expression {
            return self.few_by_text(view, expression, most);
        }
        let mut docs = Vec::with_capacity(view.segments.len());
        let (mut looked_at, mut found) = (0_u64, FoundByKeys::new());
        for segment in &view.segments {
            let mut left = self.narrowed(segment, Docs::Every, &mut found);
            if let (Docs::Every, Some(condition)) = (&left.docs, &self.condition)
                && let Some((docs, is_all)) = condition.left_by_paths(&segment.segment)?
            {
                left = Narrowed { docs: Docs::Some(docs), is_all };
            }
            let is_small = u64::from(segment.segment.doc_count()) + looked_at <= most;
            if let (Docs::Every, Some(narrowing), false) = (&left.docs, self.narrowing(), is_small)
            {
                // Reading all of them would be cheaper, but exceeds `most`.
                let fewer = narrowing.most_candidates(&segment.segment, most - looked_at);
                left = fewer.map_or(left, |fewer| Narrowed::of(Docs::Every, fewer, &mut found));
            }
            looked_at += match (&left.docs, &self.condition) {
                (Docs::Some(candidates), _) => u64::from(candidates.count()),
                (Docs::Every, None) => u64::from(segment.segment.doc_count()).min(wanted),
                (Docs::Every, Some(_)) => u64::from(segment.segment.doc_count()),
            };
            if looked_at > most {
                return Ok(None);
            }
            docs.push(left);
        }
        view.usage.found(&found);
        let Some(condition) = &self.condition else {
            return Ok(Some(docs.into_iter().map(|left| left.docs).collect()));
        };
        let segments = view.segments.iter().zip(docs);
        let matching = segments.map(|(view, docs)| docs.satisfying(condition, view));
        matching.collect::<Result<_>>().map(Some)
    }

    /// The same for a text condition: no more than `most` texts are read.
    fn few_by_text(
        &self,
        view: &TableView,
        expression: &Expression,
        most: u64,
    ) -> Result<Option<Vec<Docs>>> {
        self.note_searched(view);
        let mut unread = self.unread(view)?;
        let taken =
            |unread: &mut Unread| Docs::Some(mem::replace(&mut unread.docs, DocSet::empty()));
        let docs = unread.iter_mut().map(taken).collect();
        let (docs, _) = self.satisfying(view, docs)?;
        if count_live(&docs, &view.segments) > most {
            return Ok(None);
        }
        let verified =
            view.segments.iter().zip(&unread).zip(docs).map(|((segment, unread), docs)| {
                if unread.is_certain() {
                    return Ok(docs);
                }
                let docs = docs.into_set(segment.segment.doc_count());
                let docs = docs.without(segment.deleted.as_ref());
                unread.verified((view, segment), expression, docs).map(Docs::Some)
            });
        verified.collect::<Result<_>>().map(Some)
    }

    /// For each segment, what the text index alone knows of the text condition's documents.
    pub fn unread(&self, view: &TableView) -> Result<Vec<Unread>> {
        let Some(expression) = &self.expression else { return Ok(Vec::new()) };
        let mut report = QueryReport::default();
        let segments = view.segments.iter();
        let found = segments.map(|segment| {
            self.unless.check()?;
            unread(view, segment, expression, &mut report)
        });
        found.collect()
    }

    /// Those of each segment's documents that satisfy the condition on columns, and the keys and indexes that found
    /// them.
    pub fn satisfying(
        &self,
        view: &TableView,
        docs: Vec<Docs>,
    ) -> Result<(Vec<Docs>, FoundByKeys)> {
        let mut found = FoundByKeys::new();
        let Some(condition) = &self.condition else { return Ok((docs, found)) };
        let segments = view.segments.iter().zip(docs);
        let kept = segments.map(|(segment, docs)| {
            self.unless.check()?;
            self.narrowed(segment, docs, &mut found).satisfying(condition, segment)
        });
        let kept = kept.collect::<Result<_>>()?;
        view.usage.found(&found);
        Ok((kept, found))
    }

    /// Whether keys or indexes leave few rows of a segment.
    pub fn narrows(&self, view: &TableView) -> bool {
        let few = |it: &Narrowing| {
            view.segments.iter().any(|segment| it.candidates(&segment.segment).is_some())
        };
        self.narrowing().is_some_and(few)
    }

    /// Whether these found rows as the alternatives of an OR.
    pub fn is_union(&self, found: &FoundByKeys) -> bool {
        found.len() > 1 && self.narrowing().is_some_and(Narrowing::is_union)
    }

    /// The number of rows before texts are read, and whether all of them match.
    pub fn count_unread(&self, view: &TableView) -> Result<(u64, bool)> {
        let unread = self.unread(view)?;
        let is_certain = unread.iter().all(Unread::is_certain);
        let docs = unread.into_iter().map(|unread| Docs::Some(unread.docs)).collect();
        let (docs, _) = self.satisfying(view, docs)?;
        Ok((count_live(&docs, &view.segments), is_certain))
    }

    /// The indexes that could be used for the condition.
    pub fn possible(&self) -> Vec<TableIndex> {
        let mut indexes = Vec::new();
        self.narrowing().into_iter().for_each(|narrowing| narrowing.possible(&mut indexes));
        indexes
    }

    /// What is known of the access path before any row is found.
    fn path(&self, view: &TableView) -> AccessPath {
        let asked = self.condition.as_ref().and_then(CompiledFilter::paths).unwrap_or_default();
        let is_asked = |&place: &usize| view.paths.get(place).is_some_and(|it| asked.contains(&it));
        AccessPath {
            by_text: self.expression.is_some(),
            by_paths: (0..view.paths.len()).filter(is_asked).collect(),
            possible: self.possible(),
            segments: view.segments.len(),
            ..AccessPath::default()
        }
    }

    /// The access path of [`Plan::count`].
    pub fn count_access(&self, view: &TableView) -> Result<AccessPath> {
        let Some(IndexCounted { total, found, examined, scanned }) = self.count_by_index(view)?
        else {
            return Ok(self.access(view)?.0);
        };
        let is_union = found.len() > 1 && self.narrowing().is_some_and(Narrowing::is_union);
        let (found_by, matching) = (found.into_vec(), total);
        let path = self.path(view);
        Ok(AccessPath {
            found_by,
            is_union,
            examined,
            matching,
            scanned,
            by_paths: Vec::new(),
            ..path
        })
    }

    /// The access path and the matching documents. Ignores the order.
    pub fn access(&self, view: &TableView) -> Result<(AccessPath, Vec<Docs>)> {
        let mut path = self.path(view);
        let mut report = QueryReport::default();
        let (mut all, mut found) = (Vec::with_capacity(view.segments.len()), FoundByKeys::new());
        for segment in &view.segments {
            let docs = match &self.expression {
                Some(expression) => {
                    Docs::Some(matching(view, segment, expression, &mut report, None)?)
                }
                None => Docs::Every,
            };
            let left = self.narrowed(segment, docs, &mut found);
            let is_every = matches!(left.docs, Docs::Every);
            let looked_at = left.docs.count_live(segment);
            let docs = match &self.condition {
                Some(condition) => left.satisfying(condition, segment)?,
                None => left.docs,
            };
            let matching = docs.count_live(segment);
            let is_by_paths = is_every && !path.by_paths.is_empty();
            path.scanned += usize::from(is_every && !is_by_paths);
            path.examined += if is_by_paths { matching } else { looked_at };
            path.matching += matching;
            all.push(docs);
        }
        let narrowing = self.narrowing();
        path.is_union = found.len() > 1 && narrowing.is_some_and(Narrowing::is_union);
        path.found_by = found.into_vec();
        Ok((path, all))
    }

    /// The candidates of a segment, if keys or indexes find them more cheaply than its columns; adds to `found`
    /// which did.
    fn narrowed(&self, view: &SegmentView, docs: Docs, found: &mut FoundByKeys) -> Narrowed {
        let segment = &view.segment;
        let few = segment.doc_count() / FEW_SHARE;
        if matches!(&docs, Docs::Some(docs) if docs.count() <= few) {
            return Narrowed { docs, is_all: false };
        }
        let candidates = self.narrowing().and_then(|it| it.candidates(segment));
        match candidates {
            Some(candidates) => Narrowed::of(docs, candidates, found),
            None => Narrowed { docs, is_all: false },
        }
    }

    /// The number of rows. For a single term the text index may know it without the documents.
    pub fn count(&self, view: &TableView, position: Position, started: Instant) -> Result<Counted> {
        if let Some(IndexCounted { total, found, .. }) = self.count_by_index(view)? {
            view.usage.found(&found);
            let mut report = self.report(view, position);
            report.after_filters = total;
            report.index_time = started.elapsed();
            return Ok((total, report));
        }
        let pattern = self.expression.as_ref().and_then(Expression::only_pattern);
        let (Some(pattern), [text], None) = (pattern, &view.schema.texts[..], &self.condition)
        else {
            let selected = self.run(view, position, started)?;
            return Ok((selected.total, selected.report));
        };
        self.note_searched(view);
        let mut total = 0;
        let mut report = self.report(view, position);
        for segment in &view.segments {
            self.unless.check()?;
            let Some(index) = segment.segment.text(text.id) else { continue };
            let known = if segment.deleted.is_none() { index.count(pattern)? } else { None };
            total += match (known, &self.expression) {
                (Some(count), _) => u64::from(count),
                (None, Some(expression)) => {
                    let docs = matching(view, segment, expression, &mut report, None)?;
                    Docs::Some(docs).count_live(segment)
                }
                (None, None) => 0,
            };
        }
        self.report_counts(&mut report, total);
        report.after_filters = total;
        report.index_time = started.elapsed();
        Ok((total, report))
    }

    /// The number of rows that satisfy the condition, if indexes can count them in some segment.
    fn count_by_index(&self, view: &TableView) -> Result<Option<IndexCounted>> {
        let (None, Some(condition)) = (&self.expression, &self.condition) else { return Ok(None) };
        let Some(counting) = IndexCount::new(&view.schema, condition, self.allowed) else {
            return Ok(None);
        };
        let mut counted = IndexCounted::default();
        for segment in &view.segments {
            if let Some(count) = counting.count(segment, condition, &mut counted.found)? {
                counted.total += count;
                counted.examined += count;
                continue;
            }
            let left = self.narrowed(segment, Docs::Every, &mut counted.found);
            counted.scanned += usize::from(matches!(left.docs, Docs::Every));
            counted.examined += left.docs.count_live(segment);
            counted.total += left.satisfying(condition, segment)?.count_live(segment);
        }
        Ok(Some(counted))
    }

    /// Updates the usage counters of the text indexes that are searched.
    pub fn note_searched(&self, view: &TableView) {
        let Some(expression) = &self.expression else { return };
        let places = 0..view.schema.texts.len();
        places.filter(|place| expression.asks(*place)).for_each(|place| view.usage.searched(place));
    }

    /// The report before anything is matched.
    pub fn report(&self, view: &TableView, position: Position) -> QueryReport {
        let expression = self.expression.as_ref();
        let mut keywords = expression.iter().flat_map(|expression| &expression.keywords);
        let keyword_documents = keywords.clone().fold(None, |sum: Option<u64>, query| {
            Some(sum.unwrap_or(0) + query.documents_of_keywords())
        });
        QueryReport {
            position,
            warning: keywords.find_map(|query| query.warning().map(str::to_owned)),
            keyword_documents,
            terms: self.expression.as_ref().map_or(0, |expression| expression.terms.len() as u64),
            atoms: self.expression.as_ref().map_or(0, Expression::atoms),
            segments: view.segments.len() as u64,
            ..QueryReport::default()
        }
    }

    /// Fills in the counts that follow from the number of rows that match the text.
    fn report_counts(&self, report: &mut QueryReport, matched: u64) {
        report.after_not = matched;
        match self.expression.as_ref().map(|expression| &expression.root) {
            Some(TextNode::All { none, .. }) if !none.is_empty() => {}
            _ => report.after_intersection = matched,
        }
        if self.expression.as_ref().is_none_or(Expression::is_one_term) {
            report.candidates = matched;
        }
    }
}

pub(super) fn count_live(docs: &[Docs], segments: &[SegmentView]) -> u64 {
    docs.iter().zip(segments).map(|(docs, view)| docs.count_live(view)).sum()
}
