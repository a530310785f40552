//! Several tables read as one: a view of all their segments, without the rows whose keys later
//! tables have.
//!
//! A table consists of many segments anyway, so tables with the same definition form one view of
//! more segments. The view reads like one table with the same rows: all counts, of rows and of
//! keywords, are of live documents, and a document whose key a later table has is not live. The
//! keys that two segments share never change, so they are computed once and cached ([`SameKeys`]).

use std::{
    collections::HashMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicU32, Ordering},
    },
};

use parking_lot::Mutex;
use remora_index::{Bitmap, paths::PathSpec, segment::Segment};

use super::{
    Activity, SegmentView, Snapshot, TableView, UsageCounters, same_keys::SameKeys,
    united_rows::UnitedRows,
};
use crate::{
    Error, RequestPart, Result, Schema,
    encode::RowFormat,
    error::no_table,
    indexing::path_specs,
    schema::{MAX_PARTS, Synonyms, united_names},
};

/// The most cached views of a snapshot; others are built again when needed.
const MAX_VIEWS: usize = 64;
/// The most cached definitions. A definition that is built again counts as a new one for cached plans.
const MAX_DEFINITIONS: usize = 1_024;

/// A segment and its deletions, as weak references, so that their addresses are not reused.
struct SegmentIdentity(Weak<Segment>, Option<Weak<Bitmap>>);

impl SegmentIdentity {
    fn of(view: &SegmentView) -> Self {
        Self(Arc::downgrade(&view.segment), view.deleted.as_ref().map(Arc::downgrade))
    }

    fn is_of(&self, view: &SegmentView) -> bool {
        let same_deleted = match (&self.1, &view.deleted) {
            (None, None) => true,
            (Some(mine), Some(deleted)) => std::ptr::eq(mine.as_ptr(), Arc::as_ptr(deleted)),
            _ => false,
        };
        same_deleted && std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&view.segment))
    }
}

/// The deleted documents of a segment, including those that these later segments hide. Does not
/// keep the segment in memory.
struct Hidden {
    of: SegmentIdentity,
    later: Arc<[SegmentIdentity]>,
    deleted: Option<Arc<Bitmap>>,
    deleted_count: u32,
    live_lengths: Arc<[u64]>,
}

/// The views of united tables of one snapshot.
#[derive(Default)]
pub(crate) struct UnitedViews(Mutex<HashMap<Box<str>, Arc<TableView>>>);

impl UnitedViews {
    fn get(&self, name: &str) -> Option<Arc<TableView>> {
        self.0.lock().get(name).cloned()
    }

    fn put(&self, name: &str, view: &Arc<TableView>) {
        let mut views = self.0.lock();
        if views.len() >= MAX_VIEWS {
            views.clear();
        }
        views.insert(name.into(), Arc::clone(view));
    }
}

/// The state of united tables that all snapshots share.
#[derive(Default)]
pub(crate) struct United {
    definitions: Mutex<Vec<Arc<UnitedTables>>>,
    made: AtomicU32,
    same_keys: SameKeys,
}

/// United tables with their present definitions.
struct UnitedTables {
    name: Box<str>,
    /// The tables' numbers and definitions.
    parts: Vec<(u32, Weak<Schema>)>,
    /// A table number that no real table has.
    number: u32,
    schema: Arc<Schema>,
    format: Arc<RowFormat>,
    paths: Arc<[PathSpec]>,
    synonyms: Arc<Synonyms>,
    activity: Arc<Activity>,
    usage: Arc<UsageCounters>,
    /// The documents hidden in the last view.
    hidden: Mutex<Vec<Hidden>>,
}

impl UnitedTables {
    fn is_of(&self, name: &str, parts: &[Arc<TableView>]) -> bool {
        let same = |((number, schema), part): (&(u32, Weak<Schema>), &Arc<TableView>)| {
            *number == part.number && std::ptr::eq(schema.as_ptr(), Arc::as_ptr(&part.schema))
        };
        *self.name == *name
            && self.parts.len() == parts.len()
            && self.parts.iter().zip(parts).all(same)
    }
}

impl Snapshot {
    /// The tables that are read as one under a name: the parts of a distributed table, or those listed in the
    /// name, each of which may be distributed. If a table is listed twice, its last position counts. Empty for
    /// other names.
    pub fn parts_of(&self, name: &str) -> Vec<String> {
        let declared = |name: &str| {
            let table = self.tables.get(name);
            table.map_or(&[][..], |table| table.schema.parts())
        };
        let (mut all, mut is_one) = (Vec::new(), true);
        for listed in united_names(name) {
            is_one &= listed == name;
            match declared(listed) {
                [] if is_one => {}
                [] => all.push(listed.to_owned()),
                parts => all.extend_from_slice(parts),
            }
        }
        let mut seen = std::collections::HashSet::new();
        let mut last: Vec<String> = Vec::with_capacity(all.len());
        for part in all.into_iter().rev() {
            if seen.insert(part.clone()) {
                last.push(part);
            }
        }
        last.reverse();
        last
    }
}

impl United {
    /// The united view of a name. Cost: the first call on a snapshot compares each pair of segments, and reads the
    /// keys of new segments.
    ///
    /// # Errors
    /// [`Error::NotFound`] if a listed table does not exist; [`Error::Request`] if one has rows on other servers, a
    /// part of a distributed table does not exist or is itself distributed, there are too many, or their definitions
    /// differ.
    pub fn view(&self, snapshot: &Snapshot, name: &str) -> Result<Arc<TableView>> {
        if let Some(view) = snapshot.united.get(name) {
            return Ok(view);
        }
        let has_agents = |listed: &&str| {
            let table = snapshot.tables.get(*listed);
            table.is_some_and(|table| !table.schema.agents().is_empty())
        };
        if let Some(listed) = united_names(name).find(has_agents) {
            return Err(of_other_servers(listed));
        }
        let names = snapshot.parts_of(name);
        if names.len() > MAX_PARTS {
            let message =
                format!("{} tables cannot be read as one: the limit is {MAX_PARTS}", names.len());
            return Err(Error::request(RequestPart::Schema, message));
        }
        let parts = names.iter().map(|part| part_of(snapshot, name, part));
        let parts: Vec<Arc<TableView>> = parts.collect::<Result<_>>()?;
        let definition = self.definition(name, &parts)?;
        // Only one thread builds the view; the others wait and use it.
        let mut hidden = definition.hidden.lock();
        if let Some(view) = snapshot.united.get(name) {
            return Ok(view);
        }
        let view = Arc::new(self.view_of(&definition, parts, &mut hidden));
        snapshot.united.put(name, &view);
        Ok(view)
    }

    fn definition(&self, name: &str, parts: &[Arc<TableView>]) -> Result<Arc<UnitedTables>> {
        let mut definitions = self.definitions.lock();
        if let Some(known) = definitions.iter().find(|known| known.is_of(name, parts)) {
            return Ok(Arc::clone(known));
        }
        let schemas: Vec<&Schema> = parts.iter().map(|part| &*part.schema).collect();
        let schema = Arc::new(Schema::united(name, &schemas)?);
        let of_part = |part: &Arc<TableView>| (part.number, Arc::downgrade(&part.schema));
        let definition = Arc::new(UnitedTables {
            name: name.into(),
            parts: parts.iter().map(of_part).collect(),
            number: u32::MAX - self.made.fetch_add(1, Ordering::Relaxed) % (u32::MAX / 2),
            format: Arc::new(RowFormat::new(Arc::clone(&schema))),
            paths: path_specs(&schema).into(),
            synonyms: Arc::new(Synonyms::of(&schema)),
            activity: Arc::default(),
            usage: Arc::new(UsageCounters::of(&schema, None)),
            hidden: Mutex::default(),
            schema,
        });
        let is_live =
            |it: &Arc<UnitedTables>| it.parts.iter().all(|part| part.1.strong_count() > 0);
        definitions.retain(is_live);
        if definitions.len() >= MAX_DEFINITIONS {
            definitions.remove(0);
        }
        definitions.push(Arc::clone(&definition));
        Ok(definition)
    }

    fn view_of(
        &self,
        definition: &UnitedTables,
        parts: Vec<Arc<TableView>>,
        hidden: &mut Vec<Hidden>,
    ) -> TableView {
        let schema = &definition.schema;
        let (mut segments, mut next) = (Vec::new(), Vec::new());
        for (place, part) in parts.iter().enumerate() {
            let later = parts.get(place + 1..).unwrap_or_default();
            let later: Vec<&SegmentView> = later.iter().flat_map(|part| &part.segments).collect();
            let marks: Arc<[SegmentIdentity]> =
                later.iter().map(|it| SegmentIdentity::of(it)).collect();
            for segment in &part.segments {
                let is_known = |known: &&Hidden| {
                    known.of.is_of(segment)
                        && known.later.len() == later.len()
                        && known.later.iter().zip(&later).all(|(mark, it)| mark.is_of(it))
                };
                let view = match hidden.iter().find(is_known) {
                    Some(known) => SegmentView {
                        segment: Arc::clone(&segment.segment),
                        deleted: known.deleted.clone(),
                        deleted_count: known.deleted_count,
                        live_lengths: Arc::clone(&known.live_lengths),
                    },
                    None => self.without_later(segment, &later, schema),
                };
                next.push(Hidden {
                    of: SegmentIdentity::of(segment),
                    later: Arc::clone(&marks),
                    deleted: view.deleted.clone(),
                    deleted_count: view.deleted_count,
                    live_lengths: Arc::clone(&view.live_lengths),
                });
                segments.push(view);
            }
        }
        *hidden = next;
        TableView {
            number: definition.number,
            schema: Arc::clone(schema),
            format: Arc::clone(&definition.format),
            defined: parts.iter().map(|part| part.defined).max().unwrap_or_default(),
            paths: Arc::clone(&definition.paths),
            synonyms: Arc::clone(&definition.synonyms),
            changed: parts.iter().map(|part| part.changed).max().unwrap_or_default(),
            segments,
            parts: parts.iter().map(|it| (it.schema.name.clone(), it.segments.len())).collect(),
            staged: None,
            activity: Arc::clone(&definition.activity),
            usage: Arc::clone(&definition.usage),
            rows: Arc::new(UnitedRows::new(parts)),
        }
    }

    /// The segment without documents whose keys are live in later tables.
    fn without_later(
        &self,
        view: &SegmentView,
        later: &[&SegmentView],
        schema: &Schema,
    ) -> SegmentView {
        let mut gone = Vec::new();
        for other in later {
            let same = self.same_keys.of(&view.segment, &other.segment);
            let hidden =
                same.iter().filter(|(doc, by)| !view.is_deleted(*doc) && !other.is_deleted(*by));
            gone.extend(hidden.map(|(doc, _)| *doc));
        }
        gone.sort_unstable();
        gone.dedup();
        if gone.is_empty() { view.clone() } else { view.without_docs(&gone, schema) }
    }
}

/// Finds a table that is to be united with others.
fn part_of(snapshot: &Snapshot, name: &str, part: &str) -> Result<Arc<TableView>> {
    let is_declared = snapshot.tables.contains_key(name);
    let Some(table) = snapshot.tables.get(part) else {
        if !is_declared {
            return Err(no_table(part));
        }
        let message = format!(
            "table {name:?} is distributed over {part:?}, which is not there: create that \
             table again, or alter this one"
        );
        return Err(Error::request(RequestPart::Schema, message));
    };
    if !table.schema.is_distributed() {
        return Ok(Arc::clone(table));
    }
    let message = format!(
        "table {name:?} is distributed over {part:?}, which is distributed itself: name the parts of that \
         table"
    );
    Err(Error::request(RequestPart::Schema, message))
}

/// The error if a table with rows on other servers is used like a local one.
pub(crate) fn of_other_servers(table: &str) -> Error {
    let message = format!(
        "table {table:?} has rows on other servers (agents): only a SELECT of SQL can read it, \
         alone or joined"
    );
    Error::request(RequestPart::Other, message)
}
