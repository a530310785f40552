//! Statistics of sampled records: the kinds and sizes of each column's values.

use std::{
    collections::{HashMap, HashSet},
    io::Cursor,
};

use remora_engine::{ColumnType, Date};
use serde::{Deserializer as _, de::MapAccess, de::Visitor};
use serde_json::value::RawValue;

use super::{
    document::read_document,
    format::{Format, Reading, open_reader},
    input::Input,
    literal::{parse_date, parse_date_time, parse_timestamp},
    position::FilePosition,
    record::{Layout, Record, RecordBatch, RecordReader},
    shape::Shape,
};
use crate::{Error, RecordProblem, Result};

/// The used fields of a CirrusSearch document, in this order.
const CIRRUS_FIELDS: [&str; 17] = [
    "title",
    "text",
    "opening_text",
    "category",
    "heading",
    "redirect",
    "timestamp",
    "create_timestamp",
    "language",
    "wiki",
    "namespace",
    "incoming_links",
    "popularity_score",
    "text_bytes",
    "version",
    "wikibase_item",
    "page_id",
];

/// The most digits with which a double is written; a number with more digits is meant to be exact.
const DOUBLE_DIGITS: usize = 17;
/// The most columns of a table.
const MAX_COLUMNS: usize = 4_096;

/// The statistics of some records.
#[derive(Default)]
pub(crate) struct Sample {
    pub records: usize,
    pub malformed: usize,
    /// Whether the beginning alone of an input was looked at.
    pub is_cut: bool,
    /// The first malformed record.
    pub problem: Option<RecordProblem>,
    /// In the order of their first occurrence.
    pub columns: Vec<ColumnSample>,
    positions: HashMap<String, usize>,
}

/// The statistics of one column.
#[derive(Default)]
pub(crate) struct ColumnSample {
    pub name: String,
    /// Stored only, neither searched nor filtered.
    pub stored_only: bool,
    values: usize,
    kinds: Kinds,
    bytes: Vec<usize>,
    chars: Vec<usize>,
    distinct: HashSet<String>,
}

#[derive(Default)]
struct Kinds {
    int: bool,
    negative: bool,
    beyond_i64: bool,
    float: bool,
    whole_digits: usize,
    fraction_digits: usize,
    lossy: bool,
    bool: bool,
    date: bool,
    date_time: bool,
    timestamp: bool,
    text: bool,
    json: bool,
}

impl Sample {
    /// Samples the start of an input.
    pub fn read(
        &mut self,
        input: &mut Input,
        reading: &Reading,
        max_bytes: usize,
        max_records: usize,
    ) -> Result<()> {
        let head = input.sample(max_bytes)?;
        let format = match reading.format {
            Some(format) => format,
            None => Format::detect(input.name(), &head)?,
        };
        let cut = head.len() == max_bytes;
        self.is_cut |= cut;
        let stream = Box::new(Cursor::new(head));
        let (name, start) = (input.name(), FilePosition::default());
        let mut reader = open_reader(name, stream, format, &reading.shape, &start)?;
        let layout = reader.layout().clone();
        let (mut record, mut next) = (RecordBatch::default(), RecordBatch::default());
        // A record that is cut off by the end of the sample is not malformed.
        let read = |reader: &mut dyn RecordReader, batch: &mut RecordBatch| match reader
            .read_into(batch)
        {
            Err(_) if cut => Ok(false),
            other => other,
        };
        let mut more = read(&mut *reader, &mut record)?;
        for _ in 0..max_records {
            if !more {
                break;
            }
            more = read(&mut *reader, &mut next)?;
            if more || !cut {
                record.iter().for_each(|record| self.add_record(name, &record, &layout));
                self.refuse_many_columns(name)?;
            }
            std::mem::swap(&mut record, &mut next);
            next.clear();
        }
        Ok(())
    }

    fn refuse_many_columns(&self, file: &str) -> Result<()> {
        match self.columns.len() > MAX_COLUMNS {
            false => Ok(()),
            true => Err(Error::Schema(format!(
                "the documents of {file} have more than {MAX_COLUMNS} different members: import them into a \
                 collection, or choose columns with --schema"
            ))),
        }
    }

    fn add_record(&mut self, file: &str, record: &Record<'_>, layout: &Layout) {
        let malformed = || "the record is malformed".to_owned();
        let seen = match (record.problem(), layout) {
            (Some(problem), _) => Err(problem.to_owned()),
            (None, Layout::Object) => self.add_object(record.field(0), None).ok_or_else(malformed),
            (None, Layout::Document { shape, extended }) => {
                self.add_document(record, shape, *extended)
            }
            (None, Layout::IdAndObject) => {
                self.add_object(record.field(1), record.field(0)).ok_or_else(malformed)
            }
            (None, Layout::Columns(names)) => self.add_fields(record, names).ok_or_else(malformed),
        };
        match seen {
            Ok(()) => self.records += 1,
            Err(message) => {
                self.malformed += 1;
                let (line, offset) = (record.span().line, record.span().offset);
                let problem = RecordProblem { file: file.to_owned(), line, offset, message };
                self.problem.get_or_insert(problem);
            }
        }
    }

    fn add_document(
        &mut self,
        record: &Record<'_>,
        shape: &Shape,
        extended: bool,
    ) -> Result<(), String> {
        let text = std::str::from_utf8(record.field(0).unwrap_or_default())
            .map_err(|error| format!("not UTF-8 at byte {} of the record", error.valid_up_to()))?;
        let document = read_document(text, record.span().line, shape, extended)?;
        let seen = self.add_object(Some(document.text.as_bytes()), None);
        seen.ok_or_else(|| "not a JSON object".to_owned())
    }

    fn add_object(&mut self, object: Option<&[u8]>, id: Option<&[u8]>) -> Option<()> {
        let text = std::str::from_utf8(object?).ok()?;
        let mut json = serde_json::Deserializer::from_str(text);
        let fields = json.deserialize_map(Fields).ok()?;
        json.end().ok()?;
        let Some(id) = id else {
            fields.iter().for_each(|(name, raw)| self.column(name).record_json(raw.get()));
            return Some(());
        };
        let id = std::str::from_utf8(id).ok()?;
        self.column("id").record_text(id);
        for name in CIRRUS_FIELDS {
            if let Some((_, raw)) = fields.iter().find(|(field, _)| field == name) {
                let column = self.column(name);
                column.stored_only = name == "opening_text";
                column.record_json(raw.get());
            }
        }
        Some(())
    }

    fn add_fields(&mut self, record: &Record<'_>, names: &[String]) -> Option<()> {
        for (position, name) in names.iter().enumerate() {
            let text = std::str::from_utf8(record.field(position)?).ok()?;
            let column = self.column(name);
            if !matches!(text, "" | "\\N") {
                column.record_text(text);
            }
        }
        Some(())
    }

    fn column(&mut self, name: &str) -> &mut ColumnSample {
        let next = self.columns.len();
        let at = *self.positions.entry(name.to_owned()).or_insert(next);
        if at == next {
            let name = name.to_owned();
            self.columns.push(ColumnSample { name, ..ColumnSample::default() });
        }
        &mut self.columns[at]
    }
}

impl ColumnSample {
    /// The narrowest type for all values seen.
    pub fn column_type(&self) -> ColumnType {
        let kinds = &self.kinds;
        let number = kinds.int || kinds.float;
        let moment = kinds.date || kinds.date_time || kinds.timestamp;
        match (number, kinds.bool, moment, kinds.text || self.values == 0, kinds.json) {
            (.., true) => ColumnType::Json,
            (true, false, false, false, _) => self.number_type(),
            (false, true, false, false, _) => ColumnType::Bool,
            (false, false, true, false, _) => self.time_type(),
            _ => ColumnType::Text,
        }
    }

    fn number_type(&self) -> ColumnType {
        let kinds = &self.kinds;
        let precision = kinds.whole_digits + kinds.fraction_digits;
        let decimal = (u8::try_from(precision).ok(), u8::try_from(kinds.fraction_digits).ok());
        match (kinds.float, decimal) {
            (true, (Some(all), Some(scale))) if kinds.lossy && all <= 65 && scale <= 30 => {
                ColumnType::Decimal(all, scale)
            }
            (true, _) => ColumnType::Double,
            (false, _) if kinds.beyond_i64 && kinds.negative => ColumnType::Decimal(20, 0),
            (false, _) if kinds.beyond_i64 => ColumnType::Uint(64),
            (false, _) => ColumnType::Int(64),
        }
    }

    fn time_type(&self) -> ColumnType {
        match (self.kinds.date, self.kinds.date_time, self.kinds.timestamp) {
            (true, false, false) => ColumnType::Date,
            (_, true, false) => ColumnType::DateTime,
            (false, false, true) => ColumnType::Timestamp,
            _ => ColumnType::Text,
        }
    }

    /// Whether all records have distinct values of a type that keys can have.
    pub fn can_be_key(&self, records: usize) -> bool {
        let kind = self.column_type();
        let fits = matches!(kind, ColumnType::Int(_) | ColumnType::Uint(_) | ColumnType::Text);
        fits && self.values == records
            && self.distinct.len() == records
            && self.length_at(100) <= 255
    }

    /// The length in bytes that this percentage of values does not exceed.
    pub fn length_at(&self, percent: usize) -> usize {
        quantile(&self.bytes, percent)
    }

    /// Like [`Self::length_at`], in characters.
    pub fn chars_at(&self, percent: usize) -> usize {
        quantile(&self.chars, percent)
    }

    pub fn mean_chars(&self) -> usize {
        self.chars.iter().sum::<usize>() / self.chars.len().max(1)
    }

    fn record_json(&mut self, raw: &str) {
        match raw.as_bytes().first() {
            Some(b'n') => return,
            Some(b't' | b'f') => self.kinds.bool = true,
            Some(b'"') => return self.record_json_text(raw),
            Some(b'{' | b'[') => self.kinds.json = true,
            _ => self.record_number(raw),
        }
        self.count(raw);
    }

    fn record_json_text(&mut self, raw: &str) {
        let Ok(text) = serde_json::from_str::<String>(raw) else { return };
        self.record_time(&text);
        self.count(&text);
    }

    /// Counts a field of a format that has only text.
    fn record_text(&mut self, text: &str) {
        if is_number(text) {
            self.record_number(text);
            self.kinds.lossy |= self.kinds.whole_digits + self.kinds.fraction_digits > 15;
        } else if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
            self.kinds.bool = true;
        } else {
            self.record_time(text);
        }
        self.count(text);
    }

    fn record_number(&mut self, raw: &str) {
        let kinds = &mut self.kinds;
        kinds.negative |= raw.starts_with('-');
        if raw.parse::<i64>().is_ok() {
            kinds.int = true;
        } else if raw.parse::<u64>().is_ok() {
            (kinds.int, kinds.beyond_i64) = (true, true);
        } else {
            kinds.float = true;
            kinds.lossy |= significant_digits(raw) > DOUBLE_DIGITS;
        }
        let (whole, fraction) = raw.split_once('.').unwrap_or((raw, ""));
        if raw.contains(['e', 'E']) {
            // The count of digits does not fit.
            kinds.whole_digits = usize::from(u8::MAX);
        }
        kinds.whole_digits = kinds.whole_digits.max(whole.trim_start_matches('-').len());
        kinds.fraction_digits = kinds.fraction_digits.max(fraction.len());
    }

    fn record_time(&mut self, text: &str) {
        let kinds = &mut self.kinds;
        if parse_date(text).is_some_and(is_of_calendar) {
            kinds.date = true;
        } else if parse_date_time(text).is_some_and(|moment| is_of_calendar(moment.date)) {
            kinds.date_time = true;
        } else if parse_timestamp(text).is_some() {
            kinds.timestamp = true;
        } else {
            kinds.text = true;
        }
    }

    fn count(&mut self, text: &str) {
        self.values += 1;
        self.bytes.push(text.len());
        self.chars.push(text.chars().count());
        if text.len() <= 255 && self.distinct.len() + 1 == self.values {
            self.distinct.insert(text.to_owned());
        }
    }
}

/// Whether a date is one, or has parts that are zero, as MySQL writes unknown ones.
fn is_of_calendar(date: Date) -> bool {
    let Date { year, month, day } = date;
    let date = jiff::civil::Date::new(year as i16, month as i8, day as i8);
    month == 0 || day == 0 || date.is_ok()
}

/// The digits without leading zeros and exponent.
fn significant_digits(raw: &str) -> usize {
    let mantissa = raw.split(['e', 'E']).next().unwrap_or_default();
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).skip_while(|&digit| digit == b'0');
    digits.count()
}

/// Whether a text is a JSON number. `007` is not: it is a code.
fn is_number(text: &str) -> bool {
    let starts = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    starts && serde_json::from_str::<serde_json::Number>(text).is_ok()
}

fn quantile(lengths: &[usize], percent: usize) -> usize {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

/// The members of an object, in order.
struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(fields)
    }
}
