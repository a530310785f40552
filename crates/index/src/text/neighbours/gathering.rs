//! Builds many document lists at once while documents are read in order.
//!
//! Appending directly would miss the cache with each document, because there are so many lists. So entries go
//! to a log; a full log is sorted by list and then appended to the lists.
//!
//! Memory is bounded. At the bound, the lists of least worth are dropped for good.

use super::lists::Growing;

/// Entries of a full log: 16 MiB, including what sorting takes.
const LOGGED: usize = 1 << 20;
/// Most bytes of all lists; they may exceed it by one log.
const MOST_BYTES: usize = 96 << 20;
/// The overhead of a list, dropped or not, in bytes.
const LIST_BYTES: usize = 64;

/// The lists under construction.
pub(super) struct Gathering {
    /// (list, document), documents ascending.
    log: Vec<(u32, u32)>,
    sorted: Vec<(u32, u32)>,
    /// `None` for dropped lists.
    lists: Vec<Option<Growing>>,
    worths: Vec<u32>,
    bytes: usize,
    most_bytes: usize,
}

impl Gathering {
    /// No lists yet.
    pub fn new() -> Self {
        Self::of_at_most(MOST_BYTES)
    }

    fn of_at_most(most_bytes: usize) -> Self {
        let (log, sorted, lists, worths) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { log, sorted, lists, worths, bytes: 0, most_bytes }
    }

    /// Begins a list of this worth and returns its number.
    pub fn begin(&mut self, worth: u32) -> u32 {
        self.lists.push(Some(Growing::default()));
        self.worths.push(worth);
        self.bytes += LIST_BYTES;
        (self.lists.len() - 1) as u32
    }

    /// Adds a document to a list. Documents must not descend; a repetition is ignored.
    #[inline]
    pub fn add(&mut self, list: u32, doc: u32) {
        self.log.push((list, doc));
        if self.log.len() == LOGGED {
            self.take_log();
        }
    }

    /// Whether there are so many lists that none can be kept. Documents added from then on are ignored.
    pub fn is_full(&self) -> bool {
        self.lists.len() * LIST_BYTES > self.most_bytes
    }

    /// The lists, with `None` for dropped ones; `None` if there were too many to keep any.
    pub fn finish(mut self) -> Option<Vec<Option<Growing>>> {
        self.take_log();
        (!self.is_full()).then_some(self.lists)
    }

    fn take_log(&mut self) {
        let mut starts = vec![0u32; self.lists.len() + 1];
        self.log.iter().for_each(|&(list, _)| starts[list as usize + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        self.sorted.clear();
        self.sorted.resize(self.log.len(), (0, 0));
        for &entry in &self.log {
            let start = &mut starts[entry.0 as usize];
            self.sorted[*start as usize] = entry;
            *start += 1;
        }
        self.log.clear();
        for documents in self.sorted.chunk_by(|a, b| a.0 == b.0) {
            if let Some(Some(list)) = self.lists.get_mut(documents[0].0 as usize) {
                let before = list.bytes();
                documents.iter().for_each(|&(_, doc)| list.add(doc));
                self.bytes += list.bytes() - before;
            }
        }
        if self.bytes > self.most_bytes {
            self.drop_least_worthy();
        }
    }

    /// Drops lists until a quarter of the memory for documents is free, so that it is not necessary after
    /// every log.
    fn drop_least_worthy(&mut self) {
        let heads = self.lists.len() * LIST_BYTES;
        let goal = heads + self.most_bytes.saturating_sub(heads) / 4 * 3;
        let mut order: Vec<usize> = (0..self.lists.len()).collect();
        order.sort_unstable_by_key(|&at| (self.worths[at], at));
        for at in order {
            if self.bytes <= goal {
                break;
            }
            self.bytes -= self.lists[at].take().map_or(0, |list| list.bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posting_lists_contain_all_added_entries() {
        let mut gathering = Gathering::new();
        let lists: Vec<u32> = (0..7).map(|_| gathering.begin(1)).collect();
        let documents = LOGGED as u32 / 2;
        for doc in 0..documents {
            for &list in &lists {
                if doc % (list + 1) == 0 {
                    (0..1 + doc % 2).for_each(|_| gathering.add(list, doc));
                }
            }
        }
        let made = gathering.finish().unwrap();
        for (list, every) in made.iter().flatten().zip(1..) {
            let expected: Vec<u32> = (0..documents).step_by(every).collect();
            assert_eq!(list.count() as usize, expected.len());
            let mut bytes = Vec::new();
            list.write(documents, &mut bytes).unwrap();
            let docs = super::super::lists::read(&bytes, documents).unwrap();
            assert!(docs.iter().eq(expected));
        }
    }

    #[test]
    fn least_useful_neighbour_lists_are_dropped_at_the_size_limit() {
        let documents = LOGGED as u32 / 16;
        let kept = |most: usize| {
            let mut gathering = Gathering::of_at_most(most);
            // The worthiest ones come last.
            let lists: Vec<u32> = (0..32).map(|worth| gathering.begin(worth / 2)).collect();
            for doc in 0..documents {
                lists.iter().for_each(|&list| gathering.add(list, doc));
            }
            let made = gathering.finish()?;
            let whole = |list: &Growing| assert_eq!(list.count(), documents);
            made.iter().flatten().for_each(whole);
            Some(made.iter().map(Option::is_some).collect::<Vec<_>>())
        };
        // A document takes a byte of each list.
        assert_eq!(kept(documents as usize * 33), Some(vec![true; 32]));
        let some = kept(documents as usize * 16).unwrap();
        let dropped = some.iter().filter(|is_kept| !**is_kept).count();
        assert!((16..24).contains(&dropped), "{dropped}");
        assert!(some.is_sorted());
        assert_eq!(kept(31 * LIST_BYTES), None);
    }
}
