//! Builds many document lists at once while documents are read in order.
//!
//! Appending directly would miss the cache with each document, because there are so many lists. So entries go
//! to a log; a full log is sorted by list and becomes a run of bytes. In the end the parts that the runs have of
//! each list are put together. Runs are written and read from front to back.
//!
//! ```text
//! run := (list - previous:varint bytes:varint gaps:u8{bytes})*    ascending by list
//! ```
//! Memory is bounded. At the bound, the lists of least worth are dropped for good.

use super::lists::{DocumentGaps, Growing};
use crate::{
    Result,
    text::keyed_order::begins,
    varint::{self, VarintReader},
};

/// Entries of a full log: 16 MiB, including what sorting takes.
const LOGGED: usize = 1 << 20;
/// Most bytes of all lists; they may exceed it by one log.
const MOST_BYTES: usize = 96 << 20;
/// The overhead of a list, dropped or not, in bytes.
const LIST_BYTES: usize = 64;
/// A log is sorted by so many bits of the lists' numbers at a time.
const SORTED_BITS: u32 = 11;

/// An entry of the log: list and document.
type Entry = (u32, u32);

/// The lists under construction.
pub(super) struct Gathering {
    /// Documents ascend.
    log: Vec<Entry>,
    sorted: Vec<Entry>,
    lists: Vec<List>,
    runs: Vec<Vec<u8>>,
    bytes: usize,
    most_bytes: usize,
}

/// What is known of a list besides its bytes.
struct List {
    worth: u32,
    is_dropped: bool,
    growing: Growing,
    /// The bytes of its gaps.
    bytes: u32,
}

impl Gathering {
    /// No lists yet.
    pub fn new() -> Self {
        Self::of_at_most(MOST_BYTES)
    }

    fn of_at_most(most_bytes: usize) -> Self {
        let (log, sorted, lists, runs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { log, sorted, lists, runs, bytes: 0, most_bytes }
    }

    /// Begins a list of this worth and returns its number.
    pub fn begin(&mut self, worth: u32) -> u32 {
        self.lists.push(List { worth, is_dropped: false, growing: Growing::default(), bytes: 0 });
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
    pub fn finish(mut self) -> Result<Option<Vec<Option<DocumentGaps>>>> {
        self.take_log();
        if self.is_full() {
            return Ok(None);
        }
        let mut runs =
            self.runs.iter().map(|run| RunReader::new(run)).collect::<Result<Vec<_>>>()?;
        let mut made = Vec::with_capacity(self.lists.len());
        for (list, number) in self.lists.iter().zip(0..) {
            let mut gaps =
                Vec::with_capacity(if list.is_dropped { 0 } else { list.bytes as usize });
            for run in runs.iter_mut().filter(|run| run.list == Some(number)) {
                gaps.extend_from_slice(run.gaps);
                run.advance()?;
            }
            let documents = list.growing.count();
            made.push((!list.is_dropped).then(|| DocumentGaps::new(documents, gaps)));
        }
        Ok(Some(made))
    }

    fn take_log(&mut self) {
        self.sort_log();
        let (mut run, mut gaps, mut previous) = (Vec::new(), Vec::new(), 0);
        for documents in self.log.chunk_by(|a, b| a.0 == b.0) {
            let number = documents[0].0;
            let Some(list) = self.lists.get_mut(number as usize).filter(|list| !list.is_dropped)
            else {
                continue;
            };
            gaps.clear();
            documents.iter().for_each(|&(_, doc)| list.growing.add(doc, &mut gaps));
            if gaps.is_empty() {
                continue;
            }
            list.bytes += gaps.len() as u32;
            self.bytes += gaps.len();
            push_part(&mut run, number - previous, &gaps);
            previous = number;
        }
        self.log.clear();
        run.shrink_to_fit();
        self.runs.push(run);
        if self.bytes > self.most_bytes {
            self.drop_least_worthy();
        }
    }

    /// Sorts the log by list; the documents of a list stay in their order.
    fn sort_log(&mut self) {
        let bits = self.lists.len().max(1).ilog2() + 1;
        for shift in (0..bits).step_by(SORTED_BITS as usize) {
            let digit = |entry: &Entry| (entry.0 >> shift) as usize % (1 << SORTED_BITS);
            let mut places = [0usize; 1 << SORTED_BITS];
            self.log.iter().for_each(|entry| places[digit(entry)] += 1);
            begins(&mut places);
            self.sorted.resize(self.log.len(), (0, 0));
            for entry in &self.log {
                let place = &mut places[digit(entry)];
                self.sorted[*place] = *entry;
                *place += 1;
            }
            std::mem::swap(&mut self.log, &mut self.sorted);
        }
    }

    /// Drops lists until a quarter of the memory for documents is free, so that it is not necessary after
    /// every log.
    fn drop_least_worthy(&mut self) {
        let heads = self.lists.len() * LIST_BYTES;
        let goal = heads + self.most_bytes.saturating_sub(heads) / 4 * 3;
        let mut order: Vec<usize> = (0..self.lists.len()).collect();
        order.sort_unstable_by_key(|&at| (self.lists[at].worth, at));
        for at in order {
            if self.bytes <= goal {
                break;
            }
            let list = &mut self.lists[at];
            self.bytes -= if list.is_dropped { 0 } else { list.bytes as usize };
            list.is_dropped = true;
        }
        for run in &mut self.runs {
            *run = without_dropped(run, &self.lists);
        }
    }
}

fn push_part(run: &mut Vec<u8>, distance: u32, gaps: &[u8]) {
    varint::push(run, distance);
    varint::push(run, gaps.len() as u32);
    run.extend_from_slice(gaps);
}

/// The run without the parts of lists that were dropped.
fn without_dropped(run: &[u8], lists: &[List]) -> Vec<u8> {
    let (mut kept, mut previous) = (Vec::new(), 0);
    let Ok(mut reader) = RunReader::new(run) else { return kept };
    while let Some(number) = reader.list {
        if lists.get(number as usize).is_some_and(|list| !list.is_dropped) {
            push_part(&mut kept, number - previous, reader.gaps);
            previous = number;
        }
        if reader.advance().is_err() {
            break;
        }
    }
    kept.shrink_to_fit();
    kept
}

/// Reads a run.
struct RunReader<'r> {
    run: &'r [u8],
    numbers: VarintReader<'r>,
    /// The list that it has come to; `None` at the end.
    list: Option<u32>,
    gaps: &'r [u8],
}

impl<'r> RunReader<'r> {
    fn new(run: &'r [u8]) -> Result<Self> {
        let mut reader = Self { run, numbers: VarintReader::new(run, 0), list: Some(0), gaps: &[] };
        reader.advance()?;
        Ok(reader)
    }

    fn advance(&mut self) -> Result<()> {
        let start = self.numbers.position();
        if start >= self.run.len() {
            (self.list, self.gaps) = (None, &[]);
            return Ok(());
        }
        let distance = self.numbers.next()?;
        let bytes = self.numbers.next()? as usize;
        let start = self.numbers.position();
        self.list = self.list.map(|list| list + distance);
        self.gaps = self.run.get(start..start + bytes).unwrap_or(&[]);
        self.numbers = VarintReader::new(self.run, start + bytes);
        Ok(())
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
        let made = gathering.finish().unwrap().unwrap();
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
            let made = gathering.finish().unwrap()?;
            let whole = |list: &DocumentGaps| assert_eq!(list.count(), documents);
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
