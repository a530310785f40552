//! The keys that two segments share. They are computed once, because segments never change.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use remora_index::{Keys, segment::Segment};

/// Pairs of documents with the same key, of the first and the second segment.
type Pairs = Arc<[(u32, u32)]>;

/// The cache is cleaned of dropped segments only if it has more pairs of segments than this, or more
/// pairs of documents than [`MANY_DOCUMENTS`].
const FEW: usize = 1_024;
/// See [`FEW`]. Each pair of documents takes 8 bytes.
const MANY_DOCUMENTS: usize = 1 << 20;

/// A cache of the shared keys of pairs of segments, while both exist.
#[derive(Default)]
pub(super) struct SameKeys(Mutex<SegmentPairCache>);

#[derive(Default)]
struct SegmentPairCache {
    /// The entries, by the addresses of the segments. Addresses are not reused while weak
    /// references exist.
    pairs: HashMap<(usize, usize), Held>,
    /// The number of entries after the last cleaning.
    left: usize,
    /// The number of document pairs in all entries, now and after the last cleaning.
    held: usize,
    held_left: usize,
}

/// Two segments and their shared keys.
struct Held {
    first: Weak<Segment>,
    second: Weak<Segment>,
    pairs: Pairs,
}

impl Held {
    fn is_there(&self) -> bool {
        self.first.strong_count() > 0 && self.second.strong_count() > 0
    }
}

impl SameKeys {
    /// The documents with the same keys in two segments, ordered by those of the first. Cost: a
    /// look-up for each key of the smaller segment that lies in the range of the larger one; none
    /// if cached.
    pub fn of(&self, first: &Arc<Segment>, second: &Arc<Segment>) -> Pairs {
        let place = (Arc::as_ptr(first) as usize, Arc::as_ptr(second) as usize);
        if let Some(held) = self.0.lock().pairs.get(&place) {
            return Arc::clone(&held.pairs);
        }
        let pairs: Pairs = pairs(first.keys(), second.keys()).into();
        let mut known = self.0.lock();
        let (first, second) = (Arc::downgrade(first), Arc::downgrade(second));
        let held = Held { first, second, pairs: Arc::clone(&pairs) };
        let before = known.pairs.insert(place, held).map_or(0, |before| before.pairs.len());
        known.held = (known.held + pairs.len()).saturating_sub(before);
        if known.pairs.len() > FEW + known.left * 2
            || known.held > MANY_DOCUMENTS + known.held_left * 2
        {
            known.pairs.retain(|_, held| held.is_there());
            known.left = known.pairs.len();
            known.held = known.pairs.values().map(|held| held.pairs.len()).sum();
            known.held_left = known.held;
        }
        pairs
    }
}

fn pairs(first: &Keys, second: &Keys) -> Vec<(u32, u32)> {
    if first.len() <= second.len() {
        return found(first, second);
    }
    let mut pairs: Vec<_> = found(second, first).iter().map(|&(of, by)| (by, of)).collect();
    pairs.sort_unstable();
    pairs
}

/// The documents of the smaller segment whose keys the larger one has, with those of the larger one.
fn found(few: &Keys, many: &Keys) -> Vec<(u32, u32)> {
    let (mut key, mut last, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
    if many.is_empty() {
        return pairs;
    }
    many.read(0, &mut key);
    let begin = few.lower_bound(&key);
    many.read(many.len() - 1, &mut last);
    for doc in begin..few.len() {
        key.clear();
        few.read(doc, &mut key);
        if key > last {
            break;
        }
        pairs.extend(many.find(&key).map(|other| (doc, other)));
    }
    pairs
}
