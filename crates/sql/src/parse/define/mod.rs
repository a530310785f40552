//! CREATE, ALTER, DROP, RENAME and TRUNCATE as trees.
//!
//! sqlparser's grammar of definitions is not MySQL's, so these trees are our own. Their queries are parsed by the entry
//! for statements. Their expressions are texts in the default `sql_mode`, as tables store them; [`stored_expression`]
//! gives the tree of one.

mod alter;
mod column;
mod data_type;
mod expression;
mod key;
mod options;
mod table;
mod view;

use std::{ops::Range, sync::Arc};

use datafusion::sql::sqlparser::ast;
use remora_engine::Value;

pub(crate) use alter::{AlterAction, AlterTable, Alteration, ColumnPosition};
pub(crate) use column::{ColumnDefinition, ColumnExtras, Declaration, DefaultSpec, Generated};
pub(crate) use data_type::{CharsetClause, TypeName};
pub(crate) use expression::{
    is_parenthesised, parsed_expression, query_of_stored, quoted_name, quoted_text,
    stored_expression,
};
pub(crate) use key::{
    Check, ForeignKey, Key, KeyKind, KeyPart, NO_ACTION, PartOf, References, TableLine,
};
pub(crate) use options::{
    AGENT, AGENT_PERSISTENT, DISTRIBUTED, LOCAL, PartOption, TableOption, WORDS,
};
pub(crate) use table::{DuplicateRows, TableBody, TableDefinition, TableElement};
pub(crate) use view::{ViewDefinition, ViewHead, stored_view};

use super::{Place, Source, Statement, Tokens, read, split};
use crate::{Error, Result};

/// A statement that defines.
#[derive(Debug)]
pub(crate) enum DefinitionStatement {
    /// CREATE TABLE.
    CreateTable(Box<TableDefinition>),
    /// CREATE INDEX: the table and the key.
    CreateIndex(QualifiedName, Key),
    /// CREATE VIEW, ALTER VIEW.
    CreateView(Box<ViewDefinition>),
    /// CREATE DATABASE.
    CreateDatabase { lenient: bool, name: String, options: Vec<TableOption> },
    /// ALTER TABLE.
    AlterTable(AlterTable),
    /// ALTER DATABASE; without a name the current one.
    AlterDatabase { name: Option<String>, options: Vec<TableOption> },
    /// DROP TABLE.
    DropTables { temporary: bool, lenient: bool, names: Vec<QualifiedName> },
    /// DROP VIEW.
    DropViews { lenient: bool, names: Vec<QualifiedName> },
    /// DROP INDEX: the table and the index.
    DropIndex(QualifiedName, String),
    /// DROP DATABASE.
    DropDatabase { lenient: bool, name: String },
    /// RENAME TABLE: old and new names.
    RenameTables(Vec<(QualifiedName, QualifiedName)>),
    /// TRUNCATE.
    Truncate(QualifiedName),
}

/// The name of a table or view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct QualifiedName {
    /// Its database, if it is given.
    pub database: Option<String>,
    /// Its name there.
    pub name: String,
}

/// A query within a definition, which is a statement of its own.
#[derive(Debug)]
pub(crate) struct QueryDefinition {
    /// Its text.
    pub source: Arc<Source>,
    /// Its syntax tree.
    pub query: Box<ast::Query>,
}

impl Statement<'_> {
    /// Its tree, if it is a definition; 1064 with the place if it has none, 1235 for one of anything else.
    pub(crate) fn definition(&self) -> Result<DefinitionStatement> {
        let Source { text, tokens, mode, .. } = &*self.source;
        let mut tokens = Tokens::new(text, tokens, *mode);
        let tokens = &mut tokens;
        let is_database = |tokens: &mut Tokens<'_>| tokens.accept_any(&["DATABASE", "SCHEMA"]);
        if tokens.accept("CREATE") {
            if tokens.is_word("TABLE") || tokens.is_word("TEMPORARY") {
                let table = TableDefinition::read(tokens, self.parameters)?;
                return Ok(DefinitionStatement::CreateTable(Box::new(table)));
            }
            return match () {
                () if ViewHead::is_next(tokens) => view(tokens, false),
                () if is_database(tokens) => create_database(tokens),
                () => create_index(tokens),
            };
        }
        if tokens.accept("DROP") {
            return match () {
                () if is_database(tokens) => {
                    let lenient = tokens.accept_all("IF EXISTS");
                    let name = tokens.name()?;
                    tokens.expect_end()?;
                    Ok(DefinitionStatement::DropDatabase { lenient, name })
                }
                () if tokens.accept("INDEX") => drop_index(tokens),
                () => drop(tokens),
            };
        }
        if tokens.accept("ALTER") {
            if ViewHead::is_next(tokens) {
                return view(tokens, true);
            }
            if tokens.accept("TABLE") {
                return AlterTable::read(tokens).map(DefinitionStatement::AlterTable);
            }
            if is_database(tokens) {
                return alter_database(tokens);
            }
        }
        if tokens.accept("TRUNCATE") {
            return truncate(tokens);
        }
        if tokens.accept("RENAME") {
            return rename(tokens);
        }
        Err(Error::unsupported(self.source.shown()))
    }
}

impl DefinitionStatement {
    /// Whether it is of temporary tables.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::CreateTable(table) => table.temporary,
            Self::DropTables { temporary, .. } => *temporary,
            _ => false,
        }
    }
}

impl QualifiedName {
    fn read(tokens: &mut Tokens<'_>) -> Result<Self> {
        let name = tokens.name()?;
        Ok(match tokens.take(".") {
            true => Self { database: Some(name), name: tokens.name()? },
            false => Self { database: None, name },
        })
    }
}

impl QueryDefinition {
    /// Some tokens as a statement of its own.
    fn source_of(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Source> {
        let mut sources = split(tokens.slice(range), false, tokens.mode())?;
        sources.pop().ok_or_else(|| tokens.syntax_error())
    }

    fn read(source: Source, parameters: &[Value]) -> Result<Self> {
        let source = Arc::new(source);
        let statement = Statement { source: Arc::clone(&source), parameters };
        match statement.parse()? {
            ast::Statement::Query(query) => Ok(Self { source, query }),
            other => Err(Error::unsupported(other)),
        }
    }
}

fn view(tokens: &mut Tokens<'_>, alters: bool) -> Result<DefinitionStatement> {
    let view = ViewDefinition::read(tokens, alters)?;
    Ok(DefinitionStatement::CreateView(Box::new(view)))
}

fn create_database(tokens: &mut Tokens<'_>) -> Result<DefinitionStatement> {
    let lenient = tokens.accept_all("IF NOT EXISTS");
    let name = tokens.name()?;
    Ok(DefinitionStatement::CreateDatabase { lenient, name, options: database_options(tokens)? })
}

fn alter_database(tokens: &mut Tokens<'_>) -> Result<DefinitionStatement> {
    const OPTIONS: [&str; 6] = ["CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "ENCRYPTION", "READ"];
    let is_option = OPTIONS.iter().any(|word| tokens.is_word(word));
    let name = (!is_option).then(|| tokens.name()).transpose()?;
    if tokens.at_end() {
        return Err(tokens.syntax_error());
    }
    Ok(DefinitionStatement::AlterDatabase { name, options: database_options(tokens)? })
}

fn database_options(tokens: &mut Tokens<'_>) -> Result<Vec<TableOption>> {
    let mut options = Vec::new();
    while !tokens.at_end() {
        if tokens.accept_all("DEFAULT ENCRYPTION") || tokens.accept("ENCRYPTION") {
            tokens.take("=");
            tokens.text()?;
        } else if tokens.accept_all("READ ONLY") {
            tokens.take("=");
            if !tokens.accept("DEFAULT") && tokens.number()? != 0 {
                return Err(Error::unsupported("READ ONLY databases"));
            }
        } else {
            options.push(TableOption::read(tokens)?.ok_or_else(|| tokens.syntax_error())?);
        }
    }
    Ok(options)
}

fn create_index(tokens: &mut Tokens<'_>) -> Result<DefinitionStatement> {
    let kind = match tokens.accept("UNIQUE") {
        true => KeyKind::Unique,
        false => key::accept_kind(tokens),
    };
    if !tokens.accept("INDEX") {
        return Err(Error::unsupported("CREATE of anything but databases, tables and indexes"));
    }
    let name = tokens.name()?;
    if tokens.accept("USING") {
        tokens.name()?;
    }
    tokens.expect("ON")?;
    let table = QualifiedName::read(tokens)?;
    // In ALTER TABLE the name stands here, which would hide a second one.
    if !tokens.is("(") {
        return Err(tokens.syntax_error());
    }
    let key = Key { name, ..key::read_key(tokens, kind)? };
    alter::passes_algorithm(tokens)?;
    tokens.expect_end()?;
    Ok(DefinitionStatement::CreateIndex(table, key))
}

fn drop_index(tokens: &mut Tokens<'_>) -> Result<DefinitionStatement> {
    let name = tokens.name()?;
    tokens.expect("ON")?;
    let table = QualifiedName::read(tokens)?;
    alter::passes_algorithm(tokens)?;
    tokens.expect_end()?;
    Ok(DefinitionStatement::DropIndex(table, name))
}

fn drop(tokens: &mut Tokens<'_>) -> Result<DefinitionStatement> {
    let temporary = tokens.accept("TEMPORARY");
    let of_views = !temporary && tokens.accept("VIEW");
    if !of_views && !tokens.accept_any(&["TABLE", "TABLES"]) {
        return Err(Error::unsupported("DROP of anything but tables, views and databases"));
    }
    let lenient = tokens.accept_all("IF EXISTS");
    let names = tokens.list(QualifiedName::read)?;
    tokens.accept_any(&["RESTRICT", "CASCADE"]);
    tokens.expect_end()?;
    Ok(match of_views {
        true => DefinitionStatement::DropViews { lenient, names },
        false => DefinitionStatement::DropTables { temporary, lenient, names },
    })
}

fn truncate(tokens: &mut Tokens<'_>) -> Result<DefinitionStatement> {
    // Sphinx's form is `TRUNCATE RTINDEX name`. A table may be called `RTINDEX`.
    let mut ahead = *tokens;
    if ahead.accept("RTINDEX") && !ahead.at_end() && !ahead.is(".") {
        *tokens = ahead;
    } else {
        tokens.accept("TABLE");
    }
    let name = QualifiedName::read(tokens)?;
    tokens.expect_end()?;
    Ok(DefinitionStatement::Truncate(name))
}

fn rename(tokens: &mut Tokens<'_>) -> Result<DefinitionStatement> {
    if !tokens.accept_any(&["TABLE", "TABLES"]) {
        return Err(Error::unsupported("RENAME of anything but tables"));
    }
    let pairs = tokens.list(|tokens| {
        let from = QualifiedName::read(tokens)?;
        tokens.expect("TO")?;
        Ok((from, QualifiedName::read(tokens)?))
    })?;
    tokens.expect_end()?;
    Ok(DefinitionStatement::RenameTables(pairs))
}

/// The declaration of a column after its name, as a text.
pub(crate) fn stored_column(name: &str, declaration: &str) -> Result<ColumnDefinition> {
    read(declaration, |tokens| {
        let column = ColumnDefinition::declared(tokens, name.to_owned())?;
        tokens.expect_end()?;
        Ok(column)
    })
}

/// The line of a key or condition of a stored table; `None` if it is not understood.
pub(crate) fn stored_line(line: &str) -> Option<TableLine> {
    read(line, key::read_line).ok()?
}

/// The options of a stored table.
pub(crate) fn stored_options(options: &str) -> Vec<TableOption> {
    read(options, |tokens| Ok(TableOption::stored(tokens))).unwrap_or_default()
}
