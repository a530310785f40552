//! Tables that name another in a foreign key. When that one gets another name, or its columns do, the source writes the
//! new names into their definitions without a statement of theirs. Rows are not concerned, so such a table stays live
//! and is read again when the source's answer is valid at the stream's place.

use super::{
    applier::Applier, definition_commit::DefinitionCommit, table::FollowedTable,
    uncertainty::DefinitionHere,
};
use crate::{
    Result,
    mysql::{coordinates::Coordinates, schema::SourceTable, table_name::TableName},
};

/// A table whose definition is to be read again.
pub(super) struct Rereading {
    pub table: TableName,
    /// The place before which the source cannot tell; `None` if it was not asked yet.
    pub from: Option<Coordinates>,
}

impl Applier {
    /// The names that a table may have which a foreign key of `followed` names: its known definition may have a former
    /// one.
    pub fn possible_names(&self, followed: &FollowedTable, named: TableName) -> Vec<TableName> {
        let mut names = vec![named];
        let is_uncertain = followed.uncertainty.is_some();
        for (from, to) in self.renames.iter().filter(|_| is_uncertain) {
            if names.contains(from) && !names.contains(to) {
                names.push(to.clone());
            }
        }
        names
    }

    /// Notes that the definitions of all tables that reference one of these are to be read again.
    pub fn reread_referencing(&mut self, parents: &[TableName]) {
        let references = |(table, followed): &(&TableName, &FollowedTable)| {
            let mut named = followed.source.parents().into_iter();
            let is_known = self.rereadings.iter().any(|known| known.table == **table);
            is_known
                || named.any(|(database, table)| {
                    let named = TableName { database, table };
                    self.possible_names(followed, named).iter().any(|name| parents.contains(name))
                })
        };
        let tables: Vec<_> =
            self.tables.iter().filter(references).map(|(table, _)| table.clone()).collect();
        self.rereadings = tables.into_iter().map(|table| Rereading { table, from: None }).collect();
    }

    /// Follows a rename of tables whose definitions are to be read again.
    pub fn rename_rereadings(&mut self, from: &TableName, to: &TableName) {
        let renamed = self.rereadings.iter_mut().filter(|waiting| waiting.table == *from);
        renamed.for_each(|waiting| waiting.table.clone_from(to));
    }

    /// Reads the definitions again that the source can tell by now.
    pub fn reread_definitions(&mut self) -> Result<()> {
        if self.rereadings.is_empty() {
            return Ok(());
        }
        let mut commit = DefinitionCommit::default();
        for waiting in std::mem::take(&mut self.rereadings) {
            if waiting.from.as_ref().is_some_and(|from| self.place < *from) {
                self.rereadings.push(waiting);
                continue;
            }
            if let Some(from) = self.reread(&waiting.table, &mut commit)? {
                self.rereadings.push(Rereading { from, ..waiting });
            }
        }
        self.commit_in_order(commit)
    }

    /// Reads a definition; where to try again, if it must be.
    fn reread(
        &mut self,
        table: &TableName,
        commit: &mut DefinitionCommit,
    ) -> Result<Option<Option<Coordinates>>> {
        let Some(followed) = self.tables.get(table) else { return Ok(None) };
        if followed.uncertainty.is_some() || followed.stopped.is_some() {
            // It is read anyhow, or not at all.
            return Ok(None);
        }
        if followed.copy.is_some() {
            return Ok(Some(None));
        }
        let read = match self.definition_here(table, Some(true))? {
            DefinitionHere::Certain(Ok(read)) => read,
            // The stream will tell.
            DefinitionHere::Certain(Err(_)) => return Ok(None),
            DefinitionHere::Provisional(_, until) | DefinitionHere::Unknown(until) => {
                return Ok(Some(Some(until)));
            }
        };
        let TableName { database, table: name } = table.clone();
        let read = SourceTable { database, name, ..read };
        let followed = self.tables.get(table);
        if followed.is_some_and(|known| known.source.reads_as(&read) && *known.source != read) {
            self.keep_rows(table, read, &[], commit)?;
        }
        Ok(None)
    }
}
