//! What is returned of each row of a page: key, fields, snippet, score.

use super::{
    columns::{names, position},
    expression::Expression,
    highlight::Highlighter,
    order::Place,
    score::SegmentScores,
    texts,
};
use crate::{
    Error, Hit, RequestPart, Result, Row, Schema, SearchRequest, Value, encode::decode_key,
    snapshot::TableView,
};

/// What of a row is asked for, resolved.
pub(super) struct Output<'p> {
    fields: Vec<usize>,
    highlighter: Option<Highlighter<'p>>,
}

impl<'p> Output<'p> {
    /// Resolves the fields and readies the marking of `expression`'s terms.
    pub fn new(
        schema: &'p Schema,
        request: &'p SearchRequest,
        expression: Option<&'p Expression>,
    ) -> Result<Self> {
        let highlighter = request.highlight.as_ref();
        Ok(Self {
            fields: fields(schema, &request.fields)?,
            highlighter: highlighter.map(|style| Highlighter::new(schema, expression, style)),
        })
    }

    /// The names of the fields.
    pub fn field_names(&self, schema: &Schema) -> Vec<String> {
        self.fields.iter().map(|&field| schema.columns[field].name.clone()).collect()
    }

    /// The rows of a page; whole rows are read only if something of them is asked for.
    pub fn hits(
        &self,
        view: &TableView,
        places: &[Place],
        scores: Option<&[SegmentScores]>,
    ) -> Result<Vec<Hit>> {
        let mut key = Vec::new();
        let hit = |place: &Place| {
            place.read_key(view, &mut key);
            let mut hit = Hit {
                key: decode_key(&view.schema, &key)?,
                fields: Vec::new(),
                snippet: None,
                score: scores.map(|scores| scores[place.segment].get(place.doc)),
            };
            if !self.fields.is_empty() || self.highlighter.is_some() {
                self.fill(&mut hit, &texts::row(view, &key)?);
            }
            Ok(hit)
        };
        places.iter().map(hit).collect()
    }

    fn fill(&self, hit: &mut Hit, row: &Row) {
        let value = |&field: &usize| row.get(field).cloned().unwrap_or(Value::Null);
        hit.fields = self.fields.iter().map(value).collect();
        hit.snippet = self.highlighter.as_ref().map(|highlighter| highlighter.snippet(row));
    }
}

/// The positions of the asked columns, in their order.
fn fields(schema: &Schema, asked: &[String]) -> Result<Vec<usize>> {
    let mut fields = Vec::with_capacity(asked.len());
    for name in asked {
        if name == "*" {
            fields.extend(0..schema.columns.len());
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
