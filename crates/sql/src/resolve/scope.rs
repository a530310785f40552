//! Scopes: what a name means at a place of a statement.

use datafusion::sql::sqlparser::ast::{Expr, Ident};
use remora_mysql::ErrorCode;

use crate::{Error, Result};

/// A table, derived table or common table expression in FROM.
#[derive(Clone, Debug)]
pub(super) struct Relation {
    /// What the statement calls it.
    pub alias: String,
    /// The database, of tables.
    pub database: Option<String>,
    /// What plans call it: no other relation of the statement is called so.
    pub unique: String,
    /// Its columns: as they are called, and as plans call them.
    pub columns: Vec<Named>,
    /// The columns of its primary key, in lower case; empty if it has none.
    pub key: Vec<String>,
    /// Whether it is a view, whose columns are called as they are there, however they are written.
    pub is_view: bool,
}

/// A column's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// As clients see it.
    pub shown: String,
    /// As plans have it: in lower case and unique among its relation's.
    pub planned: String,
    /// Whether `*` and NATURAL JOIN leave it out: invisible, or a hidden row number.
    pub hidden: bool,
}

impl Named {
    /// Whether a name in lower case means it.
    pub(super) fn is(&self, lower: &str) -> bool {
        self.shown.to_lowercase() == lower
    }
}

/// A column that can be named without its relation.
#[derive(Clone, Debug)]
pub(super) struct Visible {
    pub name: Named,
    /// What it stands for.
    pub expr: Expr,
    /// The alias of its relation; empty where two were merged.
    pub table: String,
}

/// The relations of one SELECT, within those of the SELECTs around it.
pub(super) struct Scope<'p> {
    pub relations: Vec<Relation>,
    pub visible: Vec<Visible>,
    pub parent: Option<&'p Scope<'p>>,
}

/// A part of a statement, as errors call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clause {
    Fields,
    Where,
    On,
    Group,
    Having,
    Order,
    /// What a JSON_TABLE is of.
    TableFunction,
}

impl Clause {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Fields => "field list",
            Self::Where => "where clause",
            Self::On => "on clause",
            Self::Group => "group statement",
            Self::Having => "having clause",
            Self::Order => "order clause",
            Self::TableFunction => "a table function argument",
        }
    }
}

impl Relation {
    /// The reference to a column of it.
    pub(super) fn reference(&self, planned: &str) -> Expr {
        Expr::CompoundIdentifier(vec![quoted(&self.unique), quoted(planned)])
    }

    /// All columns, as they can be named.
    pub(super) fn visible(&self) -> Vec<Visible> {
        let one = |name: &Named| Visible {
            expr: self.reference(&name.planned),
            name: name.clone(),
            table: self.alias.clone(),
        };
        self.columns.iter().map(one).collect()
    }

    /// Whether `database.alias` means it.
    fn is_called(&self, database: Option<&str>, alias: &str) -> bool {
        let same = database.is_none_or(|database| self.database.as_deref() == Some(database));
        same && self.alias == alias
    }
}

impl<'p> Scope<'p> {
    pub(super) fn new(parent: Option<&'p Scope<'p>>) -> Self {
        Self { relations: Vec::new(), visible: Vec::new(), parent }
    }

    /// Adds relations and what can be named of them; 1066 if two have one name.
    pub(super) fn add(&mut self, relations: Vec<Relation>, visible: Vec<Visible>) -> Result<()> {
        for relation in relations {
            let database = relation.database.as_deref();
            let twice = |other: &Relation| {
                other.alias == relation.alias && other.database.as_deref() == database
            };
            if self.relations.iter().any(twice) {
                return Err(not_unique(&relation.alias));
            }
            self.relations.push(relation);
        }
        self.visible.extend(visible);
        Ok(())
    }

    /// What a name means here or further out; `None` if it means nothing, 1052 if several things.
    pub(super) fn find(&self, name: &[Ident], clause: Clause) -> Result<Option<Expr>> {
        if let Some(found) = self.find_here(name, clause)? {
            return Ok(Some(found));
        }
        self.parent.map_or(Ok(None), |parent| parent.find(name, clause))
    }

    /// What a name means in this SELECT itself.
    pub(super) fn find_here(&self, name: &[Ident], clause: Clause) -> Result<Option<Expr>> {
        let column = |ident: &Ident| ident.value.to_lowercase();
        match name {
            [last] => self.unqualified(&column(last), &last.value, clause),
            [table, last] => Ok(self.qualified(None, &table.value, &column(last))),
            [database, table, last] => {
                Ok(self.qualified(Some(&database.value), &table.value, &column(last)))
            }
            _ => Ok(None),
        }
    }

    fn unqualified(&self, lower: &str, written: &str, clause: Clause) -> Result<Option<Expr>> {
        let mut found = self.visible.iter().filter(|each| each.name.is(lower));
        let first = found.next().map(|visible| visible.expr.clone());
        if found.next().is_some() {
            let message = format!("Column '{written}' in {} is ambiguous", clause.name());
            return Err(Error::new(ErrorCode::AmbiguousColumn, message));
        }
        Ok(first)
    }

    fn qualified(&self, database: Option<&str>, alias: &str, column: &str) -> Option<Expr> {
        let relation = self.relation(database, alias)?;
        let named = relation.columns.iter().find(|named| named.is(column))?;
        Some(relation.reference(&named.planned))
    }

    /// The relation of this name.
    pub(super) fn relation(&self, database: Option<&str>, alias: &str) -> Option<&Relation> {
        self.relations.iter().find(|relation| relation.is_called(database, alias))
    }

    /// Whether a relation of this name is here or further out.
    fn has_relation(&self, database: Option<&str>, alias: &str) -> bool {
        self.relation(database, alias).is_some()
            || self.parent.is_some_and(|parent| parent.has_relation(database, alias))
    }

    /// The error of a name that means nothing: of JSON_TABLE's document it may be one of a table that is not to its left.
    pub(super) fn unknown(&self, name: &[Ident], clause: Clause) -> Error {
        let table = match name {
            [table, _] => Some((None, table)),
            [database, table, _] => Some((Some(database.value.as_str()), table)),
            _ => None,
        };
        match table {
            Some((database, table))
                if clause == Clause::TableFunction
                    && !self.has_relation(database, &table.value) =>
            {
                unknown_table(&table.value, clause)
            }
            _ => unknown_column(&written(name), clause),
        }
    }

    /// The relation that plans call so, here or further out.
    pub(super) fn planned_relation(&self, unique: &str) -> Option<&Relation> {
        let own = self.relations.iter().find(|relation| relation.unique == unique);
        own.or_else(|| self.parent?.planned_relation(unique))
    }
}

/// A name in quotes, so that no one reads it again.
pub(super) fn quoted(name: &str) -> Ident {
    Ident::with_quote('`', name)
}

/// The name as the statement has it.
pub(super) fn written(name: &[Ident]) -> String {
    let parts: Vec<&str> = name.iter().map(|part| part.value.as_str()).collect();
    parts.join(".")
}

/// 1109.
pub(super) fn unknown_table(name: &str, clause: Clause) -> Error {
    let message = format!("Unknown table '{name}' in {}", clause.name());
    Error::new(ErrorCode::UnknownTableInDelete, message)
}

/// 1054.
pub(super) fn unknown_column(name: &str, clause: Clause) -> Error {
    let message = format!("Unknown column '{name}' in '{}'", clause.name());
    Error::new(ErrorCode::UnknownColumn, message)
}

/// 1066.
pub(super) fn not_unique(alias: &str) -> Error {
    Error::new(ErrorCode::NonUniqueTable, format!("Not unique table/alias: '{alias}'"))
}

/// 1060.
pub(super) fn duplicate_column(name: &str) -> Error {
    Error::new(ErrorCode::DuplicateColumn, format!("Duplicate column name '{name}'"))
}
