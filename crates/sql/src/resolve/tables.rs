//! Finds the tables of a statement: those of the engine's snapshot, the session's temporary tables, and system tables.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use datafusion::{catalog::TableProvider, sql::sqlparser::ast::Query};
use parking_lot::Mutex;
use remora_engine::Value;
use remora_mysql::{ErrorCode, SqlMode, TokenKind, messages};
use rustc_hash::FxHashMap;

use super::{Catalog, assigned, assigned::plain_name, views::recursive};
use crate::{
    Error, Result,
    catalog::{ExpressionSettings, Reader, TableName, Verb, View, database_exists},
    error::from_engine,
    parse::Source,
    scan::EngineTable,
    show::{self, RequestedTables},
    state::SessionState,
};

/// The variables that a statement assigns with `:=`.
fn assigned_names(source: &Source) -> Vec<String> {
    let behind = source.tokens.iter().skip(1);
    let pairs = source.tokens.iter().zip(behind).filter(|(variable, sign)| {
        variable.kind == TokenKind::UserVariable
            && sign.kind == TokenKind::Operator
            && source.bytes(sign) == b":="
    });
    pairs
        .map(|(variable, _)| plain_name(&String::from_utf8_lossy(source.bytes(variable))))
        .collect()
}

/// Whether a statement contains `LAST_INSERT_ID(value)`.
fn gives_id(source: &Source) -> bool {
    (0..source.tokens.len()).any(|at| {
        source.is_word(at, "LAST_INSERT_ID") && source.is(at + 1, "(") && !source.is(at + 2, ")")
    })
}

/// The tables and variables of a session, as one statement sees them.
pub(crate) struct SessionCatalog<'a> {
    session: &'a SessionState,
    reader: Reader,
    /// The user variables that the statement assigns, as [`plain_name`] writes them. They are read
    /// at run time.
    assigned: Vec<String>,
    /// Whether it calls `LAST_INSERT_ID(value)` for the rows that it selects.
    gives_id: bool,
    known: Mutex<FxHashMap<TableName, Arc<dyn TableProvider>>>,
    rows: Mutex<usize>,
    /// Whether a table has rows on other servers.
    has_remote_parts: AtomicBool,
    /// The view that the statement creates.
    made: Option<TableName>,
    /// Whether a client sent the statement as a SELECT.
    is_client: bool,
}

impl<'a> SessionCatalog<'a> {
    /// For a statement of which only the text is known.
    pub(crate) fn new(session: &'a SessionState, source: &Source) -> Self {
        Self::with(session, assigned_names(source), gives_id(source))
    }

    /// For a query, which may be a part of a statement. Costs a walk through it.
    pub(crate) fn of(session: &'a SessionState, query: &Query) -> Self {
        Self::with(session, assigned::assigned_in(query), assigned::gives_id(query))
    }

    fn with(session: &'a SessionState, assigned: Vec<String>, gives_id: bool) -> Self {
        let reader = session.reading();
        let has_remote_parts = AtomicBool::new(false);
        let (known, rows) = (Mutex::default(), Mutex::default());
        Self {
            session,
            reader,
            assigned,
            gives_id,
            known,
            rows,
            has_remote_parts,
            made: None,
            is_client: false,
        }
    }

    /// Whether the statement's expressions have side effects, so that they must be evaluated row by
    /// row in order: assigned variables or `LAST_INSERT_ID(value)`.
    pub(crate) fn is_in_turn(&self) -> bool {
        !self.assigned.is_empty() || self.gives_id
    }

    /// For a client's SELECT, which may be in Sphinx's dialect. Queries in other statements have
    /// MySQL's meaning.
    pub(crate) fn for_client(self) -> Self {
        Self { is_client: true, ..self }
    }

    /// For the query of a new view.
    pub(crate) fn for_view(self, name: TableName) -> Self {
        Self { made: Some(name), ..self }
    }

    /// The total number of rows in the tables used.
    pub(crate) fn rows(&self) -> usize {
        *self.rows.lock()
    }

    /// Whether a table used has rows on other servers.
    pub(crate) fn has_remote_parts(&self) -> bool {
        self.has_remote_parts.load(Ordering::Relaxed)
    }

    fn find(&self, name: &TableName) -> Result<Arc<dyn TableProvider>> {
        if let Some(table) = show::system_table(self.session, name, &RequestedTables::default())? {
            return Ok(table);
        }
        let shared = &self.session.shared;
        let zone = self.session.variables.time_zone.zone.clone();
        let transaction = &self.session.transaction;
        if let Some(table) = transaction.temporary(name) {
            if self.made.is_some() {
                let message = format!("View's SELECT refers to a temporary table '{}'", name.table);
                return Err(Error::new(ErrorCode::ViewTemporaryTable, message));
            }
            let table = EngineTable::temporary(self.reader.clone(), name, table, zone);
            return Ok(Arc::new(table));
        }
        let mut listed = name.each();
        if name.each().nth(1).is_some() && listed.any(|it| transaction.temporary(&it).is_some()) {
            return Err(Error::unsupported("temporary tables among several tables as one"));
        }
        name.check(&self.session.identity, Verb::Select)?;
        let engine_name = name.engine_name(shared);
        let mut reader = self.reader.clone();
        let mut changed = None;
        for part in self.reader.parts(&engine_name) {
            let table = TableName::of_engine(&part, shared);
            table.check(&self.session.identity, Verb::Select)?;
            changed = changed.or_else(|| transaction.overlay(&part));
        }
        if changed.is_some() {
            reader = self.session.reading_own()?;
        }
        if self.reader.has_remote_parts(&engine_name) {
            self.has_remote_parts.store(true, Ordering::Relaxed);
        }
        let overlay = transaction.overlay(&engine_name);
        let own = overlay.is_some().then(|| transaction.own_changes()).flatten();
        match EngineTable::new(reader, name, engine_name, (overlay, own), zone) {
            Ok(table) => {
                *self.rows.lock() += table.rows();
                Ok(Arc::new(table))
            }
            Err(remora_engine::Error::NotFound { .. }) => Err(self.missing(name)),
            Err(error) => Err(from_engine(&error)),
        }
    }

    fn missing(&self, name: &TableName) -> Error {
        if database_exists(&self.session.shared, &name.database) {
            let shared = &self.session.shared;
            let is_there =
                |table: &TableName| self.reader.schema(&table.engine_name(shared)).is_ok();
            let missing = name.each().find(|table| !is_there(table));
            return missing.unwrap_or_else(|| name.clone()).missing();
        }
        Error::new(ErrorCode::UnknownDatabase, messages::unknown_database(&name.database))
    }
}

impl Catalog for SessionCatalog<'_> {
    fn table(&self, name: &TableName) -> Result<Arc<dyn TableProvider>> {
        if let Some(known) = self.known.lock().get(name) {
            return Ok(Arc::clone(known));
        }
        let table = self.find(name)?;
        self.known.lock().insert(name.clone(), Arc::clone(&table));
        Ok(table)
    }

    fn table_with(
        &self,
        name: &TableName,
        requested_tables: &RequestedTables,
    ) -> Result<Arc<dyn TableProvider>> {
        // Not cached, because the statement may use the table again with another condition.
        if !requested_tables.is_all()
            && let Some(table) = show::system_table(self.session, name, requested_tables)?
        {
            return Ok(table);
        }
        self.table(name)
    }

    fn view(&self, name: &TableName) -> Result<Option<View>> {
        let Some(view) = View::find(&self.reader, name).transpose() else { return Ok(None) };
        let is_table = self.session.transaction.temporary(name).is_some()
            || self.reader.schema(&name.engine_name(&self.session.shared)).is_ok();
        if is_table {
            return Ok(None);
        }
        name.check(&self.session.identity, Verb::Select)?;
        if self.made.as_ref() == Some(name) {
            return Err(recursive(name));
        }
        view.map(Some)
    }

    fn database(&self) -> Result<&str> {
        self.session.current_database()
    }

    fn variable(&self, name: &str) -> Result<Option<Value>> {
        match name.strip_prefix("@@") {
            Some(name) => self.session.system_variable(name).map(Some),
            None => {
                let name = plain_name(name);
                let is_assigned = self.assigned.contains(&name);
                Ok((!is_assigned).then(|| self.session.user_variable(&name)))
            }
        }
    }

    fn before(&self, name: &str) -> Option<Value> {
        self.session.user_variables.find(&plain_name(name))
    }

    fn only_full_group_by(&self) -> bool {
        self.session.variables.sql_mode.has(SqlMode::ONLY_FULL_GROUP_BY)
    }

    fn is_sphinx(&self) -> bool {
        self.is_client && self.session.variables.is_sphinx
    }

    fn expression_settings(&self) -> ExpressionSettings {
        let variables = &self.session.variables;
        ExpressionSettings::new(
            variables.collation_connection,
            &variables.time_zone.zone,
            variables.sql_mode,
        )
    }
}
