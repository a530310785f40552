//! A hash table's file: entries in chains of buckets.

use std::{fs::File, os::unix::fs::FileExt};

use super::{Problem, directory::Sizes, varint};
use crate::{Error, Result};

/// The bytes before a bucket's entries.
const BUCKET_HEADER_BYTES: u64 = 10;
const ENTRY_BYTES: u64 = 21;
/// Buckets that are read at once.
const BUCKETS_AT_ONCE: u64 = 1_024;

/// A hash table.
pub(super) struct HashTable<'f> {
    name: &'f str,
    file: &'f File,
    bytes: u64,
    sizes: Sizes,
}

/// A valid entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub key: i64,
    pub value: i64,
    /// The offset of its first byte.
    pub offset: u64,
}

impl Sizes {
    fn bucket_bytes(self) -> u64 {
        BUCKET_HEADER_BYTES + self.bucket_entries * ENTRY_BYTES
    }

    fn first_buckets(self) -> u64 {
        1 << self.hash_bits
    }

    /// The first bucket of a key, by tiedot's hash.
    pub fn first_bucket(self, key: i64) -> u64 {
        let key = key ^ (key >> 4);
        let key = (key ^ 0xdead_beef).wrapping_add(key << 5);
        let key = key ^ (key >> 11);
        key.cast_unsigned() & (self.first_buckets() - 1)
    }
}

impl<'f> HashTable<'f> {
    pub fn new(name: &'f str, file: &'f File, sizes: Sizes) -> Result<Self> {
        let bytes = file.metadata().map_err(|error| Error::io(name, error))?.len();
        Ok(Self { name, file, bytes, sizes })
    }

    /// Visits the entries of each chain, and reports problems.
    pub fn chains(
        &self,
        visit: &mut dyn FnMut(u64, &[Entry]) -> Result<()>,
        wrong: &mut dyn FnMut(Problem) -> Result<()>,
    ) -> Result<()> {
        let bucket_bytes = self.sizes.bucket_bytes();
        let (first_buckets, there) = (self.sizes.first_buckets(), self.bytes / bucket_bytes);
        // A table that was never written is empty.
        if there < first_buckets && self.bytes > 0 {
            let message = format!(
                "the table of ids ends here, within its first {first_buckets} buckets: the file was cut off"
            );
            wrong(self.problem(self.bytes, message))?;
        }
        let mut entries = Vec::new();
        for start in (0..first_buckets.min(there)).step_by(BUCKETS_AT_ONCE as usize) {
            let end = (start + BUCKETS_AT_ONCE).min(first_buckets).min(there);
            let block = self.read(start * bucket_bytes, (end - start) * bucket_bytes)?;
            for (head, bucket) in (start..).zip(block.chunks(bucket_bytes as usize)) {
                entries.clear();
                let next = self.take_bucket(head, bucket, &mut entries, wrong)?;
                self.follow(head, next, &mut entries, wrong)?;
                if !entries.is_empty() {
                    visit(head, &entries)?;
                }
            }
        }
        Ok(())
    }

    /// Collects the entries of the buckets chained to one.
    fn follow(
        &self,
        mut bucket: u64,
        mut next: i64,
        entries: &mut Vec<Entry>,
        wrong: &mut dyn FnMut(Problem) -> Result<()>,
    ) -> Result<()> {
        let bucket_bytes = self.sizes.bucket_bytes();
        let there = self.bytes / bucket_bytes;
        while next != 0 {
            let number = u64::try_from(next).unwrap_or(0);
            // Chains only go forward, so they end.
            if number <= bucket || number < self.sizes.first_buckets() || number >= there {
                let message =
                    format!("bucket {bucket} is followed by bucket {next}, which cannot be");
                return wrong(self.problem(bucket * bucket_bytes, message));
            }
            bucket = number;
            let bytes = self.read(bucket * bucket_bytes, bucket_bytes)?;
            next = self.take_bucket(bucket, &bytes, entries, wrong)?;
        }
        Ok(())
    }

    /// Collects the entries of a bucket and returns the number of the next one.
    fn take_bucket(
        &self,
        number: u64,
        bytes: &[u8],
        entries: &mut Vec<Entry>,
        wrong: &mut dyn FnMut(Problem) -> Result<()>,
    ) -> Result<i64> {
        let (head, rest) = bytes.split_at_checked(BUCKET_HEADER_BYTES as usize).unwrap_or_default();
        let start = number * self.sizes.bucket_bytes();
        for (place, entry) in (0..).zip(rest.chunks(ENTRY_BYTES as usize)) {
            let offset = start + BUCKET_HEADER_BYTES + place * ENTRY_BYTES;
            match (entry.first(), entry.get(1..11), entry.get(11..21)) {
                (Some(0), ..) => {}
                (Some(1), Some(key), Some(value)) => match (varint(key), varint(value)) {
                    (Some(key), Some(value)) => entries.push(Entry { key, value, offset }),
                    _ => wrong(
                        self.problem(offset, "an entry of the table of ids has no numbers".into()),
                    )?,
                },
                _ => {
                    let message =
                        "an entry of the table of ids is neither there nor removed".into();
                    wrong(self.problem(offset, message))?;
                }
            }
        }
        varint(head).map_or_else(
            || {
                wrong(self.problem(start, "a bucket has no number of the next one".into()))?;
                Ok(0)
            },
            Ok,
        )
    }

    fn read(&self, offset: u64, bytes: u64) -> Result<Vec<u8>> {
        let mut buffer = vec![0; usize::try_from(bytes).unwrap_or(0)];
        let read = self.file.read_exact_at(&mut buffer, offset);
        read.map(|()| buffer).map_err(|error| Error::io(self.name, error))
    }

    fn problem(&self, offset: u64, message: String) -> Problem {
        Problem { file: self.name.to_owned(), offset, message }
    }
}
