//! Encodes results of statements as packets: the encoder behind a connection's `Reply`.
//!
//! ```text
//! result  = rows | OK | ERR             each but the last says that more follow
//! rows    = count  column*  [ EOF ]  row*  end of rows
//! cursor  = count  column*  end of rows           the rows are kept and fetched later
//! ```
//! The last end is written by [`Results::finish`], once the new state of the session is known.

use mysql_common::{constants::StatusFlags, packets::LocalInfilePacket, proto::MySerialize};
use remora_mysql::{Charset, ErrorCode};
use remora_sql::{Cell, Column, Error, Outcome, Result, ResultCharset};
use smallvec::SmallVec;

use super::{
    binary,
    column::{put_column, put_parameter},
    encode::put_number,
    error::WireError,
    handshake::Capabilities,
    outcome::{SessionChange, put_end_of_rows, put_eof, put_error, put_ok},
    packet::PacketWriter,
    text::{self, Shape},
};

/// The form of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// The text protocol.
    Text,
    /// The binary protocol.
    Binary,
}

/// The rows of an open cursor, which the client fetches.
#[derive(Debug, Default)]
pub struct Cursor {
    /// The encoded rows, one after the other.
    bytes: Vec<u8>,
    /// The end of each row in `bytes`.
    ends: Vec<usize>,
    next: usize,
    warnings: u16,
}

impl Cursor {
    /// The memory it takes, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    /// Writes at most `rows` further rows. False after the last one.
    pub fn fetch(&mut self, rows: u32, writer: &mut PacketWriter) -> bool {
        for _ in 0..rows {
            let start = self.next.checked_sub(1).map_or(Some(0), |at| self.ends.get(at).copied());
            let end = self.ends.get(self.next);
            let row = start.zip(end).and_then(|(start, end)| self.bytes.get(start..*end));
            let Some(row) = row else { break };
            writer.message(|out| out.extend_from_slice(row));
            self.next += 1;
        }
        self.next < self.ends.len()
    }

    /// Writes the end of a fetch.
    pub fn put_end(&self, writer: &mut PacketWriter, flags: StatusFlags, caps: Capabilities) {
        let more = self.next < self.ends.len();
        let flag = if more {
            StatusFlags::SERVER_STATUS_CURSOR_EXISTS
        } else {
            StatusFlags::SERVER_STATUS_LAST_ROW_SENT
        };
        let outcome = Outcome { warnings: self.warnings, ..Outcome::default() };
        writer.message(|out| put_end_of_rows(out, &outcome, flags | flag, caps, &[]));
    }
}

/// The destination of rows.
#[derive(Debug)]
enum RowDestination {
    /// The client.
    Wire,
    /// A cursor, with the most bytes it may hold.
    Cursor(Cursor, usize),
}

/// Encodes the results of one command.
#[derive(Debug)]
pub struct Results<'w, W> {
    wire: &'w mut W,
    capabilities: Capabilities,
    format: RowFormat,
    /// The flags of the session before the command.
    flags: StatusFlags,
    shapes: SmallVec<[Shape; 16]>,
    /// The character set of results; `None` means that texts are sent unchanged.
    charset: Option<ResultCharset>,
    /// The character set into which texts are converted, if that is necessary.
    encoded: Option<Charset>,
    /// Whether a result set was begun and not ended.
    in_rows: bool,
    /// The end that was not written yet, and whether it ends rows.
    pending: Option<(Outcome, bool)>,
    target: RowDestination,
}

impl<'w, W: AsMut<PacketWriter>> Results<'w, W> {
    /// An encoder that writes into the packets of `wire`.
    pub fn new(
        wire: &'w mut W,
        capabilities: Capabilities,
        format: RowFormat,
        flags: StatusFlags,
    ) -> Self {
        Self {
            wire,
            capabilities,
            format,
            flags,
            shapes: SmallVec::new(),
            charset: None,
            encoded: None,
            in_rows: false,
            pending: None,
            target: RowDestination::Wire,
        }
    }

    /// Keeps the rows for a cursor, at most this many bytes.
    pub fn keep_rows(&mut self, most_bytes: usize) {
        self.target = RowDestination::Cursor(Cursor::default(), most_bytes);
    }

    /// The destination of the packets.
    pub fn wire(&mut self) -> &mut W {
        self.wire
    }

    /// Sets the character set of what follows.
    pub fn set_charset(&mut self, charset: Option<ResultCharset>) {
        self.charset = charset;
        let charset = charset.map(|charset| charset.charset);
        self.encoded = charset.filter(|charset| *charset != Charset::UTF8MB4);
    }

    /// Begins a result set.
    ///
    /// # Errors
    /// It currently never fails.
    pub fn columns(&mut self, columns: &[Column]) -> Result<()> {
        self.end_pending(true);
        self.shapes.clear();
        self.shapes.extend(columns.iter().map(Shape::from));
        self.wire.as_mut().message(|out| put_number(out, columns.len() as u64));
        for column in columns {
            let charset = self.charset;
            self.wire.as_mut().message(|out| put_column(out, column, charset));
        }
        if matches!(self.target, RowDestination::Wire) {
            self.put_eof();
        }
        self.in_rows = true;
        Ok(())
    }

    /// Writes a row.
    ///
    /// # Errors
    /// [`ErrorCode::Unknown`] if no result set was begun or the number of cells is not that of its
    /// columns, [`ErrorCode::OutOfMemory`] if the rows of a cursor exceed their limit, and an error
    /// if a cell has no binary form in its column's type.
    #[inline]
    pub fn row(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        if !self.in_rows || cells.len() != self.shapes.len() {
            return Err(Error::new(ErrorCode::Unknown, "a row has other values than columns"));
        }
        let (shapes, format, charset) = (&self.shapes, self.format, self.encoded);
        let put = |out: &mut Vec<u8>| match format {
            RowFormat::Text => {
                let pairs = cells.iter().zip(shapes);
                pairs.for_each(|(cell, shape)| text::put_text(out, cell, *shape, charset));
                Ok(())
            }
            RowFormat::Binary => binary::put_row(out, cells, shapes, charset),
        };
        match &mut self.target {
            RowDestination::Wire => self.wire.as_mut().try_message(put),
            RowDestination::Cursor(cursor, most_bytes) => {
                put(&mut cursor.bytes)?;
                cursor.ends.push(cursor.bytes.len());
                if cursor.bytes.len() > *most_bytes {
                    let message = format!("a cursor's rows take more than {most_bytes} bytes");
                    return Err(Error::new(ErrorCode::OutOfMemory, message));
                }
                Ok(())
            }
        }
    }

    /// Ends a result set, or a statement without one.
    pub fn done(&mut self, outcome: &Outcome, more: bool) {
        self.end_pending(true);
        self.pending = Some((outcome.clone(), self.in_rows));
        self.in_rows = false;
        if more {
            self.end_pending(true);
        }
    }

    /// Writes the last end with the session's new state. Returns the rows that were kept.
    pub fn finish(mut self, flags: StatusFlags, changes: &[SessionChange]) -> Option<Cursor> {
        let (outcome, ends_rows) =
            self.pending.take().unwrap_or_else(|| (Outcome::default(), self.in_rows));
        let capabilities = self.capabilities;
        match self.target {
            RowDestination::Cursor(mut cursor, _) if ends_rows => {
                cursor.warnings = outcome.warnings;
                let flags = flags | StatusFlags::SERVER_STATUS_CURSOR_EXISTS;
                self.wire.as_mut().message(|out| {
                    put_end_of_rows(out, &outcome, flags, capabilities, changes);
                });
                Some(cursor)
            }
            _ => {
                put_end(self.wire.as_mut(), &outcome, ends_rows, flags, capabilities, changes);
                None
            }
        }
    }

    /// Ends the result with an error.
    pub fn fail(mut self, error: &WireError) {
        self.end_pending(true);
        let charset = self.encoded;
        self.wire.as_mut().message(|out| put_error(out, error, charset));
    }

    fn end_pending(&mut self, more: bool) {
        let Some((outcome, ends_rows)) = self.pending.take() else { return };
        let mut flags = self.flags;
        flags.set(StatusFlags::SERVER_MORE_RESULTS_EXISTS, more);
        put_end(self.wire.as_mut(), &outcome, ends_rows, flags, self.capabilities, &[]);
    }

    fn put_eof(&mut self) {
        if !self.capabilities.contains(Capabilities::CLIENT_DEPRECATE_EOF) {
            let flags = self.flags;
            self.wire.as_mut().message(|out| put_eof(out, 0, flags));
        }
    }
}

fn put_end(
    writer: &mut PacketWriter,
    outcome: &Outcome,
    ends_rows: bool,
    flags: StatusFlags,
    capabilities: Capabilities,
    changes: &[SessionChange],
) {
    writer.message(|out| {
        if ends_rows {
            put_end_of_rows(out, outcome, flags, capabilities, changes);
        } else {
            put_ok(out, outcome, flags, capabilities, changes);
        }
    });
}

/// Asks the client for a file. The client sends it in messages, of which the last is empty.
pub fn put_file_request(writer: &mut PacketWriter, name: &str) {
    writer.message(|out| LocalInfilePacket::new(name.as_bytes()).serialize(out));
}

/// Describes a prepared statement to a client whose results are in `charset`.
///
/// ```text
/// prepared = 0x00  id: u32  columns: u16  parameters: u16  0x00  warnings: u16
///            [ column*  [ EOF ] ] of the parameters  [ column*  [ EOF ] ] of the rows
/// ```
pub fn put_prepared(
    writer: &mut PacketWriter,
    id: u32,
    parameters: u16,
    columns: &[Column],
    flags: StatusFlags,
    capabilities: Capabilities,
    charset: Option<ResultCharset>,
) {
    let eof = |writer: &mut PacketWriter| {
        if !capabilities.contains(Capabilities::CLIENT_DEPRECATE_EOF) {
            writer.message(|out| put_eof(out, 0, flags));
        }
    };
    let count = u16::try_from(columns.len()).unwrap_or(u16::MAX);
    writer.message(|out| {
        out.push(0);
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&parameters.to_le_bytes());
        out.extend_from_slice(&[0, 0, 0]);
    });
    if parameters > 0 {
        (0..parameters).for_each(|_| writer.message(put_parameter));
        eof(writer);
    }
    if count > 0 {
        let told = columns.iter().take(usize::from(count));
        told.for_each(|column| writer.message(|out| put_column(out, column, charset)));
        eof(writer);
    }
}

/// Writes a table's columns, each with the default NULL: the answer to COM_FIELD_LIST.
pub fn put_field_list(
    writer: &mut PacketWriter,
    columns: &[Column],
    flags: StatusFlags,
    capabilities: Capabilities,
    charset: Option<ResultCharset>,
) {
    const NULL: u8 = 0xFB;
    for column in columns {
        writer.message(|out| {
            put_column(out, column, charset);
            out.push(NULL);
        });
    }
    writer.message(|out| put_end_of_rows(out, &Outcome::default(), flags, capabilities, &[]));
}

#[cfg(test)]
mod tests {
    use remora_sql::SqlType;

    use super::{super::packet::PacketReader, *};

    const FLAGS: StatusFlags = StatusFlags::SERVER_STATUS_AUTOCOMMIT;

    fn column(name: &str) -> Column {
        Column { kind: SqlType::BigInt, not_null: true, length: 2, ..Column::computed(name) }
    }

    fn messages(writer: &PacketWriter) -> Vec<Vec<u8>> {
        let mut reader = PacketReader::new(1 << 20);
        reader.expect(1);
        reader.room().extend_from_slice(writer.bytes());
        let mut messages = Vec::new();
        while let Some(message) = reader.next_message().unwrap() {
            messages.push(message.payload.to_vec());
        }
        messages
    }

    fn run(
        capabilities: Capabilities,
        format: RowFormat,
        statements: impl FnOnce(&mut Results<'_, PacketWriter>) -> bool,
    ) -> (Vec<Vec<u8>>, Option<Cursor>) {
        let mut writer = PacketWriter::default();
        writer.set_sequence(1);
        let mut results = Results::new(&mut writer, capabilities, format, FLAGS);
        let cursor = match statements(&mut results) {
            true => results.finish(FLAGS, &[]),
            false => {
                results.fail(&WireError::interrupted());
                None
            }
        };
        (messages(&writer), cursor)
    }

    fn select(results: &mut Results<'_, PacketWriter>, rows: i64, more: bool) {
        results.columns(&[column("n")]).unwrap();
        (0..rows).for_each(|row| results.row(&[Cell::Int(row)]).unwrap());
        results.done(&Outcome::default(), more);
    }

    #[test]
    fn select_1_bytes_are_exact() {
        let definition = b"\x03def\0\0\0\x011\0\x0c\x3f\0\x02\0\0\0\x08\x81\0\0\0\0";
        let all = |capabilities| {
            run(capabilities, RowFormat::Text, |results| {
                results.columns(&[column("1")]).unwrap();
                results.row(&[Cell::Int(1)]).unwrap();
                results.done(&Outcome::default(), false);
                true
            })
            .0
        };
        assert_eq!(
            all(Capabilities::empty()),
            [&b"\x01"[..], definition, b"\xfe\0\0\x02\0", b"\x011", b"\xfe\0\0\x02\0"]
        );
        assert_eq!(
            all(Capabilities::CLIENT_DEPRECATE_EOF),
            [&b"\x01"[..], definition, b"\x011", b"\xfe\0\0\x02\0\0\0"]
        );
    }

    #[test]
    fn multiple_results_have_the_more_results_flag() {
        let (messages, _) = run(Capabilities::CLIENT_DEPRECATE_EOF, RowFormat::Binary, |results| {
            results.done(&Outcome { affected_rows: 3, ..Outcome::default() }, true);
            select(results, 1, true);
            select(results, 0, false);
            true
        });
        assert_eq!(messages[0], b"\0\x03\0\x0a\0\0\0");
        assert_eq!(messages[3], b"\0\0\0\0\0\0\0\0\0\0");
        assert_eq!(messages[4], b"\xfe\0\0\x0a\0\0\0");
        assert_eq!(messages[7], b"\xfe\0\0\x02\0\0\0");
        assert_eq!(messages.len(), 8);
    }

    #[test]
    fn an_error_ends_rows() {
        let (messages, _) = run(Capabilities::empty(), RowFormat::Text, |results| {
            results.columns(&[column("n")]).unwrap();
            results.row(&[Cell::Int(7)]).unwrap();
            assert!(results.row(&[]).is_err());
            false
        });
        assert_eq!(messages.len(), 5);
        assert_eq!(messages[4][..3], [0xFF, 0x25, 0x05]);
    }

    #[test]
    fn a_cursor_hands_out_its_rows() {
        for (capabilities, end) in [
            (Capabilities::empty(), &b"\xfe\0\0\x42\0"[..]),
            (Capabilities::CLIENT_DEPRECATE_EOF, b"\xfe\0\0\x42\0\0\0"),
        ] {
            let (head, cursor) = run(capabilities, RowFormat::Binary, |results| {
                results.keep_rows(1000);
                select(results, 5, false);
                true
            });
            assert_eq!((head.len(), head[2].as_slice()), (3, end));
            let mut cursor = cursor.unwrap();
            let mut seen = 0;
            for expected in [2, 2, 1] {
                let mut writer = PacketWriter::default();
                writer.set_sequence(1);
                let more = cursor.fetch(2, &mut writer);
                cursor.put_end(&mut writer, FLAGS, capabilities);
                let messages = messages(&writer);
                assert_eq!(messages.len(), expected + 1);
                seen += expected;
                assert_eq!(more, seen < 5);
                let status = messages[expected][3];
                assert_eq!(status, if more { 0x42 } else { 0x82 });
            }
        }
    }

    #[test]
    fn a_cursor_has_a_limit() {
        let (messages, _) = run(Capabilities::empty(), RowFormat::Binary, |results| {
            results.keep_rows(25);
            results.columns(&[column("n")]).unwrap();
            assert!(results.row(&[Cell::Int(1)]).is_ok());
            assert!(results.row(&[Cell::Int(1)]).is_ok());
            assert_eq!(results.row(&[Cell::Int(1)]).unwrap_err().code, ErrorCode::OutOfMemory);
            false
        });
        assert_eq!(messages.len(), 3);
    }

    #[test]
    fn prepared_statement_bytes_are_exact() {
        let mut writer = PacketWriter::default();
        writer.set_sequence(1);
        put_prepared(&mut writer, 9, 2, &[column("n")], FLAGS, Capabilities::empty(), None);
        let messages = messages(&writer);
        assert_eq!(messages[0], [0, 9, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0]);
        assert_eq!(messages.len(), 6);
        assert_eq!(messages[3], b"\xfe\0\0\x02\0");
    }
}
