//! Changes of definitions for one commit, with the positions that they reach.

use remora_engine::{Database, Definition};

use super::positions::{Stored, copied_key, copy_key};
use crate::mysql::table_name::TableName;

/// What is to be done about tables in one step.
#[derive(Default)]
pub(super) struct Step {
    pub definitions: Vec<Definition>,
    pub positions: Vec<Stored>,
    /// Tables whose states are shown once it is committed.
    pub changed: Vec<TableName>,
    /// Names here that nothing is told of any more then.
    pub gone: Vec<String>,
}

impl Step {
    /// Whether nothing is to be committed.
    pub fn is_empty(&self) -> bool {
        self.definitions.is_empty() && self.positions.is_empty()
    }

    /// Whether there will be a table of this name after what the step does so far.
    pub fn is_there(&self, database: &Database, name: &str) -> bool {
        let before = database.schema(name).is_ok();
        self.definitions.iter().fold(before, |is_there, definition| match definition {
            Definition::Create(schema) => is_there || schema.name == name,
            Definition::Drop(dropped) => is_there && dropped != name,
            Definition::Rename { from, to } => (is_there && from != name) || to == name,
            Definition::Alter { .. } | Definition::Vacant(_) => is_there,
        })
    }

    /// What a table is called before the step that has this name after it.
    pub fn name_before(&self, name: &str) -> String {
        let renamed = |name: String, definition: &Definition| match definition {
            Definition::Rename { from, to } if *to == name => from.clone(),
            _ => name,
        };
        self.definitions.iter().rev().fold(name.to_owned(), renamed)
    }

    /// Drops a table, if it will be there.
    pub fn drop_if_there(&mut self, database: &Database, name: &str) {
        if self.is_there(database, name) {
            self.definitions.push(Definition::Drop(name.to_owned()));
        }
    }

    /// Drops the hidden copy of a table of a source.
    pub fn drop_copy(&mut self, database: &Database, source: &str, name: &str, hidden: &str) {
        self.drop_if_there(database, hidden);
        self.positions.push((copy_key(source, name), String::new()));
        self.positions.push((copied_key(source, name), String::new()));
    }

    /// Whether there will be a position of this name.
    pub fn has_position(&self, database: &Database, name: &str) -> bool {
        match self.positions.iter().rev().find(|(known, _)| known == name) {
            Some((_, position)) => !position.is_empty(),
            None => database.source_positions().get(name).is_some(),
        }
    }

    /// A position as it will be; `None` if there will be none of this name.
    pub fn position(&self, database: &Database, name: &str) -> Option<String> {
        let known = self.positions.iter().rev().find(|(known, _)| known == name);
        let position = match known {
            Some((_, position)) => Some(position.clone()),
            None => database.source_positions().get(name).map(str::to_owned),
        };
        position.filter(|position| !position.is_empty())
    }

    /// Takes out the changes of tables that keep their rows; the names of those tables.
    pub fn take_alterations(&mut self) -> Vec<String> {
        let altered = |definition: &mut Definition| matches!(definition, Definition::Alter { .. });
        let names = |definition| match definition {
            Definition::Alter { schema, .. } => Some(schema.name),
            _ => None,
        };
        self.definitions.extract_if(.., altered).filter_map(names).collect()
    }
}
