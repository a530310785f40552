//! Keys that several parts of a table have in common. They are found by reading the keys in the
//! ranges where the parts overlap, and cached together with the tables' definitions.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    sync::Arc,
};

use parking_lot::Mutex;

use super::{PartOpenFailure, lie, part::Part};
use crate::{Error, RequestPart, Result, Schema, interrupt::InterruptCheck};

/// The most keys hidden in all parts of a table together.
pub(in crate::read) const MAX_HIDDEN: usize = if cfg!(test) { 4_096 } else { 1 << 18 };
/// The most bytes of those keys.
pub(in crate::read) const MAX_HIDDEN_BYTES: usize = 16 << 20;
/// The most keys that are compared to find shared ones.
const MAX_COMPARED: usize = if cfg!(test) { 20_000 } else { 1 << 22 };
/// The most tables in the caches of hidden keys and of definitions.
const MAX_KNOWN: usize = 64;
const MAX_KNOWN_BYTES: usize = 2 * MAX_HIDDEN_BYTES;

/// The hidden keys of each part.
type Hidden = Vec<Vec<Vec<u8>>>;

/// What is cached for opening a table again.
#[derive(Default)]
pub struct PartsCache {
    /// The keys that parts share, by the names and versions of the parts.
    hidden: Mutex<HiddenKeysCache>,
    /// The definitions by table name. An unchanged definition keeps its identity, by which plans
    /// recognize it.
    definitions: Mutex<HashMap<String, Arc<Schema>>>,
}

#[derive(Default)]
struct HiddenKeysCache {
    tables: HashMap<Vec<String>, Arc<Hidden>>,
    bytes: usize,
}

impl HiddenKeysCache {
    fn keep(&mut self, versions: Vec<String>, hidden: &Arc<Hidden>) {
        let keys: usize = hidden.iter().flatten().map(Vec::len).sum();
        let bytes = keys + versions.iter().map(String::len).sum::<usize>();
        if self.tables.len() >= MAX_KNOWN || self.bytes + bytes > MAX_KNOWN_BYTES {
            *self = Self::default();
        }
        self.bytes += bytes;
        self.tables.insert(versions, Arc::clone(hidden));
    }
}

impl PartsCache {
    /// The cached definition if it equals this one, else this one.
    pub(super) fn definition(&self, schema: Schema) -> Arc<Schema> {
        let mut known = self.definitions.lock();
        if let Some(known) = known.get(&schema.name).filter(|known| ***known == schema) {
            return Arc::clone(known);
        }
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        let schema = Arc::new(schema);
        known.insert(schema.name.clone(), Arc::clone(&schema));
        schema
    }

    /// Hides, in each part, the rows whose keys a later part has too.
    pub(super) fn hidden(
        &self,
        parts: Vec<Arc<dyn Part>>,
        unless: &InterruptCheck,
    ) -> std::result::Result<Vec<Arc<dyn Part>>, PartOpenFailure> {
        // Each server chooses its own version text, so the key includes the part's name.
        let version = |part: &Arc<dyn Part>| format!("{}\0{}", part.name(), part.version());
        let versions: Vec<String> = parts.iter().map(version).collect();
        let known = self.hidden.lock().tables.get(&versions).cloned();
        let hidden = match known {
            Some(hidden) => hidden,
            None => {
                let hidden = Arc::new(find(&parts, unless)?);
                self.hidden.lock().keep(versions, &hidden);
                hidden
            }
        };
        let without = |(part, hidden): (Arc<dyn Part>, &Vec<Vec<u8>>)| match hidden.is_empty() {
            true => Ok(part),
            false => {
                let without = part.hide(hidden, unless)?;
                match without.rows().checked_add(hidden.len() as u64) == Some(part.rows()) {
                    true => Ok(without),
                    false => Err(lie(part.name(), "it does not have the keys that it sent")),
                }
            }
        };
        let parts = parts.into_iter().zip(hidden.iter()).enumerate();
        parts.map(|(at, it)| without(it).map_err(|error| PartOpenFailure::of(at, error))).collect()
    }
}

/// The range of a part's keys that can also occur in other parts: least and greatest key.
fn overlap(parts: &[Arc<dyn Part>], at: usize) -> Option<(Vec<u8>, Vec<u8>)> {
    let (first, last) = parts.get(at)?.ends()?;
    let others = parts.iter().enumerate().filter(|(other, _)| *other != at);
    let shared = others.filter_map(|(_, other)| {
        let (other_first, other_last) = other.ends()?;
        let (low, high) = (first.max(other_first), last.min(other_last));
        (low <= high).then_some((low, high))
    });
    let shared: Vec<_> = shared.collect();
    let low = shared.iter().map(|(low, _)| *low).min()?;
    let high = shared.iter().map(|(_, high)| *high).max()?;
    Some((low.clone(), high.clone()))
}

/// A stream of a part's keys.
struct Stream<'p> {
    part: &'p Arc<dyn Part>,
    /// The greatest key that can occur in another part.
    last: Vec<u8>,
    page: std::vec::IntoIter<Vec<u8>>,
    /// The first key of the next page.
    from: Vec<u8>,
    given: u64,
}

impl Stream<'_> {
    fn next(&mut self, unless: &InterruptCheck) -> Result<Option<Vec<u8>>> {
        let mut next = self.page.next();
        if next.is_none() {
            unless.check()?;
            let page = self.part.keys_from(&self.from, unless)?;
            self.given = self.given.saturating_add(page.len() as u64);
            let is_in_order = page.first().is_none_or(|first| *first >= self.from)
                && page.is_sorted_by(|a, b| a < b);
            if !is_in_order || self.given > self.part.rows() {
                return Err(lie(self.part.name(), "it sent keys that it cannot have"));
            }
            if let Some(last) = page.last() {
                // The successor of the last key.
                self.from = [&last[..], &[0]].concat();
            }
            self.page = page.into_iter();
            next = self.page.next();
        }
        Ok(next.filter(|key| *key <= self.last))
    }
}

fn find(
    parts: &[Arc<dyn Part>],
    unless: &InterruptCheck,
) -> std::result::Result<Hidden, PartOpenFailure> {
    let mut hidden: Hidden = vec![Vec::new(); parts.len()];
    let mut streams = HashMap::new();
    let mut heap = BinaryHeap::new();
    for (at, part) in parts.iter().enumerate() {
        let Some((from, last)) = overlap(parts, at) else { continue };
        let mut stream = Stream { part, last, page: Vec::new().into_iter(), from, given: 0 };
        let first = stream.next(unless).map_err(|error| PartOpenFailure::of(at, error))?;
        heap.extend(first.map(|key| Reverse((key, at))));
        streams.insert(at, stream);
    }
    let mut compared = 0_usize;
    let (mut before, mut count, mut bytes): (Option<(Vec<u8>, usize)>, usize, usize) = (None, 0, 0);
    while let Some(Reverse((key, at))) = heap.pop() {
        // If only one part has keys left, none of them is shared.
        if heap.is_empty() && before.as_ref().is_none_or(|(last, _)| *last != key) {
            break;
        }
        let Some(stream) = streams.get_mut(&at) else { continue };
        compared += 1;
        if compared > MAX_COMPARED {
            let message = format!(
                "the key ranges of its parts overlap, and more than {MAX_COMPARED} keys would \
                 have to be compared: give each part a key range of its own"
            );
            return Err(Error::request(RequestPart::Schema, message).into());
        }
        let next = stream.next(unless).map_err(|error| PartOpenFailure::of(at, error))?;
        heap.extend(next.map(|key| Reverse((key, at))));
        // Equal keys come in the order of the parts.
        if let Some((last, part)) = before.take().filter(|(last, _)| *last == key) {
            (count, bytes) = (count + 1, bytes + last.len());
            if count > MAX_HIDDEN || bytes > MAX_HIDDEN_BYTES {
                let name = parts.get(part).map_or("a part", |part| part.name());
                let message = format!(
                    "more than {MAX_HIDDEN} rows, or {MAX_HIDDEN_BYTES} bytes of keys, of {name} and the parts before it \
                     have keys that later parts have too: delete them there"
                );
                return Err(Error::request(RequestPart::Schema, message).into());
            }
            if let Some(hidden) = hidden.get_mut(part) {
                hidden.push(last);
            }
        }
        before = Some((key, at));
    }
    Ok(hidden)
}
