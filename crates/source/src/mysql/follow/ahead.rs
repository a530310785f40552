//! Events of the stream that were received and are not applied yet: what will become of a table.

use std::collections::VecDeque;

use super::{
    inbox::bytes_of,
    statement::{Fate, Statement, TableName},
};
use crate::mysql::binlog::{Coordinates, SourceEvent};

/// The events, first come first.
#[derive(Default)]
pub(super) struct Ahead {
    events: VecDeque<SourceEvent>,
    bytes: usize,
    end: Coordinates,
}

impl Ahead {
    /// Appends events.
    pub fn extend(&mut self, events: VecDeque<SourceEvent>) {
        for event in events {
            self.bytes = self.bytes.saturating_add(bytes_of(&event));
            match &event {
                SourceEvent::Commit { end }
                | SourceEvent::Rollback { end }
                | SourceEvent::Heartbeat { end } => self.end.clone_from(end),
                _ => {}
            }
            self.events.push_back(event);
        }
    }

    /// The next event.
    pub fn pop(&mut self) -> Option<SourceEvent> {
        let event = self.events.pop_front()?;
        self.bytes = self.bytes.saturating_sub(bytes_of(&event));
        Some(event)
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How far the stream was received.
    pub fn end(&self) -> &Coordinates {
        &self.end
    }

    /// What becomes of the definition of a table up to there.
    pub fn fate(&self, table: &TableName, folds_names: bool) -> Fate {
        let mut name = table.clone();
        for event in &self.events {
            let SourceEvent::Statement { database, sql, .. } = event else { continue };
            match Statement::parse(database, sql, folds_names).fate(&name) {
                Fate::Stays(now) => name = now,
                Fate::Changes => return Fate::Changes,
            }
        }
        Fate::Stays(name)
    }

    /// Whether a table comes to this name up to there.
    pub fn is_renamed_to(&self, table: &TableName, folds_names: bool) -> bool {
        self.events.iter().any(|event| match event {
            SourceEvent::Statement { database, sql, .. } => {
                match Statement::parse(database, sql, folds_names) {
                    Statement::Rename(renames) => renames.iter().any(|(_, to)| to == table),
                    Statement::Alter { renamed, .. } => renamed.as_ref() == Some(table),
                    _ => false,
                }
            }
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_looked_for_in_what_waits() {
        let statement = |sql: &str| SourceEvent::Statement {
            database: "d".to_owned(),
            sql: sql.to_owned(),
            standalone: true,
        };
        let place = |offset| Coordinates { file: "b.1".to_owned(), offset };
        let name = |table: &str| TableName { database: "d".to_owned(), table: table.to_owned() };
        let mut ahead = Ahead::default();
        ahead.extend(VecDeque::from([
            statement("RENAME TABLE t TO u"),
            SourceEvent::Commit { end: place(9) },
            statement("ALTER TABLE v ADD a INT"),
        ]));
        assert_eq!(ahead.end(), &place(9));
        assert_eq!(ahead.fate(&name("t"), false), Fate::Stays(name("u")));
        assert_eq!(ahead.fate(&name("v"), false), Fate::Changes);
        assert_eq!(ahead.fate(&name("u"), false), Fate::Changes);
        while ahead.pop().is_some() {}
        assert_eq!(ahead.bytes(), 0);
        assert_eq!(ahead.fate(&name("v"), false), Fate::Stays(name("v")));
    }
}
