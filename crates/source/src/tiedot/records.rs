//! A file of records: reads one by its offset, and scans all of them.

use std::{fs::File, os::unix::fs::FileExt};

use super::{Problem, directory::Sizes, varint};
use crate::{Error, Result};

/// Validity and room.
const HEADER_BYTES: u64 = 11;
/// Bytes that a scan reads at once.
const WINDOW_BYTES: usize = 256 << 10;
/// Records are further apart than this: a header, and room for twice `{}`.
const GRAIN_BYTES: u64 = 8;

/// The records of a file.
pub(super) struct Records<'f> {
    name: &'f str,
    file: &'f File,
    bytes: u64,
    sizes: Sizes,
    /// The offsets of records that were read, in units of [`GRAIN_BYTES`].
    seen: Vec<u64>,
}

/// What is at an offset.
enum Header {
    There { room: u64 },
    Deleted { room: u64 },
    Damaged,
}

impl<'f> Records<'f> {
    pub fn new(name: &'f str, file: &'f File, sizes: Sizes) -> Result<Self> {
        let bytes = file.metadata().map_err(|error| Error::io(name, error))?.len();
        let grains = usize::try_from(bytes / GRAIN_BYTES / 64 + 1).unwrap_or(0);
        Ok(Self { name, file, bytes, sizes, seen: vec![0; grains] })
    }

    /// The text of the record at an offset, with its padding; or why there is none.
    pub fn read(&mut self, offset: i64) -> Result<std::result::Result<Vec<u8>, &'static str>> {
        let place = u64::try_from(offset).ok();
        let Some(place) = place.filter(|place| place.saturating_add(HEADER_BYTES) <= self.bytes)
        else {
            return Ok(Err("beyond the end of the file"));
        };
        let mut head = [0; HEADER_BYTES as usize];
        self.fill(&mut head, place)?;
        let room = match self.header(&head, place) {
            Header::There { room } => room,
            Header::Deleted { .. } => {
                return Ok(Err("where no document stands: it was deleted, or never written"));
            }
            Header::Damaged => return Ok(Err("where no record begins")),
        };
        let mut text = vec![0; usize::try_from(room).unwrap_or(0)];
        self.fill(&mut text, place + HEADER_BYTES)?;
        match self.mark_seen(place) {
            true => Ok(Ok(text)),
            false => Ok(Err("whose document has another id already")),
        }
    }

    /// Visits records that were not read, and ranges that are not records.
    pub fn report_unread(&self, wrong: &mut dyn FnMut(Problem) -> Result<()>) -> Result<()> {
        let (mut place, mut damaged) = (0, None);
        let (mut window, mut window_start) = (Vec::new(), 0);
        while place + HEADER_BYTES <= self.bytes {
            let within = usize::try_from(place - window_start).unwrap_or(usize::MAX);
            let Some(head) =
                window.get(within..).filter(|rest: &&[u8]| rest.len() >= HEADER_BYTES as usize)
            else {
                let left = usize::try_from(self.bytes - place).unwrap_or(usize::MAX);
                window = vec![0; WINDOW_BYTES.min(left)];
                window_start = place;
                self.fill(&mut window, place)?;
                continue;
            };
            let (room, is_there) = match self.header(head, place) {
                Header::Damaged => {
                    damaged.get_or_insert(place);
                    place += 1;
                    continue;
                }
                Header::There { room } => (room, true),
                Header::Deleted { room } => (room, false),
            };
            if let Some(start) = damaged.take() {
                wrong(self.unread_range(start, place))?;
            }
            if is_there && !self.is_seen(place) {
                let message =
                    "a document to which no id leads: it was written or moved when tiedot ended"
                        .to_owned();
                wrong(Problem { file: self.name.to_owned(), offset: place, message })?;
            }
            place += HEADER_BYTES + room;
        }
        match damaged {
            Some(start) => wrong(self.unread_range(start, self.bytes)),
            None => Ok(()),
        }
    }

    fn unread_range(&self, start: u64, end: u64) -> Problem {
        let message = format!("{} bytes are no records", end - start);
        Problem { file: self.name.to_owned(), offset: start, message }
    }

    fn header(&self, head: &[u8], place: u64) -> Header {
        let room = head.get(1..11).and_then(varint).and_then(|room| u64::try_from(room).ok());
        let room = room.filter(|&room| {
            room <= self.sizes.max_room && place + HEADER_BYTES + room <= self.bytes
        });
        match (head.first(), room) {
            (Some(1), Some(room)) => Header::There { room },
            (Some(0), Some(room)) => Header::Deleted { room },
            _ => Header::Damaged,
        }
    }

    /// Notes an offset; false if it was noted before.
    fn mark_seen(&mut self, place: u64) -> bool {
        let (word, bit) = word_and_bit(place);
        let Some(word) = self.seen.get_mut(word) else { return false };
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    fn is_seen(&self, place: u64) -> bool {
        let (word, bit) = word_and_bit(place);
        self.seen.get(word).is_some_and(|word| word & bit != 0)
    }

    fn fill(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_exact_at(buffer, offset).map_err(|error| Error::io(self.name, error))
    }
}

fn word_and_bit(place: u64) -> (usize, u64) {
    let grain = place / GRAIN_BYTES;
    (usize::try_from(grain / 64).unwrap_or(usize::MAX), 1 << (grain % 64))
}
