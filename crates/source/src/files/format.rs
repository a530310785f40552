//! The forms of files, how they are told apart, and the reader of each.

use std::io::Read;

use super::{
    cirrus::{CirrusReader, action_id},
    delimited::DelimitedReader,
    json_lines::JsonLinesReader,
    lines::{LineReader, skip_bytes},
    position::FilePosition,
    record::RecordReader,
};
use crate::{Error, Result};

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object on each line.
    JsonLines,
    /// Comma-separated values with a header line.
    Csv,
    /// Tab-separated values with a header line.
    Tsv,
    /// Wikipedia's CirrusSearch dump: lines in pairs.
    Cirrus,
}

impl Format {
    /// The form by its name on the command line.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "jsonl" | "ndjson" | "json" => Self::JsonLines,
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "cirrus" => Self::Cirrus,
            _ => return None,
        })
    }

    /// The form of a file, by its first bytes and then by its name.
    ///
    /// # Errors
    /// It is a JSON array, or has zero bytes.
    pub fn detect(name: &str, head: &[u8]) -> Result<Self> {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
        let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
        match head.first() {
            Some(b'{') if action_id(line).is_some() => Ok(Self::Cirrus),
            Some(b'{') => Ok(Self::JsonLines),
            Some(b'[') => Err(Error::format(
                name,
                "is a JSON array: make one object on each line of it (jq -c '.[]')",
            )),
            _ if line.contains(&0) => {
                Err(Error::format(name, "is not text: JSON Lines, CSV and TSV can be read"))
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

/// Reads the records of a stream that begins at the start of its file, from a position on.
///
/// # Errors
/// The stream cannot be read, ends before the position, or has no header where one is needed.
pub fn open_reader(
    file: &str,
    mut stream: Box<dyn Read + Send>,
    format: Format,
    from: &FilePosition,
) -> Result<Box<dyn RecordReader>> {
    if let Format::Csv | Format::Tsv = format {
        let separator = if format == Format::Csv { b',' } else { b'\t' };
        let mut reader = DelimitedReader::new(file, stream, separator)?;
        reader.skip_to(from.offset)?;
        return Ok(Box::new(reader));
    }
    skip_bytes(file, &mut *stream, from.offset)?;
    let lines = LineReader::new(file, stream, from.offset, from.line);
    Ok(match format {
        Format::Cirrus => Box::new(CirrusReader::new(lines)),
        _ => Box::new(JsonLinesReader::new(lines)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_told_apart() {
        let cases = [
            ("x", "{\"id\":1}\n", Format::JsonLines),
            ("x.csv", "\u{feff}  {\"id\":1}", Format::JsonLines),
            ("x", "{\"index\":{\"_id\":\"1\"}}\n{\"title\":\"a\"}\n", Format::Cirrus),
            ("x", "id\ttext\n1\ta\n", Format::Tsv),
            ("x.csv.gz", "id,a\tb\n", Format::Csv),
            ("x.TSV.zst", "id\n", Format::Tsv),
            ("x.jsonl", "", Format::JsonLines),
            ("-", "id,text\n", Format::Csv),
        ];
        for (name, head, format) in cases {
            assert_eq!(Format::detect(name, head.as_bytes()).unwrap(), format, "{name} {head}");
        }
        assert!(Format::detect("x", b" [1]").unwrap_err().to_string().contains("array"));
        assert!(Format::detect("x", b"a\0b").is_err());
    }
}
