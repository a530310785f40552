//! The SQL declaration of a table beyond the engine's definition: types with lengths, signs and collations, defaults,
//! keys, options.
//!
//! The engine stores it as text, in the form of SHOW CREATE TABLE. It is parsed once for each schema. For a table that
//! was not created by SQL, it is derived from the engine's types.

use std::sync::Arc;

use remora_engine::{ColumnDef, ColumnType, Schema};

use super::{ColumnSpec, ExpressionKey, RoundedKey, TableOptions, column_line};
use crate::{
    ColumnKeys,
    identity::STORED_POINT,
    parse::define::{Check, ForeignKey, Key, PartOf, TableLine, quoted_name, quoted_text},
};

/// The name of the hidden key column of a table without a primary key.
pub(crate) const ROW_NUMBER: &str = remora_engine::HIDDEN_KEY;

/// The name of the hidden column for an expression in a key.
pub(crate) fn key_column(key: &str, part: usize) -> String {
    format!("{}{part}.{key}", remora_engine::HIDDEN_PREFIX)
}

/// The columns of a percolate table and their declarations.
pub(crate) fn percolate_columns() -> [(&'static str, &'static str); 4] {
    [
        ("id", "bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY"),
        ("query", "longtext NOT NULL DEFAULT ('')"),
        ("tags", "longtext NOT NULL DEFAULT ('')"),
        ("filters", "longtext NOT NULL DEFAULT ('')"),
    ]
}

/// The hidden key column of a table without a primary key.
pub(crate) fn row_number_column(id: u32) -> ColumnDef {
    ColumnDef {
        id,
        name: ROW_NUMBER.to_owned(),
        kind: ColumnType::Uint(64),
        nullable: false,
        indexed: true,
        declared: None,
    }
}

/// A table with its SQL declaration.
#[derive(Clone, Debug)]
pub(crate) struct SqlTable {
    /// The engine's definition.
    pub schema: Arc<Schema>,
    /// The declaration of each column, in the schema's order.
    pub columns: Vec<ColumnSpec>,
    /// The position of the hidden row number, if it has one.
    pub row_number: Option<usize>,
    /// Its keys, the primary key first if it has one.
    pub keys: Vec<Key>,
    /// CHECK conditions.
    pub checks: Vec<Check>,
    /// Foreign keys, which are not enforced.
    pub foreign: Vec<ForeignKey>,
    /// Its options.
    pub options: TableOptions,
    /// The expressions of its functional keys.
    pub expressions: Vec<ExpressionKey>,
    /// Generated columns that hold rounded values of expressions.
    pub rounded: Vec<RoundedKey>,
    /// What clients are told of each column's keys, in the schema's order.
    pub column_keys: Vec<ColumnKeys>,
}

impl SqlTable {
    /// The columns that SQL shows, with their positions in the schema. Hidden columns are left out.
    pub(crate) fn visible(&self) -> impl Iterator<Item = (usize, &ColumnDef, &ColumnSpec)> {
        let pairs = self.schema.columns.iter().zip(&self.columns).enumerate();
        let shown = pairs.filter(|(position, _)| !self.schema.is_hidden(*position));
        shown.map(|(position, (column, spec))| (position, column, spec))
    }

    /// The columns that a statement may name: those that SQL shows, and the hidden row number, which `*` omits.
    pub(crate) fn nameable(&self) -> impl Iterator<Item = (usize, &ColumnDef, &ColumnSpec)> {
        let hidden = self.row_number.and_then(|position| {
            Some((position, self.schema.columns.get(position)?, self.columns.get(position)?))
        });
        self.visible().chain(hidden)
    }

    /// The position of a column by its case-insensitive name.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        let mut visible = self.visible();
        let lower = name.to_lowercase();
        visible
            .find(|(_, column, _)| {
                column.name.eq_ignore_ascii_case(name) || column.name.to_lowercase() == lower
            })
            .map(|(position, ..)| position)
    }

    /// The position of a key part's column. An expression has a hidden column, unless its key is not checked here.
    pub(crate) fn key_part(&self, key: &Key, part: usize) -> Option<usize> {
        match &key.parts.get(part)?.of {
            PartOf::Column(name) => self.column(name),
            PartOf::Expression(_) => {
                let name = key_column(&key.name, part);
                self.schema.columns.iter().position(|column| column.name == name)
            }
        }
    }

    /// Whether a column is the first one of an index.
    pub(crate) fn leads_index(&self, position: usize) -> bool {
        let mut firsts = self.schema.indexes.iter().filter_map(|index| index.columns.first());
        firsts.any(|first| first.column == position)
    }

    /// Whether an index has prefixes of a column that segments do not hold.
    pub(crate) fn has_prefixes(&self, position: usize) -> bool {
        let mut parts = self.schema.indexes.iter().flat_map(|index| &index.columns);
        // Servers of earlier versions do not understand conditions on prefixes.
        self.schema.agents().is_empty()
            && parts.any(|part| part.column == position && part.prefix.is_some())
    }

    /// The position of the AUTO_INCREMENT column.
    pub(crate) fn auto_increment(&self) -> Option<usize> {
        self.columns.iter().position(|column| column.auto_increment)
    }

    /// The CREATE TABLE statement with this name. `next` is the next AUTO_INCREMENT value.
    pub(crate) fn create_statement(
        &self,
        name: &str,
        next: Option<u64>,
        temporary: bool,
    ) -> String {
        if self.schema.is_distributed() {
            return self.distributed_statement(name);
        }
        if let Some(documents) = self.schema.documents() {
            let made = Self::once(documents.clone()).create_statement(name, None, false);
            let next = next.filter(|next| *next > 1);
            let next = next.map_or_else(String::new, |next| format!(" AUTO_INCREMENT={next}"));
            return format!("{made}{next} type='pq'");
        }
        let collation = self.options.collation;
        let mut lines: Vec<String> = self
            .visible()
            .map(|(_, column, spec)| {
                let declared = column.declared.clone();
                column_line(&column.name, &declared.unwrap_or_else(|| spec.written(collation)))
            })
            .collect();
        lines.extend(self.lines().iter().map(|line| format!("  {}", line.written())));
        let temporary = if temporary { "TEMPORARY " } else { "" };
        let next = next.filter(|_| self.auto_increment().is_some());
        format!(
            "CREATE {temporary}TABLE {} (\n{}\n) {}",
            quoted_name(name),
            lines.join(",\n"),
            self.options.written(next)
        )
    }

    /// The statement of a distributed table.
    fn distributed_statement(&self, name: &str) -> String {
        let database = |name: &str| name.split_once('.').map(|(database, _)| database.to_owned());
        let own = database(&self.schema.name);
        let mut statement = format!("CREATE TABLE {} type='distributed'", quoted_name(name));
        for part in self.schema.parts() {
            let short = match part.split_once('.') {
                Some((of, table)) if own.as_deref() == Some(of) => table.to_owned(),
                Some((of, table)) => format!("{}.{table}", of.replace(STORED_POINT, ".")),
                None => part.clone(),
            };
            statement.push_str(&format!(" local={}", quoted_text(&short)));
        }
        for agent in self.schema.agents() {
            statement.push_str(&format!(" agent={}", quoted_text(agent)));
        }
        for (name, value) in self.schema.agent_settings() {
            statement.push_str(&format!(" {name}={}", quoted_text(value)));
        }
        statement
    }

    /// The lines after the columns, in the order in which they are printed.
    pub(crate) fn lines(&self) -> Vec<TableLine> {
        let keys = self.keys.iter().cloned().map(TableLine::Key);
        let foreign = self.foreign.iter().cloned().map(TableLine::Foreign);
        keys.chain(foreign).chain(self.checks.iter().cloned().map(TableLine::Check)).collect()
    }
}
