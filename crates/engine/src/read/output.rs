//! The output for each row of a page: key, fields, snippet, score.

use super::{
    adjacent,
    columns::{names, position},
    expression::Expression,
    get,
    highlight::Highlighter,
    order::DocumentAddress,
    score::SegmentScores,
    source::{ColumnSource, sources},
    texts,
};
use crate::{
    Error, Hit, KeyValues, RequestPart, Result, Schema, SearchRequest, Value, encode::decode_key,
    interrupt::InterruptCheck, snapshot::TableView,
};

/// The most bytes of fields and snippets of one page, not counting its last row.
const PAGE_BYTES: usize = 64 << 20;

/// The requested output of a row, resolved.
pub(super) struct Output<'p> {
    fields: Vec<usize>,
    highlighter: Option<Highlighter<'p>>,
    has_keys: bool,
}

impl<'p> Output<'p> {
    /// Resolves the fields and prepares the highlighting of `expression`'s terms.
    pub fn new(
        schema: &'p Schema,
        request: &'p SearchRequest,
        expression: Option<&'p Expression>,
    ) -> Result<Self> {
        let highlighter = request.highlight.as_ref();
        Ok(Self {
            fields: fields(schema, &request.fields)?,
            highlighter: highlighter.map(|style| Highlighter::new(schema, expression, style)),
            has_keys: true,
        })
    }

    /// The output without the rows' keys.
    pub fn without_keys(self) -> Self {
        Self { has_keys: false, ..self }
    }

    /// The names of the fields.
    pub fn field_names(&self, schema: &Schema) -> Vec<String> {
        self.fields.iter().map(|&field| schema.columns[field].name.clone()).collect()
    }

    /// The rows of a page. Full rows are read only if a field or a snippet needs them.
    pub fn hits(
        &self,
        view: &TableView,
        places: &[DocumentAddress],
        scores: Option<&[SegmentScores]>,
        unless: &InterruptCheck,
    ) -> Result<Vec<Hit>> {
        let sources = sources(&view.schema, &self.fields)?;
        let is_column = |source: &ColumnSource| matches!(source, ColumnSource::Column { .. });
        let reads_keys =
            self.has_keys || self.highlighter.is_some() || !sources.iter().all(is_column);
        let walked = match self.highlighter {
            Some(_) => Vec::new(),
            None => adjacent::walked(view, places, &sources, (PAGE_BYTES, unless))?,
        };
        let mut walked = walked.into_iter();
        let mut key = Vec::new();
        let mut bytes = 0;
        let hit = |place: &DocumentAddress| {
            unless.check()?;
            if reads_keys {
                place.read_key(view, &mut key);
            }
            let mut hit = Hit {
                key: match self.has_keys {
                    true => decode_key(&view.schema, &key)?,
                    false => KeyValues::new(),
                },
                fields: Vec::with_capacity(sources.len()),
                snippet: None,
                score: scores.map(|scores| scores[place.segment].get(place.doc)),
            };
            if !self.fields.is_empty() || self.highlighter.is_some() {
                refuse_above(PAGE_BYTES, bytes)?;
                let segment = &view.segments[place.segment];
                match walked.next() {
                    Some(row) => hit.fields = row,
                    None => get::read(view, segment, place.doc, &key, &sources, &mut hit.fields)?,
                }
                if let Some(highlighter) = &self.highlighter {
                    let at = (&*segment.segment, place.doc);
                    let row = texts::row(view, at, &key, &|_| true)?;
                    hit.snippet = Some(highlighter.snippet(&row));
                }
                bytes += bytes_of(&hit);
            }
            Ok(hit)
        };
        places.iter().map(hit).collect()
    }
}

/// An error if a page exceeds its limit of bytes.
fn refuse_above(most: usize, bytes: usize) -> Result<()> {
    if bytes <= most {
        return Ok(());
    }
    let message = format!(
        "The rows of this page take more than {} MiB; ask for fewer rows or fields and page with \
         the cursor",
        most >> 20
    );
    Err(Error::request(RequestPart::Limit, message))
}

/// The approximate size of a hit in bytes.
fn bytes_of(hit: &Hit) -> usize {
    let value = |value: &Value| match value {
        Value::Text(text) | Value::Json(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    let fields: usize = hit.fields.iter().map(|field| size_of::<Value>() + value(field)).sum();
    fields + hit.snippet.as_ref().map_or(0, String::len)
}

/// The positions of the requested columns, in order; `*` stands for all visible ones.
fn fields(schema: &Schema, asked: &[String]) -> Result<Vec<usize>> {
    let mut fields = Vec::with_capacity(asked.len());
    for name in asked {
        if name == "*" {
            fields.extend((0..schema.columns.len()).filter(|place| !schema.is_hidden(*place)));
            continue;
        }
        fields.push(position(schema, name).ok_or_else(|| {
            let there_are = names(schema.columns.iter());
            let message = format!("Field '{name}' not found. Columns: {there_are}");
            Error::request(RequestPart::Fields, message)
        })?);
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_bounded_by_bytes() {
        let hit = Hit {
            key: Vec::new().into(),
            fields: vec![Value::Text("x".repeat(1_000).into()), Value::Int(1)],
            snippet: Some("y".repeat(100)),
            score: None,
        };
        assert!((1_100..1_300).contains(&bytes_of(&hit)), "{}", bytes_of(&hit));
        assert!(refuse_above(2_000, 2_000).is_ok());
        let refused = refuse_above(1 << 20, (1 << 20) + 1).unwrap_err().to_string();
        assert!(refused.contains("more than 1 MiB"), "{refused}");
    }
}
