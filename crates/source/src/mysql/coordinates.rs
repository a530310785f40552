//! A position in a source's binlog: file and offset.

use std::cmp::Ordering;

/// A position in a source's binlog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coordinates {
    /// The binlog file: a base name, a dot and a number.
    pub file: String,
    /// The offset in the file, in bytes.
    pub offset: u64,
}

impl Coordinates {
    /// The number in the file's name, which orders files; 0 if there is none.
    pub fn file_number(&self) -> u64 {
        self.file.rsplit_once('.').and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
    }
}

impl PartialOrd for Coordinates {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Coordinates {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_number = self.file_number().cmp(&other.file_number());
        by_number.then_with(|| self.file.cmp(&other.file)).then(self.offset.cmp(&other.offset))
    }
}

impl std::fmt::Display for Coordinates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.offset)
    }
}
