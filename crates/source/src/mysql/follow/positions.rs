//! What is stored beside the rows, in the same commits: the applied position, each table's definition there, and the
//! progress of its copy.
//!
//! ```text
//! <name>                       the applied GTID set
//! <name>/source                {"flavor": "mysql" | "mariadb", "uuid": ...}: following has begun
//! <name>/temporary             names that temporary tables had, see `temporary`
//! <name>/binlog                {"uuid": ..., "name": ..., "created": ...}: the binlog file that the
//!                              position is in
//! <name>/table/<table>         the source's definition of the table at the applied position, or
//!                              "stale": its rows are not fed any more and a copy will replace them
//! <name>/copied/<table>        the same of the hidden copy of the table
//! <name>/words/<table>         the words that are declared for the table, see `words`
//! <name>/copy/<table>          {"after": [literals of the last key read], "rows": n}: how far the
//!                              copy is
//! ```
//! So after a restart the definition for the next rows is known, however far ahead the source is.

use remora_engine::Database;
use serde_json::{Value, json};

use crate::mysql::{gtid::Flavor, schema::SourceTable};

/// A name and a position as the engine stores them. An empty position removes the name.
pub(crate) type Stored = (String, String);

/// The position of a table that is no longer fed.
pub(crate) const STALE: &str = "stale";

/// The progress of a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The key after which reading continues, as SQL literals; empty at the beginning.
    pub after: Vec<String>,
    /// The number of rows read.
    pub rows: u64,
}

pub(crate) fn source_key(name: &str) -> String {
    format!("{name}/source")
}

pub(crate) fn temporary_key(name: &str) -> String {
    format!("{name}/temporary")
}

/// The name under which the current binlog file is stored.
pub(crate) fn binlog_key(name: &str) -> String {
    format!("{name}/binlog")
}

pub(crate) fn table_key(name: &str, table: &str) -> String {
    format!("{name}/table/{table}")
}

pub(crate) fn copied_key(name: &str, table: &str) -> String {
    format!("{name}/copied/{table}")
}

pub(crate) fn copy_key(name: &str, table: &str) -> String {
    format!("{name}/copy/{table}")
}

pub(crate) fn words_key(name: &str, table: &str) -> String {
    format!("{name}/words/{table}")
}

/// The names of tables that have an entry of one kind.
pub(crate) fn tables_with(database: &Database, key: &dyn Fn(&str) -> String) -> Vec<String> {
    let prefix = key("");
    let positions = database.source_positions();
    let names = positions.iter().filter_map(|(name, _)| name.strip_prefix(prefix.as_str()));
    names.map(str::to_owned).collect()
}

/// The stored text that following has begun, and of which server.
pub(crate) fn source_text(flavor: Flavor, uuid: &str) -> String {
    let flavor = match flavor {
        Flavor::MySql => "mysql",
        Flavor::MariaDb => "mariadb",
    };
    json!({ "flavor": flavor, "uuid": uuid }).to_string()
}

/// The server that was followed under this name, according to these positions.
pub fn followed_server<'p>(
    name: &str,
    position_of: impl FnOnce(&str) -> Option<&'p str>,
) -> Option<String> {
    source_uuid(position_of(&source_key(name))?)
}

/// The local names of the tables that came from the source of this name, according to these positions.
pub fn followed_tables<'p>(name: &str, positions: impl Iterator<Item = &'p str>) -> Vec<String> {
    let prefix = table_key(name, "");
    positions.filter_map(|key| key.strip_prefix(prefix.as_str())).map(str::to_owned).collect()
}

/// The server in a text of [`source_text`].
pub(crate) fn source_uuid(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    Some(value.get("uuid")?.as_str()?.to_owned())
}

/// A binlog file of a server. Files of the same name with different creation times are different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BinlogFile {
    pub uuid: String,
    pub name: String,
    /// In seconds since 1970, or [`BinlogFile::UNKNOWN`].
    pub created: u32,
}

impl BinlogFile {
    /// The creation time of a file of which only the name is known.
    pub const UNKNOWN: u32 = 0;

    pub fn text(&self) -> String {
        json!({ "uuid": self.uuid, "name": self.name, "created": self.created }).to_string()
    }

    pub fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let part = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        let created = u32::try_from(value.get("created")?.as_u64()?).ok()?;
        Some(Self { uuid: part("uuid")?, name: part("name")?, created })
    }
}

/// A definition in stored form.
pub(crate) fn definition_text(table: &SourceTable) -> String {
    serde_json::to_string(table).unwrap_or_else(|_| STALE.to_owned())
}

/// The stored definition; `None` if there is none or it is stale.
pub(crate) fn stored_definition(text: Option<&str>) -> Option<SourceTable> {
    serde_json::from_str(text?).ok()
}

impl Progress {
    pub fn text(&self) -> String {
        json!({ "after": self.after, "rows": self.rows }).to_string()
    }

    pub fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let after = value.get("after")?.as_array()?.iter();
        Some(Self {
            after: after.map(|part| part.as_str().map(str::to_owned)).collect::<Option<_>>()?,
            rows: value.get("rows")?.as_u64()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use remora_mysql::Charset;

    use super::*;
    use crate::mysql::schema::{
        ColumnDefault, Generation, Range, SourceColumn, SourceType, TextType,
    };

    #[test]
    fn progress_round_trips() {
        let progress = Progress { after: vec!["5".to_owned(), "'a\\'b'".to_owned()], rows: 9 };
        assert_eq!(Progress::parse(&progress.text()), Some(progress));
        assert_eq!(Progress::parse("{}"), None);
        let text_type = TextType { charset: Charset::named("sjis").unwrap(), length: 9 };
        let columns = vec![SourceColumn {
            name: "a".to_owned(),
            ordinal: 3,
            kind: SourceType::VarChar(text_type),
            range: Range { unsigned: true, digits: Some((7, 4)) },
            nullable: true,
            generation: Generation::Stored,
            default: ColumnDefault::Constant("x'\"".to_owned()),
            collation: Some(7),
            renamed_from: None,
        }];
        let (database, name) = ("d".to_owned(), "t".to_owned());
        let (key, words) = (vec![0], Default::default());
        let table = SourceTable {
            database,
            name,
            columns,
            key,
            image_columns: 4,
            unique_keys: Vec::new(),
            period_end: None,
            words,
        };
        assert_eq!(stored_definition(Some(&definition_text(&table))), Some(table));
        assert_eq!(stored_definition(Some(STALE)), None);
        assert_eq!(stored_definition(None), None);
        let text = source_text(Flavor::MariaDb, "u-1");
        assert_eq!(source_uuid(&text), Some("u-1".to_owned()));
    }
}
