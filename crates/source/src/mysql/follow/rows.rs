//! Routes rows of the stream into the batch.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use remora_engine::{Change, RequiredRows, Row, Value};
use rustc_hash::FxHashMap;

use super::{
    applier::Applier,
    batch::Batch,
    cascades::{Child, Children, may_cascade, referenced_places},
    occurrences::{delete_change, insert_change},
    row_hash::row_hash,
    row_outcome::RowTally,
    status::count,
};
use crate::{
    Error, Result,
    mysql::{
        binlog::{RowChange, RowDecoder, RowsKind, RowsVersion, TableMap},
        copy::{Windows, write_key},
        table_name::TableName,
    },
};

/// The most layouts whose routes are cached.
const MAX_ROUTES: usize = 4_096;

/// The routes of rows, by the source's table id of their layout.
#[derive(Default)]
pub(super) struct Routes {
    row_targets: FxHashMap<u64, (Arc<TableMap>, RowTarget)>,
    /// The child tables of each table, once they were needed.
    pub children: Option<Children>,
    /// Whether all tables behind unknown foreign keys are known to be copied again ([`super::unknown_keys`]).
    pub has_lost_behind: bool,
}

/// The route of a layout's rows.
#[derive(Clone)]
enum RowTarget {
    Followed(Arc<Route>),
    /// The table is not followed, but foreign keys change rows of these tables with it.
    Unfollowed(TableName, Arc<[Child]>),
    /// Into the member tables of a MERGE table.
    Merged,
    Ignored,
}

/// The route into a followed table.
pub(super) struct Route {
    table: TableName,
    decoder: RowDecoder,
    /// The positions of the identifying columns.
    identity: Vec<usize>,
    /// Whether the table has no key.
    keyless: bool,
    visible: Option<Arc<str>>,
    hidden: Option<Arc<str>>,
    /// The child tables whose rows change with these.
    children: Arc<[Child]>,
    /// The positions of the referenced columns.
    referenced: Vec<usize>,
    /// The table's required filter, if it has one.
    required: Option<RequiredRows>,
}

/// The target of changes.
pub(super) struct ChangeSink<'b> {
    pub batch: &'b mut Batch,
    /// The positions of the identifying columns, and whether the table has no key: then a row is identified by their
    /// hash, and equal rows are counted.
    pub identity: &'b [usize],
    pub keyless: bool,
    pub visible: Option<usize>,
    pub hidden: Option<usize>,
    pub windows: Option<&'b mut Windows>,
    pub written: Vec<u8>,
}

impl Routes {
    /// Drops all routes, because tables changed.
    pub fn clear(&mut self) {
        self.row_targets.clear();
        (self.children, self.has_lost_behind) = (None, false);
    }
}

impl Applier {
    /// Handles a rows event.
    pub fn rows(
        &mut self,
        map: &Arc<TableMap>,
        kind: RowsKind,
        version: RowsVersion,
        body: &[u8],
    ) -> Result<()> {
        self.lose_rows_behind_unknown_keys(kind, body);
        let route = match self.row_target(map)? {
            RowTarget::Followed(route) => route,
            row_target => {
                match row_target {
                    RowTarget::Unfollowed(parent, children) if may_cascade(kind, body) => {
                        self.cascade_from_unread_table(&parent, &children, kind);
                    }
                    RowTarget::Merged => self.mark_member_rows_lost(),
                    RowTarget::Unfollowed(..) | RowTarget::Ignored | RowTarget::Followed(_) => {}
                }
                count(&self.shared.board.counters.skipped, 1);
                return Ok(());
            }
        };
        let cascades = !route.children.is_empty() && may_cascade(kind, body);
        let mut parents = Vec::new();
        self.batch.add_bytes(body.len());
        let mut tally = RowTally::default();
        let copy = self.tables.get_mut(&route.table).and_then(|table| table.copy.as_mut());
        let mut target = ChangeSink {
            visible: route.visible.as_ref().map(|name| self.batch.place(name)),
            hidden: route.hidden.as_ref().map(|name| self.batch.place(name)),
            batch: &mut self.batch,
            identity: &route.identity,
            keyless: route.keyless,
            windows: copy.filter(|_| !route.keyless).map(|copy| &mut copy.windows),
            written: Vec::new(),
        };
        let decoded = route.decoder.decode(kind, version, body, &mut |change| {
            if cascades {
                parents.extend(before_and_after(&change, &route.referenced));
            }
            tally.count(&change, &route.identity, route.required.as_ref());
            target.take(change);
            Ok(())
        });
        match decoded {
            Err(Error::TableRefused { reason, .. }) => {
                let times = failed_again(&self.shared.unreadable, &route.table);
                return self.give_up_reading(&route.table, reason, times);
            }
            other => other?,
        }
        self.shared.board.counters.rows.add(&tally);
        if !parents.is_empty() {
            self.cascade(&route.table, &route.children, parents, 0)?;
        }
        if self.batch.is_large() { self.spill() } else { Ok(()) }
    }

    fn row_target(&mut self, map: &Arc<TableMap>) -> Result<RowTarget> {
        if let Some((known, row_target)) = self.routes.row_targets.get(&map.table_id)
            && Arc::ptr_eq(known, map)
        {
            return Ok(row_target.clone());
        }
        let table = TableName { database: map.database.clone(), table: map.table.clone() };
        let children = self.children_of(&table);
        let row_target = match self.find_route(&table, map, &children)? {
            Some(route) => RowTarget::Followed(Arc::new(route)),
            None if self.merged.has(&table) => RowTarget::Merged,
            None if children.is_empty() => RowTarget::Ignored,
            None => RowTarget::Unfollowed(table, children),
        };
        if self.routes.row_targets.len() >= MAX_ROUTES {
            self.routes.clear();
        }
        self.routes.row_targets.insert(map.table_id, (Arc::clone(map), row_target.clone()));
        Ok(row_target)
    }

    fn find_route(
        &mut self,
        table: &TableName,
        map: &TableMap,
        children: &Arc<[Child]>,
    ) -> Result<Option<Route>> {
        self.note_skipped_rows(table);
        let Some(followed) = self.tables.get(table) else { return Ok(None) };
        let (visible, hidden) = followed.targets();
        if visible.is_none() && hidden.is_none() {
            return Ok(None);
        }
        let (identity, keyless) = (followed.source.identity(), followed.source.is_keyless());
        match RowDecoder::new(&followed.source, map) {
            Ok(mut decoder) => {
                self.shared.unfitting.lock().remove(table);
                let (table, children) = (table.clone(), Arc::clone(children));
                let referenced = referenced_places(&followed.source, &children);
                let required = self.required(visible.as_ref().or(hidden.as_ref()));
                let deciding = required.as_ref().map(RequiredRows::columns).unwrap_or_default();
                decoder.require_before_columns(&[referenced.as_slice(), &deciding].concat());
                Ok(Some(Route {
                    table,
                    decoder,
                    identity,
                    keyless,
                    visible,
                    hidden,
                    children,
                    referenced,
                    required,
                }))
            }
            // The source changed the table without logging it.
            Err(Error::TableRefused { reason, .. }) => {
                let times = failed_again(&self.shared.unfitting, table);
                self.give_up_reading(table, reason, times).map(|()| None)
            }
            Err(error) => Err(error),
        }
    }
}

impl Applier {
    /// A local table's required filter, if it has one.
    fn required(&self, table: Option<&Arc<str>>) -> Option<RequiredRows> {
        let schema = self.shared.database.schema(table?).ok()?;
        schema.required.as_ref()?;
        RequiredRows::of(&schema).ok()
    }
}

/// The row before, if it may be referenced by these columns, and the row after.
fn before_and_after(change: &RowChange, referenced: &[usize]) -> Option<(Row, Option<Row>)> {
    match change {
        RowChange::Insert(_) => None,
        RowChange::Update { before, after } => {
            let changed = referenced.iter().any(|&place| before.get(place) != after.get(place));
            changed.then(|| (before.clone(), Some(after.clone())))
        }
        RowChange::Delete(row) => Some((row.clone(), None)),
    }
}

/// Counts a failure of a table and returns the number of failures.
pub(super) fn failed_again(failures: &Mutex<HashMap<TableName, u32>>, table: &TableName) -> u32 {
    let mut failures = failures.lock();
    let times = failures.entry(table.clone()).or_default();
    *times += 1;
    *times
}

impl ChangeSink<'_> {
    /// Appends a change.
    pub fn take(&mut self, change: RowChange) {
        match change {
            RowChange::Insert(row) => self.put(row),
            RowChange::Update { before, after } => {
                if self.identity.iter().any(|&place| before.get(place) != after.get(place)) {
                    self.delete(&before);
                    self.put(after);
                } else if !self.keyless {
                    self.put(after);
                }
            }
            RowChange::Delete(row) => self.delete(&row),
        }
    }

    fn put(&mut self, row: Row) {
        if self.keyless {
            let hash = row_hash(&row, self.identity);
            return self.push(insert_change(row, hash));
        }
        self.record(&row);
        self.push(Change::Put(row));
    }

    fn delete(&mut self, row: &[Value]) {
        if self.keyless {
            return self.push(delete_change(row_hash(row, self.identity)));
        }
        self.record(row);
        let key = self.identity.iter().filter_map(|&place| row.get(place).cloned()).collect();
        self.push(Change::Delete(key));
    }

    fn push(&mut self, change: Change) {
        if let (Some(visible), Some(_)) = (self.visible, self.hidden) {
            self.batch.push(visible, change.clone());
        }
        if let Some(place) = self.hidden.or(self.visible) {
            self.batch.push(place, change);
        }
    }

    fn record(&mut self, row: &[Value]) {
        if let Some(windows) = self.windows.as_mut().filter(|windows| windows.len() > 0) {
            write_key(&mut self.written, row, self.identity);
            windows.record(&self.written);
        }
    }
}
