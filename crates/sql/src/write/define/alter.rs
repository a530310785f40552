//! ALTER TABLE, CREATE INDEX and DROP INDEX.
//!
//! The engine changes in place what it can. Everything else (other types, another primary key, new unique keys, NOT
//! NULL) rebuilds the table under a hidden name and renames it over the old one, while no other session commits
//! (`rebuild.rs`).

use std::sync::Arc;

use remora_engine::{Definition, Schema, Value};
use remora_mysql::{ErrorCode, SqlMode, messages};

use super::{
    define, distributed,
    draft::{Draft, DraftColumn, invalid_default},
    drop::rename_all,
    followed_words,
    foreign::{self, Moved, check_needed},
    hidden_tables,
    key_columns::{add_key_columns, check_named_columns},
    named,
    names::check_name,
    percolate,
    rebuild::rebuild,
    references::{check_dependents, check_references},
    temporary,
};
use crate::{
    Error, Outcome, Result, SqlType,
    catalog::{
        Check, ColumnSpec, DefaultSpec, ForeignKey, Key, KeyKind, SqlTable, TableLine, TableName,
        Verb,
    },
    error::from_engine_write,
    parse::define::{
        AlterAction, AlterTable, Alteration, ColumnDefinition, ColumnPosition, QualifiedName,
        TableOption,
    },
    state::SessionState,
    transaction::TableStorage,
    write::{convert::TargetColumn, rows::TargetTable},
};

/// What an ALTER TABLE asks for besides the new definition.
#[derive(Default)]
struct AlterRequest {
    rename: Option<TableName>,
    changed: bool,
}

/// Runs ALTER TABLE.
pub(super) async fn run(session: &mut SessionState, table: AlterTable) -> Result<Outcome> {
    let AlterTable { name, actions } = table;
    let name = named(session, &name)?;
    if let Some(outcome) = followed_words::alter(session, &name, &actions).await? {
        return Ok(outcome);
    }
    if let Some(engine_name) = distributed::find(session, &name) {
        return distributed::alter(session, name, engine_name, &actions).await;
    }
    let adds_texts = |action: &AlterAction| matches!(&action.what, Alteration::AddLine(TableLine::Key(key)) if key.texts_at_paths().is_some());
    let target = TargetTable::find(session, &name, Verb::Alter);
    let target = target.map_err(|error| match actions.iter().any(adds_texts) {
        true => with_mend(error),
        false => error,
    })?;
    let mut draft = Draft::of(&target.table);
    draft.name_foreign(&name)?;
    let mut asked = AlterRequest::default();
    let default_next = draft.options.auto_increment.take();
    for AlterAction { what, .. } in actions {
        act(session, what, &target, &mut draft, &mut asked)?;
    }
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
        check_dependents(&target.table, &name, &mut draft)?;
        let columns = std::mem::take(&mut draft.renamed);
        let moved = Moved { from: &name, to: &name, columns: &columns };
        moved.follow_own(&mut draft);
        draft.finish(&name)?;
        check_references(session, &name, &draft, Some(&target.table)).await?;
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

/// For a followed table, adds to error 1290 how such an index is declared.
fn with_mend(error: Error) -> Error {
    if error.code != ErrorCode::OptionPreventsStatement {
        return error;
    }
    let mend = "at the source, add a generated column of the text, AS (doc->>'$.path') STORED: it is followed and \
                has an index here";
    Error { message: format!("{}; {mend}", error.message), ..error }
}

/// Runs CREATE INDEX.
pub(super) async fn create_index(
    session: &mut SessionState,
    table: &QualifiedName,
    key: Key,
) -> Result<Outcome> {
    let table = named(session, table)?;
    let target = TargetTable::find(session, &table, Verb::Index);
    let target = target.map_err(|error| match key.texts_at_paths() {
        Some(_) => with_mend(error),
        None => error,
    })?;
    let mut draft = Draft::of(&target.table);
    draft.add_line(TableLine::Key(key))?;
    finish_index(session, &target, draft).await
}

/// Runs DROP INDEX.
pub(super) async fn drop_index(
    session: &mut SessionState,
    table: &QualifiedName,
    index: &str,
) -> Result<Outcome> {
    let table = named(session, table)?;
    let target = TargetTable::find(session, &table, Verb::Index)?;
    let mut draft = Draft::of(&target.table);
    drop_key(&mut draft, index)?;
    check_needed(session, &target.table, &draft)?;
    finish_index(session, &target, draft).await
}

async fn finish_index(
    session: &mut SessionState,
    target: &TargetTable,
    mut draft: Draft,
) -> Result<Outcome> {
    draft.finish(&target.name)?;
    let copied = apply(session, target, &draft).await?;
    // Only for a temporary table are the copied rows reported.
    let records = if target.engine_name().is_none() { copied } else { 0 };
    let warnings = session.warnings.count();
    let info = messages::records_info(records, 0, warnings);
    Ok(Outcome { affected_rows: records, info, ..Outcome::default() })
}

fn act(
    session: &SessionState,
    what: Alteration,
    target: &TargetTable,
    draft: &mut Draft,
    asked: &mut AlterRequest,
) -> Result<()> {
    asked.changed |= !matches!(what, Alteration::Nothing | Alteration::RenameTable(_));
    match what {
        Alteration::Nothing => {}
        Alteration::RenameTable(to) => asked.rename = Some(named(session, &to)?),
        Alteration::RenameColumn(old, new) => {
            let place = draft.known_column(&old, "table definition")?;
            rename_column(draft, place, new)?;
        }
        Alteration::RenameKey(old, new) => match key_named(draft, &old) {
            Some(key) => key.name = new,
            None => {
                let message = format!("Key '{old}' doesn't exist in table");
                return Err(Error::new(ErrorCode::KeyMissing, message));
            }
        },
        Alteration::AddColumn(column, position) => {
            draft.add_column(*column, position)?;
        }
        Alteration::AddLine(line) => draft.add_line(line)?,
        Alteration::ChangeColumn(old, column, position) => {
            change_column(draft, target, &old, *column, position)?;
        }
        Alteration::DropColumn(name) => drop_column(draft, &name)?,
        Alteration::DropKey(name) => drop_key(draft, &name)?,
        Alteration::DropCheck(name) => {
            if !drop_check(draft, &name) {
                return Err(check_missing(&name));
            }
        }
        Alteration::DropForeignKey(name) => {
            let before = draft.foreign.len();
            drop_foreign(draft, &name);
            if before == draft.foreign.len() {
                return Err(cannot_drop(&name));
            }
        }
        Alteration::DropConstraint(name) => drop_constraint(draft, &name)?,
        Alteration::SetKeyVisible(name, is_visible) => {
            let key = key_named(draft, &name).ok_or_else(|| cannot_drop(&name))?;
            key.invisible = !is_visible;
        }
        Alteration::SetColumnVisible(name, is_visible) => {
            let place = draft.known_column(&name, &target.name.table)?;
            if let Some(column) = draft.columns.get_mut(place) {
                column.spec.invisible = !is_visible;
            }
        }
        Alteration::SetEnforced(name, is_enforced) => {
            let is_it = |check: &&mut Check| check.name.eq_ignore_ascii_case(&name);
            let check = draft.checks.iter_mut().find(is_it);
            check.ok_or_else(|| check_missing(&name))?.enforced = is_enforced;
        }
        Alteration::SetDefault(name, default) => set_default(draft, target, &name, default)?,
        Alteration::Convert(options) => convert(draft, &options)?,
        Alteration::Options(options) => draft.options.set_all(&options)?,
        Alteration::Parts(parts) => {
            let place = parts.first().map(|part| part.place.error());
            place.map_or(Ok(()), Err)?;
        }
    }
    Ok(())
}

fn key_named<'d>(draft: &'d mut Draft, name: &str) -> Option<&'d mut Key> {
    draft.keys.iter_mut().find(|key| key.name.eq_ignore_ascii_case(name))
}

/// Renames a column; error 1060 if another one has the name.
fn rename_column(draft: &mut Draft, place: usize, new: String) -> Result<()> {
    if draft.column(&new).is_some_and(|other| other != place) {
        let message = messages::duplicate_column(new);
        return Err(Error::new(ErrorCode::DuplicateColumn, message));
    }
    foreign::rename_column(draft, place, new);
    Ok(())
}

fn change_column(
    draft: &mut Draft,
    target: &TargetTable,
    old: &str,
    column: ColumnDefinition,
    position: Option<ColumnPosition>,
) -> Result<()> {
    let place = draft.known_column(old, &target.name.table)?;
    let spec = ColumnSpec::of(&column, draft.options.collation)?;
    rename_column(draft, place, column.name.clone())?;
    if let Some(column) = draft.columns.get_mut(place) {
        column.spec = spec;
    }
    if column.declared.default == DefaultSpec::Null {
        draft.nullable.push(column.name.to_lowercase());
    }
    draft.add_extras(&column.name, column.extras)?;
    if let Some(to) = draft.place_of(position)? {
        let column = draft.columns.remove(place);
        let to = if to > place { to - 1 } else { to };
        draft.columns.insert(to.min(draft.columns.len()), column);
    }
    Ok(())
}

fn drop_column(draft: &mut Draft, name: &str) -> Result<()> {
    let place = draft.column(name).ok_or_else(|| cannot_drop(name))?;
    if draft.columns.len() == 1 {
        let message = "You can't delete all columns with ALTER TABLE; use DROP TABLE instead";
        return Err(Error::new(ErrorCode::CannotRemoveAllFields, message));
    }
    draft.columns.remove(place);
    for key in &mut draft.keys {
        key.parts.retain(|part| !part.column().is_some_and(|c| c.eq_ignore_ascii_case(name)));
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
    let foreign = draft.foreign.iter().filter(|key| is_called(key, name)).count();
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
    draft.known_foreign = known.filter(|key| !is_called(key, name)).count();
    draft.foreign.retain(|key| !is_called(key, name));
}

fn is_called(key: &ForeignKey, wanted: &str) -> bool {
    key.name.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(wanted))
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

/// Gives a column another default, or none.
fn set_default(
    draft: &mut Draft,
    target: &TargetTable,
    name: &str,
    default: Option<DefaultSpec>,
) -> Result<()> {
    let place = draft.known_column(name, &target.name.table)?;
    let Some(column) = draft.columns.get_mut(place) else { return Ok(()) };
    let is_null = default == Some(DefaultSpec::Null);
    if default.is_some() && column.spec.auto_increment || is_null && column.spec.not_null {
        return Err(invalid_default(name));
    }
    column.spec.default = default.unwrap_or_default();
    Ok(())
}

/// `CONVERT TO CHARACTER SET x [COLLATE y]`.
fn convert(draft: &mut Draft, options: &[TableOption]) -> Result<()> {
    draft.options.set_all(options)?;
    let collation = draft.options.collation;
    for column in &mut draft.columns {
        if column.spec.kind.is_text() && !column.spec.kind.collation.is_of_type() {
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
    check_zero_dates(session, target, draft)?;
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

/// Error 1292 for a new date that existing rows would have as zero, where the `sql_mode` forbids that. As in MySQL, zero
/// timestamps are let pass.
fn check_zero_dates(session: &SessionState, target: &TargetTable, draft: &Draft) -> Result<()> {
    let zero = |column: &&DraftColumn| {
        let spec = &column.spec;
        let is_date = matches!(spec.kind.sql, SqlType::Date | SqlType::DateTime(_));
        let has_none = spec.default == DefaultSpec::None && spec.generated.is_none();
        column.id.is_none() && is_date && spec.not_null && has_none
    };
    let mode = &session.variables.sql_mode;
    let Some(column) = draft.columns.iter().find(zero) else { return Ok(()) };
    if !mode.has(SqlMode::NO_ZERO_DATE) {
        return Ok(());
    }
    let rows = match &target.place {
        TableStorage::Engine(name) => {
            session.reader().row_count(name).map_err(from_engine_write)?
        }
        TableStorage::Temporary(name) => {
            let table = session.transaction.temporary(name);
            table.map_or(0, |table| table.rows.len() as u64)
        }
    };
    if rows == 0 {
        return Ok(());
    }
    let (of, value) = match column.spec.kind.sql {
        SqlType::Date => ("date", "0000-00-00"),
        _ => ("datetime", "0000-00-00 00:00:00"),
    };
    let name = &column.name;
    let message = format!("Incorrect {of} value: '{value}' for column '{name}' at row 1");
    if mode.is_strict() {
        return Err(Error::new(ErrorCode::TruncatedValue, message));
    }
    session.warn(ErrorCode::TruncatedValue, message);
    Ok(())
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
            let slot = TargetColumn { name: &column.name, kind: &column.spec.kind, row: 1 };
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
