//! Row images: the rows of a rows event.
//!
//! ```text
//! body    := table_id:u48 flags:u16 extra? columns:packed present present? row*
//! extra   := length:u16 byte{length - 2}                    since version 2
//! present := a bit for each column; an update has one for before and one for after
//! row     := image                                          inserts, deletes
//!          | image image                                    updates
//!          | image options:packed partial? image            partial updates, if options & 1
//! partial := a bit for each JSON column of the table: it holds differences
//! image   := nulls value*        a bit for each present column, values of those that are not null
//! ```
//! MariaDB logs the history of a system-versioned table as rows of it: an update also inserts the old row, and a delete
//! is an update that ends the row's period. Only changes of current rows, whose period has no end, are visited.

mod layout;
mod unreadable;

use remora_engine::{Row, Value};

use super::{RowsKind, RowsVersion, TableMap};
use crate::{
    Error, Result,
    mysql::{
        bytes::{Reader, UnexpectedEnd},
        schema::SourceTable,
        values::{Differences, Malformed, updated_json_text},
    },
};
use layout::ImageColumn;
pub(crate) use unreadable::no_text;

/// A change of one row. Values are in the engine's column order.
#[derive(Clone, Debug, PartialEq)]
pub enum RowChange {
    /// A new row.
    Insert(Row),
    /// A changed row.
    Update {
        /// The row before. Only the identifying columns ([`SourceTable::identity`]) and those named by
        /// [`RowDecoder::require_before_columns`] are certainly present; others may be NULL.
        before: Row,
        /// The row after.
        after: Row,
    },
    /// A deleted row, with the same restriction.
    Delete(Row),
}

/// Decodes the row images of one table, for one layout at the source.
#[derive(Clone, Debug)]
pub struct RowDecoder {
    table: String,
    columns: Vec<ImageColumn>,
    /// Whether the columns are those of the engine, in the same order.
    in_order: bool,
    /// The number of columns of the engine's rows.
    width: usize,
    /// The positions of the identifying columns in the engine's rows.
    identity: Vec<usize>,
    /// The image's column with the end of the row's period, if there is one.
    period_end: Option<usize>,
    /// For each column of the engine's rows, its position in the images.
    images: Vec<usize>,
    /// Which columns of before images are read, by their positions in the images.
    looked_at: Vec<bool>,
}

/// An error in an image, before the table's name is added.
enum Problem {
    Malformed,
    Column(usize),
    Missing(usize),
}

impl From<Malformed> for Problem {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl From<UnexpectedEnd> for Problem {
    fn from(_: UnexpectedEnd) -> Self {
        Self::Malformed
    }
}

/// An image of a row.
struct Image<'a> {
    row: Row,
    /// Whether every followed column was present.
    complete: bool,
    /// Whether it is a current row, and not one of the table's history.
    is_current: bool,
    /// The bytes of the JSON columns, to which differences are applied.
    documents: Vec<Option<&'a [u8]>>,
}

impl Image<'_> {
    /// The row, if it is current and not history.
    fn current(self) -> Option<Row> {
        self.is_current.then_some(self.row)
    }
}

/// The layout of an event's images.
struct Images<'a> {
    before: &'a [u8],
    after: &'a [u8],
}

impl RowDecoder {
    /// A decoder for events with this map.
    ///
    /// # Errors
    /// [`Error::TableRefused`] names the column that does not match: the definition is older or newer than the event.
    pub fn new(source: &SourceTable, map: &TableMap) -> Result<Self> {
        let columns = layout::columns(source, map)?;
        let places = columns.iter().enumerate();
        let in_order = columns.len() == source.columns.len()
            && source.period_end.is_none()
            && places.clone().all(|(place, column)| column.followed_at() == Some(place));
        let mut images = vec![0; source.columns.len()];
        for (image, column) in places {
            if let Some(place) = column.followed_at().and_then(|place| images.get_mut(place)) {
                *place = image;
            }
        }
        let width = source.columns.len();
        let (identity, period_end) = (source.identity(), source.period_end);
        let looked_at = vec![true; columns.len()];
        let table = source.full_name();
        Ok(Self { table, columns, in_order, width, identity, period_end, images, looked_at })
    }

    /// Declares that before images are only needed for the identifying columns and these ones, given by their positions
    /// in the engine's rows. The others are skipped where an after image follows.
    pub fn require_before_columns(&mut self, places: &[usize]) {
        self.looked_at.fill(false);
        for place in self.identity.iter().chain(places) {
            if let Some(looked_at) =
                self.images.get(*place).and_then(|&image| self.looked_at.get_mut(image))
            {
                *looked_at = true;
            }
        }
    }

    /// Decodes the body of a rows event (without header and checksum) and visits its changes in order.
    ///
    /// # Errors
    /// [`Error::TableRefused`] if the event does not match the table's columns, lacks one of them, or has a text that
    /// is invalid in its character set; else the first error of `visit`. Earlier changes have been visited.
    pub fn decode(
        &self,
        kind: RowsKind,
        version: RowsVersion,
        body: &[u8],
        visit: &mut dyn FnMut(RowChange) -> Result<()>,
    ) -> Result<()> {
        let mut reader = Reader::new(body);
        let images = self.head(kind, version, &mut reader).map_err(|bad| self.error(bad))?;
        while reader.remaining() > 0 {
            let start = reader;
            let change = self.change(kind, &images, &mut reader);
            if let Some(change) = change.map_err(|bad| self.explained(bad, kind, &images, start))? {
                visit(change)?;
            }
        }
        Ok(())
    }

    fn head<'a>(
        &self,
        kind: RowsKind,
        version: RowsVersion,
        reader: &mut Reader<'a>,
    ) -> Result<Images<'a>, Problem> {
        reader.skip(6 + 2)?;
        if version == RowsVersion::V2 {
            let extra = usize::from(reader.u16()?);
            reader.skip(extra.checked_sub(2).ok_or(Malformed)?)?;
        }
        if reader.packed_length()? != self.columns.len() {
            return Err(Problem::Malformed);
        }
        let bytes = self.columns.len().div_ceil(8);
        let before = reader.bytes(bytes)?;
        let after = match kind {
            RowsKind::Update | RowsKind::PartialUpdate => reader.bytes(bytes)?,
            RowsKind::Insert | RowsKind::Delete => before,
        };
        let nothing = |present: &[u8]| present.iter().all(|bits| *bits == 0);
        if nothing(before) && nothing(after) {
            Err(Problem::Malformed)
        } else {
            Ok(Images { before, after })
        }
    }

    fn change(
        &self,
        kind: RowsKind,
        images: &Images<'_>,
        reader: &mut Reader<'_>,
    ) -> Result<Option<RowChange>, Problem> {
        match kind {
            RowsKind::Insert => {
                let image = self.image(reader, images.before, None)?;
                self.check_complete(&image, images.before)?;
                Ok(image.current().map(RowChange::Insert))
            }
            RowsKind::Delete => {
                let image = self.image_before(reader, images.before)?;
                self.check_identity(&image, images.before)?;
                Ok(image.current().map(RowChange::Delete))
            }
            RowsKind::Update if self.has_all(images.after) => {
                let before = self.image_before(reader, images.before)?;
                self.check_identity(&before, images.before)?;
                let after = self.image(reader, images.after, None)?;
                Ok(updated(before, after))
            }
            RowsKind::Update | RowsKind::PartialUpdate => {
                let before = self.image(reader, images.before, None)?;
                self.check_identity(&before, images.before)?;
                let partial = match kind {
                    RowsKind::PartialUpdate => self.partial(reader)?,
                    _ => &[],
                };
                let mut after = self.image(reader, images.after, Some((&before, partial)))?;
                self.complete(&mut after, images, &before)?;
                Ok(updated(before, after))
            }
        }
    }

    fn has_all(&self, present: &[u8]) -> bool {
        (0..self.columns.len()).all(|index| bit(present, index))
    }

    /// Reads a before image: only the needed columns.
    fn image_before<'a>(
        &self,
        reader: &mut Reader<'a>,
        present: &[u8],
    ) -> Result<Image<'a>, Problem> {
        let count: u32 = present.iter().map(|bits| bits.count_ones()).sum();
        let nulls = reader.bytes((count as usize).div_ceil(8))?;
        let mut row = vec![Value::Null; self.width];
        let mut is_current = true;
        let there = self.columns.iter().zip(&self.looked_at).enumerate();
        let there = there.filter(|(index, _)| bit(present, *index));
        for (place, (index, (column, looked_at))) in there.enumerate() {
            if bit(nulls, place) {
                continue;
            }
            if column.is_period_end() {
                is_current = has_no_end(column, *reader)?;
            }
            if !looked_at {
                column.length().take(reader).map_err(|_| Problem::Column(index))?;
                continue;
            }
            let value = column.read(reader).map_err(|_| Problem::Column(index))?;
            if let Some(to) = column.followed_at().and_then(|place| row.get_mut(place)) {
                *to = value;
            }
        }
        let complete = count as usize == self.columns.len();
        Ok(Image { row, complete, is_current, documents: Vec::new() })
    }

    /// The bits that tell which JSON columns are differences; empty if there are none.
    fn partial<'a>(&self, reader: &mut Reader<'a>) -> Result<&'a [u8], Problem> {
        if reader.packed()? & 1 == 0 {
            return Ok(&[]);
        }
        let documents = self.columns.iter().filter(|column| column.is_document()).count();
        Ok(reader.bytes(documents.div_ceil(8))?)
    }

    /// Reads one image. Missing columns are NULL. An after image gets the before image and the bits of the columns that
    /// are differences to it.
    fn image<'a>(
        &self,
        reader: &mut Reader<'a>,
        present: &[u8],
        update: Option<(&Image<'a>, &[u8])>,
    ) -> Result<Image<'a>, Problem> {
        let count: u32 = present.iter().map(|bits| bits.count_ones()).sum();
        let nulls = reader.bytes((count as usize).div_ceil(8))?;
        let mut image = Image {
            row: Vec::new(),
            complete: count as usize == self.columns.len(),
            is_current: true,
            documents: Vec::new(),
        };
        if image.complete && self.in_order && update.is_none_or(|(_, partial)| partial.is_empty()) {
            self.whole_image(reader, nulls, &mut image)?;
            return Ok(image);
        }
        image.row = vec![Value::Null; self.width];
        let mut places = 0;
        let mut documents = 0;
        for (index, column) in self.columns.iter().enumerate() {
            let document = column.is_document().then_some(documents);
            documents += usize::from(column.is_document());
            if !bit(present, index) {
                image.documents.extend(document.map(|_| None));
                continue;
            }
            let null = bit(nulls, places);
            places += 1;
            let start = *reader;
            if column.is_period_end() && !null {
                image.is_current = has_no_end(column, start)?;
            }
            let value = match (null, document, update) {
                (true, ..) => Value::Null,
                (false, Some(at), Some((before, partial))) if bit(partial, at) => {
                    let bytes = column.length().take(reader)?;
                    let old = before.documents.get(at).copied().flatten();
                    let old = old.ok_or(Problem::Column(index))?;
                    let text = updated_json_text(old, Differences::new(bytes));
                    Value::Json(text.map_err(|_| Problem::Column(index))?)
                }
                _ => column.read(reader).map_err(|_| Problem::Column(index))?,
            };
            if document.is_some() {
                let mut from = start;
                image.documents.push(if null {
                    None
                } else {
                    Some(column.length().take(&mut from)?)
                });
            }
            if let Some(place) = column.followed_at().and_then(|place| image.row.get_mut(place)) {
                *place = value;
            }
        }
        Ok(image)
    }

    /// Reads an image that has all columns in the engine's order.
    fn whole_image<'a>(
        &self,
        reader: &mut Reader<'a>,
        nulls: &[u8],
        image: &mut Image<'a>,
    ) -> Result<(), Problem> {
        image.row.reserve_exact(self.width);
        for (index, column) in self.columns.iter().enumerate() {
            let null = bit(nulls, index);
            let start = *reader;
            let value = match null {
                true => Value::Null,
                false => column.read(reader).map_err(|_| Problem::Column(index))?,
            };
            image.row.push(value);
            if column.is_document() {
                let mut from = start;
                image.documents.push(if null {
                    None
                } else {
                    Some(column.length().take(&mut from)?)
                });
            }
        }
        Ok(())
    }

    /// Takes columns that the after image lacks from the before image.
    fn complete(
        &self,
        after: &mut Image<'_>,
        images: &Images<'_>,
        before: &Image<'_>,
    ) -> Result<(), Problem> {
        if after.complete {
            return Ok(());
        }
        for (place, &image) in self.images.iter().enumerate() {
            if bit(images.after, image) {
                continue;
            }
            if !bit(images.before, image) {
                return Err(Problem::Missing(image));
            }
            if let (Some(to), Some(from)) = (after.row.get_mut(place), before.row.get(place)) {
                *to = from.clone();
            }
        }
        if self.period_end.is_some_and(|image| !bit(images.after, image)) {
            after.is_current = before.is_current;
        }
        Ok(())
    }

    fn check_complete(&self, image: &Image<'_>, present: &[u8]) -> Result<(), Problem> {
        let mut wanted = self.images.iter().copied().chain(self.period_end);
        match wanted.find(|&image| !bit(present, image)) {
            Some(index) if !image.complete => Err(Problem::Missing(index)),
            _ => Ok(()),
        }
    }

    fn check_identity(&self, image: &Image<'_>, present: &[u8]) -> Result<(), Problem> {
        let places = self.identity.iter().filter_map(|&place| self.images.get(place));
        let mut wanted = places.copied().chain(self.period_end);
        match wanted.find(|&index| !bit(present, index)) {
            Some(index) if !image.complete => Err(Problem::Missing(index)),
            _ => Ok(()),
        }
    }

    /// The error of an invalid text, with the row's key.
    #[cold]
    fn explained(
        &self,
        problem: Problem,
        kind: RowsKind,
        images: &Images<'_>,
        row: Reader<'_>,
    ) -> Error {
        let reason = match problem {
            Problem::Column(index) => self.no_text(index, kind, images, row),
            Problem::Malformed | Problem::Missing(_) => None,
        };
        match reason {
            Some(reason) => Error::TableRefused { table: self.table.clone(), reason },
            None => self.error(problem),
        }
    }

    fn error(&self, problem: Problem) -> Error {
        let name = |index: usize| self.columns.get(index).map_or("", ImageColumn::name);
        let reason = match problem {
            Problem::Malformed => "a rows event does not fit its columns".to_owned(),
            Problem::Column(index) => {
                format!("a rows event holds no value of column {:?}", name(index))
            }
            Problem::Missing(index) => format!(
                "a rows event lacks column {:?}: set binlog_row_image=FULL at the source",
                name(index)
            ),
        };
        Error::TableRefused { table: self.table.clone(), reason }
    }
}

/// The effect of an update on the current rows.
fn updated(before: Image<'_>, after: Image<'_>) -> Option<RowChange> {
    match (before.is_current, after.is_current) {
        (true, true) => Some(RowChange::Update { before: before.row, after: after.row }),
        (true, false) => Some(RowChange::Delete(before.row)),
        (false, true) => Some(RowChange::Insert(after.row)),
        (false, false) => None,
    }
}

/// Whether the next value is the end of an open period: the greatest value of a TIMESTAMP(6), which changed in MariaDB
/// 11.5, or the greatest transaction number.
fn has_no_end(column: &ImageColumn, mut at: Reader<'_>) -> Result<bool, Problem> {
    const LAST_MICROS: [u8; 3] = [0x0f, 0x42, 0x3f];
    Ok(match column.length().take(&mut at)? {
        [0x7f | 0xff, 0xff, 0xff, 0xff, micros @ ..] if micros.len() == LAST_MICROS.len() => {
            micros == LAST_MICROS
        }
        number => number.iter().all(|byte| *byte == 0xff),
    })
}

fn bit(bits: &[u8], index: usize) -> bool {
    bits.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1)
}

#[cfg(test)]
mod tests;
