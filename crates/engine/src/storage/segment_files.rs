//! The segment files of a data directory.
//!
//! A file is renamed to its name after its bytes are durable, and no name is used twice, so a file that the manifest
//! names is complete. Files are deleted only by [`SegmentFiles::remove_all_but`]: those that a durable manifest does
//! not name.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use remora_index::segment::Segment;

use super::{
    durable::{io_error, write_atomically},
    manifest::{Manifest, SegmentRecord},
};
use crate::{Error, Result};

/// The last bytes of a segment file. They hold the checksum of its directory, which holds those of all sections, so
/// their checksum covers the whole file.
const FOOTER_BYTES: usize = 20;
/// From this size on, a segment leaves its rarely read parts in its file.
const LEFT_IN_FILE_BYTES: u64 = 256 << 10;

/// The segment files of one data directory.
pub(crate) struct SegmentFiles {
    directory: PathBuf,
    next_number: u64,
    /// Live segments that have a file. Weak references, because merges drop segments.
    saved: Vec<(Weak<Segment>, SegmentRecord)>,
    /// Files of segments that no manifest names yet. They are kept as long as those segments exist.
    ahead: Vec<(Weak<Segment>, u64)>,
    /// The manifest on disk, once this process has read or written one.
    manifest: Option<Manifest>,
}

impl SegmentFiles {
    /// Opens the segment files in `directory`; creates their folder if it is missing.
    pub fn open(directory: &Path) -> Result<Self> {
        let directory = directory.join("segments");
        fs::create_dir_all(&directory).map_err(|error| io_error("make", &directory, &error))?;
        let (saved, ahead) = (Vec::new(), Vec::new());
        let mut files = Self { directory, next_number: 1, saved, ahead, manifest: None };
        let highest = files.list()?.into_iter().map(|(number, _)| number).max();
        files.next_number = highest.unwrap_or(0).saturating_add(1);
        Ok(files)
    }

    /// The path of a file.
    pub fn path(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{number:08}.seg"))
    }

    /// Reads and verifies a file that a manifest names.
    pub fn load(&mut self, record: &SegmentRecord) -> Result<Arc<Segment>> {
        self.next_number = self.next_number.max(record.file.saturating_add(1));
        let segment = Arc::new(self.read(record)?);
        self.saved.push((Arc::downgrade(&segment), record.clone()));
        Ok(segment)
    }

    /// Opens a segment again from its file, so that little of it stays in memory. `None` if it has no file or memory
    /// would not be saved.
    pub fn reopen(&mut self, segment: &Arc<Segment>) -> Result<Option<Arc<Segment>>> {
        match self.record_of(segment).cloned() {
            Some(record) if is_left_in_file(&record) && is_in_memory(segment) => {
                self.load(&record).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn read(&self, record: &SegmentRecord) -> Result<Segment> {
        let path = self.path(record.file);
        let failed = |error| io_error("read", &path, &error);
        let corrupt = |what: &str| Error::Corrupt(format!("{}: {what}", path.display()));
        let file = File::open(&path).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() != record.bytes {
            return Err(corrupt("the size differs from the manifest"));
        }
        let mut end = [0; FOOTER_BYTES];
        let footer_start = record.bytes.saturating_sub(FOOTER_BYTES as u64);
        file.read_exact_at(&mut end, footer_start).map_err(failed)?;
        if crc32fast::hash(&end) != record.crc {
            return Err(corrupt("the checksum differs from the manifest"));
        }
        let segment = match is_left_in_file(record) {
            true => Segment::open_file(file),
            false => Segment::open(fs::read(&path).map_err(failed)?),
        };
        let segment = segment.map_err(|error| corrupt(&error.to_string()))?;
        if segment.doc_count() != record.documents {
            return Err(corrupt("the document count differs from the manifest"));
        }
        Ok(segment)
    }

    /// The file of this segment; writes it if there is none.
    pub fn save(&mut self, segment: &Arc<Segment>) -> Result<SegmentRecord> {
        if let Some(record) = self.record_of(segment) {
            return Ok(record.clone());
        }
        let bytes = segment.bytes()?;
        let record = SegmentRecord {
            file: self.next_number,
            bytes: bytes.len() as u64,
            crc: crc32fast::hash(bytes.last_chunk::<FOOTER_BYTES>().unwrap_or(&[0; FOOTER_BYTES])),
            documents: segment.doc_count(),
        };
        write_atomically(&self.path(record.file), &bytes)?;
        self.next_number += 1;
        self.saved.push((Arc::downgrade(segment), record.clone()));
        Ok(record)
    }

    /// Writes a segment that is not published yet to a file, and returns it opened from that file, so that little of
    /// it stays in memory. `None` if memory would not be saved.
    pub fn save_ahead(&mut self, segment: &Arc<Segment>) -> Result<Option<Arc<Segment>>> {
        if segment.byte_count() < LEFT_IN_FILE_BYTES || !is_in_memory(segment) {
            return Ok(None);
        }
        let record = self.save(segment)?;
        let saved = self.load(&record)?;
        self.ahead.push((Arc::downgrade(&saved), record.file));
        Ok(Some(saved))
    }

    /// The file of this segment, if it has one.
    pub fn record_of(&self, segment: &Arc<Segment>) -> Option<&SegmentRecord> {
        let same = |saved: &Weak<Segment>| std::ptr::eq(saved.as_ptr(), Arc::as_ptr(segment));
        self.saved.iter().find(|(saved, _)| same(saved)).map(|(_, record)| record)
    }

    /// Whether the manifest on disk equals this one.
    pub fn is_written(&self, manifest: &Manifest) -> bool {
        self.manifest.as_ref() == Some(manifest)
    }

    /// Removes every file that `manifest` does not name. Call it only when that manifest is durable. Files written by
    /// `save_ahead` stay while their segments live.
    pub fn remove_all_but(&mut self, manifest: Manifest) -> Result<()> {
        let mut keep = manifest.files();
        self.manifest = Some(manifest);
        let is_used = |saved: &Weak<Segment>| saved.strong_count() > 0;
        self.ahead.retain(|(saved, number)| is_used(saved) && !keep.contains(number));
        keep.extend(self.ahead.iter().map(|(_, number)| *number));
        self.saved.retain(|(saved, record)| is_used(saved) && keep.contains(&record.file));
        for (number, path) in self.list()? {
            if !keep.contains(&number) {
                fs::remove_file(&path).map_err(|error| io_error("remove", &path, &error))?;
            }
        }
        Ok(())
    }

    /// Number and path of each file; a temporary file has number 0.
    fn list(&self) -> Result<Vec<(u64, PathBuf)>> {
        let failed = |error| io_error("list", &self.directory, &error);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("seg") => found.extend(stem.parse().ok().map(|number| (number, path))),
                Some("tmp") => found.push((0, path)),
                _ => {}
            }
        }
        Ok(found)
    }
}

/// Whether a segment of this size stays in its file. For a small one, the open file would cost more than it saves.
fn is_left_in_file(record: &SegmentRecord) -> bool {
    record.bytes >= LEFT_IN_FILE_BYTES
}

fn is_in_memory(segment: &Segment) -> bool {
    segment.memory_bytes() >= segment.byte_count()
}

#[cfg(test)]
mod tests {
    use remora_index::Bitmap;

    use super::*;
    use crate::{Position, storage::manifest::TableRecord};

    #[test]
    fn only_named_files_stay() {
        let directory = tempfile::tempdir().unwrap();
        let mut files = SegmentFiles::open(directory.path()).unwrap();
        for name in ["00000001.seg", "00000007.seg", "00000008.tmp", "notes.txt"] {
            fs::write(files.directory.join(name), b"x").unwrap();
        }
        let record = SegmentRecord { file: 7, bytes: 1, crc: 0, documents: 0 };
        let segments = vec![(record, Bitmap::new(0))];
        let tables = vec![TableRecord { number: 1, segments }];
        files.remove_all_but(Manifest { position: Position(1), tables }).unwrap();
        let mut left: Vec<_> = fs::read_dir(&files.directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["00000007.seg", "notes.txt"]);
        assert_eq!(SegmentFiles::open(directory.path()).unwrap().next_number, 8);
    }
}
