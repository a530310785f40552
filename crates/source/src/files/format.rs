//! File formats: their detection, and the reader of each.

use std::io::Read;

use serde::{Deserialize, Serialize};

use super::{
    cirrus::{CirrusReader, action_id},
    delimited::DelimitedReader,
    json_lines::JsonLinesReader,
    json_stream::JsonStreamReader,
    lines::{LineReader, skip_bytes},
    position::FilePosition,
    record::{Layout, RecordReader},
    shape::{Rows, Shape},
};
use crate::{Error, Result};

/// How files are read.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The format of the files; `None` detects it for each.
    pub format: Option<Format>,
    /// How JSON documents become rows.
    pub shape: Shape,
}

/// The form of a file. Its name in JSON is that of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// One JSON object on each line.
    #[serde(rename = "jsonl")]
    JsonLines,
    /// An array of JSON objects, or consecutive objects, over any number of lines.
    Json,
    /// JSON objects in MongoDB's extended JSON, as `mongoexport` writes them.
    Mongo,
    /// Comma-separated values with a header line.
    Csv,
    /// Tab-separated values with a header line.
    Tsv,
    /// Wikipedia's CirrusSearch dump: pairs of lines.
    Cirrus,
}

impl Format {
    /// The format with this name on the command line.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "jsonl" | "ndjson" => Self::JsonLines,
            "json" => Self::Json,
            "mongo" => Self::Mongo,
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "cirrus" => Self::Cirrus,
            _ => return None,
        })
    }

    /// Detects the format of a file by its first bytes, then by its name.
    ///
    /// # Errors
    /// The file begins with zero bytes.
    pub fn detect(name: &str, head: &[u8]) -> Result<Self> {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
        let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
        match head.first() {
            Some(b'{') if action_id(line).is_some() => Ok(Self::Cirrus),
            Some(b'{' | b'[') if is_mongoexport(head) => Ok(Self::Mongo),
            Some(b'[') => Ok(Self::Json),
            Some(b'{') => Ok(match Self::by_name(name) {
                Some(Self::Json) => Self::Json,
                Some(Self::JsonLines) => Self::JsonLines,
                _ if continues(line, head) => Self::Json,
                _ => Self::JsonLines,
            }),
            _ if line.contains(&0) => {
                Err(Error::format(name, "is not text: JSON, JSON Lines, CSV and TSV can be read"))
            }
            _ => Ok(Self::by_name(name).unwrap_or(match line.contains(&b'\t') {
                true => Self::Tsv,
                false => Self::Csv,
            })),
        }
    }

    fn by_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        Self::from_name(if ending == "tab" { "tsv" } else { ending })
    }
}

/// Whether the first document begins as those of `mongoexport` do: with an object id as `_id`.
fn is_mongoexport(head: &[u8]) -> bool {
    let mut tokens = head.iter().filter(|byte| !byte.is_ascii_whitespace() && **byte != b'[');
    br#"{"_id":{"$oid":"#.iter().all(|byte| tokens.next() == Some(byte))
}

/// Whether a document continues after its first line.
fn continues(line: &[u8], head: &[u8]) -> bool {
    let is_whole_line = line.len() < head.len();
    let parsed = serde_json::from_slice::<serde::de::IgnoredAny>(line);
    is_whole_line && parsed.is_err_and(|error| error.is_eof())
}

/// Reads the records of a stream that begins at the start of its file, from a position on.
///
/// # Errors
/// The stream cannot be read, ends before the position, lacks a required header, or has no documents although the shape
/// requires them.
pub fn open_reader(
    file: &str,
    mut stream: Box<dyn Read + Send>,
    format: Format,
    shape: &Shape,
    from: &FilePosition,
) -> Result<Box<dyn RecordReader>> {
    let layout = Layout::Document { shape: shape.clone(), extended: format == Format::Mongo };
    match format {
        Format::Json | Format::Mongo => {
            let reader = JsonStreamReader::new(file, stream, layout, from.offset, from.line)?;
            return Ok(Box::new(reader));
        }
        Format::JsonLines => {
            skip_bytes(file, &mut *stream, from.offset)?;
            let lines = LineReader::new(file, stream, from.offset, from.line);
            return Ok(Box::new(JsonLinesReader::new(lines, layout)));
        }
        Format::Csv | Format::Tsv | Format::Cirrus if shape.rows != Rows::Members => {
            let message = "is not JSON: only documents are flattened or go into a collection";
            return Err(Error::format(file, message));
        }
        Format::Csv | Format::Tsv => {
            let separator = if format == Format::Csv { b',' } else { b'\t' };
            let mut reader = DelimitedReader::new(file, stream, separator)?;
            reader.skip_to(from.offset)?;
            return Ok(Box::new(reader));
        }
        Format::Cirrus => {}
    }
    skip_bytes(file, &mut *stream, from.offset)?;
    Ok(Box::new(CirrusReader::new(LineReader::new(file, stream, from.offset, from.line))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_formats_are_detected() {
        let cases = [
            ("x", "{\"id\":1}\n", Format::JsonLines),
            ("x.csv", "\u{feff}  {\"id\":1}", Format::JsonLines),
            ("x", "{\"index\":{\"_id\":\"1\"}}\n{\"title\":\"a\"}\n", Format::Cirrus),
            ("x", "id\ttext\n1\ta\n", Format::Tsv),
            ("x.csv.gz", "id,a\tb\n", Format::Csv),
            ("x.TSV.zst", "id\n", Format::Tsv),
            ("x.jsonl", "", Format::JsonLines),
            ("x.json", "{\"id\":1}\n", Format::Json),
            ("x", " [{\"id\":1}]", Format::Json),
            ("-", "{\n \"id\":1}", Format::Json),
            ("-", "{\"id\":\n{\"id\":2}\n", Format::Json),
            ("-", "{\"id\":}\n{\"id\":2}\n", Format::JsonLines),
            ("x.json", "{\"_id\":{\"$oid\":\"5\"}}\n", Format::Mongo),
            ("x.json", "[{ \"_id\": {\n\"$oid\": \"5\"}}]\n", Format::Mongo),
            ("-", "id,text\n", Format::Csv),
        ];
        for (name, head, format) in cases {
            assert_eq!(Format::detect(name, head.as_bytes()).unwrap(), format, "{name} {head}");
        }
        assert!(Format::detect("x", b"a\0b").is_err());
    }
}
