//! A table as the shapes see it: its columns by name, and how each one compares.

use std::sync::Arc;

use remora_engine::{ColumnType, Schema};
use remora_mysql::Collation;

use super::{compared_column::ComparedColumn, constant::Comparable, shape::ColumnName};
use crate::{
    Column, Result, SqlType,
    catalog::{Reader, SqlTable, TableName, Verb},
    meaning::{collation::is_bytes, expr_type},
    shared::InstanceState,
    state::SessionState,
    transaction::Overlay,
};

/// A table of a statement.
#[derive(Debug)]
pub(super) struct ShapeTable {
    /// Its name in SQL.
    pub name: TableName,
    /// Its name or alias in the statement.
    alias: String,
    /// Its name in the engine.
    pub engine_name: String,
    /// Its declaration in SQL.
    pub sql: Arc<SqlTable>,
    /// Whether it is replicated. Then the source guarantees that no two keys are equal by collation.
    pub is_replicated: bool,
    /// The rows, of a temporary table of the session.
    pub temporary: Option<Arc<Overlay>>,
}

impl ShapeTable {
    /// The table of this name, which the statement calls `alias`; `None` if the engine has no such table, or if it has
    /// rows in other servers and the reader does not reach those.
    pub fn of(
        (database, table): (Option<&str>, &str),
        alias: Option<&str>,
        shared: &InstanceState,
        reader: &Reader,
    ) -> Option<Self> {
        let name = TableName::new(database?, table);
        let engine_name = name.engine_name(shared);
        let schema = reader.schema(&engine_name).ok()?;
        // Of others nothing is known but their declaration.
        if !schema.agents().is_empty() && !reader.has_remote_parts(&engine_name) {
            return None;
        }
        let alias = alias.unwrap_or(table).to_owned();
        let is_replicated = shared.host.source_of(&engine_name).is_some();
        let sql = SqlTable::of(&schema);
        Some(Self { name, alias, engine_name, sql, is_replicated, temporary: None })
    }

    /// The session's temporary table of this name, with its current rows.
    pub fn temporary(
        (database, table): (Option<&str>, &str),
        alias: Option<&str>,
        session: &SessionState,
    ) -> Option<Self> {
        let name = TableName::new(database?, table);
        let held = session.transaction.temporary(&name)?;
        let (sql, rows) = (SqlTable::of(&held.schema), Some(Arc::clone(&held.rows)));
        let alias = alias.unwrap_or(table).to_owned();
        let engine_name = String::new();
        Some(Self { name, alias, engine_name, sql, is_replicated: false, temporary: rows })
    }

    /// Whether it has rows in other servers.
    pub fn is_elsewhere(&self) -> bool {
        !self.schema().agents().is_empty()
    }

    /// Its name or alias in the statement.
    pub fn called(&self) -> &str {
        &self.alias
    }

    /// The definition that the plan was made for.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.sql.schema
    }

    /// Whether its definition is unchanged. Never true for a temporary table, because its rows are in this struct.
    pub fn is_current(&self, reader: &Reader) -> bool {
        if self.temporary.is_some() {
            return false;
        }
        let schema = reader.schema(&self.engine_name);
        schema.is_ok_and(|schema| Arc::ptr_eq(&schema, self.schema()))
    }

    /// Error 1142 if the session may not read it, or one of its parts.
    pub fn check(&self, session: &SessionState) -> Result<()> {
        self.name.check(&session.identity, Verb::Select)?;
        TableName::check_parts(self.schema(), &session.shared, &session.identity)
    }

    /// Whether the session has uncommitted changes in it.
    pub fn is_changed_by(&self, session: &SessionState) -> bool {
        let transaction = &session.transaction;
        self.temporary.is_none()
            && (transaction.overlay(&self.engine_name).is_some()
                || self.schema().parts().iter().any(|part| transaction.overlay(part).is_some())
                || transaction.temporary(&self.name).is_some())
    }

    /// Whether a qualifier of a column means this table. No qualifier means any table.
    pub fn is_called(&self, name: Option<&str>) -> bool {
        name.is_none_or(|name| name == self.alias)
    }

    /// The position of a column with this name.
    pub fn position(&self, column: &ColumnName) -> Option<usize> {
        if !self.is_called(column.table.as_deref()) {
            return None;
        }
        column.hidden.or_else(|| self.sql.column(&column.name))
    }

    /// Whether the column at a position holds sets of integers.
    pub fn is_set(&self, position: usize) -> bool {
        self.sql.columns.get(position).is_some_and(|spec| spec.kind.multi().is_some())
    }

    /// Whether the column at a position has documents, or texts that may be some.
    pub fn has_documents(&self, position: usize) -> bool {
        let columns = self.schema().columns.get(position).zip(self.sql.columns.get(position));
        columns.is_some_and(|(definition, spec)| match definition.kind {
            ColumnType::Json => expr_type(spec).kind == SqlType::Json,
            ColumnType::Text => spec.kind.is_text() && !spec.kind.has_labels(),
            _ => false,
        })
    }

    /// The position of a text column. A nullable column is refused under a negation.
    pub fn text_position(&self, column: &ColumnName, positive: bool) -> Option<usize> {
        let position = self.position(column)?;
        let nullable = self.schema().columns.get(position)?.nullable;
        (positive || !nullable).then_some(position)
    }

    /// A column that compares with literals, by its values or by its texts' collation keys.
    pub fn asked(&self, column: &ColumnName) -> Option<ComparedColumn> {
        self.asked_at(self.position(column)?)
    }

    /// The same for the column at a position.
    pub fn asked_at(&self, position: usize) -> Option<ComparedColumn> {
        let operand = self.operand(position)?;
        (operand.comparable.is_some() || operand.collation.is_some()).then_some(operand)
    }

    /// A column that can be tested for NULL.
    pub fn tested(&self, column: &ColumnName) -> Option<ComparedColumn> {
        self.operand(self.position(column)?)
    }

    /// A text column that conditions can test, and its collation.
    pub fn texts(&self, column: &ColumnName) -> Option<(ComparedColumn, Collation)> {
        self.texts_at(self.position(column)?)
    }

    /// The same for the column at a position.
    pub fn texts_at(&self, position: usize) -> Option<(ComparedColumn, Collation)> {
        let kind = &self.sql.columns.get(position)?.kind;
        let is_text = self.schema().columns.get(position)?.kind == ColumnType::Text;
        let has_letters = is_text && kind.is_text() && !kind.has_labels();
        has_letters.then(|| Some((self.operand(position)?, kind.collation)))?
    }

    /// The column at a position, if conditions can test it.
    pub fn operand(&self, position: usize) -> Option<ComparedColumn> {
        let definition = self.schema().columns.get(position)?;
        if !definition.indexed {
            return None;
        }
        let spec = self.sql.columns.get(position)?;
        let comparable = Comparable::of_condition(definition.kind, spec);
        let has_keys = definition.kind == ColumnType::Text && spec.kind.is_text();
        let collation = Some(spec.kind.collation).filter(|it| has_keys && !is_bytes(*it));
        Some(ComparedColumn { name: definition.name.clone(), comparable, collation })
    }

    /// The description of a result column with this name.
    pub fn described(&self, position: usize, name: &str) -> Option<Column> {
        let definition = self.schema().columns.get(position)?;
        let spec = self.sql.columns.get(position)?;
        let mut column = Column {
            database: self.name.database.clone(),
            table: self.alias.clone(),
            original_table: self.name.shown(),
            name: name.to_owned(),
            original_name: definition.name.clone(),
            kind: SqlType::Null,
            unsigned: false,
            not_null: false,
            primary_key: self.schema().primary_key.contains(&position),
            auto_increment: spec.auto_increment,
            collation: 0,
            length: 0,
            zerofill: false,
            decimals: None,
            keys: self.sql.column_keys.get(position).copied().unwrap_or_default(),
        };
        expr_type(spec).describe(&mut column);
        Some(column)
    }
}
