//! Schema changes of the source, each applied at its place in the stream with its position in the
//! same commit. What a table is after one is found out by [`super::doubt`].

use remora_engine::Definition;

use super::{
    applier::Applier,
    positions::{STALE, definition_text, table_key},
    statement::{Statement, TableName},
    status::{TableState, count},
    step::Step,
    table::{FollowedTable, Visible, definition, name_here, name_there, namesake},
};
use crate::{Error, Result, mysql::schema::SourceTable};

impl Applier {
    /// Applies a statement of the binlog that ran in that database.
    pub fn change_definitions(&mut self, database: &str, sql: &str) -> Result<()> {
        if self.ignores(sql) {
            return Ok(());
        }
        let statement = Statement::parse(database, sql, self.source.server.folds_names);
        let mut step = Step::default();
        match statement {
            Statement::Other => return Ok(()),
            Statement::Create { table, unless_there } => {
                self.create(&table, unless_there, &mut step)?;
            }
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
        tracing::info!("schema change: {}", sql.chars().take(200).collect::<String>());
        count(&self.shared.board.counters.statements, 1);
        self.take_step(step)
    }

    /// Commits a step behind everything that was submitted.
    pub fn take_step(&mut self, step: Step) -> Result<()> {
        if step.definitions.is_empty() && step.positions.is_empty() {
            return Ok(());
        }
        if self.large.is_some() {
            let (file, offset) = (self.place.file.clone(), self.place.offset);
            let message = "a schema change within a large transaction".to_owned();
            return Err(Error::Unfollowable { file, offset, message });
        }
        match self.define(step.definitions.clone(), step.positions.clone()) {
            Err(Error::Engine(refusal @ remora_engine::Error::Request { .. })) => {
                self.copy_refused(step, refusal)
            }
            outcome => outcome,
        }
    }

    /// Tables that the engine would not alter in place are copied anew.
    fn copy_refused(&mut self, mut step: Step, refusal: remora_engine::Error) -> Result<()> {
        let names = step.take_alterations();
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
            self.start_copy(&table, source, true, &mut step)?;
        }
        self.define(step.definitions, step.positions)
    }

    fn ignores(&self, sql: &str) -> bool {
        let prefixes = &self.shared.settings.ignored_ddl_prefixes;
        !prefixes.is_empty() && {
            let sql = plain(sql);
            prefixes.iter().any(|prefix| sql.starts_with(&plain(prefix)))
        }
    }

    /// Whether a table is to be followed, and can have its name here.
    fn selects(&self, table: &TableName) -> bool {
        if !self.shared.selection.matches(&table.database, &table.table) {
            return false;
        }
        let refused = namesake(&self.shared.settings, table, self.tables.iter());
        let Some(reason) = refused else { return true };
        self.shared.board.set_table(&name_there(table), TableState::Refused(reason));
        false
    }

    /// A schema change that the settings forbid to follow.
    pub fn check_strict(&self, table: &TableName, what: &str) -> Result<()> {
        if !self.shared.settings.strict_schema {
            return Ok(());
        }
        let table = name_here(&self.shared.settings, table);
        Err(Error::TableRefused { table, reason: format!("SCHEMA_INCOMPATIBLE: {what}") })
    }

    fn create(&mut self, table: &TableName, unless_there: bool, step: &mut Step) -> Result<()> {
        if !self.selects(table) {
            return Ok(());
        }
        if unless_there && self.tables.contains_key(table) {
            return self.settle(table, step);
        }
        // What is here under the name belongs to an older table.
        self.drop_table(table, step)?;
        let name = name_here(&self.shared.settings, table);
        self.tables.insert(table.clone(), FollowedTable::unknown(table, name));
        self.begin_doubt(table, None, false);
        self.settle(table, step)
    }

    fn drop_table(&mut self, table: &TableName, step: &mut Step) -> Result<()> {
        if self.tables.contains_key(table) {
            self.check_strict(table, "configured table was dropped")?;
        }
        self.forget(table, step);
        Ok(())
    }

    /// Whatever is here of the table goes.
    fn forget(&mut self, table: &TableName, step: &mut Step) {
        let (database, settings) = (&self.shared.database, &self.shared.settings);
        if namesake(settings, table, self.tables.iter()).is_some() {
            self.shared.board.forget_table(&name_there(table));
            return;
        }
        let name = name_here(settings, table);
        self.routes.clear();
        self.copying.retain(|other| other != table);
        let copy = self.tables.remove(table).and_then(|followed| followed.copy);
        if let Some(copy) = copy {
            step.drop_copy(database, &settings.name, &name, &copy.hidden);
        }
        let key = table_key(&settings.name, &name);
        if step.has_position(database, &key) {
            step.drop_if_there(database, &name);
            step.positions.push((key, String::new()));
        }
        self.shared.board.forget_table(&name);
    }

    fn truncate(&mut self, table: &TableName, step: &mut Step) -> Result<()> {
        let Some(followed) = self.tables.get(table) else { return Ok(()) };
        if followed.visible == Visible::Fed {
            let schema = self.shared.database.schema(&followed.name)?;
            step.definitions.push(Definition::Drop(followed.name.to_string()));
            step.definitions.push(Definition::Create((*schema).clone()));
        }
        match (&followed.copy, &followed.doubt) {
            (None, _) => Ok(()),
            (Some(_), Some(_)) => {
                self.miss_rows(table);
                Ok(())
            }
            (Some(_), None) => {
                let source = (*followed.source).clone();
                self.start_copy(table, source, false, step)
            }
        }
    }

    /// Rows of these tables changed, and only the source knows which.
    fn rows_as_text(&mut self, names: &[String], step: &mut Step) -> Result<()> {
        let named =
            |table: &&TableName| names.iter().any(|name| name.eq_ignore_ascii_case(&table.table));
        let tables: Vec<_> = self.tables.keys().filter(named).cloned().collect();
        for table in tables {
            self.begin_doubt(&table, None, true);
            self.settle(&table, step)?;
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
        for moved in moves_rows.iter().filter(|moved| **moved != table) {
            self.begin_doubt(moved, None, true);
            self.settle(moved, step)?;
        }
        self.begin_doubt(&table, Some(sql), moves_rows.contains(&table));
        if let Some(to) = renamed {
            return self.rename(vec![(table, to)], step);
        }
        if !self.tables.contains_key(&table) {
            self.adopt(&table, step);
        }
        self.settle(&table, step)?;
        self.settle_children(&table, step)
    }

    fn rename(&mut self, renames: Vec<(TableName, TableName)>, step: &mut Step) -> Result<()> {
        self.routes.clear();
        let (mut left, mut come) = (Vec::new(), Vec::new());
        let parents: Vec<_> = renames.iter().map(|(from, _)| from.clone()).collect();
        let children: Vec<_> =
            parents.iter().flat_map(|parent| self.children_of(parent).to_vec()).collect();
        for (from, to) in renames {
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
                followed => {
                    if let Some(followed) = followed {
                        self.leave(followed, &from, step);
                    }
                    left.push(from);
                    self.adopt(&to, step);
                }
            }
            come.push(to);
        }
        for table in left {
            if !self.tables.contains_key(&table) {
                self.forget(&table, step);
            }
        }
        for child in children {
            self.begin_doubt(&child.table, None, false);
            come.push(child.table);
        }
        come.iter().try_for_each(|table| self.settle(table, step))
    }

    /// Whether a renamed table keeps its rows.
    fn moves(&self, from: &TableName, followed: &FollowedTable, to: &TableName) -> bool {
        let settings = &self.shared.settings;
        let defined = definition(settings, from).is_some() || definition(settings, to).is_some();
        let whole = followed.is_new() || followed.visible == Visible::Fed;
        let whole = whole && followed.copy.is_none() && followed.stopped.is_none();
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
        self.copying.retain(|other| other != to);
        if let Some(copy) = self.tables.remove(to).and_then(|replaced| replaced.copy) {
            step.drop_copy(&self.shared.database, &settings.name, &new, &copy.hidden);
        }
        let source = SourceTable {
            database: to.database.clone(),
            name: to.table.clone(),
            ..(*followed.source).clone()
        };
        let text = match (followed.visible, &followed.doubt) {
            (Visible::Absent, _) => String::new(),
            (_, Some(_)) => STALE.to_owned(),
            (_, None) => definition_text(&source),
        };
        match followed.visible {
            Visible::Absent => step.drop_if_there(&self.shared.database, &new),
            _ => step.definitions.push(Definition::Rename { from: old.clone(), to: new.clone() }),
        }
        step.positions.push((table_key(&settings.name, &old), String::new()));
        step.positions.push((table_key(&settings.name, &new), text));
        (followed.source, followed.name) = (source.into(), new.into());
        self.shared.board.forget_table(&old);
        if followed.doubt.is_some() && !self.uncertain.contains(to) {
            self.uncertain.push(to.clone());
        }
        self.tables.insert(to.clone(), followed);
        self.show(to);
    }

    /// A table goes away under its name; what can be read of it stays for now.
    fn leave(&mut self, followed: FollowedTable, from: &TableName, step: &mut Step) {
        self.copying.retain(|other| other != from);
        if let Some(copy) = followed.copy {
            let source = &self.shared.settings.name;
            step.drop_copy(&self.shared.database, source, &followed.name, &copy.hidden);
        }
    }

    /// A table that was not followed comes to this name: it is to be copied, beside what is here of
    /// another that had the name.
    pub fn adopt(&mut self, to: &TableName, step: &mut Step) {
        if !self.selects(to) {
            return;
        }
        let settings = &self.shared.settings;
        let name = name_here(settings, to);
        if let Some(replaced) = self.tables.remove(to) {
            self.leave(replaced, to, step);
        }
        let mut followed = FollowedTable::unknown(to, name.clone());
        let key = table_key(&self.shared.settings.name, &name);
        if step.has_position(&self.shared.database, &key)
            && step.is_there(&self.shared.database, &name)
        {
            followed.visible = Visible::Frozen;
            step.positions.push((key, STALE.to_owned()));
        }
        self.tables.insert(to.clone(), followed);
        self.begin_doubt(to, None, true);
    }
}

/// A statement in small letters and without back quotes, which servers put around names.
fn plain(sql: &str) -> String {
    let words: Vec<&str> = sql.split_whitespace().collect();
    words.join(" ").replace('`', "").to_lowercase()
}
