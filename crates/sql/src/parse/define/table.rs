//! CREATE TABLE.
//!
//! ```text
//! create := "CREATE" ["TEMPORARY"] "TABLE" ["IF" "NOT" "EXISTS"] table
//!           ("LIKE" table | "(" "LIKE" table ")" | ["(" ((column | line),* | "DOCUMENT" ("," line)*) ")"] options
//!           ["PARTITION" "BY" …] [["IGNORE" | "REPLACE"] ["AS"] query])
//!         | "CREATE" "TABLE" ["IF" "NOT" "EXISTS"] table "TYPE" ["="] 'distributed' part*
//! ```

use remora_engine::Value;

use super::{
    ColumnDefinition, PartOption, QualifiedName, QueryDefinition, TableLine, TableOption,
    key::read_line, options::accept_distributed,
};
use crate::{
    Result,
    parse::{Tokens, read},
};

/// What a table of documents consists of.
const COLUMNS_OF_DOCUMENTS: &str = "id BIGINT NOT NULL PRIMARY KEY, doc JSON NOT NULL";

/// A table's definition.
#[derive(Debug)]
pub(crate) struct TableDefinition {
    /// TEMPORARY.
    pub temporary: bool,
    /// IF NOT EXISTS.
    pub lenient: bool,
    /// Its name.
    pub name: QualifiedName,
    /// What it consists of.
    pub body: TableBody,
}

/// What a table consists of.
#[derive(Debug)]
pub(crate) enum TableBody {
    /// What this table consists of.
    Like(QualifiedName),
    /// Parts elsewhere.
    Distributed(Vec<PartOption>),
    /// Columns, keys and options.
    Elements {
        /// Columns and lines, in the order of the text.
        elements: Vec<TableElement>,
        /// The options.
        options: Vec<TableOption>,
        /// What becomes of rows of the query with an existing key.
        duplicates: DuplicateRows,
        /// The query whose columns and rows it gets.
        query: Option<QueryDefinition>,
    },
}

/// What becomes of a row with an existing key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DuplicateRows {
    /// Error 1062.
    Refuse,
    /// IGNORE: it is left out. Values that do not fit are changed.
    Ignore,
    /// REPLACE: it takes the place of the other one.
    Replace,
}

/// A part of the list in parentheses.
#[derive(Clone, Debug)]
pub(crate) enum TableElement {
    /// A column.
    Column(Box<ColumnDefinition>),
    /// Anything else.
    Line(TableLine),
}

impl TableDefinition {
    /// Reads a definition after CREATE.
    pub(super) fn read(tokens: &mut Tokens<'_>, parameters: &[Value]) -> Result<Self> {
        let temporary = tokens.accept("TEMPORARY");
        tokens.expect("TABLE")?;
        let lenient = tokens.accept_all("IF NOT EXISTS");
        let name = QualifiedName::read(tokens)?;
        let body = if !temporary && accept_distributed(tokens) {
            TableBody::Distributed(PartOption::all(tokens)?)
        } else if let Some(like) = like(tokens)? {
            TableBody::Like(like)
        } else {
            elements(tokens, parameters)?
        };
        Ok(Self { temporary, lenient, name, body })
    }
}

impl TableElement {
    /// Reads a column, a key, a condition or a foreign key.
    pub(super) fn read(tokens: &mut Tokens<'_>) -> Result<Self> {
        if let Some(line) = read_line(tokens)? {
            return Ok(Self::Line(line));
        }
        ColumnDefinition::read(tokens).map(|column| Self::Column(Box::new(column)))
    }
}

/// `LIKE table`.
fn like(tokens: &mut Tokens<'_>) -> Result<Option<QualifiedName>> {
    let mut ahead = *tokens;
    let parenthesis = ahead.take("(");
    if !ahead.accept("LIKE") {
        return Ok(None);
    }
    let name = QualifiedName::read(&mut ahead)?;
    if parenthesis {
        ahead.need(")")?;
    }
    ahead.expect_end()?;
    Ok(Some(name))
}

/// `DOCUMENT`, and keys behind it: the columns of a collection, which the library recognises by them. `None` for a
/// column of this name.
fn of_documents(tokens: &mut Tokens<'_>) -> Result<Option<Vec<TableElement>>> {
    let mut ahead = *tokens;
    if !ahead.accept("DOCUMENT") {
        return Ok(None);
    }
    let (mut end, has_lines) = (ahead, ahead.take(","));
    if !has_lines && !end.take(")") {
        return Ok(None);
    }
    *tokens = ahead;
    let mut elements = read(COLUMNS_OF_DOCUMENTS, |tokens| tokens.list(TableElement::read))?;
    if has_lines {
        let line = |tokens: &mut Tokens<'_>| match read_line(tokens)? {
            Some(line) => Ok(TableElement::Line(line)),
            None => Err(tokens.syntax_error()),
        };
        elements.extend(tokens.list(line)?);
    }
    Ok(Some(elements))
}

fn elements(tokens: &mut Tokens<'_>, parameters: &[Value]) -> Result<TableBody> {
    let mut ahead = *tokens;
    let is_query = ahead.take("(") && (ahead.is_word("SELECT") || ahead.is_word("WITH"));
    let mut elements = Vec::new();
    if !is_query && tokens.take("(") {
        elements = match of_documents(tokens)? {
            Some(elements) => elements,
            None => tokens.list(TableElement::read)?,
        };
        tokens.need(")")?;
    }
    let options = TableOption::all(tokens)?;
    if tokens.accept_all("PARTITION BY") {
        // Partitioning affects only where rows are stored, so it is skipped.
        tokens.skip_until(|tokens| tokens.is_word("AS") || tokens.is_word("SELECT"))?;
    }
    if options.iter().any(TableOption::is_percolate) {
        tokens.expect_end()?;
    }
    let duplicates = match (tokens.accept("IGNORE"), tokens.accept("REPLACE")) {
        (true, false) => DuplicateRows::Ignore,
        (false, true) => DuplicateRows::Replace,
        (false, false) => DuplicateRows::Refuse,
        (true, true) => return Err(tokens.syntax_error()),
    };
    tokens.accept("AS");
    let mut query = None;
    if !tokens.at_end() {
        let range = tokens.skip_until(|_| false)?;
        tokens.expect_end()?;
        let source = QueryDefinition::source_of(tokens, range)?;
        query = Some(QueryDefinition::read(source, parameters)?);
    }
    Ok(TableBody::Elements { elements, options, duplicates, query })
}
