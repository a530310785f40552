//! Keys that several parts of a table have: found out by reading the keys where those of parts overlap, and kept.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    sync::Arc,
};

use parking_lot::Mutex;

use super::{lie, part::Part};
use crate::{Error, RequestPart, Result, interrupt::Unless};

/// Most keys that are hidden in the parts of a table together.
const MAX_HIDDEN: usize = if cfg!(test) { 4_096 } else { 1 << 18 };
/// Most bytes of them.
const MAX_HIDDEN_BYTES: usize = 16 << 20;
/// Tables of which it is kept.
const MAX_KNOWN: usize = 64;

/// For each part the keys that are hidden in it.
type Hidden = Vec<Vec<Vec<u8>>>;

/// Which keys parts share, by the versions of those, as far as it was found out.
#[derive(Default)]
pub struct SharedKeys(Mutex<HashMap<Vec<String>, Arc<Hidden>>>);

impl SharedKeys {
    /// The parts without the rows whose keys a later one has.
    pub(super) fn hidden(
        &self,
        parts: Vec<Arc<dyn Part>>,
        unless: &Unless,
    ) -> Result<Vec<Arc<dyn Part>>> {
        let versions: Vec<String> = parts.iter().map(|part| part.version().to_owned()).collect();
        let known = self.0.lock().get(&versions).cloned();
        let hidden = match known {
            Some(hidden) => hidden,
            None => {
                let hidden = Arc::new(find(&parts, unless)?);
                let mut known = self.0.lock();
                if known.len() >= MAX_KNOWN {
                    known.clear();
                }
                known.insert(versions, Arc::clone(&hidden));
                hidden
            }
        };
        let without = |(part, hidden): (Arc<dyn Part>, &Vec<Vec<u8>>)| match hidden.is_empty() {
            true => Ok(part),
            false => {
                let without = part.hide(hidden, unless)?;
                match without.rows().checked_add(hidden.len() as u64) == Some(part.rows()) {
                    true => Ok(without),
                    false => Err(lie(part.name(), "it does not have the keys that it gave")),
                }
            }
        };
        parts.into_iter().zip(hidden.iter()).map(without).collect()
    }
}

/// Where the keys of a part overlap with those of others: the least and the greatest that both may have.
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

/// The keys of a part one after the other.
struct Stream<'p> {
    part: &'p Arc<dyn Part>,
    /// The last key that others may have.
    last: Vec<u8>,
    page: std::vec::IntoIter<Vec<u8>>,
    /// Where the next page begins.
    from: Vec<u8>,
    given: u64,
}

impl Stream<'_> {
    fn next(&mut self, unless: &Unless) -> Result<Option<Vec<u8>>> {
        let mut next = self.page.next();
        if next.is_none() {
            unless.check()?;
            let page = self.part.keys_from(&self.from, unless)?;
            self.given = self.given.saturating_add(page.len() as u64);
            let is_in_order = page.first().is_none_or(|first| *first >= self.from)
                && page.is_sorted_by(|a, b| a < b);
            if !is_in_order || self.given > self.part.rows() {
                return Err(lie(self.part.name(), "it gave keys that it cannot have"));
            }
            if let Some(last) = page.last() {
                // The least key above it.
                self.from = [&last[..], &[0]].concat();
            }
            self.page = page.into_iter();
            next = self.page.next();
        }
        Ok(next.filter(|key| *key <= self.last))
    }
}

fn find(parts: &[Arc<dyn Part>], unless: &Unless) -> Result<Hidden> {
    let mut hidden: Hidden = vec![Vec::new(); parts.len()];
    let mut streams = HashMap::new();
    let mut heap = BinaryHeap::new();
    for (at, part) in parts.iter().enumerate() {
        let Some((from, last)) = overlap(parts, at) else { continue };
        let mut stream = Stream { part, last, page: Vec::new().into_iter(), from, given: 0 };
        heap.extend(stream.next(unless)?.map(|key| Reverse((key, at))));
        streams.insert(at, stream);
    }
    let (mut before, mut count, mut bytes): (Option<(Vec<u8>, usize)>, usize, usize) = (None, 0, 0);
    while let Some(Reverse((key, at))) = heap.pop() {
        // What one part alone has left is nobody else's.
        if heap.is_empty() && before.as_ref().is_none_or(|(last, _)| *last != key) {
            break;
        }
        let Some(stream) = streams.get_mut(&at) else { continue };
        heap.extend(stream.next(unless)?.map(|key| Reverse((key, at))));
        // Of equal keys the part that is first in the list comes first.
        if let Some((last, part)) = before.take().filter(|(last, _)| *last == key) {
            (count, bytes) = (count + 1, bytes + last.len());
            if count > MAX_HIDDEN || bytes > MAX_HIDDEN_BYTES {
                let name = parts.get(part).map_or("a part", |part| part.name());
                let message = format!(
                    "more than {MAX_HIDDEN} rows, or {MAX_HIDDEN_BYTES} bytes of keys, of {name} and the parts before it \
                     have keys that later parts have too: delete them there"
                );
                return Err(Error::request(RequestPart::Schema, message));
            }
            if let Some(hidden) = hidden.get_mut(part) {
                hidden.push(last);
            }
        }
        before = Some((key, at));
    }
    Ok(hidden)
}
