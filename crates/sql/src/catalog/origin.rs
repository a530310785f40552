//! The table column from which an expression comes, kept in the metadata of Arrow fields for result descriptions.

use std::collections::HashMap;

use crate::ColumnKeys;

/// Where a column comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The database.
    pub database: String,
    /// The table's own name.
    pub table: String,
    /// The column's own name.
    pub column: String,
    /// Whether it is a part of the primary key.
    pub primary_key: bool,
    /// Whether it is AUTO_INCREMENT.
    pub auto_increment: bool,
    /// Whether `*` omits it.
    pub invisible: bool,
    /// Its keys.
    pub keys: ColumnKeys,
}

const KEY: &str = "origin";

impl Origin {
    /// Writes it into a field's metadata.
    pub(crate) fn write(&self, metadata: &mut HashMap<String, String>) {
        let Self { database, table, column, .. } = self;
        let ColumnKeys { unique, multiple, part, without_default } = self.keys;
        let of_keys = [unique, multiple, part, without_default];
        let flags =
            [self.primary_key, self.auto_increment, self.invisible].into_iter().chain(of_keys);
        let flags = flags.rev().fold(0_u8, |flags, flag| flags << 1 | u8::from(flag));
        metadata.insert(KEY.to_owned(), format!("{flags}\0{database}\0{table}\0{column}"));
    }

    /// Metadata that overrides an inherited origin with none.
    pub(crate) fn none() -> HashMap<String, String> {
        HashMap::from([(KEY.to_owned(), String::new())])
    }

    /// Reads it from a field's metadata.
    pub(crate) fn read(metadata: &HashMap<String, String>) -> Option<Self> {
        let mut parts = metadata.get(KEY)?.split('\0').map(str::to_owned);
        let flags: u8 = parts.next()?.parse().ok()?;
        Some(Self {
            database: parts.next()?,
            table: parts.next()?,
            column: parts.next()?,
            primary_key: flags & 1 != 0,
            auto_increment: flags & 2 != 0,
            invisible: flags & 4 != 0,
            keys: ColumnKeys {
                unique: flags & 8 != 0,
                multiple: flags & 16 != 0,
                part: flags & 32 != 0,
                without_default: flags & 64 != 0,
            },
        })
    }
}
