//! Explains why a row cannot be read: which row, which column, which bytes. Rows are decoded a second time for that, so
//! that the normal path costs nothing.

use std::fmt::Write;

use super::{Images, RowDecoder, RowsKind, bit};
use crate::mysql::bytes::Reader;

/// The most bytes of a value in a message.
const SHOWN_BYTES: usize = 16;

/// The reason for stopping a table with an invalid text.
pub(crate) fn no_text(column: &str, key: &[String], bytes: &[u8]) -> String {
    let mut shown = String::from("0x");
    for byte in bytes.iter().take(SHOWN_BYTES) {
        // Writing to a String never fails.
        let _ = write!(shown, "{byte:02X}");
    }
    if bytes.len() > SHOWN_BYTES {
        shown.push_str("...");
    }
    format!(
        "column {column:?} of the row with the key ({}) holds a text that is no Unicode (a lone \
         surrogate or other bytes that UTF-8 does not have): {shown}; correct it at the source and \
         copy the table again",
        key.join(", ")
    )
}

impl RowDecoder {
    /// The error of a column in one of the following images, if it is an invalid text.
    pub(super) fn no_text(
        &self,
        index: usize,
        kind: RowsKind,
        images: &Images<'_>,
        mut reader: Reader<'_>,
    ) -> Option<String> {
        let before = self.look(index, images.before, &mut reader)?;
        match (before, kind) {
            (Some(reason), _) => Some(reason),
            (None, RowsKind::Update) => self.look(index, images.after, &mut reader)?,
            (None, _) => None,
        }
    }

    /// Reads an image again up to its end, if that can be found.
    fn look(
        &self,
        index: usize,
        present: &[u8],
        reader: &mut Reader<'_>,
    ) -> Option<Option<String>> {
        let count: u32 = present.iter().map(|bits| bits.count_ones()).sum();
        let nulls = reader.bytes((count as usize).div_ceil(8)).ok()?;
        let mut key = vec![String::new(); self.identity.len()];
        let mut found = None;
        let there = self.columns.iter().enumerate().filter(|(index, _)| bit(present, *index));
        for (place, (at, column)) in there.enumerate() {
            if bit(nulls, place) {
                continue;
            }
            let mut from = *reader;
            let bytes = column.length().take(reader).ok()?;
            if at == index {
                found = column.is_no_text(bytes).then_some((column.name(), bytes));
            }
            let part = self.identity.iter().position(|&part| column.followed_at() == Some(part));
            if let Some(part) = part.and_then(|part| key.get_mut(part)) {
                *part = match column.read(&mut from) {
                    Ok(value) => value.to_string(),
                    Err(_) => String::from_utf8_lossy(bytes).into_owned(),
                };
            }
        }
        Some(found.map(|(name, bytes)| no_text(name, &key, bytes)))
    }
}
