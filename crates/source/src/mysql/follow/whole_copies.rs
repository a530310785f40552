//! Copies of tables without a key, which have no key ranges: each is read whole, as of one position of the binlog, its
//! moment.
//!
//! Rows read include changes up to the moment and none after it. So changes are kept from the opening of the first
//! window until the moment is known. Then earlier ones are dropped, and later ones are applied, like all that follow.
//! Rows read may enter at any time: additions and removals of equal rows only add up, so a row may be removed before it
//! was added ([`super::occurrences`]). When all rows were read and the stream has passed the moment, no row is missing,
//! and the copy is the table at the stream's place.
//!
//! An inexact moment is valid if nothing changed the table from the opening of the window up to it.

use remora_engine::{Change, Row, TableChanges};

use super::{
    applier::Applier,
    batch::FULL_BYTES,
    definition_commit::DefinitionCommit,
    occurrences::{CountFailure, CountMode, counts_rows, insert_change},
    row_hash::row_hash,
    table::{Copy, FollowedTable, Visible},
};
use crate::{
    Error, Result,
    mysql::{coordinates::Coordinates, inbox::Moment, schema::SourceTable, table_name::TableName},
};

/// The most changes that are kept until a moment is known, and the most bytes of their transactions.
const MAX_BUFFERED_CHANGES: usize = 65_536;
const MAX_BUFFERED_BYTES: usize = 16 * FULL_BYTES;

/// The state of a copy that is read whole.
#[derive(Default)]
pub(super) struct WholeCopy {
    stage: Stage,
    /// The moment that the worker reported, until it is accepted or refused.
    moment: Option<Moment>,
    /// Why it restarts.
    restart_reason: Option<&'static str>,
}

#[derive(Default)]
enum Stage {
    #[default]
    Idle,
    /// Its moment is not known yet.
    AwaitingMoment(BufferedChanges),
    /// It has this moment.
    AtMoment(Coordinates),
}

/// Changes since the window opened.
#[derive(Default)]
struct BufferedChanges {
    /// The changes with the end positions of their transactions.
    changes: Vec<(Coordinates, Change)>,
    bytes: usize,
    /// More changes came than can be kept.
    is_full: bool,
}

impl BufferedChanges {
    fn add(&mut self, end: &Coordinates, changes: Vec<Change>, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        let count = self.changes.len() + changes.len();
        if self.is_full || count > MAX_BUFFERED_CHANGES || self.bytes > MAX_BUFFERED_BYTES {
            *self = Self { is_full: true, ..Self::default() };
            return;
        }
        self.changes.extend(changes.into_iter().map(|change| (end.clone(), change)));
    }
}

impl WholeCopy {
    /// A window was opened. If no moment is known or awaited, changes are kept from here on.
    pub fn begin(&mut self) {
        if matches!(self.stage, Stage::Idle) {
            self.stage = Stage::AwaitingMoment(BufferedChanges::default());
        }
    }

    /// Handles changes of a transaction that began at `place`; returns those to apply.
    fn filter_changes(
        &mut self,
        changes: Vec<Change>,
        (begin, end): (&Coordinates, Option<&Coordinates>),
        bytes: usize,
    ) -> Vec<Change> {
        match (&mut self.stage, end) {
            (Stage::AtMoment(moment), _) if *begin >= *moment => return changes,
            (Stage::AwaitingMoment(kept), Some(end)) => kept.add(end, changes, bytes),
            (Stage::AwaitingMoment(kept), None) => {
                *kept = BufferedChanges { is_full: true, ..BufferedChanges::default() };
            }
            (Stage::AtMoment(_) | Stage::Idle, _) => {}
        }
        Vec::new()
    }
}

/// Changes that add all these rows of a table without a key.
pub(super) fn insert_all(source: &SourceTable, rows: Vec<Row>) -> Vec<Change> {
    let identity = source.identity();
    let change = |row: Row| {
        let hash = row_hash(&row, &identity);
        insert_change(row, hash)
    };
    rows.into_iter().map(change).collect()
}

impl Applier {
    /// Takes the moment that a worker reported for its copy.
    pub fn take_moment(&mut self, moment: Moment) {
        if let Some(copy) = self.copy_of_number(moment.copy) {
            copy.whole.moment = Some(moment);
        }
    }

    /// Removes from the transaction, which ends here, changes that copies do not want.
    pub fn filter_transaction(&mut self, end: &Coordinates) {
        let bytes = self.batch.open_bytes();
        for table in &self.copying {
            let Some(copy) = whole_copy(self.tables.get_mut(table)) else { continue };
            let changes = self.batch.take_open(&copy.hidden);
            if changes.is_empty() {
                continue;
            }
            let wanted = copy.whole.filter_changes(changes, (&self.place, Some(end)), bytes);
            if !wanted.is_empty() {
                let place = self.batch.place(&copy.hidden);
                wanted.into_iter().for_each(|change| self.batch.push(place, change));
            }
        }
    }

    /// Like [`Self::filter_transaction`], for a part of a large transaction whose end is not known yet.
    pub fn filter_large_part(&mut self, mut tables: Vec<TableChanges>) -> Vec<TableChanges> {
        for table in &self.copying {
            let Some(copy) = whole_copy(self.tables.get_mut(table)) else { continue };
            for part in tables.iter_mut().filter(|part| part.table == copy.hidden) {
                let changes = std::mem::take(&mut part.changes);
                part.changes = copy.whole.filter_changes(changes, (&self.place, None), 0);
            }
        }
        tables.retain(|part| !part.changes.is_empty());
        tables
    }

    /// Accepts or refuses the moment that a worker reported, as soon as that can be decided.
    pub fn decide_moment(&mut self, table: &TableName) -> Result<()> {
        let Some(copy) = whole_copy(self.tables.get_mut(table)) else { return Ok(()) };
        let place = &self.place;
        let known = |moment: &mut Moment| moment.exact || *place >= moment.end;
        let Some(moment) = copy.whole.moment.take_if(known) else { return Ok(()) };
        let kept = match std::mem::take(&mut copy.whole.stage) {
            Stage::AwaitingMoment(kept) => kept,
            Stage::Idle | Stage::AtMoment(_) => {
                BufferedChanges { is_full: true, ..BufferedChanges::default() }
            }
        };
        let before = |(end, _): &&(Coordinates, Change)| *end <= moment.end;
        let changed = kept.changes.iter().filter(before).count();
        let holds = !kept.is_full && (moment.exact || changed == 0);
        if !holds && copy.progress.rows > 0 {
            copy.whole.restart_reason = Some("it changed while it was read");
        }
        if holds {
            copy.whole.stage = Stage::AtMoment(moment.end);
            let place = self.batch.place(&copy.hidden);
            let later = kept.changes.into_iter().skip(changed);
            later.for_each(|(_, change)| self.batch.push(place, change));
            self.batch.commit();
        }
        // A worker that has ended does not wait for the answer.
        let _ = moment.reply.send(holds);
        if holds { self.submit() } else { Ok(()) }
    }

    /// Restarts the copy of a table if what was read is useless; true if it was.
    pub fn restart_if_invalid(&mut self, table: &TableName) -> Result<bool> {
        let Some(copy) = whole_copy(self.tables.get_mut(table)) else { return Ok(false) };
        let Some(reason) = copy.whole.restart_reason.take() else { return Ok(false) };
        tracing::info!(table = table.table, "copied from the beginning: {reason}");
        self.restart_copy(table)?;
        Ok(true)
    }

    /// Restarts the copy of a table.
    pub fn restart_copy(&mut self, table: &TableName) -> Result<()> {
        let Some(followed) = self.tables.get(table) else { return Ok(()) };
        let source = (*followed.source).clone();
        let mut commit = DefinitionCommit::default();
        self.start_copy(table, source, false, &mut commit)?;
        self.commit_in_order(commit)
    }

    /// Converts changes to those that the engine takes: for tables without a key, equal rows are counted. A table whose
    /// rows cannot be counted is removed from the batch and copied again.
    pub fn counted(&mut self, tables: Vec<TableChanges>, large: bool) -> Result<Vec<TableChanges>> {
        let mut counted = Vec::with_capacity(tables.len());
        for part in tables {
            let schema = self.shared.database.schema(&part.table)?;
            match counts_rows(&schema) {
                true => counted.extend(self.counted_part(part, large)?),
                false => counted.push(part),
            }
        }
        Ok(counted)
    }

    fn counted_part(&mut self, part: TableChanges, large: bool) -> Result<Option<TableChanges>> {
        let Some((table, partial)) = self.target_named(&part.table) else { return Ok(None) };
        if self.occurrences.is_full() {
            self.wait_for_submitted()?;
        }
        if self.is_all_visible() && self.occurrences.is_full() {
            self.occurrences.forget_visible();
        }
        let (name, reader) = (part.table.clone(), self.shared.database.reader());
        let why = match self.occurrences.count(&reader, part, CountMode { large, partial })? {
            Ok(counted) => return Ok(Some(counted)),
            Err(why) => why,
        };
        self.occurrences.forget_table(&name);
        let reason = match why {
            CountFailure::Missing => "a row went that is not here",
            CountFailure::TooMany => "more rows changed at once than can be counted",
        };
        if partial {
            let copy = self.tables.get_mut(&table).and_then(|followed| followed.copy.as_mut());
            copy.into_iter().for_each(|copy| copy.whole.restart_reason = Some(reason));
        } else if large {
            self.uncountable = Some((table, reason));
            return Err(Error::Cancelled);
        } else {
            tracing::warn!(table = table.table, "copied anew: {reason}");
            self.mark_rows_lost(&table);
        }
        Ok(None)
    }

    /// The followed table whose rows go to this local table, and whether that is its copy; `None` if there is none any
    /// more.
    fn target_named(&self, name: &str) -> Option<(TableName, bool)> {
        let is_of = |followed: &FollowedTable| {
            let copy = followed.copy.as_ref();
            let copied = copy.is_some_and(|copy| *copy.hidden == *name);
            copied && copy.is_some_and(|copy| copy.whole.restart_reason.is_none())
                || *followed.name == *name && followed.visible == Visible::Current
        };
        let (table, followed) = self.tables.iter().find(|(_, followed)| is_of(followed))?;
        Some((table.clone(), *followed.name != *name))
    }
}

/// The copy of a table, if it is read whole.
fn whole_copy(followed: Option<&mut FollowedTable>) -> Option<&mut Copy> {
    followed.filter(|followed| followed.source.is_keyless())?.copy.as_mut()
}
