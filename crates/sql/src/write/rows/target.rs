//! The target table of a statement that changes rows.

use std::sync::Arc;

use remora_engine::{ColumnType, Row, Value};
use remora_mysql::{ErrorCode, messages};

use crate::{
    Error, Result,
    catalog::{ROW_NUMBER, SqlTable, TableName, Verb, View, not_a_table},
    error::from_engine,
    parse::Tokens,
    state::SessionState,
    transaction::{RowKey, TableStorage},
    write::unique::{UniqueKey, shown_key},
};

/// The target table of a statement.
#[derive(Clone)]
pub(crate) struct TargetTable {
    /// Its name.
    pub name: TableName,
    /// Where its rows are stored.
    pub place: TableStorage,
    /// Its declaration.
    pub table: Arc<SqlTable>,
    unique: Vec<UniqueKey>,
}

/// An existing row that conflicts with a new one.
#[derive(Clone, Debug)]
pub(crate) struct Duplicate {
    /// Its primary key.
    pub key: RowKey,
    /// Error 1062.
    pub error: Error,
}

/// Parses a table's name. The default database is the session's.
pub(crate) fn table_name(tokens: &mut Tokens<'_>, session: &SessionState) -> Result<TableName> {
    let first = tokens.name()?;
    if tokens.take(".") {
        return Ok(TableName::new(first, tokens.name()?));
    }
    Ok(TableName::new(session.current_database()?, first))
}

impl TargetTable {
    /// The table of this name, if the session may do `verb` to it.
    pub(crate) fn find(session: &SessionState, name: &TableName, verb: Verb) -> Result<Self> {
        if let Some(temporary) = session.transaction.temporary(name) {
            let table = SqlTable::of(&temporary.schema);
            return Ok(Self::new(name.clone(), TableStorage::Temporary(name.clone()), table));
        }
        Self::stored(session, name, verb)
    }

    /// The table of this name in the engine, whatever temporary table has the same name.
    pub(crate) fn stored(session: &SessionState, name: &TableName, verb: Verb) -> Result<Self> {
        name.check(&session.identity, verb)?;
        let engine_name = name.engine_name(&session.shared);
        let schema = session.reader().schema(&engine_name);
        let schema = schema.map_err(|_| no_table(session, name, verb))?;
        check_local(session, &engine_name)?;
        let place = TableStorage::Engine(engine_name.into());
        session.transaction.check_writable(&place)?;
        let target = Self::new(name.clone(), place, SqlTable::of(&schema));
        match verb {
            Verb::Drop | Verb::Rename | Verb::Select | Verb::Show => {}
            _ => target.check_rows_of_its_own(verb.words())?,
        }
        Ok(target)
    }

    /// Error 1288 for a distributed table, which has no rows of its own.
    pub(crate) fn check_rows_of_its_own(&self, what: &str) -> Result<()> {
        let schema = &self.table.schema;
        let parts = [schema.parts(), schema.agents()].concat();
        if parts.is_empty() {
            return Ok(());
        }
        let message = format!(
            "The target table {} of the {what} is not updatable: it is distributed over {}; name one of these",
            self.name.table,
            parts.join(", ")
        );
        Err(Error::new(ErrorCode::NotUpdatable, message))
    }

    /// A table that is being created.
    pub(crate) fn at(name: TableName, place: TableStorage, table: Arc<SqlTable>) -> Self {
        Self::new(name, place, table)
    }

    fn new(name: TableName, place: TableStorage, table: Arc<SqlTable>) -> Self {
        let unique = UniqueKey::of(&table, &place);
        Self { name, place, table, unique }
    }

    /// The primary key of a row.
    pub(crate) fn key(&self, row: &[Value]) -> RowKey {
        RowKey::of(&self.table.schema, row)
    }

    /// The first row that conflicts with this one. `own` is the key of the row that it replaces.
    pub(crate) fn duplicate(
        &self,
        session: &SessionState,
        row: &[Value],
        own: Option<&RowKey>,
    ) -> Result<Option<Duplicate>> {
        let key = self.key(row);
        if own != Some(&key) && session.transaction.row(&self.place, &key)?.is_some() {
            let shown = shown_key(&self.table.schema.primary_key, row);
            return Ok(Some(Duplicate { key, error: self.duplicate_error(&shown, "PRIMARY") }));
        }
        for unique in &self.unique {
            let Some(value) = unique.value(row) else { continue };
            let Some(entry) = session.transaction.row(&unique.place, &value)? else { continue };
            let owner = UniqueKey::owner(&entry);
            if own != Some(&owner) {
                let error = self.duplicate_error(&unique.shown(row), &unique.name);
                return Ok(Some(Duplicate { key: owner, error }));
            }
        }
        Ok(None)
    }

    /// Whether a row is like one of the same key that it would replace, and no other key is unique. MySQL then leaves
    /// that row as it is.
    pub(super) fn is_same(&self, old: &[Value], new: &[Value]) -> bool {
        let has_one_key = match self.table.row_number {
            Some(_) => self.unique.len() == 1,
            None => self.unique.is_empty(),
        };
        let mut pairs = old.iter().zip(new).enumerate();
        has_one_key
            && pairs.all(|(place, (old, new))| old == new || self.table.row_number == Some(place))
    }

    /// Error 1062.
    pub(crate) fn duplicate_error(&self, shown: &str, key: &str) -> Error {
        let shown: String = shown.chars().take(64).collect();
        let message = messages::duplicate_entry(shown, &self.name.table, key);
        Error::new(ErrorCode::DuplicateKey, message)
    }

    /// Inserts a row that conflicts with none. Error 1114 if a temporary table becomes too large.
    pub(crate) fn insert(&self, session: &mut SessionState, row: Row) -> Result<()> {
        let key = self.key(&row);
        for unique in &self.unique {
            if let Some(value) = unique.value(&row) {
                let entry = UniqueKey::entry(&value, &key);
                session.transaction.set(&unique.place, value, Some(entry));
            }
        }
        session.transaction.set(&self.place, key, Some(Arc::new(row)));
        session.transaction.check_room(&self.place)
    }

    /// Deletes a row.
    pub(crate) fn delete(&self, session: &mut SessionState, row: &[Value]) {
        for unique in &self.unique {
            if let Some(value) = unique.value(row) {
                session.transaction.set(&unique.place, value, None);
            }
        }
        session.transaction.set(&self.place, self.key(row), None);
    }

    /// Replaces a row by another. Error 1062 if it conflicts with a third.
    pub(crate) fn update(
        &self,
        session: &mut SessionState,
        old: &[Value],
        new: Row,
    ) -> Result<Option<Duplicate>> {
        let own = self.key(old);
        if let Some(duplicate) = self.duplicate(session, &new, Some(&own))? {
            return Ok(Some(duplicate));
        }
        for unique in &self.unique {
            let (before, after) = (unique.value(old), unique.value(&new));
            if before != after
                && let Some(value) = before
            {
                session.transaction.set(&unique.place, value, None);
            }
        }
        if own != self.key(&new) {
            session.transaction.set(&self.place, own, None);
        }
        if let Some(column) = self.table.auto_increment().filter(|_| self.counted().is_some())
            && let Some(value) = new.get(column)
            && old.get(column) != Some(value)
            && let Some(number) = counter_value(value)
        {
            self.pass_value(session, column, number)?;
        }
        self.insert(session, new)?;
        Ok(None)
    }

    /// The row with this key, as the session sees it.
    pub(crate) fn row(&self, session: &SessionState, key: &RowKey) -> Result<Option<Arc<Row>>> {
        session.transaction.row(&self.place, key)
    }

    /// The key at a position of a row of [`super::named::key_items`]; `None` for a row of NULLs from an outer join.
    pub(super) fn key_of(&self, row: &[Value], at: usize) -> Option<RowKey> {
        let schema = &self.table.schema;
        let parts = row.get(at..at + schema.primary_key.len())?;
        let part = |(value, &position): (&Value, &usize)| {
            let kind = schema.columns.get(position).map(|column| column.kind);
            match (value, kind) {
                (Value::Null, _) => None,
                (Value::DateTime(moment), Some(ColumnType::Timestamp)) => {
                    moment.to_timestamp().map(Value::Timestamp)
                }
                (value, _) => Some(value.clone()),
            }
        };
        let parts = parts.iter().zip(&schema.primary_key).map(part);
        parts.collect::<Option<_>>().map(RowKey)
    }

    /// The engine's name of the table, if it is not temporary.
    pub(crate) fn engine_name(&self) -> Option<&Arc<str>> {
        match &self.place {
            TableStorage::Engine(name) => Some(name),
            TableStorage::Temporary(_) => None,
        }
    }

    /// The column with a counter: AUTO_INCREMENT, or the hidden row number.
    pub(crate) fn counted(&self) -> Option<usize> {
        let counts = !self.table.schema.is_distributed();
        self.table.auto_increment().or(self.table.row_number).filter(|_| counts)
    }

    /// Takes the next value of a column's counter.
    pub(crate) fn next_value(&self, session: &mut SessionState, column: usize) -> Result<u64> {
        match &self.place {
            TableStorage::Temporary(name) => {
                let beside = self.is_beside(column);
                let Some(next) = session.transaction.temporary_counter(name, beside) else {
                    return Err(name.missing());
                };
                let taken = *next;
                *next = taken.saturating_add(1);
                Ok(taken)
            }
            TableStorage::Engine(table) => {
                let (shared, counter) = (&session.shared, self.counter(table, column));
                let name = self.column_name(column);
                let taken = shared.counters.take(shared, &counter, table, name)?;
                self.store_counter(session, &counter);
                Ok(taken)
            }
        }
    }

    /// Moves a column's counter past a given value.
    pub(crate) fn pass_value(
        &self,
        session: &mut SessionState,
        column: usize,
        given: u64,
    ) -> Result<()> {
        match &self.place {
            TableStorage::Temporary(name) => {
                let beside = self.is_beside(column);
                if let Some(next) = session.transaction.temporary_counter(name, beside) {
                    *next = (*next).max(given.saturating_add(1));
                }
            }
            TableStorage::Engine(table) => {
                let (shared, counter) = (&session.shared, self.counter(table, column));
                let name = self.column_name(column);
                shared.counters.pass(shared, &counter, table, name, given)?;
                self.store_counter(session, &counter);
            }
        }
        Ok(())
    }

    /// Whether a column is a hidden row number beside an AUTO_INCREMENT column.
    fn is_beside(&self, column: usize) -> bool {
        self.table.row_number == Some(column) && self.table.auto_increment().is_some()
    }

    /// The name of a column's counter: the table's name, with a suffix for a hidden row number beside AUTO_INCREMENT.
    fn counter(&self, table: &str, column: usize) -> String {
        if self.is_beside(column) { format!("{table}{ROW_NUMBER}") } else { table.to_owned() }
    }

    /// The next AUTO_INCREMENT value or row number, if the table has one.
    pub(crate) fn peek_value(&self, session: &SessionState) -> Result<Option<u64>> {
        let Some(column) = self.counted() else { return Ok(None) };
        match &self.place {
            TableStorage::Temporary(name) => {
                Ok(session.transaction.temporary(name).map(|table| table.next))
            }
            TableStorage::Engine(table) => {
                let shared = &session.shared;
                let name = self.column_name(column);
                shared.counters.peek(shared, table, name).map(Some)
            }
        }
    }

    /// Sets the AUTO_INCREMENT counter, but not below existing values.
    pub(crate) fn raise_counter(&self, session: &mut SessionState, next: u64) -> Result<()> {
        let Some(column) = self.counted() else { return Ok(()) };
        let TableStorage::Engine(table) = &self.place else {
            return self.pass_value(session, column, next.saturating_sub(1));
        };
        let shared = &session.shared;
        shared.counters.raise(shared, table, self.column_name(column), next)?;
        Ok(())
    }

    fn store_counter(&self, session: &mut SessionState, counter: &str) {
        if let Some((name, value)) = session.shared.counters.stored(counter) {
            session.transaction.store_position(name, value);
        }
    }

    fn column_name(&self, column: usize) -> &str {
        self.table.schema.columns.get(column).map_or("", |column| column.name.as_str())
    }
}

/// What the counter of an AUTO_INCREMENT column passes for a value that a row is given; nothing for one below zero.
pub(super) fn counter_value(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::Uint(number) => Some(*number),
        Value::Float(number) if *number >= 0.0 => Some(*number as u64),
        _ => None,
    }
}

/// Error 1290 for a table that follows a source.
pub(crate) fn check_local(session: &SessionState, engine_name: &str) -> Result<()> {
    match session.shared.host.source_of(engine_name) {
        None => Ok(()),
        Some(source) => Err(Error::new(
            ErrorCode::OptionPreventsStatement,
            format!(
                "Table '{engine_name}' follows the source '{source}' and is read-only here, so it \
                 cannot execute this statement"
            ),
        )),
    }
}

/// The error for a statement on a name that is not a table: 1146, or the error for views.
fn no_table(session: &SessionState, name: &TableName, verb: Verb) -> Error {
    if !View::is_there(&session.reader(), name) {
        return name.missing();
    }
    let (code, of, wish) = match verb {
        Verb::Insert | Verb::Replace => (ErrorCode::NotInsertable, "INSERT", "insertable-into"),
        Verb::Update => (ErrorCode::NotUpdatable, "UPDATE", "updatable"),
        Verb::Delete => (ErrorCode::NotUpdatable, "DELETE", "updatable"),
        Verb::Rename => return Error::unsupported("RENAME of a view together with others"),
        Verb::Alter | Verb::Index => return not_a_table(name),
        // These statements do not accept a view.
        Verb::Drop | Verb::Create | Verb::CreateView | Verb::Select | Verb::Show => {
            return name.missing();
        }
    };
    let message = format!("The target table {} of the {of} is not {wish}", name.table);
    Error::new(code, message)
}

/// The declaration of a table that a statement names, if the session may do `verb` to it; error 1142 otherwise.
pub(crate) fn table_of(
    session: &SessionState,
    name: &TableName,
    verb: Verb,
) -> Result<Arc<SqlTable>> {
    if let Some(temporary) = session.transaction.temporary(name) {
        return Ok(SqlTable::of(&temporary.schema));
    }
    name.check(&session.identity, Verb::Select)?;
    let engine_name = name.engine_name(&session.shared);
    let schema = session.reader().schema(&engine_name);
    let schema = schema.map_err(|_| no_table(session, name, verb))?;
    // CREATE TABLE … LIKE needs the columns that the agents report. ALTER needs only the table's own declaration.
    if schema.agents().is_empty() || verb == Verb::Alter {
        return Ok(SqlTable::of(&schema));
    }
    let gathered = session.reading().schema(&engine_name).map_err(|error| from_engine(&error))?;
    Ok(SqlTable::of(&gathered))
}

/// Error 1235 for a locking read of a table with rows on other servers.
pub(crate) fn check_lockable(session: &SessionState, name: &TableName) -> Result<()> {
    // The reader itself reports missing rights.
    let may_read = name.check(&session.identity, Verb::Select).is_ok();
    let schema = session.reader().schema(&name.engine_name(&session.shared));
    match may_read && schema.is_ok_and(|schema| !schema.agents().is_empty()) {
        true => Err(Error::unsupported(
            "FOR UPDATE and FOR SHARE of a table with rows in other servers",
        )),
        false => Ok(()),
    }
}

/// The column of the target table that has this name, qualified or not.
pub(super) fn column_of(path: &[String], target: &TargetTable) -> Result<usize> {
    let name = path.last().map_or("", String::as_str);
    check_found(target.table.column(name), name)
}

/// Error 1054 if nothing was found.
pub(super) fn check_found<T>(found: Option<T>, name: &str) -> Result<T> {
    found.ok_or_else(|| Error::unknown_column(name, "field list"))
}
