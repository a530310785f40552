//! What a table is at a place of the stream, though only the source can be asked, which is further.
//!
//! The stream says that a table was changed, not to what. What the source says now holds at the
//! stream's place if nothing changed the table on the way from there to where the binlog ended
//! behind the answer: the stream is received that far before an answer is believed. As long as
//! that cannot be told the table is in doubt: its rows pass by, and if any did, it is copied once
//! the doubt is over. Doubts end at the next statement that changes the table, or when the stream
//! has come to where the answer was given.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use remora_engine::{Definition, Schema, Value};

use super::{
    applier::Applier,
    positions::{STALE, copied_key, definition_text, table_key},
    statement::{Fate, TableName},
    status::TableState,
    step::Step,
    table::{FollowedTable, Visible, schema},
};
use crate::{
    Error, Result,
    mysql::{
        binlog::Coordinates,
        copy::wait_until_executed,
        schema::{SchemaChange, SourceTable, read_table},
    },
};

/// A table that was created is shown within this time, unless it is gone again.
const SHOWN_WITHIN: Duration = Duration::from_millis(300);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// So often an answer is asked for under another name.
const ATTEMPTS: usize = 4;

/// What is known of a table in doubt.
#[derive(Default)]
pub(super) struct Doubt {
    /// The statements that changed its definition since it was known.
    pub statements: Vec<String>,
    /// What the source says, which holds if nothing changes the table before the place.
    pub answer: Option<(Answer, Coordinates)>,
    /// Whether rows were changed since then, which are not known here.
    pub missed: bool,
    /// Whether the source is to be asked when the transaction that is being read is whole.
    pub unasked: bool,
}

/// What the source says of a table: its definition, or why it cannot be followed.
pub(super) type Answer = std::result::Result<SourceTable, String>;

/// What a table is at the stream's place.
enum Here {
    Is(Answer),
    /// If nothing changes it before the place.
    IsPerhaps(Answer, Coordinates),
    /// A statement that comes will tell.
    Unknown,
}

impl Applier {
    /// From here on the table is another one, perhaps; with `missed` its rows are too.
    pub fn begin_doubt(&mut self, table: &TableName, statement: Option<&str>, missed: bool) {
        self.routes.clear();
        self.shared.unfitting.lock().remove(table);
        let Some(followed) = self.tables.get_mut(table) else { return };
        followed.unexplained = None;
        let was_stopped = followed.stopped.take().is_some();
        self.shared.given_up.lock().remove(table);
        let doubt = followed.doubt.get_or_insert_default();
        doubt.missed |= missed || was_stopped || followed.visible == Visible::Frozen;
        doubt.statements.extend(statement.map(str::to_owned));
        doubt.answer = None;
        if !self.uncertain.contains(table) {
            self.uncertain.push(table.clone());
        }
    }

    /// Ends the doubt of a table if its definition can be told.
    pub fn settle(&mut self, table: &TableName, step: &mut Step) -> Result<()> {
        if self.tables.get(table).is_none_or(|followed| followed.doubt.is_none()) {
            return Ok(());
        }
        let answer = match self.definition_here(table)? {
            Here::Is(answer) => return self.believe(table, answer, step),
            Here::IsPerhaps(answer, until) => Some((answer, until)),
            Here::Unknown => None,
        };
        if let Some(followed) = self.tables.get_mut(table) {
            let source = &self.shared.settings.name;
            let stale = |key: String| (key, STALE.to_owned());
            if followed.visible == Visible::Fed {
                step.positions.push(stale(table_key(source, &followed.name)));
            }
            if followed.copy.is_some() {
                step.positions.push(stale(copied_key(source, &followed.name)));
            }
            let doubt = followed.doubt.get_or_insert_default();
            (doubt.answer, doubt.unasked) = (answer, false);
        }
        self.show(table);
        Ok(())
    }

    /// Ends the doubts that end at this place of the stream.
    pub fn end_doubts(&mut self) -> Result<()> {
        if self.uncertain.is_empty() {
            return Ok(());
        }
        let mut step = Step::default();
        for table in self.uncertain.clone() {
            self.end_doubt(&table, &mut step)?;
        }
        let tables = &self.tables;
        self.uncertain.retain(|table| {
            let followed = tables.get(table);
            followed.is_some_and(|one| one.doubt.is_some() || one.unexplained.is_some())
        });
        self.take_step(step)
    }

    fn end_doubt(&mut self, table: &TableName, step: &mut Step) -> Result<()> {
        let Some(followed) = self.tables.get_mut(table) else { return Ok(()) };
        if followed.unexplained.as_ref().is_some_and(|until| self.place >= *until) {
            tracing::warn!(table = &*followed.name, "the source changed it without a word");
            self.begin_doubt(table, None, true);
            return self.settle(table, step);
        }
        let Some(doubt) = &mut followed.doubt else { return Ok(()) };
        if doubt.unasked {
            return self.settle(table, step);
        }
        match doubt.answer.take_if(|(_, until)| self.place >= *until) {
            Some((answer, _)) => self.believe(table, answer, step),
            None => Ok(()),
        }
    }

    fn definition_here(&mut self, table: &TableName) -> Result<Here> {
        let folds = self.source.server.folds_names;
        for _ in 0..ATTEMPTS {
            let Fate::Stays(name) = self.ahead.fate(table, folds) else {
                return Ok(Here::Unknown);
            };
            let answer = self.ask(&name)?;
            let end = self.source.binlog_end()?;
            let received = self.receive_up_to(&end);
            if answer.as_ref().is_ok_and(|read| self.refers_ahead(read, folds)) {
                return Ok(Here::Unknown);
            }
            match self.ahead.fate(table, folds) {
                Fate::Changes => return Ok(Here::Unknown),
                // A statement on the way says so if it may be read under that name only.
                Fate::Stays(now) if now == name && now != *table && answer.is_err() => {
                    return Ok(Here::Unknown);
                }
                Fate::Stays(now) if now == name && received => return Ok(Here::Is(answer)),
                Fate::Stays(now) if now == name => return Ok(Here::IsPerhaps(answer, end)),
                Fate::Stays(_) => {}
            }
        }
        Ok(Here::Unknown)
    }

    /// Whether a table that this one refers to will have another name: its definition has that.
    fn refers_ahead(&self, read: &SourceTable, folds_names: bool) -> bool {
        read.reacting_keys().iter().any(|key| {
            let (database, table) = key.parent.clone();
            self.ahead.is_renamed_to(&TableName { database, table }, folds_names)
        })
    }

    /// Asks again what the tables are that refer to this one: its name and columns stand in their
    /// definitions.
    pub fn settle_children(&mut self, parent: &TableName, step: &mut Step) -> Result<()> {
        for child in self.children_of(parent).iter().filter(|child| child.table != *parent) {
            self.begin_doubt(&child.table, None, false);
            self.settle(&child.table, step)?;
        }
        Ok(())
    }

    /// What the source says of a table after all that was applied. A MariaDB may log that it made
    /// a table a moment before it shows it.
    pub fn ask(&mut self, table: &TableName) -> Result<Answer> {
        let mut seen = self.applied.clone();
        self.open_gtids().for_each(|gtid| seen.add(gtid));
        wait_until_executed(&mut self.source, &seen)?;
        let deadline = Instant::now() + SHOWN_WITHIN;
        loop {
            let read = read_table(&mut self.source.conn, &table.database, &table.table);
            let narrowed = read.and_then(|read| match read {
                Some(read) => super::tables::narrowed(&self.shared.settings, read).map(Some),
                None => Ok(None),
            });
            match narrowed {
                Ok(Some(read)) => return Ok(Ok(read)),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(LOOK_AGAIN),
                Ok(None) => return Ok(Err("the source has no such table any more".to_owned())),
                Err(Error::TableRefused { reason, .. }) => return Ok(Err(reason)),
                Err(error) => return Err(error),
            }
        }
    }

    /// At this place of the stream the table is what the answer says.
    fn believe(&mut self, table: &TableName, answer: Answer, step: &mut Step) -> Result<()> {
        let Some(followed) = self.tables.get_mut(table) else { return Ok(()) };
        let doubt = followed.doubt.take().unwrap_or_default();
        let read = match answer {
            Ok(read) => {
                let TableName { database, table: name } = table.clone();
                SourceTable { database, name, ..read }
            }
            Err(reason) => {
                self.check_strict(table, &reason)?;
                return self.refuse(table, reason, step);
            }
        };
        let old = Arc::clone(&followed.source);
        if followed.visible == Visible::Absent && followed.copy.is_none() && !doubt.missed {
            return self.begin_empty(table, read, step);
        }
        if !old.columns.is_empty() && !old.reads_as(&read) {
            let sql = doubt.statements.join("; ");
            self.check_strict(table, &format!("configured columns changed after DDL: {sql}"))?;
        }
        if doubt.missed {
            return self.start_copy(table, read, true, step);
        }
        match SchemaChange::between(&old, read, &doubt.statements) {
            SchemaChange::Recopy { table: read, reason } => {
                tracing::info!(table = read.name, "copied anew: {reason}");
                self.start_copy(table, read, true, step)
            }
            SchemaChange::Nothing(read) => self.alter_in_place(table, read, &[], step),
            SchemaChange::Alter { table: read, added, .. } => {
                self.alter_in_place(table, read, &added, step)
            }
        }
    }

    /// A table that is followed from its creation on is empty.
    fn begin_empty(&mut self, table: &TableName, read: SourceTable, step: &mut Step) -> Result<()> {
        let settings = &self.shared.settings;
        let Some(followed) = self.tables.get_mut(table) else { return Ok(()) };
        let name = followed.name.to_string();
        if step.is_there(&self.shared.database, &name) {
            return self.refuse(table, super::tables::taken(&name), step);
        }
        step.definitions.push(Definition::Create(schema(settings, &read, &name, None)));
        step.positions.push((table_key(&settings.name, &name), definition_text(&read)));
        (followed.source, followed.visible) = (Arc::new(read), Visible::Fed);
        self.show(table);
        Ok(())
    }

    /// The rows stay as they are, those of a copy as well, which goes on.
    fn alter_in_place(
        &mut self,
        table: &TableName,
        read: SourceTable,
        added: &[(String, Value)],
        step: &mut Step,
    ) -> Result<()> {
        let source = &self.shared.settings.name;
        let Some(followed) = self.tables.get(table) else { return Ok(()) };
        if read.is_keyless() && followed.copy.is_some() {
            // What was read whole was read as what the table was before.
            return self.start_copy(table, read, false, step);
        }
        let text = definition_text(&read);
        if followed.visible == Visible::Fed {
            self.alter_here(&followed.name, &read, added, step)?;
            step.positions.push((table_key(source, &followed.name), text.clone()));
        }
        if let Some(copy) = &followed.copy {
            self.alter_here(&copy.hidden, &read, added, step)?;
            step.positions.push((copied_key(source, &followed.name), text));
        }
        let Some(followed) = self.tables.get_mut(table) else { return Ok(()) };
        if let Some(copy) = &mut followed.copy
            && !followed.source.reads_as(&read)
        {
            // What was read meanwhile was read as what the table was before.
            self.last_copy += 1;
            copy.renumber(self.last_copy);
        }
        followed.source = Arc::new(read);
        self.show(table);
        Ok(())
    }

    /// Adds to the step what makes a table here one of the source's new definition.
    fn alter_here(
        &self,
        name: &str,
        read: &SourceTable,
        added: &[(String, Value)],
        step: &mut Step,
    ) -> Result<()> {
        let before = step.name_before(name);
        let previous = self.shared.database.schema(&before)?;
        let highest = self.shared.database.highest_column_id(&before)?;
        let schema = schema(&self.shared.settings, read, name, Some((&previous, highest)));
        let fill = |(name, value): &(String, Value)| {
            let column = schema.columns.iter().find(|column| column.name == *name)?;
            Some((column.id, value.clone()))
        };
        let fills = added.iter().filter_map(fill).collect();
        if schema != (Schema { name: schema.name.clone(), ..(*previous).clone() }) {
            step.definitions.push(Definition::Alter { schema, fills });
        }
        Ok(())
    }

    /// A table cannot be followed: what can be read of it stays as it is.
    fn refuse(&mut self, table: &TableName, reason: String, step: &mut Step) -> Result<()> {
        let source = self.shared.settings.name.clone();
        let Some(followed) = self.tables.get_mut(table) else { return Ok(()) };
        let name = followed.name.to_string();
        tracing::warn!(table = name, "not followed: {reason}");
        followed.doubt = None;
        self.copying.retain(|other| other != table);
        if let Some(copy) = followed.copy.take() {
            step.drop_copy(&self.shared.database, &source, &name, &copy.hidden);
        }
        if followed.visible == Visible::Absent {
            self.tables.remove(table);
            self.shared.board.set_table(&name, TableState::Refused(reason));
            return Ok(());
        }
        (followed.visible, followed.stopped) = (Visible::Frozen, Some(reason));
        step.positions.push((table_key(&source, &name), STALE.to_owned()));
        self.show(table);
        Ok(())
    }

    /// Rows of a table in doubt pass by.
    pub fn miss_rows(&mut self, table: &TableName) {
        let Some(followed) = self.tables.get_mut(table) else { return };
        let FollowedTable { doubt: Some(doubt), visible, .. } = followed else { return };
        doubt.missed = true;
        if *visible == Visible::Fed {
            *visible = Visible::Frozen;
        }
    }
}
