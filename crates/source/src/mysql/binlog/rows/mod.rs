//! Row images: what a rows event says about each row.
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
//! MariaDB logs the history of a table with system versioning as rows of it: an update also inserts the old row, and a
//! delete is an update that ends the row's period. Only changes of current rows are visited: those whose period has no
//! end.

mod layout;
mod unreadable;

use remora_engine::{Row, Value};

use super::{RowsKind, RowsVersion, TableMap};
use crate::{
    Error, Result,
    mysql::{
        bytes::{Reader, Short},
        schema::SourceTable,
        values::{Differences, Malformed, updated_json_text},
    },
};
use layout::ImageColumn;
pub(crate) use unreadable::no_text;

/// What happened to one row. Rows are in the engine's column order.
#[derive(Clone, Debug, PartialEq)]
pub enum RowChange {
    /// A new row.
    Insert(Row),
    /// A row that is now another.
    Update {
        /// What it was. Only the columns by which the row is known are sure to be there
        /// ([`SourceTable::identity`]), and those that [`RowDecoder::look_back`] names; the others
        /// may be NULL.
        before: Row,
        /// What it is.
        after: Row,
    },
    /// A row that is gone, with the same restriction.
    Delete(Row),
}

/// Reads the row images of one table, as long as the source's layout of it stays the same.
#[derive(Clone, Debug)]
pub struct RowDecoder {
    table: String,
    columns: Vec<ImageColumn>,
    /// Whether the columns are the engine's, in its order.
    in_order: bool,
    /// Columns of the engine's rows.
    width: usize,
    /// Places of the columns by which a row is known, in the engine's rows.
    identity: Vec<usize>,
    /// The image's column that says until when the row was current, if there is one.
    period_end: Option<usize>,
    /// Places of the followed columns in the images, by their places in the engine's rows.
    images: Vec<usize>,
    /// Which columns of rows that are no more are read, by their places in the images.
    looked_at: Vec<bool>,
}

/// What went wrong with an image, before it has the table's name.
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

impl From<Short> for Problem {
    fn from(_: Short) -> Self {
        Self::Malformed
    }
}

/// One image of a row.
struct Image<'a> {
    row: Row,
    /// Whether every followed column was there.
    complete: bool,
    /// Whether it is a row of the table, and not of its history.
    is_current: bool,
    /// The bytes of the JSON columns, for differences to them.
    documents: Vec<Option<&'a [u8]>>,
}

impl Image<'_> {
    /// The row, if it is one of the table and not of its history.
    fn current(self) -> Option<Row> {
        self.is_current.then_some(self.row)
    }
}

/// How an event's images are laid out.
struct Images<'a> {
    before: &'a [u8],
    after: &'a [u8],
}

impl RowDecoder {
    /// A decoder for events with this map.
    ///
    /// # Errors
    /// [`Error::TableRefused`] says which column is another than the table's: then the definition
    /// is older or newer than the event.
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

    /// Of rows that are no more only what they are known by and these columns are asked for, by
    /// their places in the engine's rows: the others need not be read where an image says what the
    /// row is now.
    pub fn look_back(&mut self, places: &[usize]) {
        self.looked_at.fill(false);
        for place in self.identity.iter().chain(places) {
            if let Some(looked_at) =
                self.images.get(*place).and_then(|&image| self.looked_at.get_mut(image))
            {
                *looked_at = true;
            }
        }
    }

    /// Reads the body of a rows event (after its header, without checksum) and visits its changes
    /// in order.
    ///
    /// # Errors
    /// [`Error::TableRefused`] if the event does not fit the table's columns, lacks one of them, or
    /// holds a text that is none in its character set; and the first error of `visit`. The changes
    /// before it were visited.
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

    /// Reads the image of a row that is no more: the columns that are looked at.
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

    /// The bits that say which JSON columns hold differences; none of them without.
    fn partial<'a>(&self, reader: &mut Reader<'a>) -> Result<&'a [u8], Problem> {
        if reader.packed()? & 1 == 0 {
            return Ok(&[]);
        }
        let documents = self.columns.iter().filter(|column| column.is_document()).count();
        Ok(reader.bytes(documents.div_ceil(8))?)
    }

    /// Reads one image. Columns that are not there are NULL. An image after an update comes with
    /// the one before and the bits of the columns that are differences to it.
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

    /// An image that holds every column in the engine's order.
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

    /// Takes from the image before what the one after leaves out.
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

    /// The error with the row, where a text is none.
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

/// What an update means for the current rows.
fn updated(before: Image<'_>, after: Image<'_>) -> Option<RowChange> {
    match (before.is_current, after.is_current) {
        (true, true) => Some(RowChange::Update { before: before.row, after: after.row }),
        (true, false) => Some(RowChange::Delete(before.row)),
        (false, true) => Some(RowChange::Insert(after.row)),
        (false, false) => None,
    }
}

/// Whether the value that stands next is an end of a period that has none: the last moment that a
/// TIMESTAMP(6) can hold, which was another before MariaDB 11.5, or the number of no transaction.
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
