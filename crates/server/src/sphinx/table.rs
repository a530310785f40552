//! Which table an index is, and what it is like.

use remora_protocol::sphinx::statement::{Column, ColumnKind, Indexes, TableShape};
use remora_sql::{Access, Column as SqlColumn, Identity, SqlType};

use super::rows::Rows;
use crate::mysql::Guest;

/// The number of the collation that says that texts are bytes.
const BINARY: u16 = 63;

/// The table of a list of indexes.
///
/// # Errors
/// A sentence for a list that names no table, for tables of the same name in several databases, and for those
/// whose key is no whole number. `unknown` is the one for an index that is not there, `?` standing for its name.
pub(super) async fn find(
    guest: &mut Guest,
    identity: &Identity,
    indexes: &str,
    unknown: &str,
) -> Result<TableShape, String> {
    let asked = Indexes::parse(indexes).map_err(|error| error.to_string())?;
    let shared = &guest.side().shared;
    let default = shared.settings.load().sql.default_database.clone();
    let mut fitting = Vec::new();
    for stored in shared.database.tables() {
        let (database, table) = stored.split_once('.').unwrap_or((&default, &stored));
        let is_asked = match asked {
            Indexes::All => shared.database.schema(&stored).is_ok_and(|s| s.words.is_some()),
            Indexes::One(name) => name == table,
        };
        if is_asked && identity.may_engine(&stored, &default, Access::Read) {
            let is_default = database == default;
            fitting.push((is_default, database.to_owned(), table.to_owned(), stored.clone()));
        }
    }
    // One of the default database is meant before others.
    if fitting.iter().any(|(is_default, ..)| *is_default) && asked != Indexes::All {
        fitting.retain(|(is_default, ..)| *is_default);
    }
    let mut fitting = fitting.into_iter();
    let (_, database, name, stored) = match (fitting.next(), fitting.next(), asked) {
        (Some(table), None, _) => table,
        (None, _, Indexes::All) => return Err("no enabled local indexes to search".to_owned()),
        (None, _, Indexes::One(name)) => return Err(unknown.replace('?', name)),
        (Some(_), Some(_), _) => {
            return Err(format!("several tables are '{indexes}': name one of one database"));
        }
    };
    let fields = fields(guest, &stored);
    let columns = columns(guest, &database, &name).await?;
    let keys: Vec<&SqlColumn> = columns.iter().filter(|column| column.primary_key).collect();
    let key = match &*keys {
        [key] if is_whole(key.kind) => key.name.clone(),
        _ => return Err(format!("index {name}: its key is no whole number")),
    };
    let columns = columns.iter().filter(|column| column.name != key).filter_map(column).collect();
    Ok(TableShape { database, name, key, columns, fields })
}

fn fields(guest: &Guest, stored: &str) -> Vec<String> {
    let Ok(schema) = guest.side().shared.database.schema(stored) else { return Vec::new() };
    let Some(words) = &schema.words else { return Vec::new() };
    let name = |place: &usize| schema.columns.get(*place).map(|column| column.name.clone());
    words.columns.iter().filter_map(name).collect()
}

/// The columns of a table as SQL shows them.
async fn columns(guest: &mut Guest, database: &str, name: &str) -> Result<Vec<SqlColumn>, String> {
    let quoted = |name: &str| name.replace('`', "``");
    let text = format!("SELECT * FROM `{}`.`{}` LIMIT 0", quoted(database), quoted(name));
    let mut reply = Rows::new(guest.interrupter(), |_, _| ((), 0));
    guest.run(&text, &mut reply).await.map_err(|error| error.message)?;
    Ok(reply.columns)
}

fn is_whole(kind: SqlType) -> bool {
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

/// A column as a request sees it; `None` for types that have no attribute.
fn column(column: &SqlColumn) -> Option<Column> {
    let kind = match column.kind {
        SqlType::TinyInt if column.length == 1 => ColumnKind::Bool,
        SqlType::Year => ColumnKind::Number,
        SqlType::BigInt => ColumnKind::BigInt,
        kind if is_whole(kind) && column.unsigned => ColumnKind::Number,
        kind if is_whole(kind) => ColumnKind::BigInt,
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
