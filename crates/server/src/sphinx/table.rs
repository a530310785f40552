//! Finds the table of an index, with its columns.

use remora_engine::united_name;
use remora_protocol::sphinx::statement::{Column, ColumnKind, Indexes, TableShape};
use remora_sql::{Access, Column as SqlColumn, Identity, SqlType};

use super::rows::Rows;
use crate::mysql::SqlClient;

/// The message for a list that names no table.
const NOTHING: &str = "no enabled local indexes to search";
/// The number of the binary collation.
const BINARY: u16 = 63;

/// The table for a list of indexes; several become one. `*` means all tables with ranked search and rows of their own,
/// by name.
///
/// # Errors
/// A message for a list that names no table, for tables of the same name in several databases, for tables of several
/// databases, and for a key that is not an integer. `unknown` is the message for an unknown index, with `?` for its
/// name.
pub(super) async fn find(
    client: &mut SqlClient,
    identity: &Identity,
    indexes: &str,
    unknown: &str,
) -> Result<TableShape, String> {
    let asked = Indexes::parse(indexes).map_err(|error| error.to_string())?;
    let found = match asked {
        Indexes::All => ranked_tables(client, identity),
        Indexes::Named(names) => {
            let find_readable = |name: &&str| find_readable(client, identity, name, unknown);
            names.iter().map(find_readable).collect::<Result<_, _>>()?
        }
    };
    shape_of(client, &found, indexes).await
}

/// Finds the tables for a search: with `*`, one shape for each group of tables that can be read as
/// one.
///
/// # Errors
/// As [`find`], for each group.
pub(super) async fn find_groups(
    client: &mut SqlClient,
    identity: &Identity,
    indexes: &str,
    unknown: &str,
) -> Result<Vec<Result<TableShape, String>>, String> {
    if !matches!(Indexes::parse(indexes), Ok(Indexes::All)) {
        return Ok(vec![Ok(find(client, identity, indexes, unknown).await?)]);
    }
    let tables = ranked_tables(client, identity);
    let reader = client.service().shared.database.reader();
    let names: Vec<String> = tables.iter().map(|table| table.stored.clone()).collect();
    if reader.united_rows(&names).is_ok() {
        return Ok(vec![shape_of(client, &tables, indexes).await]);
    }
    let mut lots: Vec<Vec<ReadableTable>> = Vec::new();
    for table in tables {
        let is_alike = |lot: &&mut Vec<ReadableTable>| {
            lot.first().is_some_and(|first| {
                let both = [first.stored.clone(), table.stored.clone()];
                first.database == table.database && reader.united_rows(&both).is_ok()
            })
        };
        match lots.iter_mut().find(is_alike) {
            Some(lot) => lot.push(table),
            None => lots.push(vec![table]),
        }
    }
    if lots.is_empty() {
        return Err(NOTHING.to_owned());
    }
    let mut shapes = Vec::with_capacity(lots.len());
    for lot in &lots {
        shapes.push(shape_of(client, lot, indexes).await);
    }
    Ok(shapes)
}

/// The shape of several tables as one.
async fn shape_of(
    client: &mut SqlClient,
    found: &[ReadableTable],
    indexes: &str,
) -> Result<TableShape, String> {
    let Some(first) = found.first() else { return Err(NOTHING.to_owned()) };
    if found.iter().any(|other| other.database != first.database) {
        return Err(format!("tables of several databases are '{indexes}': name those of one"));
    }
    let joined = |of: fn(&ReadableTable) -> &str| united_name(found.iter().map(of));
    let (database, name) = (first.database.clone(), joined(|found| &found.table));
    let fields = client.session().fields(&joined(|found| &found.stored));
    let fields = fields.map_err(|error| error.message)?;
    let columns = columns(client, &database, &name).await?;
    let keys: Vec<&SqlColumn> = columns.iter().filter(|column| column.primary_key).collect();
    let key = match &*keys {
        [key] if is_integer(key.kind) => key.name.clone(),
        _ => return Err(format!("index {}: its key is no whole number", name.replace('\0', ","))),
    };
    let columns = columns.iter().filter(|column| column.name != key).filter_map(column).collect();
    Ok(TableShape { database, name, key, columns, fields })
}

/// A readable table.
struct ReadableTable {
    database: String,
    table: String,
    /// Its name in the engine.
    stored: String,
}

impl ReadableTable {
    fn of(stored: String, default: &str) -> Self {
        let (database, table) = stored.split_once('.').unwrap_or((default, &stored));
        Self { database: database.to_owned(), table: table.to_owned(), stored }
    }
}

/// The tables with ranked search and rows of their own.
fn ranked_tables(client: &SqlClient, identity: &Identity) -> Vec<ReadableTable> {
    let has_words = |stored: &String| {
        let schema = client.service().shared.database.schema(stored);
        schema.is_ok_and(|schema| schema.words.is_some() && !schema.is_distributed())
    };
    let (tables, default) = readable(client, identity);
    tables.into_iter().filter(has_words).map(|stored| ReadableTable::of(stored, &default)).collect()
}

/// The table of this name; the default database takes precedence.
fn find_readable(
    client: &SqlClient,
    identity: &Identity,
    name: &str,
    unknown: &str,
) -> Result<ReadableTable, String> {
    let (tables, default) = readable(client, identity);
    let of = |stored| ReadableTable::of(stored, &default);
    let mut fitting: Vec<ReadableTable> = tables.into_iter().map(of).collect();
    fitting.retain(|found| found.table == name);
    if fitting.iter().any(|found| found.database == default) {
        fitting.retain(|found| found.database == default);
    }
    let mut fitting = fitting.into_iter();
    match (fitting.next(), fitting.next()) {
        (Some(table), None) => Ok(table),
        (None, _) => Err(unknown.replace('?', name)),
        (Some(_), Some(_)) => Err(format!("several tables are '{name}': name one of one database")),
    }
}

/// The readable tables by engine name, and the default database.
fn readable(client: &SqlClient, identity: &Identity) -> (Vec<String>, String) {
    let shared = &client.service().shared;
    let default = shared.settings.load().sql.default_database.clone();
    let mut tables = shared.database.tables();
    tables.retain(|stored| identity.may_engine(stored, &default, Access::Read));
    (tables, default)
}

/// The columns of a table as SQL shows them.
async fn columns(
    client: &mut SqlClient,
    database: &str,
    name: &str,
) -> Result<Vec<SqlColumn>, String> {
    let quoted = |name: &str| name.replace('`', "``");
    let text = format!("SELECT * FROM `{}`.`{}` LIMIT 0", quoted(database), quoted(name));
    let mut reply = Rows::new(client.interrupter(), |_, _| ((), 0));
    client.run(&text, &mut reply).await.map_err(|error| error.message)?;
    Ok(reply.columns)
}

fn is_integer(kind: SqlType) -> bool {
    matches!(
        kind,
        SqlType::TinyInt
            | SqlType::SmallInt
            | SqlType::MediumInt
            | SqlType::Int
            | SqlType::BigInt
            | SqlType::Year
    )
}

/// A column as requests see it; `None` for types without a corresponding attribute.
fn column(column: &SqlColumn) -> Option<Column> {
    let kind = match column.kind {
        SqlType::TinyInt if column.length == 1 => ColumnKind::Bool,
        SqlType::Year => ColumnKind::Number,
        SqlType::BigInt => ColumnKind::BigInt,
        kind if is_integer(kind) && column.unsigned => ColumnKind::Number,
        kind if is_integer(kind) => ColumnKind::BigInt,
        SqlType::Float => ColumnKind::Float,
        SqlType::Double | SqlType::Decimal(..) => ColumnKind::Double,
        SqlType::Date | SqlType::DateTime(_) | SqlType::Timestamp(_) => ColumnKind::Time,
        SqlType::Json => ColumnKind::Json,
        SqlType::Multi => ColumnKind::Set,
        SqlType::Multi64 => ColumnKind::WideSet,
        SqlType::Char
        | SqlType::VarChar
        | SqlType::TinyBlob
        | SqlType::Blob
        | SqlType::MediumBlob
        | SqlType::LongBlob
        | SqlType::Enum
        | SqlType::Set
            if column.collation != BINARY =>
        {
            ColumnKind::Text
        }
        _ => return None,
    };
    Some(Column { name: column.name.clone(), kind, is_nullable: !column.not_null })
}
