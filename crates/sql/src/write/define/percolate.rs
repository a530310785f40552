//! CREATE TABLE for percolate tables, whose rows are queries that documents are matched with.
//!
//! ```text
//! percolate := "CREATE" "TABLE" name "(" (column type),* ")" "TYPE" ["="] ('pq' | 'percolate') word_setting*
//! ```
//! The listed columns describe the documents. They are stored beside the table's own columns, which
//! are always the same.

use remora_engine::Schema;
use remora_mysql::ErrorCode;

use super::draft::{Draft, DraftColumn};
use crate::{
    Error, Result, SqlType,
    catalog::{DefaultSpec, TableName, WORDS, percolate_columns},
    parse::define::stored_column,
};

/// The draft of a percolate table for documents with this draft.
pub(super) fn queries(name: &TableName, mut documents: Draft) -> Result<Draft> {
    check(&documents)?;
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
    let mut queries = Draft { documents: Some(without_key(&documents, name)), ..Draft::default() };
    queries.options.auto_increment = next;
    queries.options.comment = documents.options.comment;
    with_columns(queries, name)
}

/// The percolate table for documents that were not defined by SQL. Each column of `documents` must
/// have its declaration in SQL.
///
/// # Errors
/// Those of CREATE TABLE for such documents; an error if a column has no valid declaration.
pub fn percolate_table(documents: Schema) -> Result<Schema> {
    let (name, words) = (TableName::new("", documents.name.as_str()), documents.words.clone());
    let mut draft = Draft::default();
    for column in &documents.columns {
        let declared = column.declared.as_deref().unwrap_or_default();
        add_column(&mut draft, &column.name, declared)?;
    }
    check(&draft)?;
    draft.finish(&name)?;
    let schema = Schema { words, ..without_key(&draft, &name) };
    let queries = Draft { documents: Some(schema), ..Draft::default() };
    Ok(with_columns(queries, &name)?.build(documents.name, None, None))
}

/// The definition of the documents. They have no key, since they are numbered within a batch.
fn without_key(documents: &Draft, name: &TableName) -> Schema {
    let mut schema = documents.build(name.table.clone(), None, None);
    schema.columns.pop();
    schema.primary_key.clear();
    schema
}

/// Adds the columns that every percolate table has.
fn with_columns(mut queries: Draft, name: &TableName) -> Result<Draft> {
    for (column, declared) in percolate_columns() {
        add_column(&mut queries, column, declared)?;
    }
    queries.finish(name)?;
    Ok(queries)
}

fn add_column(draft: &mut Draft, name: &str, declared: &str) -> Result<()> {
    draft.add_column(stored_column(name, declared)?, None)
}

/// Whether a column is a field if `words` is not given: TEXT is, STRING is an attribute.
fn is_field(column: &DraftColumn) -> bool {
    column.spec.kind.sql == SqlType::Blob && column.spec.kind.is_text()
}

/// Refuses definitions that documents cannot have.
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

/// Refuses every change of a percolate table except a new name.
pub(super) fn check_alter(documents: Option<&Schema>) -> Result<()> {
    match documents {
        None => Ok(()),
        Some(_) => Err(Error::unsupported(
            "ALTER TABLE of a percolate table, but for RENAME: make another and INSERT … SELECT its queries",
        )),
    }
}
