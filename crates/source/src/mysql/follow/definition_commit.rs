//! Definition changes for one commit, with their positions.

use remora_engine::{Database, Definition};

use super::positions::{Stored, copied_key, copy_key};
use crate::mysql::table_name::TableName;

/// The definitions and positions of one commit.
#[derive(Default)]
pub(super) struct DefinitionCommit {
    pub definitions: Vec<Definition>,
    pub positions: Vec<Stored>,
    /// Tables whose states are shown after the commit.
    pub changed: Vec<TableName>,
    /// Local names that are no longer reported after the commit.
    pub gone: Vec<String>,
}

impl DefinitionCommit {
    /// Whether there is nothing to commit.
    pub fn is_empty(&self) -> bool {
        self.definitions.is_empty() && self.positions.is_empty()
    }

    /// Whether a table of this name exists after this commit.
    pub fn table_exists(&self, database: &Database, name: &str) -> bool {
        let before = database.schema(name).is_ok();
        self.definitions.iter().fold(before, |table_exists, definition| match definition {
            Definition::Create(schema) => table_exists || schema.name == name,
            Definition::Drop(dropped) => table_exists && dropped != name,
            Definition::Rename { from, to } => (table_exists && from != name) || to == name,
            Definition::Alter { .. } | Definition::Vacant(_) => table_exists,
        })
    }

    /// The name before this commit of the table that has this name after it.
    pub fn name_before(&self, name: &str) -> String {
        let renamed = |name: String, definition: &Definition| match definition {
            Definition::Rename { from, to } if *to == name => from.clone(),
            _ => name,
        };
        self.definitions.iter().rev().fold(name.to_owned(), renamed)
    }

    /// Drops a table, if it exists after this commit.
    pub fn drop_if_exists(&mut self, database: &Database, name: &str) {
        if self.table_exists(database, name) {
            self.definitions.push(Definition::Drop(name.to_owned()));
        }
    }

    /// Drops the hidden copy of a table of a source.
    pub fn drop_copy(&mut self, database: &Database, source: &str, name: &str, hidden: &str) {
        self.drop_if_exists(database, hidden);
        self.positions.push((copy_key(source, name), String::new()));
        self.positions.push((copied_key(source, name), String::new()));
    }

    /// Whether a position of this name exists after this commit.
    pub fn has_position(&self, database: &Database, name: &str) -> bool {
        match self.positions.iter().rev().find(|(known, _)| known == name) {
            Some((_, position)) => !position.is_empty(),
            None => database.source_positions().get(name).is_some(),
        }
    }

    /// The value of a position after this commit; `None` if there is none.
    pub fn position(&self, database: &Database, name: &str) -> Option<String> {
        let known = self.positions.iter().rev().find(|(known, _)| known == name);
        let position = match known {
            Some((_, position)) => Some(position.clone()),
            None => database.source_positions().get(name).map(str::to_owned),
        };
        position.filter(|position| !position.is_empty())
    }

    /// Removes the alterations of tables that keep their rows, and returns the tables' names.
    pub fn take_alterations(&mut self) -> Vec<String> {
        let altered = |definition: &mut Definition| matches!(definition, Definition::Alter { .. });
        let names = |definition| match definition {
            Definition::Alter { schema, .. } => Some(schema.name),
            _ => None,
        };
        self.definitions.extract_if(.., altered).filter_map(names).collect()
    }
}
