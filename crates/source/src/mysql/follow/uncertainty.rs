//! Determines a table's definition at a position of the stream, although only the source, which is ahead, can be asked.
//!
//! The stream says that a table was changed, but not to what. The source's answer is valid at the stream's position if
//! nothing changed the table between that position and the end of the binlog after the answer. So the stream is
//! received up to there before an answer is used. Until then the table is uncertain: its rows are skipped, and if there
//! were any, the table is copied when its definition is known. That is at the next statement that changes the table, or
//! when the stream reaches the position of the answer. If the answer was useless, the source is asked again there.
//!
//! A table that should be gone but may exist is uncertain too. It is not shown.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use remora_engine::{Definition, Schema, Value};

use super::{
    applier::Applier,
    definition_commit::DefinitionCommit,
    parents::unfollowed_parent,
    positions::{STALE, copied_key, definition_text, table_key},
    statement::{Alteration, DefinitionEffect},
    status::TableState,
    table::{FollowedTable, Visible, definition, hidden_name, local_name, schema},
};
use crate::{
    Error, Result,
    mysql::{
        coordinates::Coordinates,
        copy::wait_until_executed,
        gtid::Flavor,
        schema::{SourceTable, read_table},
        schema_change::SchemaChange,
        table_name::TableName,
    },
};

/// A new table is shown within this time, unless it is dropped again.
const VISIBILITY_DELAY: Duration = Duration::from_millis(300);
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// The state of a table whose definition is uncertain.
#[derive(Default)]
pub(super) struct Uncertainty {
    /// The statements that changed its definition since it was known.
    pub alterations: Vec<Alteration>,
    /// Their texts.
    pub statements: Vec<String>,
    /// The source's answer, which is valid if nothing changes the table before this position.
    pub answer: Option<(Answer, Coordinates)>,
    /// The position at which the source is asked again, because its answer was useless.
    pub retry_at: Option<Coordinates>,
    /// Whether rows were skipped since then.
    pub missed: bool,
    /// Whether the source is to be asked when the transaction being read is complete.
    pub needs_query: bool,
    /// Set if no table of this name should exist.
    pub expected_absence: Option<ExpectedAbsence>,
    /// Whether it is dropped here if the source does not have it; otherwise it stays as it was.
    pub may_be_dropped: bool,
    /// Whether it may have foreign keys that are not known here, so that its rows may change with those of any table.
    pub may_reference: bool,
    /// A table whose foreign keys are not known: the source is not asked before they are.
    pub waits_for: Option<TableName>,
}

/// Why a table should not exist at the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ExpectedAbsence {
    /// It was dropped.
    Dropped,
    /// It was renamed to this, unless that was a temporary table.
    Renamed(TableName),
}

/// The source's answer about a table: its definition, or why it cannot be followed.
pub(super) type Answer = std::result::Result<SourceTable, Absence>;

/// Why a table is not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    /// The source has no such table.
    Gone,
    /// The source has it, but it cannot be followed.
    Refused(String),
}

impl Absence {
    /// The reason as text.
    pub fn reason(self) -> String {
        match self {
            Self::Gone => "the source has no such table any more".to_owned(),
            Self::Refused(reason) => reason,
        }
    }
}

/// The definition at the stream's position.
pub(super) enum DefinitionHere {
    Certain(Answer),
    /// Valid if nothing changes the table before this position.
    Provisional(Answer, Coordinates),
    /// A later statement will tell, or the source is asked again at this position.
    Unknown(Coordinates),
}

fn changed_by(column: &str, statements: &[String]) -> String {
    format!("Configured column '{column}' changed after DDL: {}", statements.join("; "))
}

impl Applier {
    /// The table may be another from here on. With `missed`, its rows may differ too.
    pub fn mark_uncertain(&mut self, table: &TableName, missed: bool) {
        self.routes.clear();
        let has_unreadable_rows_ahead = self.has_unreadable_rows_ahead(table);
        if !has_unreadable_rows_ahead {
            self.shared.unfitting.lock().remove(table);
        }
        let Some(followed) = self.tables.get_mut(table) else { return };
        followed.explained_before = None;
        let was_stopped = followed.stopped.take().is_some();
        let mut given_up = self.shared.given_up.lock();
        if let Some(reason) = given_up.get(table).filter(|_| has_unreadable_rows_ahead) {
            (followed.stopped, followed.uncertainty) = (Some(reason.clone()), None);
            drop(given_up);
            return self.show(table);
        }
        given_up.remove(table);
        drop(given_up);
        let is_unknown = was_stopped || followed.source.columns.is_empty();
        let uncertainty = followed.uncertainty.get_or_insert_default();
        uncertainty.may_reference |= is_unknown;
        uncertainty.missed |= missed
            || was_stopped
            || has_unreadable_rows_ahead
            || followed.visible == Visible::Frozen;
        (uncertainty.answer, uncertainty.retry_at) = (None, None);
        if !self.uncertain.contains(table) {
            self.uncertain.push(table.clone());
        }
    }

    /// Whether the stream will reach rows of the table again that could not be read. Otherwise the definition before
    /// them would cause endless retries.
    fn has_unreadable_rows_ahead(&self, table: &TableName) -> bool {
        let mut failed_at = self.shared.failed_at.lock();
        let is_ahead = failed_at.get(table).is_some_and(|place| self.place <= *place);
        if !is_ahead {
            failed_at.remove(table);
        }
        is_ahead
    }

    /// Makes a table certain if its definition can be determined.
    pub fn resolve(&mut self, table: &TableName, commit: &mut DefinitionCommit) -> Result<()> {
        if self.tables.get(table).is_none_or(|followed| followed.uncertainty.is_none()) {
            return Ok(());
        }
        let (answer, retry_at) = match self.definition_here(table, self.expects(table))? {
            DefinitionHere::Certain(answer) => return self.apply_answer(table, answer, commit),
            DefinitionHere::Provisional(answer, until) => (Some((answer, until)), None),
            DefinitionHere::Unknown(until) => (None, Some(until)),
        };
        if let Some(followed) = self.tables.get_mut(table) {
            let source = &self.shared.settings.name;
            let stale = |key: String| (key, STALE.to_owned());
            if followed.visible == Visible::Current {
                commit.positions.push(stale(table_key(source, &followed.name)));
            }
            if followed.copy.is_some() {
                commit.positions.push(stale(copied_key(source, &followed.name)));
            }
            let uncertainty = followed.uncertainty.get_or_insert_default();
            (uncertainty.answer, uncertainty.retry_at, uncertainty.needs_query) =
                (answer, retry_at, false);
        }
        if self.expects(table) != Some(false) {
            self.show(table);
        }
        Ok(())
    }

    /// Resolves the uncertain tables whose answer is valid at this position of the stream.
    pub fn resolve_uncertain_tables(&mut self) -> Result<()> {
        if self.uncertain.is_empty() {
            return Ok(());
        }
        let mut commit = DefinitionCommit::default();
        for table in self.uncertain.clone() {
            self.resolve_if_reached(&table, &mut commit)?;
        }
        let tables = &self.tables;
        self.uncertain.retain(|table| {
            let followed = tables.get(table);
            followed.is_some_and(|one| one.uncertainty.is_some() || one.explained_before.is_some())
        });
        self.commit_in_order(commit)
    }

    fn resolve_if_reached(
        &mut self,
        table: &TableName,
        commit: &mut DefinitionCommit,
    ) -> Result<()> {
        let Some(followed) = self.tables.get_mut(table) else { return Ok(()) };
        if followed.explained_before.as_ref().is_some_and(|until| self.place >= *until) {
            tracing::warn!(table = &*followed.name, "the source changed it without a word");
            self.mark_uncertain(table, true);
            return self.resolve(table, commit);
        }
        if self.waits_for_keys(table) {
            return Ok(());
        }
        let followed = self.tables.get_mut(table);
        let Some(uncertainty) = followed.and_then(|known| known.uncertainty.as_mut()) else {
            return Ok(());
        };
        if uncertainty.needs_query
            || uncertainty.retry_at.as_ref().is_some_and(|place| self.place >= *place)
        {
            return self.resolve(table, commit);
        }
        match uncertainty.answer.take_if(|(_, until)| self.place >= *until) {
            Some((answer, _)) => self.apply_answer(table, answer, commit),
            None => Ok(()),
        }
    }

    /// Determines the table's definition at this position. The source answers for some moment between two positions of
    /// its binlog, so the table must have had one name and one definition between them. `expects` tells whether the
    /// source should have the table, if that is known.
    pub(super) fn definition_here(
        &mut self,
        table: &TableName,
        expects: Option<bool>,
    ) -> Result<DefinitionHere> {
        let before = self.source.binlog_end()?;
        let is_received = self.receive_up_to(&before);
        let DefinitionEffect::Unchanged(name) =
            self.received.effect_on(table, is_received.then_some(&before))
        else {
            return Ok(DefinitionHere::Unknown(before));
        };
        if !is_received && name != *table {
            return Ok(DefinitionHere::Unknown(before));
        }
        let former = self.received.former_names(table, &before);
        if self.any_exists(&former)? {
            return Ok(DefinitionHere::Unknown(before));
        }
        let answer = self.ask(&name, expects)?;
        let (answer, after, is_received) = self.with_parents(answer, is_received)?;
        let Some(answer) = answer else { return Ok(DefinitionHere::Unknown(after)) };
        if is_received {
            let mut names = former.iter().chain([&name]);
            return Ok(match names.all(|name| self.received.keeps_name(name, &before, &after)) {
                true => DefinitionHere::Certain(answer),
                false => DefinitionHere::Unknown(after),
            });
        }
        // A change of the table before that position makes it uncertain again.
        Ok(match self.received.effect_on(table, None) {
            DefinitionEffect::Unchanged(now) if now == *table && now == name => {
                DefinitionHere::Provisional(answer, after)
            }
            _ => DefinitionHere::Unknown(after),
        })
    }

    /// Whether the source has tables with one of the former names. MariaDB also logs renames of temporary tables, after
    /// which the base table keeps its name.
    fn any_exists(&mut self, former: &[TableName]) -> Result<bool> {
        if self.source.server.flavor != Flavor::MariaDb {
            return Ok(false);
        }
        for name in former {
            if self.ask(name, None)? != Err(Absence::Gone) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the source should have the table; `None` if both are possible.
    fn expects(&self, table: &TableName) -> Option<bool> {
        let uncertainty = self.tables.get(table)?.uncertainty.as_ref()?;
        match &uncertainty.expected_absence {
            Some(_) => Some(false),
            None if uncertainty.may_be_dropped => None,
            None => Some(true),
        }
    }

    /// Whether a referenced table is renamed in the received events: then the definition has its new name already.
    fn references_pending_rename(&self, read: &SourceTable) -> bool {
        read.reacting_keys().iter().any(|key| {
            let (database, table) = key.parent.clone();
            self.received.is_renamed_to(&TableName { database, table })
        })
    }

    /// Receives the events up to the answer, and refuses a table whose rows may change with those of a table that is not
    /// followed. `None` if the answer may name a parent by a name that it gets later in the stream. The place up to
    /// which the answer is valid, and whether everything before it was received.
    fn with_parents(
        &mut self,
        answer: Answer,
        mut is_received: bool,
    ) -> Result<(Option<Answer>, Coordinates, bool)> {
        let deadline = Instant::now() + VISIBILITY_DELAY;
        loop {
            let tables = &self.tables;
            let is_followed = |table: &TableName| tables.contains_key(table);
            let refused = match &answer {
                Ok(read) => unfollowed_parent(&mut self.source, read, is_followed)?,
                Err(_) => None,
            };
            // Both answers are valid up to here.
            let after = self.source.binlog_end()?;
            is_received = is_received && self.receive_up_to(&after);
            let Ok(read) = &answer else { return Ok((Some(answer), after, is_received)) };
            if self.references_pending_rename(read) {
                return Ok((None, after, is_received));
            }
            let Some(reason) = refused else { return Ok((Some(answer), after, is_received)) };
            if !self.awaits_parent(read) {
                return Ok((Some(Err(Absence::Refused(reason))), after, is_received));
            }
            if !is_received {
                return Ok((None, after, is_received));
            }
            // A source renames before it logs that.
            if Instant::now() >= deadline {
                return Ok((Some(Err(Absence::Refused(reason))), after, is_received));
            }
            std::thread::sleep(RETRY_INTERVAL);
        }
    }

    /// Whether a parent whose rows matter is one of the tables to follow, and is not known at this place of the stream.
    fn awaits_parent(&self, read: &SourceTable) -> bool {
        read.reacting_keys().iter().any(|key| {
            let (database, table) = key.parent.clone();
            let is_selected = self.shared.selection.matches(&database, &table);
            is_selected && !self.tables.contains_key(&TableName { database, table })
        })
    }

    /// Asks again for the definitions of the tables that reference this one, because they contain its name and columns.
    pub fn resolve_children(
        &mut self,
        parent: &TableName,
        commit: &mut DefinitionCommit,
    ) -> Result<()> {
        for child in self.children_of(parent).iter().filter(|child| child.table != *parent) {
            self.mark_uncertain(&child.table, false);
            self.resolve(&child.table, commit)?;
        }
        Ok(())
    }

    /// The source's answer about a table after everything applied. A source may log the creation or drop of a table
    /// before showing it, so an unexpected answer is verified by asking again.
    pub fn ask(&mut self, table: &TableName, expects: Option<bool>) -> Result<Answer> {
        let mut seen = self.applied.clone();
        self.open_gtids().for_each(|gtid| seen.add(gtid));
        wait_until_executed(&mut self.source, &seen)?;
        let deadline = Instant::now() + VISIBILITY_DELAY;
        loop {
            let read = read_table(&mut self.source.conn, &table.database, &table.table);
            let narrowed = read.and_then(|read| match read {
                Some(read) => {
                    super::tables::restrict_to_definition(&self.shared.settings, read).map(Some)
                }
                None => Ok(None),
            });
            let answer = match narrowed {
                Ok(Some(read)) => Ok(read),
                Ok(None) => Err(Absence::Gone),
                Err(Error::TableRefused { reason, .. }) => Err(Absence::Refused(reason)),
                Err(error) => return Err(error),
            };
            let table_exists = answer != Err(Absence::Gone);
            if expects.is_none_or(|expected| expected == table_exists) || Instant::now() >= deadline
            {
                return Ok(answer);
            }
            std::thread::sleep(RETRY_INTERVAL);
        }
    }

    /// The answer is the table's definition at this position.
    fn apply_answer(
        &mut self,
        table: &TableName,
        answer: Answer,
        commit: &mut DefinitionCommit,
    ) -> Result<()> {
        let Some(followed) = self.tables.get_mut(table) else { return Ok(()) };
        let uncertainty = followed.uncertainty.take().unwrap_or_default();
        let read = match answer {
            Ok(read) => {
                let TableName { database, table: name } = table.clone();
                SourceTable { database, name, ..read }
            }
            Err(absence) => return self.apply_absence(table, absence, &uncertainty, commit),
        };
        let hidden = hidden_name(&followed.name);
        if let Err(refusal) = schema(&self.shared.settings, &read, &hidden, None).validate() {
            return self.refuse(table, refusal.to_string(), commit);
        }
        if let Some(expected_absence) = uncertainty.expected_absence {
            tracing::warn!(
                table = &*followed.name,
                "the source has it still: {expected_absence:?}"
            );
            self.mark_replacement_uncertain(&expected_absence);
            // Its keys were not known since the statement that should have ended it.
            self.lose_rows_behind(table, false);
            return self.start_copy(table, read, true, commit);
        }
        let old = Arc::clone(&followed.source);
        let renamed = old.renamed_columns(&read, &uncertainty.alterations);
        self.shared.rename_word_columns(&followed.name, &renamed, commit);
        if followed.visible == Visible::Absent && followed.copy.is_none() && !uncertainty.missed {
            return self.begin_empty(table, read, commit);
        }
        let is_defined = definition(&self.shared.settings, table).is_some();
        // If a definition is configured, changes of other columns and of the order do not matter.
        let same = old.columns.is_empty() || (!is_defined && old.reads_as(&read));
        if let Some(column) = old.changed_column(&read).filter(|_| !same) {
            self.check_strict(table, &changed_by(column, &uncertainty.statements))?;
        } else if !same && !is_defined {
            self.check_strict(table, "the order of its columns changed")?;
        }
        let renamed = old.renamed_column(&uncertainty.alterations).filter(|_| is_defined);
        if let Some(column) = &renamed {
            self.check_strict(table, &changed_by(column, &uncertainty.statements))?;
        }
        if uncertainty.missed || renamed.is_some() {
            return self.start_copy(table, read, true, commit);
        }
        match SchemaChange::between(&old, read, &uncertainty.alterations) {
            SchemaChange::Recopy { table: read, reason } => {
                tracing::info!(table = read.name, "copied anew: {reason}");
                self.start_copy(table, read, true, commit)
            }
            SchemaChange::Nothing(read) => self.keep_rows(table, read, &[], commit),
            SchemaChange::Alter { table: read, added, .. } => {
                self.keep_rows(table, read, &added, commit)
            }
        }
    }

    /// Keeps the rows of a table. If new or changed functional keys have no values in them, the table is copied
    /// instead.
    pub fn keep_rows(
        &mut self,
        table: &TableName,
        read: SourceTable,
        added: &[(String, Value)],
        commit: &mut DefinitionCommit,
    ) -> Result<()> {
        if !self.lacks_computed_values(table, &read, commit)? {
            return self.alter_in_place(table, read, added, commit);
        }
        tracing::info!(table = read.name, "copied anew: a key over an expression is new");
        let is_copied = self.tables.get(table).is_some_and(|known| known.copy.is_some());
        if !is_copied {
            self.alter_in_place(table, read.clone(), added, commit)?;
        }
        self.start_copy(table, read, false, commit)
    }

    /// Whether existing rows lack values of functional keys in the new definition.
    fn lacks_computed_values(
        &self,
        table: &TableName,
        read: &SourceTable,
        commit: &DefinitionCommit,
    ) -> Result<bool> {
        let Some(followed) = self.tables.get(table) else { return Ok(false) };
        let settings = &self.shared.settings;
        let (visible, hidden) = (&followed.name, followed.copy.as_ref().map(|copy| &copy.hidden));
        let is_fed = followed.visible == Visible::Current;
        for name in is_fed.then_some(visible).into_iter().chain(hidden) {
            let wanted = schema(settings, read, name, None);
            let computed = |schema: &Schema| schema.columns.len() - schema.given_columns();
            if computed(&wanted) == 0 {
                return Ok(false);
            }
            let before = commit.name_before(name);
            let previous = self.shared.database.schema(&before)?;
            let highest = self.shared.database.highest_column_id(&before)?;
            let after = schema(settings, read, name, Some((&previous, highest)));
            if computed(&after) < computed(&wanted) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The source does not have the table, or it cannot be followed.
    fn apply_absence(
        &mut self,
        table: &TableName,
        absence: Absence,
        uncertainty: &Uncertainty,
        commit: &mut DefinitionCommit,
    ) -> Result<()> {
        let is_absent = |known: &FollowedTable| known.visible == Visible::Absent;
        let nothing_here = self.tables.get(table).is_some_and(is_absent);
        if absence == Absence::Gone && (nothing_here || uncertainty.may_be_dropped) {
            self.forget(table, commit);
            return Ok(());
        }
        if let Some(expected_absence) = &uncertainty.expected_absence {
            self.mark_replacement_uncertain(expected_absence);
        }
        let reason = absence.reason();
        self.check_strict(table, &reason)?;
        self.refuse(table, reason, commit)
    }

    /// A renamed table turned out to be where it was: the local table with its new name is another.
    fn mark_replacement_uncertain(&mut self, expected_absence: &ExpectedAbsence) {
        let ExpectedAbsence::Renamed(to) = expected_absence else { return };
        self.mark_rows_lost(to);
        // The source may already have been found to have no table of the new name.
        if self.tables.get(to).is_some_and(|known| known.stopped.is_some()) {
            self.mark_uncertain(to, true);
        }
        if let Some(uncertainty) =
            self.tables.get_mut(to).and_then(|known| known.uncertainty.as_mut())
        {
            (uncertainty.needs_query, uncertainty.may_be_dropped) = (true, true);
        }
    }

    /// Notes that an uncertain table is dropped here if the source does not have it.
    pub fn may_be_dropped(&mut self, table: &TableName) {
        if let Some(uncertainty) =
            self.tables.get_mut(table).and_then(|known| known.uncertainty.as_mut())
        {
            uncertainty.may_be_dropped = true;
        }
    }

    /// Whether the source still has a table that should be gone; `None` if that cannot be determined.
    pub fn still_exists(&mut self, table: &TableName) -> Result<Option<bool>> {
        Ok(match self.definition_here(table, Some(false))? {
            DefinitionHere::Certain(answer) => Some(answer != Err(Absence::Gone)),
            DefinitionHere::Provisional(..) | DefinitionHere::Unknown(_) => None,
        })
    }

    /// Notes that no table of this name should exist. If one does, it is copied.
    pub fn expect_absence(&mut self, table: &TableName, expected_absence: ExpectedAbsence) {
        if self.tables.contains_key(table) || !self.selects(table) {
            return;
        }
        let name = local_name(&self.shared.settings, table);
        let mut followed = FollowedTable::unknown(table, name);
        let uncertainty = Uncertainty {
            expected_absence: Some(expected_absence),
            missed: true,
            needs_query: true,
            ..Uncertainty::default()
        };
        followed.uncertainty = Some(uncertainty);
        self.tables.insert(table.clone(), followed);
        self.uncertain.push(table.clone());
    }

    /// Begins a table that is followed from its creation on, without rows.
    fn begin_empty(
        &mut self,
        table: &TableName,
        read: SourceTable,
        commit: &mut DefinitionCommit,
    ) -> Result<()> {
        let settings = &self.shared.settings;
        let Some(followed) = self.tables.get_mut(table) else { return Ok(()) };
        let name = followed.name.to_string();
        if commit.table_exists(&self.shared.database, &name) {
            return self.refuse(table, super::tables::name_taken_message(&name), commit);
        }
        commit.definitions.push(Definition::Create(schema(settings, &read, &name, None)));
        commit.positions.push((table_key(&settings.name, &name), definition_text(&read)));
        (followed.source, followed.visible) = (Arc::new(read), Visible::Current);
        commit.changed.push(table.clone());
        Ok(())
    }

    /// Alters the definition and keeps the rows. A running copy continues.
    fn alter_in_place(
        &mut self,
        table: &TableName,
        read: SourceTable,
        added: &[(String, Value)],
        commit: &mut DefinitionCommit,
    ) -> Result<()> {
        let source = &self.shared.settings.name;
        let Some(followed) = self.tables.get(table) else { return Ok(()) };
        if read.is_keyless() && followed.copy.is_some() {
            // A copy of the whole table was read with the old definition.
            return self.start_copy(table, read, false, commit);
        }
        let text = definition_text(&read);
        if followed.visible == Visible::Current {
            self.alter_here(&followed.name, &read, added, commit)?;
            commit.positions.push((table_key(source, &followed.name), text.clone()));
        }
        if let Some(copy) = &followed.copy {
            self.alter_here(&copy.hidden, &read, added, commit)?;
            commit.positions.push((copied_key(source, &followed.name), text));
        }
        let Some(followed) = self.tables.get_mut(table) else { return Ok(()) };
        if let Some(copy) = &mut followed.copy
            && !followed.source.reads_as(&read)
        {
            // Chunks read meanwhile have the old definition.
            self.last_copy += 1;
            copy.renumber(self.last_copy);
        }
        followed.source = Arc::new(read);
        commit.changed.push(table.clone());
        Ok(())
    }

    /// Adds the definitions that alter the local table to the commit.
    fn alter_here(
        &self,
        name: &str,
        read: &SourceTable,
        added: &[(String, Value)],
        commit: &mut DefinitionCommit,
    ) -> Result<()> {
        let before = commit.name_before(name);
        let previous = self.shared.database.schema(&before)?;
        let highest = self.shared.database.highest_column_id(&before)?;
        let schema = schema(&self.shared.settings, read, name, Some((&previous, highest)));
        let fill = |(name, value): &(String, Value)| {
            let column = schema.columns.iter().find(|column| column.name == *name)?;
            Some((column.id, value.clone()))
        };
        let fills = added.iter().filter_map(fill).collect();
        // Ranked search is changed with the commit.
        let (name, words) = (schema.name.clone(), schema.words.clone());
        if schema != (Schema { name, words, ..(*previous).clone() }) {
            commit.definitions.push(Definition::Alter { schema, fills });
        }
        Ok(())
    }

    /// Stops a table that cannot be followed. It stays readable as it is.
    fn refuse(
        &mut self,
        table: &TableName,
        reason: String,
        commit: &mut DefinitionCommit,
    ) -> Result<()> {
        let source = self.shared.settings.name.clone();
        let Some(followed) = self.tables.get_mut(table) else { return Ok(()) };
        let name = followed.name.to_string();
        tracing::warn!(table = name, "not followed: {reason}");
        followed.uncertainty = None;
        self.copying.retain(|other| other != table);
        if let Some(copy) = followed.copy.take() {
            commit.drop_copy(&self.shared.database, &source, &name, &copy.hidden);
        }
        if followed.visible == Visible::Absent {
            self.tables.remove(table);
            // The earlier table of this name is gone, but this one is reported.
            commit.gone.retain(|gone| *gone != name);
            self.shared.board.set_table(&name, TableState::Refused(reason));
            return Ok(());
        }
        (followed.visible, followed.stopped) = (Visible::Frozen, Some(reason));
        commit.positions.push((table_key(&source, &name), STALE.to_owned()));
        self.show(table);
        Ok(())
    }

    /// Notes that rows of an uncertain table were skipped.
    pub fn note_skipped_rows(&mut self, table: &TableName) {
        let Some(followed) = self.tables.get_mut(table) else { return };
        let FollowedTable { uncertainty: Some(uncertainty), visible, .. } = followed else {
            return;
        };
        self.routes.has_lost_behind &= uncertainty.missed;
        uncertainty.missed = true;
        if *visible == Visible::Current {
            *visible = Visible::Frozen;
        }
    }
}
