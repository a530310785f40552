//! Sends a plan's request to the engine and the rows to the client.

use std::time::Instant;

use remora_engine::{
    ColumnBatch, Error as EngineError, FacetRequest, Filter, Hit, KeyValues, MAX_FACET_VALUES,
    QueryReport, ScanRequest, SearchRequest, Selection, SortBy, TextQuery, Value, ValueRow,
    ValuesRequest, compare,
};

use remora_mysql::Collation;

use super::{
    condition::{FilledTests, Tests},
    constant::Constant,
    keys::{distinct, sort},
    output::send,
    parameterize::Constants,
    plan::{
        FacetColumn, FacetItem, FacetOrder, FacetWork, KeyOrder, KeyWork, MAX_PAGE_ROWS, Member,
        MinOrMax, PageField, PageWork, ShapePlan, ShapeWork,
    },
};
use crate::{
    Cell, Outcome, Reply, Result,
    blocking::{run_blocking, run_search},
    catalog::Reader,
    error::from_engine,
    meaning::{collation::push_key, extracted},
    scan::ScanLimits,
    state::SessionState,
};

/// Keys that are looked up before their rows are sent. That many rows stay in the CPU's cache.
const CHUNK: usize = 1_024;

/// Rows, the report of the search, and the total number of matches if it was counted.
type Found = (Vec<Hit>, Option<(QueryReport, Option<u64>)>);

/// Runs a plan; `None` if a literal needs a conversion that is not made here.
pub(super) async fn run<R: Reply>(
    session: &mut SessionState,
    reader: &Reader,
    plan: &ShapePlan,
    constants: &Constants<'_>,
    reply: &mut R,
) -> Result<Option<Outcome>> {
    let begun = Instant::now();
    let Some(asked) = ShapeRun::of(session, reader, plan, constants)? else { return Ok(None) };
    let rows = match &plan.work {
        ShapeWork::Keys(work)
            if work.test.is_single && work.branches.times == 1 && asked.page.is_everything() =>
        {
            asked.single(session, work, reply)?
        }
        ShapeWork::Keys(work) if work.test.by_bytes => None,
        ShapeWork::Keys(work) => asked.keys(session, work, reply).await?,
        ShapeWork::Page(work) => asked.page(session, work, reply).await?,
        ShapeWork::Count(tests) => asked.count(session, tests, reply)?,
        ShapeWork::Facet(work) => asked.facet(session, work, reply).await?,
        ShapeWork::Ends(tests, ends) => asked.ends(session, tests, ends, reply)?,
    };
    let Some(rows) = rows else {
        if plan.table.is_elsewhere() {
            session.give_up_on_agents(begun.elapsed());
        }
        return Ok(None);
    };
    session.warnings.clear();
    if plan.table.is_elsewhere() {
        session.report_lost_again();
    }
    if plan.work.keywords().is_some() {
        session.warn_of_search();
        session.note_returned(rows);
    }
    session.found_rows = rows;
    Ok(Some(Outcome::default()))
}

/// LIMIT and OFFSET.
#[derive(Clone, Copy)]
pub(super) struct LimitOffset {
    pub limit: u64,
    pub offset: u64,
}

impl LimitOffset {
    pub fn is_everything(self) -> bool {
        self.limit == u64::MAX && self.offset == 0
    }

    /// The range of this page in a list of `count` rows.
    fn of(self, count: usize) -> std::ops::Range<usize> {
        let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).min(count);
        place(self.offset)..place(self.offset.saturating_add(self.limit))
    }
}

pub(super) fn failed(error: EngineError) -> crate::Error {
    from_engine(&error)
}

/// The most values that are sorted by collation here.
const MAX_KEYED: usize = 10_000;

/// Values in the order of a collation; `None` if there are too many, or if some are equal by the collation: then the
/// rows decide which of them is shown.
pub(super) fn by_keys(
    values: Vec<(Value, u64)>,
    collation: Collation,
    order: FacetOrder,
) -> Option<Vec<(Value, u64)>> {
    if values.len() > MAX_KEYED {
        return None;
    }
    let key = |value: &Value| match value {
        Value::Text(text) => {
            let mut key = Vec::new();
            push_key(text, collation, &mut key);
            Some(Some(key))
        }
        Value::Null => Some(None),
        _ => None,
    };
    let keyed = values.into_iter().map(|(value, count)| Some((key(&value)?, value, count)));
    let mut keyed = keyed.collect::<Option<Vec<_>>>()?;
    keyed.sort_by(|a, b| a.0.cmp(&b.0));
    if keyed.windows(2).any(|pair| matches!(pair, [(a, ..), (b, ..)] if a == b)) {
        return None;
    }
    match order {
        FacetOrder::Value(false) => {}
        FacetOrder::Value(true) => keyed.reverse(),
        FacetOrder::Frequent => keyed.sort_by_key(|(_, _, count)| std::cmp::Reverse(*count)),
    }
    Some(keyed.into_iter().map(|(_, value, count)| (value, count)).collect())
}

/// A plan, with the literals of one statement.
pub(super) struct ShapeRun<'a> {
    pub reader: &'a Reader,
    pub plan: &'a ShapePlan,
    pub constants: &'a Constants<'a>,
    pub page: LimitOffset,
}

/// The number of rows sent; `None` if the statement takes the general path.
type Sent = Result<Option<u64>>;

impl<'a> ShapeRun<'a> {
    /// Binds a plan to a statement; `None` if it takes the general path. Error 1142 if the table may not be read.
    pub fn of(
        session: &SessionState,
        reader: &'a Reader,
        plan: &'a ShapePlan,
        constants: &'a Constants<'a>,
    ) -> Result<Option<Self>> {
        if plan.table.is_changed_by(session) {
            return Ok(None);
        }
        plan.table.check(session)?;
        let (limit, offset) = (constants.rows(plan.limit), constants.rows(plan.offset));
        if limit.is_some() != plan.limit.is_some() || offset.is_some() != plan.offset.is_some() {
            return Ok(None);
        }
        let page = LimitOffset { limit: limit.unwrap_or(u64::MAX), offset: offset.unwrap_or(0) };
        Ok(Some(Self { reader, plan, constants, page }))
    }
}

impl ShapeRun<'_> {
    /// Asks the engine. Where that asks other servers or may take long, other connections of this thread go on meanwhile.
    fn ask<T>(&self, text: Option<&TextQuery>, ask: impl FnOnce(&Reader) -> T) -> T {
        match self.plan.table.is_elsewhere() {
            true => run_blocking(|| ask(self.reader)),
            false => run_search(text, || ask(self.reader)),
        }
    }

    fn single<R: Reply>(&self, session: &SessionState, work: &KeyWork, reply: &mut R) -> Sent {
        let Some(key) = work.test.single(self.constants) else { return Ok(None) };
        let table = &self.plan.table.engine_name;
        let mut row = match key {
            Some(key) => self.reader.get_columns(table, &key, &work.fields).map_err(failed)?,
            None => None,
        };
        if row.is_none() && work.test.by_bytes {
            return Ok(None);
        }
        if let Some(row) = &mut row
            && self.extract(session, &work.members, row).is_none()
        {
            return Ok(None);
        }
        reply.columns(&self.plan.columns)?;
        let Some(row) = row else { return Ok(Some(0)) };
        send(reply, &self.plan.columns, &row, &session.variables.time_zone.zone)?;
        Ok(Some(1))
    }

    /// Puts the selected parts of documents in their place; `None` if that is an error or a warning.
    fn extract(&self, session: &SessionState, members: &[Member], row: &mut [Value]) -> Option<()> {
        for member in members {
            let Constant::Text(path) = self.constants.one(member.path) else { return None };
            let slot = row.get_mut(member.place)?;
            let found = match &*slot {
                Value::Null => None,
                document => extracted(document, &path).ok()?,
            };
            let found = found.map(|found| match member.is_text {
                true => found.into_plain_text(),
                false => found.text(),
            });
            let bytes = found.as_ref().map_or(0, String::len) as u64;
            if bytes > session.variables.max_allowed_packet {
                return None;
            }
            *slot = match (found, member.is_text) {
                (None, _) => Value::Null,
                (Some(text), true) => Value::Text(text.into()),
                (Some(text), false) => Value::Json(text.into()),
            };
        }
        Some(())
    }

    async fn keys<R: Reply>(&self, session: &SessionState, work: &KeyWork, reply: &mut R) -> Sent {
        let mut keys: Vec<KeyValues> = Vec::new();
        if work.test.fill(self.constants, work.branches, &mut keys).is_none() {
            return Ok(None);
        }
        match work.order {
            KeyOrder::Ascending => sort(&mut keys),
            KeyOrder::Descending => {
                sort(&mut keys);
                keys.reverse();
            }
            KeyOrder::FirstAsked => distinct(&mut keys),
            KeyOrder::AsAsked => {}
        }
        reply.columns(&self.plan.columns)?;
        let mut left = self.page;
        let mut sent = 0;
        for chunk in keys.chunks(CHUNK) {
            session.check_interrupted()?;
            sent += self.chunk(session, work, chunk, &mut left, reply)?;
            if left.limit == 0 {
                break;
            }
            reply.drain().await?;
        }
        Ok(Some(sent))
    }

    /// Sends the rows of some keys, in the order of the keys.
    fn chunk<R: Reply>(
        &self,
        session: &SessionState,
        work: &KeyWork,
        keys: &[KeyValues],
        left: &mut LimitOffset,
        reply: &mut R,
    ) -> Result<u64> {
        let width = work.fields.len();
        let mut values: Vec<Value> = Vec::with_capacity(keys.len() * width);
        let mut places: Vec<(u32, u32)> = Vec::with_capacity(keys.len());
        let table = &self.plan.table.engine_name;
        let found = self.reader.get_many(table, keys, &work.fields, &mut |place, row| {
            places.push((place as u32, places.len() as u32));
            values.append(row);
            Ok(())
        });
        found.map_err(failed)?;
        if !places.is_sorted() {
            places.sort_unstable();
        }
        let zone = &session.variables.time_zone.zone;
        let mut sent = 0;
        for (_, row) in places {
            if left.offset > 0 {
                left.offset -= 1;
            } else if left.limit > 0 {
                left.limit -= 1;
                let start = row as usize * width;
                let row = values.get(start..start + width).unwrap_or_default();
                send(reply, &self.plan.columns, row, zone)?;
                sent += 1;
            }
        }
        Ok(sent)
    }

    /// The engine's conditions; `None` if a literal needs a conversion.
    pub fn selection(&self, tests: &Tests) -> Option<Selection> {
        let FilledTests { text, filter } = tests.fill(self.constants, &self.plan.table)?;
        let table = self.plan.table.engine_name.clone();
        Some(Selection { table, text, filter, ..Selection::default() })
    }

    async fn page<R: Reply>(
        &self,
        session: &mut SessionState,
        work: &PageWork,
        reply: &mut R,
    ) -> Sent {
        let Some(selection) = self.selection(&work.tests) else { return Ok(None) };
        if let Some(batches) = self.few(work, &selection)? {
            let sent = self.send_few(session, &batches, reply)?;
            reply.drain().await?;
            return Ok(Some(sent));
        }
        let Some((request, is_page)) = self.search(work, selection)? else { return Ok(None) };
        let (hits, told) = match self.found(&request, is_page) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            // The page is larger than the engine permits. The general path streams the rows.
            Err(EngineError::Request { .. }) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        reply.columns(&self.plan.columns)?;
        let zone = session.variables.time_zone.zone.clone();
        let mut row = Vec::with_capacity(work.fields.len());
        let sent = hits.len() as u64;
        for hit in hits {
            row.clear();
            let mut values = hit.fields.into_iter();
            row.extend(work.fields.iter().map(|field| match field {
                PageField::Column(_) => values.next().unwrap_or(Value::Null),
                PageField::Score => Value::Float(hit.score.unwrap_or(0.0)),
                PageField::Weight => Value::Int(hit.score.unwrap_or(0.0) as i64),
            }));
            send(reply, &self.plan.columns, &row, &zone)?;
        }
        match told {
            Some((report, Some(total))) => session.note_search(&request.selection, &report, total),
            // SHOW META tells of a page without a text condition no more than of one of a single table.
            Some((report, None)) if request.selection.text.is_some() => {
                session.note_best(&request.selection, &report);
            }
            Some((_, None)) | None => {}
        }
        Ok(Some(sent))
    }

    /// The rows of a search, with the search report and the total if it was counted. `None` if there may be more rows
    /// than a page may hold and no index finds them, or if other servers send more.
    fn found(
        &self,
        request: &SearchRequest,
        is_page: bool,
    ) -> std::result::Result<Option<Found>, EngineError> {
        let text = request.selection.text.as_ref();
        if is_page
            && let Some((hits, report)) = self.ask(text, |reader| reader.best_page(request))?
        {
            // Where the rows were not counted, one more than a page may hold was asked for.
            let is_whole = hits.len() as u64 <= MAX_PAGE_ROWS;
            return Ok(is_whole.then_some((hits, Some((report, None)))));
        }
        if self.plan.table.is_elsewhere() {
            return Ok(None);
        }
        let begun = Instant::now();
        if let Some(hits) = self.ask(text, |reader| reader.first_page(request))? {
            let report = request.selection.text.is_some().then(|| QueryReport {
                position: self.reader.position(),
                returned: hits.len() as u64,
                total_time: begun.elapsed(),
                ..QueryReport::default()
            });
            return Ok(Some((hits, report.map(|report| (report, None)))));
        }
        if !is_page {
            return Ok(None);
        }
        let found = self.ask(text, |reader| reader.search(request))?;
        Ok(Some((found.hits, Some((found.report, Some(found.total))))))
    }

    /// The search request of a page, and whether it is within the page size limit; `None` if the statement takes the
    /// general path.
    pub fn search(
        &self,
        work: &PageWork,
        selection: Selection,
    ) -> Result<Option<(SearchRequest, bool)>> {
        let LimitOffset { mut limit, offset } = self.page;
        // Other servers are not asked to count: one row more than a page may hold tells that there are too many.
        let is_uncounted = self.plan.limit.is_none() && self.plan.table.is_elsewhere();
        if is_uncounted {
            limit = MAX_PAGE_ROWS + 1;
        } else if self.plan.limit.is_none() {
            // Without LIMIT the limit is the number of matching rows.
            let counted = self.ask(selection.text.as_ref(), |reader| reader.count(&selection));
            limit = counted.map_err(failed)?.count;
        }
        let is_page = is_uncounted || offset.saturating_add(limit) <= MAX_PAGE_ROWS;
        if (limit > MAX_PAGE_ROWS && !is_uncounted) || !self.scores_the_condition(work) {
            return Ok(None);
        }
        let scored = work.sort.iter().any(|key| key.by == SortBy::Score);
        let is_weighed = |field: &PageField| !matches!(field, PageField::Column(_));
        if work.fields.iter().any(is_weighed) && !scored {
            return Ok(None);
        }
        let columns = &self.plan.table.schema().columns;
        let name = |field: &PageField| match field {
            PageField::Column(position) => columns.get(*position).map(|c| c.name.clone()),
            PageField::Score | PageField::Weight => None,
        };
        let request = SearchRequest {
            selection,
            sort: work.sort.clone(),
            limit: limit as usize,
            offset: offset as usize,
            fields: work.fields.iter().filter_map(name).collect(),
            ..SearchRequest::default()
        };
        Ok(Some((request, is_page)))
    }

    /// The rows up to the end of the page, if a scan by key reads only few. They come without a search report.
    pub fn few(&self, work: &PageWork, selection: &Selection) -> Result<Option<Vec<ColumnBatch>>> {
        let Some(columns) = &work.few else { return Ok(None) };
        let LimitOffset { limit, offset } = self.page;
        let request = ScanRequest {
            table: selection.table.clone(),
            filter: selection.filter.clone(),
            columns: columns.clone(),
            batch_rows: CHUNK,
            in_key_order: true,
            limit: self.plan.limit.is_some().then(|| offset.saturating_add(limit)),
            ..ScanRequest::default()
        };
        let scan = self
            .reader
            .scan_within(request, ScanLimits::IN_CONNECTION_THREAD.documents)
            .map_err(failed)?;
        let Some(scan) = scan else { return Ok(None) };
        let (mut batches, mut bytes) = (Vec::new(), 0);
        for batch in scan {
            let batch = batch.map_err(failed)?;
            bytes += batch.bytes();
            if bytes > ScanLimits::IN_CONNECTION_THREAD.bytes {
                return Ok(None);
            }
            batches.push(batch);
        }
        Ok(Some(batches))
    }

    /// Sends the rows of the page and returns their number.
    fn send_few<R: Reply>(
        &self,
        session: &SessionState,
        batches: &[ColumnBatch],
        reply: &mut R,
    ) -> Result<u64> {
        reply.columns(&self.plan.columns)?;
        let zone = &session.variables.time_zone.zone;
        let page = self.page.of(batches.iter().map(|batch| batch.rows).sum());
        let rows = batches.iter().flat_map(|batch| (0..batch.rows).map(move |row| (batch, row)));
        let mut values: Vec<Value> = Vec::with_capacity(self.plan.columns.len());
        for (batch, row) in rows.skip(page.start).take(page.len()) {
            values.clear();
            values.extend(batch.columns.iter().map(|column| column.value(row)));
            send(reply, &self.plan.columns, &values, zone)?;
        }
        Ok(page.len() as u64)
    }

    /// Whether the selected scores are those of the condition's MATCH.
    fn scores_the_condition(&self, work: &PageWork) -> bool {
        let table = &self.plan.table;
        let by_rank = work.sort.iter().any(|key| key.by == SortBy::Score);
        if !by_rank && work.scores.is_empty() && !work.fields.contains(&PageField::Weight) {
            return true;
        }
        if work.tests.keywords().is_some() {
            return work.scores.is_empty();
        }
        let Some((columns, text, boolean)) = work.tests.only_match() else { return false };
        work.scores.iter().all(|score| {
            let positions: Option<Vec<usize>> =
                score.columns.iter().map(|column| table.position(column)).collect();
            let same_text = self.constants.one(score.text) == self.constants.one(text);
            positions.as_deref() == Some(columns) && score.boolean == boolean && same_text
        })
    }

    fn count<R: Reply>(&self, session: &mut SessionState, tests: &Tests, reply: &mut R) -> Sent {
        let Some(selection) = self.selection(tests) else { return Ok(None) };
        let table = &self.plan.table.engine_name;
        let count = if selection.text.is_none() && selection.filter.is_none() {
            self.reader.row_count(table).map_err(failed)?
        } else {
            let counted = self.ask(selection.text.as_ref(), |reader| reader.count(&selection));
            let counted = counted.map_err(failed)?;
            session.note_search(&selection, &counted.report, counted.count);
            counted.count
        };
        reply.columns(&self.plan.columns)?;
        reply.row(&[Cell::Int(i64::try_from(count).unwrap_or(i64::MAX))])?;
        Ok(Some(1))
    }

    async fn facet<R: Reply>(
        &self,
        session: &mut SessionState,
        work: &FacetWork,
        reply: &mut R,
    ) -> Sent {
        let Some(selection) = self.selection(&work.tests) else { return Ok(None) };
        let is_by_bytes = work.columns.iter().all(|column| column.collation.is_none());
        let by_count = work.order == FacetOrder::Frequent && is_by_bytes;
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let (limit, offset) = match by_count {
            true => (number(self.page.limit), number(self.page.offset)),
            false => (usize::MAX, 0),
        };
        let is_elsewhere = self.plan.table.is_elsewhere();
        if !is_elsewhere
            && let Some(request) = self.values_request(work, &selection)
            && let Some(found) = self.reader.values_in_order(&request).map_err(failed)?
        {
            let mut values = found.values;
            let page = self.page.of(values.len());
            let sent = self.send_values(session, work, values.drain(page).collect(), reply).await?;
            session.note_best(&selection, &found.report);
            return Ok(Some(sent));
        }
        let ([FacetColumn { name, collation }], []) = (&*work.columns, &*work.ends) else {
            return Ok(None);
        };
        let (column, values_only) = (name.clone(), work.values_only());
        let request = FacetRequest { selection, column, limit, offset, values_only };
        let found = self.ask(request.selection.text.as_ref(), |reader| match is_elsewhere {
            true => reader.facet_few(&request, MAX_FACET_VALUES),
            false => reader.facet(&request).map(Some),
        });
        let Some(mut found) = found.map_err(failed)? else { return Ok(None) };
        if let Some(collation) = *collation {
            let Some(sorted) = by_keys(found.values, collation, work.order) else {
                return Ok(None);
            };
            found.values = sorted;
        } else if let FacetOrder::Value(descending) = work.order {
            found.values.sort_by(|a, b| compare(&a.0, &b.0));
            if descending {
                found.values.reverse();
            }
        }
        if !by_count {
            let page = self.page.of(found.values.len());
            found.values = found.values.drain(page).collect();
        }
        let values = found.values.into_iter();
        let values =
            values.map(|(value, count)| ValueRow { values: vec![value], count, ends: Vec::new() });
        let sent = self.send_values(session, work, values.collect(), reply).await?;
        session.note_search(&request.selection, &found.report, found.matched);
        Ok(Some(sent))
    }

    /// A request to an index that has the values in order; `None` if another order is wanted.
    pub fn values_request(&self, work: &FacetWork, selection: &Selection) -> Option<ValuesRequest> {
        let FacetOrder::Value(descending) = work.order else { return None };
        let last = self.page.offset.saturating_add(self.page.limit);
        Some(ValuesRequest {
            selection: selection.clone(),
            columns: work.columns.iter().map(|it| (it.name.clone(), it.text_order())).collect(),
            descending,
            limit: usize::try_from(last).unwrap_or(usize::MAX),
            values_only: work.values_only(),
            ends: work.ends.clone(),
        })
    }

    /// Sends the groups and returns their number.
    async fn send_values<R: Reply>(
        &self,
        session: &SessionState,
        work: &FacetWork,
        values: Vec<ValueRow>,
        reply: &mut R,
    ) -> Result<u64> {
        reply.columns(&self.plan.columns)?;
        let zone = session.variables.time_zone.zone.clone();
        for chunk in values.chunks(CHUNK) {
            for of_value in chunk {
                let item = |item: &FacetItem| match item {
                    FacetItem::Value(place) => {
                        of_value.values.get(*place).cloned().unwrap_or(Value::Null)
                    }
                    FacetItem::Count => {
                        Value::Int(i64::try_from(of_value.count).unwrap_or(i64::MAX))
                    }
                    FacetItem::MinOrMax(place) => {
                        of_value.ends.get(*place).cloned().unwrap_or(Value::Null)
                    }
                };
                let row: Vec<Value> = work.items.iter().map(item).collect();
                send(reply, &self.plan.columns, &row, &zone)?;
            }
            reply.drain().await?;
        }
        Ok(values.len() as u64)
    }

    fn ends<R: Reply>(
        &self,
        session: &mut SessionState,
        tests: &Tests,
        ends: &[MinOrMax],
        reply: &mut R,
    ) -> Sent {
        let Some(requests) = self.end_requests(tests, ends) else { return Ok(None) };
        let mut row = Vec::new();
        for request in requests {
            let Some(hits) = self.first(&request).map_err(failed)? else { return Ok(None) };
            let first = hits.into_iter().next();
            let value = first.and_then(|hit| hit.fields.into_iter().next());
            row.push(value.unwrap_or(Value::Null));
        }
        reply.columns(&self.plan.columns)?;
        send(reply, &self.plan.columns, &row, &session.variables.time_zone.zone)?;
        Ok(Some(1))
    }

    /// The first rows of a search; `None` if other servers cannot be asked for them.
    fn first(&self, request: &SearchRequest) -> std::result::Result<Option<Vec<Hit>>, EngineError> {
        if self.plan.table.is_elsewhere() {
            let best = self.ask(None, |reader| reader.best_page(request));
            return Ok(best?.map(|(hits, _)| hits));
        }
        self.ask(request.selection.text.as_ref(), |reader| match reader.first_page(request)? {
            Some(hits) => Ok(Some(hits)),
            None => Ok(Some(reader.search(request)?.hits)),
        })
    }

    /// The searches that find the least and greatest values.
    pub fn end_requests(&self, tests: &Tests, ends: &[MinOrMax]) -> Option<Vec<SearchRequest>> {
        let selection = self.selection(tests)?;
        let request = |MinOrMax { column, nullable, sort }: &MinOrMax| {
            let mut selection = selection.clone();
            if *nullable && !sort.descending {
                // NULLs sort before all values.
                let present = Filter::IsNotNull(column.clone());
                let filter = selection.filter.take();
                selection.filter = Some(match filter {
                    Some(filter) => Filter::And(vec![filter, present]),
                    None => present,
                });
            }
            SearchRequest {
                selection,
                sort: vec![sort.clone()],
                limit: 1,
                fields: vec![column.clone()],
                ..SearchRequest::default()
            }
        };
        Some(ends.iter().map(request).collect())
    }
}
