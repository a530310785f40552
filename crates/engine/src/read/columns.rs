//! Names of columns, resolved.

use crate::{ColumnDef, Error, PathDef, RequestPart, Result, Schema, is_computed_name};

/// The position of a column by name: an exact match first, then one that differs only in case.
pub(super) fn position(schema: &Schema, name: &str) -> Option<usize> {
    let same = |column: &ColumnDef| column.name == name;
    let alike = |column: &ColumnDef| column.name.eq_ignore_ascii_case(name);
    schema.columns.iter().position(same).or_else(|| schema.columns.iter().position(alike))
}

/// The indexed column of this name, or an error that lists the indexed columns.
pub(super) fn indexed<'s>(
    schema: &'s Schema,
    name: &str,
    part: RequestPart,
) -> Result<&'s ColumnDef> {
    let column = position(schema, name).map(|at| &schema.columns[at]);
    if let Some(column) = column.filter(|column| column.indexed) {
        return Ok(column);
    }
    let what = match part {
        RequestPart::Filter => "Filter",
        RequestPart::Facet => "Facet",
        _ => "Sort",
    };
    let why = if column.is_some() { "is not indexed" } else { "not found" };
    let there_are = names(schema.columns.iter().filter(|column| column.indexed));
    let message = format!("{what} column '{name}' {why}. Indexed columns: {there_are}");
    Err(Error::request(part, message))
}

/// The position, among a table's indexed paths, of the path with these names into the documents of a column.
pub(super) fn path_place(schema: &Schema, column: &str, names: &[String]) -> Option<usize> {
    let column = position(schema, column)?;
    let is_it = |it: &PathDef| it.is_plain() && it.column == column && it.names == names;
    schema.paths.iter().position(is_it)
}

/// The position, among a table's indexed paths, of the index over the values of these paths together.
pub(super) fn joint_place(schema: &Schema, column: &str, paths: &[Vec<String>]) -> Option<usize> {
    let wanted = PathDef::together(position(schema, column)?, paths.to_vec())?;
    let is_it = |it: &PathDef| it.is_joint() && it.is_along(&wanted);
    schema.paths.iter().position(is_it)
}

/// The position, among a table's indexed paths, of the index over the texts at these paths together.
pub(super) fn texts_place(schema: &Schema, column: &str, paths: &[Vec<String>]) -> Option<usize> {
    let wanted = PathDef::of_texts(position(schema, column)?, paths.to_vec())?;
    schema.paths.iter().position(|it| it.is_along(&wanted))
}

/// The names of the columns that users see, separated by commas.
pub(super) fn names<'s>(columns: impl Iterator<Item = &'s ColumnDef>) -> String {
    let names = columns.map(|column| column.name.as_str());
    let names: Vec<&str> = names.filter(|name| !is_computed_name(name)).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
