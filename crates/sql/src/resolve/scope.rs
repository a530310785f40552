//! Scopes: the meaning of a name at a position of a statement.

use datafusion::sql::sqlparser::ast::{Expr, Ident};
use remora_mysql::{ErrorCode, messages};

use super::{
    expr::{SelectAlias, nested},
    grouping::has_aggregate,
};
use crate::{Error, Result};

/// A table, derived table or common table expression in FROM.
#[derive(Clone, Debug)]
pub(super) struct Relation {
    /// Its name or alias in the statement.
    pub alias: String,
    /// The database, if it is a table.
    pub database: Option<String>,
    /// Its name in plans, unique in the statement.
    pub unique: String,
    /// Its columns.
    pub columns: Vec<NamedColumn>,
    /// The columns of its primary key, in lower case; empty if it has none.
    pub key: Vec<String>,
    /// Of a query, the columns on which all others depend, by their names in plans; empty if there are none.
    pub determining: Vec<String>,
    /// Whether it is a view, whose column names are shown as the view spells them, not as the statement does.
    pub is_view: bool,
}

/// A column's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedColumn {
    /// Its name for clients.
    pub shown: String,
    /// Its name in plans: in lower case and unique in the relation.
    pub planned: String,
    /// Whether `*` and NATURAL JOIN omit it: an invisible column or a hidden row number.
    pub hidden: bool,
}

impl NamedColumn {
    /// Whether this lower-case name means it.
    pub(super) fn is(&self, lower: &str) -> bool {
        self.shown.to_lowercase() == lower
    }
}

/// A column that can be named without a qualifier.
#[derive(Clone, Debug)]
pub(super) struct Visible {
    pub name: NamedColumn,
    /// The column's expression.
    pub expr: Expr,
    /// The alias of its relation; empty for a merged column.
    pub table: String,
}

/// The relations of one SELECT, with the scope of the enclosing SELECT.
pub(super) struct Scope<'p> {
    pub relations: Vec<Relation>,
    pub visible: Vec<Visible>,
    pub parent: Option<&'p Scope<'p>>,
    /// The aliases of selected expressions that queries in HAVING and ORDER BY may name.
    pub aliases: &'p [SelectAlias],
}

/// A clause of a statement, with MySQL's name for it in errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clause {
    Fields,
    Where,
    On,
    /// USING and NATURAL.
    From,
    Group,
    Having,
    Order,
    /// The document of JSON_TABLE.
    TableFunction,
}

impl Clause {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Fields => "field list",
            Self::Where => "where clause",
            Self::On => "on clause",
            Self::From => "from clause",
            Self::Group => "group statement",
            Self::Having => "having clause",
            Self::Order => "order clause",
            Self::TableFunction => "a table function argument",
        }
    }
}

impl Relation {
    /// A reference to one of its columns.
    pub(super) fn reference(&self, planned: &str) -> Expr {
        Expr::CompoundIdentifier(vec![quoted(&self.unique), quoted(planned)])
    }

    /// The columns on which all others depend, by their names in plans; empty if there are none.
    pub(super) fn determining(&self) -> &[String] {
        if self.key.is_empty() { &self.determining } else { &self.key }
    }

    /// All its visible columns.
    pub(super) fn visible(&self) -> Vec<Visible> {
        let one = |name: &NamedColumn| Visible {
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
        Self { relations: Vec::new(), visible: Vec::new(), parent, aliases: &[] }
    }

    /// Adds relations and their columns; error 1066 if two relations have one name.
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

    /// The meaning of a name here or in an outer scope; `None` if it is unknown, error 1052 if it is ambiguous.
    pub(super) fn find(&self, name: &[Ident], clause: Clause) -> Result<Option<Expr>> {
        if let Some(found) = self.find_here(name, clause)? {
            return Ok(Some(found));
        }
        if let Some(found) = self.aliased(name) {
            return Ok(Some(found));
        }
        self.parent.map_or(Ok(None), |parent| parent.find(name, clause))
    }

    /// The meaning of a name in this SELECT only.
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

    /// The selected expression with this alias. An aggregate cannot be a part of another query.
    fn aliased(&self, name: &[Ident]) -> Option<Expr> {
        let [name] = name else { return None };
        let lower = name.value.to_lowercase();
        let alias = self.aliases.iter().find(|alias| alias.name == lower)?;
        (!has_aggregate(&alias.expr)).then(|| nested(&alias.expr))
    }

    fn unqualified(&self, lower: &str, written: &str, clause: Clause) -> Result<Option<Expr>> {
        let mut found = self.visible.iter().filter(|each| each.name.is(lower));
        let first = found.next().map(|visible| visible.expr.clone());
        if found.next().is_some() {
            return Err(Error::ambiguous_column(written, clause.name()));
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

    /// Whether a relation of this name is here or in an outer scope.
    fn has_relation(&self, database: Option<&str>, alias: &str) -> bool {
        self.relation(database, alias).is_some()
            || self.parent.is_some_and(|parent| parent.has_relation(database, alias))
    }

    /// The error for an unknown name. In a JSON_TABLE document it may name a table that is not on the left.
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

    /// The relation with this name in plans, here or in an outer scope.
    pub(super) fn planned_relation(&self, unique: &str) -> Option<&Relation> {
        let own = self.relations.iter().find(|relation| relation.unique == unique);
        own.or_else(|| self.parent?.planned_relation(unique))
    }
}

/// A quoted name, which keeps its spelling.
pub(super) fn quoted(name: &str) -> Ident {
    Ident::with_quote('`', name)
}

/// The name as the statement spells it.
pub(super) fn written(name: &[Ident]) -> String {
    let parts: Vec<&str> = name.iter().map(|part| part.value.as_str()).collect();
    parts.join(".")
}

/// Error 1109.
pub(super) fn unknown_table(name: &str, clause: Clause) -> Error {
    let message = messages::unknown_table_in(name, clause.name());
    Error::new(ErrorCode::UnknownTableInDelete, message)
}

/// Error 1054.
pub(super) fn unknown_column(name: &str, clause: Clause) -> Error {
    Error::unknown_column(name, clause.name())
}

/// Error 1066.
pub(super) fn not_unique(alias: &str) -> Error {
    Error::new(ErrorCode::NonUniqueTable, format!("Not unique table/alias: '{alias}'"))
}

/// Error 1060.
pub(super) fn duplicate_column(name: &str) -> Error {
    Error::new(ErrorCode::DuplicateColumn, messages::duplicate_column(name))
}
