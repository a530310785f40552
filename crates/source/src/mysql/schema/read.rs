//! Reading tables from `information_schema`, of MySQL since 5.6 and of MariaDB.
//!
//! MySQL's row images hold the columns that it computes. MariaDB's leave them out since 11, where
//! none of them is followed; before, the stored ones are, but no virtual ones. Behind the declared
//! columns MariaDB's images hold one for each unique key that is a hash.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use mysql::{Conn, Params, Row, prelude::Queryable};

use super::{
    Generation, Selection, SourceColumn, SourceTable, SourceType, Words,
    declaration::Declaration,
    table::{quoted, quoted_text},
};
use crate::{Error, Result, mysql::gtid::Flavor};

/// Most bytes of a key, here and at the source.
const MAX_KEY_BYTES: u64 = 3_072;

/// A table that is wanted but cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its database.
    pub database: String,
    /// Its name.
    pub table: String,
    /// Why, and what to do.
    pub reason: String,
}

/// Every table that the selection names, and those of them that cannot be followed. Views,
/// sequences and temporary tables are passed over.
pub fn read_tables(
    connection: &mut Conn,
    selection: &Selection,
) -> Result<(Vec<SourceTable>, Vec<Refused>)> {
    let mut source = Source::of(connection)?;
    let mut databases = BTreeMap::<String, Vec<Listed>>::new();
    for (database, listed) in source.listed("")? {
        if selection.matches(&database, &listed.name) {
            databases.entry(database).or_default().push(listed);
        }
    }
    let (mut tables, mut refused) = (Vec::new(), Vec::new());
    for (database, listed) in databases {
        let mut columns = source.columns(&database, None)?;
        let mut keys = source.keys(&database, None)?;
        for table in listed {
            let columns = columns.remove(&table.name).unwrap_or_default();
            let keys = keys.remove(&table.name).unwrap_or_default();
            match source.table(&database, &table, &columns, &keys) {
                Ok(read) => {
                    let words = source.words(&database, &table.name)?;
                    tables.push(SourceTable { words, ..read });
                }
                Err(reason) => {
                    refused.push(Refused { database: database.clone(), table: table.name, reason });
                }
            }
        }
    }
    Ok((tables, refused))
}

/// One table; `None` if the source has no such table, [`Error::TableRefused`] if it cannot be
/// followed.
pub fn read_table(
    connection: &mut Conn,
    database: &str,
    table: &str,
) -> Result<Option<SourceTable>> {
    let mut source = Source::of(connection)?;
    let wanted = format!(
        " AND TABLE_SCHEMA = {} AND TABLE_NAME = {}",
        quoted_text(database),
        quoted_text(table)
    );
    let Some((database, listed)) = source.listed(&wanted)?.pop() else { return Ok(None) };
    let columns = source.columns(&database, Some(table))?.remove(&listed.name).unwrap_or_default();
    let keys = source.keys(&database, Some(table))?.remove(&listed.name).unwrap_or_default();
    let read = source.table(&database, &listed, &columns, &keys);
    let refused =
        |reason| Error::TableRefused { table: format!("{database}.{}", listed.name), reason };
    let read = read.map_err(refused)?;
    let words = source.words(&database, &listed.name)?;
    Ok(Some(SourceTable { words, ..read }))
}

struct Listed {
    name: String,
    kind: String,
    engine: String,
}

/// A unique key: its columns and whether it can tell rows apart.
#[derive(Default)]
struct Key {
    columns: Vec<Option<String>>,
    nullable: bool,
    prefix: Option<String>,
    is_hash: bool,
}

struct Source<'c> {
    connection: &'c mut Conn,
    flavor: Flavor,
    collations: HashMap<String, u64>,
    /// Whether row images hold the columns that are computed and stored.
    logs_stored: bool,
}

impl<'c> Source<'c> {
    fn of(connection: &'c mut Conn) -> Result<Self> {
        let (flavor, collations) = (Flavor::MySql, HashMap::new());
        let mut source = Self { connection, flavor, collations, logs_stored: true };
        let version = source.rows("SELECT VERSION()")?;
        let version = version.first().and_then(|row| row.get::<String, _>(0));
        if let Some(version) = version.filter(|version| version.contains("MariaDB")) {
            source.flavor = Flavor::MariaDb;
            let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
            source.logs_stored = major.is_some_and(|major| major < 11);
        }
        source.collations = source.collations()?;
        Ok(source)
    }

    /// The numbers of the collations by their names; those of MariaDB that several character sets
    /// share have one for each.
    fn collations(&mut self) -> Result<HashMap<String, u64>> {
        let full = "SELECT FULL_COLLATION_NAME, ID \
            FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY";
        let plain = "SELECT COLLATION_NAME, ID FROM information_schema.COLLATIONS";
        let rows = match self.flavor {
            Flavor::MariaDb => self.rows(full).or_else(|_| self.rows(plain))?,
            Flavor::MySql => self.rows(plain)?,
        };
        Ok(rows.iter().filter_map(|row| Some((text(row, 0)?, number(row, 1)?))).collect())
    }

    fn rows(&mut self, statement: &str) -> Result<Vec<Row>> {
        self.connection.exec(statement, Params::Empty).map_err(|error| Error::Statement {
            statement: statement.chars().take(80).collect(),
            message: error.to_string(),
        })
    }

    fn listed(&mut self, condition: &str) -> Result<Vec<(String, Listed)>> {
        let rows = self.rows(&format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES \
             WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED'){condition} \
             ORDER BY TABLE_SCHEMA, TABLE_NAME"
        ))?;
        let listed = |row: &Row| {
            let engine = text(row, 3).unwrap_or_default();
            Some((text(row, 0)?, Listed { name: text(row, 1)?, kind: text(row, 2)?, engine }))
        };
        Ok(rows.iter().filter_map(listed).collect())
    }

    fn columns(
        &mut self,
        database: &str,
        table: Option<&str>,
    ) -> Result<HashMap<String, Vec<Declaration>>> {
        let rows = self.rows(&format!(
            "SELECT TABLE_NAME, COLUMN_NAME, COLUMN_DEFAULT, IS_NULLABLE, DATA_TYPE, \
             CHARACTER_OCTET_LENGTH, CHARACTER_MAXIMUM_LENGTH, NUMERIC_PRECISION, NUMERIC_SCALE, \
             DATETIME_PRECISION, CHARACTER_SET_NAME, COLLATION_NAME, COLUMN_TYPE, EXTRA \
             FROM information_schema.COLUMNS WHERE {} ORDER BY TABLE_NAME, ORDINAL_POSITION",
            condition(database, table)
        ))?;
        let mut tables = HashMap::<String, Vec<Declaration>>::new();
        for row in &rows {
            let Some(table) = text(row, 0) else { continue };
            tables.entry(table).or_default().push(declaration(row));
        }
        Ok(tables)
    }

    /// The unique keys by table and name.
    fn keys(
        &mut self,
        database: &str,
        table: Option<&str>,
    ) -> Result<HashMap<String, BTreeMap<String, Key>>> {
        let rows = self.rows(&format!(
            "SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME, SUB_PART, NULLABLE, INDEX_TYPE \
             FROM information_schema.STATISTICS WHERE NON_UNIQUE = 0 AND {} \
             ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX",
            condition(database, table)
        ))?;
        let mut tables = HashMap::<String, BTreeMap<String, Key>>::new();
        for row in &rows {
            let (Some(table), Some(name)) = (text(row, 0), text(row, 1)) else { continue };
            let key = tables.entry(table).or_default().entry(name).or_default();
            let column = text(row, 2);
            key.nullable |= text(row, 4).is_some_and(|nullable| nullable == "YES");
            key.is_hash = text(row, 5).is_some_and(|kind| kind == "HASH");
            if number(row, 3).is_some() {
                key.prefix = column.clone();
            }
            key.columns.push(column);
        }
        Ok(tables)
    }

    /// The table in the source's own words; nothing if it does not tell them.
    fn words(&mut self, database: &str, table: &str) -> Result<Words> {
        let statement = format!("SHOW CREATE TABLE {}.{}", quoted(database), quoted(table));
        match self.connection.exec::<Row, _, _>(&statement, Params::Empty) {
            Ok(rows) => {
                let words = rows.first().and_then(|row| text(row, 1));
                Ok(words.map(|words| Words::of(&words)).unwrap_or_default())
            }
            Err(mysql::Error::MySqlError(_)) => Ok(Words::default()),
            Err(error) => Err(Error::Statement { statement, message: error.to_string() }),
        }
    }

    fn table(
        &self,
        database: &str,
        listed: &Listed,
        declarations: &[Declaration],
        keys: &BTreeMap<String, Key>,
    ) -> Result<SourceTable, String> {
        if listed.kind == "SYSTEM VERSIONED" {
            return Err("it is system-versioned: its row images hold its history too".to_owned());
        }
        let mut columns = Vec::with_capacity(declarations.len());
        let mut names = BTreeSet::new();
        for (ordinal, declaration) in declarations.iter().enumerate() {
            let collation = declaration.collation.as_ref();
            let collation = collation.and_then(|name| self.collations.get(name)).copied();
            columns.push(declaration.column(ordinal, self.flavor, collation)?);
            names.insert(declaration.name.to_lowercase());
        }
        if columns.is_empty() && listed.engine.is_empty() {
            let mend = "drop it there, or restore it";
            return Err(format!("the source itself cannot open it: {mend}"));
        }
        if columns.is_empty() {
            return Err("its columns cannot be seen: GRANT SELECT on it".to_owned());
        }
        if names.len() < columns.len() {
            return Err("two of its columns have names that differ by accents alone".to_owned());
        }
        let mut image_columns = columns.len();
        if self.flavor == Flavor::MariaDb {
            columns.retain(|column| match column.generation {
                Generation::None => true,
                Generation::Stored => self.logs_stored,
                Generation::Virtual => false,
            });
            let in_memory = listed.engine.eq_ignore_ascii_case("MEMORY");
            image_columns += keys.values().filter(|key| key.is_hash && !in_memory).count();
        }
        let key = key(&columns, keys)?;
        let (database, name) = (database.to_owned(), listed.name.clone());
        let words = Words::default();
        Ok(SourceTable { database, name, columns, key, image_columns, words })
    }
}

/// The primary key's places, or else those of the smallest unique key that has no NULLs.
fn key(columns: &[SourceColumn], keys: &BTreeMap<String, Key>) -> Result<Vec<usize>, String> {
    let mut reasons = Vec::new();
    let primary = keys.get_key_value("PRIMARY");
    let mut others: Vec<_> = keys.iter().filter(|(name, _)| *name != "PRIMARY").collect();
    others.sort_by_key(|(_, key)| key.columns.len());
    for (name, key) in primary.into_iter().chain(others) {
        match places(columns, key) {
            Ok(places) => return Ok(places),
            Err(reason) => reasons.push(format!("{name} {reason}")),
        }
    }
    let found = match reasons.is_empty() {
        true => String::new(),
        false => format!(" ({})", reasons.join("; ")),
    };
    Err(format!(
        "it has no primary key and no unique key of whole NOT NULL columns{found}: add one"
    ))
}

fn places(columns: &[SourceColumn], key: &Key) -> Result<Vec<usize>, String> {
    if key.nullable {
        return Err("may be NULL".to_owned());
    }
    if let Some(column) = &key.prefix {
        return Err(format!("holds only the beginning of column {column:?}"));
    }
    let place = |name: &Option<String>| {
        let name = name.as_deref().ok_or("holds an expression")?.to_lowercase();
        let place = columns.iter().position(|column| column.name.to_lowercase() == name);
        let place = place.ok_or("holds a hidden column")?;
        match columns.get(place).map(|column| &column.kind) {
            Some(SourceType::Json) => Err("holds JSON, which has no order"),
            Some(kind) if is_unbounded(kind) => Err("holds a column of unbounded length"),
            _ => Ok(place),
        }
    };
    key.columns.iter().map(place).collect::<Result<_, &str>>().map_err(str::to_owned)
}

/// Only by a hash can MariaDB keep such columns unique, which gives no order to copy by.
fn is_unbounded(kind: &SourceType) -> bool {
    match kind {
        SourceType::Text(_) | SourceType::Blob(_) => true,
        SourceType::VarChar(text) => text.length > MAX_KEY_BYTES,
        SourceType::VarBinary(bytes) => *bytes as u64 > MAX_KEY_BYTES,
        _ => false,
    }
}

fn condition(database: &str, table: Option<&str>) -> String {
    let database = format!("TABLE_SCHEMA = {}", quoted_text(database));
    match table {
        Some(table) => format!("{database} AND TABLE_NAME = {}", quoted_text(table)),
        None => database,
    }
}

fn declaration(row: &Row) -> Declaration {
    // Labels of an ENUM or SET that are no Unicode would be others here: their column is refused.
    let is_unicode = |index: usize| match row.as_ref(index) {
        Some(mysql::Value::Bytes(bytes)) => std::str::from_utf8(bytes).is_ok(),
        _ => true,
    };
    if !is_unicode(12) {
        let column_type = "a type whose labels are no Unicode".to_owned();
        let name = text(row, 1).unwrap_or_default();
        return Declaration { name, column_type, ..Declaration::default() };
    }
    Declaration {
        name: text(row, 1).unwrap_or_default(),
        default: text(row, 2),
        nullable: text(row, 3).is_some_and(|nullable| nullable == "YES"),
        data_type: text(row, 4).unwrap_or_default().to_ascii_lowercase(),
        octets: number(row, 5),
        characters: number(row, 6),
        precision: number(row, 7),
        scale: number(row, 8),
        fraction: number(row, 9),
        charset: text(row, 10),
        collation: text(row, 11),
        column_type: text(row, 12).unwrap_or_default(),
        extra: text(row, 13).unwrap_or_default(),
    }
}

fn text(row: &Row, index: usize) -> Option<String> {
    match row.as_ref(index)? {
        mysql::Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    }
}

fn number(row: &Row, index: usize) -> Option<u64> {
    match row.as_ref(index)? {
        mysql::Value::Int(number) => u64::try_from(*number).ok(),
        mysql::Value::UInt(number) => Some(*number),
        mysql::Value::Bytes(bytes) => std::str::from_utf8(bytes).ok()?.parse().ok(),
        _ => None,
    }
}
