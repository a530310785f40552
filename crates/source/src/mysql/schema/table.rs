//! A table of the source.

use remora_engine::Schema;
use remora_mysql::LexMode;
use serde::{Deserialize, Serialize};

use super::{Generation, SourceColumn, Words};
use crate::{Error, Result, mysql::scan::Scan};

/// A table of the source with its followed columns, in the engine's order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceTable {
    /// Its database.
    pub database: String,
    /// Its name.
    pub name: String,
    /// The followed columns, in the order of the engine's schema.
    pub columns: Vec<SourceColumn>,
    /// Positions in `columns` of the primary key's columns, or of a unique key's that serves as one. Empty if there is
    /// no such key: then all values identify a row.
    pub key: Vec<usize>,
    /// The number of columns in the source's row images, followed or not.
    pub image_columns: usize,
    /// The columns of each key that identifies rows, as last read from the source; not stored.
    #[serde(skip)]
    pub unique_keys: Vec<Vec<String>>,
    /// The row image's column with the end of the row's period, for a system-versioned table. Only current rows are
    /// stored here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_end: Option<usize>,
    /// Its SHOW CREATE TABLE.
    #[serde(default, skip_serializing_if = "Words::is_empty")]
    pub words: Words,
}

impl SourceTable {
    /// `database.name`, the table's name in the engine.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.database, self.name)
    }

    /// Whether no key identifies its rows. They are then followed by their whole row images, and equal ones are
    /// counted.
    pub fn is_keyless(&self) -> bool {
        self.key.is_empty() && !self.columns.is_empty()
    }

    /// Positions of the columns that identify a row in the stream: those of the key, or all except generated ones.
    pub fn identity(&self) -> Vec<usize> {
        if !self.is_keyless() {
            return self.key.clone();
        }
        let columns = self.columns.iter().enumerate();
        let given = columns.filter(|(_, column)| column.generation == Generation::None);
        given.map(|(place, _)| place).collect()
    }

    /// The table with its columns in the order of its row images, if it has another order. Previous names are dropped.
    pub fn in_image_order(&self) -> Option<SourceTable> {
        if self.columns.is_sorted_by_key(|column| column.ordinal) {
            return None;
        }
        let mut columns = self.columns.clone();
        columns.sort_by_key(|column| column.ordinal);
        columns.iter_mut().for_each(|column| column.renamed_from = None);
        let place =
            |column: &SourceColumn| columns.iter().position(|one| one.ordinal == column.ordinal);
        let key = self.key_columns().filter_map(place).collect();
        Some(SourceTable { columns, key, ..self.clone() })
    }

    /// Whether rows of both tables have the same layout, here and in row images, and the same meaning. Table names and
    /// defaults do not matter.
    pub fn reads_as(&self, other: &SourceTable) -> bool {
        let columns = |table: &SourceTable| -> Vec<_> {
            let meaning = |column: &SourceColumn| {
                let SourceColumn { name, kind, nullable, generation, .. } = column.clone();
                (column.ordinal, (name, kind, nullable, generation))
            };
            table.columns.iter().map(meaning).collect()
        };
        let key = |table: &SourceTable| -> Vec<_> {
            table.key_columns().map(|column| column.ordinal).collect()
        };
        self.image_columns == other.image_columns
            && self.period_end == other.period_end
            && columns(self) == columns(other)
            && key(self) == key(other)
    }

    /// A followed column, or the key, that differs in `other`, regardless of positions; `None` if all are equal.
    pub fn changed_column<'t>(&'t self, other: &'t SourceTable) -> Option<&'t str> {
        let differs = |column: &&SourceColumn| {
            other.column(&column.name).is_none_or(|now| {
                (&now.kind, now.nullable, &now.generation)
                    != (&column.kind, column.nullable, &column.generation)
            })
        };
        let key = |table: &SourceTable| -> Vec<String> {
            table.key_columns().map(|column| column.name.to_lowercase()).collect()
        };
        let mut columns = self.columns.iter();
        let changed = columns.find(differs).or_else(|| {
            let keeps_key = key(self) == key(other);
            let added = || other.columns.iter().find(|now| self.column(&now.name).is_none());
            if keeps_key { added() } else { self.key_columns().next() }
        });
        changed.map(|column| column.name.as_str())
    }

    /// The table restricted to a configured definition, with its columns in that order, and its key.
    ///
    /// # Errors
    /// `TableRefused` if it lacks a column, or if the key does not identify its rows.
    pub fn narrowed_to(&self, definition: &Schema) -> Result<SourceTable> {
        if self.is_keyless() {
            return Err(Error::TableRefused {
                table: self.full_name(),
                reason: "its definition names a key, but the source has no primary key and no \
                         unique key of whole NOT NULL columns: add one"
                    .to_owned(),
            });
        }
        let mut columns = Vec::with_capacity(definition.columns.len());
        for wanted in &definition.columns {
            let column = self.column(&wanted.name).ok_or_else(|| Error::TableRefused {
                table: self.full_name(),
                reason: format!("its definition names column {:?}, which it lacks", wanted.name),
            })?;
            columns.push(column.clone());
        }
        let key = definition.primary_key.clone();
        let narrowed = SourceTable { columns, key, ..self.clone() };
        narrowed.check_unique()?;
        Ok(narrowed)
    }

    fn check_unique(&self) -> Result<()> {
        let ours: Vec<_> = self.key_columns().map(|column| column.name.to_lowercase()).collect();
        let is_within = |unique: &&Vec<String>| {
            unique.iter().all(|column| ours.contains(&column.to_lowercase()))
        };
        if self.unique_keys.iter().any(|unique| is_within(&unique)) {
            return Ok(());
        }
        let known: Vec<_> = self.unique_keys.iter().map(|unique| unique.join(", ")).collect();
        let reason = match known.is_empty() {
            true => "add a unique key there".to_owned(),
            false => format!("write one of: {}", known.join("; ")),
        };
        Err(Error::TableRefused {
            table: self.full_name(),
            reason: format!(
                "its primary_key {} is not unique at the source, so rows would be lost: {reason}",
                ours.join(", ")
            ),
        })
    }

    /// The select list for which `values::from_select` gives the exact values: the columns in order. The session's time
    /// zone must be `+00:00` and its character set utf8mb4.
    pub fn select_list(&self) -> String {
        let items: Vec<_> = self.columns.iter().map(SourceColumn::select_item).collect();
        items.join(", ")
    }

    /// The column of this name, case-insensitively.
    pub fn column(&self, name: &str) -> Option<&SourceColumn> {
        let wanted = name.to_lowercase();
        self.columns.iter().find(|column| column.name.to_lowercase() == wanted)
    }

    /// The storage engine, if the source told it.
    pub(crate) fn engine(&self) -> Option<String> {
        let options = self.words.of_table()?.options;
        let mut scan = Scan::of(&options, LexMode::default())?;
        while !scan.skip("ENGINE") {
            if scan.is_at_end() {
                return None;
            }
            scan.pass();
        }
        scan.skip_symbol("=");
        scan.name()
    }

    /// Whether the column is AUTO_INCREMENT.
    pub(crate) fn is_numbered(&self, column: &SourceColumn) -> bool {
        let words = self.words.of_column(&column.name).unwrap_or_default();
        let scan = Scan::of(&words, LexMode::default());
        scan.is_some_and(|scan| scan.has_word("AUTO_INCREMENT"))
    }

    /// The key's columns, in the key's order.
    pub fn key_columns(&self) -> impl Iterator<Item = &SourceColumn> {
        self.key.iter().filter_map(|&place| self.columns.get(place))
    }
}
