//! tsvpipe and csvpipe: a document on each line, its id first, then a value for each declared column, in order. There
//! is no header.
//!
//! ```text
//! tsv = value { TAB value }           nothing is quoted
//! csv = value { delimiter value }     quotes may stand anywhere and are dropped; within them delimiters and ends
//!                                     of lines are ordinary, and "" is one; \ makes the next byte ordinary
//! ```

use std::io::{BufRead, Read};

use super::{
    columns::Column,
    documents::{Document, DocumentSink, Lines},
};
use crate::{Error, Result};

/// The syntax of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Tsv,
    /// CSV with this delimiter.
    Csv(u8),
}

/// Reads all documents of a stream.
pub(super) fn read(
    source: &str,
    stream: impl Read,
    form: Form,
    columns: &[Column],
    sink: &mut dyn DocumentSink,
) -> Result<()> {
    sink.columns(columns)?;
    let mut splitter = Splitter {
        source,
        lines: Lines::new(stream),
        form,
        cells: vec![Vec::new(); columns.len() + 1],
        count: 0,
        is_blank: true,
    };
    let mut document = Document::default();
    loop {
        splitter.lines.begin_document();
        let line = splitter.lines.line;
        if !splitter.next()? {
            return Ok(());
        }
        if splitter.is_blank {
            continue;
        }
        let (found, declared) = (splitter.count, columns.len() + 1);
        if found != declared {
            let message = format!(
                "line {line} has {found} values, and the source declares {declared}: the document's number, then {}",
                columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ")
            );
            return Err(Error::format(source, message));
        }
        document.place = format!("line {line}");
        splitter.move_values_to(&mut document);
        sink.document(&document)?;
    }
}

struct Splitter<'s, R> {
    source: &'s str,
    lines: Lines<R>,
    form: Form,
    /// The values of the line. Surplus values are counted and not kept.
    cells: Vec<Vec<u8>>,
    count: usize,
    /// Whether the line has only spaces.
    is_blank: bool,
}

/// The meaning of a byte in its context.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Ordinary,
    Dropped,
    NextCell,
    End,
}

/// The position in a line.
#[derive(Default)]
struct State {
    is_quoted: bool,
    is_escaped: bool,
    /// Whether the previous byte was a closing quote, which another quote would reopen.
    has_closed: bool,
}

impl State {
    fn step(&mut self, form: Form, byte: u8) -> Step {
        let had_closed = std::mem::take(&mut self.has_closed);
        match (form, byte) {
            _ if std::mem::take(&mut self.is_escaped) => Step::Ordinary,
            (Form::Csv(_), b'\\') => {
                self.is_escaped = true;
                Step::Dropped
            }
            (Form::Csv(_), b'"') => {
                self.is_quoted = !self.is_quoted;
                self.has_closed = !self.is_quoted;
                // The second of two quotes inside quotes.
                if self.is_quoted && had_closed { Step::Ordinary } else { Step::Dropped }
            }
            _ if self.is_quoted => Step::Ordinary,
            (_, b'\n') => Step::End,
            (Form::Tsv, b'\t') => Step::NextCell,
            (Form::Csv(delimiter), byte) if byte == delimiter => Step::NextCell,
            _ => Step::Ordinary,
        }
    }
}

impl<R: Read> Splitter<'_, R> {
    /// Reads a line, which may span several if quotes contain line breaks; false at the end of the stream.
    fn next(&mut self) -> Result<bool> {
        self.cells.iter_mut().for_each(Vec::clear);
        (self.count, self.is_blank) = (1, true);
        let (mut state, mut is_begun) = (State::default(), false);
        loop {
            let held = self.lines.fill_buf().map_err(|error| Error::io(self.source, error))?;
            if held.is_empty() {
                return match state.is_quoted {
                    true => {
                        let message = "the last document has a quote that is not closed";
                        Err(Error::format(self.source, message))
                    }
                    false => Ok(is_begun),
                };
            }
            is_begun = true;
            let (mut used, mut is_over) = (0, false);
            for &byte in held {
                used += 1;
                let step = state.step(self.form, byte);
                self.is_blank &= byte.is_ascii_whitespace() && step != Step::NextCell;
                match (step, self.cells.get_mut(self.count - 1)) {
                    (Step::Ordinary, Some(cell)) => cell.push(byte),
                    (Step::NextCell, _) => self.count += 1,
                    (Step::End, _) => {
                        is_over = true;
                        break;
                    }
                    (Step::Ordinary | Step::Dropped, _) => {}
                }
            }
            self.lines.consume(used);
            if is_over {
                self.drop_carriage_return();
                return Ok(true);
            }
        }
    }

    fn drop_carriage_return(&mut self) {
        if let Some(last) = self.cells.get_mut(self.count - 1)
            && last.last() == Some(&b'\r')
        {
            last.pop();
        }
    }

    /// Moves the line's values out and takes buffers back for the next line.
    fn move_values_to(&mut self, document: &mut Document) {
        document.cells.resize_with(self.cells.len() - 1, Vec::new);
        let mut cells = self.cells.iter_mut();
        if let Some(first) = cells.next() {
            std::mem::swap(first, &mut document.number);
        }
        cells.zip(&mut document.cells).for_each(|(cell, to)| std::mem::swap(cell, to));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::{columns::Kind, tests::Kept},
        *,
    };

    fn documents(text: &[u8], form: Form) -> Result<Vec<Vec<String>>> {
        let columns = [Column::new("title", Kind::FieldString), Column::new("g", Kind::Uint)];
        let mut kept = Kept::default();
        read("source 's'", text, form, &columns, &mut kept)?;
        assert_eq!(kept.columns, columns);
        Ok(kept.documents)
    }

    #[test]
    fn a_line_of_tsv_is_a_document() {
        let found = documents(b"1\ta \"b\" \\\t5\r\n\n2\t\t\n 3\tx\t7", Form::Tsv).unwrap();
        assert_eq!(found, [["1", "a \"b\" \\", "5"], ["2", "", ""], [" 3", "x", "7"]]);
        let error = documents(b"1\ta\t5\n2\ta\n", Form::Tsv).unwrap_err().to_string();
        assert_eq!(
            error,
            "source 's': line 2 has 2 values, and the source declares 3: the document's number, then title, g"
        );
        let error = documents(b"1\ta\t5\t6\n", Form::Tsv).unwrap_err().to_string();
        assert!(error.contains("line 1 has 4 values"), "{error}");
    }

    /// As the indexer of 2.2.11 reads them.
    #[test]
    fn csv_has_quotes_anywhere() {
        let text = b"1,\"hello, wor\"\"ld\",5\n2,x y , \"6\"\n3,\"multi\nline\",\"a\\\"b\"\n4,ab\"cd\"ef,\\\\x\\n\n";
        let found = documents(text, Form::Csv(b',')).unwrap();
        assert_eq!(
            found,
            [
                ["1", "hello, wor\"ld", "5"],
                ["2", "x y ", " 6"],
                ["3", "multi\nline", "a\"b"],
                ["4", "abcdef", "\\xn"],
            ]
        );
        let found = documents(b"1;a,b;c\\;d\n", Form::Csv(b';')).unwrap();
        assert_eq!(found, [["1", "a,b", "c;d"]]);
        let error = documents(b"1,\"a,5\n2,b,6\n", Form::Csv(b',')).unwrap_err().to_string();
        assert!(error.contains("a quote that is not closed"), "{error}");
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_read_boundaries(
            text in "([12],|[a\",\\\\\n\r\t]){0,40}",
            size in 1_usize..5,
        ) {
            let whole = documents(text.as_bytes(), Form::Csv(b',')).map_err(|error| error.to_string());
            let columns = [Column::new("title", Kind::FieldString), Column::new("g", Kind::Uint)];
            let mut kept = Kept::default();
            let pieces = Pieces { bytes: text.as_bytes(), size };
            let read = read("source 's'", pieces, Form::Csv(b','), &columns, &mut kept);
            prop_assert_eq!(read.map(|()| kept.documents).map_err(|error| error.to_string()), whole);
        }
    }

    struct Pieces<'b> {
        bytes: &'b [u8],
        size: usize,
    }

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let length = self.size.min(buffer.len());
            self.bytes.read(&mut buffer[..length])
        }
    }
}
