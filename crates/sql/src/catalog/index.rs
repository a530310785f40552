//! The engine's index for each declared key, and the key length that MySQL would report.

use remora_engine::TableIndex;
use remora_mysql::CHARSETS;

use super::{Key, KeyKind, KeyPart, SqlTable, TypeSpec};
use crate::SqlType;

impl SqlTable {
    /// The engine's index for a key, and how many of the key's leading columns it has; `None` if the key has no such
    /// index.
    pub(crate) fn index_of(&self, key: &Key) -> Option<(TableIndex, usize)> {
        let columns: Vec<(usize, bool)> = match key.kind {
            KeyKind::Primary => return Some((TableIndex::Key, key.parts.len())),
            KeyKind::Unique | KeyKind::Plain => {
                let parts = key.parts.iter().enumerate();
                parts
                    .map_while(|(nth, part)| Some((self.key_part(key, nth)?, part.descending)))
                    .collect()
            }
            KeyKind::Fulltext | KeyKind::Spatial | KeyKind::Vector => return None,
        };
        let indexes = self.schema.indexes.iter().enumerate();
        let begins = indexes.filter_map(|(place, index)| {
            let of_key = index.columns.iter().map(|part| (part.column, part.descending));
            let count = index.columns.len();
            let is_part = columns.get(..count)?.iter().copied().eq(of_key);
            is_part.then_some((TableIndex::Secondary(place), count))
        });
        begins.max_by_key(|(_, count)| *count).or_else(|| {
            // An index that is a prefix of the primary key is not stored separately.
            let same = columns.iter().zip(&self.schema.primary_key);
            let count = same.take_while(|(part, position)| **part == (**position, false)).count();
            (count > 0 && self.row_number.is_none()).then_some((TableIndex::Key, count))
        })
    }

    /// The key that an index of the engine serves: among several, the one with the fewest columns.
    pub(crate) fn key_of(&self, index: TableIndex) -> Option<&Key> {
        let of_index = |key: &&Key| self.index_of(key).is_some_and(|(of_key, _)| of_key == index);
        let more = |key: &&Key| {
            let covered = self.index_of(key).map_or(0, |(_, count)| count);
            key.parts.len() - covered.min(key.parts.len())
        };
        self.keys.iter().filter(of_index).min_by_key(more)
    }

    /// The length in bytes that MySQL reports for a key's leading columns.
    pub(crate) fn key_bytes(&self, key: &Key, columns: usize) -> u64 {
        let part = |(nth, part): (usize, &KeyPart)| {
            let Some(position) = self.key_part(key, nth) else { return 0 };
            let Some(spec) = self.columns.get(position) else { return 0 };
            let may_be_null = key.kind != KeyKind::Primary && !spec.not_null;
            spec.kind.key_bytes(part.prefix) + u64::from(may_be_null)
        };
        key.parts.iter().enumerate().take(columns).map(part).sum()
    }

    /// Whether all rows differ in a key. NULLs count as equal, so a nullable unique key is not unique.
    pub(crate) fn is_unique(&self, key: &Key) -> bool {
        let has_null = |part: &KeyPart| {
            let position = part.column().and_then(|name| self.column(name));
            let spec = position.and_then(|position| self.columns.get(position));
            spec.is_none_or(|spec| !spec.not_null)
        };
        match key.kind {
            KeyKind::Primary => true,
            KeyKind::Unique => !key.parts.iter().any(has_null),
            _ => false,
        }
    }
}

impl TypeSpec {
    /// The bytes of a value in a key of MySQL's, without its NULL flag. `prefix` is the key part's prefix length.
    fn key_bytes(&self, prefix: Option<u64>) -> u64 {
        let fraction = |digits: u8| u64::from(digits.div_ceil(2));
        let charset = CHARSETS.iter().find(|charset| charset.name == self.collation.charset());
        let of_char = charset.map_or(1, |charset| u64::from(charset.max_bytes));
        match self.sql {
            SqlType::TinyInt | SqlType::Year => 1,
            SqlType::SmallInt => 2,
            SqlType::MediumInt | SqlType::Date => 3,
            SqlType::Int | SqlType::Float => 4,
            SqlType::BigInt | SqlType::Double => 8,
            SqlType::Time(digits) => 3 + fraction(digits),
            SqlType::Timestamp(digits) => 4 + fraction(digits),
            SqlType::DateTime(digits) => 5 + fraction(digits),
            SqlType::Bit(bits) => u64::from(bits).div_ceil(8),
            SqlType::Decimal(digits, scale) => {
                decimal_bytes(digits.saturating_sub(scale)) + decimal_bytes(scale)
            }
            SqlType::Enum => {
                if self.labels.len() < 256 {
                    1
                } else {
                    2
                }
            }
            SqlType::Set => match self.labels.len().div_ceil(8) {
                bytes @ 0..=4 => bytes as u64,
                _ => 8,
            },
            SqlType::Char => prefix.unwrap_or(self.length) * of_char,
            // Two bytes for the length.
            _ => prefix.unwrap_or(self.length).saturating_mul(of_char).saturating_add(2),
        }
    }
}

/// The bytes of this many decimal digits: four for every nine.
fn decimal_bytes(digits: u8) -> u64 {
    const OF_REST: [u64; 9] = [0, 1, 1, 2, 2, 3, 3, 4, 4];
    let rest = OF_REST.get(usize::from(digits % 9)).copied().unwrap_or(0);
    u64::from(digits / 9) * 4 + rest
}
