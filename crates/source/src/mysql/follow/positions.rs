//! What is stored beside the rows, in the same commits: how far the source was applied, under
//! which layout each table's rows stand, and how far its copy is.
//!
//! ```text
//! <name>                       the applied GTID set
//! <name>/source                {"flavor": "mysql" | "mariadb", "uuid": ...}: following has begun
//! <name>/table/<table>         fingerprint of the source's table that the visible rows belong to,
//!                              or "stale": they are not fed any more and a copy will replace them
//! <name>/copy/<table>          {"layout": fingerprint, "after": [literals of the last key read],
//!                              "rows": n}: the hidden copy of the table
//! ```

use remora_engine::Database;
use serde_json::{Value, json};

use crate::mysql::{gtid::Flavor, schema::SourceTable};

/// A name and a position as the engine stores them; an empty position removes the name.
pub(crate) type Stored = (String, String);

/// The position of rows that no longer follow the source.
pub(crate) const STALE: &str = "stale";

/// How far a copy is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Of the table whose rows were read.
    pub layout: String,
    /// The key after which reading goes on, as SQL literals; empty at the beginning.
    pub after: Vec<String>,
    /// Rows read.
    pub rows: u64,
}

pub(crate) fn source_key(name: &str) -> String {
    format!("{name}/source")
}

pub(crate) fn table_key(name: &str, table: &str) -> String {
    format!("{name}/table/{table}")
}

pub(crate) fn copy_key(name: &str, table: &str) -> String {
    format!("{name}/copy/{table}")
}

/// The names of tables that have an entry of one kind.
pub(crate) fn tables_with(database: &Database, key: &dyn Fn(&str) -> String) -> Vec<String> {
    let prefix = key("");
    let positions = database.source_positions();
    let names = positions.iter().filter_map(|(name, _)| name.strip_prefix(prefix.as_str()));
    names.map(str::to_owned).collect()
}

/// That following has begun, and whom.
pub(crate) fn source_text(flavor: Flavor, uuid: &str) -> String {
    let flavor = match flavor {
        Flavor::MySql => "mysql",
        Flavor::MariaDb => "mariadb",
    };
    json!({ "flavor": flavor, "uuid": uuid }).to_string()
}

/// The server that a text of [`source_text`] names.
pub(crate) fn source_uuid(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    Some(value.get("uuid")?.as_str()?.to_owned())
}

/// A number that is another one where rows of the table are laid out or mean otherwise.
pub(crate) fn fingerprint(table: &SourceTable) -> String {
    let columns: Vec<_> = table
        .columns
        .iter()
        .map(|column| (&column.name, column.ordinal, &column.kind, column.nullable))
        .collect();
    let text = format!("{columns:?} {:?} {}", table.key, table.image_columns);
    let (front, back) = text.as_bytes().split_at(text.len() / 2);
    format!("{:08x}{:08x}{:x}", crc32fast::hash(front), crc32fast::hash(back), text.len())
}

impl Progress {
    pub fn text(&self) -> String {
        json!({ "layout": self.layout, "after": self.after, "rows": self.rows }).to_string()
    }

    pub fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let after = value.get("after")?.as_array()?.iter();
        Some(Self {
            layout: value.get("layout")?.as_str()?.to_owned(),
            after: after.map(|part| part.as_str().map(str::to_owned)).collect::<Option<_>>()?,
            rows: value.get("rows")?.as_u64()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_read_back() {
        let progress = Progress {
            layout: "1f".to_owned(),
            after: vec!["5".to_owned(), "'a\\'b'".to_owned()],
            rows: 9,
        };
        assert_eq!(Progress::parse(&progress.text()), Some(progress));
        assert_eq!(Progress::parse("{}"), None);
        let text = source_text(Flavor::MariaDb, "u-1");
        assert_eq!(source_uuid(&text), Some("u-1".to_owned()));
    }
}
