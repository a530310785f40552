//! ALTER TABLE, CREATE INDEX and DROP INDEX.
//!
//! The engine changes in place what it can. Everything else (other types, another primary key, new unique keys, NOT
//! NULL) rebuilds the table under a hidden name and renames it over the old one, while no other session commits
//! (`rebuild.rs`).

use std::sync::Arc;

use remora_engine::{Definition, Schema, Value};
use remora_mysql::{ErrorCode, messages};

use super::{
    create::check_name,
    define, distributed,
    draft::{Draft, DraftColumn, invalid_default},
    drop::rename_all,
    followed_words,
    foreign::{self, Moved, check_needed},
    hidden_tables,
    key_columns::{add_key_columns, check_named_columns},
    percolate,
    rebuild::rebuild,
    temporary,
};
use crate::{
    Error, Outcome, Result,
    catalog::{
        ColumnSpec, DefaultSpec, Key, KeyKind, Line, SqlTable, TableName, Verb, parse_key,
        parse_line,
    },
    error::from_engine_write,
    parse::Tokens,
    state::SessionState,
    transaction::TableStorage,
    write::{
        convert::Slot,
        rows::{TargetTable, table_name},
    },
};

/// What an ALTER TABLE asks for besides the new definition.
#[derive(Default)]
struct AlterRequest {
    rename: Option<TableName>,
    changed: bool,
}

/// Runs ALTER TABLE. `tokens` are at the table's name.
pub(super) async fn run(session: &mut SessionState, tokens: &mut Tokens<'_>) -> Result<Outcome> {
    let name = table_name(tokens, session)?;
    if let Some(outcome) = followed_words::alter(session, &name, tokens).await? {
        return Ok(outcome);
    }
    if let Some(engine_name) = distributed::find(session, &name) {
        return distributed::alter(session, name, engine_name, tokens).await;
    }
    let target = TargetTable::find(session, &name, Verb::Alter);
    let target = target.map_err(|error| match adds_texts(*tokens) {
        true => with_mend(error),
        false => error,
    })?;
    let mut draft = Draft::of(&target.table);
    draft.name_foreign(&name)?;
    let mut asked = AlterRequest::default();
    let default_next = draft.options.auto_increment.take();
    loop {
        parse_action(session, tokens, &target, &mut draft, &mut asked)?;
        if !tokens.take(",") {
            break;
        }
    }
    tokens.expect_end()?;
    let next = draft.options.auto_increment.take();
    draft.options.auto_increment = default_next;
    let mut records = 0;
    if let Some(to) = &asked.rename {
        // Checked before anything is changed.
        name.check(&session.identity, Verb::Rename)?;
        check_name(session, to)?;
    }
    if asked.changed {
        check_needed(session, &target.table, &draft)?;
        check_named_columns(&target.table, &draft)?;
        let columns = std::mem::take(&mut draft.renamed);
        let moved = Moved { from: &name, to: &name, columns: &columns };
        moved.follow_own(&mut draft);
        draft.finish(&name)?;
        draft.settle_defaults(session)?;
        records = apply(session, &target, &draft).await?;
        if !columns.is_empty() && target.engine_name().is_some() {
            let followed = foreign::follow(session, &[moved], str::to_owned)?;
            define(session, followed, Vec::new()).await?;
        }
    }
    if let Some(next) = next {
        set_counter(session, &name, next).await?;
    }
    if let Some(to) = asked.rename.filter(|to| *to != name) {
        match &target.place {
            TableStorage::Temporary(name) => temporary::rename(session, name, &to)?,
            TableStorage::Engine(_) => rename_all(session, vec![(name, to)]).await?,
        }
    }
    let info = match asked.changed {
        true => messages::records_info(records, 0, session.warnings.count()),
        false => String::new(),
    };
    Ok(Outcome { affected_rows: records, info, ..Outcome::default() })
}

/// Whether an ALTER TABLE may add a text index over documents.
fn adds_texts(mut tokens: Tokens<'_>) -> bool {
    let (mut is_fulltext, mut is_at_path) = (false, false);
    while !tokens.at_end() {
        is_fulltext |= tokens.is_word("FULLTEXT");
        is_at_path |= tokens.is("->>");
        tokens.next();
    }
    is_fulltext && is_at_path
}

/// For a followed table, adds to error 1290 how such an index is declared.
fn with_mend(error: Error) -> Error {
    if error.code != ErrorCode::OptionPreventsStatement {
        return error;
    }
    let mend = "at the source, add a generated column of the text, AS (doc->>'$.path') STORED: it is followed and \
                has an index here";
    Error { message: format!("{}; {mend}", error.message), ..error }
}

/// Runs CREATE INDEX. `tokens` are after CREATE.
pub(super) async fn create_index(
    session: &mut SessionState,
    tokens: &mut Tokens<'_>,
) -> Result<Outcome> {
    let kinds = [
        ("UNIQUE", KeyKind::Unique),
        ("FULLTEXT", KeyKind::Fulltext),
        ("SPATIAL", KeyKind::Spatial),
        ("VECTOR", KeyKind::Vector),
    ];
    let kind = kinds.into_iter().find(|(word, _)| tokens.accept(word));
    if !tokens.accept("INDEX") {
        return Err(Error::unsupported("CREATE of anything but databases, tables and indexes"));
    }
    let name = tokens.name()?;
    if tokens.accept("USING") {
        tokens.name()?;
    }
    tokens.expect("ON")?;
    let table = table_name(tokens, session)?;
    let mut key = parse_key(tokens, kind.map_or(KeyKind::Plain, |(_, kind)| kind))?;
    key.name = name;
    skip_algorithm(tokens)?;
    tokens.expect_end()?;
    let target = TargetTable::find(session, &table, Verb::Index);
    let target = target.map_err(|error| match key.texts_at_paths() {
        Some(_) => with_mend(error),
        None => error,
    })?;
    let mut draft = Draft::of(&target.table);
    draft.add_line(Line::Key(key))?;
    draft.finish(&table)?;
    let copied = apply(session, &target, &draft).await?;
    // Only for a temporary table are the copied rows reported.
    let records = if target.engine_name().is_none() { copied } else { 0 };
    let warnings = session.warnings.count();
    let info = messages::records_info(records, 0, warnings);
    Ok(Outcome { affected_rows: records, info, ..Outcome::default() })
}

/// Runs DROP INDEX. `tokens` are at the index's name.
pub(super) async fn drop_index(
    session: &mut SessionState,
    tokens: &mut Tokens<'_>,
) -> Result<Outcome> {
    let name = tokens.name()?;
    tokens.expect("ON")?;
    let table = table_name(tokens, session)?;
    skip_algorithm(tokens)?;
    tokens.expect_end()?;
    let target = TargetTable::find(session, &table, Verb::Index)?;
    let mut draft = Draft::of(&target.table);
    drop_key(&mut draft, &name)?;
    check_needed(session, &target.table, &draft)?;
    draft.finish(&table)?;
    let copied = apply(session, &target, &draft).await?;
    // Only for a temporary table are the copied rows reported.
    let records = if target.engine_name().is_none() { copied } else { 0 };
    let warnings = session.warnings.count();
    let info = messages::records_info(records, 0, warnings);
    Ok(Outcome { affected_rows: records, info, ..Outcome::default() })
}

fn skip_algorithm(tokens: &mut Tokens<'_>) -> Result<bool> {
    let mut any = false;
    while tokens.accept_any(&["ALGORITHM", "LOCK"]) {
        tokens.take("=");
        tokens.name()?;
        any = true;
    }
    Ok(any)
}

fn parse_action(
    session: &SessionState,
    tokens: &mut Tokens<'_>,
    target: &TargetTable,
    draft: &mut Draft,
    asked: &mut AlterRequest,
) -> Result<()> {
    if skip_algorithm(tokens)? {
        return Ok(());
    }
    for nothing in ["ENABLE KEYS", "DISABLE KEYS", "WITH VALIDATION", "WITHOUT VALIDATION", "FORCE"]
    {
        if tokens.accept_all(nothing) {
            return Ok(());
        }
    }
    if tokens.accept_all("ORDER BY") {
        tokens.skip_until(|tokens| tokens.is(","))?;
        return Ok(());
    }
    if tokens.accept("RENAME") {
        return rename_action(session, tokens, draft, asked);
    }
    asked.changed = true;
    if tokens.accept("ADD") {
        add(tokens, draft)
    } else if tokens.accept("DROP") {
        drop_action(tokens, draft)
    } else if tokens.accept("MODIFY") {
        tokens.accept("COLUMN");
        let name = tokens.name()?;
        change_column(tokens, draft, target, &name, name.clone())
    } else if tokens.accept("CHANGE") {
        tokens.accept("COLUMN");
        let old = tokens.name()?;
        let new = tokens.name()?;
        change_column(tokens, draft, target, &old, new)
    } else if tokens.accept("ALTER") {
        alter_action(tokens, draft, target)
    } else if tokens.accept_all("CONVERT TO") {
        convert_action(tokens, draft)
    } else if draft.options.parse_one(tokens, &mut None)? {
        // No commas are needed between options.
        while draft.options.parse_one(tokens, &mut None)? {}
        Ok(())
    } else {
        Err(tokens.syntax_error())
    }
}

fn rename_action(
    session: &SessionState,
    tokens: &mut Tokens<'_>,
    draft: &mut Draft,
    asked: &mut AlterRequest,
) -> Result<()> {
    if tokens.accept("COLUMN") {
        asked.changed = true;
        let (old, new) = renamed(tokens)?;
        let place = column_place(draft, &old)?;
        if draft.column(&new).is_some_and(|other| other != place) {
            let message = messages::duplicate_column(new);
            return Err(Error::new(ErrorCode::DuplicateColumn, message));
        }
        foreign::rename_column(draft, place, new);
        return Ok(());
    }
    if tokens.accept_any(&["INDEX", "KEY"]) {
        asked.changed = true;
        let (old, new) = renamed(tokens)?;
        let key = draft.keys.iter_mut().find(|key| key.name.eq_ignore_ascii_case(&old));
        let Some(key) = key else {
            let message = format!("Key '{old}' doesn't exist in table");
            return Err(Error::new(ErrorCode::KeyMissing, message));
        };
        key.name = new;
        return Ok(());
    }
    if !tokens.accept("TO") {
        tokens.accept("AS");
    }
    asked.rename = Some(table_name(tokens, session)?);
    Ok(())
}

fn renamed(tokens: &mut Tokens<'_>) -> Result<(String, String)> {
    let old = tokens.name()?;
    tokens.expect("TO")?;
    Ok((old, tokens.name()?))
}

fn add(tokens: &mut Tokens<'_>, draft: &mut Draft) -> Result<()> {
    if !tokens.accept("COLUMN")
        && let Some(line) = parse_line(tokens)?
    {
        return draft.add_line(line);
    }
    if tokens.take("(") {
        loop {
            match parse_line(tokens)? {
                Some(line) => draft.add_line(line)?,
                None => add_column(tokens, draft)?,
            }
            if !tokens.take(",") {
                return tokens.need(")");
            }
        }
    }
    add_column(tokens, draft)
}

fn add_column(tokens: &mut Tokens<'_>, draft: &mut Draft) -> Result<()> {
    let name = tokens.name()?;
    let collation = draft.options.collation;
    let (spec, extras) = ColumnSpec::parse(tokens, &name, collation)?;
    let place = position(tokens, draft)?.unwrap_or(usize::MAX);
    draft.add_column(place, name, spec, extras)
}

/// Parses FIRST or AFTER a column.
fn position(tokens: &mut Tokens<'_>, draft: &Draft) -> Result<Option<usize>> {
    if tokens.accept("FIRST") {
        return Ok(Some(0));
    }
    if !tokens.accept("AFTER") {
        return Ok(None);
    }
    let name = tokens.name()?;
    Ok(Some(column_place(draft, &name)? + 1))
}

fn column_place(draft: &Draft, name: &str) -> Result<usize> {
    draft.column(name).ok_or_else(|| {
        let message = messages::unknown_column(name, "table definition");
        Error::new(ErrorCode::UnknownColumn, message)
    })
}

fn change_column(
    tokens: &mut Tokens<'_>,
    draft: &mut Draft,
    target: &TargetTable,
    old: &str,
    new: String,
) -> Result<()> {
    let place = draft.column(old).ok_or_else(|| {
        let message = messages::unknown_column(old, &target.name.table);
        Error::new(ErrorCode::UnknownColumn, message)
    })?;
    let (spec, extras) = ColumnSpec::parse(tokens, &new, draft.options.collation)?;
    if draft.column(&new).is_some_and(|other| other != place) {
        let message = messages::duplicate_column(new);
        return Err(Error::new(ErrorCode::DuplicateColumn, message));
    }
    foreign::rename_column(draft, place, new.clone());
    if let Some(column) = draft.columns.get_mut(place) {
        column.spec = spec;
    }
    draft.add_extras(&new, extras)?;
    let before = draft.clone();
    if let Some(to) = position(tokens, &before)? {
        let column = draft.columns.remove(place);
        let to = if to > place { to - 1 } else { to };
        draft.columns.insert(to.min(draft.columns.len()), column);
    }
    Ok(())
}

fn drop_action(tokens: &mut Tokens<'_>, draft: &mut Draft) -> Result<()> {
    if tokens.accept_all("PRIMARY KEY") {
        return drop_key(draft, "PRIMARY");
    }
    if tokens.accept_any(&["INDEX", "KEY"]) {
        let name = tokens.name()?;
        return drop_key(draft, &name);
    }
    if tokens.accept("CHECK") {
        let name = tokens.name()?;
        return match drop_check(draft, &name) {
            true => Ok(()),
            false => Err(check_missing(&name)),
        };
    }
    if tokens.accept("CONSTRAINT") {
        let name = tokens.name()?;
        return drop_constraint(draft, &name);
    }
    if tokens.accept_all("FOREIGN KEY") {
        let name = tokens.name()?;
        let before = draft.foreign.len();
        drop_foreign(draft, &name);
        return if before == draft.foreign.len() { Err(cannot_drop(&name)) } else { Ok(()) };
    }
    tokens.accept("COLUMN");
    let name = tokens.name()?;
    tokens.accept_any(&["RESTRICT", "CASCADE"]);
    let place = draft.column(&name).ok_or_else(|| cannot_drop(&name))?;
    if draft.columns.len() == 1 {
        let message = "You can't delete all columns with ALTER TABLE; use DROP TABLE instead";
        return Err(Error::new(ErrorCode::CannotRemoveAllFields, message));
    }
    draft.columns.remove(place);
    for key in &mut draft.keys {
        key.parts.retain(|part| !part.column().is_some_and(|c| c.eq_ignore_ascii_case(&name)));
    }
    draft.keys.retain(|key| !key.parts.is_empty());
    Ok(())
}

/// Drops the condition, foreign key, unique key or primary key of this name. Different kinds may
/// share a name.
fn drop_constraint(draft: &mut Draft, name: &str) -> Result<()> {
    let is_key = |key: &&Key| {
        matches!(key.kind, KeyKind::Primary | KeyKind::Unique)
            && key.name.eq_ignore_ascii_case(name)
    };
    let keys = draft.keys.iter().filter(is_key).count();
    let checks = draft.checks.iter().filter(|it| it.name.eq_ignore_ascii_case(name)).count();
    let foreign = draft.foreign.iter().filter(|line| is_foreign_key(line, name)).count();
    match keys + checks + foreign {
        0 => {
            let message = format!("Constraint '{name}' does not exist.");
            Err(Error::new(ErrorCode::ConstraintMissing, message))
        }
        1 if keys == 1 => drop_key(draft, name),
        1 => {
            drop_check(draft, name);
            drop_foreign(draft, name);
            Ok(())
        }
        _ => {
            let message = format!(
                "Table has multiple constraints with the name '{name}'. Please use constraint specific 'DROP' clause."
            );
            Err(Error::new(ErrorCode::SeveralConstraints, message))
        }
    }
}

/// Drops the condition of this name; returns whether there was one.
fn drop_check(draft: &mut Draft, name: &str) -> bool {
    let before = draft.checks.len();
    draft.checks.retain(|check| !check.name.eq_ignore_ascii_case(name));
    draft.checks.len() < before
}

fn check_missing(name: &str) -> Error {
    let message = format!("Check constraint '{name}' is not found in the table.");
    Error::new(ErrorCode::CheckMissing, message)
}

/// Drops the foreign key of this name, if there is one.
fn drop_foreign(draft: &mut Draft, name: &str) {
    let known = draft.foreign.iter().take(draft.known_foreign);
    draft.known_foreign = known.filter(|line| !is_foreign_key(line, name)).count();
    draft.foreign.retain(|line| !is_foreign_key(line, name));
}

fn is_foreign_key(line: &Line, wanted: &str) -> bool {
    matches!(line, Line::Foreign { name: Some(name), .. } if name.eq_ignore_ascii_case(wanted))
}

fn drop_key(draft: &mut Draft, name: &str) -> Result<()> {
    let before = draft.keys.len();
    draft.keys.retain(|key| !key.name.eq_ignore_ascii_case(name));
    if draft.keys.len() == before { Err(cannot_drop(name)) } else { Ok(()) }
}

fn cannot_drop(name: &str) -> Error {
    let message = format!("Can't DROP '{name}'; check that column/key exists");
    Error::new(ErrorCode::CannotDropField, message)
}

/// `ALTER [COLUMN] a SET DEFAULT x | DROP DEFAULT`, `ALTER INDEX a [IN]VISIBLE`, `ALTER CHECK`.
fn alter_action(tokens: &mut Tokens<'_>, draft: &mut Draft, target: &TargetTable) -> Result<()> {
    if tokens.accept_any(&["INDEX", "KEY"]) {
        let name = tokens.name()?;
        let key = draft.keys.iter_mut().find(|key| key.name.eq_ignore_ascii_case(&name));
        let key = key.ok_or_else(|| cannot_drop(&name))?;
        key.invisible = tokens.accept("INVISIBLE");
        return if key.invisible { Ok(()) } else { tokens.expect("VISIBLE") };
    }
    if tokens.accept_any(&["CHECK", "CONSTRAINT"]) {
        let name = tokens.name()?;
        let check = draft.checks.iter_mut().find(|check| check.name.eq_ignore_ascii_case(&name));
        let check = check.ok_or_else(|| check_missing(&name))?;
        check.enforced = !tokens.accept("NOT");
        return tokens.expect("ENFORCED");
    }
    tokens.accept("COLUMN");
    let name = tokens.name()?;
    let place = draft.column(&name).ok_or_else(|| {
        let message = messages::unknown_column(&name, &target.name.table);
        Error::new(ErrorCode::UnknownColumn, message)
    })?;
    let Some(column) = draft.columns.get_mut(place) else { return Ok(()) };
    if tokens.accept_all("DROP DEFAULT") {
        column.spec.default = DefaultSpec::None;
        return Ok(());
    }
    if tokens.accept_all("SET INVISIBLE") || tokens.accept_all("SET VISIBLE") {
        return Err(Error::unsupported("ALTER COLUMN ... SET VISIBLE"));
    }
    tokens.expect("SET")?;
    if !tokens.is_word("DEFAULT") {
        return Err(tokens.syntax_error());
    }
    column.spec.default = crate::catalog::parse_default_clause(tokens)?;
    if column.spec.auto_increment {
        return Err(invalid_default(&name));
    }
    Ok(())
}

/// `CONVERT TO CHARACTER SET x [COLLATE y]`.
fn convert_action(tokens: &mut Tokens<'_>, draft: &mut Draft) -> Result<()> {
    while draft.options.parse_one(tokens, &mut None)? {}
    let collation = draft.options.collation;
    for column in &mut draft.columns {
        if column.spec.kind.is_text() {
            column.spec.kind.collation = collation;
            column.spec.kind.collation_said = false;
        }
    }
    Ok(())
}

/// Warning 1831 for keys that duplicate others.
fn warn_of_duplicates(session: &SessionState, target: &TargetTable, draft: &Draft) {
    let known = |name: &str| target.table.keys.iter().any(|key| key.name == name);
    for key in draft.keys.iter().filter(|key| !known(&key.name)) {
        let same = |other: &Key| {
            other.name != key.name && other.kind == key.kind && other.parts == key.parts
        };
        if draft.keys.iter().any(same) {
            session.warn(
                ErrorCode::DuplicateIndex,
                format!(
                    "Duplicate index '{}' defined on the table '{}.{}'. This is deprecated and \
                     will be disallowed in a future release.",
                    key.name, target.name.database, target.name.table
                ),
            );
        }
    }
}

/// Gives a table its new definition and returns the number of copied rows.
async fn apply(session: &mut SessionState, target: &TargetTable, draft: &Draft) -> Result<u64> {
    percolate::check_alter(target.table.schema.documents())?;
    warn_of_duplicates(session, target, draft);
    let mut draft = draft.clone();
    add_key_columns(session, &target.name, &mut draft, Some(&target.table)).await?;
    let draft = &draft;
    let Some(engine_name) = target.engine_name().cloned() else {
        return temporary::alter(session, target, draft).await;
    };
    let highest =
        session.shared.database.highest_column_id(&engine_name).map_err(from_engine_write)?;
    let old = &target.table;
    let schema = Arc::new(draft.build(engine_name.to_string(), Some(old), Some(highest)));
    schema.validate().map_err(from_engine_write)?;
    let new = SqlTable::of(&schema);
    if let Some(definitions) = in_place(session, target, draft, &schema, &new)? {
        define(session, definitions, Vec::new()).await?;
        return Ok(0);
    }
    rebuild(session, target, draft, &schema).await
}

/// The change that the engine can make in place, if it can.
fn in_place(
    session: &SessionState,
    target: &TargetTable,
    draft: &Draft,
    schema: &Schema,
    new: &Arc<SqlTable>,
) -> Result<Option<Vec<Definition>>> {
    let old = &target.table;
    let before = |id: u32| {
        let place = old.schema.columns.iter().position(|column| column.id == id)?;
        Some((old.schema.columns.get(place)?, old.columns.get(place)?))
    };
    let key = |schema: &Schema| -> Vec<u32> {
        let parts = schema.primary_key.iter().filter_map(|&part| schema.columns.get(part));
        parts.map(|column| column.id).collect()
    };
    let same_keys = key(&old.schema) == key(schema) && unique_parts(old) == unique_parts(new);
    let mut fills = Vec::new();
    let converter = crate::write::convert::Converter::quiet(session);
    for (column, definition) in draft.columns.iter().zip(&schema.columns) {
        match column.id.and_then(before) {
            Some((was, spec)) => {
                let kept = spec.kind == column.spec.kind
                    && spec.generated == column.spec.generated
                    && was.nullable <= definition.nullable;
                if !kept {
                    return Ok(None);
                }
            }
            None => match fill(&converter, column) {
                Some(value) => fills.push((definition.id, value)),
                None => return Ok(None),
            },
        }
    }
    let checked = draft.checks.iter().any(|check| !old.checks.contains(check) && check.enforced);
    if !same_keys || checked {
        return Ok(None);
    }
    let mut definitions = vec![Definition::Alter { schema: schema.clone(), fills }];
    let names = hidden_tables(old, &target.place).into_iter();
    let renamed = names.zip(hidden_tables(new, &target.place));
    let renamed = renamed.filter(|(from, to)| from != to);
    definitions.extend(renamed.map(|(from, to)| Definition::Rename { from, to }));
    Ok(Some(definitions))
}

/// The unique keys of a table, without their names.
fn unique_parts(table: &SqlTable) -> Vec<String> {
    let keys =
        table.keys.iter().filter(|key| matches!(key.kind, KeyKind::Unique | KeyKind::Primary));
    keys.map(|key| {
        let ids = key.parts.iter().enumerate().map(|(nth, part)| {
            let place = table.key_part(key, nth);
            let column = place.and_then(|place| table.schema.columns.get(place));
            let collation =
                place.and_then(|place| table.columns.get(place)).map(|c| c.kind.collation);
            format!("{:?} {:?} {collation:?}", column.map(|column| column.id), part.prefix)
        });
        format!("{:?} {}", key.kind, ids.collect::<Vec<_>>().join(","))
    })
    .collect()
}

/// The value of a new column in existing rows; `None` if those rows must be rewritten.
fn fill(converter: &crate::write::convert::Converter, column: &DraftColumn) -> Option<Value> {
    if column.spec.generated.is_some() || column.spec.auto_increment {
        return None;
    }
    match &column.spec.default {
        DefaultSpec::Constant(text) => {
            let text = Value::Text(std::str::from_utf8(text).ok()?.into());
            let slot = Slot { name: &column.name, kind: &column.spec.kind, row: 1 };
            converter.fit(slot, text).ok()
        }
        DefaultSpec::None if column.spec.not_null => Some(converter.implicit(&column.spec.kind)),
        DefaultSpec::None | DefaultSpec::Null => Some(Value::Null),
        _ => None,
    }
}

/// AUTO_INCREMENT = n, which never sets the counter below existing values.
async fn set_counter(session: &mut SessionState, name: &TableName, next: u64) -> Result<()> {
    let target = TargetTable::find(session, name, Verb::Alter)?;
    if target.table.auto_increment().is_none() {
        return Ok(());
    }
    target.raise_counter(session, next)?;
    let Some(table) = target.engine_name() else { return Ok(()) };
    let stored = session.shared.counters.stored(table).into_iter().collect();
    define(session, Vec::new(), stored).await
}
