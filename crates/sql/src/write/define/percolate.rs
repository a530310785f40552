//! CREATE TABLE of percolate tables, whose rows are queries that documents are put to.
//!
//! ```text
//! percolate := "CREATE" "TABLE" name "(" (column type),* ")" "TYPE" ["="] ('pq' | 'percolate') word_setting*
//! ```
//! The columns are those of the documents. They are kept beside the table's own, which are always the same.

use remora_mysql::{Collation, ErrorCode};

use super::draft::{Draft, DraftColumn};
use crate::{
    Error, Result, SqlType,
    catalog::{ColumnSpec, DefaultSpec, TableName, WORDS, percolate_columns},
    parse::Tokens,
};

/// The definition of a table of queries for documents as the statement defines them.
pub(super) fn queries(name: &TableName, documents: Draft, tokens: &Tokens<'_>) -> Result<Draft> {
    tokens.expect_end()?;
    check(&documents)?;
    let mut documents = documents;
    if documents.options.words.iter().all(|(setting, _)| setting != WORDS) {
        let fields = documents.columns.iter().filter(|column| is_field(column));
        let fields: Vec<&str> = fields.map(|column| column.name.as_str()).collect();
        if fields.is_empty() {
            let message =
                "a percolate table is for documents with texts: give it a column of the type TEXT";
            return Err(Error::new(ErrorCode::ParseError, message));
        }
        documents.options.words.insert(0, (WORDS.to_owned(), fields.join(",")));
    }
    let next = documents.options.auto_increment.take();
    documents.finish(name)?;
    let mut schema = documents.build(name.table.clone(), None, None);
    // Documents have no key: they are numbered in each batch.
    schema.columns.pop();
    schema.primary_key.clear();
    let mut queries = Draft { documents: Some(schema), ..Draft::default() };
    queries.options.auto_increment = next;
    queries.options.comment = documents.options.comment;
    for (column, declared) in percolate_columns() {
        let (spec, extras) = crate::parse::read(declared, |tokens| {
            ColumnSpec::parse(tokens, column, Collation::UTF8MB4_0900_AI_CI)
        })?;
        queries.add_column(usize::MAX, column.to_owned(), spec, extras)?;
    }
    queries.finish(name)?;
    Ok(queries)
}

/// What is a field unless `words` names others: TEXT. STRING is an attribute.
fn is_field(column: &DraftColumn) -> bool {
    column.spec.kind.sql == SqlType::Blob && column.spec.kind.is_text()
}

/// Refuses what documents cannot have.
fn check(documents: &Draft) -> Result<()> {
    if documents.columns.is_empty() {
        let message = "type='pq' needs the columns of the documents: CREATE TABLE name (title text) type='pq'";
        return Err(Error::new(ErrorCode::ParseError, message));
    }
    let is_computed = |column: &&DraftColumn| {
        let spec = &column.spec;
        spec.generated.is_some()
            || spec.auto_increment
            || spec.on_update_now
            || matches!(spec.default, DefaultSpec::Expression(_) | DefaultSpec::Now)
    };
    if let Some(column) = documents.columns.iter().find(is_computed) {
        let what = format!(
            "column '{}' of a percolate table that is computed: a document gives its values, or a constant DEFAULT",
            column.name
        );
        return Err(Error::unsupported(what));
    }
    if documents.keys.is_empty() && documents.checks.is_empty() && documents.foreign.is_empty() {
        return Ok(());
    }
    Err(Error::unsupported(
        "keys and conditions in a percolate table, whose documents are not kept",
    ))
}

/// Refuses to change a table of queries otherwise than by a new name.
pub(super) fn check_alter(documents: Option<&remora_engine::Schema>) -> Result<()> {
    match documents {
        None => Ok(()),
        Some(_) => Err(Error::unsupported(
            "ALTER TABLE of a percolate table, but for RENAME: make another and INSERT … SELECT its queries",
        )),
    }
}
