//! Schema changes of the source, each applied at its place in the stream with its position in the
//! same commit.
//!
//! What a table is now is read from the source, which may be further than the stream: rows that
//! come meanwhile and do not fit what was read lead to a copy beside the old rows, so do changes
//! that stored rows cannot follow.

use std::sync::Arc;

use remora_engine::Definition;

use super::{
    applier::Applier,
    copies::Step,
    positions::{STALE, copy_key, fingerprint, table_key},
    statement::{Statement, TableName},
    status::{TableState, count},
    table::{FollowedTable, Visible, definition, name_here, schema},
};
use crate::{
    Error, Result,
    mysql::schema::{SchemaChange, SourceTable},
};

impl Applier {
    /// Applies a statement of the binlog that ran in that database.
    pub fn change_definitions(&mut self, database: &str, sql: &str) -> Result<()> {
        let statement = Statement::parse(database, sql);
        let mut step = Step::default();
        match statement {
            Statement::Other => return Ok(()),
            Statement::Create { table, replaces } => self.create(&table, replaces, &mut step)?,
            Statement::Alter { table, renamed, moves_rows } => {
                self.alter(table, renamed, &moves_rows, sql, &mut step)?;
            }
            Statement::Drop(tables) => {
                tables.iter().try_for_each(|table| self.drop_table(table, &mut step))?;
            }
            Statement::Rename(renames) => self.rename(renames, &mut step)?,
            Statement::Truncate(table) => self.truncate(&table, &mut step)?,
            Statement::DropDatabase(database) => {
                let of_database = self.tables.keys().filter(|table| table.database == database);
                let tables: Vec<_> = of_database.cloned().collect();
                tables.iter().try_for_each(|table| self.drop_table(table, &mut step))?;
            }
            Statement::Rows(names) => self.rows_as_text(&names, &mut step)?,
        }
        if step.definitions.is_empty() && step.positions.is_empty() {
            return Ok(());
        }
        if self.large.is_some() {
            let (file, offset) = (self.place.file.clone(), self.place.offset);
            let message = "a schema change within a large transaction".to_owned();
            return Err(Error::Unfollowable { file, offset, message });
        }
        tracing::info!("schema change: {}", sql.chars().take(200).collect::<String>());
        count(&self.shared.board.counters.statements, 1);
        let altered: Vec<String> = step.definitions.iter().filter_map(altered).collect();
        match self.define(step.definitions, step.positions) {
            Err(Error::Engine(refusal @ remora_engine::Error::Request { .. })) => {
                self.copy_refused(&altered, refusal)
            }
            outcome => outcome,
        }
    }

    /// Tables that the engine would not alter in place are copied anew.
    fn copy_refused(&mut self, names: &[String], refusal: remora_engine::Error) -> Result<()> {
        let refused = |followed: &FollowedTable| names.iter().any(|name| **name == *followed.name);
        let tables = self.tables.iter().filter(|(_, followed)| refused(followed));
        let tables: Vec<_> = tables.map(|(table, _)| table.clone()).collect();
        if tables.is_empty() {
            return Err(refusal.into());
        }
        tracing::info!("copied anew: {refusal}");
        let mut step = Step::default();
        for table in &tables {
            self.copy_again(table, true, &mut step)?;
        }
        self.define(step.definitions, step.positions)
    }

    /// Whether the table is known and the statement is not older than its copy.
    fn concerns(&self, table: &TableName) -> bool {
        self.tables.get(table).is_some_and(|followed| !followed.is_before_copy(&self.place))
    }

    fn selects(&self, table: &TableName) -> bool {
        self.shared.selection.matches(&table.database, &table.table)
    }

    /// A schema change that the settings forbid to follow.
    fn check_strict(&self, table: &TableName, what: &str) -> Result<()> {
        if !self.shared.settings.strict_schema {
            return Ok(());
        }
        let table = name_here(&self.shared.settings, table);
        Err(Error::TableRefused { table, reason: format!("SCHEMA_INCOMPATIBLE: {what}") })
    }

    fn refuse(&mut self, table: &TableName, reason: String, step: &mut Step) {
        let name = name_here(&self.shared.settings, table);
        tracing::warn!(table = name, "not followed: {reason}");
        self.shared.board.set_table(&name, TableState::Refused(reason.clone()));
        if let Some(followed) = self.tables.get_mut(table)
            && followed.visible == Visible::Fed
        {
            (followed.visible, followed.stopped) = (Visible::Frozen, Some(reason));
            step.positions.push((table_key(&self.shared.settings.name, &name), STALE.to_owned()));
            self.shared.board.set_table(&name, followed.state());
        }
    }

    /// Rows of before a change did not fit what was read ahead; that says nothing of those behind.
    fn expect_another_layout(&self, table: &TableName) {
        self.shared.unfitting.lock().remove(table);
    }

    /// A table that is followed from its creation on is empty.
    fn create(&mut self, table: &TableName, replaces: bool, step: &mut Step) -> Result<()> {
        if !self.selects(table) {
            return Ok(());
        }
        self.expect_another_layout(table);
        if self.tables.contains_key(table) && (!replaces || !self.concerns(table)) {
            return Ok(());
        }
        // What is here under the name belongs to an older table.
        self.drop_table(table, step)?;
        let source = match self.read_created(table)? {
            Ok(Some(source)) => source,
            // It was dropped or renamed since, as the stream will tell.
            Ok(None) => return Ok(()),
            Err(reason) => {
                self.refuse(table, reason, step);
                return Ok(());
            }
        };
        let settings = &self.shared.settings;
        let name = name_here(settings, table);
        if step.is_there(&self.shared.database, &name) {
            self.refuse(table, super::tables::taken(&name), step);
            return Ok(());
        }
        step.definitions.push(Definition::Create(schema(settings, &source, &name, None)));
        step.positions.push((table_key(&settings.name, &name), fingerprint(&source)));
        let followed = FollowedTable {
            source: Arc::new(source),
            name: name.into(),
            visible: Visible::Fed,
            copy: None,
            stopped: None,
        };
        self.tables.insert(table.clone(), followed);
        self.show(table);
        Ok(())
    }

    fn drop_table(&mut self, table: &TableName, step: &mut Step) -> Result<()> {
        if self.tables.contains_key(table) {
            if !self.concerns(table) {
                return Ok(());
            }
            self.check_strict(table, "configured table was dropped")?;
        }
        self.forget(table, step);
        Ok(())
    }

    /// Whatever is here of the table goes.
    fn forget(&mut self, table: &TableName, step: &mut Step) {
        let (database, settings) = (&self.shared.database, &self.shared.settings);
        let name = name_here(settings, table);
        self.copying.retain(|other| other != table);
        let copy = self.tables.remove(table).and_then(|followed| followed.copy);
        if let Some(copy) = copy {
            step.drop_if_there(&self.shared.database, &copy.hidden);
            step.positions.push((copy_key(&settings.name, &name), String::new()));
        }
        let key = table_key(&settings.name, &name);
        if step.has_position(database, &key) {
            step.drop_if_there(database, &name);
            step.positions.push((key, String::new()));
        }
        self.shared.board.forget_table(&name);
    }

    fn truncate(&mut self, table: &TableName, step: &mut Step) -> Result<()> {
        if !self.concerns(table) {
            return Ok(());
        }
        let Some(followed) = self.tables.get(table) else { return Ok(()) };
        if followed.visible == Visible::Fed {
            let schema = self.shared.database.schema(&followed.name)?;
            step.definitions.push(Definition::Drop(followed.name.to_string()));
            step.definitions.push(Definition::Create((*schema).clone()));
        }
        if followed.copy.is_some() { self.copy_again(table, false, step) } else { Ok(()) }
    }

    /// Begins a copy of a known table from nothing.
    fn copy_again(&mut self, table: &TableName, lost: bool, step: &mut Step) -> Result<()> {
        let barrier = self.source.binlog_end()?;
        match self.read_source(table)? {
            Ok(Some(source)) => {
                self.start_copy(table, source, barrier, lost, step)?;
                self.show(table);
            }
            Ok(None) => {}
            Err(reason) => self.refuse(table, reason, step),
        }
        Ok(())
    }

    /// Rows of these tables changed, and only the source knows which.
    fn rows_as_text(&mut self, names: &[String], step: &mut Step) -> Result<()> {
        let named =
            |table: &&TableName| names.iter().any(|name| name.eq_ignore_ascii_case(&table.table));
        let tables: Vec<_> = self.tables.keys().filter(named).cloned().collect();
        for table in tables.iter().filter(|table| self.concerns(table)).cloned().collect::<Vec<_>>()
        {
            self.copy_again(&table, true, step)?;
        }
        Ok(())
    }

    fn alter(
        &mut self,
        table: TableName,
        renamed: Option<TableName>,
        moves_rows: &[TableName],
        sql: &str,
        step: &mut Step,
    ) -> Result<()> {
        self.expect_another_layout(&table);
        for moved in moves_rows {
            if self.concerns(moved) {
                self.copy_again(moved, true, step)?;
            }
        }
        if self.concerns(&table) {
            if !moves_rows.contains(&table) {
                self.alter_known(&table, renamed.as_ref().unwrap_or(&table), sql, step)?;
            }
        } else if renamed.is_none() && !self.tables.contains_key(&table) && self.selects(&table) {
            self.copy_again(&table, true, step)?;
        }
        match renamed {
            Some(to) => self.rename(vec![(table, to)], step),
            None => Ok(()),
        }
    }

    /// The table of this name has another definition, and perhaps is called `now`.
    fn alter_known(
        &mut self,
        table: &TableName,
        now: &TableName,
        sql: &str,
        step: &mut Step,
    ) -> Result<()> {
        let barrier = self.source.binlog_end()?;
        let read = match self.read_source(now)? {
            Ok(Some(read)) => read,
            // It was dropped or renamed since, as the stream will tell; what it was between nobody
            // knows any more.
            Ok(None) => {
                self.lose_definition(table, step);
                return Ok(());
            }
            Err(reason) => {
                self.check_strict(table, &reason)?;
                self.refuse(table, reason, step);
                return Ok(());
            }
        };
        let TableName { database, table: name } = table.clone();
        let read = SourceTable { database, name, ..read };
        let Some(followed) = self.tables.get_mut(table) else { return Ok(()) };
        let same = fingerprint(&followed.source) == fingerprint(&read);
        if same && followed.stopped.is_none() {
            followed.source = Arc::new(read);
            return Ok(());
        }
        let in_place = followed.copy.is_none() && followed.visible == Visible::Fed;
        let old = Arc::clone(&followed.source);
        self.check_strict(table, &format!("configured columns changed after DDL: {sql}"))?;
        if !in_place {
            return self.start_copy(table, read, barrier, true, step);
        }
        match SchemaChange::between(&old, read, Some(sql)) {
            SchemaChange::Recopy { table: read, reason } => {
                tracing::info!(table = read.name, "copied anew: {reason}");
                self.start_copy(table, read, barrier, true, step)?;
                self.show(table);
                Ok(())
            }
            SchemaChange::Nothing(read) => self.alter_in_place(table, read, &[], step),
            SchemaChange::Alter { table: read, added, .. } => {
                self.alter_in_place(table, read, &added, step)
            }
        }
    }

    /// What can be read of a table stays as it is until the stream tells what became of it.
    fn lose_definition(&mut self, table: &TableName, step: &mut Step) {
        let Some(followed) = self.tables.get_mut(table) else { return };
        if followed.visible == Visible::Fed {
            let key = table_key(&self.shared.settings.name, &followed.name);
            step.positions.push((key, STALE.to_owned()));
            followed.visible = Visible::Frozen;
            let reason = "it was changed and then dropped or renamed before that could be read";
            followed.stopped = Some(reason.to_owned());
        }
        self.show(table);
    }

    fn alter_in_place(
        &mut self,
        table: &TableName,
        read: SourceTable,
        added: &[(String, remora_engine::Value)],
        step: &mut Step,
    ) -> Result<()> {
        let settings = &self.shared.settings;
        let Some(followed) = self.tables.get_mut(table) else { return Ok(()) };
        let previous = self.shared.database.schema(&followed.name)?;
        let highest = self.shared.database.highest_column_id(&followed.name)?;
        let schema = schema(settings, &read, &followed.name, Some((&previous, highest)));
        let fill = |(name, value): &(String, remora_engine::Value)| {
            let column = schema.columns.iter().find(|column| column.name == *name)?;
            Some((column.id, value.clone()))
        };
        let fills = added.iter().filter_map(fill).collect();
        let key = table_key(&settings.name, &followed.name);
        step.positions.push((key, fingerprint(&read)));
        if schema != *previous {
            step.definitions.push(Definition::Alter { schema, fills });
        }
        followed.source = Arc::new(read);
        Ok(())
    }

    fn rename(&mut self, renames: Vec<(TableName, TableName)>, step: &mut Step) -> Result<()> {
        let mut left = Vec::new();
        for (from, to) in renames {
            self.expect_another_layout(&from);
            self.expect_another_layout(&to);
            let older = |table| self.tables.contains_key(table) && !self.concerns(table);
            if older(&from) {
                continue;
            }
            if older(&to) {
                // The rows are copied under the new name; under the old one they are gone.
                self.forget(&from, step);
                continue;
            }
            if self.tables.contains_key(&from) {
                self.check_strict(
                    &from,
                    "configured table was renamed; aliases are not followed automatically",
                )?;
            }
            match self.tables.remove(&from) {
                Some(followed) if self.moves(&from, &followed, &to) => {
                    self.move_table(followed, &from, &to, step);
                }
                Some(followed) => {
                    self.leave(followed, &from, step);
                    left.push(from);
                    self.adopt(&to, step)?;
                }
                None => {
                    left.push(from);
                    self.adopt(&to, step)?;
                }
            }
        }
        for table in left {
            self.settle(&table, step);
        }
        Ok(())
    }

    /// Whether a renamed table keeps its rows.
    fn moves(&self, from: &TableName, followed: &FollowedTable, to: &TableName) -> bool {
        let settings = &self.shared.settings;
        let defined = definition(settings, from).is_some() || definition(settings, to).is_some();
        let whole = followed.visible == Visible::Fed && followed.copy.is_none();
        whole && self.selects(to) && !defined
    }

    fn move_table(
        &mut self,
        mut followed: FollowedTable,
        from: &TableName,
        to: &TableName,
        step: &mut Step,
    ) {
        let settings = &self.shared.settings;
        let (old, new) = (name_here(settings, from), name_here(settings, to));
        if let Some(copy) = self.tables.remove(to).and_then(|replaced| replaced.copy) {
            step.drop_if_there(&self.shared.database, &copy.hidden);
            step.positions.push((copy_key(&settings.name, &new), String::new()));
            self.copying.retain(|other| other != to);
        }
        step.definitions.push(Definition::Rename { from: old.clone(), to: new.clone() });
        step.positions.push((table_key(&settings.name, &old), String::new()));
        let source = SourceTable {
            database: to.database.clone(),
            name: to.table.clone(),
            ..(*followed.source).clone()
        };
        step.positions.push((table_key(&settings.name, &new), fingerprint(&source)));
        (followed.source, followed.name) = (Arc::new(source), new.into());
        self.shared.board.forget_table(&old);
        self.tables.insert(to.clone(), followed);
        self.show(to);
    }

    /// A table goes away under its name; what can be read of it stays until it is settled.
    fn leave(&mut self, followed: FollowedTable, from: &TableName, step: &mut Step) {
        self.copying.retain(|other| other != from);
        if let Some(copy) = followed.copy {
            let key = copy_key(&self.shared.settings.name, &followed.name);
            step.drop_if_there(&self.shared.database, &copy.hidden);
            step.positions.push((key, String::new()));
        }
    }

    /// A table that was not followed comes to this name: it is copied.
    fn adopt(&mut self, to: &TableName, step: &mut Step) -> Result<()> {
        if self.selects(to) { self.copy_again(to, true, step) } else { Ok(()) }
    }

    /// What was read under a name that a table left: it stays until the copy of another table that
    /// came to the name replaces it, or goes.
    fn settle(&mut self, table: &TableName, step: &mut Step) {
        let name = name_here(&self.shared.settings, table);
        let key = table_key(&self.shared.settings.name, &name);
        match self.tables.get_mut(table) {
            None => self.forget(table, step),
            Some(followed) if followed.visible == Visible::Absent => {
                if step.has_position(&self.shared.database, &key) {
                    followed.visible = Visible::Frozen;
                    step.positions.push((key, STALE.to_owned()));
                }
            }
            Some(_) => {}
        }
    }
}

/// The table that a definition alters.
fn altered(definition: &Definition) -> Option<String> {
    match definition {
        Definition::Alter { schema, .. } => Some(schema.name.clone()),
        _ => None,
    }
}
