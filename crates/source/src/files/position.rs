//! The position of an import in a file: a text stored with each batch, so that a rerun continues where the last one
//! stopped.
//!
//! ```text
//! position = "offset=" number " line=" number " first_row=" number [ " end" ]
//! ```

use std::{fmt, str::FromStr};

use super::record::Span;

/// The place after the last applied record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePosition {
    /// The offset in the uncompressed bytes.
    pub offset: u64,
    /// The line, from 1.
    pub line: u64,
    /// The number that is added to a record's line to make its `_row`.
    pub first_row: u64,
    /// Whether the file was read to its end.
    pub end: bool,
}

impl Default for FilePosition {
    fn default() -> Self {
        Self { offset: 0, line: 1, first_row: 0, end: false }
    }
}

impl FilePosition {
    /// The place after this record, or this place if there is none.
    pub(crate) fn behind(self, last: Option<Span>, end: bool) -> Self {
        let (line, offset) =
            last.map_or((self.line, self.offset), |span| (span.end_line, span.end_offset));
        Self { offset, line, end, ..self }
    }
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset={} line={} first_row={}", self.offset, self.line, self.first_row)?;
        f.write_str(if self.end { " end" } else { "" })
    }
}

impl FromStr for FilePosition {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut position = Self::default();
        for part in text.split(' ') {
            let (name, value) = part.split_once('=').unwrap_or((part, "0"));
            let value = value.parse().map_err(|_| ())?;
            match name {
                "offset" => position.offset = value,
                "line" => position.line = value,
                "first_row" => position.first_row = value,
                "end" => position.end = true,
                _ => return Err(()),
            }
        }
        Ok(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_round_trip_as_text() {
        let position = FilePosition { offset: 10, line: 3, first_row: 7, end: false };
        for position in [position, FilePosition { end: true, ..position }] {
            assert_eq!(position.to_string().parse(), Ok(position));
        }
        assert_eq!("offset=x".parse::<FilePosition>(), Err(()));
        assert_eq!("".parse::<FilePosition>(), Err(()));
    }
}
