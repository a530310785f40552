//! ALTER TABLE.
//!
//! ```text
//! alter  := "ALTER" "TABLE" table action ("," action)*
//! action := "ADD" ["COLUMN"] (column [position] | line | "(" … ")") | "DROP" … | "RENAME" …
//!         | ("MODIFY" | "CHANGE" name) ["COLUMN"] column [position] | "ALTER" …
//!         | "CONVERT" "TO" option* | option+ | part+ | what has no effect here
//! ```

use super::{
    ColumnDefinition, DefaultSpec, PartOption, QualifiedName, TableElement, TableLine, TableOption,
    column::read_default,
};
use crate::{Error, Result, parse::Tokens};

/// An ALTER TABLE.
#[derive(Debug)]
pub(crate) struct AlterTable {
    /// The table.
    pub name: QualifiedName,
    /// What is done to it, in order.
    pub actions: Vec<AlterAction>,
}

/// An action of ALTER TABLE.
#[derive(Debug)]
pub(crate) struct AlterAction {
    /// The word that it begins with, in lower case.
    pub word: String,
    /// What it does.
    pub what: Alteration,
}

/// What an action of ALTER TABLE does.
#[derive(Debug)]
pub(crate) enum Alteration {
    /// Nothing here.
    Nothing,
    /// Renames the table.
    RenameTable(QualifiedName),
    /// Renames a column: old and new name.
    RenameColumn(String, String),
    /// Renames an index: old and new name.
    RenameKey(String, String),
    /// Adds a column.
    AddColumn(Box<ColumnDefinition>, Option<ColumnPosition>),
    /// Adds a key, a condition or a foreign key.
    AddLine(TableLine),
    /// Gives the column of this name another definition.
    ChangeColumn(String, Box<ColumnDefinition>, Option<ColumnPosition>),
    /// Drops a column.
    DropColumn(String),
    /// Drops an index.
    DropKey(String),
    /// Drops a condition.
    DropCheck(String),
    /// Drops a foreign key.
    DropForeignKey(String),
    /// Drops the key, condition or foreign key of this name.
    DropConstraint(String),
    /// Shows an index to the optimizer, or hides it.
    SetKeyVisible(String, bool),
    /// Shows a column to `*`, or hides it.
    SetColumnVisible(String, bool),
    /// Enforces a condition, or does not.
    SetEnforced(String, bool),
    /// Gives a column another default, or none.
    SetDefault(String, Option<DefaultSpec>),
    /// Gives all texts the character set and collation of these options.
    Convert(Vec<TableOption>),
    /// Sets options.
    Options(Vec<TableOption>),
    /// Gives a distributed table other parts. Whether the table is one is not known to the parser.
    Parts(Vec<PartOption>),
}

/// Where a column goes.
#[derive(Debug)]
pub(crate) enum ColumnPosition {
    /// FIRST.
    First,
    /// AFTER this column.
    After(String),
}

impl AlterTable {
    /// Reads a statement after ALTER TABLE.
    pub(super) fn read(tokens: &mut Tokens<'_>) -> Result<Self> {
        let name = QualifiedName::read(tokens)?;
        let mut actions = Vec::new();
        loop {
            let mut ahead = *tokens;
            let word = ahead.accept_name().unwrap_or_default().to_lowercase();
            let mut push = |what| actions.push(AlterAction { word: word.clone(), what });
            let adds = !tokens.begins("ADD PARTITION") && tokens.accept("ADD");
            match adds {
                true => add(tokens, &mut push)?,
                false => push(Alteration::read(tokens)?),
            }
            // Partitioning follows the other actions without a comma.
            let is_partitioning = tokens.is_word("PARTITION") || tokens.is_word("REMOVE");
            if !tokens.take(",") && !is_partitioning {
                break;
            }
        }
        tokens.expect_end()?;
        Ok(Self { name, actions })
    }
}

impl Alteration {
    /// Reads any action but ADD.
    fn read(tokens: &mut Tokens<'_>) -> Result<Self> {
        const NOTHING: [&str; 5] =
            ["ENABLE KEYS", "DISABLE KEYS", "WITH VALIDATION", "WITHOUT VALIDATION", "FORCE"];
        if passes_algorithm(tokens)? || NOTHING.iter().any(|words| tokens.accept_all(words)) {
            return Ok(Self::Nothing);
        }
        if passes_partitioning(tokens)? {
            return Ok(Self::Nothing);
        }
        if tokens.accept_all("ORDER BY") {
            tokens.skip_until(|tokens| tokens.is(","))?;
            return Ok(Self::Nothing);
        }
        if tokens.accept("RENAME") {
            rename(tokens)
        } else if tokens.accept("DROP") {
            drop(tokens)
        } else if tokens.accept("MODIFY") {
            tokens.accept("COLUMN");
            let column = Box::new(ColumnDefinition::read(tokens)?);
            Ok(Self::ChangeColumn(column.name.clone(), column, position(tokens)?))
        } else if tokens.accept("CHANGE") {
            tokens.accept("COLUMN");
            let old = tokens.name()?;
            let column = Box::new(ColumnDefinition::read(tokens)?);
            Ok(Self::ChangeColumn(old, column, position(tokens)?))
        } else if tokens.accept("ALTER") {
            alter(tokens)
        } else if tokens.accept_all("CONVERT TO") {
            options(tokens).map(Self::Convert)
        } else {
            let options = options(tokens)?;
            if !options.is_empty() {
                return Ok(Self::Options(options));
            }
            let parts = parts(tokens);
            if parts.is_empty() { Err(tokens.syntax_error()) } else { Ok(Self::Parts(parts)) }
        }
    }
}

/// Skips ALGORITHM and LOCK, which have no effect here. Whether there were any.
pub(super) fn passes_algorithm(tokens: &mut Tokens<'_>) -> Result<bool> {
    let mut any = false;
    while tokens.accept_any(&["ALGORITHM", "LOCK"]) {
        tokens.take("=");
        tokens.name()?;
        any = true;
    }
    Ok(any)
}

/// Words before partitions.
const UNLOGGED: [&str; 2] = ["NO_WRITE_TO_BINLOG", "LOCAL"];
/// Words behind partitions that are checked.
const CHECKS: [&str; 7] = ["FOR", "UPGRADE", "QUICK", "FAST", "MEDIUM", "EXTENDED", "CHANGED"];

/// Passes over partitioning, which a definition does not keep. Whether there was any. What changes rows by their
/// partition is refused by name.
fn passes_partitioning(tokens: &mut Tokens<'_>) -> Result<bool> {
    const REFUSED: [&str; 7] = [
        "DROP PARTITION",
        "TRUNCATE PARTITION",
        "EXCHANGE PARTITION",
        "DISCARD PARTITION",
        "IMPORT PARTITION",
        "DISCARD TABLESPACE",
        "IMPORT TABLESPACE",
    ];
    // Definitions of partitions are not read.
    const DEFINED: [&str; 3] = ["PARTITION BY", "ADD PARTITION", "REORGANIZE PARTITION"];
    const OF_PARTITIONS: [&str; 5] = [
        "REBUILD PARTITION",
        "OPTIMIZE PARTITION",
        "ANALYZE PARTITION",
        "CHECK PARTITION",
        "REPAIR PARTITION",
    ];
    if let Some(words) = REFUSED.iter().find(|words| tokens.begins(words)) {
        let what = "ALTER TABLE, because tables have no partitions and no files of their own";
        return Err(Error::unsupported(format_args!("{words} of {what}")));
    }
    if DEFINED.iter().any(|words| tokens.accept_all(words)) {
        tokens.take_rest();
    } else if tokens.accept_all("COALESCE PARTITION") {
        tokens.accept_any(&UNLOGGED);
        tokens.number()?;
    } else if OF_PARTITIONS.iter().any(|words| tokens.accept_all(words)) {
        tokens.accept_any(&UNLOGGED);
        if !tokens.accept("ALL") {
            tokens.list(Tokens::name)?;
        }
        while tokens.accept_any(&CHECKS) {}
    } else if !tokens.accept_all("REMOVE PARTITIONING") {
        return Ok(false);
    }
    Ok(true)
}

fn add(tokens: &mut Tokens<'_>, push: &mut impl FnMut(Alteration)) -> Result<()> {
    let is_column = tokens.accept("COLUMN");
    if tokens.take("(") {
        tokens.list(element)?.into_iter().for_each(push);
        return tokens.need(")");
    }
    push(match is_column {
        true => added(Box::new(ColumnDefinition::read(tokens)?), tokens)?,
        false => element(tokens)?,
    });
    Ok(())
}

fn element(tokens: &mut Tokens<'_>) -> Result<Alteration> {
    Ok(match TableElement::read(tokens)? {
        TableElement::Line(line) => Alteration::AddLine(line),
        TableElement::Column(column) => added(column, tokens)?,
    })
}

fn added(column: Box<ColumnDefinition>, tokens: &mut Tokens<'_>) -> Result<Alteration> {
    Ok(Alteration::AddColumn(column, position(tokens)?))
}

/// Reads FIRST or AFTER a column.
fn position(tokens: &mut Tokens<'_>) -> Result<Option<ColumnPosition>> {
    if tokens.accept("FIRST") {
        return Ok(Some(ColumnPosition::First));
    }
    let after = tokens.accept("AFTER").then(|| tokens.name()).transpose()?;
    Ok(after.map(ColumnPosition::After))
}

fn rename(tokens: &mut Tokens<'_>) -> Result<Alteration> {
    let names = |tokens: &mut Tokens<'_>| {
        let old = tokens.name()?;
        tokens.expect("TO")?;
        Ok((old, tokens.name()?))
    };
    if tokens.accept("COLUMN") {
        return names(tokens).map(|(old, new)| Alteration::RenameColumn(old, new));
    }
    if tokens.accept_any(&["INDEX", "KEY"]) {
        return names(tokens).map(|(old, new)| Alteration::RenameKey(old, new));
    }
    tokens.accept_any(&["TO", "AS"]);
    QualifiedName::read(tokens).map(Alteration::RenameTable)
}

fn drop(tokens: &mut Tokens<'_>) -> Result<Alteration> {
    if tokens.accept_all("PRIMARY KEY") {
        return Ok(Alteration::DropKey("PRIMARY".to_owned()));
    }
    let made = if tokens.accept_any(&["INDEX", "KEY"]) {
        Alteration::DropKey
    } else if tokens.accept("CHECK") {
        Alteration::DropCheck
    } else if tokens.accept("CONSTRAINT") {
        Alteration::DropConstraint
    } else if tokens.accept_all("FOREIGN KEY") {
        Alteration::DropForeignKey
    } else {
        tokens.accept("COLUMN");
        let name = tokens.name()?;
        tokens.accept_any(&["RESTRICT", "CASCADE"]);
        return Ok(Alteration::DropColumn(name));
    };
    tokens.name().map(made)
}

/// `ALTER [COLUMN] a SET DEFAULT x | DROP DEFAULT | SET [IN]VISIBLE`, `ALTER INDEX a [IN]VISIBLE`, `ALTER CHECK`.
fn alter(tokens: &mut Tokens<'_>) -> Result<Alteration> {
    if tokens.accept_any(&["INDEX", "KEY"]) {
        let name = tokens.name()?;
        let is_visible = !tokens.accept("INVISIBLE");
        if is_visible {
            tokens.expect("VISIBLE")?;
        }
        return Ok(Alteration::SetKeyVisible(name, is_visible));
    }
    if tokens.accept_any(&["CHECK", "CONSTRAINT"]) {
        let name = tokens.name()?;
        let is_enforced = !tokens.accept("NOT");
        tokens.expect("ENFORCED")?;
        return Ok(Alteration::SetEnforced(name, is_enforced));
    }
    tokens.accept("COLUMN");
    let name = tokens.name()?;
    if tokens.accept_all("DROP DEFAULT") {
        return Ok(Alteration::SetDefault(name, None));
    }
    if tokens.accept_all("SET INVISIBLE") {
        return Ok(Alteration::SetColumnVisible(name, false));
    }
    if tokens.accept_all("SET VISIBLE") {
        return Ok(Alteration::SetColumnVisible(name, true));
    }
    tokens.expect("SET DEFAULT")?;
    Ok(Alteration::SetDefault(name, Some(read_default(tokens)?)))
}

/// Reads options, between which no commas are needed.
fn options(tokens: &mut Tokens<'_>) -> Result<Vec<TableOption>> {
    let mut options = Vec::new();
    while let Some(option) = TableOption::read(tokens)? {
        options.push(option);
    }
    Ok(options)
}

/// Reads options of a distributed table.
fn parts(tokens: &mut Tokens<'_>) -> Vec<PartOption> {
    let mut parts = Vec::new();
    let mut ahead = *tokens;
    while let Ok(part) = PartOption::read(&mut ahead) {
        parts.push(part);
        *tokens = ahead;
    }
    parts
}
