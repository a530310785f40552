//! Parts of sections that stay in their files, kept in memory while they are asked for.
//!
//! All that are kept of all open sections take [`MOST_BYTES`] at most: each section has a share by its size. Within a
//! section those go first that were not asked for again.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use rustc_hash::FxHashMap;

use crate::Result;

/// Most bytes that are kept.
const MOST_BYTES: u64 = 64 << 20;
/// Bytes of a page.
const PAGE: u64 = 16 << 10;

/// The sizes of all open sections whose pages are kept.
static OPEN_BYTES: AtomicU64 = AtomicU64::new(0);
/// How many pages are kept of all of them.
static KEPT_PAGES: AtomicU64 = AtomicU64::new(0);

/// The pages of one section that are in memory.
#[derive(Debug)]
pub(crate) struct Pages {
    bytes: u64,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    pages: FxHashMap<u64, Page>,
    /// The numbers of the pages, those first that go first.
    order: VecDeque<u64>,
}

#[derive(Debug)]
struct Page {
    bytes: Arc<Vec<u8>>,
    /// Whether it was asked for since it was last spared.
    is_used: bool,
}

impl Pages {
    /// For a section of so many bytes.
    pub fn new(bytes: u64) -> Self {
        OPEN_BYTES.fetch_add(bytes, Ordering::Relaxed);
        Self { bytes, kept: Mutex::default() }
    }

    /// Appends the bytes `start..end` of the section to `out`; `read` reads what is not kept.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn read_into(
        &self,
        (start, end): (u64, u64),
        mut read: impl FnMut(u64, u64) -> Result<Vec<u8>>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let mut at = start;
        while at < end {
            let number = at / PAGE;
            let first = number * PAGE;
            let known = self.find(number);
            let page = match known {
                Some(page) => page,
                None => {
                    let page = Arc::new(read(first, (first + PAGE).min(self.bytes))?);
                    self.keep(number, Arc::clone(&page));
                    page
                }
            };
            let (from, to) = ((at - first) as usize, (end.min(first + PAGE) - first) as usize);
            out.extend_from_slice(page.get(from..to).unwrap_or_default());
            at = first + PAGE;
        }
        Ok(())
    }

    fn find(&self, number: u64) -> Option<Arc<Vec<u8>>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let page = kept.pages.get_mut(&number)?;
        page.is_used = true;
        let bytes = Arc::clone(&page.bytes);
        // What is more than its share goes bit by bit, though nothing new comes.
        if kept.order.len() > self.most() {
            kept.drop_one();
        }
        Some(bytes)
    }

    fn keep(&self, number: u64, bytes: Arc<Vec<u8>>) {
        let most = self.most();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.pages.insert(number, Page { bytes, is_used: false }).is_none() {
            kept.order.push_back(number);
            KEPT_PAGES.fetch_add(1, Ordering::Relaxed);
        }
        // Others that were opened before may hold more than their share still.
        let is_full = || KEPT_PAGES.load(Ordering::Relaxed) > MOST_BYTES / PAGE;
        while kept.order.len() > most || kept.order.len() > 1 && is_full() {
            kept.drop_one();
        }
    }

    /// How many pages may be kept.
    fn most(&self) -> usize {
        let open = u128::from(OPEN_BYTES.load(Ordering::Relaxed).max(1));
        let share = u128::from(MOST_BYTES) * u128::from(self.bytes) / open;
        usize::try_from(share / u128::from(PAGE)).unwrap_or(usize::MAX).max(1)
    }
}

impl Kept {
    fn drop_one(&mut self) {
        while let Some(number) = self.order.pop_front() {
            match self.pages.get_mut(&number) {
                Some(page) if page.is_used => {
                    page.is_used = false;
                    self.order.push_back(number);
                }
                _ => {
                    self.pages.remove(&number);
                    KEPT_PAGES.fetch_sub(1, Ordering::Relaxed);
                    return;
                }
            }
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        OPEN_BYTES.fetch_sub(self.bytes, Ordering::Relaxed);
        let kept = self.kept.get_mut().unwrap_or_else(PoisonError::into_inner);
        KEPT_PAGES.fetch_sub(kept.order.len() as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_the_file_has_and_no_more_than_a_share_is_kept() {
        let bytes: Vec<u8> = (0..PAGE * 5 + 100).map(|at| ((at * 31) >> 5) as u8).collect();
        let pages = Pages::new(bytes.len() as u64);
        // As if other sections took nearly all there is.
        let others = Pages::new(MOST_BYTES * bytes.len() as u64 / (3 * PAGE));
        let mut read = 0;
        for (at, length) in
            [(0, 10), (PAGE - 3, 7), (PAGE * 2, PAGE * 3 + 100), (5, 0), (1, PAGE * 4), (0, 9)]
        {
            let mut out = vec![7];
            let from_file = |start: u64, end: u64| {
                read += 1;
                Ok(bytes[start as usize..end as usize].to_vec())
            };
            pages.read_into((at, at + length), from_file, &mut out).unwrap();
            assert_eq!(out[1..], bytes[at as usize..(at + length) as usize]);
            let kept = pages.kept.lock().unwrap();
            assert!(kept.pages.len() <= 3 && kept.order.len() == kept.pages.len());
        }
        assert!((6..16).contains(&read), "{read}");
        drop(others);
        assert!(pages.most() > 3);
    }
}
