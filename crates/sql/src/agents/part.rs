//! The client side: a part of a table on another server.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use remora_engine::{
    Answer, Error, FacetRequest, InterruptCheck, KeywordQuery, KeywordStatistics, MAX_FACET_VALUES,
    Part, PartRows, PartValues, Result, Row, ScanRequest, Schema, Selection, TextQuery, Value,
    WantedStatistics, decode_rows,
};
use serde::de::DeserializeOwned;

use super::{
    definition::Agent,
    link::{Link, PendingLink, PendingReply, StatementTime},
    wire::{
        MAX_PAGE_BYTES, OpenReply, PAGE_KEYS, Request, VERSION, WireQuery, WireTextCondition,
        bytes_of, digits, page_rows, row_bytes,
    },
};
use crate::shared::InstanceState;

/// The most missing servers that a part may report, and the most characters of each report.
const MAX_LOST: usize = 64;
const MAX_LOST_CHARACTERS: usize = 1_000;
/// The longest version text by which a part names the state of its rows.
const MAX_VERSION_BYTES: usize = 64 << 10;

/// A part that is being opened.
pub(super) struct Opening(PendingLink);

impl Opening {
    /// Begins to open the part.
    pub(super) fn begin(
        shared: &Arc<InstanceState>,
        agent: Agent,
        time: StatementTime,
        trail: Vec<String>,
        is_partial: bool,
    ) -> Result<Self> {
        let open = move |mirror: &super::definition::Mirror| Request::Open {
            version: VERSION,
            tables: mirror.tables.clone(),
            trail: trail.clone(),
            is_partial,
        };
        PendingLink::begin(shared, agent, time, open).map(Self)
    }

    /// Waits until the part is open; returns it with the reports of servers that are missing from
    /// it.
    pub(super) fn finish(self, unless: &InterruptCheck) -> Result<(AgentPart, Vec<String>)> {
        let (link, answer) = self.0.finish(unless)?;
        let mut opened: OpenReply = json(&link, &answer)?;
        let schema = opened.schema.take().ok_or_else(|| lie(&link, "it told no definition"))?;
        schema.validate().map_err(|error| lie(&link, &error.to_string()))?;
        let lost = std::mem::take(&mut opened.lost).into_iter().take(MAX_LOST);
        let lost = lost.map(|why| why.chars().take(MAX_LOST_CHARACTERS).collect()).collect();
        let schema = Schema { name: link.name().to_owned(), ..schema };
        let scans = Arc::default();
        Ok((AgentPart::new(Arc::new(link), Arc::new(schema), opened, scans)?, lost))
    }
}

/// A part on another server, read at the snapshot that the server pinned for this connection.
pub(super) struct AgentPart {
    link: Arc<Link>,
    schema: Arc<Schema>,
    rows: u64,
    version: String,
    ends: Option<(Vec<u8>, Vec<u8>)>,
    /// The number of the last scan. All parts of one connection share it, since scan numbers must
    /// be unique there.
    scans: Arc<AtomicU32>,
}

impl AgentPart {
    fn new(
        link: Arc<Link>,
        schema: Arc<Schema>,
        opened: OpenReply,
        scans: Arc<AtomicU32>,
    ) -> Result<Self> {
        if opened.version.len() > MAX_VERSION_BYTES {
            return Err(lie(&link, "it names its rows by too long a version"));
        }
        let ends = opened.ends.map(|(first, last)| Some((bytes_of(&first)?, bytes_of(&last)?)));
        let ends = match ends {
            Some(None) => return Err(lie(&link, "it told keys that are none")),
            Some(ends) => ends,
            None => None,
        };
        let is_in_order = ends.as_ref().is_none_or(|(first, last)| first <= last);
        // A table whose rows are all hidden may still have key bounds.
        if !is_in_order || (ends.is_none() && opened.rows > 0) {
            return Err(lie(&link, "it told keys that cannot be"));
        }
        Ok(Self { link, schema, rows: opened.rows, version: opened.version, ends, scans })
    }
}

impl Part for AgentPart {
    fn name(&self) -> &str {
        self.link.name()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn ends(&self) -> Option<&(Vec<u8>, Vec<u8>)> {
        self.ends.as_ref()
    }

    fn keys_from(&self, from: &[u8], unless: &InterruptCheck) -> Result<Vec<Vec<u8>>> {
        let answer = self.link.send(&Request::Keys { from: digits(from) })?.wait(unless)?;
        let rows = decode_rows(&answer, 1, PAGE_KEYS);
        let rows = rows.map_err(|error| lie(&self.link, &error.to_string()))?;
        let key = |mut row: Row| match row.pop() {
            Some(Value::Bytes(key)) => Ok(key.to_vec()),
            _ => Err(lie(&self.link, "it told keys that are none")),
        };
        rows.into_iter().map(key).collect()
    }

    fn hide(&self, keys: &[Vec<u8>], unless: &InterruptCheck) -> Result<Arc<dyn Part>> {
        let keys = keys.iter().map(|key| digits(key)).collect();
        let answer = self.link.send(&Request::Hide { keys })?.wait(unless)?;
        let mut opened: OpenReply = json(&self.link, &answer)?;
        opened.version.clone_from(&self.version);
        let (link, schema) = (Arc::clone(&self.link), Arc::clone(&self.schema));
        Ok(Arc::new(Self::new(link, schema, opened, Arc::clone(&self.scans))?))
    }

    fn statistics<'a>(
        &'a self,
        asked: &'a KeywordQuery,
        wanted: &'a WantedStatistics,
        unless: &'a InterruptCheck,
    ) -> Answer<'a, KeywordStatistics> {
        let request = Request::Statistics { query: WireQuery::of(asked), wanted: wanted.clone() };
        let sent = self.link.send(&request);
        Box::new(move || json(&self.link, &sent?.wait(unless)?))
    }

    fn count<'a>(&'a self, selection: Selection, unless: &'a InterruptCheck) -> Answer<'a, u64> {
        let text = texts(selection.text.as_ref());
        let filter = selection.filter;
        let sent = text.and_then(|text| self.link.send(&Request::Count { text, filter }));
        Box::new(move || json(&self.link, &sent?.wait(unless)?))
    }

    fn facet<'a>(
        &'a self,
        request: FacetRequest,
        unless: &'a InterruptCheck,
    ) -> Answer<'a, PartValues> {
        let FacetRequest { selection, column, .. } = request;
        let text = texts(selection.text.as_ref());
        let filter = selection.filter;
        let sent = text.and_then(|text| self.link.send(&Request::Facet { text, filter, column }));
        Box::new(move || {
            let answer = sent?.wait(unless)?;
            let malformed = || lie(&self.link, "it sent values that are none");
            let (is_counted, rows) = answer.split_first().ok_or_else(malformed)?;
            let most = usize::try_from(MAX_FACET_VALUES).unwrap_or(usize::MAX);
            let rows = decode_rows(rows, 2, most);
            let rows = rows.map_err(|error| lie(&self.link, &error.to_string()))?;
            if *is_counted == 0 {
                return Ok(None);
            }
            let value = |mut row: Row| match (row.pop(), row.pop()) {
                (Some(Value::Uint(count)), Some(value)) => Ok((value, count)),
                _ => Err(malformed()),
            };
            rows.into_iter().map(value).collect::<Result<_>>().map(Some)
        })
    }

    fn scan(&self, request: ScanRequest, unless: &InterruptCheck) -> Result<PartRows> {
        let scores = request.scores.iter().map(|score| texts(Some(score)));
        let scores: Vec<Option<WireTextCondition>> = scores.collect::<Result<_>>()?;
        // The server sends each column once; `places` restores the columns that were asked for
        // twice.
        let (mut asked_columns, mut places): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        for column in &request.columns {
            let known = asked_columns.iter().position(|asked| asked == column);
            places.push(known.unwrap_or(asked_columns.len()));
            if known.is_none() {
                asked_columns.push(*column);
            }
        }
        let columns = asked_columns.len() + request.scores.len();
        places.extend(asked_columns.len()..columns);
        let cursor = self.scans.fetch_add(1, Ordering::Relaxed);
        let page_rows = page_rows(request.batch_rows, columns);
        let page_bytes = request.batch_bytes.unwrap_or(MAX_PAGE_BYTES).min(MAX_PAGE_BYTES);
        let asked = Request::Scan {
            cursor,
            text: texts(request.text.as_ref())?,
            filter: request.filter,
            columns: asked_columns,
            scores: scores.into_iter().flatten().collect(),
            limit: request.limit,
            best: request.best,
            page_rows,
            page_bytes,
        };
        let awaited = Some(self.link.send(&asked)?);
        let (link, unless) = (Arc::clone(&self.link), unless.clone());
        let most = (page_rows, page_bytes);
        Ok(Box::new(Pages { link, cursor, awaited, columns, places, most, is_over: false, unless }))
    }
}

/// The pages of a scan. The next page is requested while the current one is used, so one page at
/// most is read ahead. Dropping this ends the scan on the server.
struct Pages {
    link: Arc<Link>,
    cursor: u32,
    awaited: Option<PendingReply>,
    /// The number of columns that the server sends.
    columns: usize,
    /// For each requested column its place among those sent; scores come last.
    places: Vec<usize>,
    /// The most rows of a page, and the most bytes of all its rows but the last.
    most: (usize, usize),
    /// Whether the last page has come.
    is_over: bool,
    unless: InterruptCheck,
}

impl Pages {
    fn page(&mut self, awaited: PendingReply) -> Result<Vec<Row>> {
        let answer = awaited.wait(&self.unless)?;
        let malformed = || lie(&self.link, "it sent a page that is none");
        let (has_more, rest) = answer.split_first().ok_or_else(malformed)?;
        let rows = decode_rows(rest, self.columns, self.most.0);
        let rows = rows.map_err(|error| lie(&self.link, &error.to_string()))?;
        let all_but_last = rows.split_last().map_or(&[][..], |(_, rows)| rows);
        // The server ends a page as soon as it reaches the limit, so more bytes are a protocol
        // error.
        let bytes: usize = all_but_last.iter().map(|row| row_bytes(row)).sum();
        if !all_but_last.is_empty() && bytes >= self.most.1 {
            return Err(malformed());
        }
        match (has_more, rows.is_empty()) {
            (0, _) => self.is_over = true,
            (1, false) => {
                self.awaited = Some(self.link.send(&Request::Next { cursor: self.cursor })?);
            }
            _ => return Err(malformed()),
        }
        if self.places.len() == self.columns {
            return Ok(rows);
        }
        let whole = |row: Row| -> Row {
            self.places.iter().filter_map(|&at| row.get(at).cloned()).collect()
        };
        Ok(rows.into_iter().map(whole).collect())
    }
}

impl Iterator for Pages {
    type Item = Result<Vec<Row>>;

    fn next(&mut self) -> Option<Self::Item> {
        let awaited = self.awaited.take()?;
        Some(self.page(awaited))
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if !self.is_over {
            self.link.send_without_reply(&Request::End { cursor: self.cursor });
        }
    }
}

/// The text condition as it is sent, or an error if other servers cannot evaluate it.
fn texts(text: Option<&TextQuery>) -> Result<Option<WireTextCondition>> {
    let Some(text) = text else { return Ok(None) };
    let asked = WireTextCondition::of(text).ok_or_else(|| {
        let message = "a condition of the text index, of rows of other servers".to_owned();
        Error::request(remora_engine::RequestPart::Expression, message)
    })?;
    Ok(Some(asked))
}

fn json<T: DeserializeOwned>(link: &Link, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| lie(link, &error.to_string()))
}

fn lie(link: &Link, what: &str) -> Error {
    Error::RemoteServer(format!("{} gave a wrong answer: {what}", link.name()))
}
