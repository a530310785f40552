//! A page of a table with several parts, in any order that the engine supports: each part sends its
//! own first rows, and the first of all are selected as they arrive.

use std::{cmp::Ordering, sync::Arc, time::Instant};

use remora_index::TextOrder;

use super::{
    super::{
        columns::position,
        order::{Order, PartBy},
        scan_best::MAX_BEST_ROWS,
    },
    GatheredTable,
};
use crate::{
    BestRows, ColumnBatch, Hit, KeyValues, QueryReport, Result, ScanRequest, SearchRequest,
    Selection, TextQuery, Value, compare, interrupt::InterruptCheck,
};

/// The most bytes of rows held at a time.
const MAX_HELD_BYTES: usize = if cfg!(test) { 64 << 10 } else { 16 << 20 };
/// The most rows requested at a time.
const MAX_BATCH_ROWS: usize = 8_192;

/// One comparison of the order: the position of the value in a row, and how it compares.
struct Compared {
    place: usize,
    /// The order of texts, if they do not compare by bytes.
    order: Option<TextOrder>,
    is_descending: bool,
}

impl Compared {
    /// The value in the form that is compared.
    fn of(&self, value: Value) -> Value {
        match (self.order, value) {
            (Some(order), Value::Text(text)) => {
                let mut key = Vec::new();
                order.write_key(text.as_bytes(), &mut key);
                Value::Bytes(key.into())
            }
            (_, value) => value,
        }
    }
}

/// A row that may be on the page.
struct Candidate {
    /// The values that are compared.
    values: Vec<Value>,
    /// Its number in order of arrival, which is key order.
    arrival: u64,
    /// Its columns, and its score if it has one.
    row: Vec<Value>,
}

impl Candidate {
    fn place(&self) -> (&[Value], u64) {
        (&self.values, self.arrival)
    }
}

/// The first rows among those that arrived (bounded selection).
struct Selected {
    parts: Vec<Compared>,
    key_descending: bool,
    wanted: usize,
    candidates: Vec<Candidate>,
    /// The last of the first rows so far. Rows after it are not needed.
    threshold: Option<(Vec<Value>, u64)>,
    bytes: usize,
    arrived: u64,
}

impl Selected {
    fn order(&self, a: (&[Value], u64), b: (&[Value], u64)) -> Ordering {
        let directed = |ordering: Ordering, is_descending: bool| match is_descending {
            true => ordering.reverse(),
            false => ordering,
        };
        for (part, (mine, theirs)) in self.parts.iter().zip(a.0.iter().zip(b.0)) {
            let ordering = directed(compare(mine, theirs), part.is_descending);
            if ordering.is_ne() {
                return ordering;
            }
        }
        directed(a.1.cmp(&b.1), self.key_descending)
    }

    /// Adds the rows of a batch; false if they would take too much memory.
    fn take(&mut self, batch: &ColumnBatch) -> bool {
        for at in 0..batch.rows {
            let value =
                |place: usize| batch.columns.get(place).map_or(Value::Null, |it| it.value(at));
            let values = self.parts.iter().map(|part| part.of(value(part.place)));
            let values: Vec<Value> = values.collect();
            let arrival = self.arrived;
            self.arrived += 1;
            let is_behind = self.threshold.as_ref().is_some_and(|(last, place)| {
                self.order((&values[..], arrival), (&last[..], *place)).is_ge()
            });
            if is_behind {
                continue;
            }
            let row: Vec<Value> = (0..batch.columns.len()).map(value).collect();
            self.bytes += bytes_of(&row) + bytes_of(&values);
            self.candidates.push(Candidate { values, arrival, row });
            if self.candidates.len() >= self.wanted.saturating_mul(2) {
                self.cut();
            }
            if self.bytes > MAX_HELD_BYTES {
                self.cut();
                // Otherwise almost every row would need another cut.
                if self.bytes > MAX_HELD_BYTES / 2 {
                    return false;
                }
            }
        }
        true
    }

    /// Keeps only the first rows, sorted.
    fn cut(&mut self) {
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.sort_unstable_by(|a, b| self.order(a.place(), b.place()));
        candidates.truncate(self.wanted);
        if candidates.len() == self.wanted {
            self.threshold = candidates.last().map(|last| (last.values.clone(), last.arrival));
        }
        let bytes = |it: &Candidate| bytes_of(&it.row) + bytes_of(&it.values);
        self.bytes = candidates.iter().map(bytes).sum();
        self.candidates = candidates;
    }
}

/// The approximate memory of a row's values, in bytes.
fn bytes_of(row: &[Value]) -> usize {
    let bytes = |value: &Value| match value {
        Value::Text(text) | Value::Json(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    row.iter().map(|value| size_of::<Value>() + bytes(value)).sum()
}

/// The columns that a page reads, and the comparisons of its order.
struct Columns {
    /// Positions in the schema: first the requested fields, then others that the order needs.
    positions: Vec<usize>,
    fields: usize,
    compared: Vec<Compared>,
    /// Whether rows have a score after the columns.
    is_scored: bool,
}

impl GatheredTable {
    /// The columns that a page reads; `None` for a field that is not a single column.
    fn columns_of(&self, request: &SearchRequest, order: &Order) -> Option<Columns> {
        let schema = &self.schema;
        let fields = request.fields.iter().map(|name| position(schema, name));
        let mut positions = fields.collect::<Option<Vec<usize>>>()?;
        let fields = positions.len();
        let mut compared = Vec::with_capacity(order.parts.len());
        for part in &order.parts {
            let (id, text_order) = match part.by {
                PartBy::Column(id, _) => (id, None),
                PartBy::Keyed(id, order) => (id, Some(order)),
                PartBy::Score => {
                    // Its position follows all columns, whose number is not known yet.
                    compared.push((None, None, part.descending));
                    continue;
                }
            };
            let column = schema.columns.iter().position(|column| column.id == id)?;
            let place = positions.iter().position(|known| *known == column);
            let place = place.unwrap_or_else(|| {
                positions.push(column);
                positions.len() - 1
            });
            compared.push((Some(place), text_order, part.descending));
        }
        let score = positions.len();
        let compared = compared.into_iter().map(|(place, order, is_descending)| Compared {
            place: place.unwrap_or(score),
            order,
            is_descending,
        });
        let compared = compared.collect();
        Some(Columns { positions, fields, compared, is_scored: order.needs_scores() })
    }

    /// The rows of a page, without keys and total, and a report. `None` for a request with a cursor
    /// or highlights, for scores of anything but a keyword query, and if too many rows or bytes
    /// would be held here.
    pub(in crate::read) fn page(
        self: &Arc<Self>,
        request: &SearchRequest,
        unless: &InterruptCheck,
    ) -> Result<Option<(Vec<Hit>, QueryReport)>> {
        let started = Instant::now();
        let selection = &request.selection;
        let is_plain =
            request.after.is_none() && request.highlight.is_none() && selection.fuzzy.is_none();
        let wanted = request.limit.checked_add(request.offset);
        let Some(wanted) = wanted.filter(|wanted| is_plain && *wanted <= MAX_BEST_ROWS) else {
            return Ok(None);
        };
        let order = Order::new(&self.schema, &request.sort)?;
        let Some(columns) = self.columns_of(request, &order) else { return Ok(None) };
        let scores: Vec<TextQuery> = match &selection.text {
            Some(query @ TextQuery::Keywords(_)) if columns.is_scored => vec![query.clone()],
            _ if columns.is_scored => return Ok(None),
            _ => Vec::new(),
        };
        let mut selected = Selected {
            parts: columns.compared,
            key_descending: order.key_descending,
            wanted,
            candidates: Vec::new(),
            threshold: None,
            bytes: 0,
            arrived: 0,
        };
        let warning = self.warning_of(selection, unless)?;
        if request.limit > 0 {
            let best = BestRows { sort: request.sort.clone(), score: 0, rows: wanted };
            let asked = ScanRequest {
                table: selection.table.clone(),
                text: selection.text.clone(),
                filter: selection.filter.clone(),
                columns: columns.positions,
                scores,
                batch_rows: wanted.clamp(1, MAX_BATCH_ROWS),
                in_key_order: true,
                best: Some(best),
                ..ScanRequest::default()
            };
            for batch in self.scan(asked, unless)? {
                if !selected.take(&batch?) {
                    return Ok(None);
                }
            }
        }
        selected.cut();
        let hits = selected.candidates.into_iter().skip(request.offset).take(request.limit);
        let hit = |Candidate { mut row, .. }: Candidate| {
            let score = match row.last() {
                Some(Value::Float(score)) if columns.is_scored => Some(*score),
                _ => None,
            };
            row.truncate(columns.fields);
            Hit { key: KeyValues::new(), fields: row, snippet: None, score }
        };
        let hits: Vec<Hit> = hits.map(hit).collect();
        let report = QueryReport {
            warning,
            segments: self.part_count() as u64,
            returned: hits.len() as u64,
            total_time: started.elapsed(),
            ..QueryReport::default()
        };
        Ok(Some((hits, report)))
    }

    /// The warning about a selection's keyword query. None if the query came from another server,
    /// which warns its client itself.
    pub(in crate::read) fn warning_of(
        &self,
        selection: &Selection,
        unless: &InterruptCheck,
    ) -> Result<Option<String>> {
        match &selection.text {
            Some(TextQuery::Keywords(asked)) if asked.statistics.is_none() => {
                self.warning(asked, unless)
            }
            _ => Ok(None),
        }
    }
}
