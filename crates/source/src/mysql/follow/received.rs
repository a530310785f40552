//! Received events that are not applied yet. They tell what will happen to a table.

use std::collections::VecDeque;

use super::statement::{DefinitionEffect, Statement};
use crate::mysql::{
    binlog::SourceEvent, coordinates::Coordinates, inbox::bytes_of, table_name::TableName,
};

/// The events, oldest first.
#[derive(Default)]
pub(super) struct ReceivedEvents {
    events: VecDeque<SourceEvent>,
    /// The effects of the statements among them, in order.
    statements: VecDeque<PendingStatement>,
    bytes: usize,
    end: Coordinates,
    /// Whether table names are case-insensitive.
    folds_names: bool,
}

/// A statement that is not applied yet.
struct PendingStatement {
    statement: Statement,
    /// The end of its transaction, if that was received.
    end: Option<Coordinates>,
}

/// An event, with its effect if it is a statement.
pub(super) type Popped = (SourceEvent, Option<Statement>);

impl ReceivedEvents {
    /// Empty, for a source with `folds_names`.
    pub fn new(folds_names: bool) -> Self {
        Self { folds_names, ..Self::default() }
    }

    /// Appends events.
    pub fn extend(&mut self, events: VecDeque<SourceEvent>) {
        for event in events {
            self.bytes = self.bytes.saturating_add(bytes_of(&event));
            match &event {
                SourceEvent::Statement { query, .. } => {
                    let statement = Statement::of(query, self.folds_names);
                    self.statements.push_back(PendingStatement { statement, end: None });
                }
                SourceEvent::Commit { end } | SourceEvent::Rollback { end } => self.finish(end),
                SourceEvent::Heartbeat { end } => self.end.clone_from(end),
                _ => {}
            }
            self.events.push_back(event);
        }
    }

    /// Notes the end of a transaction.
    fn finish(&mut self, end: &Coordinates) {
        self.end.clone_from(end);
        let open = self.statements.iter_mut().rev().take_while(|waiting| waiting.end.is_none());
        open.for_each(|waiting| waiting.end = Some(end.clone()));
    }

    /// The next event.
    pub fn pop(&mut self) -> Option<Popped> {
        let event = self.events.pop_front()?;
        self.bytes = self.bytes.saturating_sub(bytes_of(&event));
        let statement = match event {
            SourceEvent::Statement { .. } => self.statements.pop_front(),
            _ => None,
        };
        Some((event, statement.map(|waiting| waiting.statement)))
    }

    /// Whether no events wait.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The bytes of waiting events.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The position up to which the stream was received.
    pub fn end(&self) -> &Coordinates {
        &self.end
    }

    /// What happens to a table's definition up to a position, or as far as was received.
    pub fn effect_on(&self, table: &TableName, until: Option<&Coordinates>) -> DefinitionEffect {
        let mut name = table.clone();
        for waiting in self.statements.iter().take_while(|waiting| !waiting.ends_after(until)) {
            match waiting.statement.effect_on(&name) {
                DefinitionEffect::Unchanged(now) => name = now,
                DefinitionEffect::Changed => return DefinitionEffect::Changed,
            }
        }
        DefinitionEffect::Unchanged(name)
    }

    /// The names that a table gives up by renames on the way to a position.
    pub fn former_names(&self, table: &TableName, until: &Coordinates) -> Vec<TableName> {
        let (mut name, mut former) = (table.clone(), Vec::new());
        let waiting = self.statements.iter().take_while(|one| !one.ends_after(Some(until)));
        for (from, to) in waiting.flat_map(|waiting| waiting.statement.renames()) {
            if *from == name {
                former.push(std::mem::replace(&mut name, to.clone()));
            }
        }
        former
    }

    /// Whether a table that has this name at `from` keeps it, and its definition, until `until`. Having the name again
    /// there is not enough, because another table may have had it in between.
    pub fn keeps_name(&self, table: &TableName, from: &Coordinates, until: &Coordinates) -> bool {
        let after = self.statements.iter().skip_while(|waiting| !waiting.ends_after(Some(from)));
        let mut between = after.take_while(|waiting| !waiting.ends_after(Some(until)));
        let stays = DefinitionEffect::Unchanged(table.clone());
        between.all(|waiting| waiting.statement.effect_on(table) == stays)
    }

    /// Whether a table is renamed to this name in the received events.
    pub fn is_renamed_to(&self, table: &TableName) -> bool {
        self.statements.iter().any(|waiting| waiting.statement.renames_to(table))
    }
}

impl PendingStatement {
    /// Whether it is after a position. An incomplete transaction is.
    fn ends_after(&self, place: Option<&Coordinates>) -> bool {
        let Some(place) = place else { return false };
        self.end.as_ref().is_none_or(|end| end > place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::binlog::Query;

    fn statement(sql: &str) -> SourceEvent {
        SourceEvent::Statement { query: Box::new(Query::plain("d", sql)), standalone: true }
    }

    fn place(offset: u64) -> Coordinates {
        Coordinates { file: "b.1".to_owned(), offset }
    }

    fn name(table: &str) -> TableName {
        TableName { database: "d".to_owned(), table: table.to_owned() }
    }

    #[test]
    fn received_events_are_searched_for_a_table() {
        let mut received = ReceivedEvents::default();
        received.extend(VecDeque::from([
            statement("RENAME TABLE t TO u"),
            SourceEvent::Commit { end: place(9) },
            statement("ALTER TABLE v ADD a INT"),
        ]));
        assert_eq!(received.end(), &place(9));
        assert_eq!(received.effect_on(&name("t"), None), DefinitionEffect::Unchanged(name("u")));
        assert_eq!(received.effect_on(&name("v"), None), DefinitionEffect::Changed);
        assert_eq!(
            received.effect_on(&name("v"), Some(&place(9))),
            DefinitionEffect::Unchanged(name("v"))
        );
        assert_eq!(received.effect_on(&name("u"), None), DefinitionEffect::Changed);
        assert_eq!(received.former_names(&name("t"), &place(9)), [name("t")]);
        assert_eq!(received.former_names(&name("t"), &place(8)), []);
        let Some((SourceEvent::Statement { .. }, Some(Statement::Rename(_)))) = received.pop()
        else {
            panic!("the statement comes with what it does");
        };
        while received.pop().is_some() {}
        assert_eq!(received.bytes(), 0);
        assert_eq!(received.effect_on(&name("v"), None), DefinitionEffect::Unchanged(name("v")));
    }

    #[test]
    fn name_used_by_another_table_in_between_is_not_kept() {
        let mut received = ReceivedEvents::default();
        for (at, sql) in [(1, "ALTER TABLE u ADD a INT"), (2, "RENAME TABLE t TO x, u TO t")] {
            let end = SourceEvent::Commit { end: place(at) };
            received.extend(VecDeque::from([statement(sql), end]));
        }
        let back = SourceEvent::Commit { end: place(3) };
        received.extend(VecDeque::from([statement("RENAME TABLE t TO u, x TO t"), back]));
        assert_eq!(received.effect_on(&name("t"), None), DefinitionEffect::Unchanged(name("t")));
        assert!(!received.keeps_name(&name("t"), &place(1), &place(3)));
        assert!(received.keeps_name(&name("t"), &place(0), &place(1)));
        assert!(!received.keeps_name(&name("u"), &place(0), &place(1)));
        assert!(received.keeps_name(&name("t"), &place(3), &place(9)));
    }
}
