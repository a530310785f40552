//! LOAD DATA LOCAL: finds the name of the client's file in a statement, so that the protocol can
//! request it.

use super::Session;
use crate::{
    blocking::run_blocking_if_long,
    parse::{LONG_BYTES, split},
};

/// The last token position at which the name can be:
/// `LOAD DATA [LOW_PRIORITY | CONCURRENT] LOCAL INFILE name`.
const LAST_PLACE: usize = 5;

impl Session {
    /// The client's file that a statement reads, if it is LOAD DATA LOCAL. Other statements cost
    /// almost nothing.
    pub fn local_file(&self, text: &[u8]) -> Option<String> {
        let start = text.trim_ascii_start();
        let first = start.first()?;
        // A comment may precede the statement.
        if !matches!(first, b'L' | b'l' | b'/' | b'-' | b'#') {
            return None;
        }
        let mode = self.state.lex_mode();
        let is_long = text.len() > LONG_BYTES;
        let sources =
            run_blocking_if_long(is_long, || split(&self.utf8(text), false, mode)).ok()?;
        let source = sources.first()?;
        if !source.is_word(0, "LOAD") || !source.is_word(1, "DATA") {
            return None;
        }
        let place = (2..LAST_PLACE).find(|at| source.is_word(*at, "LOCAL"))?;
        if source.is_word(place + 1, "INFILE") { source.plain(place + 2) } else { None }
    }

    /// Gives the next statement the file that it reads. The file is dropped when that statement
    /// ends.
    pub fn give_file(&mut self, content: Vec<u8>) {
        self.state.transaction.give_file(content);
    }
}
