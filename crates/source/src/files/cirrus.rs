//! Wikipedia's CirrusSearch dumps, which have the form of an Elasticsearch bulk request:
//!
//! ```text
//! dump     = { action document }
//! action   = {"index":{"_id":"123", …}} LF        ("create" is as good)
//! document = {"title":"…", "text":"…", …} LF
//! ```

use serde::Deserialize;

use super::{
    json_lines::TOO_LONG,
    lines::{Line, LineReader},
    record::{Layout, RecordBatch, RecordReader, Span},
};
use crate::Result;

/// Reads pairs of an action and a document. After a malformed line it continues at the next action.
pub(crate) struct CirrusReader {
    lines: LineReader,
    pending: Option<(Span, String)>,
}

#[derive(Deserialize)]
struct Action<'l> {
    #[serde(borrow, alias = "create")]
    index: BulkAction<'l>,
}

#[derive(Deserialize)]
struct BulkAction<'l> {
    #[serde(borrow, rename = "_id")]
    id: Id<'l>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Id<'l> {
    Number(u64),
    Plain(&'l str),
    Escaped(String),
}

impl CirrusReader {
    pub fn new(lines: LineReader) -> Self {
        Self { lines, pending: None }
    }
}

impl RecordReader for CirrusReader {
    fn layout(&self) -> &Layout {
        &Layout::IdAndObject
    }

    fn read_into(&mut self, batch: &mut RecordBatch) -> Result<bool> {
        while let Some((span, line)) = self.lines.next()? {
            let bytes = match line {
                Line::Whole(bytes) if bytes.trim_ascii().is_empty() => continue,
                Line::Whole(bytes) => Some(bytes),
                Line::TooLong => None,
            };
            match (self.pending.take(), bytes, bytes.and_then(action_id)) {
                (None, _, Some(id)) => self.pending = Some((span, id)),
                (Some((before, _)), _, Some(id)) => {
                    self.pending = Some((span, id));
                    batch.push_malformed(before, "no document follows this index line");
                    return Ok(true);
                }
                (Some((start, id)), Some(document), None) => {
                    batch.push(start.to(span), [id.as_bytes(), document]);
                    return Ok(true);
                }
                (Some((start, _)), None, None) => {
                    batch.push_malformed(start.to(span), TOO_LONG);
                    return Ok(true);
                }
                (None, _, None) => {
                    batch.push_malformed(span, r#"expected a line {"index":{"_id":…}}"#);
                    return Ok(true);
                }
            }
        }
        Ok(self.pending.take().is_some_and(|(span, _)| {
            batch.push_malformed(span, "no document follows this index line");
            true
        }))
    }
}

/// The id of an action line; `None` for other lines.
pub(crate) fn action_id(line: &[u8]) -> Option<String> {
    let head = line.get(..line.len().min(16))?;
    if !head.windows(8).any(|part| part == b"\"index\":" || part == b"\"create\"") {
        return None;
    }
    let action: Action = serde_json::from_slice(line).ok()?;
    Some(match action.index.id {
        Id::Number(id) => id.to_string(),
        Id::Plain(id) => id.to_owned(),
        Id::Escaped(id) => id,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn bulk_pairs_are_read_and_broken_ones_reported() {
        let text = concat!(
            r#"{"index":{"_type":"_doc","_id":"7"}}"#,
            "\n",
            r#"{"title":"a"}"#,
            "\n",
            r#"{"title":"lost"}"#,
            "\n",
            r#"{"index":{"_id":8}}"#,
            "\n",
            "\n",
            r#"{"index":{"_id":"9"}}"#,
            "\r\n",
            r#"{"index":"not an action"}"#,
            "\n",
            r#"{"create":{"_id":"1\u0030"}}"#,
        );
        let lines = LineReader::new("f", Box::new(Cursor::new(text)), 0, 1);
        let (mut reader, mut batch) = (CirrusReader::new(lines), RecordBatch::default());
        while reader.read_into(&mut batch).unwrap() {}
        let seen: Vec<_> = batch
            .iter()
            .map(|r| (r.span().line, r.span().end_line, r.problem().is_none(), r.field(0)))
            .collect();
        let expected = [
            (1, 3, true, Some(&b"7"[..])),
            (3, 4, false, None),
            (4, 5, false, None),
            (6, 8, true, Some(b"9")),
            (8, 9, false, None),
        ];
        assert_eq!(seen, expected);
    }
}
