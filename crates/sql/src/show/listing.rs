//! SHOW of databases, tables, columns and indexes.

use remora_engine::Value;

use super::{
    filter::{Filter, Shown},
    grid::{Grid, text},
    keys,
    requested_tables::RequestedTables,
    system,
    tables::{self, ListedTable},
    views,
};
use crate::{
    Access, Result,
    catalog::{SYSTEM_DATABASES, TableName, check_seen},
    parse::{Source, Tokens},
    state::SessionState,
};

pub(super) const OPEN_TABLES: [&str; 4] = [
    "Database varchar(64) NOT NULL",
    "Table varchar(64) NOT NULL",
    "In_use bigint NOT NULL",
    "Name_locked bigint NOT NULL",
];
pub(super) const TRIGGERS: [&str; 11] = [
    "Trigger varchar(64) NOT NULL",
    "Event varchar(6) NOT NULL",
    "Table varchar(64) NOT NULL",
    "Statement longtext NOT NULL",
    "Timing varchar(6) NOT NULL",
    "Created timestamp(2)",
    "sql_mode varchar(512) NOT NULL",
    "Definer varchar(288) NOT NULL",
    "character_set_client varchar(64) NOT NULL",
    "collation_connection varchar(64) NOT NULL",
    "`Database Collation` varchar(64) NOT NULL",
];
pub(super) const EVENTS: [&str; 15] = [
    "Db varchar(64) NOT NULL",
    "Name varchar(64) NOT NULL",
    "Definer varchar(288) NOT NULL",
    "`Time zone` varchar(64) NOT NULL",
    "Type varchar(9) NOT NULL",
    "`Execute at` datetime",
    "`Interval value` varchar(256)",
    "`Interval field` varchar(18)",
    "Starts datetime",
    "Ends datetime",
    "Status varchar(21) NOT NULL",
    "Originator int unsigned NOT NULL",
    "character_set_client varchar(64) NOT NULL",
    "collation_connection varchar(64) NOT NULL",
    "`Database Collation` varchar(64) NOT NULL",
];
pub(super) const ROUTINES: [&str; 12] = [
    "Db varchar(64) NOT NULL",
    "Name varchar(64) NOT NULL",
    "Type varchar(9) NOT NULL",
    "Language varchar(64) NOT NULL",
    "Definer varchar(288) NOT NULL",
    "Modified timestamp NOT NULL",
    "Created timestamp NOT NULL",
    "Security_type varchar(7) NOT NULL",
    "Comment text NOT NULL",
    "character_set_client varchar(64) NOT NULL",
    "collation_connection varchar(64) NOT NULL",
    "`Database Collation` varchar(64) NOT NULL",
];
pub(super) const ENGINES: [&str; 6] = [
    "Engine varchar(64) NOT NULL",
    "Support varchar(8) NOT NULL",
    "Comment varchar(160) NOT NULL",
    "Transactions varchar(3)",
    "XA varchar(3)",
    "Savepoints varchar(3)",
];
pub(super) const CHARACTER_SETS: [&str; 4] = [
    "Charset varchar(64) NOT NULL",
    "Description varchar(2048) NOT NULL",
    "`Default collation` varchar(64) NOT NULL",
    "Maxlen int unsigned NOT NULL",
];
pub(super) const COLLATIONS: [&str; 7] = [
    "Collation varchar(64) NOT NULL",
    "Charset varchar(64) NOT NULL",
    "Id bigint unsigned NOT NULL",
    "Default varchar(3) NOT NULL",
    "Compiled varchar(3) NOT NULL",
    "Sortlen int unsigned NOT NULL",
    "Pad_attribute enum('PAD SPACE','NO PAD') NOT NULL",
];
pub(super) const PRIVILEGES: [&str; 3] = [
    "Privilege varchar(32) NOT NULL",
    "Context varchar(15) NOT NULL",
    "Comment varchar(64) NOT NULL",
];
pub(super) const PLUGINS: [&str; 5] = [
    "Name varchar(64) NOT NULL",
    "Status varchar(10) NOT NULL",
    "Type varchar(80) NOT NULL",
    "Library varchar(64)",
    "License varchar(80)",
];
pub(super) const PROFILES: [&str; 3] =
    ["Query_ID int NOT NULL", "Duration double NOT NULL", "Query varchar(300) NOT NULL"];
pub(super) const PROCESSES: [&str; 8] = [
    "Id bigint unsigned NOT NULL",
    "User varchar(32) NOT NULL",
    "Host varchar(255) NOT NULL",
    "db varchar(64)",
    "Command varchar(16) NOT NULL",
    "Time int NOT NULL",
    "State varchar(64)",
    "Info text",
];
const COLUMNS: [&str; 6] = [
    "Field varchar(64)",
    "Type mediumtext NOT NULL",
    "Null varchar(3) NOT NULL",
    "Key enum('','PRI','UNI','MUL') NOT NULL",
    "Default text",
    "Extra varchar(256)",
];
const FULL_COLUMNS: [&str; 9] = [
    "Field varchar(64)",
    "Type mediumtext NOT NULL",
    "Collation varchar(64)",
    "Null varchar(3) NOT NULL",
    "Key enum('','PRI','UNI','MUL') NOT NULL",
    "Default text",
    "Extra varchar(256)",
    "Privileges varchar(154)",
    "Comment text NOT NULL",
];
const INDEXES: [&str; 15] = [
    "Table varchar(64) NOT NULL",
    "Non_unique int NOT NULL",
    "Key_name varchar(64)",
    "Seq_in_index int unsigned NOT NULL",
    "Column_name varchar(64)",
    "Collation varchar(1)",
    "Cardinality bigint",
    "Sub_part bigint",
    "Packed varbinary(1)",
    "Null varchar(3) NOT NULL",
    "Index_type varchar(11) NOT NULL",
    "Comment varchar(8) NOT NULL",
    "Index_comment varchar(2048) NOT NULL",
    "Visible varchar(3) NOT NULL",
    "Expression longtext",
];
const TABLE_STATUS: [&str; 18] = [
    "Name varchar(64) NOT NULL",
    "Engine varchar(64)",
    "Version int",
    "Row_format enum('Fixed','Dynamic','Compressed','Redundant','Compact','Paged')",
    "Rows bigint unsigned",
    "Avg_row_length bigint unsigned",
    "Data_length bigint unsigned",
    "Max_data_length bigint unsigned",
    "Index_length bigint unsigned",
    "Data_free bigint unsigned",
    "Auto_increment bigint unsigned",
    "Create_time timestamp",
    "Update_time datetime",
    "Check_time datetime",
    "Collation varchar(64)",
    "Checksum bigint",
    "Create_options varchar(256)",
    "Comment text",
];

/// Parses FROM or IN with a database, by default the current one; 1044, 1046 or 1049 if it cannot
/// be used.
pub(super) fn database(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<String> {
    let name = match tokens.accept_any(&["FROM", "IN"]) {
        true => tokens.name()?,
        false => session.current_database()?.to_owned(),
    };
    check_seen(&session.shared, &session.identity, &name)?;
    Ok(name)
}

/// Parses `[database "."] table`.
pub(super) fn table_name(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<TableName> {
    let first = tokens.name()?;
    if tokens.take(".") {
        return Ok(TableName::new(first, tokens.name()?));
    }
    Ok(TableName::new(session.database.clone().unwrap_or_default(), first))
}

/// Parses `(FROM | IN) table [(FROM | IN) database]`.
fn table_of(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<TableName> {
    if !tokens.accept_any(&["FROM", "IN"]) {
        return Err(tokens.syntax_error());
    }
    let mut name = table_name(session, tokens)?;
    if tokens.accept_any(&["FROM", "IN"]) {
        name.database = tokens.name()?;
    }
    if name.database.is_empty() {
        session.current_database()?;
    }
    Ok(name)
}

/// The table whose columns a SHOW or DESCRIBE statement lists, if it does.
pub(crate) fn table_of_columns(session: &SessionState, source: &Source) -> Option<TableName> {
    let mut tokens = Tokens::new(&source.text, &source.tokens, source.mode);
    if tokens.accept_any(&["DESCRIBE", "DESC", "EXPLAIN"]) {
        return table_name(session, &mut tokens).ok();
    }
    tokens.expect("SHOW").ok()?;
    tokens.accept("EXTENDED");
    tokens.accept("FULL");
    let asks = tokens.accept_any(&["COLUMNS", "FIELDS"]);
    if asks { table_of(session, &mut tokens).ok() } else { None }
}

/// SHOW DATABASES.
pub(super) fn databases(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<Shown> {
    let filter = Filter::read_of_names(tokens)?;
    let mut grid = Grid::new(&["Database varchar(64) COLLATE utf8mb3_bin NOT NULL"]);
    grid.rename(0, format!("Database{}", filter.suffix()));
    for name in system::visible_databases(session) {
        grid.push(vec![text(name)]);
    }
    Ok(Shown { grid, filter })
}

/// SHOW TABLES.
pub(super) fn tables(session: &SessionState, tokens: &mut Tokens<'_>, full: bool) -> Result<Shown> {
    let database = database(session, tokens)?;
    // Names of its tables are written in capitals.
    let filter = match database.eq_ignore_ascii_case(SYSTEM_DATABASES[0]) {
        true => Filter::read(tokens)?,
        false => Filter::read_of_names(tokens)?,
    };
    let columns = [
        "Tables varchar(64) COLLATE utf8mb3_bin NOT NULL",
        "Table_type enum('BASE TABLE','VIEW','SYSTEM VIEW') NOT NULL",
    ];
    let mut grid = Grid::new(columns.get(..1 + usize::from(full)).unwrap_or_default());
    grid.rename(0, format!("Tables_in_{database}{}", filter.suffix()));
    let system = system::system_tables().iter().filter(|table| {
        system::is_system(&database) && table.name.database.eq_ignore_ascii_case(&database)
    });
    let of_system = |name: &TableName| match name.database.as_str() {
        "information_schema" => "SYSTEM VIEW",
        _ => "BASE TABLE",
    };
    let mut names: Vec<(String, &str)> =
        system.map(|table| (table.name.table.clone(), of_system(&table.name))).collect();
    let known = tables::among(session, &RequestedTables::of_database(&database))?;
    let own = known.into_iter().filter(|known| known.name.database == database);
    names.extend(own.map(|known| (known.name.table, "BASE TABLE")));
    let views = views::names(session).into_iter().filter(|name| name.database == database);
    names.extend(views.map(|name| (name.table, "VIEW")));
    names.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (name, kind) in names {
        let mut row = vec![text(name), text(kind)];
        row.truncate(grid.width());
        grid.push(row);
    }
    Ok(Shown { grid, filter })
}

/// SHOW TABLE STATUS.
pub(super) fn table_status(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<Shown> {
    let database = database(session, tokens)?;
    let filter = Filter::read_of_names(tokens)?;
    let mut grid = Grid::new(&TABLE_STATUS);
    let started = super::server::started(session);
    let mut rows = Vec::new();
    for known in tables::among(session, &RequestedTables::of_database(&database))? {
        if known.name.database == database {
            rows.push(system::table_row(session, &known, &started)?);
        }
    }
    let views = views::names(session).into_iter().filter(|name| name.database == database);
    rows.extend(views.map(|name| views::table_row(&name, &started)));
    let positions: Vec<usize> = std::iter::once(2).chain(4..=20).collect();
    grid.rows = system::taken(rows, &positions);
    Ok(Shown { grid, filter })
}

/// SHOW COLUMNS.
pub(super) fn columns(
    session: &SessionState,
    tokens: &mut Tokens<'_>,
    full: bool,
) -> Result<Shown> {
    let name = table_of(session, tokens)?;
    let filter = Filter::read(tokens)?;
    Ok(Shown { grid: column_grid(session, &name, full)?, filter })
}

/// DESCRIBE, after its first word.
pub(super) fn describe(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<Shown> {
    let name = table_name(session, tokens)?;
    if name.database.is_empty() {
        session.current_database()?;
    }
    let filter = match tokens.is_text() {
        true => Filter::Like(tokens.utf8()?),
        false => tokens.accept_name().map_or(Filter::All, Filter::Like),
    };
    tokens.expect_end()?;
    Ok(Shown { grid: column_grid(session, &name, false)?, filter })
}

fn column_grid(session: &SessionState, name: &TableName, full: bool) -> Result<Grid> {
    let rows = if system::is_systems(name) {
        system::system_columns(system::find(name)?)
    } else if views::find(session, name)?.is_some() {
        views::column_rows(session, name)?
    } else {
        let known = tables::one(session, name)?;
        let may_write = session.identity.may(&name.database, &name.table, Access::Write);
        known.column_rows(may_write)
    };
    let mut grid = Grid::new(if full { &FULL_COLUMNS } else { &COLUMNS });
    let positions: &[usize] =
        if full { &[3, 15, 14, 6, 16, 5, 17, 18, 19] } else { &[3, 15, 6, 16, 5, 17] };
    grid.rows = system::taken(rows, positions);
    Ok(grid)
}

/// SHOW INDEX.
pub(super) fn indexes(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<Shown> {
    let name = table_of(session, tokens)?;
    let filter = Filter::read(tokens)?;
    if matches!(filter, Filter::Like(_)) {
        return Err(tokens.syntax_error());
    }
    let mut grid = Grid::new(&INDEXES);
    if system::is_systems(&name) {
        system::find(&name)?;
    } else if views::find(session, &name)?.is_none() {
        let known: ListedTable = tables::one(session, &name)?;
        let rows = keys::statistics(session, &known)?;
        grid.rows = system::taken(rows, &[2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]);
    }
    Ok(Shown { grid, filter })
}

/// SHOW PRIVILEGES: the privileges that have a meaning here.
pub(super) fn privileges() -> Vec<Vec<Value>> {
    let known = [
        ("Alter", "Tables", "To alter the table"),
        ("Create", "Tables", "To create new databases and tables"),
        ("Delete", "Tables", "To delete existing rows"),
        ("Drop", "Tables", "To drop databases and tables"),
        ("Index", "Tables", "To create or drop indexes"),
        ("Insert", "Tables", "To insert data into tables"),
        ("Select", "Tables", "To retrieve rows from table"),
        ("Update", "Tables", "To update existing rows"),
        ("Usage", "Server Admin", "No privileges - allow connect only"),
    ];
    known.map(|(name, place, comment)| vec![text(name), text(place), text(comment)]).into()
}
