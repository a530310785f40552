//! Routes rows of the stream into the batch.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use remora_engine::{Change, RequiredRows, Row, Value};
use rustc_hash::FxHashMap;

use super::{
    applier::Applier,
    batch::Batch,
    cascades::{Child, Children, may_cascade, referred_places},
    occurrences::{come, gone},
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
    ways: FxHashMap<u64, (Arc<TableMap>, Way)>,
    /// The child tables of each table, once they were needed.
    pub children: Option<Children>,
}

/// The route of a layout's rows.
#[derive(Clone)]
enum Way {
    Here(Arc<Route>),
    /// The table is not followed, but foreign keys change rows of these tables with it.
    Past(TableName, Arc<[Child]>),
    /// Into the member tables of a MERGE table.
    Merged,
    Nowhere,
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
    referred: Vec<usize>,
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
        self.ways.clear();
        self.children = None;
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
        let route = match self.way(map)? {
            Way::Here(route) => route,
            way => {
                match way {
                    Way::Past(parent, children) if may_cascade(kind, body) => {
                        self.cascade_blindly(&parent, &children, kind);
                    }
                    Way::Merged => self.miss_merged_rows(),
                    Way::Past(..) | Way::Nowhere | Way::Here(_) => {}
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
                parents.extend(before_and_after(&change, &route.referred));
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

    fn way(&mut self, map: &Arc<TableMap>) -> Result<Way> {
        if let Some((known, way)) = self.routes.ways.get(&map.table_id)
            && Arc::ptr_eq(known, map)
        {
            return Ok(way.clone());
        }
        let table = TableName { database: map.database.clone(), table: map.table.clone() };
        let children = self.children_of(&table);
        let way = match self.find_route(&table, map, &children)? {
            Some(route) => Way::Here(Arc::new(route)),
            None if self.merged.has(&table) => Way::Merged,
            None if children.is_empty() => Way::Nowhere,
            None => Way::Past(table, children),
        };
        if self.routes.ways.len() >= MAX_ROUTES {
            self.routes.clear();
        }
        self.routes.ways.insert(map.table_id, (Arc::clone(map), way.clone()));
        Ok(way)
    }

    fn find_route(
        &mut self,
        table: &TableName,
        map: &TableMap,
        children: &Arc<[Child]>,
    ) -> Result<Option<Route>> {
        self.miss_rows(table);
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
                let referred = referred_places(&followed.source, &children);
                let required = self.required(visible.as_ref().or(hidden.as_ref()));
                let deciding = required.as_ref().map(RequiredRows::columns).unwrap_or_default();
                decoder.look_back(&[referred.as_slice(), &deciding].concat());
                Ok(Some(Route {
                    table,
                    decoder,
                    identity,
                    keyless,
                    visible,
                    hidden,
                    children,
                    referred,
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
fn before_and_after(change: &RowChange, referred: &[usize]) -> Option<(Row, Option<Row>)> {
    match change {
        RowChange::Insert(_) => None,
        RowChange::Update { before, after } => {
            let changed = referred.iter().any(|&place| before.get(place) != after.get(place));
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
            return self.push(come(row, hash));
        }
        self.record(&row);
        self.push(Change::Put(row));
    }

    fn delete(&mut self, row: &[Value]) {
        if self.keyless {
            return self.push(gone(row_hash(row, self.identity)));
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
