//! Reading tables from `information_schema`, of MySQL since 5.6 and of MariaDB.
//!
//! MySQL's row images contain generated columns. MariaDB's do not since version 11, so generated columns are not
//! followed there; before 11 they contain STORED but no VIRTUAL ones. After the declared columns, MariaDB's images
//! contain the two columns of the system period, unless they are declared, and one for each unique key that is a hash.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use mysql::{Conn, Params, Row, prelude::Queryable};
use remora_engine::{HIDDEN_KEY, HIDDEN_PREFIX};
use remora_mysql::ErrorCode;

use super::{
    Generation, Selection, SourceColumn, SourceTable, SourceType, Words, declaration::Declaration,
    foreign_key::reacting_keys,
};
use crate::{
    Error, Result,
    mysql::{
        gtid::Flavor,
        quote::{quoted, quoted_text},
    },
};

/// How often a table that is listed without columns is read again, and after what time.
const ATTEMPTS: usize = 5;
const RETRY_DELAY: Duration = Duration::from_millis(20);
/// The most bytes of a key, here and at the source.
const MAX_KEY_BYTES: u64 = 3_072;
/// The most columns of a table here.
const MAX_COLUMNS: usize = 4_096;
/// The most columns of a key, here and at the source.
const MAX_KEY_COLUMNS: usize = 32;

/// Errors that say nothing about the table itself: access denied, the table is gone, it is locked.
const INCONCLUSIVE_ERRORS: [ErrorCode; 5] = [
    ErrorCode::DatabaseAccessDenied,
    ErrorCode::TableAccessDenied,
    ErrorCode::ColumnAccessDenied,
    ErrorCode::NoSuchTable,
    ErrorCode::LockWaitTimeout,
];

/// A selected table that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedTable {
    /// Its database.
    pub database: String,
    /// Its name.
    pub table: String,
    /// Why, and what to do.
    pub reason: String,
}

/// All selected tables, and those of them that cannot be followed. Views, sequences and temporary tables are skipped.
///
/// # Errors
/// [`Error::Statement`] if the source does not answer a query about its tables, also if the connection breaks.
pub fn read_tables(
    connection: &mut Conn,
    selection: &Selection,
) -> Result<(Vec<SourceTable>, Vec<RefusedTable>)> {
    let mut source = Source::of(connection)?;
    let mut databases = BTreeMap::<String, Vec<ListedTable>>::new();
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
            let period = source.period(&database, &table)?;
            match source.table(&database, &table, &columns, &keys, &period) {
                Ok(read) => {
                    let words = source.words(&database, &table.name)?;
                    tables.push(SourceTable { words, ..read });
                }
                Err(reason) => {
                    let reason = source.open_error(&database, &table.name)?.unwrap_or(reason);
                    refused.push(RefusedTable {
                        database: database.clone(),
                        table: table.name,
                        reason,
                    });
                }
            }
        }
    }
    Ok((tables, refused))
}

/// The databases and names of all selected tables, whether they can be followed or not.
pub(crate) fn list_tables(
    connection: &mut Conn,
    selection: &Selection,
) -> Result<Vec<(String, String)>> {
    let listed = Source::of(connection)?.listed("")?.into_iter();
    let names = listed.map(|(database, listed)| (database, listed.name));
    Ok(names.filter(|(database, table)| selection.matches(database, table)).collect())
}

/// The names of all MERGE tables.
pub(crate) fn list_merged(connection: &mut Conn) -> Result<Vec<(String, String)>> {
    let listed = Source::of(connection)?.listed(" AND ENGINE = 'MRG_MyISAM'")?.into_iter();
    Ok(listed.map(|(database, listed)| (database, listed.name)).collect())
}

/// Whether foreign key actions change rows of a table; `None` if the table cannot be seen.
pub(crate) fn is_changed_by_foreign_keys(
    connection: &mut Conn,
    database: &str,
    table: &str,
) -> Result<Option<bool>> {
    let mut source = Source::of(connection)?;
    let names = (quoted_text(database), quoted_text(table));
    let wanted = format!(" AND TABLE_SCHEMA = {} AND TABLE_NAME = {}", names.0, names.1);
    if source.listed(&wanted)?.is_empty() {
        // The account may read everything, so the table does not exist.
        let sees_all = source.rows(
            "SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'SELECT'",
        )?;
        return Ok(if sees_all.is_empty() { None } else { Some(false) });
    }
    // `information_schema` hides keys from accounts that may only read the table.
    let words = source.words(database, table)?;
    Ok((!words.is_empty()).then(|| !reacting_keys(&words, database).is_empty()))
}

/// One table; `None` if the source has no such table.
///
/// # Errors
/// [`Error::TableRefused`] if it cannot be followed, [`Error::Statement`] if the source does not answer a query about
/// it, also if the connection breaks.
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
    let mut attempts = 0;
    let (database, listed, columns) = loop {
        let Some((database, listed)) = source.listed(&wanted)?.pop() else { return Ok(None) };
        let mut columns = source.columns(&database, Some(table))?;
        let columns = columns.remove(&listed.name).unwrap_or_default();
        attempts += 1;
        if !columns.is_empty() || attempts == ATTEMPTS {
            break (database, listed, columns);
        }
        // It may have been renamed between the two queries.
        std::thread::sleep(RETRY_DELAY);
    };
    let keys = source.keys(&database, Some(table))?.remove(&listed.name).unwrap_or_default();
    let period = source.period(&database, &listed)?;
    let read = match source.table(&database, &listed, &columns, &keys, &period) {
        Ok(read) => read,
        Err(reason) => {
            let reason = source.open_error(&database, &listed.name)?.unwrap_or(reason);
            let table = format!("{database}.{}", listed.name);
            return Err(Error::TableRefused { table, reason });
        }
    };
    let words = source.words(&database, &listed.name)?;
    Ok(Some(SourceTable { words, ..read }))
}

struct ListedTable {
    name: String,
    kind: String,
    /// Empty if the server cannot open the table.
    engine: String,
}

/// The system period of a table with system versioning.
#[derive(Default)]
struct Period {
    /// Whether the table has a system period.
    is_there: bool,
    /// Its declared start and end columns. Without them the table has two that are not listed.
    start: Option<String>,
    end: Option<String>,
}

/// A unique key: its columns, and whether it identifies rows.
#[derive(Default)]
struct Key {
    columns: Vec<Option<String>>,
    nullable: bool,
    has_prefix: bool,
    is_hash: bool,
}

struct Source<'c> {
    connection: &'c mut Conn,
    flavor: Flavor,
    collations: HashMap<String, u64>,
    /// Whether row images contain stored generated columns.
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
        } else {
            // Older servers have neither this variable nor the keys that it hides.
            let shown = "SET SESSION show_gipk_in_create_table_and_information_schema = ON";
            match source.connection.query_drop(shown) {
                Ok(()) | Err(mysql::Error::MySqlError(_)) => {}
                Err(error) => {
                    let statement = shown.to_owned();
                    return Err(Error::Statement { statement, message: error.to_string() });
                }
            }
        }
        source.collations = source.collations()?;
        Ok(source)
    }

    /// The numbers of collations by name. MariaDB's collations for several character sets have a number for each.
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

    fn listed(&mut self, condition: &str) -> Result<Vec<(String, ListedTable)>> {
        let rows = self.rows(&format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES \
             WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED'){condition} \
             ORDER BY TABLE_SCHEMA, TABLE_NAME"
        ))?;
        let listed = |row: &Row| {
            let engine = text(row, 3).unwrap_or_default();
            Some((text(row, 0)?, ListedTable { name: text(row, 1)?, kind: text(row, 2)?, engine }))
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
            key.has_prefix |= number(row, 3).is_some();
            key.columns.push(column);
        }
        Ok(tables)
    }

    /// The system period of a table.
    fn period(&mut self, database: &str, listed: &ListedTable) -> Result<Period> {
        let is_there = listed.kind == "SYSTEM VERSIONED";
        let mut period = Period { is_there, ..Period::default() };
        if !is_there {
            return Ok(period);
        }
        let rows = self.rows(&format!(
            "SELECT COLUMN_NAME, GENERATION_EXPRESSION FROM information_schema.COLUMNS WHERE {}",
            condition(database, Some(&listed.name))
        ))?;
        for row in &rows {
            match text(row, 1).as_deref() {
                Some("ROW START") => period.start = text(row, 0),
                Some("ROW END") => period.end = text(row, 0),
                _ => {}
            }
        }
        Ok(period)
    }

    /// Why the server itself cannot open a table, if it cannot: its description is then unreliable. Locks are not
    /// waited for.
    fn open_error(&mut self, database: &str, table: &str) -> Result<Option<String>> {
        self.rows("SET SESSION lock_wait_timeout = 1")?;
        let statement = format!("SELECT 1 FROM {}.{} LIMIT 0", quoted(database), quoted(table));
        let opened = self.connection.exec_drop(&statement, Params::Empty);
        self.rows("SET SESSION lock_wait_timeout = DEFAULT")?;
        match opened {
            Err(mysql::Error::MySqlError(error))
                if INCONCLUSIVE_ERRORS.iter().all(|code| code.number() != error.code) =>
            {
                Ok(Some(format!(
                    "the source itself cannot open it: {} (error {}); repair, restore or drop it \
                     there",
                    error.message, error.code
                )))
            }
            Ok(()) | Err(mysql::Error::MySqlError(_)) => Ok(None),
            Err(error) => Err(Error::Statement { statement, message: error.to_string() }),
        }
    }

    /// SHOW CREATE TABLE; empty if the source refuses it.
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
        listed: &ListedTable,
        declarations: &[Declaration],
        keys: &BTreeMap<String, Key>,
        period: &Period,
    ) -> Result<SourceTable, String> {
        if listed.engine.is_empty() {
            let advice = "drop it there, or restore it";
            return Err(format!("the source itself cannot open it: {advice}"));
        }
        check_engine(&listed.engine)?;
        let mut columns = Vec::with_capacity(declarations.len());
        let mut names = BTreeSet::new();
        for (ordinal, declaration) in declarations.iter().enumerate() {
            let collation = declaration.collation.as_ref();
            let collation = collation.and_then(|name| self.collations.get(name)).copied();
            let mut column = declaration.column(ordinal, self.flavor, collation)?;
            if [&period.start, &period.end].contains(&&Some(declaration.name.clone())) {
                // It is not computed from the row's other columns, and row images contain it.
                column.generation = Generation::None;
            }
            columns.push(column);
            names.insert(declaration.name.to_lowercase());
        }
        if columns.is_empty() {
            return Err("its columns cannot be seen: GRANT SELECT on it".to_owned());
        }
        if names.len() < columns.len() {
            return Err("two of its columns have names that differ by accents alone".to_owned());
        }
        let mut image_columns = columns.len();
        let mut period_end = None;
        if period.is_there {
            let declared = columns.iter().find(|column| Some(&column.name) == period.end.as_ref());
            period_end = Some(declared.map_or(columns.len() + 1, |column| column.ordinal));
            image_columns += if declared.is_none() { 2 } else { 0 };
        }
        if self.flavor == Flavor::MariaDb {
            columns.retain(|column| match column.generation {
                Generation::None => true,
                Generation::Stored => self.logs_stored,
                Generation::Virtual => false,
            });
            let in_memory = listed.engine.eq_ignore_ascii_case("MEMORY");
            image_columns += keys.values().filter(|key| key.is_hash && !in_memory).count();
        }
        let unique_keys = unique_keys(&columns, keys, period_end);
        let key = key(&columns, keys, period_end);
        if key.is_empty() {
            check_hidden_key(&columns)?;
        }
        check_names(&columns)?;
        key.iter().filter_map(|&place| columns.get(place)).try_for_each(check_members)?;
        let (database, name) = (database.to_owned(), listed.name.clone());
        let words = Words::default();
        Ok(SourceTable {
            database,
            name,
            columns,
            key,
            image_columns,
            unique_keys,
            period_end,
            words,
        })
    }
}

/// Storage engines whose row changes are all logged.
const LOGGED_ENGINES: [&str; 10] = [
    "InnoDB",
    "MyISAM",
    "Aria",
    "MEMORY",
    "ARCHIVE",
    "CSV",
    "ROCKSDB",
    "TokuDB",
    "ndbcluster",
    "Mroonga",
];

fn check_engine(engine: &str) -> Result<(), String> {
    let is_logged = LOGGED_ENGINES.iter().any(|logged| logged.eq_ignore_ascii_case(engine));
    if is_logged {
        return Ok(());
    }
    Err(format!(
        "its ENGINE is {engine}, of which the binlog does not tell every change: follow the tables \
         behind it, or ALTER TABLE … ENGINE=InnoDB"
    ))
}

/// Checks that the members of an ENUM or SET in the key differ. MySQL can lose their letters when it converts a table to
/// another character set; then rows that are different at the source have one key here.
fn check_members(column: &SourceColumn) -> Result<(), String> {
    let (SourceType::Enum(members) | SourceType::Set(members)) = &column.kind else {
        return Ok(());
    };
    let members = &members.labels;
    let distinct: BTreeSet<_> = members.iter().collect();
    if distinct.len() == members.len() {
        return Ok(());
    }
    Err(format!(
        "two members of {} in its key are equal, so rows would be lost: MODIFY that column",
        column.name
    ))
}

/// The columns of each key that identifies rows.
fn unique_keys(
    columns: &[SourceColumn],
    keys: &BTreeMap<String, Key>,
    period_end: Option<usize>,
) -> Vec<Vec<String>> {
    let whole = keys.values().filter(|key| places(columns, key, period_end).is_some());
    whole.map(|key| key.columns.iter().flatten().cloned().collect()).collect()
}

/// The positions of the primary key's columns, or else of those of the smallest unique key without NULLs; empty if
/// there is no such key.
fn key(
    columns: &[SourceColumn],
    keys: &BTreeMap<String, Key>,
    period_end: Option<usize>,
) -> Vec<usize> {
    let primary = keys.get_key_value("PRIMARY");
    let mut others: Vec<_> = keys.iter().filter(|(name, _)| *name != "PRIMARY").collect();
    others.sort_by_key(|(_, key)| key.columns.len());
    let mut keys = primary.into_iter().chain(others);
    keys.find_map(|(_, key)| places(columns, key, period_end)).unwrap_or_default()
}

/// Refuses column names that are reserved for hidden columns.
fn check_names(columns: &[SourceColumn]) -> Result<(), String> {
    match columns.iter().find(|column| column.name.starts_with(HIDDEN_PREFIX)) {
        None => Ok(()),
        Some(column) => Err(format!(
            "it has a column named {:?}, as columns of Remora's own are: rename it",
            column.name
        )),
    }
}

/// Checks that the hidden key can be added.
fn check_hidden_key(columns: &[SourceColumn]) -> Result<(), String> {
    let advice = "give it a primary key";
    if columns.iter().any(|column| column.name.eq_ignore_ascii_case(HIDDEN_KEY)) {
        return Err(format!("it has no key, and a column named {HIDDEN_KEY:?}: {advice}"));
    }
    if columns.len() >= MAX_COLUMNS {
        return Err(format!("it has no key and {} columns: {advice}", columns.len()));
    }
    Ok(())
}

/// The positions of a key's columns; `None` if it does not identify rows here.
fn places(columns: &[SourceColumn], key: &Key, period_end: Option<usize>) -> Option<Vec<usize>> {
    if key.nullable || key.has_prefix || key.columns.len() > MAX_KEY_COLUMNS {
        return None;
    }
    let mut places = Vec::with_capacity(key.columns.len());
    for name in &key.columns {
        // An expression has no name, and hidden columns are not listed.
        let name = name.as_deref()?.to_lowercase();
        let place = columns.iter().position(|column| column.name.to_lowercase() == name)?;
        let column = columns.get(place)?;
        // JSON has no order, and two years may have the same two digits.
        let is_vague = matches!(column.kind, SourceType::Json | SourceType::ShortYear);
        if is_vague || is_unbounded(&column.kind) {
            return None;
        }
        // Servers append it to the keys of a versioned table; it is equal in all current rows.
        if period_end != Some(column.ordinal) {
            places.push(place);
        }
    }
    (!places.is_empty()).then_some(places)
}

/// MariaDB keeps such columns unique only by a hash, which has no order to copy by.
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
    // Labels of an ENUM or SET that are not valid Unicode cannot be represented: the column is refused.
    let is_unicode = |index: usize| match row.as_ref(index) {
        Some(mysql::Value::Bytes(bytes)) => std::str::from_utf8(bytes).is_ok(),
        _ => true,
    };
    if !is_unicode(12) {
        let column_type = "a type whose labels are no Unicode".to_owned();
        let name = text(row, 1).unwrap_or_default();
        return Declaration { name, column_type, ..Declaration::default() };
    }
    let default_is_bytes = !is_unicode(2);
    let default = if default_is_bytes { hexadecimal(row, 2) } else { text(row, 2) };
    Declaration {
        name: text(row, 1).unwrap_or_default(),
        default,
        default_is_bytes,
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

/// Bytes as `0x` and digits, so that different bytes differ.
fn hexadecimal(row: &Row, index: usize) -> Option<String> {
    let mysql::Value::Bytes(bytes) = row.as_ref(index)? else { return None };
    let digits = bytes.iter().map(|byte| format!("{byte:02X}"));
    Some(format!("0x{}", digits.collect::<String>()))
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
