//! The keys that two segments share: computed once, because neither changes.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use remora_index::{Keys, segment::Segment};

/// A document of the first segment, and that of the second with the same key.
type Pairs = Arc<[(u32, u32)]>;

/// Pairs of segments that are looked through for those that are gone only beyond this many.
const FEW: usize = 1_024;
/// The same of documents with the same keys, of which each is 8 bytes.
const MANY_DOCUMENTS: usize = 1 << 20;

/// The documents with the same keys of pairs of segments, while both are there.
#[derive(Default)]
pub(super) struct SameKeys(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// By the addresses of the segments, which stay theirs while they are held weakly.
    pairs: HashMap<(usize, usize), Held>,
    /// How many there were when those that are gone were taken out.
    left: usize,
    /// Documents with the same keys in all of them, and how many there were then.
    held: usize,
    held_left: usize,
}

/// What two segments share, and they.
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
    /// The documents of two segments that have the same keys, by those of the first. Cost: a look-up for each key of the
    /// smaller one that the larger one may have; nothing the next time.
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

/// The documents of the smaller run whose keys the larger one has, and those.
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
