//! Reads columns of every matching row, in batches.
//!
//! Indexed columns come from the segments, a chunk of documents at a time. Others come from the row store: row by row
//! for matching documents, or by one walk over the row store if all rows are read.

use std::{collections::BTreeMap, ops::Range, sync::Arc, time::Instant};

use remora_index::segment::Segment;

use super::{
    column_batch::{ColumnBuilder, byte_limit},
    docs::Docs,
    gathered::GatheredRows,
    merge::Merge,
    order::DocumentAddress,
    ranked::Ranked,
    scan_best::ScanBest,
    score::{Scoring, SegmentScores},
    select::{Plan, count_live},
    source::{ColumnSource, Sources, sources, wanted},
    texts,
};
use crate::{
    ColumnBatch, ColumnType, FactorsForm, Position, Result, ScanRequest, Selection, TextQuery,
    Value, encode::decode_key, indexing::RequiredRows, interrupt::InterruptCheck,
    snapshot::TableView,
};

/// Documents or rows read between two checks of the batch's size.
const CHUNK_DOCS: usize = 256;
const CHUNK_ROWS: usize = 16;
/// The most rows of a batch with ranking factors, because each row is weighed again.
const FACTOR_ROWS: usize = 256;

/// A running scan. It keeps the snapshot it started with.
pub struct Scan(Running);

/// The source of the rows.
enum Running {
    Here(Box<ViewScan>),
    Elsewhere(Box<GatheredRows>),
}

impl Scan {
    /// A scan of rows of several servers.
    pub(crate) fn gathered(rows: GatheredRows) -> Self {
        Self(Running::Elsewhere(Box::new(rows)))
    }

    /// The number of rows still to come; for rows on other servers an upper bound.
    pub fn rows(&self) -> u64 {
        match &self.0 {
            Running::Here(scan) => scan.rows,
            Running::Elsewhere(rows) => rows.most(),
        }
    }
}

impl From<ViewScan> for Scan {
    fn from(scan: ViewScan) -> Self {
        Self(Running::Here(Box::new(scan)))
    }
}

impl Iterator for Scan {
    type Item = Result<ColumnBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Running::Here(scan) => scan.next(),
            Running::Elsewhere(rows) => rows.next(),
        }
    }
}

/// A scan of a table on this server.
pub(crate) struct ViewScan {
    view: Arc<TableView>,
    sources: Sources,
    way: ScanMethod,
    batch_rows: usize,
    batch_bytes: usize,
    /// The number of rows still to come.
    rows: u64,
}

/// The way rows are found.
enum ScanMethod {
    Segments(SegmentWalk),
    Rows(RowWalk),
}

impl ViewScan {
    /// Starts a scan, and validates the request.
    pub(crate) fn new(
        view: Arc<TableView>,
        request: ScanRequest,
        bm25: (f64, f64),
        moment: (Position, &InterruptCheck),
    ) -> Result<Self> {
        let sources = sources(&view.schema, &request.columns)?;
        let ScanRequest { table, text, filter, scores, indexes, .. } = request;
        let selection = Selection { table, text, filter, fuzzy: None, indexes };
        let every = selection.text.is_none() && selection.filter.is_none();
        let from_rows = sources.iter().any(ColumnSource::is_row);
        let best = ScanBest::new(&view.schema, request.best.as_ref());
        let (way, rows) = if every && from_rows && scores.is_empty() && best.is_none() {
            (ScanMethod::Rows(RowWalk::new(&view)?), view.live_count())
        } else {
            let chunk = if from_rows { CHUNK_ROWS } else { CHUNK_DOCS };
            let selected = Selected::new(&view, &selection, scores, best, bm25, moment)?;
            let Selected { docs, scores, rows } = selected;
            let walk = SegmentWalk::new(docs, scores, request.in_key_order, chunk);
            (ScanMethod::Segments(walk), rows)
        };
        let rows = rows.min(request.limit.unwrap_or(u64::MAX));
        let (batch_rows, batch_bytes) =
            (request.batch_rows.max(1), byte_limit(request.batch_bytes));
        Ok(Self { view, sources, way, batch_rows, batch_bytes, rows })
    }

    /// Starts a scan that examines at most `most` documents; `None` if it would need more.
    pub(crate) fn few(
        view: Arc<TableView>,
        request: ScanRequest,
        most: u64,
        unless: &InterruptCheck,
    ) -> Result<Option<Self>> {
        let sources = sources(&view.schema, &request.columns)?;
        let ScanRequest { table, text, filter, limit, indexes, .. } = request;
        let selection = Selection { table, text, filter, fuzzy: None, indexes };
        let wanted = limit.unwrap_or(u64::MAX);
        let every = selection.text.is_none() && selection.filter.is_none();
        let from_rows = sources.iter().any(ColumnSource::is_row);
        let (batch_rows, batch_bytes) =
            (request.batch_rows.max(1), byte_limit(request.batch_bytes));
        // The row store may have many rows that are none of the table's.
        if every && from_rows && view.schema.required.is_none() {
            let rows = view.live_count().min(wanted);
            if rows > most {
                return Ok(None);
            }
            let way = ScanMethod::Rows(RowWalk::new(&view)?);
            return Ok(Some(Self { view, sources, way, batch_rows, batch_bytes, rows }));
        }
        let plan = Plan::new(&view, &selection, unless)?;
        let Some(docs) = plan.run_few(&view, most, wanted)? else { return Ok(None) };
        let rows = count_live(&docs, &view.segments).min(wanted);
        let chunk = if from_rows { CHUNK_ROWS } else { CHUNK_DOCS };
        let walk = SegmentWalk::new(docs, Vec::new(), request.in_key_order, chunk);
        let way = ScanMethod::Segments(walk);
        Ok(Some(Self { view, sources, way, batch_rows, batch_bytes, rows }))
    }

    fn read_batch(&mut self) -> Result<ColumnBatch> {
        let most = usize::try_from(self.rows).map_or(self.batch_rows, |it| it.min(self.batch_rows));
        let scores = match &self.way {
            ScanMethod::Segments(walk) => walk.scores.as_slice(),
            ScanMethod::Rows(_) => &[],
        };
        // A statement is killed between batches, so that they must be small.
        let has_factors = scores.iter().any(|one| matches!(one, RowScores::Factors(..)));
        let most = if has_factors { most.min(FACTOR_ROWS) } else { most };
        let new = |kind| ColumnBuilder::new(kind, most.min(1 << 16));
        let kinds = self.sources.iter().map(ColumnSource::kind);
        let kinds = kinds.chain(scores.iter().map(RowScores::kind));
        let columns = kinds.map(new).collect();
        let mut batch = Batch { columns, rows: 0, most, most_bytes: self.batch_bytes };
        match &mut self.way {
            ScanMethod::Rows(walk) => walk.read(&self.view, &self.sources, &mut batch)?,
            ScanMethod::Segments(walk) => walk.read(&self.view, &self.sources, &mut batch)?,
        }
        let columns = batch.columns.into_iter().map(ColumnBuilder::finish).collect();
        Ok(ColumnBatch { rows: batch.rows, columns })
    }
}

impl Iterator for ViewScan {
    type Item = Result<ColumnBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rows == 0 {
            return None;
        }
        let batch = self.read_batch();
        self.rows = match &batch {
            Ok(batch) if batch.rows > 0 => self.rows.saturating_sub(batch.rows as u64),
            _ => 0,
        };
        batch.map(|batch| (batch.rows > 0).then_some(batch)).transpose()
    }
}

/// The rows of a scan.
struct Selected {
    /// The documents of each segment.
    docs: Vec<Docs>,
    scores: Vec<RowScores>,
    /// The number of rows.
    rows: u64,
}

impl Selected {
    fn new(
        view: &TableView,
        selection: &Selection,
        scores: Vec<TextQuery>,
        best: Option<ScanBest<'_>>,
        bm25: (f64, f64),
        moment: (Position, &InterruptCheck),
    ) -> Result<Self> {
        let weights = match &best {
            Some(best) => best.by_weight(view, selection, &scores, moment.1)?,
            None => None,
        };
        if scores.is_empty()
            && let Some(best) = &best
            && let Some(docs) = best.by_index(view, selection, moment.1)?
        {
            let rows = count_live(&docs, &view.segments);
            return Ok(Self { docs, scores: Vec::new(), rows });
        }
        let (mut docs, mut rows) = match &weights {
            Some(weights) => {
                let docs = weights.iter().map(|weights| Docs::Some(weights.documents()));
                (docs.collect(), weights.iter().map(SegmentScores::count).sum())
            }
            None => {
                let plan = Plan::new(view, selection, moment.1)?;
                let selected = plan.run(view, moment.0, Instant::now())?;
                (selected.docs, selected.total)
            }
        };
        // The scores of a search are a part of its answer, not an answer more.
        let uncounted = (selection.text.is_some() && !scores.is_empty())
            .then(|| TableView { usage: Arc::default(), ..view.clone() });
        let scored_view = uncounted.as_ref().unwrap_or(view);
        let Some(best) = best else {
            let row_scores = |query| RowScores::new(scored_view, &docs, query, bm25, moment);
            let scores = scores.into_iter().map(row_scores).collect::<Result<_>>()?;
            return Ok(Self { docs, scores, rows });
        };
        let score = best.score();
        let by = match (weights, score.and_then(|score| scores.get(score))) {
            (Some(weights), _) => Some(RowScores::Scores(weights)),
            (None, Some(query)) => {
                Some(RowScores::new(scored_view, &docs, query.clone(), bm25, moment)?)
            }
            (None, None) => None,
        };
        let of_order = match &by {
            Some(RowScores::Scores(scores)) => Some(scores.as_slice()),
            _ => None,
        };
        rows = best.keep(view, &mut docs, of_order).unwrap_or(rows);
        let mut by = by;
        let row_scores = |(at, query)| match by.take_if(|_| score == Some(at)) {
            Some(by) => Ok(by),
            None => RowScores::new(scored_view, &docs, query, bm25, moment),
        };
        let scores = scores.into_iter().enumerate().map(row_scores).collect::<Result<_>>()?;
        Ok(Self { docs, scores, rows })
    }
}

/// Values that a text condition computes for rows.
enum RowScores {
    /// The scores of each segment.
    Scores(Vec<SegmentScores>),
    /// The factors of a ranking expression.
    Factors(Box<Ranked>, FactorsForm),
}

impl RowScores {
    fn new(
        view: &TableView,
        selected: &[Docs],
        query: TextQuery,
        bm25: (f64, f64),
        moment: (Position, &InterruptCheck),
    ) -> Result<Self> {
        if let TextQuery::Keywords(asked) = &query
            && let Some(form) = asked.factors
        {
            return Ok(Self::Factors(Box::new(Ranked::new(view, asked, moment.1)?), form));
        }
        scored(view, selected, query, bm25, moment).map(Self::Scores)
    }

    fn kind(&self) -> ColumnType {
        match self {
            Self::Scores(_) => ColumnType::Double,
            Self::Factors(..) => ColumnType::Text,
        }
    }
}

/// The scores of the selected documents that match a text condition, by segment.
fn scored(
    view: &TableView,
    selected: &[Docs],
    query: TextQuery,
    bm25: (f64, f64),
    (position, unless): (Position, &InterruptCheck),
) -> Result<Vec<SegmentScores>> {
    let selection = Selection { text: Some(query), ..Selection::default() };
    let plan = Plan::new(view, &selection, unless)?;
    let mut occurrences = plan.occurrences(view);
    let found = plan.run_learning(view, position, Instant::now(), Some(&mut occurrences))?;
    let segments = view.segments.iter().zip(found.docs).zip(selected);
    let docs = segments.map(|((segment, found), selected)| {
        let found = found.into_set(segment.segment.doc_count());
        Docs::Some(match selected {
            Docs::Every => found,
            Docs::Some(selected) => found.intersect(selected),
        })
    });
    let docs: Vec<Docs> = docs.collect();
    let mut report = found.report;
    Scoring { view, expression: plan.expression.as_ref(), bm25, best: None, by_key: false }.scores(
        &docs,
        occurrences,
        &mut report,
    )
}

/// A batch under construction.
struct Batch {
    columns: Vec<ColumnBuilder>,
    rows: usize,
    most: usize,
    most_bytes: usize,
}

impl Batch {
    fn is_full(&self) -> bool {
        self.rows >= self.most || self.is_heavy()
    }

    fn is_heavy(&self) -> bool {
        self.columns.iter().map(ColumnBuilder::string_bytes).sum::<usize>() >= self.most_bytes
    }
}

/// Iterates over the matching documents.
struct SegmentWalk {
    /// The matching documents of each segment.
    selected: Vec<Docs>,
    /// The computed values, which follow the columns.
    scores: Vec<RowScores>,
    /// For each segment the first document not returned yet.
    next: Vec<u32>,
    /// The current segment, unless all are read in key order.
    segment: usize,
    in_key_order: bool,
    chunk: usize,
    /// The documents of a chunk, and the run of each segment in it.
    docs: Vec<u32>,
    runs: Vec<(usize, Range<usize>)>,
}

impl SegmentWalk {
    fn new(selected: Vec<Docs>, scores: Vec<RowScores>, in_key_order: bool, chunk: usize) -> Self {
        let next = vec![0; selected.len()];
        let in_key_order = in_key_order && selected.len() > 1;
        let (docs, runs) = (Vec::new(), Vec::new());
        Self { selected, scores, next, segment: 0, in_key_order, chunk, docs, runs }
    }

    fn read(
        &mut self,
        view: &TableView,
        sources: &[ColumnSource],
        batch: &mut Batch,
    ) -> Result<()> {
        while !batch.is_full() {
            let most = self.chunk.min(batch.most - batch.rows);
            self.docs.clear();
            self.runs.clear();
            match self.in_key_order {
                true => self.take_in_key_order(view, most),
                false => self.take(view, most),
            }
            if self.docs.is_empty() {
                break;
            }
            self.gather(view, sources, batch)?;
            self.gather_scores(view, sources.len(), batch)?;
            batch.rows += self.docs.len();
        }
        Ok(())
    }

    /// Takes the next documents, segment by segment.
    fn take(&mut self, view: &TableView, most: usize) {
        while let (Some(segment), Some(selected), Some(next)) = (
            view.segments.get(self.segment),
            self.selected.get(self.segment),
            self.next.get_mut(self.segment),
        ) {
            let start = self.docs.len();
            let walk = selected.walk(segment).within(*next, u32::MAX).directed(false);
            self.docs.extend(walk.take(most - start));
            if let Some(last) = self.docs.get(start..).and_then(<[u32]>::last) {
                *next = last + 1;
                self.runs.push((self.segment, start..self.docs.len()));
            }
            if self.docs.len() == most {
                return;
            }
            self.segment += 1;
        }
    }

    /// Takes the next documents of all segments, in key order.
    fn take_in_key_order(&mut self, view: &TableView, most: usize) {
        let segments = view.segments.iter().zip(&self.selected).zip(&self.next).enumerate();
        let streams = segments.map(|(segment, ((view, selected), &next))| {
            let walk = selected.walk(view).within(next, u32::MAX).directed(false);
            walk.map(move |doc| DocumentAddress { segment, doc })
        });
        let keys = |place: &DocumentAddress| view.segments[place.segment].segment.keys();
        let merged = Merge::new(streams, |a: &DocumentAddress, b: &DocumentAddress| {
            keys(a).compare(a.doc, keys(b), b.doc)
        });
        for (at, place) in merged.take(most).enumerate() {
            self.docs.push(place.doc);
            match self.runs.last_mut() {
                Some((segment, run)) if *segment == place.segment => run.end = at + 1,
                _ => self.runs.push((place.segment, at..at + 1)),
            }
        }
        for (segment, run) in &self.runs {
            let last = run.end.checked_sub(1).and_then(|last| self.docs.get(last));
            if let (Some(next), Some(last)) = (self.next.get_mut(*segment), last) {
                *next = last + 1;
            }
        }
    }

    /// Appends the requested columns of the chunk, as far as the batch has room.
    fn gather(
        &mut self,
        view: &TableView,
        sources: &[ColumnSource],
        batch: &mut Batch,
    ) -> Result<()> {
        if sources.iter().any(|source| !matches!(source, ColumnSource::Column { .. })) {
            let taken = self.gather_rows(view, sources, batch)?;
            self.give_back(taken);
        }
        for (source, out) in sources.iter().zip(&mut batch.columns) {
            let ColumnSource::Column { id, .. } = source else { continue };
            for (segment, docs) in self.runs(view) {
                match segment.column(*id) {
                    Some(column) => out.gather(column, docs)?,
                    None => out.push_nulls(docs.len()),
                }
            }
        }
        Ok(())
    }

    /// Appends the columns that segments do not have until the batch is large enough; returns the number of rows.
    fn gather_rows(
        &self,
        view: &TableView,
        sources: &[ColumnSource],
        batch: &mut Batch,
    ) -> Result<usize> {
        let (mut key, mut taken) = (Vec::new(), 0);
        for (segment, docs) in self.runs(view) {
            for &doc in docs {
                key.clear();
                segment.keys().read(doc, &mut key);
                gather_behind_key(view, (segment, doc), &key, sources, batch)?;
                taken += 1;
                // One row may have megabytes.
                if batch.is_heavy() {
                    return Ok(taken);
                }
            }
        }
        Ok(taken)
    }

    /// Puts back the documents of the chunk behind the first `taken`.
    fn give_back(&mut self, taken: usize) {
        let mut first = None;
        for (segment, run) in &self.runs {
            let rest = self.docs.get(run.start.max(taken)..run.end).unwrap_or_default();
            if let (Some(doc), Some(next)) = (rest.first(), self.next.get_mut(*segment)) {
                *next = (*doc).min(*next);
                first = first.or(Some(*segment));
            }
        }
        if let (Some(segment), false) = (first, self.in_key_order) {
            self.segment = segment;
        }
        self.docs.truncate(taken);
        self.runs.retain_mut(|(_, run)| {
            run.end = run.end.min(taken);
            run.start < run.end
        });
    }

    /// Appends the scores and factors of the chunk, behind the first `first` columns.
    fn gather_scores(&self, view: &TableView, first: usize, batch: &mut Batch) -> Result<()> {
        for (row_scores, out) in self.scores.iter().zip(batch.columns.iter_mut().skip(first)) {
            match row_scores {
                RowScores::Scores(scores) => {
                    for (segment, run) in &self.runs {
                        let docs = self.docs.get(run.clone()).unwrap_or_default();
                        let scores = scores.get(*segment);
                        let score = |doc: &u32| scores.map_or(0.0, |scores| scores.get(*doc));
                        docs.iter().try_for_each(|doc| out.push(&Value::Float(score(doc))))?;
                    }
                }
                RowScores::Factors(ranked, form) => {
                    for text in self.factors(view, ranked, *form)? {
                        out.push(&Value::Text(text.into()))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The factors of the chunk. The documents of each segment are weighed together, in whatever order the keys
    /// are.
    fn factors(&self, view: &TableView, ranked: &Ranked, form: FactorsForm) -> Result<Vec<String>> {
        let mut places: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (segment, run) in &self.runs {
            places.entry(*segment).or_default().extend(run.clone());
        }
        let mut texts = vec![String::new(); self.docs.len()];
        for (segment, places) in places {
            let Some(segment) = view.segments.get(segment) else { continue };
            let docs = places.iter().filter_map(|&place| self.docs.get(place).copied());
            let docs: Vec<u32> = docs.collect();
            for (place, factors) in places.into_iter().zip(ranked.factors(segment, &docs, form)?) {
                if let Some(text) = texts.get_mut(place) {
                    *text = factors;
                }
            }
        }
        Ok(texts)
    }

    fn runs<'w>(&'w self, view: &'w TableView) -> impl Iterator<Item = (&'w Segment, &'w [u32])> {
        self.runs.iter().filter_map(|(segment, run)| {
            Some((&*view.segments.get(*segment)?.segment, self.docs.get(run.clone())?))
        })
    }
}

/// Appends the columns of a row that the segments do not have.
fn gather_behind_key(
    view: &TableView,
    document: (&Segment, u32),
    key: &[u8],
    sources: &[ColumnSource],
    batch: &mut Batch,
) -> Result<()> {
    let reads_row = sources.iter().any(ColumnSource::is_row);
    let row = reads_row.then(|| texts::row(view, document, key, &wanted(sources))).transpose()?;
    let is_key = |source: &ColumnSource| matches!(source, ColumnSource::Key { .. });
    let parts = sources.iter().any(is_key).then(|| decode_key(&view.schema, key)).transpose()?;
    for (source, out) in sources.iter().zip(&mut batch.columns) {
        let value = match *source {
            ColumnSource::Column { .. } => continue,
            ColumnSource::Key { part, .. } => parts.as_ref().and_then(|parts| parts.get(part)),
            ColumnSource::Row { position, .. } => row.as_ref().and_then(|row| row.get(position)),
        };
        out.push(value.unwrap_or(&Value::Null))?;
    }
    Ok(())
}

/// Iterates over the row store.
struct RowWalk {
    required: RequiredRows,
    /// The columns that decide whether a row is one of the table's.
    conditions: Vec<usize>,
    /// The next key to read.
    from: Vec<u8>,
}

impl RowWalk {
    fn new(view: &TableView) -> Result<Self> {
        let required = RequiredRows::of(&view.schema)?;
        let conditions = required.columns();
        Ok(Self { required, conditions, from: Vec::new() })
    }

    fn read(
        &mut self,
        view: &TableView,
        sources: &[ColumnSource],
        batch: &mut Batch,
    ) -> Result<()> {
        let Self { required, conditions, from } = self;
        let start = std::mem::take(from);
        let of_sources = wanted(sources);
        let wanted = |place: usize| of_sources(place) || conditions.contains(&place);
        view.rows.scan_columns(&start, &wanted, &mut |key, row| {
            if !required.accept(&row) {
                return Ok(true);
            }
            for (source, out) in sources.iter().zip(&mut batch.columns) {
                out.push(row.get(source.position()).unwrap_or(&Value::Null))?;
            }
            batch.rows += 1;
            if !batch.is_full() {
                return Ok(true);
            }
            // The successor of this key.
            from.extend_from_slice(key);
            from.push(0);
            Ok(false)
        })
    }
}
