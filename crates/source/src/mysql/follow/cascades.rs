//! Applies the actions of foreign keys (`ON DELETE` and `ON UPDATE` with `CASCADE` or `SET NULL`) that the source does
//! not log, at the same place of the stream.
//!
//! The referencing rows of a changed row are found in the local table, including the transaction's changes so far
//! (`referencing_rows`), and changed page by page. If they cannot be determined (values equal only by collation, chains that
//! are too long), the table is copied again. If the parent table is not followed, the child table stops.

use std::{collections::HashMap, sync::Arc};

use remora_engine::{Row, Value};
use rustc_hash::FxHashMap;

use super::{
    applier::Applier,
    positions::{STALE, copied_key, copy_key, table_key},
    referencing_rows::ReferencedValues,
    rows::ChangeSink,
    status::TableState,
    table::{FollowedTable, Visible},
    uncertainty::Uncertainty,
};
use crate::{
    Error, Result,
    mysql::{
        binlog::{RowChange, RowsKind},
        copy::Cascade,
        schema::{ForeignKey, ReferentialAction, SourceTable, SourceType},
        table_name::TableName,
    },
};

/// The longest chain of foreign keys that servers follow.
const MAX_DEPTH: usize = 16;
/// The reason why rows cannot be determined.
const UNKNOWN_COLUMNS: &str = "a column that a foreign key names is not known";
/// The flag of a rows event for which foreign keys were not checked.
const WITHOUT_FOREIGN_KEYS: u8 = 1 << 1;
/// The offset of the flags in the event.
const FLAGS: usize = 6;

/// A table whose rows reference those of another, with the foreign key.
#[derive(Clone, Debug)]
pub(super) struct Child {
    pub table: TableName,
    pub key: ForeignKey,
    /// Whether its definition may name another table: the stream has renamed the parent, and the child's definition behind
    /// that is not known yet.
    is_doubtful: bool,
}

/// A table whose rows a foreign key changed, as far as other keys react to that.
#[derive(Clone, PartialEq, Eq)]
struct Reached {
    table: TableName,
    /// Whether rows were deleted.
    deleted: bool,
    /// The columns that were set, in lower case.
    columns: Vec<String>,
}

impl Child {
    /// How its rows change with those of its parent; `None` if they do not.
    fn reached(&self, deleted: bool, is_set: impl Fn(&str) -> bool) -> Option<Reached> {
        let on_delete = if deleted { self.key.on_delete } else { ReferentialAction::Nothing };
        let sets = self.key.parent_columns.iter().any(|column| is_set(column));
        let on_update = if sets { self.key.on_update } else { ReferentialAction::Nothing };
        let deleted = on_delete == ReferentialAction::Cascade;
        let is_changed =
            on_delete == ReferentialAction::SetNull || on_update != ReferentialAction::Nothing;
        let columns = match is_changed {
            true => self.key.columns.iter().map(|column| column.to_lowercase()).collect(),
            false => Vec::new(),
        };
        (deleted || is_changed).then(|| Reached { table: self.table.clone(), deleted, columns })
    }
}

/// The child tables of each table.
pub(super) type Children = FxHashMap<TableName, Arc<[Child]>>;

/// Whether a rows event may have triggered foreign key actions.
pub(super) fn may_cascade(kind: RowsKind, body: &[u8]) -> bool {
    let flags = body.get(FLAGS).copied().unwrap_or(0);
    kind != RowsKind::Insert && flags & WITHOUT_FOREIGN_KEYS == 0
}

impl Applier {
    /// The child tables whose rows change with those of this one.
    pub fn children_of(&mut self, parent: &TableName) -> Arc<[Child]> {
        if self.source.server.logs_cascades {
            return Arc::default();
        }
        if self.routes.children.is_none() {
            let mut children: HashMap<TableName, Vec<Child>> = HashMap::new();
            for (table, followed) in &self.tables {
                for key in followed.source.reacting_keys() {
                    let (database, name) = key.parent.clone();
                    let parents =
                        self.possible_names(followed, TableName { database, table: name });
                    let mut renames = self.renames.iter();
                    let is_doubtful = followed.uncertainty.is_some()
                        && renames.any(|(from, to)| parents.contains(from) || parents.contains(to));
                    for parent in parents {
                        let (table, key) = (table.clone(), key.clone());
                        let child = Child { table, key, is_doubtful };
                        children.entry(parent).or_default().push(child);
                    }
                }
            }
            let children = children.into_iter().map(|(parent, all)| (parent, all.into()));
            self.routes.children = Some(children.collect());
        }
        let known = self.routes.children.as_ref().and_then(|children| children.get(parent));
        known.cloned().unwrap_or_default()
    }

    /// Handles changes of a table whose rows cannot be read here.
    pub fn cascade_from_unread_table(
        &mut self,
        parent: &TableName,
        children: &[Child],
        kind: RowsKind,
    ) {
        let is_uncertain = self.tables.get(parent).is_some_and(|known| known.uncertainty.is_some());
        for child in children {
            // Which columns an UPDATE changed is not known here.
            let deleted = kind == RowsKind::Delete;
            match child.reached(deleted, |_| !deleted) {
                None => {}
                Some(reached) if is_uncertain || child.is_doubtful => self.lose_rows(
                    reached,
                    "rows that they reference were changed by a definition that is not known",
                ),
                Some(reached) => {
                    for table in self.with_reacting(reached) {
                        self.stop_child_of_unfollowed(parent, &table);
                    }
                }
            }
        }
    }

    /// Applies the foreign key actions of changed rows of `parent`, each given before and after.
    pub fn cascade(
        &mut self,
        parent: &TableName,
        children: &[Child],
        changed: Vec<(Row, Option<Row>)>,
        depth: usize,
    ) -> Result<()> {
        let Some(source) = self.tables.get(parent).map(|known| Arc::clone(&known.source)) else {
            return Ok(());
        };
        if changed.iter().all(|(_, after)| after.is_none()) {
            return self.cascade_deletions(&source, children, &changed, depth);
        }
        for (before, after) in changed {
            for child in children {
                match effect(&source, child, &before, after.as_ref()) {
                    ActionEffect::Nothing => {}
                    ActionEffect::Unknown => {
                        let deleted = after.is_none();
                        let reached = child.reached(deleted, |_| !deleted);
                        reached.into_iter().for_each(|it| self.lose_rows(it, UNKNOWN_COLUMNS));
                    }
                    ActionEffect::Change { old_values, new_values } => {
                        self.apply_actions(&source, child, vec![old_values], new_values, depth)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The effects of deletions on a child do not depend on their order, so they are applied together.
    fn cascade_deletions(
        &mut self,
        source: &SourceTable,
        children: &[Child],
        deleted: &[(Row, Option<Row>)],
        depth: usize,
    ) -> Result<()> {
        for child in children {
            let (mut all, mut last) = (Vec::new(), None);
            for (before, _) in deleted {
                match effect(source, child, before, None) {
                    ActionEffect::Nothing => {}
                    ActionEffect::Unknown => {
                        let reached = child.reached(true, |_| false);
                        reached.into_iter().for_each(|it| self.lose_rows(it, UNKNOWN_COLUMNS));
                    }
                    ActionEffect::Change { old_values, new_values } => {
                        all.push(old_values);
                        last = new_values;
                    }
                }
            }
            if !all.is_empty() {
                self.apply_actions(source, child, all, last, depth)?;
            }
        }
        Ok(())
    }

    fn apply_actions(
        &mut self,
        parent: &SourceTable,
        child: &Child,
        values: Vec<Vec<Value>>,
        new_values: Option<Vec<Value>>,
        depth: usize,
    ) -> Result<()> {
        let Some(followed) = self.tables.get(&child.table) else { return Ok(()) };
        let source = Arc::clone(&followed.source);
        let columns = child.key.columns.iter().map(|column| column.to_lowercase());
        let deleted = new_values.is_none();
        let columns = if deleted { Vec::new() } else { columns.collect() };
        let reached = Reached { table: child.table.clone(), deleted, columns };
        let whole = followed.visible == Visible::Current;
        let (name, places) = match reached_rows(followed, parent, child, !deleted, depth) {
            Ok(reached_rows) => reached_rows,
            Err(why) => {
                self.lose_rows(reached, why);
                return Ok(());
            }
        };
        let old_values = ReferencedValues { places, values };
        let cascades = Cascades::new(&old_values, new_values);
        let referencing_rows = match self.referencing_rows(&name, &source, &old_values) {
            Err(Error::Engine(remora_engine::Error::Request { .. })) => {
                self.lose_rows(reached, "its rows cannot be looked up by its foreign key");
                return Ok(());
            }
            referencing_rows => referencing_rows?,
        };
        self.record_in_windows(&child.table, &cascades, whole);
        referencing_rows.for_each_page(|rows| {
            self.push_changed_rows(&child.table, &cascades, rows);
            if self.batch.is_large() { self.spill() } else { Ok(()) }
        })?;
        let children = self.children_of(&child.table);
        if !whole {
            // Rows of it that are not copied yet changed as well.
            let why = "rows that are being copied were changed by a foreign key";
            let is_set = |column: &str| reached.columns.contains(&column.to_lowercase());
            let further = children.iter().filter_map(|it| it.reached(reached.deleted, is_set));
            further.for_each(|reached| self.lose_rows(reached, why));
            return Ok(());
        }
        if children.is_empty() {
            return Ok(());
        }
        // All rows found are changed before the first of them affects others.
        referencing_rows.for_each_page(|rows| {
            let changed = rows.into_iter().map(|before| {
                let after = cascades.apply(before.clone());
                (before, after)
            });
            self.cascade(&child.table, &children, changed.collect(), depth + 1)
        })
    }

    /// Records the actions for chunks of a copy that were read before.
    fn record_in_windows(&mut self, table: &TableName, cascades: &Cascades, whole: bool) {
        let copy = self.tables.get_mut(table).and_then(|followed| followed.copy.as_mut());
        if let Some(copy) = copy.filter(|_| !whole) {
            cascades.0.iter().for_each(|cascade| copy.windows.cascade(cascade.clone()));
        }
    }

    /// Appends changes of rows to the transaction.
    fn push_changed_rows(&mut self, table: &TableName, cascades: &Cascades, rows: Vec<Row>) {
        let Some(followed) = self.tables.get_mut(table) else { return };
        let source = Arc::clone(&followed.source);
        let (visible, hidden) = followed.targets();
        let bytes: usize = rows.iter().flatten().map(value_bytes).sum();
        self.batch.add_bytes(bytes);
        let mut target = ChangeSink {
            visible: visible.as_ref().map(|name| self.batch.place(name)),
            hidden: hidden.as_ref().map(|name| self.batch.place(name)),
            batch: &mut self.batch,
            identity: &source.key,
            keyless: false,
            windows: followed.copy.as_mut().map(|copy| &mut copy.windows),
            written: Vec::new(),
        };
        for before in rows {
            target.take(match cascades.apply(before.clone()) {
                Some(after) => RowChange::Update { before, after },
                None => RowChange::Delete(before),
            });
        }
    }

    /// It is unknown which rows of a table a foreign key changed: it is copied again, and so is every table that reacts to
    /// that, directly or through others, because the source has changed rows there too. Warns in the log.
    fn lose_rows(&mut self, reached: Reached, why: &str) {
        for table in self.with_reacting(reached) {
            let followed = self.tables.get(&table).and_then(|known| known.uncertainty.as_ref());
            let is_lost =
                |it: &Uncertainty| it.missed && (it.needs_query || it.waits_for.is_some());
            if followed.is_some_and(is_lost) {
                continue;
            }
            let TableName { database, table: name } = &table;
            tracing::warn!("{database}.{name} is copied anew: {why}");
            self.mark_rows_lost(&table);
        }
    }

    /// A table and all whose rows change with its rows, directly or through others.
    fn with_reacting(&mut self, reached: Reached) -> Vec<TableName> {
        let (mut all, mut next) = (vec![reached], 0);
        while let Some(parent) = all.get(next).cloned() {
            next += 1;
            let is_set = |column: &str| parent.columns.contains(&column.to_lowercase());
            for child in self.children_of(&parent.table).iter() {
                let reached = child.reached(parent.deleted, is_set);
                let new = reached.filter(|it| !all.contains(it));
                all.extend(new);
            }
        }
        let mut tables = Vec::new();
        for Reached { table, .. } in all {
            if !tables.contains(&table) {
                tables.push(table);
            }
        }
        tables
    }

    /// All tables whose rows change with those of this one, whatever happens to them, directly or through others.
    pub fn tables_behind(&mut self, table: &TableName) -> Vec<TableName> {
        let mut tables = Vec::new();
        for child in self.children_of(table).iter().filter(|child| child.table != *table) {
            let reached = child.reached(true, |_| true);
            let behind = reached.map(|reached| self.with_reacting(reached)).unwrap_or_default();
            tables.extend(behind.into_iter().filter(|it| it != table));
        }
        tables
    }

    /// The rows of a table are unknown from now on: it is copied again, which the next commit stores.
    pub fn mark_rows_lost(&mut self, table: &TableName) {
        let Some(followed) = self.tables.get(table) else { return };
        if followed.stopped.is_some() {
            return;
        }
        let (name, source) = (Arc::clone(&followed.name), &self.shared.settings.name);
        let mut stale = vec![(table_key(source, &name), STALE.to_owned())];
        if followed.visible == Visible::Absent {
            stale.clear();
        }
        if followed.copy.is_some() {
            stale.push((copied_key(source, &name), STALE.to_owned()));
        }
        self.with_next.extend(stale);
        self.mark_uncertain(table, true);
        self.note_skipped_rows(table);
        if let Some(uncertainty) =
            self.tables.get_mut(table).and_then(|known| known.uncertainty.as_mut())
        {
            uncertainty.needs_query = true;
        }
    }

    /// Stops a table whose rows change with those of a table that is not followed.
    fn stop_child_of_unfollowed(&mut self, parent: &TableName, child: &TableName) {
        let TableName { database, table: name } = parent;
        let reason = format!(
            "rows of {database}.{name} changed, and by a foreign key rows of this table, which \
             the binlog does not tell: follow {database}.{name} too, then SYNC this table"
        );
        let source = self.shared.settings.name.clone();
        let Some(followed) = self.tables.get_mut(child) else { return };
        if followed.stopped.is_some() {
            return;
        }
        let name = followed.name.to_string();
        tracing::warn!(table = name, "not followed: {reason}");
        followed.uncertainty = None;
        self.copying.retain(|other| *other != *child);
        if followed.copy.take().is_some() {
            self.with_next.push((copy_key(&source, &name), String::new()));
            self.with_next.push((copied_key(&source, &name), String::new()));
        }
        self.routes.clear();
        if followed.visible == Visible::Absent {
            self.tables.remove(child);
            self.shared.board.set_table(&name, TableState::Refused(reason));
            return;
        }
        (followed.visible, followed.stopped) = (Visible::Frozen, Some(reason));
        self.with_next.push((table_key(&source, &name), STALE.to_owned()));
        self.show(child);
    }
}

/// The foreign key actions on rows, by the values in the rows.
struct Cascades(Vec<Cascade>);

impl Cascades {
    fn new(old_values: &ReferencedValues, new_values: Option<Vec<Value>>) -> Self {
        let one = |values: &Vec<Value>| Cascade {
            old_values: old_values.places.iter().copied().zip(values.iter().cloned()).collect(),
            new_values: new_values.clone(),
        };
        Self(old_values.values.iter().map(one).collect())
    }

    /// The new row of a row to which one of them applies; they all have the same effect.
    fn apply(&self, mut row: Row) -> Option<Row> {
        let Cascade { old_values, new_values } = self.0.first()?;
        for ((place, _), value) in old_values.iter().zip(new_values.as_ref()?) {
            if let Some(cell) = row.get_mut(*place) {
                cell.clone_from(value);
            }
        }
        Some(row)
    }
}

/// The approximate memory of a value.
fn value_bytes(value: &Value) -> usize {
    let heap = match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    size_of::<Value>() + heap
}

/// The effect of a foreign key action.
enum ActionEffect {
    Nothing,
    Unknown,
    Change { old_values: Vec<Value>, new_values: Option<Vec<Value>> },
}

fn effect(parent: &SourceTable, child: &Child, before: &Row, after: Option<&Row>) -> ActionEffect {
    let Some(places) = places(parent, &child.key.parent_columns) else {
        return ActionEffect::Unknown;
    };
    let values = |row: &Row| -> Option<Vec<Value>> {
        places.iter().map(|&place| row.get(place).cloned()).collect()
    };
    let Some(old_values) = values(before) else { return ActionEffect::Unknown };
    if old_values.contains(&Value::Null) {
        return ActionEffect::Nothing;
    }
    let nothing = || Some(vec![Value::Null; old_values.len()]);
    let new_values = match after {
        None => match child.key.on_delete {
            ReferentialAction::Nothing => return ActionEffect::Nothing,
            ReferentialAction::Cascade => None,
            ReferentialAction::SetNull => nothing(),
        },
        Some(after) => {
            let now = values(after);
            if now.as_ref() == Some(&old_values) {
                return ActionEffect::Nothing;
            }
            match child.key.on_update {
                ReferentialAction::Nothing => return ActionEffect::Nothing,
                ReferentialAction::Cascade => now,
                ReferentialAction::SetNull => nothing(),
            }
        }
    };
    ActionEffect::Change { old_values, new_values }
}

/// The positions of a table's columns that its children reference; all columns if one is unknown.
pub(super) fn referenced_places(parent: &SourceTable, children: &[Child]) -> Vec<usize> {
    let mut referenced = Vec::new();
    for child in children {
        match places(parent, &child.key.parent_columns) {
            Some(places) => referenced.extend(places),
            None => return (0..parent.columns.len()).collect(),
        }
    }
    referenced.sort_unstable();
    referenced.dedup();
    referenced
}

fn places(table: &SourceTable, names: &[String]) -> Option<Vec<usize>> {
    let place = |name: &String| {
        let name = name.to_lowercase();
        table.columns.iter().position(|column| column.name.to_lowercase() == name)
    };
    names.iter().map(place).collect()
}

/// The engine's name of a child's table and the columns of its foreign key; or why it is not known which rows changed.
/// `is_set`: the key gets new values.
fn reached_rows(
    followed: &FollowedTable,
    parent: &SourceTable,
    child: &Child,
    is_set: bool,
    depth: usize,
) -> std::result::Result<(Arc<str>, Vec<usize>), &'static str> {
    let source = &followed.source;
    if child.is_doubtful {
        return Err("the table that they reference was renamed");
    }
    if source.is_keyless() {
        return Err("of equal rows without a key it is not known which was referenced");
    }
    let (visible, hidden) = followed.targets();
    let name = visible.or(hidden);
    let name = name.ok_or("they were not read yet when a foreign key changed them")?;
    let places = exact_places(parent, source, &child.key);
    let places = places.ok_or("values of a foreign key are equal in a collation only")?;
    let moves_key = places.iter().any(|place| source.key.contains(place));
    if followed.visible != Visible::Current && is_set && moves_key {
        return Err("a foreign key changed keys of rows that are being copied");
    }
    if depth >= MAX_DEPTH {
        return Err("a chain of foreign keys is too long");
    }
    Ok((name, places))
}

/// The positions of a foreign key's columns in the child, if equality at the source means equality of the values here.
fn exact_places(parent: &SourceTable, child: &SourceTable, key: &ForeignKey) -> Option<Vec<usize>> {
    let (there, here) = (places(parent, &key.parent_columns)?, places(child, &key.columns)?);
    let exact = |(there, here): (&usize, &usize)| {
        let (there, here) = (parent.columns.get(*there), child.columns.get(*here));
        let (Some(there), Some(here)) = (there, here) else { return false };
        there.kind == here.kind && is_exact(&here.kind)
    };
    there.iter().zip(&here).all(exact).then_some(here)
}

fn is_exact(kind: &SourceType) -> bool {
    matches!(
        kind,
        SourceType::Int { .. }
            | SourceType::Decimal { .. }
            | SourceType::Year
            | SourceType::Date
            | SourceType::Time(_)
            | SourceType::DateTime(_)
            | SourceType::Timestamp(_)
            | SourceType::Uuid
            | SourceType::Binary(..=255)
            | SourceType::VarBinary(..=255)
    )
}
