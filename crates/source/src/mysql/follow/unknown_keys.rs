//! Tables whose foreign keys are not known at the stream's place: they were created, renamed or given keys there, and the
//! source, which is ahead, cannot tell their definition yet.
//!
//! While there is such a table, every row that is deleted or updated anywhere may change its rows by a foreign key, and
//! by theirs the rows of the tables that reference it. The source logs none of that. So all of them are copied again, once
//! the definition is known: a copy before that would be wrong after the next row.

use super::{
    applier::Applier,
    cascades::may_cascade,
    statement::{Alteration, Creation},
    table::FollowedTable,
};
use crate::mysql::{binlog::RowsKind, table_name::TableName};

/// The word before the table that a foreign key names.
const REFERENCES: &str = "REFERENCES";

impl FollowedTable {
    /// Whether it may have foreign keys that are not known here.
    fn may_reference(&self) -> bool {
        self.uncertainty.as_ref().is_some_and(|uncertainty| uncertainty.may_reference)
    }

    /// Notes whether a table that was created now may have foreign keys.
    pub fn note_creation(&mut self, creation: &Creation) {
        let declares = creation.words.iter().any(|word| word.eq_ignore_ascii_case(REFERENCES));
        if let Some(uncertainty) = &mut self.uncertainty {
            uncertainty.may_reference = declares || creation.unless_there;
        }
    }

    /// Notes whether an alteration may add foreign keys.
    pub fn note_alteration(&mut self, alteration: &Alteration) {
        if let Some(uncertainty) = &mut self.uncertainty {
            uncertainty.may_reference |= alteration.mentions(REFERENCES);
        }
    }
}

impl Applier {
    /// Handles a rows event of any table while the foreign keys of others are not known.
    pub fn lose_rows_behind_unknown_keys(&mut self, kind: RowsKind, body: &[u8]) {
        let has_effect = !self.source.server.logs_cascades && may_cascade(kind, body);
        if self.uncertain.is_empty() || !has_effect || self.routes.has_lost_behind {
            return;
        }
        // Until a definition changes, or the first rows of a table are skipped, as may happen here.
        self.routes.has_lost_behind = true;
        for table in self.uncertain.clone() {
            let may_change = |known: &FollowedTable| known.may_reference() && !known.is_new();
            if self.tables.get(&table).is_some_and(may_change) {
                self.note_skipped_rows(&table);
                self.lose_rows_behind(&table, true);
            }
        }
    }

    /// It is unknown which rows of a table foreign keys changed: the tables that change with it are copied again, with
    /// `waits` as soon as its definition is known. Warns in the log.
    pub fn lose_rows_behind(&mut self, table: &TableName, waits: bool) {
        for behind in self.tables_behind(table) {
            let Some(followed) = self.tables.get(&behind) else { continue };
            if followed.may_reference() {
                // It is asked for anyhow, and this table is not known before.
                self.note_skipped_rows(&behind);
                continue;
            }
            let uncertainty = followed.uncertainty.as_ref();
            let is_lost = uncertainty.is_some_and(|it| it.missed && it.waits_for.is_some());
            if is_lost || followed.stopped.is_some() {
                continue;
            }
            tracing::warn!(
                table = &*followed.name,
                "copied anew: it changes with {}.{}, whose foreign keys are not known here",
                table.database,
                table.table
            );
            self.mark_rows_lost(&behind);
            let uncertainty = self.tables.get_mut(&behind).and_then(|it| it.uncertainty.as_mut());
            if let Some(uncertainty) = uncertainty.filter(|_| waits) {
                (uncertainty.waits_for, uncertainty.needs_query) = (Some(table.clone()), false);
            }
            self.show(&behind);
        }
    }

    /// Whether an uncertain table still waits for another to be known. If it no longer does, the source is to be asked.
    pub fn waits_for_keys(&mut self, table: &TableName) -> bool {
        let uncertainty = self.tables.get(table).and_then(|known| known.uncertainty.as_ref());
        let Some(awaited) = uncertainty.and_then(|it| it.waits_for.clone()) else { return false };
        if self.tables.get(&awaited).is_some_and(FollowedTable::may_reference) {
            return true;
        }
        if let Some(uncertainty) =
            self.tables.get_mut(table).and_then(|known| known.uncertainty.as_mut())
        {
            (uncertainty.waits_for, uncertainty.needs_query) = (None, true);
        }
        false
    }
}
