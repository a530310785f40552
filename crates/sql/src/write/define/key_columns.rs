//! Functional keys. As in MySQL, a hidden column holds the value of the expression and is computed when a row is
//! written, so such a key is checked and indexed like any other. The column has the type of the expression.

use std::{
    ops::ControlFlow::{Break, Continue},
    sync::Arc,
};

use datafusion::sql::sqlparser::ast::Expr;
use remora_engine::{ColumnDef, ColumnType, HIDDEN_PREFIX, PathDef, Schema};
use remora_mysql::{Collation, ErrorCode};

use super::draft::{Draft, DraftColumn};
use crate::{
    Column, Error, Result, SqlType,
    catalog::{
        ColumnSpec, DefaultSpec, Generated, KeyKind, KeyPart, PartOf, SqlTable, TableName,
        array_path, key_column,
    },
    meaning::json::Path,
    parse::{
        define::{query_of_stored, stored_expression},
        visit_expressions,
        write::table_named,
    },
    scan::paths::texts_of,
    state::SessionState,
    transaction::{Overlay, TemporaryTable},
    write::rows::query_rows,
};

/// An empty table over which expressions are planned to learn their types.
const ROWS: &str = "#rows";

/// Adds the hidden columns of a finished draft's keys. Those of `previous` with the same expressions stay.
pub(super) async fn add_key_columns(
    session: &mut SessionState,
    name: &TableName,
    draft: &mut Draft,
    previous: Option<&SqlTable>,
) -> Result<()> {
    let mut wanted = Vec::new();
    for key in draft.keys.iter().filter(|key| matches!(key.kind, KeyKind::Unique | KeyKind::Plain))
    {
        for (nth, part) in key.parts.iter().enumerate() {
            let PartOf::Expression(expression) = &part.of else { continue };
            match (is_of_arrays(expression), key.kind) {
                (false, _) => wanted.push((key_column(&key.name, nth), expression.clone())),
                (true, KeyKind::Unique) => return Err(unique_array(&key.name)),
                (true, _) => {}
            }
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let expressions: Vec<&str> = wanted.iter().map(|(_, expression)| &**expression).collect();
    let types = types(session, name, draft, &expressions).await?;
    let mut known: Vec<(u32, &str)> = previous.map(hidden_columns).unwrap_or_default();
    for ((name, expression), column) in wanted.into_iter().zip(types) {
        let spec = spec(&column, draft.options.collation, &expression)?;
        let same = known.iter().position(|(_, known)| *known == expression);
        let id = same.map(|place| known.swap_remove(place).0);
        draft.columns.push(DraftColumn { name, spec, id });
    }
    Ok(())
}

/// The paths to index for a draft's sets, multi-valued keys and text indexes over documents.
pub(super) fn declared_paths(draft: &Draft) -> Vec<PathDef> {
    // The numbers of sets are always indexed.
    let columns = draft.columns.iter().enumerate();
    let sets = columns.filter(|(_, column)| column.spec.kind.multi().is_some());
    let mut paths: Vec<PathDef> =
        sets.map(|(column, _)| PathDef::new(column, Vec::new())).collect();
    let mut add = |path: PathDef| {
        if !paths.iter().any(|one| one.is_along(&path)) {
            paths.push(path);
        }
    };
    for key in &draft.keys {
        if key.kind == KeyKind::Plain {
            let expressions = key.parts.iter().filter_map(KeyPart::expression);
            expressions.filter_map(|it| path_of(it, |name| draft.column(name))).for_each(&mut add);
        }
        texts_of(key, |name| draft.column(name)).into_iter().for_each(&mut add);
    }
    paths
}

/// Whether a key or a text index that SQL declared of a table needs this path.
pub fn is_declared_path(schema: &Arc<Schema>, path: &PathDef) -> bool {
    declared_paths(&Draft::of(&SqlTable::of(schema))).iter().any(|one| one.is_along(path))
}

/// The path that a multi-valued key indexes. `place` gives the position of its column. `None` for other expressions.
pub(super) fn path_of(
    expression: &str,
    place: impl FnOnce(&str) -> Option<usize>,
) -> Option<PathDef> {
    let (column, path) = array_path(expression)?;
    let names = Path::parse(&path).ok()?.names_through_arrays()?;
    Some(PathDef::new(place(&column)?, names))
}

/// The paths of a collection that keys do not declare: those of `previous` that are kept, unique or not indexed by its
/// keys, if their columns are in `columns`. They are marked as kept, so that later changes of keys do not drop them.
pub(super) fn collection_paths(previous: &SqlTable, columns: &[ColumnDef]) -> Vec<PathDef> {
    let schema = &previous.schema;
    let declared = declared_paths(&Draft::of(previous));
    let is_declared = |path: &PathDef| declared.iter().any(|one| one.is_along(path));
    let paths = schema.paths.iter().filter(|path| path.kept || path.unique || !is_declared(path));
    let kept = paths.filter_map(|path| {
        let id = schema.columns.get(path.column)?.id;
        let is_there = |column: &ColumnDef| column.id == id && column.kind == ColumnType::Json;
        let column = columns.iter().position(is_there)?;
        Some(PathDef { column, kept: true, ..path.clone() })
    });
    kept.collect()
}

/// The refusal of a unique key over the members of an array. The engine's unique paths would not do: they compare at
/// the commit, and by type.
fn unique_array(key: &str) -> Error {
    Error::unsupported(format!(
        "a unique key over the members of an array, as {key} is: make it a KEY, and keep the values in a table of \
         their own if they must be unique"
    ))
}

/// Whether a key is multi-valued: then its values are those of a path, not of a column.
fn is_of_arrays(expression: &str) -> bool {
    has_part(expression, |part| matches!(part, Expr::Cast { array: true, .. }))
}

/// Whether a part of an expression is of this kind.
fn has_part(expression: &str, is_it: impl Fn(&Expr) -> bool) -> bool {
    let each = |part: &Expr| if is_it(part) { Break(()) } else { Continue(()) };
    stored_expression(expression).is_some_and(|expr| visit_expressions(&expr, each).is_break())
}

/// Error 3837 if a functional key names a column that the draft no longer has.
pub(super) fn check_named_columns(old: &SqlTable, draft: &Draft) -> Result<()> {
    let gone = old.visible().filter(|(_, column, _)| draft.column(&column.name).is_none());
    for (_, column, _) in gone {
        let parts = draft.keys.iter().flat_map(|key| &key.parts);
        for part in parts {
            if let PartOf::Expression(expression) = &part.of
                && names(expression, &column.name)
            {
                let message = format!(
                    "Column '{}' has a functional index dependency and cannot be dropped or renamed.",
                    column.name
                );
                return Err(Error::new(ErrorCode::FunctionalIndexNeedsColumn, message));
            }
        }
    }
    Ok(())
}

/// Whether an expression names a column.
pub(super) fn names(expression: &str, column: &str) -> bool {
    has_part(expression, |part| {
        let name = match part {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(names) => names.last(),
            _ => None,
        };
        name.is_some_and(|name| name.value.to_lowercase() == column.to_lowercase())
    })
}

/// The hidden columns of a table's keys: column numbers and expressions.
fn hidden_columns(table: &SqlTable) -> Vec<(u32, &str)> {
    let columns = table.schema.columns.iter().zip(&table.columns);
    let hidden = columns.filter(|(column, _)| column.name.starts_with(HIDDEN_PREFIX));
    let pairs = hidden.filter_map(|(column, spec)| {
        Some((column.id, spec.generated.as_ref()?.expression.as_str()))
    });
    pairs.collect()
}

/// The result columns of a query that selects the expressions from an empty table of this definition.
pub(super) async fn types(
    session: &mut SessionState,
    name: &TableName,
    draft: &Draft,
    expressions: &[&str],
) -> Result<Vec<Column>> {
    let rows = TableName::new(name.database.clone(), ROWS.to_owned());
    let schema = Arc::new(draft.build(ROWS.to_owned(), None, None));
    let empty = TemporaryTable { schema, rows: Arc::new(Overlay::default()), next: 1, next_row: 1 };
    let from = table_named(&[&rows.database, ROWS], Some(&name.table));
    let (query, source) = query_of_stored(expressions, from)?;
    let hidden = session.transaction.put_temporary(rows.clone(), empty);
    let found = query_rows(session, query, &source).await;
    match hidden {
        Some(table) => _ = session.transaction.put_temporary(rows, table),
        None => _ = session.transaction.take_temporary(&rows),
    }
    let found = found.map_err(|error| Error {
        message: error.message.replace("'field list'", "'functional index'"),
        ..error
    })?;
    Ok(found.columns)
}

/// The declaration of a hidden column of this type, in a table with this collation.
pub(super) fn spec(column: &Column, table: Collation, expression: &str) -> Result<ColumnSpec> {
    let mut spec = ColumnSpec::of_result(column, table);
    if matches!(spec.kind.sql, SqlType::Json | SqlType::Geometry) {
        let message =
            "Cannot create a functional index on a function that returns a JSON or GEOMETRY value.";
        return Err(Error::new(ErrorCode::FunctionalIndexOnJson, message));
    }
    if spec.kind.is_blob() {
        let message = "Cannot create a functional index on an expression that returns a BLOB or TEXT. \
                       Please consider using CAST.";
        return Err(Error::new(ErrorCode::FunctionalIndexOnBlob, message));
    }
    spec.not_null = false;
    spec.default = DefaultSpec::None;
    spec.generated = Some(Generated { expression: expression.to_owned(), stored: true });
    Ok(spec)
}
