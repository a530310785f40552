//! A table as the shapes see it: its columns by name, and how each is compared.

use std::sync::Arc;

use remora_engine::{ColumnType, Schema};
use remora_mysql::Collation;

use super::{condition::Operand, constant::Comparable, shape::ColumnName};
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
pub(super) struct Table {
    /// Its names in SQL.
    pub name: TableName,
    /// What the statement calls it.
    alias: String,
    /// What the engine calls it.
    pub engine_name: String,
    /// What SQL knows of it.
    pub sql: Arc<SqlTable>,
    /// Whether a source vouches for its keys: no two are equal by their collations.
    pub is_replicated: bool,
    /// All its rows, of a temporary table of the session.
    pub temporary: Option<Arc<Overlay>>,
}

impl Table {
    /// The table of this name that a statement calls `alias`; `None` if it is not one of the
    /// engine's.
    pub fn of(
        (database, table): (Option<&str>, &str),
        alias: Option<&str>,
        shared: &InstanceState,
        reader: &Reader,
    ) -> Option<Self> {
        let name = TableName::new(database?, table);
        let engine_name = name.engine_name(shared);
        // What other servers have is planned.
        let schema = reader.schema(&engine_name).ok().filter(|it| it.agents().is_empty())?;
        let alias = alias.unwrap_or(table).to_owned();
        let is_replicated = shared.host.source_of(&engine_name).is_some();
        let sql = SqlTable::of(&schema);
        Some(Self { name, alias, engine_name, sql, is_replicated, temporary: None })
    }

    /// The session's temporary table of this name, with the rows that it has now.
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

    /// What the statement calls it.
    pub fn called(&self) -> &str {
        &self.alias
    }

    /// The definition it was made ready for.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.sql.schema
    }

    /// Whether it is still the one that it was. A temporary table is not: its rows are here.
    pub fn is_current(&self, reader: &Reader) -> bool {
        if self.temporary.is_some() {
            return false;
        }
        let schema = reader.schema(&self.engine_name);
        schema.is_ok_and(|schema| Arc::ptr_eq(&schema, self.schema()))
    }

    /// 1142 if it, or a table whose rows it has, may not be read.
    pub fn check(&self, session: &SessionState) -> Result<()> {
        self.name.check(&session.identity, Verb::Select)?;
        TableName::check_parts(self.schema(), &session.shared, &session.identity)
    }

    /// Whether the session has rows of its own in it that nobody else sees.
    pub fn is_changed_by(&self, session: &SessionState) -> bool {
        let transaction = &session.transaction;
        self.temporary.is_none()
            && (transaction.overlay(&self.engine_name).is_some()
                || self.schema().parts().iter().any(|part| transaction.overlay(part).is_some())
                || transaction.temporary(&self.name).is_some())
    }

    /// Whether a name in front of a column means it.
    pub fn is_called(&self, name: Option<&str>) -> bool {
        name.is_none_or(|name| name == self.alias)
    }

    /// The position of a column.
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

    /// The position of a column of text; one that may be NULL has no negation here.
    pub fn text_position(&self, column: &ColumnName, positive: bool) -> Option<usize> {
        let position = self.position(column)?;
        let nullable = self.schema().columns.get(position)?.nullable;
        (positive || !nullable).then_some(position)
    }

    /// A column that is compared with constants, by its values or by the keys of its texts.
    pub fn asked(&self, column: &ColumnName) -> Option<Operand> {
        let operand = self.tested(column)?;
        (operand.comparable.is_some() || operand.collation.is_some()).then_some(operand)
    }

    /// A column that may be asked for NULL.
    pub fn tested(&self, column: &ColumnName) -> Option<Operand> {
        self.operand(self.position(column)?)
    }

    /// A column of texts that conditions can be asked of, and how they compare.
    pub fn texts(&self, column: &ColumnName) -> Option<(Operand, Collation)> {
        self.texts_at(self.position(column)?)
    }

    /// The same of the column at a position.
    pub fn texts_at(&self, position: usize) -> Option<(Operand, Collation)> {
        let kind = &self.sql.columns.get(position)?.kind;
        let is_text = self.schema().columns.get(position)?.kind == ColumnType::Text;
        let has_letters = is_text && kind.is_text() && !kind.has_labels();
        has_letters.then(|| Some((self.operand(position)?, kind.collation)))?
    }

    /// The column at a position, if conditions can be asked of it.
    pub fn operand(&self, position: usize) -> Option<Operand> {
        let definition = self.schema().columns.get(position)?;
        if !definition.indexed {
            return None;
        }
        let spec = self.sql.columns.get(position)?;
        let comparable = Comparable::of_condition(definition.kind, spec);
        let has_keys = definition.kind == ColumnType::Text && spec.kind.is_text();
        let collation = Some(spec.kind.collation).filter(|it| has_keys && !is_bytes(*it));
        Some(Operand { name: definition.name.clone(), comparable, collation })
    }

    /// What a client is told of a column that is selected under this name.
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
        };
        expr_type(spec).describe(&mut column);
        Some(column)
    }
}
