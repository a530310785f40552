//! Applies the source's schema changes, each at its position in the stream and in one commit with that position.
//! [`super::uncertainty`] then determines a table's definition.

use remora_engine::Definition;

use super::{
    applier::Applier,
    definition_commit::DefinitionCommit,
    hidden_renames::ClassifiedRenames,
    positions::{STALE, definition_text, table_key},
    statement::{Alteration, Creation, Statement},
    status::{TableState, count},
    table::{FollowedTable, Visible, definition, local_name, name_conflict, source_name},
    uncertainty::ExpectedAbsence,
};
use crate::{
    Error, Result,
    mysql::{
        binlog::Query,
        schema::{SourceTable, list_tables},
        table_name::TableName,
    },
};

/// The most characters of a statement in the log.
const MAX_LOGGED_CHARACTERS: usize = 200;

/// An ALTER TABLE.
struct Altered<'t> {
    alteration: Alteration,
    /// Its text in the log.
    text: &'t str,
    /// Whether it ended with an error.
    failed: bool,
    /// Whether it may mean a temporary table.
    maybe_temporary: bool,
}

impl Applier {
    /// Applies a statement of the binlog.
    pub fn apply_statement(&mut self, query: &Query, statement: Statement) -> Result<()> {
        if statement.may_change_views() {
            self.read_changed_views()?;
        }
        self.apply_to_tables(query, statement)?;
        // Stores changed views, if no commit has stored them.
        self.commit_in_order(DefinitionCommit::default())
    }

    fn apply_to_tables(&mut self, query: &Query, statement: Statement) -> Result<()> {
        let counters = &self.shared.board.counters;
        let is_harmless = matches!(statement, Statement::Harmless | Statement::Views);
        if self.is_ignored(&query.sql) || is_harmless {
            count(&counters.harmless_statements, 1);
            return Ok(());
        }
        let text: String = query.sql.chars().take(MAX_LOGGED_CHARACTERS).collect();
        match statement {
            Statement::Rows => {
                count(&counters.row_statements, 1);
                tracing::warn!("rows were logged as a statement, tables are copied anew: {text}");
                self.mark_all_tables_lost();
                Ok(())
            }
            Statement::Unknown => {
                count(&counters.unknown_statements, 1);
                tracing::warn!("a statement is not understood, tables are copied anew: {text}");
                self.mark_all_tables_lost();
                self.relist = true;
                Ok(())
            }
            Statement::Temporary(table) => {
                count(&counters.harmless_statements, 1);
                self.temporary.add(table, &self.shared);
                Ok(())
            }
            understood => self.change_definitions(query, understood, &text),
        }
    }

    /// Applies a statement that is understood.
    fn change_definitions(
        &mut self,
        query: &Query,
        statement: Statement,
        text: &str,
    ) -> Result<()> {
        self.apply_to_merge_tables(&statement);
        let failed = query.error != 0;
        let mut commit = DefinitionCommit::default();
        match statement {
            Statement::Create(creation) => self.create(&creation, &mut commit)?,
            Statement::Alter { table, renamed, alteration, others } => {
                let maybe_temporary = self.is_maybe_temporary(&table, query);
                let altered = Altered { alteration, text, failed, maybe_temporary };
                self.alter(table, renamed, altered, &others, &mut commit)?;
            }
            Statement::Drop(tables) => self.drop_named(&tables, &mut commit)?,
            Statement::Rename(renames) => self.rename(renames, false, &mut commit)?,
            Statement::Truncate(table) if failed || self.is_maybe_temporary(&table, query) => {
                self.mark_rows_lost(&table);
            }
            Statement::Truncate(table) => self.truncate(&table, &mut commit)?,
            Statement::DropDatabase(database) => {
                let of_database = self.tables.keys().filter(|table| table.database == database);
                let tables: Vec<_> = of_database.cloned().collect();
                tables.iter().try_for_each(|table| self.drop_table(table, &mut commit))?;
                tables
                    .iter()
                    .for_each(|table| self.expect_absence(table, ExpectedAbsence::Dropped));
                self.shared.board.forget_refused(&format!("{database}."));
            }
            Statement::Repair(tables) => tables.iter().for_each(|table| self.mark_rows_lost(table)),
            Statement::Temporary(_)
            | Statement::Rows
            | Statement::Views
            | Statement::Harmless
            | Statement::Unknown => {}
        }
        if !commit.is_empty() {
            tracing::info!("schema change: {text}");
            count(&self.shared.board.counters.statements, 1);
        }
        self.commit_in_order(commit)
    }

    /// Whether a statement that names a table may mean a temporary one, which hides the base table. The creation of
    /// that may be unknown, because it was not logged or was before following began.
    fn is_maybe_temporary(&self, table: &TableName, query: &Query) -> bool {
        let in_dictionary = query.in_dictionary || !self.source.server.logs_dictionary_changes;
        !in_dictionary || query.uses_temporary || self.temporary.has(table)
    }

    /// All tables may differ from the source: they are copied while the current rows stay readable.
    fn mark_all_tables_lost(&mut self) {
        let tables: Vec<_> = self.tables.keys().cloned().collect();
        tables.iter().for_each(|table| self.mark_rows_lost(table));
    }

    /// Starts copies of tables that appeared at the source at an unknown position.
    pub fn copy_new_tables(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.relist) {
            return Ok(());
        }
        let listed = list_tables(&mut self.source.conn, &self.shared.selection)?;
        let mut commit = DefinitionCommit::default();
        for (database, table) in listed {
            let table = TableName { database, table };
            if !self.tables.contains_key(&table) {
                self.follow_renamed(&table, &mut commit);
                self.resolve(&table, &mut commit)?;
            }
        }
        self.read_changed_views()?;
        self.commit_in_order(commit)
    }

    /// Commits definitions after all submitted batches.
    pub fn commit_in_order(&mut self, mut commit: DefinitionCommit) -> Result<()> {
        let (changed, gone) =
            (std::mem::take(&mut commit.changed), std::mem::take(&mut commit.gone));
        commit.positions.append(&mut self.changed_views);
        if !commit.is_empty() {
            self.commit_step(commit)?;
        }
        // Not earlier: readers rely on a table's state being true when it is shown.
        changed.iter().for_each(|table| self.show(table));
        let is_known =
            |name: &String| self.tables.values().any(|followed| *followed.name == **name);
        let gone = gone.iter().filter(|name| !is_known(name));
        gone.for_each(|name| self.shared.board.forget_table(name));
        Ok(())
    }

    fn commit_step(&mut self, commit: DefinitionCommit) -> Result<()> {
        if self.large.is_some() {
            let (file, offset) = (self.place.file.clone(), self.place.offset);
            let message = "a schema change within a large transaction".to_owned();
            return Err(Error::Unfollowable { file, offset, message });
        }
        match self.define(commit.definitions.clone(), commit.positions.clone()) {
            Err(Error::Engine(refusal @ remora_engine::Error::Request { .. })) => {
                self.copy_refused(commit, refusal)
            }
            outcome => outcome,
        }
    }

    /// Copies the tables again that the engine refuses to alter in place.
    fn copy_refused(
        &mut self,
        mut commit: DefinitionCommit,
        refusal: remora_engine::Error,
    ) -> Result<()> {
        let names = commit.take_alterations();
        if names.is_empty() {
            return Err(refusal.into());
        }
        tracing::info!("copied anew: {refusal}");
        let refused = |followed: &FollowedTable| {
            let hidden = followed.copy.as_ref().map(|copy| &*copy.hidden);
            names.iter().any(|name| **name == *followed.name || Some(&**name) == hidden)
        };
        let tables = self.tables.iter().filter(|(_, followed)| refused(followed));
        let tables: Vec<_> =
            tables.map(|(table, followed)| (table.clone(), (*followed.source).clone())).collect();
        for (table, source) in tables {
            self.start_copy(&table, source, true, &mut commit)?;
        }
        self.define(commit.definitions, commit.positions)
    }

    fn is_ignored(&self, sql: &str) -> bool {
        let prefixes = &self.shared.settings.ignored_ddl_prefixes;
        !prefixes.is_empty() && {
            let sql = normalized(sql);
            prefixes.iter().any(|prefix| sql.starts_with(&normalized(prefix)))
        }
    }

    /// Whether a table is to be followed and its name is possible here.
    pub fn selects(&self, table: &TableName) -> bool {
        if !self.shared.selection.matches(&table.database, &table.table) {
            return false;
        }
        let refused = name_conflict(&self.shared.settings, table, self.tables.iter());
        let Some(reason) = refused else { return true };
        self.shared.board.set_table(&source_name(table), TableState::Refused(reason));
        false
    }

    /// An error for a schema change, if the settings forbid them.
    pub fn check_strict(&self, table: &TableName, what: &str) -> Result<()> {
        // A table that waits for a copy, as after SYNC, is followed whatever it was before.
        let waits = |followed: &FollowedTable| followed.source.columns.is_empty();
        if !self.shared.settings.strict_schema || self.tables.get(table).is_some_and(waits) {
            return Ok(());
        }
        let table = local_name(&self.shared.settings, table);
        Err(Error::TableRefused { table, reason: format!("SCHEMA_INCOMPATIBLE: {what}") })
    }

    fn create(&mut self, creation: &Creation, commit: &mut DefinitionCommit) -> Result<()> {
        for table in &creation.names {
            self.create_one(table, creation, commit)?;
        }
        Ok(())
    }

    fn create_one(
        &mut self,
        table: &TableName,
        creation: &Creation,
        commit: &mut DefinitionCommit,
    ) -> Result<()> {
        if !self.selects(table) {
            return Ok(());
        }
        if creation.unless_there && self.tables.contains_key(table) {
            return self.resolve(table, commit);
        }
        // The local table of this name is an older one.
        self.drop_table(table, commit)?;
        let name = local_name(&self.shared.settings, table);
        self.tables.insert(table.clone(), FollowedTable::unknown(table, name));
        // A table that existed before, and could not be followed, has rows.
        self.mark_uncertain(table, creation.with_rows || creation.unless_there);
        if let Some(followed) = self.tables.get_mut(table) {
            followed.note_creation(creation);
        }
        self.resolve(table, commit)
    }

    /// Drops the tables of a DROP TABLE, except those that still exist at the source: the statement may have meant
    /// temporary tables, and MariaDB logs the drop of a table that it could not replace. Those stay readable while they
    /// are copied.
    fn drop_named(&mut self, tables: &[TableName], commit: &mut DefinitionCommit) -> Result<()> {
        let mut possibly_dropped = Vec::new();
        for table in tables {
            let table_exists = match self.tables.contains_key(table) {
                true => self.still_exists(table)?,
                false => None,
            };
            match table_exists {
                Some(true) => {
                    tracing::warn!(table = table.table, "told as dropped, but the source has it");
                    self.mark_rows_lost(table);
                    self.may_be_dropped(table);
                    continue;
                }
                Some(false) => {}
                None => possibly_dropped.push(table),
            }
            self.drop_table(table, commit)?;
        }
        possibly_dropped
            .into_iter()
            .for_each(|table| self.expect_absence(table, ExpectedAbsence::Dropped));
        Ok(())
    }

    fn drop_table(&mut self, table: &TableName, commit: &mut DefinitionCommit) -> Result<()> {
        if self.tables.contains_key(table) {
            self.check_strict(table, "configured table was dropped")?;
        }
        self.forget(table, commit);
        Ok(())
    }

    /// Drops everything of a table here.
    pub fn forget(&mut self, table: &TableName, commit: &mut DefinitionCommit) {
        let (database, settings) = (&self.shared.database, &self.shared.settings);
        if name_conflict(settings, table, self.tables.iter()).is_some() {
            self.shared.board.forget_table(&source_name(table));
            return;
        }
        let name = local_name(settings, table);
        self.routes.clear();
        self.copying.retain(|other| other != table);
        let copy = self.tables.remove(table).and_then(|followed| followed.copy);
        if let Some(copy) = copy {
            commit.drop_copy(database, &settings.name, &name, &copy.hidden);
        }
        let key = table_key(&settings.name, &name);
        if commit.has_position(database, &key) {
            commit.drop_if_exists(database, &name);
            commit.positions.push((key, String::new()));
        }
        commit.gone.push(name);
    }

    fn truncate(&mut self, table: &TableName, commit: &mut DefinitionCommit) -> Result<()> {
        let Some(followed) = self.tables.get(table) else { return Ok(()) };
        if followed.visible == Visible::Current {
            let schema = self.shared.database.schema(&followed.name)?;
            commit.definitions.push(Definition::Drop(followed.name.to_string()));
            commit.definitions.push(Definition::Create((*schema).clone()));
        }
        match (&followed.copy, &followed.uncertainty) {
            (None, _) => Ok(()),
            (Some(_), Some(_)) => {
                self.note_skipped_rows(table);
                Ok(())
            }
            (Some(_), None) => {
                let source = (*followed.source).clone();
                self.start_copy(table, source, false, commit)
            }
        }
    }

    fn alter(
        &mut self,
        table: TableName,
        renamed: Option<TableName>,
        altered: Altered<'_>,
        others: &[TableName],
        commit: &mut DefinitionCommit,
    ) -> Result<()> {
        for other in others.iter().filter(|other| **other != table) {
            if !self.tables.contains_key(other) {
                self.follow_renamed(other, commit);
            }
            self.mark_uncertain(other, true);
            self.may_be_dropped(other);
            self.resolve(other, commit)?;
        }
        let Altered { alteration, text, failed, maybe_temporary } = altered;
        let missed = alteration.moves_rows.is_some() || failed || maybe_temporary;
        if !alteration.renamed.is_empty() {
            self.reread_referencing(std::slice::from_ref(&table));
        }
        self.mark_uncertain(&table, missed);
        if let Some(followed) = self.tables.get_mut(&table) {
            followed.note_alteration(&alteration);
        }
        if let Some(uncertainty) =
            self.tables.get_mut(&table).and_then(|known| known.uncertainty.as_mut())
        {
            uncertainty.alterations.push(alteration);
            uncertainty.statements.push(text.to_owned());
        }
        if let Some(to) = renamed {
            if maybe_temporary {
                self.temporary.add(to.clone(), &self.shared);
            }
            self.rename(vec![(table.clone(), to)], maybe_temporary, commit)?;
            // A renamed temporary table leaves the base table's name unchanged.
            return self.resolve(&table, commit);
        }
        if !self.tables.contains_key(&table) {
            self.follow_renamed(&table, commit);
        }
        self.resolve(&table, commit)?;
        self.resolve_children(&table, commit)
    }

    fn rename(
        &mut self,
        renames: Vec<(TableName, TableName)>,
        maybe_temporary: bool,
        commit: &mut DefinitionCommit,
    ) -> Result<()> {
        self.routes.clear();
        if self.uncertain.is_empty() {
            self.renames.clear();
        }
        self.renames.extend(renames.iter().cloned());
        let classified = self.without_temporary(renames, maybe_temporary)?;
        let ClassifiedRenames { of_base_tables: renames, undecided } = classified;
        let (mut left, mut arrived) = (Vec::new(), Vec::new());
        let renamed = renames.clone();
        let parents: Vec<_> = renames.iter().map(|(from, _)| from.clone()).collect();
        self.reread_referencing(&parents);
        let children: Vec<_> =
            parents.iter().flat_map(|parent| self.children_of(parent).to_vec()).collect();
        for (from, to) in renames {
            if !self.rename_one(&from, &to, commit)? {
                left.push(from);
            }
            arrived.push(to);
        }
        for table in left {
            if !self.tables.contains_key(&table) {
                self.forget(&table, commit);
            }
        }
        for child in children {
            // The child table may have been renamed too.
            let child =
                renamed.iter().fold(child.table, |child, (from, to)| match child == *from {
                    true => to.clone(),
                    false => child,
                });
            self.mark_uncertain(&child, false);
            arrived.push(child);
        }
        for table in undecided {
            if !self.tables.contains_key(&table) {
                self.follow_renamed(&table, commit);
            }
            self.mark_uncertain(&table, true);
            self.may_be_dropped(&table);
            arrived.push(table);
        }
        arrived.iter().try_for_each(|table| self.resolve(table, commit))?;
        // If the source is ahead, none of this was certain.
        for (from, to) in renamed {
            self.expect_absence(&from, ExpectedAbsence::Renamed(to));
        }
        Ok(())
    }

    /// Renames one table. Returns whether its rows came with it.
    fn rename_one(
        &mut self,
        from: &TableName,
        to: &TableName,
        commit: &mut DefinitionCommit,
    ) -> Result<bool> {
        self.shared.rename_words(from, to, commit);
        self.rename_rereadings(from, to);
        if self.tables.contains_key(from) {
            self.check_strict(
                from,
                "configured table was renamed; aliases are not followed automatically",
            )?;
        }
        match self.tables.remove(from) {
            Some(followed) if self.keeps_rows(from, &followed, to) => {
                self.move_table(followed, from, to, commit);
                Ok(true)
            }
            followed => {
                if let Some(followed) = followed {
                    self.unfollow_renamed(followed, from, commit);
                }
                self.follow_renamed(to, commit);
                // It may be a view; then the local table of this name is another.
                self.may_be_dropped(to);
                Ok(false)
            }
        }
    }

    /// Whether a renamed table keeps its rows.
    fn keeps_rows(&self, from: &TableName, followed: &FollowedTable, to: &TableName) -> bool {
        let settings = &self.shared.settings;
        let defined = definition(settings, from).is_some() || definition(settings, to).is_some();
        let whole = followed.is_new() || followed.visible == Visible::Current;
        let whole = whole && followed.copy.is_none() && followed.stopped.is_none();
        whole && self.selects(to) && !defined
    }

    fn move_table(
        &mut self,
        mut followed: FollowedTable,
        from: &TableName,
        to: &TableName,
        commit: &mut DefinitionCommit,
    ) {
        let settings = &self.shared.settings;
        let (old, new) = (local_name(settings, from), local_name(settings, to));
        self.copying.retain(|other| other != to);
        if let Some(copy) = self.tables.remove(to).and_then(|replaced| replaced.copy) {
            commit.drop_copy(&self.shared.database, &settings.name, &new, &copy.hidden);
        }
        let source = SourceTable {
            database: to.database.clone(),
            name: to.table.clone(),
            ..(*followed.source).clone()
        };
        let text = match (followed.visible, &followed.uncertainty) {
            (Visible::Absent, _) => String::new(),
            (_, Some(_)) => STALE.to_owned(),
            (_, None) => definition_text(&source),
        };
        match followed.visible {
            Visible::Absent => commit.drop_if_exists(&self.shared.database, &new),
            _ => commit.definitions.push(Definition::Rename { from: old.clone(), to: new.clone() }),
        }
        commit.positions.push((table_key(&settings.name, &old), String::new()));
        commit.positions.push((table_key(&settings.name, &new), text));
        self.shared.board.set_table(&new, TableState::CatchingUp);
        (followed.source, followed.name) = (source.into(), new.into());
        commit.gone.push(old);
        if followed.uncertainty.is_some() && !self.uncertain.contains(to) {
            self.uncertain.push(to.clone());
        }
        self.tables.insert(to.clone(), followed);
        commit.changed.push(to.clone());
    }

    /// Handles a table that is no longer followed under its name. It stays readable for now.
    fn unfollow_renamed(
        &mut self,
        followed: FollowedTable,
        from: &TableName,
        commit: &mut DefinitionCommit,
    ) {
        self.copying.retain(|other| other != from);
        if let Some(copy) = followed.copy {
            let source = &self.shared.settings.name;
            commit.drop_copy(&self.shared.database, source, &followed.name, &copy.hidden);
        }
    }

    /// Starts following a table that was renamed to a followed name. It is copied, while the table that had the name
    /// stays readable.
    pub fn follow_renamed(&mut self, to: &TableName, commit: &mut DefinitionCommit) {
        if !self.selects(to) {
            return;
        }
        let settings = &self.shared.settings;
        let name = local_name(settings, to);
        if let Some(replaced) = self.tables.remove(to) {
            self.unfollow_renamed(replaced, to, commit);
        }
        let mut followed = FollowedTable::unknown(to, name.clone());
        let key = table_key(&self.shared.settings.name, &name);
        if commit.has_position(&self.shared.database, &key)
            && commit.table_exists(&self.shared.database, &name)
        {
            followed.visible = Visible::Frozen;
            commit.positions.push((key, STALE.to_owned()));
        }
        self.tables.insert(to.clone(), followed);
        self.mark_uncertain(to, true);
    }
}

/// A statement in lower case without backquotes, which servers add to names.
fn normalized(sql: &str) -> String {
    let words: Vec<&str> = sql.split_whitespace().collect();
    words.join(" ").replace('`', "").to_lowercase()
}
