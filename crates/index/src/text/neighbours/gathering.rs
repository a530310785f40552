//! Collects the documents of many lists at once, which come document by document.
//!
//! The ends of so many lists are in no near cache. So what comes is noted in a log, and a full log is
//! sorted by list before it is taken to the lists: each list is then touched once a log, not once a
//! document.

use super::lists::Growing;

/// So much is noted before the lists are touched: 16 MiB with what sorting takes.
const LOGGED: usize = 1 << 20;
/// Lists of more bytes together are not collected.
const MOST_BYTES: usize = 96 << 20;
/// What a list takes beside its documents.
const LIST_BYTES: usize = 64;

/// Lists on their way.
pub(super) struct Gathering {
    /// (list, document), documents ascending.
    log: Vec<(u32, u32)>,
    sorted: Vec<(u32, u32)>,
    lists: Vec<Growing>,
    bytes: usize,
    most_bytes: usize,
}

impl Gathering {
    /// No lists yet.
    pub fn new() -> Self {
        Self::of_at_most(MOST_BYTES)
    }

    fn of_at_most(most_bytes: usize) -> Self {
        let (log, sorted, lists) = (Vec::new(), Vec::new(), Vec::new());
        Self { log, sorted, lists, bytes: 0, most_bytes }
    }

    /// Begins another list: its number.
    pub fn begin(&mut self) -> u32 {
        self.lists.push(Growing::default());
        self.bytes += LIST_BYTES;
        (self.lists.len() - 1) as u32
    }

    /// Adds a document, not below those that were added, to a list; more than once is once.
    #[inline]
    pub fn add(&mut self, list: u32, doc: u32) {
        self.log.push((list, doc));
        if self.log.len() == LOGGED {
            self.take_log();
        }
    }

    /// Whether there is more than may be collected: what is added from now on is forgotten.
    pub fn is_full(&self) -> bool {
        self.bytes > self.most_bytes
    }

    /// The lists, or none at all if they were too much.
    pub fn finish(mut self) -> Option<Vec<Growing>> {
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
            if self.bytes > self.most_bytes {
                return;
            }
            if let Some(list) = self.lists.get_mut(documents[0].0 as usize) {
                let before = list.bytes();
                documents.iter().for_each(|&(_, doc)| list.add(doc));
                self.bytes += list.bytes() - before;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_hold_what_was_added_to_them() {
        let mut gathering = Gathering::new();
        let lists: Vec<u32> = (0..7).map(|_| gathering.begin()).collect();
        let documents = LOGGED as u32 / 2;
        for doc in 0..documents {
            for &list in &lists {
                if doc % (list + 1) == 0 {
                    (0..1 + doc % 2).for_each(|_| gathering.add(list, doc));
                }
            }
        }
        let made = gathering.finish().unwrap();
        for (list, every) in made.iter().zip(1..) {
            let expected: Vec<u32> = (0..documents).step_by(every).collect();
            assert_eq!(list.count() as usize, expected.len());
            let mut bytes = Vec::new();
            list.write(documents, &mut bytes).unwrap();
            let docs = super::super::lists::read(&bytes, documents).unwrap();
            assert!(docs.iter().eq(expected));
        }
    }

    #[test]
    fn too_much_is_given_up() {
        let documents = LOGGED as u32 / 16;
        for (most, is_given_up) in [(LOGGED, true), (LOGGED * 3, false)] {
            let mut gathering = Gathering::of_at_most(most);
            let lists: Vec<u32> = (0..32).map(|_| gathering.begin()).collect();
            for doc in 0..documents {
                lists.iter().for_each(|&list| gathering.add(list, doc));
            }
            assert_eq!(gathering.is_full(), is_given_up);
            assert_eq!(gathering.finish().is_none(), is_given_up);
        }
    }
}
